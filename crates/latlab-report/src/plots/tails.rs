//! The tail and the percentiles of one or several conditions. A condition with several runs is the median of their curves
//! with the range of the runs as a band: their probes are never pooled (decision 0025.6).

use super::axes::{ValueLimits, has_marks, metric_axis, quantile_axis};
use super::input::{self, PlotCondition, PlotInput, names};
use crate::analysis::distribution::RunDistribution;
use crate::metric::Metric;
use crate::report::figure::{Axis, AxisUnit, Figure, Marks, Point, Range, Scale, Series};
use crate::stats::FiveNumberSummary;

/// Most conditions in one figure: as many as there are colours.
const CONDITIONS: usize = 8;
/// Most points of the curve of several runs.
const POINTS: usize = 240;
/// So many of the largest delays of a run are points.
const LARGEST: usize = 100;
/// Quantiles in each decade of the curve of several runs.
const PER_DECADE: f64 = 20.0;

/// The conditions of a figure: the first ones of those with a finite delay.
fn shown<'a>(input: &'a PlotInput) -> Vec<&'a PlotCondition> {
    let has_delay = |condition: &&PlotCondition| condition.runs.iter().any(|run| !run.tail.is_empty());
    input.conditions.iter().filter(has_delay).take(CONDITIONS).collect()
}

/// The figure of that name, if a condition has a finite delay.
fn figure(input: &PlotInput, name: &'static str, build: &Building) -> Vec<Figure> {
    let shown = shown(input);
    let runs = || shown.iter().flat_map(|condition| &condition.runs);
    let Some(metric) = runs().next().map(|run| run.metric) else { return Vec::new() };
    let delays = runs().flat_map(|run| run.tail.iter().map(|point| point.value_ns));
    let Some(delays) = ValueLimits::of(delays).map(ValueLimits::logarithmic) else { return Vec::new() };
    // The share of half a probe of the largest run, so that one probe is above the end of the axis.
    let least = 0.5 / runs().map(|run| run.n).max().unwrap_or(1) as f64;
    let (mut series, mut without) = (Vec::new(), Vec::new());
    for (colour, condition) in shown.iter().enumerate() {
        let name = if input.conditions.len() > 1 { condition.name.as_str() } else { "" };
        let curves = (build.curve)(&condition.runs, Curve { name, colour }, least);
        let is_line = |series: &&Series| matches!(series.marks, Marks::Steps(_) | Marks::Line(_));
        without.extend((!curves.iter().filter(is_line).any(has_marks)).then_some(condition.name.as_str()));
        series.extend(curves.into_iter().filter(has_marks));
    }
    let is_lost =
        |it: &&PlotCondition| it.runs.iter().any(|run| run.n > 0) && it.runs.iter().all(|run| run.tail.is_empty());
    let lost: Vec<&PlotCondition> = input.conditions.iter().filter(is_lost).collect();
    without.extend(lost.iter().map(|condition| condition.name.as_str()));
    let without = match without.as_slice() {
        [] => String::new(),
        lost => format!(" Without a line, since the delays of most of their runs are infinite: {}.", names(lost)),
    };
    let (x, y) = (build.axes)(metric_axis(metric, delays), metric, least);
    let facts = CurveFacts {
        has_losses: runs().any(|run| run.lost > 0),
        has_several_runs: shown.iter().any(|condition| condition.runs.len() > 1),
    };
    let band = match facts.has_several_runs {
        true => " Lines are medians of the runs of a condition, bands their whole range.",
        false => "",
    };
    let measured = input::of_conditions(input, &[&shown[..], &lost[..]].concat(), metric);
    let caption = format!("{measured}{band}{}{without}", (build.note)(facts));
    vec![Figure { name, title: build.title.into(), caption, x, y, series }]
}

