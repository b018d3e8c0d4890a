#!/usr/bin/env bash
# The workbench from Lua: scripts and prompt.
. "$(dirname "$0")/../tap.sh"

cat >"$TMP/s.lua" <<'L'
local r = hp.sim { model = "gpt2-small", cluster = "ideal:4", strategy = "dp=2,tp=2", over = { ["model.seq"] = 64 } }
print(r.schema, r.n_devices, r.step_s > 0, r.model)
print(#hp.plan { model = "gpt2-small", cluster = "ideal:4", strategy = "tp=4", view = "comm" } > 0)
print(arg[1], arg[2], #arg)
L
try "$HPBENCH" lua "$TMP/s.lua" one two
exits 0 "a script runs"
is "$(printf '%s\n' "$out" | sed -n 1p)" $'hpbench.result.v1\t4\ttrue\tgpt2-small' "hp.sim returns the record"
is "$(printf '%s\n' "$out" | sed -n 2p)" "true" "hp.plan returns text"
is "$(printf '%s\n' "$out" | sed -n 3p)" $'one\ttwo\t2' "arg holds the arguments"

# fails STATUS REGEX NAME LUA
fails() {
    printf '%s\n' "$4" >"$TMP/f.lua"
    try "$HPBENCH" lua "$TMP/f.lua"
    exits "$1" "$3: status $1"
    like "$err" "$2" "$3: says so"
    is "$(printf '%s\n' "$err" | grep -c .)" 1 "$3: in one line"
}
fails 3 'f.lua:[12]' "a syntax error" 'print('
fails 3 'f.lua:2' "a runtime error" $'\nlocal x = nil + 1'
fails 3 "io" "no files" 'io.open("/etc/passwd")'
fails 3 "os" "no processes" 'os.execute("true")'
fails 2 "modle.*model" "an unknown key of a request" 'hp.sim { modle = "x" }'
fails 2 "no strategy" "a request without a strategy" 'hp.sim { model = "gpt2-small", cluster = "ideal:4" }'
fails 2 "nosuch" "an unknown model" 'hp.sim { model = "nosuch", cluster = "ideal:4", strategy = "dp=4" }'
fails 4 "dp" "an infeasible strategy" 'hp.plan { model = "gpt2-small", cluster = "ideal:4", strategy = "dp=3" }'
fails 2 "seed" "a seed that is none" 'hp.sim { model = "gpt2-small", cluster = "ideal:4", strategy = "dp=4", seed = "x" }'
printf 'local ok, e = pcall(hp.sim, { model = "nosuch", cluster = "ideal:4", strategy = "dp=4" }) print(ok, e)\n' >"$TMP/p.lua"
try "$HPBENCH" lua "$TMP/p.lua"
like "$out" '^false.*nosuch' "an error can be caught in Lua"
try "$HPBENCH" lua "$TMP/nothere.lua"
exits 3 "a script that is not there"

printf 'x = 20\nx + 1\nlocal y = 3\nfor i = 1, 2 do print(i) end\n{ a = 1, b = { 2, 3 } }\nnil + 1\nhp.version\n' >"$TMP/lines"
timeout 20 "$HPBENCH" repl <"$TMP/lines" >"$TMP/out" 2>"$TMP/err"
is $? 0 "the prompt ends with its input"
out=$(cat "$TMP/out")
is "$(printf '%s\n' "$out" | head -n 3)" $'21\n1\n2' "expressions are shown, statements run, names stay"
like "$out" 'b = \{ 2, 3 \}' "tables are shown"
like "$(cat "$TMP/err")" 'repl:1: attempt to perform arithmetic' "an error does not end it"
like "$out" '"[0-9]+\.[0-9]+\.[0-9]+"' "what comes after is still read"
done_testing
