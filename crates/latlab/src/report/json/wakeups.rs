//! `wakeups` in `latlab.summary/1`: what a run of wake-ups says beyond its latency.

use serde::Serialize;

use super::{MetricDocument, whole};
use crate::analysis::Wakeups;
use crate::facts::LateWakeup;
use crate::report::meanwhile_document::MeanwhileDocument;
use crate::stats::Description;
use crate::units::Nanos;

/// The object `wakeups`.
#[derive(Serialize)]
pub(super) struct WakeupsDocument<'a> {
    cpus: Vec<WakeupCpuDocument>,
    overrun_slots: u64,
    not_slept: Option<u64>,
    timer_slack_ns: Option<Nanos>,
    stretch: Option<f64>,
    allowed_ns: Option<Nanos>,
    rounding_ns: Option<f64>,
    rest_ns: Option<f64>,
    meanwhile: Vec<MeanwhileDocument<'a>>,
    broke: Option<LateWakeup>,
    cut_short: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a str>,
}

#[derive(Serialize)]
struct WakeupCpuDocument {
    cpu: u16,
    wakeup_latency: MetricDocument,
}

impl WakeupsDocument<'_> {
    pub(super) fn of(wakeups: &Wakeups) -> WakeupsDocument<'_> {
        let of_cpu =
            |(cpu, described): &(u16, Description)| WakeupCpuDocument { cpu: *cpu, wakeup_latency: whole(described) };
        let lateness = &wakeups.lateness;
        WakeupsDocument {
            cpus: wakeups.by_cpu.iter().map(of_cpu).collect(),
            overrun_slots: wakeups.overrun_slots,
            not_slept: wakeups.not_slept,
            timer_slack_ns: lateness.timer_slack_ns,
            stretch: lateness.stretch,
            allowed_ns: lateness.allowed_ns,
            rounding_ns: lateness.rounding_ns,
            rest_ns: lateness.rest.known(),
            meanwhile: wakeups.meanwhile.iter().map(MeanwhileDocument::of).collect(),
            broke: wakeups.broke,
            cut_short: wakeups.cut_short,
            trace: wakeups.trace.as_deref(),
        }
    }
}
