#!/usr/bin/env bash
# `run` and `sim`: they train, they measure, their records hold, they can be stopped, and a crash of the engine is a message.
. "$(dirname "$0")/../tap.sh"

run() { try "$HPBENCH" run -m gpt2-small -c host:4 -o model.seq=32 "$@"; }

run -s dp=2,tp=2 --steps 4 --format=json:"$TMP/a.json" --format=trace:"$TMP/t.json"
exits 0 "gpt2-small trains on dp=2,tp=2"
like "$out" 'trained on the wall clock, 4 devices, seed 1, 4 steps' "the report says what was done"
like "$out" 'COMMUNICATION' "what was sent"
like "$out" 'MEMORY of the fullest device' "what a device holds"
is "$err" "" "without a terminal there is no progress"
is "$(awk 'length > 80' "$TMP/.out" | LC_ALL=C grep -vc '[^ -~]')" 0 "no plain line is longer than 80 columns"

sum='[.time.compute_s, .time.overlapped_s, (.time.exposed_s | add), .time.bubble_s, .time.wait_s, .time.host_s, .time.free_s] | add'
ok "the owners of time add up to the step" jq -e "($sum) as \$s | (\$s - .time.step_s | fabs) < 1e-9" "$TMP/a.json"
ok "every step has a loss" jq -e '.losses | length == 4' "$TMP/a.json"
ok "losses fall" jq -e '.losses | last < first' "$TMP/a.json"
ok "memory by kind adds up to the peak" jq -e '(.memory.by_kind | add) == .memory.peak_bytes' "$TMP/a.json"
ok "both axes sent bytes" jq -e '.comm.bytes_by_axis.dp > 0 and .comm.bytes_by_axis.tp > 0' "$TMP/a.json"
ok "the strategy is named" jq -e '.strategy.shorthand == "dp=2,tp=2" and (.strategy.hash | length == 16)' "$TMP/a.json"
ok "the trace is Chrome's" jq -e '[.traceEvents[] | select(.ph == "X")] | length > 100' "$TMP/t.json"
ok "with a process a device" jq -e '[.traceEvents[] | select(.name == "process_name")] | length == 4' "$TMP/t.json"

run -s dp=2,tp=2 --steps 4 --format=json
ok "JSON to standard output is alone there" jq -e '.schema == "hpbench.result.v1"' "$TMP/.out"
is "$(jq -c .losses "$TMP/.out")" "$(jq -c .losses "$TMP/a.json")" "the same seed gives the same bits"
run -s dp=2,tp=2 --steps 4 --format=json --seed 2
unlike "$(jq -c .losses "$TMP/.out")" "$(jq -c '.losses[0]' "$TMP/a.json")" "another seed gives others"
run -s dp=4 --steps 3 -q
exits 0 "-q"
is "$out$err" "" "says nothing"
printf 'to be or not to be, that is the question. %.0s' {1..200} >"$TMP/own.txt"
run -s dp=4 --steps 3 --data "$TMP/own.txt" --format=json
ok "own data can be trained on" jq -e '.losses | length == 3' "$TMP/.out"
run -s dp=4 --steps 3 --clock model --format=json
ok "the modelled clock replays what was measured" jq -e '.clock == "model" and .step_s > 0 and .losses[0] > 0' "$TMP/.out"
LC_ALL=C run -s dp=4 --steps 3
is "$(printf '%s' "$out" | LC_ALL=C grep -c '[^ -~]')" 0 "in a plain locale the report is ASCII"

try "$HPBENCH" sim -m llama3-8b -c ideal:8 -s tp=8,sp --format=json
ok "a prediction has no losses" jq -e '.mode == "sim" and .losses == null and .grain == "task" and .n_devices == 8' "$TMP/.out"
ok "and its owners add up" jq -e "($sum) as \$s | (\$s - .time.step_s | fabs) < 1e-9" "$TMP/.out"
cp "$TMP/.out" "$TMP/one"
try "$HPBENCH" sim -m llama3-8b -c ideal:8 -s tp=8,sp --format=json
ok "predictions are repeatable" cmp -s "$TMP/one" "$TMP/.out"

try "$HPBENCH" run -m gpt2-small -c ideal:4 -s dp=4
exits 2 "run wants this machine"
like "$err" 'host:4' "and says how it is named"

export HPBENCH_INJECT='abort:layers.1.mlp.up'
run -s dp=4 --steps 3
exits 5 "a crash of the engine is status 5"
like "$err" 'SIGABRT.* step 0.* task .* device' "signal, step, task and device are named"
is "$(printf '%s\n' "$err" | grep -c .)" 1 "in one line"
unset HPBENCH_INJECT
try "$HPBENCH" runs
exits 0 "the store is as it was"
unlike "$out" 'interrupted|failed' "and knows only of runs that ended"

# interrupted SIGNAL...: starts a long run, sends it once the engine has done some steps, and sets $status and $engine.
interrupted() {
    "$HPBENCH" run -m gpt2-small -c host:2 -s dp=2 -o model.seq=16 --steps 100000 --format=json:"$TMP/stopped.json" \
        >"$TMP/.out" 2>"$TMP/.err" </dev/null &
    local pid=$! began ticks=0
    for ((began = SECONDS; ticks < 100 && SECONDS < began + 30; )); do
        engine=$(pgrep -P $pid) && ticks=$(awk '{ print $14 }' /proc/$engine/stat 2>/dev/null || echo 0)
        sleep 0.05
    done
    for s; do kill -"$s" $pid && sleep 0.05; done
    wait $pid 2>/dev/null
    status=$?
    out=$(cat "$TMP/.out") err=$(cat "$TMP/.err")
}
gone() {
    local i
    for ((i = 0; i < 100; i++)); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.05
    done
    return 1
}
rm -f "$TMP/stopped.json"
interrupted INT
exits 130 "Ctrl-C is status 130"
like "$err" 'interrupted after step [1-9][0-9]* of 100000' "says how far the run came"
ok "the steps that were done are reported" jq -e '.losses | length > 0' "$TMP/stopped.json"
try "$HPBENCH" runs
like "$out" 'interrupted' "and are stored as interrupted"
interrupted INT INT
exits 130 "twice is status 130 too"
ok "and ends the engine" gone "$engine"
interrupted KILL 2>/dev/null
ok "kill -9 ends the engine as well" gone "$engine"
try "$HPBENCH" runs
exits 0 "and leaves the store whole"
done_testing
