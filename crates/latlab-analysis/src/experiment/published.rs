//! The figures of a publication, computed from runs of latlab: of each run with the mean of the runs, or over runs.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::Summary;
use crate::comparison::{FigureScale, ObservedRun, boots_needed};
use crate::facts::load::CPUS;
use crate::facts::{ExcludedCondition, LoadReport, RecipeFacts, XdpEnds};
use crate::plan::defaults::{CONFIDENCE, CONFIDENCE_PERCENT, MINISTAT_VALUES_MIN};
use crate::plan::{Experiment, Factors, RunSpec};
use crate::published::by_mistake;
use crate::recipe::{Column, FiguresOf, Published, PublishedRow};
use crate::stats::MinistatTest;
use crate::stats::{BoxPlot, Description, MeanDifference, Outline, between_blocks, observations_needed};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnFigure {
    Known(f64),
    /// A quantile that the run does not support.
    Unsupported {
        /// The value in the sample, `None` if it is infinite.
        value: Option<f64>,
        /// Its one-sided 95 % lower bound, if one exists.
        bound: Option<f64>,
        /// Whether the run has too few values for it, however independent they are.
        is_small: bool,
    },
    /// The quantile is infinite, as it lies among the lost.
    Lost,
    /// The run has nothing to compute it from.
    Nothing,
}

impl ColumnFigure {
    /// The figure of `column` for a described run, in the unit of its singletons.
    pub fn of(column: Column, description: &Description) -> ColumnFigure {
        let known = |value: Option<f64>| value.map_or(ColumnFigure::Nothing, ColumnFigure::Known);
        match column {
            Column::Median => ColumnFigure::of(Column::Quantile(0.5), description),
            Column::Min => known(description.min),
            Column::Max => known(description.max),
            Column::Mean => known(description.mean),
            Column::Stddev => known(description.stddev),
            Column::Quantile(_) if description.n == 0 => ColumnFigure::Nothing,
            Column::Quantile(q) => match description.quantiles.iter().find(|own| own.q == q) {
                Some(own) if own.is_surely_lost() => ColumnFigure::Lost,
                Some(own) if own.supported => known(own.value),
                Some(own) => ColumnFigure::Unsupported {
                    value: own.value,
                    bound: own.lower_bound,
                    is_small: description.n < observations_needed(q),
                },
                None => ColumnFigure::Nothing,
            },
        }
    }

    #[must_use]
    pub fn doubled(self) -> ColumnFigure {
        let twice = |value: Option<f64>| value.map(|value| 2.0 * value);
        match self {
            ColumnFigure::Known(value) => ColumnFigure::Known(2.0 * value),
            ColumnFigure::Unsupported { value, bound, is_small } => {
                ColumnFigure::Unsupported { value: twice(value), bound: twice(bound), is_small }
            }
            other => other,
        }
    }

    /// The figure of `column` for observations that are runs.
    pub fn of_runs(column: Column, outline: &Outline) -> ColumnFigure {
        ColumnFigure::Known(match column {
            Column::Min => outline.min,
            Column::Max => outline.max,
            Column::Mean => outline.mean,
            Column::Stddev => outline.stddev,
            Column::Median => outline.median,
            // A few dozen runs support no quantile but the median.
            Column::Quantile(_) => return ColumnFigure::Nothing,
        })
    }

    /// The mean of the runs on `scale`; of one run its figure. Several runs differ by what depends within one, so that a mean
    /// lacks support only if a run has too few values, and has no bound; it is lost if a figure is infinite.
    pub fn mean(runs: &[ColumnFigure], scale: FigureScale) -> ColumnFigure {
        let known: Vec<ColumnFigure> = runs.iter().copied().filter(|run| *run != ColumnFigure::Nothing).collect();
        if let [one] = known[..] {
            return one;
        }
        let Some(mean) = scale.mean(&ColumnFigure::values(&known)) else { return ColumnFigure::Nothing };
        match known.iter().any(|run| matches!(run, ColumnFigure::Unsupported { is_small: true, .. })) {
            _ if !mean.is_finite() => ColumnFigure::Lost,
            true => ColumnFigure::Unsupported { value: Some(mean), bound: None, is_small: true },
            false => ColumnFigure::Known(mean),
        }
    }

