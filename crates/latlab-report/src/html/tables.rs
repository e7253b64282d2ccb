//! Tables of figures and of comparisons as markup, aligned at the decimal point.

use maud::{Markup, html};

use super::words::{first, omitted, plain, words};
use crate::report::comparison::{ChangeView, ComparisonView, ContrastView};
use crate::report::figure::Figure;
use crate::report::figure::table::{FigureTable, table};
use crate::report::text::{behind_point, is_parenthesised};
use crate::report::view::{ColumnView, TableView};
use crate::units::human;

/// The most rows of a table and the most columns: 10,000 conditions must not become a page that no browser opens.
const MOST_ROWS: usize = 400;
const MOST_COLUMNS: usize = 60;
/// The most rows of several tables together, if each has at least [`LEAST_ROWS`].
const MOST_ROWS_TOGETHER: usize = 2_000;
const LEAST_ROWS: usize = 20;

/// The first tables of a section, each with fewer rows the more there are.
pub(super) fn several(tables: &[TableView]) -> Markup {
    let most_rows = (MOST_ROWS_TOGETHER / tables.len().max(1)).clamp(LEAST_ROWS, MOST_ROWS);
    first(tables, "tables", |table| bounded(table, most_rows))
}

/// A table with at most `most_rows` rows.
fn bounded(table: &TableView, most_rows: usize) -> Markup {
    let columns: Vec<&ColumnView> = table.groups.iter().flat_map(|group| &group.columns).take(MOST_COLUMNS).collect();
    let has_labels = !table.corner.is_empty() || table.rows.iter().any(|row| !row.label.is_empty());
    let has_cells =
        |row: usize| columns.iter().any(|column| column.cells.get(row).is_some_and(|cell| !cell.is_empty()));
    // An annotation without content is left out.
    let rows: Vec<_> = table.rows.iter().enumerate().filter(|(number, row)| !row.quiet || has_cells(*number)).collect();
    let shown = &rows[..rows.len().min(most_rows)];
    let aligned: Vec<CellAlignment> = columns
        .iter()
        .map(|column| CellAlignment::of(shown.iter().filter_map(|(number, _)| column.cells.get(*number))))
        .collect();
    boxed(
        &table.title,
        html! {
            table.figures {
                @if !table.title.is_empty() || !table.note.is_empty() {
                    caption { strong { (words(&table.title)) } " " span.note { (words(&table.note)) } }
                }
                thead { (group_headings(table, has_labels)) tr {
                    @if has_labels { th scope="col" { (words(&table.corner)) } }
                    @for column in &columns { th scope="col" { (words(&column.heading)) } }
                } }
                tbody { @for (number, row) in shown {
                    tr.quiet[row.quiet] {
                        @if has_labels { th scope="row" { (words(&row.label)) } }
                        @for (column, aligned) in columns.iter().zip(&aligned) {
                            (aligned.cell(column.cells.get(*number).map_or("", String::as_str)))
                        }
                    }
                } }
            }
            (omitted(rows.len(), most_rows, "rows"))
            (omitted(table.groups.iter().map(|group| group.columns.len()).sum(), MOST_COLUMNS, "columns"))
            @for line in table.legend.lines() { p.note { (words(line)) } }
        },
    )
}

/// The line of headings above groups of columns, if one has a heading.
fn group_headings(table: &TableView, has_labels: bool) -> Markup {
    let mut left = MOST_COLUMNS;
    let groups = table.groups.iter().map(|group| {
        let columns = group.columns.len().min(left);
        left -= columns;
        (group, columns)
    });
    let groups: Vec<_> = groups.filter(|(_, columns)| *columns > 0).collect();
    html! {
        @if groups.iter().any(|(group, _)| !group.heading.is_empty()) {
            tr {
                @if has_labels { td {} }
                @for (group, columns) in groups {
                    th scope="colgroup" colspan=(columns) { (words(&group.heading)) }
                }
            }
        }
    }
}

/// How the cells of a column are padded so that their decimal points stand below each other.
struct CellAlignment {
    /// The longest fraction, with its point, in characters.
    fraction: usize,
    /// Whether a cell has parentheses, the closing one of which stands behind the others' last digit.
    has_parentheses: bool,
}

impl CellAlignment {
    fn of<'a>(mut cells: impl Iterator<Item = &'a String> + Clone) -> CellAlignment {
        let fraction = cells.clone().filter_map(|cell| behind_point(cell)).max().unwrap_or(0);
        CellAlignment { fraction, has_parentheses: cells.any(|cell| is_parenthesised(cell)) }
    }

    /// A cell with the padding that the style sheet writes invisibly behind it, which is neither read nor copied.
    fn cell(&self, text: &str) -> Markup {
        let missing = behind_point(text).map(|own| match (own, self.fraction) {
            (0, fraction @ 1..) => format!(".{}", "0".repeat(fraction - 1)),
            (own, fraction) => "0".repeat(fraction.saturating_sub(own)),
        });
        let closing = if self.has_parentheses && !is_parenthesised(text) { ")" } else { "" };
        let pad = missing.map(|missing| missing + closing).filter(|pad| !pad.is_empty());
        html! { td data-pad=[pad] { (words(text)) } }
    }
}

