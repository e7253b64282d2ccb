//! Figures of wake-ups beyond their latency: each CPU, overrun slots, and the known parts of the median.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::LateWakeup;
use crate::metric::Metric;
use crate::plan::{Via, WakeupCpus, WakeupSpec};
use crate::probe::Phase;
use crate::recording::manifest::{Manifest, RunEnding};
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::sample::Sample;
use crate::source::{RowVisitor, cpu_at, value_at};
use crate::stats::{DescribeOptions, Description, describe};
use crate::units::Nanos;

/// The most that select, poll and epoll delay a time-out: MAX_SLACK in
/// [fs/select.c](https://github.com/torvalds/linux/blob/v6.18/fs/select.c).
const STRETCH_MAX: Nanos = Nanos::from_millis(100);

/// A granularity of time-outs that shows in the latency.
const COARSE: Nanos = Nanos::from_millis(1);

/// Figures of a run of wake-ups beyond its latency.
#[derive(Clone, Debug, PartialEq)]
pub struct Wakeups {
    /// The latency on each CPU, by CPU number; empty if a single thread slept.
    pub by_cpu: Vec<(u16, Description)>,
    /// Measured slots that were past when their thread returned from the one before.
    pub overrun_slots: u64,
    /// Measured slots given up because their thread was too far behind; `None` if the run died first.
    pub not_slept: Option<u64>,
    /// Whether the `--break` of a concurrent run ended this one early.
    pub cut_short: bool,
    /// The known parts of the lateness.
    pub lateness: Lateness,
    /// The wake-up that ended the run.
    pub broke: Option<LateWakeup>,
    /// The lateness beyond which a wake-up ends the run.
    pub break_ns: Option<Nanos>,
}

impl Wakeups {
    /// Whether most of `measured` slots were overrun: then lateness is backlog and does not describe the wake-ups.
    pub fn is_backlog(&self, measured: u64) -> bool {
        self.overrun_slots > measured / 2
    }
}

/// The parts of the lateness of a wake-up that the system call accounts for.
#[derive(Clone, Debug, PartialEq)]
pub struct Lateness {
    pub via: Via,
    /// The timer slack in force; `None` if it was not read.
    pub timer_slack_ns: Option<Nanos>,
    /// Whether they ran under SCHED_FIFO, for which the kernel uses no slack.
    pub real_time: bool,
    /// The share of its time-out by which the call may delay it; `None` if it does not.
    pub stretch: Option<f64>,
    /// The delay that the kernel allows the timer, by slack or stretch; `None` if the slack is unknown.
    pub allowed_ns: Option<Nanos>,
    /// The part of the median due to rounding the time-out up to the call's granularity; `None` if unknown.
    pub rounding_ns: Option<f64>,
    /// The median latency less both parts.
    pub rest: UnexplainedDelay,
}

/// The rest of the median: interrupt, idle exit, scheduling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UnexplainedDelay {
    /// In ns.
    Known(f64),
    /// The median is below the delay that the kernel allows; how much of that was used is unknown, and so is the rest.
    BeforeTheLimit,
    /// The allowed delay, the rounding or the median is unknown, or the data do not support a median.
    Unknown,
}

impl UnexplainedDelay {
    /// In ns, if it is known.
    pub fn known(self) -> Option<f64> {
        match self {
            UnexplainedDelay::Known(rest_ns) => Some(rest_ns),
            UnexplainedDelay::BeforeTheLimit | UnexplainedDelay::Unknown => None,
        }
    }
}

/// Supported medians of a run, ns.
#[derive(Clone, Copy, Debug, Default)]
struct Medians {
    latency_ns: Option<f64>,
    /// Of each latency less the rounding of its time-out; `None` if the rows do not show that.
    less_rounding_ns: Option<f64>,
}

