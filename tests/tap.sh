# tap.sh -- bash tests speak TAP, like tap.h: source it, check behaviours, end with done_testing.
#
#     . "$(dirname "$0")/../tap.sh"
#     try "$HPBENCH" run -m nosuch -c host:4 -s dp=4
#     is "$status" 2 "an unknown model is a usage error"
#     like "$err" 'nosuch' "and is named"
#     done_testing
#
# $ROOT is the checkout, $HPBENCH the program under test, $TMP a folder of this test alone that is
# removed at its end; the program's own files go there too, so that no test sees the user's.

set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
HPBENCH=${HPBENCH:-$ROOT/hpbench}
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
export XDG_CONFIG_HOME=$TMP/config XDG_STATE_HOME=$TMP/state HPBENCH
tap_run=0 tap_failed=0

# try COMMAND...: runs it without input and sets $status, $out, $err; at most 60 s (TRY_SECONDS).
try() {
    timeout "${TRY_SECONDS:-60}" "$@" >"$TMP/.out" 2>"$TMP/.err" </dev/null
    status=$?
    out=$(tr -d '\0' <"$TMP/.out") err=$(tr -d '\0' <"$TMP/.err")
}

# diag TEXT: shown by prove, as what belongs to a failure.
diag() { printf '%s\n' "$*" | sed 's/^/# /' >&2; }

# pass NAME, fail NAME [WHY...]
pass() { printf 'ok %d - %s\n' $((++tap_run)) "${1//#/=}"; }
fail() {
    printf 'not ok %d - %s\n' $((++tap_run)) "${1//#/=}"
    tap_failed=$((tap_failed + 1))
    diag "failed at ${BASH_SOURCE[2]##*/}:${BASH_LINENO[1]}"
    shift
    for why; do diag "$why"; done
}

# ok NAME COMMAND...: the command succeeds.
ok() {
    local name=$1
    shift
    if "$@" >"$TMP/.ok" 2>&1; then pass "$name"; else fail "$name" "$* failed:" "$(head -n 20 "$TMP/.ok")"; fi
}

# is GOT WANT NAME; like GOT REGEX NAME; unlike GOT REGEX NAME (extended regular expressions)
is() { if [ "$1" = "$2" ]; then pass "$3"; else fail "$3" "got:    $1" "wanted: $2"; fi; }
like() { if [[ $1 =~ $2 ]]; then pass "$3"; else fail "$3" "got:    $1" "to match: $2"; fi; }
unlike() { if [[ $1 =~ $2 ]]; then fail "$3" "got:    $1" "not to match: $2"; else pass "$3"; fi; }

# exits STATUS NAME: the last try ended with this status; its messages are shown where it did not.
exits() { if [ "$status" -eq "$1" ]; then pass "$2"; else fail "$2" "exit status $status, wanted $1" "$err"; fi; }

# skip N WHY: counts N checks that cannot run here as passed.
skip() {
    local i
    for ((i = 0; i < $1; i++)); do printf 'ok %d # SKIP %s\n' $((++tap_run)) "$2"; done
}

# done_testing prints the plan and ends the test.
done_testing() {
    printf '1..%d\n' "$tap_run"
    [ "$tap_failed" -eq 0 ] && [ "$tap_run" -gt 0 ]
    exit
}
