-- api.lua: the words of `hpbench lua` and `hpbench repl`, on top of Lua's own safe ones.
--
-- hp.run, hp.sim, hp.plan and hp.check take one table and return one:
--     local r = hp.sim { model = "llama3-8b", cluster = "h100-sxm:64", strategy = "dp=8,tp=8", over = { ["model.seq"] = 4096 } }
--     print(r.step_s, r.memory.peak_bytes)

local function quoted(v)
  return type(v) == "string" and string.format("%q", v) or tostring(v)
end

-- Every key of a table, sorted, two levels deep: what the prompt shows of a result.
local function shown(v, indent, depth)
  if type(v) ~= "table" then return quoted(v) end
  if depth == 0 then return "{ .. }" end
  local keys = {}
  for k in pairs(v) do keys[#keys + 1] = k end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  if #v > 0 and #v == #keys then
    local items = {}
    for i = 1, math.min(#v, 8) do items[i] = shown(v[i], indent, depth - 1) end
    return "{ " .. table.concat(items, ", ") .. (#v > 8 and ", .. " .. #v .. " in all }" or " }")
  end
  local lines = {}
  for i, k in ipairs(keys) do
    lines[i] = indent .. "  " .. tostring(k) .. " = " .. shown(v[k], indent .. "  ", depth - 1)
  end
  return #lines == 0 and "{}" or "{\n" .. table.concat(lines, "\n") .. "\n" .. indent .. "}"
end

local function print(...)
  local t = table.pack(...)
  for i = 1, t.n do t[i] = tostring(t[i]) end
  api_write(table.concat(t, "\t", 1, t.n))
end

local function show(...)
  local t = table.pack(...)
  for i = 1, t.n do api_write(shown(t[i], "", 2)) end
end

-- A prompt's lines share one environment: names that a line sets are there for the next.
local kept, behind = {}, nil
setmetatable(kept, { __index = function(_, k) return behind[k] end })
local function session(env)
  behind = env
  return kept
end

-- What stands behind the script's name on the command line; filled before a script runs.
local arg = {}
local function set_arguments(list)
  for i, v in ipairs(list) do arg[i] = v end
end

return {
  set_arguments = set_arguments,
  words = {
    hp = { run = api_run, sim = api_sim, plan = api_plan, check = api_check, version = api_version() },
    arg = arg, print = print, show = show, session = session,
  },
}