impl Lateness {
    /// As `select_estimate_accuracy` in fs/select.c and the slack of hrtimer_sleeper compute it, for a sleep of one
    /// interval.
    fn of(manifest: &Manifest, wakeup: &WakeupSpec, medians: Medians) -> Lateness {
        let facts = manifest.run.wakeup.clone().unwrap_or_default();
        let real_time = manifest.spec.here.fifo.is_some();
        let nice = facts.niceness.is_some_and(|niceness| niceness > 0);
        // Without slack select_estimate_accuracy returns before it reads the time-out, as it does for real-time threads,
        // also those made so by another process.
        let exact = real_time || facts.timer_slack_ns == Some(Nanos::ZERO);
        let stretch = (wakeup.via.is_stretched() && !exact).then_some(if nice { 0.005 } else { 0.001 });
        let interval_ns = wakeup.interval_ns.0.saturating_add(rounding_of(wakeup.via, wakeup.interval_ns.0));
        let allowed_ns = match wakeup.via.has_slack() && !exact {
            false => Some(Nanos::ZERO),
            true => facts.timer_slack_ns.map(|slack| {
                let stretched = stretch.map_or(0.0, |share| interval_ns as f64 * share);
                slack.max(Nanos(stretched as i64).min(STRETCH_MAX))
            }),
        };
        let rounding_ns = match wakeup.relative {
            true => Some(rounding_of(wakeup.via, wakeup.interval_ns.0) as f64),
            // Less than the microsecond that the call itself may take.
            false if wakeup.via.grain() < COARSE => Some(0.0),
            false => medians.latency_ns.zip(medians.less_rounding_ns).map(|(whole, less)| whole - less),
        };
        let limits = allowed_ns.zip(rounding_ns);
        let rest =
            medians.latency_ns.zip(limits).map(|(median, (allowed, rounding))| median - allowed.0 as f64 - rounding);
        let rest = match rest {
            Some(rest) if rest >= 0.0 => UnexplainedDelay::Known(rest),
            Some(_) => UnexplainedDelay::BeforeTheLimit,
            None => UnexplainedDelay::Unknown,
        };
        let timer_slack_ns = facts.timer_slack_ns;
        Lateness { via: wakeup.via, timer_slack_ns, real_time, stretch, allowed_ns, rounding_ns, rest }
    }
}

/// By how much `via` rounds up a time-out of `span_ns`.
fn rounding_of(via: Via, span_ns: i64) -> i64 {
    let grain = via.grain().0;
    (grain - span_ns.max(0) % grain) % grain
}

/// The median, if the data support it.
fn median(described: &Description) -> Option<f64> {
    described.quantiles.iter().find(|one| one.q == 0.5 && one.supported)?.value
}

pub(crate) struct WakeupAccumulator {
    /// Whether each CPU has a thread of its own.
    each_cpu: bool,
    /// CPUs of the measured wake-ups.
    cpus: BTreeSet<u16>,
    by_cpu: BTreeMap<u16, Vec<i64>>,
    /// The last wake-up of each thread.
    woke_ns: BTreeMap<Option<u16>, i64>,
    overrun_slots: u64,
    /// System call and interval, if the time-out of each row was rounded by a span of its own.
    rounded: Option<(Via, i64)>,
    /// The latencies less that rounding.
    less_rounding: Vec<i64>,
}

impl WakeupAccumulator {
    /// No wake-ups yet, of a run of `spec`.
    pub(crate) fn of(spec: &WakeupSpec) -> WakeupAccumulator {
        let each_cpu = matches!(&spec.cpus, WakeupCpus::These(cpus) if cpus.len() > 1);
        let (cpus, by_cpu, woke_ns) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        let coarse = !spec.relative && spec.via.grain() >= COARSE;
        let rounded = coarse.then_some((spec.via, spec.interval_ns.0));
        WakeupAccumulator { each_cpu, cpus, by_cpu, woke_ns, overrun_slots: 0, rounded, less_rounding: Vec::new() }
    }

    /// The figures; `described` is the latency.
    pub(crate) fn finish(
        self,
        manifest: &Manifest,
        spec: &WakeupSpec,
        described: Option<&Description>,
        describing: &DescribeOptions,
    ) -> Wakeups {
        let of_cpu =
            |(cpu, values): (u16, Vec<i64>)| (cpu, describe(&Sample::new(Metric::WakeupLatency, values), describing));
        let sample = self.rounded.map(|_| Sample::new(Metric::WakeupLatency, self.less_rounding));
        let less_rounding = sample.and_then(|sample| median(&describe(&sample, describing)));
        let medians = Medians { latency_ns: described.and_then(median), less_rounding_ns: less_rounding };
        let facts = manifest.run.wakeup.as_ref();
        Wakeups {
            by_cpu: self.by_cpu.into_iter().map(of_cpu).collect(),
            overrun_slots: self.overrun_slots,
            lateness: Lateness::of(manifest, spec, medians),
            broke: facts.and_then(|facts| facts.broke),
            break_ns: spec.break_ns,
            cut_short: facts.is_some_and(|facts| facts.cut_short),
            not_slept: (manifest.ending != RunEnding::Recovered).then(|| facts.map_or(0, |facts| facts.not_slept)),
        }
    }

