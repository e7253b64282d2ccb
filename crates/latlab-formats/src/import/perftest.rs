//! RTI Perftest: the latencies of a publisher, each of which is half of a round trip without its fraction. They are doubled
//! here. Three logs have them:
//!
//! - the file of `-latencyFile FILE` (4.1 to 4.3): a line `Sample Number, Value` and a row for each sample;
//! - the output of a publisher with its intervals (3.1 to 4.3, without `-noPrintIntervals`), which are single samples: a
//!   table headed `Length (Bytes), Latency (us), Ave (us), …`, of which the second column is taken;
//! - that output until 3.0 and with `-outputFormat legacy`: lines that begin with `One way Latency: N us`, from 4.0 on
//!   `One-Way Latency: N μs`.
//!
//! A table and a line state the unit of their values, which is one in a log. It is µs, of a Perftest that was built with its
//! clock of nanoseconds with three decimal places; the file has ns then, and does not say so. Values of a file are taken for µs
//! unless the unit is given, which the facts of the log say. This is known from the source and the documentation of RTI
//! Perftest. Summaries are left out; a summary alone is refused, since it has no samples. Samples of several runs or of several
//! lengths are refused. Round trips whose clock ran backwards are in no log; numbers that are missing in a file are counted.

use super::field::{LogField, bounded, cells, unit_of, whole, words};
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::{LoggedValue, RowNumbers};
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::Nanos;
use crate::units::human::TimeUnit;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "perftest",
    title: "latencies of RTI Perftest",
    rows: Kind::Values,
    is_generic: false,
    options: &["--unit"],
    states_losses: false,
    detects,
    reader: LogReader::Lines(parser),
};

/// The line above the rows of the file.
const FILE: &[u8] = b"Sample Number, Value";
/// The begin of the line above the intervals, in front of the unit.
const INTERVALS: &[u8] = b"Length (Bytes), Latency (";
/// The begins of the line above a summary, in front of the unit.
const SUMMARIES: [&[u8]; 2] = [b"Sample Size (Bytes), Ave (", b"Length (Bytes), Ave ("];
/// The begins of a line with a sample in the form of `legacy`.
const SAMPLES: [&[u8]; 2] = [b"One way Latency:", b"One-Way Latency:"];
/// The begin of the line that announces the length of the samples behind it, in the oldest form.
const LENGTH: &[u8] = b"********** New data length is ";
/// The resolution of round trips whose halves have decimal places, ns; of halves in ns it is 1.
const FINEST_NS: i64 = 2;
/// The begin of the line with the version.
const VERSION: &[u8] = b"RTI Perftest ";
/// The begins of other lines that a publisher writes; those of the settings are indented by a tab.
const OTHERS: [&str; 30] = [
    "**********",
    "Calculated Publication Rate",
    "Clock skew suspected",
    "Custom Type provided",
    "Finishing test",
    "Intervals One-Way Latency for ",
    "Intervals One-way Latency for ",
    "Length:",
    "Mode: ",
    "One-Way Latency Summary:",
    "One-way Latency Summary:",
    "One-way Latency for ",
    "Perftest Configuration:",
    "Publishing data",
    "Pulled samples:",
    "Resource Limits ",
    "Samples Ping Reader Queue",
    "Saving latency information",
    "Secure Configuration:",
    "Sending ",
    "Serialization/Deserialization:",
    "Spin/Sleep value",
    "TSS Configuration:",
    "Test ended",
    "Transport Configuration:",
    "Using ",
    "Waiting ",
    "[IMPORTANT]:",
    "[Info]",
    "(Use \"",
];

fn detects(head: &LogHead<'_>) -> bool {
    let is_one = |line: &[u8]| line == FILE || is_sample(line) || line.starts_with(INTERVALS) || is_summary(line);
    head.lines().any(is_one)
}

fn is_sample(line: &[u8]) -> bool {
    SAMPLES.iter().any(|sample| line.starts_with(sample))
}

