//! RTI Perftest: the latencies of a publisher, each of which is half of a round trip without its fraction. They are doubled
//! here. Three logs have them:
//!
//! - the file of `-latencyFile FILE` (4.1 to 4.3): a line `Sample Number, Value` and a row for each sample;
//! - the output of a publisher with its intervals (3.1 to 4.3, without `-noPrintIntervals`), which are single samples: a
//!   table headed `Length (Bytes), Latency (us), Ave (us), …`, of which the second column is taken;
//! - that output until 3.0 and with `-outputFormat legacy`: lines that begin with `One way Latency: N us`, from 4.0 on
//!   `One-Way Latency: N μs`.
//!
//! Values are in µs, unless Perftest was built with its clock of nanoseconds: the table then has µs with three decimal
//! places, and the file has ns and does not say so. Values of a file are taken for µs unless the unit is given, which the
//! facts of the log say. This is known from the source and the documentation of RTI Perftest. Summaries are left out; a
//! summary alone is refused, since it has no samples. Samples of several runs or of several lengths are refused. Round trips
//! whose clock ran backwards are in no log; numbers that are missing in a file are counted.

use super::field::{LogField, bounded, cells, whole, words};
use super::{LineParser, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::{LogFacts, LoggedValue, RowNumbers};
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
/// The resolution of round trips whose halves are in whole microseconds.
const MICROSECONDS_NS: i64 = 2_000;
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
        unit: options.unit,
        resolution_ns: options.unit.map(|unit| 2 * unit.nanos() as i64),
        unit_assumed: false,
        value_unit: None,
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
    /// The unit of the values of the file, if it is given.
    unit: Option<TimeUnit>,
    /// Of round trips; `None` if unknown.
    resolution_ns: Option<i64>,
    /// Whether values were taken whose unit is not known.
    unit_assumed: bool,
    /// The given unit, if the values are those of a file.
    value_unit: Option<TimeUnit>,
    table: Table,
    /// Tables so far.
    tables: u32,
    has_summary: bool,
    /// The payload of the samples.
    length: Option<u64>,
    /// The least number that the next sample may have.
    next: u64,
    numbers: RowNumbers,
    version: Option<String>,
}

/// What the lines are.
#[derive(Clone, Copy, PartialEq)]
enum Table {
    Outside,
    File,
    Intervals,
    /// Behind the line above a summary, in front of its row.
    Summary,
}

impl LineParser for PerftestLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let text = line.trim_ascii();
        let is_row = text.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-');
        let found = match self.table {
            _ if text.is_empty() => return Ok(()),
            _ if self.next > 0 && version_of(text).is_some() => return Err(several_runs()),
            _ if text == FILE => return self.begin(Table::File),
            _ if text.starts_with(INTERVALS) => return self.begin(Table::Intervals),
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
        let Some((id, half_ns)) = found else { return Ok(()) };
        let value_ns = half_ns.checked_mul(2).and_then(bounded);
        let value_ns = value_ns.ok_or_else(|| LogFault::at(1, "the round trip has more than 146 years"))?;
        rows.are_of(Metric::RoundTripDelay);
        let number = self.numbers.next(id);
        rows.value(LoggedValue { seq: Some(number), value_ns: Some(value_ns), count: 1 });
        self.next = id.unwrap_or(number).saturating_add(1);
        Ok(())
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
            ..LogFacts::of("RTI Perftest")
        })
    }
}

impl PerftestLog {
    /// The line above a table, of which a log has one.
    fn begin(&mut self, table: Table) -> Result<(), LogFault> {
        (self.table, self.tables) = (table, self.tables + 1);
        match table {
            Table::Intervals => self.resolution_ns = Some(MICROSECONDS_NS),
            _ => (self.unit_assumed, self.value_unit) = (self.unit.is_none(), self.unit),
        }
        if self.tables > 1 {
            let what = "the log has several tables, of several runs or lengths";
            return Err(LogFault::whole(what).hint("import each of them as a file of its own"));
        }
        Ok(())
    }

    /// Number and half of a round trip in a row of the file.
    fn of_file(&self, line: &[u8]) -> Result<(Option<u64>, i64), LogFault> {
        let mut cells = cells(line, b',');
        let mut next = || cells.next().ok_or_else(|| LogFault::at(line.len() + 1, "the row has fewer than 2 columns"));
        let (number, value) = (next()?, next()?);
        if let Some(more) = cells.next() {
            return Err(more.is_not("the end of the row"));
        }
        match number.count()? {
            count if count >= self.next && count < u64::MAX => {
                Ok((Some(count), value.time(self.unit.unwrap_or(TimeUnit::Micros))?))
            }
            _ => Err(number.is_not("a number above that of the row before")),
        }
    }

    /// Half of a round trip in a row of intervals, which has no number.
    fn of_interval(&mut self, line: &[u8]) -> Result<(Option<u64>, i64), LogFault> {
        let mut cells = cells(line, b',');
        let mut next = || cells.next().ok_or_else(|| LogFault::at(line.len() + 1, "the row has fewer than 6 columns"));
        let (length, value) = (next()?.count()?, next()?);
        for _ in 0..4 {
            next()?;
        }
        let half_ns = value.time(TimeUnit::Micros)?;
        self.of_length(length)?;
        if value.text.contains(&b'.') {
            self.resolution_ns = Some(2);
        }
        Ok((None, half_ns))
    }

