//! The contrasts of an experiment: which of its conditions are compared, and whether the intervals of their differences
//! are narrow enough to stop (decision 0012).

use std::collections::BTreeSet;

use crate::Estimand;
use crate::comparison::{
    ComparisonOptions, ComparisonRequest, Comparisons, EstimandError, GroupingError, Look, ObservedRun, RunFigure,
    RunGroup, RunGroups, compare, is_precise, parse_estimand,
};
use crate::facts::ExcludedCondition;
use crate::plan::{Contrast, Experiment, Factors, RunsRule, defaults};

/// Adds `contrasts` to `request`. `margin` is the margin of equivalence of those that state none.
///
/// # Errors
/// If a contrast names an unknown statistic.
pub fn add_contrasts(
    request: &mut ComparisonRequest,
    contrasts: &[Contrast],
    margin: Option<f64>,
) -> Result<(), EstimandError> {
    for Contrast { metric, statistic, baseline, equivalence } in contrasts {
        // A ratio is of the whole run.
        let metric = (!statistic.ends_with("_ratio")).then(|| metric.name());
        let baseline = Some(baseline.clone()).filter(|baseline| !baseline.is_empty());
        request.ask(parse_estimand(metric, statistic)?, baseline, equivalence.or(margin));
    }
    Ok(())
}

/// The statistic of the stop rule and those of the contrasts, each once.
pub fn reported_estimands(experiment: &Experiment) -> Result<Vec<Estimand>, EstimandError> {
    let mut request = ComparisonRequest::default();
    if let RunsRule::Until { statistic, .. } = &experiment.design.runs {
        request.ask(rule_estimand(experiment, statistic)?, None, None);
    }
    add_contrasts(&mut request, &experiment.contrasts, None)?;
    Ok(request.estimands())
}

/// The stop rule is about the metric of the first contrast.
fn rule_estimand(experiment: &Experiment, statistic: &str) -> Result<Estimand, EstimandError> {
    let metric = experiment.contrasts.first().map_or(experiment.kind.metric(), |contrast| contrast.metric);
    parse_estimand(Some(metric.name()), statistic)
}

#[derive(Debug)]
pub struct ExperimentComparison {
    conditions: Vec<Factors>,
    /// Conditions that were dropped or impossible from the start.
    excluded: Vec<ExcludedCondition>,
    request: ComparisonRequest,
}

impl ExperimentComparison {
    /// The contrasts of `experiment` that can be answered by runs of the conditions `measured`. A condition that was
    /// `dropped`, or was `impossible` from the start, takes part only if a contrast names it as its baseline: the others
    /// have no row then, instead of being compared with another baseline.
    pub fn of(
        experiment: &Experiment,
        dropped: &[ExcludedCondition],
        impossible: &[ExcludedCondition],
        measured: &[&Factors],
    ) -> Result<ExperimentComparison, EstimandError> {
        let contrasts = &experiment.contrasts;
        let all: Vec<Factors> = experiment.conditions.iter().map(|condition| condition.factors.clone()).collect();
        let is_dropped = |factors: &Factors| dropped.iter().any(|dropped| dropped.factors == *factors);
        let excluded = [dropped, impossible].concat();
        let impossible: Vec<Factors> = impossible.iter().map(|row| row.factors.clone()).collect();
        let conditions = compared_conditions(&all, &impossible, contrasts, is_dropped);
        let answerable: Vec<Contrast> =
            contrasts.iter().filter(|contrast| has_pair(&contrast.baseline, &conditions, measured)).cloned().collect();
        let mut request = ComparisonRequest::default();
        add_contrasts(&mut request, &answerable, None)?;
        Ok(ExperimentComparison { conditions, excluded, request })
    }

    /// Adds the differences along the distribution of the metric of the first contrast.
    pub fn add_shift(&mut self, experiment: &Experiment) {
        self.request.shift(experiment.contrasts.first().map_or(experiment.kind.metric(), |contrast| contrast.metric));
    }

    /// Adds a row of `estimand`, unless there is one.
    pub fn include(&mut self, estimand: Estimand) {
        self.request.include(estimand);
    }

    /// The figures that each run must have.
    pub fn estimands(&self) -> Vec<Estimand> {
        self.request.estimands()
    }

