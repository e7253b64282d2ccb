#!/usr/bin/env python3
"""Runs the examples of docs/recording.md, section 7, on a store, and compares the tables that they make.

    scripts/join_examples.py STORE

Ends with 1 where the tables differ, or a run of round trips is missing. Needs the packages duckdb, polars, pandas and
pyarrow.
"""

import os
import pathlib
import re
import sys
import tempfile

import duckdb

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs/recording.md"
COLUMNS = ["run", "transport", "loads", "n", "p50_ns", "p99_ns"]


def examples():
    """Name and text of each example."""
    section = re.search(r"^## 7\. .*?(?=^## 8\. )", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL).group()
    return re.findall(r"^```(?:sql|python)\n(?:--|#) (\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def table(name, text):
    """The rows that an example makes, in the order of runs. Quantiles are rounded: the readers add in different orders."""
    if name == "DuckDB":
        made = duckdb.sql(text).pl()
    else:
        names = {}
        exec(text, names)
        made = names["table"]
    rows = made.to_dicts() if hasattr(made, "to_dicts") else made.to_dict("records")
    plain = [tuple(round(row[name], 3) if name.endswith("_ns") else row[name] for name in COLUMNS) for row in rows]
    return sorted(plain)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    store = pathlib.Path(sys.argv[1]).resolve()
    runs = len(list(store.glob("*/probes.parquet")))
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        os.symlink(store, "latlab-runs")
        tables = {name: table(name, text) for name, text in examples()}
        os.chdir("/")
    if list(tables) != ["DuckDB", "polars", "pandas"]:
        sys.exit(f"fault: {DOCUMENT} has the examples {list(tables)}")
    for name, rows in tables.items():
        if rows != tables["DuckDB"] or len(rows) != runs:
            sys.exit(f"fault: {name} made of {runs} runs\n{rows}\nand DuckDB\n{tables['DuckDB']}")
    print(f"{runs} runs with their conditions, joined alike by {', '.join(tables)}")


if __name__ == "__main__":
    main()
