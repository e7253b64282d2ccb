//! Compares groups of runs: a permutation test for each question and pair of groups, Holm's adjustment over all tests,
//! and verdicts.

use std::collections::BTreeSet;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::caveats;
use super::groups::{GroupPair, GroupingError, RunGroup, RunGroups};
use super::observed_run::ObservedRun;
use super::request::{ComparisonOptions, ComparisonRequest, Quantity, Question, QuestionScope};
use super::strata::Strata;
use super::verdict::{Comparison, Effect, Evidence, FigureScale, UndecidedReason, Verdict};
use crate::analysis::estimand::RunFigure;
use crate::diagnostics::Caveat;
use crate::stats::{
    BlockRuns, Claims, GroupBlocks, Interval, Outline, PermutationTest, PrecisionGoal, SampleSizeGoal, holm,
    is_significant, reached, runs_needed, weighted_baseline, weighted_difference,
};

/// The result of a comparison of several groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparisons {
    /// The groups that were compared.
    pub groups: RunGroups,
    /// The quantities, in the order of the runs' figures.
    pub quantities: Vec<Quantity>,
    /// For each group and quantity the outline of the runs' figures; `None` if no run has a finite one.
    pub outlines: Vec<Vec<Option<Outline>>>,
    /// One row for each question and pair of groups.
    pub rows: Vec<Comparison>,
    /// Differences along the whole distribution, if requested: intervals without verdicts.
    pub shifts: Vec<Comparison>,
    /// The options of the comparison.
    pub options: ComparisonOptions,
    /// Its caveats, in descending order of severity.
    pub caveats: Vec<Caveat>,
}

/// Compares `groups`, whose runs hold a figure for each quantity of `request`.
///
/// A question without a baseline group or without candidates is skipped.
///
/// # Errors
/// If there is only one group, or all questions are skipped.
pub fn compare(
    groups: RunGroups,
    request: &ComparisonRequest,
    options: &ComparisonOptions,
) -> Result<Comparisons, GroupingError> {
    groups.expect_several()?;
    let quantities = request.quantities();
    let mut rows = Vec::new();
    let mut unanswerable = None;
    for question in request.questions() {
        let pairs = match &question.baseline {
            None => groups.against_first(),
            Some(baseline) => groups.against(baseline).unwrap_or_else(|error| {
                unanswerable.get_or_insert(error);
                Vec::new()
            }),
        };
        rows.extend(pairs.into_iter().map(|pair| ComparisonRow::of(&groups, quantities, question, pair, options)));
    }
    if let (Some(error), true) = (unanswerable, rows.is_empty()) {
        return Err(error);
    }
    // Rows of one pair stand together, in the order of the questions.
    rows.sort_by_key(|row: &ComparisonRow| (row.comparison.candidate, row.comparison.baseline));
    decide(&mut rows, options);
    let mut shifts = Vec::new();
    for pair in groups.against_first() {
        for quantity in request.shifts() {
            let question = Question { quantity: *quantity, ..Question::default() };
            shifts.push(ComparisonRow::of(&groups, quantities, &question, pair, options).comparison);
        }
    }
    let rows: Vec<Comparison> = rows.into_iter().map(|row| row.comparison).collect();
    let caveats = caveats::of(&groups, quantities, &rows);
    let outlined =
        |group: &RunGroup| (0..quantities.len()).map(|index| Outline::of(&mut group.values(index))).collect();
    let outlines = groups.groups.iter().map(outlined).collect();
    Ok(Comparisons {
        groups,
        quantities: quantities.to_vec(),
        outlines,
        rows,
        shifts,
        options: options.clone(),
        caveats,
    })
}

impl Comparisons {
    /// Whether the runs of all compared groups were randomised within blocks.
    pub fn is_interleaved(&self) -> bool {
        caveats::pairs(&self.groups, &self.rows).into_iter().all(|pair| self.groups.are_interleaved(pair))
    }
}

