//! Statistics of values of unknown order that come with counts, as histograms of other tools have them. A count is never
//! expanded: a histogram of 10^10 values costs as much as its bins.

use super::clock_step::clock_step;
use super::describe::{DescribeOptions, Description, QuantileEstimate};
use super::histogram::{Bucket, edges_of};
use super::quantile::{QuantilePosition, SUPPORT_MIN, is_supported};
use crate::sample::INFINITE;

/// Values with counts, ascending, and the number of those that are infinite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedSample {
    /// Finite values, each once, ascending.
    values: Vec<i64>,
    /// The number of values up to and including each of them.
    cumulated: Vec<u64>,
    infinite: u64,
}

/// The most values of which edges are chosen.
const EXCERPT: u64 = 1 << 14;

impl CountedSample {
    /// The sample of `counted` values, each with its count, in any order, and of so many `infinite` ones.
    pub fn of(mut counted: Vec<(i64, u64)>, infinite: u64) -> CountedSample {
        counted.sort_unstable();
        let (mut values, mut cumulated): (Vec<i64>, Vec<u64>) = (Vec::new(), Vec::new());
        let mut n = 0_u64;
        for (value, count) in counted.into_iter().filter(|(_, count)| *count > 0) {
            n = n.saturating_add(count);
            match (values.last(), cumulated.last_mut()) {
                (Some(last), Some(sum)) if *last == value => *sum = n,
                _ => {
                    values.push(value);
                    cumulated.push(n);
                }
            }
        }
        CountedSample { values, cumulated, infinite }
    }

    /// The sample of single values, of which some may be [`INFINITE`].
    pub fn of_singletons(singletons: &[i64]) -> CountedSample {
        let finite: Vec<(i64, u64)> =
            singletons.iter().filter(|value| **value != INFINITE).map(|value| (*value, 1)).collect();
        let infinite = (singletons.len() - finite.len()) as u64;
        CountedSample::of(finite, infinite)
    }

    /// The same sample with so many `more` infinite values.
    #[must_use]
    pub fn with_infinite(self, more: u64) -> CountedSample {
        CountedSample { infinite: self.infinite.saturating_add(more), ..self }
    }

    /// Number of values, finite or not.
    pub fn n(&self) -> u64 {
        self.finite().saturating_add(self.infinite)
    }

    pub fn finite(&self) -> u64 {
        self.cumulated.last().copied().unwrap_or(0)
    }

    /// Number of infinite values.
    pub const fn infinite(&self) -> u64 {
        self.infinite
    }

    /// The smallest and the largest finite value; `None` without any.
    pub fn extremes(&self) -> Option<(i64, i64)> {
        Some((*self.values.first()?, *self.values.last()?))
    }

    /// The finite values, each once and with its count, ascending.
    pub fn counts(&self) -> impl Iterator<Item = (i64, u64)> {
        let before = std::iter::once(0).chain(self.cumulated.iter().copied());
        self.values.iter().zip(self.cumulated.iter().zip(before)).map(|(value, (upto, before))| (*value, upto - before))
    }

    /// The value of `rank`, from 0; [`INFINITE`] beyond the finite ones.
    pub fn at(&self, rank: u64) -> i64 {
        let place = self.cumulated.partition_point(|upto| *upto <= rank);
        self.values.get(place).copied().unwrap_or(INFINITE)
    }

    /// Number of values below `bound`.
    pub fn below(&self, bound: i64) -> u64 {
        match self.values.partition_point(|value| *value < bound) {
            0 => 0,
            place => self.cumulated[place - 1],
        }
    }

    /// Its figures. Without an order there are no intervals, and quantiles have the support that independent values would give
    /// them.
    pub fn describe(&self, options: &DescribeOptions) -> Description {
        let extremes = self.extremes();
        let mean = self.mean();
        Description {
            n: self.n(),
            lost: self.infinite,
            min: extremes.map(|(min, _)| min as f64),
            max: extremes.map(|(_, max)| max as f64),
            mean,
            stddev: mean.and_then(|mean| self.stddev(mean)),
            effective_n: None,
            mean_interval: None,
            quantiles: options.quantiles.iter().map(|q| self.quantile(*q)).collect(),
            slow_changes: None,
            rare_bursts: None,
            step: clock_step(self.values.iter().copied()),
        }
    }

