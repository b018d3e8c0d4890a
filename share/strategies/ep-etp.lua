-- ep-etp.lua: two factorisations of the same devices: dp x tp for dense layers, edp x ep x etp for experts.
local tp = largest_divisor(model.kv_heads, { at_most = math.min(2, cluster.size) })
return strategy {
  mesh   = "dp=*, tp=" .. tp,
  views  = { moe = ("edp=*, ep=%d, etp=%d"):format(largest_divisor(cluster.size // tp, { at_most = 2 }), tp) },
  split  = { batch = "dp", heads = "tp", kv_heads = "tp", ffn = "tp", vocab = "tp" },
  layout = { { "**.moe.experts", { experts = "moe.ep", ffn = "moe.etp" } },
             { "layers.*.resid", { seq = "tp" } } },
  states = { like = "megatron", optimizer = "dp", { "**.moe.experts", optimizer = "moe.edp" } },
  batch  = { micro = 1 },
}
