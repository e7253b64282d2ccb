//! Figures as SVG: within a page, where a script may add to them, and as files for papers.
//!
//! What the script relies on: `svg.figure` has `data-x` and `data-y`, each `KIND FROM TO FACTOR SIGN` (`Axis::attribute`).
//! Its children are `g.axis.x` and `g.axis.y`, each with `g.ticks`, and `svg.area`, whose `viewBox` is in pixels of the area.
//! `g.legend` is another, or stands below all panels. A `g.series` and the `g.entry` of the legend that names it have the class of the same colour, `s0` to `s7`.
//! `script.data` has what is shown of each mark, as JSON: `words` in `series[].marks[]`, whose entries are left, top, right and
//! bottom in pixels of the area, and indices of `words`: those of x, of y, and of a text, or -1.

use std::collections::HashMap;
use std::fmt::Write;

use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

use super::axis::Axis;
use super::draw::{
    LOOKS, Place, TICK_SIZE, clean, cut, dot, look, number, path, rectangle, tenths, text_width, written,
};
use super::legend::{Legend, is_shared};
use super::{Figure, Mark, Series, Shape};

/// The begin of every figure.
pub const ROOT: &str = r#"<svg class="figure""#;
/// Number of levels of darkness of cells.
const LEVELS: usize = 8;

pub(super) const WIDTH: f64 = 560.0;
/// That of one of several panels, two of which stand beside each other.
const PANEL_WIDTH: f64 = 272.0;
/// Height of the area of a figure without named rows, and of one of its panels.
const HEIGHT: f64 = 264.0;
const PANEL_HEIGHT: f64 = 150.0;
/// Least height of an area with named rows, and of a row.
const ROWS_HEIGHT: f64 = 96.0;
const ROW: f64 = 24.0;
/// Space above the area for the label of the vertical axis.
const TOP: f64 = 26.0;
/// Space above that for the name of a panel.
const PANEL_NAME: f64 = 16.0;
/// Space to the right of the area.
const RIGHT: f64 = 22.0;
/// Space below the area for ticks and the label of the horizontal axis.
const BOTTOM: f64 = 40.0;
/// Least distance between two labels.
const GAP: f64 = 8.0;
/// The width that names beside the left axis may have, their most lines, and the distance of these.
const NAMES_WIDTH: f64 = 200.0;
const NAME_LINES: usize = 6;
const NAME_LINE: f64 = 12.0;
/// From so many bands on they are faint: they cover each other.
const FAINT_BANDS: usize = 5;
/// Distance of infinite points from the end of their axis, and the width of a bar there.
const INFINITE_INSET: f64 = 5.0;
const INFINITE_WIDTH: f64 = 18.0;
/// Half the width of a range that has gaps on both sides, that of a point.
const LONE_RANGE: f64 = 3.0;

/// The classes of marks. Colours are variables, since a page has others in the dark.
const CSS: &str = include_str!("figure.css");
/// The colours on a light background: ink, text of second rank, grid and paper; those of series by Okabe and Ito (2008),
/// which colour-blind readers can distinguish, the yellow last and darker; and of cells from one probe, which is clearly
/// visible, to the most.
const INKS: [(&str, &str); 4] =
    [("--ink", "#1a1a1a"), ("--quiet", "#595959"), ("--grid", "#dcdcdc"), ("--paper", "#ffffff")];
const SERIES: [&str; LOOKS] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9", "#b8a800"];
const DARKNESS: [&str; LEVELS] =
    ["#8fbfe0", "#6caad4", "#4c94c6", "#327db5", "#2067a0", "#135187", "#0a3b6a", "#05264a"];

/// The colours with the names of their variables.
fn colours() -> impl Iterator<Item = (String, &'static str)> {
    let numbered = |name: &'static str, colours: [&'static str; 8]| {
        colours.into_iter().enumerate().map(move |(index, colour)| (format!("--{name}{index}"), colour))
    };
    let inks = INKS.into_iter().map(|(name, colour)| (name.to_owned(), colour));
    inks.chain(numbered("s", SERIES)).chain(numbered("d", DARKNESS))
}

