//! One row of a table: its blocks, its test, and once all rows are there its verdict.

use std::collections::BTreeSet;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::answer::{Comparison, Effect, Evidence, UndecidedReason, Verdict};
use super::group::{RunGroup, RunGroups};
use super::observed_run::{ObservedRun, RunFigure};
use super::scale::FigureScale;
use super::strata::Strata;
use super::wishes::{ComparisonOptions, Quantity, Question, QuestionScope};
use crate::stats::{
    BlockRuns, Claims, Interval, PermutationTest, SampleSizeGoal, holm, is_significant, runs_needed, weighted_baseline,
    weighted_difference,
};

/// A row before its verdict.
pub(super) struct ComparisonRow {
    pub(super) comparison: Comparison,
    /// The runs on the scale on which they are compared, block by block.
    blocks: Vec<BlockRuns>,
    /// None where nothing could be tested.
    exchanges: Option<PermutationTest>,
}

impl ComparisonRow {
    /// The groups at `pair`, baseline and candidate, asked one question.
    pub(super) fn of(
        groups: &RunGroups,
        quantities: &[Quantity],
        question: &Question,
        (baseline, candidate): (usize, usize),
        wishes: &ComparisonOptions,
    ) -> ComparisonRow {
        let quantity = quantities[question.subject];
        let sides = [&groups.groups[baseline], &groups.groups[candidate]];
        // one scale for all groups, so that rows can be read beside each other
        let value = |run: &ObservedRun| run.figures.get(question.subject).and_then(|figure| figure.value());
        let values = groups.groups.iter().flat_map(|group| &group.runs).filter_map(value);
        let scale = FigureScale::of(values, quantity.is_share());
        let comparison = Comparison {
            quantity,
            baseline,
            candidate,
            scale,
            centres: None,
            difference: None,
            relative: None,
            margin: question.equivalence,
            verdict: Verdict::Undecided,
            undecided: missing(sides, question.subject),
            p_value: None,
            adjusted_p_value: None,
            p_equivalent: None,
            adjusted_p_equivalent: None,
            rests: Evidence { runs: (sides[0].runs.len(), sides[1].runs.len()), ..Evidence::default() },
        };
        let mut row = ComparisonRow { comparison, blocks: Vec::new(), exchanges: None };
        if row.comparison.undecided.is_none() {
            let strata = Strata::of(groups, (baseline, candidate), (scale, wishes.over), value);
            let Evidence { runs, .. } = row.comparison.rests;
            let (blocks, common, boots) = (strata.blocks, strata.common, count_boots(sides));
            row.comparison.rests = Evidence { runs, blocks, strata: common, boots, ..Evidence::default() };
            row.blocks = strata.boots.iter().flatten().cloned().collect();
            row.measure();
            row.test(&strata.boots, wishes);
        }
        row
    }

