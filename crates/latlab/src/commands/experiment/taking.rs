//! Taking an experiment on: the one that is there or a new one, and never one that somebody else measures.

use std::path::Path;

use super::Asked;
use crate::cli::resolve::{RunJob, RunSource};
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::{self, OpenExperiment, StoreLock};

/// Opens what there is to go on with, or begins.
pub(in crate::commands) fn take_on(asked: &Asked, job: &RunJob, console: &Console) -> Result<OpenExperiment, Failure> {
    let Some(origin) = &asked.origin else {
        let directory = asked.directory.as_deref().unwrap_or(Path::new("."));
        return go_on(directory, asked, job, console);
    };
    // Those that were started at the same time wait here, and then find what the first of them has begun.
    let _turn = StoreLock::take(&job.store)?;
    let found = || experiment::newest_unfinished(&job.store, &origin.source).map(|found| found.path);
    if let Some(directory) = asked.directory.clone().or_else(found).filter(|_| !job.going_on.new) {
        return go_on(&directory, asked, job, console);
    }
    // Two of one file would measure into each other.
    experiment::expect_idle(&job.store, &origin.source)?;
    Ok(OpenExperiment::begin(&job.store, &asked.text, origin.clone())?)
}

fn go_on(directory: &Path, asked: &Asked, job: &RunJob, console: &Console) -> Result<OpenExperiment, Failure> {
    let mut open = OpenExperiment::open(directory)?;
    if !job.going_on.force {
        refuse_changed(directory, &asked.file, &asked.text)?;
    } else if open.text() != asked.text || experiment::is_edited(directory, open.standing())? {
        open.change(&asked.text)?;
        let message = format!("`{}` goes on with a changed file: it is no longer one experiment", directory.display());
        console.warning(&message, Some("compare runs from before and after with care, or begin another: `--new`"));
    }
    if let RunSource::Path(_) = job.source {
        console.note(&format!("going on with `{}`", directory.display()));
    }
    Ok(open)
}

/// Refuses to go on in `directory` where `text`, read from `file`, or the file there is not what it was begun with.
pub(super) fn refuse_changed(directory: &Path, file: &str, text: &str) -> Result<(), Failure> {
    if experiment::is_edited(directory, &experiment::look_at(directory)?)? {
        return Err(experiment::ExperimentError::Edited { path: directory.to_owned() }.into());
    }
    Ok(experiment::expect_same(directory, file, text)?)
}
