//! Rendering of a view as text of any width from 40 columns on, with the same words with and without colour: colour and
//! line wrapping, choice of caveats, tables and histograms.

use super::view::{CaveatView, ColumnView, GroupView, HistogramView, ReportView, TableView};
use crate::diagnostics::{Colour, Severity};
pub(super) use crate::units::human::columns as width;

/// `text` with blanks behind it, up to `columns` columns.
pub(super) fn flush_left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// `text` with blanks in front of it, up to `columns` columns.
pub(super) fn flush_right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Width of the labels of remarks.
const LABEL: usize = 13;
/// In a narrower line a label has a line of its own, and the text below it this indentation.
const NARROW: usize = 60;
const INDENT: usize = 2;

/// Renders the report with a final newline.
pub fn render(view: &ReportView, style: Style) -> String {
    let mut sections: Vec<Vec<String>> = vec![wrap(&view.heading, style.width)];
    sections.extend(view.tables.iter().map(|each| draw_table(each, style)));
    sections.push(view.alike.clone());
    sections.extend(view.histogram.iter().map(|each| draw_histogram(each, style)));
    sections.push(view.gates.iter().flat_map(|line| wrap(line, style.width)).collect());
    let mut closing: Vec<String> = Vec::new();
    closing.extend(view.remarks.iter().flat_map(|remark| labelled(&remark.label, "", &remark.text, style)));
    closing.extend(caveat_lines(&view.caveats, style));
    closing.extend(recording_lines(&view.recordings, view.of_store, style));
    sections.push(closing);
    let sections = sections.into_iter().filter(|lines| !lines.is_empty());
    sections.map(|lines| lines.join("\n") + "\n").collect::<Vec<_>>().join("\n")
}

/// Formats as `label        mark  text` with hanging indentation.
pub(super) fn labelled(label: &str, mark: &str, text: &str, style: Style) -> Vec<String> {
    let mark_width = if mark.is_empty() { 0 } else { width(mark) + 2 };
    let lines = wrap(text, style.width.saturating_sub(style.indent() + mark_width).max(20));
    let marked = lines.iter().enumerate().map(|(number, line)| {
        let mark = format!("{:<mark_width$}", if number == 0 { mark } else { "" });
        format!("{mark}{line}")
    });
    indented(label, marked.collect(), style)
}

/// More recordings of one directory than this are counted, unless all details are asked for.
const RECORDINGS: usize = 4;

/// The path of each of `recordings`, or of the directory of many.
fn recording_lines(recordings: &[String], of_store: bool, style: Style) -> Vec<String> {
    let is_counted = of_store && style.caveats != CaveatChoice::All;
    if let Some(directory) = directory_of_many(recordings).filter(|_| is_counted) {
        let count = format!("{} recordings; `latlab list --store {directory}`", recordings.len());
        return [path_lines("recordings", directory, style), labelled("", "", &count, style)].concat();
    }
    let numbered = recordings.iter().enumerate();
    numbered.flat_map(|(number, path)| path_lines(if number > 0 { "" } else { "recording" }, path, style)).collect()
}

/// The directory of more than [`RECORDINGS`]; `None` of paths that the shell has to quote.
fn directory_of_many(recordings: &[String]) -> Option<&str> {
    let (first, _) = recordings.first()?.rsplit_once('/')?;
    let is_alike = |path: &String| path.rsplit_once('/').is_some_and(|(directory, _)| directory == first);
    let is_plain = !first.is_empty() && !first.contains('\'');
    (recordings.len() > RECORDINGS && is_plain && recordings.iter().all(is_alike)).then_some(first)
}

/// `path` behind `label`, or below it in a narrow line.
pub(super) fn path_lines(label: &str, path: &str, style: Style) -> Vec<String> {
    if style.indent() == LABEL {
        return indented(label, vec![path.to_owned()], style);
    }
    let label = (!label.is_empty()).then(|| style.quiet(label));
    label.into_iter().chain([unwrapped(path, INDENT, style)]).collect()
}

/// A path or command, which is not wrapped, so that it can be copied: behind `indent` columns, or behind fewer if it is too
/// long for the rest of the line.
pub(super) fn unwrapped(text: &str, indent: usize, style: Style) -> String {
    let is_fitting = |indent: &usize| indent + width(text) <= style.width;
    let indent = [indent, INDENT, 0].into_iter().find(is_fitting).unwrap_or(indent);
    format!("{}{text}", " ".repeat(indent))
}

