//! Axes of figures, drawn and in characters: limits that hold given values, values as positions, ticks at round values, and
//! values in words.

use crate::analysis::distribution::suits_logarithm;
use crate::metric::Metric;
use crate::units::human::{TimeUnit, general, grouped, percent, quantile, signed, significant};

/// The share of an axis that stays free at either end.
const MARGIN: f64 = 0.04;
const MOST_TICKS: f64 = 40.0;
/// Distances between labelled decades, from the finest to the coarsest.
const DECADE_STRIDES: [i32; 4] = [1, 2, 3, 5];
/// Share of an axis by which a tick may lie beyond its end, for rounding.
const TOLERANCE: f64 = 1e-9;
/// Significant digits of values in words.
const DIGITS: i32 = 3;

#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, without the unit.
    pub label: String,
    pub scale: Scale,
    pub unit: AxisUnit,
}

/// How the values of an axis become positions.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// In proportion to the value, from the first value to the second.
    Linear(f64, f64),
    /// In proportion to its logarithm, between two positive values; the first one, at the left or at the bottom, may be the
    /// larger one: a tail from 1 down to 0.00001 has its extreme end at the right or at the top.
    Log(f64, f64),
    /// Named places: the value is the index of the name. On the vertical axis the first name is at the top.
    Categories(Vec<String>),
}

/// The unit of the values of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisUnit {
    /// Nanoseconds.
    Time,
    Count,
    /// Shares from 0 to 1, shown in per cent.
    Share,
    /// 1 − q of a quantile q, from 1 down to 0, shown as the quantile: 0.001 is `p99.9`.
    Tail,
    /// Relative changes: 0.05 is +5 %.
    Change,
    /// Packets in a second.
    PacketRate,
    /// Bytes in a second.
    ByteRate,
    /// Bits in a second.
    BitRate,
    Frequency,
    Bytes,
    /// Without a unit.
    Plain,
}

/// A unit of labels: its size in the unit of the values, and its symbol, which may be empty.
struct ShownUnit {
    factor: f64,
    symbol: String,
}

impl AxisUnit {
    pub const fn of(metric: Metric) -> AxisUnit {
        match (metric.is_rate(), metric.is_time()) {
            (true, _) => AxisUnit::BitRate,
            (_, true) => AxisUnit::Time,
            _ => AxisUnit::Plain,
        }
    }

    /// The unit in which values of about `typical` have few digits.
    fn shown(self, typical: f64) -> ShownUnit {
        let plain = |factor, symbol: &str| ShownUnit { factor, symbol: symbol.into() };
        let base = match self {
            AxisUnit::Time => {
                let unit = TimeUnit::suiting(typical);
                return plain(unit.nanos(), unit.symbol());
            }
            AxisUnit::Share | AxisUnit::Change => return plain(0.01, "%"),
            AxisUnit::Count | AxisUnit::Tail | AxisUnit::Plain => return plain(1.0, ""),
            AxisUnit::Bytes => return plain(1.0, "B"),
            AxisUnit::PacketRate => "pps",
            AxisUnit::ByteRate => "B/s",
            AxisUnit::BitRate => "bit/s",
            AxisUnit::Frequency => "Hz",
        };
        let prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
        let fitting = prefixes.into_iter().find(|(factor, _)| typical.abs() >= 0.9995 * factor);
        let (factor, prefix) = fitting.unwrap_or((1.0, ""));
        ShownUnit { factor, symbol: format!("{prefix}{base}") }
    }

    /// `value` with its unit: `48.7 µs`, `p99.9`, `121,730`.
    pub fn words(self, value: f64) -> String {
        self.distinguished(value, DIGITS)
    }

