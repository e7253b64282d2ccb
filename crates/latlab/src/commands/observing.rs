//! From what was named to groups of runs: experiments, stores, recordings.

use std::collections::BTreeSet;
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
