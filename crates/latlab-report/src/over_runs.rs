//! Figures of a condition over its runs, as cells of tables: the median of the figures of the runs, and below it how far
//! that median is known. A run is one observation; its own interval says nothing about other runs.

use std::collections::BTreeSet;

use super::quantiles::{Cells, LOST, ShownQuantile, column_above, column_of_two};
use super::view::{ColumnView, RowView, TableView};
use crate::analysis::Summary;
use crate::analysis::comparison::levels_of_run;
use crate::analysis::experiment::ColumnFigure;
use crate::metric::Metric;
use crate::plan::Factors;
use crate::plan::defaults::CONFIDENCE;
use crate::recipe::Column;
use crate::stats::{Description, median_interval};
use crate::units::human::{ABSENT, bytes, counted, few, grouped, listed, percent};

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
    /// The row of one run.
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
        [(self.label.clone(), false), (below, true)].map(|(label, quiet)| RowView { label, quiet })
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
    /// A part of one run.
    pub(super) fn of_one(described: &'a Description) -> DescribedRuns<'a> {
        DescribedRuns { runs: vec![Some(described)], bounds: None }
    }
}

/// What stands below a median over runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MedianBounds {
    /// Its distribution-free interval, between two of the runs.
    Interval,
    /// The smallest and the largest figure of fewer than [`INTERVAL_RUNS_MIN`] runs.
    Range,
    /// The same of any number of runs that differ in another factor: they are no sample of one condition.
    RangeOfMixed,
}

/// The fewest runs whose median has a distribution-free interval at 95 %: the extremes of five miss it with a probability of 1/16.
const INTERVAL_RUNS_MIN: usize = 6;

impl MedianBounds {
    /// Those of a condition with these `runs`; `None` of a single run.
    fn of(runs: &[Summary]) -> Option<MedianBounds> {
        match runs.len() {
            0 | 1 => None,
            _ if !differing_factors(runs).is_empty() => Some(MedianBounds::RangeOfMixed),
            INTERVAL_RUNS_MIN.. => Some(MedianBounds::Interval),
            _ => Some(MedianBounds::Range),
        }
    }

    fn words(self) -> String {
        match self {
            MedianBounds::Interval => format!("{} interval", percent(CONFIDENCE)),
            MedianBounds::Range => "range of runs".into(),
            MedianBounds::RangeOfMixed => "range of mixed runs".into(),
        }
    }

    /// The meaning of [`MedianBounds::words`] below the medians of `conditions`.
    fn legend(self, conditions: &[TableRow<'_>]) -> String {
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
            MedianBounds::RangeOfMixed => {
                let factors: BTreeSet<String> = conditions.iter().flat_map(|row| differing_factors(row.runs)).collect();
                let factors = few(&factors.into_iter().collect::<Vec<_>>());
                format!(
                    "{words}: smallest and largest figure of runs that differ in {factors}; they have no {interval}"
                )
            }
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
            _ if values.len() < 2 => [None; 2],
            _ => [f64::min, f64::max].map(|of| values.iter().copied().reduce(of)),
        };
        match (low, high.filter(|high| high.is_finite())) {
            (None, _) => String::new(),
            (Some(f64::INFINITY), _) => INFINITE.into(),
            (Some(low), Some(high)) => joined(&shown(low), &shown(high)),
            (Some(low), None) => format!("{}–{INFINITE}", shown(low)),
        }
    }
}

/// The factors in which `runs` differ.
fn differing_factors(runs: &[Summary]) -> BTreeSet<String> {
    let levels: Vec<_> = runs.iter().map(levels_of).collect();
    let mut factors = BTreeSet::new();
    for pair in levels.windows(2) {
        let [one, other] = [&pair[0], &pair[1]];
        let names = one.keys().chain(other.keys());
        factors.extend(names.filter(|factor| one.get(*factor) != other.get(*factor)).cloned());
    }
    // In the file of an experiment settings are the levels of one factor.
    if factors.contains("set") {
        factors.retain(|factor| !factor.starts_with("setting:"));
    }
    factors
}

