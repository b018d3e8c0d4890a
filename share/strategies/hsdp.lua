-- hsdp.lua: everything is sharded inside a group, the groups are replicas of each other (hybrid sharding, arXiv 2304.11277).
local inside = largest_divisor(cluster.size, { at_most = math.max(cluster.level("node").size // 2, 1) })
return strategy {
  mesh    = "rep=*, fsdp=" .. inside,
  roles   = { rep = "dp", fsdp = "dp" },
  split   = { batch = "rep+fsdp" },
  states  = { like = "fsdp2", params = "fsdp", grads = "fsdp", optimizer = "fsdp", unit = { "layers.*", "embed", "head" },
              reduce = { between = "rep" } },
  batch   = { micro = 1 },
  overlap = { params = { ahead = 1 }, grads = true },
}
