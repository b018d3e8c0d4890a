#!/usr/bin/env bash
# `check` and `plan`: the same numbers for many strategies, refusals with the nearest legal value, --shrink.
. "$(dirname "$0")/../tap.sh"

# Small models take the same paths as large ones.
check() { try "$HPBENCH" check -m "$1" -c "$2" -s "$3" -o model.seq=16 -o model.embed=64 -o model.layers=2 "${@:4}"; }

for s in dp=4 tp=4 dp=2,tp=2 tp=4,sp dp=4,zero=1 dp=4,zero=2 fsdp=4 pp=2,dp=2,gbs=8 cp=2,dp=2; do
    check gpt2-small host:4 $s
    exits 0 "gpt2-small computes the same with $s"
done
for s in dp=4,ep=4 dp=2,tp=2,ep=2; do
    check moe-small host:4 $s
    exits 0 "moe-small computes the same with $s"
done
check mla-small host:2 tp=2
exits 0 "mla-small computes the same with tp=2"
check llama-small host:2 dp=2,zero=1 --dtype bf16
exits 0 "bf16 within its limits"

check gpt2-small host:2 dp=2 --format=json
ok "the record of a check is whole" jq -e '.ok and .max_err.loss <= .tolerance.loss and .max_err.grads < .tolerance.grads
    and .first_divergence == null and .routing_ties == 0 and .n_tensors > 50' "$TMP/.out"
export HPBENCH_INJECT='abort:layers.1.mlp.up'
check gpt2-small host:2 dp=2
exits 5 "a crash of the engine is status 5"
like "$err" 'crashed' "and a message"
unset HPBENCH_INJECT

try "$HPBENCH" check -m llama3-405b -c ideal:16384 -s dp=256,tp=8,pp=14,cp=2
exits 4 "devices that do not add up are infeasible"
try "$HPBENCH" check -m llama3-405b -c ideal:8192 -s dp=512,tp=8,cp=2,sp,zero=1 --shrink
exits 0 "a 405B strategy is proved small"
like "$out" 'mesh: .* -> dp=2' "and says what became of it"

uneven_stages=$(printf '4+%.0s' {1..13})3+3+3
try "$HPBENCH" check -m deepseek-v3 -c ideal:2048 -s "pp=16,dp=64,tp=2,ep=64,gbs=4096,stages=$uneven_stages" --shrink
exits 0 "so is one with experts in a view of their own and uneven stages"
like "$out" 'mesh.moe: .*edp=2, ep=4' "whose views still agree"

# refuses STATUS REGEX NAME -- ARGS...
refuses() {
    local want=$1 regex=$2 name=$3
    shift 4
    try "$HPBENCH" plan "$@"
    exits "$want" "$name: status $want"
    like "$err" "$regex" "$name: says so"
    is "$(printf '%s\n' "$err" | grep -c .)" 1 "$name: in one line"
}
refuses 4 'nearest' "more experts' ranks than devices" -- -m moe-small -c host:4 -s ep=4,dp=1
refuses 4 'nearest|divide' "heads that do not divide" -- -m gpt2-small -c host:3 -s tp=3
refuses 4 'does not fit|fit' "a budget too small" -- -m gpt2-small -c host:4 -s dp=4 -o cluster.hbm_bytes=8MiB
for view in resolved why memory groups comm; do
    try "$HPBENCH" plan -m gpt2-small -c host:4 -s dp=2,tp=2 --$view
    exits 0 "plan --$view"
    like "$out" 'tp|arena' "plan --$view says something"
done
try "$HPBENCH" plan -m gpt2-small -c host:4 -s dp=2,tp=2
like "$out" '^hpbench-plan 1' "plan prints the plan"
try "$HPBENCH" plan -m gpt2-small -c host:4 -s dp=2,tp=2 --out "$TMP/plan.txt"
ok "--out writes it to a file" grep -q '^hpbench-plan 1' "$TMP/plan.txt"

try "$HPBENCH" list
exits 0 "list"
like "$out" 'llama3-8b' "lists models"
like "$out" 'host ' "and clusters"
try "$HPBENCH" show gpt2
like "$out" '124439808' "show counts a model's parameters"
try "$HPBENCH" show host:4
like "$out" 'peak' "show says what a cluster has"
try "$HPBENCH" show dp=2,tp=2,sp
like "$out" 'mesh' "show says what a shorthand means"
done_testing
