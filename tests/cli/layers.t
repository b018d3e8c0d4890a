#!/usr/bin/env bash
# scripts/layers finds what it is there for, in a small house built here.
. "$(dirname "$0")/../tap.sh"

house() { rm -rf "$TMP/house" && mkdir -p "$TMP/house"/{src/base,src/plan,src/exec,tui,src/cli}; }
put() { printf '%s\n' "${@:2}" >"$TMP/house/$1"; }
layers() { try "$ROOT/scripts/layers" "$TMP/house"; }

house
put src/base/err.h '#include <stdio.h>'
put src/plan/text.h '#include "base/err.h"'
put src/plan/text.c '#include "plan/text.h"'
put src/exec/run.c '  #  include "plan/text.h"' '#include "base/err.h"'
put tui/view.c '#include "exec/run.h"'
put src/cli/main.c '#include "tui/view.h"'
layers
exits 0 "includes of earlier rooms and of the own header are in order"

put src/base/err.c '#include "plan/text.h"'
layers
exits 1 "an include of a later room is a fault"
like "$out" 'src/base/err.c:1: base includes "plan/text.h"' "and said with file and line"
rm "$TMP/house/src/base/err.c"

put src/exec/run.c '#include "tui/view.h"'
layers
exits 1 "the terminal is a later room than the engine"
rm "$TMP/house/src/exec/run.c"

put src/plan/a.c '#include "plan/b.h"'
put src/plan/b.h '#include "plan/c.h"'
put src/plan/c.c '#include "plan/a.h"'
layers
exits 1 "a circle of modules inside a room is a fault"
like "$out" 'plan/a -> plan/b -> plan/c -> plan/a' "and shown whole"
put src/plan/c.c '#include "plan/text.h"'
layers
exits 0 "without its last include there is no circle"

put src/plan/d.c '#include "text.h"'
layers
exits 1 "an include without its room is a fault"
put src/plan/d.c '#include "attic/text.h"'
layers
exits 1 "an include of a room that is not in the order is a fault"
put src/plan/d.c ''
mkdir "$TMP/house/src/attic" && put src/attic/x.c ''
layers
exits 1 "a room that is not in the order is a fault"

house
layers
exits 1 "a house without files proves nothing"

try "$ROOT/scripts/layers" "$ROOT"
exits 0 "this house is in order"
done_testing
