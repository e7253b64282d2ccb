//! Rendering of a view as text in 80 columns, with the same words with and without colour: colour and line wrapping,
//! tables and histograms.

use super::view::{CaveatView, ColumnView, GroupView, HistogramView, ReportView, TableView};
use crate::diagnostics::{Colour, Severity};

/// Width of the labels of remarks.
const LABEL: usize = 13;

/// Renders the report with a final newline.
pub fn render(view: &ReportView, style: Style) -> String {
    let mut sections: Vec<Vec<String>> = vec![wrap(&view.heading, style.width)];
    sections.extend(view.tables.iter().map(|each| draw_table(each, style)));
    sections.push(view.alike.clone());
    sections.extend(view.histogram.iter().map(|each| draw_histogram(each, style)));
    sections.push(view.gates.iter().flat_map(|line| wrap(line, style.width)).collect());
    let mut closing: Vec<String> = Vec::new();
    closing.extend(view.remarks.iter().flat_map(|remark| labelled(&remark.label, "", &remark.text, style)));
    closing.extend(view.caveats.iter().flat_map(|caveat| caveat_lines(caveat, style)));
    let recordings = view.recordings.iter().enumerate();
    closing.extend(recordings.map(|(number, path)| {
        let label = if number > 0 { "" } else { "recording" };
        format!("{}{path}", style.quiet(&format!("{label:<LABEL$}")))
    }));
    sections.push(closing);
    let sections = sections.into_iter().filter(|lines| !lines.is_empty());
    sections.map(|lines| lines.join("\n") + "\n").collect::<Vec<_>>().join("\n")
}

/// Formats as `label        mark  text` with hanging indentation.
fn labelled(label: &str, mark: &str, text: &str, style: Style) -> Vec<String> {
    let mark_width = if mark.is_empty() { 0 } else { width(mark) + 2 };
    let lines = wrap(text, style.width.saturating_sub(LABEL + mark_width).max(20));
    let numbered = lines.iter().enumerate().map(|(number, line)| {
        let first = number == 0;
        let label = format!("{:<LABEL$}", if first { label } else { "" });
        let mark = format!("{:<mark_width$}", if first { mark } else { "" });
        format!("{}{mark}{line}", style.quiet(&label))
    });
    numbered.collect()
}

/// Formats the observation, effect and remedy of a caveat.
pub(super) fn caveat_lines(caveat: &CaveatView, style: Style) -> Vec<String> {
    let label = if caveat.number == 1 { "caveats" } else { "" };
    let number = caveat.number.to_string();
    let (word, painted) = match caveat.severity {
        Severity::Note => ("", String::new()),
        Severity::Warning => ("warning: ", style.warn("warning:") + " "),
        Severity::Fatal => ("fatal: ", style.alarm("fatal:") + " "),
    };
    let mut lines = labelled(label, &number, &format!("{word}{}", caveat.message), style);
    if let Some(first) = lines.first_mut().filter(|_| !word.is_empty()) {
        *first = first.replacen(word, &painted, 1);
    }
    let mark = " ".repeat(width(&number));
    // The effect of a note is small and therefore omitted.
    let effect = (caveat.severity > Severity::Note).then_some(("effect", &caveat.effect));
    for (word, text) in effect.into_iter().chain([("hint", &caveat.hint)]) {
        lines.extend(labelled("", &mark, &format!("{word}: {text}"), style));
    }
    lines
}

/// Distance of adjacent columns in characters.
const GAP: usize = 2;
/// Smallest width of a column in characters, unless the table would have to be split.
const NARROWEST: usize = 6;

