//! Which experiment is meant: its file, settled, and the directory to go on with.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::taking::refuse_changed;
use crate::cli::resolve::{self, AskedRecipe, ExperimentJob, Rows, RunJob, RunSource};
use crate::commands::surroundings::surroundings;
use crate::error::{Failure, in_words};
use crate::experiment::{self, Origin, RecipeFacts, Standing};
use crate::recipe;

/// An experiment that was asked for.
pub(in crate::commands) struct Asked {
    /// What its file is called.
    pub(in crate::commands) file: String,
    pub(in crate::commands) text: String,
    /// The file, settled.
    pub(in crate::commands) job: ExperimentJob,
    /// Where it comes from; none where a directory was named.
    pub(in crate::commands) origin: Option<Origin>,
    /// What to go on with.
    pub(in crate::commands) directory: Option<PathBuf>,
    /// Its file was edited, and `--force` goes on with it.
    pub(in crate::commands) is_edited: bool,
}

impl Asked {
    /// How far it is; none where it has not begun.
    pub(in crate::commands) fn standing(&self) -> Result<Option<Standing>, Failure> {
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
    let rows = if is_recipe { Rows::Possible } else { Rows::All };
    // Its copy is called the same in every experiment: the name is that of the file it was copied from.
    let source = standing.as_ref().map_or(&file, |standing| &standing.source);
    let job_of_file = resolve::experiment_from(source, &file, &text, rows, &surroundings()?)?;
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

type Found = (String, String, Option<Origin>, Option<PathBuf>);

fn of_recipe(asked: &AskedRecipe, job: &RunJob) -> Result<Found, Failure> {
    let AskedRecipe { recipe, target, scale } = asked;
    let source = recipe.source(target, *scale);
    let facts = RecipeFacts { name: recipe.name.into(), scale: scale.word().into(), target: target.clone() };
    let directory = unfinished(job, &source);
    let origin = Origin { source, recipe: Some(facts) };
    // Another version may have another file: what was begun goes on as it was.
    let text = match &directory {
        Some(directory) => experiment::file_text(directory)?,
        None => recipe.file(target, *scale),
    };
    Ok((recipe.name.into(), text, Some(origin), directory))
}

fn of_directory(path: &Path, job: &RunJob) -> Result<Found, Failure> {
    experiment::look_at(path)?;
    let file = path.join("experiment.toml").display().to_string();
    if job.going_on.new {
        return Err(Failure::request(format!("`{}` cannot begin again", path.display()))
            .because("a directory is one experiment")
            .hint("`latlab run FILE --new` begins another one of its file"));
    }
    Ok((file, experiment::file_text(path)?, None, Some(path.to_owned())))
}

fn of_file(path: &Path, job: &RunJob) -> Result<Found, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::request(format!("there is no file, recipe or experiment `{shown}`")).hint(
            match recipe::meant(&shown.to_string()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "`latlab recipes` lists the built-in experiments; docs/experiments.md shows a file".into(),
            },
        ),
        _ => Failure::request(format!("cannot read `{shown}`")).because(in_words(&error)),
    })?;
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string();
    let directory = unfinished(job, &absolute);
    Ok((shown.to_string(), text, Some(Origin { source: absolute, recipe: None }), directory))
}

fn unfinished(job: &RunJob, source: &str) -> Option<PathBuf> {
    let found = (!job.going_on.new).then(|| experiment::newest_unfinished(&job.store, source)).flatten();
    found.map(|found| found.path)
}
