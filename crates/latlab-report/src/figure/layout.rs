//! Where everything of a figure lies, in pixels: the same for SVG and PNG, which only write it.

use super::marks::{data, in_words};
use super::scale::{AxisScale, AxisSide, NAME_LINE, NAMES_WIDTH, TICK_SIZE, Tick, cut, row_height, text_width};
use super::style::{LOOKS, is_hollow, level};
use super::{BoxMark, Cell, Figure, InfiniteMark, IntervalMark, Marks, Point, Range, Scale, Series};

pub(super) const WIDTH: f64 = 560.0;
/// Height of the area of a figure without named rows.
const HEIGHT: f64 = 264.0;
/// Least height of a named row.
const ROW: f64 = 24.0;
/// Limits of the height of an area with named rows; with more rows, not each has its name.
const ROWS_HEIGHT: (f64, f64) = (96.0, 1_860.0);
/// Space above the area for the label of the vertical axis.
const TOP: f64 = 26.0;
/// Space to the right of the area.
const RIGHT: f64 = 22.0;
/// Space below the area for ticks and the label of the horizontal axis.
const BOTTOM: f64 = 40.0;
/// Height of a row of the legend.
const LEGEND_ROW: f64 = 18.0;
/// Most entries of a legend.
const LEGEND_ENTRIES: usize = 40;
/// Width of the sample of a legend's entry.
const SAMPLE: f64 = 22.0;
/// Most marks of a figure of which each has a text of its own, and most cells that show their value.
const MARKS_WITH_TEXT: usize = 400;
/// From so many bands on they are faint: they cover each other.
const FAINT_BANDS: usize = 5;
/// Distance of the points of what is infinite from the end of their axis.
const INFINITE_INSET: f64 = 5.0;
/// Half the width of a range that has gaps on both sides, that of a point.
const LONE_RANGE: f64 = 3.0;
/// Width of the bar of what is infinite.
const INFINITE_WIDTH: f64 = 18.0;
/// Bounds of pixels, far outside of any figure: more would overflow in some readers.
const FAR: f64 = 20_000.0;

/// A place in pixels, from the left and from the top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The shape of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PathShape {
    /// A rectangle between two opposite corners: left and top, right and bottom.
    Rectangle(Place, Place),
    Lines(Vec<Vec<Place>>),
    Polygons(Vec<Vec<Place>>),
    Dot(Place),
}

/// A path with its class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DrawnPath {
    pub(super) class: &'static str,
    /// Level of darkness, of cells only.
    pub(super) level: Option<usize>,
    pub(super) outline: PathShape,
}

/// A mark: one path of the same class, or several paths that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DrawnMark {
    pub(super) class: &'static str,
    pub(super) title: Option<String>,
    pub(super) paths: Vec<DrawnPath>,
}

/// A text with its class.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DrawnText {
    pub(super) class: &'static str,
    /// On the base line: the centre of ticks below an axis and of values, the end of ticks beside an axis, else the start.
    pub(super) place: Place,
    pub(super) text: String,
    /// The whole text, if it had to be cut.
    pub(super) whole: Option<String>,
}

/// The marks of a series, in pixels of the area.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DrawnSeries {
    /// PaintColour, dashes and shape of points, below [`LOOKS`].
    pub(super) look: usize,
    pub(super) marks: Vec<DrawnMark>,
    pub(super) values: Vec<DrawnText>,
}

/// Grid, ticks and label of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DrawnAxis {
    pub(super) grid: Vec<DrawnPath>,
    pub(super) ticks: Vec<DrawnText>,
    pub(super) label: DrawnText,
}

/// An entry of the legend.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LegendEntry {
    /// Index of its series; `None` of the note on series that the legend leaves out.
    pub(super) series: Option<usize>,
    pub(super) look: usize,
    /// What its marks look like; empty of the note.
    pub(super) sample: Vec<DrawnPath>,
    pub(super) name: DrawnText,
}

/// The rectangle of the marks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PlotArea {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl PlotArea {
    fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// A figure in pixels; its width is [`WIDTH`].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sheet {
    pub(super) height: f64,
    pub(super) area: PlotArea,
    pub(super) x: DrawnAxis,
    pub(super) y: DrawnAxis,
    /// The lines of both axes.
    pub(super) edge: DrawnPath,
    pub(super) series: Vec<DrawnSeries>,
    pub(super) legend: Vec<LegendEntry>,
}

