//! Figures of a condition over its runs, as cells of tables: the mean of the figures of the runs, as comparisons have it, and
//! below it how far that mean is known. A run is one observation; its own interval says nothing about other runs.

use std::collections::BTreeMap;

use super::quantiles::{Cells, cells, column_above, column_of_two};
use super::view::{ColumnView, RowView};
use crate::analysis::Summary;
use crate::analysis::comparison::{FigureScale, levels_of_run};
use crate::analysis::experiment::ColumnFigure;
use crate::metric::Metric;
use crate::plan::defaults::CONFIDENCE;
use crate::recipe::Column;
use crate::stats::{Description, own_interval};
use crate::units::human::{ABSENT, grouped, percent};

/// A row of a table: one run, or the runs of a condition.
#[derive(Clone, Debug)]
pub(super) struct TableRow<'a> {
    /// Name of the run or of the condition.
    pub(super) label: String,
    /// The name of its condition; empty if that has none.
    pub(super) condition: &'a str,
    pub(super) runs: &'a [Summary],
    /// Of each of several runs the number of its block with the same levels of all factors; empty for a single run.
    strata: Vec<usize>,
}

impl<'a> TableRow<'a> {
    pub(super) fn of_run(name: String, run: &'a Summary) -> TableRow<'a> {
        TableRow { label: name, condition: "", runs: std::slice::from_ref(run), strata: Vec::new() }
    }

    /// The row of a condition with these `runs`; a condition without a name has the same levels as every other one.
    pub(super) fn of_condition(name: &'a str, runs: &'a [Summary]) -> TableRow<'a> {
        let label = if name.is_empty() { "all runs" } else { name };
        TableRow { label: label.into(), condition: name, runs, strata: strata(runs) }
    }

    /// The descriptions of `metric` in its runs.
    pub(super) fn described(&self, metric: Metric) -> DescribedRuns<'a> {
        let runs = self.runs.iter().map(|run| run.metrics.get(&metric)).collect();
        DescribedRuns { runs, strata: self.strata.clone() }
    }

    /// The row and the quiet one below it.
    pub(super) fn views(&self) -> [RowView; 2] {
        let below = if self.strata.is_empty() { String::new() } else { format!("{} interval", percent(CONFIDENCE)) };
        [RowView::of(&self.label), RowView::below(below)]
    }

    /// The mean of a figure of each of its runs, and its interval; of a single run the figure.
    pub(super) fn cells(&self, figures: &[ColumnFigure], scale: FigureScale, shown: impl Fn(f64) -> String) -> Cells {
        cells_of(figures, &self.strata, scale, shown)
    }
}

/// Blocks and levels of several `runs`, numbered in the order of their first runs.
fn strata(runs: &[Summary]) -> Vec<usize> {
    let mut known = Vec::new();
    let number = |run: &Summary| {
        let block = run.experiment.as_ref().map(|it| it.block);
        let stratum = (block, levels_of_run(&run.spec, run.experiment.as_ref()));
        known.iter().position(|other| *other == stratum).unwrap_or_else(|| {
            known.push(stratum);
            known.len() - 1
        })
    };
    if runs.len() < 2 { Vec::new() } else { runs.iter().map(number).collect() }
}

/// The descriptions of one metric in the runs of a row.
#[derive(Clone, Debug)]
pub(super) struct DescribedRuns<'a> {
    /// One for each run; `None` without the metric.
    pub(super) runs: Vec<Option<&'a Description>>,
    strata: Vec<usize>,
}

impl<'a> DescribedRuns<'a> {
    pub(super) fn of_one(described: &'a Description) -> DescribedRuns<'a> {
        DescribedRuns { runs: vec![Some(described)], strata: Vec::new() }
    }

    fn figures(&self, column: Column) -> Vec<ColumnFigure> {
        let of_run = |run: &Option<&Description>| match run {
            Some(described) => ColumnFigure::of(column, described),
            None => ColumnFigure::Nothing,
        };
        self.runs.iter().map(of_run).collect()
    }
}

fn cells_of(figures: &[ColumnFigure], strata: &[usize], scale: FigureScale, shown: impl Fn(f64) -> String) -> Cells {
    let mean = ColumnFigure::mean(figures, scale);
    if strata.is_empty() {
        return cells(mean, shown);
    }
    let [mean, _] = cells(mean, &shown);
    [mean, interval(figures, strata, scale, shown).unwrap_or_default()]
}

/// The fewest degrees of freedom of an interval: with fewer it spans powers of ten.
const FREEDOM_MIN: usize = 3;

/// `48.1–49.9`, once if both ends are shown alike; `None` if a figure is infinite, or if strata have too few runs.
fn interval(
    figures: &[ColumnFigure],
    strata: &[usize],
    scale: FigureScale,
    shown: impl Fn(f64) -> String,
) -> Option<String> {
    let mut groups: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (figure, stratum) in figures.iter().zip(strata) {
        let places = ColumnFigure::values(&[*figure]).into_iter().map(|value| scale.place(value));
        groups.entry(*stratum).or_default().extend(places);
    }
    let groups: Vec<Vec<f64>> = groups.into_values().collect();
    if groups.iter().map(Vec::len).sum::<usize>() < groups.len() + FREEDOM_MIN {
        return None;
    }
    let ends = own_interval(&groups, CONFIDENCE).filter(|_| groups.iter().flatten().all(|place| place.is_finite()))?;
    Some(joined(&shown(scale.to_figure(ends.low?)), &shown(scale.to_figure(ends.high?))))
}

/// The scale on which `rows` of figures are compared.
pub(super) fn scale_of<'a>(rows: impl Iterator<Item = &'a Vec<ColumnFigure>>, is_share: bool) -> FigureScale {
    FigureScale::of(rows.flat_map(|figures| ColumnFigure::values(figures)), is_share)
}

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

