//! The runs of an experiment that count, read back from their recordings.

use std::path::Path;

use crate::analysis::summarise;
use crate::analysis::{Summary, SummaryOptions};
use crate::diagnostics::Failure;
use crate::experiment::{ExperimentState, RunState};
use crate::metric::Metric;
use crate::plan::SummaryDefaults;
use crate::recording::Recording;

/// Runs that are judged, in the order in which they were made, with the name of their recording.
pub(super) fn judged(standing: &ExperimentState) -> impl Iterator<Item = (&RunState, &str)> {
    standing.runs.iter().filter(|run| run.is_judged()).filter_map(|run| Some((run, run.recording.as_deref()?)))
}

/// What the recording `name` says about `metric` at `quantiles`; no intervals, since a run is one observation here.
pub(super) fn summary(directory: &Path, name: &str, metric: Metric, quantiles: &[f64]) -> Result<Summary, Failure> {
    let recording = Recording::open(&directory.join("runs").join(name))?;
    let judging =
        SummaryDefaults { quantiles: quantiles.to_vec(), window_ns: None, ..recording.manifest().spec.judging.clone() };
    Ok(summarise(&recording, &SummaryOptions { judging, intervals: false, metrics: vec![metric] })?)
}
