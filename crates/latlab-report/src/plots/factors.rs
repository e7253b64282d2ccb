//! Figures over the levels of factors: lines along a numeric one.

use std::collections::{BTreeMap, BTreeSet};

use super::conditions::{PlottedStatistic, mean, of_each_statistic};
use super::input::{PlotCondition, PlotInput, left_out};
use super::layout::{Drawn, LINES, Layout, Levels, levels, words};
use crate::figure::axis::{Axis, AxisUnit, ValueLimits};
use crate::figure::{Figure, Mark, Series, Shape, spread};
use crate::metric::Metric;
use crate::recipe::{Column, Pictures, Published, PublishedRow};
use crate::stats::FiveNumberSummary;
use crate::units::human::{self, NetworkRate};

/// Fewer levels of a factor do not make a line.
const SWEPT_LEVELS: usize = 3;
/// Most conditions of a line of a sweep, and of all lines.
const PLACES: usize = 240;
const ALL_PLACES: usize = 2_400;
/// Most measured lines of a panel that has published ones too.
const LINES_BESIDE: usize = 3;
/// The colour of a prediction.
const PREDICTED: usize = 4;
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
    levels: Levels<'a>,
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
            let mut levels = levels(condition);
            levels.remove(swept.name);
            lines.push(SweptLine { name, levels, conditions: Vec::new() });
        }
        lines[index].conditions.push(condition);
    }
    of_each_statistic(input, |statistic| of_sweep(input, statistic, &swept, &lines))
}

fn of_sweep(
    input: &PlotInput,
    statistic: &PlottedStatistic,
    swept: &SweptFactor,
    lines: &[SweptLine],
) -> Option<Figure> {
    let metric = metric_of(lines.iter().flat_map(|line| &line.conditions))?;
    let published = input.recipe.and_then(|recipe| recipe.published.as_ref()).filter(|it| it.metric == metric);
    let published: Vec<PublishedLine> =
        published.into_iter().flat_map(|it| published_lines(it, statistic, swept.name)).collect();
    let drawn: Vec<Drawn> = lines.iter().map(|line| Drawn { name: &line.name, levels: line.levels.clone() }).collect();
    let layout = Layout::of(&drawn, if published.is_empty() { LINES } else { LINES_BESIDE }, input.pictures());
    let (mut series, mut values, mut hidden) = (Vec::new(), Vec::new(), 0);
    let most = PLACES.min(ALL_PLACES / layout.places.len().max(1));
    for (line, place) in lines.iter().zip(&layout.places) {
        let places = line.places(statistic, swept);
        values.extend(places.iter().flat_map(|place| &place.values));
        hidden += places.len().saturating_sub(most);
        let own = line.series(&place.name, place.colour, &spread(&places, most).collect::<Vec<_>>());
        series.extend(own.into_iter().map(|series| series.in_panel(place.panel)));
    }
    let measured = ValueLimits::of(values.iter().copied())?;
    let others: Vec<Series> =
        published.iter().filter_map(|line| line.series(&layout, &lines[0].levels, input.pictures())).collect();
    let others = others.into_iter().chain(predicted(input.pictures(), swept, layout.panels.len()));
    let others: Vec<Series> = others.collect();
    let beside = others.iter().flat_map(|series| &series.marks).map(|mark| mark.y[0]);
    let y = ValueLimits::of(beside.chain([measured.min, measured.max]))?.suited();
    let x = ValueLimits::of(swept.values.values().copied())?.suited();
    let reading = " An infinite mean has no point. A band is open above where some runs are infinite, and has a gap \
                   where all are.";
    let label = format!("{} {}", swept.name, swept.kind.load);
    let is_half = input.recipe.and_then(|recipe| recipe.published.as_ref()).is_some_and(|published| published.half);
    let thin = match (others.is_empty(), is_half) {
        (true, _) => "",
        (false, false) => " Thin lines were not measured here.",
        (false, true) => " Thin lines were not measured here; the published halves are doubled.",
    };
    series.extend(others);
    Some(Figure {
        name: format!("sweep{}", statistic.suffix),
        title: format!("{} of {} by {}", statistic.word, metric.title(), swept.name),
        caption: format!(
            "Each point is the mean of the runs of a condition, the band the range of its runs; lines only join \
             neighbours.{thin}{}{}{}",
            statistic.infinite_words(&values, reading),
            left_out(hidden, "condition"),
            left_out(lines.len() - layout.places.len(), "line")
        ),
        panels: layout.panels,
        x: Axis::new(label.trim_end(), x, swept.kind.unit),
        y: Axis::of_metric(metric, y),
        series,
    })
}

