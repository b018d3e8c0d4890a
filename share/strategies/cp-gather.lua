-- cp-gather.lua: the sequence split, every device gathers all keys and values (as Llama 3 was trained, arXiv 2407.21783).
return strategy {
  mesh   = "cp=*",
  split  = { seq = { "cp", order = "zigzag" }, batch = whole },
  cp     = { outer = "gather" },
  states = { like = "megatron", optimizer = "cp" },
  batch  = { micro = 1, normalise = "tokens" },
}