pub(super) fn draw_table(table: &TableView, style: Style) -> Vec<String> {
    let mut lines = table_title(table, style);
    let label_width = table.rows.iter().map(|row| width(&row.label)).chain([width(&table.corner)]).max().unwrap_or(0);
    // A table without labels has no extra indentation.
    let indent = if label_width == 0 { 0 } else { label_width + 1 };
    // If the labels take most of the line, lines exceed the width instead of splitting the table.
    let available = style.width.saturating_sub(indent).max(style.width / 2);
    let blocks = |narrowest| {
        let groups = table.groups.iter().flat_map(|group| fit(group, narrowest, available)).collect();
        table_blocks(groups, available)
    };
    // A table that would be split has narrower columns, if that keeps it in one piece.
    let whole = (0..=NARROWEST).rev().map(blocks).find(|blocks| blocks.len() == 1);
    for (block, groups) in whole.unwrap_or_else(|| blocks(NARROWEST)).into_iter().enumerate() {
        if block > 0 {
            lines.push(String::new());
        }
        lines.extend(draw_block(table, &groups, label_width, style));
    }
    lines.extend(wrap(&table.legend, style.width).iter().map(|line| style.quiet(line)));
    lines
}

fn table_title(table: &TableView, style: Style) -> Vec<String> {
    if table.title.is_empty() && table.note.is_empty() {
        return Vec::new();
    }
    let available = style.width.saturating_sub(width(&table.title) + width(&table.note)).max(GAP);
    let gap = if table.note.is_empty() { String::new() } else { " ".repeat(available) };
    vec![format!("{}{gap}{}", style.strong(&table.title), table.note)]
}

/// A column with every cell padded to its width. The closing parenthesis of a cell may reach into the gap behind the
/// column, so that figures with and without parentheses are aligned with each other and with their heading.
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
    /// Width of the columns with their gaps.
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

/// Pads the columns of `group` and splits a group that is too wide for the line.
fn fit(group: &GroupView, narrowest: usize, available: usize) -> Vec<Group<'_>> {
    let mut parts: Vec<Group> = Vec::new();
    for column in group.columns.iter().map(|column| align(column, narrowest)) {
        let needed = column.needed() + column.overhang();
        match parts.last_mut().filter(|part| part.columns_width() + needed <= available) {
            Some(part) => part.columns.push(column),
            None => parts.push(Group { heading: &group.heading, columns: vec![column] }),
        }
    }
    parts
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
    let labelled = |label: &str| if label_width == 0 { String::new() } else { format!("{label:>label_width$} ") };
    if groups.iter().any(|group| !group.heading.is_empty()) {
        let headings = groups.iter().map(|group| {
            let pad = group.width().saturating_sub(width(group.heading));
            format!("{}{}", " ".repeat(pad), group.heading)
        });
        lines.push(style.strong(format!("{}{}", labelled(""), headings.collect::<String>()).trim_end()));
    }
    let headings = line_of(groups, |column| &column.heading);
    if !table.corner.is_empty() || !headings.is_empty() {
        lines.push(style.quiet(format!("{}{headings}", labelled(&table.corner)).trim_end()));
    }
    lines.extend(table.rows.iter().enumerate().filter_map(|(number, row)| {
        let cells = line_of(groups, |column| &column.cells[number]);
        // An annotation without content is left out.
        let line = (!row.quiet || !cells.is_empty()).then(|| format!("{}{cells}", labelled(&row.label)))?;
        Some(if row.quiet { style.quiet(&line) } else { line })
    }));
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

/// Pads the heading and cells of a column to equal width with aligned decimal points.
fn align(column: &ColumnView, narrowest: usize) -> AlignedColumn {
    let fraction = column.cells.iter().filter_map(|cell| behind_point(cell)).max().unwrap_or(0);
    // A closing parenthesis takes the place of the first missing digit, or hangs behind the column.
    let padded = column.cells.iter().map(|cell| {
        let pad = behind_point(cell).map_or(0, |own| fraction - own);
        let body = body_width(cell) + pad;
        (body, format!("{cell}{}", " ".repeat(body.saturating_sub(width(cell)))))
    });
    let padded: Vec<(usize, String)> = padded.collect();
    let unit = column.heading.is_empty() && column.cells.iter().all(|cell| behind_point(cell).is_none());
    let least = if unit { 0 } else { narrowest };
    let widest = padded.iter().map(|(body, _)| *body).chain([width(&column.heading), least]).max().unwrap_or(0);
    let right = |(body, text): &(usize, String)| format!("{}{text}", " ".repeat(widest - body));
    AlignedColumn {
        heading: format!("{:>widest$}", column.heading),
        cells: padded.iter().map(right).collect(),
        width: widest,
    }
}