/// The levels of the factors of `run`.
fn levels_of(run: &Summary) -> Factors {
    levels_of_run(&run.condition, run.experiment.as_ref())
}

/// The factor whose levels the labels of `conditions` are; `None` if they say more than levels, or if there is one condition.
pub(super) fn factor_of_labels(conditions: &[TableRow<'_>]) -> Option<String> {
    let is_level = |factor: &str, label: &str, run: &Summary| {
        let shown = |level: &String| match level.parse() {
            Ok(size) if factor == "size" => bytes(size) == label,
            _ => level == label,
        };
        levels_of(run).get(factor).is_some_and(shown)
    };
    let first = conditions.iter().find_map(|row| row.runs.first()).filter(|_| conditions.len() > 1)?;
    levels_of(first)
        .into_keys()
        .find(|factor| conditions.iter().all(|row| row.runs.iter().all(|run| is_level(factor, &row.label, run))))
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

/// The median of the `figures` of the runs of a row, and its `bounds`.
pub(super) fn median_cells(
    bounds: Option<MedianBounds>,
    figures: &[ColumnFigure],
    shown: impl Fn(f64) -> String,
) -> Cells {
    let [median, _] = ShownQuantile::of_column(ColumnFigure::median(figures)).cells(&shown);
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
fn heading(column: Column) -> String {
    if column == Column::Stddev { "stddev".into() } else { column.heading() }
}

/// Explains the cells of `tables`, whose rows are `conditions`, each below the first table that has such cells.
pub(super) fn explain_medians(tables: &mut [TableView], conditions: &[TableRow<'_>]) {
    let all_bounds = [MedianBounds::Interval, MedianBounds::Range, MedianBounds::RangeOfMixed];
    let counts = counts_of(tables);
    let has_row = |table: &TableView, bounds: MedianBounds| table.rows.iter().any(|row| row.label == bounds.words());
    let has_cell = |table: &TableView, is: fn(&String) -> bool| columns_of(table).flat_map(|it| &it.cells).any(is);
    let mut explain = |has: &dyn Fn(&TableView) -> bool, line: &str| {
        if let Some(TableView { legend, .. }) = tables.iter_mut().find(|table| has(table)) {
            let end = if legend.is_empty() { "" } else { "\n" };
            *legend += &format!("{end}{line}");
        }
    };
    explain(&|table| !has_extremes(table), "each figure: median of the figures of the runs");
    let others = "min and max: extremes of all runs; other figures: median of the figures of the runs";
    explain(&has_extremes, &format!("{counts}{others}"));
    for bounds in all_bounds.into_iter().filter(|bounds| conditions.iter().any(|row| row.bounds == Some(*bounds))) {
        explain(&|table| has_row(table, bounds), &bounds.legend(conditions));
    }
    explain(&|table| has_cell(table, |cell| cell.starts_with('(')), UNSUPPORTED);
    explain(&|table| has_cell(table, |cell| cell == LOST), MEDIAN_IS_LOST);
    explain(&|table| has_cell(table, |cell| cell.ends_with(INFINITE)), FIGURE_IS_INFINITE);
}

/// Headings of counts of probes.
const COUNTS: [&str; 4] = ["n", "lost", "lost+late", "not in time"];

/// What the counts beside the extremes in `tables` are: `n and lost: sums over the runs; `. Shares of lost packets, which are
/// beside rates, are no counts.
fn counts_of(tables: &[TableView]) -> String {
    let columns = || tables.iter().filter(|table| has_extremes(table)).flat_map(columns_of);
    let found = COUNTS.into_iter().filter(|count| columns().any(|column| column.heading == *count));
    let found = listed(&found.map(str::to_owned).collect::<Vec<_>>());
    if found.is_empty() { found } else { format!("{found}: sums over the runs; ") }
}

fn has_extremes(table: &TableView) -> bool {
    columns_of(table).any(|column| column.heading == Column::Min.heading())
}

const UNSUPPORTED: &str = "( ) in one run or more too few effective observations beyond it";
pub(super) const MEDIAN_IS_LOST: &str =
    "lost: infinite, since the figures of half of the runs or more lie among their lost probes";
const FIGURE_IS_INFINITE: &str = "∞ the figure of a run lies among its lost probes; alone: at both ends";

fn columns_of(table: &TableView) -> impl Iterator<Item = &ColumnView> {
    table.groups.iter().flat_map(|group| &group.columns)
}

#[cfg(test)]
mod tests {
    use super::ColumnFigure::{Known, Lost, Nothing};
    use super::*;
    use crate::analysis::in_memory::{CLOSED, InMemory, closed};
    use crate::analysis::{SummaryOptions, summarise};
    use crate::report::view::GroupView;

    fn cells(figures: &[ColumnFigure]) -> Cells {
        let runs = vec![run(None); figures.len()];
        median_cells(MedianBounds::of(&runs), figures, |value| format!("{value:.1}"))
    }

    /// A run with or without a load.
    fn run(load: Option<&str>) -> Summary {
        let source = InMemory::of(CLOSED, vec![closed(0, 0, 50)]);
        let mut summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
        summary.condition.loads = load.map(str::to_owned).into_iter().collect();
        summary
    }

    #[test]
    fn runs_that_differ_in_a_factor_have_a_range_and_its_legend_names_the_factor() {
        let alike = vec![run(None); 6];
        let mixed = [vec![run(None); 6], vec![run(Some("cpu=20%")); 6]].concat();
        let rows = [TableRow::of_condition("a", &alike), TableRow::of_condition("b", &mixed)];
        assert_eq!(rows[0].bounds, Some(MedianBounds::Interval));
        assert_eq!(rows[1].views().map(|view| view.label), ["b", "range of mixed runs"]);
        let figures: Vec<ColumnFigure> = (1..=12).map(|value| Known(f64::from(value))).collect();
        let cells = median_cells(rows[1].bounds, &figures, |value| format!("{value:.1}"));
        assert_eq!(cells, ["6.5", "1.0–12.0"].map(str::to_owned));
        let described: Vec<DescribedRuns<'_>> = rows.iter().map(|row| row.described(Metric::RoundTripDelay)).collect();
        let mut columns = vec![column_above("n", ["6", "12"].map(str::to_owned))];
        columns.extend(columns_over_runs(&described, &[Column::Min], &|ns| format!("{ns}")));
        let mut tables = [TableView {
            rows: rows.iter().flat_map(TableRow::views).collect(),
            groups: vec![GroupView { heading: String::new(), columns }],
            ..TableView::default()
        }];
        explain_medians(&mut tables, &rows);
        let legend: Vec<&str> = tables[0].legend.lines().collect();
        assert!(legend[0].starts_with("n: sums over the runs; min and max: extremes of all runs; "), "{legend:?}");
        assert!(legend[1].starts_with("95 % interval: ") && legend.len() == 3, "{legend:?}");
        assert!(legend[2].starts_with("range of mixed runs: ") && legend[2].contains(" differ in load;"), "{legend:?}");
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
    fn labels_that_are_levels_have_a_factor() {
        let (idle, busy) = (vec![run(None); 2], vec![run(Some("cpu=20%"))]);
        let factor = |labels: [&str; 2]| {
            let [one, other] = labels;
            factor_of_labels(&[TableRow::of_condition(one, &idle), TableRow::of_condition(other, &busy)])
        };
        assert_eq!(factor(["none", "cpu=20%"]).as_deref(), Some("load"));
        assert_eq!(factor(["load=none", "cpu=20%"]), None);
        assert_eq!(factor(["cpu=20%", "none"]), None);
        assert_eq!(factor_of_labels(&[TableRow::of_condition("none", &idle)]), None);
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
