//! Published figures and measured ones as tables, which need no width.

use super::{
    FigureLine, HERE, Reasons, ShownRow, basis, basis_in_runs, basis_in_singletons, bounds, figure_lines, headings,
    legend_of_bounds, shown_rows, whole_figures,
};
use crate::analysis::experiment::{MeasuredRow, PublishedResults};
use crate::quantiles::LOST;
use crate::recipe::{FiguresOf, Published};
use crate::remarks::past_the_stack;
use crate::units::human::ABSENT;
use crate::view::{ColumnView, GroupView, RowView, TableView};

const MEDIAN_IS_LOST: &str =
    "lost: infinite, since the figures of half of the runs or more lie among their lost probes";

/// The publication with the measured figures, a row for each source of figures; of a publication of halves a second table has
/// the measured figures doubled.
pub(in super::super) fn tables(results: &PublishedResults) -> Vec<TableView> {
    let published = results.published;
    let rows: Vec<ShownRow<'_>> = shown_rows(published, |place| results.rows.get(place)).collect();
    let mut lines = Lines { columns: headings(published), rows: Vec::new() };
    let mut reasons = Reasons::default();
    for shown in &rows {
        if let Some(reason) = shown.left_out() {
            reasons.leave_out(shown.row, reason);
            continue;
        }
        let basis = shown.figures().map(|measured| basis_beside(measured, published)).unwrap_or_default();
        for FigureLine { source, cells } in figure_lines(shown, published) {
            match shown.figures().filter(|_| source == HERE) {
                Some(measured) => lines.push(&label_here(shown, measured, published), cells, &basis),
                None => lines.push(&label(shown, source), cells, ""),
            }
        }
        match shown.measured {
            Some(Err(reason)) => {
                let absent = vec![ABSENT.to_owned(); published.columns.len()];
                lines.push(&label(shown, HERE), absent, &reasons.short(reason));
            }
            Some(Ok(measured)) => lines.push_quiet(bounds(measured, published.decimals), &ways(measured)),
            None => {}
        }
    }
    let is_lost = lines.rows.iter().flat_map(|line| &line.cells).any(|cell| cell == LOST);
    let lost = is_lost.then(|| MEDIAN_IS_LOST.to_owned());
    let legend: Vec<String> =
        reasons.lines().into_iter().chain(legend_of_bounds(published, &rows)).chain(lost).collect();
    let title = |heading: &str| format!("{heading}, {}", published.unit);
    let table = TableView { legend: legend.join("\n"), ..lines.table(title(&published.heading)) };
    let whole = published.whole.as_ref().map(|heading| {
        let mut lines = Lines { columns: headings(published), rows: Vec::new() };
        for (shown, measured) in rows.iter().filter_map(|shown| Some((shown, shown.figures()?))) {
            let figures = whole_figures(measured, published.decimals);
            lines.push(&label_here(shown, measured, published), figures, &basis_beside(measured, published));
        }
        lines.table(title(heading))
    });
    std::iter::once(table).chain(whole.filter(|table| !table.rows.is_empty())).collect()
}

fn label(shown: &ShownRow<'_>, source: &str) -> String {
    format!("{}: {source}", shown.row.label)
}

/// The label of measured figures, which says that each of them, `min` and `max` too, is the median of its runs.
fn label_here(shown: &ShownRow<'_>, measured: &MeasuredRow, published: &Published) -> String {
    match published.figures_of {
        FiguresOf::Singletons => format!("{}, {}", label(shown, HERE), basis_in_runs(measured.runs, published)),
        FiguresOf::Runs => label(shown, HERE),
    }
}

/// What the figures are based on, beside [`label_here`], which may have the number of runs.
fn basis_beside(measured: &MeasuredRow, published: &Published) -> String {
    match published.figures_of {
        FiguresOf::Singletons => basis_in_singletons(measured, published),
        FiguresOf::Runs => basis(measured, published),
    }
}

/// The ways in which the runs passed the network stack by; empty if they did not.
fn ways(measured: &MeasuredRow) -> String {
    measured.xdp.iter().filter_map(past_the_stack).collect::<Vec<_>>().join("; ")
}

/// The rows of a table as they are found.
struct Lines {
    /// Headings of the columns of figures.
    columns: Vec<String>,
    rows: Vec<Line>,
}

struct Line {
    row: RowView,
    /// One for each column of figures, or fewer.
    cells: Vec<String>,
    /// What the measured figures are based on.
    basis: String,
}

impl Lines {
    fn push(&mut self, label: &str, cells: Vec<String>, basis: &str) {
        let row = RowView::of(label);
        self.rows.push(Line { row, cells, basis: basis.into() });
    }

    /// Adds what stands below the last row, which may be nothing.
    fn push_quiet(&mut self, cells: Vec<String>, basis: &str) {
        if !basis.is_empty() || cells.iter().any(|cell| !cell.is_empty()) {
            let row = RowView::below("");
            self.rows.push(Line { row, cells, basis: basis.into() });
        }
    }

    fn table(self, title: String) -> TableView {
        let Lines { columns, rows } = self;
        let cells = |column: usize| rows.iter().map(move |line| line.cells.get(column).cloned().unwrap_or_default());
        let figures = columns.into_iter().enumerate();
        let figures = figures.map(|(column, heading)| ColumnView::figures(&heading, cells(column)));
        let basis = ColumnView::figures("sample", rows.iter().map(|line| line.basis.clone()));
        let columns = figures.chain([basis]).collect();
        let groups = vec![GroupView::plain(columns)];
        TableView { title, groups, rows: rows.into_iter().map(|line| line.row).collect(), ..TableView::default() }
    }
}
