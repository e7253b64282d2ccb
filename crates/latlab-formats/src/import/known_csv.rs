//! Tables that are known: CSV files of tools by their first line (JMeter's JTL files, what hey and vegeta write, whose samples
//! that failed keep their values, as in the tools' own reports), and files of numbers in the unit that the user states.

use super::csv::{self, NOTHING};
use super::field::{is_decimal_comma, is_not_finite};
use super::prelude::*;

pub(super) const NUMBERS: TableKind = TableKind { tool: "numbers", delimiter: Some(NOTHING), ..csv::UNKNOWN };
pub(super) const HEY: TableKind = of_tool("hey", "response-time", TimeUnit::Seconds);
pub(super) const JMETER: TableKind = of_tool("JMeter", "elapsed", TimeUnit::Millis);
pub(super) const VEGETA: TableKind = of_tool("vegeta", "3", TimeUnit::Nanos);

/// The measured rows of one run, of the tables of which the first column is a delay.
pub(super) const LATLAB: TableKind = TableKind {
    only: &[("run", &[]), ("phase", &["measure"]), ("fate", &["answered", "late", "lost"])],
    ..of_tool("latlab", "1", TimeUnit::Nanos)
};

const fn of_tool(tool: &'static str, column: &'static str, unit: TimeUnit) -> TableKind {
    TableKind { tool, column: Some(column), unit: Some(unit), ..csv::UNKNOWN }
}

/// Whether the first line has all of these texts.
pub(super) fn begins(head: &LogHead<'_>, texts: &[&str]) -> bool {
    texts.iter().all(|text| memmem::find(first_line(head), text.as_bytes()).is_some())
}

/// Whether the lines are one number each. Some may be `nan` or `inf`; behind the first one they may have decimal commas.
pub(super) fn are_numbers(head: &LogHead<'_>) -> bool {
    let lines = || head.lines().filter(|line| !line.starts_with(b"#"));
    let is_value = |line| whole(line).time(TimeUnit::Nanos).is_ok() || is_not_finite(line);
    lines().next().is_some_and(is_value) && are_rows(lines(), |line| is_value(line) || is_decimal_comma(line))
}

fn first_line<'a>(head: &LogHead<'a>) -> &'a [u8] {
    head.lines().next().unwrap_or_default()
}

/// Whether the first line has a time in ns, a status of HTTP, a latency in ns, and at least the five cells of old versions.
pub(super) fn is_vegeta(head: &LogHead<'_>) -> bool {
    let cells: Vec<&[u8]> = first_line(head).split(|byte| *byte == b',').collect();
    let is_number = |cell: &&[u8]| !cell.is_empty() && cell.iter().all(u8::is_ascii_digit);
    cells.len() >= 6 && cells[..5].iter().all(is_number) && cells[0].len() == 19 && cells[1].len() <= 3
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::super::{LogFault, LogOptions};
    use super::*;

    fn values(options: &LogOptions, text: &str) -> Result<Vec<Option<i64>>, LogFault> {
        let (block, end) = read("numbers", options, false, text.as_bytes())?;
        assert_eq!((&*end.facts.tool, end.facts.value_unit), ("numbers", options.unit));
        assert!(block.values.iter().zip(0..).all(|(row, seq)| (row.seq, row.count) == (Some(seq), 1)), "{text}");
        Ok(block.values.iter().map(|row| row.value_ns).collect())
    }

    #[test]
    fn each_line_is_a_value_in_the_unit_of_the_user() {
        let micros = LogOptions { unit: Some(TimeUnit::Micros), ..LogOptions::default() };
        let read = |text| values(&micros, text).expect(text);
        assert_eq!(
            read("# one\r\n12\r\n\r\n  0.5 \n1e3\n+7\n-2\n0.0004\n*"),
            [Some(12_000), Some(500), Some(1_000_000), Some(7_000), None, Some(0), None]
        );
        assert_eq!(read("12,25\n0,5\n1,500\n"), [Some(12_250), Some(500), Some(1_500)], "decimal commas");
        let kept = LogOptions { lost: Some("-".into()), ..micros.clone() };
        assert_eq!(values(&kept, "-2\n-\n7\n").expect("numbers"), [Some(-2_000), None, Some(7_000)]);
        for (text, line, what) in [
            ("1,234\n", 1, "`1,234` has a decimal comma or a separator of thousands"),
            ("1\n1,234.5\n", 2, "`1,234.5` has separators of thousands"),
            ("1\ninf\n", 2, "`inf` is not a number"),
        ] {
            let fault = values(&micros, text).expect_err(text);
            assert_eq!((fault.line, &*fault.what), (Some(line), what), "{text}");
        }
        let fault = values(&LogOptions::default(), "1\n2\n").expect_err("no unit");
        assert_eq!((fault.line, fault.hint.as_deref()), (None, Some("add `--unit ns|us|ms|s`")));
    }
}
