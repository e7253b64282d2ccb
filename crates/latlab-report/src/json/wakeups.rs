//! The objects `wakeups` and `coincidence` of `latlab.summary/1`.

use serde::Serialize;

use super::figures::{IntervalDocument, MetricDocument, interval_scaled, whole};
use crate::analysis::{ClockRates, Coincidence, CpuActivity, LateBeyond, StateShare, Wakeups};
use crate::facts::LateWakeup;
use crate::stats::Description;
use crate::units::Nanos;

/// The object `wakeups` of `latlab.summary/1`.
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
            meanwhile: wakeups.cpu_activity.iter().map(MeanwhileDocument::of).collect(),
            broke: wakeups.broke,
            cut_short: wakeups.cut_short,
            trace: wakeups.trace.as_deref(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct MeanwhileDocument<'a> {
    cpu: u16,
    idle_ratio: Option<f64>,
    idle_states: Vec<IdleStateDocument<'a>>,
    frequency_khz: Option<FrequencyDocument>,
}

#[derive(Serialize)]
struct IdleStateDocument<'a> {
    name: &'a str,
    exit_latency_us: Option<u32>,
    ratio: f64,
}

#[derive(Serialize)]
struct FrequencyDocument {
    min: i64,
    mean: f64,
    max: i64,
}

impl<'a> MeanwhileDocument<'a> {
    pub(super) fn of(cpu: &'a CpuActivity) -> MeanwhileDocument<'a> {
        let state = |state: &'a StateShare| {
            let StateShare { name, exit_latency_us, share } = state;
            IdleStateDocument { name, exit_latency_us: *exit_latency_us, ratio: *share }
        };
        let frequency =
            |seen: ClockRates| FrequencyDocument { min: seen.min_khz, mean: seen.mean_khz, max: seen.max_khz };
        MeanwhileDocument {
            cpu: cpu.cpu,
            idle_ratio: cpu.idle,
            idle_states: cpu.states.iter().map(state).collect(),
            frequency_khz: cpu.rate.map(frequency),
        }
    }
}

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

/// Threshold above which a wake-up of a CPU is late.
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
