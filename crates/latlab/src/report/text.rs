//! Rendering of a view as text in 80 columns, with the same words with and without colour: colour and line wrapping,
//! tables and histograms.

use super::view::{CaveatView, ColumnView, GroupView, HistogramView, ReportView, RowView, TableView};
use crate::diagnostics::Severity;

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
/// Smallest width of a column in characters.
const NARROWEST: usize = 6;

pub(super) fn draw_table(table: &TableView, style: Style) -> Vec<String> {
    let mut lines = table_title(table, style);
    let label_width = table.rows.iter().map(|row| width(&row.label)).chain([width(&table.corner)]).max().unwrap_or(0);
    // A table without labels has no extra indentation.
    let indent = if label_width == 0 { 0 } else { label_width + 1 };
    // If the labels take most of the line, lines exceed the width instead of splitting the table.
    let available = style.width.saturating_sub(indent).max(style.width / 2);
    let groups: Vec<Group> = table.groups.iter().flat_map(|group| fit(group, available)).collect();
    for (block, groups) in table_blocks(groups, available).into_iter().enumerate() {
        if block > 0 {
            lines.push(String::new());
        }
        lines.extend(draw_block(table, &groups, label_width, style));
    }
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

/// A group of columns with every cell padded to its column's width.
struct Group<'a> {
    heading: &'a str,
    headings: Vec<String>,
    cells: Vec<Vec<String>>,
    /// Width of the columns with their gaps.
    columns_width: usize,
}

impl Group<'_> {
    fn width(&self) -> usize {
        self.columns_width.max(GAP + width(self.heading))
    }
}

/// Pads the columns of `group` and splits a group that is too wide for the line.
fn fit(group: &GroupView, available: usize) -> Vec<Group<'_>> {
    let mut parts: Vec<Group> = Vec::new();
    for column in &group.columns {
        let (heading, cells) = align(column);
        let needed = GAP + width(&heading);
        match parts.last_mut().filter(|part| part.columns_width + needed <= available) {
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

/// Distributes the groups to blocks that fit the line.
fn table_blocks(groups: Vec<Group<'_>>, available: usize) -> Vec<Vec<Group<'_>>> {
    let mut blocks: Vec<Vec<Group>> = Vec::new();
    for group in groups {
        match blocks.last_mut() {
            Some(block) if block.iter().map(|other| other.width()).sum::<usize>() + group.width() <= available => {
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
        // Neither headings nor corner.
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

/// Returns the line of a row; `None` for an annotation row without content.
fn draw_row(row: &RowView, cells: &str, label_width: usize, style: Style) -> Option<String> {
    if row.quiet && cells.is_empty() {
        return None;
    }
    let label = if label_width == 0 { String::new() } else { format!("{:>label_width$} ", row.label) };
    let line = format!("{label}{cells}");
    Some(if row.quiet { style.quiet(&line) } else { line })
}

/// Formats one line of a group, right-aligned to the group's width.
fn line_of<'a>(group: &Group<'_>, texts: impl Iterator<Item = &'a String>) -> String {
    let line: String = texts.map(|text| format!("{}{text}", " ".repeat(GAP))).collect();
    format!("{}{line}", " ".repeat(group.width().saturating_sub(width(&line))))
}

/// Pads the heading and cells of a column to equal width with aligned decimal points.
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

/// Returns the number of characters after the integer part, including the point; `None` for words and for intervals
/// with two ends, which are right-aligned.
fn behind_point(cell: &str) -> Option<usize> {
    let number = cell.trim_start_matches(['±', '≥', '≤', '−', '+', ' ', '<']);
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
    /// True if the terminal supports colour.
    pub colour: bool,
    /// Line width in columns; 80 suffices for all output.
    pub width: usize,
}

impl Style {
    /// No colour and 80 columns, for files, pipes and tests.
    pub const PLAIN: Style = Style { colour: false, width: 80 };

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
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
        let style = Style { colour: true, width: 80 };
        assert_eq!((style.alarm("x"), style.quiet("")), ("\x1b[31mx\x1b[0m".into(), String::new()));
    }

    #[test]
    fn lines_are_wrapped_at_spaces_by_characters() {
        assert_eq!(wrap("µµµ µµ µ", 6), ["µµµ µµ", "µ"]);
        assert_eq!(wrap("a incomprehensible b", 5), ["a", "incomprehensible", "b"]);
        assert!(wrap("  ", 5).is_empty());
    }
}
