//! Width, colour and choice of caveats of a text.

use crate::diagnostics::{Colour, Severity};
use crate::units::human::columns as width;
use crate::view::CaveatView;

/// `text` with blanks behind it, up to `columns` columns.
pub(crate) fn flush_left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// `text` with blanks in front of it, up to `columns` columns.
pub(crate) fn flush_right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Width of the labels of remarks.
pub(super) const LABEL: usize = 13;
/// In a narrower line a label has a line of its own, and the text below it this indentation.
pub(super) const NARROW: usize = 60;
pub(super) const INDENT: usize = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaveatChoice {
    /// The first three that are not notes: `--quiet`.
    Warnings,
    /// The first three, without notes that nearly every run carries.
    #[default]
    Foremost,
    All,
}

impl CaveatChoice {
    pub(super) fn may_show(self, caveat: &CaveatView) -> bool {
        match self {
            CaveatChoice::Warnings => caveat.severity > Severity::Note,
            CaveatChoice::Foremost => !caveat.is_routine,
            CaveatChoice::All => true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub colour: Colour,
    pub width: usize,
    pub caveats: CaveatChoice,
}

impl Style {
    /// No colour and 80 columns, for files, pipes and tests.
    pub const PLAIN: Style = Style { colour: Colour::OFF, width: 80, caveats: CaveatChoice::Foremost };
    /// The least width: in a narrower terminal the lines of this width are cut or wrapped.
    const LEAST_WIDTH: usize = 40;

    /// For a terminal of `columns`; of 80 without one.
    pub fn new(colour: Colour, columns: Option<u16>, caveats: CaveatChoice) -> Style {
        let width = columns.map_or(Style::PLAIN.width, |columns| usize::from(columns).max(Style::LEAST_WIDTH));
        Style { colour, width, caveats }
    }

    pub(crate) fn indent(self) -> usize {
        if self.width < NARROW { INDENT } else { LABEL }
    }

    fn paint(self, code: &str, text: &str) -> String {
        self.colour.paint(code, text)
    }

    pub(crate) fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn quiet(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn alarm(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.paint("35", text)
    }
}
