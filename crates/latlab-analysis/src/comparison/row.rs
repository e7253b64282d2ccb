//! One row of a comparison: the figures of two groups, their test, and the verdict.

use std::collections::BTreeSet;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::groups::{GroupPair, RunGroup, RunGroups};
use super::observed_run::ObservedRun;
use super::request::{ComparisonOptions, Quantity, QuestionScope};
use super::strata::Strata;
use super::verdict::{Comparison, ComparisonMethod, Effect, Evidence, FigureScale, UndecidedReason, Verdict};
use crate::estimand::{Estimand, Ratio, RunFigure};
use crate::metric::Metric;
use crate::stats::{
    BlockRuns, Claims, Interval, ShiftTest, holm, is_significant, placement_difference, spread_ratio,
    weighted_baseline, weighted_difference,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The quantity of this index, which is that of the figure in each run.
    Asked(usize),
    Loss,
    /// The ratio of late answers.
    Late,
}

impl Subject {
    pub(super) fn quantity(self, quantities: &[Quantity]) -> Quantity {
        match self {
            Subject::Asked(index) => quantities[index],
            Subject::Loss => Quantity::Of(Estimand::Ratio(Ratio::Loss)),
            Subject::Late => Quantity::Of(Estimand::Ratio(Ratio::Late)),
        }
    }

    fn figure(self, run: &ObservedRun) -> RunFigure {
        match self {
            Subject::Asked(index) => run.figures.get(index).copied().unwrap_or(RunFigure::Nothing),
            Subject::Loss => run.losses.share(run.losses.unanswered),
            Subject::Late => run.losses.share(run.losses.late),
        }
    }

    /// By how much the steps of their clocks may have moved the figure in two groups against each other, on `scale`: not seen
    /// where the runs of each group differ.
    fn clock_step(self, sides: [&RunGroup; 2], scale: FigureScale) -> f64 {
        let Subject::Asked(index) = self else { return 0.0 };
        let figures =
            |group: &RunGroup| group.runs.iter().filter_map(|run| self.figure(run).value()).collect::<Vec<_>>();
        if !sides.iter().any(|group| figures(group).windows(2).all(|pair| pair[0] == pair[1])) {
            return 0.0;
        }
        let step = sides.map(|group| ObservedRun::clock_step(&group.runs, index)).into_iter().fold(0.0, f64::max);
        let values = sides.iter().flat_map(|group| &group.runs).filter_map(|run| self.figure(run).value());
        scale.step(step, values.fold(f64::INFINITY, f64::min))
    }

    fn figure_with_losses(self, run: &ObservedRun) -> RunFigure {
        match (self, &run.figures_with_losses) {
            (Subject::Asked(index), Some(figures)) => figures.get(index).copied().unwrap_or(RunFigure::Nothing),
            _ => self.figure(run),
        }
    }
}

/// What a row compares, and on which scale.
#[derive(Clone, Copy)]
pub(super) struct ComparedFigure {
    subject: Subject,
    quantity: Quantity,
    /// That of all groups, so that rows can be compared with each other.
    scale: FigureScale,
}

impl ComparedFigure {
    /// The figure of `subject` in the runs of all `groups`; once for all rows about it.
    pub(super) fn of(groups: &RunGroups, subject: Subject, quantities: &[Quantity]) -> ComparedFigure {
        let quantity = subject.quantity(quantities);
        let values = groups.groups.iter().flat_map(|group| &group.runs).filter_map(|run| subject.figure(run).value());
        let scale = if groups.is_linear { FigureScale::Linear } else { FigureScale::of(values, quantity.is_share()) };
        ComparedFigure { subject, quantity, scale }
    }
}

/// The figures of both groups as far as they decide how to compare.
enum Figures {
    Finite,
    InfiniteInPart,
    Separated(Verdict),
    Missing(UndecidedReason),
}

pub(super) struct ComparisonRow {
    pub(super) comparison: Comparison,
    /// The runs by block, on the scale of the comparison.
    blocks: Vec<BlockRuns>,
    /// `None` if nothing could be tested.
    test: Option<ShiftTest>,
}

