-- strategy.lua: the words of strategy scripts. A strategy is a table; `compile` checks its keys and hands it to C part by part
-- (strategy_put, strategy_rule, strategy_split, strategy_view, strategy_item). What has an order keeps it, what has none is sorted.

local common = require "common"
local check_keys, keys_of, words_of = common.check_keys, common.keys_of, common.words_of

local M = {}
local model_sizes, overrides = nil, {}
local code = nil -- "usage" while a shorthand is compiled

-- What a strategy can say: a key with true holds a value, with a list a table of these keys, with "any" whatever later rooms make of it.
local SPEC = {
  name = true, mode = true, mesh = true, views = "any", roles = "any", split = "any", param_split = "any", layout = "any",
  states = { "like", "params", "grads", "optimizer", "unit", "after_forward", "reduce" },
  batch = { "global", "micro", "accum", "normalise" },
  recompute = "any",
  overlap = { "grads", "params", "tp", "pp", "cp", "ep", "batches" },
  pipeline = { "over", "schedule", "vpp", "stages", "expect" },
  cp = { "inner", "outer", "send" },
  moe = { "routing", "headroom", "imbalance", "tiles", "shared", "lanes", "wire" },
  memory = { "hbm", "spare" }, loss = { "chunk" }, offload = "any", dtype = "any", uneven = true, cut = "any", zero = true,
  groups = "any", edges = "any", balance = "any", against = true, serve = "any", kv = "any", limit = "any", find = "any",
}
local KEYS = keys_of(SPEC)

local function bad(text) fail(text, code) end

-- --- values --------------------------------------------------------------------------------------------------

