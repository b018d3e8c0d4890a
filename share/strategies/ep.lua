-- ep.lua: experts dealt out over the data-parallel devices: all-to-all to them and back (arXiv 2006.16668).
local ep = largest_divisor(model.experts, { at_most = cluster.size })
return strategy {
  mesh   = "dp=*",
  views  = { moe = "edp=*, ep=" .. largest_divisor(cluster.size, { at_most = ep }) },
  split  = { batch = "dp" },
  layout = { { "**.moe.experts", { experts = "moe.ep", ffn = whole } } },
  states = { like = "megatron", optimizer = "dp", { "**.moe.experts", optimizer = "moe.edp" } },
  batch  = { micro = 1 },
}
