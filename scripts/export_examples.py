#!/usr/bin/env python3
"""Exports a store, runs the examples of docs/export.md on it, and compares the tables that they make with each other and
with latlab's own counts.

    scripts/export_examples.py LATLAB STORE

Ends with 1 where a reader disagrees. Needs the packages duckdb, polars, pandas and pyarrow, gnuplot, and R without
packages of its own.
"""

import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import duckdb
import polars as pl
import pyarrow.parquet as pq

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent / "docs/export.md"
COLUMNS = ["run", "loads", "n", "p50_ns", "p99_ns"]
READERS = ["DuckDB", "polars", "pandas", "R"]


def examples():
    """Name and text of each example."""
    blocks = re.findall(r"^```(?:sql|python|r|gnuplot)\n(?:--|#) (\w+)\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    return dict(blocks)


def table(name, text):
    """The rows that an example makes, in the order of runs. Quantiles are rounded: the readers add in different orders."""
    if name == "DuckDB":
        made = duckdb.sql(text).pl()
    elif name == "R":
        made = table_of_r(text)
    else:
        names = {}
        exec(text, names)
        made = names["table"]
    rows = made.to_dicts() if hasattr(made, "to_dicts") else made.to_dict("records")
    plain = [tuple(round(row[name], 3) if name.endswith("_ns") else row[name] for name in COLUMNS) for row in rows]
    return sorted(plain)


def table_of_r(text):
    """The table of an example in R."""
    # R ends at the first error; 15 digits are all that write.csv writes.
    subprocess.run(["Rscript", "--vanilla", "-"], input=f'{text}\nwrite.csv(table, "r.csv", row.names = FALSE)\n', check=True, text=True)
    with open("r.csv", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    numbers = {"n": int, "p50_ns": float, "p99_ns": float}
    return pl.DataFrame([{name: numbers.get(name, str)(row[name]) for name in COLUMNS} for row in rows])


def forms_agree():
    """Compares the same rows in the three forms, value by value; returns their number."""
    parquet = pq.read_table("runs.parquet")
    expected = pl.from_arrow(parquet)
    if parquet.schema.metadata.get(b"latlab.export") != b"1":
        sys.exit("fault: the metadata of the Parquet file lack latlab.export")
    with open("runs.jsonl", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    if rows != expected.to_dicts():
        sys.exit("fault: JSON lines and Parquet differ")
    csv = pl.read_csv("runs.csv", schema=dict(expected.schema))
    if not csv.equals(expected):
        sys.exit("fault: CSV and Parquet differ")
    return len(rows)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    latlab, store = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()

    def run(*arguments):
        return subprocess.run([latlab, *map(str, arguments)], check=True, capture_output=True, text=True).stdout

    recordings = sorted(path.parent for path in store.glob("*/probes.parquet"))
    document = json.loads(run("summary", *recordings, "--json"))
    summaries = document.get("summaries", [document])
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        for name in ["runs.parquet", "runs.csv", "runs.jsonl"]:
            run("export", store, "--kind", "ping", "-o", name)
        run("export", recordings[0], "--histogram", "-o", "bins.csv")
        rows, texts = forms_agree(), examples()
        tables = {name: table(name, texts[name]) for name in READERS}
        subprocess.run(["gnuplot", "-"], input=texts["gnuplot"], check=True, text=True)
        drawn = pathlib.Path("bins.svg").read_text()
        os.chdir("/")
    for name, made in tables.items():
        if made != tables["DuckDB"]:
            sys.exit(f"fault: {name} made\n{made}\nand DuckDB\n{tables['DuckDB']}")
    counted = sorted((summary["run"], summary["answered"]) for summary in summaries)
    if [(row[0], row[2]) for row in tables["DuckDB"]] != counted:
        sys.exit(f"fault: the readers counted\n{tables['DuckDB']}\nand latlab\n{counted}")
    if "<path" not in drawn and "<polygon" not in drawn:
        sys.exit("fault: gnuplot has drawn nothing")
    print(f"{rows} rows of {len(counted)} runs, read alike by {', '.join(READERS)}; the bins drawn by gnuplot")


if __name__ == "__main__":
    main()
