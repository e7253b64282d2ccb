#!/usr/bin/env python3
"""Reads a recording with DuckDB and with pyarrow, and checks it against docs/recording.md and its manifest.

    scripts/read_recording.py RECORDING…

Ends with 1 where a reader and the documentation disagree. Needs the packages duckdb and pyarrow.
"""

import json
import pathlib
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

NANOSECONDS = [
    "due_ns", "sent_ns", "received_ns", "reflector_received_ns", "reflector_sent_ns", "tx_sched_ns", "tx_software_ns",
    "tx_hardware_ns", "rx_software_ns", "rx_hardware_ns", "reflector_rx_software_ns", "reflector_tx_software_ns",
]
# name → (type in pyarrow, type in DuckDB, whether null is allowed), in the order of the file
COLUMNS = {
    "seq": (pa.uint64(), "UBIGINT", False),
    "phase": (pa.string(), "VARCHAR", False),
    **{name: (pa.int64(), "BIGINT", True) for name in NANOSECONDS},
    "size_bytes": (pa.uint32(), "UINTEGER", False),
    "sent_cpu": (pa.uint16(), "USMALLINT", True),
    "received_cpu": (pa.uint16(), "USMALLINT", True),
    "reflector_cpu": (pa.uint16(), "USMALLINT", True),
    "fate": (pa.string(), "VARCHAR", False),
    "error": (pa.int32(), "INTEGER", True),
    "duplicates": (pa.uint16(), "USMALLINT", False),
    "reordered": (pa.bool_(), "BOOLEAN", False),
}
HOST_HEAD = {
    "host": (pa.string(), "VARCHAR", False),
    "seq": (pa.uint64(), "UBIGINT", False),
    "cpu": (pa.uint16(), "USMALLINT", True),
    "start_ns": (pa.int64(), "BIGINT", False),
    "end_ns": (pa.int64(), "BIGINT", False),
    "sampler_cpu": (pa.uint16(), "USMALLINT", True),
}
OF_A_CPU = ["busy_ns", "interrupt_ns", "idle_ns", "steal_ns", "frequency_khz", "interrupts", "backlog_drops", "throttles",
            *(f"idle_state{state}_ns" for state in range(10))]
OF_A_HOST = ["context_switches", "all_interrupts", "all_softirqs", "udp_receive_drops", "nic_receive_drops",
             "nic_send_drops", "temperature_millicelsius", "cooling_state", "firmware_throttled", "own_ns", "sampler_ns"]
HOST_COLUMNS = {**HOST_HEAD, **{name: (pa.int64(), "BIGINT", True) for name in OF_A_CPU + OF_A_HOST}}
FATES = {"answered", "late", "lost", "send_failed", "not_sent"}

faults = []


def check(what, found, expected):
    if found != expected:
        faults.append(f"{what}: found {found!r}, expected {expected!r}")


def with_pyarrow(path, rows):
    table = pq.read_table(path)
    check("pyarrow rows", table.num_rows, rows)
    check("pyarrow columns", table.column_names, list(COLUMNS))
    for name, (kind, _, nullable) in COLUMNS.items():
        field = table.schema.field(name)
        check(f"pyarrow type of {name}", field.type, kind)
        check(f"pyarrow nullability of {name}", field.nullable, nullable)
    groups = pq.ParquetFile(path).metadata
    check("rows of the largest row group", all(
        groups.row_group(group).num_rows <= 131072 for group in range(groups.num_row_groups)), True)
    check("format key", groups.metadata.get(b"latlab.format", b"").startswith(b"1."), True)
    return {
        "rows": table.num_rows,
        **{name: (len(table[name]) - table[name].null_count) for name in COLUMNS},
        "delays": sum(
            received - sent for sent, received in zip(table["sent_ns"].to_pylist(), table["received_ns"].to_pylist())
            if received is not None and sent is not None),
    }


