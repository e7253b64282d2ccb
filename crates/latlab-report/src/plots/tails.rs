//! The tail and the percentiles of one or several conditions. A condition with several runs is the mean of their quantiles
//! with the range of the runs as a band: their probes are never pooled (decision 0025.6).

use super::conditions::mean;
use super::input::{self, PlotCondition, PlotInput};
use super::layout::{Drawn, LINES, Layout};
use crate::analysis::distribution::{RunDistribution, TailPoint};
use crate::figure::axis::{Axis, AxisUnit, Scale, ValueLimits};
use crate::figure::{Figure, Mark, Series, Shape, spread};
use crate::metric::Metric;
use crate::stats::FiveNumberSummary;
use crate::units::human::few_parts;

/// Most points of the curve of several runs, and of the curves of all conditions.
const POINTS: usize = 240;
const ALL_POINTS: usize = 4_800;
/// So many of the largest delays of a run are points.
const LARGEST: usize = 100;
/// Quantiles in each decade of the curve of several runs.
const PER_DECADE: f64 = 20.0;

type Curve = Vec<(Shape, Vec<Mark>)>;

/// The conditions whose curves are shown: those with a finite delay, in runs of several probes.
struct ShownCurves<'a> {
    input: &'a PlotInput<'a>,
    conditions: Vec<&'a PlotCondition>,
    layout: Layout<'a>,
    /// Most points of each curve.
    points: usize,
    metric: Metric,
    delays: Axis,
    /// The share of half a probe of the largest run, so that one probe is above the end of the axis.
    least: f64,
    has_losses: bool,
    has_several_runs: bool,
}

