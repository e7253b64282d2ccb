//! Values of an axis as positions, ticks at round values, and values in words.

use super::{Axis, AxisUnit, Scale};
use crate::units::human::{TimeUnit, bit_rate, columns, general, grouped, percent, quantile, signed, significant};

/// Height of the text of a tick, in pixels.
pub(super) const TICK_SIZE: f64 = 11.0;
/// Estimated width of a character of a sans-serif font, as a share of its height: that of DejaVu, one of the widest.
const CHARACTER_WIDTH: f64 = 0.63;
/// Least distance between two labels, in pixels.
const GAP: f64 = 8.0;
/// Least distance between two ticks, in pixels, where labels are short.
const TICK_DISTANCE: f64 = 34.0;
/// Distances between labelled decades, from the finest to the coarsest.
const DECADE_STRIDES: [i32; 8] = [1, 2, 3, 5, 10, 30, 100, 300];
/// Share of an axis by which a tick may lie beyond its end, for rounding.
const TOLERANCE: f64 = 1e-9;

/// AxisSide of the figure along which an axis lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AxisSide {
    /// Along the lower edge: labels stand beside each other.
    Bottom,
    /// Along the left edge: labels stand above each other, names from the top down.
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Linear,
    Log,
    Categories,
}

/// A round value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Position from 0 (left, bottom) to 1.
    pub(super) position: f64,
    /// Value in the unit of the axis' label, or a name of at most [`MOST_LINES`] lines; empty if the tick is minor.
    pub(super) label: String,
    /// The whole name of a place, if the label had to be cut.
    pub(super) whole: Option<String>,
    /// True for a line between labelled ticks.
    pub(super) is_minor: bool,
}

/// An axis whose limits can be drawn: finite, different, and positive where it is logarithmic.
#[derive(Clone, Debug)]
pub(super) struct AxisScale<'a> {
    axis: &'a Axis,
    side: AxisSide,
    kind: Kind,
    from: f64,
    to: f64,
    shown: ShownUnit,
}

/// The unit of the labels of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ShownUnit {
    /// Its size in the unit of the values.
    factor: f64,
    /// Its symbol; may be empty.
    symbol: &'static str,
}

/// Decimal multiples of a unit in ascending order.
const PACKET_RATES: [ShownUnit; 3] = [unit(1.0, "pps"), unit(1e3, "kpps"), unit(1e6, "Mpps")];
const BIT_RATES: [ShownUnit; 4] = [unit(1.0, "bit/s"), unit(1e3, "kbit/s"), unit(1e6, "Mbit/s"), unit(1e9, "Gbit/s")];
const BYTE_RATES: [ShownUnit; 4] = [unit(1.0, "B/s"), unit(1e3, "kB/s"), unit(1e6, "MB/s"), unit(1e9, "GB/s")];
const FREQUENCIES: [ShownUnit; 4] = [unit(1.0, "Hz"), unit(1e3, "kHz"), unit(1e6, "MHz"), unit(1e9, "GHz")];
/// Sizes of packets stay in bytes.
const SIZES: [ShownUnit; 3] = [unit(1.0, "B"), unit(1e6, "MB"), unit(1e9, "GB")];
const PER_CENT: ShownUnit = unit(0.01, "%");
const NO_UNIT: ShownUnit = unit(1.0, "");

const fn unit(factor: f64, symbol: &'static str) -> ShownUnit {
    ShownUnit { factor, symbol }
}

impl ShownUnit {
    /// The unit in which values of about `typical` have few digits.
    fn suiting(unit: AxisUnit, typical: f64) -> ShownUnit {
        let largest = |multiples: &[ShownUnit]| {
            let fits = |multiple: &&ShownUnit| typical.abs() >= 0.9995 * multiple.factor;
            multiples.iter().rev().find(fits).or(multiples.first()).copied().unwrap_or(NO_UNIT)
        };
        match unit {
            AxisUnit::Time => {
                let time = TimeUnit::suiting(typical);
                ShownUnit { factor: time.nanos(), symbol: time.symbol() }
            }
            AxisUnit::PacketRate => largest(&PACKET_RATES),
            AxisUnit::ByteRate => largest(&BYTE_RATES),
            AxisUnit::BitRate => largest(&BIT_RATES),
            AxisUnit::Frequency => largest(&FREQUENCIES),
            AxisUnit::Bytes => largest(&SIZES),
            AxisUnit::Share | AxisUnit::Change => PER_CENT,
            AxisUnit::Count | AxisUnit::Tail | AxisUnit::Plain => NO_UNIT,
        }
    }
}

