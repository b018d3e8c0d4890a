-- blocks.lua: the parts that decoder families share. A family requires it and hands in its settings `cfg`.

local w = require "model".words
local linear, rmsnorm, layernorm, scope = w.linear, w.rmsnorm, w.layernorm, w.scope

local B = {}

-- What every decoder family can be told, with the usual values.
local common = {
  tied = false,          -- the head uses the embedding's table
  norm = "rmsnorm",      -- or "layernorm", "layernorm without bias"
  eps = 1e-5,
  act = "swiglu",        -- or "geglu" (both gated), "gelu", "silu"
  rope_theta = 1e4, rotary = 1, -- the part of a head that turns
  qk_norm = "none",      -- or "head" (each head by itself), "full" (all heads of a token together)
  qkv_bias = false, o_bias = false, mlp_bias = false, head_bias = false,
  post_norm = false,     -- norms behind attention and mlp too (Gemma 2)
  parallel = false,      -- attention and mlp side by side, "one norm" or "two norms" (GPT-NeoX)
  embed_scale = false,   -- embeddings times sqrt(embed) (Gemma)
  packed = false,        -- documents are packed: attention stays within one
  dropout = 0,           -- of embeddings and of what attention and mlp add to the residual stream
  std = 0.02, optimizer = "adamw", lr = 1e-3, decay = 0.1, warmup = 0, clip = 1,
}

-- settings { embed = ... }: the common settings with a family's own.
function B.settings(own)
  local t = {}
  for k, v in pairs(common) do t[k] = v end
  for k, v in pairs(own) do t[k] = v end
  return t
end

-- Scaled initialisation of what writes into the residual stream (Radford et al., GPT-2: 1/sqrt(2 layers)).
local function out_std(cfg) return cfg.std / math.sqrt(2 * cfg.layers) end

function B.norm(name, x, cfg)
  if cfg.norm == "rmsnorm" then return rmsnorm(name, x, cfg.eps) end
  return layernorm(name, x, cfg.eps, { bias = cfg.norm == "layernorm" })
end

-- The norm of queries and keys (Dehghani et al., arXiv 2302.05442).
local function norm_heads(name, x, cfg, heads)
  if cfg.qk_norm == "head" then return rmsnorm(name, x, cfg.eps) end
  if cfg.qk_norm == "none" then return x end
  local width = w.dim(name .. "_width", cfg[heads] * cfg.head)
  local flat = rmsnorm(name, w.reshape(x, "batch seq " .. width), cfg.eps)
  return w.reshape(flat, "batch seq " .. heads .. " head")
end

local function turn(x, cfg)
  local turned = math.tointeger(cfg.head * cfg.rotary // 1)
  if cfg.rotary == 0 then return x end
  if turned == cfg.head then return w.rope(x, cfg.rope_theta) end
  return w.rope(x, cfg.rope_theta, { first = w.dim("turned", turned), rest = w.dim("still", cfg.head - turned) })
end

-- Attention with grouped key and value heads (Ainslie et al., arXiv 2305.13245).
function B.attention(x, cfg)
  local q = linear("q", x, "embed -> heads head", { bias = cfg.qkv_bias })
  local k = linear("k", x, "embed -> kv_heads head", { bias = cfg.qkv_bias })
  local v = linear("v", x, "embed -> kv_heads head", { bias = cfg.qkv_bias })
  q, k = norm_heads("q_norm", q, cfg, "heads"), norm_heads("k_norm", k, cfg, "kv_heads")
  local o = w.attend("core", turn(q, cfg), turn(k, cfg), v, { causal = true, group = "heads / kv_heads" })
  return linear("o", o, "heads head -> embed", { bias = cfg.o_bias, std = out_std(cfg) })
end

-- Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): queries, keys and values come up from narrow latents; `rope` more
-- elements of a head carry the position, one key for all heads.
function B.mla(x, cfg)
  local from, q = "q_rank", x
  if cfg.q_rank > 0 then
    q = rmsnorm("q_norm", linear("q_down", x, "embed -> q_rank"), cfg.eps)
  else
    from = "embed"
  end
  local latent = rmsnorm("kv_norm", linear("kv_down", x, "embed -> kv_rank"), cfg.eps)
  local k_rope = linear("k_rope", x, "embed -> rope")
  local whole_q, whole_k, v = scope("up", function() -- all that attention reads comes from the latents: what recomputing `up` makes anew
    local q_nope, q_rope = linear("q_nope", q, from .. " -> heads nope"), linear("q_rope", q, from .. " -> heads rope")
    local k_nope, values = linear("k", latent, "kv_rank -> kv_heads nope"), linear("v", latent, "kv_rank -> kv_heads v_head")
    return w.concat("whole_q", { q_nope, w.rope(q_rope, cfg.rope_theta) }, "qk"),
      w.concat("whole_k", { k_nope, w.rope(k_rope, cfg.rope_theta) }, "qk"), values
  end)
  local o = w.attend("core", whole_q, whole_k, v, { causal = true })
  return linear("o", o, "heads v_head -> embed", { std = out_std(cfg) })
end

local gated = { swiglu = true, geglu = true }

