//! Figures as SVG: within a page, where a script may add to them, and as files for papers.
//!
//! What a script can rely on: the outer `svg.figure` has `data-x` and `data-y`, each `KIND FROM TO UNIT FACTOR SYMBOL`.
//! KIND is `linear`, `log` or `categories`; FROM is at the left or at the bottom; a label is value / FACTOR, and the symbol `-`
//! means without a unit. Its children are `g.axis.x` and `g.axis.y`, each with `g.ticks` (`path.grid`, `text.tick`) and
//! `text.label`; `svg.area`, whose `viewBox` is in pixels of the area; and `g.legend`. The area has one `g.series` for each
//! series; `data-series` is its index, and `data-owner` that of the series whose name in the legend it has. Behind the figure,
//! `script.data` has the values as JSON:
//! `{"x":{"label":…,"names":[…]},"y":{…},"series":[{"name":…,"kind":…,"marks":[…]}]}`. The n-th entry of `marks` belongs to the
//! n-th element with the class of its kind: `[x,y]` of `points` (`dot`), `steps` and `line` (one `line` for all),
//! `[x,y,text]` of `infinite` (`dot`), `[x,low,high]` of `band`, `[from,to,y]` of `bars` (`bar`), `[row,first quartile,median,
//! third quartile,lower and upper whisker]` of `boxes` (`box`), `[row,estimate,low,high]` of `intervals` (`interval`), `[x]` of
//! `rule`, `[y]` of `level` (`rule`), and the index into `texts` of `cells` (`cell`), whose place is that of the element:
//! `M h v h z`. `null` is a value that is unknown, infinite or open.

use std::collections::HashMap;
use std::fmt::Write;

use maud::{Markup, PreEscaped, html};

use super::layout::{
    DrawnAxis, DrawnMark, DrawnPath, DrawnSeries, DrawnText, LegendEntry, PathShape, Place, Sheet, WIDTH, sheet,
};
use super::marks::{Datum, Dimension, MarkValue, data, drawable};
use super::scale::{AxisScale, AxisSide, digits};
use super::style::standalone_css;
use super::{Axis, Figure, Marks, Scale, Series};
use crate::units::human::general;

/// The begin of every figure.
pub const ROOT: &str = r#"<svg class="figure""#;

/// Significant digits of the values for scripts, beyond those of values in words: enough for zooming to a thousandth.
const MORE_DIGITS: i32 = 3;

/// The figure for a page: an `svg`, and the values of its marks for a script. The page has the style sheet
/// ([`super::style::css`]) and shows title and caption.
pub fn inline(figure: &Figure) -> Markup {
    let figure = drawable(figure);
    html! {
        (outer(&figure, None))
        script type="application/json" class="data" { (PreEscaped(json(&figure))) }
    }
}

/// The figure as an SVG file on a light background, with its style sheet inside.
pub fn standalone(figure: &Figure) -> String {
    let markup = outer(&drawable(figure), Some(&standalone_css()));
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", markup.into_string())
}

fn outer(figure: &Figure, style: Option<&str>) -> Markup {
    let sheet = sheet(figure);
    let (x, y) = (AxisScale::new(&figure.x, AxisSide::Bottom), AxisScale::new(&figure.y, AxisSide::Left));
    let (title, caption) = (format!("{}-title", figure.name), format!("{}-caption", figure.name));
    let size = |value: f64| number(value);
    html! {
        svg class="figure" xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {}", size(sheet.height)))
            width=[style.map(|_| WIDTH)] height=[style.map(|_| size(sheet.height))]
            role="img" aria-labelledby=(format!("{title} {caption}")) data-x=(x.attribute()) data-y=(y.attribute()) {
            title id=(title) { (clean(&figure.title)) }
            desc id=(caption) { (clean(&figure.caption)) }
            @if let Some(style) = style {
                style { (PreEscaped(style)) }
                rect width="100%" height="100%" fill="#ffffff" {}
            }
            (contents(&sheet, &owners(figure)))
        }
    }
}

