-- cluster.lua: the words of cluster scripts. Figures are texts with units, in order; C reads them (cluster_put) and refuses what it does not know.

local common = require "common"

local M = {}
local Level = { __metatable = "level" }
local Cluster = { __metatable = "cluster" }
local LEVEL_KEYS = { "size", "bandwidth", "latency", "efficiency", "busbw", "topology", "axes", "wrap", "reduce_gain" }

-- level "node" { size = 8, bandwidth = "450GB/s", latency = "2us", topology = "switch", source = }: devices in a unit and the link of each.
local function level(name)
  return function(t)
    local known = table.move(LEVEL_KEYS, 1, #LEVEL_KEYS, 1, {})
    table.move({ "source", "unverified" }, 1, 2, #known + 1, known)
    common.check_keys("level " .. tostring(name), t, known)
    if t.size == nil then fail("level " .. tostring(name) .. " needs its size: a number of devices, or \"all\"") end
    return setmetatable({ name = name, figures = t }, Level)
  end
end

local function put(key, value, entry, all)
  if type(value) ~= "string" and type(value) ~= "number" then
    fail(("cluster: %s must be a text or a number, not a %s"):format(key, type(value)))
  end
  local unverified = entry.unverified
  if unverified == nil then unverified = all.unverified end
  cluster_put(key, tostring(value), entry.source or all.source or "this cluster's file", unverified == true)
end

local function put_level(l, all)
  for _, key in ipairs(LEVEL_KEYS) do
    if l.figures[key] ~= nil then put("level." .. l.name .. "." .. key, l.figures[key], l.figures, all) end
  end
end

-- cluster { name =, vendor =, count =, source =, { "peak.bf16", "989T" }, level "node" { ... }, ... }: what a cluster script returns.
local function cluster(t)
  common.check_keys("cluster", t, { "name", "vendor", "count", "source", "unverified" })
  if t.vendor then put("vendor", t.vendor, {}, t) end
  for i, entry in ipairs(t) do
    if type(entry) == "table" and getmetatable(entry) == "level" then
      put_level(entry, t)
    elseif type(entry) == "table" and type(entry[1]) == "string" then
      common.check_keys(entry[1], entry, { "source", "unverified" })
      put(entry[1], entry[2], entry, t)
    else
      fail(("cluster: entry %d is neither { \"key\", \"value\" } nor level \"name\" { ... }"):format(i))
    end
  end
  return setmetatable({ count = t.count and tostring(t.count) }, Cluster)
end

-- The count that the file itself names, "" where it names none.
function M.finish(result, path)
  if type(result) ~= "table" or getmetatable(result) ~= "cluster" then fail(path .. ": a cluster script must return cluster { ... }") end
  return result.count or ""
end

M.words = { cluster = cluster, level = level }
return M
