#!/usr/bin/env bash
# Keeps of a fuzz target's corpus, and of the inputs in DIRECTORY, those that together have the same coverage.
# fuzz_minimise.sh TARGET [DIRECTORY]; LATLAB_FUZZ_MAX_LEN: leaves longer inputs out
set -euo pipefail
cd "$(dirname "$0")/.."
target="$1"
kept="fuzz/corpus/$target"
merged="$(mktemp --directory)"
trap 'rm -rf "$merged"' EXIT
mkdir -p "$kept"
cargo +nightly fuzz run --fuzz-dir fuzz "$target" "$merged" "$kept" ${2:+"$2"} -- \
    -merge=1 -use_value_profile=0 -max_len="${LATLAB_FUZZ_MAX_LEN:-4096}"
rm -rf "$kept"
cp -r "$merged" "$kept"
