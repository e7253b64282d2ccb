//! Histograms with logarithmic counts: of one run, and of the runs of several conditions, each in its panel.

use super::input::{self, PlotCondition, PlotInput};
use super::layout::{self, PANELS};
use super::single_run::LOST_MARGIN;
use super::tails::has_distribution;
use crate::analysis::distribution::{RunDistribution, on_common_bins};
use crate::figure::axis::{Axis, ValueLimits};
use crate::figure::{Figure, Mark, Series, Shape};
use crate::stats::{Bucket, FiveNumberSummary};

/// The colours of bars: of a run or the median of several, of the run with most, and of losses.
const COLOURS: [usize; 3] = [0, 6, 1];

/// A bar for each bin, and one for lost probes beyond the largest delay.
pub(super) fn histogram(input: &PlotInput) -> Option<Figure> {
    let shown: Vec<&PlotCondition> = input.conditions.iter().filter(|it| has_distribution(it)).take(PANELS).collect();
    let runs: Vec<&RunDistribution> = shown.iter().flat_map(|condition| &condition.runs).collect();
    let metric = runs.first()?.metric;
    let bins = on_common_bins(&runs.iter().map(|run| run.histogram.as_slice()).collect::<Vec<_>>());
    let edges = bins.iter().flatten().flat_map(|bin| [bin.low_ns as f64, bin.high_ns as f64]);
    let scale = ValueLimits::of(edges)?.logarithmic();
    let most = bins.iter().flatten().map(|bin| bin.count).chain(runs.iter().map(|run| run.lost)).max()?;
    let has_losses = runs.iter().any(|run| run.lost > 0);
    let has_several = shown.iter().any(|condition| condition.runs.len() > 1);
    let (mut series, mut left) = (Vec::new(), bins.as_slice());
    for (panel, condition) in shown.iter().enumerate() {
        let (own, others) = left.split_at(condition.runs.len());
        left = others;
        series.extend(bars(own, &condition.runs).map(|series| series.in_panel(panel)));
    }
    let lost = if has_losses { " The bar at the right end counts those without a delay." } else { "" };
    let several = " Dark bars are medians of the counts of the runs of a condition, pale ones reach to the largest.";
    let of_runs = input::of_conditions(input, &shown, metric);
    Some(Figure {
        name: "histogram".into(),
        title: "How often each delay occurred".into(),
        caption: format!("{of_runs} Bars have logarithmic heights.{}{lost}", if has_several { several } else { "" }),
        panels: layout::names(&shown, input.pictures()).into_iter().filter(|_| shown.len() > 1).collect(),
        x: Axis::of_metric(metric, if has_losses { scale.extended(LOST_MARGIN) } else { scale }),
        y: Axis::of_counts(format!("{}s", input::thing(metric)), most),
        series,
    })
}

/// The bars of the runs of a condition: of `bins` one for each run, on the same edges.
fn bars(bins: &[Vec<Bucket>], runs: &[RunDistribution]) -> impl Iterator<Item = Series> {
    let counts =
        |index: usize| FiveNumberSummary::of(&mut bins.iter().map(|own| own[index].count as f64).collect::<Vec<_>>());
    let lost = FiveNumberSummary::of(&mut runs.iter().map(|run| run.lost as f64).collect::<Vec<_>>());
    let (mut medians, mut largest) = (Vec::new(), Vec::new());
    for (index, bin) in bins.first().into_iter().flatten().enumerate() {
        let Some(counts) = counts(index) else { continue };
        let bar = |count: f64| (count > 0.0).then(|| Mark::at([bin.low_ns as f64, bin.high_ns as f64], [count]));
        medians.extend(bar(counts.median));
        largest.extend(bar(counts.max).filter(|_| runs.len() > 1));
    }
    let lost = lost.filter(|lost| lost.max > 0.0).map(|lost| Mark::at([f64::INFINITY; 2], [lost.max]));
    let of = if runs.len() > 1 { ["median of the runs", "largest of the runs"] } else { ["", ""] };
    let [median, most, without] = COLOURS;
    [
        Series::new(of[1], most, Shape::Bars, largest),
        Series::new(of[0], median, Shape::Bars, medians),
        Series::new("without a delay", without, Shape::Bars, lost.into_iter().collect()),
    ]
    .into_iter()
}
