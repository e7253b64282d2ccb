#!/usr/bin/env bash
# Runs each fuzz target for some seconds, or those named, from the kept corpus: its executions, their rate, and the peak
# memory. Exit code 1 after a finding, whose input is in fuzz/artifacts. New inputs go to a temporary directory.
# fuzz_smoke.sh [SECONDS [TARGET...]]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-60}"
shift || true
# The target `recording` writes files: in memory, if there is such a file system.
memory=/dev/shm
[ -w "$memory" ] || memory="${TMPDIR:-/tmp}"
found="$(mktemp --directory --tmpdir="$memory" latlab-fuzz.XXXXXX)"
trap 'rm -rf "$found"' EXIT
mkdir "$found/tmp"
export TMPDIR="$found/tmp"
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cargo +nightly fuzz list --fuzz-dir fuzz)
cargo +nightly fuzz build --fuzz-dir fuzz
failed=0
for target in "${targets[@]}"; do
    mkdir -p "$found/$target" "fuzz/corpus/$target"
    status=0
    cargo +nightly fuzz run --fuzz-dir fuzz "$target" "$found/$target" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=20 -print_final_stats=1 \
        >"$found/log" 2>&1 || status=$?
    stat() { sed -n "s/^stat::$1: *//p" "$found/log"; }
    printf '%s: %s executions, %s a second, %s MB at most\n' "$target" "$(stat number_of_executed_units)" \
        "$(stat average_exec_per_sec)" "$(stat peak_rss_mb)"
    if [ "$status" -ne 0 ]; then
        tail -n 40 "$found/log" >&2
        failed=1
    fi
done
exit "$failed"
