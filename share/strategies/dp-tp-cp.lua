-- dp-tp-cp.lua: a mix of three: heads over tp, blocks of the sequence over cp, the rest over the batch; sequence parallel between.
local tp = largest_divisor(model.kv_heads, { at_most = 2 })
local cp = largest_divisor(cluster.size // tp, { at_most = 2 })
local by_sequence = { seq = "cp+tp" }
return strategy {
  mesh   = ("dp=*, cp=%d, tp=%d"):format(cp, tp),
  split  = { batch = "dp", heads = "tp", kv_heads = "tp", ffn = "tp", vocab = "tp", seq = { "cp", order = "zigzag" } },
  layout = { { "layers.*.resid", by_sequence }, { "layers.*.norm*", by_sequence } },
  cp     = { outer = "ring" },
  states = { like = "megatron", optimizer = "dp+cp" },
  batch  = { micro = 1, normalise = "tokens" },
}