/// A statistic along the swept factor from one source of a publication, in the unit of the metric.
struct PublishedLine<'a> {
    source: &'a str,
    /// 1 or 2.
    number: usize,
    levels: Levels<'a>,
    marks: Vec<Mark>,
}

fn published_lines<'a>(published: &'a Published, statistic: &PlottedStatistic, swept: &str) -> Vec<PublishedLine<'a>> {
    let is_its = |column: &Column| match column.quantile() {
        Some(q) => human::quantile(q) == statistic.word,
        None => column.heading() == statistic.word,
    };
    let Some(column) = published.columns.iter().position(is_its) else { return Vec::new() };
    let unit = published.own_units * if published.half { 2.0 } else { 1.0 };
    let mut lines: Vec<PublishedLine> = Vec::new();
    let sources = |row: &'a PublishedRow| [(row, 0, &row.published), (row, 1, &row.recomputed)];
    for (row, source, figures) in published.rows.iter().flat_map(sources) {
        let Some(figure) = figures.get(column).copied().flatten() else { continue };
        let mut levels: Levels = row.factors.iter().map(|(factor, level)| (factor.as_str(), level.as_str())).collect();
        let Some((x, _)) = levels.remove(swept).and_then(|level| numeric(swept, level)) else { continue };
        let mark = Mark::point(x, figure * unit);
        match lines.iter_mut().find(|line| line.number == source + 1 && line.levels == levels) {
            Some(line) => line.marks.push(mark),
            None => lines.push(PublishedLine {
                source: &published.sources[source],
                number: source + 1,
                levels,
                marks: vec![mark],
            }),
        }
    }
    lines
}

impl PublishedLine<'_> {
    /// In the colour and the panel of the conditions that it is of; `None` if none of them was measured. Its name has the levels
    /// that only the publication has.
    fn series(&self, layout: &Layout, measured: &Levels, pictures: &Pictures) -> Option<Series> {
        let place = layout.place(&self.levels)?;
        let is_own = |(factor, level): &(&&str, &&str)| {
            measured.contains_key(*factor) && !layout.has(factor) && measured.get(*factor) != Some(level)
        };
        let own: Levels = self.levels.iter().filter(is_own).map(|(factor, level)| (*factor, *level)).collect();
        let parts = [place.name.clone(), words(&own, pictures), self.source.to_owned()];
        let name = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let shape = if self.marks.len() > 1 { Shape::Line } else { Shape::Points };
        let series = Series::new(name, place.colour, shape, self.marks.clone()).in_panel(place.panel);
        Some(Series { beside: self.number, ..series })
    }
}

/// The line of the recipe's prediction along the swept factor, in each panel.
fn predicted<'a>(pictures: &'a Pictures, swept: &'a SweptFactor, panels: usize) -> impl Iterator<Item = Series> + 'a {
    let prediction = pictures.prediction.iter().filter(|it| it.factor == swept.name);
    prediction.flat_map(move |prediction| {
        let levels = ValueLimits::of(swept.values.values().copied());
        let bend = prediction.least_ns / prediction.share;
        let ends = levels.map_or([bend; 2], |limits| [limits.min, limits.max]);
        let marks = [ends[0], bend.clamp(ends[0], ends[1]), ends[1]].map(|x| Mark::point(x, prediction.at(x))).into();
        let line = Series { beside: 3, ..Series::new(&prediction.name, PREDICTED, Shape::Line, marks) };
        (0..panels.max(1)).map(move |panel| line.clone().in_panel(panel))
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
    fn series(&self, name: &str, colour: usize, places: &[&SweptPlace]) -> Vec<Series> {
        let mean = |place: &&SweptPlace| Mark::point(place.x, place.mean);
        let points = places.iter().filter(|place| place.mean.is_finite()).map(mean).collect();
        if places.windows(2).any(|pair| pair[0].x == pair[1].x) {
            return vec![Series::new(name, colour, Shape::Points, points)];
        }
        let ranges = places.iter().map(|place| Mark::at([place.x], [place.runs.min, place.runs.max])).collect();
        vec![
            Series::new("", colour, Shape::Band, ranges),
            Series::new(name, colour, Shape::Line, places.iter().map(mean).collect()),
            Series::new("", colour, Shape::Points, points),
        ]
    }
}
