//! Which experiment is meant: its file, settled, and the directory to go on with.

use std::path::PathBuf;

use super::finding::{of_directory, of_file, of_recipe};
use super::taking::refuse_changed;
use crate::cli::resolve::Environment;
use crate::cli::resolve::{self, ConditionSelection, ExperimentJob, RunJob, RunSource};
use crate::diagnostics::Failure;
use crate::experiment::{self, ExperimentOrigin, ExperimentState};

/// An experiment that was asked for.
pub(in crate::commands) struct Asked {
    /// What its file is called.
    pub(in crate::commands) file: String,
    pub(in crate::commands) text: String,
    /// The file, settled.
    pub(in crate::commands) job: ExperimentJob,
    /// Where it comes from; none where a directory was named.
    pub(in crate::commands) origin: Option<ExperimentOrigin>,
    /// What to go on with.
    pub(in crate::commands) directory: Option<PathBuf>,
    /// Its file was edited, and `--force` goes on with it.
    pub(in crate::commands) is_edited: bool,
}

impl Asked {
    /// How far it is; none where it has not begun.
    pub(in crate::commands) fn standing(&self) -> Result<Option<ExperimentState>, Failure> {
        Ok(self.directory.as_deref().map(experiment::look_at).transpose()?)
    }
}

/// Reads and settles what `job` names.
pub(in crate::commands) fn ask(job: &RunJob) -> Result<Asked, Failure> {
    let (file, text, origin, directory) = match &job.source {
        RunSource::Recipe(asked) => of_recipe(asked, job)?,
        RunSource::Path(path) if path.is_dir() => of_directory(path, job)?,
        RunSource::Path(path) => of_file(path, job)?,
    };
    let standing = directory.as_deref().map(experiment::look_at).transpose()?;
    let mut is_edited = false;
    if let (Some(directory), Some(standing)) = (&directory, &standing) {
        is_edited = experiment::is_edited(directory, standing)?;
        if !job.going_on.force {
            refuse_changed(directory, &file, &text)?;
        }
    }
    let begun_as = standing.as_ref().and_then(|standing| standing.recipe.as_ref());
    let is_recipe = begun_as.is_some() || origin.as_ref().is_some_and(|origin| origin.recipe.is_some());
    let rows = if is_recipe { ConditionSelection::Possible } else { ConditionSelection::All };
    // Its copy is called the same in every experiment: the name is that of the file it was copied from.
    let source = standing.as_ref().map_or(&file, |standing| &standing.source);
    let job_of_file = resolve::experiment_from(source, &file, &text, rows, &Environment::of_this_process()?)?;
    if job_of_file.experiment.conditions.is_empty() {
        let reasons: Vec<_> = job_of_file.impossible.iter().map(|row| row.reason.as_str()).collect();
        return Err(Failure::world(format!(
            "no row of the recipe `{}` can be measured here",
            job_of_file.experiment.name
        ))
        .because(reasons.join("\n"))
        .hint("another target may do: `local`, `lab`, `ssh:HOST`"));
    }
    Ok(Asked { file, text, job: job_of_file, origin, directory, is_edited })
}
