//! Figures as PNG, for documents that cannot hold SVG: the same picture on pixels, on a light background.

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Mask, Paint, Path, PathBuilder, Pixmap, Rect, Stroke as Pen, StrokeDash,
    Transform,
};
use ttf_parser::{Face, OutlineBuilder};

use super::Figure;
use super::layout::{DrawnAxis, DrawnPath, DrawnText, LegendEntry, PathShape, Place, PlotArea, Sheet, WIDTH, sheet};
use super::marks::drawable;
use super::scale::TICK_SIZE;
use super::style::{DARKNESS, PaintColour, SERIES, Stroke, is_square, light_colour, paint};

/// Pixels of the picture for one of the layout: 300 in an inch where the figure is 5.6 inches wide.
const PIXELS: f32 = 3.0;
/// Height of the label of an axis.
const LABEL_SIZE: f32 = 12.0;
/// Height of all other texts.
const TEXT_SIZE: f32 = TICK_SIZE as f32;

/// Where a text lies beside its place.
#[derive(Clone, Copy, PartialEq)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// The figure as a PNG file, 1,680 pixels wide; `None` if it cannot be allocated.
pub fn png(figure: &Figure) -> Option<Vec<u8>> {
    let sheet = sheet(&drawable(figure));
    let (width, height) = (WIDTH as f32 * PIXELS, sheet.height as f32 * PIXELS);
    let mut pixmap = Pixmap::new(width as u32, height as u32)?;
    pixmap.fill(colour(light_colour(PaintColour::Paper)));
    let face = Face::parse(dejavu::sans::regular(), 0).ok()?;
    let mut canvas = Canvas { pixmap, face, area: None, origin: Place { x: 0.0, y: 0.0 } };
    canvas.sheet(&sheet);
    canvas.pixmap.encode_png().ok()
}

/// The picture while it is painted.
struct Canvas {
    pixmap: Pixmap,
    face: Face<'static>,
    /// What lies outside of the area is cut off while series are painted.
    area: Option<Mask>,
    /// The place from which coordinates count.
    origin: Place,
}

impl Canvas {
    fn sheet(&mut self, sheet: &Sheet) {
        self.axis(&sheet.x, Anchor::Middle, Anchor::End);
        self.axis(&sheet.y, Anchor::End, Anchor::Start);
        self.area = self.mask(&sheet.area);
        self.origin = Place { x: sheet.area.left, y: sheet.area.top };
        for series in &sheet.series {
            for path in series.marks.iter().flat_map(|mark| &mark.paths) {
                self.path(path, series.look);
            }
            series.values.iter().for_each(|value| self.text(value, Anchor::Middle));
        }
        self.area = None;
        self.origin = Place { x: 0.0, y: 0.0 };
        self.path(&sheet.edge, 0);
        sheet.legend.iter().for_each(|entry| self.legend_entry(entry));
    }

    fn axis(&mut self, axis: &DrawnAxis, ticks: Anchor, label: Anchor) {
        axis.grid.iter().for_each(|line| self.path(line, 0));
        axis.ticks.iter().for_each(|tick| self.text(tick, ticks));
        self.text(&axis.label, label);
    }

    fn legend_entry(&mut self, entry: &LegendEntry) {
        entry.sample.iter().for_each(|path| self.path(path, entry.look));
        self.text(&entry.name, Anchor::Start);
    }

    fn mask(&self, area: &PlotArea) -> Option<Mask> {
        let mut mask = Mask::new(self.pixmap.width(), self.pixmap.height())?;
        let [left, top, width, height] = [area.left, area.top, area.width, area.height].map(|it| it as f32);
        let rectangle = PathBuilder::from_rect(Rect::from_xywh(left, top, width, height)?);
        mask.fill_path(&rectangle, FillRule::Winding, true, Transform::from_scale(PIXELS, PIXELS));
        Some(mask)
    }

    fn transform(&self) -> Transform {
        Transform::from_translate(self.origin.x as f32, self.origin.y as f32).post_scale(PIXELS, PIXELS)
    }

    fn path(&mut self, path: &DrawnPath, look: usize) {
        let Some(style) = paint(path.class) else { return };
        let own = path.level.map_or(SERIES[look].colour, |level| DARKNESS[level]);
        let ink = |of: PaintColour| colour(if of == PaintColour::Own { own } else { light_colour(of) });
        if let (Stroke::Point, PathShape::Dot(place)) = (style.stroke, &path.outline) {
            self.fill(point(place, style.width, is_square(look)), ink(style.line), true);
            return;
        }
        let is_rectangle = matches!(path.outline, PathShape::Rectangle(..));
        if style.fill != PaintColour::Absent {
            let mut ink = ink(style.fill);
            ink.apply_opacity(style.opacity);
            // Blurred edges would leave bright lines between neighbours.
            self.fill(outline(&path.outline), ink, !is_rectangle);
        }
        if style.line != PaintColour::Absent {
            let dashes = if style.stroke == Stroke::Dashed { SERIES[look].dashes.to_vec() } else { Vec::new() };
            let pen = Pen {
                width: style.width,
                line_cap: LineCap::Butt,
                line_join: LineJoin::Round,
                dash: StrokeDash::new(dashes, 0.0),
                ..Pen::default()
            };
            if let Some(outline) = outline(&path.outline) {
                let (brush, transform) = (brush(ink(style.line), true), self.transform());
                self.pixmap.stroke_path(&outline, &brush, &pen, transform, self.area.as_ref());
            }
        }
    }