/// Returns the width of a cell without the closing parenthesis, which stands behind its column.
pub(super) fn body_width(cell: &str) -> usize {
    width(cell) - usize::from(is_parenthesised(cell))
}

fn is_parenthesised(cell: &str) -> bool {
    cell.starts_with('(') && cell.ends_with(')')
}

/// Returns the number of characters after the integer part, including the point; `None` for words and for intervals
/// with two ends, which are right-aligned.
fn behind_point(cell: &str) -> Option<usize> {
    let bare = if is_parenthesised(cell) { &cell[1..cell.len() - 1] } else { cell };
    let number = bare.trim_start_matches(['±', '≥', '≤', '−', '+', ' ', '<']);
    let numeric = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b',');
    (!number.is_empty() && numeric).then(|| number.find('.').map_or(0, |point| number.len() - point))
}

/// Width of the longest bar in characters.
const LONGEST: f64 = 28.0;
/// Smallest width of the lower bounds of the buckets in characters.
const FROM: usize = 10;
/// Block characters of one to seven eighths.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

fn draw_histogram(view: &HistogramView, style: Style) -> Vec<String> {
    let from_width = view.bars.iter().map(|bar| width(&bar.from)).max().unwrap_or(0).max(FROM);
    let count_width = view.bars.iter().map(|bar| width(&bar.count)).max().unwrap_or(0);
    let middle = view.bars.len() / 2;
    let legend = |row: usize| if row == middle { style.quiet("   counts are logarithmic") } else { String::new() };
    let lines = view.bars.iter().enumerate().map(|(row, bar)| {
        let bar_text = blocks(bar.length);
        let pad = " ".repeat((LONGEST as usize + 1).saturating_sub(width(&bar_text)));
        let count = format!("{:>count_width$}", bar.count);
        format!("{:>from_width$} ▕{bar_text}{pad} {count}{}", bar.from, legend(row))
    });
    lines.collect()
}

/// Draws a bar of relative `length` in eighths of a character; empty only for length 0.
fn blocks(length: f64) -> String {
    let least = if length > 0.0 { 1 } else { 0 };
    let eighths = ((length.clamp(0.0, 1.0) * LONGEST * 8.0).round() as usize).max(least);
    let mut text = "█".repeat(eighths / 8);
    text.extend((eighths % 8).checked_sub(1).map(|part| EIGHTHS[part]));
    text
}

/// Style of text output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether it is coloured.
    pub colour: Colour,
    /// Line width in columns; 80 suffices for all output.
    pub width: usize,
}

impl Style {
    /// No colour and 80 columns, for files, pipes and tests.
    pub const PLAIN: Style = Style { colour: Colour::OFF, width: 80 };

    fn paint(self, code: &str, text: &str) -> String {
        self.colour.paint(code, text)
    }

