//! What a run of wake-ups says beyond its latency: each CPU, slots that were past, and why the median is what it is.

use std::collections::{BTreeMap, BTreeSet};

use super::host_course::HostCourse;
use super::meanwhile::{self, CpuMeanwhile};
use super::source::{Gatherer, at};
use crate::facts::LateWakeup;
use crate::metric::Metric;
use crate::plan::{Via, WakeupCpus, WakeupSpec};
use crate::probe::Phase;
use crate::recording::manifest::Manifest;
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::sample::Sample;
use crate::stats::{Description, Wishes, describe};
use crate::units::Nanos;

/// The longest that select, poll and epoll stretch a time-out: MAX_SLACK in
/// [fs/select.c](https://github.com/torvalds/linux/blob/v6.18/fs/select.c).
const STRETCH_MAX: Nanos = Nanos::from_millis(100);

/// What a run of wake-ups says beyond its latency.
#[derive(Clone, Debug, PartialEq)]
pub struct Wakeups {
    /// The latency on each CPU, ascending; empty where one thread slept.
    pub by_cpu: Vec<(u16, Description)>,
    /// Measured slots that were past when their thread came back from the one before.
    pub overrun_slots: u64,
    /// Measured slots that nobody slept for, since their thread was too far behind.
    pub not_slept: u64,
    /// What of the lateness is known.
    pub lateness: Lateness,
    /// What the CPUs did on which threads slept, ascending.
    pub meanwhile: Vec<CpuMeanwhile>,
    /// The wake-up that ended the run.
    pub broke: Option<LateWakeup>,
    /// The file that holds a trace around it.
    pub trace: Option<String>,
}

impl Wakeups {
    /// Whether most of `measured` slots waited for those before them: then lateness is backlog and no way of waking.
    pub fn is_backlog(&self, measured: u64) -> bool {
        self.overrun_slots > measured / 2
    }
}

/// What of the lateness of a wake-up is the way it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Lateness {
    /// How the threads slept.
    pub via: Via,
    /// The timer slack that was in force; none where nobody read it.
    pub timer_slack_ns: Option<Nanos>,
    /// Whether they ran under SCHED_FIFO: then the kernel allows itself no slack.
    pub real_time: bool,
    /// The share by which the call stretches its time-out; none where it does not.
    pub stretch: Option<f64>,
    /// How late the kernel let the timer be, by slack or stretch; none where the slack is unknown.
    pub allowed_ns: Option<Nanos>,
    /// The median latency less that, at least 0: interrupt, idle exit, scheduling.
    pub rest_ns: Option<f64>,
}

impl Lateness {
    /// As `select_estimate_accuracy` in fs/select.c and hrtimer_sleeper's slack have it, for a sleep of one interval.
    fn of(manifest: &Manifest, wakeup: &WakeupSpec, described: Option<&Description>) -> Lateness {
        let facts = manifest.run.wakeup.clone().unwrap_or_default();
        let real_time = manifest.spec.here.fifo.is_some();
        let nice = facts.niceness.is_some_and(|niceness| niceness > 0);
        let stretch = (wakeup.via.is_stretched() && !real_time).then_some(if nice { 0.005 } else { 0.001 });
        let allowed_ns = match wakeup.via.has_slack() && !real_time {
            false => Some(Nanos::ZERO),
            true => facts.timer_slack_ns.map(|slack| {
                let stretched = stretch.map_or(0.0, |share| wakeup.interval_ns.0 as f64 * share);
                slack.max(Nanos(stretched as i64).min(STRETCH_MAX))
            }),
        };
        let median = described.and_then(|described| described.quantiles.iter().find(|one| one.q == 0.5)?.value);
        let rest_ns = median.zip(allowed_ns).map(|(median, allowed)| (median - allowed.0 as f64).max(0.0));
        Lateness { via: wakeup.via, timer_slack_ns: facts.timer_slack_ns, real_time, stretch, allowed_ns, rest_ns }
    }
}

/// Wake-ups as far as seen.
pub(super) struct WakeupCourse {
    /// Whether each CPU has a thread of its own.
    each_cpu: bool,
    /// Those on which threads woke, measured.
    cpus: BTreeSet<u16>,
    by_cpu: BTreeMap<u16, Vec<i64>>,
    /// When each thread last woke.
    woke_ns: BTreeMap<Option<u16>, i64>,
    overrun_slots: u64,
}

impl WakeupCourse {
    /// None yet, of a run of `spec`.
    pub(super) fn of(spec: &WakeupSpec) -> WakeupCourse {
        let each_cpu = matches!(&spec.cpus, WakeupCpus::These(cpus) if cpus.len() > 1);
        let (cpus, by_cpu, woke_ns) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        WakeupCourse { each_cpu, cpus, by_cpu, woke_ns, overrun_slots: 0 }
    }

    /// All that can be said, with what the samples of this host tell.
    pub(super) fn finish(
        self,
        (manifest, spec): (&Manifest, &WakeupSpec),
        course: Option<&HostCourse>,
        described: Option<&Description>,
        describing: &Wishes,
    ) -> Wakeups {
        let describe =
            |(cpu, values): (u16, Vec<i64>)| (cpu, describe(&Sample::new(Metric::WakeupLatency, values), describing));
        Wakeups {
            by_cpu: self.by_cpu.into_iter().map(describe).collect(),
            overrun_slots: self.overrun_slots,
            lateness: Lateness::of(manifest, spec, described),
            meanwhile: meanwhile::of(&self.cpus, manifest, course),
            broke: manifest.run.wakeup.as_ref().and_then(|facts| facts.broke),
            trace: manifest.run.wakeup.as_ref().and_then(|facts| facts.trace.clone()),
            not_slept: manifest.run.wakeup.as_ref().map_or(0, |facts| facts.not_slept),
        }
    }
}

