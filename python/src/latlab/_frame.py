"""Opening a directory, and one table of all its runs."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, overload

import numpy as np
import pyarrow as pa

from ._experiment import Experiment, Store, is_experiment, is_recording
from ._manifest import text_of
from ._metrics import DEFINITIONS
from ._parquet import named_columns, unit_of
from ._recording import TABLES, Recording, to_pandas, to_polars
from .errors import LatlabError, LeftOutWarning, NotARecordingError

if TYPE_CHECKING:
    from typing import Literal

    import pandas
    import polars

PathLike = Union[str, "os.PathLike[str]"]
Source = Union[PathLike, Recording, Experiment, Store]
Frame = Union["pandas.DataFrame", "polars.DataFrame", pa.Table]


def open(path: PathLike, *, verify: bool = True) -> Recording | Experiment | Store:
    """The recording, experiment or store in the directory `path`.

    A recording whose rows are still in its spool is an UnfinishedError; in an experiment or a store it is one when its rows
    are read. With `verify` (the default) checksums are compared: of what is read, before it is decoded.
    """
    directory = Path(path)
    if is_recording(directory):
        recording = Recording(directory, verify)
        recording.require_finished()
        return recording
    if is_experiment(directory):
        experiment = Experiment(directory, verify)
        experiment.journal  # noqa: B018 - an experiment whose journal cannot be read is refused here
        return experiment
    if not directory.exists():
        raise NotARecordingError(f"no recording at `{directory}`; `latlab list` shows the recordings of a store")
    store = Store(directory, verify)
    if not directory.is_dir() or not (store.recordings or store.experiments):
        raise NotARecordingError(
            f"`{directory}` is not a recording: it has no `manifest.json`; `latlab list` shows the recordings of a store"
        )
    return store


def recording(path: PathLike, *, verify: bool = True) -> Recording:
    """The same for the directory of one recording, with that type; NotARecordingError for any other directory."""
    opened = open(path, verify=verify)
    if isinstance(opened, Recording):
        return opened
    raise NotARecordingError(f"`{path}` has several recordings: `latlab.open` opens it")


def _selected(source: Source, runs: str) -> list[Recording]:
    """The runs of `source`; those that are not judged are left out with a warning unless `runs` is `all`."""
    if runs not in ("judged", "all"):
        raise ValueError(f"runs are `judged` or `all`: {runs!r}")
    opened = open(source) if isinstance(source, (str, os.PathLike)) else source
    if isinstance(opened, Recording):
        chosen = [opened]
    else:
        gone = opened.missing
        if gone:
            message = f"{len(gone)} recordings of completed runs are gone: {_first(gone)}"
            warnings.warn(message, LeftOutWarning, stacklevel=3)
        chosen = list(opened.runs)
        if runs == "judged":
            chosen = _judged(chosen)
    if not chosen:
        raise LatlabError("no run to read")
    # Of a run that is not finished it is not known what it has.
    for run in chosen:
        run.require_finished()
    return chosen


def _judged(found: Sequence[Recording]) -> list[Recording]:
    left_out = [run for run in found if not run.is_judged and not run.is_warmup]
    if left_out:
        names = _first(f"{run.path.name} ({run.ending})" for run in left_out)
        message = f"{len(left_out)} of {len(found)} runs did not end by their own rule and are left out: {names}"
        warnings.warn(message, LeftOutWarning, stacklevel=4)
    return [run for run in found if run.is_judged]


def _main_table(runs: Sequence[Recording]) -> str:
    kinds = {run.kind: run.main_table for run in runs}
    if len(kinds) > 1:
        tables = ", ".join(f"`{table}`" for table in dict.fromkeys(kinds.values()))
        raise LatlabError(f"runs of several kinds ({', '.join(sorted(kinds))}): name the table, such as {tables}")
    return next(iter(kinds.values()))


def _main_metric(runs: Sequence[Recording]) -> str:
    metrics = Counter(run.main_metric for run in runs)
    if len(metrics) > 1:
        counts = ", ".join(f"{count} of `{name}`" for name, count in metrics.items())
        raise LatlabError(f"runs of several main metrics ({counts}): name the metric")
    return next(iter(metrics))


def _with(runs: Sequence[Recording], has: Callable[[Recording], bool], what: str, known: Sequence[str]) -> list[Recording]:
    """Those of `runs` that have `what`; the others are left out with a warning. An error names the `known` if none has it."""
    found = [run for run in runs if has(run)]
    if not found:
        raise LatlabError(f"no run has the {what}; what there is: {', '.join(known) or 'none'}")
    if len(found) < len(runs):
        lacking = [run for run in runs if not has(run)]
        names = _first(f"{run.path.name} ({run.kind})" for run in lacking)
        message = f"{len(lacking)} of {len(runs)} runs have no {what} and are left out: {names}"
        warnings.warn(message, LeftOutWarning, stacklevel=3)
    return found


def _first(names: Iterable[str]) -> str:
    """The first three of `names`."""
    known = list(names)
    return ", ".join(known[:3]) + (", …" if len(known) > 3 else "")


# The types of columns whose values may all be null; other columns are text then.
_INTEGERS = ("block", "position", *(f"condition_{name}" for name in ("batch", "fifo", "flows", "source_port")))
_FLAGS = ("warmup_run", *(f"condition_{name}" for name in ("checksum", "connect", "keyed", "relative")))
_TEXT = pa.dictionary(pa.int32(), pa.string())


def _type_of(name: str, values: Sequence[Any]) -> pa.DataType:
    """The type of a column with one value for each run. It is the same whether or not all values are null."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        if name in _INTEGERS or unit_of(name) is not None:
            return pa.int64()
        return pa.bool_() if name in _FLAGS else _TEXT
    if kinds == {bool}:
        return pa.bool_()
    is_integer = kinds == {int} and all(-(1 << 63) <= value < 1 << 63 for value in values if value is not None)
    return pa.int64() if is_integer else _TEXT


