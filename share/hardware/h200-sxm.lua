-- h200-sxm.lua: NVIDIA H200-SXM 141 GB, nodes of 8 behind NVSwitch that can reduce (NVLS).

local S3 = "stas00/ml-engineering@744d01e network/README.md"
local S4 = "NVIDIA/nccl@5067397 (2.30.7) src/graph/tuning.cc, topo.h"
local S5 = "stas00/ml-engineering@744d01e compute/accelerator/README.md"
local S9 = "pytorch/torchtitan@b5bcd76 torchtitan/tools/utils.py"
local S14 = "astra-sim/astra-sim@518bd51 HGX-H100-validated.yml"
local S15 = "mlcommons inference_results v3.1 Dell XE9680_H100, v4.1 NVIDIA H200-SXM-141GBx8"
local S16 = "Azure/AI-benchmarking-guide@8fd0c6e Azure_Results/ND_H200_v5_results.md"
local S17 = "nvidia-smi reports of others: 143771MiB"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "h200-sxm", vendor = "nvidia",
  { "peak.f32", "67T", source = S9 },
  { "peak.tf32", "494.5T", source = S9 },
  { "peak.bf16", "989T", source = S9 },
  { "peak.fp8", "1979T", source = S9 },
  { "gemm.efficiency", "0.8", source = S5 },
  { "gemm.curve.fp8", "1024:290.8T 2048:1013.4T 4096:1249.1T 8192:1300.6T 16384:1366.3T 32768:1349.5T", source = S16 },
  { "hbm.bytes", "140.4GiB", source = S17 },
  { "hbm.bandwidth", "4800GB/s", source = S5 },
  { "hbm.efficiency", "0.85", source = S16 },
  { "launch", "1.5us", source = assumed, unverified = true },
  { "host.bandwidth", "55GB/s", source = S16 },
  { "host.bytes", "250GiB", source = S15 },
  level "node" { size = 8, topology = "switch", bandwidth = "450GB/s", source = S3 },
  { "level.node.latency", "1.87us", source = S14 },
  { "level.node.efficiency", "0.82", source = S3 },
  { "level.node.reduce_gain", "1.31", source = S3 },
  { "level.node.busbw",
    "1024:0.06GB/s 32768:1.84GB/s 262144:14.75GB/s 1048576:52.96GB/s 4194304:138.44GB/s 16777216:240.41GB/s " ..
    "67108864:368.11GB/s 268435456:432.24GB/s 1073741824:467.58GB/s 4294967296:477.41GB/s 8589934592:479.98GB/s",
    source = S16 },
  level "fabric" { size = "all", topology = "switch", bandwidth = "400Gb/s", source = S3 },
  { "level.fabric.latency", "14us", source = S4 },
  { "level.fabric.efficiency", "0.91", source = S3 },
}