/// A row before its verdict.
struct ComparisonRow {
    comparison: Comparison,
    /// The runs by block, on the scale of the comparison.
    blocks: Vec<BlockRuns>,
    /// `None` if nothing could be tested.
    test: Option<PermutationTest>,
}

impl ComparisonRow {
    /// The row of one question about one pair of groups.
    fn of(
        groups: &RunGroups,
        quantities: &[Quantity],
        question: &Question,
        pair: GroupPair,
        options: &ComparisonOptions,
    ) -> ComparisonRow {
        let quantity = quantities[question.quantity];
        let sides = groups.pair(pair);
        // One scale for all groups, so that rows can be compared with each other.
        let value = |run: &ObservedRun| run.figures.get(question.quantity).and_then(|figure| figure.value());
        let values = groups.groups.iter().flat_map(|group| &group.runs).filter_map(value);
        let scale = FigureScale::of(values, quantity.is_share());
        let comparison = Comparison {
            quantity,
            baseline: pair.baseline,
            candidate: pair.candidate,
            scale,
            centres: None,
            difference: None,
            relative: None,
            margin: question.equivalence,
            verdict: Verdict::Undecided,
            undecided: missing(sides, question.quantity),
            p_value: None,
            adjusted_p_value: None,
            p_equivalent: None,
            adjusted_p_equivalent: None,
            evidence: Evidence { runs: (sides[0].runs.len(), sides[1].runs.len()), ..Evidence::default() },
        };
        let mut row = ComparisonRow { comparison, blocks: Vec::new(), test: None };
        if row.comparison.undecided.is_none() {
            let strata = Strata::of(groups, pair, scale, options.scope, value);
            let evidence = &mut row.comparison.evidence;
            (evidence.blocks, evidence.strata, evidence.boots) = (strata.blocks, strata.common, count_boots(sides));
            row.blocks = strata.boots.iter().flatten().cloned().collect();
            row.measure();
            row.test(&strata.boots, options);
        }
        row
    }

    /// Estimates the centres and the difference between them.
    fn measure(&mut self) {
        let row = &mut self.comparison;
        if !are_summable(&self.blocks) {
            row.undecided = Some(UndecidedReason::Overflow);
            return;
        }
        let (Some(baseline), Some(difference)) = (weighted_baseline(&self.blocks), weighted_difference(&self.blocks))
        else {
            row.undecided = Some(UndecidedReason::NoCommonBlock);
            return;
        };
        row.centres = Some((row.scale.to_figure(baseline), row.scale.to_figure(baseline + difference)));
        let unbounded = Interval { low: None, high: None, confidence: 0.0 };
        self.set_effect(difference, unbounded);
    }

    /// Sets p values and intervals by the permutation test.
    fn test(&mut self, boots: &[Vec<BlockRuns>], options: &ComparisonOptions) {
        let mut random = Pcg64Mcg::seed_from_u64(options.seed);
        if self.comparison.undecided.is_some() {
            return;
        }
        if self.comparison.evidence.runs == (1, 1) {
            self.comparison.undecided = Some(UndecidedReason::SingleRuns);
            return;
        }
        let test = match options.scope {
            QuestionScope::Blocks => PermutationTest::of(&self.blocks, options.draws, &mut random),
            QuestionScope::Boots => {
                let differences: Vec<f64> = boots.iter().filter_map(|blocks| weighted_difference(blocks)).collect();
                let needed = boots_needed(1.0 - options.confidence);
                if differences.len() < needed {
                    let boots = differences.len();
                    self.comparison.undecided = Some(UndecidedReason::TooFewBoots { boots, needed });
                    return;
                }
                PermutationTest::of_differences(&differences, options.draws, &mut random)
            }
        };
        let Some(test) = test else { return };
        self.set_effect(test.difference(), test.interval(options.confidence));
        let row = &mut self.comparison;
        row.p_value = Some(test.p_value(0.0));
        row.p_equivalent = margin_of(row).map(|(low, high)| test.p_equivalent(low, high));
        (row.evidence.permutations, row.evidence.exact) = (test.total(), test.is_exact());
        self.test = Some(test);
    }

