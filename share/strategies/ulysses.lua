-- ulysses.lua: the sequence split, and inside attention the heads instead: all-to-all in and out (arXiv 2309.14509). Parameters stay whole.
local cp = largest_divisor(model.heads, { at_most = cluster.size })
return strategy {
  mesh        = "dp=*, cp=" .. largest_divisor(cluster.size, { at_most = cp }),
  split       = { heads = "cp", kv_heads = "cp", seq = "cp", batch = "dp" },
  param_split = {},
  states      = { like = "megatron", optimizer = "dp+cp" },
  batch       = { micro = 1, normalise = "tokens" },
}
