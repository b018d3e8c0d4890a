-- zero1.lua: data parallel, each optimizer state on one device alone (ZeRO stage 1, arXiv 1910.02054).
return strategy {
  mesh    = "dp=*",
  split   = { batch = "dp" },
  states  = { like = "megatron", optimizer = "dp" },
  batch   = { micro = 1 },
  overlap = { grads = true },
}
