-- zero3-tp.lua: ZeRO-3 over what tensor parallelism leaves, with full recomputation of every layer.
local tp = largest_divisor(model.kv_heads, { at_most = 2 })
return strategy {
  mesh      = "dp=*, tp=" .. tp,
  split     = { batch = "dp", heads = "tp", kv_heads = "tp", ffn = "tp", vocab = "tp" },
  states    = { like = "fsdp2", params = "dp", grads = "dp", optimizer = "dp", unit = { "layers.*", "embed", "head" } },
  batch     = { micro = 1 },
  recompute = { { "layers.*", "inside" } },
  overlap   = { params = { ahead = 1 }, grads = true },
}