/// Lays out `figure`, of which each mark can be drawn (see `marks::drawable`).
pub(super) fn sheet(figure: &Figure) -> Sheet {
    let (x, y) = (AxisScale::new(&figure.x, AxisSide::Bottom), AxisScale::new(&figure.y, AxisSide::Left));
    let height = match &figure.y.scale {
        Scale::Categories(names) => {
            (names.len() as f64 * row_height(names).max(ROW)).clamp(ROWS_HEIGHT.0, ROWS_HEIGHT.1)
        }
        _ => HEIGHT,
    };
    let y_ticks = y.ticks(height);
    let labels = y_ticks.iter().flat_map(|tick| tick.label.lines());
    let widest = labels.map(|line| text_width(line, TICK_SIZE)).fold(24.0, f64::max);
    let left = widest.min(NAMES_WIDTH + TICK_SIZE).ceil() + 10.0;
    let area = PlotArea { left, top: TOP, width: WIDTH - RIGHT - left, height };
    let corner = |x: f64, y: f64| Place { x: area.left + x, y: area.top + y };
    let edge = vec![corner(0.0, 0.0), corner(0.0, area.height), corner(area.width, area.height)];
    let discrete: usize = figure.series.iter().map(|series| discrete_marks(&series.marks)).sum();
    let is_band = |series: &&Series| matches!(series.marks, Marks::Band(_) | Marks::StepBand(_));
    let band = if figure.series.iter().filter(is_band).count() < FAINT_BANDS { "band" } else { "faint" };
    let canvas = Canvas { figure, area, has_texts: discrete <= MARKS_WITH_TEXT, band };
    let legend = legend(figure, area.bottom() + BOTTOM);
    let last = legend.iter().map(|entry| entry.name.place.y + 6.0).fold(area.bottom() + BOTTOM, f64::max);
    Sheet {
        height: last.ceil(),
        area,
        x: bottom_axis(&area, &x.ticks(area.width), x.label()),
        y: left_axis(&area, &y_ticks, y.label()),
        edge: DrawnPath { class: "edge", level: None, outline: PathShape::Lines(vec![edge]) },
        series: figure.series.iter().map(|series| canvas.series(series, Axes { x: &x, y: &y })).collect(),
        legend,
    }
}

fn bottom_axis(area: &PlotArea, ticks: &[Tick], label: String) -> DrawnAxis {
    let x = |tick: &Tick| area.left + tick.position * area.width;
    let line = |tick: &Tick| vec![Place { x: x(tick), y: area.top }, Place { x: x(tick), y: area.bottom() }];
    let text = |tick: &Tick| {
        let half = text_width(&tick.label, TICK_SIZE) / 2.0;
        let place = Place { x: x(tick).min(WIDTH - half), y: area.bottom() + 15.0 };
        vec![DrawnText { class: "tick", place, text: tick.label.clone(), whole: tick.whole.clone() }]
    };
    let place = Place { x: area.left + area.width, y: area.bottom() + 32.0 };
    drawn_axis(ticks, line, text, DrawnText { class: "label", place, text: label, whole: None })
}

fn left_axis(area: &PlotArea, ticks: &[Tick], label: String) -> DrawnAxis {
    let y = |tick: &Tick| area.bottom() - tick.position * area.height;
    let line = |tick: &Tick| vec![Place { x: area.left, y: y(tick) }, Place { x: area.left + area.width, y: y(tick) }];
    let text = |tick: &Tick| {
        let first = y(tick) + 4.0 - NAME_LINE / 2.0 * tick.label.lines().skip(1).count() as f64;
        let line = |(line, text): (usize, &str)| {
            let place = Place { x: area.left - 6.0, y: first + NAME_LINE * line as f64 };
            DrawnText { class: "tick", place, text: text.into(), whole: tick.whole.clone() }
        };
        tick.label.lines().enumerate().map(line).collect()
    };
    let place = Place { x: 2.0, y: area.top - 12.0 };
    drawn_axis(ticks, line, text, DrawnText { class: "label", place, text: label, whole: None })
}

