//! Whether runs are precise enough: the stop rule of an experiment (decision 0012.8).

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::groups::RunGroup;
use super::observed_run::ObservedRun;
use super::request::ComparisonOptions;
use super::verdict::FigureScale;
use crate::stats::{GroupBlocks, PrecisionGoal, reached};

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
