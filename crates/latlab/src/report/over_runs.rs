//! Figures of a condition over its runs, as cells of tables: the median of the figures of the runs, and below it how far
//! that median is known. A run is one observation; its own interval says nothing about other runs.

use super::quantiles::{Cells, LOST, ShownQuantile, column_above, column_of_two};
use super::view::{ColumnView, RowView, TableView};
use crate::analysis::Summary;
use crate::analysis::experiment::ColumnFigure;
use crate::metric::Metric;
use crate::plan::defaults::CONFIDENCE;
use crate::recipe::Column;
use crate::stats::{Description, median_interval};
use crate::units::human::{ABSENT, counted, grouped, percent};

/// A row of a table: one run, or the runs of a condition.
#[derive(Clone, Debug)]
pub(super) struct TableRow<'a> {
    /// Name of the run or of the condition.
    pub(super) label: String,
    /// Label of the quiet row below it, which may be empty.
    pub(super) below: String,
    /// Its runs.
    pub(super) runs: &'a [Summary],
}

impl<'a> TableRow<'a> {
    /// The row of one run.
    pub(super) fn of_run(name: String, run: &'a Summary) -> TableRow<'a> {
        TableRow { label: name, below: String::new(), runs: std::slice::from_ref(run) }
    }

    /// The row of a condition with these `runs`; a condition without a name has the same levels as every other one.
    pub(super) fn of_condition(name: &str, runs: &'a [Summary]) -> TableRow<'a> {
        let below = MedianBounds::of(runs.len()).map(MedianBounds::words).unwrap_or_default();
        TableRow { label: if name.is_empty() { "all runs".into() } else { name.into() }, below, runs }
    }

    /// The descriptions of `metric` in its runs.
    pub(super) fn described(&self, metric: Metric) -> DescribedRuns<'a> {
        self.runs.iter().map(|run| run.metrics.get(&metric)).collect()
    }

    /// The row and the quiet one below it.
    pub(super) fn views(&self) -> [RowView; 2] {
        let view = |label: &str, quiet| RowView { label: label.into(), quiet };
        [view(&self.label, false), view(&self.below, true)]
    }
}

/// The descriptions of one metric in the runs of a row, `None` for a run without it.
pub(super) type DescribedRuns<'a> = Vec<Option<&'a Description>>;

/// What stands below a median over runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MedianBounds {
    /// Its distribution-free interval, between two of the runs.
    Interval,
    /// The smallest and the largest figure of fewer than [`INTERVAL_RUNS_MIN`] runs.
    Range,
}

/// The fewest runs whose median has a distribution-free interval at 95 %: the extremes of five miss it with a probability of 1/16.
const INTERVAL_RUNS_MIN: usize = 6;

impl MedianBounds {
    /// Those of a condition with so many runs; `None` of a single run.
    fn of(runs: usize) -> Option<MedianBounds> {
        match runs {
            0 | 1 => None,
            INTERVAL_RUNS_MIN.. => Some(MedianBounds::Interval),
            _ => Some(MedianBounds::Range),
        }
    }

    fn words(self) -> String {
        match self {
            MedianBounds::Interval => format!("{} interval", percent(CONFIDENCE)),
            MedianBounds::Range => "range of runs".into(),
        }
    }

    /// The meaning of [`MedianBounds::words`].
    fn legend(self) -> String {
        let (words, interval) = (self.words(), MedianBounds::Interval.words());
        match self {
            MedianBounds::Interval => format!(
                "{words}: of that median over runs, between two of the figures of the runs (order statistics; runs count as \
                 independent)"
            ),
            MedianBounds::Range => format!(
                "{words}: smallest and largest figure; the median of fewer than {} has no {interval}",
                counted(INTERVAL_RUNS_MIN, "run")
            ),
        }
    }