/// For each series the index of its owner: of one without a name the first one with a name and the same colour, whose band or
/// points it is, and otherwise itself.
fn owners(figure: &Figure) -> Vec<usize> {
    let named = |colour: usize| figure.series.iter().position(|it| !it.name.is_empty() && it.colour == colour);
    let owner = |(index, series): (usize, &Series)| match series.name.is_empty() {
        true => named(series.colour).unwrap_or(index),
        false => index,
    };
    figure.series.iter().enumerate().map(owner).collect()
}

fn contents(sheet: &Sheet, owners: &[usize]) -> Markup {
    let area = sheet.area;
    let [left, top, width, height] = [area.left, area.top, area.width, area.height].map(number);
    html! {
        (axis("axis x", &sheet.x))
        (axis("axis y", &sheet.y))
        svg class="area" x=(left) y=(top) width=(width) height=(height)
            viewBox=(format!("0 0 {width} {height}")) preserveAspectRatio="none" {
            @for (index, (series, owner)) in sheet.series.iter().zip(owners).enumerate() {
                (drawn_series(index, *owner, series))
            }
        }
        (drawn_path(&sheet.edge, None))
        @if !sheet.legend.is_empty() {
            g class="legend" { @for entry in &sheet.legend { (legend_entry(entry)) } }
        }
    }
}

fn axis(class: &str, axis: &DrawnAxis) -> Markup {
    html! {
        g class=(class) {
            g class="ticks" {
                @for line in &axis.grid { (drawn_path(line, None)) }
                @for tick in &axis.ticks { (text(tick)) }
            }
            (text(&axis.label))
        }
    }
}

fn drawn_series(index: usize, owner: usize, series: &DrawnSeries) -> Markup {
    html! {
        g class=(format!("series s{}", series.look)) data-series=(index) data-owner=(owner) {
            @for mark in &series.marks { (drawn_mark(mark)) }
            @for value in &series.values { (text(value)) }
        }
    }
}

fn drawn_mark(mark: &DrawnMark) -> Markup {
    match mark.paths.as_slice() {
        [single] if single.class == mark.class => drawn_path(single, mark.title.as_deref()),
        paths => html! {
            g class=(mark.class) {
                @if let Some(title) = &mark.title { title { (clean(title)) } }
                @for path in paths { (drawn_path(path, None)) }
            }
        },
    }
}

fn legend_entry(entry: &LegendEntry) -> Markup {
    html! {
        g class=(format!("entry s{}", entry.look)) data-series=[entry.series] {
            @for path in &entry.sample { (drawn_path(path, None)) }
            (text(&entry.name))
        }
    }
}

fn text(text: &DrawnText) -> Markup {
    html! {
        text class=(text.class) x=(number(text.place.x)) y=(number(text.place.y)) {
            @if let Some(whole) = &text.whole { title { (clean(whole)) } }
            (clean(&text.text))
        }
    }
}

/// A path, as short as it can be: a figure may have 23,000 cells. Class and shape need no escapes.
fn drawn_path(path: &DrawnPath, title: Option<&str>) -> Markup {
    let level = path.level.map(|level| format!(" d{level}")).unwrap_or_default();
    // A minor line of the grid and a faint band have the classes of their kind too: one rule has their colour.
    let class = match path.class {
        "minor" => "grid minor",
        "faint" => "band faint",
        class => class,
    };
    let start = format!("<path class=\"{class}{level}\" d=\"{}\"", shape(&path.outline));
    match title {
        None => PreEscaped(format!("{start}/>")),
        Some(title) => html! { (PreEscaped(format!("{start}>"))) title { (clean(title)) } (PreEscaped("</path>")) },
    }
}

/// The commands of a path.
fn shape(outline: &PathShape) -> String {
    match outline {
        PathShape::Rectangle(from, to) => {
            let [left, top, right, bottom] = [from.x, from.y, to.x, to.y].map(tenths);
            let (width, height) = (number(right - left), number(bottom - top));
            format!("M{} {}h{width}v{height}h-{width}z", number(left), number(top))
        }
        PathShape::Lines(lines) => lines.iter().map(|line| polyline(line)).collect(),
        PathShape::Polygons(lines) => lines.iter().map(|line| polyline(line) + "z").collect(),
        PathShape::Dot(place) => format!("M{} {}h0", number(place.x), number(place.y)),
    }
}

