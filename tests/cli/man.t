#!/usr/bin/env bash
# The man page can be read, and names every command that the program has.
. "$(dirname "$0")/../tap.sh"

page=$ROOT/share/doc/hpbench.1
if command -v mandoc >/dev/null; then
    try mandoc -T lint -W warning "$page"
    is "$out$err" "" "the man page is free of warnings"
    text=$(mandoc "$page" | sed 's/.\x08//g')
    words=$("$HPBENCH" help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p')
    like "$words" run "help lists commands"
    for word in $words; do
        like "$text" "[^a-z]$word[^a-z]" "the man page speaks of $word"
    done
else
    skip 1 "no mandoc here"
fi
done_testing
