#!/usr/bin/env bash
# scripts/bootstrap on machines that are made up: no package is asked for or installed here.
. "$(dirname "$0")/../tap.sh"

bin=$TMP/bin
mkdir -p "$bin"
for tool in bash env awk; do ln -s "$(command -v $tool)" "$bin/$tool"; done
fake() { printf '#!/bin/bash\n%s\n' "$2" >"$bin/$1" && chmod +x "$bin/$1"; }
bootstrap() { try env PATH="$bin" "$ROOT/scripts/bootstrap" "$@"; }

bootstrap
exits 1 "without dpkg nothing can be installed"
like "$err" 'libhwloc-dev' "but what is needed is said"

fake dpkg-query 'shift 3 2>/dev/null; for p; do echo "$p installed"; done'
fake apt-get "echo \"\$*\" >>$TMP/asked"
fake apt-cache 'echo "$2 | 1.0 | source"'
fake id 'echo 1000'
bootstrap
exits 0 "a machine that has everything needs no rights"
is "$out$err" "" "and no words"
ok "no package source is asked" test ! -e "$TMP/asked"

fake dpkg-query 'shift 3; for p; do [ "$p" = jq ] || echo "$p installed"; done'
bootstrap
exits 1 "without root and sudo a missing package cannot be installed"
like "$err" 'apt-get install -y --no-install-recommends jq$' "the command that would is shown"
bootstrap run
exits 0 "what only tests need is no matter to run"

fake id 'echo 0'
bootstrap
exits 0 "root installs"
like "$(cat "$TMP/asked")" 'install -y -qq --no-install-recommends jq$' "just what is missing"

fake apt-cache 'true'
bootstrap
exits 1 "a package that no source offers is an error"
like "$err" 'no package source offers jq' "which names it"

fake dpkg-query 'shift 3; for p; do [ "$p" = pkgconf ] || echo "$p installed"; done'
bootstrap
exits 0 "one of two alternatives is enough"

bootstrap everything
exits 2 "an unknown word is wrong usage"
done_testing
