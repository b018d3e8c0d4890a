-- mixtral.lua: the attention of llama.lua and a mixture of experts: Mixtral, Qwen3-MoE, GLM-4.5, MiniMax, gpt-oss and kin.
local blocks = require "blocks"

local own = {
  name = "mixtral", embed = 4096, ffn = 14336, layers = 32, vocab = 32000,
  heads = 32, kv_heads = 8, head = 128, seq = 32768, rope_theta = 1e6, aux = 0.02,
}
for key, value in pairs(blocks.moe_settings) do
  if own[key] == nil then own[key] = value end
end
local cfg = override(blocks.settings(own))
dims(cfg, "embed vocab heads kv_heads head seq expert_ffn", { batch = free })
if cfg.dense_layers > 0 then dim("ffn", cfg.ffn) end
if cfg.shared_ffn > 0 then dim("shared_ffn", cfg.shared_ffn) end

return blocks.decoder(cfg, blocks.attention, blocks.moe)