class _RunColumns:
    """The columns that say of each row from which run it is."""

    def __init__(self, runs: Sequence[Recording], table: str | None) -> None:
        rows: list[dict[str, Any]] = [{"run": run.run_id, **run._conditions_beside(table)} for run in runs]
        names = dict.fromkeys(name for row in rows for name in row)
        # The run, the factors and the place in the experiment, then the rest, each in the order of appearance.
        ordered = sorted(names, key=_group)
        self._columns = {name: _column(name, [row.get(name) for row in rows]) for name in ordered}

    def before(self, number: int, table: pa.Table) -> pa.Table:
        """The rows of run `number`, with these columns before those of `table`."""
        first: Any = pa.array(np.full(table.num_rows, number))
        names = [name for name in self._columns if name not in table.column_names]
        columns = [self._columns[name].take(first) for name in names]
        fields = [_field(name, column.type, unit_of(name)) for name, column in zip(names, columns)]
        return pa.table([*columns, *table.columns], schema=pa.schema([*fields, *table.schema]))


def _group(name: str) -> int:
    if name.startswith("condition_"):
        return 3
    return 0 if name == "run" else 1 if name.startswith("factor_") else 2


def _column(name: str, values: Sequence[Any]) -> pa.Array[Any]:
    """One value for each run. Texts are dictionary encoded, with a dictionary that the runs share."""
    kind = _type_of(name, values)
    if kind != _TEXT:
        return pa.array(values, kind)
    texts = pa.array([None if value is None else text_of(value) for value in values], pa.string())
    return texts.dictionary_encode()


def _field(name: str, kind: pa.DataType, unit: str | None) -> pa.Field[Any]:
    return pa.field(name, kind, metadata={"unit": unit} if unit else None)


def _as(engine: str, table: pa.Table) -> Frame:
    if engine == "arrow":
        return table
    if engine == "pandas":
        return to_pandas(table)
    if engine == "polars":
        return to_polars(table)
    raise ValueError(f"an engine is `pandas`, `polars` or `arrow`: {engine!r}")


@overload
def frame(
    source: Source,
    *,
    engine: Literal["pandas"] = ...,
    table: str | None = ...,
    columns: Sequence[str] | None = ...,
    phase: str = ...,
    runs: str = ...,
) -> pandas.DataFrame: ...
@overload
def frame(
    source: Source,
    *,
    engine: Literal["polars"],
    table: str | None = ...,
    columns: Sequence[str] | None = ...,
    phase: str = ...,
    runs: str = ...,
) -> polars.DataFrame: ...
@overload
def frame(
    source: Source,
    *,
    engine: Literal["arrow"],
    table: str | None = ...,
    columns: Sequence[str] | None = ...,
    phase: str = ...,
    runs: str = ...,
) -> pa.Table: ...


