"""A recording: its manifest, its tables, its samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ._manifest import Manifest, check_format, condition_columns, factors_of, is_import, read_manifest
from ._metrics import DEFINITIONS, DWELL, PDV_OF, RATES, Definition, span_sample, value_sample
from ._parquet import ParquetTable, concatenated, require
from ._rates import RATE_COLUMNS, rate_sample
from ._sample import Sample, ShiftedSample
from .errors import DamagedError, LatlabError, UnfinishedError

if TYPE_CHECKING:
    import pandas
    import polars

TABLES = ("probes", "wakeups", "executions", "printed", "intervals", "values", "host")
_MAIN = {"ping": "probes", "wakeup": "wakeups", "stream": "intervals", "values": "values", "command": "executions"}
_MAIN_METRIC = {"ping": "round_trip_delay", "wakeup": "wakeup_latency", "stream": "delivered_rate"}
# The members of the manifest that have the number of rows of a table.
_ROWS = {
    "probes": "probe_rows",
    "wakeups": "wakeup_rows",
    "printed": "printed_rows",
    "intervals": "interval_rows",
    "host": "host_rows",
}
_PHASES = ("measure", "warmup", "all")


def to_pandas(table: pa.Table) -> pandas.DataFrame:
    """A frame with Arrow's types, which keep integers with nulls exact; the units are in `attrs["units"]`."""
    require("pandas")
    import pandas as pd

    def of(kind: pa.DataType) -> Any:
        return None if pa.types.is_dictionary(kind) else pd.ArrowDtype(kind)

    frame: pandas.DataFrame = table.to_pandas(types_mapper=of, ignore_metadata=True)
    frame.attrs["units"] = units(table.schema)
    return frame


def to_polars(table: pa.Table) -> polars.DataFrame:
    """A frame with the same types; polars keeps no units, which `Rows.units` has."""
    require("polars")
    import polars as pl

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def units(schema: pa.Schema) -> dict[str, str]:
    """Column → unit, for the columns that have one."""
    found = ((field.name, (field.metadata or {}).get(b"unit")) for field in schema)
    return {name: unit.decode() for name, unit in found if unit is not None}


