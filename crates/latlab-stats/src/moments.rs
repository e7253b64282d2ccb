//! Count, extremes, mean and standard deviation over the finite singletons.

use super::long_run::TimeSeries;
use crate::sample::INFINITE;

/// Count, extremes and exact sum of the finite singletons, from one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) count: u64,
    /// Smallest, in ns.
    pub(super) min: i64,
    /// Largest, in ns.
    pub(super) max: i64,
    /// Exact sum, in ns.
    sum: i128,
}

impl Extent {
    /// `None` if no singleton is finite.
    pub(super) fn of(singletons: &[i64]) -> Option<Extent> {
        let mut extent = Extent { count: 0, min: i64::MAX, max: i64::MIN, sum: 0 };
        for &value in singletons {
            if value != INFINITE {
                extent.count += 1;
                extent.min = extent.min.min(value);
                extent.max = extent.max.max(value);
                extent.sum += i128::from(value);
            }
        }
        (extent.count > 0).then_some(extent)
    }

    /// The mean in ns, correctly rounded from the exact sum to within one unit in the last place.
    pub(super) fn mean(&self) -> f64 {
        let count = i128::from(self.count);
        (self.sum.div_euclid(count)) as f64 + self.sum.rem_euclid(count) as f64 / self.count as f64
    }

    /// The mean minus the minimum: small and exact where the mean itself would be large and rounded.
    fn mean_above_min(&self) -> f64 {
        let above = self.sum - i128::from(self.min) * i128::from(self.count);
        above as f64 / self.count as f64
    }

    /// `value` minus the mean, in ns, without overflow or cancellation.
    #[inline]
    pub(super) fn deviation(&self, value: i64, mean_above_min: f64) -> f64 {
        value.wrapping_sub(self.min) as u64 as f64 - mean_above_min
    }
}

/// The standard deviation of the finite singletons, and their deviations from the mean for the estimate of dependence.
pub(super) struct Spread {
    /// Sample standard deviation (n − 1) in ns; `None` below two.
    pub(super) stddev: Option<f64>,
    pub(super) series: TimeSeries,
}

impl Spread {
    /// From a second pass over `singletons`, whose extent is known.
    pub(super) fn of(singletons: &[i64], extent: &Extent) -> Spread {
        let mean_above_min = extent.mean_above_min();
        let finite = singletons.iter().filter(|value| **value != INFINITE);
        let deviations = finite.map(|value| extent.deviation(*value, mean_above_min));
        let series = TimeSeries::of_centred(extent.count as usize, deviations);
        let variance = series.squares_about_mean() / (extent.count as f64 - 1.0);
        Spread { stddev: (extent.count > 1).then(|| variance.sqrt()), series }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_and_stddev(values: &[i64]) -> (f64, Option<f64>) {
        let extent = Extent::of(values).expect("finite values");
        (extent.mean(), Spread::of(values, &extent).stddev)
    }

    #[test]
    fn a_large_offset_costs_no_precision() {
        let offset = 1_000_000_000_000_000_000;
        let (mean, stddev) = mean_and_stddev(&[offset + 1, offset + 2, offset + 3, offset + 4]);
        assert_eq!(mean, offset as f64);
        assert!((stddev.expect("four values") - (5.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn the_whole_range_of_i64_is_accepted() {
        let (mean, stddev) = mean_and_stddev(&[i64::MIN, i64::MAX - 1, INFINITE]);
        assert_eq!(mean, -1.0);
        assert!((stddev.expect("two values") / (2.0_f64.powi(63) * 2.0_f64.sqrt()) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn negative_means_are_rounded_correctly() {
        assert_eq!(mean_and_stddev(&[-1, -2]).0, -1.5);
        assert_eq!(mean_and_stddev(&[-7]), (-7.0, None));
        assert_eq!(Extent::of(&[INFINITE]), None);
    }
}