    pub(super) fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(super) fn quiet(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(super) fn alarm(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(super) fn warn(self, text: &str) -> String {
        self.paint("33", text)
    }
}

/// Returns the width of `text` in columns: one per character.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Wraps `text` at spaces to lines of at most `available` columns; a longer word is not broken.
pub(super) fn wrap(text: &str, available: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= available => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figures::histogram;
    use crate::report::view::RowView;
    use crate::stats::Bucket;

    #[test]
    fn bars_have_logarithmic_length_and_an_empty_bucket_has_none() {
        let bucket = |low_ns, count| Bucket { low_ns, high_ns: low_ns * 2, count };
        let view = histogram(&[bucket(44_000, 1), bucket(88_000, 0), bucket(176_000, 3)]).expect("counts");
        assert_eq!(view.bars.iter().map(|bar| bar.length).collect::<Vec<_>>(), [0.5, 0.0, 1.0]);
        let lines = draw_histogram(&view, Style::PLAIN);
        assert!(lines[0].starts_with("     44 µs ▕██████████████ ") && lines[0].ends_with(" 1"), "{}", lines[0]);
        assert!(!lines[1].contains('█') && lines[1].contains("counts are logarithmic"), "{}", lines[1]);
        assert!(lines.iter().all(|line| width(line) <= 80));
    }

    #[test]
    fn figures_in_parentheses_are_aligned_with_the_others() {
        let column = |heading: &str, cells: [&str; 4]| ColumnView {
            heading: heading.into(),
            cells: cells.map(str::to_owned).into(),
        };
        let columns = vec![
            column("p50", ["4.18", "±0.2", "(1,210)", "≥ 310"]),
            column("p99", ["(12.3)", "n/a", "(lost)", "≥ 3.10"]),
            column("p99.9", ["lost", "", "(123)", "≥ 61.5"]),
        ];
        let rows = vec![RowView { label: String::new(), quiet: false }; 4];
        let groups = vec![GroupView { heading: String::new(), columns }];
        let lines = draw_table(&TableView { rows, groups, ..TableView::default() }, Style::PLAIN);
        let expected = [
            "        p50     p99   p99.9",
            "       4.18  (12.3)    lost",
            "      ±0.2      n/a",
            "  (1,210)     (lost) (123)",
            "   ≥ 310     ≥ 3.10  ≥ 61.5",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn columns_are_narrow_where_the_table_would_be_split() {
        let column = |cell: &str| ColumnView { heading: "p9".into(), cells: vec![cell.into()] };
        let drawn = |cells: &[&str]| {
            let columns = cells.iter().map(|cell| column(cell)).collect();
            let groups = vec![GroupView { heading: String::new(), columns }];
            let rows = vec![RowView { label: String::new(), quiet: false }];
            let style = Style { width: 20, ..Style::PLAIN };
            draw_table(&TableView { rows, groups, ..TableView::default() }, style)
        };
        assert_eq!(drawn(&["1.2", "(3)"]), ["      p9      p9", "     1.2      (3)"]);
        assert_eq!(drawn(&["1.2", "3.4", "(56.7)"]), ["    p9    p9     p9", "   1.2   3.4  (56.7)"]);
        assert_eq!(drawn(&["1.2", "3.4", "5.6", "7.8", "9.0"]).len(), 8, "in three pieces of usual width");
    }

    #[test]
    fn row_labels_are_distinct() {
        let bucket = |low_ns| Bucket { low_ns, high_ns: low_ns + 1, count: 1 };
        let view = histogram(&[100_010, 100_020, 100_030].map(bucket)).expect("counts");
        let labels: Vec<_> = view.bars.iter().map(|bar| bar.from.as_str()).collect();
        assert_eq!(labels, ["100.01 µs", "100.02 µs", "100.03 µs"]);
    }

    #[test]
    fn an_empty_histogram_is_omitted() {
        assert_eq!(histogram(&[]), None);
        assert_eq!((blocks(0.0).as_str(), blocks(1e-9).as_str()), ("", "▏"));
    }

    #[test]
    fn without_colour_no_escape_sequence_is_added() {
        assert_eq!(Style::PLAIN.alarm("fatal"), "fatal");
        let style = Style { colour: Colour::marked(7), width: 80 };
        assert_eq!((style.alarm("x"), style.quiet("")), ("\x1b[31;7mx\x1b[0;7m".into(), String::new()));
    }

    #[test]
    fn lines_are_wrapped_at_spaces_by_characters() {
        assert_eq!(wrap("µµµ µµ µ", 6), ["µµµ µµ", "µ"]);
        assert_eq!(wrap("a incomprehensible b", 5), ["a", "incomprehensible", "b"]);
        assert!(wrap("  ", 5).is_empty());
    }
}
