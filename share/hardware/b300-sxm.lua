-- b300-sxm.lua: NVIDIA B300-SXM 288 GB, nodes of 8. Figures from memory where B200 has none to give.

local S4 = "NVIDIA/nccl@5067397 (2.30.7) src/graph/tuning.cc, topo.h"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "b300-sxm", vendor = "nvidia",
  { "peak.f32", "80T", source = memory, unverified = true },
  { "peak.tf32", "1125T", source = memory, unverified = true },
  { "peak.bf16", "2250T", source = memory, unverified = true },
  { "peak.fp8", "4500T", source = memory, unverified = true },
  { "peak.fp4", "13500T", source = memory, unverified = true },
  { "gemm.efficiency", "0.776", source = assumed, unverified = true },
  { "hbm.bytes", "268GiB", source = memory, unverified = true },
  { "hbm.bandwidth", "8000GB/s", source = memory, unverified = true },
  { "hbm.efficiency", "0.85", source = assumed, unverified = true },
  { "launch", "1.5us", source = assumed, unverified = true },
  { "host.bandwidth", "55GB/s", source = assumed, unverified = true },
  { "host.bytes", "225GiB", source = assumed, unverified = true },
  level "node" { size = 8, topology = "switch", bandwidth = "900GB/s", source = memory, unverified = true },
  { "level.node.latency", "1.87us", source = assumed, unverified = true },
  { "level.node.efficiency", "0.76", source = assumed, unverified = true },
  { "level.node.reduce_gain", "1.23", source = assumed, unverified = true },
  level "fabric" { size = "all", topology = "switch", bandwidth = "800Gb/s", source = memory, unverified = true },
  { "level.fabric.latency", "14us", source = S4 },
  { "level.fabric.efficiency", "0.95", source = assumed, unverified = true },
}