fn is_summary(line: &[u8]) -> bool {
    SUMMARIES.iter().any(|summary| line.starts_with(summary))
}

/// The version in the first line of an output.
fn version_of(line: &[u8]) -> Option<String> {
    let version = words(line.strip_prefix(VERSION)?).next()?;
    version.text.first().is_some_and(u8::is_ascii_digit).then(|| version.shown())
}

#[cold]
fn several_runs() -> LogFault {
    LogFault::whole("the log has several runs").hint("import each run as a file of its own")
}

fn parser(options: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    Ok(Box::new(PerftestLog {
        given: options.unit,
        unit: TimeUnit::Micros,
        resolution_ns: None,
        unit_assumed: false,
        value_unit: None,
        has_finer_digits: false,
        table: Table::Outside,
        tables: 0,
        has_summary: false,
        length: None,
        next: 0,
        numbers: RowNumbers::default(),
        version: None,
    }))
}

/// The reading of a log.
struct PerftestLog {
    /// The unit that the user states.
    given: Option<TimeUnit>,
    /// That of the values of the table.
    unit: TimeUnit,
    /// Of round trips; `None` if unknown.
    resolution_ns: Option<i64>,
    /// Whether values were taken whose unit is not known.
    unit_assumed: bool,
    /// The unit of the values, if it is known.
    value_unit: Option<TimeUnit>,
    /// Whether a round trip has digits below a nanosecond.
    has_finer_digits: bool,
    table: Table,
    tables: u32,
    has_summary: bool,
    /// The payload of the samples.
    length: Option<u64>,
    /// The least number that the next sample may have.
    next: u64,
    numbers: RowNumbers,
    version: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Table {
    Outside,
    File,
    Intervals,
    /// Behind the line above a summary, in front of its row.
    Summary,
}

impl PerftestLog {
    fn read_line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let text = line.trim_ascii();
        let is_row = text.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-');
        let found = match self.table {
            _ if text.is_empty() => return Ok(()),
            _ if self.next > 0 && version_of(text).is_some() => return Err(several_runs()),
            _ if text == FILE => return self.begin(Table::File, self.given),
            _ if text.starts_with(INTERVALS) => {
                let unit = self.stated(unit_in_heading(line))?;
                return self.begin(Table::Intervals, Some(unit));
            }
            _ if is_summary(text) => {
                (self.table, self.has_summary) = (Table::Summary, true);
                return Ok(());
            }
            Table::Summary if is_row => {
                self.table = Table::Outside;
                return Ok(());
            }
            // A blank line does not end a table.
            Table::File => Some(self.of_file(line)?),
            Table::Intervals if is_row => Some(self.of_interval(line)?),
            Table::Intervals | Table::Summary | Table::Outside => self.of_output(line)?,
        };
        let Some(DoubledTrip { id, value_ns, is_rounded }) = found else { return Ok(()) };
        self.has_finer_digits |= is_rounded;
        rows.are_of(Metric::RoundTripDelay);
        let number = self.numbers.next(id);
        rows.value(LoggedValue { seq: Some(number), value_ns: Some(value_ns), count: 1 });
        self.next = id.unwrap_or(number).saturating_add(1);
        Ok(())
    }
}

impl LineParser for PerftestLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        self.read_line(line, rows).map(|()| LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        if self.tables == 0 && self.next == 0 {
            let what = if self.has_summary { "the log has a summary and no samples" } else { "the log has no samples" };
            return Err(LogFault::whole(what).hint("write them with the option `-latencyFile FILE` of the publisher"));
        }
        Ok(LogFacts {
            version: self.version.take(),
            metric: Some(Metric::RoundTripDelay),
            halves_doubled: true,
            irregular_ids: self.numbers.irregular,
            missing_ids: self.numbers.missing,
            resolution_ns: self.resolution_ns.map(Nanos),
            unit_assumed: self.unit_assumed,
            value_unit: self.value_unit,
            finer_digits: Some(self.has_finer_digits),
            ..LogFacts::of("RTI Perftest")
        })
    }
}

