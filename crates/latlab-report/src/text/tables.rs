//! Tables as text: figures are aligned at their decimal points. A table of figures that is too wide is split into blocks of
//! columns; in one with words or sections, what does not fit into the line stands below its row.

use super::style::{INDENT, Style, flush_left, flush_right};
use super::wrap::wrap;
use crate::units::human::columns as width;
use crate::view::{ColumnView, GroupView, RowView, TableView};

/// Distance of adjacent columns in characters.
const GAP: usize = 2;
/// Smallest width of a column of figures in characters, unless the table would have to be split.
const NARROWEST: usize = 6;

pub(crate) fn draw_table(table: &TableView, style: Style) -> Vec<String> {
    let mut lines = table_title(table, style);
    if table.columns().any(|column| column.is_words) || table.rows.iter().any(|row| !row.section.is_empty()) {
        lines.extend(rows_with_words(table, style));
    } else {
        lines.extend(blocks_of_figures(table, style));
    }
    let legend = table.legend.lines().flat_map(|line| wrap(line, style.width));
    lines.extend(legend.map(|line| style.quiet(&line)));
    lines
}

struct RowLabel {
    /// Levels in a line of their own above the row.
    above: Option<String>,
    own: String,
}

/// The labels of the rows of a section. If they are `nested`, levels stand above the rows that share them, else beside their
/// labels in columns: a level is blank if it and those before it are the same as in the row above.
fn row_labels(rows: &[RowView], nested: bool) -> Vec<RowLabel> {
    let count = rows.iter().map(|row| row.levels.len()).max().unwrap_or(0);
    let widest = |column: usize| rows.iter().filter_map(|row| row.levels.get(column)).map(|level| width(level)).max();
    let widths: Vec<usize> = (0..count).map(|column| widest(column).unwrap_or(0) + GAP).collect();
    let label = |number: usize| {
        let row = &rows[number];
        let before = number.checked_sub(1).map_or(&[][..], |before| &rows[before].levels);
        let is_repeated = |column: usize| before.get(..=column) == Some(&row.levels[..=column]);
        if let Some(last) = row.levels.len().checked_sub(1).filter(|_| nested) {
            let above = (!is_repeated(last)).then(|| format!(" {}", row.levels.join(", ")));
            return RowLabel { above, own: format!(" {}", row.label) };
        }
        let shown = |column: usize| if is_repeated(column) { "" } else { &row.levels[column] };
        let levels = (0..row.levels.len()).map(|column| flush_left(shown(column), widths[column]));
        RowLabel { above: None, own: levels.collect::<String>() + &row.label }
    };
    (0..rows.len()).map(label).collect()
}

/// Lines below a row are indented by less than its label if they would have fewer characters than this.
const BELOW_LEAST: usize = 40;

fn rows_with_words(table: &TableView, style: Style) -> Vec<String> {
    let columns: Vec<AlignedColumn> = table.columns().map(|column| align(column, 0)).collect();
    let sections = || table.rows.chunk_by(|one, other| one.section == other.section);
    let labels = |nested: bool| -> Vec<RowLabel> { sections().flat_map(|rows| row_labels(rows, nested)).collect() };
    let widest = |labels: &[RowLabel]| labels.iter().map(|label| width(&label.own)).max().unwrap_or(0);
    // The labels, and how many columns stand in the line of a row: all, those of the first group, or none.
    let first = table.groups.first().map_or(0, |group| group.columns.len());
    let layouts = [(false, columns.len()), (true, columns.len()), (false, first), (true, first)];
    let needed = |nested: bool, count: usize| {
        1 + widest(&labels(nested)) + columns[..count].iter().map(AlignedColumn::needed).sum::<usize>()
    };
    let fitting = layouts.into_iter().find(|(nested, count)| needed(*nested, *count) <= style.width);
    let (nested, count) = fitting.unwrap_or((true, 0));
    let labels = labels(nested);
    let label_width = widest(&labels);
    let deep = 1 + label_width + GAP;
    let indent = if count == 0 || deep + BELOW_LEAST > style.width { 1 + GAP } else { deep };
    let line = |label: &str, cell: &dyn Fn(&AlignedColumn) -> String| {
        let mut line = format!(" {label}");
        let mut end = 1 + label_width;
        for column in &columns[..count] {
            // The closing parenthesis of the cell before may stand in the gap.
            line += &" ".repeat((end + GAP).saturating_sub(width(&line)));
            line += &cell(column);
            end += column.needed();
        }
        line.trim_end().to_owned()
    };
    let below = |text: &str| {
        let lines = wrap(text, style.width.saturating_sub(indent).max(1)).into_iter();
        lines.map(|line| format!("{}{line}", " ".repeat(indent))).collect::<Vec<_>>()
    };
    let mut lines = Vec::new();
    let headings = line("", &|column| column.heading.clone());
    if !headings.is_empty() {
        lines.push(style.quiet(&headings));
    }
    let mut section = "";
    for (number, (row, label)) in table.rows.iter().zip(&labels).enumerate() {
        if row.section != section {
            lines.extend(wrap(&row.section, style.width).iter().map(|line| style.strong(line)));
            section = &row.section;
        }
        lines.extend(label.above.clone());
        let own = line(&label.own, &|column| column.cells[number].clone());
        if !row.quiet {
            lines.push(own);
        } else if !own.is_empty() {
            lines.push(style.quiet(&own));
        }
        let others = table.columns().skip(count).map(|column| (column, &column.cells[number]));
        let words = others
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(column, cell)| if column.is_words { cell.clone() } else { format!("{} {cell}", column.heading) });
        lines.extend(below(&words.collect::<Vec<_>>().join(", ")));
        lines.extend(row.notes.iter().flat_map(|note| below(note)).map(|line| style.quiet(&line)));
    }
    lines
}