impl ComparisonRow {
    /// The row of one pair of groups, tested but without a verdict, unless it needs no test.
    pub(super) fn of(
        groups: &RunGroups,
        pair: GroupPair,
        compared: ComparedFigure,
        margin: Option<f64>,
        options: &ComparisonOptions,
    ) -> ComparisonRow {
        let sides = groups.pair(pair);
        let ComparedFigure { subject, quantity, scale } = compared;
        let evidence = evidence_of(sides, subject);
        let comparison = Comparison {
            quantity,
            baseline: pair.baseline,
            candidate: pair.candidate,
            scale,
            centres: None,
            difference: None,
            relative: None,
            margin,
            verdict: Verdict::Undecided,
            undecided: None,
            method: ComparisonMethod::None,
            added: !matches!(subject, Subject::Asked(_)),
            p_value: None,
            adjusted_p_value: None,
            p_equivalent: None,
            adjusted_p_equivalent: None,
            evidence,
        };
        let mut row = ComparisonRow { comparison, blocks: Vec::new(), test: None };
        let strata = |scale: FigureScale, value: &dyn Fn(&ObservedRun) -> Option<f64>| {
            Strata::of(groups, pair, scale, options.scope, value)
        };
        let is_same = |run: &ObservedRun| subject.figure(run) == subject.figure_with_losses(run);
        let reads_losses = || !sides.iter().flat_map(|group| &group.runs).all(is_same);
        match Figures::of(quantity, &row.comparison.evidence) {
            Figures::Missing(reason) => row.comparison.undecided = Some(reason),
            Figures::InfiniteInPart => {
                let reading = |figure: fn(Subject, &ObservedRun) -> RunFigure| {
                    strata(FigureScale::Linear, &|run| figure(subject, run).limit())
                };
                let second = reads_losses().then(|| reading(Subject::figure_with_losses));
                row.test_placements(&reading(Subject::figure), second.as_ref(), options);
            }
            Figures::Separated(verdict) => {
                row.separate(&strata(scale, &|run| subject.figure(run).limit()), verdict);
            }
            Figures::Finite => {
                let second = reads_losses().then(|| strata(scale, &|run| subject.figure_with_losses(run).value()));
                let reach = subject.clock_step(sides, scale);
                row.test_shift(&strata(scale, &|run| subject.figure(run).value()), second.as_ref(), reach, options);
            }
        }
        row
    }

    /// Gives the verdict of groups that need no test.
    fn separate(&mut self, strata: &Strata, verdict: Verdict) {
        self.note_strata(strata);
        let row = &mut self.comparison;
        (row.verdict, row.method) = (verdict, ComparisonMethod::Separated);
        let mean = |of: fn(&BlockRuns) -> &Vec<f64>| {
            let values = || strata.boots.iter().flatten().flat_map(of);
            row.scale.to_figure(values().sum::<f64>() / values().count() as f64)
        };
        let (baseline, candidate) = (mean(|block| &block.baseline), mean(|block| &block.candidate));
        row.centres = Some((baseline, candidate));
        if baseline.is_finite() && candidate.is_finite() {
            let difference = row.scale.place(candidate) - row.scale.place(baseline);
            self.set_effect(difference, Interval { low: None, high: None, confidence: 0.0 });
        }
    }

    /// Compares groups with infinite figures; `second` has unanswered probes counted as their time-out.
    fn test_placements(&mut self, strata: &Strata, second: Option<&Strata>, options: &ComparisonOptions) {
        self.note_strata(strata);
        self.comparison.method = ComparisonMethod::Placements;
        let test = |strata: &Strata| tested(strata, options, ShiftTest::of_placements, placement_difference);
        match in_both_readings(test, strata, second) {
            Err(reason) => self.comparison.undecided = Some(reason),
            Ok(test) => self.take(test),
        }
    }

