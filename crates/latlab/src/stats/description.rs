//! What is known of a sample.

use super::interval::Interval;

/// One quantile.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantileEstimate {
    /// Which, in (0, 1).
    pub q: f64,
    /// Linear interpolation between order statistics (type 7); none where it is infinite.
    pub value: Option<f64>,
    /// Whether the value is none because it fell among the lost.
    pub lost: bool,
    /// Its interval, where one was asked for and exists.
    pub interval: Option<Interval>,
    /// At least 10 effective observations lie beyond it.
    pub supported: bool,
    /// One-sided 95 % lower bound, for quantiles that are not supported.
    pub lower_bound: Option<f64>,
}

/// A sample, described.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Singletons, finite or not.
    pub n: u64,
    /// Of them infinite.
    pub lost: u64,
    /// Over the finite ones, as are the next three; none where there is none.
    pub min: Option<i64>,
    /// Largest finite.
    pub max: Option<i64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Sample standard deviation (n − 1); none below two, and where it was not asked for.
    pub stddev: Option<f64>,
    /// Independent observations that the finite ones are worth for the mean, where that was asked for.
    pub effective_n: Option<f64>,
    /// Interval of the mean, where one was asked for and exists.
    pub mean_interval: Option<Interval>,
    /// As wished, in that order.
    pub quantiles: Vec<QuantileEstimate>,
}