    /// The same with that many significant digits, if the unit leaves a choice.
    fn distinguished(self, value: f64, digits: i32) -> String {
        let shown = self.shown(value);
        let figure = value / shown.factor;
        let text = match self {
            AxisUnit::Tail => return quantile_of_tail(value),
            AxisUnit::Share => return percent(value),
            AxisUnit::Change => signed(figure),
            AxisUnit::Count | AxisUnit::Bytes if value.fract() == 0.0 => decimals(value, 0),
            _ if digits == DIGITS => significant(figure),
            _ => decimals(figure, digits - 1 - figure.abs().log10().floor().max(-99.0) as i32),
        };
        format!("{text} {}", shown.symbol).trim_end().into()
    }
}

/// `value` with so many decimals, its thousands grouped; exponents for the very large and the very small.
fn decimals(value: f64, decimals: i32) -> String {
    if decimals > 6 || value.abs() >= 1e12 {
        return general(value, 6).replace('-', "−");
    }
    let text = format!("{:.*}", decimals.max(0) as usize, value.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{}{fraction}", whole.parse().map_or_else(|_| whole.into(), grouped))
}

/// The quantile q of a tail 1 − q, whose distance from 1 keeps three digits: 0.3333 is `p66.7`.
fn quantile_of_tail(tail: f64) -> String {
    let rounded: f64 = format!("{tail:.2e}").parse().unwrap_or(tail);
    quantile(1.0 - rounded)
}

/// The smallest and the largest of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValueLimits {
    pub min: f64,
    pub max: f64,
}

impl ValueLimits {
    /// Those of the finite `values`; `None` without any.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<ValueLimits> {
        values.into_iter().filter(|value| value.is_finite()).fold(None, |found: Option<ValueLimits>, value| {
            let ValueLimits { min, max } = found.unwrap_or(ValueLimits { min: value, max: value });
            Some(ValueLimits { min: min.min(value), max: max.max(value) })
        })
    }

    /// A logarithmic scale if all values are positive, else a linear one.
    pub(crate) fn logarithmic(self) -> Scale {
        if self.min <= 0.0 {
            return self.linear();
        }
        let factor = if self.max > self.min { (self.max / self.min).powf(MARGIN) } else { 1.5 };
        Scale::Log(self.min / factor, self.max * factor)
    }

    pub(crate) fn linear(self) -> Scale {
        let margin = match self.max - self.min {
            0.0 if self.max == 0.0 => 1.0,
            0.0 => self.max.abs() * MARGIN,
            width => width * MARGIN,
        };
        Scale::Linear(self.min - margin, self.max + margin)
    }

    /// A logarithmic scale if the values suit one, else a linear one.
    pub(crate) fn suited(self) -> Scale {
        if suits_logarithm(self.min, self.max) { self.logarithmic() } else { self.linear() }
    }
}

impl Scale {
    /// Share of the axis at which `value` is; beyond 0 and 1 for values outside of the limits.
    fn share(&self, value: f64) -> f64 {
        match self {
            Scale::Linear(from, to) => (value - from) / (to - from),
            Scale::Log(from, to) => (value.max(0.0) / from).ln() / (to / from).ln(),
            Scale::Categories(names) => (value + 0.5) / names.len() as f64,
        }
    }

    /// The position of `value`, from 0 (left, bottom) to 1. What lies outside of the limits, infinite or not, is at their end.
    pub fn position(&self, value: f64) -> f64 {
        let share = self.share(value);
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// The same, longer by `share` of its length at the upper end.
    pub fn extended(self, share: f64) -> Scale {
        match self {
            Scale::Linear(from, to) => Scale::Linear(from, to + (to - from) * share),
            Scale::Log(from, to) => Scale::Log(from, to * (to / from).powf(share)),
            Scale::Categories(_) => self,
        }
    }
}

/// A round value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Position from 0 (left, bottom) to 1.
    pub position: f64,
    /// Value in the unit of the axis' label; empty for a minor line between labelled ticks.
    pub label: String,
}

impl Axis {
    pub fn new(label: impl Into<String>, scale: Scale, unit: AxisUnit) -> Axis {
        Axis { label: label.into(), scale, unit }
    }

