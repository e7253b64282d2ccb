//! The stop rule: are the intervals narrow enough? Widths are looked at, and nothing else (decision 0012).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::runs;
use crate::analysis::comparison::{ComparisonWishes, ObservedRun, RunGroups, is_precise, subject_named};
use crate::commands::stored_runs::observe;
use crate::console::Console;
use crate::error::Failure;
use crate::experiment::OpenExperiment;
use crate::plan::{Experiment, Factors, RunsRule, defaults};

/// The statistic of each run that was looked at, by the name of its recording, so that none is read twice.
#[derive(Debug, Default)]
pub(super) struct Widths {
    known: BTreeMap<String, ObservedRun>,
}

impl Widths {
    /// Whether the 95 % interval of every difference to the first condition is as narrow as the rule demands.
    pub(super) fn are_narrow(
        &mut self,
        experiment: &Experiment,
        open: &OpenExperiment,
        console: &Console,
    ) -> Result<bool, Failure> {
        let RunsRule::Until { statistic, half_width, .. } = &experiment.design.runs else { return Ok(false) };
        let metric = experiment.contrasts.first().map_or(experiment.kind.metric(), |contrast| contrast.metric);
        let standing = open.standing();
        let factors = experiment.conditions.iter().map(|condition| &condition.factors);
        let left: Vec<&Factors> = factors.filter(|factors| !standing.is_dropped(factors)).collect();
        let judged = runs::judged(standing).filter(|(run, _)| left.contains(&&run.key.factors));
        let names: Vec<&str> = judged.map(|(_, name)| name).collect();
        let new: Vec<&str> = names.iter().copied().filter(|name| !self.known.contains_key(*name)).collect();
        let paths: Vec<PathBuf> = new.iter().map(|name| open.runs().join(name)).collect();
        let subject = subject_named(Some(metric.name()), statistic)?;
        self.known.extend(new.into_iter().map(str::to_owned).zip(observe(&paths, &[subject], console)?));
        let runs = names.iter().filter_map(|name| self.known.get(*name).cloned()).collect();
        let Ok(RunGroups { mut groups, .. }) = RunGroups::by_condition(runs) else { return Ok(false) };
        // a changed file may have given its conditions other numbers
        groups.sort_by_key(|group| left.iter().position(|factors| **factors == group.levels));
        let wishes = ComparisonWishes { seed: experiment.design.seed, ..ComparisonWishes::at(defaults::CONFIDENCE) };
        // a condition without a run that can be judged is not precise
        Ok(groups.len() == left.len() && is_precise(&groups, 0, *half_width, &wishes))
    }
}
