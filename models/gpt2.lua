-- gpt2.lua: GPT-2 (Radford et al., 2019): learned positions, biases, LayerNorm, tied head; 124,439,808 parameters as set here.
local blocks = require "blocks"

local cfg = override(blocks.settings {
  name = "gpt2", embed = 768, ffn = 3072, layers = 12, vocab = 50257, heads = 12, head = 64, seq = 1024,
  positions = 1024,      -- rows of the table of positions
  tied = true, norm = "layernorm", act = "gelu", rotary = 0,
  qkv_bias = true, o_bias = true, mlp_bias = true,
})
cfg.kv_heads = cfg.heads
if cfg.seq > cfg.positions then
  error(("seq = %d is longer than the table of %d positions"):format(cfg.seq, cfg.positions))
end
dims(cfg, "embed ffn vocab heads head seq positions", { batch = free })

return blocks.decoder(cfg, blocks.attention, blocks.mlp)
