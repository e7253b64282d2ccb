//! The statistics of runs as observations: which of them are plotted, and their box plots by condition.

use super::axes::{ValueLimits, has_marks, metric_axis, names_axis};
use super::input::{PlotCondition, PlotInput, counted, left_out};
use crate::analysis::distribution::{RunDistribution, RunStatistics};
use crate::report::figure::{BoxMark, Figure, Marks, Point, Series};
use crate::stats::BoxPlot;

/// Most rows of a figure.
const ROWS: usize = 40;
/// Fewer runs have no box: their quartiles would lie between single runs.
const BOXED_RUNS: usize = 5;
/// Most runs of a condition that are points of their own.
const POINTS: usize = 200;

/// A statistic of runs, with the names of its figures.
pub(super) struct PlottedStatistic {
    /// As in tables: `p50`.
    pub(super) word: &'static str,
    pub(super) of: fn(&RunStatistics) -> Option<f64>,
    pub(super) box_plots: &'static str,
    pub(super) sweep: &'static str,
    pub(super) heat_map: &'static str,
}

const DELAYS: [PlottedStatistic; 2] = [
    PlottedStatistic { word: "p50", of: |run| run.p50, box_plots: "box-plots", sweep: "sweep", heat_map: "heat-map" },
    PlottedStatistic {
        word: "p99",
        of: |run| run.p99,
        box_plots: "box-plots-p99",
        sweep: "sweep-p99",
        heat_map: "heat-map-p99",
    },
];
const RATES: [PlottedStatistic; 1] = [PlottedStatistic {
    word: "mean",
    of: |run| run.mean,
    box_plots: "box-plots",
    sweep: "sweep",
    heat_map: "heat-map",
}];

/// The statistics that are plotted of these runs: two of delays, one of rates.
pub(super) fn plotted(input: &PlotInput) -> &'static [PlottedStatistic] {
    match input.runs().next() {
        Some(run) if run.statistics.metric.is_rate() => &RATES,
        _ => &DELAYS,
    }
}

impl PlottedStatistic {
    /// The finite figures of `runs`.
    pub(super) fn values(&self, runs: &[RunDistribution]) -> Vec<f64> {
        runs.iter().filter_map(|run| (self.of)(&run.statistics)).filter(|value| value.is_finite()).collect()
    }
}

/// Box plots of the runs of each condition, with each run as a point.
pub(super) fn box_plots(input: &PlotInput) -> Vec<Figure> {
    plotted(input).iter().filter_map(|statistic| of_statistic(input, statistic)).collect()
}

fn of_statistic(input: &PlotInput, statistic: &PlottedStatistic) -> Option<Figure> {
    let metric = input.runs().next()?.statistics.metric;
    let shown: Vec<&PlotCondition> = input.conditions.iter().take(ROWS).collect();
    let values: Vec<Vec<f64>> = shown.iter().map(|condition| statistic.values(&condition.runs)).collect();
    let scale = ValueLimits::of(values.iter().flatten().copied())?.suited();
    let (mut boxes, mut points) = (Vec::new(), Vec::new());
    for (row, values) in values.iter().enumerate() {
        boxes.extend((values.len() >= BOXED_RUNS).then(|| boxed(row, values)).flatten());
        points.extend(values.iter().take(POINTS).map(|value| Point { x: *value, y: row as f64 }));
    }
    let runs: usize = shown.iter().map(|condition| condition.runs.len()).sum();
    let infinite = runs - values.iter().map(Vec::len).sum::<usize>();
    let series = [
        Series { name: "quartiles of the runs".into(), colour: 0, marks: Marks::Boxes(boxes) },
        Series { name: "a run".into(), colour: 1, marks: Marks::Points(points) },
    ];
    let without = match infinite {
        0 => String::new(),
        count => {
            format!(" {}, whose {} is infinite or unknown, cannot be drawn.", counted(count, "run"), statistic.word)
        }
    };
    Some(Figure {
        name: statistic.box_plots,
        title: format!("{} of each run", statistic.word),
        caption: format!(
            "{}, each of which is one point. Conditions with at least {BOXED_RUNS} runs have a box from the first to the \
             third quartile; whiskers end at the last run within 1.5 interquartile ranges.{without}{}",
            counted(runs, "run"),
            left_out(input.conditions.len() - shown.len(), "condition"),
        ),
        x: metric_axis(metric, scale),
        y: names_axis("condition", shown.iter().map(|condition| condition.name.clone()).collect()),
        series: series.into_iter().filter(has_marks).collect(),
    })
}

fn boxed(row: usize, values: &[f64]) -> Option<BoxMark> {
    let BoxPlot { q1, median, q3, whiskers, .. } = BoxPlot::of(&mut values.to_vec())?;
    Some(BoxMark { row: row as f64, quartiles: [q1, median, q3], whiskers: [whiskers.0, whiskers.1] })
}
