-- ulysses-ring.lua: heads inside, a ring of sequence blocks outside (arXiv 2405.07719).
local inner = math.min(2, cluster.size)
return strategy {
  mesh        = "ring=*, ulysses=" .. inner,
  roles       = { ring = "cp", ulysses = "cp" },
  split       = { heads = "ulysses", kv_heads = "ulysses", seq = "ring+ulysses", batch = whole },
  param_split = {},
  cp          = { outer = "ring" },
  states      = { like = "megatron", optimizer = "ring+ulysses" },
  batch       = { micro = 1, normalise = "tokens" },
}