impl PerftestLog {
    /// The line above a table, of which a log has one; its values are in `unit`, if that is known.
    fn begin(&mut self, table: Table, unit: Option<TimeUnit>) -> Result<(), LogFault> {
        (self.table, self.tables) = (table, self.tables + 1);
        self.unit = unit.unwrap_or(TimeUnit::Micros);
        (self.unit_assumed, self.value_unit) = (unit.is_none(), unit);
        self.resolution_ns = unit.map(resolution_of);
        if self.tables > 1 || self.next > 0 {
            let what = "the log has several tables, of several runs or lengths";
            return Err(LogFault::whole(what).hint("import each of them as a file of its own"));
        }
        Ok(())
    }

    /// The unit that `field` states, which must be the given one and that of the lines before.
    fn stated(&self, field: LogField<'_>) -> Result<TimeUnit, LogFault> {
        let unit = std::str::from_utf8(field.text).ok().and_then(TimeUnit::from_word);
        let unit = unit_of(Some(unit.ok_or_else(|| field.is_not("a unit of time"))?), self.given)?;
        match self.value_unit.filter(|before| *before != unit) {
            // One of them may be wrong, and which is unknown: such a line cannot be skipped.
            Some(before) => Err(LogFault::whole("the log has values in two units").hint(format!(
                "`{}` and `{}`: import the lines of each alone",
                before.symbol(),
                unit.symbol()
            ))),
            None => Ok(unit),
        }
    }

    /// Number and round trip in a row of the file.
    fn of_file(&mut self, line: &[u8]) -> Result<DoubledTrip, LogFault> {
        let mut cells = cells(line, b',');
        let mut next = || cells.next().ok_or_else(|| LogFault::at(line.len() + 1, "the row has fewer than 2 columns"));
        let (number, value) = (next()?, next()?);
        if let Some(more) = cells.next() {
            return Err(more.is_not("the end of the row"));
        }
        let sample = match number.count()? {
            count if count >= self.next && count < u64::MAX => DoubledTrip::of(Some(count), &value, self.unit)?,
            _ => return Err(number.is_not("a number above that of the row before")),
        };
        if self.value_unit.is_some() {
            self.resolve(&value, self.unit);
        }
        Ok(sample)
    }

    /// The round trip in a row of intervals, which has no number.
    fn of_interval(&mut self, line: &[u8]) -> Result<DoubledTrip, LogFault> {
        let mut cells = cells(line, b',');
        let mut next = || cells.next().ok_or_else(|| LogFault::at(line.len() + 1, "the row has fewer than 6 columns"));
        let (length, value) = (next()?.count()?, next()?);
        for _ in 0..4 {
            next()?;
        }
        let sample = DoubledTrip::of(None, &value, self.unit)?;
        self.of_length(length)?;
        self.resolve(&value, self.unit);
        Ok(sample)
    }

    /// The round trip in a line of the form of `legacy`, which has no number; `None` if the line is another one of a publisher.
    fn of_output(&mut self, line: &[u8]) -> Result<Option<DoubledTrip>, LogFault> {
        let text = line.trim_ascii();
        if !is_sample(text) {
            self.other(line)?;
            return Ok(None);
        }
        let start = line.len() - line.trim_ascii_start().len() + SAMPLES[0].len();
        let mut words = words(&line[start..]).map(|word| LogField { column: start + word.column, ..word });
        let mut next = || words.next().ok_or_else(|| LogFault::at(line.len() + 1, "the line ends before its value"));
        let (value, unit) = (next()?, next()?);
        let unit = self.stated(unit)?;
        let sample = DoubledTrip::of(None, &value, unit)?;
        self.value_unit = Some(unit);
        self.resolve(&value, unit);
        Ok(Some(sample))
    }

