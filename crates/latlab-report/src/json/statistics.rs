//! The statistics of one metric as JSON, and what all documents need. Numbers are finite or null.

use serde::Serialize;
use serde_json::{Value, json};

use crate::stats::{Description, QuantileEstimate};

/// Serializes as indented JSON. Panics if serialization fails, which for plain data with text keys is a defect
/// that must not appear as an empty result.
pub(crate) fn pretty(document: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(document);
    text.expect("plain data with text keys") + "\n"
}

/// `object` without those of `keys` that are null.
pub(crate) fn without_nulls(mut object: Value, keys: &[&str]) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|key, value| !value.is_null() || !keys.contains(&key.as_str()));
    }
    object
}

pub(crate) fn delays(described: &Description) -> Value {
    statistics(described, "ns", 1.0)
}

/// The statistics of singletons, each divided by `divisor`.
pub(super) fn statistics(described: &Description, unit: &str, divisor: f64) -> Value {
    let scaled = |figure: Option<f64>| figure.map(|figure| figure / divisor);
    let extreme = |figure: Option<f64>| match figure {
        Some(whole) if divisor == 1.0 && whole.fract() == 0.0 && whole.abs() < 1e15 => json!(whole as i64),
        figure => json!(scaled(figure)),
    };
    let quantile = |estimate: &QuantileEstimate| {
        let interval = estimate.interval;
        let document = json!({
            "q": estimate.q,
            "value": scaled(estimate.value),
            "low": scaled(interval.and_then(|interval| interval.low)),
            "high": scaled(interval.and_then(|interval| interval.high)),
            "confidence": interval.map(|interval| interval.confidence),
            "supported": estimate.supported,
            "lower_bound": scaled(estimate.lower_bound).filter(|_| !estimate.supported),
            "reason": estimate.lost.then_some("lost"),
        });
        without_nulls(document, &["lower_bound", "reason"])
    };
    let mean_interval = described.mean_interval.map(|interval| {
        json!({ "low": scaled(interval.low), "high": scaled(interval.high), "confidence": interval.confidence })
    });
    json!({
        "unit": unit,
        "n": described.n,
        "lost": described.lost,
        "min": extreme(described.min),
        "mean": scaled(described.mean),
        "stddev": scaled(described.stddev),
        "max": extreme(described.max),
        "effective_n": described.effective_n,
        "mean_interval": mean_interval,
        "quantiles": described.quantiles.iter().map(quantile).collect::<Vec<_>>(),
    })
}
