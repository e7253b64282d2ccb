//! The position of a quantile among the order statistics, its support, and its distribution-free bounds.

use super::interval::Interval;
use crate::sample::INFINITE;

/// A quantile is supported if at least this many effective observations lie beyond it.
pub(super) const SUPPORT_MIN: f64 = 10.0;
/// With fewer singletons on one side of a value its indicator does not show how they depend on each other.
pub(super) const WITNESSES_MIN: u64 = 50;
/// Risk of the lower bound of an unsupported quantile: one-sided 95 %.
const BOUND_RISK: f64 = 0.05;

/// Between which two order statistics a quantile lies: type 7 of Hyndman and Fan (1996).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QuantilePosition {
    /// Rank of the lower one, from 0.
    pub rank: u64,
    /// Weight of the next one; 0 if the quantile equals the lower one.
    pub weight: f64,
}

impl QuantilePosition {
    /// The position of quantile `q` among `n` singletons, at least one.
    pub(crate) fn of(q: f64, n: u64) -> QuantilePosition {
        let last = n.saturating_sub(1) as f64;
        let place = last * q.clamp(0.0, 1.0);
        // q is seldom a binary fraction: a position that misses a rank by rounding alone is that rank. Otherwise a
        // quantile next to the lost singletons would become infinite by a weight of 1e-13.
        let nearest = place.round();
        if (place - nearest).abs() <= last * 4.0 * f64::EPSILON {
            return QuantilePosition { rank: nearest as u64, weight: 0.0 };
        }
        QuantilePosition { rank: place as u64, weight: place.fract() }
    }

    /// The rank at which the sample is split to estimate the dependence: its own, or if fewer than ten singletons lie
    /// beyond quantile `q`, the nearest rank with enough beyond it.
    pub(super) fn split_rank(self, q: f64, n: u64) -> u64 {
        if is_supported(q, n as f64) {
            return self.rank;
        }
        let middle = n.saturating_sub(1) / 2;
        if self.rank <= middle {
            self.rank.max(WITNESSES_MIN.min(middle))
        } else {
            self.rank.min(n.saturating_sub(WITNESSES_MIN + 1).max(middle))
        }
    }

    /// The quantile between the order statistics `low` at its rank and `high` after it; infinite if a needed one is.
    pub(super) fn between(self, low: i64, high: i64) -> f64 {
        if low == INFINITE || (self.weight > 0.0 && high == INFINITE) {
            return f64::INFINITY;
        }
        if self.weight == 0.0 {
            return low as f64;
        }
        // The difference is exact where the values themselves would be rounded.
        low as f64 + high.wrapping_sub(low) as u64 as f64 * self.weight
    }
}

/// Whether at least ten of `effective_n` observations lie beyond quantile `q`, on its thinner side.
pub fn is_supported(q: f64, effective_n: f64) -> bool {
    effective_n * q.min(1.0 - q) >= SUPPORT_MIN * (1.0 - 1e-9)
}

/// The fewest independent observations that support quantile `q`.
pub fn observations_needed(q: f64) -> u64 {
    (SUPPORT_MIN / q.min(1.0 - q) * (1.0 - 1e-9)).ceil() as u64
}

/// Ranks, from 0, of order statistics that bound a quantile of the population.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RankBounds {
    /// Of the lower end, if one exists.
    pub(super) low: Option<u64>,
    /// Of the upper end, if one exists.
    pub(super) high: Option<u64>,
    /// Rank below which the quantile lies with a probability of at most 5 %.
    pub(super) below: Option<u64>,
    /// The confidence that both ends together have.
    pub(super) confidence: f64,
}

impl RankBounds {
    /// For quantile `q` of a sample of `n` that is worth so many independent `trials`, at `confidence` for both ends
    /// together.
    ///
    /// Distribution-free: the number of observations below a quantile is binomial. A dependent sample is treated as a
    /// shorter one, whose order statistics lie at proportional ranks of the real one.
    pub(super) fn of(q: f64, n: u64, trials: f64, confidence: f64) -> RankBounds {
        let trials = (trials.floor() as u64).clamp(1, n.max(1));
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

    /// The interval between the values at those ranks, of which infinite ones are [`INFINITE`]; `None` if neither bounds it.
    pub(super) fn interval(&self, low: Option<i64>, high: Option<i64>) -> Option<Interval> {
        let end = |value: i64| if value == INFINITE { f64::INFINITY } else { value as f64 };
        let (low, high) = (low.map_or(f64::NEG_INFINITY, end), high.map_or(f64::INFINITY, end));
        Interval::between(low, high, self.confidence)
    }

    /// The three ranks, in the order of the fields.
    pub(super) fn each(&self) -> [Option<u64>; 3] {
        [self.low, self.high, self.below]
    }

    /// The ranks that exist, in the same order.
    pub(super) fn ranks(&self) -> impl Iterator<Item = u64> + use<> {
        self.each().into_iter().flatten()
    }
}

/// Weights this far below the largest one do not change a sum of doubles.
const NEGLIGIBLE: f64 = 1e-22;

/// The binomial distribution of the number of successes in `trials`, tabulated where it has any weight.
struct Binomial {
    trials: u64,
    first: u64,
    cumulative: Vec<f64>,
}

impl Binomial {
    /// Of `trials` with probability `q` in (0, 1); takes time in proportion to the square root of `trials`.
    ///
    /// Weights are computed outwards from the mode by their ratio and then normalised, so that no factorial is needed.
    fn new(trials: u64, q: f64) -> Binomial {
        let n = trials as f64;
        let odds = q / (1.0 - q);
        let mode = (((n + 1.0) * q).floor() as u64).min(trials);
        let mut weights = Vec::new();
        let (mut weight, mut k) = (1.0, mode);
        while k > 0 {
            weight *= k as f64 / ((n - k as f64 + 1.0) * odds);
            if weight < NEGLIGIBLE {
                break;
            }
            k -= 1;
            weights.push(weight);
        }
        let first = k;
        weights.reverse();
        weights.push(1.0);
        (weight, k) = (1.0, mode);
        while k < trials {
            weight *= (n - k as f64) / (k as f64 + 1.0) * odds;
            if weight < NEGLIGIBLE {
                break;
            }
            k += 1;
            weights.push(weight);
        }
        let total: f64 = weights.iter().sum();
        let mut below = 0.0;
        for weight in &mut weights {
            below += *weight / total;
            *weight = below;
        }
        Binomial { trials, first, cumulative: weights }
    }

