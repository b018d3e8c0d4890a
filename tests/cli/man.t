#!/usr/bin/env bash
# The man page can be read, and names every exit status and every command of the contract.
. "$(dirname "$0")/../tap.sh"

page=$ROOT/share/doc/hpbench.1
if command -v mandoc >/dev/null; then
    try mandoc -T lint -W warning "$page"
    is "$out$err" "" "the man page is free of warnings"
    text=$(mandoc "$page" | sed 's/.\x08//g')
    for word in run sim check plan schedule sweep advise batch compare validate calibrate analyze \
        import export list show runs repl lua help; do
        like "$text" "[^a-z]$word[^a-z]" "the man page speaks of $word"
    done
else
    skip 1 "no mandoc here"
fi
done_testing
