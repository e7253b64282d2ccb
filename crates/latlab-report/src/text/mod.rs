//! Rendering of a view as text of any width from 40 columns on, with the same words with and without colour: colour and
//! line wrapping, choice of caveats, tables and histograms.

mod style;
mod tables;
mod wrap;

use super::view::{CaveatView, HistogramView, Part};
use crate::diagnostics::{Caveat, Severity};
pub(super) use crate::units::human::columns as width;
pub use style::{CaveatChoice, Style};
use style::{INDENT, LABEL};
pub(super) use style::{flush_left, flush_right};
pub(super) use tables::{behind_point, draw_table, is_parenthesised};
pub use wrap::wrap;

/// Renders the parts with a final newline: a blank line between them, but not between lines with labels, nor between a
/// heading and the notes below it.
pub fn render(parts: &[Part], style: Style) -> String {
    let mut text = String::new();
    let mut before: Option<&Part> = None;
    for part in parts {
        let lines = part_lines(part, style);
        if lines.is_empty() {
            continue;
        }
        let is_labelled = |part: &Part| matches!(part, Part::Remarks(_) | Part::Caveats(_) | Part::Recordings { .. });
        let is_near = |before: &Part| {
            (is_labelled(before) && is_labelled(part)) || matches!((before, part), (Part::Heading(_), Part::Notes(_)))
        };
        if before.is_some_and(|before| !is_near(before)) {
            text.push('\n');
        }
        text.extend(lines.into_iter().map(|line| line + "\n"));
        before = Some(part);
    }
    text
}

