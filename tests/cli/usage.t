#!/usr/bin/env bash
# Words on the command line: help, unknown names, wrong values. One clear error each, and the right status.
. "$(dirname "$0")/../tap.sh"

# refuses STATUS REGEX NAME -- ARGS...: one line on standard error that matches, nothing on standard output.
refuses() {
    local status_wanted=$1 regex=$2 name=$3
    shift 4
    try "$HPBENCH" "$@"
    exits "$status_wanted" "$name: status $status_wanted"
    like "$err" "$regex" "$name: says so"
    is "$(printf '%s\n' "$err" | grep -c .)" 1 "$name: in one line"
    is "$out" "" "$name: and nothing else"
}

try "$HPBENCH" --version
exits 0 "--version"
like "$out" '^hpbench [0-9]+\.[0-9]+\.[0-9]+$' "says the version"

try "$HPBENCH" help
exits 0 "help"
for c in run sim check plan list show compare runs lua repl help; do
    like "$out" "(^|"$'\n'")  $c +[a-z]" "help lists $c"
    try "$HPBENCH" help $c
    like "$out" "^usage: hpbench $c" "help $c says how it is used"
    is "$(printf '%s\n' "$out" | awk 'length > 90' | head -n 1)" "" "help $c fits a terminal"
    try "$HPBENCH" help
done
unlike "$out" '__|sweep|advise|batch ' "help does not list what is not there"
try "$HPBENCH" --help
exits 0 "--help"
try "$HPBENCH" run --help
exits 0 "run --help"
like "$out" '--steps=N' "lists the flags of run"

refuses 2 'no terminal.*hpbench run' "without arguments and terminal" --
refuses 2 'no command "rnu".*"run"' "an unknown command" -- rnu
refuses 2 'no command "sweep"' "a command of a later version" -- sweep
refuses 2 'no flag --stpes.*--steps' "an unknown flag" -- run --stpes 3
refuses 2 'no flag -z' "an unknown letter" -- run -z
refuses 2 '--quiet' "a flag before the command" -- --quiet run
refuses 2 'wants a value' "a flag without its value" -- run --steps
refuses 2 'takes no value' "a switch with a value" -- run --quiet=yes
refuses 2 'twice' "a flag given twice" -- run --steps 3 --steps 4
refuses 2 '--model' "run without a model" -- run
refuses 2 '--strategy' "run without a strategy" -- run -m gpt2-small -c host:4
refuses 2 'whole number from 1' "a number that is none" -- run -m gpt2-small -c host:1 -s dp=1 --steps many
refuses 2 'whole number from 1' "no steps at all" -- run -m gpt2-small -c host:1 -s dp=1 --steps 0
refuses 2 'wall, model' "an unknown clock" -- run -m gpt2-small -c host:1 -s dp=1 --clock sun
refuses 2 'f32, bf16' "an unknown dtype" -- run -m gpt2-small -c host:1 -s dp=1 --dtype f8
refuses 2 'no format "jsn".*"json"' "an unknown format" -- run -m gpt2-small -c host:1 -s dp=1 --format=jsn
refuses 2 'KEY=VALUE' "an override without a value" -- run -m gpt2-small -c host:1 -s dp=1 -o model.seq
refuses 2 'no-such-model' "an unknown model" -- run -m no-such-model -c host:4 -s dp=4
refuses 2 'gpt2-smal.*gpt2-small' "a model's name misspelt" -- plan -m gpt2-smal -c host:4 -s dp=4
refuses 2 'nosuch' "an unknown cluster" -- plan -m gpt2-small -c nosuch:4 -s dp=4
refuses 2 'dq' "an unknown shorthand key" -- plan -m gpt2-small -c host:4 -s dq=4
refuses 2 'modle' "an override of nothing" -- plan -m gpt2-small -c host:4 -s dp=4 -o modle.seq=8
refuses 2 'one question' "two questions about a plan" -- plan -m gpt2-small -c host:4 -s dp=4 --why --comm
refuses 2 'nosuch.*cannot be read|nosuch.*[Nn]o such file' "data that is not there" -- run -m gpt2-small -c host:4 -s dp=4 --data "$TMP/nosuch.txt"
refuses 2 'models, clusters or strategies' "an unknown list" -- list cities
refuses 2 'nothere' "showing what is not there" -- show nothere
refuses 2 'runs cannot "shw".*"show"' "an unknown verb of runs" -- runs shw
refuses 2 'no run 7' "a run that is not there" -- runs show 7
refuses 2 '"x" is no run' "a run that is no number" -- runs rm x
refuses 2 '2 to 64' "comparing one thing" -- compare 1
refuses 2 'lua wants a script' "lua without a script" -- lua
refuses 2 'no argument "extra"' "a word too many" -- run extra

if command -v script >/dev/null; then
    TERM=xterm script -qec "$HPBENCH" /dev/null >"$TMP/tty" 2>&1 </dev/null
    is $? 2 "without arguments on a terminal: status 2"
    like "$(cat "$TMP/tty")" 'workbench.*hpbench run' "names the command to use"
else
    skip 2 "no script(1) for a terminal"
fi
done_testing