/// An axis whose lines of one class are one path.
fn drawn_axis(
    ticks: &[Tick],
    line: impl Fn(&Tick) -> Vec<Place>,
    texts: impl Fn(&Tick) -> Vec<DrawnText>,
    label: DrawnText,
) -> DrawnAxis {
    let lines = |class: &'static str, is_minor: bool| {
        let lines: Vec<_> = ticks.iter().filter(|tick| tick.is_minor == is_minor).map(&line).collect();
        (!lines.is_empty()).then_some(DrawnPath { class, level: None, outline: PathShape::Lines(lines) })
    };
    let grid = [lines("minor", true), lines("grid", false)].into_iter().flatten().collect();
    DrawnAxis { grid, ticks: ticks.iter().filter(|tick| !tick.is_minor).flat_map(texts).collect(), label }
}

/// The number of marks that can have a text of their own.
fn discrete_marks(marks: &Marks) -> usize {
    match marks {
        Marks::Steps(_) | Marks::Line(_) | Marks::Band(_) | Marks::StepBand(_) | Marks::Rule(_) | Marks::Level(_) => 1,
        Marks::Points(marks) => marks.len(),
        Marks::Infinite(marks) => marks.len(),
        Marks::Bars(marks) => marks.len(),
        Marks::Cells(marks) => marks.len(),
        Marks::Boxes(marks) => marks.len(),
        Marks::Intervals(marks) => marks.len(),
    }
}

/// The area of a figure, on which series are drawn.
struct Canvas<'a> {
    figure: &'a Figure,
    area: PlotArea,
    has_texts: bool,
    band: &'static str,
}

#[derive(Clone, Copy)]
struct Axes<'a> {
    x: &'a AxisScale<'a>,
    y: &'a AxisScale<'a>,
}

