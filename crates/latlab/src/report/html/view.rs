//! The content of a page, rounded and formatted as text.

use crate::report::comparison::ComparisonView;
use crate::report::figure::Figure;
use crate::report::view::{CaveatView, RemarkView, TableView};

/// Content of a page. Sections without content are left out. Texts may hold `code` between grave accents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageView {
    /// Title of the page: kind of measurement and path.
    pub title: String,
    /// What was asked, in one sentence.
    pub question: String,
    /// What was found, in one sentence.
    pub verdict: String,
    /// Gates with their results.
    pub gates: Vec<String>,
    /// Tables of figures, most important first.
    pub tables: Vec<TableView>,
    /// Published figures beside measured ones, and other text of fixed width.
    pub texts: Vec<TextBlock>,
    /// Comparisons of conditions. Their caveats are shown with [`PageView::caveats`], each once.
    pub comparisons: Vec<ComparisonView>,
    /// Plots in order of display.
    pub figures: Vec<Figure>,
    /// Caveats, those that spoil the figures most first.
    pub caveats: Vec<CaveatView>,
    /// Conditions of the measurement: path, schedule, instrument.
    pub remarks: Vec<RemarkView>,
    /// Facts of each host.
    pub hosts: Vec<HostFactsView>,
    /// Offered against achieved load.
    pub loads: Vec<TableView>,
    /// How figures, intervals and verdicts were computed, a paragraph each.
    pub methods: Vec<String>,
    /// Experiment file, command lines and versions.
    pub reproduce: Vec<TextBlock>,
    /// Paths of the recordings.
    pub recordings: Vec<String>,
    /// Version of latlab and UTC time of the recordings; not the time of rendering, so that the same recordings give the same
    /// page.
    pub made: String,
}

/// A titled text of fixed width, whose lines are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextBlock {
    /// Title.
    pub title: String,
    /// Text.
    pub text: String,
}

/// Facts of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFactsView {
    /// Name of the host.
    pub name: String,
    /// Facts in order of display.
    pub rows: Vec<RemarkView>,
}
