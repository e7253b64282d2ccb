//! Runs in the ministat form: each recording is one observation, a statistic of its probes.

use super::groups::PathGroup;
use super::levels::level;
use super::verdict;
use crate::analysis::{FailIf, Observed, SummaryWishes};
use crate::cli::resolve::{Grouping, MinistatJob};
use crate::console::Console;
use crate::error::Failure;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::recording::Recording;

/// Name and observations of each group that the recordings in `groups` make: times in ns, shares as they are.
pub(super) fn observations(
    job: &MinistatJob,
    groups: &[PathGroup],
    console: &Console,
) -> Result<Vec<(String, Vec<f64>)>, Failure> {
    let mut found: Vec<(String, Vec<f64>)> = Vec::new();
    for (group, path) in groups.iter().flat_map(|group| group.paths.iter().map(move |path| (group, path))) {
        let recording = Recording::open(path)?;
        if let Some(note) = recording.note() {
            console.note(note);
        }
        let name = match &job.sources.grouping {
            Grouping::By(factor) => level(&recording.manifest().condition, factor)?,
            Grouping::Paths | Grouping::Globs(_) => group.name.clone(),
        };
        let value = figure(job, &recording)?;
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => found.push((name, vec![value])),
        }
    }
    Ok(found)
}

/// The statistic of one run, read as a gate reads it.
fn figure(job: &MinistatJob, recording: &Recording) -> Result<f64, Failure> {
    let statistic = job.statistic.as_deref().unwrap_or("mean");
    let usual = (recording.manifest().kind == Kind::Stream).then(|| Metric::DeliveredRate.name());
    let ratio = statistic.ends_with("ratio");
    let metric = job.metric.as_deref().or(usual.filter(|_| !ratio)).unwrap_or_default();
    let asked = format!("{metric} {statistic}");
    let condition = FailIf::asking(&asked).map_err(|error| Failure {
        message: format!("cannot take `{}` of each run", asked.trim()),
        ..Failure::from(error)
    })?;
    let judging = recording.manifest().spec.judging.clone();
    let metrics = vec![condition.metric().unwrap_or(Metric::RoundTripDelay)];
    let mut wishes = SummaryWishes { judging, intervals: false, metrics };
    wishes.include(&condition);
    let summary = verdict::summary_of(recording, &wishes)?;
    let no_number = |cause: &str| {
        Failure::request(format!("`{}` has no {statistic} that can be compared", summary.recording))
            .because(cause)
            .hint("leave it out, or compare another `--statistic`, such as `loss_ratio` or a lower quantile")
    };
    match condition.judge(&summary)?.observed {
        Observed::Finite(value) => Ok(value),
        Observed::Infinite => Err(no_number("it fell among the lost probes")),
        Observed::Nothing => Err(no_number("no probe of it was measured")),
    }
}
