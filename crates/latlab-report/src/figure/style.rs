//! How marks look: one table from which the style sheets of SVG and the colours of PNG are made.
//!
//! Colours are those of Okabe and Ito (2008), which colour-blind readers can distinguish. Series also differ in their dashes and
//! in the shape of their points, so that a grey print can be read.

use std::fmt::Write;

/// Number of looks of series; further ones repeat.
pub(super) const LOOKS: usize = 8;
/// Number of levels of darkness of cells.
pub(super) const LEVELS: usize = 8;
/// From this look on, points are hollow.
const FIRST_HOLLOW: usize = 4;

/// A colour of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PaintColour {
    Absent,
    /// That of the series, or of the level of darkness.
    Own,
    Ink,
    /// Text of second rank.
    Quiet,
    Grid,
    Paper,
}

/// Dashes and ends of a stroke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    Whole,
    /// With the dashes of the series.
    Dashed,
    /// A point: a line of no length whose ends have the shape of the series.
    Point,
}

/// How the marks of a class are painted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    pub(super) class: &'static str,
    pub(super) fill: PaintColour,
    /// Opacity of the area, from 0 to 1.
    pub(super) opacity: f32,
    pub(super) line: PaintColour,
    /// Width of the outline in pixels, which zooming does not change.
    pub(super) width: f32,
    /// Dashes and ends of the outline.
    pub(super) stroke: Stroke,
}

const fn area(class: &'static str, opacity: f32) -> Paint {
    Paint { class, fill: PaintColour::Own, opacity, line: PaintColour::Absent, width: 0.0, stroke: Stroke::Whole }
}

const fn line(class: &'static str, line: PaintColour, width: f32, stroke: Stroke) -> Paint {
    Paint { class, fill: PaintColour::Absent, opacity: 1.0, line, width, stroke }
}

/// All classes of paths. Of two classes of one path, the later row counts.
const PAINTS: [Paint; 15] = [
    line("grid", PaintColour::Grid, 1.0, Stroke::Whole),
    line("minor", PaintColour::Grid, 0.5, Stroke::Whole),
    line("edge", PaintColour::Quiet, 1.0, Stroke::Whole),
    area("band", 0.2),
    area("faint", 0.12),
    area("bar", 0.85),
    area("cell", 1.0),
    line("line", PaintColour::Own, 1.6, Stroke::Dashed),
    line("whisker", PaintColour::Own, 1.4, Stroke::Whole),
    Paint { opacity: 0.25, fill: PaintColour::Own, ..line("quartiles", PaintColour::Own, 1.4, Stroke::Whole) },
    line("median", PaintColour::Own, 2.6, Stroke::Whole),
    line("rule", PaintColour::Quiet, 1.2, Stroke::Whole),
    line("dot", PaintColour::Own, 6.0, Stroke::Point),
    line("estimate", PaintColour::Own, 7.0, Stroke::Point),
    line("hole", PaintColour::Paper, 3.0, Stroke::Point),
];

/// How marks of `class` are painted.
pub(super) fn paint(class: &str) -> Option<&'static Paint> {
    PAINTS.iter().find(|paint| paint.class == class)
}

/// PaintColour and dashes of a series.
pub(super) struct SeriesStyle {
    /// PaintColour on a light background, as `#rrggbb`.
    pub(super) colour: &'static str,
    /// Lengths of dashes and gaps in pixels; empty for a continuous line.
    pub(super) dashes: &'static [f32],
}

const fn look(colour: &'static str, dashes: &'static [f32]) -> SeriesStyle {
    SeriesStyle { colour, dashes }
}

/// The looks of series on a light background. The yellow of the palette is last and darker: on white it is hard to see.
pub(super) const SERIES: [SeriesStyle; LOOKS] = [
    look("#0072b2", &[]),
    look("#d55e00", &[6.0, 3.0]),
    look("#009e73", &[2.0, 2.0]),
    look("#cc79a7", &[8.0, 3.0, 2.0, 3.0]),
    look("#000000", &[12.0, 4.0]),
    look("#e69f00", &[4.0, 2.0, 1.0, 2.0]),
    look("#56b4e9", &[1.0, 3.0]),
    look("#b8a800", &[10.0, 2.0, 2.0, 2.0]),
];

/// The colours of cells on a light background; the first one, of a single probe, is clearly visible.
pub(super) const DARKNESS: [&str; LEVELS] =
    ["#8fbfe0", "#6caad4", "#4c94c6", "#327db5", "#2067a0", "#135187", "#0a3b6a", "#05264a"];

/// The other colours on a light background.
pub(super) const fn light_colour(colour: PaintColour) -> &'static str {
    match colour {
        PaintColour::Absent => "none",
        PaintColour::Own => "currentColor",
        PaintColour::Ink => "#1a1a1a",
        PaintColour::Quiet => "#595959",
        PaintColour::Grid => "#dcdcdc",
        PaintColour::Paper => "#ffffff",
    }
}

/// Whether points of series with this look are hollow.
pub(super) fn is_hollow(look: usize) -> bool {
    look >= FIRST_HOLLOW
}

