//! Why probes were slow: the stages of their way, the slowest of them with what the host did then, and what these have in
//! common against chance. Definitions: docs/explain.md; the tests: docs/statistics.md.

mod activity;
mod around;
mod common;
#[cfg(test)]
mod level_tests;
mod next_step;
mod rows;
mod slow;
mod stages;
#[cfg(test)]
mod tests;
mod trace;
mod wakeups;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::facts::StampFacts;
use crate::host_samples::HostAccumulator;
use crate::plan::{Kind, Side};
use crate::recording::manifest::Manifest;
use crate::recording::trace::Trace;
use crate::source::{ProbeSource, visit_rows};
use activity::cpu_activity;
pub use activity::{CpuActivity, StateShare};
use around::HostSeries;
pub use around::{HostDeviation, HostSignal};
pub use common::{CommonCause, CommonTest};
pub use next_step::NextStep;
use rows::Rows;
pub use slow::WorstEpisode;
use slow::{Bands, Division, SlowEpisode, StageValues, Surroundings};
use stages::Stages;
pub use stages::{Stage, StageShares, StageSubject};
pub use trace::RanThen;
pub use wakeups::WatchedWakeups;

/// Why the probes or wake-ups of a run were slow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Explanation {
    pub recording: String,
    /// `ping`, `stream` or `wakeup`.
    pub kind: &'static str,
    /// Measured probes with an answer, late ones included, or wake-ups.
    pub answered: u64,
    /// Measured probes without an answer, of which nothing else is said.
    pub lost: u64,
    pub median_ns: i64,
    pub p99_ns: i64,
    pub worst_ns: i64,
    /// In the order of the way; empty of wake-ups.
    pub stages: Vec<StageShares>,
    /// Answered probes that lack a stamp of these stages.
    pub left_out: u64,
    /// The largest error of the kernel's stamps; `None` without them.
    pub stamp_error_ns: Option<i64>,
    /// The least delay of a slow probe, and how many these are, alone or in episodes of consecutive ones.
    pub slow_from_ns: i64,
    pub slow: u64,
    pub episodes: u64,
    /// The worst first.
    pub worst: Vec<WorstEpisode>,
    /// What was tested, the least p value first; empty with too few episodes.
    pub common: Vec<CommonCause>,
    /// Wake-ups during the probes; `None` without.
    pub wakeups: Option<WatchedWakeups>,
    /// What the CPUs of wake-ups did.
    pub cpu_activity: Vec<CpuActivity>,
    pub next: NextStep,
}

/// Explains a run of probes, also those during a stream, or of wake-ups, with so many of its `worst` episodes; `None` for
/// another kind.
///
/// # Errors
/// If rows cannot be read.
pub fn explain<S: ProbeSource>(source: &S, worst: usize) -> Result<Option<Explanation>, S::Error> {
    let manifest = source.manifest();
    let has_delays = match manifest.kind {
        Kind::Stream => manifest.spec.concurrent_probes().is_some(),
        kind => matches!(kind, Kind::Ping | Kind::Wakeup),
    };
    if !has_delays {
        return Ok(None);
    }
    let mut rows = Rows::of(manifest);
    visit_rows(source, &mut [&mut rows])?;
    let mut found = Explanation {
        recording: source.location(),
        kind: manifest.kind.word(),
        answered: rows.len() as u64,
        lost: rows.lost,
        ..Explanation::default()
    };
    let hosts = HostSeries::of(source)?;
    found.cpu_activity = activity(source, manifest, &rows)?;
    let Some(bands) = Bands::of(&rows) else { return Ok(Some(found)) };
    (found.median_ns, found.p99_ns, found.worst_ns) = (bands.median_ns, bands.p99_ns, bands.worst_ns);
    let one_clock = rows.is_of_one_clock(manifest);
    let stages = Stages::of(&rows.present, rows.len() as u64, one_clock);
    let mut division = Division::of(&bands, &stages);
    visit_rows(source, &mut [&mut division])?;
    if manifest.kind != Kind::Wakeup {
        found.stages = stage_figures(source, &stages, &division, manifest.run.stamps)?;
        found.left_out = found.answered - division.divided;
        let has_converted = stages.each.iter().any(Stage::is_converted);
        found.stamp_error_ns = manifest.run.stamps.filter(|_| has_converted).map(|facts| facts.error_ns);
    }
    let episodes = slow::episodes(division.slow);
    (found.slow_from_ns, found.slow) = (bands.slow_from_ns, episodes.iter().map(|it| it.probes).sum());
    found.episodes = episodes.len() as u64;
    let texts = [Side::Local, Side::Peer].map(|side| source.trace(side));
    let traces = texts.each_ref().map(|text| text.as_deref().map(Trace::of));
    let (median_ns, division) = (found.median_ns, &stages);
    let run = Surroundings { median_ns, stages: &found.stages, division, hosts: &hosts, traces, one_clock };
    let describe = |episode: &SlowEpisode| WorstEpisode::of(episode, &rows, &run);
    found.worst = episodes.iter().take(worst).map(describe).collect();
    let watched = wakeups::watched(source)?;
    found.common = common::tests(manifest, &rows, &episodes, watched.as_ref());
    found.wakeups = watched.map(|watched| watched.figures);
    found.next = NextStep::of(manifest, &found.stages, &found.common, found.stamp_error_ns.is_some());
    Ok(Some(found))
}

/// The figures of each stage. Medians take a pass each: the values of one stage take 80 MB at ten million probes.
fn stage_figures<S: ProbeSource>(
    source: &S,
    stages: &Stages,
    division: &Division<'_>,
    facts: Option<StampFacts>,
) -> Result<Vec<StageShares>, S::Error> {
    let mut figures = Vec::new();
    for (place, stage) in stages.each.iter().enumerate() {
        let mut values = StageValues { stages, place, each_ns: Vec::new() };
        visit_rows(source, &mut [&mut values])?;
        let median_ns = slow::order_statistic(&mut values.each_ns, 0.5);
        let error_ns = facts.filter(|_| stage.is_converted()).map_or(0, |facts| facts.error_ns);
        let [share_of_median, share_of_p99, share_of_worst] = division.shares(place);
        figures.push(StageShares {
            stage: stage.clone(),
            median_ns,
            is_below_error: median_ns < error_ns,
            share_of_median,
            share_of_p99,
            share_of_worst,
            excess_ns: division.tail_mean(place) - median_ns as f64,
        });
    }
    Ok(figures)
}

/// What the CPUs of a run of wake-ups did; empty of probes.
fn activity<S: ProbeSource>(source: &S, manifest: &Manifest, rows: &Rows) -> Result<Vec<CpuActivity>, S::Error> {
    if manifest.kind != Kind::Wakeup {
        return Ok(Vec::new());
    }
    let mut host = HostAccumulator::default();
    source.visit_host_samples(&mut |side, sample| {
        if side == Side::Local {
            host.take(sample);
        }
    })?;
    let cpus: BTreeSet<u16> = rows.cpus[0].iter().copied().filter(|cpu| *cpu != rows::UNKNOWN).collect();
    Ok(cpu_activity(&cpus, manifest, Some(&host)))
}