/// How a figure of curves is made.
struct Building {
    title: &'static str,
    /// How the curves are to be read.
    note: fn(CurveFacts) -> String,
    /// Both axes from that of the delays, their metric and the least share.
    axes: fn(Axis, Metric, f64) -> (Axis, Axis),
    /// The series of a condition, from its runs and the least share.
    curve: fn(&[RunDistribution], Curve, f64) -> Vec<Series>,
}

/// What the reading of curves depends on.
#[derive(Clone, Copy)]
struct CurveFacts {
    has_losses: bool,
    /// Whether a condition has several runs.
    has_several_runs: bool,
}

/// The look of a curve.
#[derive(Clone, Copy)]
struct Curve<'a> {
    name: &'a str,
    colour: usize,
}

impl Curve<'_> {
    fn series(&self, marks: Marks) -> Series {
        Series { name: self.name.into(), colour: self.colour, marks }
    }

    /// A series that the legend leaves out.
    fn unnamed(&self, marks: Marks) -> Series {
        Series { name: String::new(), colour: self.colour, marks }
    }
}

/// The complementary distribution, on logarithmic axes.
pub(super) fn tail(input: &PlotInput) -> Vec<Figure> {
    let building = Building {
        title: "Complementary distribution: the tail",
        note: |facts| {
            let median = if facts.has_several_runs { ", of several runs the median" } else { "" };
            match facts.has_losses {
                true => format!(" Beyond the largest delay a line shows the share of lost or late probes{median}."),
                false => " Beyond the largest delay a line runs along the lower edge.".into(),
            }
        },
        axes: |delays, metric, least| {
            let label = format!("share of {}s at least as large", input::thing(metric));
            (delays, Axis { label, scale: Scale::Log(least, 1.0), unit: AxisUnit::Share })
        },
        curve: |runs, curve, least| match runs {
            [run] => tail_of_run(run, curve),
            runs => tail_of_runs(runs, curve, least),
        },
    };
    figure(input, "tail", &building)
}

/// The tail of one run. Its steps are in descending order of delay: the share that holds between two delays is that of the
/// larger one, and beyond the largest delay that of lost probes.
fn tail_of_run(run: &RunDistribution, curve: Curve) -> Vec<Series> {
    let points: Vec<Point> = run.tail.iter().rev().map(|point| Point { x: point.value_ns, y: point.tail }).collect();
    let largest = points[..points.len().min(LARGEST)].to_vec();
    let unanswered = Point { x: f64::INFINITY, y: lost_share(run) };
    let steps = std::iter::once(unanswered).chain(points).collect();
    vec![curve.series(Marks::Steps(steps)), curve.unnamed(Marks::Points(largest))]
}

/// The median and the range of the shares of several runs at delays along their tails, as steps like those of one run.
fn tail_of_runs(runs: &[RunDistribution], curve: Curve, least: f64) -> Vec<Series> {
    let mut delays: Vec<f64> = runs.iter().flat_map(|run| run.tail.iter().map(|point| point.value_ns)).collect();
    delays.sort_unstable_by(f64::total_cmp);
    delays.dedup();
    let stride = delays.len().div_ceil(POINTS).max(1);
    let last = delays.last().copied();
    let mut kept: Vec<f64> = delays.into_iter().step_by(stride).chain(last).chain([f64::INFINITY]).collect();
    kept.dedup();
    let (mut line, mut band) = (Vec::new(), Vec::new());
    for x in kept {
        let mut shares: Vec<f64> = runs.iter().filter(|run| run.n > 0).map(|run| share_at(run, x)).collect();
        let Some(shares) = FiveNumberSummary::of(&mut shares) else { continue };
        band.extend((shares.max > least).then_some(Range { x, low: shares.min, high: shares.max }));
        line.push(Point { x, y: shares.median });
    }
    line.reverse();
    band.reverse();
    vec![curve.unnamed(Marks::StepBand(band)), curve.series(Marks::Steps(line))]
}

fn lost_share(run: &RunDistribution) -> f64 {
    run.lost as f64 / run.n as f64
}

