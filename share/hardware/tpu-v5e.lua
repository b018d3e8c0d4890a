-- tpu-v5e.lua: Google TPU v5e: a 2D torus of 16x16, closed only along a whole axis of 16.

local S29 = "jax-ml/scaling-book@0819a7d tpus.md, sharding.md"
local S34 = "docs.cloud.google.com/tpu/docs/v5e"
local S35 = "compiler messages of others: of 15.75G hbm"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "tpu-v5e", vendor = "google",
  { "peak.bf16", "197T", source = S29 },
  { "gemm.efficiency", "0.85", source = assumed, unverified = true },
  { "hbm.bytes", "15.75GiB", source = S35 },
  { "hbm.bandwidth", "819GB/s", source = S34 },
  { "hbm.efficiency", "0.9", source = assumed, unverified = true },
  { "launch", "0.5us", source = assumed, unverified = true },
  { "host.bandwidth", "15GB/s", source = S29 },
  { "host.bytes", "64GiB", source = S34 },
  level "node" { size = 8, topology = "part", source = S29 },
  level "pod" { size = 256, topology = "torus", axes = 2, wrap = "16", bandwidth = "180GB/s", source = S29 },
  { "level.pod.latency", "1us", source = S29 },
  { "level.pod.efficiency", "0.82", source = S34 },
  level "fabric" { size = "all", topology = "switch", bandwidth = "25Gb/s", source = S34 },
  { "level.fabric.latency", "14us", source = assumed, unverified = true },
  { "level.fabric.efficiency", "0.9", source = assumed, unverified = true },
}
