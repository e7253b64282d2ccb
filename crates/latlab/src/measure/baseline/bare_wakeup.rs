//! The bare loop of wake-ups: `latlab wakeup` by clock_nanosleep with its own system call, clock reads, pins, priority
//! and settings, and nothing else. No threads beside it, no samples of the host, no recording; the latencies alone are
//! kept, since a quantile needs them.

use std::io;
use std::thread;

use latlab_sys::clock::monotonic_ns;
use latlab_sys::sleep::clock_nanosleep_until;
use serde::Serialize;

use crate::host::{HostError, HostGuard, HostRoot, KnobJournal, PathInterfaces, placement};
use crate::measure::MeasureError;
use crate::metric::Metric;
use crate::plan::{EndSpec, SettingSpec, Via};
use crate::sample::Sample;
use crate::stats::{DescribeOptions, describe};
use crate::units::Nanos;

/// From the thread's start to the origin of its schedule, as in latlab.
const LEAD_NS: i64 = 5_000_000;

/// A bare loop of wake-ups, settled.
#[derive(Clone, Debug, PartialEq)]
pub struct BareWakeupSpec {
    /// From one due time to the next.
    pub interval_ns: Nanos,
    /// Wake-ups that count.
    pub count: usize,
    /// Wake-ups before them.
    pub warmup: usize,
    /// How the thread runs; how it waits does not matter.
    pub end: EndSpec,
    /// What is set meanwhile: timer slack, a wish for short wake-ups.
    pub settings: Vec<SettingSpec>,
}

/// What the loop showed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BareWakeups {
    /// Median latency.
    pub p50_ns: f64,
    /// Its 99th percentile.
    pub p99_ns: f64,
    /// Wake-ups behind the figures.
    pub n: u64,
    /// From one due time to the next.
    pub interval_ns: Nanos,
    /// The slack that the thread had.
    pub timer_slack_ns: Option<Nanos>,
}

/// Sleeps as `spec` says and describes how late the thread woke.
///
/// # Errors
/// A setting or a place that cannot be had, or a sleep that the kernel refuses.
pub fn sleep_bare(spec: &BareWakeupSpec) -> Result<BareWakeups, MeasureError> {
    let mut guard = HostGuard::none();
    if !spec.settings.is_empty() {
        let ground = PathInterfaces::loopback();
        guard = HostGuard::hold(&spec.settings, &ground, HostRoot::for_knobs(), KnobJournal::for_user().as_ref())
            .map_err(HostError::from)?;
        guard.reflector_started().map_err(HostError::from)?;
    }
    let (end, interval_ns) = (spec.end, spec.interval_ns.0);
    let slots = spec.warmup + spec.count;
    // The thread inherits the slack.
    let sleeping = thread::Builder::new().name("sleep".into()).spawn(move || {
        placement::place(&end)?;
        // Written once before the loop, so that no page of it is touched for the first time inside.
        let mut latencies_ns = vec![i64::MAX; slots];
        sleep(monotonic_ns() + LEAD_NS, interval_ns, &mut latencies_ns)
            .map_err(|source| MeasureError::Sleep { via: Via::ClockNanosleep, source })?;
        Ok::<_, MeasureError>((latencies_ns, placement::timer_slack()))
    });
    let slept = sleeping.map_err(MeasureError::Thread)?.join();
    let (mut latencies_ns, slack) = slept.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    guard.restore();
    Ok(described(latencies_ns.split_off(spec.warmup), spec.interval_ns, slack))
}

/// The loop. A slot that is past is slept for all the same, as in latlab.
fn sleep(start_ns: i64, interval_ns: i64, latencies_ns: &mut [i64]) -> io::Result<()> {
    let mut due_ns = start_ns;
    for latency_ns in latencies_ns {
        due_ns += interval_ns;
        clock_nanosleep_until(due_ns)?;
        *latency_ns = monotonic_ns() - due_ns;
    }
    Ok(())
}

fn described(latencies_ns: Vec<i64>, interval_ns: Nanos, timer_slack_ns: Option<Nanos>) -> BareWakeups {
    let sample = Sample::new(Metric::WakeupLatency, latencies_ns);
    let wishes = DescribeOptions { quantiles: vec![0.5, 0.99], confidence: 0.95, intervals: false, seed: 0 };
    let described = describe(&sample, &wishes);
    let quantile = |at: usize| described.quantiles.get(at).and_then(|quantile| quantile.value).unwrap_or(f64::NAN);
    BareWakeups { p50_ns: quantile(0), p99_ns: quantile(1), n: sample.n(), interval_ns, timer_slack_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_and_what_counts_are_told_apart_and_nothing_is_skipped() {
        let spec = BareWakeupSpec {
            interval_ns: Nanos::from_micros(500),
            count: 40,
            warmup: 10,
            end: EndSpec::SYSTEM,
            settings: Vec::new(),
        };
        let slept = sleep_bare(&spec).expect("any thread may sleep");
        assert_eq!((slept.n, slept.interval_ns), (40, spec.interval_ns));
        assert!(0.0 <= slept.p50_ns && slept.p50_ns <= slept.p99_ns, "{slept:?}");
    }

    #[test]
    fn every_slot_is_due_an_interval_after_the_one_before() {
        let (start, mut late) = (monotonic_ns(), [i64::MAX; 5]);
        sleep(start, 1_000_000, &mut late).expect("sleeps");
        assert!(monotonic_ns() - start >= 5_000_000 && late.iter().all(|late| *late >= 0), "{late:?}");
        // All past: each is as late as its slot is old.
        sleep(start - 1_000_000_000, 1_000_000, &mut late).expect("sleeps");
        assert!(late.iter().all(|late| *late > 990_000_000), "{late:?}");
    }
}
