#!/bin/bash
# Wrong models, strategies and configurations on the command line: one clear error each, the right status, soon.
. "$(dirname "$0")/../tap.sh"
[ -x "$HPBENCH" ] || {
    skip 1 "the program is not built"
    done_testing
}

plan() { TRY_SECONDS=10 try "$HPBENCH" plan -m "${M:-gpt2-small}" -c host:4 -s "${S:-dp=4}"; }
write() { printf '%b' "$2" >"$TMP/$1"; }
lines() { printf '%s' "$1" | grep -c .; }

# refused STATUS REGEX NAME: the last plan ended so, with one line that says why.
refused() {
    exits "$1" "$3"
    like "$err" "$2" "$3: says why"
    is "$(lines "$err")" 1 "$3: in one line"
}

M=gpt3 plan
refused 2 "nearest is 'gpt2'" "an unknown model"
M=$TMP/nosuch.lua plan
refused 2 "nosuch.lua" "a model file that is not there"
S=mbss=2 plan
refused 2 "nearest is 'mbs'" "an unknown shorthand key"
S=dp=3 plan
refused 4 "nearest legal: dp=4" "a degree that does not fit"
M=moe-small S=ep=4,dp=1 plan
refused 4 "nearest legal: ep=4,dp=4" "experts never multiply the count"

write loop.lua 'while true do end'
M=$TMP/loop.lua plan
refused 3 "loop.lua:1: .*spent its instructions" "an endless loop"
write gc.lua 'for i = 1, 1e9 do setmetatable({}, { __gc = function() while true do end end }) end'
S=$TMP/gc.lua plan
refused 3 "gc.lua:1: .*__gc is not allowed" "a finalizer bomb"
write pattern.lua 'return ("a"):rep(50000):find(("a*"):rep(60) .. "b")'
S=$TMP/pattern.lua plan
refused 3 "pattern.lua:1: .*spent" "a pattern bomb"
write file.lua '\n\nreturn io.open("/etc/passwd")'
S=$TMP/file.lua plan
refused 3 "file.lua:3: unknown word 'io'" "reading a file"
write big.lua 'local t = {} for i = 1, 1e10 do t[i] = i end'
S=$TMP/big.lua plan
refused 3 "big.lua|memory" "a table of 4 GB"
write binary.lua '\033Lua'
S=$TMP/binary.lua plan
refused 3 "compiled chunk" "a binary chunk"
write syntax.lua 'return strategy { mesh = }'
S=$TMP/syntax.lua plan
refused 3 "syntax.lua:1: " "wrong Lua"
write axis.lua 'return strategy { mesh = "dp=*", split = { batch = "dq" } }'
S=$TMP/axis.lua plan
refused 3 "unknown axis \"dq\"" "an unknown axis"
write key.lua 'return strategy { mesh = "dp=*", splits = {} }'
S=$TMP/key.lua plan
refused 3 "key.lua:1: .*nearest is 'split'" "an unknown key"

write cut.json '{"model_type": "llama", "hidden_size": 64,'
M=$TMP/cut.json plan
refused 3 "cut.json:1:.*not JSON" "a truncated configuration"
write t5.json '{"model_type": "t5"}'
M=$TMP/t5.json plan
refused 3 "model_type t5 is no decoder known here" "an unknown family"

write own.lua 'return strategy { mesh = "dp=*", split = { batch = "dp" } }'
S=$TMP/own.lua plan
exits 0 "a script of one's own is planned"
M=GPT2-Small S=TP-SP plan
exits 0 "names match without case"
done_testing
