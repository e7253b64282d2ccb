//! From what was named to groups of runs: experiments, stores, recordings, files of numbers.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::groups::{self, PathGroup, is_text};
use super::stored_runs::{FoundRun, observe, runs_in};
use crate::analysis::Subject;
use crate::analysis::comparison::{ObservedRun, RunGroups, expect_one_kind};
use crate::cli::resolve::{Grouping, Sources};
use crate::console::Console;
use crate::error::Failure;
use crate::plan::Kind;

/// Recordings that belong together as far as their paths say, before any is read.
pub(super) struct FoundGroup {
    name: String,
    runs: Vec<FoundRun>,
}

/// Whether the numbers of `groups` stand in files: all of them do, or none.
pub(super) fn are_numbers(groups: &[PathGroup]) -> Result<bool, Failure> {
    let mut paths = groups.iter().flat_map(|group| &group.paths);
    let texts = paths.clone().filter(|path| is_text(path)).count();
    if let Some(path) = paths.clone().find(|path| !groups::is_there(path)) {
        return Err(Failure::request(format!("cannot read `{}`", path.display()))
            .because("there is no such file or directory")
            .hint("see the path; `latlab list` shows the recordings of a store"));
    }
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
        if values.is_empty() {
            return Err(Failure::request(format!("cannot compare `{}`", group.name))
                .because(format!("it has no number in column {}", sources.column.number))
                .hint("`-C N` picks another column, `-d DELIMS` splits otherwise"));
        }
        let line = |(line, value): (usize, &f64)| ObservedRun::bare(format!("{}:{}", group.name, line + 1), *value);
        named.push((group.name.clone(), values.iter().enumerate().map(line).collect()));
    }
    Ok(RunGroups::named(named)?)
}

/// The recordings in `paths`; what of them is left out is told.
pub(super) fn find(paths: &[PathGroup], console: &Console) -> Result<Vec<FoundGroup>, Failure> {
    let group = |group: &PathGroup| {
        let runs = group.paths.iter().map(|path| runs_in(path, console)).collect::<Result<Vec<_>, _>>()?;
        Ok(FoundGroup { name: group.name.clone(), runs: runs.concat() })
    };
    paths.iter().map(group).collect()
}

/// The metric that is meant where none is named, if it is not the round trip.
pub(super) fn usual_metric(found: &[FoundGroup]) -> Option<&'static str> {
    let kind = found.iter().flat_map(|group| &group.runs).next()?.kind()?;
    (kind != Kind::Ping).then(|| kind.metric().name())
}

/// Each run an observation, asked for `subjects`.
pub(super) fn recorded(
    found: Vec<FoundGroup>,
    sources: &Sources,
    subjects: &[Subject],
    console: &Console,
) -> Result<RunGroups, Failure> {
    let paths: Vec<PathBuf> = found.iter().flat_map(|group| &group.runs).map(|run| run.path.clone()).collect();
    let observed = observe(&paths, subjects, console)?;
    expect_one_kind(&observed, subjects)?;
    let mut observed = observed.into_iter();
    Ok(match &sources.grouping {
        Grouping::By(factor) => {
            let groups = RunGroups::by(factor, observed.collect())?;
            sources.baseline.iter().try_fold(groups, |groups, name| groups.with_baseline(name))?
        }
        Grouping::Paths if matches!(found.as_slice(), [_]) && is_of_experiments(observed.as_slice()) => {
            RunGroups::by_condition(observed.collect())?
        }
        Grouping::Paths | Grouping::Globs(_) => {
            let names = short(&found);
            let own = |(name, group): (String, &FoundGroup)| (name, observed.by_ref().take(group.runs.len()).collect());
            RunGroups::named(names.into_iter().zip(&found).map(own).collect())?
        }
    })
}

/// Groups that are paths go by the last part of these, where that tells them apart.
fn short(found: &[FoundGroup]) -> Vec<String> {
    let last = |group: &FoundGroup| {
        let name = group.name.trim_end_matches('/');
        name.rsplit('/').next().unwrap_or(name).to_owned()
    };
    let short: BTreeSet<String> = found.iter().map(last).collect();
    let tells_apart = short.len() == found.len();
    found.iter().map(|group| if tells_apart { last(group) } else { group.name.clone() }).collect()
}

/// Whether an experiment says of all runs which belong together.
fn is_of_experiments(runs: &[ObservedRun]) -> bool {
    !runs.is_empty() && runs.iter().all(|run| run.factors.is_some())
}