def frame(
    source: Source,
    *,
    engine: str = "pandas",
    table: str | None = None,
    columns: Sequence[str] | None = None,
    phase: str = "measure",
    runs: str = "judged",
) -> Frame:
    """The rows of all runs of a recording, an experiment or a store, with the run and its condition in columns.

    `run` is the run id, `factor_…`, `block` and `position` are those of an experiment, `condition_…` the condition; texts
    are dictionary encoded. `runs` is `judged`, those that `latlab compare` judges, or `all`. Without `table` it is the main
    one, and all runs must be of one kind. A run without the table is left out with a warning; of `columns`, those that a run
    does not have are null.
    """
    if table is not None and table not in TABLES:
        raise ValueError(f"a table is one of {', '.join(TABLES)}: {table!r}")
    asked = None if columns is None else named_columns(columns)
    chosen = _selected(source, runs)
    name = table or _main_table(chosen)
    if table:
        known = [one for one in TABLES if any(one in run.tables for run in chosen)]
        chosen = _with(chosen, lambda run: name in run.tables, f"table `{name}`", known)
    condition = _RunColumns(chosen, name)
    present = _present(chosen, name, asked)
    tables = []
    for number, (run, names) in enumerate(zip(chosen, present)):
        # Without any of them, another one gives the number of rows.
        rows = run.table(name, columns=names or run.rows(name).columns[:1], phase=phase).select(names)
        tables.append(condition.before(number, rows))
    # A recording of an older minor, or of another host, may lack columns, which are null then.
    whole = pa.concat_tables(tables, promote_options="default")
    if asked is not None:
        whole = whole.select([*(one for one in whole.column_names if one not in asked), *asked])
    return _as(engine, whole)


def _present(runs: Sequence[Recording], table: str, asked: list[str] | None) -> list[list[str]]:
    """Of each run the columns of a table that are `asked` for; an error for one that none of them has."""
    have = [run.rows(table).columns for run in runs]
    if asked is None:
        return have
    known = dict.fromkeys(name for names in have for name in names)
    missing = [name for name in asked if name not in known]
    if missing:
        raise ValueError(f"`{table}` has no column `{missing[0]}`; it has {', '.join(known)}")
    return [[name for name in asked if name in names] for names in have]


@overload
def figures(
    source: Source,
    metric: str | None = ...,
    *,
    quantiles: Sequence[float] = ...,
    engine: Literal["pandas"] = ...,
    runs: str = ...,
) -> pandas.DataFrame: ...
@overload
def figures(
    source: Source,
    metric: str | None = ...,
    *,
    quantiles: Sequence[float] = ...,
    engine: Literal["polars"],
    runs: str = ...,
) -> polars.DataFrame: ...
@overload
def figures(
    source: Source,
    metric: str | None = ...,
    *,
    quantiles: Sequence[float] = ...,
    engine: Literal["arrow"],
    runs: str = ...,
) -> pa.Table: ...


def figures(
    source: Source,
    metric: str | None = None,
    *,
    quantiles: Sequence[float] = (0.5, 0.99, 0.999),
    engine: str = "pandas",
    runs: str = "judged",
) -> Frame:
    """One row for each run, which is the unit of a comparison: n, lost, min, mean, stddev, max and `quantiles` of a metric.

    A value is null where it is infinite, not known or does not exist. `quantiles` have the names of latlab: `p99.9`.
    Without `metric` it is the main one, which all runs must share. A run without the metric is left out with a warning.
    """
    chosen = _selected(source, runs)
    name = metric or _main_metric(chosen)
    known = list(dict.fromkeys(one for run in chosen for one in run.metrics))
    chosen = _with(chosen, lambda run: name in run.metrics, f"metric `{name}`", known)
    condition = _RunColumns(chosen, DEFINITIONS[name].table if name in DEFINITIONS else None)
    tables = [condition.before(number, _figures_of(run, name, quantiles)) for number, run in enumerate(chosen)]
    return _as(engine, pa.concat_tables(tables))


def _figures_of(run: Recording, metric: str, quantiles: Sequence[float]) -> pa.Table:
    sample = run.sample(metric)
    counts = {"n": sample.n, "lost": sample.lost}
    values = {"min": sample.min, "mean": sample.mean, "stddev": sample.stddev, "max": sample.max}
    values.update({quantile_name(q): sample.quantile(q) for q in quantiles})
    fields = [_field(name, pa.int64(), None) for name in counts]
    # Singletons are integers, which a float does not hold exactly beyond 2^53.
    fields += [_field(name, pa.int64() if name in ("min", "max") else pa.float64(), sample.unit) for name in values]
    columns = [[value] for value in (*counts.values(), *values.values())]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, fields)], schema=pa.schema(fields))


def quantile_name(q: float) -> str:
    """`p99.9` for 0.999."""
    percent = f"{q * 100:.10f}".rstrip("0").rstrip(".")
    return f"p{percent}"
