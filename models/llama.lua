-- llama.lua: decoders with rotary attention and a gated mlp: Llama, Mistral, Qwen, Gemma, Phi-3 and kin. It knows sizes and no device.
local blocks = require "blocks"

local cfg = override(blocks.settings {
  name = "llama", embed = 4096, ffn = 14336, layers = 32, vocab = 128256,
  heads = 32, kv_heads = 8, head = 128, seq = 8192, rope_theta = 5e5,
})
dims(cfg, "embed ffn vocab heads kv_heads head seq", { batch = free })

return blocks.decoder(cfg, blocks.attention, blocks.mlp)
