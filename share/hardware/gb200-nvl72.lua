-- gb200-nvl72.lua: NVIDIA GB200 NVL72: 72 GPUs in one NVLink domain, trays of 4.

local S3 = "stas00/ml-engineering@744d01e network/README.md"
local S4 = "NVIDIA/nccl@5067397 (2.30.7) src/graph/tuning.cc, topo.h"
local S5 = "stas00/ml-engineering@744d01e compute/accelerator/README.md"
local S9 = "pytorch/torchtitan@b5bcd76 torchtitan/tools/utils.py"
local S14 = "astra-sim/astra-sim@518bd51 HGX-H100-validated.yml"
local S23 = "coreweave/nccl-tests#43 (72 GPUs, all-reduce)"
local S24 = "NVIDIA/nccl#1801 (GB200, IB)"
local S25 = "NVIDIA/nvbandwidth#23 (GH200 C2C); 189471MiB reports"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "gb200-nvl72", vendor = "nvidia",
  { "peak.f32", "80T", source = S9 },
  { "peak.tf32", "1250T", source = S9 },
  { "peak.bf16", "2500T", source = S9 },
  { "peak.fp8", "5000T", source = S9 },
  { "peak.fp4", "10000T", source = memory, unverified = true },
  { "gemm.efficiency", "0.729", source = S5 },
  { "hbm.bytes", "185.03GiB", source = S25 },
  { "hbm.bandwidth", "8000GB/s", source = S5 },
  { "hbm.efficiency", "0.85", source = assumed, unverified = true },
  { "launch", "1.5us", source = assumed, unverified = true },
  { "host.bandwidth", "225GB/s", source = S25 },
  { "host.bytes", "240GiB", source = memory, unverified = true },
  level "tray" { size = 4, topology = "part", source = S3 },
  level "node" { size = 72, topology = "switch", bandwidth = "900GB/s", source = S3 },
  { "level.node.latency", "1.87us", source = S14, unverified = true },
  { "level.node.efficiency", "0.76", source = assumed, unverified = true },
  { "level.node.reduce_gain", "1.24", source = S23 },
  { "level.node.busbw",
    "536870912:586.06GB/s 1073741824:681.17GB/s 2147483648:757.78GB/s 4294967296:839.16GB/s 8589934592:834.57GB/s",
    source = S23 },
  level "fabric" { size = "all", topology = "switch", bandwidth = "400Gb/s", source = S24 },
  { "level.fabric.latency", "14us", source = S4 },
  { "level.fabric.efficiency", "0.95", source = assumed, unverified = true },
}
