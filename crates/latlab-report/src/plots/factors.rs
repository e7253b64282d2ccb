//! Figures over the levels of factors: a line along a numeric one, and a heat map over two.

use std::collections::{BTreeMap, BTreeSet};

use super::axes::{ValueLimits, has_marks, metric_axis, names_axis};
use super::conditions::{PlottedStatistic, of_each_statistic};
use super::input::{PlotCondition, PlotInput, left_out};
use crate::metric::Metric;
use crate::report::figure::{Axis, AxisUnit, Cell, Figure, Marks, Point, Range, Scale, Series};
use crate::stats::FiveNumberSummary;
use crate::units::Nanos;
use crate::units::human::{self, NetworkRate};

/// Fewer levels of a factor do not make a line.
const SWEPT_LEVELS: usize = 3;
/// Most conditions of a line of a sweep.
const PLACES: usize = 240;
/// Most lines of a sweep.
const LINES: usize = 8;
/// On cells whose median is infinite.
const LOST_CELLS: &str = " A cell `lost` has an infinite median.";
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

/// What the numbers of a factor are.
#[derive(Clone, Debug, PartialEq)]
struct NumericKind {
    unit: AxisUnit,
    /// Of loads what they have in common besides their number: `cpu@peer`; else empty.
    load: String,
}

/// A level that is a number.
#[derive(Clone, Debug, PartialEq)]
struct NumericLevel {
    value: f64,
    /// `None` of the absent load, which is 0 of every kind.
    kind: Option<NumericKind>,
}

/// The number of a level, of those factors whose levels latlab knows as numbers. Tags and settings are names, whatever they
/// look like.
fn numeric(factor: &str, level: &str) -> Option<NumericLevel> {
    if factor == "load" {
        return numeric_load(level);
    }
    // Spans in words are grouped: `1,500 µs`.
    let text: String = level.chars().filter(|char| !char.is_whitespace() && *char != ',').collect();
    let number = match factor {
        "size" => human::parse_size(&text).ok().map(|bytes| UnitNumber { value: bytes.into(), unit: AxisUnit::Bytes }),
        "interval" | "duration" | "with-wakeup" | "probe" => {
            human::parse_duration(&text).ok().map(|time| UnitNumber { value: time.0 as f64, unit: AxisUnit::Time })
        }
        "rate" => network_rate(&text),
        "count" | "batch" | "flows" | "fifo" => plain_number(&text),
        _ => None,
    }?;
    Some(NumericLevel { value: number.value, kind: Some(NumericKind { unit: number.unit, load: String::new() }) })
}

/// The number of one load: `none`, `cpu=80%@peer`, `net=90Mbit/s`. What its place and parameters are belongs to its kind.
fn numeric_load(level: &str) -> Option<NumericLevel> {
    if level == "none" {
        return Some(NumericLevel { value: 0.0, kind: None });
    }
    let (word, rest) = level.split_once('=')?;
    let (value, parameters) = rest.split_at(rest.find(['@', ':', '+', ' ']).unwrap_or(rest.len()));
    let number = match word {
        _ if parameters.contains('+') => None,
        "cpu" => human::parse_percent(value).ok().map(|value| UnitNumber { value, unit: AxisUnit::Share }),
        "heaters" => plain_number(value),
        "net" => network_rate(value),
        "mem" => human::parse_byte_rate(value).ok().map(|value| UnitNumber { value, unit: AxisUnit::ByteRate }),
        _ => None,
    }?;
    let kind = NumericKind { unit: number.unit, load: format!("{word}{parameters}") };
    Some(NumericLevel { value: number.value, kind: Some(kind) })
}

/// A number with its unit.
struct UnitNumber {
    value: f64,
    unit: AxisUnit,
}

