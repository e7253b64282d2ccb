#!/usr/bin/env bash
# Makes pages of recordings and experiments with the binary LATLAB, and opens each in a headless Chromium:
#     scripts/report_pages.sh LATLAB PYTHON WORK [--screenshots]
# PYTHON has the packages of scripts/browser.txt. Pages and screenshots stay in the directory WORK, which is made anew.
set -euo pipefail

[ $# -eq 3 ] || [ "${4:-}" = --screenshots ] || { echo "usage: $0 LATLAB PYTHON WORK [--screenshots]" >&2; exit 2; }
latlab="$(realpath "$1")" python="$2" work="$3" screenshots="${4:-}"
here="$(cd "$(dirname "$0")" && pwd)"
testdata="$here/../testdata"
rm -rf "$work"
mkdir -p "$work"
work="$(cd "$work" && pwd)"

failed=0 about=""

# Rehearsals of the published experiments, beside the other checks: their figures do not matter. `lab` needs root.
recipes=(dds-pingpong pi-roundtrip pi-udp-load udp-loopback-matrix wakeup-governor)
declare -A rehearsals
for recipe in "${recipes[@]}"; do
    target=()
    [ "$recipe" != udp-loopback-matrix ] || [ "$(id -u)" = 0 ] || target=(local)
    "$latlab" run "$recipe" "${target[@]}" --quick --store "$work/$recipe" >"$work/$recipe.txt" 2>&1 &
    rehearsals[$recipe]=$!
done

# The recordings of hostile pages: made by a script, measured here, and copied since opening a recording may rewrite it.
"$python" "$here/hostile_recordings.py" "$testdata" "$work"
"$latlab" ping local -n 1 --warmup 0 -q -o "$work/one" >/dev/null
cp -r "$testdata/experiments/finished/lost/runs/20261122T205944Z-ping-51bd" "$work/silent"

# A page, and how many marks of which class its figures have.
check() {
    local name="$1" marks="$2"
    shift 2
    (cd "$work" && "$latlab" report "$@" -q -o "$name.html" >/dev/null)
    echo "$marks" >"$work/$name.json"
    "$python" "$here/report_page.py" "$work/$name.html" "$work/$name.json" ${about:+--about "$about"} ${screenshots:+"$screenshots" "$work/$name"} || failed=1
}

recordings="$testdata/recordings" experiments="$testdata/experiments/finished"
# Lost probes are 5 of 1,997, all in columns of their own; the tail has its 100 largest delays as points.
check recording '{"tail": {"line": 1, "dot": 100}, "percentiles": {"line": 1}, "over-time": {"dot": 5}}' \
    "$recordings/good/closed"
# The rates are offered, delivered and lost. Each of the 279 answered concurrent probes has a cell of its own, 6 were lost.
check stream '{"rates": {"line": 3}, "tail": {"line": 1, "dot": 100}, "over-time": {"cell": 279, "dot": 6},
    "host-busy": {"line": 2}, "host-frequency": {"line": 2}}' "$recordings/old/1.5-search"
# Six runs of each of four conditions, in one of which p99 is infinite. Four pairs have the baselines of the file: 11 quantiles
# each, but for two pairs with that condition p99 and p99.9; the rule is that of no change. The infinite runs of a
# condition are one mark at the end of its row.
check experiment '{"forest": {"interval": 4, "rule": 1}, "tail": {"line": 4, "band": 4}, "percentiles": {"line": 4, "band": 4},
    "shift": {"line": 4, "rule": 1, "dot": 40, "band": 4}, "box-plots": {"box": 4, "dot": 24},
    "box-plots-p99": {"box": 3, "dot": 19}}' "$experiments/factors"
# Four runs of the one target that answers; those of each of the other two are one mark of infinite runs.
check lost '{"tail": {"line": 1, "band": 1}, "percentiles": {"line": 1, "band": 1}, "box-plots": {"dot": 6, "box": 0},
    "box-plots-p99": {"dot": 6, "box": 0}}' "$experiments/lost"
# Four runs of each of seven conditions. One line is published and one predicted, three points are published.
check recipe '{"forest": {"interval": 3}, "tail": {"line": 7, "band": 7}, "percentiles": {"line": 7, "band": 7},
    "box-plots": {"dot": 28, "box": 0}, "sweep": {"dot": 10, "line": 5}}' "$experiments/wakeup-governor"
check several '{"page": {"figures": 3}, "tail": {"line": 2, "dot": 200}, "percentiles": {"line": 2}}' "$recordings/good/closed" "$recordings/good/scheduled"
check hostile '{"tail": {"line": 1, "dot": 100}, "percentiles": {"line": 1}, "over-time": {"cell": 279, "dot": 6},
    "host-busy": {"line": 2}, "host-frequency": {"line": 2}}' "$work/hostile"
check one-way '{"page": {"text": "backward 5.39 ± 15 µs; the bound is larger than the difference"}}' "$recordings/forms/far" --one-way
# One probe has no plots.
check one '{"page": {"figures": 0, "text": "Plots are missing: there is one probe."}}' "$work/one"
# Five lost probes, and no delay.
check silent '{"page": {"figures": 1, "text": "Plots of delays are missing: all of 5 probes count as lost or late."},
    "over-time": {"bar": 5}}' "$work/silent"
# Equal delays, of one run and of five runs each.
check equal '{"tail": {"line": 1, "dot": 1}, "percentiles": {"line": 1}, "histogram": {"bar": 1},
    "over-time": {"cell": 240}}' "$work/equal-0"
check equals '{"page": {"alike": true}, "forest": {"interval": 3}, "tail": {"line": 2, "band": 2}, "percentiles": {"line": 2, "band": 2},
    "shift": {"line": 1, "rule": 1, "dot": 11, "band": 1}, "box-plots": {"box": 2, "dot": 10},
    "box-plots-p99": {"box": 2, "dot": 10}}' \
    --group "before=$work/equal-[0-4]" --group "after=$work/equal-[5-9]"
# 1,000 recordings: a row each in the table, of which 400 are shown, and the first conditions, sizes and tags in figures.
check conditions '{"page": {"figures": 4, "still": true, "alike": true, "text": "The first 400 of 1,000 rows."}, "tail": {"line": 192, "dot": 0},
    "percentiles": {"line": 192}, "sweep": {"line": 10, "dot": 1000, "band": 10, "text": "<b>0</b>"}}' "$work/conditions"
for recipe in "${recipes[@]}"; do
    # 4: a run has a fatal caveat, as beside Chromium on a slow host; it has a page all the same.
    status=0
    wait "${rehearsals[$recipe]}" || status=$?
    case "$status" in 0 | 4) ;; *) cat "$work/$recipe.txt"; failed=1; continue ;; esac
    about="$here/../crates/latlab-plan/recipes/$recipe.about.toml" check "$recipe" '{}' "$work/$recipe"/*-experiment-*
done
exit "$failed"