impl<'a> AxisScale<'a> {
    /// The scale of `axis`. Limits that cannot be drawn are replaced: an axis is wider than 0, and a logarithmic one starts
    /// above 0.
    pub(super) fn new(axis: &'a Axis, side: AxisSide) -> AxisScale<'a> {
        let (kind, from, to) = match &axis.scale {
            Scale::Linear(from, to) => (Kind::Linear, *from, *to),
            Scale::Log(from, to) if from.max(*to) > 0.0 => (Kind::Log, *from, *to),
            Scale::Log(from, to) => (Kind::Linear, *from, *to),
            Scale::Categories(names) => (Kind::Categories, -0.5, names.len().max(1) as f64 - 0.5),
        };
        let (from, to) = match kind {
            Kind::Categories if side == AxisSide::Left => (to, from),
            Kind::Categories => (from, to),
            _ if !from.is_finite() || !to.is_finite() => (1.0, 2.0),
            Kind::Linear if from == to => (from - 0.05 * from.abs().max(10.0), to + 0.05 * to.abs().max(10.0)),
            Kind::Linear => (from, to),
            Kind::Log if from == to => (from / 2.0, to * 2.0),
            // A limit of 0 has no logarithm: three decades below the other one.
            Kind::Log if from <= 0.0 => (to / 1e3, to),
            Kind::Log if to <= 0.0 => (from, from / 1e3),
            Kind::Log => (from, to),
        };
        let typical =
            if kind == Kind::Log { (from.ln() / 2.0 + to.ln() / 2.0).exp() } else { from.abs().max(to.abs()) };
        AxisScale { axis, side, kind, from, to, shown: ShownUnit::suiting(axis.unit, typical) }
    }

    /// The position of `value`, from 0 (left, bottom) to 1, and beyond for values outside of the limits; `None` if it has
    /// none: not finite, or not positive on a logarithmic axis.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        let position = match self.kind {
            Kind::Log if value <= 0.0 => return None,
            Kind::Log => (value.ln() - self.from.ln()) / (self.to.ln() - self.from.ln()),
            _ => (value - self.from) / (self.to - self.from),
        };
        position.is_finite().then_some(position)
    }

    /// The position of the edge of an area, between 0 and 1: what lies outside of the limits, infinite or not, ends there.
    pub(super) fn edge(&self, value: f64) -> f64 {
        let smallest = if self.from > self.to { 1.0 } else { 0.0 };
        let otherwise = if value == f64::INFINITY { 1.0 - smallest } else { smallest };
        self.position(value).unwrap_or(otherwise).clamp(0.0, 1.0)
    }

    /// The names of the places, if the axis has names.
    pub(super) fn names(&self) -> Option<&'a [String]> {
        match &self.axis.scale {
            Scale::Categories(names) => Some(names),
            _ => None,
        }
    }

    /// The label of the axis with its unit: `round trip delay, µs`.
    pub(super) fn label(&self) -> String {
        let label = &self.axis.label;
        if self.shown.symbol.is_empty() { label.clone() } else { format!("{label}, {}", self.shown.symbol) }
    }

    /// Everything that a script needs to compute positions: `log 1000 2000000 time 1000 µs`.
    pub(super) fn attribute(&self) -> String {
        let kind = match self.kind {
            Kind::Linear => "linear",
            Kind::Log => "log",
            Kind::Categories => "categories",
        };
        let unit = match self.axis.unit {
            AxisUnit::Time => "time",
            AxisUnit::Count => "count",
            AxisUnit::Share => "share",
            AxisUnit::Tail => "tail",
            AxisUnit::Change => "change",
            AxisUnit::PacketRate => "packet-rate",
            AxisUnit::ByteRate => "byte-rate",
            AxisUnit::BitRate => "bit-rate",
            AxisUnit::Frequency => "frequency",
            AxisUnit::Bytes => "bytes",
            AxisUnit::Plain => "plain",
        };
        let symbol = if self.shown.symbol.is_empty() { "-" } else { self.shown.symbol };
        let number = |value: f64| general(value, 12);
        format!("{kind} {} {} {unit} {} {symbol}", number(self.from), number(self.to), number(self.shown.factor))
    }

    /// Ticks at round values on an axis of `length` pixels: as many as fit without overlapping labels.
    pub(super) fn ticks(&self, length: f64) -> Vec<Tick> {
        if let Some(names) = self.names() {
            return self.name_ticks(names, length);
        }
        let decades = (self.to.log10() - self.from.log10()).abs();
        let candidates = match self.kind {
            Kind::Log if decades >= 1.0 => self.log_candidates(decades),
            _ => self.linear_candidates(length),
        };
        let mut ticks = candidates.into_iter().find(|ticks| self.fits(ticks, length)).unwrap_or_default();
        ticks.sort_by(|a, b| a.position.total_cmp(&b.position));
        ticks
    }

    /// A tick for each name, or for every second, third, … if there are too many.
    fn name_ticks(&self, names: &[String], length: f64) -> Vec<Tick> {
        let place = length / names.len().max(1) as f64;
        let least = if self.side == AxisSide::Left { TICK_SIZE + 2.0 } else { TICK_DISTANCE };
        let stride = (least / place).ceil().max(1.0) as usize;
        let space = if self.side == AxisSide::Left { NAMES_WIDTH } else { place * stride as f64 - GAP };
        let tick = |index: usize| {
            let name = &names[index];
            let label = in_lines(name, space, if self.side == AxisSide::Left { lines_within(place) } else { 1 });
            let whole = (label.replace('\n', " ") != *name).then(|| name.clone());
            Some(Tick { position: self.position(index as f64)?, label, whole, is_minor: false })
        };
        (0..names.len()).step_by(stride).filter_map(tick).collect()
    }

    /// Ticks at multiples of 1, 2 or 5 times a power of ten, from the closest together to the furthest apart.
    fn linear_candidates(&self, length: f64) -> Vec<Vec<Tick>> {
        let (from, to) = (self.from / self.shown.factor, self.to / self.shown.factor);
        let finest = (to - from).abs() / (length / TICK_DISTANCE).max(1.0);
        let exponent = finest.log10().floor() as i32;
        let steps =
            (exponent..exponent + 4).flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| Round { digit, exponent }));
        let ticks = |step: Round| {
            let first = (from.min(to) / step.value()).ceil();
            let count = ((to - from).abs() / step.value()) as usize + 2;
            (0..count).filter_map(|index| self.tick(first + index as f64, step)).collect()
        };
        steps.filter(|step| step.value() >= finest).map(ticks).collect()
    }

    /// Ticks at 1, 2 and 5 times powers of ten for few decades, and at ever fewer powers of ten.
    fn log_candidates(&self, decades: f64) -> Vec<Vec<Tick>> {
        let mut candidates = Vec::new();
        if self.axis.unit == AxisUnit::Tail || decades < 3.0 {
            candidates.push(self.powers(&[1.0, 2.0, 5.0], &[], 1));
        }
        if self.axis.unit == AxisUnit::Tail {
            let mut ticks = self.powers(&[1.0], &[], 1);
            ticks.extend(self.tick(1.0, Round { digit: 5.0, exponent: -1 }));
            candidates.push(ticks);
        }
        let minor: &[f64] = if decades <= 6.0 { &[2.0, 5.0] } else { &[] };
        candidates.extend(DECADE_STRIDES.map(|stride| self.powers(&[1.0], minor, stride)));
        candidates
    }

    /// Labelled ticks at `digits` times each power of ten whose exponent is a multiple of `stride`, and minor ones.
    fn powers(&self, digits: &[f64], minor: &[f64], stride: i32) -> Vec<Tick> {
        let exponent = |value: f64| (value / self.shown.factor).log10().floor() as i32;
        let (first, last) = (exponent(self.from.min(self.to)), exponent(self.from.max(self.to)));
        let mut ticks = Vec::new();
        for exponent in (first..=last).filter(|exponent| exponent % stride == 0) {
            let tick = |digit: &f64| self.tick(1.0, Round { digit: *digit, exponent });
            ticks.extend(digits.iter().filter_map(tick));
            ticks.extend(minor.iter().filter_map(tick).map(|tick| Tick {
                label: String::new(),
                is_minor: true,
                ..tick
            }));
        }
        ticks
    }

    /// The tick at `count` times `step` in the unit of the label; `None` if it is outside of the axis.
    fn tick(&self, count: f64, step: Round) -> Option<Tick> {
        let figure = count * step.value();
        let position = self.position(figure * self.shown.factor)?;
        // Half a probe is not a count.
        let is_round = self.axis.unit != AxisUnit::Count || (figure - figure.round()).abs() < TOLERANCE;
        let inside = is_round && (-TOLERANCE..=1.0 + TOLERANCE).contains(&position);
        let label = match self.axis.unit {
            AxisUnit::Tail => quantile_of_tail(figure),
            AxisUnit::Change if figure > 0.0 => format!("+{}", rounded_to(figure, step)),
            _ => rounded_to(figure, step),
        };
        inside.then_some(Tick { position, label, whole: None, is_minor: false })
    }

    /// Whether at least one label is shown, and each two neighbours are apart.
    fn fits(&self, ticks: &[Tick], length: f64) -> bool {
        let extent = |tick: &Tick| match self.side {
            AxisSide::Bottom => text_width(&tick.label, TICK_SIZE) + GAP,
            AxisSide::Left => TICK_SIZE + GAP / 2.0,
        };
        let mut labelled: Vec<&Tick> = ticks.iter().filter(|tick| !tick.is_minor).collect();
        labelled.sort_by(|a, b| a.position.total_cmp(&b.position));
        let apart = |pair: &[&Tick]| {
            (pair[1].position - pair[0].position) * length >= (extent(pair[0]) + extent(pair[1])) / 2.0
        };
        !labelled.is_empty() && labelled.windows(2).all(apart)
    }
}

