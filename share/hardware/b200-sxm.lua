-- b200-sxm.lua: NVIDIA B200-SXM 180 GB, nodes of 8 behind NVSwitch that can reduce (NVLS).

local S3 = "stas00/ml-engineering@744d01e network/README.md"
local S4 = "NVIDIA/nccl@5067397 (2.30.7) src/graph/tuning.cc, topo.h"
local S5 = "stas00/ml-engineering@744d01e compute/accelerator/README.md"
local S9 = "pytorch/torchtitan@b5bcd76 torchtitan/tools/utils.py"
local S14 = "astra-sim/astra-sim@518bd51 HGX-H100-validated.yml"
local S16 = "Azure/AI-benchmarking-guide@8fd0c6e Azure_Results/ND_H200_v5_results.md"
local S19 = "nvidia-smi reports of others: 183359MiB; mlcommons inference_results_v6.0 nebius_b200_n1"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "b200-sxm", vendor = "nvidia",
  { "peak.f32", "80T", source = S9 },
  { "peak.tf32", "1125T", source = S9 },
  { "peak.bf16", "2250T", source = S9 },
  { "peak.fp8", "4500T", source = S9 },
  { "peak.fp4", "9000T", source = memory, unverified = true },
  { "gemm.efficiency", "0.776", source = S5 },
  { "hbm.bytes", "179.06GiB", source = S19 },
  { "hbm.bandwidth", "8000GB/s", source = S5 },
  { "hbm.efficiency", "0.85", source = assumed, unverified = true },
  { "launch", "1.5us", source = assumed, unverified = true },
  { "host.bandwidth", "55GB/s", source = S16 },
  { "host.bytes", "225GiB", source = S19 },
  level "node" { size = 8, topology = "switch", bandwidth = "900GB/s", source = S3 },
  { "level.node.latency", "1.87us", source = S14, unverified = true },
  { "level.node.efficiency", "0.76", source = S3 },
  { "level.node.reduce_gain", "1.23", source = S3 },
  level "fabric" { size = "all", topology = "switch", bandwidth = "400Gb/s", source = S3 },
  { "level.fabric.latency", "14us", source = S4 },
  { "level.fabric.efficiency", "0.95", source = assumed, unverified = true },
}
