//! Where a quantile lies among the order statistics, and what it rests on there.

use super::binomial::Binomial;
use super::interval::Interval;
use crate::sample::INFINITE;

/// A quantile is supported by at least so many effective observations beyond it.
pub(super) const SUPPORT_MIN: f64 = 10.0;
/// With fewer singletons beyond it a quantile lies in a thin tail: too few to resample, and too few to tell by
/// themselves how they depend on each other.
const THIN_TAIL: u64 = 50;
/// Confidence of the bound below an unsupported quantile: one-sided 95 %.
const BOUND_RISK: f64 = 0.05;

/// Between which two order statistics a quantile lies: type 7 of Hyndman and Fan (1996).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QuantilePosition {
    /// Rank of the lower one, from 0.
    pub(super) rank: u64,
    /// Weight of the next one; 0 where the quantile is the lower one itself.
    pub(super) weight: f64,
}

impl QuantilePosition {
    /// Of quantile `q` among `n` singletons, at least one.
    pub(super) fn of(q: f64, n: u64) -> QuantilePosition {
        let last = n.saturating_sub(1) as f64;
        let place = last * q.clamp(0.0, 1.0);
        // q is seldom a binary fraction: a place that misses a rank by rounding alone is that rank, or a
        // quantile next to the lost ones would become infinite by a weight of 1e-13.
        let nearest = place.round();
        if (place - nearest).abs() <= last * 4.0 * f64::EPSILON {
            return QuantilePosition { rank: nearest as u64, weight: 0.0 };
        }
        QuantilePosition { rank: place as u64, weight: place.fract() }
    }

    /// The ranks it needs, one or two.
    pub(super) fn ranks(&self) -> impl Iterator<Item = u64> + use<> {
        self.rank..=self.rank + u64::from(self.weight > 0.0)
    }

    /// Whether the tail beyond it is thin.
    pub(super) fn is_thin(self, n: u64) -> bool {
        self.witness_rank(n) != self.rank
    }

    /// The rank whose split of the sample says how dependent its tail is: its own, or in a thin tail the nearest
    /// one that leaves enough beyond it.
    pub(super) fn witness_rank(self, n: u64) -> u64 {
        let middle = n.saturating_sub(1) / 2;
        if self.rank <= middle {
            self.rank.max(THIN_TAIL.min(middle))
        } else {
            self.rank.min(n.saturating_sub(THIN_TAIL + 1).max(middle))
        }
    }

    /// Between the order statistics at the rank and after it; infinite where a needed one is.
    pub(super) fn between(self, low: i64, high: i64) -> f64 {
        if low == INFINITE || (self.weight > 0.0 && high == INFINITE) {
            return f64::INFINITY;
        }
        if self.weight == 0.0 {
            return low as f64;
        }
        // the difference is exact where the values themselves would be rounded
        low as f64 + high.wrapping_sub(low) as u64 as f64 * self.weight
    }
}

/// Whether at least ten of `effective_n` observations lie beyond quantile `q`, on its thinner side.
pub(super) fn is_supported(q: f64, effective_n: f64) -> bool {
    effective_n * q.min(1.0 - q) >= SUPPORT_MIN * (1.0 - 1e-9)
}

/// Ranks of order statistics that bound a quantile of the population, from 0 among all n singletons.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RankBounds {
    /// Of the lower end, where one exists.
    pub(super) low: Option<u64>,
    /// Of the upper end, where one exists.
    pub(super) high: Option<u64>,
    /// Rank below which the quantile lies with at most 5 %.
    pub(super) below: Option<u64>,
    /// What the two ends together really have.
    pub(super) confidence: f64,
}

