-- h100-sxm-96g.lua: NVIDIA H100 96 GB HBM2e at 500 W, as some large training clusters have it.

local S3 = "stas00/ml-engineering@744d01e network/README.md"
local S4 = "NVIDIA/nccl@5067397 (2.30.7) src/graph/tuning.cc, topo.h"
local S9 = "pytorch/torchtitan@b5bcd76 torchtitan/tools/utils.py"
local S10 = "GTC24 S62129, slide in ml-engineering network/benchmarks/images/all-reduce-multi-node-bandwidth.png"
local S13 = "Azure/AI-benchmarking-guide@8fd0c6e Azure_Results/ND_H100_v5_results.md"
local S14 = "astra-sim/astra-sim@518bd51 HGX-H100-validated.yml"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "h100-sxm-96g", vendor = "nvidia",
  { "peak.f32", "67T", source = S9 },
  { "peak.tf32", "494.5T", source = S9 },
  { "peak.bf16", "989T", source = S9 },
  { "peak.fp8", "1979T", source = S9 },
  { "gemm.efficiency", "0.7", source = assumed, unverified = true },
  { "hbm.bytes", "94.5GiB", source = memory, unverified = true },
  { "hbm.bandwidth", "2400GB/s", source = memory, unverified = true },
  { "hbm.efficiency", "0.89", source = assumed, unverified = true },
  { "launch", "1.5us", source = assumed, unverified = true },
  { "host.bandwidth", "52GB/s", source = S13 },
  { "host.bytes", "250GiB", source = memory, unverified = true },
  level "node" { size = 8, topology = "switch", bandwidth = "450GB/s", source = S3 },
  { "level.node.latency", "1.87us", source = S14 },
  { "level.node.efficiency", "0.82", source = S3 },
  { "level.node.reduce_gain", "1.3", source = S3 },
  { "level.node.busbw",
    "1024:0.07GB/s 32768:1.71GB/s 262144:10.86GB/s 1048576:43.7GB/s 4194304:128.73GB/s 16777216:234.45GB/s " ..
    "67108864:361.78GB/s 268435456:423.38GB/s 1073741824:466.35GB/s 4294967296:475.54GB/s 8589934592:478.87GB/s",
    source = S13 },
  level "fabric" { size = "all", topology = "switch", bandwidth = "400Gb/s", source = S3 },
  { "level.fabric.latency", "14us", source = S4 },
  { "level.fabric.efficiency", "0.95", source = S10 },
}
