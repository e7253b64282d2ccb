//! Figures of a comparison: all effects with their intervals, and the differences along the distribution.

use super::axes::{ValueLimits, has_marks, names_axis};
use super::input::{PlotInput, left_out};
use crate::analysis::comparison::{Comparison, Comparisons, Effect, Verdict};
use crate::report::comparison::{common_sentence, compared_means, pair_name, row_label, several_metrics};
use crate::report::figure::{Axis, AxisUnit, Figure, IntervalMark, Marks, Point, Range, Scale, Series};
use crate::units::human::percent;

/// Most rows of a forest plot.
const ROWS: usize = 60;
/// Most pairs of groups of a shift function.
const PAIRS: usize = 7;

/// Verdicts in the order of the legend, whose colours they have.
const VERDICTS: [Verdict; 5] =
    [Verdict::Lower, Verdict::Higher, Verdict::Equivalent, Verdict::Undecided, Verdict::None];

/// The name of the line at a change of 0.
const NO_CHANGE: &str = "no change";

/// The ends of the interval of `effect` and its value, as far as they are known.
fn values(effect: &Effect) -> impl Iterator<Item = f64> {
    [Some(effect.value), effect.interval.low, effect.interval.high].into_iter().flatten()
}

/// The effects of all rows that have one as a share of the baseline, by verdict.
pub(super) fn forest(input: &PlotInput) -> Vec<Figure> {
    let Some(comparisons) = input.comparisons else { return Vec::new() };
    let with_effect = comparisons.rows.iter().filter_map(|row| Some(ForestRow { row, effect: row.relative? }));
    let rows: Vec<ForestRow> = with_effect.collect();
    let shown = &rows[..rows.len().min(ROWS)];
    let Some(limits) = ValueLimits::of(shown.iter().flat_map(|it| values(&it.effect)).chain([0.0])) else {
        return Vec::new();
    };
    if shown.is_empty() {
        return Vec::new();
    }
    let of_verdict = |(colour, verdict): (usize, Verdict)| {
        let rows = shown.iter().enumerate().filter(|(_, it)| it.row.verdict == verdict);
        let marks: Vec<_> = rows.map(|(row, it)| mark(row, &it.effect)).collect();
        let series = Series { name: verdict.word().into(), colour, marks: Marks::Intervals(marks) };
        has_marks(&series).then_some(series)
    };
    let zero = Series { name: NO_CHANGE.into(), colour: VERDICTS.len(), marks: Marks::Rule(0.0) };
    let series = std::iter::once(zero).chain(VERDICTS.into_iter().enumerate().filter_map(of_verdict)).collect();
    let with_metric = several_metrics(&comparisons.rows);
    let pair = pair_name(comparisons);
    let name = |it: &ForestRow| format!("{}  {}", row_label(it.row, with_metric), pair(it.row));
    let names = shown.iter().map(name);
    let without = comparisons.rows.len() - rows.len();
    vec![Figure {
        name: "forest",
        title: "Changes with their intervals".into(),
        caption: format!(
            "{} confidence intervals of changes, as shares of the baseline; an interval without an end is open.{}{}{}{}",
            percent(comparisons.options.confidence),
            compared_sentence(comparisons, &shown.iter().map(|it| it.row).collect::<Vec<_>>()),
            common_sentence(comparisons),
            match without {
                0 => String::new(),
                _ => format!(
                    " {without} of {} rows have no change in per cent, and are in the table only.",
                    comparisons.rows.len()
                ),
            },
            left_out(rows.len() - shown.len(), "comparison"),
        ),
        x: Axis { label: "change".into(), scale: limits.linear(), unit: AxisUnit::Change },
        y: names_axis("comparison", names.collect()),
        series,
    }]
}

/// What was compared, as a sentence after others; empty if each group has one run.
fn compared_sentence(comparisons: &Comparisons, rows: &[&Comparison]) -> String {
    compared_means(comparisons, rows).map(|means| format!(" Compared figures: {means}.")).unwrap_or_default()
}

/// A row with its change.
struct ForestRow<'a> {
    row: &'a Comparison,
    effect: Effect,
}

