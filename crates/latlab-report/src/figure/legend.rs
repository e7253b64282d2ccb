//! Legends of figures: an entry for each name.

use maud::{Markup, html};

use super::draw::{Place, cut, dot, look, number, path, rectangle, text_width, written};
use super::{Figure, Series, Shape};

/// Height of a row, and width of a sample.
const ROW: f64 = 18.0;
const SAMPLE: f64 = 22.0;
/// From the top of the legend to the base line of its first row.
const BASE: f64 = 12.0;

/// Entries with their places.
pub(super) struct Legend {
    entries: Vec<Entry>,
    pub(super) height: f64,
}

struct Entry {
    place: Place,
    look: String,
    shape: Shape,
    name: String,
    /// The whole name, if it had to be cut.
    whole: Option<String>,
}

/// Whether one legend is that of all panels of `figure`: no colour stands for something else in another panel.
pub(super) fn is_shared(figure: &Figure) -> bool {
    let named = || figure.series.iter().filter(|series| !series.name.is_empty());
    let agree = |one: &Series, other: &Series| look(one) != look(other) || one.name == other.name;
    figure.panels.len() > 1 && named().all(|one| named().all(|other| agree(one, other)))
}

impl Legend {
    /// Each name of `series` once, in rows of `width`; `None` of a single one.
    pub(super) fn of<'a>(series: impl Iterator<Item = &'a Series>, width: f64) -> Option<Legend> {
        let mut entries: Vec<Entry> = Vec::new();
        let (mut x, mut y) = (10.0, BASE);
        for series in series.filter(|series| !series.name.is_empty()) {
            let name = cut(&series.name, width - SAMPLE - 30.0);
            if entries.iter().any(|entry| entry.name == name && entry.look == look(series)) {
                continue;
            }
            let length = SAMPLE + 6.0 + text_width(&name);
            if x > 10.0 && x + length > width {
                (x, y) = (10.0, y + ROW);
            }
            let whole = (name != series.name).then(|| series.name.clone());
            entries.push(Entry { place: [x, y], look: look(series), shape: series.shape, name, whole });
            x += length + 16.0;
        }
        (entries.len() > 1).then_some(Legend { entries, height: (y + 6.0).ceil() })
    }

    /// The legend below `top`.
    pub(super) fn at(&self, top: f64) -> Markup {
        let entry = |Entry { place: [x, y], look, shape, name, whole }: &Entry| {
            html! {
                g class={ "entry " (look) } {
                    (sample(*shape, [*x, top + y - 4.0]))
                    (written("name", [x + SAMPLE + 6.0, top + y], name, whole.as_deref()))
                }
            }
        };
        html! { g class="legend" { @for one in &self.entries { (entry(one)) } } }
    }
}

/// What the marks of a series look like in the legend, on the line at `place`.
fn sample(shape: Shape, [x, y]: Place) -> Markup {
    let class = match shape {
        Shape::Points => return path("dot", &dot([x + SAMPLE / 2.0, y])),
        Shape::Steps | Shape::Line => "line",
        Shape::Intervals => "whisker",
        Shape::Rule => "rule",
        Shape::Band | Shape::StepBand => "band",
        Shape::Boxes => "quartiles",
        Shape::Bars => "bar",
        Shape::Cells => "cell d4",
    };
    if matches!(class, "line" | "whisker" | "rule") {
        path(class, &format!("M{} {}h{SAMPLE}", number(x), number(y)))
    } else {
        path(class, &rectangle([x, y - 5.0, x + SAMPLE, y + 5.0]))
    }
}