/// A comparison: one table with a part for each contrast, one of the differences along the distribution, and notes.
pub(super) fn comparison(view: &ComparisonView) -> Markup {
    // Which mean the figures are stands in the captions of their tables.
    let means = view.means.as_deref().unwrap_or_default();
    let notes = view.footnotes.iter().filter(|note| Some(*note) != view.means.as_ref());
    html! {
        section.comparison {
            h3 { (words(&view.heading)) }
            @if let Some(common) = &view.common { p { (words(common)) } }
            (changes("Changes with intervals and verdicts", means, &view.contrasts))
            @if !view.shifts.is_empty() {
                details {
                    summary { "Differences along the distribution" }
                    (changes("Along the distribution: intervals, no verdicts", means, &view.shifts))
                }
            }
            @if !view.gates.is_empty() { ul.gates { @for gate in &view.gates { li { (words(gate)) } } } }
            @for note in notes { p.note { (words(note)) } }
        }
    }
}

fn changes(title: &str, note: &str, contrasts: &[ContrastView]) -> Markup {
    let rows = || contrasts.iter().flat_map(|contrast| &contrast.rows);
    if rows().next().is_none() {
        return Markup::default();
    }
    let is_judged = rows().any(|row| !row.verdict.is_empty());
    let columns = if is_judged { 6 } else { 4 };
    let labels = rows().map(|row| row.label.len()).max().unwrap_or(1).max(1);
    let mut left = MOST_ROWS;
    let parts = contrasts.iter().map(|contrast| {
        let shown = &contrast.rows[..contrast.rows.len().min(left)];
        left -= shown.len();
        (contrast, shown)
    });
    let parts: Vec<_> = parts.filter(|(_, shown)| !shown.is_empty()).collect();
    boxed(
        title,
        html! {
            table.changes {
                caption { strong { (title) } " " span.note { (words(note)) } }
                thead { tr {
                    th scope="col" colspan=(labels) { span.unseen { "statistic" } }
                    th scope="col" { "baseline" } th scope="col" { "candidate" } th scope="col" { "change" }
                    @if is_judged { th scope="col" { "verdict" } th scope="col" { "p" } }
                } }
                @for (contrast, shown) in parts {
                    tbody {
                        @if !contrast.title.is_empty() {
                            tr { th.contrast scope="rowgroup" colspan=(labels + columns - 1) { (words(&contrast.title)) } }
                        }
                        @for row in shown { (change(row, labels, is_judged)) }
                    }
                }
            }
            (omitted(rows().count(), MOST_ROWS, "rows"))
        },
    )
}

fn change(row: &ChangeView, labels: usize, is_judged: bool) -> Markup {
    let last = row.label.len().saturating_sub(1);
    html! {
        tr {
            @for (number, label) in row.label.iter().enumerate() {
                th scope="row" colspan=[(number == last && labels > row.label.len()).then(|| labels - last)] {
                    (words(label))
                }
            }
            td { (words(&row.baseline)) } td { (words(&row.candidate)) } td.change { (words(&row.change)) }
            @if is_judged {
                td.verdict {
                    (words(&row.verdict))
                    @if let Some(remark) = row.remark() { span.note { ": " (words(&remark)) } }
                    @if let Some(text) = &row.explanation { br; span.note { (words(text)) } }
                }
                td { (words(&row.p)) }
            }
        }
    }
}

/// The values behind a plot.
pub(super) fn behind_plot(figure: &Figure) -> Markup {
    let FigureTable { columns, rows, omitted } = table(figure);
    let left_out = human::grouped(omitted as u64);
    html! {
        (boxed(&figure.title, html! {
            table {
                thead { tr { @for heading in &columns { th scope="col" { (words(heading)) } } } }
                tbody { @for row in &rows { tr { @for cell in row { td { (words(cell)) } } } } }
            }
        }))
        @if omitted > 0 {
            p.note { (left_out) " further values are in " code { "--figure " (figure.name) " --format csv" } "." }
        }
    }
}

/// Content that scrolls sideways inside of its own box, with the keyboard too.
pub(super) fn boxed(title: &str, content: Markup) -> Markup {
    html! { div.scroll role="region" aria-label=(plain(title)) tabindex="0" { (content) } }
}