    /// An axis of the values of `metric`.
    pub fn of_metric(metric: Metric, scale: Scale) -> Axis {
        Axis::new(metric.title(), scale, AxisUnit::of(metric))
    }

    /// An axis of counts from 1 to `most`: bars of one probe can be seen.
    pub fn of_counts(label: impl Into<String>, most: u64) -> Axis {
        Axis::new(label, Scale::Log(0.5, most.max(1) as f64 * 1.5), AxisUnit::Count)
    }

    /// An axis with a place for each name.
    pub(crate) fn of_names(label: &str, names: Vec<String>) -> Axis {
        Axis::new(label, Scale::Categories(names), AxisUnit::Plain)
    }

    /// The names of the places, if the axis has names.
    pub fn names(&self) -> Option<&[String]> {
        match &self.scale {
            Scale::Categories(names) => Some(names),
            _ => None,
        }
    }

    /// The ends of an axis without names.
    const fn limits(&self) -> (f64, f64) {
        match &self.scale {
            Scale::Linear(from, to) | Scale::Log(from, to) => (*from, *to),
            Scale::Categories(_) => (0.0, 1.0),
        }
    }

    fn shown(&self) -> ShownUnit {
        let (from, to) = self.limits();
        let is_log = matches!(self.scale, Scale::Log(..));
        self.unit.shown(if is_log { (from * to).sqrt() } else { from.abs().max(to.abs()) })
    }

    /// The symbol of the unit of its ticks; may be empty.
    pub fn symbol(&self) -> String {
        self.shown().symbol
    }

    /// Its label with the unit: `round trip delay, µs`.
    pub(super) fn title(&self) -> String {
        [self.label.clone(), self.symbol()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// Everything that a script needs to compute positions and labels: `log 1000 2000000 1000 time`.
    pub(super) fn attribute(&self) -> String {
        let kind = match self.scale {
            Scale::Linear(..) => "linear",
            Scale::Log(..) => "log",
            Scale::Categories(_) => "names",
        };
        let sign = match self.unit {
            AxisUnit::Tail => "tail",
            AxisUnit::Change => "change",
            _ => "plain",
        };
        let (from, to) = self.limits();
        let [from, to, factor] = [from, to, self.shown().factor].map(|value| general(value, 12));
        format!("{kind} {from} {to} {factor} {sign}")
    }

    /// Ticks at round values on an axis of `length`: as many as fit, where a label takes its `extent`. None of names.
    pub fn ticks(&self, length: f64, extent: impl Fn(&str) -> f64) -> Vec<Tick> {
        let fits = |ticks: &Vec<Tick>| {
            let labelled: Vec<&Tick> = ticks.iter().filter(|tick| !tick.label.is_empty()).collect();
            let space = |pair: &[&Tick]| (pair[1].position - pair[0].position).abs() * length;
            let needed = |pair: &[&Tick]| (extent(&pair[0].label) + extent(&pair[1].label)) / 2.0;
            !labelled.is_empty() && labelled.windows(2).all(|pair| space(pair) >= needed(pair))
        };
        let candidates = match self.scale {
            Scale::Categories(_) => return Vec::new(),
            Scale::Log(from, to) if (to / from).log10().abs() >= 1.0 => self.log_candidates((to / from).log10().abs()),
            _ => self.linear_candidates(),
        };
        candidates.into_iter().find(fits).unwrap_or_default()
    }

    /// Ticks at multiples of 1, 2 or 5 times a power of ten, from the closest together to the furthest apart.
    fn linear_candidates(&self) -> Vec<Vec<Tick>> {
        let ((from, to), ShownUnit { factor, .. }) = (self.limits(), self.shown());
        let (from, to) = (from.min(to) / factor, from.max(to) / factor);
        let finest = ((to - from) / MOST_TICKS).log10().floor() as i32;
        let ticks = |exponent: i32, digit: f64| {
            let step = digit * 10f64.powi(exponent);
            let (first, count) = ((from / step).ceil(), ((to - from) / step) as usize + 2);
            (0..count).filter_map(|index| self.tick((first + index as f64) * digit, exponent)).collect()
        };
        (finest..finest + 4).flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| ticks(exponent, digit))).collect()
    }

