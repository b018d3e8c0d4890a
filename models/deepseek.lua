-- deepseek.lua: multi-head latent attention and a mixture of experts behind a few dense layers: DeepSeek-V2, V3, Kimi K2.
local blocks = require "blocks"

local own = {
  name = "deepseek", embed = 7168, ffn = 18432, layers = 61, vocab = 129280, heads = 128, seq = 4096, rope_theta = 1e4, eps = 1e-6,
  q_rank = 1536, kv_rank = 512, nope = 128, rope = 64, v_head = 128, -- q_rank 0: queries come straight from the input
  experts = 256, top = 8, expert_ffn = 2048, shared_ffn = 2048, dense_layers = 3,
  score = "sigmoid", router_bias = true, route_scale = 2.5, groups = 8, top_groups = 4,
}
for key, value in pairs(blocks.moe_settings) do
  if own[key] == nil then own[key] = value end
end
local cfg = override(blocks.settings(own))
cfg.kv_heads, cfg.qk = cfg.heads, cfg.nope + cfg.rope
dims(cfg, "embed ffn vocab heads seq kv_rank nope rope qk v_head expert_ffn", { batch = free })
if cfg.q_rank > 0 then dim("q_rank", cfg.q_rank) end
if cfg.shared_ffn > 0 then dim("shared_ffn", cfg.shared_ffn) end

return blocks.decoder(cfg, blocks.mla, blocks.moe)