/// The title with the note at the right end of the line, of 80 columns at most, or below it in a narrow line.
fn table_title(table: &TableView, style: Style) -> Vec<String> {
    let line = style.width.min(Style::PLAIN.width);
    let used = width(&table.title) + width(&table.note);
    match (table.note.is_empty(), line.checked_sub(used).filter(|gap| *gap >= GAP)) {
        (false, Some(gap)) => vec![format!("{}{}{}", style.strong(&table.title), " ".repeat(gap), table.note)],
        _ => {
            let title = wrap(&table.title, style.width).into_iter().map(|line| style.strong(&line));
            title.chain(wrap(&table.note, style.width)).collect()
        }
    }
}

fn blocks_of_figures(table: &TableView, style: Style) -> Vec<String> {
    let labels = || table.rows.iter().map(|row| width(&row.label)).chain([width(&table.corner)]);
    let longest = labels().max().unwrap_or(0);
    // Labels that take more than half of the line have lines of their own.
    let is_above = longest >= style.width / 2;
    let label_width = if is_above { INDENT } else { longest };
    // A table without labels has no extra indentation.
    let indent = if label_width == 0 { 0 } else { label_width + 1 };
    let available = style.width - indent;
    let blocks = |narrowest| {
        let groups = table.groups.iter().flat_map(|group| fit(group, narrowest, available)).collect();
        table_blocks(groups, available)
    };
    // A table that would be split has narrower columns, if that keeps it in one piece.
    let whole = (0..=NARROWEST).rev().map(blocks).find(|blocks| blocks.len() == 1);
    let mut lines = Vec::new();
    for (block, groups) in whole.unwrap_or_else(|| blocks(NARROWEST)).into_iter().enumerate() {
        if block > 0 {
            lines.push(String::new());
        }
        lines.extend(draw_block(table, &groups, label_width, style));
    }
    lines
}

/// A column with every cell padded to its width. The closing parenthesis of a cell may reach into the gap behind the
/// column, so that figures with and without parentheses are aligned with each other and with their heading.
#[derive(Clone)]
struct AlignedColumn {
    heading: String,
    cells: Vec<String>,
    width: usize,
}

impl AlignedColumn {
    /// Width of the column with the gap in front of it.
    fn needed(&self) -> usize {
        GAP + self.width
    }

    /// Number of characters by which the widest cell exceeds the column.
    fn overhang(&self) -> usize {
        self.cells.iter().map(|cell| width(cell).saturating_sub(self.width)).max().unwrap_or(0)
    }
}

/// A group of columns that share a block of lines.
struct Group<'a> {
    heading: &'a str,
    columns: Vec<AlignedColumn>,
}

impl Group<'_> {
    fn columns_width(&self) -> usize {
        self.columns.iter().map(AlignedColumn::needed).sum()
    }

    fn width(&self) -> usize {
        self.columns_width().max(GAP + width(self.heading))
    }

    fn overhang(&self) -> usize {
        self.columns.last().map_or(0, AlignedColumn::overhang)
    }
}

/// Pads the columns of `group` and splits a group that is too wide for the line. Each part ends in the unit of the figures,
/// if the group has a column for it.
fn fit(group: &GroupView, narrowest: usize, available: usize) -> Vec<Group<'_>> {
    let (unit, columns) = match group.columns.split_last() {
        Some((last, columns)) if is_unit(last) && !columns.is_empty() => (Some(align(last, narrowest)), columns),
        _ => (None, group.columns.as_slice()),
    };
    let unit_width = unit.as_ref().map_or(0, AlignedColumn::needed);
    let mut parts: Vec<Group> = Vec::new();
    for column in columns.iter().map(|column| align(column, narrowest)) {
        let needed = column.needed() + column.overhang().max(unit_width);
        match parts.last_mut().filter(|part| part.columns_width() + needed <= available) {
            Some(part) => part.columns.push(column),
            None => parts.push(Group { heading: &group.heading, columns: vec![column] }),
        }
    }
    parts.iter_mut().for_each(|part| part.columns.extend(unit.clone()));
    parts
}

/// Whether `column` has no heading and no figure, but a unit.
fn is_unit(column: &ColumnView) -> bool {
    column.heading.is_empty() && column.cells.iter().all(|cell| behind_point(cell).is_none())
}

