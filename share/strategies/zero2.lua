-- zero2.lua: data parallel, gradients and optimizer states on one device each (ZeRO stage 2, arXiv 1910.02054).
return strategy {
  mesh    = "dp=*",
  split   = { batch = "dp" },
  states  = { like = "deepspeed", grads = "dp", optimizer = "dp" },
  batch   = { micro = 1 },
  overlap = { grads = true },
}