    /// Compares `runs` at a look; `name` may rename their groups.
    pub fn compare(
        &self,
        runs: Vec<ObservedRun>,
        look: Look,
        name: impl FnOnce(&mut RunGroups),
    ) -> Result<Comparisons, GroupingError> {
        let mut groups = RunGroups::of_conditions(&self.conditions, runs);
        groups.impossible.clone_from(&self.excluded);
        name(&mut groups);
        compare(groups, &self.request, &ComparisonOptions::at(defaults::CONFIDENCE).paying_for(look))
    }
}

/// Those of the `possible` and `impossible` conditions of an experiment that take part in its comparison. One that was
/// dropped, or is impossible, does only if it is a named baseline. Without a named one the first of the others is the
/// baseline.
pub fn compared_conditions(
    possible: &[Factors],
    impossible: &[Factors],
    contrasts: &[Contrast],
    is_dropped: impl Fn(&Factors) -> bool,
) -> Vec<Factors> {
    let takes_part = |factors: &&Factors| !is_dropped(factors) || is_named(factors, contrasts);
    let impossible = impossible.iter().filter(|factors| is_named(factors, contrasts));
    possible.iter().filter(takes_part).chain(impossible).cloned().collect()
}

/// Whether a contrast names the condition as its baseline.
fn is_named(factors: &Factors, contrasts: &[Contrast]) -> bool {
    contrasts.iter().any(|contrast| !contrast.baseline.is_empty() && has_levels(factors, &contrast.baseline))
}

fn has_levels(factors: &Factors, levels: &Factors) -> bool {
    levels.iter().all(|(factor, level)| factors.get(factor) == Some(level))
}

/// The condition that differs from `factors` in the levels of `baseline` only.
fn counterpart(factors: &Factors, baseline: &Factors) -> Factors {
    factors.clone().into_iter().chain(baseline.clone()).collect()
}

/// Whether a condition was measured whose counterpart in `baseline` is among the conditions or was measured.
fn has_pair(baseline: &Factors, conditions: &[Factors], measured: &[&Factors]) -> bool {
    let has_counterpart = |factors: &Factors| {
        let counterpart = counterpart(factors, baseline);
        conditions.contains(&counterpart) || measured.contains(&&counterpart)
    };
    baseline.is_empty() || measured.iter().any(|factors| !has_levels(factors, baseline) && has_counterpart(factors))
}

/// Whether intervals are narrow enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecisionResult {
    Narrow,
    Wide,
    /// The statistic is infinite in a run: no further run makes its interval narrow.
    Infinite,
}

/// The stop rule `until STATISTIC ±WIDTH`. It judges the width of intervals, never a difference (decision 0012).
#[derive(Debug)]
pub struct PrecisionRule<'a> {
    /// The statistic of each run.
    pub estimand: Estimand,
    half_width: f64,
    /// Those that are not dropped, in the order of the file.
    conditions: Vec<&'a Factors>,
    baseline: Option<&'a Factors>,
    seed: u64,
}

impl<'a> PrecisionRule<'a> {
    /// The rule of `experiment`; `None` if its number of runs is fixed.
    pub fn of(
        experiment: &'a Experiment,
        is_dropped: impl Fn(&Factors) -> bool,
    ) -> Result<Option<PrecisionRule<'a>>, EstimandError> {
        let RunsRule::Until { statistic, half_width, .. } = &experiment.design.runs else { return Ok(None) };
        let conditions = experiment.conditions.iter().map(|condition| &condition.factors);
        Ok(Some(PrecisionRule {
            estimand: rule_estimand(experiment, statistic)?,
            half_width: *half_width,
            conditions: conditions.filter(|factors| !is_dropped(factors)).collect(),
            baseline: experiment.contrasts.first().map(|contrast| &contrast.baseline),
            seed: experiment.design.seed.unwrap_or(defaults::EXPERIMENT_SEED),
        }))
    }

    /// Whether runs of the condition `factors` count.
    pub fn covers(&self, factors: &Factors) -> bool {
        self.conditions.contains(&factors)
    }

    /// Whether the 95 % interval of each difference from the baseline of the first contrast, or of the mean of a single
    /// condition, is as narrow as the rule demands. A condition without a run is not precise.
    pub fn check(&self, runs: Vec<ObservedRun>) -> PrecisionResult {
        if runs.iter().any(|run| run.figures.first() == Some(&RunFigure::Infinite)) {
            return PrecisionResult::Infinite;
        }
        let Ok(RunGroups { mut groups, .. }) = RunGroups::by_condition(runs) else { return PrecisionResult::Wide };
        // A changed file may have given its conditions other numbers.
        groups.sort_by_key(|group| self.conditions.iter().position(|factors| **factors == group.levels));
        let options = ComparisonOptions { seed: self.seed, ..ComparisonOptions::at(defaults::CONFIDENCE) };
        let is_narrow = |groups: &Vec<RunGroup>| is_precise(groups, 0, self.half_width, &options);
        if groups.len() == self.conditions.len() && self.intervals(groups).iter().all(is_narrow) {
            PrecisionResult::Narrow
        } else {
            PrecisionResult::Wide
        }
    }

    /// The groups of each interval: baseline and candidate of each comparison, or the only group.
    fn intervals(&self, groups: Vec<RunGroup>) -> Vec<Vec<RunGroup>> {
        if groups.len() == 1 {
            return vec![groups];
        }
        let both = |pair: Pair| vec![groups[pair.baseline].clone(), groups[pair.candidate].clone()];
        pairs(&self.conditions, self.baseline).into_iter().map(both).collect()
    }
}

