-- zero3.lua: parameters, gradients and optimizer states on one device each, gathered layer by layer (ZeRO stage 3, arXiv 1910.02054).
return strategy {
  mesh    = "dp=*",
  split   = { batch = "dp" },
  states  = { like = "fsdp2", params = "dp", grads = "dp", optimizer = "dp", unit = { "layers.*", "embed", "head" } },
  batch   = { micro = 1 },
  overlap = { params = { ahead = 1 }, grads = true },
}
