-- tp.lua: heads and feed-forward width split inside a node, data parallel between (Megatron, arXiv 1909.08053).
local tp = largest_divisor(model.kv_heads, { at_most = cluster.level("node").size })
return strategy {
  mesh   = "dp=*, tp=" .. tp,
  split  = { batch = "dp", heads = "tp", kv_heads = "tp", ffn = "tp" },
  states = { like = "megatron" },
  batch  = { micro = 1 },
}
