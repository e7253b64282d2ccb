//! JSON form of the statistics of one metric. Numbers are finite or null.

use serde::Serialize;

use crate::metric::Metric;
use crate::stats::{Description, Interval, QuantileEstimate};

/// Serializes as indented JSON. Panics if serialization fails, which for plain data with text keys is a defect
/// that must not appear as an empty result.
pub(crate) fn pretty(document: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(document);
    text.expect("plain data with text keys") + "\n"
}

#[derive(Serialize)]
pub(super) struct MetricDocument {
    unit: &'static str,
    n: u64,
    lost: Option<u64>,
    min: Option<Whole>,
    mean: Option<f64>,
    stddev: Option<f64>,
    max: Option<Whole>,
    effective_n: Option<f64>,
    mean_interval: Option<IntervalDocument>,
    quantiles: Vec<QuantileDocument>,
}

impl MetricDocument {
    /// The same of a run of which it is not known what it lost.
    pub(super) fn without_losses(self) -> MetricDocument {
        MetricDocument { lost: None, ..self }
    }
}

/// An integer number of nanoseconds, or an integer and a half.
#[derive(Serialize)]
#[serde(untagged)]
enum Whole {
    Nanos(i64),
    Half(f64),
}

#[derive(Serialize)]
pub(super) struct IntervalDocument {
    low: Option<f64>,
    high: Option<f64>,
    confidence: f64,
}

#[derive(Serialize)]
struct QuantileDocument {
    q: f64,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    confidence: Option<f64>,
    supported: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_bound: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

pub(super) fn of_metric(of: Metric, described: &Description) -> MetricDocument {
    MetricDocument { unit: of.unit(), ..whole(described) }
}

pub(super) fn whole(described: &Description) -> MetricDocument {
    metric(described, 1.0, Whole::Nanos)
}

/// Describes half of each singleton: every statistic in nanoseconds is halved.
pub(super) fn halved(described: &Description) -> MetricDocument {
    metric(described, 2.0, |ns| Whole::Half(ns as f64 / 2.0))
}

pub(super) fn interval_scaled(interval: Interval, divisor: f64) -> IntervalDocument {
    let scaled = |end: Option<f64>| end.map(|end| end / divisor);
    IntervalDocument { low: scaled(interval.low), high: scaled(interval.high), confidence: interval.confidence }
}

fn metric(described: &Description, divisor: f64, extreme: fn(i64) -> Whole) -> MetricDocument {
    let scaled = |ns: Option<f64>| ns.map(|ns| ns / divisor);
    let quantile = |estimate: &QuantileEstimate| QuantileDocument {
        q: estimate.q,
        value: scaled(estimate.value),
        low: scaled(estimate.interval.and_then(|interval| interval.low)),
        high: scaled(estimate.interval.and_then(|interval| interval.high)),
        confidence: estimate.interval.map(|interval| interval.confidence),
        supported: estimate.supported,
        lower_bound: scaled(estimate.lower_bound).filter(|_| !estimate.supported),
        reason: estimate.lost.then_some("lost"),
    };
    MetricDocument {
        unit: "ns",
        n: described.n,
        lost: Some(described.lost),
        min: described.min.map(extreme),
        mean: scaled(described.mean),
        stddev: scaled(described.stddev),
        max: described.max.map(extreme),
        effective_n: described.effective_n,
        mean_interval: described.mean_interval.map(|interval| interval_scaled(interval, divisor)),
        quantiles: described.quantiles.iter().map(quantile).collect(),
    }
}
