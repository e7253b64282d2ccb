//! `latlab run FILE --plan`: designs that find a change, by the runs that exist.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::Outcome;
use crate::analysis::experiment::{PilotRun, PilotSpread, WantedChange, advise};
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::{ExperimentState, gone_runs, runs_directory};
use crate::plan::Experiment;
use crate::platform::parallel_map;
use crate::recording::manifest::RunEnding;
use crate::recording::{Listing, Recording, Store};
use crate::report::experiment::{DesignsView, designs};

/// Prints the designs of `experiment` that find what is `wanted`. The pilot is the experiment that has `begun`, or the
/// recordings in `store`.
pub(super) fn run(
    wanted: &str,
    experiment: &Experiment,
    begun: Option<(&Path, &ExperimentState)>,
    store: &Path,
    console: &Console,
) -> Result<Outcome, Failure> {
    let wanted = WantedChange::parse(wanted, experiment.kind.metric())?;
    let paths = match begun {
        Some((directory, state)) => judged(directory, state),
        None => recorded(store, experiment)?,
    };
    let read = |path: &PathBuf| match Recording::open(path).map_err(Failure::from) {
        Ok(recording) => ControlFlow::Continue(PilotRun::of(&recording, &wanted).map_err(Failure::from)),
        Err(failure) => ControlFlow::Break(Err(failure)),
    };
    let runs = parallel_map::each(&paths, parallel_map::available(), read);
    let spread = PilotSpread::of(runs.into_iter().collect::<Result<_, _>>()?)?;
    let advice = advise(experiment, &spread, wanted.shift());
    let view = DesignsView {
        kind: experiment.kind,
        wanted: &wanted,
        spread: &spread,
        advice: &advice,
        is_single: experiment.conditions.len() == 1,
    };
    console.data(&designs(&view, console.data_style()))?;
    if spread.probe.is_none() {
        let message = "not all runs of the pilot support this statistic: other lengths of runs cannot be foretold";
        console.warning(message, Some("a pilot of longer runs"));
    }
    Ok(Outcome::Done)
}

/// The recordings of the runs of an experiment that are judged and there.
fn judged(directory: &Path, state: &ExperimentState) -> Vec<PathBuf> {
    let gone = gone_runs(directory, state);
    let names = state.judged().map(|(_, name)| name).filter(|name| !gone.contains(*name));
    names.map(|name| runs_directory(directory).join(name)).collect()
}

/// The recordings in `store` of the conditions of `experiment` that were measured to their end.
fn recorded(store: &Path, experiment: &Experiment) -> Result<Vec<PathBuf>, Failure> {
    if !store.is_dir() {
        return Ok(Vec::new());
    }
    let runs = experiment.conditions.iter().flat_map(|condition| &condition.plan.runs);
    let conditions: Vec<_> = runs.map(|run| (run.levels(), run.stop)).collect();
    let is_asked = |one: &Listing| {
        one.manifest.as_ref().is_some_and(|manifest| {
            manifest.ending == RunEnding::Completed
                && conditions.contains(&(manifest.spec.levels(), manifest.spec.stop))
        })
    };
    Ok(Store::at(store).list()?.into_iter().filter(is_asked).map(|one| one.path).collect())
}
