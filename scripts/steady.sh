#!/usr/bin/env bash
# Whether the tests pass on a busy machine: beside `stress-ng --cpu 4`, those that depend on time 20 times in a row, and
# all of them 3 times. Those that depend on time are the modules of the CLI tests that use `precedence()`, `flooding()` or
# `measured()`, and the binaries below; all others run only in the latter. A test that is skipped fails, and so does a run
# of more than 30 minutes. The output of a failed run stays in target/steady-N.log. Takes about 105 minutes on two cores.
# Other counts: scripts/steady.sh TIMES SUITES
set -euo pipefail
cd "$(dirname "$0")/.."

times="${1:-20}"
suites="${2:-3}"
# Tests of the binary that need a CPU or the network in time or measure on a schedule, by their modules; and other binaries
# that measure, which run at the same time.
modules="$(grep -lE '(precedence|flooding|measured)\(\)' crates/latlab/tests/cli/*.rs | sed 's|.*/\(.*\)\.rs|\1::|')"
binaries=(--test docs --test lab --test streaming --test strace)
logs="${CARGO_TARGET_DIR:-target}"
failed=0
ran=0
export CI=true

command -v stress-ng >/dev/null || {
    echo "error: \`stress-ng\` is missing: apt-get install stress-ng" >&2
    exit 1
}
[ "$(id -u)" = 0 ] || {
    echo "error: without root many tests are skipped, which fails here" >&2
    exit 1
}
cargo test --workspace --no-run
stress-ng --cpu 4 --quiet &
stress=$!
trap 'kill $stress; wait' EXIT

is_busy() {
    kill -0 "$stress" || {
        echo "error: \`stress-ng\` has ended: the runs so far were not all beside it" >&2
        exit 1
    }
}

# The name of the run, and the command.
run() {
    local name="$1" started=$SECONDS status=0 log
    shift
    ran=$((ran + 1))
    log="$logs/steady-$ran.log"
    is_busy
    "$@" >"$log" 2>&1 || status=$?
    if [ $status = 0 ]; then
        printf '%s passed in %d s\n' "$name" $((SECONDS - started))
        rm "$log"
    else
        printf '%s FAILED in %d s\n' "$name" $((SECONDS - started))
        grep -q '^failures:$' "$log" && sed -n '/^failures:$/,$p' "$log" || tail -n 50 "$log"
        failed=$((failed + 1))
    fi
    is_busy
}

time_dependent() {
    local others status=0
    # Without this the shell would let processes in the background ignore both signals.
    env --default-signal=INT,QUIT timeout 1800 cargo test "${binaries[@]}" &
    others=$!
    # shellcheck disable=SC2086 # one word for each module
    timeout 1800 cargo test --test cli -- $modules || status=$?
    wait "$others" && return "$status"
}

for number in $(seq "$times"); do
    run "time-dependent tests, $number of $times:" time_dependent
done
for number in $(seq "$suites"); do
    run "all tests, $number of $suites:" timeout 1800 cargo test --workspace --no-fail-fast
done
[ $failed = 0 ] || {
    echo "$failed runs failed"
    exit 1
}