pub(super) fn runs_of(counts: impl Iterator<Item = usize>) -> ColumnView {
    column_above("runs", counts.map(|runs| grouped(runs as u64)))
}

/// A column for each of `columns` with a row for each condition: the extremes of all runs, else means of the runs.
pub(super) fn columns_over_runs(
    rows: &[DescribedRuns<'_>],
    columns: &[Column],
    shown: &dyn Fn(f64) -> String,
) -> Vec<ColumnView> {
    let are_several = rows.iter().any(|row| !row.strata.is_empty());
    let named = |several, one| if are_several { several } else { one };
    let extremes = |heading: &str, figures: &[Vec<ColumnFigure>], of: fn(f64, f64) -> f64| {
        let extreme = |own: &Vec<ColumnFigure>| ColumnFigure::values(own).into_iter().reduce(of);
        column_above(heading, figures.iter().map(|own| extreme(own).map_or_else(|| ABSENT.into(), shown)))
    };
    let view = |column: &Column| {
        let figures: Vec<Vec<ColumnFigure>> = rows.iter().map(|row| row.figures(*column)).collect();
        let scale = scale_of(figures.iter(), false);
        match column {
            Column::Min => extremes(named("lowest", "min"), &figures, f64::min),
            Column::Max => extremes(named("highest", "max"), &figures, f64::max),
            _ => {
                let cells = figures.iter().zip(rows).map(|(own, row)| cells_of(own, &row.strata, scale, shown));
                column_of_two(&heading(*column), cells)
            }
        }
    };
    columns.iter().map(view).collect()
}

/// The heading of a column as in the tables of runs.
pub(super) fn heading(column: Column) -> String {
    if column == Column::Stddev { "stddev".into() } else { column.heading() }
}

/// Stands below the first table of conditions.
pub(super) const LEGEND: &str = "\
n and lost: sums over the runs; lowest and highest: of all runs; other columns: geometric means of the values of the \
runs, as in comparisons
95 % interval: of that mean, from the spread of the runs inside of their blocks, of at least three runs more than blocks
( ) too few values beyond it, or of one run too few independent ones; lost: among the lost probes of one run or more";

#[cfg(test)]
mod tests {
    use super::ColumnFigure::{Known, Lost, Nothing};
    use super::*;

    fn cells(figures: &[ColumnFigure], strata: &[usize]) -> Cells {
        let scale = scale_of([figures.to_vec()].iter(), false);
        cells_of(figures, strata, scale, |value| format!("{value:.1}"))
    }

    #[test]
    fn a_mean_of_runs_is_geometric_with_an_interval_inside_of_blocks() {
        let weak = |value| ColumnFigure::Unsupported { value, bound: Some(1.0), is_small: true };
        for (figures, strata, expected) in [
            (vec![Nothing, Nothing], &[0, 0][..], ["–", ""]),
            (vec![Lost], &[], ["lost", ""]),
            (vec![Known(4.0), Known(1.0)], &[0, 1], ["2.0", ""]),
            (vec![Known(4.0), Known(0.0)], &[0, 1], ["2.0", ""]),
            (vec![Known(1.0), Known(4.0), Known(2.0), Known(2.0)], &[0, 0, 1, 1], ["2.0", ""]),
            // ln 2 · √(2/3) / √5 · 3.18245 to each side.
            (vec![Known(1.0), Known(4.0), Known(2.0), Known(2.0), Known(2.0)], &[0, 0, 1, 1, 1], ["2.0", "0.9–4.5"]),
            (vec![Known(4.0); 4], &[0; 4], ["4.0", "4.0"]),
            (vec![Known(4.0), Lost, Known(2.0)], &[0, 0, 0], ["lost", ""]),
            (vec![Known(4.0), weak(Some(1.0)), Nothing], &[0, 1, 0], ["(2.0)", ""]),
            (vec![Known(4.0), weak(None)], &[0, 1], ["lost", ""]),
        ] {
            assert_eq!(cells(&figures, strata), expected.map(str::to_owned), "{figures:?}");
        }
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