/// `lines` behind `label`, or below it in a narrow line.
pub(super) fn indented(label: &str, lines: Vec<String>, style: Style) -> Vec<String> {
    let indent = style.indent();
    let is_above = indent < LABEL && !label.is_empty();
    let own_line = is_above.then(|| style.quiet(label));
    let behind = lines.into_iter().enumerate().map(|(number, line)| {
        let label = if number == 0 && !is_above { label } else { "" };
        format!("{}{line}", style.quiet(&flush_left(label, indent)))
    });
    own_line.into_iter().chain(behind).collect()
}

/// The most caveats that are shown unless all are asked for.
pub const CAVEATS: usize = 3;

/// Which caveats are shown as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaveatChoice {
    /// The first three that are not notes: `--quiet`.
    Warnings,
    /// The first three, without notes that nearly every run carries.
    #[default]
    Foremost,
    All,
}

impl CaveatChoice {
    fn may_show(self, caveat: &CaveatView) -> bool {
        match self {
            CaveatChoice::Warnings => caveat.severity > Severity::Note,
            CaveatChoice::Foremost => !caveat.is_routine,
            CaveatChoice::All => true,
        }
    }
}

/// The chosen ones of `caveats`, whose order is that of their effect, and the number of the others.
pub(super) fn caveat_lines(caveats: &[CaveatView], style: Style) -> Vec<String> {
    let chosen: Vec<&CaveatView> = caveats.iter().filter(|caveat| style.caveats.may_show(caveat)).collect();
    let most = if style.caveats == CaveatChoice::All { chosen.len() } else { CAVEATS.min(chosen.len()) };
    let (shown, others) = chosen.split_at(most);
    let label = |number: usize| if number == 1 { "caveats" } else { "" };
    let shown = shown.iter().zip(1..).flat_map(|(caveat, number)| one_caveat(label(number), number, caveat, style));
    let others = counted(others.iter().map(|caveat| caveat.severity))
        .map(|counts| labelled("", " ", &format!("and {counts} (`-v`)"), style));
    shown.chain(others.into_iter().flatten()).collect()
}

/// `2 warnings and 1 note`; `None` without any.
pub fn counted(caveats: impl Iterator<Item = Severity> + Clone) -> Option<String> {
    let count = |severity: Severity, noun: &str| {
        let count = caveats.clone().filter(|other| *other == severity).count();
        (count > 0).then(|| format!("{count} {noun}{}", if count == 1 { "" } else { "s" }))
    };
    let counts = [(Severity::Fatal, "fatal caveat"), (Severity::Warning, "warning"), (Severity::Note, "note")];
    let counts = counts.into_iter().filter_map(|(severity, noun)| count(severity, noun));
    counts.reduce(|all, one| format!("{all} and {one}"))
}