fn network_rate(text: &str) -> Option<UnitNumber> {
    Some(match human::parse_network_rate(text).ok()? {
        NetworkRate::Bits(bits) => UnitNumber { value: bits as f64, unit: AxisUnit::BitRate },
        NetworkRate::Packets(packets) => UnitNumber { value: packets as f64, unit: AxisUnit::PacketRate },
    })
}

fn plain_number(text: &str) -> Option<UnitNumber> {
    let number = text.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite());
    number.map(|value| UnitNumber { value, unit: AxisUnit::Plain })
}

/// A factor whose levels are numbers of one kind.
struct SweptFactor<'a> {
    name: &'a str,
    kind: NumericKind,
    values: BTreeMap<&'a str, f64>,
}

impl SweptFactor<'_> {
    fn label(&self) -> String {
        format!("{} {}", self.name, self.kind.load).trim_end().into()
    }
}

fn swept<'a>(factors: &[VariedFactor<'a>]) -> Option<SweptFactor<'a>> {
    factors.iter().filter(|factor| factor.levels.len() >= SWEPT_LEVELS).find_map(|factor| {
        let numbers: Option<Vec<_>> = factor.levels.iter().map(|level| numeric(factor.name, level)).collect();
        let numbers = numbers?;
        let kind = numbers.iter().find_map(|number| number.kind.clone())?;
        let is_alike = numbers.iter().all(|number| number.kind.as_ref().is_none_or(|other| *other == kind));
        let values = factor.levels.iter().copied().zip(numbers.iter().map(|number| number.value)).collect();
        is_alike.then_some(SweptFactor { name: factor.name, kind, values })
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
    of_each_statistic(input, |statistic| of_sweep(statistic, &swept, &shown, &rest))
}

/// The conditions of one line.
struct SweptLine<'a> {
    name: &'a str,
    conditions: &'a [&'a PlotCondition],
}

fn of_sweep(statistic: &PlottedStatistic, swept: &SweptFactor, lines: &[SweptLine], rest: &str) -> Option<Figure> {
    let all: Vec<Vec<SweptPlace>> = lines.iter().map(|line| line.places(statistic, swept)).collect();
    let values = || all.iter().flatten().flat_map(|place| &place.values);
    let mut series = Vec::new();
    for (colour, (line, places)) in lines.iter().zip(&all).enumerate() {
        series.extend(line.series(colour, &spread(places)));
    }
    let y = ValueLimits::of(values().copied())?.suited();
    let x = ValueLimits::of(swept.values.values().copied())?.suited();
    let metric = lines.iter().flat_map(|line| line.conditions).find_map(|it| it.runs.first())?.statistics.metric;
    let infinite = match statistic.infinite_words(values()) {
        words if words.is_empty() => words,
        words => format!(
            "{words} An infinite median has no point. A band is open above where some runs are infinite, and has a gap \
             where all are."
        ),
    };
    let hidden: usize = all.iter().map(|places| places.len() - spread(places).len()).sum();
    Some(Figure {
        name: statistic.sweep,
        title: format!("{} of {} by {}", statistic.word, metric.title(), swept.name),
        caption: format!(
            "Each point is the median of the runs of a condition, the band the range of its runs; lines only join \
             neighbours.{infinite}{}{rest}",
            left_out(hidden, "condition")
        ),
        x: Axis { label: swept.label(), scale: x, unit: swept.kind.unit },
        y: metric_axis(metric, y),
        series: series.into_iter().filter(has_marks).collect(),
    })
}

/// The runs at one value of the swept factor.
struct SweptPlace {
    x: f64,
    /// At least one; infinite ones are the largest.
    values: Vec<f64>,
    runs: FiveNumberSummary,
}

/// At most [`PLACES`] of `places`, evenly over them, with the first and the last one.
fn spread(places: &[SweptPlace]) -> Vec<&SweptPlace> {
    let shown = places.len().min(PLACES);
    (0..shown).map(|place| &places[place * (places.len() - 1) / (shown - 1).max(1)]).collect()
}

