#!/usr/bin/env bash
# Makes pages of recordings and experiments with the binary LATLAB, and opens each in a headless Chromium:
#     scripts/report_pages.sh LATLAB PYTHON WORK
# PYTHON has the packages of scripts/browser.txt. Pages and screenshots stay in the directory WORK, which is made anew.
set -euo pipefail

[ $# -eq 3 ] || { echo "usage: $0 LATLAB PYTHON WORK" >&2; exit 2; }
latlab="$(realpath "$1")" python="$2" work="$3"
here="$(cd "$(dirname "$0")" && pwd)"
testdata="$here/../testdata"
rm -rf "$work"
mkdir -p "$work"
work="$(cd "$work" && pwd)"

# A recording whose tag and host are markup; the manifest has its checksum as docs/recording.md describes it.
make_hostile() {
    cp -r "$testdata/recordings/old/1.9-finished" "$work/hostile"
    "$python" - "$work/hostile/manifest.json" <<'PYTHON'
import json, pathlib, sys

def crc32c(data):
    sum = 0xFFFFFFFF
    for byte in data:
        sum ^= byte
        for _ in range(8):
            sum = (sum >> 1) ^ (0x82F63B78 if sum & 1 else 0)
    return sum ^ 0xFFFFFFFF

path = pathlib.Path(sys.argv[1])
manifest = json.loads(path.read_text())
manifest.pop("crc32c", None)
words = "</script><script>console.error('run')</script><img src=http://192.0.2.1/x onerror=fetch('/')>"
for tags in [manifest["condition"]["tags"], manifest["spec"]["tags"]]:
    tags["build"] = words
manifest["here"]["before"]["cpu_model"] = words * 50
covered = json.dumps(manifest, indent=2).removesuffix("\n}") + ',\n  "crc32c": "'
path.write_text(f'{covered}{crc32c(covered.encode()):08x}"\n}}\n')
PYTHON
}

failed=0

# A page, and how many marks of which class its figures have.
check() {
    local name="$1" marks="$2"
    shift 2
    (cd "$work" && "$latlab" report "$@" -q -o "$name.html" >/dev/null)
    echo "$marks" >"$work/$name.json"
    "$python" "$here/report_page.py" "$work/$name.html" "$work/$name.json" --screenshots "$work/$name" || failed=1
}

make_hostile
recordings="$testdata/recordings" experiments="$testdata/experiments/finished"
# Lost probes are 5 of 1,997, all in columns of their own; the tail has its 100 largest delays as points.
check recording '{"tail": {"line": 1, "dot": 100}, "percentiles": {"line": 1}, "over-time": {"dot": 5}}' \
    "$recordings/good/closed"
# The rates are offered, delivered and lost. Each of the 279 answered concurrent probes has a cell of its own, 6 were lost.
check stream '{"rates": {"line": 3}, "tail": {"line": 1, "dot": 100}, "over-time": {"cell": 279, "dot": 6},
    "host-busy": {"line": 2}, "host-frequency": {"line": 2}}' "$recordings/old/1.5-search"
# Six runs of each of four conditions, in one of which p99 is infinite. Four pairs have the baselines of the file: 11 quantiles
# each, but for two pairs with that condition p99 and p99.9; the fifth line is that of no change. The infinite runs of a
# condition are one mark at the end of its row, and a cell `lost`.
check experiment '{"forest": {"interval": 4}, "tail": {"line": 4, "band": 4}, "percentiles": {"line": 4, "band": 4},
    "shift": {"line": 5, "dot": 40, "band": 4}, "box-plots": {"box": 4, "dot": 24},
    "box-plots-p99": {"box": 3, "dot": 19}, "heat-map": {"cell": 4}, "heat-map-p99": {"cell": 4}}' "$experiments/factors"
# Four runs of the one target that answers; those of each of the other two are one mark of infinite runs.
check lost '{"tail": {"line": 1, "band": 1}, "percentiles": {"line": 1, "band": 1}, "box-plots": {"dot": 6, "box": 0},
    "box-plots-p99": {"dot": 6, "box": 0}}' "$experiments/lost"
# Four runs of each of seven conditions.
check recipe '{"forest": {"interval": 3}, "tail": {"line": 7, "band": 7}, "percentiles": {"line": 7, "band": 7},
    "box-plots": {"dot": 28, "box": 0}, "sweep": {"dot": 7, "line": 3}}' "$experiments/wakeup-governor"
# Of the second run more than one in a hundred probes got no answer: its p99 is infinite, a mark at the end of its row.
check several '{"tail": {"line": 2, "dot": 200}, "percentiles": {"line": 2}, "box-plots": {"dot": 2},
    "box-plots-p99": {"dot": 2}}' "$recordings/good/closed" "$recordings/good/scheduled"
check hostile '{"tail": {"line": 1, "dot": 100}, "percentiles": {"line": 1}, "over-time": {"cell": 279, "dot": 6},
    "host-busy": {"line": 2}, "host-frequency": {"line": 2}}' "$work/hostile"
exit "$failed"