/// Indices of two conditions that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    baseline: usize,
    candidate: usize,
}

/// Each condition with its counterpart in `baseline`. If no baseline is named, or none has a counterpart, the others
/// are compared with the first.
fn pairs(conditions: &[&Factors], baseline: Option<&Factors>) -> Vec<Pair> {
    let named = baseline.filter(|baseline| !baseline.is_empty()).map(|baseline| {
        let pair = |(candidate, factors): (usize, &&Factors)| {
            let wanted = counterpart(factors, baseline);
            let baseline = conditions.iter().position(|factors| **factors == wanted)?;
            (baseline != candidate).then_some(Pair { baseline, candidate })
        };
        conditions.iter().enumerate().filter_map(pair).collect::<Vec<_>>()
    });
    let with_first = || (1..conditions.len()).map(|candidate| Pair { baseline: 0, candidate }).collect();
    named.filter(|pairs| !pairs.is_empty()).unwrap_or_else(with_first)
}

fn factors_of(experiment: &Experiment) -> Vec<&Factors> {
    experiment.conditions.iter().map(|condition| &condition.factors).collect()
}

/// The number of comparisons of conditions that the report of `experiment` has if each of its conditions is measured.
pub fn comparisons_asked(experiment: &Experiment) -> usize {
    let conditions = factors_of(experiment);
    let answerable = experiment.contrasts.iter().filter(|contrast| has_pair(&contrast.baseline, &[], &conditions));
    answerable.map(|contrast| pairs(&conditions, Some(&contrast.baseline)).len()).sum()
}

/// A named baseline with which nothing is compared, since conditions are not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostBaseline<'a> {
    pub levels: &'a Factors,
    /// Whether it is measured, and the conditions that differ from it are not.
    pub is_measured: bool,
}

impl LostBaseline<'_> {
    /// Whether the comparisons lack the condition `factors`.
    pub fn lacks(&self, factors: &Factors) -> bool {
        has_levels(factors, self.levels) != self.is_measured
    }
}

/// The baselines that contrasts of `experiment` name, each once, with which nothing is compared if only the conditions of
/// `measured` are.
pub fn lost_baselines<'a>(experiment: &'a Experiment, measured: &Experiment) -> Vec<LostBaseline<'a>> {
    let (all, left) = (factors_of(experiment), factors_of(measured));
    let is_lost = |levels: &&Factors| has_pair(levels, &[], &all) && !has_pair(levels, &[], &left);
    let named = experiment.contrasts.iter().map(|contrast| &contrast.baseline);
    let lost: BTreeSet<&'a Factors> = named.filter(is_lost).collect();
    let is_measured = |levels: &Factors| left.iter().any(|factors| has_levels(factors, levels));
    lost.into_iter().map(|levels| LostBaseline { levels, is_measured: is_measured(levels) }).collect()
}

/// A design whose runs cannot decide any of its comparisons, whatever they show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// Runs of each condition in all blocks.
    pub runs: u32,
    /// Comparisons of conditions that its file asks for.
    pub comparisons: usize,
    /// Runs of each condition in all blocks with which one could be decided; `None` above 1,000 in a block.
    pub runs_needed: Option<u32>,
}

