-- 910b-280t.lua: Huawei Ascend 910B (Atlas 800 A2), nodes of 8 in a full HCCS mesh; 16-bit peak is bf16.

local S42 = "Ascend/msmodeling@84fec85 tensor_cast/device.py and design notes"
local S44 = "meemx.com hccl contest log (56 GB/s a link, full mesh)"
local S45 = "vllm-ascend#1127, #19; sglang#29838 (60.97 / 61.27 GiB)"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "910b-280t", vendor = "huawei",
  { "peak.f32", "75T", source = S42 },
  { "peak.bf16", "245.8T", source = S42 },
  { "gemm.efficiency", "0.7", source = S42, unverified = true },
  { "hbm.bytes", "60.97GiB", source = S45 },
  { "hbm.bandwidth", "1600GB/s", source = S42 },
  { "hbm.efficiency", "0.6", source = S42, unverified = true },
  { "launch", "2us", source = assumed, unverified = true },
  { "host.bandwidth", "64GB/s", source = S42, unverified = true },
  { "host.bytes", "128GiB", source = assumed, unverified = true },
  level "node" { size = 8, topology = "mesh", bandwidth = "196GB/s", source = S44 },
  { "level.node.latency", "0.5us", source = S42, unverified = true },
  { "level.node.efficiency", "0.7", source = S42, unverified = true },
  level "fabric" { size = "all", topology = "switch", bandwidth = "200Gb/s", source = S42 },
  { "level.fabric.latency", "1.5us", source = S42 },
  { "level.fabric.efficiency", "0.7", source = S42, unverified = true },
}