/// A line, without the coordinates that do not change.
fn polyline(line: &[Place]) -> String {
    let mut text = String::new();
    let mut last: Option<Place> = None;
    for place in line.iter().map(|place| Place { x: tenths(place.x), y: tenths(place.y) }) {
        let (x, y) = (number(place.x), number(place.y));
        let _ = match last {
            None => write!(text, "M{x} {y}"),
            Some(last) if last == place => Ok(()),
            Some(last) if last.y == place.y => write!(text, "H{x}"),
            Some(last) if last.x == place.x => write!(text, "V{y}"),
            Some(_) => write!(text, "L{x} {y}"),
        };
        last = Some(place);
    }
    text
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// A number of pixels with at most one decimal.
fn number(value: f64) -> String {
    // Adding 0 takes −0 to 0.
    format!("{}", tenths(value) + 0.0)
}

/// `text` without control characters, which XML forbids even as escapes.
fn clean(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

/// The values of `figure` for a script.
fn json(figure: &Figure) -> String {
    let series: Vec<String> = figure
        .series
        .iter()
        .map(|series| {
            let data = data(figure, series);
            let marks = if matches!(series.marks, Marks::Cells(_)) { cells(&data) } else { values(figure, &data) };
            format!("{{\"name\":{},\"kind\":\"{}\",{marks}}}", json_string(&series.name), kind(&series.marks))
        })
        .collect();
    format!("{{\"x\":{},\"y\":{},\"series\":[{}]}}", json_axis(&figure.x), json_axis(&figure.y), series.join(","))
}

fn json_axis(axis: &Axis) -> String {
    let names = match &axis.scale {
        Scale::Categories(names) => {
            let names: Vec<String> = names.iter().map(|name| json_string(name)).collect();
            format!(",\"names\":[{}]", names.join(","))
        }
        _ => String::new(),
    };
    format!("{{\"label\":{}{names}}}", json_string(&axis.label))
}

fn kind(marks: &Marks) -> &'static str {
    match marks {
        Marks::Steps(_) => "steps",
        Marks::Line(_) => "line",
        Marks::Points(_) => "points",
        Marks::Band(_) | Marks::StepBand(_) => "band",
        Marks::Bars(_) => "bars",
        Marks::Cells(_) => "cells",
        Marks::Boxes(_) => "boxes",
        Marks::Intervals(_) => "intervals",
        Marks::Infinite(_) => "infinite",
        Marks::Rule(_) => "rule",
        Marks::Level(_) => "level",
    }
}

fn values(figure: &Figure, data: &[Datum]) -> String {
    let digits = [&figure.x, &figure.y].map(|axis| (digits(axis) + MORE_DIGITS) as usize);
    let value = |field: &MarkValue| {
        let digits = digits[usize::from(field.dimension == Dimension::Y)];
        field.value.map_or_else(|| "null".into(), |value| general(value, digits))
    };
    let mark = |datum: &Datum| {
        let text = datum.text.as_deref().map(json_string);
        let values: Vec<String> = datum.fields.iter().map(value).chain(text).collect();
        format!("[{}]", values.join(","))
    };
    format!("\"marks\":[{}]", data.iter().map(mark).collect::<Vec<_>>().join(","))
}

/// The texts of cells: most of them occur many times.
fn cells(data: &[Datum]) -> String {
    let mut indices: HashMap<&str, usize> = HashMap::new();
    let mut texts = Vec::new();
    let mut marks = Vec::with_capacity(data.len());
    for text in data.iter().filter_map(|datum| datum.text.as_deref()) {
        let index = *indices.entry(text).or_insert(texts.len());
        if index == texts.len() {
            texts.push(json_string(text));
        }
        marks.push(index.to_string());
    }
    format!("\"texts\":[{}],\"marks\":[{}]", texts.join(","), marks.join(","))
}

/// `text` as a JSON string without `<`, so that the `script` ends where it should.
fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('<', "\\u003c")
}
