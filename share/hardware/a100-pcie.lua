-- a100-pcie.lua: NVIDIA A100-PCIe 80 GB, 8 a node over PCIe 4.

local S3 = "stas00/ml-engineering@744d01e network/README.md"
local S4 = "NVIDIA/nccl@5067397 (2.30.7) src/graph/tuning.cc, topo.h"
local S9 = "pytorch/torchtitan@b5bcd76 torchtitan/tools/utils.py"
local S18 = "MooreThreads/SimuMax@4dcaae5 configs/system/b200_bf16_ceperm.json, a100_pcie.json"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "a100-pcie", vendor = "nvidia",
  { "peak.f32", "19.5T", source = S9 },
  { "peak.tf32", "156T", source = S9 },
  { "peak.bf16", "312T", source = S9 },
  { "gemm.efficiency", "0.75", source = S18 },
  { "hbm.bytes", "79.2GiB", source = memory, unverified = true },
  { "hbm.bandwidth", "1935GB/s", source = memory, unverified = true },
  { "hbm.efficiency", "0.8", source = assumed, unverified = true },
  { "launch", "1.5us", source = assumed, unverified = true },
  { "host.bandwidth", "25GB/s", source = assumed, unverified = true },
  { "host.bytes", "128GiB", source = memory, unverified = true },
  level "node" { size = 8, topology = "switch", bandwidth = "31GB/s", source = S3 },
  { "level.node.latency", "5us", source = assumed, unverified = true },
  { "level.node.efficiency", "0.7", source = assumed, unverified = true },
  level "fabric" { size = "all", topology = "switch", bandwidth = "100Gb/s", source = memory, unverified = true },
  { "level.fabric.latency", "14us", source = S4 },
  { "level.fabric.efficiency", "0.9", source = assumed, unverified = true },
}
