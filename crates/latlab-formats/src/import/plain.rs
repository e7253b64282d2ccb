//! Files of numbers: one value on each line. The unit is that which the user states.

use super::field::{LogField, is_blank_or_comment, is_decimal_comma, is_not_finite, unit_of};
use super::log::are_rows;
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::LoggedValue;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::human::TimeUnit;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "numbers",
    title: "one number on each line",
    rows: Kind::Values,
    is_generic: true,
    options: &["--unit", "--metric"],
    states_losses: false,
    detects,
    reader: LogReader::Lines(open),
};

fn open(options: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    let unit = unit_of(None, options.unit)?;
    Ok(Box::new(PlainNumbers {
        unit,
        metric: options.metric.unwrap_or(Metric::Delay),
        rows: 0,
        has_finer_digits: false,
    }))
}

/// Whether the lines are one number each. Some may be `nan` or `inf`, which is a fault later; behind the first one they may have
/// decimal commas, which is a fault with a hint later.
fn detects(head: &LogHead<'_>) -> bool {
    let lines = || head.lines().filter(|line| !line.starts_with(b"#"));
    let is_value = |line| number(line).time(TimeUnit::Nanos).is_ok() || is_not_finite(line);
    lines().next().is_some_and(is_value) && are_rows(lines(), |line| is_value(line) || is_decimal_comma(line))
}

/// The number of a line.
#[inline]
fn number(line: &[u8]) -> LogField<'_> {
    let text = line.trim_ascii_start();
    LogField { text: text.trim_ascii_end(), column: line.len() - text.len() + 1 }
}

struct PlainNumbers {
    unit: TimeUnit,
    metric: Metric,
    /// Rows so far, which is the number of the next one.
    rows: u64,
    /// Whether a value has digits below a nanosecond.
    has_finer_digits: bool,
}

impl LineParser for PlainNumbers {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        if is_blank_or_comment(line) {
            return Ok(LineUse::Taken);
        }
        let number = number(line);
        let (value_ns, is_rounded) = number.rounded_time(self.unit)?;
        self.has_finer_digits |= is_rounded;
        rows.are_of(self.metric);
        rows.value(LoggedValue { seq: Some(self.rows), value_ns: Some(value_ns), count: 1 });
        self.rows += 1;
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        Ok(LogFacts {
            metric: Some(self.metric),
            value_unit: Some(self.unit),
            finer_digits: Some(self.has_finer_digits),
            ..LogFacts::of("numbers")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::*;

    fn micros() -> LogOptions {
        LogOptions { unit: Some(TimeUnit::Micros), ..LogOptions::default() }
    }

    #[test]
    fn each_line_is_a_value_in_the_unit_of_the_user() {
        let text = "# one\r\n12\r\n\r\n  -0.5 \n1e3\n+7";
        let (block, end) = read(&FORMAT, &micros(), false, text.as_bytes()).expect("numbers");
        let values: Vec<_> = block.values.iter().map(|row| (row.seq, row.value_ns, row.count)).collect();
        let row = |seq, value| (Some(seq), Some(value), 1);
        assert_eq!(values, [row(0, 12_000), row(1, -500), row(2, 1_000_000), row(3, 7_000)]);
        assert_eq!((&*end.facts.tool, end.facts.metric), ("numbers", Some(Metric::Delay)));
        let options = LogOptions { metric: Some(Metric::WakeupLatency), ..micros() };
        let (block, end) = read(&FORMAT, &options, false, text.as_bytes()).expect("numbers");
        assert_eq!((block.metric, end.facts.metric), (Some(Metric::WakeupLatency), Some(Metric::WakeupLatency)));
    }

    #[test]
    fn digits_below_a_nanosecond_are_stated() {
        for (text, finer) in [("12.345\n7\n", false), ("12.3456\n7\n", true)] {
            let (_, end) = read(&FORMAT, &micros(), false, text.as_bytes()).expect("numbers");
            assert_eq!((end.facts.value_unit, end.facts.finer_digits), (Some(TimeUnit::Micros), Some(finer)), "{text}");
        }
    }

    #[test]
    fn a_missing_unit_is_a_fault_with_a_hint() {
        let fault = read(&FORMAT, &LogOptions::default(), true, b"1\n2\n").expect_err("no unit");
        assert_eq!((fault.line, fault.hint.as_deref()), (None, Some("add `--unit ns|us|ms|s`")));
    }

    #[test]
    fn a_bad_line_is_a_fault_with_its_column_or_skipped() {
        for (line, column) in [("x", 1), (" 1 2", 2), ("1,5", 1), ("NaN", 1), ("5 # five", 1), ("\0\x01\u{80}", 1)] {
            let text = ["1\n2\n", line, "\n3\n"].concat();
            let fault = read(&FORMAT, &micros(), false, text.as_bytes()).expect_err(line);
            assert_eq!((fault.line, fault.column), (Some(3), Some(column)), "{line}");
            assert_eq!(fault.hint.is_some(), line == "1,5", "{line}");
            let (block, end) = read(&FORMAT, &micros(), true, text.as_bytes()).expect(line);
            assert_eq!((block.values.len(), block.values[2].seq, end.skipped), (3, Some(2), 1));
        }
        let utf_16: Vec<u8> = "\u{feff}12\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(read(&FORMAT, &micros(), false, &utf_16).is_err() && !is_detected(&FORMAT, &utf_16));
        assert!(read(&FORMAT, &micros(), false, b"").expect("an empty log").0.is_empty());
    }

    #[test]
    fn files_of_which_half_the_lines_are_numbers_are_detected() {
        for text in [
            &b"# a\n1\n\n2.5\r\n"[..],
            b"-1e-5",
            b"1\nx\n",
            b"1\n2\n1,5\n",
            b"1\n0,5\n0,6",
            b"5\n+0,5\n1,5e-3",
            b"nan\n5\n6\n",
        ] {
            assert!(is_detected(&FORMAT, text), "{}", String::from_utf8_lossy(text));
        }
        let comma = read(&FORMAT, &micros(), false, b"1\n0,5\n0,6").expect_err("decimal commas");
        assert!(comma.line == Some(2) && comma.hint.is_some_and(|hint| hint.contains("point")));
        let first = read(&FORMAT, &micros(), false, b"-inf\n5\n6\n").expect_err("it is not finite");
        assert_eq!((first.line, &*first.what), (Some(1), "`-inf` is not a number"));
        for text in ["", "# a\n", "x\n1\n2\n", "1\nx\ny\n", "1 2\n", "1,2\n", "rtt\n1\n", "0: 0: 5\n", "{}\n"] {
            assert!(!is_detected(&FORMAT, text.as_bytes()), "{text:?}");
        }
    }
}