    /// Compares finite figures; `second` has those with unanswered probes counted as their time-out.
    /// The difference may miss the true one by `reach`.
    fn test_shift(&mut self, strata: &Strata, second: Option<&Strata>, reach: f64, options: &ComparisonOptions) {
        self.note_strata(strata);
        self.blocks = strata.boots.iter().flatten().cloned().collect();
        if !are_summable(strata) || second.is_some_and(|second| !are_summable(second)) {
            self.comparison.undecided = Some(UndecidedReason::Overflow);
            return;
        }
        self.measure();
        if self.comparison.undecided.is_some() {
            return;
        }
        if self.comparison.evidence.runs == (1, 1) {
            self.comparison.undecided = Some(UndecidedReason::SingleRuns);
            return;
        }
        let test = |strata: &Strata| tested(strata, options, ShiftTest::of, weighted_difference);
        match in_both_readings(test, strata, second) {
            Err(reason) => self.comparison.undecided = Some(reason),
            Ok(test) => {
                let test = test.within(reach);
                // Means of different numbers of lines do not show how lines scatter.
                let is_mean_of_lines = self.comparison.evidence.of_means;
                self.comparison.method = ComparisonMethod::Shift;
                let interval = test.interval(options.confidence);
                let answered = test.first_reading().map(|answered| answered.interval(options.confidence));
                self.comparison.evidence.losses_widen = answered.is_some_and(|answered| is_doubled(answered, interval));
                self.set_effect(test.difference(), interval);
                self.comparison.p_equivalent =
                    margin_of(&self.comparison).map(|(low, high)| test.p_equivalent(low, high));
                self.comparison.evidence.spread_ratio =
                    spread_ratio(&self.blocks).filter(|_| !self.comparison.quantity.is_share() && !is_mean_of_lines);
                self.take(test);
            }
        }
    }

    fn note_strata(&mut self, strata: &Strata) {
        let evidence = &mut self.comparison.evidence;
        (evidence.blocks, evidence.strata, evidence.by_round) = (strata.blocks, strata.common, strata.by_round);
    }

    fn take(&mut self, test: ShiftTest) {
        let row = &mut self.comparison;
        row.p_value = Some(test.p_value(0.0));
        (row.evidence.permutations, row.evidence.exact) = (test.permutations(), test.is_exact());
        row.evidence.reads_losses = test.first_reading().is_some();
        self.test = Some(test);
    }

    /// Estimates the centres and the difference between them.
    fn measure(&mut self) {
        let row = &mut self.comparison;
        let (Some(baseline), Some(difference)) = (weighted_baseline(&self.blocks), weighted_difference(&self.blocks))
        else {
            row.undecided = Some(UndecidedReason::NoCommonBlock);
            return;
        };
        row.centres = Some((row.scale.to_figure(baseline), row.scale.to_figure(baseline + difference)));
        let unbounded = Interval { low: None, high: None, confidence: 0.0 };
        self.set_effect(difference, unbounded);
    }

    /// Sets the difference in the figures' unit and as a share of the baseline.
    fn set_effect(&mut self, difference: f64, interval: Interval) {
        let row = &mut self.comparison;
        let Some((baseline, _)) = row.centres else { return };
        let effect = |to: &dyn Fn(f64) -> Option<f64>| {
            // A share lies between 0 and 1; one answer may have several duplicates.
            let is_bounded = row.quantity.is_share() && row.quantity != Quantity::Of(Estimand::Ratio(Ratio::Duplicate));
            let held = |end: f64| if is_bounded { end.clamp(-1.0, 1.0) } else { end };
            let end = |end: Option<f64>| end.and_then(to).filter(|end| end.is_finite()).map(held);
            let interval = Interval { low: end(interval.low), high: end(interval.high), ..interval };
            to(difference).filter(|value| value.is_finite()).map(|value| Effect { value, interval })
        };
        let scale = row.scale;
        row.relative = effect(&|difference| scale.relative(difference));
        row.difference = effect(&|difference| Some(scale.absolute(difference, baseline)));
    }

    /// Sets the verdict, if the adjusted p value is significant at the level of `family`.
    fn judge(&mut self, family: TestFamily) {
        let (Some(test), row) = (&self.test, &mut self.comparison) else { return };
        let refused = |p: Option<f64>| p.is_some_and(|p| is_significant(p, family.alpha));
        row.verdict = match (refused(row.adjusted_p_equivalent), refused(row.adjusted_p_value)) {
            (true, _) => Verdict::Equivalent,
            (false, true) if test.difference() > 0.0 => Verdict::Higher,
            (false, true) => Verdict::Lower,
            (false, false) => Verdict::Undecided,
        };
        if row.verdict == Verdict::Undecided {
            let reason = self.reason(test, family);
            self.comparison.undecided = Some(reason);
        }
    }

