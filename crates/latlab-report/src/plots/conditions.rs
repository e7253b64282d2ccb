//! The statistics of runs as observations: which of them are plotted, and their box plots by condition.

use super::axes::{ValueLimits, has_marks, metric_axis, names_axis};
use super::input::{PlotCondition, PlotInput, left_out};
use crate::analysis::distribution::{RunDistribution, RunStatistics};
use crate::report::figure::{BoxMark, Figure, InfiniteMark, Marks, Point, Series};
use crate::stats::BoxPlot;
use crate::units::human::{counted, grouped};

/// Most rows of a figure.
const ROWS: usize = 40;
/// Fewer runs have no box: their quartiles would lie between single runs.
const BOXED_RUNS: usize = 5;
/// Most runs of a condition within its whiskers that are points.
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

/// The figure that `build` makes of each plotted statistic. The caption of one says so if another has none since it is infinite
/// in every run.
pub(super) fn of_each_statistic(input: &PlotInput, build: impl Fn(&PlottedStatistic) -> Option<Figure>) -> Vec<Figure> {
    let is_infinite = |statistic: &PlottedStatistic| {
        let mut values = input.conditions.iter().flat_map(|condition| statistic.values(&condition.runs)).peekable();
        values.peek().is_some() && values.all(f64::is_infinite)
    };
    let built: Vec<Option<Figure>> = plotted(input).iter().map(build).collect();
    let mut absent = plotted(input).iter().zip(&built).filter(|(_, figure)| figure.is_none());
    let infinite = absent.find(|(statistic, _)| is_infinite(statistic)).map(|(statistic, _)| statistic.word);
    let mut figures: Vec<Figure> = built.into_iter().flatten().collect();
    if let (Some(figure), Some(word)) = (figures.first_mut(), infinite) {
        figure.caption += &format!(" The {word} has no figure: it is infinite in every run.");
    }
    figures
}

/// The statistics that are plotted of these runs: two of delays, one of rates.
fn plotted(input: &PlotInput) -> &'static [PlottedStatistic] {
    match input.runs().next() {
        Some(run) if run.statistics.metric.is_rate() => &RATES,
        _ => &DELAYS,
    }
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

    /// ` Of 2 of 12 runs the p99 is infinite: it counts as the largest value.`; nothing if that is of no run.
    pub(super) fn infinite_words<'a>(&self, values: impl Iterator<Item = &'a f64>) -> String {
        let (mut runs, mut infinite) = (0, 0);
        values.for_each(|value| (runs, infinite) = (runs + 1, infinite + usize::from(value.is_infinite())));
        match infinite {
            0 => String::new(),
            _ => format!(
                " Of {} of {} the {} is infinite: it counts as the largest value.",
                grouped(infinite as u64),
                counted(runs, "run"),
                self.word
            ),
        }
    }
}

/// Box plots of the runs of each condition, with each run as a point.
pub(super) fn box_plots(input: &PlotInput) -> Vec<Figure> {
    of_each_statistic(input, |statistic| of_statistic(input, statistic))
}

/// The runs of a condition in a row.
struct BoxRow {
    /// Figures in ascending order, infinite ones last.
    values: Vec<f64>,
    plot: BoxPlot,
}

impl BoxRow {
    fn of(mut values: Vec<f64>) -> Option<BoxRow> {
        let plot = BoxPlot::of(&mut values)?;
        Some(BoxRow { values, plot })
    }

    fn is_inside(&self, value: f64) -> bool {
        (self.plot.whiskers.0..=self.plot.whiskers.1).contains(&value)
    }

    /// The figures that are points: all beyond the whiskers, and of many others some at equal distances.
    fn points(&self) -> impl Iterator<Item = f64> {
        let finite = self.values.iter().copied().filter(|value| value.is_finite());
        let inside: Vec<f64> = finite.filter(|value| self.is_inside(*value)).collect();
        let shown = inside.len().min(POINTS);
        (0..shown)
            .map(move |place| inside[place * (inside.len() - 1) / (shown - 1).max(1)])
            .chain(self.plot.outside.iter().copied())
    }

    fn boxed(&self, row: f64) -> Option<BoxMark> {
        let BoxPlot { n, q1, median, q3, whiskers, .. } = self.plot;
        let is_drawn = n >= BOXED_RUNS && q1.is_finite();
        is_drawn.then_some(BoxMark { row, quartiles: [q1, median, q3], whiskers: [whiskers.0, whiskers.1] })
    }

    /// `2 of 5 runs infinite`, if some are.
    fn infinite(&self) -> Option<String> {
        let BoxPlot { n, infinite, .. } = self.plot;
        (infinite > 0).then(|| format!("{} of {} infinite", grouped(infinite as u64), counted(n, "run")))
    }
}

fn of_statistic(input: &PlotInput, statistic: &PlottedStatistic) -> Option<Figure> {
    let metric = input.runs().next()?.statistics.metric;
    let shown: Vec<&PlotCondition> = input.conditions.iter().take(ROWS).collect();
    let rows: Vec<Option<BoxRow>> =
        shown.iter().map(|condition| BoxRow::of(statistic.values(&condition.runs))).collect();
    let values = || rows.iter().flatten().flat_map(|row| &row.values);
    let scale = ValueLimits::of(values().copied())?.suited();
    let (mut boxes, mut points, mut infinite) = (Vec::new(), Vec::new(), Vec::new());
    let mut names: Vec<String> = shown.iter().map(|condition| condition.name.clone()).collect();
    for (index, row) in rows.iter().enumerate() {
        let (Some(row), y) = (row, index as f64) else { continue };
        boxes.extend(row.boxed(y));
        points.extend(row.points().map(|x| Point { x, y }));
        if let Some(text) = row.infinite() {
            names[index] = format!("{} ({text})", names[index]);
            infinite.push(InfiniteMark { x: f64::INFINITY, y, text });
        }
    }
    let of_infinite = match statistic.infinite_words(values()) {
        words if words.is_empty() => words,
        words => format!("{words} Marks along the right edge; boxes and whiskers that reach it are open."),
    };
    let runs: usize = shown.iter().map(|condition| condition.runs.len()).sum();
    let without = match runs - values().count() {
        0 => String::new(),
        count => format!(" {} without a {} cannot be drawn.", counted(count, "run"), statistic.word),
    };
    let inside = match values().filter(|value| value.is_finite()).count() - points.len() {
        0 => String::new(),
        hidden => format!(
            " Of conditions with more than {POINTS} runs within the whiskers, {} of these are not drawn.",
            grouped(hidden as u64)
        ),
    };
    let series = [
        Series { name: "quartiles of the runs".into(), colour: 0, marks: Marks::Boxes(boxes) },
        Series { name: "a run".into(), colour: 1, marks: Marks::Points(points) },
        Series { name: "infinite".into(), colour: 2, marks: Marks::Infinite(infinite) },
    ];
    Some(Figure {
        name: statistic.box_plots,
        title: format!("{} of each run", statistic.word),
        caption: format!(
            "{}, each of which is one point. Conditions with at least {BOXED_RUNS} runs have a box from the first to the \
             third quartile with a line at the median; whiskers end at the last run within 1.5 interquartile ranges.{of_infinite}{without}{inside}{}",
            counted(runs, "run"),
            left_out(input.conditions.len() - shown.len(), "condition"),
        ),
        x: metric_axis(metric, scale),
        y: names_axis("condition", names),
        series: series.into_iter().filter(has_marks).collect(),
    })
}
