"""Every metric as docs/metrics.md defines it: one table, from the columns of a row to its singleton."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ._sample import INFINITE, Integers, Sample

Span = tuple[str, str]
"""The columns of an instant and of a later one."""


class Definition(NamedTuple):
    """How the rows of a table give the singletons of a metric."""

    table: str
    span: Span
    less: Span | None = None
    """A span to subtract."""
    finite: tuple[str, ...] = ()
    """Fates with a finite singleton; empty: the table has no fates, and all rows have one."""
    infinite: tuple[str, ...] = ()
    """Fates with an infinite one."""
    on_schedule: bool = False
    """Whether it needs a due time, which a closed loop does not have."""
    is_change: bool = False
    """Whether it is the change from the probe before."""


_SENT = ("answered", "late", "lost")
_ROUND_TRIP = Definition("probes", ("sent_ns", "received_ns"), finite=("answered",), infinite=("late", "lost"))
DWELL = ("reflector_received_ns", "reflector_sent_ns")
"""The stamps of the reflector."""

DEFINITIONS: dict[str, Definition] = {
    "round_trip_delay": _ROUND_TRIP,
    "response_time": _ROUND_TRIP._replace(
        span=("due_ns", "received_ns"), infinite=("late", "lost", "send_failed", "not_sent"), on_schedule=True
    ),
    "send_slip": _ROUND_TRIP._replace(span=("due_ns", "sent_ns"), finite=_SENT, infinite=(), on_schedule=True),
    "reflector_dwell": _ROUND_TRIP._replace(span=DWELL, finite=("answered", "late"), infinite=()),
    "round_trip_delay_less_dwell": _ROUND_TRIP._replace(less=DWELL),
    # Undefined for a pair of which either packet is lost (RFC 3393).
    "ipdv": _ROUND_TRIP._replace(infinite=(), is_change=True),
    "wakeup_latency": Definition("wakeups", ("due_ns", "woke_ns")),
}
# The delay of each kind of run whose distance from its minimum is `pdv`.
PDV_OF = {"ping": "round_trip_delay", "wakeup": "wakeup_latency"}
RATES = ("delivered_rate", "offered_rate")

Batches = Callable[[str, list[str]], Iterator[pa.Table]]
"""The measured rows of a table, with the columns that are asked for."""


def span_sample(metric: str, definition: Definition, batches: Batches) -> Sample:
    """The sample of a metric that is the span between two instants of a row."""
    columns = [*definition.span, *(definition.less or ())]
    columns += ["fate"] if definition.finite else []
    columns += ["seq"] if definition.is_change else []
    values, places = [], []
    for table in batches(definition.table, list(dict.fromkeys(columns))):
        batch = _Batch(table)
        singletons, chosen = batch.singletons(definition)
        values.append(singletons)
        if definition.is_change:
            places.append(batch.integers("seq")[chosen])
    whole = np.concatenate(values) if values else np.empty(0, dtype=np.int64)
    if definition.is_change:
        seq = np.concatenate(places) if places else np.empty(0, dtype=np.int64)
        whole = np.diff(whole)[np.diff(seq) == 1]
    return Sample(metric, "ns", whole)


def value_sample(metric: str, rows: Iterator[pa.Table]) -> Sample:
    """The sample of a metric of an imported log, whose rows have a value and how often it occurred."""
    values, counts = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for table in rows:
        batch = _Batch(table.filter(pc.is_in(table["metric"], value_set=pa.array([metric], pa.string()))))
        values.append(np.where(batch.known("value_ns"), batch.integers("value_ns"), INFINITE))
        counts.append(batch.integers("count"))
    all_counts = np.concatenate(counts)
    return Sample(metric, "ns", np.concatenate(values), None if (all_counts == 1).all() else all_counts)


class _Batch:
    """Columns of one table as numpy arrays."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def integers(self, name: str) -> Integers:
        """The column, 0 where it is null."""
        column: Any = self._table[name]
        values: Integers = column.fill_null(0).cast(pa.int64()).to_numpy()
        return values

    def known(self, name: str) -> npt.NDArray[np.bool_]:
        known: npt.NDArray[np.bool_] = pc.is_valid(self._table[name]).to_numpy()
        return known

    def _is_one(self, name: str, words: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = pc.is_in(self._table[name], value_set=pa.array(words, pa.string())).to_numpy()
        return found

    def singletons(self, definition: Definition) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """The singletons in the order of rows, infinite ones as INFINITE, and which rows have one."""
        spans = self._span(definition.span)
        known = self.known(definition.span[0]) & self.known(definition.span[1])
        if definition.less:
            spans = spans - self._span(definition.less)
            known &= self.known(definition.less[0]) & self.known(definition.less[1])
        if not definition.finite:
            return spans[known], known
        finite = known & self._is_one("fate", definition.finite)
        infinite = self._is_one("fate", definition.infinite)
        if definition.on_schedule:
            infinite &= self.known("due_ns")
        chosen = finite | infinite
        return np.where(infinite, INFINITE, spans)[chosen], chosen

    def _span(self, span: Span) -> Integers:
        return self.integers(span[1]) - self.integers(span[0])