    /// The values of the runs that have one, with or without support; those of lost ones are +∞.
    pub fn values(runs: &[ColumnFigure]) -> Vec<f64> {
        runs.iter().filter(|run| **run != ColumnFigure::Nothing).map(|run| run.value_or_infinite()).collect()
    }

    fn value_or_infinite(self) -> f64 {
        match self {
            ColumnFigure::Known(value) => value,
            ColumnFigure::Unsupported { value, .. } => value.unwrap_or(f64::INFINITY),
            ColumnFigure::Lost | ColumnFigure::Nothing => f64::INFINITY,
        }
    }

    /// The figure in a unit of `unit` of the old one.
    pub(crate) fn in_units_of(self, unit: f64) -> ColumnFigure {
        let scaled = |value: Option<f64>| value.map(|value| value / unit);
        match self {
            ColumnFigure::Known(value) => ColumnFigure::Known(value / unit),
            ColumnFigure::Unsupported { value, bound, is_small } => {
                ColumnFigure::Unsupported { value: scaled(value), bound: scaled(bound), is_small }
            }
            other => other,
        }
    }
}

/// A publication and the figures measured for its rows.
#[derive(Clone, Debug)]
pub struct PublishedResults {
    pub published: &'static Published,
    /// Where its rows were measured; several have a joint table.
    pub systems: Vec<MeasuredSystem>,
    pub recipe: RecipeFacts,
}

impl PublishedResults {
    /// Whether several pairs of hosts have runs.
    pub fn is_joint(&self) -> bool {
        self.systems.len() > 1
    }
}

#[derive(Clone, Debug)]
pub struct MeasuredSystem {
    /// `here`, or the hosts of its runs.
    pub name: String,
    /// For each row of the publication its measured figures, or why there are none.
    pub rows: Vec<Result<MeasuredRow, Unmeasured>>,
}

/// The measured figures of a row of a publication.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredRow {
    /// Column by column, in the unit of the publication: means of the runs, or statistics over runs.
    pub figures: Vec<ColumnFigure>,
    /// The difference to the first row; `None` unless figures are over runs, and there are enough of both.
    pub against_first: Option<MeanDifference>,
    pub runs: usize,
    /// Probes, packets or wake-ups of a run, the most.
    pub singletons: u64,
    /// Lost ones of all runs.
    pub lost: u64,
    /// The ways in which its runs passed the network stack by.
    pub xdp: BTreeSet<XdpEnds>,
    pub load: Option<ReachedLoad>,
    /// Of a publication with a mistake: what the mistake makes of the runs.
    pub mistaken: Option<MistakenFigures>,
}

/// The load of a row, as the mean over its runs and ends.
#[derive(Clone, Debug, PartialEq)]
pub struct ReachedLoad {
    pub unit: String,
    pub achieved: f64,
    pub is_reached: bool,
}

/// The least share of what was offered that counts as all of it.
const REACHED: f64 = 0.95;

impl ReachedLoad {
    fn of(runs: &[Summary]) -> Option<ReachedLoad> {
        let loads: Vec<&LoadReport> = runs.iter().flat_map(|run| &run.loads).collect();
        let achieved: Vec<f64> = loads.iter().filter_map(|load| load.achieved).collect();
        let (first, mean) = (loads.first()?, achieved.iter().sum::<f64>() / achieved.len() as f64);
        // Heaters take what is left of all CPUs.
        let offered = first.offered.filter(|_| first.unit != CPUS);
        (!achieved.is_empty()).then(|| ReachedLoad {
            unit: first.unit.clone(),
            achieved: mean,
            is_reached: offered.is_none_or(|offered| mean >= REACHED * offered),
        })
    }
}

/// Means over the runs of a row, in the unit of the publication.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MistakenFigures {
    pub mean: f64,
    pub p999: f64,
    /// The correlation of neighbours, of all values as they are.
    pub lag_one: f64,
}

