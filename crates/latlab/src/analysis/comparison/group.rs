//! Which runs belong together, and which are compared with which.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::level;
use super::observed_run::{ExclusionReason, ObservedRun};
use crate::analysis::subject::Estimand;
use crate::diagnostics::{Explain, Failure};
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::human;

/// Runs that are one side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct RunGroup {
    /// Its name: the level, or the levels, of what is compared.
    pub name: String,
    /// What makes it, where factors do: factor → level.
    pub levels: BTreeMap<String, String>,
    /// Its runs, those that are not judged left out.
    pub runs: Vec<ObservedRun>,
}

/// All sides of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct RunGroups {
    /// What varied, for people: `load`, `load and size`; none where the groups were named.
    pub factor: Option<String>,
    /// The first is the baseline. One of which no run is judged stands here without runs.
    pub groups: Vec<RunGroup>,
    /// What was not judged: reason → how many.
    pub left_out: BTreeMap<ExclusionReason, usize>,
    /// Factors of an experiment that are not compared: runs are exchanged within one level of each.
    pub(super) strata: Vec<String>,
}

/// Why runs cannot be grouped.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GroupingError {
    /// No run has that factor.
    #[error("cannot group the runs by `{factor}`")]
    NoFactor {
        /// As typed.
        factor: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// No group has the name of the baseline.
    #[error("there is no group `{name}` to compare with")]
    NoBaseline {
        /// As typed.
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// Nothing varied, or nothing is left to be judged.
    #[error("cannot compare {} of runs", if *groups == 1 { "one group".to_owned() } else { format!("{groups} groups") })]
    TooFewGroups {
        /// How many there are.
        groups: usize,
        /// What is the matter.
        cause: String,
        /// What would help.
        hint: String,
    },
    /// What was measured differs between the runs.
    #[error("cannot compare runs of `{}` with runs of `{}`", .kinds.0.word(), .kinds.1.word())]
    Kinds {
        /// Of the first run, and another.
        kinds: (Kind, Kind),
        /// The first run of either.
        runs: (String, String),
    },
    /// Runs of this kind have no such metric.
    #[error("cannot compare `{}` of runs of `{}`", .metric.name(), .kind.word())]
    NoMetric {
        /// What was asked for.
        metric: Metric,
        /// What was measured.
        kind: Kind,
    },
}

impl Explain for GroupingError {
    fn explain(&self) -> Failure {
        let failure = Failure::request(self);
        let names = |known: &[String]| known.join(", ");
        match self {
            GroupingError::NoFactor { factor, known } => failure
                .because(format!("no run has it; what varied or was set is {}", names(known)))
                .hint(nearest_or(factor, known, "name one of these, or groups by `--group NAME=GLOB`")),
            GroupingError::NoBaseline { name, known } => failure
                .because(format!("the groups are {}", names(known)))
                .hint(nearest_or(name, known, "name one of these")),
            GroupingError::TooFewGroups { cause, hint, .. } => failure.because(cause).hint(hint),
            GroupingError::Kinds { kinds: (kind, other), runs: (run, other_run) } => failure
                .because(format!("`{run}` is one of {}, and `{other_run}` is one of {}", kind.word(), other.word()))
                .hint(format!("name those of one kind, such as `latlab-runs/*-{}-*`", kind.word())),
            GroupingError::NoMetric { kind, .. } => {
                let metrics = kind.metrics().iter().map(|metric| metric.name()).collect::<Vec<_>>().join(", ");
                failure
                    .because(format!("what they have is {metrics}"))
                    .hint("name one of these with `--metric`, or none")
            }
        }
    }
}

/// The hint to use the known word nearest to `typed`; `otherwise` if none is near.
fn nearest_or(typed: &str, known: &[String], otherwise: &str) -> String {
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    human::nearest(typed, &names).map_or_else(|| otherwise.into(), |name| format!("did you mean `{name}`?"))
}

impl RunGroup {
    /// The finite figures of its runs at `place`, in their order.
    pub fn values(&self, place: usize) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.figures.get(place)?.value()).collect()
    }
}

impl RunGroups {
    /// The groups as somebody named them, in that order.
    pub fn named(groups: Vec<(String, Vec<ObservedRun>)>) -> Result<RunGroups, GroupingError> {
        let made = groups.into_iter().map(|(name, runs)| RunGroup { name, levels: BTreeMap::new(), runs }).collect();
        RunGroups { factor: None, groups: made, left_out: BTreeMap::new(), strata: Vec::new() }.judged()
    }

    /// Groups named by the paths of their runs: runs of one path that all belong to experiments are grouped by condition.
    ///
    /// # Errors
    /// If no run is left to be judged.
    pub fn of_paths(mut groups: Vec<(String, Vec<ObservedRun>)>) -> Result<RunGroups, GroupingError> {
        let of_experiment = |runs: &[ObservedRun]| !runs.is_empty() && runs.iter().all(|run| run.factors.is_some());
        match groups.as_mut_slice() {
            [(_, runs)] if of_experiment(runs) => RunGroups::by_condition(std::mem::take(runs)),
            _ => RunGroups::of_globs(groups),
        }
    }

