-- 910c-die.lua: Huawei Ascend 910C in CloudMatrix384, counted by dies: 768 a supernode.

local S42 = "Ascend/msmodeling@84fec85 tensor_cast/device.py and design notes"
local S45 = "vllm-ascend#1127, #19; sglang#29838 (60.97 / 61.27 GiB)"
local S46 = "arXiv 2506.12708, by reading notes"
local S46_S48 = "arXiv 2506.12708, by reading notes; emergentmind.com CloudMatrix topic"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "910c-die", vendor = "huawei",
  { "peak.f32", "99.5T", source = S42 },
  { "peak.bf16", "353.9T", source = S42 },
  { "gemm.efficiency", "0.7", source = S42, unverified = true },
  { "hbm.bytes", "61.27GiB", source = S45 },
  { "hbm.bandwidth", "1600GB/s", source = S42 },
  { "hbm.efficiency", "0.6", source = S42, unverified = true },
  { "launch", "2us", source = assumed, unverified = true },
  { "host.bandwidth", "40GB/s", source = S46 },
  { "host.bytes", "128GiB", source = assumed, unverified = true },
  { "pool.bytes", "128GiB", source = assumed, unverified = true },
  { "pool.bandwidth", "40GB/s", source = S46, unverified = true },
  level "package" { size = 2, topology = "switch", bandwidth = "224GB/s", source = S42 },
  { "level.package.latency", "0.2us", source = S42 },
  { "level.package.efficiency", "0.7", source = S42, unverified = true },
  level "node" { size = 16, topology = "part", source = S46 },
  level "supernode" { size = 768, topology = "switch", bandwidth = "196GB/s", source = S46_S48 },
  { "level.supernode.latency", "1.5us", source = S42, unverified = true },
  { "level.supernode.efficiency", "0.7", source = S42, unverified = true },
  level "fabric" { size = "all", topology = "switch", bandwidth = "200Gb/s", source = S42 },
  { "level.fabric.latency", "5.5us", source = S42 },
  { "level.fabric.efficiency", "0.7", source = S42, unverified = true },
}
