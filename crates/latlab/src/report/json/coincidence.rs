//! What wake-ups beside the probes say of the slow ones, as a document.

use serde::Serialize;

use super::{IntervalDocument, MetricDocument, interval_scaled, whole};
use crate::analysis::Coincidence;
use crate::units::Nanos;

#[derive(Serialize)]
pub(super) struct CoincidenceDocument<'a> {
    interval_ns: Nanos,
    cpus: &'a [u16],
    wakeup_latency: MetricDocument,
    late_beyond_ns: Option<f64>,
    late_beyond: &'static str,
    late: u64,
    slow_beyond_ns: Option<f64>,
    slow_beyond: &'static str,
    slow: u64,
    coincident: u64,
    coincident_ratio: Option<f64>,
    coincident_ratio_interval: Option<IntervalDocument>,
    chance_ratio: Option<f64>,
}

impl CoincidenceDocument<'_> {
    pub(super) fn of(found: &Coincidence) -> CoincidenceDocument<'_> {
        let named = |stated: bool, name| if stated { name } else { "p99" };
        CoincidenceDocument {
            interval_ns: found.interval_ns,
            cpus: &found.cpus,
            wakeup_latency: whole(&found.wakeup_latency),
            late_beyond_ns: found.late_beyond.beyond_ns,
            late_beyond: named(found.late_beyond.stated, "stated"),
            late: found.late,
            slow_beyond_ns: found.slow_beyond.beyond_ns,
            slow_beyond: named(found.slow_beyond.stated, "deadline"),
            slow: found.slow.n,
            coincident: found.slow.hits,
            coincident_ratio: found.slow.value,
            coincident_ratio_interval: found.slow.interval.map(|interval| interval_scaled(interval, 1.0)),
            chance_ratio: found.chance,
        }
    }
}
