//! Figures over the levels of factors: a line along a numeric one, and a heat map over two.

use std::collections::{BTreeMap, BTreeSet};

use super::axes::{ValueLimits, has_marks, metric_axis, names_axis};
use super::conditions::{PlottedStatistic, plotted};
use super::input::{PlotCondition, PlotInput, left_out};
use crate::metric::Metric;
use crate::report::figure::{Axis, AxisUnit, Cell, Figure, Marks, Point, Range, Scale, Series};
use crate::stats::Outline;
use crate::units::Nanos;
use crate::units::human::{self, NetworkRate};

/// Fewer levels of a factor do not make a line.
const SWEPT_LEVELS: usize = 3;
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

/// A level that is a number, and what it is a number of.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NumericLevel {
    value: f64,
    /// `None` of 0 and `none`, which are in every unit.
    unit: Option<AxisUnit>,
}

/// The number of a level: `64`, `1 ms`, `100Mbit/s`, `cpu=80%`, `none`.
fn numeric(factor: &str, level: &str) -> Option<NumericLevel> {
    let of = |unit: AxisUnit, value: f64| Some(NumericLevel { value, unit: Some(unit) });
    let text: String = level.rsplit('=').next().unwrap_or(level).split_whitespace().collect();
    if matches!(text.as_str(), "none" | "0") {
        return Some(NumericLevel { value: 0.0, unit: None });
    }
    if let Some(number) = text.parse::<f64>().ok().filter(|number| number.is_finite()) {
        return of(if factor == "size" { AxisUnit::Bytes } else { AxisUnit::Plain }, number);
    }
    if let Ok(time) = human::parse_duration(&text) {
        return of(AxisUnit::Time, time.0 as f64);
    }
    match human::parse_network_rate(&text) {
        Ok(NetworkRate::Bits(bits)) => return of(AxisUnit::BitRate, bits as f64),
        Ok(NetworkRate::Packets(packets)) => return of(AxisUnit::PacketRate, packets as f64),
        Err(_) => {}
    }
    if let Ok(bytes) = human::parse_size(&text) {
        return of(AxisUnit::Bytes, f64::from(bytes));
    }
    human::parse_percent(&text).ok().and_then(|share| of(AxisUnit::Share, share))
}

/// A factor whose levels are numbers in one unit.
struct SweptFactor<'a> {
    name: &'a str,
    unit: AxisUnit,
    values: BTreeMap<&'a str, f64>,
}

fn swept<'a>(factors: &[VariedFactor<'a>]) -> Option<SweptFactor<'a>> {
    factors.iter().filter(|factor| factor.levels.len() >= SWEPT_LEVELS).find_map(|factor| {
        let numbers: Option<Vec<_>> = factor.levels.iter().map(|level| numeric(factor.name, level)).collect();
        let numbers = numbers?;
        let unit = numbers.iter().find_map(|number| number.unit)?;
        let is_alike = numbers.iter().all(|number| number.unit.is_none_or(|other| other == unit));
        let values = factor.levels.iter().copied().zip(numbers.iter().map(|number| number.value)).collect();
        is_alike.then_some(SweptFactor { name: factor.name, unit, values })
    })
}

/// A line for each combination of the other factors, along the factor with the most levels that are numbers.
pub(super) fn sweep(input: &PlotInput) -> Vec<Figure> {
    let factors = varied(input);
    let Some(swept) = swept(&factors) else { return Vec::new() };
    let mut names: Vec<String> = Vec::new();
    let mut lines: BTreeMap<String, Vec<&PlotCondition>> = BTreeMap::new();
    for condition in input.conditions.iter().filter(|condition| level(condition, swept.name).is_some()) {
        let others = factors.iter().filter(|factor| factor.name != swept.name);
        let words: Vec<String> =
            others.filter_map(|it| Some(format!("{}={}", it.name, level(condition, it.name)?))).collect();
        let name = words.join(", ");
        let line = lines.entry(name.clone()).or_insert_with(|| {
            names.push(name);
            Vec::new()
        });
        line.push(condition);
    }
    let shown: Vec<_> = names.iter().take(LINES).map(|name| SweptLine { name, conditions: &lines[name] }).collect();
    let rest = left_out(names.len() - shown.len(), "line");
    plotted(input).iter().filter_map(|statistic| of_sweep(statistic, &swept, &shown, &rest)).collect()
}

/// The conditions of one line.
struct SweptLine<'a> {
    name: &'a str,
    conditions: &'a [&'a PlotCondition],
}