    fn mean(&self) -> Option<f64> {
        let (min, _) = self.extremes()?;
        // Offsets from the minimum in 128 bits are exact; the mean itself is rounded once.
        let sum: i128 =
            self.counts().map(|(value, count)| (i128::from(value) - i128::from(min)) * i128::from(count)).sum();
        let n = i128::from(self.finite());
        Some((i128::from(min) + sum.div_euclid(n)) as f64 + sum.rem_euclid(n) as f64 / n as f64)
    }

    fn stddev(&self, mean: f64) -> Option<f64> {
        let squares: f64 = self.counts().map(|(value, count)| (value as f64 - mean).powi(2) * count as f64).sum();
        (self.finite() > 1).then(|| (squares / (self.finite() - 1) as f64).sqrt())
    }

    fn quantile(&self, q: f64) -> QuantileEstimate {
        let n = self.n();
        let position = QuantilePosition::of(q, n);
        let value = (n > 0).then(|| position.between(self.at(position.rank), self.at(position.rank + 1)));
        let lost = value.is_some_and(f64::is_infinite);
        let supported = if lost { self.infinite as f64 >= SUPPORT_MIN } else { is_supported(q, n as f64) };
        QuantileEstimate {
            q,
            value: value.filter(|value| value.is_finite()),
            lost,
            interval: None,
            supported: n > 0 && supported,
            lower_bound: None,
            bound_is_lost: false,
        }
    }

    /// The finite values in at most twelve adjoining buckets, as [`histogram`](super::histogram) divides a sample.
    pub fn histogram(&self) -> Vec<Bucket> {
        let Some((min, max)) = self.extremes() else { return Vec::new() };
        let excerpt = self.finite().min(EXCERPT);
        let rank = |step: u64| (u128::from(step) * u128::from(self.finite()) / u128::from(excerpt)) as u64;
        let edges = edges_of((0..excerpt).map(|step| self.at(rank(step))).collect(), min, max);
        let count = |pair: &[i64]| self.below(pair[1]) - self.below(pair[0]);
        edges.windows(2).map(|pair| Bucket { low_ns: pair[0], high_ns: pair[1], count: count(pair) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Metric;
    use crate::sample::Sample;
    use crate::{describe, histogram};

    fn options() -> DescribeOptions {
        DescribeOptions { quantiles: vec![0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0], confidence: 0.95, intervals: false }
    }

    #[test]
    fn counts_give_the_figures_of_the_single_values() {
        let singletons: Vec<i64> = (0..5_000_i64).map(|row| (row * 7_919) % 501 - 20).chain([INFINITE; 12]).collect();
        let sample = Sample::unordered(Metric::Delay, singletons.clone());
        let (expected, counted) = (describe(&sample, &options()), CountedSample::of_singletons(&singletons));
        let found = counted.describe(&options());
        assert_eq!(
            (found.n, found.lost, found.min, found.max),
            (expected.n, expected.lost, expected.min, expected.max)
        );
        assert_eq!(found.quantiles, expected.quantiles);
        let close = |one: Option<f64>, other: Option<f64>| (one.unwrap_or(0.0) - other.unwrap_or(1e9)).abs() < 1e-9;
        assert!(close(found.mean, expected.mean) && close(found.stddev, expected.stddev), "{found:?} {expected:?}");
        let total = |buckets: &[Bucket]| buckets.iter().map(|bucket| bucket.count).sum::<u64>();
        assert_eq!(total(&counted.histogram()), total(&histogram(&sample)));
    }

    #[test]
    fn counts_beyond_memory_are_described() {
        let counted = CountedSample::of(vec![(3_000, 1 << 40), (2_000, 3 << 40), (9_000, 1), (3_000, 0)], 0);
        let described = counted.describe(&options());
        assert_eq!((described.n, described.min, described.max), ((4 << 40) + 1, Some(2_000.0), Some(9_000.0)));
        assert_eq!(
            described.quantiles.iter().map(|one| one.value).collect::<Vec<_>>()[2..5],
            [2_000.0, 3_000.0, 3_000.0].map(Some)
        );
        assert!((described.mean.expect("values") - 2_250.0).abs() < 1e-6);
        assert_eq!(counted.counts().collect::<Vec<_>>(), [(2_000, 3 << 40), (3_000, 1 << 40), (9_000, 1)]);
    }

    #[test]
    fn without_finite_values_no_figure_exists() {
        for (infinite, lost) in [(0, false), (20, true)] {
            let described = CountedSample::of(Vec::new(), infinite).describe(&options());
            assert_eq!((described.n, described.min, described.mean, described.stddev), (infinite, None, None, None));
            assert!(
                described.quantiles.iter().all(|one| one.value.is_none() && one.lost == lost && one.supported == lost)
            );
        }
    }
}
