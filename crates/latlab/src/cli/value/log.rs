//! Parsers of what is said about the log of another tool.

use super::{Refusal, refusal};
use crate::formats::import::{FORMATS, LogFormat, format_named};
use crate::metric::Metric;
use crate::units::human::suggestion;

pub fn log_format(typed: &str) -> Result<&'static LogFormat, Refusal> {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    format_named(typed).ok_or_else(|| refusal("it is not a format of logs", suggestion(typed, &names)))
}

/// Parses a metric that the values of a log may have.
pub fn logged_metric(typed: &str) -> Result<Metric, Refusal> {
    let metric = Metric::from_name(typed).filter(|metric| Metric::VALUES.contains(metric));
    let names = Metric::VALUES.map(Metric::name);
    metric.ok_or_else(|| refusal("values of a log are not of it", suggestion(typed, &names)))
}

/// Parses a direction of fio.
pub fn direction(typed: &str) -> Result<String, Refusal> {
    let words = ["read", "write", "trim"];
    let is_known = words.contains(&typed);
    is_known.then(|| typed.into()).ok_or_else(|| refusal("it is not a direction of fio", suggestion(typed, &words)))
}
