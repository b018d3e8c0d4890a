-- mi300x.lua: AMD MI300X 192 GB, nodes of 8 in a full mesh.

local S3 = "stas00/ml-engineering@744d01e network/README.md"
local S5 = "stas00/ml-engineering@744d01e compute/accelerator/README.md"
local S28 = "mlcommons inference_results_v4.1 AMD 8xMI300X"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "mi300x", vendor = "amd",
  { "peak.f32", "163.4T", source = S5 },
  { "peak.tf32", "653.7T", source = S5 },
  { "peak.bf16", "1307T", source = S5 },
  { "peak.fp8", "2610T", source = S5 },
  { "gemm.efficiency", "0.514", source = S5 },
  { "hbm.bytes", "191.98GiB", source = memory, unverified = true },
  { "hbm.bandwidth", "5300GB/s", source = S5 },
  { "hbm.efficiency", "0.8", source = assumed, unverified = true },
  { "launch", "1.5us", source = assumed, unverified = true },
  { "host.bandwidth", "55GB/s", source = memory, unverified = true },
  { "host.bytes", "192GiB", source = S28 },
  level "node" { size = 8, topology = "mesh", bandwidth = "448GB/s", source = S3 },
  { "level.node.latency", "3.4us", source = assumed, unverified = true },
  { "level.node.efficiency", "0.7", source = S3 },
  level "fabric" { size = "all", topology = "switch", bandwidth = "400Gb/s", source = memory, unverified = true },
  { "level.fabric.latency", "14us", source = assumed, unverified = true },
  { "level.fabric.efficiency", "0.9", source = assumed, unverified = true },
}
