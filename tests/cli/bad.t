#!/usr/bin/env bash
# Bad input of every kind: one clear error, the right status, within two seconds, nothing left behind.
. "$(dirname "$0")/../tap.sh"
cd "$TMP" || exit 1
mkdir work && cd work || exit 1

# bad STATUS REGEX NAME -- ARGS...
bad() {
    local want=$1 regex=$2 name=$3 began before after
    shift 4
    before=$(ls -A)
    began=${EPOCHREALTIME/./}
    TRY_SECONDS=10 try "$HPBENCH" "$@"
    local took=$(((${EPOCHREALTIME/./} - began) / 1000))
    after=$(ls -A)
    exits "$want" "$name: status $want"
    like "$err" "$regex" "$name: $regex"
    is "$(printf '%s\n' "$err" | grep -c .)" 1 "$name: one line"
    is "$after" "$before" "$name: nothing left behind"
    if [ "$took" -gt "$slowest" ]; then slowest=$took slow=$name; fi
}
slowest=0 slow=
plan() { bad "$1" "$2" "$3" -- plan -m "$4" -c host:4 -s "$5"; }
strategy() { printf '%s\n' "$4" >s.lua && plan "$1" "$2" "$3" gpt2-small s.lua && rm s.lua; }
model() { printf '%s\n' "$4" >m.lua && plan "$1" "$2" "$3" m.lua dp=4 && rm m.lua; }

strategy 3 's.lua:2' "wrong Lua" $'return strategy {\n  mesh = = "dp=4" }'
strategy 3 's.lua:1' "a runtime error" 'return strategy { mesh = "dp=" .. nil }'
strategy 3 's.lua' "nothing returned" 'local x = 1'
strategy 3 'mseh.*mesh' "an unknown key" 'return strategy { mseh = "dp=4" }'
strategy 3 'tq' "an unknown axis" 'return strategy { mesh = "dp=*", split = { batch = "tq" } }'
strategy 3 'hedas' "an unknown dimension" 'return strategy { mesh = "tp=4", split = { hedas = "tp" } }'
strategy 4 '3' "sizes that do not divide" 'return strategy { mesh = "tp=3", split = { heads = "tp" } }'
strategy 3 'layres' "a glob that matches nothing" 'return strategy { mesh = "dp=4", split = { batch = "dp" }, layout = { { "layres.*.resid", { seq = "dp" } } } }'
strategy 3 'spent' "an endless loop" 'while true do end'
strategy 3 'spent' "an endless loop that catches" 'while true do pcall(function() while true do end end) end'
strategy 3 '__gc' "a finalizer bomb" 'setmetatable({}, { __gc = function() while true do end end }) return strategy { mesh = "dp=4" }'
strategy 3 'spent' "a pattern bomb" 'local s = ("a"):rep(100000) s:find((".-"):rep(30) .. "b") return strategy { mesh = "dp=4" }'
strategy 3 'io' "opening a file" 'io.open("/etc/passwd")'
strategy 3 'os' "starting a process" 'os.execute("touch here")'
strategy 3 'require' "loading code" 'require "../../secret"'
strategy 3 'memory|spent' "a table of 4 GB" 'local t = {} for i = 1, 1e9 do t[i] = { i } end'
strategy 3 'string.rep.*limit' "a string of 4 GB" 'local s = ("x"):rep(1 << 32)'
strategy 3 'overflow|spent' "endless recursion" 'local function f() return 1 + f() end f()'
printf '\033Lua' >s.lua
plan 3 'compiled|binary|text' "a compiled chunk" gpt2-small s.lua
rm s.lua

model 3 'm.lua:[12]' "a model with wrong Lua" 'return model('
model 3 'spent' "an endless model" 'repeat until false'
model 3 'm.lua' "a model without a graph" 'return 7'
bad 2 'no-such' "a missing model" -- plan -m no-such -c host:4 -s dp=4
bad 2 'no.lua' "a missing model file" -- plan -m ./no.lua -c host:4 -s dp=4
bad 2 'no.lua' "a missing strategy file" -- plan -m gpt2-small -c host:4 -s ./no.lua

cp "$ROOT/models/gpt2-small.lua" keep.lua
printf '{"model_type": "llama", "hidden_size": 40' >c.json
plan 3 'c.json' "truncated JSON" c.json dp=4
printf '{"model_type": "llama", "hidden_size": "wide", "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 10, "intermediate_size": 8}' >c.json
plan 3 'hidden_size' "JSON of a wrong type" c.json dp=4
printf '{"model_type": "perceptron"}' >c.json
plan 3 'perceptron' "an unknown family" c.json dp=4
printf '[1, 2, 3]' >c.json
plan 3 'c.json' "JSON that is no model" c.json dp=4
head -c 100000 /dev/urandom >c.json
plan 3 'c.json' "noise for JSON" c.json dp=4
rm c.json

bad 2 'host' "a cluster without a count" -- plan -m gpt2-small -c host -s dp=4
bad 2 '"x" is no number of host' "a count that is none" -- plan -m gpt2-small -c host:x -s dp=4
bad 2 '' "no devices" -- plan -m gpt2-small -c host:0 -s dp=4
bad 2 'dp' "a degree that is none" -- plan -m gpt2-small -c host:4 -s dp=x
bad 4 'dp' "degrees that do not fill the devices" -- plan -m gpt2-small -c host:4 -s dp=3
bad 2 '' "an empty strategy" -- plan -m gpt2-small -c host:4 -s ''
bad 2 'sqe.*seq' "an unknown key of a model" -- plan -m gpt2-small -c host:4 -s dp=4 -o model.sqe=64
bad 2 'model.seq=long' "a size that is none" -- plan -m gpt2-small -c host:4 -s dp=4 -o model.seq=long
: >empty.txt
bad 3 'empty.txt' "an empty text to train on" -- run -m gpt2-small -c host:1 -s dp=1 --steps 1 --data empty.txt
bad 2 'folder|directory|cannot' "a folder to train on" -- run -m gpt2-small -c host:1 -s dp=1 --steps 1 --data .
bad 5 'cannot be written' "a result that cannot be written" -- sim -m gpt2-small -c ideal:4 -s dp=4 --format=json:/no/such/folder/x.json
ok "none took longer than 2 s of a calm machine ($slow: $slowest ms)" test "$slowest" -lt "${HP_BAD_MS:-6000}"
done_testing
