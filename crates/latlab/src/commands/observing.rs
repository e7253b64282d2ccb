//! From what was named to groups of runs: experiments, stores, recordings, files of numbers.

use std::collections::BTreeSet;

use super::groups::{self, PathGroup, is_text};
use super::stored_runs::{kind_in, runs_in};
use crate::analysis::Subject;
use crate::analysis::comparison::{ObservedRun, RunGroups};
use crate::cli::resolve::{Grouping, Sources};
use crate::console::Console;
use crate::error::Failure;
use crate::plan::Kind;

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

/// The metric that is meant where none is named, if it is not the round trip.
pub(super) fn usual_metric(groups: &[PathGroup]) -> Option<&'static str> {
    let first = groups.first()?.paths.first().filter(|path| !is_text(path))?;
    kind_in(first).filter(|kind| *kind != Kind::Ping).map(|kind| kind.metric().name())
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
    shorten(&mut named);
    let every = |named: Vec<(String, Vec<ObservedRun>)>| named.into_iter().flat_map(|(_, runs)| runs).collect();
    Ok(match &sources.grouping {
        Grouping::By(factor) => RunGroups::by(factor, every(named))?,
        Grouping::Paths if is_of_experiments(&named) => RunGroups::by_condition(every(named))?,
        Grouping::Paths | Grouping::Globs(_) => RunGroups::named(named)?,
    })
}

/// Groups that are paths go by the last part of these, where that tells them apart.
fn shorten(named: &mut [(String, Vec<ObservedRun>)]) {
    let last = |name: &String| name.trim_end_matches('/').rsplit('/').next().unwrap_or(name).to_owned();
    let short: BTreeSet<String> = named.iter().map(|(name, _)| last(name)).collect();
    if short.len() == named.len() {
        named.iter_mut().for_each(|(name, _)| *name = last(name));
    }
}

/// Whether one path holds all runs, and an experiment says which belong together.
fn is_of_experiments(named: &[(String, Vec<ObservedRun>)]) -> bool {
    matches!(named, [(_, runs)] if !runs.is_empty() && runs.iter().all(|run| run.factors.is_some()))
}