    fn fill(&mut self, path: Option<Path>, colour: Color, is_smooth: bool) {
        if let Some(path) = path {
            let (brush, transform) = (brush(colour, is_smooth), self.transform());
            self.pixmap.fill_path(&path, &brush, FillRule::Winding, transform, self.area.as_ref());
        }
    }

    fn text(&mut self, text: &DrawnText, anchor: Anchor) {
        let (size, ink) = match text.class {
            "label" => (LABEL_SIZE, PaintColour::Ink),
            "tick" => (TEXT_SIZE, PaintColour::Quiet),
            "value light" => (TEXT_SIZE, PaintColour::Paper),
            _ => (TEXT_SIZE, PaintColour::Ink),
        };
        let scale = size / f32::from(self.face.units_per_em());
        // A character that the font lacks has the first glyph, an empty box.
        let glyphs: Vec<_> = text.text.chars().map(|it| self.face.glyph_index(it).unwrap_or_default()).collect();
        let advance = |glyph: &ttf_parser::GlyphId| f32::from(self.face.glyph_hor_advance(*glyph).unwrap_or(0)) * scale;
        let width: f32 = glyphs.iter().map(advance).sum();
        let start = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -width / 2.0,
            Anchor::End => -width,
        };
        let mut pen =
            GlyphPen { path: PathBuilder::new(), x: text.place.x as f32 + start, y: text.place.y as f32, scale };
        for glyph in glyphs {
            self.face.outline_glyph(glyph, &mut pen);
            pen.x += advance(&glyph);
        }
        self.fill(pen.path.finish(), colour(light_colour(ink)), true);
    }
}

fn brush(colour: Color, is_smooth: bool) -> Paint<'static> {
    let mut brush = Paint { anti_alias: is_smooth, ..Paint::default() };
    brush.set_color(colour);
    brush
}

/// The colour `#rrggbb`; black if it is none.
fn colour(text: &str) -> Color {
    let value = u32::from_str_radix(text.trim_start_matches('#'), 16).unwrap_or(0);
    let [_, red, green, blue] = value.to_be_bytes();
    Color::from_rgba8(red, green, blue, 255)
}

fn point(place: &Place, width: f32, is_square: bool) -> Option<Path> {
    let (x, y) = (place.x as f32, place.y as f32);
    match is_square {
        true => Rect::from_xywh(x - width / 2.0, y - width / 2.0, width, width).map(PathBuilder::from_rect),
        false => PathBuilder::from_circle(x, y, width / 2.0),
    }
}

fn outline(outline: &PathShape) -> Option<Path> {
    let mut builder = PathBuilder::new();
    let line = |builder: &mut PathBuilder, places: &[Place]| {
        for (index, place) in places.iter().enumerate() {
            let (x, y) = (place.x as f32, place.y as f32);
            if index == 0 { builder.move_to(x, y) } else { builder.line_to(x, y) }
        }
    };
    match outline {
        PathShape::Rectangle(from, to) => {
            let rectangle = Rect::from_ltrb(from.x as f32, from.y as f32, to.x as f32, to.y as f32)?;
            return Some(PathBuilder::from_rect(rectangle));
        }
        PathShape::Lines(lines) => lines.iter().for_each(|places| line(&mut builder, places)),
        PathShape::Polygons(lines) => lines.iter().for_each(|places| {
            line(&mut builder, places);
            builder.close();
        }),
        PathShape::Dot(_) => return None,
    }
    builder.finish()
}

/// Collects the outlines of glyphs, whose coordinates go up, in pixels, which go down.
struct GlyphPen {
    path: PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl GlyphPen {
    fn place(&self, x: f32, y: f32) -> Place {
        Place { x: f64::from(self.x + x * self.scale), y: f64::from(self.y - y * self.scale) }
    }
}

impl OutlineBuilder for GlyphPen {
    fn move_to(&mut self, x: f32, y: f32) {
        let to = self.place(x, y);
        self.path.move_to(to.x as f32, to.y as f32);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let to = self.place(x, y);
        self.path.line_to(to.x as f32, to.y as f32);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (by, to) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(by.x as f32, by.y as f32, to.x as f32, to.y as f32);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let (first, second, to) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        let [first_x, first_y, second_x, second_y] = [first.x, first.y, second.x, second.y].map(|it| it as f32);
        self.path.cubic_to(first_x, first_y, second_x, second_y, to.x as f32, to.y as f32);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
