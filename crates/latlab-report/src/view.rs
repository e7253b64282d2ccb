//! The content of a report, rounded and formatted as text but without layout, so that all renderers show
//! the same content.

use crate::analysis::CompatOutput;
use crate::diagnostics::Severity;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Showing {
    /// True to show `round trip / 2` in addition to the round trip.
    pub half: bool,
    /// True to show every metric of the summary, not only the usual ones.
    pub every_metric: bool,
    /// Tool whose output format is shown in addition.
    pub like: Option<CompatOutput>,
    /// True to show minimum, mean, standard deviation and intervals of several runs too: a page has the space.
    pub wide: bool,
    /// True if the recordings are kept; paths of deleted recordings are not shown.
    pub kept: bool,
    /// True if a store or an experiment was named, so that many recordings are counted, and not listed.
    pub of_store: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ReportView {
    /// One-line description of the measurement.
    pub heading: String,
    /// Tables of figures, most important first.
    pub tables: Vec<TableView>,
    /// Lines in the output format of another tool.
    pub alike: Vec<String>,
    /// Histogram of round trips; only for a single run.
    pub histogram: Option<HistogramView>,
    pub gates: Vec<String>,
    /// Labelled lines: instrument, deadline, time-outs.
    pub remarks: Vec<RemarkView>,
    /// Caveats, those that spoil the figures most first.
    pub caveats: Vec<CaveatView>,
    /// Path of the recordings, or a note that they were not kept.
    pub recordings: Vec<String>,
    /// See [`Showing::of_store`].
    pub of_store: bool,
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

/// Label and rank of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowView {
    pub label: String,
    /// True if the row only annotates the row above, as intervals do.
    pub quiet: bool,
}

/// Columns under a common heading.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupView {
    pub heading: String,
    /// Columns from left to right.
    pub columns: Vec<ColumnView>,
}

/// A column with one cell per row.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnView {
    /// Heading of the column; may be empty.
    pub heading: String,
    /// Cells in order of the rows.
    pub cells: Vec<String>,
}

/// A histogram with logarithmic counts.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramView {
    /// Bars in ascending order of their buckets.
    pub bars: Vec<BarView>,
}

/// A bar of a histogram.
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