class Rows:
    """Some columns and one phase of a table. Nothing is read before one of the methods is called."""

    def __init__(self, source: ParquetTable, columns: Sequence[str] | None, phase: str) -> None:
        if phase not in _PHASES:
            raise ValueError(f"a phase is one of {', '.join(_PHASES)}: {phase!r}")
        self._source = source
        self.columns = source.columns(columns)
        self._phase = phase if "phase" in source.schema.names else "all"
        self.schema = pa.schema([source.schema.field(name) for name in self.columns])

    def __repr__(self) -> str:
        return f"<latlab.Rows of {self._source.name}, phase {self._phase}, columns {', '.join(self.columns)}>"

    @property
    def units(self) -> dict[str, str]:
        """Column → unit, for the columns that have one."""
        return units(self.schema)

    def _groups(self) -> Iterator[pa.Table]:
        if self._phase == "all":
            yield from self._source.row_groups(self.columns)
            return
        for table in self._source.row_groups(list(dict.fromkeys([*self.columns, "phase"]))):
            of_phase = pc.is_in(table["phase"], value_set=pa.array([self._phase], pa.string()))
            yield table.filter(of_phase).select(self.columns)

    def iter_batches(self, batch_size: int = 65_536) -> Iterator[pa.RecordBatch]:
        """Batches of at most `batch_size` rows; memory holds one row group, of at most 131,072 rows."""
        for table in self._groups():
            yield from (batch for batch in table.to_batches(max_chunksize=batch_size) if batch.num_rows)

    def to_arrow(self) -> pa.Table:
        """All rows as a table of pyarrow; the metadata of each field have its unit."""
        return concatenated(list(self._groups()), self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a frame of pandas with Arrow's types; the units are in `attrs["units"]`."""
        return to_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """All rows as a frame of polars."""
        return to_polars(self.to_arrow())


class Recording:
    """The recording of one run. Files are opened when they are needed, and what is read is verified first."""

    def __init__(self, path: Path, verify: bool = True) -> None:
        self.path = path
        self._verify = verify
        self._opened: dict[str, ParquetTable] = {}

    def __repr__(self) -> str:
        return f"<latlab.Recording {self.path.name}>"

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest as it is in the file: docs/recording.md, section 2."""
        return read_manifest(self.path, self._verify)

    @property
    def kind(self) -> str:
        """`ping`, `stream`, `wakeup`, `command` or `values`."""
        return str(self.manifest["kind"])

    @property
    def run_id(self) -> str:
        """16 hexadecimal digits."""
        return str(self.manifest["run_id"])

    @property
    def started_at(self) -> str:
        """UTC, RFC 3339."""
        return str(self.manifest["started_at"])

    @property
    def ending(self) -> str:
        """`completed`, `interrupted`, `failed` or `recovered`; `measuring` if the recording is not finished."""
        return str(self.manifest["ending"])

    @property
    def format(self) -> tuple[int, int]:
        """Major and minor version of the format."""
        return check_format(self.manifest["format"], self.path / "manifest.json")

    @property
    def condition(self) -> dict[str, Any]:
        """The run as a flat list of factors, with loads, settings and tags."""
        return dict(self.manifest.get("condition") or {})

    @property
    def conditions(self) -> dict[str, Any]:
        """The columns that `latlab.frame` adds to the rows of the main table of this run."""
        return condition_columns(self.manifest)

    def _conditions_beside(self, table: str | None) -> dict[str, Any]:
        """The columns added to rows of `table`, or to figures of them; None is the main one.

        The probes of a stream have a size of their own: beside them that of its packets is `condition_stream_size_bytes`.
        """
        if self.kind != "stream" or table != "probes":
            return self.conditions
        renamed = {"condition_size_bytes": "condition_stream_size_bytes"}
        return {renamed.get(name, name): value for name, value in self.conditions.items()}

    @property
    def tags(self) -> dict[str, str]:
        """The tags of the run."""
        return dict(self.condition.get("tags") or {})

    @property
    def factors(self) -> dict[str, str]:
        """Option → value of the run's experiment; empty outside of one."""
        return factors_of(self.manifest)

    @property
    def is_warmup(self) -> bool:
        """Whether it is a warm-up run of an experiment, which is kept and not judged."""
        return bool((self.manifest.get("experiment") or {}).get("warmup"))

    @property
    def is_finished(self) -> bool:
        """Whether the rows are in tables, and no longer in the spool."""
        return self.ending != "measuring" and not (self.path / "events.spool").exists()

    @property
    def is_judged(self) -> bool:
        """Whether `latlab compare` judges it: no warm-up run, ended by its own rule or, alone, by a signal."""
        endings = ("completed",) if self.manifest.get("experiment") else ("completed", "interrupted")
        return self.ending in endings and not self.is_warmup

    def require_finished(self) -> None:
        """UnfinishedError if the rows are still in the spool, DamagedError if they are nowhere."""
        if self.is_finished:
            return
        spool = self.path / "events.spool"
        if not spool.exists():
            raise DamagedError(spool, "the run did not end, and its spool is missing")
        if _is_locked(spool):
            raise UnfinishedError(f"`{self.path}` is being measured: its rows are readable when the run has ended")
        raise UnfinishedError(
            f"the run of `{self.path}` did not end: its process died, or the disk was full; "
            f"`latlab summary {self.path}` finishes it"
        )

    @property
    def main_table(self) -> str:
        """The table that the kind of the run has; an error if this version does not know the kind."""
        try:
            return _MAIN[self.kind]
        except KeyError:
            raise LatlabError(
                f"`{self.path}` is of kind `{self.kind}`, which this version does not know; "
                f"its tables are {', '.join(self.tables) or 'none'}"
            ) from None

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that there are."""
        return tuple(name for name in TABLES if (self.path / f"{name}.parquet").exists() or self._expected(name))

    def _expected(self, name: str) -> int | None:
        """The number of rows that the manifest promises for a table; None if it promises none."""
        rows = self.manifest.get(_ROWS.get(name, ""))
        if rows is None and name == _MAIN.get(self.kind):
            rows = self.manifest.get("rows")
        return rows if isinstance(rows, int) else None

    def _open(self, name: str) -> ParquetTable:
        if name in self._opened:
            return self._opened[name]
        self.require_finished()
        if name not in TABLES:
            raise ValueError(f"a table is one of {', '.join(TABLES)}: {name!r}")
        if name not in self.tables and name != _MAIN.get(self.kind):
            raise LatlabError(f"`{self.path}` has no table `{name}`; it has {', '.join(self.tables) or 'none'}")
        self._opened[name] = self._opening(name, self._verify)
        return self._opened[name]

    def _opening(self, name: str, verify: bool) -> ParquetTable:
        file = self.path / f"{name}.parquet"
        checksums = (self.manifest.get("checksums") or {}).get(file.name)
        return ParquetTable(file, name, self._expected(name), checksums, verify)

    def rows(self, table: str | None = None, *, columns: Sequence[str] | None = None, phase: str = "measure") -> Rows:
        """Rows of a table, by default of the main one and of the measured phase.

        `phase` is `measure`, `warmup` or `all`; samples of hosts have no phase. Only `columns` are read.
        """
        return Rows(self._open(table or self.main_table), columns, phase)

    def table(
        self, table: str | None = None, *, columns: Sequence[str] | None = None, phase: str = "measure"
    ) -> pa.Table:
        """The same rows as a table of pyarrow, whose fields have the metadata `unit`."""
        return self.rows(table, columns=columns, phase=phase).to_arrow()

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that the run can have, the main one first."""
        names: list[str] = []
        if self.kind == "stream" and self._packet_bytes is not None:
            names += [rate for rate in RATES if rate != "offered_rate" or self._knows_sender]
        if "values" in self.tables:
            groups = self._open("values").row_groups(["metric"])
            names += sorted({str(name) for table in groups for name in table["metric"].unique().to_pylist()})
        names += [name for name, definition in DEFINITIONS.items() if self._can_have(definition)]
        names += ["pdv"] if self.kind in PDV_OF else []
        return tuple(dict.fromkeys(names))

    def _can_have(self, definition: Definition) -> bool:
        """Whether the run has the instants of a metric: its table, a schedule, and stamps of the reflector."""
        if definition.table not in self.tables or (definition.on_schedule and not self._is_scheduled):
            return False
        # Which probes were sent one after the other is unknown if some have no row.
        if definition.is_change and self._lost_without_row:
            return False
        needs_stamps = DWELL in (definition.span, definition.less)
        return not needs_stamps or self._has_stamps

    @property
    def _work(self) -> dict[str, Any]:
        return self.manifest["spec"].get("work") or {}

    @property
    def _is_import(self) -> bool:
        """Whether the rows are those of a log of another tool."""
        return is_import(self.manifest)

    @property
    def _knows_losses(self) -> bool:
        """Whether it is known what was lost: some logs state answers only."""
        return not self._is_import or self._work.get("states_losses") is not False

    @property
    def _lost_without_row(self) -> int:
        """The lost probes that only the totals of a log state: they have no row."""
        facts = (self.manifest.get("run") or {}).get("import") or {}
        found = facts.get("lost_without_row", 0)
        if type(found) is int and 0 <= found < 1 << 62:
            return found
        raise DamagedError(self.path / "manifest.json", f"its log lost {found!r} probes without a row")

    @property
    def _packet_bytes(self) -> int | None:
        """The payload of every packet of a stream; None where the manifest does not have it."""
        if self._is_import:
            found = self._work.get("size_bytes")
        else:
            size = self._work.get("size")
            found = size.get("bytes") if isinstance(size, dict) else None
        if found is None or (isinstance(found, int) and 0 < found < 1 << 32):
            return found
        raise DamagedError(self.path / "manifest.json", f"its packets have {found!r} bytes")

    @property
    def _probes(self) -> dict[str, Any]:
        """The specification of the probes: that of the run, or that of the probes beside a stream."""
        probes = self._work.get("probes")
        return probes if isinstance(probes, dict) else self._work

    @property
    def _is_scheduled(self) -> bool:
        """Whether probes have due times: a closed loop and a log of another tool have none."""
        schedule = self._probes.get("schedule")
        if not isinstance(schedule, dict):
            return False
        return not self._is_import and any(schedule.get(name) is not None for name in ("interval_ns", "mean_ns"))

    @cached_property
    def _has_stamps(self) -> bool:
        """Whether the reflector stamped the probes: a plain echo does not, a log may have stamps or not."""
        if not self._is_import:
            return self._probes.get("protocol") != "echo"
        groups = self._open("probes").row_groups(DWELL)
        return any(all(table[name].null_count < table.num_rows for name in DWELL) for table in groups)

    @cached_property
    def _knows_sender(self) -> bool:
        """Whether a stream has the counts of its sender: the log of a receiver alone does not."""
        if not self._is_import:
            return True
        groups = self._open("intervals").row_groups(["side"])
        return any(str(side) == "sender" for table in groups for side in table["side"].unique().to_pylist())

    @property
    def main_metric(self) -> str:
        """The metric that commands judge unless another one is named."""
        name = _MAIN_METRIC.get(self.kind) or next(iter(self.metrics), None)
        if name is None:
            raise LatlabError(f"`{self.path}` has no metric")
        return name

    def sample(self, metric: str | None = None) -> Sample:
        """All singletons of a metric over the measured phase: docs/metrics.md. By default of the main metric.

        ValueError if the metric is not one of `metrics`.
        """
        self.require_finished()
        name = metric or self.main_metric
        size_bytes = self._packet_bytes if self.kind == "stream" else None
        if name in RATES and self.kind == "stream" and size_bytes is None:
            raise ValueError(f"`{self.path.name}` has no metric `{name}`: the size of its packets is unknown")
        if name not in self.metrics:
            raise ValueError(f"`{self.path.name}` has no metric `{name}`; it has {', '.join(self.metrics) or 'none'}")
        sample = self._sample(name, size_bytes)
        sample.knows_losses = self._knows_losses
        return sample

    def _sample(self, name: str, size_bytes: int | None) -> Sample:
        if name in RATES and size_bytes is not None:
            intervals = self._measured("intervals", RATE_COLUMNS)
            return rate_sample(name, self._open("intervals").file, intervals, size_bytes)
        if name == "pdv" and self.kind in PDV_OF:
            return ShiftedSample(name, self._sample(PDV_OF[self.kind], None))
        if "values" in self.tables:
            sample = value_sample(name, self._measured("values", ["metric", "value_ns", "count"]))
        else:
            sample = span_sample(name, DEFINITIONS[name], self._measured)
        return sample._with_lost(self._lost_without_row) if name == self.main_metric else sample

    def _measured(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        source = self._open(table)
        source.require(columns)
        software = self.manifest.get("software")
        is_own = isinstance(software, dict) and software.get("name") == "latlab"
        for rows in self.rows(table, columns=columns)._groups():
            rows = _with_integers(source.file, rows)
            if is_own and table == "probes":
                _check_order(source.file, rows)
            yield rows

    def verify(self) -> None:
        """Compares every checksum of the recording; DamagedError at the first difference.

        Recordings of formats before 1.6 have none, for which this opens each table and does no more.
        """
        self.require_finished()
        read_manifest(self.path, verify=True)
        for name in self.tables:
            self._opening(name, verify=True).check()


_TEXTS = ("fate", "metric", "side")


def _with_integers(file: Path, rows: pa.Table) -> pa.Table:
    """`rows` with signed integers of 64 bits in all columns but those of text; counts and numbers are unsigned in the file."""
    fields = [field if field.name in _TEXTS else field.with_type(pa.int64()) for field in rows.schema]
    try:
        return rows.cast(pa.schema(fields))
    except pa.ArrowException as error:
        raise DamagedError(file, str(error)) from error


def _check_order(file: Path, rows: pa.Table) -> None:
    """In a recording of latlab itself no answer was received before its probe was sent; other tools may have logged that."""
    for earlier, later in (("sent_ns", "received_ns"), ("reflector_received_ns", "reflector_sent_ns")):
        if {earlier, later} <= set(rows.column_names):
            compared: Any = pc
            if compared.any(compared.less(rows[later], rows[earlier])).as_py():
                raise DamagedError(file, f"`{later}` is before `{earlier}`")


def _is_locked(spool: Path) -> bool:
    """Whether a process holds the lock of a spool; False where this system cannot say."""
    try:
        import fcntl
    except ImportError:
        return False
    with spool.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        fcntl.flock(opened, fcntl.LOCK_UN)
    return False