impl RankBounds {
    /// For quantile `q` of a sample of `n` that is worth `effective_n`, at `confidence` for both ends together.
    ///
    /// Distribution-free: the number of observations below a quantile is binomial. Dependence makes the sample
    /// a shorter one whose order statistics stand at proportional places of the real one.
    pub(super) fn of(q: f64, n: u64, effective_n: f64, confidence: f64) -> RankBounds {
        let trials = (effective_n.floor() as u64).clamp(1, n.max(1));
        let binomial = Binomial::new(trials, q.clamp(1e-12, 1.0 - 1e-12));
        let risk = (1.0 - confidence) / 2.0;
        let (low, high) = (binomial.low_rank(risk), binomial.high_rank(risk));
        let stretch = (n + 1) as f64 / (trials + 1) as f64;
        let downward = |rank: u64| ((rank as f64 * stretch).floor() as u64).clamp(1, n) - 1;
        let upward = |rank: u64| ((rank as f64 * stretch).ceil() as u64).clamp(1, n) - 1;
        let misses_low = low.map_or(0.0, |rank| binomial.fewer_than(rank));
        let within_high = high.map_or(1.0, |rank| binomial.fewer_than(rank));
        RankBounds {
            low: low.map(downward),
            high: high.map(upward),
            below: binomial.low_rank(BOUND_RISK).map(downward),
            confidence: within_high - misses_low,
        }
    }

    /// Between the values at those ranks, infinite ones marked by [`INFINITE`]; none where neither bounds it.
    pub(super) fn interval(&self, low: Option<i64>, high: Option<i64>) -> Option<Interval> {
        let end = |value: i64| if value == INFINITE { f64::INFINITY } else { value as f64 };
        let (low, high) = (low.map_or(f64::NEG_INFINITY, end), high.map_or(f64::INFINITY, end));
        Interval::between(low, high, self.confidence)
    }

    /// Resampling never leaves the range of the sample: an end that no order statistic can vouch for is dropped.
    pub(super) fn vouch(&self, resampled: Interval) -> Option<Interval> {
        let low = self.low.and(resampled.low).unwrap_or(f64::NEG_INFINITY);
        let high = self.high.and(resampled.high).unwrap_or(f64::INFINITY);
        Interval::between(low, high, resampled.confidence)
    }

    /// The three ranks, in the order of the fields.
    pub(super) fn each(&self) -> [Option<u64>; 3] {
        [self.low, self.high, self.below]
    }

    /// Those of the three that exist, in the same order.
    pub(super) fn ranks(&self) -> impl Iterator<Item = u64> + use<> {
        self.each().into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_a_rank_but_for_rounding_needs_no_neighbour() {
        assert_ne!(100.0 * 0.57, 57.0, "the case must be one of rounding");
        assert_eq!(QuantilePosition::of(0.57, 101), QuantilePosition { rank: 57, weight: 0.0 });
        assert_eq!(QuantilePosition::of(0.57, 101).between(5, INFINITE), 5.0);
        assert_eq!(QuantilePosition::of(0.5, 4), QuantilePosition { rank: 1, weight: 0.5 });
        assert_eq!(QuantilePosition::of(0.5, 4).between(5, INFINITE), f64::INFINITY);
        assert_eq!(QuantilePosition::of(0.9, 1), QuantilePosition { rank: 0, weight: 0.0 });
        assert_eq!(QuantilePosition::of(0.5, 2).between(i64::MIN, i64::MAX - 1), 0.0);
    }

    #[test]
    fn ten_beyond_are_support_and_nine_are_not() {
        for (q, n, supported) in
            [(0.99, 1000.0, true), (0.99, 999.0, false), (0.9999, 1e5, true), (0.01, 999.0, false), (0.5, 20.0, true)]
        {
            assert_eq!(is_supported(q, n), supported, "q {q}, n {n}");
        }
    }

    #[test]
    fn fewer_effective_observations_widen_the_bounds() {
        let independent = RankBounds::of(0.9, 10_000, 10_000.0, 0.95);
        let dependent = RankBounds::of(0.9, 10_000, 100.0, 0.95);
        assert_eq!((independent.low, independent.high), (Some(8940), Some(9058)));
        assert!(dependent.low < Some(8500) && dependent.high > Some(9400), "{dependent:?}");
        let few = RankBounds::of(0.9, 10, 10.0, 0.95);
        assert_eq!((few.high, few.below.is_some()), (None, true));
    }
}
