//! From what was named to groups of runs: experiments, stores, recordings.

use std::path::PathBuf;

use super::groups::PathGroup;
use super::stored_runs::{FoundRun, observe, runs_in};
use crate::analysis::Estimand;
use crate::analysis::comparison::{ObservedRun, RunGroups, expect_one_kind};
use crate::cli::resolve::{Grouping, Sources};
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::plan::Kind;

/// Recordings that belong together as far as their paths say, before any is read.
pub(super) struct FoundGroup {
    name: String,
    runs: Vec<FoundRun>,
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
    subjects: &[Estimand],
    console: &Console,
) -> Result<RunGroups, Failure> {
    let paths: Vec<PathBuf> = found.iter().flat_map(|group| &group.runs).map(|run| run.path.clone()).collect();
    let observed = observe(&paths, subjects, console)?;
    expect_one_kind(&observed, subjects)?;
    let mut observed = observed.into_iter();
    let own = |group: FoundGroup| (group.name, observed.by_ref().take(group.runs.len()).collect());
    let groups: Vec<(String, Vec<ObservedRun>)> = found.into_iter().map(own).collect();
    Ok(match &sources.grouping {
        Grouping::By(factor) => {
            let groups = RunGroups::by(factor, groups.into_iter().flat_map(|(_, runs)| runs).collect())?;
            sources.baseline.iter().try_fold(groups, |groups, name| groups.with_baseline(name))?
        }
        Grouping::Paths => RunGroups::of_paths(groups)?,
        Grouping::Globs(_) => RunGroups::of_globs(groups)?,
    })
}
