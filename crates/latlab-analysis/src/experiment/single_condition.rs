//! The result of a single condition: the mean of each statistic over its runs, with the interval for these blocks.

use std::collections::BTreeMap;

use crate::comparison::{ObservedRun, Quantity, RunFigure};
use crate::stats::{Interval, own_interval};

#[derive(Clone, Debug, PartialEq)]
pub struct ConditionRow {
    pub quantity: Quantity,
    /// Runs with a finite figure.
    pub runs: usize,
    /// Runs with an infinite figure.
    pub lost: usize,
    /// Blocks of the runs with a finite figure.
    pub blocks: usize,
    /// The mean over runs; `None` if a figure is infinite.
    pub mean: Option<f64>,
    /// Whether the mean is geometric: all figures are above 0, and they are not shares.
    pub is_geometric: bool,
    /// The interval of the mean; `None` if no block has two runs.
    pub interval: Option<Interval>,
}

/// Describes `runs`, whose figures have the order of `quantities`.
pub fn single_condition(runs: &[ObservedRun], quantities: &[Quantity], confidence: f64) -> Vec<ConditionRow> {
    let row = |(place, quantity): (usize, &Quantity)| {
        let figure = |run: &ObservedRun| run.figures.get(place).copied().unwrap_or(RunFigure::Nothing);
        let mut blocks: BTreeMap<Option<&(String, u32)>, Vec<f64>> = BTreeMap::new();
        for run in runs {
            if let Some(value) = figure(run).value() {
                blocks.entry(run.origin.block.as_ref()).or_default().push(value);
            }
        }
        let step = ObservedRun::clock_step(runs, place);
        let lost = runs.iter().filter(|run| figure(run) == RunFigure::Infinite).count();
        let values: Vec<Vec<f64>> = blocks.into_values().collect();
        let (count, blocks) = (values.iter().map(Vec::len).sum::<usize>(), values.len());
        let MeanOfRuns { mean, is_geometric, interval } = MeanOfRuns::of(values, quantity.is_share(), step, confidence);
        let is_whole = count > 0 && lost == 0;
        ConditionRow {
            quantity: *quantity,
            runs: count,
            lost,
            blocks,
            mean: is_whole.then_some(mean),
            is_geometric,
            interval: interval.filter(|_| is_whole),
        }
    };
    quantities.iter().enumerate().map(row).collect()
}

/// The mean of a figure over runs, geometric if all are above 0 and no share, and its interval in these blocks; if all are
/// equal a step of the clock wider at both ends.
pub(crate) struct MeanOfRuns {
    pub(crate) mean: f64,
    is_geometric: bool,
    pub(crate) interval: Option<Interval>,
}

impl MeanOfRuns {
    pub(crate) fn of(mut blocks: Vec<Vec<f64>>, is_share: bool, step: f64, confidence: f64) -> MeanOfRuns {
        let is_geometric = !is_share && blocks.iter().flatten().all(|value| *value > 0.0);
        if is_geometric {
            blocks.iter_mut().flatten().for_each(|value| *value = value.ln());
        }
        let is_constant = blocks.concat().windows(2).all(|pair| pair[0] == pair[1]);
        let step = if is_constant { step } else { 0.0 };
        let back = |value: f64| if is_geometric { value.exp() } else { value };
        let count = blocks.iter().map(Vec::len).sum::<usize>();
        let mean = back(blocks.iter().flatten().sum::<f64>() / count as f64);
        let interval = own_interval(&blocks, confidence);
        let interval =
            interval.map(|ends| Interval { low: ends.low.map(back), high: ends.high.map(back), ..ends }.widened(step));
        MeanOfRuns { mean, is_geometric, interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(block: u32, figure: RunFigure) -> ObservedRun {
        let mut run = ObservedRun::bare("r".into(), 0.0);
        run.origin.block = Some(("e".into(), block));
        run.figures = vec![figure];
        run
    }

    fn finite(value: f64) -> RunFigure {
        RunFigure::Finite { value, supported: true }
    }

    #[test]
    fn a_mean_has_an_interval() {
        let runs = [run(1, finite(1.0)), run(1, finite(4.0)), run(2, finite(2.0)), run(2, finite(2.0))];
        let [row] = &single_condition(&runs, &[Quantity::Value], 0.95)[..] else { panic!("one") };
        assert_eq!((row.runs, row.blocks, row.lost, row.is_geometric), (4, 2, 0, true));
        assert!((row.mean.expect("a mean") - 2.0).abs() < 1e-12, "the geometric mean of 1, 4, 2, 2: {row:?}");
        // ln: deviations ±ln 2 in one block, 0 in the other; 2 degrees of freedom, t 4.3027, s² = ln² 2, s/√4
        let reach = 4.302_65 * 2_f64.ln() / 2.0;
        let ends = row.interval.expect("two runs a block");
        assert!((ends.high.expect("an end") / (2.0 * reach.exp()) - 1.0).abs() < 1e-4, "{ends:?}");
    }

    #[test]
    fn the_mean_of_figures_with_a_zero_is_arithmetic() {
        let [row] = &single_condition(&[run(1, finite(0.0)), run(1, finite(4.0))], &[Quantity::Value], 0.95)[..] else {
            panic!("one")
        };
        assert_eq!((row.mean, row.is_geometric), (Some(2.0), false));
    }

    #[test]
    fn one_run_per_block_has_no_interval_and_an_infinite_figure_no_mean() {
        let [row] = &single_condition(&[run(1, finite(1.0)), run(2, finite(4.0))], &[Quantity::Value], 0.95)[..] else {
            panic!("one")
        };
        assert_eq!((row.mean, row.interval), (Some(2.0), None));
        let lost = [run(1, finite(1.0)), run(1, finite(4.0)), run(1, RunFigure::Infinite)];
        let [row] = &single_condition(&lost, &[Quantity::Value], 0.95)[..] else { panic!("one") };
        assert_eq!((row.runs, row.lost, row.mean, row.interval), (2, 1, None, None));
    }
}
