-- model.lua: the words of model scripts. A tensor is a table { id, name } whose metatable knows + and *; every operation becomes one
-- node through the graph_* functions of C, which check shapes and name the script's line.

local common = require "common"
local check_keys, words_of = common.check_keys, common.words_of

local M = {}
local config_texts, override_texts = {}, {} -- what a config.json and `-o model.KEY=` say
local family_config = nil                   -- what a named model says to its family
local state = { scope = {}, layers = 0, made = {}, aux = {}, dim = {}, size = {}, composite = {} }
local inputs = {}                           -- tokens, targets, positions, documents
local init_std = 0.02

-- --- names ---------------------------------------------------------------------------------------------------

local function full(name)
  if type(name) ~= "string" or not name:match("^[%w_.]+$") then
    fail("a name is made of letters, digits, _ and dots, not " .. tostring(name))
  end
  local n = #state.scope
  return n == 0 and name or state.scope[n] .. "." .. name
end

-- A name that was not asked for: "x.silu", then "x.silu2".
local function fresh(name)
  local n = (state.made[name] or 0) + 1
  state.made[name] = n
  return n == 1 and name or name .. n
end

-- --- tensors -------------------------------------------------------------------------------------------------

local Tensor = { __metatable = "tensor", __name = "tensor" }

local function wrap(id, name)
  return setmetatable({ id = id, name = name }, Tensor)
end

local function tensor(x, where)
  if type(x) ~= "table" or getmetatable(x) ~= "tensor" then
    fail(where .. ": expected a tensor, got " .. (type(x) == "table" and "a table" or tostring(x)))
  end
  return x
end

-- node(op, full name, {tensors; false where one is absent}, {{key, number}...}): the node's outputs as tensors.
local function node(op, name, ins, attrs)
  local ids = {}
  for i = 1, #ins do ids[i] = ins[i] and tensor(ins[i], name).id or false end
  local out = table.pack(graph_node(op, name, ids, attrs or {}))
  for i = 1, out.n do out[i] = wrap(out[i], name) end
  return table.unpack(out, 1, out.n)
end

local function pointwise(op, suffix)
  return function(x, attrs)
    tensor(x, op)
    return node(op, fresh(x.name .. "." .. suffix), { x }, attrs)
  end
end

local function add(a, b)
  return node("add", fresh(full("add")), { tensor(a, "+"), tensor(b, "+") })
end

local function mul(a, b)
  if type(a) == "number" then a, b = b, a end
  if type(b) == "number" then return node("scale", fresh(tensor(a, "*").name .. ".scaled"), { a }, { { "by", b } }) end
  return node("mul", fresh(full("mul")), { tensor(a, "*"), tensor(b, "*") })
end

Tensor.__add, Tensor.__mul = add, mul

-- --- dimensions ----------------------------------------------------------------------------------------------

local free = setmetatable({}, { __metatable = "free" })

-- dim(name, size): one dimension of the model; the same size again is fine.
local function dim(name, size)
  if type(name) ~= "string" or not name:match("^%a[%w_]*$") then fail("dim: " .. tostring(name) .. " is not a name") end
  if size ~= free and (not common.is_whole_number(size) or size < 1) then
    fail(("dimension %s: %s is not a whole number from 1"):format(name, tostring(size)))
  end
  state.dim[name] = graph_dim(name, size == free and 0 or size)
  state.size[name] = size ~= free and size or nil
  return name
end

