//! How many of a sample's singletons are something: lost, too late, reordered.

use super::batches::Batches;
use super::dependence::Dependence;
use super::deviate::normal;
use super::interval::Interval;
use crate::sample::Sample;

/// A ratio of counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Those that are.
    pub hits: u64,
    /// All.
    pub n: u64,
    /// hits / n; none where there is none at all.
    pub value: Option<f64>,
    /// Independent observations that they are worth; none where the order is unknown.
    pub effective_n: Option<f64>,
    /// Wilson's score interval at the effective n, within [0, 1]; none without order.
    pub interval: Option<Interval>,
}

/// The share of `hits` among `n` observations that are independent of each other, at `confidence`.
pub fn ratio(hits: u64, n: u64, confidence: f64) -> Share {
    at_effective_n(hits, n, n as f64, confidence)
}

/// The share of singletons for which `is_hit` holds, at `confidence`; infinite ones come as
/// [`INFINITE`](crate::sample::INFINITE). Hits that come in bursts widen the interval.
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

/// Wilson's score interval (1927): all chances that a score test would not reject.
fn wilson(value: f64, n: f64, confidence: f64) -> Interval {
    let z = normal(0.5 + confidence / 2.0);
    let weight = z * z / n;
    let centre = (value + weight / 2.0) / (1.0 + weight);
    let reach = z / (1.0 + weight) * (value * (1.0 - value) / n + weight / (4.0 * n)).sqrt();
    // at 0 and 1 the end is the value itself: rounding must not move it inside
    let low = if value == 0.0 { 0.0 } else { (centre - reach).max(0.0) };
    let high = if value == 1.0 { 1.0 } else { (centre + reach).min(1.0) };
    Interval { low: Some(low), high: Some(high), confidence }
}
