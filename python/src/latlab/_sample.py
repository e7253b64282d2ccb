"""A sample: all singletons of one named metric of one run, and its statistics as docs/statistics.md defines them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt

INFINITE = int(np.iinfo(np.int64).max)
_EPSILON = float(np.finfo(np.float64).eps)

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def _position(q: float, n: int) -> tuple[int, float]:
    """Rank from 0 and weight of the next order statistic: type 7 of Hyndman and Fan, as numpy's default.

    A position that misses a rank by rounding alone is that rank: otherwise a quantile next to the lost singletons would
    be infinite because of a weight of 1e-13.
    """
    last = float(n - 1)
    place = last * q
    nearest = float(math.floor(place + 0.5))
    if abs(place - nearest) <= last * 4.0 * _EPSILON:
        return int(nearest), 0.0
    return int(place), place - math.floor(place)


class Sample:
    """The singletons of one metric, in the order of sending where the run has an order.

    `n` counts all singletons, `lost` the infinite ones among them: those of probes that were lost or late. Moments are over
    the finite singletons, quantiles over all.
    """

    knows_losses = True
    """Whether it is known what was lost: a log of another tool may state answers only."""

    def __init__(self, metric: str, unit: str, values: Integers, counts: Integers | None = None) -> None:
        self.metric = metric
        self.unit = unit
        self._values = values
        self.counts = counts
        """How often each of `values` occurred; None if each is one singleton."""

    def __repr__(self) -> str:
        return f"<latlab.Sample {self.metric} in {self.unit}, n {self.n}, lost {'unknown' if self.lost is None else self.lost}>"

    def __len__(self) -> int:
        return self.n

    def _with_lost(self, more: int) -> Sample:
        """The sample with so many more infinite singletons, whose place among the others is unknown."""
        if not more:
            return self
        counts = np.ones(len(self._values), dtype=np.int64) if self.counts is None else self.counts
        values = np.append(self._values, np.int64(INFINITE))
        return Sample(self.metric, self.unit, values, np.append(counts, np.int64(more)))

    @cached_property
    def values(self) -> Floats:
        """Every singleton, the infinite ones as +inf. If there are `counts`, a value may stand for several of them."""
        return np.where(self._values == INFINITE, np.inf, self._values.astype(np.float64))

    @cached_property
    def finite(self) -> Integers:
        """The finite singletons, exactly."""
        chosen: Integers = self._values[self._values != INFINITE]
        return chosen

    @cached_property
    def n(self) -> int:
        """The number of singletons."""
        return len(self._values) if self.counts is None else int(self.counts.sum())

    @property
    def lost(self) -> int | None:
        """The number of infinite singletons; None of an import whose log states no losses."""
        return self._infinite if self.knows_losses else None

    @cached_property
    def _infinite(self) -> int:
        infinite = self._values == INFINITE
        return int(np.count_nonzero(infinite)) if self.counts is None else int(self.counts[infinite].sum())

    @property
    def min(self) -> int | None:
        """The smallest finite singleton; None without one."""
        return int(self.finite.min()) if self.finite.size else None

    @property
    def max(self) -> int | None:
        """The largest finite singleton; None without one."""
        return int(self.finite.max()) if self.finite.size else None

    @property
    def _weights(self) -> Integers | None:
        """How often each finite value occurred; None if each occurred once."""
        weights = None if self.counts is None else self.counts[self._values != INFINITE]
        return None if weights is None or (weights == 1).all() else weights

    @cached_property
    def mean(self) -> float | None:
        """The mean of the finite singletons, whose sum is exact; None without one."""
        finite = self.n - self._infinite
        if not finite:
            return None
        if self._weights is not None:
            total = sum(int(value) * int(count) for value, count in zip(self.finite, self._weights))
        else:
            # Two sums of halves cannot overflow below 2**31 singletons.
            total = (int((self.finite >> 32).sum()) << 32) + int((self.finite & 0xFFFFFFFF).sum())
        whole, rest = divmod(total, finite)
        return float(whole) + rest / finite

    @cached_property
    def stddev(self) -> float | None:
        """The standard deviation of the finite singletons, divisor n − 1; None with fewer than two."""
        finite = self.n - self._infinite
        if finite < 2:
            return None
        offsets = (self.finite - self.finite.min()).astype(np.float64)
        weights = np.ones(1) if self._weights is None else self._weights.astype(np.float64)
        weights = np.broadcast_to(weights, offsets.shape)
        deviations = offsets - float((offsets * weights).sum() / finite)
        squares = float((weights * deviations**2).sum()) - float((weights * deviations).sum()) ** 2 / finite
        return math.sqrt(max(squares, 0.0) / (finite - 1))

    @cached_property
    def _sorted(self) -> tuple[Integers, Integers | None]:
        """The values in ascending order, and the number of singletons up to each of them."""
        if self.counts is None:
            return np.sort(self._values), None
        order = np.argsort(self._values, kind="stable")
        return self._values[order], np.cumsum(self.counts[order])

    def _ranked(self, rank: int) -> int:
        """The order statistic at `rank`, from 0."""
        values, cumulated = self._sorted
        if cumulated is None:
            return int(values[rank])
        return int(values[int(np.searchsorted(cumulated, rank, side="right"))])

    def quantile(self, q: float) -> float | None:
        """The quantile `q` in [0, 1] over all singletons; None if it is infinite or the sample is empty.

        It equals `value` in `latlab summary --json`. It does not say whether the data support it: `supported`, intervals and
        the effective n are figures of `latlab summary --json` alone.
        """
        if not 0.0 <= q <= 1.0:
            raise ValueError(f"a quantile is between 0 and 1: {q}")
        return self._quantile(q) if self.n else None

    def _quantile(self, q: float) -> float | None:
        rank, weight = _position(q, self.n)
        low = self._ranked(rank)
        high = self._ranked(rank + 1) if weight > 0.0 else low
        if INFINITE in (low, high):
            return None
        return float(low) + float(high - low) * weight

    def quantiles(self, qs: Iterable[float]) -> list[float | None]:
        """The quantile of each of `qs`."""
        return [self.quantile(q) for q in qs]


class ShiftedSample(Sample):
    """A sample less its minimum. Each figure is that of the sample, shifted, as `latlab summary --json` computes it."""

    def __init__(self, metric: str, base: Sample) -> None:
        self._base = base
        self._least = base.min or 0
        shifted = np.where(base._values == INFINITE, INFINITE, base._values - self._least)
        super().__init__(metric, base.unit, shifted, base.counts)

    @cached_property
    def mean(self) -> float | None:
        """The mean of the finite singletons; None without one."""
        return None if self._base.mean is None else self._base.mean - self._least

    @cached_property
    def stddev(self) -> float | None:
        """That of the sample."""
        return self._base.stddev

    def _quantile(self, q: float) -> float | None:
        value = self._base.quantile(q)
        return None if value is None else value - self._least


class RateSample(Sample):
    """The rates of a stream: each counts with the time for which it was seen, `weights_ns`."""

    def __init__(self, metric: str, rates: Integers, weights_ns: Integers, mean: float | None) -> None:
        super().__init__(metric, "bit/s", rates)
        self.weights_ns = weights_ns
        self._mean = mean

    @cached_property
    def mean(self) -> float | None:
        """All bits divided by the time in which they were measured; None without any."""
        return self._mean

    @cached_property
    def stddev(self) -> float | None:
        """The standard deviation, weighted by time; None with fewer than two rates."""
        if self.n < 2 or self._mean is None:
            return None
        weights = self.weights_ns.astype(np.float64)
        variance = float((weights * (self.values - self._mean) ** 2).sum() / weights.sum())
        return math.sqrt(variance * self.n / (self.n - 1))

    def _quantile(self, q: float) -> float | None:
        order = np.argsort(self._values, kind="stable")
        rates: list[int] = self._values[order].tolist()
        spans: list[int] = self.weights_ns[order].tolist()
        steps = [(one + next_one) / 2.0 for one, next_one in zip(spans, spans[1:])]
        left: float = q * sum(steps)
        for low, high, step in zip(rates, rates[1:], steps):
            if left <= step:
                return float(low) + (float(high) - float(low)) * (left / step)
            left -= step
        return float(rates[-1])