/// Formats the observation, effect and remedy of a caveat.
fn one_caveat(label: &str, number: usize, caveat: &CaveatView, style: Style) -> Vec<String> {
    let number = number.to_string();
    let (word, painted) = match caveat.severity {
        Severity::Note => ("", String::new()),
        Severity::Warning => ("warning:", style.warn("warning:")),
        Severity::Fatal => ("fatal:", style.alarm("fatal:")),
    };
    let mut lines = labelled(label, &number, &format!("{word} {}", caveat.message), style);
    if let Some(first) = lines.iter_mut().find(|line| !word.is_empty() && line.contains(word)) {
        *first = first.replacen(word, &painted, 1);
    }
    let mark = " ".repeat(width(&number));
    // The effect of a note is small and therefore omitted.
    let effect = (caveat.severity > Severity::Note).then_some(("effect", &caveat.effect));
    let lower = effect.into_iter().chain([("hint", &caveat.hint)]);
    for (word, text) in lower.filter(|(_, text)| !text.is_empty()) {
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
    for (block, groups) in whole.unwrap_or_else(|| blocks(NARROWEST)).into_iter().enumerate() {
        if block > 0 {
            lines.push(String::new());
        }
        lines.extend(draw_block(table, &groups, label_width, style));
    }
    let legend = table.legend.lines().flat_map(|line| wrap(line, style.width));
    lines.extend(legend.map(|line| style.quiet(&line)));
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
pub(super) fn body_width(cell: &str) -> usize {
    width(cell) - usize::from(is_parenthesised(cell))
}

/// Whether a cell has parentheses, as an interval below a figure has.
pub(super) fn is_parenthesised(cell: &str) -> bool {
    cell.starts_with('(') && cell.ends_with(')')
}

/// Returns the number of characters after the integer part, including the point; `None` for words and for intervals
/// with two ends, which are right-aligned.
pub(super) fn behind_point(cell: &str) -> Option<usize> {
    let bare = if is_parenthesised(cell) { &cell[1..cell.len() - 1] } else { cell };
    let number = bare.trim_start_matches(['±', '≥', '≤', '−', '+', ' ', '<']);
    let numeric = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b',');
    (!number.is_empty() && numeric).then(|| number.find('.').map_or(0, |point| number.len() - point))
}

/// Width of the longest bar in characters: as much as the line leaves.
const LONGEST: usize = 28;
const SHORTEST: usize = 8;
/// Smallest width of the lower bounds of the buckets in characters.
const FROM: usize = 10;
/// Block characters of one to seven eighths.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
const LEGEND: &str = "bars are logarithmic";

fn draw_histogram(view: &HistogramView, style: Style) -> Vec<String> {
    let from_width = view.bars.iter().map(|bar| width(&bar.from)).max().unwrap_or(0).max(FROM);
    let count_width = view.bars.iter().map(|bar| width(&bar.count)).max().unwrap_or(0);
    // Between bound, bar and count are three characters.
    let longest = style.width.saturating_sub(from_width + count_width + 4).clamp(SHORTEST, LONGEST);
    let is_beside = from_width + longest + count_width + 4 + 3 + width(LEGEND) <= style.width;
    let middle = view.bars.len() / 2;
    let legend =
        |row: usize| if row == middle && is_beside { style.quiet(&format!("   {LEGEND}")) } else { String::new() };
    let lines = view.bars.iter().enumerate().map(|(row, bar)| {
        let bar_text = blocks(bar.length, longest);
        let pad = " ".repeat((longest + 1).saturating_sub(width(&bar_text)));
        let count = format!("{:>count_width$}", bar.count);
        format!("{:>from_width$} ▕{bar_text}{pad} {count}{}", bar.from, legend(row))
    });
    lines.chain((!is_beside).then(|| style.quiet(LEGEND))).collect()
}

/// Draws a bar of relative `length`, 1 for `longest` characters, in eighths of a character; empty only for length 0.
fn blocks(length: f64, longest: usize) -> String {
    let least = if length > 0.0 { 1 } else { 0 };
    let eighths = ((length.clamp(0.0, 1.0) * longest as f64 * 8.0).round() as usize).max(least);
    let mut text = "█".repeat(eighths / 8);
    text.extend((eighths % 8).checked_sub(1).map(|part| EIGHTHS[part]));
    text
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub colour: Colour,
    pub width: usize,
    pub caveats: CaveatChoice,
}

impl Style {
    /// No colour and 80 columns, for files, pipes and tests.
    pub const PLAIN: Style = Style { colour: Colour::OFF, width: 80, caveats: CaveatChoice::Foremost };
    /// The least width: in a narrower terminal the lines of this width are cut or wrapped.
    const LEAST_WIDTH: usize = 40;

    /// For a terminal of `columns`; of 80 without one.
    pub fn new(colour: Colour, columns: Option<u16>, caveats: CaveatChoice) -> Style {
        let width = columns.map_or(Style::PLAIN.width, |columns| usize::from(columns).max(Style::LEAST_WIDTH));
        Style { colour, width, caveats }
    }

    /// Indentation of text with labels.
    pub(super) fn indent(self) -> usize {
        if self.width < NARROW { INDENT } else { LABEL }
    }

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
        self.paint("35", text)
    }
}

/// Wraps `text` at spaces to lines of at most `available` columns. A figure is not separated from its sign and unit, nor text
/// in backticks, unless it is longer than a line; a longer word is not broken.
pub fn wrap(text: &str, available: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut add = |piece: &str| match lines.last_mut() {
        Some(line) if width(line) + 1 + width(piece) <= available => {
            line.push(' ');
            line.push_str(piece);
        }
        _ => lines.push(piece.to_owned()),
    };
    for piece in pieces(text) {
        match width(&piece) <= available {
            true => add(&piece),
            false => piece.split(' ').for_each(&mut add),
        }
    }
    lines
}

/// The parts of `text` that stay in one line, each of one or more words.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut previous = "";
    for word in text.split_whitespace() {
        let is_code = |piece: &String| piece.matches('`').count() % 2 == 1;
        match pieces.last_mut().filter(|piece| is_code(piece) || is_one_figure(previous, word)) {
            Some(piece) => *piece += &format!(" {word}"),
            None => pieces.push(word.to_owned()),
        }
        previous = word;
    }
    pieces
}

/// Symbols of units, as they stand behind a figure.
const UNITS: [&str; 32] = [
    "ns",
    "µs",
    "ms",
    "s",
    "min",
    "h",
    "d",
    "%",
    "B",
    "kB",
    "KiB",
    "MB",
    "MiB",
    "GB",
    "GiB",
    "bit/s",
    "kbit/s",
    "Mbit/s",
    "Gbit/s",
    "B/s",
    "kB/s",
    "MB/s",
    "GB/s",
    "pps",
    "kpps",
    "Mpps",
    "packets/s",
    "samples/s",
    "kHz",
    "MHz",
    "GHz",
    "°C",
];

