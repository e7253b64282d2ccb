//! The stop rule: are the intervals narrow enough? Widths are looked at, and nothing else (decision 0012).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::runs;
use crate::analysis::Subject;
use crate::analysis::comparison::{
    ComparisonWishes, ObservedRun, RunFigure, RunGroup, RunGroups, is_precise, subject_named,
};
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

/// What looking at the widths told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// Narrow enough.
    Narrow,
    /// Not yet.
    Wide,
    /// The statistic is infinite in a run: no further run makes its interval narrow.
    Lost,
}

impl Widths {
    /// Whether the 95 % interval of every difference to the baseline of the first comparison is as narrow as the rule
    /// demands.
    pub(super) fn look(
        &mut self,
        experiment: &Experiment,
        open: &OpenExperiment,
        console: &Console,
    ) -> Result<Width, Failure> {
        let RunsRule::Until { statistic, half_width, .. } = &experiment.design.runs else { return Ok(Width::Wide) };
        let contrast = experiment.contrasts.first();
        let metric = contrast.map_or(experiment.kind.metric(), |contrast| contrast.metric);
        let standing = open.standing();
        let factors = experiment.conditions.iter().map(|condition| &condition.factors);
        let left: Vec<&Factors> = factors.filter(|factors| !standing.is_dropped(factors)).collect();
        let judged = runs::judged(standing).filter(|(run, _)| left.contains(&&run.key.factors));
        let names: Vec<&str> = judged.map(|(_, name)| name).collect();
        self.learn(open, &names, subject_named(Some(metric.name()), statistic)?, console)?;
        let runs: Vec<ObservedRun> = names.iter().filter_map(|name| self.known.get(*name).cloned()).collect();
        if runs.iter().any(|run| run.figures.first() == Some(&RunFigure::Lost)) {
            return Ok(Width::Lost);
        }
        let Ok(RunGroups { mut groups, .. }) = RunGroups::by_condition(runs) else { return Ok(Width::Wide) };
        // a changed file may have given its conditions other numbers
        groups.sort_by_key(|group| left.iter().position(|factors| **factors == group.levels));
        // a condition without a run that can be judged is not precise
        let is_narrow = groups.len() == left.len() && {
            let wishes =
                ComparisonWishes { seed: experiment.design.seed, ..ComparisonWishes::at(defaults::CONFIDENCE) };
            let baseline = contrast.map(|contrast| &contrast.baseline);
            sides(groups, &left, baseline).iter().all(|sides| is_precise(sides, 0, *half_width, &wishes))
        };
        Ok(if is_narrow { Width::Narrow } else { Width::Wide })
    }

    /// Reads those of the recordings `names` that were not read yet.
    fn learn(
        &mut self,
        open: &OpenExperiment,
        names: &[&str],
        subject: Subject,
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

/// What is compared with what: each condition with the one that differs from it in `baseline` only; the first with all
/// others where none is named, or nothing would be compared.
fn pairs(conditions: &[&Factors], baseline: Option<&Factors>) -> Vec<(usize, usize)> {
    let named = baseline.filter(|baseline| !baseline.is_empty()).map(|baseline| {
        let pair = |(place, factors): (usize, &&Factors)| {
            let wanted: Factors = (*factors).clone().into_iter().chain(baseline.clone()).collect();
            let other = conditions.iter().position(|factors| **factors == wanted)?;
            (other != place).then_some((other, place))
        };
        conditions.iter().enumerate().filter_map(pair).collect::<Vec<_>>()
    });
    let first = || (1..conditions.len()).map(|other| (0, other)).collect();
    named.filter(|pairs| !pairs.is_empty()).unwrap_or_else(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_is_the_one_that_is_named() {
        let of = |load: &str, size: &str| {
            Factors::from([("load".to_owned(), load.to_owned()), ("size".to_owned(), size.to_owned())])
        };
        let all = [of("a", "1"), of("a", "2"), of("b", "1"), of("b", "2")];
        let conditions: Vec<&Factors> = all.iter().collect();
        let named = Factors::from([("load".to_owned(), "b".to_owned())]);
        assert_eq!(pairs(&conditions, Some(&named)), [(2, 0), (3, 1)]);
        let first = [(0, 1), (0, 2), (0, 3)];
        assert_eq!(pairs(&conditions, None), first);
        assert_eq!(pairs(&conditions, Some(&Factors::new())), first);
        let gone = Factors::from([("load".to_owned(), "c".to_owned())]);
        assert_eq!(pairs(&conditions, Some(&gone)), first);
    }
}
