"""Opening a directory, and one table of all its runs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, overload

import numpy as np
import pyarrow as pa

from ._experiment import Experiment, Store, is_experiment, is_recording
from ._recording import Recording, to_pandas, to_polars
from .errors import LatlabError, LeftOutWarning, NotARecordingError

if TYPE_CHECKING:
    from typing import Literal

    import pandas
    import polars

PathLike = Union[str, "os.PathLike[str]"]
Source = Union[PathLike, Recording, Experiment, Store]
Columns = dict[str, "pa.Array[Any]"]
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
        return [opened]
    if opened.missing:
        names = ", ".join(opened.missing[:3])
        warnings.warn(f"recordings of completed runs are gone: {names}", LeftOutWarning, stacklevel=3)
    found = list(opened.runs)
    if runs == "all":
        return found
    left_out = [run for run in found if not run.is_judged and not run.is_warmup]
    if left_out:
        names = ", ".join(f"{run.path.name} ({run.ending})" for run in left_out[:3])
        message = f"{len(left_out)} of {len(found)} runs did not end by their own rule and are left out: {names}"
        warnings.warn(message, LeftOutWarning, stacklevel=3)
    return [run for run in found if run.is_judged]


def _main_table(runs: Sequence[Recording]) -> str:
    kinds = {run.kind: run.main_table for run in runs}
    if len(kinds) != 1:
        what = f"runs of several kinds ({', '.join(sorted(kinds))}): name the table" if kinds else "no run to read"
        raise LatlabError(what)
    return next(iter(kinds.values()))


def _constant(values: Sequence[Any]) -> tuple[pa.DataType, dict[Any, int]]:
    """The type of a column with one value for each run, and the place of each text in its dictionary, which runs share."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return pa.bool_(), {}
    if known and all(isinstance(value, int) and not isinstance(value, bool) for value in known):
        return pa.int64(), {}
    texts = list(dict.fromkeys(str(value) for value in known))
    index = pa.int8() if len(texts) < 128 else pa.int32()
    return pa.dictionary(index, pa.string()), {text: place for place, text in enumerate(texts)}


class _RunColumns:
    """The columns that say of each row from which run it is."""

    def __init__(self, runs: Sequence[Recording]) -> None:
        self._rows: list[dict[str, Any]] = [{"run": run.run_id, **run.conditions} for run in runs]
        names = dict.fromkeys(name for row in self._rows for name in row)
        # The run, the factors and the place in the experiment, then the rest, each in the order of appearance.
        ordered = sorted(names, key=lambda name: 0 if name == "run" else 2 if name.startswith("condition_") else 1)
        self._types = {name: _constant([row.get(name) for row in self._rows]) for name in ordered}
        self._words = {name: pa.array(list(texts), pa.string()) for name, (_, texts) in self._types.items()}

    def of(self, number: int, length: int) -> Columns:
        """The columns of run `number` for `length` rows."""
        columns: Columns = {}
        first: Any = pa.array(np.zeros(length, dtype=np.int64))
        for name, (kind, texts) in self._types.items():
            value = self._rows[number].get(name)
            if pa.types.is_dictionary(kind):
                places = pa.array([None if value is None else texts[str(value)]], kind.index_type)
                one: Any = pa.DictionaryArray.from_arrays(places, self._words[name])
            else:
                one = pa.array([value], kind)
            columns[name] = one.take(first)
        return columns


def _with_run_columns(columns: Columns, table: pa.Table) -> pa.Table:
    fields = [pa.field(name, column.type) for name, column in columns.items() if name not in table.column_names]
    arrays = [column for name, column in columns.items() if name not in table.column_names]
    return pa.table([*arrays, *table.columns], schema=pa.schema([*fields, *table.schema]))


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
    are dictionary encoded. `runs` is `judged`, those that `latlab compare` judges, or `all`.
    """
    chosen = _selected(source, runs)
    name = table or _main_table(chosen)
    if table:
        chosen = [run for run in chosen if name in run.tables]
    if not chosen:
        raise LatlabError(f"no run has a table `{name}`")
    condition = _RunColumns(chosen)
    tables = []
    for number, run in enumerate(chosen):
        rows = run.table(name, columns=columns, phase=phase)
        tables.append(_with_run_columns(condition.of(number, rows.num_rows), rows))
    # A recording of an older minor may lack columns, which are null then.
    return _as(engine, pa.concat_tables(tables, promote_options="default"))


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

    A figure is null where it is infinite or does not exist. `quantiles` have the names of latlab: `p99.9`.
    """
    chosen = _selected(source, runs)
    if not chosen:
        raise LatlabError("no run to read")
    name = metric or chosen[0].main_metric
    chosen = [run for run in chosen if name in run.metrics]
    if not chosen:
        raise LatlabError(f"no run has the metric `{name}`")
    condition = _RunColumns(chosen)
    tables = []
    for number, run in enumerate(chosen):
        tables.append(_with_run_columns(condition.of(number, 1), _figures_of(run, name, quantiles)))
    return _as(engine, pa.concat_tables(tables))


def _figures_of(run: Recording, metric: str, quantiles: Sequence[float]) -> pa.Table:
    sample = run.sample(metric)
    unit = {"unit": sample.unit}
    counts = {"n": sample.n, "lost": sample.lost}
    values = {"min": sample.min, "mean": sample.mean, "stddev": sample.stddev, "max": sample.max}
    values.update({quantile_name(q): sample.quantile(q) for q in quantiles})
    fields: list[pa.Field[Any]] = [pa.field(name, pa.int64()) for name in counts]
    fields += [pa.field(name, pa.float64(), metadata=unit) for name in values]
    columns = [[value] for value in (*counts.values(), *values.values())]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, fields)], schema=pa.schema(fields))


def quantile_name(q: float) -> str:
    """`p99.9` for 0.999."""
    percent = f"{q * 100:.10f}".rstrip("0").rstrip(".")
    return f"p{percent}"
