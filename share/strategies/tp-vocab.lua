-- tp-vocab.lua: tensor parallel whose embedding, head and loss are split over the vocabulary: no device ever holds a whole row of logits.
local tp = largest_divisor(model.kv_heads, { at_most = cluster.level("node").size })
return strategy {
  mesh   = "dp=*, tp=" .. tp,
  split  = { batch = "dp", heads = "tp", kv_heads = "tp", ffn = "tp", vocab = "tp" },
  states = { like = "megatron", optimizer = "dp" },
  batch  = { micro = 1 },
}