/// More runs of a condition are not suggested.
const RUNS_MAX: u32 = 1_000;

/// Whether `experiment` is a [`Rehearsal`]; `None` if it can decide something, if it compares nothing, and if its number of
/// runs depends on precision.
pub fn rehearsal(experiment: &Experiment) -> Option<Rehearsal> {
    let RunsRule::PerBlock(runs) = experiment.design.runs else { return None };
    let comparisons = comparisons_asked(experiment);
    let level = Look { declared: experiment.design.looks, ..Look::FIRST }.level(1.0 - defaults::CONFIDENCE);
    // Equivalence is a question of one tail.
    let tails = if experiment.contrasts.iter().any(|contrast| contrast.equivalence.is_some()) { 1.0 } else { 2.0 };
    let decides = |runs: &u32| comparisons as f64 * tails * least_p(*runs, experiment.design.blocks) <= level;
    let in_all_blocks = |runs: u32| runs.saturating_mul(experiment.design.blocks);
    (comparisons > 0 && !decides(&runs)).then(|| Rehearsal {
        runs: in_all_blocks(runs),
        comparisons,
        runs_needed: (runs..=RUNS_MAX).find(decides).map(in_all_blocks),
    })
}

/// The smallest one-sided p value of the exchange of so many runs of each condition in each of so many blocks.
pub(super) fn least_p(runs: u32, blocks: u32) -> f64 {
    let exchanges: f64 = (1..=runs).map(|run| f64::from(runs + run) / f64::from(run)).product();
    1.0 / exchanges.powi(blocks as i32)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::plan::{BetweenBlocks, Design, ExperimentCondition, Hooks, Kind, Plan, RunOrder, RunSpec, Work};
    use crate::units::Nanos;

    #[test]
    fn a_design_that_cannot_decide_anything_is_a_rehearsal() {
        let of = |levels: &[&str], runs: u32, blocks: u32| {
            let mut experiment = experiment(levels, RunsRule::PerBlock(runs));
            experiment.design.blocks = blocks;
            rehearsal(&experiment)
        };
        // Four against four have 70 exchanges: 2/70 is significant in one row, not in two. Five have 252.
        assert_eq!(of(&["a", "b"], 4, 1), None);
        assert_eq!(of(&["a", "b", "c"], 4, 1), Some(Rehearsal { runs: 4, comparisons: 2, runs_needed: Some(5) }));
        assert_eq!((of(&["a", "b", "c"], 4, 2), of(&["a", "b"], 1, 6)), (None, None));
        assert_eq!(of(&["a", "b"], 1, 5), Some(Rehearsal { runs: 5, comparisons: 1, runs_needed: Some(10) }));
        assert_eq!(of(&["a"], 1, 1), None, "nothing is compared");
    }

    #[test]
    fn a_named_baseline_is_lost_if_it_or_all_others_are_not_measured() {
        let mut all = experiment(&["a", "b", "c"], RunsRule::PerBlock(2));
        let lost = |all: &Experiment, left: &[&str]| {
            let measured = Experiment { contrasts: all.contrasts.clone(), ..experiment(left, RunsRule::PerBlock(2)) };
            let lost = lost_baselines(all, &measured).into_iter();
            let words = lost.map(|lost| (lost.levels["load"].clone(), lost.is_measured, lost.lacks(&load("a"))));
            (words.collect::<Vec<_>>(), comparisons_asked(&measured), rehearsal(&measured).map(|it| it.comparisons))
        };
        assert_eq!(lost(&all, &["b", "c"]), (Vec::new(), 1, Some(1)), "none is named");
        all.contrasts = vec![contrast(Some("a")), contrast(Some("a"))];
        assert_eq!(lost(&all, &["a", "b"]), (Vec::new(), 2, Some(2)));
        assert_eq!(lost(&all, &["b", "c"]), (vec![("a".to_owned(), false, true)], 0, None));
        assert_eq!(lost(&all, &["a"]), (vec![("a".to_owned(), true, false)], 0, None));
        all.contrasts.push(contrast(Some("b")));
        assert_eq!(lost(&all, &["b", "c"]), (vec![("a".to_owned(), false, true)], 1, Some(1)));
    }

    /// An experiment whose one factor, `load`, has these levels.
    pub(in crate::experiment) fn experiment(levels: &[&str], runs: RunsRule) -> Experiment {
        let plan = Plan { runs: vec![RunSpec::here(Work::Wakeup(wakeup()))], rounds: 1 };
        let condition =
            |level: &&str| ExperimentCondition { factors: load(level), plan: plan.clone(), hooks: Hooks::default() };
        let design = Design {
            runs,
            warmup_runs: 0,
            looks: None,
            blocks: 1,
            between: BetweenBlocks::Nothing,
            order: RunOrder::Randomized,
            seed: Some(7),
            settle: Nanos::ZERO,
        };
        let conditions = levels.iter().map(condition).collect();
        Experiment { name: "x".into(), kind: Kind::Wakeup, conditions, design, contrasts: vec![contrast(None)] }
    }

    fn wakeup() -> crate::plan::WakeupSpec {
        crate::plan::WakeupSpec {
            via: crate::plan::Via::Select,
            interval_ns: Nanos::from_millis(1),
            relative: false,
            cpus: crate::plan::WakeupCpus::Anywhere,
            break_ns: None,
        }
    }

    fn load(level: &str) -> Factors {
        Factors::from([("load".to_owned(), level.to_owned())])
    }

    fn contrast(baseline: Option<&str>) -> Contrast {
        Contrast {
            metric: Kind::Wakeup.metric(),
            statistic: "p50".into(),
            baseline: baseline.map(load).unwrap_or_default(),
            equivalence: None,
        }
    }

    fn until(half_width: f64) -> RunsRule {
        RunsRule::Until { statistic: "p50".into(), half_width, most: 60 }
    }

    fn run(level: &str, condition: u32, value: f64) -> ObservedRun {
        let mut run = ObservedRun::bare("r".into(), value);
        run.origin.block = Some(("e".into(), 1));
        run.condition = condition;
        (run.levels, run.factors) = (load(level), Some(load(level)));
        run
    }

    /// Ten runs of each of two conditions, spread by ± `spread` around 100 and 200.
    fn runs(spread: f64) -> Vec<ObservedRun> {
        let noise = |place: i32| 1.0 + spread * f64::from(place % 5 - 2) / 2.0;
        let of = |level, condition, mean: f64| (0..10).map(move |place| run(level, condition, mean * noise(place)));
        of("none", 1, 100.0).chain(of("cpu=80%", 2, 200.0)).collect()
    }

    #[test]
    fn a_stop_rule_holds_once_every_interval_is_narrow() {
        let experiment = experiment(&["none", "cpu=80%"], until(0.03));
        let rule = PrecisionRule::of(&experiment, |_| false).expect("known").expect("a rule");
        assert_eq!(rule.check(runs(0.001)), PrecisionResult::Narrow);
        assert_eq!(rule.check(runs(0.2)), PrecisionResult::Wide);
        assert_eq!(rule.check(runs(0.001)[..10].to_vec()), PrecisionResult::Wide, "a condition without runs");
        assert_eq!(rule.check(Vec::new()), PrecisionResult::Wide);
        let mut lost = runs(0.001);
        lost[3].figures = vec![RunFigure::Infinite];
        assert_eq!(rule.check(lost), PrecisionResult::Infinite);
    }

    #[test]
    fn a_dropped_condition_does_not_keep_a_stop_rule_from_holding() {
        let experiment = experiment(&["none", "cpu=80%"], until(0.03));
        let rule = PrecisionRule::of(&experiment, |factors| *factors == load("cpu=80%")).expect("known");
        let rule = rule.expect("a rule");
        assert!(rule.covers(&load("none")) && !rule.covers(&load("cpu=80%")));
        // A single condition must be narrow with 20 runs and again one block later.
        let of_block = |block| {
            runs(0.001).into_iter().take(10).map(move |mut run| {
                run.origin.block = Some(("e".into(), block));
                run
            })
        };
        assert_eq!(rule.check((1..=2).flat_map(of_block).collect()), PrecisionResult::Wide);
        assert_eq!(rule.check((1..=3).flat_map(of_block).collect()), PrecisionResult::Narrow);
    }

    #[test]
    fn a_fixed_number_of_runs_has_no_stop_rule() {
        let experiment = experiment(&["none"], RunsRule::PerBlock(3));
        assert!(PrecisionRule::of(&experiment, |_| false).expect("known").is_none());
    }

    #[test]
    fn each_condition_is_paired_with_its_counterpart_in_the_baseline() {
        let of = |load: &str, size: &str| {
            Factors::from([("load".to_owned(), load.to_owned()), ("size".to_owned(), size.to_owned())])
        };
        let all = [of("a", "1"), of("a", "2"), of("b", "1"), of("b", "2")];
        let conditions: Vec<&Factors> = all.iter().collect();
        let pair = |(baseline, candidate)| Pair { baseline, candidate };
        assert_eq!(pairs(&conditions, Some(&load("b"))), [(2, 0), (3, 1)].map(pair));
        let first = [(0, 1), (0, 2), (0, 3)].map(pair);
        assert_eq!(pairs(&conditions, None), first);
        assert_eq!(pairs(&conditions, Some(&Factors::new())), first);
        assert_eq!(pairs(&conditions, Some(&load("c"))), first);
    }

    fn excluded(level: &str) -> ExcludedCondition {
        ExcludedCondition { factors: load(level), reason: "no CPU".into() }
    }

    /// Candidates and baseline that are compared if the conditions `measured` have ten runs each.
    fn compared(experiment: &Experiment, dropped: &[&str], impossible: &[&str], measured: &[&str]) -> Vec<String> {
        let [dropped, impossible] =
            [dropped, impossible].map(|levels| levels.iter().map(|level| excluded(level)).collect::<Vec<_>>());
        let factors: Vec<Factors> = measured.iter().map(|level| load(level)).collect();
        let comparison =
            ExperimentComparison::of(experiment, &dropped, &impossible, &factors.iter().collect::<Vec<_>>());
        let of = |level: &&str| (0..10).map(|_| run(level, 1, 100.0)).collect::<Vec<_>>();
        let runs: Vec<ObservedRun> = measured.iter().flat_map(of).collect();
        let comparisons = comparison.expect("known").compare(runs, Look::FIRST, |_| {}).expect("a baseline");
        let name = |place: usize| comparisons.groups.groups[place].levels["load"].clone();
        comparisons.rows.iter().map(|row| format!("{} - {}", name(row.candidate), name(row.baseline))).collect()
    }

    #[test]
    fn a_dropped_baseline_is_replaced_by_another_condition_unless_it_is_named() {
        let mut experiment = experiment(&["a", "b", "c"], RunsRule::PerBlock(10));
        assert_eq!(compared(&experiment, &[], &[], &["a", "b", "c"]), ["b - a", "c - a"]);
        assert_eq!(compared(&experiment, &["c"], &[], &["a", "b"]), ["b - a"]);
        assert_eq!(compared(&experiment, &["a"], &[], &["b", "c"]), ["c - b"]);
        experiment.contrasts = vec![contrast(Some("a"))];
        assert_eq!(compared(&experiment, &["a"], &[], &["b", "c"]), [""; 0]);
    }

    #[test]
    fn the_first_possible_condition_is_the_baseline_unless_one_is_named() {
        let all = |levels: &[&str]| levels.iter().map(|level| load(level)).collect::<Vec<_>>();
        let of = |named| compared_conditions(&all(&["a", "b"]), &all(&["y", "z"]), &[contrast(named)], |_| false);
        assert_eq!((of(None), of(Some("z"))), (all(&["a", "b"]), all(&["a", "b", "z"])));
    }

    #[test]
    fn an_impossible_baseline_takes_part_only_if_it_is_named() {
        let mut experiment = experiment(&["a", "b"], RunsRule::PerBlock(10));
        assert_eq!(compared(&experiment, &[], &["z"], &["a", "b"]), ["b - a"]);
        experiment.contrasts = vec![contrast(Some("z"))];
        assert_eq!(compared(&experiment, &[], &["z"], &["a", "b"]), [""; 0], "a comparison with it has no row");
    }

    #[test]
    fn a_contrast_whose_baseline_was_not_measured_is_left_out() {
        let mut experiment = experiment(&["a", "b"], RunsRule::PerBlock(10));
        experiment.contrasts.push(contrast(Some("z")));
        assert_eq!(compared(&experiment, &[], &[], &["a", "b"]), ["b - a"]);
    }
}
