-- shorthand.lua: "dp=2,tp=2,sp" as the table that a script would have returned. Degrees that are not given are 1, dp is what is left.

local common = require "common"

local M = {}

-- What a key takes: "size" a whole number from 1, "flag" nothing, a list one of these words, "text" anything.
local KINDS = {
  dp = "size", tp = "size", pp = "size", vpp = "size", cp = "size", ep = "size", etp = "size", fsdp = "size",
  mbs = "size", gbs = "size", accum = "size",
  sp = "flag", uneven = "flag", zigzag = "flag",
  zero = { "0", "1", "2", "3" },
  cp_kind = { "ring", "ulysses", "allgather" },
  schedule = "text", recompute = "text", offload = "text", overlap = "text", dtype = "text", states = "text", order = "text",
  cap = "text", imbalance = "text", stages = "text",
}
local KEYS = common.keys_of(KINDS)

local function usage(text) fail("strategy '" .. M.text .. "': " .. text, "usage") end
local function refuse(text) fail("strategy '" .. M.text .. "': " .. text, "infeasible") end

-- --- reading -------------------------------------------------------------------------------------------------

local function one_of(key, value, list)
  for _, w in ipairs(list) do
    if w == value then return value end
  end
  usage(("%s=%s is none of %s; the nearest is '%s'"):format(key, value, table.concat(list, ", "), near(value, list)))
end

local function read_value(key, value)
  local kind = KINDS[key]
  if kind == "flag" then
    if value ~= "" and value ~= "true" and value ~= "false" then usage(key .. " takes no value, not '" .. value .. "'") end
    return value ~= "false"
  end
  if value == "" then
    if key == "accum" then return nil end
    usage(key .. " needs a value: " .. key .. "=")
  end
  if kind == "size" then
    local n = math.tointeger(tonumber(value))
    if not n or n < 1 then usage(("%s=%s is not a whole number from 1"):format(key, value)) end
    return n
  end
  return type(kind) == "table" and one_of(key, value, kind) or value
end

local function read(text)
  local t = {}
  for item in (text .. ","):gmatch("([^,]*),") do
    item = item:match("^%s*(.-)%s*$")
    local key, eq, value = item:match("^([%w_]+)%s*(=?)%s*(.*)$")
    if item ~= "" and not key then usage("'" .. item .. "' is not of the form key=value") end
    if key then
      if not KINDS[key] then usage(("unknown key '%s'; the nearest is '%s'"):format(key, near(key, KEYS))) end
      if t[key] ~= nil then usage(key .. " is said twice") end
      if eq == "" and KINDS[key] ~= "flag" then usage(key .. " needs a value: " .. key .. "=") end
      t[key] = read_value(key, value)
    end
  end
  return t
end

-- --- degrees -------------------------------------------------------------------------------------------------

