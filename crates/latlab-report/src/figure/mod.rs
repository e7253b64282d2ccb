//! Figures as data: series of marks over two axes, in the units of the data, from which SVG, PNG, CSV and the tables
//! behind plots are rendered. A renderer computes positions, never a statistic.
//!
//! An infinite value stands for lost probes or an open end. It is drawn at the end of its axis, and tables, CSV and scripts
//! have no number for it. A mark without a place is left out by all renderers: values that are not numbers, not positive on a
//! logarithmic axis, or infinite where the mark says nothing of it.

mod layout;
mod marks;
pub mod png;
mod scale;
pub mod style;
pub mod svg;
pub mod table;
#[cfg(test)]
mod tests;

#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name on the command line and in the page: `tail`, `histogram`.
    pub name: &'static str,
    pub title: String,
    /// What it shows: sample, n, losses, convention.
    pub caption: String,
    pub x: Axis,
    pub y: Axis,
    /// Series in the order of the legend; later ones are drawn above earlier ones.
    pub series: Vec<Series>,
}

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
    /// Bytes.
    Bytes,
    /// Without a unit.
    Plain,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend; empty for a series that the legend leaves out.
    pub name: String,
    /// Number of its colour and dash pattern.
    pub colour: usize,
    pub marks: Marks,
}

/// Marks of one kind, in ascending or descending order of x where they form a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Marks {
    /// A line that keeps the value of each point until the next. An infinite x is the end of the axis, and a y of 0 on a
    /// logarithmic axis its lower end.
    Steps(Vec<Point>),
    /// A line from point to point, with a gap where y is infinite.
    Line(Vec<Point>),
    Points(Vec<Point>),
    /// An area between low and high values, with straight edges from range to range, and a gap where both are +∞.
    Band(Vec<Range>),
    /// An area that keeps the low and the high value of each range until the next, as [`Marks::Steps`] does.
    StepBand(Vec<Range>),
    /// Bars from the lower limit of the vertical axis.
    Bars(Vec<Bar>),
    /// Rectangles whose darkness shows a count.
    Cells(Vec<Cell>),
    /// Box plots across, at an index of the vertical axis.
    Boxes(Vec<BoxMark>),
    /// Estimates with their intervals, at an index of the vertical axis.
    Intervals(Vec<IntervalMark>),
    /// Things with an infinite value, as points along the end of its axis.
    Infinite(Vec<InfiniteMark>),
    /// A vertical line across the figure.
    Rule(f64),
    /// A horizontal line across the figure.
    Level(f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

/// A range of y at x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub x: f64,
    /// Its lower end; −∞ if it is open, +∞ if the whole range is infinite.
    pub low: f64,
    /// Its upper end; +∞ if it is open.
    pub high: f64,
}

/// A bar. One between infinite edges counts what is infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    pub from: f64,
    /// Upper edge.
    pub to: f64,
    pub y: f64,
}

/// A rectangle with a value. On an axis with names, `x` or `y` is an index, and the cell fills the place of that name.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Left edge, or an index of a named place.
    pub x: f64,
    pub width: f64,
    /// Lower edge, or an index of a named place.
    pub y: f64,
    /// Upper edge.
    pub y_to: f64,
    /// From 0 to 1.
    pub darkness: f64,
    pub text: String,
}

/// What is infinite at a place of the other axis.
#[derive(Clone, Debug, PartialEq)]
pub struct InfiniteMark {
    pub x: f64,
    /// Vertical value; one of the two is +∞.
    pub y: f64,
    pub text: String,
}

/// A box plot. What is +∞ is open at the end of the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxMark {
    /// Index on the vertical axis.
    pub row: f64,
    pub quartiles: [f64; 3],
    pub whiskers: [f64; 2],
}

/// An estimate with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalMark {
    /// Index on the vertical axis.
    pub row: f64,
    /// The estimate; `None` if only the interval is known.
    pub estimate: Option<f64>,
    /// Lower end; `None` if it is open.
    pub low: Option<f64>,
    /// Upper end; `None` if it is open.
    pub high: Option<f64>,
}
