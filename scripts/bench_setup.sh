#!/usr/bin/env bash
# Installs what the benches compare with: sockperf, iperf3, stress-ng, ministat, hyperfine, cyclictest (rt-tests), ddsperf
# (cyclonedds-tools), and DuckDB in a virtual environment below target/. The tests and scripts/dist.sh use the latter too.
# A bench whose peer is missing fails; this is where peers come from.
set -euo pipefail
cd "$(dirname "$0")/.."

venv="${CARGO_TARGET_DIR:-target}/readers"
missing=()
command -v sockperf >/dev/null || missing+=(sockperf)
command -v iperf3 >/dev/null || missing+=(iperf3)
command -v stress-ng >/dev/null || missing+=(stress-ng)
command -v ministat >/dev/null || missing+=(ministat)
command -v hyperfine >/dev/null || missing+=(hyperfine)
command -v cyclictest >/dev/null || missing+=(rt-tests)
command -v ddsperf >/dev/null || missing+=(cyclonedds-tools)
python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
if [ ${#missing[@]} -gt 0 ]; then
    [ "$(id -u)" = 0 ] || { echo "error: missing: ${missing[*]}; as root: apt-get install ${missing[*]}" >&2; exit 1; }
    export DEBIAN_FRONTEND=noninteractive
    apt-get update --quiet
    apt-get install --quiet --yes --no-install-recommends "${missing[@]}"
fi
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --requirement scripts/readers.txt
sockperf --version | head -n 1
iperf3 --version | head -n 1
stress-ng --version
cyclictest --help | head -n 1 || true
"$venv/bin/python" -c 'import duckdb, pyarrow; print("duckdb", duckdb.__version__, "pyarrow", pyarrow.__version__)'