impl SweptLine<'_> {
    /// Its conditions with figures, in ascending order of x.
    fn places(&self, statistic: &PlottedStatistic, swept: &SweptFactor) -> Vec<SweptPlace> {
        let place = |condition: &&PlotCondition| {
            let x = *swept.values.get(level(condition, swept.name)?)?;
            let mut values = statistic.values(&condition.runs);
            let runs = FiveNumberSummary::of(&mut values)?;
            Some(SweptPlace { x, values, runs })
        };
        let mut places: Vec<SweptPlace> = self.conditions.iter().filter_map(place).collect();
        places.sort_by(|one, other| one.x.total_cmp(&other.x));
        places
    }

    /// The line with its band and points. Conditions at one x differ in what no factor says: they are not joined.
    fn series(&self, colour: usize, places: &[&SweptPlace]) -> Vec<Series> {
        let series = |name: &str, marks: Marks| Series { name: name.into(), colour, marks };
        let finite = |place: &&&SweptPlace| place.runs.median.is_finite();
        let median = |place: &&SweptPlace| Point { x: place.x, y: place.runs.median };
        let points = Marks::Points(places.iter().filter(finite).map(median).collect());
        if places.windows(2).any(|pair| pair[0].x == pair[1].x) {
            return vec![series(self.name, points)];
        }
        let range = |place: &&SweptPlace| Range { x: place.x, low: place.runs.min, high: place.runs.max };
        let ranges = places.iter().map(range).collect();
        let line = Marks::Line(places.iter().map(median).collect());
        vec![series("", Marks::Band(ranges)), series(self.name, line), series("", points)]
    }
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
    of_each_statistic(input, |statistic| map.figure(statistic, &fixed))
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
        let mut medians: BTreeMap<[usize; 2], f64> = BTreeMap::new();
        let mut of_runs = Vec::new();
        for condition in &self.conditions {
            let Some((x, y)) = index(self.across, condition).zip(index(self.along, condition)) else { continue };
            let mut values = statistic.values(&condition.runs);
            medians.extend(FiveNumberSummary::of(&mut values).map(|runs| ([x, y], runs.median)));
            of_runs.extend(values);
        }
        let limits = ValueLimits::of(medians.values().copied())?;
        let lost = if medians.values().any(|median| median.is_infinite()) { LOST_CELLS } else { "" };
        let cell = |([x, y], value): (&[usize; 2], &f64)| Cell {
            x: *x as f64,
            width: 1.0,
            y: *y as f64,
            y_to: *y as f64 + 1.0,
            darkness: darkness(*value, limits),
            text: in_words(metric, *value),
        };
        let names = |factor: &VariedFactor| -> Vec<String> {
            let name = |level: &str| match numeric(factor.name, level) {
                Some(NumericLevel { value, kind: Some(kind) }) if kind.unit == AxisUnit::Bytes => {
                    human::bytes(value as u64)
                }
                _ => level.to_owned(),
            };
            factor.levels.iter().take(MAPPED_LEVELS).map(|level| name(level)).collect()
        };
        let hidden = [self.across, self.along].map(|factor| factor.levels.len().saturating_sub(MAPPED_LEVELS));
        Some(Figure {
            name: statistic.heat_map,
            title: format!("{} of {} by {} and {}", statistic.word, metric.title(), self.across.name, self.along.name),
            caption: format!(
                "Each cell is the median of the runs of a condition; larger values contrast more with the page. An \
                 empty place has no figure.{}{lost}{fixed}{}",
                statistic.infinite_words(of_runs.iter()),
                left_out(hidden.iter().sum(), "level")
            ),
            x: names_axis(self.across.name, names(self.across)),
            y: names_axis(self.along.name, names(self.along)),
            series: vec![Series {
                name: String::new(),
                colour: 0,
                marks: Marks::Cells(medians.iter().map(cell).collect()),
            }],
        })
    }
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
