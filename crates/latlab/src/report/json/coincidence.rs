//! What wake-ups beside the probes say of the slow ones, as a document.

use serde::Serialize;

use super::{IntervalDocument, MetricDocument, interval_scaled, whole};
use crate::analysis::{Coincidence, LateBeyond};
use crate::units::Nanos;

#[derive(Serialize)]
pub(super) struct CoincidenceDocument<'a> {
    interval_ns: Nanos,
    cpus: &'a [u16],
    wakeup_latency: MetricDocument,
    overrun_slots: u64,
    late_beyond_ns: Option<f64>,
    late_beyond: &'static str,
    late_beyond_by_cpu: Vec<LateOnCpu>,
    late: u64,
    slow_beyond_ns: Option<f64>,
    slow_beyond: &'static str,
    slow: u64,
    coincident: u64,
    coincident_ratio: Option<f64>,
    coincident_ratio_interval: Option<IntervalDocument>,
    chance_ratio: Option<f64>,
}

/// From when on a wake-up of a CPU is late.
#[derive(Serialize)]
struct LateOnCpu {
    cpu: Option<u16>,
    beyond_ns: f64,
}

impl CoincidenceDocument<'_> {
    pub(super) fn of(found: &Coincidence) -> CoincidenceDocument<'_> {
        let named = |stated: bool, name| if stated { name } else { "p99" };
        let (stated, by_cpu) = match &found.late_beyond {
            LateBeyond::Stated(beyond_ns) => (Some(*beyond_ns), Vec::new()),
            LateBeyond::Tails(tails) => {
                (None, tails.iter().map(|(cpu, beyond)| LateOnCpu { cpu: *cpu, beyond_ns: *beyond }).collect())
            }
        };
        let only = if let [only] = by_cpu.as_slice() { Some(only.beyond_ns) } else { None };
        CoincidenceDocument {
            interval_ns: found.interval_ns,
            cpus: &found.cpus,
            wakeup_latency: whole(&found.wakeup_latency),
            overrun_slots: found.overrun_slots,
            late_beyond_ns: stated.or(only),
            late_beyond: named(stated.is_some(), "stated"),
            late_beyond_by_cpu: by_cpu,
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