/// Whether points of series with this look are squares instead of discs.
pub(super) fn is_square(look: usize) -> bool {
    look % 2 == 1
}

/// The level of a darkness from 0 to 1.
pub(super) fn level(darkness: f64) -> usize {
    // `as` takes NaN and what is negative to 0.
    ((darkness * LEVELS as f64) as usize).min(LEVELS - 1)
}

/// The variable of a colour in a style sheet.
fn variable(colour: PaintColour) -> &'static str {
    match colour {
        PaintColour::Ink => "var(--ink)",
        PaintColour::Quiet => "var(--quiet)",
        PaintColour::Grid => "var(--grid)",
        PaintColour::Paper => "var(--paper)",
        PaintColour::Absent | PaintColour::Own => light_colour(colour),
    }
}

/// The style sheet of figures in a page, which defines the variables: [`light`] or a set of its own.
pub fn css() -> String {
    sheet(variable, |name, index| format!("var(--{name}{index})"))
}

/// The style sheet of a figure alone, on a light background. It has no variables, which many readers of SVG do not know.
pub(super) fn standalone_css() -> String {
    sheet(light_colour, |name, index| if name == "s" { SERIES[index].colour } else { DARKNESS[index] }.to_owned())
}

/// The colours on a light background, as declarations of variables: `--ink:#1a1a1a;--s0:#0072b2;…`.
pub fn light() -> String {
    let mut text = String::new();
    for colour in [PaintColour::Ink, PaintColour::Quiet, PaintColour::Grid, PaintColour::Paper] {
        let name = variable(colour).trim_start_matches("var(").trim_end_matches(')');
        let _ = write!(text, "{name}:{};", light_colour(colour));
    }
    for (index, look) in SERIES.iter().enumerate() {
        let _ = write!(text, "--s{index}:{};", look.colour);
    }
    for (index, colour) in DARKNESS.iter().enumerate() {
        let _ = write!(text, "--d{index}:{colour};");
    }
    text
}

/// The rules of all classes, with the colours in the words of `general` and of `numbered` (`s` or `d`, and the index).
fn sheet(general: fn(PaintColour) -> &'static str, numbered: impl Fn(&str, usize) -> String) -> String {
    let mut text = format!(
        ".figure{{font:11px sans-serif;fill:{}}}.figure .area *{{vector-effect:non-scaling-stroke}}\
         .figure .tick{{fill:{}}}.figure .label{{font-size:12px}}.figure .y .tick{{text-anchor:end}}\
         .figure .x .tick,.figure .value{{text-anchor:middle}}.figure .x .label{{text-anchor:end}}\
         .figure .hole{{pointer-events:none}}.figure .bar,.figure .cell{{shape-rendering:crispEdges}}.figure .light{{fill:{}}}",
        general(PaintColour::Ink),
        general(PaintColour::Quiet),
        general(PaintColour::Paper)
    );
    for (index, look) in SERIES.iter().enumerate() {
        let dashes: Vec<String> = look.dashes.iter().map(f32::to_string).collect();
        let dashes = if dashes.is_empty() { "none".into() } else { dashes.join(" ") };
        let cap = if is_square(index) { "square" } else { "round" };
        let colour = numbered("s", index);
        let _ = write!(text, ".figure .s{index}{{color:{colour};stroke-dasharray:{dashes};stroke-linecap:{cap}}}");
    }
    for index in 0..LEVELS {
        let _ = write!(text, ".figure .d{index}{{color:{}}}", numbered("d", index));
    }
    for Paint { class, fill, opacity, line, width, stroke } in PAINTS {
        let _ = write!(text, ".figure .{class}{{fill:{};stroke:{};stroke-width:{width}", general(fill), general(line));
        if opacity < 1.0 {
            let _ = write!(text, ";fill-opacity:{opacity}");
        }
        text.push_str(match stroke {
            Stroke::Whole => ";stroke-dasharray:none;stroke-linecap:butt}",
            Stroke::Dashed => ";stroke-linecap:butt;stroke-linejoin:round}",
            Stroke::Point => ";stroke-dasharray:none}",
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_sheets_have_a_rule_for_each_class_and_series() {
        for text in [css(), standalone_css()] {
            for class in PAINTS.iter().map(|paint| paint.class).chain(["s0", "s7", "d0", "d7"]) {
                assert!(text.contains(&format!(".{class}{{")), "{class}: {text}");
            }
            assert_eq!(text.matches('{').count(), text.matches('}').count());
        }
        assert!(!standalone_css().contains("var("));
    }

    #[test]
    fn every_variable_of_the_style_sheet_has_a_light_value() {
        for variable in css().split("var(").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(light().contains(&format!("{variable}:#")), "{variable}");
        }
    }

    #[test]
    fn a_cell_has_a_level_whatever_its_darkness() {
        assert_eq!([0.0, 0.13, 0.99, 1.0, 7.0, -1.0, f64::NAN].map(level), [0, 1, 7, 7, 7, 0, 0]);
    }
}
