//! One row of a table: its blocks, its test, and once all rows are there its verdict.

use std::collections::BTreeSet;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::answer::{Comparison, Effect, Rests, Undecided, Verdict};
use super::group::{RunGroup, RunGroups};
use super::observed_run::{ObservedRun, RunFigure};
use super::scale::Scale;
use super::wishes::{ComparisonWishes, Over, Quantity, Question};
use crate::stats::{
    Aim, BlockRuns, Exchanges, Interval, holm, is_refused, runs_needed, weighted_baseline, weighted_difference,
};

/// A row before its verdict.
pub(super) struct Row {
    pub(super) comparison: Comparison,
    /// The runs on the scale on which they are compared, block by block.
    blocks: Vec<BlockRuns>,
    /// None where nothing could be tested.
    exchanges: Option<Exchanges>,
}

impl Row {
    /// The groups at `pair`, baseline and candidate, asked one question.
    pub(super) fn of(
        groups: &RunGroups,
        quantities: &[Quantity],
        question: &Question,
        (baseline, candidate): (usize, usize),
        wishes: &ComparisonWishes,
    ) -> Row {
        let quantity = quantities[question.subject];
        let sides = [&groups.groups[baseline], &groups.groups[candidate]];
        // one scale for all groups, so that rows can be read beside each other
        let values = groups.groups.iter().flat_map(|group| &group.runs).filter_map(|run| value(run, question));
        let scale = Scale::of(values, quantity.is_share());
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
            undecided: missing(sides, question),
            p_value: None,
            adjusted_p_value: None,
            p_equivalent: None,
            rests: Rests { runs: (sides[0].runs.len(), sides[1].runs.len()), ..Rests::default() },
        };
        let mut row = Row { comparison, blocks: Vec::new(), exchanges: None };
        if row.comparison.undecided.is_none() {
            let boots = boots(groups, sides, question, (scale, wishes.over));
            row.comparison.rests.boots = count_boots(sides);
            row.blocks = boots.iter().flatten().cloned().collect();
            row.measure();
            row.test(&boots, wishes);
        }
        row
    }

    /// Point values: centres and the difference between them.
    fn measure(&mut self) {
        let row = &mut self.comparison;
        let common = self.blocks.iter().filter(|block| block.difference().is_some()).count();
        row.rests.blocks = common;
        let (Some(baseline), Some(difference)) = (weighted_baseline(&self.blocks), weighted_difference(&self.blocks))
        else {
            row.undecided = Some(Undecided::NoCommonBlock);
            return;
        };
        row.centres = Some((row.scale.to_figure(baseline), row.scale.to_figure(baseline + difference)));
        let unbounded = Interval { low: None, high: None, confidence: 0.0 };
        self.tell(difference, unbounded);
    }

    /// Exchanges names and reads p values and intervals from what comes of it.
    fn test(&mut self, boots: &[Vec<BlockRuns>], wishes: &ComparisonWishes) {
        let mut random = Pcg64Mcg::seed_from_u64(wishes.seed);
        if self.comparison.undecided.is_some() {
            return;
        }
        if self.comparison.rests.runs == (1, 1) {
            self.comparison.undecided = Some(Undecided::SingleRuns);
            return;
        }
        let exchanges = match wishes.over {
            Over::Blocks => Exchanges::of(&self.blocks, wishes.draws, &mut random),
            Over::Boots => {
                let differences: Vec<f64> = boots.iter().filter_map(|blocks| weighted_difference(blocks)).collect();
                let needed = boots_needed(1.0 - wishes.confidence);
                if differences.len() < needed {
                    let boots = differences.len();
                    self.comparison.undecided = Some(Undecided::TooFewBoots { boots, needed });
                    return;
                }
                Exchanges::of_differences(&differences, wishes.draws, &mut random)
            }
        };
        let Some(exchanges) = exchanges else { return };
        self.tell(exchanges.difference(), exchanges.interval(wishes.confidence));
        let row = &mut self.comparison;
        row.p_value = Some(exchanges.p_value(0.0));
        row.p_equivalent = row.margin.map(|margin| {
            let (low, high) = row.scale.margin(margin);
            exchanges.p_equivalent(low, high)
        });
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
            to(difference).map(|value| Effect { value, interval })
        };
        let scale = row.scale;
        row.relative = effect(&|difference| scale.relative(difference));
        row.difference = effect(&|difference| Some(scale.absolute(difference, baseline)));
    }

    /// Its verdict, where the test refuses at `alpha` after adjustment; `alpha_next` is what the next row of the table
    /// would have to reach.
    fn judge(&mut self, alpha: f64, alpha_next: f64, over: Over) {
        let Some(exchanges) = &self.exchanges else { return };
        let row = &mut self.comparison;
        let refused = |p: Option<f64>| p.is_some_and(|p| is_refused(p, alpha));
        row.verdict = match (refused(row.p_equivalent), refused(row.adjusted_p_value)) {
            (true, _) => Verdict::Equivalent,
            (false, true) if exchanges.difference() > 0.0 => Verdict::Higher,
            (false, true) => Verdict::Lower,
            (false, false) => Verdict::Undecided,
        };
        if row.verdict != Verdict::Undecided {
            return;
        }
        let margin = row.margin.map(|margin| row.scale.margin(margin));
        let aims = [
            runs_needed(&self.blocks, Aim::Difference, alpha_next),
            margin.and_then(|(low, high)| runs_needed(&self.blocks, Aim::Equivalence { low, high }, alpha)),
        ];
        let runs_needed = aims.into_iter().flatten().min().filter(|_| over == Over::Blocks);
        // twice the smallest tail that this many exchanges can have
        let least = 2.0 / exchanges.total() as f64;
        row.undecided = Some(match is_refused(least, alpha) {
            true => Undecided::Unsure { runs_needed },
            false => Undecided::TooFewRuns { runs_needed },
        });
    }
}

