//! Groups of runs by factor, by condition or by name, and the pairs of groups that are compared.

use std::collections::{BTreeMap, BTreeSet};

use super::grouping_error::{GroupingError, NAME_GROUPS, RunsOfKind, no_run, too_few};
use super::observed_run::{ExclusionReason, ObservedRun};
use crate::available::AvailableFigures;
use crate::estimand::Estimand;
use crate::facts::ExcludedCondition;
use crate::metric::Metric;
use crate::plan::{Factors as Levels, Kind, RunSpec, conditions_in_words, distinct_names, level_order};
use crate::stats::Outline;
use crate::units::human;

/// Runs with the same levels, or of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct RunGroup {
    /// The level, or the levels, of the compared factors.
    pub name: String,
    /// What distinguishes it, if its name is only the id of a recording, or what a publication calls its condition.
    pub(super) label: Option<String>,
    /// Levels of the factors that it was grouped by; empty if it was named.
    pub levels: BTreeMap<String, String>,
    /// Its runs, without excluded ones.
    pub runs: Vec<ObservedRun>,
    /// If it is of numbers, whose runs are lines or means of lines.
    pub numbers: Option<NumberFacts>,
}

/// What the numbers of a group are apart from the observations that are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberFacts {
    pub lines: u64,
    pub files: u64,
    /// How many independent ones they are worth, fewer than there are only beyond chance; `None` if each file is one
    /// observation.
    pub effective_n: Option<f64>,
    /// Their extremes, mean and spread; `None` without any.
    pub outline: Option<Outline>,
}

impl NumberFacts {
    /// Lines, or files if each is one run.
    pub fn observations(&self) -> u64 {
        if self.effective_n.is_some() { self.lines } else { self.files }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct RunGroups {
    /// The compared factors: `load`, `load and size`; `None` if the groups were named.
    pub factor: Option<String>,
    /// The first is the baseline. A group may be empty if all its runs are excluded.
    pub groups: Vec<RunGroup>,
    /// Excluded runs: reason → count.
    pub excluded: BTreeMap<ExclusionReason, usize>,
    /// Factors of an experiment that are not compared: runs are permuted within one level of each.
    pub(super) strata: Vec<String>,
    /// Whether figures are compared without logarithms, even if all are positive.
    pub(super) is_linear: bool,
    /// Finished runs that belong to the groups, but are gone or damaged: names.
    pub missing: Vec<String>,
    /// Conditions of the experiment that cannot be measured here: no row is about a group of these.
    pub impossible: Vec<ExcludedCondition>,
    /// Whether the groups have the names of a publication.
    pub of_publication: bool,
    /// Whether that publication is shown beside the comparison.
    pub beside_publication: bool,
}

/// Baseline and candidate of a comparison, as indices of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupPair {
    pub(super) baseline: usize,
    pub(super) candidate: usize,
}

impl RunGroup {
    pub(super) fn named(name: String, runs: Vec<ObservedRun>) -> RunGroup {
        RunGroup { name, label: None, levels: BTreeMap::new(), runs, numbers: None }
    }

    /// Its name in text: what distinguishes its run from those of other groups, or its level with the unit.
    pub fn words(&self) -> String {
        let size = self.levels.get("size").filter(|_| self.levels.len() == 1);
        let size = size.and_then(|size| Some(human::bytes(size.parse().ok()?)));
        self.label.clone().or(size).unwrap_or_else(|| self.name.clone())
    }

    /// Whether it is a condition of several factors and is named by their levels.
    pub fn has_factors(&self) -> bool {
        self.levels.len() > 1 && self.label.is_none() && self.name == name_of(&self.levels)
    }

    /// The finite figures of its runs for the quantity at `index`, in their order.
    pub fn values(&self, index: usize) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.figures.get(index)?.value()).collect()
    }

    /// The same with infinite figures, each of which is the largest value.
    pub fn limits(&self, index: usize) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.figures.get(index)?.limit()).collect()
    }
}

impl RunGroups {
    /// Named groups, in the given order.
    pub fn named(groups: Vec<(String, Vec<ObservedRun>)>) -> Result<RunGroups, GroupingError> {
        RunGroups::of_groups(groups.into_iter().map(|(name, runs)| RunGroup::named(name, runs)).collect())
    }

