//! What `latlab run` names: a recipe, an experiment's directory or a file, each with what to go on with.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::cli::resolve::{AskedRecipe, RunJob};
use crate::diagnostics::{Failure, in_words};
use crate::experiment::{self, ExperimentOrigin, RecipeFacts};
use crate::recipe;

/// What it is called, its text, where it comes from, and what to go on with.
pub(super) type ExperimentSource = (String, String, Option<ExperimentOrigin>, Option<PathBuf>);

pub(super) fn of_recipe(asked: &AskedRecipe, job: &RunJob) -> Result<ExperimentSource, Failure> {
    let AskedRecipe { recipe, target, scale, .. } = asked;
    let source = asked.source();
    let facts = RecipeFacts { name: recipe.name.into(), scale: scale.word().into(), target: target.clone() };
    let directory = unfinished(job, &source);
    let origin = ExperimentOrigin { source, recipe: Some(facts) };
    // Another version may have another file: what was begun goes on as it was.
    let text = match &directory {
        Some(directory) => experiment::file_text(directory)?,
        None => asked.file(),
    };
    Ok((recipe.name.into(), text, Some(origin), directory))
}

pub(super) fn of_directory(path: &Path, job: &RunJob) -> Result<ExperimentSource, Failure> {
    experiment::look_at(path)?;
    let file = path.join("experiment.toml").display().to_string();
    if job.going_on.new {
        return Err(Failure::request(format!("`{}` cannot begin again", path.display()))
            .because("a directory is one experiment")
            .hint("`latlab run FILE --new` begins another one of its file"));
    }
    Ok((file, experiment::file_text(path)?, None, Some(path.to_owned())))
}

pub(super) fn of_file(path: &Path, job: &RunJob) -> Result<ExperimentSource, Failure> {
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
    Ok((shown.to_string(), text, Some(ExperimentOrigin { source: absolute, recipe: None }), directory))
}

fn unfinished(job: &RunJob, source: &str) -> Option<PathBuf> {
    let found = (!job.going_on.new).then(|| experiment::newest_unfinished(&job.store, source)).flatten();
    found.map(|found| found.path)
}
