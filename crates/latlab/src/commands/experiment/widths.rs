//! The stop rule: are the intervals narrow enough? Widths are looked at, and nothing else (decision 0012).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::pairs::pairs;
use super::runs;
use crate::analysis::Estimand;
use crate::analysis::comparison::{
    ComparisonOptions, ObservedRun, RunFigure, RunGroup, RunGroups, is_precise, parse_estimand,
};
use crate::commands::stored_runs::observe;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::OpenExperiment;
use crate::plan::{Experiment, Factors, RunsRule, defaults};

/// The statistic of each run that was looked at, by the name of its recording, so that none is read twice.
#[derive(Debug, Default)]
pub(super) struct PrecisionRule {
    known: BTreeMap<String, ObservedRun>,
}

/// What looking at the widths told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrecisionResult {
    /// Narrow enough.
    Narrow,
    /// Not yet.
    Wide,
    /// The statistic is infinite in a run: no further run makes its interval narrow.
    Lost,
}

impl PrecisionRule {
    /// Whether the 95 % interval of every difference to the baseline of the first comparison is as narrow as the rule
    /// demands.
    pub(super) fn look(
        &mut self,
        experiment: &Experiment,
        open: &OpenExperiment,
        console: &Console,
    ) -> Result<PrecisionResult, Failure> {
        let RunsRule::Until { statistic, half_width, .. } = &experiment.design.runs else {
            return Ok(PrecisionResult::Wide);
        };
        let contrast = experiment.contrasts.first();
        let metric = contrast.map_or(experiment.kind.metric(), |contrast| contrast.metric);
        let standing = open.standing();
        let factors = experiment.conditions.iter().map(|condition| &condition.factors);
        let left: Vec<&Factors> = factors.filter(|factors| !standing.is_dropped(factors)).collect();
        let judged = runs::judged(standing).filter(|(run, _)| left.contains(&&run.key.factors));
        let names: Vec<&str> = judged.map(|(_, name)| name).collect();
        self.learn(open, &names, parse_estimand(Some(metric.name()), statistic)?, console)?;
        let runs: Vec<ObservedRun> = names.iter().filter_map(|name| self.known.get(*name).cloned()).collect();
        if runs.iter().any(|run| run.figures.first() == Some(&RunFigure::Lost)) {
            return Ok(PrecisionResult::Lost);
        }
        let Ok(RunGroups { mut groups, .. }) = RunGroups::by_condition(runs) else { return Ok(PrecisionResult::Wide) };
        // a changed file may have given its conditions other numbers
        groups.sort_by_key(|group| left.iter().position(|factors| **factors == group.levels));
        // a condition without a run that can be judged is not precise
        let is_narrow = groups.len() == left.len() && {
            let wishes =
                ComparisonOptions { seed: experiment.design.seed, ..ComparisonOptions::at(defaults::CONFIDENCE) };
            let baseline = contrast.map(|contrast| &contrast.baseline);
            sides(groups, &left, baseline).iter().all(|sides| is_precise(sides, 0, *half_width, &wishes))
        };
        Ok(if is_narrow { PrecisionResult::Narrow } else { PrecisionResult::Wide })
    }

    /// Reads those of the recordings `names` that were not read yet.
    fn learn(
        &mut self,
        open: &OpenExperiment,
        names: &[&str],
        subject: Estimand,
        console: &Console,
    ) -> Result<(), Failure> {
        let new: Vec<&str> = names.iter().copied().filter(|name| !self.known.contains_key(*name)).collect();
        let paths: Vec<PathBuf> = new.iter().map(|name| open.runs().join(name)).collect();
        self.known.extend(new.into_iter().map(str::to_owned).zip(observe(&paths, &[subject], console)?));
        Ok(())
    }
}

/// What is looked at: baseline and candidate of each comparison, or the only group.
fn sides(groups: Vec<RunGroup>, conditions: &[&Factors], baseline: Option<&Factors>) -> Vec<Vec<RunGroup>> {
    if groups.len() == 1 {
        return vec![groups];
    }
    let both = |(one, other): (usize, usize)| vec![groups[one].clone(), groups[other].clone()];
    pairs(conditions, baseline).into_iter().map(both).collect()
}