    /// Point values: centres and the difference between them.
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
        self.tell(difference, unbounded);
    }

    /// Exchanges names and reads p values and intervals from what comes of it.
    fn test(&mut self, boots: &[Vec<BlockRuns>], wishes: &ComparisonOptions) {
        let mut random = Pcg64Mcg::seed_from_u64(wishes.seed);
        if self.comparison.undecided.is_some() {
            return;
        }
        if self.comparison.rests.runs == (1, 1) {
            self.comparison.undecided = Some(UndecidedReason::SingleRuns);
            return;
        }
        let exchanges = match wishes.over {
            QuestionScope::Blocks => PermutationTest::of(&self.blocks, wishes.draws, &mut random),
            QuestionScope::Boots => {
                let differences: Vec<f64> = boots.iter().filter_map(|blocks| weighted_difference(blocks)).collect();
                let needed = boots_needed(1.0 - wishes.confidence);
                if differences.len() < needed {
                    let boots = differences.len();
                    self.comparison.undecided = Some(UndecidedReason::TooFewBoots { boots, needed });
                    return;
                }
                PermutationTest::of_differences(&differences, wishes.draws, &mut random)
            }
        };
        let Some(exchanges) = exchanges else { return };
        self.tell(exchanges.difference(), exchanges.interval(wishes.confidence));
        let row = &mut self.comparison;
        row.p_value = Some(exchanges.p_value(0.0));
        row.p_equivalent = margin_of(row).map(|(low, high)| exchanges.p_equivalent(low, high));
        (row.rests.exchanges, row.rests.exact) = (exchanges.total(), exchanges.is_exact());
        self.exchanges = Some(exchanges);
    }

    /// Writes the difference down, in the figures' unit and as a share.
    fn tell(&mut self, difference: f64, interval: Interval) {
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

    /// Its verdict, where the test refuses at `alpha` after adjustment; `alpha_next` is what one more row of the table
    /// would have to reach.
    fn judge(&mut self, alpha: f64, alpha_next: f64, over: QuestionScope) {
        let Some(exchanges) = &self.exchanges else { return };
        let row = &mut self.comparison;
        let refused = |p: Option<f64>| p.is_some_and(|p| is_significant(p, alpha));
        row.verdict = match (refused(row.adjusted_p_equivalent), refused(row.adjusted_p_value)) {
            (true, _) => Verdict::Equivalent,
            (false, true) if exchanges.difference() > 0.0 => Verdict::Higher,
            (false, true) => Verdict::Lower,
            (false, false) => Verdict::Undecided,
        };
        if row.verdict != Verdict::Undecided {
            return;
        }
        let margin = margin_of(row);
        let aims = [
            runs_needed(&self.blocks, SampleSizeGoal::Difference, alpha_next),
            margin.and_then(|(low, high)| {
                runs_needed(&self.blocks, SampleSizeGoal::Equivalence { low, high }, alpha_next)
            }),
        ];
        let runs_needed = aims.into_iter().flatten().min().filter(|_| over == QuestionScope::Blocks);
        // the smallest tail that this many exchanges can have; for a difference it counts twice
        let tails = if margin.is_some() { 1.0 } else { 2.0 };
        let least = tails / exchanges.total() as f64;
        row.undecided = Some(match is_significant(least, alpha_next) || !exchanges.is_exact() {
            true if row.margin.is_some() && margin.is_none() => UndecidedReason::ZeroBaseline,
            true => UndecidedReason::Unsure { runs_needed },
            false => UndecidedReason::TooFewRuns { runs_needed },
        });
    }
}

/// Gives every row its adjusted p values and its verdict: the family is the table, of differences and equivalences alike.
pub(super) fn decide(rows: &mut [ComparisonRow], wishes: &ComparisonOptions) {
    let alpha = 1.0 - wishes.confidence;
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
        row.judge(alpha, alpha_next, wishes.over);
    }
}

/// Lowest and highest difference within the margin, on the row's scale; none where there is no margin or none that can
/// be told. A margin of shares is one of points, any other a share of the baseline's figure, which is taken as known.
fn margin_of(row: &Comparison) -> Option<(f64, f64)> {
    let (baseline, _) = row.centres?;
    let size = if row.quantity.is_share() { 1.0 } else { baseline.abs() };
    row.scale.margin(row.margin?, size)
}

/// Whether no sum that a test needs, of values or of differences, can grow beyond the numbers.
fn are_summable(blocks: &[BlockRuns]) -> bool {
    let values = blocks.iter().flat_map(|block| block.baseline.iter().chain(&block.candidate));
    (4.0 * values.map(|value| value.abs()).sum::<f64>()).is_finite()
}

/// The fewest boots whose signs can refuse at `alpha`: 2 / 2^boots is the smallest p they have.
pub fn boots_needed(alpha: f64) -> usize {
    (1..64).find(|boots| is_significant(2.0 / 2_f64.powi(*boots), alpha)).unwrap_or(64) as usize
}

/// Whether figures are missing: a mean of what is infinite, or of fewer runs than were made, is no mean of the group.
fn missing(sides: [&RunGroup; 2], place: usize) -> Option<UndecidedReason> {
    if let [baseline, candidate] = sides.map(|group| group.runs.is_empty())
        && (baseline || candidate)
    {
        return Some(UndecidedReason::NoRun { baseline, candidate });
    }
    let count = |wanted: RunFigure| {
        sides.map(|group| group.runs.iter().filter(|run| run.figures.get(place) == Some(&wanted)).count())
    };
    let ([baseline, candidate], [nothing, nothing_either]) = (count(RunFigure::Lost), count(RunFigure::Nothing));
    if baseline + candidate > 0 {
        return Some(UndecidedReason::Lost { baseline, candidate });
    }
    let runs = nothing + nothing_either;
    (runs > 0).then_some(UndecidedReason::NoFigure { runs })
}

/// In how many boots the runs were made, as far as that is known.
fn count_boots(sides: [&RunGroup; 2]) -> usize {
    let runs = sides.into_iter().flat_map(|group| &group.runs);
    runs.filter_map(|run| run.place.boot.as_ref()).collect::<BTreeSet<_>>().len()
}