    /// Sets the difference in the figures' unit and as a share of the baseline.
    fn set_effect(&mut self, difference: f64, interval: Interval) {
        let row = &mut self.comparison;
        let Some((baseline, _)) = row.centres else { return };
        let effect = |to: &dyn Fn(f64) -> Option<f64>| {
            let end = |end: Option<f64>| end.and_then(to).filter(|end| end.is_finite());
            let interval = Interval { low: end(interval.low), high: end(interval.high), ..interval };
            to(difference).filter(|value| value.is_finite()).map(|value| Effect { value, interval })
        };
        let scale = row.scale;
        row.relative = match row.quantity.is_share() {
            true => None,
            false => effect(&|difference| scale.relative(difference, baseline)),
        };
        row.difference = effect(&|difference| Some(scale.absolute(difference, baseline)));
    }

    /// Sets the verdict, if the adjusted p value is significant at `alpha`; `alpha_next` is the level that one more row
    /// of the table would have to reach.
    fn judge(&mut self, alpha: f64, alpha_next: f64, scope: QuestionScope) {
        let Some(test) = &self.test else { return };
        let row = &mut self.comparison;
        let refused = |p: Option<f64>| p.is_some_and(|p| is_significant(p, alpha));
        row.verdict = match (refused(row.adjusted_p_equivalent), refused(row.adjusted_p_value)) {
            (true, _) => Verdict::Equivalent,
            (false, true) if test.difference() > 0.0 => Verdict::Higher,
            (false, true) => Verdict::Lower,
            (false, false) => Verdict::Undecided,
        };
        if row.verdict != Verdict::Undecided {
            return;
        }
        let margin = margin_of(row);
        let goals = [
            runs_needed(&self.blocks, SampleSizeGoal::Difference, alpha_next),
            margin.and_then(|(low, high)| {
                runs_needed(&self.blocks, SampleSizeGoal::Equivalence { low, high }, alpha_next)
            }),
        ];
        let runs_needed = goals.into_iter().flatten().min().filter(|_| scope == QuestionScope::Blocks);
        // The smallest p value that this many permutations can give; a difference is two-sided.
        let tails = if margin.is_some() { 1.0 } else { 2.0 };
        let least = tails / test.total() as f64;
        row.undecided = Some(match is_significant(least, alpha_next) || !test.is_exact() {
            true if row.margin.is_some() && margin.is_none() => UndecidedReason::ZeroBaseline,
            true => UndecidedReason::Unsure { runs_needed },
            false => UndecidedReason::TooFewRuns { runs_needed },
        });
    }
}

/// Sets adjusted p values and verdicts: the family is all rows, differences and equivalences alike.
fn decide(rows: &mut [ComparisonRow], options: &ComparisonOptions) {
    let alpha = 1.0 - options.confidence;
    let claims = |row: &ComparisonRow| {
        let Comparison { p_value, p_equivalent, .. } = row.comparison;
        p_value.map(|different| Claims { different, equivalent: p_equivalent })
    };
    let adjusted = holm(&rows.iter().filter_map(claims).collect::<Vec<_>>());
    let is_open = |claims: &&Claims| {
        let both = [Some(claims.different), claims.equivalent];
        both.into_iter().flatten().any(|p| !is_significant(p, alpha))
    };
    let open = adjusted.iter().filter(is_open).count();
    let alpha_next = alpha / open.max(1) as f64;
    let tested = rows.iter_mut().filter(|row| row.comparison.p_value.is_some());
    for (row, adjusted) in tested.zip(adjusted) {
        row.comparison.adjusted_p_value = Some(adjusted.different);
        row.comparison.adjusted_p_equivalent = adjusted.equivalent;
        row.judge(alpha, alpha_next, options.scope);
    }
}