    /// Why a tested row is undecided.
    fn reason(&self, test: &ShiftTest, family: TestFamily) -> UndecidedReason {
        let row = &self.comparison;
        let margin = margin_of(row);
        let claims = |test: &ShiftTest| {
            let equivalent =
                margin.is_some_and(|(low, high)| is_significant(test.p_equivalent(low, high), family.alpha));
            equivalent || is_significant(test.p_value(0.0), family.alpha)
        };
        let tails = if margin.is_some() { 1.0 } else { 2.0 };
        if !test.can_reach(tails, family.alpha_next) {
            UndecidedReason::TooFewRuns
        } else if claims(test) {
            UndecidedReason::Corrected { comparisons: family.comparisons }
        } else if test.first_reading().is_some_and(|answered| claims(&answered)) {
            UndecidedReason::Losses
        } else if row.margin.is_some() && margin.is_none() && row.method == ComparisonMethod::Shift {
            UndecidedReason::NotPositive
        } else {
            UndecidedReason::Unsure
        }
    }

    /// Gives a ratio that is 0 in every run the verdict that says so, instead of none.
    fn note_absence(&mut self) {
        let row = &mut self.comparison;
        let is_zero = row.quantity.is_share() && row.centres == Some((0.0, 0.0));
        if is_zero && row.verdict == Verdict::Undecided {
            (row.verdict, row.undecided) = (Verdict::None, None);
        }
    }
}

impl Figures {
    fn of(quantity: Quantity, evidence: &Evidence) -> Figures {
        let Evidence { runs, infinite, unanswered, without_figure, .. } = *evidence;
        if runs.0 == 0 || runs.1 == 0 {
            return Figures::Missing(UndecidedReason::NoRun { baseline: runs.0 == 0, candidate: runs.1 == 0 });
        }
        if without_figure == (0, 0) && infinite == runs {
            return Figures::Missing(UndecidedReason::Infinite);
        }
        if let Some(verdict) = verdict_without_answers(quantity) {
            if unanswered.0 == 0 && unanswered.1 == runs.1 {
                return Figures::Separated(verdict);
            }
            if unanswered.1 == 0 && unanswered.0 == runs.0 {
                return Figures::Separated(if verdict == Verdict::Higher { Verdict::Lower } else { Verdict::Higher });
            }
        }
        match without_figure.0 + without_figure.1 {
            0 if infinite == (0, 0) => Figures::Finite,
            0 if infinite == (0, runs.1) => Figures::Separated(Verdict::Higher),
            0 if infinite == (runs.0, 0) => Figures::Separated(Verdict::Lower),
            0 => Figures::InfiniteInPart,
            runs => Figures::Missing(UndecidedReason::NoFigure { runs }),
        }
    }
}

/// The verdict on a candidate that answered nothing, against a baseline that did; `None` for figures that do not follow
/// from it.
fn verdict_without_answers(quantity: Quantity) -> Option<Verdict> {
    match quantity {
        Quantity::Of(Estimand::Ratio(Ratio::Loss | Ratio::DeadlineMiss)) => Some(Verdict::Higher),
        Quantity::Of(Estimand::Statistic(Metric::DeliveredRate, _)) => Some(Verdict::Lower),
        Quantity::Of(Estimand::Statistic(
            Metric::RoundTripDelay | Metric::RoundTripDelayLessDwell | Metric::ResponseTime | Metric::Pdv,
            _,
        )) => Some(Verdict::Higher),
        _ => None,
    }
}

/// Tests of one table that are adjusted together.
#[derive(Clone, Copy)]
struct TestFamily {
    alpha: f64,
    /// The level that one more row would have to reach.
    alpha_next: f64,
    comparisons: usize,
}

/// Sets adjusted p values and verdicts. The rows that were asked for are one family, and those that were added another.
pub(super) fn decide(rows: &mut [ComparisonRow], options: &ComparisonOptions) {
    for added in [false, true] {
        decide_family(rows.iter_mut().filter(|row| row.comparison.added == added).collect(), options);
    }
    rows.iter_mut().for_each(ComparisonRow::note_absence);
}

fn decide_family(mut rows: Vec<&mut ComparisonRow>, options: &ComparisonOptions) {
    rows.retain(|row| row.test.is_some());
    let alpha = 1.0 - options.confidence;
    let claims = |row: &&mut ComparisonRow| {
        let Comparison { p_value, p_equivalent, .. } = row.comparison;
        Claims { different: p_value.unwrap_or(1.0), equivalent: p_equivalent }
    };
    let adjusted = holm(&rows.iter().map(claims).collect::<Vec<_>>());
    let is_open = |claims: &&Claims| {
        let both = [Some(claims.different), claims.equivalent];
        both.into_iter().flatten().any(|p| !is_significant(p, alpha))
    };
    let open = adjusted.iter().filter(is_open).count();
    let family = TestFamily { alpha, alpha_next: alpha / open.max(1) as f64, comparisons: rows.len() };
    for (row, adjusted) in rows.into_iter().zip(adjusted) {
        row.comparison.adjusted_p_value = Some(adjusted.different);
        row.comparison.adjusted_p_equivalent = adjusted.equivalent;
        row.judge(family);
    }
}