/// What the mistake of `lesson` makes of the singletons of `runs` in their order; `None` if it is about another one.
pub fn mistaken_figures(published: &Published, runs: &[Vec<i64>]) -> Option<MistakenFigures> {
    let code = published.lesson.mistake()?;
    let (half, unit) = (if published.half { 0.5 } else { 1.0 }, published.own_units);
    let of_run = |run: &Vec<i64>| {
        let values: Vec<f64> = run.iter().map(|value| *value as f64 * half).collect();
        let lag_one = lag_one(&values)?;
        let [mean, p999] = by_mistake(code, values);
        Some([mean? / unit, p999? / unit, lag_one])
    };
    let figures: Vec<[f64; 3]> = runs.iter().filter_map(of_run).collect();
    let mean = |place: usize| {
        let values: Vec<f64> = figures.iter().map(|run| run[place]).collect();
        FigureScale::of(values.iter().copied(), false).mean(&values)
    };
    let lag_one = figures.iter().map(|run| run[2]).sum::<f64>() / figures.len() as f64;
    Some(MistakenFigures { mean: mean(0)?, p999: mean(1)?, lag_one })
}

/// The correlation of each value with the next; `None` if they do not vary.
fn lag_one(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    (squares > 0.0).then(|| products / squares)
}

/// The means of `runs` of one row, column by column; `None` if no run has the metric.
pub fn means_of_runs(published: &Published, runs: &[Summary]) -> Option<MeasuredRow> {
    let unit = published.own_units * if published.half { 2.0 } else { 1.0 };
    let described: Vec<_> = runs.iter().filter_map(|run| run.metrics.get(&published.metric)).collect();
    let mean = |column: &Column| {
        let figures: Vec<_> = described.iter().map(|description| ColumnFigure::of(*column, description)).collect();
        let scale = FigureScale::of(ColumnFigure::values(&figures).into_iter(), false);
        ColumnFigure::mean(&figures, scale).in_units_of(unit)
    };
    (!described.is_empty()).then(|| MeasuredRow {
        figures: published.columns.iter().map(mean).collect(),
        against_first: None,
        runs: described.len(),
        singletons: runs.iter().map(|run| run.counts.sent).max().unwrap_or_default(),
        lost: described.iter().map(|description| description.lost).sum(),
        xdp: runs.iter().map(|run| run.xdp.clone()).filter(|ends| !ends.is_empty()).collect(),
        load: ReachedLoad::of(runs),
        mistaken: None,
    })
}

/// Why nothing was measured of a row of a publication.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unmeasured {
    #[error("not possible here: {0}")]
    Impossible(String),
    #[error("not measured yet")]
    NotYet,
    #[error("not a condition of this experiment")]
    NoCondition,
}

/// Why nothing was measured of `row`; `excluded` are the conditions that were dropped or impossible.
pub fn unmeasured_reason(
    published: &Published,
    row: &PublishedRow,
    experiment: &Experiment,
    excluded: &[&ExcludedCondition],
) -> Unmeasured {
    let is_its = |factors: &Factors| published.is_done_by(row, factors);
    match excluded.iter().find(|condition| is_its(&condition.factors)) {
        Some(condition) => Unmeasured::Impossible(condition.reason.clone()),
        None if experiment.conditions.iter().any(|condition| is_its(&condition.factors)) => Unmeasured::NotYet,
        None => Unmeasured::NoCondition,
    }
}

/// Quantiles in the columns of a publication for which the runs of an experiment are too short.
#[derive(Clone, Debug, PartialEq)]
pub struct ShortRuns {
    /// Probes or wake-ups of its shortest run.
    pub singletons: u64,
    /// Quantiles that so many do not support.
    pub unsupported: Vec<f64>,
}

/// The quantiles of `published` that the runs of `experiment` do not support; `None` if there are none, or if the length of
/// its runs is not known.
pub fn short_runs(experiment: &Experiment, published: &Published) -> Option<ShortRuns> {
    let runs = experiment.conditions.iter().flat_map(|condition| &condition.plan.runs);
    let singletons = runs.filter_map(singletons_at_most).min()?;
    let quantiles = published.columns.iter().filter_map(|column| column.quantile());
    let unsupported: Vec<f64> = quantiles.filter(|q| singletons < observations_needed(*q)).collect();
    let is_of_singletons = published.figures_of == FiguresOf::Singletons;
    (is_of_singletons && !unsupported.is_empty()).then_some(ShortRuns { singletons, unsupported })
}

