-- tpu-v4.lua: Google TPU v4: a 3D torus of 4x4x4 cubes, 4 chips a host.

local S29 = "jax-ml/scaling-book@0819a7d tpus.md, sharding.md"
local S33 = "erfanzar/EasyDeL#166 (30.75G of hbm)"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "tpu-v4", vendor = "google",
  { "peak.bf16", "275T", source = S29 },
  { "gemm.efficiency", "0.85", source = assumed, unverified = true },
  { "hbm.bytes", "30.75GiB", source = S33 },
  { "hbm.bandwidth", "1200GB/s", source = S29 },
  { "hbm.efficiency", "0.9", source = assumed, unverified = true },
  { "launch", "0.5us", source = assumed, unverified = true },
  { "host.bandwidth", "16GB/s", source = S29 },
  { "host.bytes", "100GiB", source = memory, unverified = true },
  level "node" { size = 4, topology = "part", source = S29 },
  level "pod" { size = 4096, topology = "torus", axes = 3, wrap = "all 4", bandwidth = "270GB/s", source = S29 },
  { "level.pod.latency", "1us", source = S29 },
  { "level.pod.efficiency", "0.9", source = assumed, unverified = true },
  level "fabric" { size = "all", topology = "switch", bandwidth = "50Gb/s", source = S29 },
  { "level.fabric.latency", "14us", source = assumed, unverified = true },
  { "level.fabric.efficiency", "0.9", source = assumed, unverified = true },
}
