//! The content of a report, rounded and formatted as text but without layout: parts in their order, which each renderer
//! (text, Markdown, HTML) shows in its own way.

use super::figure::Figure;
use crate::diagnostics::Severity;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Showing {
    /// True to show `round trip / 2` in addition to the round trip.
    pub half: bool,
    /// True to show every metric of the summary, not only the usual ones.
    pub every_metric: bool,
    /// True on a page, which has the space for minimum, mean, standard deviation and intervals of several runs too, and a section
    /// for the delays of each way.
    pub wide: bool,
    /// True if the recordings are kept; paths of deleted recordings are not shown.
    pub kept: bool,
    /// True if a store or an experiment was named, so that many recordings are counted, and not listed.
    pub of_store: bool,
}

/// What every renderer shows of a report, in its order.
pub(crate) type ReportView = Vec<Part>;

/// A part of a report. Texts may hold `code` between grave accents.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Heading(String),
    /// Sentences, each of them beginning a line.
    Notes(Vec<String>),
    Table(TableView),
    Text(TextBlock),
    Histogram(HistogramView),
    Figure(Figure),
    Remarks(Vec<RemarkView>),
    /// Those that spoil the figures most first.
    Caveats(Vec<CaveatView>),
    Recordings {
        /// Paths, or a note that they were not kept.
        paths: Vec<String>,
        /// See [`Showing::of_store`].
        of_store: bool,
    },
    /// Parts that the reader of a page opens.
    Details(String, Vec<Part>),
}

/// A titled text of fixed width, whose lines are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextBlock {
    pub title: String,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableView {
    pub title: String,
    /// Text at the right end of the title line: n and loss.
    pub note: String,
    /// Heading of the row labels; may be empty.
    pub corner: String,
    /// Rows in order of display.
    pub rows: Vec<RowView>,
    /// Columns grouped under common headings.
    pub groups: Vec<GroupView>,
    /// Explanation of the cells, below the table; may be empty or have several lines.
    pub legend: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowView {
    pub label: String,
    /// True if the row only annotates the row above, as intervals do.
    pub quiet: bool,
    /// The title of the rows that this one stands among; may be empty.
    pub section: String,
    /// What stands before the label, the same of several rows.
    pub levels: Vec<String>,
    pub notes: Vec<String>,
}

impl RowView {
    pub fn of(label: impl Into<String>) -> RowView {
        RowView { label: label.into(), ..RowView::default() }
    }

    /// A row that annotates the one above.
    pub fn below(label: impl Into<String>) -> RowView {
        RowView { quiet: true, ..RowView::of(label) }
    }
}

/// Columns under a common heading, which may be empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupView {
    pub heading: String,
    /// Columns from left to right.
    pub columns: Vec<ColumnView>,
}

impl GroupView {
    pub fn plain(columns: Vec<ColumnView>) -> GroupView {
        GroupView { heading: String::new(), columns }
    }
}

/// A column with one cell per row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnView {
    /// Heading of the column; may be empty.
    pub heading: String,
    /// Cells in order of the rows.
    pub cells: Vec<String>,
    /// Whether the cells are words, which are not aligned as figures are.
    pub is_words: bool,
}

impl ColumnView {
    pub fn figures(heading: &str, cells: impl IntoIterator<Item = String>) -> ColumnView {
        ColumnView { heading: heading.into(), cells: cells.into_iter().collect(), is_words: false }
    }

    pub fn words(heading: &str, cells: impl IntoIterator<Item = String>) -> ColumnView {
        ColumnView { is_words: true, ..ColumnView::figures(heading, cells) }
    }
}

impl TableView {
    /// A table without groups of columns.
    pub fn of(title: impl Into<String>, rows: Vec<RowView>, columns: Vec<ColumnView>) -> TableView {
        TableView { title: title.into(), rows, groups: vec![GroupView::plain(columns)], ..TableView::default() }
    }

    pub fn columns(&self) -> impl Iterator<Item = &ColumnView> {
        self.groups.iter().flat_map(|group| &group.columns)
    }
}

/// A histogram with logarithmic counts.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramView {
    /// Bars in ascending order of their buckets.
    pub bars: Vec<BarView>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BarView {
    /// Lower bound of the bucket.
    pub from: String,
    /// Length from 0 to 1: logarithm of the count relative to that of the largest count.
    pub length: f64,
    pub count: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemarkView {
    pub label: String,
    pub text: String,
}

/// A caveat of one or several runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaveatView {
    pub severity: Severity,
    /// Whether nearly every run carries it.
    pub is_routine: bool,
    /// Observation, with the runs concerned unless it concerns all of them.
    pub message: String,
    pub effect: String,
    pub hint: String,
}

impl CaveatView {
    pub fn warning(message: String) -> CaveatView {
        let (effect, hint) = (String::new(), String::new());
        CaveatView { severity: Severity::Warning, is_routine: false, message, effect, hint }
    }
}