    /// `48.1–49.9`; infinite ends are `∞`, and `∞` alone are both. Empty if there are no bounds.
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

/// An end of an interval among the lost.
const INFINITE: &str = "∞";

/// Both ends of an interval; a unit that they share stands once: `41.2–42.0 Gbit/s`.
fn joined(low: &str, high: &str) -> String {
    let unit = |end: &str| end.split_once(' ').map(|(_, unit)| unit.to_owned());
    let low = match low.split_once(' ') {
        Some((number, _)) if unit(low) == unit(high) => number,
        _ => low,
    };
    format!("{low}–{high}")
}

/// The median of the `figures` of the runs of a row, and its bounds.
pub(super) fn median_cells(figures: &[ColumnFigure], shown: impl Fn(f64) -> String) -> Cells {
    // A median among the lost probes is `lost` with or without support: it has no figure to doubt.
    let median = match ColumnFigure::median(figures) {
        ColumnFigure::Unsupported { value: None, .. } => ColumnFigure::Lost,
        median => median,
    };
    let [median, _] = ShownQuantile::of_column(median).cells(&shown);
    let bounds = MedianBounds::of(figures.len());
    [median, bounds.map(|bounds| bounds.cell(figures, &shown)).unwrap_or_default()]
}

/// The column of the numbers of runs.
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
            Some(described) if described.n > 0 => ColumnFigure::of(column, described),
            _ => ColumnFigure::Nothing,
        };
        row.iter().map(of_run).collect()
    };
    let extremes = |column: Column, of: fn(f64, f64) -> f64| {
        let extreme = |row: &DescribedRuns<'_>| ColumnFigure::values(&figures(row, column)).into_iter().reduce(of);
        let cells = rows.iter().map(|row| extreme(row).map_or_else(|| ABSENT.into(), shown));
        column_above(&heading(column), cells)
    };
    let view = |column: &Column| match column {
        Column::Min => extremes(*column, f64::min),
        Column::Max => extremes(*column, f64::max),
        _ => column_of_two(&heading(*column), rows.iter().map(|row| median_cells(&figures(row, *column), shown))),
    };
    columns.iter().map(view).collect()
}

/// The heading of a column as in the tables of runs.
fn heading(column: Column) -> String {
    if column == Column::Stddev { "stddev".into() } else { column.heading() }
}

/// Explains the cells of `tables`, whose rows are conditions, each below the first table that has such cells.
pub(super) fn explain_medians(tables: &mut [TableView]) {
    let [interval, range] = [MedianBounds::Interval, MedianBounds::Range];
    let has_row = |table: &TableView, bounds: MedianBounds| table.rows.iter().any(|row| row.label == bounds.words());
    let has_extremes = |table: &TableView| columns_of(table).any(|column| column.heading == Column::Min.heading());
    let has_cell = |table: &TableView, is: fn(&String) -> bool| columns_of(table).flat_map(|it| &it.cells).any(is);
    let mut explain = |has: &dyn Fn(&TableView) -> bool, line: &str| {
        if let Some(TableView { legend, .. }) = tables.iter_mut().find(|table| has(table)) {
            let end = if legend.is_empty() { "" } else { "\n" };
            *legend += &format!("{end}{line}");
        }
    };
    explain(&|table| !has_extremes(table), "each figure: median of the figures of the runs");
    explain(&has_extremes, "min and max: extremes of all runs; other figures: median of the figures of the runs");
    [interval, range].into_iter().for_each(|bounds| explain(&|table| has_row(table, bounds), &bounds.legend()));
    explain(&|table| has_cell(table, |cell| cell.starts_with('(')), UNSUPPORTED);
    explain(&|table| has_cell(table, |cell| cell == LOST), MEDIAN_IS_LOST);
    explain(&|table| has_cell(table, |cell| cell.ends_with(INFINITE)), FIGURE_IS_INFINITE);
}

const UNSUPPORTED: &str = "( ) in one run or more too few effective observations beyond it";
const MEDIAN_IS_LOST: &str =
    "lost: infinite, since the figures of half of the runs or more lie among their lost probes";
const FIGURE_IS_INFINITE: &str = "∞ the figure of a run lies among its lost probes; alone: at both ends";

fn columns_of(table: &TableView) -> impl Iterator<Item = &ColumnView> {
    table.groups.iter().flat_map(|group| &group.columns)
}

#[cfg(test)]
mod tests {
    use super::ColumnFigure::{Known, Lost, Nothing};
    use super::*;

    fn cells(figures: &[ColumnFigure]) -> Cells {
        median_cells(figures, |value| format!("{value:.1}"))
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
        ] {
            assert_eq!(joined(low, high), expected);
        }
    }
}
