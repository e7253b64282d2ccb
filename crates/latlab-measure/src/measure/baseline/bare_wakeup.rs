//! The bare loop of wake-ups: the system call, clock reads, pins, priority and settings of `latlab wakeup` with
//! `--via clock_nanosleep`, without its other threads, host samples and recording. Only the latencies are kept.

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

/// The time from when the thread is placed to the origin of its schedule, as in `latlab wakeup`.
const LEAD_NS: i64 = 5_000_000;

/// The specification of a bare loop of wake-ups.
#[derive(Clone, Debug, PartialEq)]
pub struct BareWakeupSpec {
    /// The time between due times.
    pub interval_ns: Nanos,
    pub count: usize,
    pub warmup: usize,
    /// The placement of the thread; its wait mode has no effect.
    pub end: EndSpec,
    /// Settings during the loop, such as `timer-slack` and `cpu-dma-latency`.
    pub settings: Vec<SettingSpec>,
}

/// The result of the loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BareWakeups {
    pub p50_ns: f64,
    /// The 99th percentile of the latency.
    pub p99_ns: f64,
    /// The number of measured wake-ups.
    pub n: u64,
    /// The time between due times.
    pub interval_ns: Nanos,
    /// The timer slack of the thread.
    pub timer_slack_ns: Option<Nanos>,
}

/// Runs the loop of `spec`.
///
/// # Errors
/// A setting, pin or priority is refused, or a sleep fails.
pub fn sleep_bare(spec: &BareWakeupSpec) -> Result<BareWakeups, MeasureError> {
    let mut guard = HostGuard::none();
    if !spec.settings.is_empty() {
        let interfaces = PathInterfaces::loopback();
        guard = HostGuard::hold(&spec.settings, &interfaces, HostRoot::for_knobs(), KnobJournal::for_user().as_ref())
            .map_err(HostError::from)?;
        guard.reflector_started().map_err(HostError::from)?;
    }
    let (end, interval_ns) = (spec.end, spec.interval_ns.0);
    let slots = spec.warmup + spec.count;
    // The thread inherits the timer slack.
    let sleeping = thread::Builder::new().name("sleep".into()).spawn(move || {
        placement::place(&end)?;
        // Written before the loop, so that the loop causes no page faults.
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

/// The loop. As in latlab, the thread also sleeps for a slot that is past.
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
    let options = DescribeOptions { quantiles: vec![0.5, 0.99], confidence: 0.95, intervals: false };
    let described = describe(&sample, &options);
    let quantile = |at: usize| described.quantiles.get(at).and_then(|quantile| quantile.value).unwrap_or(f64::NAN);
    BareWakeups { p50_ns: quantile(0), p99_ns: quantile(1), n: sample.n(), interval_ns, timer_slack_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_wake_ups_but_those_of_the_warm_up_are_measured() {
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
        // All slots are past: each wake-up is as late as its slot is old.
        sleep(start - 1_000_000_000, 1_000_000, &mut late).expect("sleeps");
        assert!(late.iter().all(|late| *late > 990_000_000), "{late:?}");
    }
}