-- `heads` stands for two dimensions, key/value heads and the query heads of each.
local function dim_heads(cfg)
  if cfg.heads % cfg.kv_heads ~= 0 then
    fail(("heads = %s is not a multiple of kv_heads = %s"):format(cfg.heads, cfg.kv_heads))
  end
  dim("kv_heads", cfg.kv_heads)
  dim("group", cfg.heads // cfg.kv_heads)
  state.composite.heads = { "kv_heads", "group" }
end

local function padded(cfg, name)
  local unit = name == "vocab" and cfg.vocab_pad or 1
  if not common.is_whole_number(unit) or unit < 1 then fail("vocab_pad = " .. tostring(unit) .. " is not a whole number from 1") end
  state.valid = name == "vocab" and cfg.vocab or state.valid
  return (cfg[name] + unit - 1) // unit * unit
end

-- dims(cfg, "embed ffn ...", { batch = free }): dimensions whose sizes stand in cfg under their names, and others.
local function dims(cfg, names, more)
  for _, name in ipairs(words_of(names)) do
    local size = cfg[name]
    if not common.is_whole_number(size) or size < 1 then
      fail(("dims: %s = %s is not a whole number from 1"):format(name, tostring(size)))
    end
    if name == "heads" then
      if not cfg.kv_heads then fail("dims: heads needs kv_heads beside it") end
      dim_heads(cfg)
    elseif name ~= "kv_heads" then
      dim(name, padded(cfg, name))
    end
  end
  for _, name in ipairs(common.keys_of(more or {})) do dim(name, more[name]) end
end

-- "kv_heads head" as a list of dimension names, with `heads` taken apart.
local function dim_list(text, where)
  local list = {}
  for _, name in ipairs(words_of(text)) do
    if state.composite[name] then
      for _, part in ipairs(state.composite[name]) do list[#list + 1] = part end
    elseif state.dim[name] then
      list[#list + 1] = name
    else
      local known = common.keys_of(state.dim)
      fail(("%s: unknown dimension '%s'; the nearest is '%s'"):format(where, name, near(name, known) or "none"))
    end
  end
  return list
end

-- "embed -> heads head": what is contracted, and what comes instead.
local function arrow(text, where)
  local from, to = tostring(text):match("^(.-)%->(.*)$")
  if not from then fail(where .. ": '" .. tostring(text) .. "' is not of the form 'from -> to'") end
  return dim_list(from, where), dim_list(to, where)
end

local function ids_of(names)
  local ids = {}
  for i, name in ipairs(names) do ids[i] = state.dim[name] end
  return ids
end

local function join(a, b)
  local list = table.move(a, 1, #a, 1, {})
  return table.move(b, 1, #b, #list + 1, list)
end

-- --- parameters ----------------------------------------------------------------------------------------------

local function parameter(name, names, how, std, kind)
  local id = graph_tensor(name, kind or "param", "f32", ids_of(names), how, std or 0, how == "normal")
  return wrap(id, name)
end

local function option(opts, where, known)
  opts = opts or {}
  check_keys(where, opts, known)
  return opts
end

-- param(name, "dims", { init = "normal" | "zeros" | "ones", std = }): a parameter of one's own.
local function param(name, text, opts)
  opts = option(opts, name, { "init", "std" })
  return parameter(full(name), dim_list(text, name), opts.init or "normal", opts.std or init_std)
end

-- --- operations with parameters ------------------------------------------------------------------------------

-- The last dimensions of x must be what is contracted.
local function check_tail(name, x, from)
  local have = graph_dims(x.id)
  for i = 1, #from do
    if have[#have - #from + i] ~= from[i] then
      fail(("linear %s: contracts '%s', but its input %s has '%s'"):format(name, table.concat(from, " "), x.name,
        table.concat(have, " ")))
    end
  end
end

local function add_bias(name, x, names)
  return node("bias", name, { x, parameter(name .. ".b", names, "zeros") })
end

-- linear("q", x, "embed -> heads head", { bias = true, tied = "embed", std = }): weight q.w, bias q.b.
local function linear(name, x, text, opts)
  opts = option(opts, "linear " .. tostring(name), { "bias", "tied", "std" })
  local from, to = arrow(text, "linear " .. name)
  local where = full(name)
  check_tail(name, tensor(x, "linear " .. name), from)
  local attrs = { { "contract", #from } }
  local weight
  if opts.tied then
    local id = graph_find(opts.tied .. ".w")
    if not id then fail(("linear %s: there is no weight %s.w to be tied to"):format(name, opts.tied)) end
    weight = wrap(id, opts.tied .. ".w")
    attrs[2] = { "transpose", 1 }
  else
    weight = parameter(where .. ".w", join(from, to), "normal", opts.std or init_std)
  end
  local y = node("linear", opts.bias and where .. ".product" or where, { x, weight }, attrs)
  return opts.bias and add_bias(where, y, to) or y
end

-- embedding("embed", tokens, "vocab -> embed", { std = }): table embed.w.
local function embedding(name, ids, text, opts)
  opts = option(opts, "embedding " .. tostring(name), { "std" })
  local from, to = arrow(text, "embedding " .. name)
  local where = full(name)
  local w = parameter(where .. ".w", join(from, to), "normal", opts.std or init_std)
  return node("embedding", where, { tensor(ids, "embedding " .. name), w })
end

local function last_dim(x)
  local have = graph_dims(x.id)
  return { have[#have] }
end

-- rmsnorm("norm", x, eps): weight norm.w over the last dimension.
local function rmsnorm(name, x, eps)
  local where = full(name)
  local w = parameter(where .. ".w", last_dim(tensor(x, "rmsnorm " .. name)), "ones")
  return (node("rmsnorm", where, { x, w }, { { "eps", eps or 1e-5 } }))
end

-- layernorm("norm", x, eps, { bias = false }): weight norm.w and bias norm.b over the last dimension.
local function layernorm(name, x, eps, opts)
  opts = option(opts, "layernorm " .. tostring(name), { "bias" })
  local where, last = full(name), last_dim(tensor(x, "layernorm " .. name))
  local w = parameter(where .. ".w", last, "ones")
  local b = opts.bias ~= false and parameter(where .. ".b", last, "zeros") or false
  return (node("layernorm", where, { x, w, b }, { { "eps", eps or 1e-5 } }))
end

-- --- operations without --------------------------------------------------------------------------------------

local silu, gelu = pointwise("silu", "silu"), pointwise("gelu", "gelu")

-- swiglu("act", gate, up): silu(gate) * up.
local function swiglu(name, gate, up)
  return node("swiglu", full(name), { gate, up })
end

-- split(x, "a b"): parts along the last dimension; concat(name, {x, y}, "c"): the way back, inputs repeated over dimensions they lack.
local function split(x, text)
  local attrs = {}
  for i, name in ipairs(dim_list(text, "split")) do attrs[i] = { "d" .. i - 1, state.dim[name] } end
  return node("split", fresh(tensor(x, "split").name .. ".split"), { x }, attrs)
end

local function concat(name, list, text)
  return node("concat", full(name), list, { { "d", state.dim[dim_list(text, "concat")[1]] } })
end

-- reshape(x, "batch seq width"): the same numbers under other dimensions.
local function reshape(x, text)
  local attrs = {}
  for i, name in ipairs(dim_list(text, "reshape")) do attrs[i] = { "d" .. i - 1, state.dim[name] } end
  return node("reshape", fresh(tensor(x, "reshape").name .. ".reshape"), { x }, attrs)
end

-- rope(x, theta, { first = "rope" }): rotary positions over the whole last dimension, or over its first part.
local function rope(x, theta, opts)
  opts = option(opts, "rope", { "first", "rest", "positions" })
  tensor(x, "rope")
  local at = opts.positions or inputs.positions
  if not opts.first then return node("rope", fresh(x.name .. ".rope"), { x, at }, { { "theta", theta } }) end
  local a, b = split(x, opts.first .. " " .. opts.rest)
  local turned = node("rope", fresh(x.name .. ".rope"), { a, at }, { { "theta", theta } })
  local last = last_dim(x)
  return node("concat", fresh(x.name .. ".rotated"), { turned, b }, { { "d", state.dim[last[1]] } })
end

-- attend("core", q, k, v, { causal = true, scale = }): attention over all keys of the sequence; `group` is said for the reader.
local function attend(name, q, k, v, opts)
  opts = option(opts, "attend " .. tostring(name), { "causal", "scale", "group" })
  local attrs = { { "causal", opts.causal == false and 0 or 1 } }
  if opts.scale then attrs[2] = { "scale", opts.scale } end
  local at, doc = inputs.positions, inputs.documents or false
  return (node("attention", full(name), { q, k, v, at, at, doc, doc }, attrs))
end

local function dropout(x, p)
  return p and p > 0 and node("dropout", fresh(tensor(x, "dropout").name .. ".dropout"), { x }, { { "p", p } }) or x
end

-- --- mixture of experts --------------------------------------------------------------------------------------

-- router("router", x, { experts =, top =, score =, normalise =, bias =, scale =, groups =, top_groups =, capacity =, aux =, linear_bias = }):
-- which experts each token goes to, and with what weight. Its logits have the dimension `gate`, so that splitting experts does not split them.
local function router(name, x, opts)
  opts = option(opts, "router " .. tostring(name), { "experts", "top", "score", "normalise", "bias", "scale", "groups",
    "top_groups", "capacity", "aux", "linear_bias" })
  if opts.top > opts.experts then fail(("router %s: top %s of %s experts"):format(name, opts.top, opts.experts)) end
  dim("gate", opts.experts)
  dim("experts", opts.experts)
  dim("choice", opts.top)
  local logits = linear(name, x, "embed -> gate", { bias = opts.linear_bias })
  local where = full(name)
  local bias = opts.bias and parameter(where .. ".bias", { "gate" }, "zeros", 0, "buffer") or false
  local attrs = { { "d", state.dim.choice }, { "sigmoid", opts.score == "sigmoid" and 1 or 0 },
    { "normalise", opts.normalise == false and 0 or 1 }, { "scale", opts.scale or 1 } }
  for _, key in ipairs { "groups", "top_groups", "capacity" } do
    if opts[key] then attrs[#attrs + 1] = { key, opts[key] } end
  end
  local idx, weights, f, p = node("router", where .. ".choice", { logits, bias }, attrs)
  if opts.aux and opts.aux > 0 then
    state.aux[#state.aux + 1] = node("aux_loss", where .. ".aux", { f, p, M.share() }, { { "coef", opts.aux } })
  end
  return { idx = idx, weights = weights, name = where }
end

-- dispatch, grouped and combine: tokens to their experts, one matrix an expert, and back.
local function dispatch(name, x, route)
  return node("dispatch", full(name), { x, route.idx }, { { "d", state.dim.experts } })
end

local function grouped(name, xe, route, text, opts)
  opts = option(opts, "grouped " .. tostring(name), { "std" })
  local from, to = arrow(text, "grouped " .. name)
  local where = full(name)
  local w = parameter(where .. ".w", join({ "experts" }, join(from, to)), "normal", opts.std or init_std)
  return node("grouped", where, { xe, w, route.idx })
end

local function combine(name, ye, route)
  return node("combine", full(name), { ye, route.idx, route.weights })
end

-- --- structure -----------------------------------------------------------------------------------------------

-- scope("attn", f, ...): what f makes is called attn.*.
local function scope(name, f, ...)
  state.scope[#state.scope + 1] = full(name)
  local out = table.pack(f(...))
  state.scope[#state.scope] = nil
  return table.unpack(out, 1, out.n)
end

-- repeated("layers", n, block, x, { from = 3 }): block n times over, in scopes layers.3, layers.4, ...; block also gets the number.
local function repeated(name, n, block, x, opts)
  opts = option(opts, "repeated " .. tostring(name), { "from" })
  for i = opts.from or 0, (opts.from or 0) + n - 1 do
    x = scope(name .. "." .. i, block, x, i)
    state.layers = state.layers + 1
  end
  return x
end

-- name("resid", a, y): these tensors answer to layers.*.resid too.
local function name_tensors(name, ...)
  for _, x in ipairs { ... } do graph_alias(tensor(x, "name " .. name).id, full(name)) end
end

-- --- loss and model ------------------------------------------------------------------------------------------

local function everywhere(name)
  if not state[name] then
    local id = graph_find("targets.all")
    local all = id and wrap(id, "targets.all")
      or wrap(graph_tensor("targets.all", "input", "i32", { graph_dim("micro", 0), state.dim.batch, state.dim.seq }, "none", 0, false),
        "targets.all")
    state[name] = node(name, "step." .. name, { all })
  end
  return state[name]
end

-- 1 / sequences of the global batch, and 1 / valid targets of it: once a step.
function M.share() return everywhere("sequences") end

local function seed()
  if not state.seed then state.seed = node("recip", "step.seed", { everywhere("count") }) end
  return state.seed
end

-- All router losses and the language loss as one sum of at most eight at a time.
local function sum_losses(name, list)
  while #list > 1 do
    local part = table.move(list, 1, math.min(8, #list), 1, {})
    local rest = table.move(list, #part + 1, #list, 1, {})
    table.insert(rest, 1, node("add", #rest == 0 and name or fresh(name .. ".sum"), part))
    list = rest
  end
end

-- cross_entropy("loss", logits, targets, { ignore = -100, over = "vocab" }): mean over the valid targets of the global batch.
local function cross_entropy(name, logits, targets, opts)
  opts = option(opts, "cross_entropy " .. tostring(name), { "ignore", "over" })
  if (opts.ignore or -100) >= 0 then fail("cross_entropy: ignored targets are below 0; ignore = " .. opts.ignore .. " is a token") end
  local last = last_dim(tensor(logits, "cross_entropy"))[1]
  if opts.over and opts.over ~= last then fail(("cross_entropy over '%s', but the logits end in '%s'"):format(opts.over, last)) end
  local attrs = state.valid and state.size[last] ~= state.valid and { { "valid", state.valid } } or {}
  local stats = node("ce_stats", full(name .. ".stats"), { logits, targets }, attrs)
  local with_aux = #state.aux > 0
  local loss = node("ce_loss", full(with_aux and name .. ".ce" or name), { stats, targets, seed() })
  if not with_aux then return loss end
  local list = table.move(state.aux, 1, #state.aux, 2, { loss })
  sum_losses(full(name), list)
  return wrap(graph_find(full(name)), full(name))
end

-- train { lr = 3e-4, betas = { 0.9, 0.95 }, ... }: how the model is trained; what is not said keeps its default.
local function train(t)
  check_keys("train", t, { "optimizer", "lr", "betas", "eps", "decay", "clip", "warmup" })
  if t.optimizer and t.optimizer ~= "adamw" and t.optimizer ~= "sgd" then
    fail("train: optimizer '" .. tostring(t.optimizer) .. "' is neither adamw nor sgd")
  end
  graph_train("sgd", t.optimizer == "sgd" and 1 or 0)
  for i, v in ipairs(t.betas or {}) do graph_train("beta" .. i, v) end
  for _, key in ipairs { "lr", "eps", "decay", "clip", "warmup" } do
    if t[key] then
      if type(t[key]) ~= "number" then fail(("train: %s = %s is not a number"):format(key, tostring(t[key]))) end
      graph_train(key, t[key])
    end
  end
end

local Model = { __metatable = "model" }

local function data(name)
  return wrap(graph_tensor(name, "input", "i32", { state.dim.batch, state.dim.seq }, "none", 0, false), name)
end

-- model(name, function(tokens, targets) ... return loss end): builds the graph; what a script returns.
local function model(name, build, opts)
  opts = option(opts, "model " .. tostring(name), { "packed" })
  if not state.dim.batch or not state.dim.seq then fail("model: dims must name seq and batch first") end
  inputs = { tokens = data("tokens"), targets = data("targets"), positions = data("positions") }
  if opts.packed then inputs.documents = data("docs") end
  local loss = build(inputs.tokens, inputs.targets, inputs.positions)
  if type(loss) ~= "table" or getmetatable(loss) ~= "tensor" then fail("model " .. name .. ": its function must return the loss") end
  if #graph_dims(loss.id) > 0 then
    fail(("model %s: the loss must be one number, not a tensor of '%s'"):format(name, table.concat(graph_dims(loss.id), " ")))
  end
  graph_close(name, state.layers, loss.id)
  return setmetatable({ name = name }, Model)
end

-- --- configuration -------------------------------------------------------------------------------------------

local function apply_texts(cfg, list, where, code)
  for _, pair in ipairs(list) do
    local key, text = pair[1], pair[2]
    if cfg[key] == nil then
      fail(("%s%s: unknown key; the nearest is '%s'"):format(where, key, near(key, common.keys_of(cfg))), code)
    end
    cfg[key] = common.read_text(where .. key, text, cfg[key], code)
  end
end

-- override { seq = 8192, ... }: the model's settings, changed by the named model, a config.json, and `-o model.KEY=VALUE`, in this order.
local function override(defaults)
  local cfg = {}
  for k, v in pairs(defaults) do cfg[k] = v end
  if cfg.vocab and cfg.vocab_pad == nil then cfg.vocab_pad = 1 end
  if cfg.std == nil then cfg.std = 0.02 end
  if family_config then
    check_keys("this family's settings", family_config, common.keys_of(cfg))
    for k, v in pairs(family_config) do cfg[k] = v end
  end
  apply_texts(cfg, config_texts, "", nil)
  apply_texts(cfg, override_texts, "-o model.", "usage")
  init_std = cfg.std
  return cfg
end

-- family "llama" { name = ..., embed = ... }: models/llama.lua with these settings.
local function family(name)
  return function(settings)
    if type(settings) ~= "table" then fail("family '" .. tostring(name) .. "' is followed by a table of settings") end
    if family_config then fail("a family cannot be built on another named model") end
    family_config = settings
    return model_file(name)
  end
end

function M.set_config(list) config_texts = list end
function M.set_overrides(list) override_texts = list end

function M.finish(result, path)
  if type(result) ~= "table" or getmetatable(result) ~= "model" then fail(path .. ": a model script must return model(...)") end
end

M.node, M.full, M.fresh, M.tensor = node, full, fresh, tensor
M.words = {
  free = free, dim = dim, dims = dims, override = override, family = family, train = train, model = model,
  scope = scope, repeated = repeated, name = name_tensors, param = param,
  linear = linear, embedding = embedding, rmsnorm = rmsnorm, layernorm = layernorm, rope = rope, attend = attend,
  silu = silu, gelu = gelu, swiglu = swiglu, dropout = dropout, split = split, concat = concat, reshape = reshape,
  router = router, dispatch = dispatch, grouped = grouped, combine = combine, cross_entropy = cross_entropy,
}
return M
