//! Figures of a comparison: all effects with their intervals, and the differences along the distribution.

use super::input::left_out;
use super::layout::{Drawn, LINES, Layout, Levels, words};
use crate::analysis::comparison::{Comparison, Comparisons, Effect, Verdict};
use crate::comparison::{common_sentence, compared_means, pair_name, row_label, several_metrics};
use crate::figure::axis::{Axis, AxisUnit, Scale, ValueLimits};
use crate::figure::draw::LOOKS;
use crate::figure::{Figure, Mark, Series, Shape};
use crate::recipe::Pictures;
use crate::units::human::percent;

/// Most rows of a forest plot.
const ROWS: usize = 60;

/// Verdicts in the order of the legend, whose colours they have.
const VERDICTS: [Verdict; 5] =
    [Verdict::Lower, Verdict::Higher, Verdict::Equivalent, Verdict::Undecided, Verdict::None];

/// The name of the line at a change of 0.
const NO_CHANGE: &str = "no change";

/// The ends of the interval of `effect`, infinite where it is open; `None` without an interval.
fn ends(effect: &Effect) -> Option<[f64; 2]> {
    let (low, high) = (effect.interval.low, effect.interval.high);
    let is_known = low.is_some() || high.is_some();
    is_known.then_some([low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY)])
}

/// A scale that holds the values of `effects`, their intervals and 0.
fn scale(effects: impl Iterator<Item = Effect>) -> Option<Scale> {
    let values = effects.flat_map(|effect| std::iter::once(effect.value).chain(ends(&effect).into_iter().flatten()));
    ValueLimits::of(values.chain([0.0])).map(ValueLimits::linear)
}

/// What was compared, as sentences after others.
fn compared(comparisons: &Comparisons, rows: &[&Comparison]) -> String {
    let means = compared_means(comparisons, rows).map(|means| format!(" Compared values: {means}."));
    means.unwrap_or_default() + &common_sentence(comparisons)
}

/// The effects of all rows that have one as a share of the baseline, by verdict.
pub(super) fn forest(comparisons: &Comparisons) -> Option<Figure> {
    let rows: Vec<(&Comparison, Effect)> =
        comparisons.rows.iter().filter_map(|row| Some((row, row.relative?))).collect();
    let shown = &rows[..rows.len().min(ROWS)];
    let scale = scale(shown.iter().map(|(_, effect)| *effect)).filter(|_| !shown.is_empty())?;
    let of_verdict = |(colour, verdict): (usize, Verdict)| {
        let rows = shown.iter().enumerate().filter(|(_, (row, _))| row.verdict == verdict);
        let mark = |(place, (_, effect)): (usize, &(&Comparison, Effect))| {
            let x: Vec<f64> = std::iter::once(effect.value).chain(ends(effect).into_iter().flatten()).collect();
            Mark::at(x, [place as f64])
        };
        Series::new(verdict.word(), colour, Shape::Intervals, rows.map(mark).collect())
    };
    let zero = Series::new(NO_CHANGE, VERDICTS.len(), Shape::Rule, vec![Mark::at([0.0], [])]);
    let with_metric = several_metrics(&comparisons.rows);
    let pair = pair_name(comparisons);
    let names = shown.iter().map(|(row, _)| format!("{}  {}", row_label(row, with_metric), pair(row)));
    let without = match comparisons.rows.len() - rows.len() {
        0 => String::new(),
        without => format!(
            " {without} of {} rows have no change in per cent, and are in the table only.",
            comparisons.rows.len()
        ),
    };
    Some(Figure {
        name: "forest".into(),
        title: "Changes with their intervals".into(),
        caption: format!(
            "{} confidence intervals of changes, as shares of the baseline; an interval without an end is open.{}{without}{}",
            percent(comparisons.options.confidence),
            compared(comparisons, &shown.iter().map(|(row, _)| *row).collect::<Vec<_>>()),
            left_out(rows.len() - shown.len(), "comparison"),
        ),
        panels: Vec::new(),
        x: Axis::new("change", scale, AxisUnit::Change),
        y: Axis::of_names("comparison", names.collect()),
        series: std::iter::once(zero).chain(VERDICTS.into_iter().enumerate().map(of_verdict)).collect(),
    })
}