impl Canvas<'_> {
    fn series(&self, series: &Series, axes: Axes) -> DrawnSeries {
        let look = series.colour % LOOKS;
        let paths = self.paths(&series.marks, axes);
        let titles = self.titles(series, paths.len());
        let mut marks = Vec::with_capacity(paths.len());
        for (mut mark, title) in paths.into_iter().zip(titles) {
            mark.title = title;
            let hole = hole(&mark.paths, look).map(|hole| DrawnMark { class: "hole", title: None, paths: vec![hole] });
            marks.push(mark);
            marks.extend(hole);
        }
        DrawnSeries { look, marks, values: self.values(&series.marks, axes) }
    }

    /// A text for each mark; for a line or band of many values its name.
    fn titles(&self, series: &Series, count: usize) -> Vec<Option<String>> {
        let named = (!series.name.is_empty()).then(|| series.name.clone());
        match &series.marks {
            Marks::Steps(_) | Marks::Line(_) | Marks::Band(_) | Marks::StepBand(_) => vec![named; count],
            _ if self.has_texts => {
                data(self.figure, series).iter().map(|datum| Some(in_words(self.figure, series, datum))).collect()
            }
            _ => vec![None; count],
        }
    }

    fn paths(&self, marks: &Marks, axes: Axes) -> Vec<DrawnMark> {
        let one = |class, outline| vec![simple(class, outline)];
        match marks {
            Marks::Steps(points) if !points.is_empty() => {
                one("line", PathShape::Lines(vec![steps(points.iter().map(|point| self.place(point, axes)))]))
            }
            Marks::Line(points) if !points.is_empty() => {
                let parts = points.split(|point| point.y.is_infinite()).filter(|part| !part.is_empty());
                let line = |part: &[Point]| part.iter().map(|point| self.place(point, axes)).collect();
                let lines: Vec<Vec<Place>> = parts.map(line).collect();
                if lines.is_empty() { Vec::new() } else { one("line", PathShape::Lines(lines)) }
            }
            Marks::Band(ranges) | Marks::StepBand(ranges) => {
                let parts = ranges.split(|range| range.low == f64::INFINITY).filter(|part| !part.is_empty());
                let is_stepped = matches!(marks, Marks::StepBand(_));
                let polygons: Vec<_> = parts.map(|part| self.outline(part, is_stepped, axes)).collect();
                if polygons.is_empty() { Vec::new() } else { one(self.band, PathShape::Polygons(polygons)) }
            }
            Marks::Steps(_) | Marks::Line(_) => Vec::new(),
            Marks::Points(points) => {
                points.iter().map(|point| simple("dot", PathShape::Dot(self.place(point, axes)))).collect()
            }
            Marks::Bars(bars) => {
                let bar = |bar: &super::Bar| {
                    let right = self.x(axes.x.edge(bar.to));
                    let left = match bar.from == f64::INFINITY {
                        true => right - INFINITE_WIDTH,
                        false => self.x(axes.x.edge(bar.from)),
                    };
                    // A count of 1 on an axis that begins at 1 stays visible.
                    let top = self.y(axes.y.edge(bar.y)).min(self.area.height - 2.0);
                    simple("bar", rectangle(Place { x: left, y: top }, Place { x: right, y: self.area.height }))
                };
                bars.iter().map(bar).collect()
            }
            Marks::Cells(cells) => {
                let cell = |cell: &Cell| DrawnMark {
                    class: "cell",
                    title: None,
                    paths: vec![DrawnPath {
                        class: "cell",
                        level: Some(level(cell.darkness)),
                        outline: self.cell(cell, axes),
                    }],
                };
                cells.iter().map(cell).collect()
            }
            Marks::Infinite(marks) => marks.iter().map(|mark| self.infinite(mark, axes)).collect(),
            Marks::Boxes(boxes) => boxes.iter().map(|mark| self.box_plot(mark, axes)).collect(),
            Marks::Intervals(intervals) => intervals.iter().map(|mark| self.interval(mark, axes)).collect(),
            Marks::Rule(value) => {
                let x = self.x(axes.x.position(*value).unwrap_or(0.0));
                one("rule", straight(Place { x, y: 0.0 }, Place { x, y: self.area.height }))
            }
            Marks::Level(value) => {
                let y = self.y(axes.y.position(*value).unwrap_or(0.0));
                one("rule", straight(Place { x: 0.0, y }, Place { x: self.area.width, y }))
            }
        }
    }

    fn x(&self, position: f64) -> f64 {
        (position * self.area.width).clamp(-FAR, FAR)
    }

    fn y(&self, position: f64) -> f64 {
        ((1.0 - position) * self.area.height).clamp(-FAR, FAR)
    }

    fn place(&self, point: &Point, axes: Axes) -> Place {
        Place { x: self.x(place_of(axes.x, point.x)), y: self.y(place_of(axes.y, point.y)) }
    }

    /// The outline of a part of a band: its lower edge, then the upper one backwards.
    fn outline(&self, ranges: &[Range], is_stepped: bool, axes: Axes) -> Vec<Place> {
        let edge = |end: fn(&Range) -> f64| -> Vec<Place> {
            let x = |range: &Range| self.x(place_of(axes.x, range.x));
            let place = |range: &Range| Place { x: x(range), y: self.y(axes.y.edge(end(range))) };
            match ranges {
                [only] => [-LONE_RANGE, LONE_RANGE].map(|by| Place { x: x(only) + by, ..place(only) }).to_vec(),
                _ if is_stepped => steps(ranges.iter().map(place)),
                _ => ranges.iter().map(place).collect(),
            }
        };
        let high = edge(|range| range.high).into_iter().rev();
        edge(|range| range.low).into_iter().chain(high).collect()
    }

    /// A point along the end of the axis whose value is infinite, within the area.
    fn infinite(&self, mark: &InfiniteMark, axes: Axes) -> DrawnMark {
        let place = self.place(&Point { x: mark.x, y: mark.y }, axes);
        let within = |value: f64, end: f64| value.clamp(INFINITE_INSET, end - INFINITE_INSET);
        let x = if mark.x.is_infinite() { within(place.x, self.area.width) } else { place.x };
        let y = if mark.y.is_infinite() { within(place.y, self.area.height) } else { place.y };
        simple("dot", PathShape::Dot(Place { x, y }))
    }

    fn cell(&self, cell: &Cell, axes: Axes) -> PathShape {
        let (columns, rows) = (axes.x.names().is_some(), axes.y.names().is_some());
        let x = if columns { [cell.x - 0.5, cell.x + 0.5] } else { [cell.x, cell.x + cell.width] };
        let y = if rows { [cell.y - 0.5, cell.y + 0.5] } else { [cell.y, cell.y_to] };
        let ([left, right], [low, high]) = (x.map(|it| self.x(axes.x.edge(it))), y.map(|it| self.y(axes.y.edge(it))));
        rectangle(Place { x: left, y: low }, Place { x: right, y: high })
    }

    /// The values of a few cells, where they fit.
    fn values(&self, marks: &Marks, axes: Axes) -> Vec<DrawnText> {
        let (Marks::Cells(cells), true) = (marks, self.has_texts) else { return Vec::new() };
        let value = |cell: &Cell| {
            let PathShape::Rectangle(from, to) = self.cell(cell, axes) else { return None };
            let fits = text_width(&cell.text, TICK_SIZE) <= to.x - from.x - 4.0 && to.y - from.y > TICK_SIZE + 2.0;
            let class = if level(cell.darkness) >= 3 { "value light" } else { "value" };
            let place = Place { x: (from.x + to.x) / 2.0, y: (from.y + to.y) / 2.0 + 4.0 };
            fits.then(|| DrawnText { class, place, text: cell.text.clone(), whole: None })
        };
        cells.iter().filter_map(value).collect()
    }

    /// Half the height of a mark in a row.
    fn half_row(&self, axes: Axes) -> f64 {
        let rows = axes.y.names().map_or(12, <[String]>::len).max(1);
        (self.area.height / rows as f64 * 0.32).clamp(0.5, 9.0)
    }

    fn box_plot(&self, mark: &BoxMark, axes: Axes) -> DrawnMark {
        let y = self.y(axes.y.edge(mark.row));
        let half = self.half_row(axes);
        let x = |value: f64| self.x(axes.x.edge(value));
        let [first, median, third] = mark.quartiles.map(x);
        let [low, high] = mark.whiskers.map(x);
        let upright = |x: f64, half: f64| vec![Place { x, y: y - half }, Place { x, y: y + half }];
        let across = |from: f64, to: f64| vec![Place { x: from, y }, Place { x: to, y }];
        // An open end has no cap, and an infinite median has no line.
        let mut whisker = vec![across(low, first), across(third, high), upright(low, half / 2.0)];
        whisker.extend(mark.whiskers[1].is_finite().then(|| upright(high, half / 2.0)));
        let quartiles = rectangle(Place { x: first, y: y - half }, Place { x: third, y: y + half });
        let mut paths = vec![path("whisker", PathShape::Lines(whisker)), path("quartiles", quartiles)];
        let line = || path("median", PathShape::Lines(vec![upright(median, half)]));
        paths.extend(mark.quartiles[1].is_finite().then(line));
        DrawnMark { class: "box", title: None, paths }
    }

    /// An estimate with its interval: closed ends have caps, an open end reaches to the edge.
    fn interval(&self, mark: &IntervalMark, axes: Axes) -> DrawnMark {
        let y = self.y(axes.y.edge(mark.row));
        let half = self.half_row(axes) / 2.0;
        let x = |value: f64| self.x(axes.x.edge(value));
        let mut lines = Vec::new();
        if mark.low.is_some() || mark.high.is_some() {
            let (low, high) = (mark.low.map_or(0.0, x), mark.high.map_or(self.area.width, x));
            lines.push(vec![Place { x: low, y }, Place { x: high, y }]);
        }
        let caps = [mark.low, mark.high].into_iter().flatten().map(x);
        lines.extend(caps.map(|x| vec![Place { x, y: y - half }, Place { x, y: y + half }]));
        let estimate = mark.estimate.map(|value| path("estimate", PathShape::Dot(Place { x: x(value), y })));
        let whisker = (!lines.is_empty()).then(|| path("whisker", PathShape::Lines(lines)));
        let paths = whisker.into_iter().chain(estimate).collect();
        DrawnMark { class: "interval", title: None, paths }
    }
}

