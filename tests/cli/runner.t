#!/usr/bin/env bash
# tests/run cannot be green by mistake: it is run here on a house of a few scripts.
. "$(dirname "$0")/../tap.sh"

house=$TMP/house
mkdir -p "$house/tests/cases"
cp "$ROOT/tests/run" "$house/tests/run"
printf '.PHONY: where all tests\nwhere:\n\t@echo build/release\nall tests:\n\t@test ! -e broken\n' >"$house/Makefile"
put() { printf '#!/bin/sh\n%s\n' "$2" >"$house/tests/cases/$1.t" && chmod +x "$house/tests/cases/$1.t"; }
last() { printf '%s\n' "$out" | tail -n 1; }

try "$house/tests/run" cases
exits 1 "without any test there is nothing to be green about"
is "$(last)" "0 passed, 0 failed" "and that is what the last line says"

put good 'echo "ok 1 - a"; echo "ok 2 - b"; echo 1..2'
try "$house/tests/run" cases
exits 0 "tests that pass make it green"
is "$(last)" "2 passed, 0 failed" "each behaviour is counted"

put bad 'echo "not ok 1 - c"; echo "ok 2 - d"; echo 1..2; exit 1'
try "$house/tests/run" cases
exits 1 "a behaviour that does not hold makes it red"
is "$(last)" "3 passed, 1 failed" "the others still count"

put bad 'echo "ok 1 - c"; kill -ABRT $$'
try "$house/tests/run" cases
exits 1 "a program that dies makes it red"
is "$(last)" "2 passed, 1 failed" "although all it said was fine"

put bad 'echo "ok 1 - c"; echo 1..1; exit 3'
try "$house/tests/run" cases
exits 1 "an exit status makes it red"

put bad 'echo "ok 1 - c"; echo 1..2'
try "$house/tests/run" cases
exits 1 "a plan that is not kept makes it red"

put bad 'read line && echo "not ok 1 - $line" || echo "ok 1 - no input"; echo 1..1'
try "$house/tests/run" cases
exits 0 "tests get no input to wait for"

touch "$house/broken"
try "$house/tests/run" build cases
exits 1 "a program that does not build makes it red"
like "$(last)" "0 passed, 1 failed" "and nothing is run then"

try "$house/tests/run" nosuch
exits 2 "a group that is none is wrong usage"
done_testing
