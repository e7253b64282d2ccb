//! When is a comparison precise enough to stop measuring? The widths of intervals are looked at, and nothing else:
//! moving a group as a whole changes no width, so that stopping tells nothing about differences (decision 0012).

use rand::Rng;

use super::deviate::student;
use super::exchange::{BlockRuns, Exchanges, mean};
use super::interval::Interval;

/// How narrow an interval shall be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WidthGoal {
    /// Half of its width, on the scale of the values.
    pub half_width: f64,
    /// Its confidence.
    pub confidence: f64,
    /// Exchanges to draw for it, such as [`DRAWS`](super::DRAWS).
    pub draws: u32,
}

/// Fewer runs of a group than this do not know how wide their interval should be.
pub const RUNS_MIN: usize = 10;

/// The values of one group, block by block.
pub type GroupBlocks = Vec<Vec<f64>>;

/// Whether the interval of every difference from the first of `groups` reaches the goal; of a single group, the interval
/// of its own mean. Each group has the same blocks, and at least [`RUNS_MIN`] runs.
pub fn reached(groups: &[GroupBlocks], goal: WidthGoal, random: &mut impl Rng) -> bool {
    let runs = |group: &GroupBlocks| group.iter().map(Vec::len).sum::<usize>();
    if groups.is_empty() || groups.iter().any(|group| runs(group) < RUNS_MIN) {
        return false;
    }
    let is_narrow = |interval: Option<Interval>| {
        let width = interval.and_then(|interval| Some(interval.high? - interval.low?));
        width.is_some_and(|width| width <= 2.0 * goal.half_width)
    };
    match groups {
        [own] => is_narrow(own_interval(own, goal.confidence)),
        [baseline, others @ ..] => others.iter().all(|other| is_narrow(of_difference(baseline, other, goal, random))),
        [] => false,
    }
}

fn of_difference(
    baseline: &GroupBlocks,
    candidate: &GroupBlocks,
    goal: WidthGoal,
    random: &mut impl Rng,
) -> Option<Interval> {
    let both = |(baseline, candidate): (&Vec<f64>, &Vec<f64>)| BlockRuns {
        baseline: baseline.clone(),
        candidate: candidate.clone(),
    };
    let blocks: Vec<BlockRuns> = baseline.iter().zip(candidate).map(both).collect();
    Some(Exchanges::of(&blocks, goal.draws, random)?.interval(goal.confidence))
}

/// The interval of a group's own mean, for these blocks: mean ± t · standard deviation within blocks / √runs. None where
/// no block has two runs.
pub fn own_interval(group: &GroupBlocks, confidence: f64) -> Option<Interval> {
    let blocks: Vec<&Vec<f64>> = group.iter().filter(|block| !block.is_empty()).collect();
    let runs = blocks.iter().map(|block| block.len()).sum::<usize>() as f64;
    let freedom = runs - blocks.len() as f64;
    if freedom <= 0.0 {
        return None;
    }
    let squares = |block: &[f64]| {
        let centre = mean(block);
        block.iter().map(|value| (value - centre).powi(2)).sum::<f64>()
    };
    let variance = blocks.iter().map(|block| squares(block)).sum::<f64>() / freedom;
    let centre = blocks.iter().map(|block| block.iter().sum::<f64>()).sum::<f64>() / runs;
    let reach = student(0.5 + confidence / 2.0, freedom) * (variance / runs).sqrt();
    Some(Interval { low: Some(centre - reach), high: Some(centre + reach), confidence })
}
