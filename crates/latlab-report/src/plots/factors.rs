//! Figures over the levels of factors: a line along a numeric one, and a heat map over two.

use std::collections::{BTreeMap, BTreeSet};

use super::conditions::{PlottedStatistic, mean, of_each_statistic};
use super::input::{PlotCondition, PlotInput, left_out};
use crate::figure::axis::{Axis, AxisUnit, Scale, ValueLimits};
use crate::figure::{Figure, Mark, Series, Shape, spread};
use crate::metric::Metric;
use crate::stats::FiveNumberSummary;
use crate::units::Nanos;
use crate::units::human::{self, NetworkRate};

/// Fewer levels of a factor do not make a line.
const SWEPT_LEVELS: usize = 3;
/// Most conditions of a line of a sweep.
const PLACES: usize = 240;
/// Most lines of a sweep.
const LINES: usize = 8;
/// Most levels of either factor of a heat map.
const MAPPED_LEVELS: usize = 24;

/// A factor with the levels that occur, in the order of the conditions.
struct VariedFactor<'a> {
    name: &'a str,
    levels: Vec<&'a str>,
}

/// The factors with at least two levels; those with the most levels first.
fn varied<'a>(input: &'a PlotInput) -> Vec<VariedFactor<'a>> {
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut factors: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (factor, level) in input.conditions.iter().flat_map(|condition| &condition.levels) {
        if seen.insert((factor, level)) {
            factors.entry(factor).or_default().push(level);
        }
    }
    let mut varied: Vec<_> = factors.into_iter().map(|(name, levels)| VariedFactor { name, levels }).collect();
    varied.retain(|factor| factor.levels.len() > 1);
    varied.sort_by_key(|factor| std::cmp::Reverse(factor.levels.len()));
    varied
}

/// The level of `factor` in `condition`.
fn level<'a>(condition: &'a PlotCondition, factor: &str) -> Option<&'a str> {
    condition.levels.get(factor).map(String::as_str)
}

/// `size=64, load=none`: those of the `factors` that `condition` has.
fn levels_in_words<'a>(condition: &PlotCondition, factors: impl Iterator<Item = &'a VariedFactor<'a>>) -> String {
    let word = |factor: &VariedFactor| Some(format!("{}={}", factor.name, level(condition, factor.name)?));
    factors.filter_map(word).collect::<Vec<_>>().join(", ")
}

/// What the numbers of a factor are: their unit, and of loads what they have in common besides their number, `cpu@peer`.
#[derive(Clone, Debug, PartialEq)]
struct NumericKind {
    unit: AxisUnit,
    load: String,
}

/// The number of a level, of those factors whose levels latlab knows as numbers, and its kind. Tags and settings are names,
/// whatever they look like. The absent load is 0 of every kind.
fn numeric(factor: &str, level: &str) -> Option<(f64, Option<NumericKind>)> {
    let (word, number, parameters) = match factor {
        "load" if level == "none" => return Some((0.0, None)),
        "load" => {
            let (word, rest) = level.split_once('=')?;
            let (number, parameters) = rest.split_at(rest.find(['@', ':', '+', ' ']).unwrap_or(rest.len()));
            (word, number, parameters)
        }
        factor => (factor, level, ""),
    };
    // Spans in words are grouped: `1,500 µs`.
    let text: String = number.chars().filter(|char| !char.is_whitespace() && *char != ',').collect();
    let (value, unit) = match word {
        // Several loads are no number.
        _ if parameters.contains('+') => return None,
        "size" => (human::parse_size(&text).ok()?.into(), AxisUnit::Bytes),
        "interval" | "duration" | "with-wakeup" | "probe" => {
            (human::parse_duration(&text).ok()?.0 as f64, AxisUnit::Time)
        }
        "rate" | "net" => match human::parse_network_rate(&text).ok()? {
            NetworkRate::Bits(bits) => (bits as f64, AxisUnit::BitRate),
            NetworkRate::Packets(packets) => (packets as f64, AxisUnit::PacketRate),
        },
        "cpu" => (human::parse_percent(&text).ok()?, AxisUnit::Share),
        "mem" => (human::parse_byte_rate(&text).ok()?, AxisUnit::ByteRate),
        "count" | "batch" | "flows" | "fifo" | "heaters" => (human::parse_count(&text).ok()? as f64, AxisUnit::Plain),
        _ => return None,
    };
    let load = if factor == "load" { format!("{word}{parameters}") } else { String::new() };
    Some((value, Some(NumericKind { unit, load })))
}

/// A factor whose levels are numbers of one kind.
struct SweptFactor<'a> {
    name: &'a str,
    kind: NumericKind,
    values: BTreeMap<&'a str, f64>,
}

