-- tpu-v7x.lua: Google TPU v7x (Ironwood): a 3D torus; a chip is one device here (JAX shows its two cores as two).

local S41 = "docs.cloud.google.com/tpu/docs/tpu7x"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "tpu-v7x", vendor = "google",
  { "peak.bf16", "2307T", source = S41 },
  { "peak.fp8", "4614T", source = S41 },
  { "gemm.efficiency", "0.85", source = assumed, unverified = true },
  { "hbm.bytes", "192GiB", source = S41 },
  { "hbm.bandwidth", "7380GB/s", source = memory, unverified = true },
  { "hbm.efficiency", "0.9", source = assumed, unverified = true },
  { "launch", "0.5us", source = assumed, unverified = true },
  { "host.bandwidth", "32GB/s", source = assumed, unverified = true },
  { "host.bytes", "240GiB", source = memory, unverified = true },
  level "node" { size = 4, topology = "part", source = S41 },
  level "pod" { size = 9216, topology = "torus", axes = 3, wrap = "all 4", bandwidth = "600GB/s", source = S41 },
  { "level.pod.latency", "1us", source = assumed, unverified = true },
  { "level.pod.efficiency", "0.9", source = assumed, unverified = true },
  level "fabric" { size = "all", topology = "switch", bandwidth = "100Gb/s", source = memory, unverified = true },
  { "level.fabric.latency", "14us", source = assumed, unverified = true },
  { "level.fabric.efficiency", "0.9", source = assumed, unverified = true },
}
