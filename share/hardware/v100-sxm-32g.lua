-- v100-sxm-32g.lua: NVIDIA V100-SXM2 32 GB, DGX-1 nodes of 8. Its 16-bit rate is fp16: it has no bf16.

local S1 = "cli99/llm-analysis@d841e40 llm_analysis/gpu_configs"
local S3 = "stas00/ml-engineering@744d01e network/README.md"
local S4 = "NVIDIA/nccl@5067397 (2.30.7) src/graph/tuning.cc, topo.h"
local S7 = "FMInference/FlexGen#131 (PCIe3 measured)"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "v100-sxm-32g", vendor = "nvidia",
  { "peak.f32", "15.7T", source = S1 },
  { "peak.bf16", "125T", source = S1 },
  { "gemm.efficiency", "0.8", source = assumed, unverified = true },
  { "hbm.bytes", "31.75GiB", source = memory, unverified = true },
  { "hbm.bandwidth", "900GB/s", source = S1 },
  { "hbm.efficiency", "0.8", source = assumed, unverified = true },
  { "launch", "1.5us", source = assumed, unverified = true },
  { "host.bandwidth", "12.5GB/s", source = S7 },
  { "host.bytes", "64GiB", source = memory, unverified = true },
  level "node" { size = 8, topology = "switch", bandwidth = "150GB/s", source = S3 },
  { "level.node.latency", "3.4us", source = S4 },
  { "level.node.efficiency", "0.81", source = S3 },
  level "fabric" { size = "all", topology = "switch", bandwidth = "50Gb/s", source = S3 },
  { "level.fabric.latency", "14us", source = S4 },
  { "level.fabric.efficiency", "0.9", source = assumed, unverified = true },
}
