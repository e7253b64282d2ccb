//! From what was named to groups of runs: experiments, stores, recordings, files of numbers.

use std::path::{Path, PathBuf};

use super::groups::{self, PathGroup, is_text};
use crate::analysis::Subject;
use crate::analysis::comparison::{ObservedRun, RunGroups};
use crate::cli::resolve::{Grouping, Sources};
use crate::console::Console;
use crate::error::Failure;
use crate::recording::{ListingState, Recording, Store};

/// The file that makes a directory an experiment, and the store of its runs.
const EXPERIMENT: &str = "experiment.toml";
const RUNS: &str = "runs";

/// Whether the numbers of `groups` stand in files: all of them do, or none.
pub(super) fn are_numbers(groups: &[PathGroup]) -> Result<bool, Failure> {
    let mut paths = groups.iter().flat_map(|group| &group.paths);
    let texts = paths.clone().filter(|path| is_text(path)).count();
    let recorded = paths.find(|path| !is_text(path));
    match (texts, recorded) {
        (0, _) => Ok(false),
        (_, None) => Ok(true),
        (_, Some(path)) => Err(Failure::request("cannot compare numbers of files with recordings")
            .because(format!("`{}` is a directory, and other paths are files", path.display()))
            .hint("compare files with files, or recordings with recordings")),
    }
}

/// Each line an observation.
pub(super) fn numbers(paths: &[PathGroup], sources: &Sources) -> Result<RunGroups, Failure> {
    let mut named = Vec::new();
    for group in paths {
        let values = groups::numbers(group, &sources.column)?;
        let line = |(line, value): (usize, &f64)| ObservedRun::bare(format!("{}:{}", group.name, line + 1), *value);
        named.push((group.name.clone(), values.iter().enumerate().map(line).collect()));
    }
    Ok(RunGroups::named(named)?)
}

/// Each run an observation, asked for `subjects`.
pub(super) fn recorded(
    paths: &[PathGroup],
    sources: &Sources,
    subjects: &[Subject],
    console: &Console,
) -> Result<RunGroups, Failure> {
    let mut named: Vec<(String, Vec<ObservedRun>)> = Vec::new();
    for group in paths {
        let mut runs = Vec::new();
        for path in &group.paths {
            runs.extend(runs_in(path, subjects, console)?);
        }
        named.push((group.name.clone(), runs));
    }
    let every = |named: Vec<(String, Vec<ObservedRun>)>| named.into_iter().flat_map(|(_, runs)| runs).collect();
    Ok(match &sources.grouping {
        Grouping::By(factor) => RunGroups::by(factor, every(named))?,
        Grouping::Paths if is_of_experiments(&named) => RunGroups::by_condition(every(named))?,
        Grouping::Paths | Grouping::Globs(_) => RunGroups::named(named)?,
    })
}

/// Whether one path holds all runs, and an experiment says which belong together.
fn is_of_experiments(named: &[(String, Vec<ObservedRun>)]) -> bool {
    matches!(named, [(_, runs)] if !runs.is_empty() && runs.iter().all(|run| run.factors.is_some()))
}

/// The runs of the recording, the store or the experiment at `path`, in the order in which they were made.
pub(super) fn runs_in(path: &Path, subjects: &[Subject], console: &Console) -> Result<Vec<ObservedRun>, Failure> {
    let store = if path.join(EXPERIMENT).is_file() { path.join(RUNS) } else { path.to_owned() };
    let mut found: Vec<PathBuf> = Vec::new();
    for listing in Store::at(&store).list()? {
        match listing.state {
            ListingState::Finished | ListingState::Unfinished => found.push(listing.path),
            ListingState::Measuring { pid } => {
                console.note(&format!("`{}` is left out: process {pid} still measures", listing.name()));
            }
            ListingState::Damaged(error) => console.warning(&format!("left out: {error}"), error.hint().as_deref()),
        }
    }
    // the store lists the newest first
    found.reverse();
    if found.is_empty() && store == path {
        found.push(path.to_owned());
    }
    found.iter().map(|path| observe(path, subjects, console)).collect()
}

fn observe(path: &Path, subjects: &[Subject], console: &Console) -> Result<ObservedRun, Failure> {
    let recording = Recording::open(path)?;
    if let Some(note) = recording.note() {
        console.note(note);
    }
    Ok(ObservedRun::of(&recording, subjects)?)
}
