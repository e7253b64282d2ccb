//! The statistics of runs as observations: which of them are plotted, and their box plots by condition.

use std::collections::BTreeMap;

use super::input::{PlotCondition, PlotInput, left_out};
use super::layout;
use crate::analysis::comparison::{Comparison, FigureScale, Quantity};
use crate::analysis::distribution::{RunDistribution, RunStatistics};
use crate::analysis::{Estimand, Statistic};
use crate::figure::axis::{Axis, ValueLimits};
use crate::figure::{Figure, Mark, Series, Shape, spread};
use crate::stats::{BoxPlot, Outline};
use crate::units::human::{counted, grouped};

/// Most rows of a figure.
const ROWS: usize = 60;
/// Fewer runs have no box: their quartiles would lie between single runs.
const BOXED_RUNS: usize = 5;
/// Most runs of a condition within its whiskers that are points.
const POINTS: usize = 200;

pub(super) struct PlottedStatistic {
    /// As in tables: `p50`.
    pub(super) word: &'static str,
    pub(super) of: fn(&RunStatistics) -> Option<f64>,
    /// The end of the names of its figures.
    pub(super) suffix: &'static str,
}

const DELAYS: [PlottedStatistic; 2] = [
    PlottedStatistic { word: "p50", of: |run| run.p50, suffix: "" },
    PlottedStatistic { word: "p99", of: |run| run.p99, suffix: "-p99" },
];
const MEANS: [PlottedStatistic; 1] = [PlottedStatistic { word: "mean", of: |run| run.mean, suffix: "" }];

/// Whether means are plotted: of rates, and of delays of which no quantile is compared.
fn are_means(input: &PlotInput) -> bool {
    let compared = || input.comparisons.into_iter().flat_map(|comparisons| &comparisons.rows);
    let is_mean = |row: &Comparison| match row.quantity {
        Quantity::Of(Estimand::Statistic(_, statistic)) => Some(statistic == Statistic::Mean),
        _ => None,
    };
    let is_rate = input.runs().next().is_some_and(|run| run.statistics.metric.is_rate());
    is_rate || compared().any(|it| is_mean(it) == Some(true)) && compared().all(|it| is_mean(it) != Some(false))
}

/// The figure that `build` makes of each plotted statistic: two of delays, or the mean. The caption of one says so if another
/// has none since it is infinite in every run.
pub(super) fn of_each_statistic(input: &PlotInput, build: impl Fn(&PlottedStatistic) -> Option<Figure>) -> Vec<Figure> {
    let (mut figures, mut infinite) = (Vec::new(), None);
    for statistic in if are_means(input) { &MEANS[..] } else { &DELAYS } {
        let figure = build(statistic);
        if figure.is_none() && input.conditions.iter().any(|condition| !statistic.values(&condition.runs).is_empty()) {
            infinite = Some(statistic.word);
        }
        figures.extend(figure);
    }
    if let (Some(figure), Some(word)) = (figures.first_mut(), infinite) {
        figure.caption += &format!(" The {word} has no value: it is infinite in every run.");
    }
    figures
}

impl PlottedStatistic {
    /// The figures of those of `runs` that have one. A delay among the lost probes is infinite, and the largest value.
    pub(super) fn values(&self, runs: &[RunDistribution]) -> Vec<f64> {
        let of_run = |run: &RunDistribution| {
            let is_infinite = run.n > 0 && !run.statistics.metric.is_rate();
            (self.of)(&run.statistics).or(is_infinite.then_some(f64::INFINITY))
        };
        runs.iter().filter_map(of_run).collect()
    }

    /// ` Of 2 of 12 runs the p99 is infinite: it counts as the largest value.` and `reading`; nothing if that is of no run.
    pub(super) fn infinite_words(&self, values: &[f64], reading: &str) -> String {
        match values.iter().filter(|value| value.is_infinite()).count() {
            0 => String::new(),
            infinite => format!(
                " Of {} of {} the {} is infinite: it counts as the largest value.{reading}",
                grouped(infinite as u64),
                counted(values.len(), "run"),
                self.word
            ),
        }
    }
}

/// The mean of the figures of runs, as comparisons have it: infinite if one is, `None` of none.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    FigureScale::of(values.iter().copied(), false).mean(values)
}

/// Box plots of the runs of each condition, with each run as a point; of rates ministat's plot too. `None` if no condition
/// has several runs.
pub(super) fn box_plots(input: &PlotInput) -> Vec<Figure> {
    if input.conditions.iter().all(|condition| condition.runs.len() < 2) {
        return Vec::new();
    }
    let boxes = of_each_statistic(input, |statistic| of_statistic(input, statistic));
    boxes.into_iter().chain(ministat(input)).collect()
}