/// The difference of each candidate from its baseline along the quantiles, with the band of its intervals.
pub(super) fn shift(comparisons: &Comparisons, pictures: &Pictures) -> Option<Figure> {
    // All in per cent, or all in the unit of the figures where a baseline of 0 or below has no share.
    let shifts = || comparisons.shifts.iter().filter_map(|row| Some((row, row.quantity.quantile()?)));
    let is_relative = shifts().all(|(row, _)| row.relative.is_some() || row.difference.is_none());
    let effect = |row: &Comparison| if is_relative { row.relative } else { row.difference };
    // A candidate may have several baselines.
    let pair_of = |row: &Comparison| (row.candidate, row.baseline);
    let mut pairs: Vec<&Comparison> = Vec::new();
    for (row, _) in shifts().filter(|(row, _)| effect(row).is_some()) {
        if pairs.last().is_none_or(|last| pair_of(last) != pair_of(row)) {
            pairs.push(row);
        }
    }
    let names: Vec<[String; 2]> = pairs.iter().map(|row| names_of_pair(comparisons, row, pictures)).collect();
    let drawn: Vec<Drawn> = pairs.iter().zip(&names).map(|(row, names)| drawn_pair(comparisons, row, names)).collect();
    let layout = Layout::of(&drawn, LINES, pictures);
    let shown = &pairs[..layout.places.len()];
    let is_shown = |row: &Comparison| shown.iter().any(|pair| pair_of(pair) == pair_of(row));
    let rows: Vec<(&Comparison, f64)> = shifts().filter(|(row, _)| is_shown(row)).collect();
    let scale = scale(rows.iter().filter_map(|(row, _)| effect(row)))?;
    let (first, _) = rows.first()?;
    let least = rows.iter().map(|(_, quantile)| *quantile).reduce(f64::max)?;
    let zero = Series::new(NO_CHANGE, LOOKS - 1, Shape::Rule, vec![Mark::at([], [0.0])]);
    let mut series: Vec<Series> = (0..layout.panels.len().max(1)).map(|panel| zero.clone().in_panel(panel)).collect();
    for ((pair, place), [name, _]) in shown.iter().zip(&layout.places).zip(&names) {
        let of_pair = rows.iter().filter(|(row, _)| pair_of(row) == pair_of(pair));
        let (mut line, mut band) = (Vec::new(), Vec::new());
        for (effect, quantile) in of_pair.filter_map(|(row, quantile)| Some((effect(row)?, quantile))) {
            line.push(Mark::point(1.0 - quantile, effect.value));
            band.extend(ends(&effect).map(|ends| Mark::at([1.0 - quantile], ends)));
        }
        let name = if layout.panels.is_empty() { name } else { &place.name };
        let of_pair = [("", Shape::Band, band), (name, Shape::Line, line.clone()), ("", Shape::Points, line)];
        let in_place = |(name, shape, marks)| Series::new(name, place.colour, shape, marks).in_panel(place.panel);
        series.extend(of_pair.map(in_place));
    }
    let absolute = first.quantity.metric().map_or(AxisUnit::Plain, AxisUnit::of);
    let unit = if is_relative { AxisUnit::Change } else { absolute };
    Some(Figure {
        name: "shift".into(),
        title: format!("Change of {} along the distribution", first.quantity.metric_title()),
        caption: format!(
            "Difference of each quantile from that of the baseline; bands are {} confidence intervals of single \
             quantiles, without verdicts.{}{}",
            percent(comparisons.options.confidence),
            compared(comparisons, &rows.iter().map(|(row, _)| *row).collect::<Vec<_>>()),
            left_out(pairs.len() - shown.len(), "pair"),
        ),
        panels: layout.panels,
        x: Axis::new("quantile", Scale::Log(1.0, 1.0 - least), AxisUnit::Tail),
        y: Axis::new("change", scale, unit),
        series,
    })
}

/// The name of a pair among all, and what differs in it: `load=none → load=cpu=80%`.
fn names_of_pair(comparisons: &Comparisons, row: &Comparison, pictures: &Pictures) -> [String; 2] {
    let [from, to] = levels_of_pair(comparisons, row);
    let differing = |own: &Levels, other: &Levels| {
        let levels = own.iter().filter(|(factor, level)| other.get(*factor) != Some(level));
        words(&levels.map(|(factor, level)| (*factor, *level)).collect(), pictures)
    };
    [pair_name(comparisons)(row), format!("{} → {}", differing(&from, &to), differing(&to, &from))]
}

/// A pair with the levels that its groups have in common. What differs has no name of a factor.
fn drawn_pair<'a>(comparisons: &'a Comparisons, row: &Comparison, [name, change]: &'a [String; 2]) -> Drawn<'a> {
    let [from, to] = levels_of_pair(comparisons, row);
    let mut levels: Levels = from.into_iter().filter(|(factor, level)| to.get(factor) == Some(level)).collect();
    levels.insert("", if to.is_empty() { name } else { change });
    Drawn { name, levels }
}

fn levels_of_pair<'a>(comparisons: &'a Comparisons, row: &Comparison) -> [Levels<'a>; 2] {
    let levels = |group: usize| {
        let levels = comparisons.groups.groups.get(group).into_iter().flat_map(|group| &group.levels);
        levels.map(|(factor, level)| (factor.as_str(), level.as_str())).collect()
    };
    [levels(row.baseline), levels(row.candidate)]
}
