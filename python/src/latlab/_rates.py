"""The rate at one end of a stream over time, from the intervals of its flows: docs/statistics.md, Rates of a stream."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ._sample import RateSample
from .errors import DamagedError

# A shorter level is joined to a neighbour: its rate is mostly chance.
_LEVEL_MIN_NS = 50_000_000
# Beyond these the values of an interval cannot occur.
_HOUR_NS = 3600 * 1_000_000_000
_PACKETS_END = 1 << 36

RATE_COLUMNS = ("flow", "side", "start_ns", "end_ns", "offered_packets", "delivered_packets")


class _Interval(NamedTuple):
    start_ns: int
    end_ns: int
    packets: int


class _Window(NamedTuple):
    start_ns: int
    end_ns: int


class _Level(NamedTuple):
    """A time in which the rate is known as a whole only."""

    span_ns: int
    bits: float

    @property
    def rate(self) -> int:
        return math.floor(self.bits / (self.span_ns / 1e9) + 0.5)

    def with_next(self, other: _Level) -> _Level:
        return _Level(self.span_ns + other.span_ns, self.bits + other.bits)


Flows = dict[int, list[_Interval]]


def rate_sample(metric: str, file: Path, intervals: Iterator[pa.Table], size_bytes: int) -> RateSample:
    """The sample of `offered_rate` or `delivered_rate` from the measured `intervals` of `file`, of packets of `size_bytes`."""
    side, column = ("sender", "offered_packets") if metric == "offered_rate" else ("receiver", "delivered_packets")
    flows = _flows(file, intervals, side, column)
    levels = _levels(flows, size_bytes * 8.0)
    rates = np.array([level.rate for level in levels], dtype=np.int64)
    spans = np.array([level.span_ns for level in levels], dtype=np.int64)
    return RateSample(metric, rates, spans, _mean(flows, size_bytes))


def _flows(file: Path, intervals: Iterator[pa.Table], side: str, column: str) -> Flows:
    flows: Flows = {}
    for row in (row for table in intervals for row in table.to_pylist()):
        if row["side"] == side:
            if any(row[name] is None for name in ("flow", "start_ns", "end_ns")):
                raise DamagedError(file, "an interval has no flow, no begin or no end")
            interval = _Interval(row["start_ns"], row["end_ns"], row[column] or 0)
            if not 0 <= interval.end_ns - interval.start_ns <= _HOUR_NS or interval.packets >= _PACKETS_END:
                raise DamagedError(
                    file, "an interval ends before it begins, is longer than an hour, or has 2^36 packets"
                )
            flows.setdefault(row["flow"], []).append(interval)
    return dict(sorted(flows.items()))


def _mean(flows: Flows, size_bytes: int) -> float | None:
    """All bits over the time in which at least one flow was measured."""
    time_ns = sum(window.end_ns - window.start_ns for window in _covered(flows))
    packets = sum(row.packets for rows in flows.values() for row in rows)
    return packets / (time_ns / 1e9) * size_bytes * 8.0 if time_ns else None


def _levels(flows: Flows, packet_bits: float) -> list[_Level]:
    """A level is an interval of the first flow, to which the others add what falls into it, or a time without the first."""
    if not flows:
        return []
    windows = _cut(_covered(flows), next(iter(flows.values())))
    places = [0] * len(flows)
    levels = []
    for window in windows:
        packets = 0.0
        for number, rows in enumerate(flows.values()):
            within = 0.0
            while places[number] < len(rows):
                row = rows[places[number]]
                common = min(row.end_ns, window.end_ns) - max(row.start_ns, window.start_ns)
                if common > 0:
                    within += float(row.packets) * float(common) / float(row.end_ns - row.start_ns)
                if row.end_ns > window.end_ns:
                    break
                places[number] += 1
            packets += within
        levels.append(_Level(window.end_ns - window.start_ns, packets * packet_bits))
    return _without_short(levels)


def _covered(flows: Flows) -> list[_Window]:
    """The times in which at least one flow has an interval, in order and apart from each other."""
    windows = [
        _Window(row.start_ns, row.end_ns) for rows in flows.values() for row in rows if row.end_ns > row.start_ns
    ]
    apart: list[_Window] = []
    for window in sorted(windows, key=lambda window: window.start_ns):
        if apart and window.start_ns <= apart[-1].end_ns:
            apart[-1] = _Window(apart[-1].start_ns, max(apart[-1].end_ns, window.end_ns))
        else:
            apart.append(window)
    return apart


def _cut(covered: Sequence[_Window], first: Sequence[_Interval]) -> list[_Window]:
    """`covered`, cut where an interval of the first flow begins or ends."""
    edges = [edge for row in first for edge in (row.start_ns, row.end_ns)]
    windows, place = [], 0
    for whole in covered:
        start_ns = whole.start_ns
        while place < len(edges) and edges[place] <= whole.end_ns:
            if edges[place] > start_ns:
                windows.append(_Window(start_ns, edges[place]))
                start_ns = edges[place]
            place += 1
        if whole.end_ns > start_ns:
            windows.append(_Window(start_ns, whole.end_ns))
    return windows


def _without_short(levels: Sequence[_Level]) -> list[_Level]:
    """`levels` with each short one joined to the next one, and the last one to the one before."""
    joined: list[_Level] = []
    for level in levels:
        if joined and joined[-1].span_ns < _LEVEL_MIN_NS:
            joined[-1] = joined[-1].with_next(level)
        else:
            joined.append(level)
    if len(joined) > 1 and joined[-1].span_ns < _LEVEL_MIN_NS:
        rest = joined.pop()
        joined[-1] = joined[-1].with_next(rest)
    return joined
