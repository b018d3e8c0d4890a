-- dp.lua: data parallel: every device has the whole model and a share of the batch.
return strategy {
  mesh   = "dp=*",
  split  = { batch = "dp" },
  states = { like = "megatron" },
  batch  = { micro = 1 },
}