/// The share of the probes of `run` that took at least `delay`.
fn share_at(run: &RunDistribution, delay: f64) -> f64 {
    let at = run.tail.partition_point(|point| point.value_ns < delay);
    run.tail.get(at).map_or_else(|| lost_share(run), |point| point.tail)
}

/// The largest delay of `run` that at least the share `tail` of its probes reached, which is one probe or more; +∞ if these
/// are lost ones.
fn delay_at(run: &RunDistribution, tail: f64) -> f64 {
    // The powers of ten of the curve miss exact shares by rounding.
    let after = run.tail.partition_point(|point| point.tail >= tail * (1.0 - 1e-9));
    let is_answered = tail > lost_share(run) * (1.0 + 1e-9);
    after.checked_sub(1).filter(|_| is_answered).map_or(f64::INFINITY, |at| run.tail[at].value_ns)
}

/// Delays over quantiles, with an axis that stretches towards the rare ones.
pub(super) fn percentiles(input: &PlotInput) -> Vec<Figure> {
    let building = Building {
        title: "Quantiles",
        note: percentiles_note,
        axes: |delays, _, least| (quantile_axis(least), delays),
        curve: |runs, curve, _| match runs {
            [run] => vec![curve.series(Marks::Steps(percentiles_of_run(run)))],
            runs => percentiles_of_runs(runs, curve),
        },
    };
    figure(input, "percentiles", &building)
}

/// How quantiles are to be read.
fn percentiles_note(facts: CurveFacts) -> String {
    let (what, end) = match facts.has_several_runs {
        true => ("The quantiles of each run are", "the rarest quantile that every run has"),
        false => ("Lines show", "the largest delay"),
    };
    let lost = match facts {
        CurveFacts { has_losses: false, .. } => "",
        CurveFacts { has_several_runs: false, .. } => "; lost and late probes have none",
        _ => ", or where the median is infinite; a band without an upper edge reaches infinite delays",
    };
    format!(
        " {what} measured delays (order statistics): interpolated quantiles of tables may lie between two of them. Lines end \
         with {end}{lost}."
    )
}

/// The quantiles of one run. The largest delay is that of all rarer quantiles too, up to those of the lost probes: so a run
/// with one probe, or with equal delays, has a line.
fn percentiles_of_run(run: &RunDistribution) -> Vec<Point> {
    let rarest = lost_share(run).max(0.5 / run.n as f64);
    let end = run.tail.last().map(|largest| Point { x: rarest, y: largest.value_ns });
    run.tail.iter().map(|point| Point { x: point.tail, y: point.value_ns }).chain(end).collect()
}

/// The median and the range of the quantiles of several runs. A quantile among the lost probes of a run is infinite, and the
/// largest of them: the line ends where the median is infinite, and the band is open above it.
fn percentiles_of_runs(runs: &[RunDistribution], curve: Curve) -> Vec<Series> {
    let measured = || runs.iter().filter(|run| run.n > 0);
    // One probe of the shortest run: rarer delays are not known of each run.
    let rarest = 1.0 / measured().map(|run| run.n).min().unwrap_or(1) as f64;
    let tails = (0..POINTS as i32).map(|step| 10_f64.powf(-f64::from(step) / PER_DECADE));
    let (mut line, mut band) = (Vec::new(), Vec::new());
    for x in tails.take_while(|tail| *tail > rarest).chain([rarest]) {
        let mut delays: Vec<f64> = measured().map(|run| delay_at(run, x)).collect();
        let Some(delays) = FiveNumberSummary::of(&mut delays).filter(|delays| delays.min.is_finite()) else { break };
        band.push(Range { x, low: delays.min, high: delays.max });
        line.extend(delays.median.is_finite().then_some(Point { x, y: delays.median }));
    }
    vec![curve.unnamed(Marks::Band(band)), curve.series(Marks::Line(line))]
}