    /// The probability of fewer than `k` successes.
    fn fewer_than(&self, k: u64) -> f64 {
        match k.checked_sub(self.first + 1) {
            None => 0.0,
            Some(index) => self.cumulative.get(index as usize).copied().unwrap_or(1.0).min(1.0),
        }
    }

    /// The largest rank (from 1) whose order statistic exceeds the quantile with probability at most `risk`.
    fn low_rank(&self, risk: f64) -> Option<u64> {
        let acceptable = self.cumulative.partition_point(|below| *below <= risk) as u64;
        // fewer_than(first + acceptable) is the last one within the risk.
        match self.first + acceptable {
            0 => None,
            rank => Some(rank.min(self.trials)),
        }
    }

    /// The smallest rank whose order statistic falls below the quantile with probability at most `risk`.
    fn high_rank(&self, risk: f64) -> Option<u64> {
        let short = self.cumulative.partition_point(|below| *below < 1.0 - risk) as u64;
        let rank = self.first + short + 1;
        (rank <= self.trials).then_some(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_within_rounding_of_a_rank_is_that_rank() {
        assert_ne!(100.0 * 0.57, 57.0, "the case must be one of rounding");
        assert_eq!(QuantilePosition::of(0.57, 101), QuantilePosition { rank: 57, weight: 0.0 });
        assert_eq!(QuantilePosition::of(0.57, 101).between(5, INFINITE), 5.0);
        assert_eq!(QuantilePosition::of(0.5, 4), QuantilePosition { rank: 1, weight: 0.5 });
        assert_eq!(QuantilePosition::of(0.5, 4).between(5, INFINITE), f64::INFINITY);
        assert_eq!(QuantilePosition::of(0.9, 1), QuantilePosition { rank: 0, weight: 0.0 });
        assert_eq!(QuantilePosition::of(0.5, 2).between(i64::MIN, i64::MAX - 1), 0.0);
    }

    #[test]
    fn ten_observations_beyond_a_quantile_support_it() {
        for (q, n, supported) in
            [(0.99, 1000.0, true), (0.99, 999.0, false), (0.9999, 1e5, true), (0.01, 999.0, false), (0.5, 20.0, true)]
        {
            assert_eq!(is_supported(q, n), supported, "q {q}, n {n}");
        }
    }

    #[test]
    fn fewer_trials_widen_the_bounds() {
        let independent = RankBounds::of(0.9, 10_000, 10_000.0, 0.95);
        let dependent = RankBounds::of(0.9, 10_000, 100.0, 0.95);
        assert_eq!((independent.low, independent.high), (Some(8940), Some(9058)));
        assert!(dependent.low < Some(8500) && dependent.high > Some(9400), "{dependent:?}");
        let few = RankBounds::of(0.9, 10, 10.0, 0.95);
        assert_eq!((few.high, few.below.is_some()), (None, true));
    }

    /// `scipy.stats.binom.cdf(k, n, q)`, SciPy 1.17.
    #[test]
    fn probabilities_agree_with_scipy() {
        let cases = [
            (10, 0.5, 1, 0.0107421875),
            (10_000, 0.99, 9879, 0.022114487837461512),
            (10_000_000, 0.5, 4_996_900, 0.024980603516305024),
            (7, 0.9999, 6, 0.0006997900349964232),
        ];
        for (n, q, k, expected) in cases {
            let got = Binomial::new(n, q).fewer_than(k + 1);
            assert!((got - expected).abs() < 1e-9, "P(X <= {k}) = {got} for n {n}, q {q}, expected {expected}");
        }
    }

    #[test]
    fn ranks_are_the_tightest_within_the_risk() {
        for (n, q) in [(1, 0.5), (5, 0.5), (6, 0.5), (30, 0.9), (1000, 0.99), (1000, 0.001), (100_000, 0.9)] {
            let binomial = Binomial::new(n, q);
            let low = binomial.low_rank(0.025).unwrap_or(0);
            assert!(low == 0 || binomial.fewer_than(low) <= 0.025, "n {n}, q {q}: low {low}");
            assert!(low == n || binomial.fewer_than(low + 1) > 0.025, "n {n}, q {q}: low {low} could be higher");
            let high = binomial.high_rank(0.025).unwrap_or(n + 1);
            assert!(high == n + 1 || binomial.fewer_than(high) >= 0.975, "n {n}, q {q}: high {high}");
            assert!(high == 1 || binomial.fewer_than(high - 1) < 0.975, "n {n}, q {q}: high {high} could be lower");
        }
        assert_eq!(Binomial::new(5, 0.5).low_rank(0.025), None, "0.5 to the fifth is 3.1 %");
        assert_eq!(Binomial::new(6, 0.5).low_rank(0.025), Some(1), "0.5 to the sixth is 1.6 %");
    }
}
