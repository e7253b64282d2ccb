"""What `latlab summary` computes of a closed-loop recording, in one DuckDB query over its Parquet file.

Prints JSON: the figures, the seconds that the query took, and by how much it raised the peak of
resident memory. Importing and connecting are not counted: they are not DuckDB's work on the data.
"""

import json
import sys
import time
from pathlib import Path

import duckdb

QUANTILES = [0.5, 0.9, 0.99, 0.999, 0.9999]
METRICS = {
    "round_trip_delay": "rtt",
    "round_trip_delay_less_dwell": "rtt - dwell",
    "reflector_dwell": "dwell",
    "pdv": "rtt - fastest",
    "ipdv": "rtt - previous",
}

QUERY = """
with probes as (
    select seq, fate, received_ns - sent_ns as rtt, reflector_sent_ns - reflector_received_ns as dwell
    from read_parquet(?) where phase = 'measure'
), related as (
    select *, (select min(rtt) from probes) as fastest, lag(rtt) over (order by seq) as previous from probes
)
select count(*) as sent, count(*) filter (where fate <> 'answered') as unanswered, {columns} from related
"""


def columns():
    """Statistics of each metric as one struct."""
    for name, expression in METRICS.items():
        value = f"({expression})"
        yield (
            f"{{'n': count({value}), 'min': min({value}), 'mean': avg({value}), 'max': max({value}), "
            f"'stddev': stddev_samp({value}), 'quantiles': quantile_cont({value}, {QUANTILES})}} as {name}"
        )


def memory(field):
    """A line of this process's status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"error: the kernel does not tell {field}")


def main():
    recording = Path(sys.argv[1])
    connection = duckdb.connect()
    query = QUERY.format(columns=", ".join(columns()))
    before = memory("VmRSS")
    start = time.perf_counter()
    row = connection.execute(query, [str(recording / "probes.parquet")])
    names = [column[0] for column in row.description]
    figures = dict(zip(names, row.fetchone()))
    seconds = time.perf_counter() - start
    peak = memory("VmHWM")
    print(json.dumps({"seconds": seconds, "memory_bytes": peak - before, "figures": figures}, default=str))


if __name__ == "__main__":
    main()
