//! The slow probes of a run: which these are, their stages, and episodes of consecutive ones.

use serde::Serialize;

use super::around::{HostDeviation, HostSeries};
use super::rows::{Rows, UNKNOWN, for_each_answer};
use super::stages::{RowStamps, StageShares, Stages, stamps_of};
use super::trace::{RanThen, ran};
use crate::plan::Side;
use crate::recording::reader::{ProbeBatch, ProbeColumn};
use crate::recording::trace::Trace;
use crate::source::{RowVisitor, value_at};

/// The slowest probes of a run that are called slow: so many, or one in a hundred, but at most one in ten.
const SLOW_MIN: usize = 200;

/// Which round trips are about the median, in the tail, and slow.
pub(super) struct Bands {
    pub(super) median_ns: i64,
    middle_ns: [i64; 2],
    pub(super) p99_ns: i64,
    pub(super) worst_ns: i64,
    pub(super) slow_from_ns: i64,
}

impl Bands {
    /// `None` without a probe.
    pub(super) fn of(rows: &Rows) -> Option<Bands> {
        let mut sorted = rows.delay_ns.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        let at = |q: f64| sorted[(last as f64 * q).round() as usize];
        let slow = SLOW_MIN.min(sorted.len() / 10).max(sorted.len() / 100).max(1);
        let from = sorted[sorted.len() - slow];
        // Of delays in coarse steps very many may be equal.
        let is_common = sorted.len() - sorted.partition_point(|delay| *delay < from) > 2 * slow;
        Some(Bands {
            median_ns: at(0.5),
            middle_ns: [at(0.45), at(0.55)],
            p99_ns: at(0.99),
            worst_ns: sorted[last],
            slow_from_ns: from + i64::from(is_common),
        })
    }
}

/// The order statistic nearest to the quantile `q`; 0 without values.
pub(super) fn order_statistic(values: &mut [i64], q: f64) -> i64 {
    let Some(last) = values.len().checked_sub(1) else { return 0 };
    *values.select_nth_unstable((last as f64 * q).round() as usize).1
}

#[derive(Clone, Debug)]
pub(super) struct SlowProbe {
    /// Its place among the answered probes.
    pub(super) place: usize,
    pub(super) seq: u64,
    pub(super) delay_ns: i64,
    pub(super) stamps: RowStamps,
}

/// Sums of the stages over bands of round trips, and the slow probes; from a pass over the rows.
pub(super) struct Division<'a> {
    bands: &'a Bands,
    stages: &'a Stages,
    place: usize,
    /// Probes with every stamp.
    pub(super) divided: u64,
    /// Of the probes about the median, from p99 on, and of the worst: for each stage.
    sums_ns: [Vec<f64>; 3],
    in_tail: u64,
    pub(super) slow: Vec<SlowProbe>,
}

impl<'a> Division<'a> {
    pub(super) fn of(bands: &'a Bands, stages: &'a Stages) -> Division<'a> {
        let sums_ns = [(); 3].map(|()| vec![0.0; stages.each.len()]);
        Division { bands, stages, place: 0, divided: 0, sums_ns, in_tail: 0, slow: Vec::new() }
    }

    /// The share of a stage in the round trips of each band.
    pub(super) fn shares(&self, stage: usize) -> [f64; 3] {
        let share = |sums: &Vec<f64>| sums[stage] / sums.iter().sum::<f64>().max(1.0);
        self.sums_ns.each_ref().map(share)
    }

    pub(super) fn tail_mean(&self, stage: usize) -> f64 {
        self.sums_ns[1][stage] / self.in_tail.max(1) as f64
    }

    fn add(&mut self, stages_ns: &[i64], delay_ns: i64) {
        let Bands { middle_ns: [from, to], p99_ns, worst_ns, .. } = *self.bands;
        self.divided += 1;
        self.in_tail += u64::from(delay_ns >= p99_ns);
        let is_in = [(from..=to).contains(&delay_ns), delay_ns >= p99_ns, delay_ns == worst_ns];
        for (sums, _) in self.sums_ns.iter_mut().zip(is_in).filter(|(_, is_in)| *is_in) {
            sums.iter_mut().zip(stages_ns).for_each(|(sum, ns)| *sum += *ns as f64);
        }
    }
}

impl RowVisitor for Division<'_> {
    fn columns(&self) -> Vec<ProbeColumn> {
        [self.stages.columns(), vec![ProbeColumn::Seq]].concat()
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        for_each_answer(batch, |row, sent, received| {
            let delay_ns = received.saturating_sub(sent);
            let stamps = stamps_of(batch, row);
            if let Some(stages_ns) = self.stages.divide(&stamps) {
                self.add(&stages_ns, delay_ns);
            }
            if delay_ns >= self.bands.slow_from_ns {
                let seq = value_at(&batch.seq, row).unwrap_or_default() as u64;
                self.slow.push(SlowProbe { place: self.place, seq, delay_ns, stamps });
            }
            self.place += 1;
        });
    }
}

/// The values of one stage.
pub(super) struct StageValues<'a> {
    pub(super) stages: &'a Stages,
    pub(super) place: usize,
    pub(super) each_ns: Vec<i64>,
}

