//! Files of numbers: one value on each line. The unit is that which the user states.

use super::csv::{self, NOTHING, TableKind};
use super::field::{is_decimal_comma, is_not_finite, whole};
use super::log::are_rows;
use super::{LogFormat, LogHead, LogReader};
use crate::plan::Kind;
use crate::units::human::TimeUnit;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "numbers",
    title: "one number on each line",
    rows: Kind::Values,
    is_generic: true,
    options: &["--unit", "--lost", "--metric"],
    states_losses: false,
    detects,
    reader: LogReader::Table(|options, head| csv::open(COLUMN, options, head)),
};

const COLUMN: TableKind = TableKind { tool: "numbers", delimiter: Some(NOTHING), column: None, unit: None };

/// Whether the lines are one number each. Some may be `nan` or `inf`; behind the first one they may have decimal commas.
fn detects(head: &LogHead<'_>) -> bool {
    let lines = || head.lines().filter(|line| !line.starts_with(b"#"));
    let is_value = |line| whole(line).time(TimeUnit::Nanos).is_ok() || is_not_finite(line);
    lines().next().is_some_and(is_value) && are_rows(lines(), |line| is_value(line) || is_decimal_comma(line))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::super::{LogFault, LogOptions};
    use super::*;

    fn values(options: &LogOptions, text: &str) -> Result<Vec<Option<i64>>, LogFault> {
        let (block, end) = read(&FORMAT, options, false, text.as_bytes())?;
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
            ("1\nhello\n2\n", 2, "`hello` is not a number"),
            ("1\n 1 2\n", 2, "`1 2` is not a number"),
            ("1,234\n", 1, "`1,234` has a decimal comma or a separator of thousands"),
            ("1.5\n2,5\n", 2, "`2,5` is not a number"),
            ("1\n1,234.5\n", 2, "`1,234.5` has separators of thousands"),
            ("1\ninf\n", 2, "`inf` is not a number"),
            ("7 ms\n", 1, "`7 ms` is not a number"),
        ] {
            let fault = values(&micros, text).expect_err(text);
            assert_eq!((fault.line, &*fault.what), (Some(line), what), "{text}");
        }
        let fault = values(&LogOptions::default(), "1\n2\n").expect_err("no unit");
        assert_eq!((fault.line, fault.hint.as_deref()), (None, Some("add `--unit ns|us|ms|s`")));
    }

    #[test]
    fn files_of_which_half_the_lines_are_numbers_are_detected() {
        for text in [&b"# a\n1\n\n2.5\r\n"[..], b"-1e-5", b"1\nx\n", b"1\n2\n1,5\n", b"nan\n5\n6\n"] {
            assert!(is_detected(&FORMAT, text), "{}", String::from_utf8_lossy(text));
        }
        for text in ["", "# a\n", "x\n1\n2\n", "1\nx\ny\n", "1 2\n", "1,2\n", "rtt\n1\n", "0: 0: 5\n", "{}\n"] {
            assert!(!is_detected(&FORMAT, text.as_bytes()), "{text:?}");
        }
    }
}
