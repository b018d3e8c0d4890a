#!/usr/bin/env bash
# make install puts the program where it finds its data, whatever the folder it is run from.
. "$(dirname "$0")/../tap.sh"

if [ ! -f "$ROOT/src/cli/main.c" ]; then
    skip 4 "no program in this checkout"
    done_testing
fi
# The default prefix: another would link the program anew while other tests run it.
ok "make install succeeds" make -s -C "$ROOT" install DESTDIR="$TMP/stage"
ok "the man page is there" test -s "$TMP/stage/usr/local/share/man/man1/hpbench.1"
cd /
try "$TMP/stage/usr/local/bin/hpbench" list models
exits 0 "the installed program runs"
like "$out" 'gpt2' "and lists the installed models"
done_testing