/// Whether the words are a figure with its unit, a sign with its figure, or a text with the separator behind it.
fn is_one_figure(word: &str, next: &str) -> bool {
    let is_sign = matches!(word.trim_start_matches('('), "≥" | "≤" | "<" | ">" | "±" | "n" | "%:");
    let begins_with_digit = next.starts_with(|char: char| char.is_ascii_digit());
    let ends_in_digit = word.ends_with(|char: char| char.is_ascii_digit());
    let is_unit = UNITS.contains(&next.trim_end_matches([',', '.', ';', ':', ')', ']']));
    next == "·" || (is_sign && begins_with_digit) || (ends_in_digit && is_unit)
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
        assert!(!lines[1].contains('█') && lines[1].contains("bars are logarithmic"), "{}", lines[1]);
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
    fn labels_with_wide_characters_are_aligned_by_columns() {
        let column = ColumnView { heading: "n".into(), cells: vec!["1".into(), "2".into()] };
        let rows = ["at=東京", "at=x"].map(|label| RowView { label: label.into(), quiet: false }).into();
        let groups = vec![GroupView { heading: String::new(), columns: vec![column] }];
        let lines = draw_table(&TableView { rows, groups, ..TableView::default() }, Style::PLAIN);
        assert_eq!(lines, ["               n", "at=東京        1", "   at=x        2"]);
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
        assert_eq!((blocks(0.0, 28).as_str(), blocks(1e-9, 28).as_str()), ("", "▏"));
    }

    #[test]
    fn without_colour_no_escape_sequence_is_added() {
        assert_eq!(Style::PLAIN.alarm("fatal"), "fatal");
        let style = Style { colour: Colour::marked(7), ..Style::PLAIN };
        assert_eq!((style.alarm("x"), style.quiet("")), ("\x1b[31;7mx\x1b[0;7m".into(), String::new()));
    }

    fn caveat(severity: Severity, is_routine: bool, message: &str) -> CaveatView {
        CaveatView { severity, is_routine, message: message.into(), effect: "e".into(), hint: "h".into() }
    }

    #[test]
    fn three_caveats_are_shown_and_the_others_counted() {
        use Severity::{Note, Warning};
        let all = [
            caveat(Warning, false, "w1"),
            caveat(Warning, false, "w2"),
            caveat(Warning, false, "w3"),
            caveat(Warning, false, "w4"),
            caveat(Note, false, "n1"),
            caveat(Note, true, "usual"),
            caveat(Note, false, "n2"),
        ];
        let shown = |caveats: &[CaveatView], choice| {
            let lines = caveat_lines(caveats, Style { caveats: choice, ..Style::PLAIN });
            let words = lines.iter().map(|line| line.trim_start_matches("caveats").trim().to_owned());
            words.filter(|line| !line.starts_with("effect") && !line.starts_with("hint")).collect::<Vec<_>>()
        };
        let first = ["1  warning: w1", "2  warning: w2", "3  warning: w3"];
        let rest = |last| [&first[..], &[last]].concat();
        assert_eq!(shown(&all, CaveatChoice::Foremost), rest("and 1 warning and 2 notes (`-v`)"));
        assert_eq!(shown(&all, CaveatChoice::Warnings), rest("and 1 warning (`-v`)"));
        assert_eq!(shown(&all, CaveatChoice::All).last().map(String::as_str), Some("7  n2"));
        assert_eq!(shown(&all[4..], CaveatChoice::Foremost), ["1  n1", "2  n2"]);
        assert!(shown(&all[4..], CaveatChoice::Warnings).is_empty());
    }

    #[test]
    fn a_narrow_terminal_has_no_longer_lines() {
        let style = Style::new(Colour::OFF, Some(30), CaveatChoice::All);
        assert_eq!((style.width, Style::new(Colour::OFF, None, CaveatChoice::All).width), (40, 80));
        let message = "the frequency governor of this host is `ondemand`, which changes its clock rate";
        let lines = caveat_lines(&[caveat(Severity::Warning, false, message)], style);
        assert_eq!(lines[..2], ["caveats", "  1  warning: the frequency governor of"], "{lines:?}");
        let bucket = |low_ns, count| Bucket { low_ns, high_ns: low_ns * 2, count };
        let bars = histogram(&[bucket(44_000, 1), bucket(88_000, 1_000_000)]).expect("counts");
        let column = |heading: &str| ColumnView { heading: heading.into(), cells: vec!["1,234".into(), "±1".into()] };
        let unit = ColumnView { heading: String::new(), cells: vec!["µs".into(), String::new()] };
        let columns = ["min", "mean", "p50", "p90", "p99", "max"].map(column).into_iter().chain([unit]).collect();
        let table = TableView {
            title: "round trip delay".into(),
            note: "n 203,118 · lost 0 · late 12".into(),
            rows: ["20261121T021500Z-ping-7f3a", ""].map(|label| RowView { label: label.into(), quiet: false }).into(),
            groups: vec![GroupView { heading: String::new(), columns }],
            ..TableView::default()
        };
        let drawn = draw_table(&table, style);
        assert_eq!(drawn[..2], ["round trip delay", "n 203,118 · lost 0 · late 12"]);
        assert_eq!(drawn.iter().filter(|line| line.ends_with("  µs")).count(), 2, "each part has the unit: {drawn:#?}");
        assert_eq!(drawn.iter().filter(|line| *line == "20261121T021500Z-ping-7f3a").count(), 2, "{drawn:#?}");
        let heading = "round trip delay without reflector dwell";
        let groups = vec![GroupView { heading: heading.into(), columns: vec![column("")] }];
        let rows = ["p99.99", ""].map(|label| RowView { label: label.into(), quiet: false }).into();
        let headed = draw_table(&TableView { rows, groups, ..TableView::default() }, style);
        assert_eq!(headed, [heading, "p99.99    1,234", "             ±1"], "{headed:#?}");
        for line in lines.iter().chain(&draw_histogram(&bars, style)).chain(&drawn).chain(&headed) {
            assert!(width(line) <= 40, "{line}");
        }
    }

    #[test]
    fn a_path_or_command_keeps_its_line_as_long_as_that_is_wide_enough() {
        let narrow = Style::new(Colour::OFF, Some(40), CaveatChoice::All);
        for (length, indent) in [(29, 11), (30, 2), (38, 2), (39, 0), (40, 0), (41, 11)] {
            let line = unwrapped(&"x".repeat(length), 11, narrow);
            assert_eq!(width(&line) - length, indent, "{length}");
        }
        assert_eq!(path_lines("recording", "a/b", narrow), ["recording", "  a/b"]);
        assert_eq!(path_lines("", "a/b", narrow), ["  a/b"]);
        assert_eq!(path_lines("recording", "a/b", Style::PLAIN), ["recording    a/b"]);
    }

    #[test]
    fn many_recordings_of_one_directory_are_counted() {
        let paths = |count: usize| (0..count).map(|number| format!("st/{number}")).collect::<Vec<_>>();
        let counted = ["recordings   st", "             5 recordings; `latlab list --store st`"];
        assert_eq!(recording_lines(&paths(5), true, Style::PLAIN), counted);
        assert_eq!(recording_lines(&paths(4), true, Style::PLAIN).len(), 4);
        assert_eq!(recording_lines(&paths(5), false, Style::PLAIN).len(), 5, "those just measured are named");
        let elsewhere = [paths(5), vec!["other/1".into()]].concat();
        assert_eq!(recording_lines(&elsewhere, true, Style::PLAIN).len(), 6);
        assert_eq!(recording_lines(&paths(5), true, Style { caveats: CaveatChoice::All, ..Style::PLAIN }).len(), 5);
    }

    #[test]
    fn a_figure_is_not_separated_from_its_unit_and_sign() {
        assert_eq!(wrap("dds · took 2 s in all", 12), ["dds · took", "2 s in all"]);
        assert_eq!(wrap("was 48.3 % (95 %), n 200 ≥ 3.1 µs", 9), ["was", "48.3 %", "(95 %),", "n 200", "≥ 3.1 µs"]);
        assert_eq!(wrap("lost 1.67 % (95 %: 1.27–2.19 %)", 20), ["lost 1.67 %", "(95 %: 1.27–2.19 %)"]);
        assert_eq!(wrap("one · two", 5), ["one ·", "two"]);
        assert_eq!(wrap("use `--wait spin` now", 16), ["use", "`--wait spin`", "now"]);
        assert_eq!(wrap("use `--set a=b` now", 8), ["use", "`--set", "a=b` now"]);
    }

    #[test]
    fn lines_are_wrapped_at_spaces_by_characters() {
        assert_eq!(wrap("µµµ µµ µ", 6), ["µµµ µµ", "µ"]);
        assert_eq!(wrap("a incomprehensible b", 5), ["a", "incomprehensible", "b"]);
        assert!(wrap("  ", 5).is_empty());
    }
}
