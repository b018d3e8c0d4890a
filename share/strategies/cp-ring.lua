-- cp-ring.lua: the sequence split in blocks, keys and values go round a ring (arXiv 2310.01889).
return strategy {
  mesh   = "cp=*",
  split  = { seq = "cp", batch = whole },
  cp     = { outer = "ring" },
  states = { like = "megatron", optimizer = "cp" },
  batch  = { micro = 1, normalise = "tokens" },
}
