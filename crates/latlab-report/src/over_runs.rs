//! Figures of a condition over its runs, as cells of tables: the median of the figures of the runs, and below it how far
//! that median is known. A run is one observation; its own interval says nothing about other runs.

use super::quantiles::{Cells, cells, cells_over_runs, column_above, column_of_two};
use super::view::{ColumnView, RowView};
use crate::analysis::Summary;
use crate::analysis::comparison::levels_of_run;
use crate::analysis::experiment::ColumnFigure;
use crate::metric::Metric;
use crate::plan::Factors;
use crate::plan::defaults::CONFIDENCE;
use crate::recipe::Column;
use crate::stats::{Description, median_interval};
use crate::units::human::{ABSENT, grouped, percent};

/// A row of a table: one run, or the runs of a condition.
#[derive(Clone, Debug)]
pub(super) struct TableRow<'a> {
    /// Name of the run or of the condition.
    pub(super) label: String,
    /// The name of its condition; empty if that has none.
    pub(super) condition: &'a str,
    pub(super) runs: &'a [Summary],
    /// What stands below its medians; `None` for a single run.
    pub(super) bounds: Option<MedianBounds>,
}

impl<'a> TableRow<'a> {
    pub(super) fn of_run(name: String, run: &'a Summary) -> TableRow<'a> {
        TableRow { label: name, condition: "", runs: std::slice::from_ref(run), bounds: None }
    }

    /// The row of a condition with these `runs`; a condition without a name has the same levels as every other one.
    pub(super) fn of_condition(name: &'a str, runs: &'a [Summary]) -> TableRow<'a> {
        let label = if name.is_empty() { "all runs" } else { name };
        TableRow { label: label.into(), condition: name, runs, bounds: MedianBounds::of(runs) }
    }

    /// The descriptions of `metric` in its runs.
    pub(super) fn described(&self, metric: Metric) -> DescribedRuns<'a> {
        let runs = self.runs.iter().map(|run| run.metrics.get(&metric)).collect();
        DescribedRuns { runs, bounds: self.bounds }
    }

    /// The row and the quiet one below it.
    pub(super) fn views(&self) -> [RowView; 2] {
        let below = self.bounds.map(MedianBounds::words).unwrap_or_default();
        [RowView::of(&self.label), RowView::below(below)]
    }
}

/// The descriptions of one metric in the runs of a row.
#[derive(Clone, Debug)]
pub(super) struct DescribedRuns<'a> {
    /// One for each run; `None` without the metric.
    pub(super) runs: Vec<Option<&'a Description>>,
    bounds: Option<MedianBounds>,
}

impl<'a> DescribedRuns<'a> {
    pub(super) fn of_one(described: &'a Description) -> DescribedRuns<'a> {
        DescribedRuns { runs: vec![Some(described)], bounds: None }
    }
}

/// What stands below a median over runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MedianBounds {
    /// Its distribution-free interval, between two of the runs.
    Interval,
    /// The smallest and the largest figure of fewer than [`INTERVAL_RUNS_MIN`] runs, or of runs that differ in another factor:
    /// they are no sample of one condition.
    Range,
}

/// The fewest runs whose median has a distribution-free interval at 95 %: the extremes of five miss it with a probability of 1/16.
const INTERVAL_RUNS_MIN: usize = 6;

impl MedianBounds {
    /// Those of a condition with these `runs`; `None` of a single run.
    fn of(runs: &[Summary]) -> Option<MedianBounds> {
        let are_alike = || runs.windows(2).all(|pair| levels_of(&pair[0]) == levels_of(&pair[1]));
        match runs.len() {
            0 | 1 => None,
            INTERVAL_RUNS_MIN.. if are_alike() => Some(MedianBounds::Interval),
            _ => Some(MedianBounds::Range),
        }
    }

    fn words(self) -> String {
        match self {
            MedianBounds::Interval => format!("{} interval", percent(CONFIDENCE)),
            MedianBounds::Range => "range of runs".into(),
        }
    }

