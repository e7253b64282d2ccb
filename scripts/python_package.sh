#!/usr/bin/env bash
# Builds the Python package with the binary LATLAB in it, installs its wheel, checks its types, tests it, executes its
# notebook:
#     scripts/python_package.sh LATLAB PYTHON WORK
# PYTHON is that of a venv with the packages of scripts/python_package.txt, into which the wheel is installed. Wheel and
# executed notebook stay in the directory WORK, which is made anew.
set -euo pipefail

[ $# -eq 3 ] || { echo "usage: $0 LATLAB PYTHON WORK" >&2; exit 2; }
LATLAB_BINARY="$(realpath "$1")"
LATLAB_TAG="linux_$(uname -m)"
# Not resolved: the link in the venv is what makes it the venv's.
python="$(cd "$(dirname "$2")" && pwd)/$(basename "$2")"
here="$(cd "$(dirname "$0")" && pwd)"
# As it is installed.
LATLAB="$(dirname "$python")/latlab"
export LATLAB LATLAB_BINARY LATLAB_TAG
rm -rf "$3"
mkdir -p "$3"
work="$(cd "$3" && pwd)"
export PYTHONDONTWRITEBYTECODE=1 MPLCONFIGDIR="$work/matplotlib"

# From a copy, so that nothing is written to the sources.
cp -r "$here/../python" "$work/source"
cd "$work/source"
"$python" -m build --no-isolation --outdir "$work/dist" . >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$work"/dist/latlab-*.whl

"$python" -m mypy --cache-dir "$work/mypy"
(cd "$here/../python" && "$python" -m pytest -q -p no:cacheprovider --basetemp "$work/tests")

cd "$work"
"$python" - "$work/source/examples/pi-roundtrip.ipynb" executed.ipynb <<'PYTHON'
"""Executes the notebook in this directory, and checks that it has its tables and plots."""
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
assert not any(cell.get("outputs") for cell in notebook.cells), "the notebook is kept without outputs"
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
kinds = [kind for output in outputs for kind in output.get("data", {})]
assert kinds.count("image/png") == 2 and kinds.count("text/html") == 3, kinds
print("".join(output["text"] for output in outputs if output.output_type == "stream"), end="")
table = next(output["data"]["text/plain"] for output in outputs if "text/html" in output.get("data", {}))
print(table)
assert table.count("measured here") == 3, "a condition has no figures"
PYTHON
echo "the Python package was built, checked and tested; its notebook is $work/executed.ipynb"
