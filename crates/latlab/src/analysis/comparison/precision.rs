//! Whether runs are enough: the rule by which an experiment stops (decision 0012.8).

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::group::RunGroup;
use super::observed_run::ObservedRun;
use super::scale::FigureScale;
use super::wishes::ComparisonOptions;
use crate::stats::{GroupBlocks, PrecisionGoal, reached};

/// Whether the interval of every difference from the first group, or of the only group's own mean, reaches no more than
/// `half_width` to either side, a share of the value: 0.03 for ±3 %. Looks at the figure at `place` of each run, and at
/// widths only. Runs without that figure are never precise.
pub fn is_precise(groups: &[RunGroup], place: usize, half_width: f64, wishes: &ComparisonOptions) -> bool {
    let value = |run: &ObservedRun| run.figures.get(place).and_then(|figure| figure.value());
    let runs = || groups.iter().flat_map(|group| &group.runs);
    if runs().any(|run| value(run).is_none()) {
        return false;
    }
    let scale = FigureScale::of(runs().filter_map(value), false);
    let baseline: Vec<f64> = groups.iter().take(1).flat_map(|group| &group.runs).filter_map(value).collect();
    let size = (baseline.iter().sum::<f64>() / baseline.len().max(1) as f64).abs();
    let mut blocks: Vec<_> = runs().map(|run| &run.place.block).collect();
    blocks.sort();
    blocks.dedup();
    let of_group = |group: &RunGroup| -> GroupBlocks {
        let of_block = |block: &&Option<(String, u32)>| {
            let own = group.runs.iter().filter(|run| run.place.block == **block);
            own.filter_map(value).map(|value| scale.from_figure(value)).collect()
        };
        blocks.iter().map(of_block).collect()
    };
    let values: Vec<GroupBlocks> = groups.iter().map(of_group).collect();
    let goal = PrecisionGoal {
        half_width: scale.half_width(half_width, size),
        confidence: wishes.confidence,
        draws: wishes.draws,
    };
    reached(&values, goal, &mut Pcg64Mcg::seed_from_u64(wishes.seed))
}
