#!/usr/bin/env bash
# Runs each fuzz target for some seconds, or those named, from the kept corpus; new inputs go to a temporary directory.
# fuzz_smoke.sh [SECONDS [TARGET...]]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-60}"
shift || true
found="$(mktemp --directory)"
trap 'rm -rf "$found"' EXIT
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(sed -n 's/^name = "\(.*\)"$/\1/p' fuzz/Cargo.toml | tail -n +2)
for target in "${targets[@]}"; do
    mkdir -p "$found/$target" "fuzz/corpus/$target"
    echo "=== $target"
    cargo +nightly fuzz run --fuzz-dir fuzz "$target" "$found/$target" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=20 -print_final_stats=1 \
        >"$found/log" 2>&1 || { tail -40 "$found/log"; exit 1; }
    grep -E "^stat::(number_of_executed_units|peak_rss_mb)" "$found/log"
done