/// A round number: 1, 2 or 5 times a power of ten.
#[derive(Clone, Copy)]
struct Round {
    digit: f64,
    exponent: i32,
}

impl Round {
    fn value(self) -> f64 {
        self.digit * 10f64.powi(self.exponent)
    }
}

/// A multiple of `step` with the decimals of `step`.
fn rounded_to(figure: f64, step: Round) -> String {
    let decimals = usize::try_from(-step.exponent).unwrap_or(0);
    if figure == 0.0 {
        return "0".into();
    }
    if decimals > 6 || figure.abs() >= 1e12 {
        return general(figure, 6).replace('-', "−");
    }
    let text = format!("{:.decimals$}", figure.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let sign = if figure < 0.0 { "−" } else { "" };
    format!("{sign}{}{fraction}", whole.parse().map_or_else(|_| whole.into(), grouped))
}

/// The width that names beside the left axis may have, in pixels.
pub(super) const NAMES_WIDTH: f64 = 200.0;
/// Most lines of a name beside the left axis.
const MOST_LINES: usize = 3;
/// Distance of the lines of a name.
pub(super) const NAME_LINE: f64 = 12.0;
/// Distance of names, without that of their lines.
const NAME_GAP: f64 = 7.0;

/// The height of a row that holds each of `names` beside the left axis.
pub(super) fn row_height(names: &[String]) -> f64 {
    let lines = names.iter().map(|name| in_lines(name, NAMES_WIDTH, MOST_LINES).lines().count()).max();
    NAME_GAP + NAME_LINE * lines.unwrap_or(1) as f64
}

/// The number of lines of a name in a row of `height` pixels.
fn lines_within(height: f64) -> usize {
    (((height - NAME_GAP) / NAME_LINE) as usize).clamp(1, MOST_LINES)
}

/// The estimated width of `text` in pixels, written with characters of `size` pixels.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    columns(text) as f64 * size * CHARACTER_WIDTH
}

