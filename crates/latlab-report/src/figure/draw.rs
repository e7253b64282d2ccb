//! Elements of SVG, and texts with their estimated widths.

use maud::{Markup, PreEscaped, html};

use super::Series;
use crate::units::human::columns;

/// A text. Browsers show its `whole`, if it was cut, under the pointer.
pub(super) fn written(class: &str, [x, y]: Place, text: &str, whole: Option<&str>) -> Markup {
    html! {
        text class=(class) x=(number(x)) y=(number(y)) {
            @if let Some(whole) = whole { title { (clean(whole)) } }
            (clean(text))
        }
    }
}

/// The classes of a series.
pub(super) fn look(series: &Series) -> String {
    let colour = series.colour % LOOKS;
    if series.beside == 0 { format!("s{colour}") } else { format!("s{colour} beside b{}", series.beside) }
}

/// A path, if it has commands. Class and commands need no escapes.
pub(super) fn path(class: &str, d: &str) -> Markup {
    PreEscaped(if d.is_empty() { String::new() } else { format!("<path class=\"{class}\" d=\"{d}\"/>") })
}

/// A line as short as a point. PDF does not paint one without a length.
pub(super) fn dot([x, y]: Place) -> String {
    format!("M{} {}h.01", number(x), number(y))
}

/// A rectangle, at least one pixel wide and high.
pub(super) fn rectangle(extent: [f64; 4]) -> String {
    let [left, top, right, bottom] = extent.map(tenths);
    let (width, height) = (number((right - left).max(1.0)), number((bottom - top).max(1.0)));
    format!("M{} {}h{width}v{height}h-{width}z", number(left), number(top))
}

/// A number of pixels to one decimal. Adding 0 takes −0 to 0.
pub(super) fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0 + 0.0
}

pub(super) fn number(value: f64) -> String {
    tenths(value).to_string()
}

/// `text` without control characters, which XML forbids even as escapes.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

/// The estimated width of `text`, written as a tick.
pub(super) fn text_width(text: &str) -> f64 {
    columns(text) as f64 * TICK_SIZE * CHARACTER_WIDTH
}

/// `name`, cut to about `width` pixels.
pub(super) fn cut(name: &str, width: f64) -> String {
    if text_width(name) <= width {
        return name.into();
    }
    let mut kept = name.to_owned();
    while kept.pop().is_some() && text_width(&kept) + text_width("…") > width {}
    kept + "…"
}

/// A place in pixels of the area, from its left and from its top.
pub(super) type Place = [f64; 2];

/// Height of the text of a tick.
pub(super) const TICK_SIZE: f64 = 11.0;
/// Estimated width of a character of a sans-serif font, as a share of its height: that of DejaVu, one of the widest.
pub(super) const CHARACTER_WIDTH: f64 = 0.63;
/// Number of colours of series; further ones repeat.
pub(crate) const LOOKS: usize = 8;
