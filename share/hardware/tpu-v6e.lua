-- tpu-v6e.lua: Google TPU v6e: a 2D torus of 16x16, closed only along a whole axis of 16.

local S29 = "jax-ml/scaling-book@0819a7d tpus.md, sharding.md"
local S38 = "docs.cloud.google.com/tpu/docs/v6e"
local S39 = "compiler messages of others: of 31.25G hbm"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "tpu-v6e", vendor = "google",
  { "peak.bf16", "918T", source = S38 },
  { "peak.fp8", "918T", source = S38 },
  { "gemm.efficiency", "0.85", source = assumed, unverified = true },
  { "hbm.bytes", "31.25GiB", source = S39 },
  { "hbm.bandwidth", "1638GB/s", source = S38 },
  { "hbm.efficiency", "0.9", source = assumed, unverified = true },
  { "launch", "0.5us", source = assumed, unverified = true },
  { "host.bandwidth", "32GB/s", source = S29 },
  { "host.bytes", "192GiB", source = S38 },
  level "node" { size = 8, topology = "part", source = S29 },
  level "pod" { size = 256, topology = "torus", axes = 2, wrap = "16", bandwidth = "360GB/s", source = S29 },
  { "level.pod.latency", "1us", source = S29 },
  { "level.pod.efficiency", "0.9", source = assumed, unverified = true },
  level "fabric" { size = "all", topology = "switch", bandwidth = "100Gb/s", source = memory, unverified = true },
  { "level.fabric.latency", "14us", source = assumed, unverified = true },
  { "level.fabric.efficiency", "0.9", source = assumed, unverified = true },
}