/// `name`, cut to about `width` pixels.
pub(super) fn cut(name: &str, width: f64) -> String {
    let most = (width / TICK_SIZE / CHARACTER_WIDTH).max(1.0) as usize;
    if columns(name) <= most {
        return name.into();
    }
    let mut kept = String::new();
    for character in name.chars() {
        kept.push(character);
        if columns(&kept) >= most {
            kept.pop();
            break;
        }
    }
    kept + "…"
}

/// `name` in at most `most` lines of about `width` pixels, which end at spaces; the last one is cut.
fn in_lines(name: &str, width: f64, most: usize) -> String {
    let fits = |text: &str| text_width(text, TICK_SIZE) <= width;
    let mut ends = name.rmatch_indices(' ').map(|(at, _)| at).filter(|_| most > 1 && !fits(name));
    match ends.find(|at| *at > 0 && fits(name[..*at].trim_end())) {
        Some(at) => format!("{}\n{}", name[..at].trim_end(), in_lines(&name[at + 1..], width, most - 1)),
        None => cut(name, width),
    }
}

/// Tails below are not distinguished from 0 by names of quantiles.
const LEAST_TAIL: f64 = 1e-12;

/// The quantile q of a tail 1 − q, whose distance from 1 keeps three digits: 0.3333 is `p66.7`. Other values are shown as
/// they are.
fn quantile_of_tail(tail: f64) -> String {
    if tail != 0.0 && !(LEAST_TAIL..=1.0).contains(&tail) {
        return general(tail, 3).replace('-', "−");
    }
    let rounded: f64 = format!("{tail:.2e}").parse().unwrap_or(tail);
    quantile(1.0 - rounded)
}