fn swept<'a>(factors: &[VariedFactor<'a>]) -> Option<SweptFactor<'a>> {
    factors.iter().filter(|factor| factor.levels.len() >= SWEPT_LEVELS).find_map(|factor| {
        let (mut kinds, mut values) = (Vec::new(), BTreeMap::new());
        for level in &factor.levels {
            let (value, kind) = numeric(factor.name, level)?;
            values.insert(*level, value);
            kinds.extend(kind);
        }
        kinds.dedup();
        let [kind] = kinds.as_slice() else { return None };
        Some(SweptFactor { name: factor.name, kind: kind.clone(), values })
    })
}

struct SweptLine<'a> {
    name: String,
    conditions: Vec<&'a PlotCondition>,
}

/// A line for each combination of the other factors, along the factor with the most levels that are numbers.
pub(super) fn sweep(input: &PlotInput) -> Vec<Figure> {
    let factors = varied(input);
    let Some(swept) = swept(&factors) else { return Vec::new() };
    let mut lines: Vec<SweptLine> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for condition in input.conditions.iter().filter(|condition| level(condition, swept.name).is_some()) {
        let name = levels_in_words(condition, factors.iter().filter(|factor| factor.name != swept.name));
        let index = *known.entry(name.clone()).or_insert(lines.len());
        if index == lines.len() {
            lines.push(SweptLine { name, conditions: Vec::new() });
        }
        lines[index].conditions.push(condition);
    }
    let rest = left_out(lines.len().saturating_sub(LINES), "line");
    lines.truncate(LINES);
    of_each_statistic(input, |statistic| of_sweep(statistic, &swept, &lines, &rest))
}

fn of_sweep(statistic: &PlottedStatistic, swept: &SweptFactor, lines: &[SweptLine], rest: &str) -> Option<Figure> {
    let (mut series, mut values, mut hidden) = (Vec::new(), Vec::new(), 0);
    for (colour, line) in lines.iter().enumerate() {
        let places = line.places(statistic, swept);
        values.extend(places.iter().flat_map(|place| &place.values));
        hidden += places.len().saturating_sub(PLACES);
        series.extend(line.series(colour, &spread(&places, PLACES).collect::<Vec<_>>()));
    }
    let y = ValueLimits::of(values.iter().copied())?.suited();
    let x = ValueLimits::of(swept.values.values().copied())?.suited();
    let metric = metric_of(lines.iter().flat_map(|line| &line.conditions))?;
    let reading = " An infinite mean has no point. A band is open above where some runs are infinite, and has a gap \
                   where all are.";
    let label = format!("{} {}", swept.name, swept.kind.load);
    Some(Figure {
        name: format!("sweep{}", statistic.suffix),
        title: format!("{} of {} by {}", statistic.word, metric.title(), swept.name),
        caption: format!(
            "Each point is the mean of the runs of a condition, the band the range of its runs; lines only join \
             neighbours.{}{}{rest}",
            statistic.infinite_words(&values, reading),
            left_out(hidden, "condition")
        ),
        x: Axis::new(label.trim_end(), x, swept.kind.unit),
        y: Axis::of_metric(metric, y),
        series,
    })
}

fn metric_of<'a>(mut conditions: impl Iterator<Item = &'a &'a PlotCondition>) -> Option<Metric> {
    Some(conditions.find_map(|condition| condition.runs.first())?.statistics.metric)
}

/// The runs at one value of the swept factor.
struct SweptPlace {
    x: f64,
    /// At least one; infinite ones are the largest.
    values: Vec<f64>,
    mean: f64,
    runs: FiveNumberSummary,
}

impl SweptLine<'_> {
    /// Its conditions with figures, in ascending order of x.
    fn places(&self, statistic: &PlottedStatistic, swept: &SweptFactor) -> Vec<SweptPlace> {
        let place = |condition: &&PlotCondition| {
            let x = *swept.values.get(level(condition, swept.name)?)?;
            let mut values = statistic.values(&condition.runs);
            let runs = FiveNumberSummary::of(&mut values)?;
            Some(SweptPlace { x, mean: mean(&values)?, values, runs })
        };
        let mut places: Vec<SweptPlace> = self.conditions.iter().filter_map(place).collect();
        places.sort_by(|one, other| one.x.total_cmp(&other.x));
        places
    }

    /// The line with its band and points. Conditions at one x differ in what no factor says: they are not joined.
    fn series(&self, colour: usize, places: &[&SweptPlace]) -> Vec<Series> {
        let mean = |place: &&SweptPlace| Mark::point(place.x, place.mean);
        let points = places.iter().filter(|place| place.mean.is_finite()).map(mean).collect();
        if places.windows(2).any(|pair| pair[0].x == pair[1].x) {
            return vec![Series::new(&self.name, colour, Shape::Points, points)];
        }
        let ranges = places.iter().map(|place| Mark::at([place.x], [place.runs.min, place.runs.max])).collect();
        vec![
            Series::new("", colour, Shape::Band, ranges),
            Series::new(&self.name, colour, Shape::Line, places.iter().map(mean).collect()),
            Series::new("", colour, Shape::Points, points),
        ]
    }
}

