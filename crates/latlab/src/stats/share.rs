//! Shares of singletons, such as the lost or late ones, with their confidence intervals.

use super::dependence::{Batches, Dependence};
use super::interval::{Interval, normal};
use crate::sample::Sample;

/// A ratio of counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Singletons with the property.
    pub hits: u64,
    /// All singletons.
    pub n: u64,
    /// hits / n; `None` if n is 0.
    pub value: Option<f64>,
    /// Effective sample size; `None` if the order is unknown.
    pub effective_n: Option<f64>,
    /// Wilson's score interval at the effective n, within [0, 1]; `None` if the order is unknown.
    pub interval: Option<Interval>,
}

/// The share of `hits` among `n` independent observations.
pub fn ratio(hits: u64, n: u64, confidence: f64) -> Share {
    at_effective_n(hits, n, n as f64, confidence)
}

/// The share of singletons for which `is_hit` holds; infinite ones are [`INFINITE`](crate::sample::INFINITE). Hits in
/// bursts widen the interval.
pub fn share(sample: &Sample, confidence: f64, is_hit: impl Fn(i64) -> bool) -> Share {
    let hits = sample.singletons.iter().filter(|value| is_hit(**value)).count() as u64;
    if !sample.ordered {
        return Share { effective_n: None, interval: None, ..ratio(hits, sample.n(), confidence) };
    }
    let dependence = Dependence::of(&Batches::of_indicator(&sample.singletons, is_hit));
    at_effective_n(hits, sample.n(), dependence.effective_n, confidence)
}

fn at_effective_n(hits: u64, n: u64, effective_n: f64, confidence: f64) -> Share {
    if n == 0 {
        return Share { hits, n, value: None, effective_n: None, interval: None };
    }
    let value = hits as f64 / n as f64;
    let interval = wilson(value, effective_n, confidence);
    Share { hits, n, value: Some(value), effective_n: Some(effective_n), interval: Some(interval) }
}

/// Wilson's score interval (1927): all probabilities that a score test does not reject.
fn wilson(value: f64, n: f64, confidence: f64) -> Interval {
    let z = normal(0.5 + confidence / 2.0);
    let weight = z * z / n;
    let centre = (value + weight / 2.0) / (1.0 + weight);
    let reach = z / (1.0 + weight) * (value * (1.0 - value) / n + weight / (4.0 * n)).sqrt();
    // At 0 and 1 the end is the value itself: rounding must not move it inside.
    let low = if value == 0.0 { 0.0 } else { (centre - reach).max(0.0) };
    let high = if value == 1.0 { 1.0 } else { (centre + reach).min(1.0) };
    Interval { low: Some(low), high: Some(high), confidence }
}
