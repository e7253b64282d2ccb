//! Tables as text: numbers aligned at the decimal point, column groups that do not fit wrapped below.

use super::paint::{Style, width};
use super::view::{ColumnView, GroupView, RowView, TableView};

/// Columns between two columns.
const GAP: usize = 2;
/// Narrower columns than this make a row of figures hard to tell apart.
const NARROWEST: usize = 6;

/// The lines of a table.
pub(super) fn draw(table: &TableView, style: Style) -> Vec<String> {
    let mut lines = title(table, style);
    let label_width = table.rows.iter().map(|row| width(&row.label)).chain([width(&table.corner)]).max().unwrap_or(0);
    // a plain row of figures, without labels, is set in by as much as its neighbours are apart
    let indent = if label_width == 0 { 0 } else { label_width + 1 };
    // a label that takes most of the line pushes the figures past its end rather than tearing the table apart
    let room = style.width.saturating_sub(indent).max(style.width / 2);
    let groups: Vec<Group> = table.groups.iter().flat_map(|group| fit(group, room)).collect();
    for (block, groups) in blocks(groups, room).into_iter().enumerate() {
        if block > 0 {
            lines.push(String::new());
        }
        lines.extend(draw_block(table, &groups, label_width, style));
    }
    lines
}

fn title(table: &TableView, style: Style) -> Vec<String> {
    if table.title.is_empty() && table.note.is_empty() {
        return Vec::new();
    }
    let room = style.width.saturating_sub(width(&table.title) + width(&table.note)).max(GAP);
    let gap = if table.note.is_empty() { String::new() } else { " ".repeat(room) };
    vec![format!("{}{gap}{}", style.strong(&table.title), table.note)]
}

/// A group of columns with every cell padded to its column's width.
struct Group<'a> {
    heading: &'a str,
    headings: Vec<String>,
    cells: Vec<Vec<String>>,
    /// Of the columns, gaps included.
    columns_width: usize,
}

impl Group<'_> {
    fn width(&self) -> usize {
        self.columns_width.max(GAP + width(self.heading))
    }
}

/// Pads the columns of `group`; one too wide for the line becomes several with the same heading.
fn fit(group: &GroupView, room: usize) -> Vec<Group<'_>> {
    let mut parts: Vec<Group> = Vec::new();
    for column in &group.columns {
        let (heading, cells) = align(column);
        let needed = GAP + width(&heading);
        match parts.last_mut().filter(|part| part.columns_width + needed <= room) {
            Some(part) => {
                part.columns_width += needed;
                part.headings.push(heading);
                part.cells.push(cells);
            }
            None => parts.push(Group {
                heading: &group.heading,
                headings: vec![heading],
                cells: vec![cells],
                columns_width: needed,
            }),
        }
    }
    parts
}

/// The groups of each block: as many as fit beside each other.
fn blocks(groups: Vec<Group<'_>>, room: usize) -> Vec<Vec<Group<'_>>> {
    let mut blocks: Vec<Vec<Group>> = Vec::new();
    for group in groups {
        match blocks.last_mut() {
            Some(block) if block.iter().map(|other| other.width()).sum::<usize>() + group.width() <= room => {
                block.push(group);
            }
            _ => blocks.push(vec![group]),
        }
    }
    blocks
}

fn draw_block(table: &TableView, groups: &[Group<'_>], label_width: usize, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    let margin = if label_width == 0 { String::new() } else { " ".repeat(label_width + 1) };
    if groups.iter().any(|group| !group.heading.is_empty()) {
        let headings = groups.iter().map(|group| {
            let pad = group.width().saturating_sub(width(group.heading));
            format!("{}{}", " ".repeat(pad), group.heading)
        });
        lines.push(style.strong(format!("{margin}{}", headings.collect::<String>()).trim_end()));
    }
    if table.corner.is_empty() && groups.iter().all(|group| group.headings.iter().all(|text| text.trim().is_empty())) {
        // nothing to say above the rows
    } else {
        let corner = if label_width == 0 { String::new() } else { format!("{:>label_width$} ", table.corner) };
        let headings: String = groups.iter().map(|group| line_of(group, group.headings.iter())).collect();
        lines.push(style.quiet(format!("{corner}{headings}").trim_end()));
    }
    lines.extend(table.rows.iter().enumerate().filter_map(|(number, row)| {
        let cells: String =
            groups.iter().map(|group| line_of(group, group.cells.iter().map(|cells| &cells[number]))).collect();
        draw_row(row, cells.trim_end(), label_width, style)
    }));
    lines
}

/// One row; none where it only supports another and has nothing to say.
fn draw_row(row: &RowView, cells: &str, label_width: usize, style: Style) -> Option<String> {
    if row.quiet && cells.is_empty() {
        return None;
    }
    let label = if label_width == 0 { String::new() } else { format!("{:>label_width$} ", row.label) };
    let line = format!("{label}{cells}");
    Some(if row.quiet { style.quiet(&line) } else { line })
}

/// One line of a group: every text with its gap, set to the right of the group's width.
fn line_of<'a>(group: &Group<'_>, texts: impl Iterator<Item = &'a String>) -> String {
    let line: String = texts.map(|text| format!("{}{text}", " ".repeat(GAP))).collect();
    format!("{}{line}", " ".repeat(group.width().saturating_sub(width(&line))))
}

/// The heading and cells of a column, all of one width, points below points.
fn align(column: &ColumnView) -> (String, Vec<String>) {
    let fraction = column.cells.iter().map(|cell| behind_point(cell).unwrap_or(0)).max().unwrap_or(0);
    let padded: Vec<String> = column
        .cells
        .iter()
        .map(|cell| {
            let pad = behind_point(cell).map_or(0, |own| fraction - own);
            format!("{cell}{}", " ".repeat(pad))
        })
        .collect();
    let unit = column.heading.is_empty() && column.cells.iter().all(|cell| behind_point(cell).is_none());
    let least = if unit { 0 } else { NARROWEST };
    let widest = padded.iter().map(|cell| width(cell)).chain([width(&column.heading), least]).max().unwrap_or(0);
    let right = |text: &str| format!("{}{text}", " ".repeat(widest - width(text)));
    (right(&column.heading), padded.iter().map(|cell| right(cell)).collect())
}

/// How many characters stand behind the last digit before the point, the point included; none for words
/// and for intervals with two ends, which are set to the right as they are.
fn behind_point(cell: &str) -> Option<usize> {
    let number = cell.trim_start_matches(['±', '≥', '≤', '−', '+', ' ', '<']);
    let numeric = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b',');
    (!number.is_empty() && numeric).then(|| number.find('.').map_or(0, |point| number.len() - point))
}