    /// The same of `groups` that are made.
    pub(super) fn of_groups(groups: Vec<RunGroup>) -> Result<RunGroups, GroupingError> {
        RunGroups::unfiltered(None, groups).judged()
    }

    /// The groups as they are, with excluded runs.
    fn unfiltered(factor: Option<String>, groups: Vec<RunGroup>) -> RunGroups {
        RunGroups {
            factor,
            groups,
            excluded: BTreeMap::new(),
            strata: Vec::new(),
            is_linear: false,
            missing: Vec::new(),
            impossible: Vec::new(),
            of_publication: false,
            beside_publication: false,
        }
    }

    /// Names the groups as a publication does, which calls the conditions with these levels so.
    pub fn name_by<'a>(&mut self, label: impl Fn(&Levels) -> Option<&'a str>) {
        self.of_publication = true;
        for group in &mut self.groups {
            group.label = label(&group.levels).map(str::to_owned);
        }
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

    /// Groups by the levels of one factor; the levels of an experiment's other factors are strata. Levels are in the order
    /// of the experiment's conditions, others in natural order, since runs may be in random order. The tag of a free factor
    /// is that factor.
    pub fn by(factor: &str, mut runs: Vec<ObservedRun>) -> Result<RunGroups, GroupingError> {
        let factor = factor.trim();
        if runs.is_empty() {
            return Err(no_run());
        }
        if !runs.iter().any(|run| run.levels.contains_key(factor)) {
            return Err(GroupingError::NoFactor { factor: factor.into(), varying: varying(&runs) });
        }
        let (factor, tag) = match free_factor(factor, &runs) {
            Some(FreeFactor { name, tag }) => (name, Some(tag)),
            None => (factor.to_owned(), None),
        };
        let others: BTreeSet<String> =
            runs.iter().flat_map(|run| run.factors.iter().flatten()).map(|it| it.0.clone()).collect();
        let strata = others.into_iter().filter(|other| *other != factor).collect();
        let level = |run: &ObservedRun| {
            // A run outside of the experiment can have the tag only.
            let own = run.levels.get(&factor).or_else(|| run.levels.get(tag.as_ref()?));
            own.cloned().unwrap_or_else(|| "none".into())
        };
        let mut conditions: BTreeMap<String, u32> = BTreeMap::new();
        for run in runs.iter().filter(|run| run.factors.as_ref().is_some_and(|factors| factors.contains_key(&factor))) {
            let first = conditions.entry(level(run)).or_insert(run.condition);
            *first = run.condition.min(*first);
        }
        let condition = |level: &str| conditions.get(level).copied().unwrap_or(u32::MAX);
        runs.sort_by(|one, other| {
            let (one, other) = (level(one), level(other));
            condition(&one).cmp(&condition(&other)).then_with(|| level_order(&one, &other))
        });
        let key = |run: &ObservedRun| BTreeMap::from([(factor.clone(), level(run))]);
        RunGroups::collect(Some(factor.clone()), strata, runs, key)
    }

    /// The same groups with that of this name as the baseline.
    ///
    /// # Errors
    /// If no group has that name.
    pub fn with_baseline(mut self, name: &str) -> Result<RunGroups, GroupingError> {
        let Some(index) = self.groups.iter().position(|group| group.name == name || group.words() == name) else {
            let known = self.groups.into_iter().map(|group| group.name).collect();
            return Err(GroupingError::NoBaseline { name: name.into(), known });
        };
        self.groups[..=index].rotate_right(1);
        Ok(self)
    }

    /// The same groups in the order of an experiment's `conditions`, with an empty group for each condition or level that
    /// no run has: otherwise another one would become the baseline.
    pub fn with_conditions(mut self, conditions: &[Levels]) -> RunGroups {
        let factors: BTreeSet<String> = self.groups.iter().flat_map(|group| group.levels.keys().cloned()).collect();
        let own = |levels: &Levels| -> Levels {
            levels.clone().into_iter().filter(|(factor, _)| factors.contains(factor)).collect()
        };
        let due: Vec<Levels> =
            conditions.iter().map(own).filter(|levels| !levels.is_empty() && levels.len() == factors.len()).collect();
        for levels in &due {
            if !self.groups.iter().any(|group| group.levels == *levels) {
                self.groups.push(RunGroup { levels: levels.clone(), ..RunGroup::named(name_of(levels), Vec::new()) });
            }
        }
        let place = |group: &RunGroup| due.iter().position(|levels| *levels == group.levels).unwrap_or(due.len());
        self.groups.sort_by_key(place);
        self
    }

    /// Groups by every combination of an experiment's factors, in the order of its conditions.
    pub fn by_condition(mut runs: Vec<ObservedRun>) -> Result<RunGroups, GroupingError> {
        runs.sort_by_key(|run| run.condition);
        let title = title_of(runs.iter().flat_map(|run| run.factors.iter().flatten()).map(|it| it.0));
        let key = |run: &ObservedRun| run.factors.clone().unwrap_or_default();
        RunGroups::collect(title, Vec::new(), runs, key)
    }

    /// A group for each of `conditions`, in that order, and for each that only a run has. A condition without a run keeps
    /// its empty group, so that no other one becomes the baseline.
    pub fn of_conditions(conditions: &[Levels], runs: Vec<ObservedRun>) -> RunGroups {
        let group =
            |levels: &Levels| RunGroup { levels: levels.clone(), ..RunGroup::named(name_of(levels), Vec::new()) };
        let mut groups: Vec<RunGroup> = conditions.iter().map(group).collect();
        let mut excluded = BTreeMap::new();
        for run in runs {
            if let Some(reason) = run.excluded {
                *excluded.entry(reason).or_default() += 1;
                continue;
            }
            let levels = run.factors.clone().unwrap_or_default();
            let index = groups.iter().position(|group| group.levels == levels).unwrap_or_else(|| {
                groups.push(group(&levels));
                groups.len() - 1
            });
            groups[index].runs.push(run);
        }
        let factor = title_of(groups.iter().flat_map(|group| group.levels.keys()));
        RunGroups { excluded, ..RunGroups::unfiltered(factor, groups) }
    }

    /// Groups of equal keys, in the order of their first runs.
    fn collect(
        factor: Option<String>,
        strata: Vec<String>,
        runs: Vec<ObservedRun>,
        key: impl Fn(&ObservedRun) -> Levels,
    ) -> Result<RunGroups, GroupingError> {
        let mut groups: Vec<RunGroup> = Vec::new();
        let mut known: BTreeMap<Levels, usize> = BTreeMap::new();
        for run in runs {
            let levels = key(&run);
            let index = *known.entry(levels.clone()).or_insert(groups.len());
            if index == groups.len() {
                groups.push(RunGroup { levels: levels.clone(), ..RunGroup::named(name_of(&levels), Vec::new()) });
            }
            groups[index].runs.push(run);
        }
        RunGroups { strata, ..RunGroups::unfiltered(factor, groups) }.judged()
    }

    /// The groups without excluded runs.
    ///
    /// # Errors
    /// If no run remains.
    fn judged(mut self) -> Result<RunGroups, GroupingError> {
        for group in &mut self.groups {
            for reason in group.runs.iter().filter_map(|run| run.excluded) {
                *self.excluded.entry(reason).or_default() += 1;
            }
            group.runs.retain(|run| run.excluded.is_none());
        }
        match self.groups.iter().any(|group| !group.runs.is_empty()) {
            true => Ok(self),
            false if self.groups.is_empty() => Err(no_run()),
            false => Err(self.all_excluded()),
        }
    }

    /// The error of groups whose runs are all excluded.
    fn all_excluded(&self) -> GroupingError {
        let names: Vec<_> = self.words_without_runs().into_iter().map(|name| format!("`{name}`")).collect();
        let reasons: Vec<&str> = self.excluded.keys().map(|reason| reason.word()).collect();
        let cause = if reasons.is_empty() {
            format!("{} has no run", names.join(", "))
        } else {
            format!("no run of {} can be judged: each {}", names.join(", "), reasons.join(" or "))
        };
        too_few(0, cause, "measure it again; `latlab list` says how runs ended")
    }

    /// Groups that lack runs, although their conditions can be measured here.
    fn without_runs(&self) -> Vec<&RunGroup> {
        self.groups.iter().filter(|group| group.runs.is_empty() && !self.is_impossible(group)).collect()
    }

    /// The groups that lack runs, although their conditions can be measured here, in few words.
    pub fn words_without_runs(&self) -> Vec<String> {
        self.in_words(&self.without_runs())
    }

    /// The names of the groups `chosen` in few words: of conditions only what distinguishes them from the other groups.
    pub(super) fn in_words(&self, chosen: &[&RunGroup]) -> Vec<String> {
        if chosen.iter().all(|group| group.has_factors()) {
            let levels: Vec<&Levels> = chosen.iter().map(|group| &group.levels).collect();
            return conditions_in_words(&levels, &self.groups.iter().map(|group| &group.levels).collect::<Vec<_>>());
        }
        chosen.iter().map(|group| group.words()).collect()
    }

    /// The same groups, which have the ids of recordings as names, with labels that say what differs between their runs.
    #[must_use]
    pub fn labelled(mut self) -> RunGroups {
        let spec = |group: &RunGroup| match group.runs.as_slice() {
            [run] => run.spec.clone(),
            _ => None,
        };
        let specs: Option<Vec<RunSpec>> = self.groups.iter().map(spec).collect();
        let Some(specs) = specs else { return self };
        let names: Vec<String> = self.groups.iter().map(|group| group.name.clone()).collect();
        let labels = distinct_names(RunSpec::labels(&specs.iter().collect::<Vec<_>>()), &names);
        self.groups.iter_mut().zip(labels).for_each(|(group, label)| group.label = Some(label));
        self
    }

    /// Whether `group` has no run since its conditions cannot be measured here.
    fn is_impossible(&self, group: &RunGroup) -> bool {
        let is_its = |condition: &ExcludedCondition| has_levels(&condition.factors, &group.levels);
        group.runs.is_empty() && !group.levels.is_empty() && self.impossible.iter().any(is_its)
    }

    /// Those of `pairs` that can be measured here.
    pub(super) fn possible(&self, pairs: Vec<GroupPair>) -> Vec<GroupPair> {
        let is_possible = |pair: &GroupPair| !self.pair(*pair).into_iter().any(|group| self.is_impossible(group));
        pairs.into_iter().filter(is_possible).collect()
    }

    /// The conditions of the experiment that can be measured here, as far as they have a run or a group.
    pub(super) fn possible_conditions(&self) -> Vec<&Levels> {
        let of_runs = self.groups.iter().flat_map(|group| &group.runs).filter_map(|run| run.factors.as_ref());
        let of_groups = self.without_runs().into_iter().map(|group| &group.levels);
        of_runs.chain(of_groups).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Fails if there is a single group.
    pub(super) fn expect_several(&self) -> Result<(), GroupingError> {
        let [one] = self.groups.as_slice() else { return Ok(()) };
        let cause = match &self.factor {
            Some(factor) => format!("`{factor}` is `{}` in every run", one.words()),
            None => "there is only one".into(),
        };
        let by: Vec<String> = varying(&one.runs).iter().map(|factor| format!("`--by {factor}`")).collect();
        let hint = format!("group the runs by what varies: {}", human::few(&by));
        let error = too_few(1, cause, if by.is_empty() { NAME_GROUPS } else { hint.as_str() });
        Err(error.beside_missing(&self.missing))
    }

    /// The groups of `pair`: baseline, candidate.
    pub(super) fn pair(&self, pair: GroupPair) -> [&RunGroup; 2] {
        [&self.groups[pair.baseline], &self.groups[pair.candidate]]
    }

    /// Every group but the first, with the first as its baseline.
    pub(super) fn against_first(&self) -> Vec<GroupPair> {
        (1..self.groups.len()).map(|candidate| GroupPair { baseline: 0, candidate }).collect()
    }

    /// Every group without the levels `baseline`, with the group as its baseline that has these levels and otherwise
    /// the same ones.
    ///
    /// # Errors
    /// If no group is such a baseline.
    pub(super) fn against(&self, baseline: &Levels) -> Result<Vec<GroupPair>, GroupingError> {
        let is_base = |group: &RunGroup| has_levels(&group.levels, baseline);
        let counterpart = |candidate: &RunGroup| {
            let wanted: Levels = candidate.levels.clone().into_iter().chain(baseline.clone()).collect();
            self.groups.iter().position(|group| group.levels == wanted)
        };
        let pairs: Vec<_> = (0..self.groups.len())
            .filter(|candidate| !is_base(&self.groups[*candidate]))
            .filter_map(|candidate| Some(GroupPair { baseline: counterpart(&self.groups[candidate])?, candidate }))
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

/// Checks that all runs are of one kind, and that it has the metrics of `estimands`.
///
/// # Errors
/// With the kinds and their counts, or the first other metric.
pub fn expect_one_kind(runs: &[ObservedRun], estimands: &[Estimand]) -> Result<(), GroupingError> {
    let mut kinds: Vec<Kind> = Vec::new();
    for kind in runs.iter().filter_map(|run| run.kind) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let Some(&kind) = kinds.first() else { return Ok(()) };
    if kinds.len() > 1 {
        let of_kind = |kind: Kind| {
            let own: Vec<ObservedRun> = runs.iter().filter(|run| run.kind == Some(kind)).cloned().collect();
            RunsOfKind { kind, runs: own.len(), varying: varying(&own) }
        };
        return Err(GroupingError::Kinds { kinds: kinds.into_iter().map(of_kind).collect() });
    }
    let known = metrics_of(runs, kind);
    // A log has values of one metric.
    let lack = |metric: &Metric| match kind {
        Kind::Values => known != [*metric],
        _ => !known.contains(metric),
    };
    let mut metrics = estimands.iter().filter_map(|estimand| match estimand {
        Estimand::Statistic(metric, _) => Some(*metric),
        Estimand::Ratio(_) => None,
    });
    metrics.find(lack).map_or(Ok(()), |metric| Err(GroupingError::NoMetric { metric, kind, known }))
}

/// The metrics of runs of `kind`, each once; of values, the main ones. A log has only what it can have; an experiment may
/// compare what its conditions lack.
fn metrics_of(runs: &[ObservedRun], kind: Kind) -> Vec<Metric> {
    let of_run = |figures: &AvailableFigures| match kind {
        Kind::Values => vec![figures.main()],
        _ if figures.is_imported() || kind == Kind::Command => figures.metrics().collect(),
        _ => kind.metrics().to_vec(),
    };
    let mut known = Vec::new();
    for metric in runs.iter().filter_map(|run| run.available.as_ref()).flat_map(of_run) {
        if !known.contains(&metric) {
            known.push(metric);
        }
    }
    if known.is_empty() { kind.metrics().to_vec() } else { known }
}

/// The level of one factor; of several, each with its factor.
fn name_of(levels: &Levels) -> String {
    match levels.len() {
        1 => levels.values().cloned().collect(),
        _ => levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect::<Vec<_>>().join(", "),
    }
}

/// Whether `levels` are among those of `condition`.
fn has_levels(condition: &Levels, levels: &Levels) -> bool {
    levels.iter().all(|(factor, level)| condition.get(factor) == Some(level))
}

/// The factors, `load and size`; `None` without any.
fn title_of<'a>(factors: impl Iterator<Item = &'a String>) -> Option<String> {
    let factors: BTreeSet<&str> = factors.map(String::as_str).collect();
    Some(factors.into_iter().collect::<Vec<_>>().join(" and ")).filter(|title| !title.is_empty())
}

/// A factor of an experiment whose level is a tag of each of its runs.
struct FreeFactor {
    name: String,
    /// The name of its tag among the levels: `tag:build`.
    tag: String,
}

/// The free factor of the experiment of `runs` that is `typed` by its name or by its tag. A tag that differs from a factor of
/// its name in any run is another one.
fn free_factor(typed: &str, runs: &[ObservedRun]) -> Option<FreeFactor> {
    let name = typed.strip_prefix("tag:").unwrap_or(typed).to_owned();
    let tag = format!("tag:{name}");
    let level_of = |run: &ObservedRun| run.factors.as_ref()?.get(&name).cloned();
    let mut own = runs.iter().filter(|run| level_of(run).is_some()).peekable();
    let is_free = own.peek().is_some() && own.all(|run| run.levels.get(&tag).cloned() == level_of(run));
    is_free.then_some(FreeFactor { name, tag })
}

/// The factors in which `runs` differ.
fn varying(runs: &[ObservedRun]) -> Vec<String> {
    let factors: BTreeSet<&String> = runs.iter().flat_map(|run| run.levels.keys()).collect();
    let differs =
        |factor: &&String| runs.windows(2).any(|pair| pair[0].levels.get(*factor) != pair[1].levels.get(*factor));
    factors.into_iter().filter(differs).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_memory::probes_of;
    use crate::plan::{PingSpec, RunSpec, Schedule, Work};

    fn ping() -> Work {
        Work::Ping(PingSpec::on(Schedule::Closed))
    }

    #[test]
    fn a_condition_without_a_run_keeps_its_group() {
        let levels = |load: &str| Levels::from([("load".to_owned(), load.to_owned())]);
        let run = |load: &str, excluded| {
            let factors = Some(levels(load));
            ObservedRun { factors, excluded, ..ObservedRun::bare("r".into(), 1.0) }
        };
        let runs = vec![run("b", None), run("c", None), run("a", Some(ExclusionReason::Failed)), run("b", None)];
        let groups = RunGroups::of_conditions(&[levels("a"), levels("b")], runs);
        let sizes: Vec<_> = groups.groups.iter().map(|group| (group.name.as_str(), group.runs.len())).collect();
        assert_eq!(sizes, [("a", 0), ("b", 2), ("c", 1)]);
        assert_eq!((groups.factor.as_deref(), groups.excluded[&ExclusionReason::Failed]), (Some("load"), 1));
        assert_eq!(groups.against_first().len(), 2);
    }

    #[test]
    fn groups_with_the_ids_of_recordings_are_labelled_by_what_differs() {
        let group = |id: &str, size: u32| {
            let mut spec = RunSpec::here(ping());
            probes_of(&mut spec).size_bytes = size;
            let run = ObservedRun { spec: Some(spec), ..ObservedRun::bare("r".into(), 1.0) };
            (format!("20261121T021500Z-ping-{id}"), vec![run])
        };
        let words = |groups: Vec<(String, Vec<ObservedRun>)>| -> Vec<String> {
            let groups = RunGroups::named(groups).expect("runs").labelled();
            assert!(groups.groups.iter().all(|group| group.name.starts_with("2026")), "JSON keeps the names");
            groups.groups.iter().map(RunGroup::words).collect()
        };
        assert_eq!(words(vec![group("7f3a", 64), group("81aa", 1024)]), ["64 B", "1,024 B"]);
        let repeated = vec![group("7f3a", 64), group("81aa", 64), group("0d2e", 1024)];
        assert_eq!(words(repeated), ["64 B · 7f3a", "64 B · 81aa", "1,024 B"]);
        let [(name, mut runs), (_, other)] = [group("7f3a", 64), group("81aa", 1024)];
        runs.extend(other);
        assert_eq!(words(vec![(name.clone(), runs)]), [name], "several runs have no common label");
    }

    #[test]
    fn a_condition_that_never_ran_stays_the_baseline() {
        let levels = |load: &str, size: &str| {
            Levels::from([("load", load), ("size", size)].map(|(factor, level)| (factor.to_owned(), level.to_owned())))
        };
        let conditions = [levels("a", "1"), levels("a", "2"), levels("b", "1"), levels("b", "2")];
        let run = |load: &str| {
            let factors = levels(load, "2");
            ObservedRun { levels: factors.clone(), factors: Some(factors), ..ObservedRun::bare("r".into(), 1.0) }
        };
        let sizes = |groups: RunGroups| -> Vec<(String, usize)> {
            groups.groups.into_iter().map(|group| (group.name, group.runs.len())).collect()
        };
        let all = RunGroups::by_condition(vec![run("b"), run("b")]).expect("runs").with_conditions(&conditions);
        let names = ["load=a, size=1", "load=a, size=2", "load=b, size=1", "load=b, size=2"];
        assert_eq!(sizes(all), names.map(|name| (name.to_owned(), 2 * usize::from(name == names[3]))));
        let by = RunGroups::by("load", vec![run("b"), run("c")]).expect("runs").with_conditions(&conditions);
        assert_eq!(sizes(by), [("a".to_owned(), 0), ("b".to_owned(), 1), ("c".to_owned(), 1)]);
        let named = RunGroups::named(vec![("x".into(), vec![run("b")])]).expect("a run").with_conditions(&conditions);
        assert_eq!(sizes(named), [("x".to_owned(), 1)]);
    }
}