fn straight(from: Place, to: Place) -> PathShape {
    PathShape::Lines(vec![vec![from, to]])
}

/// A line that keeps the height of each place until the next.
fn steps(places: impl Iterator<Item = Place>) -> Vec<Place> {
    let mut line: Vec<Place> = Vec::new();
    for place in places {
        line.extend(line.last().map(|last| Place { x: place.x, y: last.y }));
        line.push(place);
    }
    line
}

/// The position of a value; that of an infinite one is the end of the axis.
fn place_of(axis: &AxisScale, value: f64) -> f64 {
    axis.position(value).unwrap_or_else(|| axis.edge(value))
}

/// The hole of a hollow point.
fn hole(paths: &[DrawnPath], look: usize) -> Option<DrawnPath> {
    match paths {
        [DrawnPath { class: "dot", outline, .. }] if is_hollow(look) => Some(path("hole", outline.clone())),
        _ => None,
    }
}

fn path(class: &'static str, outline: PathShape) -> DrawnPath {
    DrawnPath { class, level: None, outline }
}

fn simple(class: &'static str, outline: PathShape) -> DrawnMark {
    DrawnMark { class, title: None, paths: vec![path(class, outline)] }
}

/// The rectangle between two corners, at least one pixel wide and high.
fn rectangle(a: Place, b: Place) -> PathShape {
    let (left, top) = (a.x.min(b.x), a.y.min(b.y));
    let (right, bottom) = (a.x.max(b.x).max(left + 1.0), a.y.max(b.y).max(top + 1.0));
    PathShape::Rectangle(Place { x: left, y: top }, Place { x: right, y: bottom })
}