/// Probes or wake-ups that `run` measures unless it is interrupted; `None` if that depends on what it measures.
fn singletons_at_most(run: &RunSpec) -> Option<u64> {
    let interval = run.schedule().interval().filter(|interval| interval.0 > 0);
    let in_time = run.stop.duration_ns.zip(interval).map(|(duration, interval)| (duration.0 / interval.0) as u64);
    run.stop.count.into_iter().chain(in_time).min()
}

/// The runs of a recipe by the rows of its publication, whose figures are over runs.
#[derive(Clone, Debug)]
pub struct RunsByRow {
    published: &'static Published,
    rows: Vec<Vec<ObservedRun>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RunSpread {
    /// The unit of all figures.
    pub unit: &'static str,
    /// Digits after the decimal point.
    pub decimals: usize,
    pub cells: Vec<SpreadCell>,
    /// Whether the first row has runs, and each row enough for a test against it.
    pub is_testable: bool,
    /// Boots in which the blocks were measured; `None` if unknown.
    pub boots: Option<usize>,
    /// Boots that a statement about boots needs.
    pub boots_needed: usize,
    /// Whether it shows figures without verdicts.
    pub is_rehearsal: bool,
}

/// The spread of the runs of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct SpreadCell {
    pub label: &'static str,
    pub observations: Vec<f64>,
    /// Of all of its runs.
    pub box_plot: BoxPlot,
    pub blocks: Vec<BlockMedian>,
    /// The share of the variance that lies between blocks; `None` if it cannot be estimated.
    pub between_blocks: Option<f64>,
}

/// The median of the runs of one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockMedian {
    /// From 1.
    pub block: u32,
    pub runs: usize,
    pub median: f64,
}

impl RunsByRow {
    /// Sorts `runs`, whose only figure is the mean of the published metric, by row.
    pub fn of(published: &'static Published, runs: &[ObservedRun]) -> RunsByRow {
        let of_row = |row: &PublishedRow| {
            let is_its = |run: &&ObservedRun| run.factors.as_ref().is_some_and(|own| published.is_done_by(row, own));
            runs.iter().filter(is_its).cloned().collect()
        };
        RunsByRow { published, rows: published.rows.iter().map(of_row).collect() }
    }

    /// Whether this is how to look at the runs of `published`.
    pub fn suits(published: &Published) -> bool {
        published.figures_of == FiguresOf::Runs
    }

    /// The runs of a row that have a figure, in the unit of the publication.
    fn figures(&self, row: usize) -> impl Iterator<Item = (&ObservedRun, f64)> {
        let runs = self.rows.get(row).into_iter().flatten();
        runs.filter_map(|run| Some((run, run.figures[0].value()? / self.published.own_units)))
    }

    fn outline(&self, row: usize) -> Option<Outline> {
        Outline::of(&mut self.figures(row).map(|(_, figure)| figure).collect::<Vec<_>>())
    }

    /// The measured figures of a row; `None` if no run of it has a figure.
    pub fn measured(&self, row: usize) -> Option<MeasuredRow> {
        let (runs, outline) = (&self.rows[row], self.outline(row)?);
        let first = self.outline(0).filter(|_| row > 0);
        let test = first.and_then(|first| MinistatTest::of(&first, &outline, CONFIDENCE_PERCENT));
        Some(MeasuredRow {
            figures: self.published.columns.iter().map(|column| ColumnFigure::of_runs(*column, &outline)).collect(),
            against_first: test.map(|test| test.answer()),
            runs: outline.n as usize,
            singletons: runs.iter().map(|run| run.losses.sent).max().unwrap_or_default(),
            lost: runs.iter().map(|run| run.losses.unanswered).sum(),
            xdp: BTreeSet::new(),
            load: None,
            mistaken: None,
        })
    }