    /// Groups named by the last component of each name, if these differ.
    ///
    /// # Errors
    /// If no run is left to be judged.
    pub fn of_globs(groups: Vec<(String, Vec<ObservedRun>)>) -> Result<RunGroups, GroupingError> {
        fn last(name: &str) -> &str {
            let name = name.trim_end_matches('/');
            name.rsplit('/').next().unwrap_or(name)
        }
        let distinct = groups.iter().map(|(name, _)| last(name)).collect::<BTreeSet<_>>().len() == groups.len();
        let shorten = |name: String| if distinct { last(&name).to_owned() } else { name };
        RunGroups::named(groups.into_iter().map(|(name, runs)| (shorten(name), runs)).collect())
    }

    /// By the levels of one factor; those of an experiment's other factors are kept apart inside. Levels stand in the order
    /// of the experiment's conditions, others in their own: the order of the runs says nothing.
    pub fn by(factor: &str, mut runs: Vec<ObservedRun>) -> Result<RunGroups, GroupingError> {
        let factor = factor.trim();
        if !runs.iter().any(|run| run.levels.contains_key(factor)) {
            return Err(GroupingError::NoFactor { factor: factor.into(), known: known(&runs) });
        }
        let others: BTreeSet<String> =
            runs.iter().flat_map(|run| run.factors.iter().flatten()).map(|it| it.0.clone()).collect();
        let strata = others.into_iter().filter(|other| other != factor).collect();
        let level = |run: &ObservedRun| run.levels.get(factor).cloned().unwrap_or_else(|| "none".into());
        let mut conditions: BTreeMap<String, u32> = BTreeMap::new();
        for run in runs.iter().filter(|run| run.factors.as_ref().is_some_and(|factors| factors.contains_key(factor))) {
            let first = conditions.entry(level(run)).or_insert(run.condition);
            *first = run.condition.min(*first);
        }
        let condition = |level: &str| conditions.get(level).copied().unwrap_or(u32::MAX);
        runs.sort_by(|one, other| {
            let (one, other) = (level(one), level(other));
            condition(&one).cmp(&condition(&other)).then_with(|| level::order(&one, &other))
        });
        let key = |run: &ObservedRun| BTreeMap::from([(factor.to_owned(), level(run))]);
        RunGroups::collect(Some(factor.to_owned()), strata, runs, key)
    }

    /// With the group of this name as the baseline.
    ///
    /// # Errors
    /// Where no group has that name.
    pub fn with_baseline(mut self, name: &str) -> Result<RunGroups, GroupingError> {
        let Some(place) = self.groups.iter().position(|group| group.name == name) else {
            let known = self.groups.into_iter().map(|group| group.name).collect();
            return Err(GroupingError::NoBaseline { name: name.into(), known });
        };
        self.groups[..=place].rotate_right(1);
        Ok(self)
    }

    /// By every combination of an experiment's factors, in the order of its conditions.
    pub fn by_condition(mut runs: Vec<ObservedRun>) -> Result<RunGroups, GroupingError> {
        runs.sort_by_key(|run| run.condition);
        let factors: BTreeSet<&String> =
            runs.iter().flat_map(|run| run.factors.iter().flatten()).map(|it| it.0).collect();
        let title = factors.iter().map(|factor| factor.as_str()).collect::<Vec<_>>().join(" and ");
        let key = |run: &ObservedRun| run.factors.clone().unwrap_or_default();
        RunGroups::collect(Some(title).filter(|title| !title.is_empty()), Vec::new(), runs, key)
    }

    /// Groups of equal keys, in the order of their first runs.
    fn collect(
        factor: Option<String>,
        strata: Vec<String>,
        runs: Vec<ObservedRun>,
        key: impl Fn(&ObservedRun) -> BTreeMap<String, String>,
    ) -> Result<RunGroups, GroupingError> {
        let mut groups: Vec<RunGroup> = Vec::new();
        for run in runs {
            let levels = key(&run);
            match groups.iter_mut().find(|group| group.levels == levels) {
                Some(group) => group.runs.push(run),
                None => groups.push(RunGroup { name: name_of(&levels), levels, runs: vec![run] }),
            }
        }
        RunGroups { factor, groups, left_out: BTreeMap::new(), strata }.judged()
    }

    /// Without what is not judged; at least one group has runs.
    fn judged(mut self) -> Result<RunGroups, GroupingError> {
        for group in &mut self.groups {
            for reason in group.runs.iter().filter_map(|run| run.left_out) {
                *self.left_out.entry(reason).or_default() += 1;
            }
            group.runs.retain(|run| run.left_out.is_none());
        }
        let none = || too_few(0, "there is no run", "name recordings, an experiment's directory or files of numbers");
        match self.groups.iter().any(|group| !group.runs.is_empty()) {
            true => Ok(self),
            false if self.groups.is_empty() => Err(none()),
            false => Err(self.unjudged()),
        }
    }

