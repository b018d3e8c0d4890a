-- gb300-nvl72.lua: NVIDIA GB300 NVL72: 72 GPUs in one NVLink domain. Figures from memory where GB200 has none to give.

local S4 = "NVIDIA/nccl@5067397 (2.30.7) src/graph/tuning.cc, topo.h"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "gb300-nvl72", vendor = "nvidia",
  { "peak.f32", "80T", source = memory, unverified = true },
  { "peak.tf32", "1250T", source = memory, unverified = true },
  { "peak.bf16", "2500T", source = memory, unverified = true },
  { "peak.fp8", "5000T", source = memory, unverified = true },
  { "peak.fp4", "15000T", source = memory, unverified = true },
  { "gemm.efficiency", "0.729", source = assumed, unverified = true },
  { "hbm.bytes", "275GiB", source = memory, unverified = true },
  { "hbm.bandwidth", "8000GB/s", source = memory, unverified = true },
  { "hbm.efficiency", "0.85", source = assumed, unverified = true },
  { "launch", "1.5us", source = assumed, unverified = true },
  { "host.bandwidth", "225GB/s", source = assumed, unverified = true },
  { "host.bytes", "240GiB", source = memory, unverified = true },
  level "tray" { size = 4, topology = "part", source = memory, unverified = true },
  level "node" { size = 72, topology = "switch", bandwidth = "900GB/s", source = memory, unverified = true },
  { "level.node.latency", "1.87us", source = assumed, unverified = true },
  { "level.node.efficiency", "0.76", source = assumed, unverified = true },
  { "level.node.reduce_gain", "1.24", source = assumed, unverified = true },
  level "fabric" { size = "all", topology = "switch", bandwidth = "800Gb/s", source = memory, unverified = true },
  { "level.fabric.latency", "14us", source = S4 },
  { "level.fabric.efficiency", "0.95", source = assumed, unverified = true },
}
