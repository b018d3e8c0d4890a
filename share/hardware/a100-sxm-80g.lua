-- a100-sxm-80g.lua: NVIDIA A100-SXM4 80 GB, nodes of 8 behind NVSwitch.

local S1 = "cli99/llm-analysis@d841e40 llm_analysis/gpu_configs"
local S3 = "stas00/ml-engineering@744d01e network/README.md"
local S4 = "NVIDIA/nccl@5067397 (2.30.7) src/graph/tuning.cc, topo.h"
local S5 = "stas00/ml-engineering@744d01e compute/accelerator/README.md"
local S9 = "pytorch/torchtitan@b5bcd76 torchtitan/tools/utils.py"
local S10 = "GTC24 S62129, slide in ml-engineering network/benchmarks/images/all-reduce-multi-node-bandwidth.png"
local S12 = "Azure/AI-benchmarking-guide@8fd0c6e Azure_Results/ND_A100_v4_results.md"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "a100-sxm-80g", vendor = "nvidia",
  { "peak.f32", "19.5T", source = S9 },
  { "peak.tf32", "156T", source = S9 },
  { "peak.bf16", "312T", source = S9 },
  { "gemm.efficiency", "0.82", source = S5 },
  { "gemm.curve.bf16", "1024:119.4T 2048:221.8T 4096:228T 8192:253.7T 16384:256.5T", source = S12 },
  { "hbm.bytes", "79.2GiB", source = memory, unverified = true },
  { "hbm.bandwidth", "2039GB/s", source = S1 },
  { "hbm.efficiency", "0.82", source = S12 },
  { "launch", "1.5us", source = assumed, unverified = true },
  { "host.bandwidth", "26.3GB/s", source = S12 },
  { "host.bytes", "256GiB", source = memory, unverified = true },
  level "node" { size = 8, topology = "switch", bandwidth = "300GB/s", source = S3 },
  { "level.node.latency", "3.4us", source = S4 },
  { "level.node.efficiency", "0.78", source = S3 },
  { "level.node.busbw",
    "1024:0.04GB/s 32768:1.37GB/s 262144:10.11GB/s 1048576:36.22GB/s 4194304:71.43GB/s 16777216:109.22GB/s " ..
    "67108864:166.63GB/s 268435456:213.87GB/s 1073741824:228.1GB/s 4294967296:230.48GB/s 8589934592:231.58GB/s",
    source = S12 },
  level "fabric" { size = "all", topology = "switch", bandwidth = "200Gb/s", source = S3 },
  { "level.fabric.latency", "14us", source = S4 },
  { "level.fabric.efficiency", "0.96", source = S10 },
}
