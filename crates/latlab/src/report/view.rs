//! All that a renderer may show, rounded and worded. Text shows it today; a page can show it tomorrow,
//! and both say the same.

use crate::analysis::CompatOutput;
use crate::diagnostics::Severity;

/// What is to be shown beyond the usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Showing {
    /// `round trip / 2` beside the round trip.
    pub half: bool,
    /// Every metric that the summary holds, not only those that answer the question.
    pub every_metric: bool,
    /// The lines of another tool besides.
    pub like: Option<CompatOutput>,
    /// Whether the recordings stay: a path that is gone when it is read helps nobody.
    pub kept: bool,
}

/// A report.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportView {
    /// What was measured, in one line.
    pub heading: String,
    /// Figures, most important first.
    pub tables: Vec<TableView>,
    /// The lines of another tool, as it would print them.
    pub alike: Vec<String>,
    /// The shape of the round trips; one run only.
    pub histogram: Option<HistogramView>,
    /// Lines with a label: instrument, deadline, time-outs.
    pub remarks: Vec<RemarkView>,
    /// Numbered from 1, worst first.
    pub caveats: Vec<CaveatView>,
    /// Where the recordings lie, or that they were not kept.
    pub recordings: Vec<String>,
}

/// Figures in rows and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct TableView {
    /// What the figures are.
    pub title: String,
    /// What stands at the right end of the title's line: n and loss.
    pub note: String,
    /// What the row labels are; may be empty.
    pub corner: String,
    /// The rows.
    pub rows: Vec<RowView>,
    /// The columns, grouped under common headings.
    pub groups: Vec<GroupView>,
}

/// A row's label and rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowView {
    /// Its label; may be empty.
    pub label: String,
    /// Whether it only supports the row above it, as intervals do.
    pub quiet: bool,
}

/// Columns under one heading.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupView {
    /// The heading; may be empty.
    pub heading: String,
    /// The columns.
    pub columns: Vec<ColumnView>,
}

/// One column: a cell per row.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnView {
    /// What its figures are; may be empty.
    pub heading: String,
    /// The figures.
    pub cells: Vec<String>,
}

/// A histogram with logarithmic counts.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramView {
    /// From the shortest to the longest.
    pub bars: Vec<BarView>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct BarView {
    /// Where its bucket begins.
    pub from: String,
    /// Its length, 0 to 1: the logarithm of its count as a share of the longest one's.
    pub length: f64,
    /// Its count.
    pub count: String,
}

/// A line with a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemarkView {
    /// What it is about.
    pub label: String,
    /// What it says.
    pub text: String,
}

/// A caveat, worded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaveatView {
    /// Its number.
    pub number: usize,
    /// How bad.
    pub severity: Severity,
    /// What was seen, with the runs it is about where it is not about all of them.
    pub message: String,
    /// What it does to the figures.
    pub effect: String,
    /// What to do.
    pub hint: String,
}
