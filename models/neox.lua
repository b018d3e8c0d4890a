-- neox.lua: decoders whose attention and mlp stand side by side: GPT-NeoX and Pythia, Phi, Command R.
local blocks = require "blocks"

local cfg = override(blocks.settings {
  name = "neox", embed = 2048, ffn = 8192, layers = 16, vocab = 50304, heads = 8, kv_heads = 8, head = 256, seq = 2048,
  norm = "layernorm", act = "gelu", rotary = 0.25, parallel = "two norms",
  qkv_bias = true, o_bias = true, mlp_bias = true,
})
dims(cfg, "embed ffn vocab heads kv_heads head seq", { batch = free })

return blocks.decoder(cfg, blocks.attention, blocks.mlp)
