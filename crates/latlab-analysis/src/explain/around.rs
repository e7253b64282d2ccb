//! What this host did around a moment, where it differs from its usual during the run.

use serde::Serialize;

use crate::facts::{CpuReadings, HostSample};
use crate::plan::Side;
use crate::source::ProbeSource;
use crate::units::Nanos;

/// A signal is unusual from so many times its median on, and among the highest twentieth of the run.
const UNUSUAL: f64 = 2.0;
const HIGHEST: f64 = 0.95;
/// The shortest time between two samples of which one is compared with the other.
const SHORTEST: Nanos = Nanos::from_millis(50);
/// The most signals that are named of a moment.
const NAMED: usize = 2;

/// What host samples show over the time from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostSignal {
    Interrupts,
    Softirqs,
    ContextSwitches,
    Drops,
    /// Time of the hypervisor, in CPUs.
    Steal,
    /// Time of other processes and of interrupts, in CPUs.
    Others,
    /// Time of latlab and its loads, in CPUs.
    Latlab,
    /// How much slower the slowest CPU was than at its fastest: 1 at the same rate.
    Slowdown,
}

impl HostSignal {
    const ALL: [HostSignal; 8] = [
        HostSignal::Interrupts,
        HostSignal::Softirqs,
        HostSignal::ContextSwitches,
        HostSignal::Drops,
        HostSignal::Steal,
        HostSignal::Others,
        HostSignal::Latlab,
        HostSignal::Slowdown,
    ];

    /// Below this an increase over nothing is not worth a word: a tick of 10 ms in 100 ms of CPU time, a few events.
    const fn least(self) -> f64 {
        match self {
            HostSignal::Interrupts | HostSignal::Softirqs | HostSignal::ContextSwitches => 1_000.0,
            HostSignal::Drops => 1.0,
            HostSignal::Steal | HostSignal::Others | HostSignal::Latlab => 0.2,
            HostSignal::Slowdown => 1.1,
        }
    }
}

/// A signal at a moment that differs from its usual.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HostDeviation {
    pub signal: HostSignal,
    pub value: f64,
    pub median: f64,
}

type Signals = [f64; HostSignal::ALL.len()];

/// Signals of this host from sample to sample; those of the peer are of another clock.
#[derive(Default)]
pub(super) struct HostSeries {
    /// The end of each interval, ascending, with its signals.
    intervals: Vec<(i64, Signals)>,
    medians: Signals,
    highest: Signals,
    start_ns: i64,
}

impl HostSeries {
    pub(super) fn of<S: ProbeSource>(source: &S) -> Result<HostSeries, S::Error> {
        let mut series = HostSeries::default();
        let (mut before, mut fastest_khz) = (None::<HostSample>, 0);
        source.visit_host_samples(&mut |side, sample| {
            if side != Side::Local {
                return;
            }
            fastest_khz = sample.cpus.iter().filter_map(|(_, cpu)| cpu.frequency_khz).fold(fastest_khz, i64::max);
            // In a shorter time ticks of the kernel's counters make rates of their own.
            if before.as_ref().is_some_and(|before| sample.start_ns - before.start_ns < SHORTEST.0) {
                return;
            }
            match &before {
                Some(before) => series.intervals.push((sample.start_ns, signals(before, sample, fastest_khz))),
                None => series.start_ns = sample.start_ns,
            }
            before = Some(sample.clone());
        })?;
        let quantile = |signal: usize, q: f64| {
            let mut values: Vec<f64> = series.intervals.iter().map(|(_, signals)| signals[signal]).collect();
            values.sort_by(f64::total_cmp);
            values.get((values.len() as f64 * q) as usize).copied().unwrap_or_default()
        };
        series.medians = std::array::from_fn(|signal| quantile(signal, 0.5));
        series.highest = std::array::from_fn(|signal| quantile(signal, HIGHEST));
        Ok(series)
    }

    /// The signals that differ the most in the intervals from `from` to `to`.
    pub(super) fn deviations(&self, from: i64, to: i64) -> Vec<HostDeviation> {
        let first = self.intervals.partition_point(|(end, _)| *end < from);
        let last = self.intervals.partition_point(|(end, _)| *end < to).min(self.intervals.len().saturating_sub(1));
        if from < self.start_ns || first > last || self.intervals.is_empty() {
            return Vec::new();
        }
        let unusual = |(place, signal): (usize, HostSignal)| {
            let value = self.intervals[first..=last].iter().map(|(_, signals)| signals[place]).fold(0.0, f64::max);
            let (median, factor) = (self.medians[place], if signal == HostSignal::Slowdown { 1.1 } else { UNUSUAL });
            let is_unusual = value >= self.highest[place] && value >= factor * median && value >= signal.least();
            is_unusual.then_some(HostDeviation { signal, value, median })
        };
        let mut found: Vec<_> = HostSignal::ALL.into_iter().enumerate().filter_map(unusual).collect();
        let factor = |it: &HostDeviation| it.value / it.median.max(it.signal.least() / UNUSUAL);
        found.sort_by(|one, other| factor(other).total_cmp(&factor(one)));
        found.truncate(NAMED);
        found
    }
}

fn signals(before: &HostSample, after: &HostSample, fastest_khz: i64) -> Signals {
    let span_ns = (after.start_ns - before.start_ns).max(1) as f64;
    let moved = |from: Option<i64>, to: Option<i64>| to.zip(from).map_or(0.0, |(to, from)| (to - from).max(0) as f64);
    let over_cpus = |counter: fn(&CpuReadings) -> Option<i64>| -> f64 {
        before.cpus.iter().zip(&after.cpus).map(|((_, from), (_, to))| moved(counter(from), counter(to))).sum()
    };
    let (from, to) = (&before.host, &after.host);
    let drops = [
        moved(from.udp_receive_drops, to.udp_receive_drops),
        moved(from.nic_receive_drops, to.nic_receive_drops),
        moved(from.nic_send_drops, to.nic_send_drops),
        over_cpus(|cpu| cpu.backlog_drops),
    ];
    let own_ns = moved(from.own_ns, to.own_ns);
    let slowest_khz = after.cpus.iter().filter_map(|(_, cpu)| cpu.frequency_khz).min();
    let per_second = 1e9 / span_ns;
    HostSignal::ALL.map(|signal| match signal {
        HostSignal::Interrupts => moved(from.all_interrupts, to.all_interrupts) * per_second,
        HostSignal::Softirqs => moved(from.all_softirqs, to.all_softirqs) * per_second,
        HostSignal::ContextSwitches => moved(from.context_switches, to.context_switches) * per_second,
        HostSignal::Drops => drops.iter().sum(),
        HostSignal::Steal => over_cpus(|cpu| cpu.steal_ns) / span_ns,
        HostSignal::Others => (over_cpus(|cpu| cpu.busy_ns) - own_ns).max(0.0) / span_ns,
        HostSignal::Latlab => own_ns / span_ns,
        HostSignal::Slowdown => slowest_khz.map_or(1.0, |khz| fastest_khz as f64 / khz.max(1) as f64),
    })
}