local function act(cfg, name, gate, up)
  if cfg.act == "swiglu" then return w.swiglu(name, gate, up) end
  if cfg.act == "geglu" then return w.gelu(gate) * up end
  local f = ({ gelu = w.gelu, silu = w.silu })[cfg.act]
  if not f then fail("act = '" .. tostring(cfg.act) .. "' is none of swiglu, geglu, gelu, silu") end
  return f(up)
end

-- The feed-forward part over a dimension `ffn` (another name for experts' own widths).
function B.mlp(x, cfg, ffn)
  ffn = ffn or "ffn"
  local gate = gated[cfg.act] and linear("gate", x, "embed -> " .. ffn, { bias = cfg.mlp_bias })
  local up = linear("up", x, "embed -> " .. ffn, { bias = cfg.mlp_bias })
  return linear("down", act(cfg, "act", gate, up), ffn .. " -> embed", { bias = cfg.mlp_bias, std = out_std(cfg) })
end

-- Settings of a mixture of experts (Shazeer et al., arXiv 1701.06538), as a family adds them to its own.
B.moe_settings = {
  experts = 8, top = 2, expert_ffn = 14336,
  shared_ffn = 0,        -- width of the expert that every token goes to, 0 = none
  dense_layers = 0,      -- the first layers have a plain mlp of width ffn
  score = "softmax",     -- or "sigmoid"
  normalise = true, route_scale = 1,
  router_bias = false,   -- a bias on the choice alone, without gradient (DeepSeek-V3, arXiv 2408.15664)
  router_linear_bias = false,
  groups = 0, top_groups = 0, -- choices come from the best groups of experts alone
  capacity = 0,          -- at most this many times the balanced load an expert; 0 = dropless
  aux = 0,               -- coefficient of the balance loss
}

function B.moe(x, cfg)
  local some = function(v) return v ~= 0 and v or nil end
  local route = w.router("router", x, { experts = cfg.experts, top = cfg.top, score = cfg.score, normalise = cfg.normalise,
    bias = cfg.router_bias, linear_bias = cfg.router_linear_bias, scale = cfg.route_scale, groups = some(cfg.groups),
    top_groups = some(cfg.top_groups), capacity = some(cfg.capacity), aux = cfg.aux })
  local xe = w.dispatch("dispatch", x, route)
  local gate = w.grouped("experts.gate", xe, route, "embed -> expert_ffn")
  local up = w.grouped("experts.up", xe, route, "embed -> expert_ffn")
  local hidden = act(cfg, "experts.act", gate, up)
  w.name("act", hidden)
  local ye = w.grouped("experts.down", hidden, route, "expert_ffn -> embed", { std = out_std(cfg) })
  local y = w.combine("combine", ye, route)
  return cfg.shared_ffn > 0 and y + scope("shared", B.mlp, x, cfg, "shared_ffn") or y
end

-- One layer. Its sums and what is added to them answer to layers.*.resid, its norms to layers.*.norm*, and its parts are attn (or mla) and mlp (or moe).
function B.layer(cfg, mixer, feed)
  local norm = B.norm
  local function after(name, x) return w.dropout(cfg.post_norm and norm(name, x, cfg) or x, cfg.dropout) end
  return function(x, i)
    local mixer_name, feed_name = mixer == B.mla and "mla" or "attn", "mlp"
    local feed_fn = feed
    if feed == B.moe then
      feed_name, feed_fn = "moe", B.moe
      if i < cfg.dense_layers then feed_name, feed_fn = "mlp", B.mlp end
    end
    local n1 = norm("norm1", x, cfg)
    local mixed = after("norm1_post", scope(mixer_name, mixer, n1, cfg))
    if cfg.parallel then
      local fed = w.dropout(scope(feed_name, feed_fn, cfg.parallel == "two norms" and norm("norm2", x, cfg) or n1, cfg), cfg.dropout)
      local y = x + (mixed + fed) -- in this order one reduction serves both where they are partial
      w.name("resid", mixed, fed, y)
      return y
    end
    local a = x + mixed
    local fed = after("norm2_post", scope(feed_name, feed_fn, norm("norm2", a, cfg), cfg))
    local y = a + fed
    w.name("resid", mixed, a, fed, y)
    return y
  end
end

-- A whole decoder of such layers.
function B.decoder(cfg, mixer, feed)
  w.train { optimizer = cfg.optimizer, lr = cfg.lr, decay = cfg.decay, warmup = cfg.warmup, clip = cfg.clip }
  return w.model(cfg.name, function(tokens, targets, positions)
    local x = w.embedding("embed", tokens, "vocab -> embed")
    if cfg.positions then x = x + w.embedding("pos_embed", positions, "positions -> embed") end
    if cfg.embed_scale then x = x * math.sqrt(cfg.embed) end
    x = w.dropout(x, cfg.dropout)
    if cfg.positions or cfg.embed_scale or cfg.dropout > 0 then w.name("embed.out", x) end
    x = w.repeated("layers", cfg.layers, B.layer(cfg, mixer, feed), x)
    local logits = linear("head", B.norm("norm", x, cfg), "embed -> vocab", { tied = cfg.tied and "embed", bias = cfg.head_bias })
    return w.cross_entropy("loss", logits, targets, { ignore = -100, over = "vocab" })
  end, { packed = cfg.packed })
end

return B
