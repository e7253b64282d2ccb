//! Tables as markup, aligned at the decimal point.

use maud::{Markup, html};

use super::words::{omitted, plain, words};
use crate::figure::Figure;
use crate::figure::table::{self, FigureTable};
use crate::text::{behind_point, is_parenthesised};
use crate::units::human;
use crate::view::{ColumnView, RowView, TableView};

/// The most rows of a table and the most columns: 10,000 conditions must not become a page that no browser opens.
const MOST_ROWS: usize = 400;
const MOST_COLUMNS: usize = 60;
/// Texts with more characters are broken into lines.
const LONG: usize = 30;

pub(super) fn table(table: &TableView) -> Markup {
    let columns: Vec<&ColumnView> = table.columns().take(MOST_COLUMNS).collect();
    let has_labels = !table.corner.is_empty() || table.rows.iter().any(|row| !row.label.is_empty());
    let has_cells =
        |row: usize| columns.iter().any(|column| column.cells.get(row).is_some_and(|cell| !cell.is_empty()));
    // An annotation without content is left out.
    let rows: Vec<_> = table.rows.iter().enumerate().filter(|(number, row)| !row.quiet || has_cells(*number)).collect();
    let shown = &rows[..rows.len().min(MOST_ROWS)];
    let aligned: Vec<CellAlignment> = columns
        .iter()
        .map(|column| CellAlignment::of(column, shown.iter().filter_map(|(number, _)| column.cells.get(*number))))
        .collect();
    boxed(
        &table.title,
        html! {
            table.figures style={ "--columns:" (width(&columns, &aligned, shown)) } {
                @if !table.title.is_empty() || !table.note.is_empty() {
                    caption { strong { (words(&table.title)) } " " span.note { (words(&table.note)) } }
                }
                thead { (group_headings(table, has_labels)) tr {
                    @if has_labels { th scope="col" { (words(&table.corner)) } }
                    @for column in &columns { th.words[column.is_words] scope="col" { (words(&column.heading)) } }
                } }
                @for rows in shown.chunk_by(|(_, one), (_, other)| one.section == other.section) {
                    tbody {
                        @if let Some((_, RowView { section, .. })) = rows.first().filter(|(_, row)| !row.section.is_empty()) {
                            tr { th.section scope="rowgroup" colspan=(columns.len() + 1) { (words(section)) } }
                        }
                        @for (number, row) in rows {
                            tr.quiet[row.quiet] {
                                @if has_labels { th scope="row" { (words(&label(row))) } }
                                @for (column, aligned) in columns.iter().zip(&aligned) {
                                    (aligned.cell(column.cells.get(*number).map_or("", String::as_str)))
                                }
                            }
                            @for note in &row.notes {
                                tr.quiet { td {} td.words.wide colspan=(columns.len()) { (words(note)) } }
                            }
                        }
                    }
                }
            }
            (omitted(rows.len(), MOST_ROWS, "rows"))
            (omitted(table.columns().count(), MOST_COLUMNS, "columns"))
            @for line in table.legend.lines() { p.note { (words(line)) } }
        },
    )
}

/// The characters of the widest row, with two between columns; texts of cells are broken, figures padded.
fn width(columns: &[&ColumnView], aligned: &[CellAlignment], shown: &[(usize, &RowView)]) -> usize {
    let of_column = |(column, aligned): (&&ColumnView, &CellAlignment)| {
        let padded = |text: &String| human::columns(text) + aligned.pad(text).map_or(0, |pad| pad.len());
        let texts = shown.iter().filter_map(|(number, _)| column.cells.get(*number)).map(padded);
        let widest = texts.chain([human::columns(&column.heading)]).max().unwrap_or(0);
        2 + widest.min(if column.is_words { LONG } else { usize::MAX })
    };
    let labels = shown.iter().map(|(_, row)| human::columns(&label(row)) + 2).max().unwrap_or(0);
    labels + columns.iter().zip(aligned).map(of_column).sum::<usize>()
}

fn label(row: &RowView) -> String {
    row.levels.iter().chain([&row.label]).map(String::as_str).collect::<Vec<_>>().join(", ")
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
    is_words: bool,
}

impl CellAlignment {
    fn of<'a>(column: &ColumnView, mut cells: impl Iterator<Item = &'a String> + Clone) -> CellAlignment {
        let fraction = cells.clone().filter_map(|cell| behind_point(cell)).max().unwrap_or(0);
        let has_parentheses = cells.any(|cell| is_parenthesised(cell));
        CellAlignment { fraction, has_parentheses, is_words: column.is_words }
    }

    /// The padding that the style sheet writes invisibly behind `text`, which is neither read nor copied.
    fn pad(&self, text: &str) -> Option<String> {
        let missing = behind_point(text).map(|own| match (own, self.fraction) {
            (0, fraction @ 1..) => format!(".{}", "0".repeat(fraction - 1)),
            (own, fraction) => "0".repeat(fraction.saturating_sub(own)),
        });
        let closing = if self.has_parentheses && !is_parenthesised(text) { ")" } else { "" };
        missing.map(|missing| missing + closing).filter(|pad| !pad.is_empty() && !self.is_words)
    }

    fn cell(&self, text: &str) -> Markup {
        if self.is_words {
            return html! { td.words.long[human::columns(text) > LONG] { (words(text)) } };
        }
        html! { td data-pad=[self.pad(text)] { (words(text)) } }
    }
}

/// The values behind a plot.
pub(super) fn behind_plot(figure: &Figure) -> Markup {
    let FigureTable { columns, rows, omitted } = table::table(figure);
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