impl Gatherer for WakeupCourse {
    fn columns(&self) -> Vec<ProbeColumn> {
        vec![ProbeColumn::DueNs, ProbeColumn::ReceivedNs, ProbeColumn::SentCpu]
    }

    fn gather(&mut self, batch: &ProbeBatch) {
        for row in 0..batch.rows {
            let (Some(due), Some(woke)) = (at(&batch.due_ns, row), at(&batch.received_ns, row)) else { continue };
            let woke_on = at(&batch.sent_cpu, row).and_then(|cpu| u16::try_from(cpu).ok());
            let cpu = woke_on.filter(|_| self.each_cpu);
            let before = self.woke_ns.insert(cpu, woke);
            if batch.phase.get(row) == Phase::Warmup {
                continue;
            }
            self.cpus.extend(woke_on);
            self.overrun_slots += u64::from(before.is_some_and(|before| before > due));
            if let Some(cpu) = cpu {
                self.by_cpu.entry(cpu).or_default().push(woke.saturating_sub(due));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{InMemory, manifest, scheduled};
    use crate::analysis::{SummaryWishes, summarise};
    use crate::facts::WakeupFacts;
    use crate::plan::{RunSpec, Work};
    use crate::schedule::Schedule;

    fn spec(via: Via, interval: Nanos, cpus: &[u16]) -> WakeupSpec {
        let cpus = if cpus.is_empty() { WakeupCpus::Anywhere } else { WakeupCpus::These(cpus.to_vec()) };
        WakeupSpec { via, interval_ns: interval, relative: false, cpus, break_ns: None }
    }

    fn manifest_of(spec: &WakeupSpec, slack: i64, niceness: i32, fifo: Option<u8>) -> Manifest {
        let mut run = RunSpec::here(Work::Wakeup(spec.clone()));
        run.here.fifo = fifo;
        let mut manifest = Manifest { run: Default::default(), ..manifest(Schedule::Closed) };
        (manifest.kind, manifest.condition) = (run.kind(), crate::plan::Condition::of(&run));
        manifest.spec = run;
        let timer_slack_ns = Some(Nanos(slack));
        manifest.run.wakeup = Some(WakeupFacts { timer_slack_ns, niceness: Some(niceness), ..WakeupFacts::default() });
        manifest
    }

    #[test]
    fn what_the_kernel_allows_itself_is_slack_or_stretch() {
        let (slack, second) = (50_000, Nanos::from_secs(1));
        for (via, interval, slack, niceness, fifo, allowed) in [
            (Via::ClockNanosleep, second, slack, 0, None, 50_000),
            (Via::ClockNanosleep, second, 1, 0, None, 1),
            (Via::Select, second, slack, 0, None, 1_000_000),
            (Via::Select, second, slack, 5, None, 5_000_000),
            (Via::Epoll, Nanos::from_millis(10), slack, 0, None, 50_000),
            (Via::Poll, Nanos::from_secs(3_600), slack, 0, None, 100_000_000),
            (Via::Select, second, slack, 0, Some(80), 0),
            (Via::Spin, second, slack, 0, None, 0),
            (Via::Timerfd, second, slack, 0, None, 0),
            (Via::Futex, second, slack, 0, None, 50_000),
        ] {
            let spec = spec(via, interval, &[]);
            let found = Lateness::of(&manifest_of(&spec, slack, niceness, fifo), &spec, None);
            assert_eq!(found.allowed_ns, Some(Nanos(allowed)), "{via:?} {interval:?} {slack} {niceness} {fifo:?}");
        }
    }

    #[test]
    fn slots_that_were_past_are_counted_for_each_thread_and_cpus_described_apart() {
        let spec = spec(Via::Futex, Nanos::from_millis(1), &[0, 1]);
        let on = |cpu: u16, slot: u64, late_us: i64| {
            let mut row = scheduled(slot, slot as i64 * 1_000, 0, late_us);
            row.sent_cpu = Some(cpu);
            row
        };
        // CPU 0 comes back from slot 1 when slots 2 and 3 are past; CPU 1 never does.
        let late = [(0, 10), (1, 2_500), (2, 1_600), (3, 700), (4, 20)];
        let mut rows: Vec<_> = late.iter().flat_map(|(slot, late)| [on(0, *slot, *late), on(1, *slot, 5)]).collect();
        rows[0].phase = Phase::Warmup;
        let source = InMemory { manifest: manifest_of(&spec, 50_000, 0, None), ..InMemory::of(Schedule::Closed, rows) };
        let summary = summarise(&source, &SummaryWishes::of(&source.manifest.spec)).expect("no windows asked for");
        let wakeups = summary.wakeups.expect("a run of wake-ups");
        let cpus: Vec<_> = wakeups.by_cpu.iter().map(|(cpu, one)| (*cpu, one.n, one.max)).collect();
        assert_eq!((wakeups.overrun_slots, cpus), (2, vec![(0, 4, Some(2_500_000)), (1, 5, Some(5_000))]));
        assert_eq!(summary.metrics[&Metric::WakeupLatency].n, 9);
        assert!(summary.caveats.iter().any(|caveat| caveat.code == "overrun-slots"));
    }
}