/// The style sheet of figures in a page, with the colours on a light background as variables.
pub(crate) fn css() -> String {
    let colours: Vec<String> = colours().map(|(name, colour)| format!("{name}: {colour};")).collect();
    format!(":root {{ {} }}\n{CSS}", colours.join(" "))
}

/// The figure for a page: an `svg` for each panel, and what a script shows of its marks. The page has the style sheet and
/// shows title and caption.
pub fn inline(figure: &Figure) -> Markup {
    let canvases = Canvas::all(figure);
    let is_wide = canvases.iter().any(|canvas| canvas.whole == WIDTH);
    let legend = is_shared(figure).then(|| Legend::of(figure.series.iter(), WIDTH)).flatten();
    html! {
        div class=(if is_wide { "panels wide" } else { "panels" }) {
            @for canvas in &canvases {
                div.canvas {
                    (canvas.picture(None))
                    script type="application/json" class="data" {
                        (PreEscaped(canvas.data().to_string().replace('<', "\\u003c")))
                    }
                }
            }
            @if let Some(legend) = legend {
                svg class="figure key" viewBox=(format!("0 0 {WIDTH} {}", legend.height)) { (legend.at(0.0)) }
            }
        }
    }
}

/// The figure as an SVG file on a light background. Its style sheet has no variables, which many readers of SVG do not know.
pub fn standalone(figure: &Figure) -> String {
    let css = colours().fold(CSS.to_owned(), |css, (name, colour)| css.replace(&format!("var({name})"), colour));
    let (title, caption) = (format!("{}-title", figure.name), format!("{}-caption", figure.name));
    let (mut x, mut y, mut below) = (0.0, 0.0, 0.0_f64);
    let mut panels = Vec::new();
    for canvas in Canvas::all(figure) {
        if x + canvas.whole > WIDTH {
            (x, y) = (0.0, below);
        }
        panels.push(canvas.picture(Some([x, y])));
        below = below.max(y + canvas.bottom());
        x += WIDTH - canvas.whole.min(PANEL_WIDTH);
    }
    let legend = is_shared(figure).then(|| Legend::of(figure.series.iter(), WIDTH)).flatten();
    let height = below + legend.as_ref().map_or(0.0, |legend| legend.height);
    let picture = html! {
        svg class="figure" xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height}"))
            width=(WIDTH) height=(height) role="img" aria-labelledby=(format!("{title} {caption}")) {
            title id=(title) { (clean(&figure.title)) }
            desc id=(caption) { (clean(&figure.caption)) }
            style { (PreEscaped(css)) }
            rect width="100%" height="100%" fill="#ffffff" {}
            @for panel in &panels { (panel) }
            @if let Some(legend) = legend { (legend.at(below)) }
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", picture.into_string())
}

/// A label of an axis; a minor line has none.
struct AxisLabel {
    /// Pixels from the left or the top of the figure.
    at: f64,
    lines: Vec<String>,
    /// The whole name, if it had to be cut.
    whole: Option<String>,
}

/// A panel of a figure with the place of its area.
struct Canvas<'a> {
    figure: &'a Figure,
    /// Its name, if it is one of several.
    panel: Option<&'a str>,
    series: Vec<&'a Series>,
    legend: Option<Legend>,
    /// The width of the panel, of which `width` is the area.
    whole: f64,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    x_labels: Vec<AxisLabel>,
    y_labels: Vec<AxisLabel>,
}