/// The test of one reading, or of two of which both must make each claim.
fn in_both_readings(
    test: impl Fn(&Strata) -> Result<ShiftTest, UndecidedReason>,
    first: &Strata,
    second: Option<&Strata>,
) -> Result<ShiftTest, UndecidedReason> {
    let tested = test(first)?;
    match second {
        Some(second) => Ok(tested.and(test(second)?)),
        None => Ok(tested),
    }
}

/// The test within blocks or over boots; the latter needs the difference of each boot.
///
/// # Errors
/// Why there is none.
fn tested(
    strata: &Strata,
    options: &ComparisonOptions,
    within: impl Fn(&[BlockRuns], u32, &mut Pcg64Mcg) -> Option<ShiftTest>,
    difference: fn(&[BlockRuns]) -> Option<f64>,
) -> Result<ShiftTest, UndecidedReason> {
    let mut random = Pcg64Mcg::seed_from_u64(options.seed);
    let test = match options.scope {
        QuestionScope::Blocks => within(&strata.boots.concat(), options.draws, &mut random),
        QuestionScope::Boots => {
            let differences: Vec<f64> = strata.boots.iter().filter_map(|blocks| difference(blocks)).collect();
            let needed = boots_needed(1.0 - options.confidence);
            if differences.len() < needed {
                return Err(UndecidedReason::TooFewBoots { boots: differences.len(), needed });
            }
            ShiftTest::of_differences(&differences, options.draws, &mut random)
        }
    };
    test.ok_or(UndecidedReason::NoCommonBlock)
}

/// The lowest and the highest difference within the margin, on the row's scale; `None` without a margin, or if it is a
/// share of 0. The margin of ratios is a difference, any other a share of the baseline's figure, which is taken as known.
fn margin_of(row: &Comparison) -> Option<(f64, f64)> {
    let margin = row.scale.margin(row.margin?);
    (row.quantity.is_share() || row.scale == FigureScale::Logarithmic).then_some(margin)
}

/// Whether no sum of values or of differences that a test needs can overflow.
fn are_summable(strata: &Strata) -> bool {
    let values = strata.boots.iter().flatten().flat_map(|block| block.baseline.iter().chain(&block.candidate));
    (4.0 * values.map(|value| value.abs()).sum::<f64>()).is_finite()
}

/// The fewest boots with which a sign test can be significant at `alpha`: its smallest p value is 2 / 2^boots.
pub fn boots_needed(alpha: f64) -> usize {
    (1..64).find(|boots| is_significant(2.0 / 2_f64.powi(*boots), alpha)).unwrap_or(64) as usize
}

/// Whether `wider` is more than twice as wide as `interval`; an end that does not exist is infinitely far.
fn is_doubled(interval: Interval, wider: Interval) -> bool {
    let width = |of: Interval| of.low.zip(of.high).map_or(f64::INFINITY, |(low, high)| high - low);
    width(wider) > 2.0 * width(interval)
}

/// What is known of both groups before their test.
fn evidence_of(sides: [&RunGroup; 2], subject: Subject) -> Evidence {
    let count = |has: &dyn Fn(&ObservedRun) -> bool| {
        let [baseline, candidate] = sides.map(|group| group.runs.iter().filter(|run| has(run)).count());
        (baseline, candidate)
    };
    Evidence {
        runs: count(&|_| true),
        infinite: count(&|run| subject.figure(run) == RunFigure::Infinite),
        unanswered: count(&|run| run.losses.is_total()),
        without_figure: count(&|run| subject.figure(run) == RunFigure::Nothing),
        boots: count_boots(sides),
        of_means: sides.iter().any(|group| group.numbers.is_some_and(|own| own.lines > group.runs.len() as u64)),
        ..Evidence::default()
    }
}

/// The number of boots in which the runs were made, as far as known.
fn count_boots(sides: [&RunGroup; 2]) -> usize {
    let runs = sides.into_iter().flat_map(|group| &group.runs);
    runs.filter_map(|run| run.origin.boot.as_ref()).collect::<BTreeSet<_>>().len()
}