/// `value` of `axis` in words, with its unit: `48.7 µs`, `p99.9`, `121,730`.
pub(super) fn words(axis: &Axis, value: f64) -> String {
    if let Scale::Categories(names) = &axis.scale {
        let index = value.round();
        let name = (index >= 0.0).then(|| names.get(index as usize)).flatten();
        return name.cloned().unwrap_or_default();
    }
    match axis.unit {
        AxisUnit::Tail => quantile_of_tail(value),
        AxisUnit::Share => percent(value),
        AxisUnit::Change => format!("{} %", signed(value * 100.0)),
        AxisUnit::BitRate => bit_rate(value),
        AxisUnit::Count | AxisUnit::Bytes if value >= 0.0 && value.fract() == 0.0 && value < 1e15 => {
            let symbol = if axis.unit == AxisUnit::Bytes { " B" } else { "" };
            format!("{}{symbol}", grouped(value as u64))
        }
        unit => {
            let shown = ShownUnit::suiting(unit, value);
            let (figure, digits) = (value / shown.factor, digits(axis));
            let first = figure.abs().log10().floor().max(-99.0) as i32;
            let last = Round { digit: 1.0, exponent: first + 1 - digits };
            let text = if digits == DIGITS { significant(figure) } else { rounded_to(figure, last) };
            format!("{text} {}", shown.symbol).trim_end().into()
        }
    }
}

/// Significant digits of values in words.
const DIGITS: i32 = 3;

/// Significant digits that distinguish values of `axis` as well as [`DIGITS`] do on an axis from 0: more on one that shows 100 ns
/// at 1 ms.
pub(super) fn digits(axis: &Axis) -> i32 {
    let (Scale::Linear(from, to) | Scale::Log(from, to)) = axis.scale else { return DIGITS };
    // `as` takes NaN, of an axis without width, to 0.
    let more = (from.abs().max(to.abs()) / (to - from).abs()).log10().round() as i32;
    if from == to { DIGITS } else { DIGITS + more.clamp(0, 6) }
}
