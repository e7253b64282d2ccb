//! An experiment as `latlab list` shows it: how far it is, and whether somebody conducts it.

use std::path::Path;

use crate::cli::resolve::Environment;
use crate::cli::resolve::{self, ConditionSelection, ExperimentJob};
use crate::diagnostics::Failure;
use crate::experiment::{self, ExperimentError};
use crate::report::list::ListedExperiment;

/// The experiment in `directory`, whatever state it is in.
pub(in crate::commands) fn listing(directory: &Path) -> ListedExperiment {
    let settled = settle(directory).ok();
    let design = settled.as_ref().map(|job| (&job.experiment.design, job.experiment.conditions.len()));
    let mut view = ListedExperiment {
        experiment: directory.display().to_string(),
        name: settled.as_ref().map(|job| job.experiment.name.clone()),
        runs_done: None,
        runs_planned: design.map(|(design, conditions)| design.runs_at_most(conditions)),
        state: "damaged".into(),
        reason: None,
    };
    match experiment::look_closer(directory) {
        Err(error) => view.reason = Some(in_full(&error)),
        Ok((standing, conductor)) => {
            view.runs_done = Some(standing.runs_done());
            let process = |pid: Option<u32>| pid.map_or("by another process".into(), |pid| format!("by process {pid}"));
            (view.state, view.reason) = match conductor {
                Some(conductor) => ("measuring".into(), Some(process(conductor.pid))),
                None if standing.finished => ("finished".into(), None),
                None => ("unfinished".into(), Some("`latlab run` with its directory goes on with it".into())),
            };
        }
    }
    view
}

/// Its file, settled as far as that is possible here.
fn settle(directory: &Path) -> Result<ExperimentJob, Failure> {
    let (file, text) = (directory.join("experiment.toml"), experiment::file_text(directory)?);
    Ok(resolve::experiment(
        &file.display().to_string(),
        &text,
        ConditionSelection::Possible,
        &Environment::of_this_process()?,
    )?)
}

fn in_full(error: &ExperimentError) -> String {
    error.cause().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}