/// Distributes the groups to blocks that fit the line.
fn table_blocks(groups: Vec<Group<'_>>, available: usize) -> Vec<Vec<Group<'_>>> {
    let mut blocks: Vec<Vec<Group>> = Vec::new();
    for group in groups {
        let used = |block: &[Group]| block.iter().map(Group::width).sum::<usize>();
        match blocks.last_mut() {
            Some(block) if used(block) + group.width() + group.overhang() <= available => block.push(group),
            _ => blocks.push(vec![group]),
        }
    }
    blocks
}

fn draw_block(table: &TableView, groups: &[Group<'_>], label_width: usize, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    let available = style.width.saturating_sub(if label_width == 0 { 0 } else { label_width + 1 });
    let without_heading;
    let groups = match groups {
        // A heading that is too long for the cells' part of the line has lines of its own.
        [group] if group.width() > group.columns_width().max(available) => {
            lines.extend(wrap(group.heading, style.width).iter().map(|line| style.strong(line)));
            without_heading = [Group { heading: "", columns: group.columns.clone() }];
            &without_heading[..]
        }
        groups => groups,
    };
    let labelled = |label: &str| if label_width == 0 { String::new() } else { flush_right(label, label_width) + " " };
    if groups.iter().any(|group| !group.heading.is_empty()) {
        let headings = groups.iter().map(|group| flush_right(group.heading, group.width()));
        lines.push(style.strong(format!("{}{}", labelled(""), headings.collect::<String>()).trim_end()));
    }
    let headings = line_of(groups, |column| &column.heading);
    if !table.corner.is_empty() || !headings.is_empty() {
        lines.push(style.quiet(format!("{}{headings}", labelled(&table.corner)).trim_end()));
    }
    for (number, row) in table.rows.iter().enumerate() {
        let cells = line_of(groups, |column| &column.cells[number]);
        let is_above = width(&row.label) > label_width;
        if is_above {
            lines.extend(wrap(&row.label, style.width));
        }
        let line = format!("{}{cells}", labelled(if is_above { "" } else { &row.label }));
        // An annotation without content is left out.
        match row.quiet {
            true if cells.is_empty() => {}
            true => lines.push(style.quiet(&line)),
            false => lines.push(line),
        }
    }
    lines
}

/// Formats one line of `groups`, each right-aligned to its width, without blanks at the end.
fn line_of<'a>(groups: &'a [Group<'_>], text: impl Fn(&'a AlignedColumn) -> &'a str) -> String {
    let mut line = String::new();
    let mut end = 0;
    for group in groups {
        end += group.width() - group.columns_width();
        for column in &group.columns {
            let start = end + GAP;
            line.push_str(&" ".repeat(start.saturating_sub(width(&line))));
            line.push_str(text(column));
            end = start + column.width;
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// Pads the heading and cells of a column to equal width: figures with aligned decimal points, words behind.
fn align(column: &ColumnView, narrowest: usize) -> AlignedColumn {
    if column.is_words {
        let width = column.cells.iter().chain([&column.heading]).map(|cell| width(cell)).max().unwrap_or(0);
        let left = |text: &String| flush_left(text, width);
        return AlignedColumn { heading: left(&column.heading), cells: column.cells.iter().map(left).collect(), width };
    }
    let fraction = column.cells.iter().filter_map(|cell| behind_point(cell)).max().unwrap_or(0);
    // A closing parenthesis takes the place of the first missing digit, or hangs behind the column.
    let padded = column.cells.iter().map(|cell| {
        let pad = behind_point(cell).map_or(0, |own| fraction - own);
        let body = body_width(cell) + pad;
        (body, format!("{cell}{}", " ".repeat(body.saturating_sub(width(cell)))))
    });
    let padded: Vec<(usize, String)> = padded.collect();
    let least = if is_unit(column) { 0 } else { narrowest };
    let widest = padded.iter().map(|(body, _)| *body).chain([width(&column.heading), least]).max().unwrap_or(0);
    let right = |(body, text): &(usize, String)| format!("{}{text}", " ".repeat(widest - body));
    AlignedColumn {
        heading: flush_right(&column.heading, widest),
        cells: padded.iter().map(right).collect(),
        width: widest,
    }
}

/// Returns the width of a cell without the closing parenthesis, which stands behind its column.
fn body_width(cell: &str) -> usize {
    width(cell) - usize::from(is_parenthesised(cell))
}

/// Whether a cell has parentheses, as an interval below a figure has.
pub(crate) fn is_parenthesised(cell: &str) -> bool {
    cell.starts_with('(') && cell.ends_with(')')
}

/// Returns the number of characters after the integer part, including the point; `None` for words and for intervals
/// with two ends, which are right-aligned.
pub(crate) fn behind_point(cell: &str) -> Option<usize> {
    let bare = if is_parenthesised(cell) { &cell[1..cell.len() - 1] } else { cell };
    let number = bare.trim_start_matches(['±', '≥', '≤', '−', '+', ' ', '<']);
    let numeric = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b',');
    (!number.is_empty() && numeric).then(|| number.find('.').map_or(0, |point| number.len() - point))
}