def with_duckdb(path, rows):
    source = f"read_parquet('{path}')"
    described = duckdb.sql(f"describe select * from {source}").fetchall()
    check("DuckDB columns", [row[0] for row in described], list(COLUMNS))
    for name, kind, *_ in described:
        check(f"DuckDB type of {name}", kind, COLUMNS.get(name, (None, None))[1])
    counted = ", ".join(f"count({name})" for name in COLUMNS)
    values = duckdb.sql(f"select count(*), {counted}, coalesce(sum(received_ns - sent_ns), 0) from {source}").fetchall()[0]
    check("DuckDB rows", values[0], rows)
    words = {row[0] for row in duckdb.sql(f"select distinct fate from {source}").fetchall()}
    check("unknown fates", words - FATES, set())
    words = {row[0] for row in duckdb.sql(f"select distinct phase from {source}").fetchall()}
    check("unknown phases", words - {"warmup", "measure"}, set())
    distinct = duckdb.sql(f"select count(distinct seq) from {source}").fetchall()[0][0]
    check("distinct seq", distinct, rows)
    wrong = duckdb.sql(f"""select count(*) from {source} where
        (fate in ('answered', 'late')) <> (received_ns is not null)
        or (fate = 'not_sent') <> (sent_ns is null)
        or (fate = 'send_failed') <> (error is not null)
        or (duplicates > 0 or reordered) and received_ns is null""").fetchall()[0][0]
    check("rows whose fate and stamps disagree", wrong, 0)
    return dict(zip(["rows", *COLUMNS, "delays"], values))


def host_samples(path, manifest):
    """Checks host.parquet; says what it holds."""
    rows = manifest.get("host_rows")
    check("host.parquet there", path.exists(), rows is not None)
    if not path.exists():
        return "no host samples"
    table = pq.read_table(path)
    check("host rows", table.num_rows, rows)
    check("host columns", table.column_names, list(HOST_COLUMNS))
    for name, (kind, _, nullable) in HOST_COLUMNS.items():
        field = table.schema.field(name)
        check(f"pyarrow type of {name}", (field.type, field.nullable), (kind, nullable))
    source = f"read_parquet('{path}')"
    for name, kind, *_ in duckdb.sql(f"describe select * from {source}").fetchall():
        check(f"DuckDB type of {name}", kind, HOST_COLUMNS.get(name, (None, None))[1])
    counted = ", ".join(f"count({name})" for name in HOST_COLUMNS)
    duck = list(duckdb.sql(f"select {counted} from {source}").fetchall()[0])
    check("host values in both readers", duck, [len(table[name]) - table[name].null_count for name in HOST_COLUMNS])
    strangers = " or ".join([f"(cpu is null and {name} is not null)" for name in OF_A_CPU]
                            + [f"(cpu is not null and {name} is not null)" for name in OF_A_HOST])
    check("host rows with another row's columns",
          duckdb.sql(f"select count(*) from {source} where {strangers}").fetchall()[0][0], 0)
    check("hosts", {row[0] for row in duckdb.sql(f"select distinct host from {source}").fetchall()} - {"local", "peer"}, set())
    backward = duckdb.sql(f"""select count(*) from (select start_ns < lag(end_ns) over (partition by host, cpu order by seq)
        or end_ns < start_ns or busy_ns < lag(busy_ns) over (partition by host, cpu order by seq) as wrong from {source})
        where wrong""").fetchall()[0][0]
    check("samples that overlap or count backwards", backward, 0)
    samples, cpus = duckdb.sql(f"select count(distinct (host, seq)), count(distinct cpu) from {source}").fetchall()[0]
    return f"{samples} host samples of {cpus} CPUs"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for directory in map(pathlib.Path, sys.argv[1:]):
        manifest = json.loads((directory / "manifest.json").read_text())
        path = directory / "probes.parquet"
        check("format", manifest["format"]["major"], 1)
        check("size", {row[0] for row in duckdb.sql(f"select distinct size_bytes from '{path}'").fetchall()}
              - {manifest["spec"]["work"]["size_bytes"]}, set())
        arrow, duck = with_pyarrow(path, manifest["rows"]), with_duckdb(path, manifest["rows"])
        check("what both readers counted", arrow, duck)
        hosts = host_samples(directory / "host.parquet", manifest)
        print(f"{directory}: {manifest['rows']} rows, {arrow['received_ns']} answered, {hosts}, read alike by "
              f"pyarrow {pa.__version__} and DuckDB {duckdb.__version__}")
    for fault in faults:
        print(f"fault: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
