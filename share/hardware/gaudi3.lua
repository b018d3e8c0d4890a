-- gaudi3.lua: Intel Gaudi 3, nodes of 8 in a full mesh of 3 x 200 GbE a pair.

local S3 = "stas00/ml-engineering@744d01e network/README.md"
local S5 = "stas00/ml-engineering@744d01e compute/accelerator/README.md"
local S51 = "docs.habana.ai Network_Configuration"
local S52 = "Intel Hot Chips Gaudi3 deck"
local S53 = "docs.habana.ai Collectives_Performance"
local memory = "from memory"
local assumed = "assumed: no measurement at hand"

return cluster {
  name = "gaudi3", vendor = "intel",
  { "peak.f32", "229T", source = S52 },
  { "peak.tf32", "459T", source = S52 },
  { "peak.bf16", "1677T", source = S5 },
  { "peak.fp8", "1677T", source = S5 },
  { "gemm.efficiency", "0.741", source = S5 },
  { "hbm.bytes", "126GiB", source = memory, unverified = true },
  { "hbm.bandwidth", "3700GB/s", source = S5 },
  { "hbm.efficiency", "0.8", source = assumed, unverified = true },
  { "launch", "2us", source = assumed, unverified = true },
  { "host.bandwidth", "63GB/s", source = S3, unverified = true },
  { "host.bytes", "128GiB", source = assumed, unverified = true },
  level "node" { size = 8, topology = "mesh", bandwidth = "525GB/s", source = S51 },
  { "level.node.latency", "3us", source = assumed, unverified = true },
  { "level.node.efficiency", "0.98", source = S53 },
  level "fabric" { size = "all", topology = "switch", bandwidth = "600Gb/s", source = S51 },
  { "level.fabric.latency", "10us", source = assumed, unverified = true },
  { "level.fabric.efficiency", "0.9", source = assumed, unverified = true },
}