-- Any value as text that has one form: lists in order, other keys sorted.
local function text_of(v, where)
  if type(v) == "string" then return v end
  if type(v) == "boolean" or type(v) == "number" then return tostring(v) end
  if type(v) ~= "table" then bad(where .. ": a " .. type(v) .. " cannot be kept as text; write a value, a text or a table") end
  local parts, n = {}, #v
  for i = 1, n do parts[i] = text_of(v[i], where) end
  for _, k in ipairs(keys_of(v)) do
    if v[k] ~= nil then parts[#parts + 1] = k .. "=" .. text_of(v[k], where .. "." .. k) end
  end
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- "tp", "a+b" or whole.
local function axes_of(v, where)
  if type(v) ~= "string" or not v:match("^[%w_.+ ]+$") then
    bad(("%s: axes are a name, names joined by +, or whole, not %s"):format(where, text_of(v, where)))
  end
  return (v:gsub("%s", ""))
end

local function whole_number(v, where)
  if not common.is_whole_number(v) or v < 0 then bad(("%s = %s is not a whole number from 0"):format(where, text_of(v, where))) end
  return math.tointeger(v)
end

local function put_whole(t, key, path)
  if t[key] ~= nil then strategy_put(path, whole_number(t[key], path)) end
end

local function put_text(t, key, path)
  if t[key] ~= nil then strategy_put(path, text_of(t[key], path)) end
end

local function put_number(t, key, path)
  if t[key] == nil then return end
  if type(t[key]) ~= "number" then bad(("%s = %s is not a number"):format(path, text_of(t[key], path))) end
  strategy_put(path, t[key])
end

-- What no room reads yet is kept word for word: other("loss", "chunk", 4096).
local function other(part, key, v)
  if type(v) == "table" and #v == 0 then
    for _, k in ipairs(keys_of(v)) do other(part, key == "" and k or key .. "." .. k, v[k]) end
  elseif v ~= nil then
    strategy_rule("other", part, key == "" and "is" or key, text_of(v, part .. "." .. key))
  end
end

local function list_of(v, where, known)
  if type(v) ~= "table" then bad(where .. " must be a list, not " .. text_of(v, where)) end
  if known then check_keys(where, v, known, code) end
  return v
end

local function glob_of(v, where)
  if type(v) ~= "string" or v == "" then bad(where .. ": an entry begins with a glob, such as \"layers.*.mlp\"") end
  return v
end

-- --- splits --------------------------------------------------------------------------------------------------

local ORDER = { "experts", "heads", "kv_heads", "ffn", "vocab", "seq", "batch" }
local LATE = { seq = true, batch = true }

-- Dimensions that a word covers: `ffn` stands for the widths of experts and shared experts too.
local function dims_of(word)
  local list = { word }
  if word == "ffn" and model_sizes then
    for _, name in ipairs(keys_of(model_sizes)) do
      if name:match("_ffn$") then list[#list + 1] = name end
    end
  end
  return list
end

local function check_dim(word, where)
  for _, w in ipairs(ORDER) do
    if w == word then return end
  end
  if not model_sizes then return end
  if model_sizes[word] == nil then
    local known = keys_of(model_sizes)
    table.move(ORDER, 1, #ORDER, #known + 1, known)
    bad(("%s: the model has no dimension '%s'; the nearest is '%s'"):format(where, word, near(word, known)))
  end
end

-- The words of a split map in their fixed order; dimensions of the model's own come before seq and batch.
local function ordered_words(t)
  local list, seen = {}, {}
  local function take(w)
    if t[w] ~= nil and not seen[w] then list[#list + 1], seen[w] = w, true end
  end
  for _, w in ipairs(ORDER) do
    if not LATE[w] then take(w) end
  end
  for _, w in ipairs(keys_of(t)) do
    if not LATE[w] then take(w) end
  end
  take "seq"
  take "batch"
  return list
end

local function put_split(list, word, v)
  local where = list .. "." .. tostring(word)
  if type(word) ~= "string" then bad(list .. ": an entry is { \"dimension\", \"axes\" }") end
  check_dim(word, list)
  local order
  if type(v) == "table" then
    check_keys(where, v, { "order" }, code)
    v, order = v[1], v.order
  end
  for _, name in ipairs(dims_of(word)) do strategy_split(list, name, axes_of(v, where), order) end
end

local function compile_splits(list, t)
  list_of(t, list)
  strategy_put(list, 0)
  if #t > 0 then
    for _, entry in ipairs(t) do
      check_keys(list, entry, { "order" }, code)
      put_split(list, entry[1], { entry[2], order = entry.order })
    end
  else
    for _, word in ipairs(ordered_words(t)) do put_split(list, word, t[word]) end
  end
end

-- --- parts ---------------------------------------------------------------------------------------------------

local function compile_mesh(t)
  if type(t.mesh) ~= "string" then bad("mesh must be a text such as \"dp=*, tp=2\"") end
  strategy_view("", t.mesh)
  for _, name in ipairs(keys_of(t.views or {})) do
    if type(t.views[name]) ~= "string" then bad("views." .. name .. " must be a text such as \"edp=*, ep=4\"") end
    strategy_view(name, t.views[name])
  end
end

local function compile_layout(list)
  for i, entry in ipairs(list_of(list, "layout", {})) do
    local where = "layout[" .. i .. "]"
    list_of(entry, where)
    local glob = glob_of(entry[1], where)
    if type(entry[2]) ~= "table" then bad(where .. ": { \"" .. glob .. "\", { dimension = axes } }") end
    for _, key in ipairs(ordered_words(entry[2])) do
      local v, at = entry[2][key], where .. "." .. key
      if key == "dtype" then
        strategy_rule("layout", glob, key, text_of(v, at))
      elseif key == "store" then
        strategy_rule("layout", glob, key, axes_of(v, at))
      else
        check_dim(key, where)
        for _, name in ipairs(dims_of(key)) do strategy_rule("layout", glob, name, axes_of(v, at)) end
      end
    end
  end
end

local STATES = { "params", "grads", "optimizer" }

local function compile_states(t)
  put_text(t, "like", "states.like")
  for _, key in ipairs(STATES) do
    if t[key] ~= nil then strategy_put("states." .. key, axes_of(t[key], "states." .. key)) end
  end
  for i, entry in ipairs(t) do
    local where = "states[" .. i .. "]"
    check_keys(where, entry, STATES, code)
    for _, key in ipairs(STATES) do
      if entry[key] ~= nil then strategy_rule("states", glob_of(entry[1], where), key, axes_of(entry[key], where)) end
    end
  end
  for _, glob in ipairs(type(t.unit) == "table" and t.unit or { t.unit }) do strategy_item("unit", glob_of(glob, "states.unit")) end
  if t.after_forward ~= nil then
    local v = tostring(t.after_forward)
    if v ~= "free" and v ~= "keep" and not v:match("^shard:%d+$") then
      bad("states.after_forward = '" .. v .. "' is none of free, keep, shard:N")
    end
    strategy_put("states.after_forward", v)
  end
  if t.reduce ~= nil then
    check_keys("states.reduce", t.reduce, { "dtype", "between" }, code)
    put_text(t.reduce, "dtype", "states.reduce.dtype")
    if t.reduce.between then strategy_put("states.reduce.between", axes_of(t.reduce.between, "states.reduce.between")) end
  end
end

local function compile_batch(t)
  put_whole(t, "global", "batch.global")
  put_whole(t, "accum", "batch.accum")
  put_text(t, "normalise", "batch.normalise")
  if type(t.micro) == "table" then other("batch", "micro", t.micro) else put_whole(t, "micro", "batch.micro") end
end

local function compile_recompute(list)
  for i, entry in ipairs(list_of(list, "recompute", {})) do
    local where = "recompute[" .. i .. "]"
    local glob = glob_of(list_of(entry, where)[1], where)
    if entry[2] == nil then bad(where .. ": { \"" .. glob .. "\", \"inside\" | \"discard\" | \"none\" | \"per-child\" | operations }") end
    strategy_rule("recompute", glob, "what", type(entry[2]) == "table" and table.concat(entry[2], "+") or text_of(entry[2], where))
  end
end

local function flag(t, key, path)
  if t[key] ~= nil and type(t[key]) ~= "boolean" and type(t[key]) ~= "table" then
    bad(("%s = %s is neither true, false nor a table"):format(path, text_of(t[key], path)))
  end
  if t[key] ~= nil then strategy_put(path, t[key] and 1 or 0) end
  return type(t[key]) == "table" and t[key] or {}
end

local function compile_overlap(t)
  local grads, params = flag(t, "grads", "overlap.grads"), flag(t, "params", "overlap.params")
  check_keys("overlap.grads", grads, { "bucket" }, code)
  check_keys("overlap.params", params, { "ahead", "limit" }, code)
  if grads.bucket then strategy_put("overlap.bucket", bytes(grads.bucket)) end
  if t.params and params.ahead == nil then strategy_put("overlap.ahead", 1) end
  put_whole(params, "ahead", "overlap.ahead")
  if params.limit then strategy_put("overlap.limit", bytes(params.limit)) end
  for _, key in ipairs { "pp", "cp", "ep" } do check_keys("overlap." .. key, flag(t, key, "overlap." .. key), {}, code) end
  if t.tp ~= nil and t.tp ~= false then
    if type(t.tp) ~= "table" then bad("overlap.tp must be a table such as { chunks = 4 }") end
    check_keys("overlap.tp", t.tp, { "chunks" }, code)
    put_whole(t.tp, "chunks", "overlap.tp_chunks")
  end
  other("overlap", "batches", t.batches)
end

local Balance = { __metatable = "balance" }

-- balance { by = "time", under = "memory" }: stages are chosen, not given.
local function balance(t)
  check_keys("balance", t, { "by", "under" })
  return setmetatable({ by = t.by or "time", under = t.under or "memory" }, Balance)
end

local function compile_pipeline(t)
  put_text(t, "over", "pipeline.over")
  if type(t.schedule) == "function" then
    bad("pipeline.schedule: a schedule of one's own is a file in share/schedules, said by its name")
  end
  put_text(t, "schedule", "pipeline.schedule")
  put_whole(t, "vpp", "pipeline.vpp")
  other("pipeline", "expect", t.expect)
  if type(t.stages) == "table" and getmetatable(t.stages) == "balance" then
    strategy_put("pipeline.stages", "balance")
    other("pipeline", "balance", { by = t.stages.by, under = t.stages.under })
  elseif type(t.stages) == "table" then
    for _, s in ipairs(t.stages) do strategy_item("stage", text_of(s, "pipeline.stages")) end
  elseif t.stages ~= nil then
    strategy_put("pipeline.stages", text_of(t.stages, "pipeline.stages"))
  end
end

local function compile_moe(t)
  put_text(t, "routing", "moe.routing")
  put_number(t, "headroom", "moe.headroom")
  put_number(t, "imbalance", "moe.imbalance")
  put_whole(t, "tiles", "moe.tiles")
  put_text(t, "shared", "moe.shared")
  other("moe", "lanes", t.lanes)
  other("moe", "wire", t.wire)
end

local function compile_offload(list)
  local OFFLOAD = { "want", "to", "step" }
  for i, entry in ipairs(list_of(list, "offload", { "plan" })) do
    local where = "offload[" .. i .. "]"
    check_keys(where, entry, OFFLOAD, code)
    for _, key in ipairs(OFFLOAD) do
      if entry[key] ~= nil then strategy_rule("offload", glob_of(entry[1], where), key, text_of(entry[key], where)) end
    end
  end
  other("offload", "plan", list.plan)
end

local function compile_dtype(v)
  if type(v) == "table" then
    check_keys("dtype", v, { "params", "grads", "optimizer", "kv", "compute" }, code)
    for _, key in ipairs { "params", "grads", "optimizer", "kv" } do other("dtype", key, v[key]) end
    v = v.compute or v.params
  end
  local known = { "f32", "bf16", "fp8" }
  if v == "fp32" then v = "f32" end
  for _, name in ipairs(known) do
    if v == name then return strategy_put("dtype", v) end
  end
  bad(("dtype '%s' is none of f32, bf16, fp8"):format(text_of(v, "dtype")))
end

local function compile_cut(t)
  for _, word in ipairs(keys_of(t)) do
    check_dim(word, "cut")
    for _, name in ipairs(dims_of(word)) do strategy_rule("cut", name, "cut", text_of(t[word], "cut." .. word)) end
  end
end

-- A part whose value is a table of known keys.
local function part(t, key, compile)
  if t[key] == nil then return end
  if type(SPEC[key]) == "table" then check_keys(key, t[key], SPEC[key], code) end
  compile(t[key])
end

local function compile_rest(t)
  for _, key in ipairs { "groups", "edges", "balance", "serve", "kv", "limit", "find", "roles", "against" } do
    other(key, "", t[key])
  end
  if t.memory then
    check_keys("memory", t.memory, SPEC.memory, code)
    if t.memory.hbm then strategy_put("memory.hbm", bytes(t.memory.hbm)) end
    other("memory", "spare", t.memory.spare)
  end
  if t.loss then
    check_keys("loss", t.loss, SPEC.loss, code)
    other("loss", "chunk", t.loss.chunk)
  end
end

-- --- overrides -----------------------------------------------------------------------------------------------

local function override_value(text)
  if text == "true" or text == "false" then return text == "true" end
  return math.tointeger(tonumber(text)) or tonumber(text) or text
end

-- `-o strategy.batch.micro=2` sets t.batch.micro.
local function apply_override(t, path, text)
  local keys = {}
  for k in path:gmatch("[^.]+") do keys[#keys + 1] = k end
  local where = "-o strategy." .. path
  local spec = SPEC[keys[1]]
  if not spec then fail(("%s: unknown key; the nearest is '%s'"):format(where, near(keys[1] or "", KEYS)), "usage") end
  if type(spec) == "table" and keys[2] then
    local known = false
    for _, k in ipairs(spec) do known = known or k == keys[2] end
    if not known then fail(("%s: unknown key; the nearest is '%s'"):format(where, near(keys[2], spec)), "usage") end
  end
  if (spec == true) ~= (#keys == 1) and not (spec == "any" and #keys == 1) then
    fail(("%s: %s %s"):format(where, keys[1], spec == true and "has no parts" or "needs the part that changes"), "usage")
  end
  for i = 1, #keys - 1 do
    if type(t[keys[i]]) ~= "table" then t[keys[i]] = {} end
    t = t[keys[i]]
  end
  t[keys[#keys]] = override_value(text)
end

-- --- entry ---------------------------------------------------------------------------------------------------

local Strategy = { __metatable = "strategy" }

local function compile(t)
  check_keys("strategy", t, KEYS, code)
  for _, pair in ipairs(overrides) do apply_override(t, pair[1], pair[2]) end
  put_text(t, "name", "name")
  put_text(t, "mode", "mode")
  if t.groups == nil or t.mesh ~= nil then compile_mesh(t) end
  compile_splits("split", t.split or {})
  part(t, "param_split", function(v) compile_splits("param_split", v) end)
  part(t, "layout", compile_layout)
  part(t, "states", compile_states)
  part(t, "batch", compile_batch)
  part(t, "recompute", compile_recompute)
  part(t, "overlap", compile_overlap)
  part(t, "pipeline", compile_pipeline)
  part(t, "cp", function(v)
    for _, key in ipairs(SPEC.cp) do put_text(v, key, "cp." .. key) end
  end)
  part(t, "moe", compile_moe)
  part(t, "offload", compile_offload)
  part(t, "dtype", compile_dtype)
  part(t, "cut", compile_cut)
  if t.uneven ~= nil then strategy_put("uneven", t.uneven and 1 or 0) end
  put_whole(t, "zero", "zero")
  compile_rest(t)
end

-- strategy { mesh = "dp=*, tp=2", ... }: what a strategy script returns.
local function strategy(t)
  if type(t) ~= "table" then fail("strategy needs a table: strategy { mesh = \"dp=*\" }") end
  compile(t)
  return setmetatable({}, Strategy)
end

function M.finish(result, path)
  if type(result) ~= "table" or getmetatable(result) ~= "strategy" then fail(path .. ": a strategy script must return strategy { ... }") end
end

-- Compiles a shorthand list; `size` is the number of devices, nil where no cluster was given.
function M.shorthand(text, size)
  code = "usage"
  local has_experts = nil
  if model_sizes then has_experts = model_sizes.experts ~= nil end
  strategy(require("shorthand").table_of(text, size, has_experts))
end

local function view_of(what, t)
  return setmetatable({}, { __metatable = what, __index = function(_, key)
    if not t then fail(what .. "." .. tostring(key) .. ": no " .. what .. " was given") end
    if t[key] ~= nil then return t[key] end
    fail(("%s has no '%s'; the nearest is '%s'"):format(what, tostring(key), near(tostring(key), keys_of(t)) or "none"))
  end })
end

-- Called by C before a script runs: tables of the model's and the cluster's facts (false where there is none), overrides.
function M.begin(model, cluster, list)
  model_sizes, overrides = model and model.sizes, list
  if cluster then
    local levels = cluster.levels
    cluster.level = function(name)
      if levels[name] then return levels[name] end
      fail(("cluster has no level '%s'; the nearest is '%s'"):format(tostring(name), near(tostring(name), keys_of(levels)) or "none"))
    end
  end
  M.words.model, M.words.cluster = view_of("model", model), view_of("cluster", cluster)
end

M.words = { strategy = strategy, balance = balance }
return M