    /// The refusal of groups of which none has runs: all were left out.
    fn unjudged(&self) -> GroupingError {
        let names: Vec<_> = self.without_runs().map(|name| format!("`{name}`")).collect();
        let reasons: Vec<&str> = self.left_out.keys().map(|reason| reason.word()).collect();
        let cause = format!("no run of {} can be judged: each {}", names.join(", "), reasons.join(" or "));
        too_few(0, cause, "measure it again; `latlab list` says how runs ended")
    }

    /// The names of groups of which no run is judged.
    pub(super) fn without_runs(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().filter(|group| group.runs.is_empty()).map(|group| group.name.as_str())
    }

    /// Refuses a single group: there is nothing to compare it with.
    pub(super) fn expect_several(&self) -> Result<(), GroupingError> {
        let [one] = self.groups.as_slice() else { return Ok(()) };
        let cause = match &self.factor {
            Some(factor) => format!("`{factor}` is `{}` in every run", one.name),
            None => "there is only one".into(),
        };
        Err(too_few(1, cause, "`--by FACTOR` groups runs by what varied, `--group NAME=GLOB` by name"))
    }

    /// Baseline and candidate of each comparison: the first group and every other one.
    pub fn against_first(&self) -> Vec<(usize, usize)> {
        (1..self.groups.len()).map(|candidate| (0, candidate)).collect()
    }

    /// Baseline and candidate of each comparison with the groups in which `baseline` holds: every other group has the
    /// one that differs from it in nothing else.
    ///
    /// # Errors
    /// Where no group is such a baseline.
    pub fn against(&self, baseline: &BTreeMap<String, String>) -> Result<Vec<(usize, usize)>, GroupingError> {
        let is_base = |group: &RunGroup| baseline.iter().all(|(factor, level)| group.levels.get(factor) == Some(level));
        let counterpart = |candidate: &RunGroup| {
            let wanted: BTreeMap<_, _> = candidate.levels.clone().into_iter().chain(baseline.clone()).collect();
            self.groups.iter().position(|group| group.levels == wanted)
        };
        let pairs: Vec<_> = (0..self.groups.len())
            .filter(|candidate| !is_base(&self.groups[*candidate]))
            .filter_map(|candidate| Some((counterpart(&self.groups[candidate])?, candidate)))
            .collect();
        match pairs.is_empty() {
            false => Ok(pairs),
            true => {
                let names: Vec<_> = self.groups.iter().map(|group| group.name.as_str()).collect();
                let cause = format!("none of the groups {} is the baseline `{}`", names.join(", "), name_of(baseline));
                Err(too_few(self.groups.len(), cause, "name a level of a factor that the experiment has"))
            }
        }
    }
}

/// Refuses runs of several kinds, and subjects that runs of their kind do not have: what stands in the same column of
/// their rows is not the same.
///
/// # Errors
/// With the first run of another kind, or the first such metric.
pub fn expect_one_kind(runs: &[ObservedRun], subjects: &[Estimand]) -> Result<(), GroupingError> {
    let Some((first, kind)) = runs.iter().find_map(|run| Some((run, run.kind?))) else { return Ok(()) };
    if let Some((other, its)) = runs.iter().find_map(|run| Some((run, run.kind.filter(|its| *its != kind)?))) {
        return Err(GroupingError::Kinds { kinds: (kind, its), runs: (first.name.clone(), other.name.clone()) });
    }
    let foreign = subjects.iter().find_map(|subject| match subject {
        Estimand::Statistic(metric, _) if !kind.metrics().contains(metric) => Some(*metric),
        _ => None,
    });
    foreign.map_or(Ok(()), |metric| Err(GroupingError::NoMetric { metric, kind }))
}

fn too_few(groups: usize, cause: impl Into<String>, hint: &str) -> GroupingError {
    GroupingError::TooFewGroups { groups, cause: cause.into(), hint: hint.into() }
}

/// One level alone, of several each with its factor.
pub(super) fn name_of(levels: &BTreeMap<String, String>) -> String {
    match levels.len() {
        1 => levels.values().cloned().collect(),
        _ => levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect::<Vec<_>>().join(", "),
    }
}

/// Factors that varied between the runs first, then the rest.
fn known(runs: &[ObservedRun]) -> Vec<String> {
    let mut seen: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    for (factor, level) in runs.iter().flat_map(|run| &run.levels) {
        seen.entry(factor).or_default().insert(level);
    }
    let mut factors: Vec<_> = seen.iter().map(|(factor, levels)| (levels.len() < 2, (*factor).clone())).collect();
    factors.sort();
    factors.into_iter().map(|(_, factor)| factor).collect()
}
