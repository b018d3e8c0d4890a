-- tpu-v5p.lua: Google TPU v5p: a 3D torus of 4x4x4 cubes, 4 chips a host, 8960 chips a pod.

local S29 = "jax-ml/scaling-book@0819a7d tpus.md, sharding.md"
local S36 = "docs.cloud.google.com/tpu/docs/v5p"
local S37 = "compiler messages of others: of 95.74G hbm"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "tpu-v5p", vendor = "google",
  { "peak.bf16", "459T", source = S29 },
  { "peak.fp8", "459T", source = S29 },
  { "gemm.efficiency", "0.85", source = assumed, unverified = true },
  { "hbm.bytes", "95.74GiB", source = S37 },
  { "hbm.bandwidth", "2765GB/s", source = S36 },
  { "hbm.efficiency", "0.9", source = assumed, unverified = true },
  { "launch", "0.5us", source = assumed, unverified = true },
  { "host.bandwidth", "15GB/s", source = S29 },
  { "host.bytes", "112GiB", source = S36 },
  level "node" { size = 4, topology = "part", source = S29 },
  level "pod" { size = 8960, topology = "torus", axes = 3, wrap = "all 4", bandwidth = "540GB/s", source = S29 },
  { "level.pod.latency", "1us", source = S29 },
  { "level.pod.efficiency", "0.9", source = assumed, unverified = true },
  level "fabric" { size = "all", topology = "switch", bandwidth = "50Gb/s", source = S36 },
  { "level.fabric.latency", "14us", source = assumed, unverified = true },
  { "level.fabric.efficiency", "0.9", source = assumed, unverified = true },
}
