//! Plots in characters, from 40 columns on: histograms of several runs or groups on one axis, box plots and ministat's plot.
//! They are drawn in Unicode; [`in_ascii`] gives the form for other terminals.

mod box_plots;
mod histograms;

pub use box_plots::FigureGroup;
pub use box_plots::figures;
pub(crate) use box_plots::{LabelledBox, box_plots};
pub use histograms::{CountedValue, HistogramRow, Histograms, histograms, of_runs};

use super::text::width;

/// The most rows of a plot: more do not fit any screen.
const ROWS_MAX: usize = 64;

/// `text` in ASCII, with the same width in columns. Parts of bars become `.`, `:`, `+` and `#`; other characters without a
/// counterpart become `?`.
pub fn in_ascii(text: &str) -> String {
    let char_in_ascii = |char: char| match char {
        '\0'..='\x7f' => char.to_string(),
        '▁' | '▂' | '·' | '…' => ".".into(),
        '▃' | '▄' => ":".into(),
        '▅' | '▆' | '└' | '┴' => "+".into(),
        '▇' | '█' => "#".into(),
        '▒' => "=".into(),
        '├' | '┤' | '▕' => "|".into(),
        '─' | '−' | '–' => "-".into(),
        'µ' => "u".into(),
        '×' => "x".into(),
        '→' => ">".into(),
        _ => "?".repeat(width(char.encode_utf8(&mut [0; 4]))),
    };
    text.chars().map(char_in_ascii).collect()
}

/// What is said of rows that are not drawn; `None` if all `rows` are.
fn left_out(rows: usize) -> Option<String> {
    let more = rows.checked_sub(ROWS_MAX).filter(|more| *more > 0)?;
    Some(format!("and {} more, which are not drawn", crate::units::human::grouped(more as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_in_ascii_has_the_same_width() {
        assert_eq!(in_ascii("▕▁▄▆█ 50 µs │測"), "|.:+# 50 us ???");
        assert_eq!(in_ascii("├──▒█▒┤ o"), "|--=#=| o");
        assert_eq!(in_ascii("\x1b[2;7mx"), "\x1b[2;7mx");
    }
}