/// Gives every row its adjusted p and its verdict: the family is the table.
pub(super) fn decide(rows: &mut [Row], wishes: &ComparisonWishes) {
    let alpha = 1.0 - wishes.confidence;
    let p: Vec<f64> = rows.iter().filter_map(|row| row.comparison.p_value).collect();
    let adjusted = holm(&p);
    let decided = adjusted.iter().filter(|p| is_refused(**p, alpha)).count();
    let alpha_next = alpha / (adjusted.len() - decided).max(1) as f64;
    let tested = rows.iter_mut().filter(|row| row.comparison.p_value.is_some());
    for (row, adjusted) in tested.zip(adjusted) {
        row.comparison.adjusted_p_value = Some(adjusted);
        row.judge(alpha, alpha_next, wishes.over);
    }
}

/// The fewest boots whose signs can refuse at `alpha`: 2 / 2^boots is the smallest p they have.
fn boots_needed(alpha: f64) -> usize {
    (1..64).find(|boots| is_refused(2.0 / 2_f64.powi(*boots), alpha)).unwrap_or(64) as usize
}

fn value(run: &ObservedRun, question: &Question) -> Option<f64> {
    run.figures.get(question.subject).and_then(|figure| figure.value())
}

/// Whether figures are missing: a mean of what is infinite, or of fewer runs than were made, is no mean of the group.
fn missing(sides: [&RunGroup; 2], question: &Question) -> Option<Undecided> {
    let count = |wanted: RunFigure| {
        sides.map(|group| group.runs.iter().filter(|run| run.figures.get(question.subject) == Some(&wanted)).count())
    };
    let ([baseline, candidate], [nothing, nothing_either]) = (count(RunFigure::Lost), count(RunFigure::Nothing));
    if baseline + candidate > 0 {
        return Some(Undecided::Lost { baseline, candidate });
    }
    let runs = nothing + nothing_either;
    (runs > 0).then_some(Undecided::NoFigure { runs })
}

/// In how many boots the runs were made, as far as that is known.
fn count_boots(sides: [&RunGroup; 2]) -> usize {
    let runs = sides.into_iter().flat_map(|group| &group.runs);
    runs.filter_map(|run| run.place.boot.as_ref()).collect::<BTreeSet<_>>().len()
}

/// The runs of both sides by boot and block, in the order in which these were met; where the answer is for blocks, all
/// boots are one: runs without an experiment share a block even if the host was booted between them.
fn boots(
    groups: &RunGroups,
    sides: [&RunGroup; 2],
    question: &Question,
    (scale, over): (Scale, Over),
) -> Vec<Vec<BlockRuns>> {
    let mut boots = Vec::new();
    let mut found: Vec<Vec<(_, BlockRuns)>> = Vec::new();
    for (side, group) in sides.into_iter().enumerate() {
        for run in &group.runs {
            let Some(value) = value(run, question) else { continue };
            let boot = place_of(&mut boots, &run.place.boot.as_ref().filter(|_| over == Over::Boots));
            if found.len() <= boot {
                found.push(Vec::new());
            }
            let stratum = groups.stratum(run);
            let known = found[boot].iter().position(|(other, _)| *other == stratum);
            let block = known.unwrap_or_else(|| {
                found[boot].push((stratum, BlockRuns::default()));
                found[boot].len() - 1
            });
            let block = &mut found[boot][block].1;
            let runs = if side == 0 { &mut block.baseline } else { &mut block.candidate };
            runs.push(scale.from_figure(value));
        }
    }
    found.into_iter().map(|blocks| blocks.into_iter().map(|(_, block)| block).collect()).collect()
}

/// Where `wanted` stands among those seen so far; new ones come last.
fn place_of<T: Clone + PartialEq>(seen: &mut Vec<T>, wanted: &T) -> usize {
    seen.iter().position(|other| other == wanted).unwrap_or_else(|| {
        seen.push(wanted.clone());
        seen.len() - 1
    })
}
