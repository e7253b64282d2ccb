//! Which marks can be drawn, and the values of each mark by name: for texts under the pointer, tables, CSV and scripts.

use super::scale::{AxisScale, AxisSide, words};
use super::{Axis, Figure, Marks, Scale, Series};

/// What a value of a mark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dimension {
    /// A value of the horizontal axis.
    X,
    /// A value of the vertical axis.
    Y,
}

/// A value of a mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MarkValue {
    pub(super) dimension: Dimension,
    /// Role of the value where a mark has several on an axis: `from`, `median`; else empty.
    pub(super) role: &'static str,
    /// The value in the unit of the axis; `None` if it is unknown, infinite or open.
    pub(super) value: Option<f64>,
}

/// The values of a mark.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Datum {
    /// Values in the order that scripts expect.
    pub(super) fields: Vec<MarkValue>,
    /// Value in words, of cells and of what is infinite.
    pub(super) text: Option<String>,
}

fn x(role: &'static str, value: f64) -> MarkValue {
    MarkValue { dimension: Dimension::X, role, value: Some(value).filter(|value| value.is_finite()) }
}

fn y(role: &'static str, value: f64) -> MarkValue {
    MarkValue { dimension: Dimension::Y, ..x(role, value) }
}

fn has_names(axis: &Axis) -> bool {
    matches!(axis.scale, Scale::Categories(_))
}

pub(super) fn axis(figure: &Figure, dimension: Dimension) -> &Axis {
    match dimension {
        Dimension::X => &figure.x,
        Dimension::Y => &figure.y,
    }
}

/// The values of each mark of `series`.
pub(super) fn data(figure: &Figure, series: &Series) -> Vec<Datum> {
    let fields = |fields: Vec<MarkValue>| Datum { fields, text: None };
    match &series.marks {
        Marks::Steps(points) | Marks::Line(points) | Marks::Points(points) => {
            points.iter().map(|point| fields(vec![x("", point.x), y("", point.y)])).collect()
        }
        Marks::Band(ranges) | Marks::StepBand(ranges) => {
            ranges.iter().map(|it| fields(vec![x("", it.x), y("from", it.low), y("to", it.high)])).collect()
        }
        Marks::Bars(bars) => {
            bars.iter().map(|bar| fields(vec![x("from", bar.from), x("to", bar.to), y("", bar.y)])).collect()
        }
        Marks::Cells(cells) => {
            let edges =
                |axis: &Axis, field: fn(&'static str, f64) -> MarkValue, from: f64, to: f64| match has_names(axis) {
                    true => vec![field("", from)],
                    false => vec![field("from", from), field("to", to)],
                };
            let datum = |cell: &super::Cell| Datum {
                fields: [edges(&figure.x, x, cell.x, cell.x + cell.width), edges(&figure.y, y, cell.y, cell.y_to)]
                    .concat(),
                text: Some(cell.text.clone()),
            };
            cells.iter().map(datum).collect()
        }
        Marks::Boxes(boxes) => {
            let datum = |mark: &super::BoxMark| {
                let ([first, median, third], [low, high]) = (mark.quartiles, mark.whiskers);
                let quartiles = [x("first quartile", first), x("median", median), x("third quartile", third)];
                let whiskers = [x("lower whisker", low), x("upper whisker", high)];
                fields([&[y("", mark.row)], &quartiles[..], &whiskers].concat())
            };
            boxes.iter().map(datum).collect()
        }
        Marks::Intervals(intervals) => {
            let optional = |role, value| MarkValue { dimension: Dimension::X, role, value };
            let datum = |mark: &super::IntervalMark| {
                let ends = [optional("from", mark.low), optional("to", mark.high)];
                fields([&[y("", mark.row), optional("", mark.estimate)], &ends[..]].concat())
            };
            intervals.iter().map(datum).collect()
        }
        Marks::Infinite(marks) => {
            let datum = |mark: &super::InfiniteMark| Datum {
                fields: vec![x("", mark.x), y("", mark.y)],
                text: Some(mark.text.clone()),
            };
            marks.iter().map(datum).collect()
        }
        Marks::Rule(value) => vec![fields(vec![x("", *value)])],
        Marks::Level(value) => vec![fields(vec![y("", *value)])],
    }
}