    pub fn spread(&self) -> RunSpread {
        let boots: Option<BTreeSet<&str>> = self.rows.iter().flatten().map(|run| run.origin.boot.as_deref()).collect();
        let cells: Vec<SpreadCell> = (0..self.rows.len()).filter_map(|row| self.cell(row)).collect();
        let has_enough = |cell: &SpreadCell| cell.observations.len() >= MINISTAT_VALUES_MIN;
        RunSpread {
            unit: &self.published.unit,
            decimals: self.published.decimals,
            is_testable: self.figures(0).next().is_some() && cells.iter().all(has_enough),
            cells,
            boots: boots.map(|boots| boots.len()),
            boots_needed: boots_needed(1.0 - CONFIDENCE),
            is_rehearsal: false,
        }
    }

    fn cell(&self, row: usize) -> Option<SpreadCell> {
        let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (run, figure) in self.figures(row) {
            blocks.entry(run.origin.block.as_ref().map_or(1, |block| block.1)).or_default().push(figure);
        }
        let of_blocks: Vec<Vec<f64>> = blocks.values().cloned().collect();
        let median = |(block, runs): (&u32, &mut Vec<f64>)| {
            Some(BlockMedian { block: *block, runs: runs.len(), median: Outline::of(runs)?.median })
        };
        Some(SpreadCell {
            label: &self.published.rows[row].label,
            observations: of_blocks.concat(),
            box_plot: BoxPlot::of(&mut of_blocks.concat())?,
            blocks: blocks.iter_mut().filter_map(median).collect(),
            between_blocks: between_blocks(&of_blocks),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ColumnFigure::{self, Known, Lost, Nothing};
    use super::*;
    use crate::experiment::contrasts::tests::experiment;
    use crate::plan::RunsRule;
    use crate::recipe::find;

    #[test]
    fn the_mean_is_unsupported_or_lost_if_one_of_its_runs_is() {
        let weak = |value, is_small| ColumnFigure::Unsupported { value, bound: Some(1.0), is_small };
        let small = |value| ColumnFigure::Unsupported { value: Some(value), bound: None, is_small: true };
        for (runs, mean) in [
            (vec![Known(3.0), Known(1.0)], Known(2.0)),
            (vec![Known(3.0), Lost, Known(1.0)], Lost),
            (vec![Known(3.0), weak(Some(7.0), true)], small(5.0)),
            (vec![Known(3.0), weak(Some(7.0), false)], Known(5.0)),
            (vec![weak(None, true), weak(Some(6.0), true)], Lost),
            (vec![Nothing, Known(4.0)], Known(4.0)),
            (vec![], Nothing),
        ] {
            assert_eq!(ColumnFigure::mean(&runs, FigureScale::Linear), mean, "{runs:?}");
        }
        let geometric = ColumnFigure::mean(&[Known(1.0), Known(4.0)], FigureScale::Logarithmic);
        assert!(matches!(geometric, Known(mean) if (mean - 2.0).abs() < 1e-12), "{geometric:?}");
        let halved = weak(Some(3e6), true).in_units_of(1e6);
        assert!(matches!(halved, ColumnFigure::Unsupported { value: Some(3.0), .. }), "{halved:?}");
    }

    fn matrix() -> &'static Published {
        find("udp-loopback-matrix").and_then(|recipe| recipe.published.as_ref()).expect("published")
    }

    fn factors(row: &PublishedRow) -> Factors {
        row.factors.clone()
    }

    /// A run of a row in a block, of so many 10⁶ bit/s.
    fn run(row: usize, block: u32, figure: f64) -> ObservedRun {
        let mut run = ObservedRun::bare("r".into(), figure * 1e6);
        run.factors = Some(factors(&matrix().rows[row]));
        run.origin.block = Some(("e".into(), block));
        run.origin.boot = Some("boot".into());
        (run.losses.sent, run.losses.unanswered) = (100 + u64::from(block), 1);
        run
    }

    #[test]
    fn figures_over_runs_are_compared_with_the_first_row() {
        let runs = [900.0, 1_000.0, 1_100.0].map(|figure| run(0, 1, figure));
        let others = [500.0, 510.0, 520.0].map(|figure| run(3, 2, figure));
        let by_row = RunsByRow::of(matrix(), &[runs, others].concat());
        let first = by_row.measured(0).expect("three runs");
        assert_eq!((first.runs, first.singletons, first.lost, first.against_first), (3, 101, 3, None));
        assert_eq!(first.figures[..3], [900.0, 1_100.0, 1_000.0].map(ColumnFigure::Known));
        let fourth = by_row.measured(3).expect("three runs").against_first;
        assert!(matches!(fourth, Some(MeanDifference::Proven { percent, .. }) if percent == -49.0), "{fourth:?}");
        assert_eq!(by_row.measured(1), None);
    }

    #[test]
    fn a_spread_has_a_cell_for_each_row_with_runs() {
        let runs = [run(0, 1, 10.0), run(0, 1, 20.0), run(0, 2, 40.0), run(3, 1, 5.0), run(3, 2, 5.0), run(3, 2, 5.0)];
        let spread = RunsByRow::of(matrix(), &runs).spread();
        let [first, fourth] = spread.cells.as_slice() else { panic!("two rows: {spread:?}") };
        assert_eq!((first.label, fourth.label), ("v4, no checksum", "v4, no offload"));
        assert_eq!(first.observations, [10.0, 20.0, 40.0]);
        let median = |block, runs, median| BlockMedian { block, runs, median };
        assert_eq!(first.blocks, [median(1, 2, 15.0), median(2, 1, 40.0)]);
        assert_eq!((spread.boots, spread.is_testable), (Some(1), true));
        assert!(!RunsByRow::of(matrix(), &runs[..4]).spread().is_testable, "one run of the fourth row");
        assert!(!RunsByRow::of(matrix(), &runs[3..]).spread().is_testable, "no run of the first row");
    }

    #[test]
    fn an_unmeasured_row_has_a_reason() {
        let published = find("pi-udp-load").and_then(|recipe| recipe.published.as_ref()).expect("published");
        let [none, _, half, ..] = published.rows.as_slice() else { panic!("four rows and more") };
        let experiment = experiment(&["none", "cpu=20%"], RunsRule::PerBlock(1));
        let excluded = ExcludedCondition { factors: factors(half), reason: "no CPU to spare".into() };
        let reason = |row, excluded: &[&ExcludedCondition]| unmeasured_reason(published, row, &experiment, excluded);
        assert_eq!(reason(none, &[]), Unmeasured::NotYet);
        assert_eq!(reason(half, &[]), Unmeasured::NoCondition);
        assert_eq!(reason(half, &[&excluded]).to_string(), "not possible here: no CPU to spare");
    }

    #[test]
    fn a_mistake_is_repeated_on_the_runs() {
        let of = |recipe: &str, runs: &[Vec<i64>]| {
            let published = find(recipe).and_then(|recipe| recipe.published.as_ref()).expect("published");
            mistaken_figures(published, runs)
        };
        // Mean 2.2, of the distinct values 3; the geometric mean of the runs.
        let distinct = of("pi-roundtrip", &[vec![1_000, 1_000, 1_000, 3_000, 5_000], vec![2_000, 4_000]]);
        let MistakenFigures { mean, p999, lag_one } = distinct.expect("of distinct values");
        assert!((mean - 3.0).abs() < 1e-9 && (p999 - 4.469).abs() < 0.01, "{mean} {p999}");
        assert!(lag_one.abs() < 1.0);
        // Halves of 2 ms and 6 ms with the ids 1 and 2 ns.
        let with_ids = of("pi-udp-load", &[vec![2_000_000, 6_000_000]]).expect("with ids");
        assert!((with_ids.mean - 1.000_000_75).abs() < 1e-9, "{with_ids:?}");
        assert_eq!(of("dds-pingpong", &[vec![1, 2]]), None);
        let rising: Vec<f64> = (0..1_000).map(f64::from).collect();
        assert!(lag_one_of(&rising) > 0.99 && super::lag_one(&[1.0, 1.0]).is_none());
    }

    fn lag_one_of(values: &[f64]) -> f64 {
        super::lag_one(values).expect("they vary")
    }
}
