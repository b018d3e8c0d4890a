-- common.lua: what every kind of script can say, and how keys are checked.

local M = {}
local concat, sort = table.concat, table.sort

-- The axes of a dimension that is not split.
local whole = "whole"

-- Keys of a table as a sorted list of texts.
local function keys_of(t)
  local list = {}
  for k in pairs(t) do list[#list + 1] = tostring(k) end
  sort(list)
  return list
end

-- Refuses every text key of `t` that is not in the list `known`; `where` names the table.
local function check_keys(where, t, known, code)
  if type(t) ~= "table" then fail(where .. " must be a table, not " .. tostring(t), code) end
  local set = {}
  for _, k in ipairs(known) do set[k] = true end
  for _, k in ipairs(keys_of(t)) do
    if not set[k] and not (tonumber(k) and t[tonumber(k)] ~= nil) then
      local nearest = near(k, known)
      fail(("%s: unknown key '%s'; %s"):format(where, k, nearest and "the nearest is '" .. nearest .. "'" or "it is a list"), code)
    end
  end
end

-- The value of a text that stands for a number, a truth value or itself, as `like` is.
local function read_text(where, text, like, code)
  local value = text
  if type(like) == "number" then
    value = tonumber(text)
  elseif text == "true" or text == "false" then
    value = text == "true"
  elseif type(like) == "boolean" then
    value = tonumber(text) or text
    if like == true and value == text then value = nil end
  end
  if value == nil then
    fail(("%s=%s: this must be a %s"):format(where, text, type(like) == "number" and "number" or "true or false"), code)
  end
  return math.type(value) == "float" and math.tointeger(value) or value
end

local function is_whole_number(v)
  return type(v) == "number" and math.tointeger(v) ~= nil
end

-- largest_divisor(n, { at_most = m }): the largest divisor of n that is at most m.
local function largest_divisor(n, limits)
  if not is_whole_number(n) or n < 1 then fail("largest_divisor: " .. tostring(n) .. " is not a whole number from 1") end
  check_keys("largest_divisor", limits or {}, { "at_most" })
  for d = math.tointeger(math.min(n, limits and limits.at_most or n)), 2, -1 do
    if n % d == 0 then return d end
  end
  return 1
end

-- Splits "a, b c" at commas and blanks.
local function words_of(text)
  local list = {}
  for w in text:gmatch("[^%s,]+") do list[#list + 1] = w end
  return list
end

M.whole, M.keys_of, M.check_keys, M.read_text = whole, keys_of, check_keys, read_text
M.is_whole_number, M.words_of = is_whole_number, words_of
M.words = { whole = whole, largest_divisor = largest_divisor }
return M