-- The list as typed with other values for some keys.
local function retold(t, changes)
  local parts, seen = {}, {}
  for item in M.text:gmatch("[^,]+") do
    local key = item:match("^%s*([%w_]+)")
    seen[key] = true
    parts[#parts + 1] = changes[key] and key .. "=" .. changes[key] or item
  end
  for _, key in ipairs(common.keys_of(changes)) do
    if not seen[key] then parts[#parts + 1] = key .. "=" .. changes[key] end
  end
  return table.concat(parts, ",")
end

-- The divisor of n that is nearest to k.
local function nearest_divisor(n, k)
  local best = 1
  for d = 1, n do
    if n % d == 0 and math.abs(d - k) < math.abs(best - k) then best = d end
  end
  return best
end

-- Checks the degrees against the number of devices, where that is known, and returns dp.
local function check_degrees(t, size)
  local inner = (t.pp or 1) * (t.cp or 1) * (t.tp or 1)
  if not size then return t.dp end
  if size % inner ~= 0 then
    local key = (t.tp or 1) > 1 and "tp" or (t.cp or 1) > 1 and "cp" or "pp"
    local rest = inner // t[key]
    local legal = size % rest == 0 and nearest_divisor(size // rest, t[key]) or nil
    refuse(("pp x cp x tp = %d does not divide %d devices; nearest legal: %s"):format(inner, size,
      legal and retold(t, { [key] = legal, dp = t.dp and size // (rest * legal) }) or "a product that divides " .. size))
  end
  local dp = size // inner
  if t.dp and t.dp ~= dp then
    refuse(("pp x dp x cp x tp = %d, but there are %d devices%s; nearest legal: %s"):format(inner * t.dp, size,
      t.ep and " (ep and etp refactor dp, cp and tp and never multiply the count)" or "", retold(t, { dp = dp })))
  end
  return dp
end

local function check_experts(t, dp)
  if not dp then return end
  local n, k = dp * (t.cp or 1) * (t.tp or 1), (t.ep or 1) * (t.etp or 1)
  if n % k == 0 then return end
  local etp = n % (t.etp or 1) == 0 and t.etp or nil
  refuse(("ep x etp = %d does not divide the %d devices of a stage (dp x cp x tp); nearest legal: %s"):format(k, n,
    retold(t, { ep = nearest_divisor(n // (etp or 1), t.ep or 1), etp = t.etp and (etp or 1) })))
end

local function check_fsdp(t, dp)
  if t.fsdp and dp and dp % t.fsdp ~= 0 then
    refuse(("fsdp=%d does not divide dp=%d; nearest legal: %s"):format(t.fsdp, dp, retold(t, { fsdp = nearest_divisor(dp, t.fsdp) })))
  end
end

-- --- meshes --------------------------------------------------------------------------------------------------

-- Outer to inner; `order` is said inner first, as Megatron does.
local function axis_order(t)
  local default = { "pp", "dp", "cp", "tp" }
  if not t.order then return default end
  local list, seen = {}, {}
  for axis in t.order:gmatch("[^-]+") do
    one_of("order", axis, default)
    if seen[axis] then usage("order names " .. axis .. " twice") end
    seen[axis] = true
    table.insert(list, 1, axis)
  end
  for _, axis in ipairs(default) do
    if not seen[axis] then usage("order leaves " .. axis .. " out; it names tp, cp, dp and pp, inner first") end
  end
  return list
end

local function mesh_text(t)
  local parts = {}
  for _, axis in ipairs(axis_order(t)) do
    if axis == "dp" and t.fsdp then
      parts[#parts + 1] = "rep=" .. (t.dp and t.dp // t.fsdp or "*")
      parts[#parts + 1] = "fsdp=" .. t.fsdp
    elseif axis == "dp" then
      parts[#parts + 1] = "dp=" .. (t.dp or "*")
    elseif t[axis] then
      parts[#parts + 1] = axis .. "=" .. t[axis]
    end
  end
  return table.concat(parts, ", ")
end

local function expert_view(t)
  local parts = { "edp=*", "ep=" .. t.ep }
  if t.etp then parts[3] = "etp=" .. t.etp end
  if t.pp then table.insert(parts, 1, "pp=" .. t.pp) end
  return table.concat(parts, ", ")
end

-- --- the table -----------------------------------------------------------------------------------------------

local function splits(t, batch)
  local ulysses = t.cp and t.cp_kind == "ulysses"
  local split = { batch = batch, heads = t.tp and "tp", kv_heads = t.tp and "tp", ffn = t.tp and "tp", vocab = t.tp and "tp" }
  local param_split
  if t.cp then split.seq = { "cp", order = t.zigzag and "zigzag" or nil } end
  if ulysses then -- activations of attention are split by heads where the rest is split by sequence; parameters stay as they are
    param_split = { heads = split.heads, kv_heads = split.kv_heads, ffn = split.ffn, vocab = split.vocab }
    split.heads = t.tp and "tp+cp" or "cp"
    split.kv_heads = split.heads
  end
  return split, param_split
end

local function layouts(t)
  local list = {}
  if t.sp and t.tp then
    local seq = { seq = t.cp and "cp+tp" or "tp" }
    for _, glob in ipairs { "layers.*.resid", "layers.*.norm*", "norm", "embed.out" } do list[#list + 1] = { glob, seq } end
  end
  if t.ep then list[#list + 1] = { "**.moe.experts", { experts = "moe.ep", ffn = t.etp and "moe.etp" or common.whole } } end
  return #list > 0 and list or nil
end

local function states(t)
  local zero = tonumber(t.zero or (t.fsdp and 3) or 0)
  local over = (t.fsdp and "fsdp" or "dp") .. (t.cp and "+cp" or "")
  local s = { like = t.states or (t.fsdp and "fsdp2" or "megatron") }
  local parts = { "optimizer", "grads", "params" }
  local experts = { "**.moe.experts" }
  for i = 1, zero do
    s[parts[i]] = over
    experts[parts[i]] = "moe.edp"
  end
  if t.ep and zero > 0 then s[1] = experts end
  if zero == 3 then s.unit = { "layers.*", "embed", "head" } end
  if t.fsdp then s.reduce = { between = "rep" } end
  return s
end

-- Megatron's names of what is recomputed. Of some the results are discarded too (its CheckpointWithoutOutput).
local SELECTIVE = {
  core_attn = { "**.core", "inside" }, mlp = { "layers.*.mlp", "inside" }, moe = { "layers.*.moe", "inside" },
  shared_experts = { "**.moe.shared", "inside" }, layernorm = { "layers.*.norm*", "discard" }, moe_act = { "**.moe.act", "discard" },
  mla_up_proj = { "**.mla.up", "discard" },
}

local function recompute(t)
  local what, rest = (t.recompute or "none"):match("^(%w+):?(.*)$")
  one_of("recompute", what or t.recompute, { "none", "selective", "full" })
  if what == "none" then return nil end
  local list = {}
  if what == "selective" then
    for name in (rest == "" and "core_attn" or rest):gmatch("[^+]+") do
      list[#list + 1] = SELECTIVE[one_of("recompute=selective:", name, common.keys_of(SELECTIVE))]
    end
    return list
  end
  local method, n = rest:match("^(%w+):(%d+)$")
  if rest ~= "" and not method then usage("recompute=full is followed by :uniform:N or :block:N, not ':" .. rest .. "'") end
  if method then one_of("recompute=full:", method, { "uniform", "block" }) end
  if method == "block" then return { { "layers[0:" .. n .. "]", "inside" } } end
  return { { "layers.*", method and "uniform:" .. n or "inside" } }
end

local function offload(t)
  if not t.offload or t.offload == "none" then return nil end
  local list = {}
  for name in t.offload:gmatch("[^+]+") do
    one_of("offload", name, { "auto", "optimizer", "activations", "params" })
    local entry = { auto = { "**", want = "auto" }, optimizer = { "optim:**", to = "host", want = "must" },
      activations = { "act:**", to = "host", want = "prefer" }, params = { "param:**", to = "host", want = "must" } }
    list[#list + 1] = entry[name]
  end
  return list
end

local function overlap(t)
  local list = t.overlap or "none"
  if list == "none" then return nil end
  if list == "all" then list = "tp+dp+pp+ep+cp" end
  local o = {}
  for name in list:gmatch("[^+]+") do
    one_of("overlap", name, { "tp", "dp", "pp", "ep", "cp" })
    if name == "dp" then
      o.grads, o.params = true, (t.fsdp or t.zero == "3") and true or nil
    elseif name == "tp" then
      o.tp = t.tp and { chunks = 4 } or nil
    else
      o[name] = true
    end
  end
  return o
end

local SCHEDULES = { "gpipe", "1f1b", "interleaved", "zbh1", "zbh2", "zbv", "dualpipe", "dualpipev" }

local function pipeline(t)
  if not t.pp then return nil end
  local name = t.schedule and one_of("schedule", t.schedule, SCHEDULES) or ((t.vpp or 1) > 1 and "interleaved" or "1f1b")
  local stages = t.stages or "even"
  if not stages:match("^%d+[%d+]*$") then one_of("stages", stages, { "even", "balance" }) end
  return { over = "pp", schedule = name, vpp = t.vpp, stages = stages }
end

local function moe(t)
  if not (t.cap or t.imbalance) then return nil end
  if t.cap and t.cap ~= "dropless" and not tonumber(t.cap) then usage("cap=" .. t.cap .. " is neither dropless nor a number") end
  if t.imbalance and not tonumber(t.imbalance) then usage("imbalance=" .. t.imbalance .. " is not a number") end
  return { routing = t.cap, imbalance = tonumber(t.imbalance) }
end

local function context(t)
  if not t.cp then return nil end
  local kind = t.cp_kind or "ring"
  if kind == "ulysses" then return nil end
  return { outer = kind == "ring" and "ring" or "gather" }
end

-- Keys that say something about an axis need the axis, be its size 1.
local function check_company(t)
  local needs = { { "tp", "sp" }, { "pp", "schedule", "vpp", "stages" }, { "cp", "cp_kind", "zigzag" } }
  for _, keys in ipairs(needs) do
    for i = 2, #keys do
      if t[keys[i]] and not t[keys[1]] then usage(("%s says something about %s; say %s= too"):format(keys[i], keys[1], keys[1])) end
    end
  end
end

-- Axes of size 1 need not be there; dp always is.
local function drop_ones(t)
  for _, key in ipairs { "tp", "cp", "pp", "vpp", "ep", "etp" } do
    if t[key] == 1 then t[key] = nil end
  end
end

-- table_of("dp=2,tp=2,sp", 4, false): the table for 4 devices and a model without experts; nil where either is not known.
function M.table_of(text, size, has_experts)
  M.text = text
  local t = read(text)
  check_company(t)
  if (t.ep or t.etp) and has_experts == false then refuse("ep: the model has no experts to split") end
  local dp = check_degrees(t, size)
  check_fsdp(t, dp)
  if t.ep or t.etp then check_experts(t, dp) end
  if t.etp and not t.ep then t.ep = 1 end
  local keep_view = t.etp and t.etp > 1
  local ep = t.ep
  drop_ones(t)
  if keep_view then t.ep = ep end
  local split, param_split = splits(t, t.fsdp and "rep+fsdp" or "dp")
  return {
    mesh = mesh_text(t), views = t.ep and { moe = expert_view(t) } or nil, roles = t.fsdp and { rep = "dp", fsdp = "dp" } or nil,
    split = split, param_split = param_split, layout = layouts(t), states = states(t), zero = t.zero and tonumber(t.zero) or nil,
    batch = { global = t.gbs, micro = t.mbs, accum = t.accum }, recompute = recompute(t), offload = offload(t),
    overlap = overlap(t), pipeline = pipeline(t), moe = moe(t), cp = context(t), uneven = t.uneven, dtype = t.dtype,
  }
end

return M