/// A mark in words: `a: round trip delay from 48.0 µs to 49.0 µs, probes 1,204`.
pub(super) fn in_words(figure: &Figure, series: &Series, datum: &Datum) -> String {
    let mut text = String::new();
    let mut last = None;
    for MarkValue { dimension, role, value } in &datum.fields {
        let Some(value) = value else { continue };
        let axis = axis(figure, *dimension);
        let label = if last == Some(dimension) || has_names(axis) { "" } else { &axis.label };
        let separator = if text.is_empty() || (last == Some(dimension) && *role == "to") { " " } else { ", " };
        let value = words(axis, *value);
        let parts: Vec<&str> = [label, *role, &value].into_iter().filter(|part| !part.is_empty()).collect();
        text = text + separator + &parts.join(" ");
        last = Some(dimension);
    }
    let name = if series.name.is_empty() { String::new() } else { format!("{}: ", series.name) };
    let value = datum.text.as_ref().map(|text| format!(", {text}")).unwrap_or_default();
    format!("{name}{}{value}", text.trim_start())
}

/// `figure` without the marks that have no place: values that are not numbers, not positive on a logarithmic axis, or infinite
/// where that has no meaning (see [`Marks`]). Edges of areas may lie outside of the axis, and the ends of intervals may be open.
pub(super) fn drawable(figure: &Figure) -> Figure {
    let mut figure = figure.clone();
    let axes = (figure.x.clone(), figure.y.clone());
    let (x, y) = (AxisScale::new(&axes.0, AxisSide::Bottom), AxisScale::new(&axes.1, AxisSide::Left));
    let on = |axis: &AxisScale, value: f64| axis.position(value).is_some();
    let inside =
        |axis: &AxisScale, value: f64| axis.position(value).is_some_and(|it| (-1e-9..=1.0 + 1e-9).contains(&it));
    let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
    let up_to_infinity = |axis: &AxisScale, value: f64| value == f64::INFINITY || on(axis, value);
    for series in &mut figure.series {
        match &mut series.marks {
            Marks::Steps(points) => {
                points.retain(|point| up_to_infinity(&x, point.x) && (point.y == 0.0 || on(&y, point.y)));
            }
            Marks::Line(points) => points.retain(|point| on(&x, point.x) && up_to_infinity(&y, point.y)),
            Marks::Points(points) => points.retain(|point| on(&x, point.x) && on(&y, point.y)),
            Marks::Band(ranges) | Marks::StepBand(ranges) => ranges.retain(|range| {
                let is_range = range.low < f64::INFINITY || range.low == range.high;
                is_range && up_to_infinity(&x, range.x) && up_to_infinity(&y, range.high)
            }),
            Marks::Bars(bars) => {
                bars.retain(|bar| !bar.from.is_nan() && up_to_infinity(&x, bar.to) && on(&y, bar.y));
            }
            Marks::Infinite(marks) => marks.retain(|mark| {
                let is_infinite = mark.x == f64::INFINITY || mark.y == f64::INFINITY;
                is_infinite && up_to_infinity(&x, mark.x) && up_to_infinity(&y, mark.y)
            }),
            Marks::Cells(cells) => cells.retain(|cell| {
                finite(&[cell.x, cell.width, cell.y, cell.y_to]) && on(&x, cell.x + cell.width) && on(&y, cell.y_to)
            }),
            Marks::Boxes(boxes) => boxes.retain(|mark| {
                let all = || mark.quartiles.iter().chain(&mark.whiskers);
                finite(&mark.quartiles[..1]) && all().all(|value| up_to_infinity(&x, *value)) && inside(&y, mark.row)
            }),
            Marks::Intervals(intervals) => {
                for mark in intervals.iter_mut() {
                    let finite = |value: &f64| value.is_finite();
                    mark.estimate = mark.estimate.filter(|value| on(&x, *value));
                    (mark.low, mark.high) = (mark.low.filter(finite), mark.high.filter(finite));
                }
                let is_known =
                    |mark: &super::IntervalMark| mark.estimate.is_some() || mark.low.is_some() || mark.high.is_some();
                intervals.retain(|mark| is_known(mark) && inside(&y, mark.row));
            }
            Marks::Rule(value) if !on(&x, *value) => series.marks = Marks::Points(Vec::new()),
            Marks::Level(value) if !on(&y, *value) => series.marks = Marks::Points(Vec::new()),
            Marks::Rule(_) | Marks::Level(_) => {}
        }
    }
    figure
}