fn mark(row: usize, effect: &Effect) -> IntervalMark {
    let (low, high) = (effect.interval.low, effect.interval.high);
    IntervalMark { row: row as f64, estimate: Some(effect.value), low, high }
}

/// The difference of each candidate from its baseline along the quantiles, with the band of its intervals.
pub(super) fn shift(input: &PlotInput) -> Vec<Figure> {
    let Some(comparisons) = input.comparisons else { return Vec::new() };
    // All in per cent, or all in the unit of the figures where a baseline of 0 or below has no share.
    let shifts = || comparisons.shifts.iter().filter(|row| row.quantity.quantile().is_some());
    let is_relative = shifts().all(|row| row.relative.is_some() || row.difference.is_none());
    let effect = |row: &Comparison| if is_relative { row.relative } else { row.difference };
    // A candidate may have several baselines.
    let pair_of = |row: &Comparison| (row.candidate, row.baseline);
    let mut pairs: Vec<_> = shifts().filter(|row| effect(row).is_some()).map(pair_of).collect();
    pairs.dedup();
    let shown = &pairs[..pairs.len().min(PAIRS)];
    let rows = || shifts().filter(|row| shown.contains(&pair_of(row)));
    let Some(limits) =
        ValueLimits::of(rows().filter_map(effect).flat_map(|it| values(&it).collect::<Vec<_>>()).chain([0.0]))
    else {
        return Vec::new();
    };
    let (Some(first), Some(least)) = (rows().next(), rows().filter_map(|row| row.quantity.quantile()).reduce(f64::max))
    else {
        return Vec::new();
    };
    let scale = limits.linear();
    let curves = shown.iter().enumerate().flat_map(|(colour, pair)| {
        let of_pair: Vec<&Comparison> = rows().filter(|row| pair_of(row) == *pair).collect();
        curve(colour, comparisons, &of_pair, &effect)
    });
    let zero = Series { name: NO_CHANGE.into(), colour: PAIRS, marks: Marks::Level(0.0) };
    let series = std::iter::once(zero).chain(curves).collect();
    let unit = match (is_relative, first.quantity.is_rate()) {
        (true, _) => AxisUnit::Change,
        (false, true) => AxisUnit::BitRate,
        (false, false) => AxisUnit::Time,
    };
    vec![Figure {
        name: "shift",
        title: format!("Change of {} along the distribution", first.quantity.metric_title()),
        caption: format!(
            "Difference of each quantile from that of the baseline; bands are {} confidence intervals of single \
             quantiles, without verdicts.{}{}{}",
            percent(comparisons.options.confidence),
            compared_sentence(comparisons, &rows().collect::<Vec<_>>()),
            common_sentence(comparisons),
            left_out(pairs.len() - shown.len(), "pair"),
        ),
        x: Axis { label: "quantile".into(), scale: Scale::Log(1.0, 1.0 - least), unit: AxisUnit::Tail },
        y: Axis { label: "change".into(), scale, unit },
        series,
    }]
}

/// The curve of one pair of groups. An open end of an interval reaches to the end of the axis.
fn curve(
    colour: usize,
    comparisons: &Comparisons,
    rows: &[&Comparison],
    effect: &dyn Fn(&Comparison) -> Option<Effect>,
) -> Vec<Series> {
    let (mut line, mut band) = (Vec::new(), Vec::new());
    for row in rows {
        let (Some(effect), Some(q)) = (effect(row), row.quantity.quantile()) else { continue };
        let x = 1.0 - q;
        line.push(Point { x, y: effect.value });
        let (low, high) = (effect.interval.low, effect.interval.high);
        if low.is_some() || high.is_some() {
            band.push(Range { x, low: low.unwrap_or(f64::NEG_INFINITY), high: high.unwrap_or(f64::INFINITY) });
        }
    }
    let name = rows.first().map(|row| pair_name(comparisons)(row)).unwrap_or_default();
    let series = [
        Series { name: String::new(), colour, marks: Marks::Band(band) },
        Series { name, colour, marks: Marks::Line(line.clone()) },
        Series { name: String::new(), colour, marks: Marks::Points(line) },
    ];
    series.into_iter().filter(has_marks).collect()
}
