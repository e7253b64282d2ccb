#!/usr/bin/env bash
# Builds the book from docs/, and fails where a link of it or of a Markdown file leads nowhere:
#     scripts/book.sh TOOLS BOOK
# TOOLS is the folder with the programs of scripts/book.txt, BOOK the folder of the book. Links to other sites are not
# followed.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: $0 TOOLS BOOK" >&2; exit 2; }
tools="$(realpath "$1")"
book="$(realpath --canonicalize-missing "$2")"
cd "$(dirname "$0")/.."
"$tools/mdbook" build --dest-dir "$book"
"$tools/lychee" --offline --include-fragments --no-progress --root-dir "$book" ./*.md python/*.md 'docs/**/*.md' "$book"