fn part_lines(part: &Part, style: Style) -> Vec<String> {
    match part {
        Part::Heading(heading) => wrap(heading, style.width),
        Part::Notes(notes) => notes.iter().flat_map(|note| wrap(note, style.width)).collect(),
        Part::Table(table) => draw_table(table, style),
        Part::Text(block) => {
            let title = (!block.title.is_empty()).then(|| block.title.clone());
            title.into_iter().chain(block.text.lines().map(str::to_owned)).collect()
        }
        Part::Histogram(histogram) => draw_histogram(histogram, style),
        // `text_plots` draws plots in characters.
        Part::Figure(_) => Vec::new(),
        Part::Remarks(remarks) => {
            remarks.iter().flat_map(|remark| labelled(&remark.label, "", &remark.text, style)).collect()
        }
        Part::Caveats(caveats) => caveat_lines(caveats, style),
        Part::Recordings { paths, of_store } => recording_lines(paths, *of_store, style),
        Part::Details(title, parts) => {
            let title = wrap(title, style.width).into_iter().map(|line| style.strong(&line));
            title.chain(render(parts, style).lines().map(str::to_owned)).collect()
        }
    }
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

/// The chosen ones of `caveats`, whose order is that of their effect, and what `-v` would add.
pub(super) fn caveat_lines(caveats: &[CaveatView], style: Style) -> Vec<String> {
    let chosen: Vec<&CaveatView> = caveats.iter().filter(|caveat| style.caveats.may_show(caveat)).collect();
    let is_whole = style.caveats == CaveatChoice::All;
    let (shown, others) = chosen.split_at(if is_whole { chosen.len() } else { CAVEATS.min(chosen.len()) });
    let label = |number: usize| if number == 1 { "caveats" } else { "" };
    let lines = shown.iter().zip(1..).flat_map(|(caveat, number)| one_caveat(label(number), number, caveat, style));
    let others = counted(others.iter().map(|caveat| caveat.severity)).map(|counts| format!("and {counts} more; "));
    let is_cut = shown.iter().any(|caveat| !is_in_full(caveat, style) && is_shortened(caveat));
    let rest =
        (is_cut || others.is_some()).then(|| format!("{}`-v` shows effects and hints", others.unwrap_or_default()));
    lines.chain(rest.into_iter().flat_map(|rest| labelled("", " ", &rest, style))).collect()
}

/// Whether effect and hint have lines of their own. Those of a fatal caveat always have.
fn is_in_full(caveat: &CaveatView, style: Style) -> bool {
    style.caveats == CaveatChoice::All || caveat.severity == Severity::Fatal
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

/// Whether its line lacks something; the effect of a note is small and always omitted.
fn is_shortened(caveat: &CaveatView) -> bool {
    let lacks_hint = !caveat.hint.is_empty() && Caveat::line(&caveat.message, &caveat.hint) == caveat.message;
    lacks_hint || (caveat.severity > Severity::Note && !caveat.effect.is_empty())
}

/// Formats the observation of a caveat, and in full its effect and remedy.
fn one_caveat(label: &str, number: usize, caveat: &CaveatView, style: Style) -> Vec<String> {
    let number = number.to_string();
    let (word, painted) = match caveat.severity {
        Severity::Note => ("", String::new()),
        Severity::Warning => ("warning:", style.warn("warning:")),
        Severity::Fatal => ("fatal:", style.alarm("fatal:")),
    };
    let is_in_full = is_in_full(caveat, style);
    let text = if is_in_full { caveat.message.clone() } else { Caveat::line(&caveat.message, &caveat.hint) };
    let mut lines = labelled(label, &number, &format!("{word} {text}"), style);
    if let Some(first) = lines.iter_mut().find(|line| !word.is_empty() && line.contains(word)) {
        *first = first.replacen(word, &painted, 1);
    }
    let mark = " ".repeat(width(&number));
    let effect = (caveat.severity > Severity::Note).then_some(("effect", &caveat.effect));
    let lower = effect.into_iter().chain([("hint", &caveat.hint)]);
    for (word, text) in lower.filter(|(_, text)| is_in_full && !text.is_empty()) {
        lines.extend(labelled("", &mark, &format!("{word}: {text}"), style));
    }
    lines
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Colour;
    use crate::figures::histogram;
    use crate::stats::Bucket;
    use crate::view::{ColumnView, GroupView, RowView, TableView};

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
        let column = |heading: &str, cells: [&str; 4]| ColumnView::figures(heading, cells.map(str::to_owned));
        let columns = vec![
            column("p50", ["4.18", "±0.2", "(1,210)", "≥ 310"]),
            column("p99", ["(12.3)", "n/a", "(lost)", "≥ 3.10"]),
            column("p99.9", ["lost", "", "(123)", "≥ 61.5"]),
        ];
        let rows = vec![RowView::default(); 4];
        let lines = draw_table(&TableView::of("", rows, columns), Style::PLAIN);
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
        let column = ColumnView::figures("n", ["1", "2"].map(str::to_owned));
        let rows = ["at=東京", "at=x"].map(RowView::of).into();
        let lines = draw_table(&TableView::of("", rows, vec![column]), Style::PLAIN);
        assert_eq!(lines, ["               n", "at=東京        1", "   at=x        2"]);
    }

    #[test]
    fn columns_are_narrow_where_the_table_would_be_split() {
        let column = |cell: &str| ColumnView::figures("p9", [cell.to_owned()]);
        let drawn = |cells: &[&str]| {
            let columns = cells.iter().map(|cell| column(cell)).collect();
            let style = Style { width: 20, ..Style::PLAIN };
            draw_table(&TableView::of("", vec![RowView::default()], columns), style)
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
        assert_eq!(
            shown(&all, CaveatChoice::Foremost),
            rest("and 1 warning and 2 notes more; `-v` shows effects and hints")
        );
        assert_eq!(shown(&all, CaveatChoice::Warnings), rest("and 1 warning more; `-v` shows effects and hints"));
        assert_eq!(shown(&all, CaveatChoice::All).last().map(String::as_str), Some("7  n2"));
        assert_eq!(shown(&all[4..], CaveatChoice::Foremost), ["1  n1", "2  n2", "`-v` shows effects and hints"]);
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
        let column = |heading: &str| ColumnView::figures(heading, ["1,234", "±1"].map(str::to_owned));
        let unit = ColumnView::figures("", ["µs", ""].map(str::to_owned));
        let columns = ["min", "mean", "p50", "p90", "p99", "max"].map(column).into_iter().chain([unit]).collect();
        let table = TableView {
            title: "round trip delay".into(),
            note: "n 203,118 · lost 0 · late 12".into(),
            rows: ["20261121T021500Z-ping-7f3a", ""].map(RowView::of).into(),
            groups: vec![GroupView::plain(columns)],
            ..TableView::default()
        };
        let drawn = draw_table(&table, style);
        assert_eq!(drawn[..2], ["round trip delay", "n 203,118 · lost 0 · late 12"]);
        assert_eq!(drawn.iter().filter(|line| line.ends_with("  µs")).count(), 2, "each part has the unit: {drawn:#?}");
        assert_eq!(drawn.iter().filter(|line| *line == "20261121T021500Z-ping-7f3a").count(), 2, "{drawn:#?}");
        let heading = "round trip delay without reflector dwell";
        let groups = vec![GroupView { heading: heading.into(), columns: vec![column("")] }];
        let rows = ["p99.99", ""].map(RowView::of).into();
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
