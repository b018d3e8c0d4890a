-- tp-sp.lua: tensor parallel with the sequence split between its regions (arXiv 2205.05198).
local tp = largest_divisor(model.kv_heads, { at_most = cluster.level("node").size })
local by_sequence = { seq = "tp" }
return strategy {
  mesh   = "dp=*, tp=" .. tp,
  split  = { batch = "dp", heads = "tp", kv_heads = "tp", ffn = "tp", vocab = "tp" },
  layout = { { "layers.*.resid", by_sequence }, { "layers.*.norm*", by_sequence }, { "norm", by_sequence }, { "embed.out", by_sequence } },
  states = { like = "megatron", optimizer = "dp" },
  batch  = { micro = 1 },
}
