//! The statistics of runs as observations: which of them are plotted, and their box plots by condition.

use super::input::{PlotCondition, PlotInput, left_out};
use crate::analysis::comparison::FigureScale;
use crate::analysis::distribution::{RunDistribution, RunStatistics};
use crate::figure::axis::{Axis, ValueLimits};
use crate::figure::{Figure, Mark, Series, Shape, spread};
use crate::stats::BoxPlot;
use crate::units::human::{counted, grouped};

/// Most rows of a figure.
const ROWS: usize = 40;
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
const RATES: [PlottedStatistic; 1] = [PlottedStatistic { word: "mean", of: |run| run.mean, suffix: "" }];

/// The figure that `build` makes of each plotted statistic: two of delays, one of rates. The caption of one says so if another
/// has none since it is infinite in every run.
pub(super) fn of_each_statistic(input: &PlotInput, build: impl Fn(&PlottedStatistic) -> Option<Figure>) -> Vec<Figure> {
    let is_rate = input.runs().next().is_some_and(|run| run.statistics.metric.is_rate());
    let (mut figures, mut infinite) = (Vec::new(), None);
    for statistic in if is_rate { &RATES[..] } else { &DELAYS } {
        let figure = build(statistic);
        if figure.is_none() && input.conditions.iter().any(|condition| !statistic.values(&condition.runs).is_empty()) {
            infinite = Some(statistic.word);
        }
        figures.extend(figure);
    }
    if let (Some(figure), Some(word)) = (figures.first_mut(), infinite) {
        figure.caption += &format!(" The {word} has no figure: it is infinite in every run.");
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

/// Box plots of the runs of each condition, with each run as a point.
pub(super) fn box_plots(input: &PlotInput) -> Vec<Figure> {
    of_each_statistic(input, |statistic| of_statistic(input, statistic))
}

fn of_statistic(input: &PlotInput, statistic: &PlottedStatistic) -> Option<Figure> {
    let metric = input.runs().next()?.statistics.metric;
    let shown: Vec<&PlotCondition> = input.conditions.iter().take(ROWS).collect();
    let rows: Vec<Vec<f64>> = shown.iter().map(|condition| statistic.values(&condition.runs)).collect();
    let values = rows.concat();
    let scale = ValueLimits::of(values.iter().copied())?.suited();
    let (mut boxes, mut points, mut infinite) = (Vec::new(), Vec::new(), Vec::new());
    let mut names: Vec<String> = shown.iter().map(|condition| condition.name.clone()).collect();
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
        x: Axis::of_metric(metric, scale),
        y: Axis::of_names("condition", names),
        series: vec![
            Series::new("quartiles of the runs", 0, Shape::Boxes, boxes),
            Series::new("a run", 1, Shape::Points, points),
            Series::new("infinite", 2, Shape::Points, infinite),
        ],
    })
}
