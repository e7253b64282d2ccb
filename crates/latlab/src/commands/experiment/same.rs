//! `latlab run aa`: what the same condition under two names tells about this host and about tests.

use std::path::Path;

use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::runs;
use crate::analysis::experiment::{AaTest, NamedRun, aa_test};
use crate::analysis::sample;
use crate::diagnostics::Failure;
use crate::experiment::{ExperimentState, RunState};
use crate::metric::Metric;
use crate::plan::defaults;
use crate::recording::Recording;
use crate::report::experiment::aa_test::AaTestView;
use crate::sample::INFINITE;

const QUANTILES: [f64; 2] = [0.5, 0.99];
/// The statistics that are looked at, the mean first.
const NAMES: [&str; 3] = ["mean", "p50", "p99"];
/// Of the exchanges that are drawn where there are many: the same runs tell the same each time.
const SEED: u64 = 1;

/// What the experiment tells; none where it is another.
pub(super) fn view(directory: &Path, standing: &ExperimentState) -> Result<Option<AaTestView>, Failure> {
    if standing.recipe.as_ref().is_none_or(|recipe| recipe.name != "aa") {
        return Ok(None);
    }
    let read = |(run, name): (&RunState, &str)| named(directory, run, name);
    let runs =
        runs::judged(standing).filter(|(run, _)| !run.is_unanswered()).map(read).collect::<Result<Vec<_>, _>>()?;
    let AaTest { found, by_student, by_ranks, drift, hours } =
        aa_test(&runs, defaults::CONFIDENCE, &mut Pcg64::seed_from_u64(SEED));
    let drift = NAMES.iter().zip(drift).map(|(name, slope)| ((*name).to_owned(), slope)).collect();
    Ok(Some(AaTestView { runs: runs.len(), found, by_student, by_ranks, drift, hours }))
}

fn named(directory: &Path, run: &RunState, name: &str) -> Result<NamedRun, Failure> {
    let summary = runs::summary(directory, name, Metric::RoundTripDelay, &QUANTILES)?;
    let recording = Recording::open(&directory.join("runs").join(name))?;
    let start = recording.manifest().here.clock_start.as_ref();
    let description = summary.metrics.get(&Metric::RoundTripDelay);
    let mean = description.and_then(|description| description.mean);
    let quantiles = description.into_iter().flat_map(|description| &description.quantiles);
    let mut singletons = sample(&recording, Metric::RoundTripDelay)?.singletons;
    singletons.retain(|value| *value != INFINITE);
    Ok(NamedRun {
        second: run.place.condition == 2,
        block: run.key.block,
        hours: start.map_or(0.0, |anchor| anchor.boottime_ns as f64 / 3.6e12),
        statistics: std::iter::once(mean).chain(quantiles.map(|quantile| quantile.value)).collect(),
        singletons,
    })
}