    /// Ticks at 1, 2 and 5 times powers of ten for few decades, and at ever fewer powers of ten.
    fn log_candidates(&self, decades: f64) -> Vec<Vec<Tick>> {
        let mut candidates = Vec::new();
        if self.unit == AxisUnit::Tail || decades < 3.0 {
            candidates.push(self.powers(&[1.0, 2.0, 5.0], &[], 1));
        }
        if self.unit == AxisUnit::Tail {
            // The median, but no other quantile between powers of ten.
            candidates.push([self.powers(&[1.0], &[], 1), self.tick(5.0, -1).into_iter().collect()].concat());
            candidates[1].sort_by(|a, b| a.position.total_cmp(&b.position));
        } else if decades < 3.0 {
            candidates.push(self.powers(&[1.0, 3.0], &[], 1));
        }
        let minor: &[f64] = if decades <= 6.0 { &[2.0, 5.0] } else { &[] };
        candidates.extend(DECADE_STRIDES.map(|stride| self.powers(&[1.0], minor, stride)));
        candidates
    }

    /// Labelled ticks at `digits` times each power of ten whose exponent is a multiple of `stride`, and minor ones.
    fn powers(&self, digits: &[f64], minor: &[f64], stride: i32) -> Vec<Tick> {
        let ((from, to), ShownUnit { factor, .. }) = (self.limits(), self.shown());
        let exponent = |value: f64| (value / factor).log10().floor() as i32;
        let exponents = exponent(from.min(to))..=exponent(from.max(to));
        let of_power = |exponent: i32| {
            let labelled = digits.iter().filter_map(move |digit| self.tick(*digit, exponent));
            let lines = minor.iter().filter_map(move |digit| self.tick(*digit, exponent));
            labelled.chain(lines.map(|tick| Tick { label: String::new(), ..tick }))
        };
        exponents.filter(|exponent| exponent % stride == 0).flat_map(of_power).collect()
    }

    /// The tick at `digits` times a power of ten in the unit of the label; `None` if it is outside of the axis.
    fn tick(&self, digits: f64, exponent: i32) -> Option<Tick> {
        let figure = digits * 10f64.powi(exponent);
        let position = self.scale.share(figure * self.shown().factor);
        // Half a probe is not a count.
        let is_round = self.unit != AxisUnit::Count || (figure - figure.round()).abs() < TOLERANCE;
        let is_inside = is_round && (-TOLERANCE..=1.0 + TOLERANCE).contains(&position);
        let label = match self.unit {
            AxisUnit::Tail => quantile_of_tail(figure),
            AxisUnit::Count => decimals(figure, 0),
            _ if digits == 0.0 => "0".into(),
            AxisUnit::Change if figure > 0.0 => format!("+{}", decimals(figure, -exponent)),
            _ => decimals(figure, -exponent),
        };
        is_inside.then_some(Tick { position, label })
    }

    /// `value` in words, with its unit. Three digits, and more on an axis that shows 100 ns at 1 ms.
    pub fn words(&self, value: f64) -> String {
        let (from, to) = self.limits();
        match &self.scale {
            Scale::Categories(names) => names.get(value.round() as usize).cloned().unwrap_or_default(),
            _ if value == f64::INFINITY => "∞".into(),
            _ if value == f64::NEG_INFINITY => "−∞".into(),
            _ => {
                // `as` takes NaN, of an axis without width, to 0.
                let more = (from.abs().max(to.abs()) / (to - from).abs()).log10().round() as i32;
                self.unit.distinguished(value, DIGITS + more.clamp(0, 6))
            }
        }
    }
}