/// The entries of the named series, in rows from `top` on; empty for a single one.
fn legend(figure: &Figure, top: f64) -> Vec<LegendEntry> {
    let named: Vec<usize> = (0..figure.series.len()).filter(|index| !figure.series[*index].name.is_empty()).collect();
    if named.len() < 2 {
        return Vec::new();
    }
    let mut place = Place { x: 10.0, y: top + 12.0 };
    let mut entries = Vec::new();
    let widest = WIDTH - SAMPLE - 30.0;
    let left_out = named.len().saturating_sub(LEGEND_ENTRIES);
    let shown = named.into_iter().take(LEGEND_ENTRIES).map(Some);
    for series in shown.chain((left_out > 0).then_some(None)) {
        let whole = series.map_or_else(|| format!("and {left_out} more"), |index| figure.series[index].name.clone());
        let text = cut(&whole, widest);
        let width = SAMPLE + 6.0 + text_width(&text, TICK_SIZE);
        if place.x > 10.0 && place.x + width > WIDTH {
            place = Place { x: 10.0, y: place.y + LEGEND_ROW };
        }
        let look = series.map_or(0, |index| figure.series[index].colour % LOOKS);
        let sample = series.map_or_else(Vec::new, |index| sample(&figure.series[index].marks, look, place));
        let at = Place { x: place.x + SAMPLE + 6.0, ..place };
        let whole = (text != whole).then_some(whole);
        entries.push(LegendEntry { series, look, sample, name: DrawnText { class: "name", place: at, text, whole } });
        place.x += width + 16.0;
    }
    entries
}

/// What the marks of a series look like, on the line of text at `place`.
fn sample(marks: &Marks, look: usize, place: Place) -> Vec<DrawnPath> {
    let (from, to) = (Place { x: place.x, y: place.y - 4.0 }, Place { x: place.x + SAMPLE, y: place.y - 4.0 });
    let rectangle = rectangle(Place { y: from.y - 5.0, ..from }, Place { y: to.y + 5.0, ..to });
    let mut paths = vec![match marks {
        Marks::Steps(_) | Marks::Line(_) => path("line", straight(from, to)),
        Marks::Points(_) | Marks::Infinite(_) => {
            path("dot", PathShape::Dot(Place { x: place.x + SAMPLE / 2.0, y: from.y }))
        }
        Marks::Intervals(_) => path("whisker", straight(from, to)),
        Marks::Rule(_) | Marks::Level(_) => path("rule", straight(from, to)),
        Marks::Band(_) | Marks::StepBand(_) => path("band", rectangle),
        Marks::Boxes(_) => path("quartiles", rectangle),
        Marks::Bars(_) => path("bar", rectangle),
        Marks::Cells(_) => DrawnPath { level: Some(super::style::LEVELS / 2), ..path("cell", rectangle) },
    }];
    paths.extend(hole(&paths, look));
    paths
}
