-- gaudi2.lua: Intel Gaudi 2, nodes of 8 in a full mesh of 3 x 100 GbE a pair.

local S3 = "stas00/ml-engineering@744d01e network/README.md"
local S5 = "stas00/ml-engineering@744d01e compute/accelerator/README.md"
local S51 = "docs.habana.ai Network_Configuration"
local S53 = "docs.habana.ai Collectives_Performance"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "gaudi2", vendor = "intel",
  { "peak.bf16", "432T", source = S5 },
  { "peak.fp8", "865T", source = S5 },
  { "gemm.efficiency", "0.969", source = S5 },
  { "hbm.bytes", "94GiB", source = memory, unverified = true },
  { "hbm.bandwidth", "2460GB/s", source = S5 },
  { "hbm.efficiency", "0.8", source = assumed, unverified = true },
  { "launch", "2us", source = assumed, unverified = true },
  { "host.bandwidth", "31GB/s", source = S3, unverified = true },
  { "host.bytes", "128GiB", source = assumed, unverified = true },
  level "node" { size = 8, topology = "mesh", bandwidth = "262.5GB/s", source = S51 },
  { "level.node.latency", "3us", source = assumed, unverified = true },
  { "level.node.efficiency", "0.95", source = S53 },
  level "fabric" { size = "all", topology = "switch", bandwidth = "300Gb/s", source = S51 },
  { "level.fabric.latency", "10us", source = assumed, unverified = true },
  { "level.fabric.efficiency", "0.9", source = assumed, unverified = true },
}
