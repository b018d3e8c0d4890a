#!/usr/bin/env bash
# What is stored: list, show, compare, export, rm, and a store that cannot be used.
. "$(dirname "$0")/../tap.sh"

sim() { try "$HPBENCH" sim -m gpt2-small -c ideal:4 -s "$@"; }

try "$HPBENCH" runs
exits 0 "runs of an empty store"
like "$out" 'no runs yet' "says that there are none"

sim dp=4
exits 0 "a prediction"
like "$out" 'run 1: hpbench runs show 1' "says its number"
sim dp=2,tp=2
try "$HPBENCH" runs
exits 0 "runs lists"
is "$(printf '%s\n' "$out" | grep -c 'gpt2-small ideal:4')" 2 "both predictions"
like "$(printf '%s\n' "$out" | sed -n 2p)" '^ +2 .*dp=2,tp=2' "the newest first"
try "$HPBENCH" runs list -n 1
is "$(printf '%s\n' "$out" | grep -c 'gpt2-small')" 1 "a list may be limited"

try "$HPBENCH" runs show 1
exits 0 "a stored run is shown"
like "$out" 'gpt2-small on ideal:4, dp=4' "as it was"
try "$HPBENCH" runs export 1
exits 0 "and exported"
ok "as JSON" jq -e '.schema == "hpbench.result.v1" and .strategy.shorthand == "dp=4"' "$TMP/.out"
try "$HPBENCH" runs export 2 --format=json:"$TMP/two.json"
ok "to a file" jq -e '.strategy.shorthand == "dp=2,tp=2"' "$TMP/two.json"
try "$HPBENCH" compare 1 "$TMP/two.json"
exits 0 "a run is compared with a file"
like "$out" 'dp=4  \|  dp=2,tp=2' "naming what differs"
like "$out" '%' "and by how much"
try "$HPBENCH" runs compare 1 2
exits 0 "runs compare does the same"

printf '{"schema": "hpbench.result.v1", "mode": "ru' >"$TMP/cut.json"
try "$HPBENCH" compare 1 "$TMP/cut.json"
exits 3 "a truncated result is bad content"
like "$err" 'cut.json: line 1' "named with its line"

try "$HPBENCH" runs rm 1 2
exits 0 "runs are forgotten"
try "$HPBENCH" runs rm 1
exits 2 "once"

HPBENCH_STORE=/proc/nowhere/store.db try "$HPBENCH" sim -m gpt2-small -c ideal:4 -s dp=4
exits 0 "a store that cannot be made does not stop a prediction"
like "$out" 'warning: this run is not stored' "which warns once"
HPBENCH_STORE=/proc/nowhere/store.db try "$HPBENCH" sim -m gpt2-small -c ideal:4 -s dp=4 --format=json
like "$err" 'warning: this run is not stored' "also where the report is left out"
ok "and the JSON is whole" jq -e '.warnings | length > 0' "$TMP/.out"
full() (ulimit -f 8 && trap '' XFSZ && exec "$@")
export -f full
export HPBENCH_STORE=$TMP/full.db
try bash -c 'full "$@"' - "$HPBENCH" sim -m gpt2-small -c ideal:4 -s dp=4
exits 0 "a full disk does not stop a prediction either"
like "$out" 'warning: this run is not stored' "and is a warning"
HPBENCH_STORE=/proc/nowhere/store.db try "$HPBENCH" runs
exits 5 "a list needs the store"
is "$(printf '%s\n' "$err" | grep -c .)" 1 "and says why in one line"
done_testing