/// Heat maps over the two factors with the most levels; other factors stay at the levels of the first condition.
pub(super) fn heat_map(input: &PlotInput) -> Vec<Figure> {
    let factors = varied(input);
    let [across, along, others @ ..] = factors.as_slice() else { return Vec::new() };
    let Some(first) = input.conditions.first() else { return Vec::new() };
    let is_shown =
        |condition: &&PlotCondition| others.iter().all(|it| level(condition, it.name) == level(first, it.name));
    let conditions: Vec<_> = input.conditions.iter().filter(is_shown).collect();
    let fixed = match levels_in_words(first, others.iter()) {
        fixed if fixed.is_empty() => fixed,
        fixed => format!(" Only conditions with {fixed}."),
    };
    of_each_statistic(input, |statistic| of_heat_map(statistic, [across, along], &conditions, &fixed))
}

fn of_heat_map(
    statistic: &PlottedStatistic,
    [across, along]: [&VariedFactor; 2],
    conditions: &[&PlotCondition],
    fixed: &str,
) -> Option<Figure> {
    let metric = metric_of(conditions.iter())?;
    let index = |factor: &VariedFactor, condition: &PlotCondition| {
        let level = level(condition, factor.name)?;
        factor.levels.iter().take(MAPPED_LEVELS).position(|other| *other == level)
    };
    let mut means: BTreeMap<[usize; 2], f64> = BTreeMap::new();
    let mut of_runs = Vec::new();
    for condition in conditions {
        let Some((x, y)) = index(across, condition).zip(index(along, condition)) else { continue };
        let values = statistic.values(&condition.runs);
        means.extend(mean(&values).map(|mean| ([x, y], mean)));
        of_runs.extend(values);
    }
    // One row or column is no map.
    let is_map = [0, 1].iter().all(|axis| means.keys().map(|place| place[*axis]).collect::<BTreeSet<_>>().len() > 1);
    if !is_map {
        return None;
    }
    let limits = ValueLimits::of(means.values().copied())?;
    let is_lost = means.values().any(|mean| mean.is_infinite());
    let lost = if is_lost { " A cell `lost` has an infinite mean." } else { "" };
    let cell = |([x, y], value): (&[usize; 2], &f64)| Mark {
        darkness: darkness(*value, limits),
        text: in_words(metric, *value),
        ..Mark::point(*x as f64, *y as f64)
    };
    let name = |factor: &VariedFactor, level: &str| match numeric(factor.name, level) {
        Some((value, Some(NumericKind { unit: AxisUnit::Bytes, .. }))) => human::bytes(value as u64),
        _ => level.to_owned(),
    };
    let axis = |factor: &VariedFactor| {
        let names = factor.levels.iter().take(MAPPED_LEVELS).map(|level| name(factor, level)).collect();
        Axis::of_names(factor.name, names)
    };
    let hidden = [across, along].map(|factor| factor.levels.len().saturating_sub(MAPPED_LEVELS));
    Some(Figure {
        name: format!("heat-map{}", statistic.suffix),
        title: format!("{} of {} by {} and {}", statistic.word, metric.title(), across.name, along.name),
        caption: format!(
            "Each cell is the mean of the runs of a condition; larger values contrast more with the page. An \
             empty place has no figure.{}{fixed}{}",
            statistic.infinite_words(&of_runs, lost),
            left_out(hidden.iter().sum(), "level")
        ),
        x: axis(across),
        y: axis(along),
        series: vec![Series::new("", 0, Shape::Cells, means.iter().map(cell).collect())],
    })
}

/// The place of `value` between the extremes, from pale to dark, on a logarithmic scale if they suit one.
fn darkness(value: f64, limits: ValueLimits) -> f64 {
    const PALE: f64 = 0.1;
    let place = match limits.suited() {
        _ if value.is_infinite() => 1.0,
        _ if limits.max == limits.min => 0.5,
        Scale::Log(..) => (value / limits.min).ln() / (limits.max / limits.min).ln(),
        _ => (value - limits.min) / (limits.max - limits.min),
    };
    PALE + (1.0 - PALE) * place
}

fn in_words(metric: Metric, value: f64) -> String {
    if value.is_infinite() {
        return "lost".into();
    }
    if metric.is_rate() { human::bit_rate(value) } else { human::span(Nanos(value.round() as i64)) }
}
