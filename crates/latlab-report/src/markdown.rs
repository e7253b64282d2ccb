//! Rendering of reports as Markdown. Plots and histograms are left out: Markdown has none.

use super::view::{CaveatView, ColumnView, Part, TableView, TextBlock};
use crate::diagnostics::Severity;

/// Renders the parts with a final newline.
pub fn render(parts: &[Part]) -> String {
    parts.iter().map(part).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

fn part(part: &Part) -> String {
    let paragraphs = |texts: &[String]| texts.iter().map(|text| escaped(text) + "\n").collect::<Vec<_>>().join("\n");
    match part {
        Part::Heading(heading) => format!("**{}**\n", escaped(heading)),
        Part::Notes(notes) => paragraphs(notes),
        Part::Table(table) => self::table(table),
        Part::Text(block) => fenced(block),
        Part::Histogram(_) | Part::Figure(_) => String::new(),
        Part::Remarks(remarks) => {
            let line = |label: &str, text: &str| format!("- {}: {}\n", escaped(label), escaped(text));
            remarks.iter().map(|remark| line(&remark.label, &remark.text)).collect()
        }
        Part::Caveats(caveats) => {
            let serious = caveats.iter().filter(|caveat| caveat.severity > Severity::Note);
            serious.map(caveat).collect::<Vec<_>>().join("\n")
        }
        Part::Recordings { paths, .. } => paragraphs(paths),
        Part::Details(title, parts) => format!("{}:\n\n{}", escaped(title), render(parts)),
    }
}

fn caveat(CaveatView { message, effect, .. }: &CaveatView) -> String {
    let effect = if effect.is_empty() { String::new() } else { format!("  \n> effect: {}", escaped(effect)) };
    format!("> **warning:** {}{effect}\n", escaped(message))
}

/// A block of fixed-width text, which no line of it can end.
fn fenced(block: &TextBlock) -> String {
    let title = if block.title.is_empty() { String::new() } else { format!("{}\n", block.title) };
    let text = title + block.text.trim_end();
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}text\n{text}\n{fence}\n")
}

/// A table, whose rows have what they stand among and their notes in cells.
fn table(table: &TableView) -> String {
    let columns: Vec<&ColumnView> = table.columns().collect();
    let has_sections = table.rows.iter().any(|row| !row.section.is_empty());
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let beginning = |section: &str, label: &str| -> Vec<String> {
        has_sections.then(|| section.to_owned()).into_iter().chain([label.to_owned()]).collect()
    };
    let headings = columns.iter().map(|column| escaped(&column.heading));
    let rule = columns.iter().map(|column| if column.is_words { "---" } else { "---:" }.to_owned());
    let mut out = line(&beginning("", &escaped(&table.corner)).into_iter().chain(headings).collect::<Vec<_>>());
    out += &line(&beginning("---", "---").into_iter().chain(rule).collect::<Vec<_>>());
    let noted = columns.iter().rposition(|column| column.is_words);
    for (number, row) in table.rows.iter().enumerate() {
        let label: Vec<&str> = row.levels.iter().chain([&row.label]).map(String::as_str).collect();
        let cell = |(place, column): (usize, &&ColumnView)| match row.notes.as_slice() {
            [_, ..] if Some(place) == noted => escaped(&format!("{}: {}", column.cells[number], row.notes.join("; "))),
            _ => escaped(&column.cells[number]),
        };
        let cells = columns.iter().enumerate().map(cell);
        out += &line(
            &beginning(&escaped(&row.section), &escaped(&label.join(", ")))
                .into_iter()
                .chain(cells)
                .collect::<Vec<_>>(),
        );
    }
    let notes = [table.title.as_str(), &table.note].into_iter().chain(table.legend.lines());
    let notes: String = notes.filter(|note| !note.is_empty()).map(|note| format!("\n{}\n", escaped(note))).collect();
    out + &notes
}

/// Escapes characters that end a cell or begin markup. In code spans only bars are escaped: they end a cell, but
/// markup and entities have no effect. Grave accents that are not all single and in pairs begin no code span.
pub(crate) fn escaped(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let parts: Vec<&str> = text.split('`').collect();
    // A grave accent within a name must not pair with another. Two in a row are another mark than one.
    let is_paired = parts.len() % 2 == 1 && !text.contains("``");
    let each = parts.iter().enumerate().map(|(place, part)| match is_paired && place % 2 == 1 {
        true => part.replace('|', "\\|"),
        false => {
            let part = part.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*");
            // The middle of a link or an image.
            part.replace("](", "]\\(")
        }
    });
    each.collect::<Vec<_>>().join(if is_paired { "`" } else { "\\`" })
}

#[cfg(test)]
mod tests {
    use super::{TextBlock, escaped, fenced};

    #[test]
    fn code_spans_are_not_escaped() {
        for (text, shown) in [
            ("gate `p50 <= +5%` met for `<a|b>`", "gate `p50 <= +5%` met for `<a\\|b>`"),
            ("a*b <c>\nd", "a\\*b &lt;c> d"),
            ("one ` <b>", "one \\` &lt;b>"),
            ("``a```<b>`", "\\`\\`a\\`\\`\\`&lt;b>\\`"),
            ("![a](http://b)", "![a]\\(http://b)"),
        ] {
            assert_eq!(escaped(text), shown);
        }
    }

    #[test]
    fn no_line_of_a_block_ends_it() {
        let block = |text: &str| fenced(&TextBlock { title: String::new(), text: text.into() });
        assert_eq!(block("gate `p50 <= 1s` met"), "```text\ngate `p50 <= 1s` met\n```\n");
        assert_eq!(block("a\n````\n<b>"), "`````text\na\n````\n<b>\n`````\n");
    }
}