fn of_sweep(statistic: &PlottedStatistic, swept: &SweptFactor, lines: &[SweptLine], rest: &str) -> Option<Figure> {
    let mut metric = None;
    let mut series = Vec::new();
    for (colour, line) in lines.iter().enumerate() {
        let mut places = Vec::new();
        for condition in line.conditions {
            let Some(x) = level(condition, swept.name).and_then(|level| swept.values.get(level)) else { continue };
            metric = metric.or(condition.runs.first().map(|run| run.statistics.metric));
            places.extend(Outline::of(&mut statistic.values(&condition.runs)).map(|runs| SweptPlace { x: *x, runs }));
        }
        places.sort_by(|one, other| one.x.total_cmp(&other.x));
        let band = places.iter().map(|place| Range { x: place.x, low: place.runs.min, high: place.runs.max }).collect();
        let medians: Vec<Point> = places.iter().map(|place| Point { x: place.x, y: place.runs.median }).collect();
        series.push(Series { name: String::new(), colour, marks: Marks::Band(band) });
        series.push(Series { name: line.name.into(), colour, marks: Marks::Line(medians.clone()) });
        series.push(Series { name: String::new(), colour, marks: Marks::Points(medians) });
    }
    let ends = |series: &Series| match &series.marks {
        Marks::Band(ranges) => ranges.iter().flat_map(|range| [range.low, range.high]).collect(),
        _ => Vec::new(),
    };
    let y = ValueLimits::of(series.iter().flat_map(ends))?.suited();
    let x = ValueLimits::of(swept.values.values().copied())?.suited();
    let metric: Metric = metric?;
    Some(Figure {
        name: statistic.sweep,
        title: format!("{} of {} by {}", statistic.word, metric.title(), swept.name),
        caption: format!(
            "Each point is the median of the runs of a condition, the band the range of its runs; lines only join \
             neighbours.{rest}"
        ),
        x: Axis { label: swept.name.into(), scale: x, unit: swept.unit },
        y: metric_axis(metric, y),
        series: series.into_iter().filter(has_marks).collect(),
    })
}

/// The runs at one value of the swept factor.
struct SweptPlace {
    x: f64,
    runs: Outline,
}

/// Heat maps over the two factors with the most levels; other factors stay at the levels of the first condition.
pub(super) fn heat_map(input: &PlotInput) -> Vec<Figure> {
    let factors = varied(input);
    let [across, along, others @ ..] = factors.as_slice() else { return Vec::new() };
    let Some(first) = input.conditions.first() else { return Vec::new() };
    let is_shown =
        |condition: &&PlotCondition| others.iter().all(|it| level(condition, it.name) == level(first, it.name));
    let map = HeatMap { across, along, conditions: input.conditions.iter().filter(is_shown).collect() };
    let fixed = others.iter().filter_map(|it| Some(format!("{}={}", it.name, level(first, it.name)?)));
    let fixed = fixed.collect::<Vec<_>>().join(", ");
    let fixed = if fixed.is_empty() { fixed } else { format!(" Only conditions with {fixed}.") };
    plotted(input).iter().filter_map(|statistic| map.figure(statistic, &fixed)).collect()
}

struct HeatMap<'a> {
    across: &'a VariedFactor<'a>,
    along: &'a VariedFactor<'a>,
    conditions: Vec<&'a PlotCondition>,
}

impl HeatMap<'_> {
    fn figure(&self, statistic: &PlottedStatistic, fixed: &str) -> Option<Figure> {
        let metric = self.conditions.iter().find_map(|condition| condition.runs.first())?.statistics.metric;
        let index = |factor: &VariedFactor, condition: &PlotCondition| {
            let level = level(condition, factor.name)?;
            factor.levels.iter().take(MAPPED_LEVELS).position(|other| *other == level)
        };
        let mut values: BTreeMap<[usize; 2], f64> = BTreeMap::new();
        for condition in &self.conditions {
            let place = index(self.across, condition).zip(index(self.along, condition));
            let runs = Outline::of(&mut statistic.values(&condition.runs));
            values.extend(place.zip(runs).map(|((x, y), runs)| ([x, y], runs.median)));
        }
        let limits = ValueLimits::of(values.values().copied())?;
        let cell = |([x, y], value): (&[usize; 2], &f64)| Cell {
            x: *x as f64,
            width: 1.0,
            y: *y as f64,
            y_to: *y as f64 + 1.0,
            darkness: darkness(*value, limits),
            text: in_words(metric, *value),
        };
        let names = |factor: &VariedFactor| -> Vec<String> {
            factor.levels.iter().take(MAPPED_LEVELS).map(|level| (*level).to_owned()).collect()
        };
        let hidden = [self.across, self.along].map(|factor| factor.levels.len().saturating_sub(MAPPED_LEVELS));
        Some(Figure {
            name: statistic.heat_map,
            title: format!("{} of {} by {} and {}", statistic.word, metric.title(), self.across.name, self.along.name),
            caption: format!(
                "Each cell is the median of the runs of a condition; larger values are darker. An empty place has no \
                 finite figure.{fixed}{}",
                left_out(hidden.iter().sum(), "level")
            ),
            x: names_axis(self.across.name, names(self.across)),
            y: names_axis(self.along.name, names(self.along)),
            series: vec![Series {
                name: String::new(),
                colour: 0,
                marks: Marks::Cells(values.iter().map(cell).collect()),
            }],
        })
    }
}

/// The place of `value` between the extremes, from pale to dark, on a logarithmic scale if they suit one.
fn darkness(value: f64, limits: ValueLimits) -> f64 {
    const PALE: f64 = 0.1;
    let place = match limits.suited() {
        _ if limits.max == limits.min => 0.5,
        Scale::Log(..) => (value / limits.min).ln() / (limits.max / limits.min).ln(),
        _ => (value - limits.min) / (limits.max - limits.min),
    };
    PALE + (1.0 - PALE) * place
}

fn in_words(metric: Metric, value: f64) -> String {
    if metric.is_rate() { human::bit_rate(value) } else { human::span(Nanos(value.round() as i64)) }
}