impl<'a> ShownCurves<'a> {
    /// `None` if no condition has a finite delay.
    fn of(input: &'a PlotInput) -> Option<ShownCurves<'a>> {
        let mut conditions: Vec<_> = input.conditions.iter().filter(|condition| has_distribution(condition)).collect();
        let drawn: Vec<Drawn> = conditions.iter().map(|condition| Drawn::of(condition)).collect();
        let layout = Layout::of(&drawn, LINES, input.pictures());
        conditions.truncate(layout.places.len());
        let runs = || conditions.iter().flat_map(|condition| &condition.runs);
        let metric = runs().next()?.metric;
        let delays = ValueLimits::of(runs().flat_map(|run| run.tail.iter().map(|point| point.value_ns)))?;
        Some(ShownCurves {
            input,
            metric,
            delays: Axis::of_metric(metric, delays.logarithmic()),
            least: 0.5 / runs().map(|run| run.n).max().unwrap_or(1) as f64,
            has_losses: runs().any(|run| run.lost > 0),
            has_several_runs: conditions.iter().any(|condition| condition.runs.len() > 1),
            points: POINTS.min(ALL_POINTS / conditions.len()),
            conditions,
            layout,
        })
    }

    /// The series of all conditions, and the caption with `note`.
    fn drawn(&self, note: &str, curve: impl Fn(&[RunDistribution]) -> Curve) -> (String, Vec<Series>) {
        let (mut series, mut without) = (Vec::new(), Vec::new());
        for (condition, place) in self.conditions.iter().zip(&self.layout.places) {
            let curve = curve(&condition.runs);
            if curve.iter().all(|(shape, marks)| !shape.is_line() || marks.is_empty()) {
                without.push(condition.name.clone());
            }
            series.extend(curve.into_iter().map(|(shape, marks)| {
                let is_named = shape.is_line() && self.input.conditions.len() > 1;
                Series::new(if is_named { &place.name } else { "" }, place.colour, shape, marks).in_panel(place.panel)
            }));
        }
        let is_lost =
            |it: &&PlotCondition| it.runs.iter().any(|run| run.n > 0) && it.runs.iter().all(|run| run.tail.is_empty());
        let lost: Vec<&PlotCondition> = self.input.conditions.iter().filter(is_lost).collect();
        without.extend(lost.iter().map(|condition| condition.name.clone()));
        let without = match without.as_slice() {
            [] => String::new(),
            lost => {
                format!(" Without a line, since a run has infinite delays only: {}.", few_parts(lost))
            }
        };
        let band = " Lines are means of the quantiles of the runs of a condition, bands their whole range.";
        let band = if self.has_several_runs { band } else { "" };
        let measured = input::of_conditions(self.input, &[&self.conditions[..], &lost[..]].concat(), self.metric);
        (format!("{measured}{band}{note}{without}"), series)
    }
}

/// Whether there is more to see than one probe of each run.
pub(super) fn has_distribution(condition: &PlotCondition) -> bool {
    condition.runs.iter().any(|run| run.n > 1 && !run.tail.is_empty())
}

/// The complementary distribution, on logarithmic axes.
pub(super) fn tail(input: &PlotInput) -> Vec<Figure> {
    let Some(curves) = ShownCurves::of(input) else { return Vec::new() };
    let note = match (curves.has_losses, curves.has_several_runs) {
        (false, _) => " Beyond the largest delay a line runs along the lower edge.",
        (true, false) => " Beyond the largest delay a line shows the share without a delay.",
        (true, true) => " A line ends where a run has infinite delays.",
    };
    let (caption, series) = curves.drawn(note, |runs| match runs {
        [run] => tail_of_run(run, curves.points),
        runs => tail_of_runs(runs, curves.least, curves.points),
    });
    let label = format!("share of {}s at least as large", input::thing(curves.metric));
    vec![Figure {
        name: "tail".into(),
        title: "Complementary distribution: the tail".into(),
        caption,
        panels: curves.layout.panels,
        x: curves.delays,
        y: Axis::new(label, Scale::Log(curves.least, 1.0), AxisUnit::Share),
        series,
    }]
}

/// The tail of one run. Its steps are in descending order of delay: the share that holds between two delays is that of the
/// larger one, and beyond the largest delay that of lost probes.
fn tail_of_run(run: &RunDistribution, shown: usize) -> Curve {
    let points: Vec<Mark> = drawn_tail(run, shown).map(|point| Mark::point(point.value_ns, point.tail)).collect();
    let points: Vec<Mark> = points.into_iter().rev().collect();
    // Beside many curves they would hide them.
    let largest = points[..points.len().min(if shown == POINTS { LARGEST } else { 0 })].to_vec();
    let unanswered = Mark::point(f64::INFINITY, lost_share(run));
    vec![(Shape::Steps, std::iter::once(unanswered).chain(points).collect()), (Shape::Points, largest)]
}

/// The means of the quantiles of several runs, and the range of their shares at delays along their tails, as steps like those of
/// one run.
fn tail_of_runs(runs: &[RunDistribution], least: f64, points: usize) -> Curve {
    let mut delays: Vec<f64> = runs.iter().flat_map(|run| run.tail.iter().map(|point| point.value_ns)).collect();
    delays.sort_unstable_by(f64::total_cmp);
    delays.dedup();
    let mut band = Vec::new();
    for x in [f64::INFINITY].into_iter().chain(spread(&delays, points).copied().collect::<Vec<_>>().into_iter().rev()) {
        let mut shares: Vec<f64> = runs.iter().filter(|run| run.n > 0).map(|run| share_at(run, x)).collect();
        let Some(shares) = FiveNumberSummary::of(&mut shares) else { continue };
        if shares.max > least {
            band.push(Mark::at([x], [shares.min, shares.max]));
        }
    }
    let per_decade = PER_DECADE * points as f64 / POINTS as f64;
    let line = means(runs, per_decade).map(|(tail, mean)| Mark::point(mean, tail)).collect();
    vec![(Shape::StepBand, band), (Shape::Line, line)]
}

/// The points of the tail that are drawn: all, if few curves share the figure.
fn drawn_tail(run: &RunDistribution, points: usize) -> impl Iterator<Item = &TailPoint> {
    spread(&run.tail, if points == POINTS { run.tail.len() } else { points })
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
    let Some(curves) = ShownCurves::of(input) else { return Vec::new() };
    let (what, end) = if curves.has_several_runs {
        ("The quantiles of each run are", "the rarest quantile that every run has")
    } else {
        ("Lines show", "the largest delay")
    };
    let lost = match (curves.has_losses, curves.has_several_runs) {
        (false, _) => "",
        (true, false) => "; infinite delays are not drawn",
        (true, true) => ", or where a run is infinite; a band without an upper edge reaches infinite delays",
    };
    let note = format!(
        " {what} measured delays (order statistics): interpolated quantiles of tables may lie between two of them. Lines end \
         with {end}{lost}."
    );
    let (caption, series) = curves.drawn(&note, |runs| match runs {
        [run] => vec![(Shape::Steps, percentiles_of_run(run, curves.points))],
        runs => percentiles_of_runs(runs, PER_DECADE * curves.points as f64 / POINTS as f64),
    });
    vec![Figure {
        name: "percentiles".into(),
        title: "Quantiles".into(),
        caption,
        x: Axis::new("quantile", Scale::Log(1.0, curves.least.min(0.5)), AxisUnit::Tail),
        panels: curves.layout.panels,
        y: curves.delays,
        series,
    }]
}

/// The quantiles of one run. The largest delay is that of all rarer quantiles too, up to those of the lost probes: so a run
/// with one probe, or with equal delays, has a line.
fn percentiles_of_run(run: &RunDistribution, points: usize) -> Vec<Mark> {
    let rarest = lost_share(run).max(0.5 / run.n as f64);
    let end = run.tail.last().map(|largest| Mark::point(rarest, largest.value_ns));
    drawn_tail(run, points).map(|point| Mark::point(point.tail, point.value_ns)).chain(end).collect()
}

/// Shares of probes along the curve of several runs, down to one probe of the shortest: rarer delays are not known of each
/// run.
fn tails_of(runs: &[RunDistribution], per_decade: f64) -> impl Iterator<Item = f64> {
    let rarest = 1.0 / runs.iter().map(|run| run.n).filter(|n| *n > 0).min().unwrap_or(1) as f64;
    let tails = (0..POINTS as i32).map(move |step| 10_f64.powf(-f64::from(step) / per_decade));
    tails.take_while(move |tail| *tail > rarest).chain([rarest])
}

fn delays_at(runs: &[RunDistribution], tail: f64) -> Vec<f64> {
    runs.iter().filter(|run| run.n > 0).map(|run| delay_at(run, tail)).collect()
}

/// The finite means of the quantiles of several runs, behind the shares of probes beyond them.
fn means(runs: &[RunDistribution], per_decade: f64) -> impl Iterator<Item = (f64, f64)> {
    let point = |tail: f64| Some((tail, mean(&delays_at(runs, tail)).filter(|mean| mean.is_finite())?));
    tails_of(runs, per_decade).map_while(point)
}

/// The mean and the range of the quantiles of several runs. A quantile among the lost probes of a run is infinite, and the
/// largest of them: the line ends there, and the band is open above it.
fn percentiles_of_runs(runs: &[RunDistribution], per_decade: f64) -> Curve {
    let range = |tail: f64| {
        let delays = FiveNumberSummary::of(&mut delays_at(runs, tail)).filter(|delays| delays.min.is_finite())?;
        Some(Mark::at([tail], [delays.min, delays.max]))
    };
    let line = means(runs, per_decade).map(|(tail, mean)| Mark::point(tail, mean)).collect();
    vec![(Shape::Band, tails_of(runs, per_decade).map_while(range).collect()), (Shape::Line, line)]
}