    /// The rounding of the time-out of a thread that woke at `before` and is due next at `due`. `None` for the first
    /// slot of a slice, before which the thread did not sleep.
    fn rounding(&self, before: i64, due: i64) -> Option<i64> {
        let (via, interval_ns) = self.rounded?;
        let span_ns = due.saturating_sub(before);
        (span_ns <= interval_ns).then(|| rounding_of(via, span_ns))
    }
}

impl RowVisitor for WakeupAccumulator {
    fn columns(&self) -> Vec<ProbeColumn> {
        vec![ProbeColumn::DueNs, ProbeColumn::ReceivedNs, ProbeColumn::SentCpu]
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        for row in 0..batch.rows {
            let (Some(due), Some(woke)) = (value_at(&batch.due_ns, row), value_at(&batch.received_ns, row)) else {
                continue;
            };
            let woke_on = cpu_at(&batch.sent_cpu, row);
            let cpu = woke_on.filter(|_| self.each_cpu);
            let before = self.woke_ns.insert(cpu, woke);
            if batch.phase.get(row) == Phase::Warmup {
                continue;
            }
            self.cpus.extend(woke_on);
            self.overrun_slots += u64::from(before.is_some_and(|before| before > due));
            let late_ns = woke.saturating_sub(due);
            if let Some(rounding_ns) = before.and_then(|before| self.rounding(before, due)) {
                self.less_rounding.push(late_ns - rounding_ns);
            }
            if let Some(cpu) = cpu {
                self.by_cpu.entry(cpu).or_default().push(late_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::WakeupFacts;
    use crate::in_memory::{InMemory, manifest, scheduled};
    use crate::plan::{RunSpec, Schedule, Work};
    use crate::{SummaryOptions, summarise};

    fn spec(via: Via, interval: Nanos, cpus: &[u16]) -> WakeupSpec {
        let cpus = if cpus.is_empty() { WakeupCpus::Anywhere } else { WakeupCpus::These(cpus.to_vec()) };
        WakeupSpec { via, interval_ns: interval, relative: false, cpus, break_ns: None }
    }

    fn manifest_of(spec: &WakeupSpec, slack: i64, niceness: i32, fifo: Option<u8>) -> Manifest {
        let mut run = RunSpec::here(Work::Wakeup(spec.clone()));
        run.here.fifo = fifo;
        let mut manifest = Manifest { run: Default::default(), ..manifest(Schedule::Closed) };
        manifest.kind = run.kind();
        manifest.spec = run;
        let timer_slack_ns = Some(Nanos(slack));
        manifest.run.wakeup = Some(WakeupFacts { timer_slack_ns, niceness: Some(niceness), ..WakeupFacts::default() });
        manifest
    }

    #[test]
    fn the_allowed_delay_is_slack_or_stretch() {
        let (slack, second) = (50_000, Nanos::from_secs(1));
        for (via, interval, slack, niceness, fifo, allowed) in [
            (Via::ClockNanosleep, second, slack, 0, None, 50_000),
            (Via::ClockNanosleep, second, 1, 0, None, 1),
            (Via::Select, second, slack, 0, None, 1_000_000),
            (Via::Select, second, slack, 5, None, 5_000_000),
            (Via::Epoll, Nanos::from_millis(10), slack, 0, None, 50_000),
            (Via::Poll, Nanos::from_secs(3_600), slack, 0, None, 100_000_000),
            (Via::Select, second, slack, 0, Some(80), 0),
            // `chrt -f 10 latlab …`: SCHED_FIFO was not requested, but the slack read back is 0.
            (Via::Select, second, 0, 0, None, 0),
            (Via::ClockNanosleep, second, 0, 0, None, 0),
            (Via::Poll, Nanos::from_micros(99_500), slack, 0, None, 100_000),
            (Via::Spin, second, slack, 0, None, 0),
            (Via::Timerfd, second, slack, 0, None, 0),
            (Via::Futex, second, slack, 0, None, 50_000),
        ] {
            let spec = spec(via, interval, &[]);
            let found = Lateness::of(&manifest_of(&spec, slack, niceness, fifo), &spec, Medians::default());
            assert_eq!(found.allowed_ns, Some(Nanos(allowed)), "{via:?} {interval:?} {slack} {niceness} {fifo:?}");
        }
    }

    #[test]
    fn the_unexplained_delay_needs_a_supported_median() {
        let of = |via, interval_us, slack, relative, medians: [Option<f64>; 2]| {
            let spec = WakeupSpec { relative, ..spec(via, Nanos::from_micros(interval_us), &[]) };
            let medians = Medians { latency_ns: medians[0], less_rounding_ns: medians[1] };
            let found = Lateness::of(&manifest_of(&spec, slack, 0, None), &spec, medians);
            (found.rounding_ns, found.rest)
        };
        let (latency, none) = ([Some(551_000.0), None], [None, None]);
        assert_eq!(of(Via::Poll, 1_500, 0, true, latency), (Some(500_000.0), UnexplainedDelay::Known(51_000.0)));
        assert_eq!(of(Via::Epoll, 2_000, 50_000, true, latency), (Some(0.0), UnexplainedDelay::Known(501_000.0)));
        assert_eq!(of(Via::Poll, 1_500, 50_000, false, latency), (None, UnexplainedDelay::Unknown));
        let both = [Some(551_000.0), Some(80_000.0)];
        assert_eq!(of(Via::Poll, 1_500, 50_000, false, both), (Some(471_000.0), UnexplainedDelay::Known(30_000.0)));
        assert_eq!(of(Via::Select, 1_500, 50_000, false, latency), (Some(0.0), UnexplainedDelay::Known(501_000.0)));
        assert_eq!(of(Via::Select, 1_000_000, 50_000, false, latency), (Some(0.0), UnexplainedDelay::BeforeTheLimit));
        assert_eq!(of(Via::Select, 1_000_000, 50_000, false, none), (Some(0.0), UnexplainedDelay::Unknown));
    }

    #[test]
    fn rounding_is_taken_from_the_wake_up_before_each_row() {
        let spec = spec(Via::Poll, Nanos::from_millis(5), &[]);
        // The median includes a stretch of 5 µs, 0.1 % of the interval. Each wake-up is late by 20 µs to 1 ms, which
        // the next time-out of poll rounds up to its millisecond.
        let late = |slot: u64| scheduled(slot, slot as i64 * 5_000, 0, (slot as i64 % 50 + 1) * 20);
        let rounded = |slots: u64| {
            let rows: Vec<_> = (0..slots).map(late).collect();
            let manifest = manifest_of(&spec, 1, 0, None);
            let source = InMemory { manifest, ..InMemory::of(Schedule::Closed, rows) };
            let summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
            summary.wakeups.expect("a run of wake-ups").lateness
        };
        let found = rounded(400);
        assert_eq!((found.rounding_ns, found.rest), (Some(490_000.0), UnexplainedDelay::Known(15_000.0)));
        // Five wake-ups support no median.
        assert_eq!((rounded(5).rounding_ns, rounded(5).rest), (None, UnexplainedDelay::Unknown));
    }

    #[test]
    fn overrun_slots_are_counted_for_each_thread_and_cpus_described_separately() {
        let spec = spec(Via::Futex, Nanos::from_millis(1), &[0, 1]);
        let on = |cpu: u16, slot: u64, late_us: i64| {
            let mut row = scheduled(slot, slot as i64 * 1_000, 0, late_us);
            row.sent_cpu = Some(cpu);
            row
        };
        // CPU 0 returns from slot 1 when slots 2 and 3 are past; CPU 1 is never late.
        let late = [(0, 10), (1, 2_500), (2, 1_600), (3, 700), (4, 20)];
        let mut rows: Vec<_> = late.iter().flat_map(|(slot, late)| [on(0, *slot, *late), on(1, *slot, 5)]).collect();
        rows[0].phase = Phase::Warmup;
        let source = InMemory { manifest: manifest_of(&spec, 50_000, 0, None), ..InMemory::of(Schedule::Closed, rows) };
        let summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
        let wakeups = summary.wakeups.expect("a run of wake-ups");
        let cpus: Vec<_> = wakeups.by_cpu.iter().map(|(cpu, one)| (*cpu, one.n, one.max)).collect();
        assert_eq!((wakeups.overrun_slots, cpus), (2, vec![(0, 4, Some(2_500_000.0)), (1, 5, Some(5_000.0))]));
        assert_eq!(summary.metrics[&Metric::WakeupLatency].n, 9);
        assert!(summary.caveats.iter().any(|caveat| caveat.code == "overrun-slots"));
    }
}