    /// `48.1–49.9`, once if both ends are shown alike; infinite ends are `∞`, and `∞` alone are both. Empty if there are no
    /// bounds.
    fn cell(self, figures: &[ColumnFigure], shown: impl Fn(f64) -> String) -> String {
        let mut values = ColumnFigure::values(figures);
        let [low, high] = match self {
            MedianBounds::Interval if values.len() < INTERVAL_RUNS_MIN => [None; 2],
            // So many values have no interval only if both of its ends are infinite.
            MedianBounds::Interval => median_interval(&mut values, CONFIDENCE)
                .map_or([Some(f64::INFINITY), None], |ends| [ends.low, ends.high]),
            MedianBounds::Range if values.len() < 2 => [None; 2],
            MedianBounds::Range => [f64::min, f64::max].map(|of| values.iter().copied().reduce(of)),
        };
        match (low, high.filter(|high| high.is_finite())) {
            (None, _) => String::new(),
            (Some(f64::INFINITY), _) => INFINITE.into(),
            (Some(low), Some(high)) => joined(&shown(low), &shown(high)),
            (Some(low), None) => format!("{}–{INFINITE}", shown(low)),
        }
    }
}

/// The levels of the factors of `run`.
fn levels_of(run: &Summary) -> Factors {
    levels_of_run(&run.spec, run.experiment.as_ref())
}

/// An end of an interval among the lost.
const INFINITE: &str = "∞";

/// Both ends of an interval, once if they are alike; a unit that they share stands once: `41.2–42.0 Gbit/s`.
fn joined(low: &str, high: &str) -> String {
    if low == high {
        return low.into();
    }
    let unit = |end: &str| end.split_once(' ').map(|(_, unit)| unit.to_owned());
    let low = match low.split_once(' ') {
        Some((number, _)) if unit(low) == unit(high) => number,
        _ => low,
    };
    format!("{low}–{high}")
}

/// The median of the `figures` of the runs of a row, and its `bounds`; of a single run its figure.
pub(super) fn median_cells(
    bounds: Option<MedianBounds>,
    figures: &[ColumnFigure],
    shown: impl Fn(f64) -> String,
) -> Cells {
    let median = ColumnFigure::median(figures);
    match bounds {
        Some(bounds) => {
            let [median, _] = cells_over_runs(median, &shown);
            [median, bounds.cell(figures, shown)]
        }
        None => cells(median, shown),
    }
}

pub(super) fn runs_of(counts: impl Iterator<Item = usize>) -> ColumnView {
    column_above("runs", counts.map(|runs| grouped(runs as u64)))
}

/// A column for each of `columns` with a row for each condition: the extremes of all runs in `min` and `max`, else medians of
/// the runs.
pub(super) fn columns_over_runs(
    rows: &[DescribedRuns<'_>],
    columns: &[Column],
    shown: &dyn Fn(f64) -> String,
) -> Vec<ColumnView> {
    let figures = |row: &DescribedRuns<'_>, column: Column| -> Vec<ColumnFigure> {
        let of_run = |run: &Option<&Description>| match run {
            Some(described) => ColumnFigure::of(column, described),
            None => ColumnFigure::Nothing,
        };
        row.runs.iter().map(of_run).collect()
    };
    let extremes = |column: Column, of: fn(f64, f64) -> f64| {
        let extreme = |row: &DescribedRuns<'_>| ColumnFigure::values(&figures(row, column)).into_iter().reduce(of);
        let cells = rows.iter().map(|row| extreme(row).map_or_else(|| ABSENT.into(), shown));
        column_above(&heading(column), cells)
    };
    let cells = |row: &DescribedRuns<'_>, column: Column| median_cells(row.bounds, &figures(row, column), shown);
    let view = |column: &Column| match column {
        Column::Min => extremes(*column, f64::min),
        Column::Max => extremes(*column, f64::max),
        _ => column_of_two(&heading(*column), rows.iter().map(|row| cells(row, *column))),
    };
    columns.iter().map(view).collect()
}

/// The heading of a column as in the tables of runs.
pub(super) fn heading(column: Column) -> String {
    if column == Column::Stddev { "stddev".into() } else { column.heading() }
}

/// Stands below the first table of conditions.
pub(super) const LEGEND: &str = "\
min and max: extremes of all runs; n and lost: sums over the runs; other figures: median of the figures of the runs
95 % interval: of that median, between two of the runs (order statistics; runs count as independent)
range of runs: smallest and largest figure of fewer than 6 runs, or of runs that differ in another factor
( ) in one run or more too few effective observations beyond it; lost: among the lost probes of half of the runs or more
∞ the figure of a run lies among its lost probes; alone: at both ends";