    /// Half of a round trip in a line of the form of `legacy`, which has no number; `None` if the line is another one of a
    /// publisher.
    fn of_output(&mut self, line: &[u8]) -> Result<Option<(Option<u64>, i64)>, LogFault> {
        let text = line.trim_ascii();
        if !is_sample(text) {
            self.other(line)?;
            return Ok(None);
        }
        let start = line.len() - line.trim_ascii_start().len() + SAMPLES[0].len();
        let mut words = words(&line[start..]).map(|word| LogField { column: start + word.column, ..word });
        let mut next = || words.next().ok_or_else(|| LogFault::at(line.len() + 1, "the line ends before its value"));
        let value = next()?;
        let half_ns = value.time(TimeUnit::Micros)?;
        let unit = next()?;
        if ![&b"us"[..], "μs".as_bytes(), "µs".as_bytes()].contains(&unit.text) {
            return Err(unit.is_not("the unit `us`"));
        }
        if self.resolution_ns != Some(2) {
            self.resolution_ns = Some(if value.text.contains(&b'.') { 2 } else { MICROSECONDS_NS });
        }
        Ok(Some((None, half_ns)))
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
            ..LogFacts::of("RTI Perftest")
        }
    }

    #[test]
    fn the_halves_of_a_file_are_doubled() {
        let doubled = vec![(0, 62_000), (1, 58_000), (2, 0), (3, 2_408_000)];
        let assumed = LogFacts { unit_assumed: true, ..facts(None, None) };
        assert_eq!(values(&LogOptions::default(), LOG), (doubled.clone(), assumed));
        let micros = LogOptions { unit: Some(TimeUnit::Micros), ..LogOptions::default() };
        let stated = |unit, resolution_ns: i64| LogFacts { value_unit: Some(unit), ..facts(None, resolution_ns) };
        assert_eq!(values(&micros, LOG), (doubled.clone(), stated(TimeUnit::Micros, 2_000)));
        assert_eq!(values(&LogOptions::default(), &LOG.replace('\n', "\r\n")).0, doubled);
        assert!(is_detected(&FORMAT, LOG.as_bytes()) && is_detected(&FORMAT, LOG.replace('\n', "\r\n").as_bytes()));
        let nanos = LogOptions { unit: Some(TimeUnit::Nanos), ..LogOptions::default() };
        assert_eq!(values(&nanos, LOG), (vec![(0, 62), (1, 58), (2, 0), (3, 2_408)], stated(TimeUnit::Nanos, 2)));
    }

    #[test]
    fn the_intervals_of_an_output_are_samples() {
        let doubled = vec![(0, 62_000), (1, 58_000)];
        let nanos = LogOptions { unit: Some(TimeUnit::Nanos), ..LogOptions::default() };
        for options in [nanos, LogOptions::default()] {
            assert_eq!(values(&options, OUTPUT), (doubled.clone(), facts(Some("4.1.0"), 2_000)));
        }
        let precise = OUTPUT.replace("           31,       31,", "       31.250,       31,");
        assert_eq!(values(&LogOptions::default(), &precise), (vec![(0, 62_500), (1, 58_000)], facts(Some("4.1.0"), 2)));
        assert_eq!(values(&LogOptions::default(), &OUTPUT.replace("μs", "us")).0, doubled);
        assert!(is_detected(&FORMAT, OUTPUT.as_bytes()));
        let legacy = OLDEST.replace("One way", "One-Way").replace(" us", " μs");
        for log in [OLDEST, &legacy] {
            assert_eq!(values(&LogOptions::default(), log), (doubled.clone(), facts(None, 2_000)));
            assert!(is_detected(&FORMAT, log.as_bytes()));
        }
        let precise = legacy.replace("Latency:     31 ", "Latency:    31.250 ");
        assert_eq!(values(&LogOptions::default(), &precise), (vec![(0, 62_500), (1, 58_000)], facts(None, 2)));
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
        assert_eq!(values(&LogOptions::default(), &twice).1, facts(Some("3.0.1"), 2_000));
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
            [("4, x", 4), ("4", 2), ("-4, 5", 1), ("4, 5, 6", 7), ("3, 5", 1), ("4, 4611686018427387", 1)]
        {
            let log = format!("{}{bad}\n", LOG.trim_end_matches('\n').to_owned() + "\n");
            let fault = read(&FORMAT, &LogOptions::default(), false, log.as_bytes()).expect_err(bad);
            assert_eq!((fault.line, fault.column), (Some(6), Some(column)), "{fault:?}");
            let (block, end) = read(&FORMAT, &LogOptions::default(), true, log.as_bytes()).expect("a log");
            assert_eq!((block.values.len(), end.skipped, end.first_skipped), (4, 1, Some(fault)));
        }
        let cut = read(&FORMAT, &LogOptions::default(), false, &OUTPUT.as_bytes()[..280]).expect_err("cut off");
        assert_eq!((cut.line, cut.what.as_str()), (Some(6), "the row has fewer than 6 columns"));
        let odd = OLDEST.replace("29 us  Ave", "29 ms  Ave");
        let odd = read(&FORMAT, &LogOptions::default(), false, odd.as_bytes()).expect_err("ms");
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
