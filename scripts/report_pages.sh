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
check recording '{"tail": {"line": 1}, "over-time": {"dot": 5}}' "$recordings/good/closed"
check stream '{"rates": {}}' "$recordings/old/1.5-search"
check experiment '{"forest": {"interval": 4}, "box-plots": {"box": 4, "dot": 24}, "heat-map": {"cell": 4}}' \
    "$experiments/factors"
check lost '{}' "$experiments/lost"
check recipe '{}' "$experiments/wakeup-governor"
check several '{}' "$recordings/good/closed" "$recordings/good/scheduled"
check hostile '{}' "$work/hostile"
exit "$failed"