impl<'a> Canvas<'a> {
    fn all(figure: &'a Figure) -> Vec<Canvas<'a>> {
        (0..figure.panels.len().max(1)).map(|panel| Canvas::of(figure, panel)).collect()
    }

    fn of(figure: &'a Figure, panel: usize) -> Canvas<'a> {
        let is_part = figure.panels.len() > 1;
        // Rows whose marks are above and below each other are twice as high.
        let is_stacked =
            figure.series.iter().flat_map(|series| &series.marks).any(|it| it.y.iter().any(|y| y.fract() != 0.0));
        let row = |names: &[String]| row_height(names) * if is_stacked { 2.0 } else { 1.0 };
        let rows = |names: &[String]| (names.len() as f64 * row(names)).max(ROWS_HEIGHT);
        let height = figure.y.names().map_or(if is_part { PANEL_HEIGHT } else { HEIGHT }, rows);
        let top = if is_part { TOP + PANEL_NAME } else { TOP };
        let whole = if is_part && figure.y.names().is_none() { PANEL_WIDTH } else { WIDTH };
        let y_labels = labels(&figure.y, top, height, true);
        let widths = y_labels.iter().flat_map(|label| &label.lines).map(|line| text_width(line));
        let left = widths.fold(24.0, f64::max).min(NAMES_WIDTH + TICK_SIZE).ceil() + 10.0;
        let width = whole - RIGHT - left;
        let series: Vec<&Series> = figure.series.iter().filter(|series| series.panel == panel).collect();
        let legend = if is_shared(figure) { None } else { Legend::of(series.iter().copied(), whole) };
        Canvas {
            figure,
            panel: figure.panels.get(panel).map(String::as_str).filter(|_| is_part),
            series,
            legend,
            whole,
            left,
            top,
            width,
            height,
            x_labels: labels(&figure.x, left, width, false),
            y_labels,
        }
    }

    /// The lower end of axes and ticks, and that of the picture.
    fn below_axes(&self) -> f64 {
        (self.top + self.height + BOTTOM).ceil()
    }

    fn bottom(&self) -> f64 {
        self.below_axes() + self.legend.as_ref().map_or(0.0, |legend| legend.height)
    }

    fn x(&self, value: f64) -> f64 {
        self.figure.x.scale.position(value) * self.width
    }

    fn y(&self, value: f64) -> f64 {
        let position = self.figure.y.scale.position(value);
        self.height * if self.figure.y.names().is_some() { position } else { 1.0 - position }
    }

    /// The picture: of a page, or `at` its place in a file.
    fn picture(&self, at: Option<Place>) -> Markup {
        let figure = self.figure;
        let (whole, bottom) = (self.whole, self.bottom());
        let size = format!("0 0 {} {}", number(self.width), number(self.height));
        let label = [figure.title.as_str()].into_iter().chain(self.panel).collect::<Vec<_>>().join(": ");
        html! {
            svg class="figure" xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {whole} {bottom}"))
                x=[at.map(|[x, _]| x)] y=[at.map(|[_, y]| y)] width=[at.map(|_| whole)] height=[at.map(|_| bottom)]
                role="img" aria-label=(clean(&label))
                data-x=(figure.x.attribute()) data-y=(figure.y.attribute()) {
                @if let Some(panel) = self.panel { (fitted("panel", [2.0, 13.0], panel, whole)) }
                (self.axis(true))
                (self.axis(false))
                svg class="area" x=(number(self.left)) y=(number(self.top)) width=(number(self.width))
                    height=(number(self.height)) viewBox=(size) preserveAspectRatio="none" {
                    @for series in &self.series {
                        g class={ "series " (look(series)) } {
                            (PreEscaped(self.marks(series)))
                        }
                    }
                }
                (path("edge", &format!("M{} {}v{}h{}", number(self.left), self.top, number(self.height), number(self.width))))
                @if let Some(legend) = &self.legend { (legend.at(self.below_axes())) }
            }
        }
    }

    /// Grid, labels and title of an axis. The lines of one kind are one path.
    fn axis(&self, is_x: bool) -> Markup {
        let [left, top, right, bottom] = [self.left, self.top, self.left + self.width, self.top + self.height];
        let (class, axis, labels, title) = if is_x {
            ("axis x", &self.figure.x, &self.x_labels, [right, bottom + 32.0])
        } else {
            ("axis y", &self.figure.y, &self.y_labels, [2.0, top - 12.0])
        };
        let line = |AxisLabel { at, .. }: &AxisLabel| {
            let [from, to] = if is_x { [[*at, top], [*at, bottom]] } else { [[left, *at], [right, *at]] };
            polyline(&[from, to])
        };
        let lines = |is_minor| labels.iter().filter(|it| it.lines.is_empty() == is_minor).map(line).collect::<String>();
        let text = |AxisLabel { at, lines, whole }: &AxisLabel, index: usize| {
            let text = &lines[index];
            let above = NAME_LINE * ((lines.len() - 1) as f64 / 2.0 - index as f64);
            let below = [at.min(self.whole - text_width(text) / 2.0), bottom + 15.0];
            let place = if is_x { below } else { [left - 6.0, at + 4.0 - above] };
            written("tick", place, text, whole.as_deref())
        };
        html! {
            g class=(class) {
                g class="ticks" {
                    (path("grid minor", &lines(true)))
                    (path("grid", &lines(false)))
                    @for label in labels { @for index in 0..label.lines.len() { (text(label, index)) } }
                }
                (fitted("label", title, &axis.title(), self.whole))
            }
        }
    }

    /// The marks of a series, as short as they can be: a figure may have 8,000 cells.
    fn marks(&self, series: &Series) -> String {
        let marks = &series.marks;
        let place = |mark: &Mark, end: usize| [self.x(mark.x[0]), self.y(mark.y[end])];
        let parts = || marks.split(|mark| mark.y[0] == f64::INFINITY).filter(|part| !part.is_empty());
        let is_band = |series: &&Series| series.shape.is_band();
        let is_faint = self.series.iter().copied().filter(is_band).count() >= FAINT_BANDS;
        let edge = |part: &[Mark], end: usize| -> Vec<Place> {
            let places = part.iter().map(|mark| place(mark, end));
            match part {
                [_] => places.flat_map(|[x, y]| [[x - LONE_RANGE, y], [x + LONE_RANGE, y]]).collect(),
                _ if series.shape == Shape::StepBand => steps(places),
                _ => places.collect(),
            }
        };
        let area = |part| {
            let back = edge(part, 1).into_iter().rev();
            polyline(&edge(part, 0).into_iter().chain(back).collect::<Vec<_>>()) + "z"
        };
        let line = |part: &[Mark]| polyline(&part.iter().map(|mark| place(mark, 0)).collect::<Vec<_>>());
        let (class, d) = match series.shape {
            Shape::Steps => ("line", polyline(&steps(marks.iter().map(|mark| place(mark, 0))))),
            Shape::Line => ("line", parts().map(line).collect()),
            Shape::Band | Shape::StepBand if is_faint => ("band faint", parts().map(area).collect()),
            Shape::Band | Shape::StepBand => ("band", parts().map(area).collect()),
            shape => return marks.iter().map(|mark| self.mark(shape, mark).into_string()).collect(),
        };
        path(class, &d).into_string()
    }

    fn mark(&self, shape: Shape, mark: &Mark) -> Markup {
        let extent = self.extent(shape, mark);
        let [left, top, right, bottom] = extent.map(number);
        let half = (self.height / self.figure.y.names().map_or(12, <[String]>::len) as f64 * 0.32).clamp(0.5, 9.0);
        let upright = |value: f64, half: f64| {
            format!("M{} {}v{}", number(self.x(value)), number(extent[1] - half), number(2.0 * half))
        };
        match (shape, mark.x.as_slice()) {
            (Shape::Bars, _) => path("bar", &rectangle(extent)),
            (Shape::Cells, _) => path(&format!("cell d{}", level(mark.darkness)), &rectangle(extent)),
            (Shape::Rule, _) => path("rule", &format!("M{left} {top}L{right} {bottom}")),
            (Shape::Boxes, [first, median, third, low, high]) => {
                // An open end has no cap, and an infinite median has no line.
                let caps = [low, high].into_iter().filter(|end| end.is_finite()).map(|end| upright(*end, half / 2.0));
                let [from, to] = [first, third].map(|value| self.x(*value));
                let whisker =
                    format!("M{left} {top}H{}M{} {top}H{right}", number(from), number(to)) + &caps.collect::<String>();
                let median = median.is_finite().then(|| upright(*median, half));
                html! {
                    g class="box" {
                        (path("whisker", &whisker))
                        (path("quartiles", &rectangle([from, extent[1] - half, to, extent[1] + half])))
                        @if let Some(median) = median { (path("median", &median)) }
                    }
                }
            }
            (Shape::Intervals, [estimate, ends @ ..]) => {
                let caps = ends.iter().filter(|end| end.is_finite()).map(|end| upright(*end, half / 2.0));
                let whisker = format!("M{left} {top}H{right}") + &caps.collect::<String>();
                html! {
                    g class="interval" {
                        @if !ends.is_empty() { (path("whisker", &whisker)) }
                        (path("estimate", &dot([self.x(*estimate), extent[1]])))
                    }
                }
            }
            _ => path("dot", &dot([extent[0], extent[1]])),
        }
    }

    /// Left, top, right and bottom of a mark in the area.
    fn extent(&self, shape: Shape, mark: &Mark) -> [f64; 4] {
        let ends = |values: &[f64], length: f64, place: &dyn Fn(f64) -> f64| match values {
            [] => [0.0, length],
            [value] if shape == Shape::Points && value.is_infinite() => {
                [place(*value).clamp(INFINITE_INSET, length - INFINITE_INSET); 2]
            }
            values => {
                let places = values.iter().map(|value| place(*value));
                places.fold([length, 0.0], |[low, high], place| [low.min(place), high.max(place)])
            }
        };
        let [left, right] = ends(&mark.x, self.width, &|value| self.x(value));
        let [top, bottom] = ends(&mark.y, self.height, &|value| self.y(value));
        match shape {
            // A count of 1 on an axis that begins at 1 stays visible.
            Shape::Bars if mark.x[0] == f64::INFINITY => {
                [right - INFINITE_WIDTH, top.min(self.height - 2.0), right, self.height]
            }
            Shape::Bars => [left, top.min(self.height - 2.0), right, self.height],
            _ => [left, top, right, bottom],
        }
    }

    /// What a script shows of each mark.
    fn data(&self) -> Value {
        let mut words: Vec<String> = Vec::new();
        let mut indices: HashMap<String, usize> = HashMap::new();
        let mut index = |text: String| {
            if text.is_empty() {
                return json!(-1);
            }
            json!(*indices.entry(text).or_insert_with_key(|text| {
                words.push(text.clone());
                words.len() - 1
            }))
        };
        let series = |series: &Series| {
            let mark = |mark: &Mark| {
                let place = self.extent(series.shape, mark).map(|pixels| json!(tenths(pixels)));
                let text =
                    [in_words(&self.figure.x, series.shape, &mark.x), in_words(&self.figure.y, series.shape, &mark.y)];
                let text = text.into_iter().chain([mark.text.clone()]);
                place.into_iter().chain(text.map(&mut index)).collect::<Vec<_>>()
            };
            let kind = match series.shape {
                Shape::Steps | Shape::Line => "line",
                Shape::Band | Shape::StepBand | Shape::Rule => "behind",
                Shape::Bars => "column",
                _ => "mark",
            };
            let marks: Vec<_> = series.marks.iter().map(mark).collect();
            json!({ "name": series.name, "look": series.colour % LOOKS, "kind": kind, "marks": marks })
        };
        let series: Vec<Value> = self.series.iter().copied().map(series).collect();
        let label = |axis: &Axis| if axis.names().is_some() { String::new() } else { axis.label.clone() };
        json!({ "x": label(&self.figure.x), "y": label(&self.figure.y), "series": series, "words": words })
    }
}

/// The values of a mark on one axis: `from 48.0 µs to 49.0 µs`.
fn in_words(axis: &Axis, shape: Shape, values: &[f64]) -> String {
    let words = values.iter().map(|value| axis.words(*value));
    if values.len() < 2 {
        return words.collect();
    }
    let words: Vec<String> = shape.roles().iter().zip(words).map(|(role, word)| format!("{role} {word}")).collect();
    words.join(if shape == Shape::Boxes { ", " } else { " " }).trim_start().into()
}

/// The labels of an axis of `length` that begins at `begin`. Names stand to the left alone.
fn labels(axis: &Axis, begin: f64, length: f64, is_left: bool) -> Vec<AxisLabel> {
    let Some(names) = axis.names() else {
        let extent = |label: &str| if is_left { TICK_SIZE + GAP / 2.0 } else { text_width(label) + GAP };
        let at = |position: f64| begin + length * if is_left { 1.0 - position } else { position };
        let lines = |label: String| Some(label).filter(|label| !label.is_empty()).into_iter().collect();
        let ticks = axis.ticks(length, extent).into_iter();
        return ticks.map(|tick| AxisLabel { at: at(tick.position), lines: lines(tick.label), whole: None }).collect();
    };
    let label = |(index, name): (usize, &String)| {
        let lines = in_lines(name, NAME_LINES);
        let whole = (lines.join(" ") != *name).then(|| name.clone());
        AxisLabel { at: begin + axis.scale.position(index as f64) * length, lines, whole }
    };
    names.iter().enumerate().map(label).collect()
}

/// A text that is cut where it would not fit `width`.
fn fitted(class: &str, place: Place, text: &str, width: f64) -> Markup {
    let shown = cut(text, width - 4.0);
    written(class, place, &shown, (shown != text).then_some(text))
}

/// A line that keeps the height of each place until the next.
fn steps(places: impl Iterator<Item = Place>) -> Vec<Place> {
    let mut line: Vec<Place> = Vec::new();
    for place in places {
        line.extend(line.last().map(|last| [place[0], last[1]]));
        line.push(place);
    }
    line
}

/// A line, without the coordinates that do not change.
fn polyline(line: &[Place]) -> String {
    let mut text = String::new();
    let mut last: Option<Place> = None;
    for [x, y] in line.iter().map(|place| place.map(tenths)) {
        let _ = match last {
            None => write!(text, "M{x} {y}"),
            Some(last) if last == [x, y] => Ok(()),
            Some(last) if last[1] == y => write!(text, "H{x}"),
            Some(last) if last[0] == x => write!(text, "V{y}"),
            Some(_) => write!(text, "L{x} {y}"),
        };
        last = Some([x, y]);
    }
    text
}

/// The level of a darkness from 0 to 1; `as` takes what is negative to 0.
fn level(darkness: f64) -> usize {
    ((darkness * LEVELS as f64) as usize).min(LEVELS - 1)
}

/// The height of a row that holds each of `names` beside the left axis.
fn row_height(names: &[String]) -> f64 {
    let lines = names.iter().map(|name| in_lines(name, NAME_LINES).len()).max().unwrap_or(1);
    (7.0 + NAME_LINE * lines as f64).max(ROW)
}

/// `name` in at most `most` lines beside the left axis, which end at spaces or after commas; the last one is cut.
fn in_lines(name: &str, most: usize) -> Vec<String> {
    let fits = |text: &str| text_width(text) <= NAMES_WIDTH;
    let mut ends = name.rmatch_indices([' ', ',']).filter(|_| most > 1 && !fits(name));
    let end =
        ends.find_map(|(at, sign)| Some(at + usize::from(sign == ",")).filter(|end| *end > 0 && fits(&name[..*end])));
    match end.filter(|end| *end < name.len()) {
        Some(end) => [vec![name[..end].trim_end().to_owned()], in_lines(name[end..].trim_start(), most - 1)].concat(),
        None => vec![cut(name, NAMES_WIDTH)],
    }
}
