//! Figures as data: series of marks over two axes, in the units of the data, from which SVG, CSV and the tables behind plots
//! are rendered. A renderer computes positions, never a statistic.
//!
//! An infinite value stands for lost probes or an open end. It is drawn at the end of its axis, and tables and CSV have no
//! number for it. Who builds a figure chooses axes that hold its values: what lies outside is drawn at the end of its axis.

pub mod axis;
pub(crate) mod draw;
mod legend;
pub mod svg;
pub mod table;
#[cfg(test)]
mod tests;

use axis::Axis;

#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name on the command line and in the page: `tail`, `histogram`.
    pub name: String,
    pub title: String,
    /// What it shows: sample, n, losses, convention.
    pub caption: String,
    pub x: Axis,
    pub y: Axis,
    /// The names of its panels, which have the same axes; one without a name if there are none.
    pub panels: Vec<String>,
    /// Series in the order of the legend; later ones are drawn above earlier ones.
    pub series: Vec<Series>,
}

/// Marks of one shape, in ascending or descending order of x where they form a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend. One without a name belongs to the named one of its colour.
    pub name: String,
    /// Number of its colour and dash pattern.
    pub colour: usize,
    /// Its panel: an index of [`Figure::panels`], 0 without any.
    pub panel: usize,
    /// 0 of what was measured. Others, such as publications, are thin lines beside it, with dashes of their own.
    pub beside: usize,
    pub shape: Shape,
    pub marks: Vec<Mark>,
}

/// What marks look like, and the order of their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A line through x and y that keeps the value of each mark until the next.
    Steps,
    /// A line through x and y, with a gap where y is infinite.
    Line,
    Points,
    /// An area between two values of y, with a gap where both are infinite.
    Band,
    /// An area that keeps its ends until the next mark, as [`Shape::Steps`] does.
    StepBand,
    /// Bars between two values of x, from the lower end of the vertical axis to y. One at infinity counts what is infinite.
    Bars,
    /// Rectangles between two values of x and two of y.
    Cells,
    /// Box plots across, whose x are quartiles and whiskers.
    Boxes,
    /// Estimates across, whose x are the estimate and the ends of its interval.
    Intervals,
    /// A line across the figure at x or at y.
    Rule,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// Values of the horizontal axis in the order of `Shape::roles`.
    pub x: Vec<f64>,
    /// Values of the vertical axis.
    pub y: Vec<f64>,
    /// What a cell or an infinite point counts.
    pub text: String,
    /// That of a cell, from 0 to 1.
    pub darkness: f64,
}

impl Mark {
    pub fn at(x: impl Into<Vec<f64>>, y: impl Into<Vec<f64>>) -> Mark {
        Mark { x: x.into(), y: y.into(), ..Mark::default() }
    }

    pub fn point(x: f64, y: f64) -> Mark {
        Mark::at([x], [y])
    }
}

impl Series {
    pub fn new(name: impl Into<String>, colour: usize, shape: Shape, marks: Vec<Mark>) -> Series {
        Series { name: name.into(), colour, panel: 0, beside: 0, shape, marks }
    }

    pub fn in_panel(self, panel: usize) -> Series {
        Series { panel, ..self }
    }

    /// Whether `other` is about the same, such as the band of a line.
    fn belongs_to(&self, other: &Series) -> bool {
        (self.panel, self.colour, self.beside) == (other.panel, other.colour, other.beside)
    }
}

/// At most so many of `all`, evenly over them, with the first and the last one.
pub fn spread<T>(all: &[T], most: usize) -> impl Iterator<Item = &T> {
    let shown = all.len().min(most);
    (0..shown).map(move |place| &all[place * (all.len() - 1) / (shown - 1).max(1)])
}

impl Shape {
    /// What several values of a mark on an axis are; a single one is that of the mark.
    pub(crate) const fn roles(self) -> &'static [&'static str] {
        match self {
            Shape::Boxes => &["first quartile", "median", "third quartile", "lower whisker", "upper whisker"],
            Shape::Intervals => &["", "from", "to"],
            _ => &["from", "to"],
        }
    }

    pub const fn is_line(self) -> bool {
        matches!(self, Shape::Steps | Shape::Line)
    }

    pub(crate) const fn is_band(self) -> bool {
        matches!(self, Shape::Band | Shape::StepBand)
    }
}