fn of_statistic(input: &PlotInput, statistic: &PlottedStatistic) -> Option<Figure> {
    let metric = input.runs().next()?.statistics.metric;
    let shown: Vec<&PlotCondition> = input.conditions.iter().take(ROWS).collect();
    let rows: Vec<Vec<f64>> = shown.iter().map(|condition| statistic.values(&condition.runs)).collect();
    let values = rows.concat();
    let scale = ValueLimits::of(values.iter().copied())?.suited();
    let (mut boxes, mut points, mut infinite) = (Vec::new(), Vec::new(), Vec::new());
    let mut names = layout::names(&shown, input.pictures());
    for ((y, mut values), name) in rows.into_iter().enumerate().zip(&mut names) {
        let Some(plot) = BoxPlot::of(&mut values) else { continue };
        let (low, high) = plot.whiskers;
        if plot.n >= BOXED_RUNS && plot.q1.is_finite() {
            boxes.push(Mark::at([plot.q1, plot.median, plot.q3, low, high], [y as f64]));
        }
        values.retain(|value| value.is_finite() && (low..=high).contains(value));
        let drawn: Vec<f64> = spread(&values, POINTS).copied().chain(plot.outside).collect();
        points.extend(drawn.into_iter().map(|x| Mark::point(x, y as f64)));
        if plot.infinite > 0 {
            let text = format!("{} of {} infinite", grouped(plot.infinite as u64), counted(plot.n, "run"));
            *name = format!("{name} ({text})");
            infinite.push(Mark { text, ..Mark::point(f64::INFINITY, y as f64) });
        }
    }
    let reading = " Marks along the right edge; boxes and whiskers that reach it are open.";
    let runs: usize = shown.iter().map(|condition| condition.runs.len()).sum();
    let without = match runs - values.len() {
        0 => String::new(),
        count => format!(" {} without a {} cannot be drawn.", counted(count, "run"), statistic.word),
    };
    Some(Figure {
        name: format!("box-plots{}", statistic.suffix),
        title: format!("{} of each run", statistic.word),
        caption: format!(
            "{}, each of which is one point. Conditions with at least {BOXED_RUNS} runs have a box from the first to the \
             third quartile with a line at the median; whiskers end at the last run within 1.5 interquartile ranges.\
             {}{without}{}",
            counted(runs, "run"),
            statistic.infinite_words(&values, reading),
            left_out(input.conditions.len() - shown.len(), "condition"),
        ),
        panels: Vec::new(),
        x: Axis::of_metric(metric, scale),
        y: Axis::of_names("condition", names),
        series: vec![
            Series::new("quartiles of the runs", 0, Shape::Boxes, boxes),
            Series::new("a run", 1, Shape::Points, points),
            Series::new("infinite", 2, Shape::Points, infinite),
        ],
    })
}

/// Columns of ministat's plot, in each of which the runs are stacked, the height of a place in a stack, and that of the bar
/// below, as shares of a row.
const COLUMNS: f64 = 80.0;
const STACKED: f64 = 0.11;
const BAR: f64 = 0.3;

/// Ministat's plot of mean rates, with a row for each group: its runs stacked, and |__M_A__| below them.
fn ministat(input: &PlotInput) -> Option<Figure> {
    let metric = input.runs().next()?.statistics.metric;
    let shown: Vec<&PlotCondition> = input.conditions.iter().take(ROWS).collect();
    let [statistic] = &MEANS;
    let mut groups: Vec<Vec<f64>> = shown.iter().map(|condition| statistic.values(&condition.runs)).collect();
    let outlines: Vec<Option<Outline>> = groups.iter_mut().map(|runs| Outline::of(runs)).collect();
    let ends = outlines.iter().flatten().flat_map(|it| [it.min, it.max, it.mean - it.stddev, it.mean + it.stddev]);
    let limits = ValueLimits::of(ends).filter(|limits| metric.is_rate() && limits.max > limits.min)?;
    let step = (limits.max - limits.min) / COLUMNS;
    let (mut runs, mut bars, mut medians) = (Vec::new(), Vec::new(), Vec::new());
    for (row, (group, outline)) in groups.iter().zip(&outlines).enumerate() {
        let (row, mut stacks) = (row as f64, BTreeMap::<i64, f64>::new());
        for value in group {
            let height = stacks.entry(((value - limits.min) / step) as i64).or_default();
            runs.push(Mark::point(*value, row + 0.1 - *height * STACKED));
            *height = (*height + 1.0).min(4.0);
        }
        let Some(Outline { mean, stddev, median, .. }) = outline else { continue };
        bars.push(Mark::at([*mean, mean - stddev, mean + stddev], [row + BAR]));
        medians.push(Mark::point(*median, row + BAR));
    }
    Some(Figure {
        name: "ministat".into(),
        title: "ministat's plot".into(),
        caption: format!(
            "Each run is a point at its mean rate; runs at one place are stacked. The bar below is one standard deviation to \
             each side of the mean of the runs.{}",
            left_out(input.conditions.len() - shown.len(), "condition")
        ),
        panels: Vec::new(),
        x: Axis::of_metric(metric, limits.linear()),
        y: Axis::of_names("condition", layout::names(&shown, input.pictures())),
        series: vec![
            Series::new("a run", 1, Shape::Points, runs),
            Series::new("mean ± standard deviation", 0, Shape::Intervals, bars),
            Series::new("median", 4, Shape::Points, medians),
        ],
    })
}