#[cfg(test)]
mod tests {
    use super::ColumnFigure::{Known, Lost, Nothing};
    use super::*;
    use crate::analysis::in_memory::{CLOSED, InMemory, closed, cpu_load};
    use crate::analysis::{SummaryOptions, summarise};

    fn cells(figures: &[ColumnFigure]) -> Cells {
        let runs = vec![run(None); figures.len()];
        median_cells(MedianBounds::of(&runs), figures, |value| format!("{value:.1}"))
    }

    /// A run with or without a load.
    fn run(load: Option<f64>) -> Summary {
        let source = InMemory::of(CLOSED, vec![closed(0, 0, 50)]);
        let mut summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
        summary.spec.loads = load.map(cpu_load).into_iter().collect();
        summary
    }

    #[test]
    fn runs_that_differ_in_a_factor_have_a_range() {
        let alike = vec![run(None); 6];
        let mixed = [vec![run(None); 6], vec![run(Some(0.2)); 6]].concat();
        let bounds = [alike, mixed].map(|runs| TableRow::of_condition("a", &runs).bounds);
        assert_eq!(bounds, [Some(MedianBounds::Interval), Some(MedianBounds::Range)]);
    }

    #[test]
    fn a_median_of_six_runs_has_an_interval_and_one_of_fewer_a_range() {
        let weak = |value| ColumnFigure::Unsupported { value, bound: Some(1.0) };
        let known = |values: &[f64]| values.iter().copied().map(Known).collect::<Vec<_>>();
        let five = known(&[5.0, 3.0, 1.0, 2.0, 4.0]);
        for (figures, expected) in [
            (vec![], ["–", ""]),
            (vec![Nothing, Nothing], ["–", ""]),
            (known(&[4.0]), ["4.0", ""]),
            (vec![Lost], ["lost", ""]),
            (known(&[4.0, 2.0]), ["3.0", "2.0–4.0"]),
            (five.clone(), ["3.0", "1.0–5.0"]),
            ([known(&[9.0; 2]), five.clone()].concat(), ["4.0", "1.0–9.0"]),
            // From the second to the ninth of ten.
            (known(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]), ["5.5", "2.0–9.0"]),
            (vec![Known(4.0), Lost, Known(2.0)], ["4.0", "2.0–∞"]),
            (vec![Known(4.0), Lost, Lost], ["lost", "4.0–∞"]),
            (vec![Known(4.0); 2], ["4.0", "4.0"]),
            (vec![Known(4.0); 7], ["4.0", "4.0"]),
            (vec![Lost; 7], ["lost", "∞"]),
            (vec![Lost; 2], ["lost", "∞"]),
            (vec![weak(None), Lost, Known(2.0)], ["lost", "2.0–∞"]),
            ([five.clone(), vec![Lost]].concat(), ["3.5", "1.0–∞"]),
            (vec![Known(4.0), weak(Some(7.0)), Known(2.0)], ["(4.0)", "2.0–7.0"]),
            (vec![Known(4.0), weak(None), Known(2.0)], ["(4.0)", "2.0–∞"]),
            // One of six runs has no figure, and five have no interval.
            ([five, vec![Nothing]].concat(), ["3.0", ""]),
            (vec![Known(4.0), Nothing], ["4.0", ""]),
        ] {
            assert_eq!(cells(&figures), expected.map(str::to_owned), "{figures:?}");
        }
    }

    #[test]
    fn six_runs_are_the_fewest_with_an_interval() {
        let has_interval = |runs: usize| median_interval(&mut vec![1.0; runs], CONFIDENCE).is_some();
        assert!(has_interval(INTERVAL_RUNS_MIN) && !has_interval(INTERVAL_RUNS_MIN - 1));
    }

    #[test]
    fn a_unit_that_both_ends_share_stands_once() {
        for (low, high, expected) in [
            ("41.2 Gbit/s", "42.0 Gbit/s", "41.2–42.0 Gbit/s"),
            ("980 Mbit/s", "1.02 Gbit/s", "980 Mbit/s–1.02 Gbit/s"),
            ("< 0.001 %", "0.2 %", "< 0.001 %–0.2 %"),
            ("41.2", "42.0", "41.2–42.0"),
            ("42.0 Gbit/s", "42.0 Gbit/s", "42.0 Gbit/s"),
            ("0 %", "0 %", "0 %"),
        ] {
            assert_eq!(joined(low, high), expected);
        }
    }
}