    /// The resolution, of which `value` of `unit` shows whether its halves have decimal places.
    fn resolve(&mut self, value: &LogField<'_>, unit: TimeUnit) {
        let own = if value.text.contains(&b'.') { FINEST_NS.min(unit.nanos() as i64) } else { resolution_of(unit) };
        self.resolution_ns = Some(self.resolution_ns.map_or(own, |before| before.min(own)));
    }

    /// A line of a publisher that has no sample.
    fn other(&mut self, line: &[u8]) -> Result<(), LogFault> {
        let text = line.trim_ascii();
        self.version = version_of(text).or(self.version.take());
        if let Some(length) = text.strip_prefix(LENGTH).and_then(|length| words(length).next()) {
            self.of_length(length.count()?)?;
        }
        let is_setting = line.starts_with(b"\t") && self.tables == 0 && self.next == 0;
        let is_known = || text.starts_with(VERSION) || OTHERS.iter().any(|start| text.starts_with(start.as_bytes()));
        match is_setting || is_known() {
            true => Ok(()),
            false => Err(LogFault::at(1, format!("`{}` is not a line of RTI Perftest", whole(text).shown()))),
        }
    }

    /// The payload of the samples behind this line.
    fn of_length(&mut self, length: u64) -> Result<(), LogFault> {
        if self.length.is_some_and(|before| before != length) && self.next > 0 {
            let what = "the log has samples of several lengths, which are different measurements";
            return Err(LogFault::whole(what).hint("measure each length in a run of its own, without `-scan`"));
        }
        self.length = Some(length);
        Ok(())
    }
}

/// The resolution of round trips whose halves are whole numbers of `unit`, ns.
fn resolution_of(unit: TimeUnit) -> i64 {
    2 * unit.nanos() as i64
}

/// The unit in the line above the intervals.
fn unit_in_heading(line: &[u8]) -> LogField<'_> {
    let start = line.len() - line.trim_ascii_start().len() + INTERVALS.len();
    let unit = line[start..].split(|byte| *byte == b')').next().unwrap_or_default();
    LogField { text: unit, column: start + 1 }
}

/// A round trip of a log.
#[derive(Debug, PartialEq, Eq)]
struct DoubledTrip {
    id: Option<u64>,
    value_ns: i64,
    /// Whether it has digits below a nanosecond.
    is_rounded: bool,
}

impl DoubledTrip {
    /// Twice the `half` of a round trip, in `unit`; rounded after it was doubled.
    fn of(id: Option<u64>, half: &LogField<'_>, unit: TimeUnit) -> Result<DoubledTrip, LogFault> {
        let (value_ns, is_rounded) = match half.rounded_time(unit)? {
            (half_ns, false) => (half_ns.checked_mul(2).and_then(bounded), false),
            (_, true) => match (LogField { text: &doubled(half.text), ..*half }).rounded_time(unit) {
                Ok((value_ns, is_rounded)) => (Some(value_ns), is_rounded),
                Err(_) => (None, true),
            },
        };
        let value_ns = value_ns.ok_or_else(|| LogFault::at(half.column, "the round trip has more than 146 years"))?;
        Ok(DoubledTrip { id, value_ns, is_rounded })
    }
}