impl RowVisitor for StageValues<'_> {
    fn columns(&self) -> Vec<ProbeColumn> {
        self.stages.columns()
    }

    fn visit(&mut self, batch: &ProbeBatch) {
        for_each_answer(batch, |row, _, _| {
            self.each_ns.extend(self.stages.divide(&stamps_of(batch, row)).map(|stages_ns| stages_ns[self.place]));
        });
    }
}

/// Slow probes of which none was answered between.
#[derive(Clone, Debug)]
pub(super) struct SlowEpisode {
    pub(super) worst: SlowProbe,
    pub(super) probes: u64,
    last: usize,
}

/// The episodes of the probes `slow`, which are in their order; the one with the slowest probe first.
pub(super) fn episodes(slow: Vec<SlowProbe>) -> Vec<SlowEpisode> {
    let mut episodes: Vec<SlowEpisode> = Vec::new();
    for probe in slow {
        let place = probe.place;
        match episodes.last_mut().filter(|episode| episode.last + 1 == place) {
            Some(episode) => {
                (episode.probes, episode.last) = (episode.probes + 1, place);
                if probe.delay_ns > episode.worst.delay_ns {
                    episode.worst = probe;
                }
            }
            None => episodes.push(SlowEpisode { worst: probe, probes: 1, last: place }),
        }
    }
    episodes.sort_by_key(|episode| std::cmp::Reverse(episode.worst.delay_ns));
    episodes
}

/// A slow probe or several consecutive ones, described by the slowest of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstEpisode {
    /// From the first measured probe on until it was sent.
    pub start_ns: i64,
    pub seq: u64,
    pub delay_ns: i64,
    /// The number of consecutive slow probes in it.
    pub probes: u64,
    /// The stage that is the most beyond its median; `None` of a probe that lacks a stamp, and of wake-ups.
    pub stage: Option<&'static str>,
    /// By how much: without a stage the whole delay beyond its median.
    pub beyond_ns: i64,
    pub sent_cpu: Option<u16>,
    pub received_cpu: Option<u16>,
    pub reflector_cpu: Option<u16>,
    /// How this host differed then from its usual.
    pub around: Vec<HostDeviation>,
    /// What the CPUs of this stage ran then, by the trace of their host; empty without.
    pub ran: Vec<RanThen>,
}

/// What a run has besides its rows, to describe its slow probes.
pub(super) struct Surroundings<'a> {
    pub(super) median_ns: i64,
    pub(super) stages: &'a [StageShares],
    pub(super) division: &'a Stages,
    pub(super) hosts: &'a HostSeries,
    /// Of this host, and of the peer's on its clock.
    pub(super) traces: [Option<Trace<'a>>; 2],
    /// Whether stamps and CPUs of the reflector are those of this host.
    pub(super) one_clock: bool,
}

impl Surroundings<'_> {
    /// What `cpus` (of sending, receiving, reflecting) ran in stage `place` of a probe, or in all of it, from `sent_ns` on.
    fn ran(&self, place: Option<usize>, probe: &SlowProbe, sent_ns: i64, cpus: [Option<u16>; 3]) -> Vec<RanThen> {
        let stage = place.map(|place| &self.stages[place].stage);
        let at = match stage {
            Some(stage) if stage.is_of_peer() && !self.one_clock => Side::Peer,
            _ => Side::Local,
        };
        let Some(trace) = &self.traces[usize::from(at == Side::Peer)] else { return Vec::new() };
        let all = [cpus[0], cpus[1], cpus[2].filter(|_| self.one_clock || at == Side::Peer)];
        let mut cpus = stage.map_or(all.to_vec(), |stage| stage.cpus(all));
        cpus.sort_unstable();
        cpus.dedup();
        let known = stage.and_then(|stage| stage.span(&probe.stamps));
        let (from, to) = known.unwrap_or((sent_ns, sent_ns + probe.delay_ns));
        cpus.into_iter().flatten().flat_map(|cpu| ran(trace, (at, cpu), from, to)).collect()
    }
}

impl WorstEpisode {
    pub(super) fn of(episode: &SlowEpisode, rows: &Rows, run: &Surroundings<'_>) -> WorstEpisode {
        let probe @ SlowProbe { place, seq, delay_ns, stamps } = &episode.worst;
        let (sent_ns, stages_ns) = (rows.sent_ns[*place], run.division.divide(stamps));
        let beyond = |(stage, ns): (&StageShares, &i64)| ns - stage.median_ns;
        let beyond = run.stages.iter().zip(stages_ns.iter().flatten()).map(beyond);
        let most = beyond.enumerate().max_by_key(|(_, beyond)| *beyond);
        let stage = most.map(|(place, _)| place);
        let [sent_cpu, received_cpu, reflector_cpu] =
            rows.cpus.each_ref().map(|cpus| Some(cpus[*place]).filter(|cpu| *cpu != UNKNOWN));
        WorstEpisode {
            start_ns: sent_ns - rows.sent_ns[0],
            seq: *seq,
            delay_ns: *delay_ns,
            probes: episode.probes,
            stage: stage.map(|place| run.stages[place].stage.name),
            beyond_ns: most.map_or(delay_ns - run.median_ns, |(_, beyond)| beyond),
            sent_cpu,
            received_cpu,
            reflector_cpu,
            around: run.hosts.deviations(sent_ns, sent_ns + delay_ns),
            ran: run.ran(stage, probe, sent_ns, [sent_cpu, received_cpu, reflector_cpu]),
        }
    }
}
