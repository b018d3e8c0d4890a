-- mi250x.lua: AMD MI250X: a package of two dies, each a device; -c counts packages.

local S3 = "stas00/ml-engineering@744d01e network/README.md"
local S5 = "stas00/ml-engineering@744d01e compute/accelerator/README.md"
local S26 = "docs.olcf.ornl.gov Frontier user guide; ROCm gpu-arch mi250"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "mi250x", vendor = "amd",
  { "dies", "2", source = S26 },
  { "peak.f32", "23.95T", source = S5 },
  { "peak.bf16", "191.5T", source = S5 },
  { "gemm.efficiency", "0.7", source = assumed, unverified = true },
  { "hbm.bytes", "63.98GiB", source = memory, unverified = true },
  { "hbm.bandwidth", "1638GB/s", source = S5 },
  { "hbm.efficiency", "0.8", source = assumed, unverified = true },
  { "launch", "1.5us", source = assumed, unverified = true },
  { "host.bandwidth", "36GB/s", source = S26 },
  { "host.bytes", "64GiB", source = S26 },
  level "package" { size = 2, topology = "switch", bandwidth = "200GB/s", source = S26 },
  { "level.package.latency", "2us", source = assumed, unverified = true },
  level "node" { size = 8, topology = "mesh", bandwidth = "350GB/s", source = S3 },
  { "level.node.latency", "3.4us", source = assumed, unverified = true },
  { "level.node.efficiency", "0.7", source = assumed, unverified = true },
  level "fabric" { size = "all", topology = "switch", bandwidth = "100Gb/s", source = S26 },
  { "level.fabric.latency", "14us", source = assumed, unverified = true },
  { "level.fabric.efficiency", "0.9", source = assumed, unverified = true },
}