/// The text of twice the number `text`.
fn doubled(text: &[u8]) -> Vec<u8> {
    let power = memchr::memchr2(b'e', b'E', text).unwrap_or(text.len());
    let mut twice = text.to_vec();
    let mut carry = 0;
    for digit in twice[..power].iter_mut().rev().filter(|byte| byte.is_ascii_digit()) {
        let sum = 2 * (*digit - b'0') + carry;
        (*digit, carry) = (b'0' + sum % 10, sum / 10);
    }
    let front = twice.iter().take_while(|byte| b"+-".contains(byte)).count();
    if carry > 0 {
        twice.insert(front, b'0' + carry);
    }
    twice
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::*;

    const LOG: &str = "Sample Number, Value\n0, 31\n1, 29\n2, 0\n3, 1204\n\n";
    const OUTPUT: &str = "\
RTI Perftest 4.1.0 (RTI Connext DDS 7.2.0)

Intervals One-Way Latency for 100 Bytes:
Length (Bytes), Latency (μs), Ave (μs), Std (μs), Min (μs), Max (μs)
           100,           31,       31,      0.0,       31,       31
           100,           29,       30,      1.0,       29,       31

One-way Latency Summary:
Sample Size (Bytes), Ave (μs), Std (μs), Min (μs), Max (μs), 50% (μs), 90% (μs), 99% (μs), 99.99% (μs), 99.9999% (μs)
                100,       30,      1.0,       29,       31,       29,       31,       31,          31,            31
";
    const OLDEST: &str = "\
********** New data length is 100


********** New data length is 100
One way Latency:     31 us  Ave     31 us  Std    0.0 us  Min     31 us  Max     31 us
One way Latency:     29 us  Ave     30 us  Std    1.0 us  Min     29 us  Max     31 us
Length:   100  Latency: Ave     30 us  Std    1.0 us  Min     29 us  Max     31 us  50%     29 us  90%     31 us
";

    fn values(options: &LogOptions, log: &str) -> (Vec<(u64, i64)>, LogFacts) {
        let (block, end) = read(&FORMAT, options, false, log.as_bytes()).expect(log);
        let values = block.values.iter().filter_map(|value| value.seq.zip(value.value_ns));
        (values.collect(), end.facts)
    }

    fn fault(log: &str) -> LogFault {
        read(&FORMAT, &LogOptions::default(), true, log.as_bytes()).expect_err(log)
    }

    fn fault_without_skipping(log: &str) -> LogFault {
        read(&FORMAT, &LogOptions::default(), false, log.as_bytes()).expect_err(log)
    }

    fn facts(version: Option<&str>, resolution_ns: impl Into<Option<i64>>) -> LogFacts {
        LogFacts {
            version: version.map(str::to_owned),
            metric: Some(Metric::RoundTripDelay),
            halves_doubled: true,
            resolution_ns: resolution_ns.into().map(Nanos),
            finer_digits: Some(false),
            ..LogFacts::of("RTI Perftest")
        }
    }

    /// The options that state `unit`.
    fn in_unit(unit: TimeUnit) -> LogOptions {
        LogOptions { unit: Some(unit), ..LogOptions::default() }
    }

    /// The facts of a log that states its unit, µs.
    fn in_micros(version: Option<&str>, resolution_ns: i64) -> LogFacts {
        LogFacts { value_unit: Some(TimeUnit::Micros), ..facts(version, resolution_ns) }
    }

    #[test]
    fn the_halves_of_a_file_are_doubled() {
        let doubled = vec![(0, 62_000), (1, 58_000), (2, 0), (3, 2_408_000)];
        let assumed = LogFacts { unit_assumed: true, ..facts(None, None) };
        assert_eq!(values(&LogOptions::default(), LOG), (doubled.clone(), assumed));
        assert_eq!(values(&in_unit(TimeUnit::Micros), LOG), (doubled.clone(), in_micros(None, 2_000)));
        assert_eq!(values(&LogOptions::default(), &LOG.replace('\n', "\r\n")).0, doubled);
        assert!(is_detected(&FORMAT, LOG.as_bytes()) && is_detected(&FORMAT, LOG.replace('\n', "\r\n").as_bytes()));
        let in_nanos = LogFacts { value_unit: Some(TimeUnit::Nanos), ..facts(None, 2) };
        let rows = vec![(0, 62), (1, 58), (2, 0), (3, 2_408)];
        assert_eq!(values(&in_unit(TimeUnit::Nanos), LOG), (rows, in_nanos));
    }

    #[test]
    fn the_resolution_of_a_file_with_decimals_is_that_of_its_digits() {
        let precise = LOG.replace("1, 29", "1, 29.250");
        for (options, resolution_ns) in
            [(in_unit(TimeUnit::Micros), Some(2)), (in_unit(TimeUnit::Nanos), Some(1)), (LogOptions::default(), None)]
        {
            assert_eq!(values(&options, &precise).1.resolution_ns, resolution_ns.map(Nanos), "{options:?}");
        }
    }

    #[test]
    fn a_log_with_two_units_is_refused_whatever_is_skipped() {
        let below_table = OUTPUT.replace("\nOne-way", "One-Way Latency:    29 ms  Ave\n\nOne-way");
        for log in [OLDEST.replace("     29 us  Ave", "     29 ms  Ave"), below_table] {
            for skip_bad in [false, true] {
                let fault = read(&FORMAT, &LogOptions::default(), skip_bad, log.as_bytes()).expect_err(&log);
                assert_eq!((fault.what.as_str(), fault.column), ("the log has values in two units", None), "{fault:?}");
            }
        }
    }

    #[test]
    fn the_intervals_of_an_output_are_samples() {
        let doubled = vec![(0, 62_000), (1, 58_000)];
        for options in [in_unit(TimeUnit::Micros), LogOptions::default()] {
            assert_eq!(values(&options, OUTPUT), (doubled.clone(), in_micros(Some("4.1.0"), 2_000)));
        }
        let precise = OUTPUT.replace("           31,       31,", "       31.250,       31,");
        let halved = vec![(0, 62_500), (1, 58_000)];
        assert_eq!(values(&LogOptions::default(), &precise), (halved.clone(), in_micros(Some("4.1.0"), 2)));
        assert_eq!(values(&LogOptions::default(), &OUTPUT.replace("μs", "us")).0, doubled);
        assert!(is_detected(&FORMAT, OUTPUT.as_bytes()));
        let legacy = OLDEST.replace("One way", "One-Way").replace(" us", " μs");
        for log in [OLDEST, &legacy] {
            assert_eq!(values(&LogOptions::default(), log), (doubled.clone(), in_micros(None, 2_000)));
            assert!(is_detected(&FORMAT, log.as_bytes()));
        }
        let precise = legacy.replace("Latency:     31 ", "Latency:    31.250 ");
        assert_eq!(values(&LogOptions::default(), &precise), (halved, in_micros(None, 2)));
    }

    #[test]
    fn the_unit_is_that_of_the_heading_or_the_line_which_the_given_one_must_be() {
        let (nanos, millis) = (TimeUnit::Nanos, TimeUnit::Millis);
        for (log, is) in [(OUTPUT, "Latency (μs)"), (OLDEST, " us  Ave")] {
            for (unit, factor) in [(nanos, 1), (millis, 1_000_000)] {
                let log = log.replace(is, &is.replace("μs", unit.word()).replace("us", unit.word()));
                for options in [in_unit(unit), LogOptions::default()] {
                    let (rows, facts) = values(&options, &log);
                    assert_eq!(rows, [(0, 62 * factor), (1, 58 * factor)], "{log}");
                    assert_eq!((facts.value_unit, facts.resolution_ns), (Some(unit), Some(Nanos(2 * factor))));
                    assert!(!facts.unit_assumed);
                }
                let other = read(&FORMAT, &in_unit(TimeUnit::Micros), true, log.as_bytes()).expect_err("another unit");
                assert_eq!(other.what, format!("the log states its values in {}, not in µs", unit.symbol()));
            }
        }
        let odd = fault_without_skipping(&OUTPUT.replace("Latency (μs)", "Latency (ticks)"));
        assert_eq!((odd.line, odd.column, odd.what.as_str()), (Some(4), Some(26), "`ticks` is not a unit of time"));
    }

    #[test]
    fn a_half_is_doubled_before_it_is_rounded() {
        let trip = |half: &str, unit| {
            let trip = DoubledTrip::of(None, &whole(half.as_bytes()), unit).expect(half);
            (trip.value_ns, trip.is_rounded)
        };
        for (half, value_ns, is_rounded) in [
            ("31.0005", 62_001, false),
            ("-31.0005", -62_001, false),
            ("31.0002", 62_000, true),
            ("31.0003", 62_001, true),
            ("+99.9999", 200_000, true),
            (".99975", 2_000, true),
            ("5.00025e-1", 1_000, true),
            ("5.0005e1", 100_010, false),
            ("31.250", 62_500, false),
        ] {
            assert_eq!(trip(half, TimeUnit::Micros), (value_ns, is_rounded), "{half}");
        }
        assert_eq!((trip("0.5", TimeUnit::Nanos), trip("0.25", TimeUnit::Nanos)), ((1, false), (1, true)));
        for (log, is_finer) in [("0, 31.0005\n", false), ("0, 31.0005\n1, 31.00051\n2, 31\n", true)] {
            let log = format!("Sample Number, Value\n{log}");
            assert_eq!(values(&LogOptions::default(), &log).1.finer_digits, Some(is_finer), "{log}");
        }
        for log in [OUTPUT.replace("31,       31,   ", "31.0001, 31,"), OLDEST.replace("   31 us", "31.0001 us")] {
            assert_eq!(values(&LogOptions::default(), &log).1.finer_digits, Some(true), "{log}");
        }
    }

    #[test]
    fn rows_behind_a_blank_line_are_of_the_same_table() {
        let options = LogOptions::default();
        assert_eq!(values(&options, &LOG.replace("2, 0\n", "\n\n2, 0\n")).0, values(&options, LOG).0);
        let parted = OUTPUT.replace("           100,           29", "\n           100,           29");
        assert_eq!(values(&options, &parted).0, values(&options, OUTPUT).0);
        let text = fault_without_skipping(&LOG.replace("2, 0\n", "\nx\n2, 0\n"));
        assert_eq!((text.line, text.column), (Some(5), Some(2)), "{text:?}");
    }

    #[test]
    fn text_outside_of_tables_must_be_of_a_publisher() {
        let preface = "RTI Perftest 4.3.0\n\nMode: LATENCY TEST (Ping-Pong test)\n\nPerftest Configuration:\n\
            \tReliability: Reliable\n\nWaiting for subscribers announcement ...\nPublishing data ...\n";
        for log in [OUTPUT, OLDEST] {
            let framed = format!("{preface}{log}Finishing test...\nTest ended.\n");
            assert_eq!(values(&LogOptions::default(), &framed).0, values(&LogOptions::default(), log).0);
        }
        let last_row =
            "100,       30,      1.0,       29,       31,       29,       31,       31,          31,            31\n";
        for (log, bad, line) in [
            (OLDEST.to_owned(), "One way Latenzy:     30 us\n", 8),
            (OUTPUT.to_owned(), last_row, 11),
            (OUTPUT.to_owned(), "\tReliability: Reliable\n", 11),
            (OUTPUT.split("\nOne-way").next().expect("intervals").to_owned(), "x100, 31, 31, 0.0, 31, 31\n", 7),
        ] {
            let fault = fault_without_skipping(&format!("{log}{bad}"));
            assert_eq!((fault.line, fault.column), (Some(line), Some(1)), "{bad}: {fault:?}");
            assert!(fault.what.ends_with("is not a line of RTI Perftest"), "{fault:?}");
        }
    }

    #[test]
    fn several_tables_and_lengths_are_refused() {
        assert!(fault(&format!("{LOG}{LOG}")).what.contains("several tables"));
        let table = &OUTPUT[OUTPUT.find("Length").expect("a table")..];
        assert!(fault(&format!("{OUTPUT}{table}")).what.contains("several tables"));
        for table in [table, LOG] {
            assert!(fault(&format!("{OLDEST}{table}")).what.contains("several tables"), "lines in front of a table");
        }
        assert!(fault(&OUTPUT.replace("100,           29", "200,           29")).what.contains("several lengths"));
        assert!(fault(&format!("{OLDEST}{}", OLDEST.replace("100", "200"))).what.contains("several lengths"));
    }

    #[test]
    fn the_version_of_another_run_behind_samples_is_refused() {
        let version = "RTI Perftest 3.0.1 (RTI Connext DDS 6.0.1)\n";
        for log in [OLDEST, OUTPUT, LOG] {
            assert_eq!(fault(&format!("{log}{version}{log}")).what, "the log has several runs");
        }
        let twice = format!("{version}{version}{OLDEST}");
        assert_eq!(values(&LogOptions::default(), &twice).1, in_micros(Some("3.0.1"), 2_000));
    }

    #[test]
    fn numbers_that_are_missing_in_a_file_are_counted() {
        let log = "Sample Number, Value\n5, 31\n6, 29\n9, 30\n12, 31\n";
        let (rows, facts) = values(&LogOptions::default(), log);
        assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [5, 6, 9, 12]);
        assert_eq!((facts.missing_ids, facts.irregular_ids), (4, 0));
        assert_eq!(values(&LogOptions::default(), OUTPUT).1.missing_ids, 0);
    }

    #[test]
    fn a_summary_alone_is_refused() {
        let summary = &OUTPUT[OUTPUT.find("One-way").expect("a summary")..];
        let older = summary.replace("Sample Size (Bytes)", "Length (Bytes)").replace('μ', "u");
        for log in [summary, &older] {
            assert_eq!(fault(log).what, "the log has a summary and no samples");
            assert!(is_detected(&FORMAT, log.as_bytes()));
        }
        assert_eq!(fault("\u{0}\u{1}\n").what, "the log has no samples");
    }

    #[test]
    fn a_bad_line_is_an_error_with_its_column() {
        for (bad, column) in
            [("4, x", 4), ("4", 2), ("-4, 5", 1), ("4, 5, 6", 7), ("3, 5", 1), ("4, 4611686018427387", 4)]
        {
            let log = format!("{}{bad}\n", LOG.trim_end_matches('\n').to_owned() + "\n");
            let fault = read(&FORMAT, &LogOptions::default(), false, log.as_bytes()).expect_err(bad);
            assert_eq!((fault.line, fault.column), (Some(6), Some(column)), "{fault:?}");
            let (block, end) = read(&FORMAT, &LogOptions::default(), true, log.as_bytes()).expect("a log");
            assert_eq!((block.values.len(), end.skipped, end.first_skipped), (4, 1, Some(fault)));
        }
        let cut = read(&FORMAT, &LogOptions::default(), false, &OUTPUT.as_bytes()[..280]).expect_err("cut off");
        assert_eq!((cut.line, cut.what.as_str()), (Some(6), "the row has fewer than 6 columns"));
        let odd = OLDEST.replace("29 us  Ave", "29 xs  Ave");
        let odd = read(&FORMAT, &LogOptions::default(), false, odd.as_bytes()).expect_err("xs");
        assert_eq!((odd.line, odd.column), (Some(6), Some(25)));
    }

    #[test]
    fn a_negative_round_trip_is_kept() {
        assert_eq!(values(&LogOptions::default(), &LOG.replace(" 0\n", " -3\n")).0[2], (2, -6_000));
    }

    #[test]
    fn other_text_is_not_detected() {
        let utf_16: Vec<u8> = LOG.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [&utf_16[..], b"0, 31\n1, 29\n", b"Sample Number, Value, Unit\n", b"\xff\x00", b""] {
            assert!(!detects(&LogHead { bytes, is_whole: true }), "{bytes:?}");
        }
    }
}
