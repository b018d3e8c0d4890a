-- cp-zigzag.lua: the ring with each device holding a head and a tail piece, so that causal attention costs all the same.
return strategy {
  mesh   = "cp=*",
  split  = { seq = { "cp", order = "zigzag" }, batch = whole },
  cp     = { outer = "ring" },
  states = { like = "megatron", optimizer = "cp" },
  batch  = { micro = 1, normalise = "tokens" },
}