/// The lowest and the highest difference within the margin, on the row's scale; `None` without a margin, or if it is a
/// share of 0. The margin of ratios is a difference, any other a share of the baseline's figure, which is taken as known.
fn margin_of(row: &Comparison) -> Option<(f64, f64)> {
    let (baseline, _) = row.centres?;
    let size = if row.quantity.is_share() { 1.0 } else { baseline.abs() };
    row.scale.margin(row.margin?, size)
}

/// Whether no sum of values or of differences that a test needs can overflow.
fn are_summable(blocks: &[BlockRuns]) -> bool {
    let values = blocks.iter().flat_map(|block| block.baseline.iter().chain(&block.candidate));
    (4.0 * values.map(|value| value.abs()).sum::<f64>()).is_finite()
}

/// The fewest boots with which a sign test can be significant at `alpha`: its smallest p value is 2 / 2^boots.
pub fn boots_needed(alpha: f64) -> usize {
    (1..64).find(|boots| is_significant(2.0 / 2_f64.powi(*boots), alpha)).unwrap_or(64) as usize
}

/// Whether figures are missing: without the infinite or absent ones, a mean would not be that of the group.
fn missing(sides: [&RunGroup; 2], quantity: usize) -> Option<UndecidedReason> {
    if let [baseline, candidate] = sides.map(|group| group.runs.is_empty())
        && (baseline || candidate)
    {
        return Some(UndecidedReason::NoRun { baseline, candidate });
    }
    let count = |wanted: RunFigure| {
        sides.map(|group| group.runs.iter().filter(|run| run.figures.get(quantity) == Some(&wanted)).count())
    };
    let ([baseline, candidate], without_figure) = (count(RunFigure::Lost), count(RunFigure::Nothing));
    if baseline + candidate > 0 {
        return Some(UndecidedReason::Lost { baseline, candidate });
    }
    let runs = without_figure.iter().sum();
    (runs > 0).then_some(UndecidedReason::NoFigure { runs })
}

/// The number of boots in which the runs were made, as far as known.
fn count_boots(sides: [&RunGroup; 2]) -> usize {
    let runs = sides.into_iter().flat_map(|group| &group.runs);
    runs.filter_map(|run| run.origin.boot.as_ref()).collect::<BTreeSet<_>>().len()
}

/// Whether the interval of every difference from the first group, or of the mean of a single group, has at most this
/// half-width, as a share of the value: 0.03 for ±3 %. Uses the figure at `index` of each run, and its variance only.
/// Groups with a run without that figure are not precise.
pub fn is_precise(groups: &[RunGroup], index: usize, half_width: f64, options: &ComparisonOptions) -> bool {
    let value = |run: &ObservedRun| run.figures.get(index).and_then(|figure| figure.value());
    let runs = || groups.iter().flat_map(|group| &group.runs);
    if runs().any(|run| value(run).is_none()) {
        return false;
    }
    let scale = FigureScale::of(runs().filter_map(value), false);
    let baseline: Vec<f64> = groups.iter().take(1).flat_map(|group| &group.runs).filter_map(value).collect();
    let size = (baseline.iter().sum::<f64>() / baseline.len().max(1) as f64).abs();
    let mut blocks: Vec<_> = runs().map(|run| &run.origin.block).collect();
    blocks.sort();
    blocks.dedup();
    let of_group = |group: &RunGroup| -> GroupBlocks {
        let of_block = |block: &&Option<(String, u32)>| {
            let own = group.runs.iter().filter(|run| run.origin.block == **block);
            own.filter_map(value).map(|value| scale.from_figure(value)).collect()
        };
        blocks.iter().map(of_block).collect()
    };
    let values: Vec<GroupBlocks> = groups.iter().map(of_group).collect();
    let goal = PrecisionGoal {
        half_width: scale.half_width(half_width, size),
        confidence: options.confidence,
        draws: options.draws,
    };
    reached(&values, goal, &mut Pcg64Mcg::seed_from_u64(options.seed))
}
