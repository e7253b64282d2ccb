//! RTI Perftest: the latencies of a publisher, each of which is half of a round trip without its fraction. They are doubled
//! here. Four logs have them:
//!
//! - the file of `-latencyFile FILE` (4.1 to 4.3): a line `Sample Number, Value` and a row for each sample;
//! - the output with intervals (3.1 to 4.3), which are single samples: a table `Length (Bytes), Latency (us), Ave (us), …`;
//! - that output until 3.0 and with `-outputFormat legacy`: lines `One way Latency: N us`, from 4.0 on `One-Way Latency: N μs`;
//! - the document of `-outputFormat json` (3.1 to 4.3), in µs.
//!
//! A Perftest that was built with its clock of nanoseconds writes µs with three decimal places, and ns into the file, which does
//! not say so: its values are taken for µs unless the unit is given. The summary checks the samples. Round trips whose clock ran
//! backwards are in no log; numbers that are missing in a file are counted. All of this is known from the source.

use std::io::BufRead;

use serde::Deserialize;
use serde::de::MapAccess;

use super::check::{LogTotals, StatedValue};
use super::field::{LogField, bounded, unit_of, whole, words};
use super::form::captured;
use super::json::{self, Members, Object, each};
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

pub(super) const JSON_FORMAT: LogFormat = LogFormat {
    name: "perftest-json",
    title: "JSON of RTI Perftest",
    options: &[],
    detects: |head| json::has_any(head, &["\"perftest\":"]),
    reader: LogReader::Document(read_json),
    ..FORMAT
};

/// The line above the rows of the file.
const FILE: &[u8] = b"Sample Number, Value";
/// The forms of the line above the intervals, and of that above a summary, with the unit.
const INTERVALS: &str = "Length (Bytes), Latency ({}),*";
const SUMMARIES: [&str; 2] = ["Sample Size (Bytes), Ave ({}),*", "Length (Bytes), Ave ({}),*"];
/// The forms of a sample, of the summary behind such samples, and of the line that announces their length.
const SAMPLES: [&str; 2] = ["One way Latency:{}", "One-Way Latency:{}"];
const LINE_SUMMARY: &str = "Length:*Latency: Ave {}s *Min {}s *Max {}s*";
const LENGTH: &str = "********** New data length is {}";
const VERSION: &str = "RTI Perftest {}";

fn detects(head: &LogHead<'_>) -> bool {
    let has = |line, form| captured::<1>(whole(line), form).is_some();
    let forms = || [INTERVALS].into_iter().chain(SUMMARIES).chain(SAMPLES);
    head.lines().any(|line| line == FILE || forms().any(|form| has(line, form)))
}

#[cold]
fn several() -> LogFault {
    LogFault::whole("the log has several runs or lengths, which are different measurements")
        .hint("import each as a file of its own; measure each length without `-scan`")
}

fn parser(options: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    Ok(Box::new(PerftestLog {
        samples: Samples::default(),
        given: options.unit,
        unit: None,
        table: Table::Outside,
        length: None,
    }))
}

/// The samples of a log, and what it states about them.
#[derive(Default)]
struct Samples {
    version: Option<String>,
    count: u64,
    numbers: RowNumbers,
    /// One unit of the last digit of a half: the finest and the coarsest.
    steps: Option<(i64, i64)>,
    summaries: u64,
    /// Mean, least and largest half.
    figures: [Option<StatedValue>; 3],
}

impl Samples {
    /// Adds the round trip of a `half`, whose last digit is worth `step_ns`; `None` if it has more than 146 years.
    fn add(&mut self, id: Option<u64>, half_ns: i64, step_ns: i64, rows: &mut LogRows<'_>) -> Option<()> {
        let value_ns = half_ns.checked_mul(2).and_then(bounded)?;
        let (finest, coarsest) = self.steps.unwrap_or((step_ns, step_ns));
        self.steps = Some((finest.min(step_ns), coarsest.max(step_ns)));
        self.count += 1;
        rows.are_of(Metric::RoundTripDelay);
        rows.value(LoggedValue { seq: Some(self.numbers.next(id)), value_ns: Some(value_ns), count: 1 });
        Some(())
    }

    /// What is known of samples in `unit`, µs without one.
    fn facts(&mut self, unit: Option<TimeUnit>) -> Result<LogFacts, LogFault> {
        if self.count == 0 {
            let what =
                if self.summaries > 0 { "the log has a summary and no samples" } else { "the log has no samples" };
            return Err(LogFault::whole(what).hint("write them with the option `-latencyFile FILE` of the publisher"));
        }
        let figures = if self.summaries == 1 { self.figures } else { [None; 3] };
        let [mean, min, max] = figures.map(|figure| figure.map(StatedValue::doubled));
        let (finest, coarsest) = self.steps.unwrap_or_default();
        Ok(LogFacts {
            version: self.version.take(),
            metric: Some(Metric::RoundTripDelay),
            halves_doubled: true,
            irregular_ids: self.numbers.irregular,
            missing_ids: self.numbers.missing,
            resolution_ns: unit.map(|_| Nanos(2 * finest)),
            unit_assumed: unit.is_none(),
            value_unit: unit,
            totals: LogTotals { min, mean, max, row_step_ns: 2 * coarsest, ..LogTotals::default() },
            ..LogFacts::of("RTI Perftest")
        })
    }
}

/// The reading of lines.
struct PerftestLog {
    samples: Samples,
    /// The unit that the user states.
    given: Option<TimeUnit>,
    /// The unit that the log states.
    unit: Option<TimeUnit>,
    table: Table,
    /// The payload of the samples.
    length: Option<u64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Table {
    Outside,
    File,
    Intervals,
    Summary,
}

impl LineParser for PerftestLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        let all = whole(line).part(0, line.len());
        let heading = |form: &str| captured::<1>(all, form).map(|[gap]| gap);
        if all.text == FILE {
            self.begin(Table::File)?;
        } else if let Some(unit) = heading(INTERVALS) {
            self.begin(Table::Intervals)?;
            self.stated(unit)?;
        } else if SUMMARIES.iter().any(|form| heading(form).is_some()) {
            self.table = Table::Summary;
        } else if let Some(sample) = SAMPLES.iter().find_map(|form| heading(form)) {
            self.sample(sample, rows)?;
        } else if let Some([mean, min, max]) = captured(all, LINE_SUMMARY) {
            self.sum_up([mean, min, max].map(|field| words(field.text).next()));
        } else if let Some(length) = heading(LENGTH) {
            self.expect_length(length.count()?)?;
        } else if let Some(version) = heading(VERSION).and_then(|rest| words(rest.text).next()) {
            if self.samples.count > 0 {
                return Err(several());
            }
            self.samples.version = Some(version.shown());
        } else {
            return self.row(all, rows);
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        self.samples.facts(self.unit.or(self.given))
    }
}

impl PerftestLog {
    fn begin(&mut self, table: Table) -> Result<(), LogFault> {
        self.table = table;
        if self.samples.count > 0 { Err(several()) } else { Ok(()) }
    }

    /// Takes the unit that `field` states, which must be the given one.
    fn stated(&mut self, field: LogField<'_>) -> Result<Option<TimeUnit>, LogFault> {
        let unit = std::str::from_utf8(field.text).ok().and_then(TimeUnit::from_word);
        let unit = unit_of(Some(unit.ok_or_else(|| field.is_not("a unit of time"))?), self.given)?;
        self.unit = Some(unit);
        Ok(self.unit)
    }

    /// A row of a table: other lines do not begin with a number, or are without a comma in a file.
    fn row(&mut self, line: LogField<'_>, rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        let begins = line.text.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-');
        let end = || LogFault::at(line.column + line.text.len(), "the row ends before its value");
        match self.table {
            Table::Summary if begins => {
                let [mean, min, max] = captured(line, "*,{},*,{},{},*").ok_or_else(end)?;
                self.sum_up([mean, min, max].map(Some));
            }
            Table::Intervals if begins => {
                let [length, value] = captured(line, "{},{},*,*,*,*").ok_or_else(end)?;
                self.expect_length(length.count()?)?;
                self.half(None, value, self.unit, rows)?;
            }
            Table::File if begins || line.text.contains(&b',') => {
                let [id, value] = captured(line, "{},{}").ok_or_else(end)?;
                self.half(Some(id.count()?), value, self.given, rows)?;
            }
            _ => return Ok(LineUse::Other),
        }
        Ok(LineUse::Taken)
    }

    /// Takes `31 us  Ave     31 us  Std …`.
    fn sample(&mut self, line: LogField<'_>, rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let mut words = words(line.text).map(|word| LogField { column: line.column + word.column - 1, ..word });
        let (Some(value), Some(unit)) = (words.next(), words.next()) else {
            return Err(LogFault::at(line.column + line.text.len(), "the line ends before its value"));
        };
        let unit = self.stated(unit)?;
        self.half(None, value, unit, rows)
    }

    fn half(
        &mut self,
        id: Option<u64>,
        field: LogField<'_>,
        unit: Option<TimeUnit>,
        rows: &mut LogRows<'_>,
    ) -> Result<(), LogFault> {
        let unit = unit.unwrap_or(TimeUnit::Micros);
        let added = self.samples.add(id, field.time(unit)?, field.step_ns(unit), rows);
        added.ok_or_else(|| field.is_not("half of a round trip below 146 years"))
    }

    /// Takes the mean, the least and the largest half of a summary, which are in the unit of the samples.
    fn sum_up(&mut self, figures: [Option<LogField<'_>>; 3]) {
        let unit = self.unit.unwrap_or(TimeUnit::Micros);
        self.samples.summaries += 1;
        self.samples.figures = figures.map(|field| StatedValue::of(&field?, unit).ok());
    }

    /// The payload of the samples behind this line.
    fn expect_length(&mut self, length: u64) -> Result<(), LogFault> {
        match self.length.replace(length) {
            Some(before) if before != length && self.samples.count > 0 => Err(several()),
            _ => Ok(()),
        }
    }
}

fn read_json(input: &mut dyn BufRead, _: &LogOptions, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
    let mut log = PerftestDocument { samples: Samples::default(), lengths: 0, rows };
    json::read(input, Object(&mut log))?;
    match log.samples.count > 0 && log.lengths > 1 {
        true => Err(several()),
        false => log.samples.facts(Some(TimeUnit::Micros)),
    }
}

/// The reading of a document: runs, each with the intervals and the summary of a length. Values are in µs.
struct PerftestDocument<'a, 'r> {
    samples: Samples,
    lengths: u64,
    rows: &'a mut LogRows<'r>,
}

/// A sample, which the document of a subscriber does not have.
#[derive(Deserialize)]
struct Interval {
    latency: Option<f64>,
}

#[derive(Deserialize)]
struct Summary {
    latency_ave: Option<f64>,
    latency_min: Option<f64>,
    latency_max: Option<f64>,
}

/// `micros`, which have three decimal places at most, in ns.
fn nanos(micros: f64) -> i64 {
    (micros * 1e3).round() as i64
}

impl Members for PerftestDocument<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, object: &mut A) -> Result<(), A::Error> {
        match name {
            "perftest" => object.next_value_seed(Object(self))?,
            "length" => {
                self.lengths += 1;
                json::ignore(object)?;
            }
            "intervals" => object.next_value_seed(each(|interval: Interval| self.take(&interval)))?,
            "summary" => {
                let Summary { latency_ave, latency_min, latency_max } = object.next_value()?;
                let figures = [latency_ave, latency_min, latency_max];
                // The mean has two decimal places.
                self.samples.figures = figures.map(|micros| Some(StatedValue::within(nanos(micros?), 10)));
                self.samples.summaries += u64::from(latency_ave.is_some());
            }
            _ => json::ignore(object)?,
        }
        Ok(())
    }
}

impl PerftestDocument<'_, '_> {
    fn take(&mut self, interval: &Interval) -> Result<(), String> {
        let Some(latency) = interval.latency else { return Ok(()) };
        let step_ns = if latency.fract() == 0.0 { TimeUnit::Micros.nanos() as i64 } else { 1 };
        let added = self.samples.add(None, nanos(latency), step_ns, self.rows);
        added.ok_or_else(|| format!("{latency} µs is not half of a round trip below 146 years"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::LogEnd;
    use super::super::testing::{is_detected, read as read_log};
    use super::*;

    const FILE_LOG: &str = "Sample Number, Value\n0, 31\n1, 29\n2, 0\n5, 1204\n\n";
    const OUTPUT: &str = "\
RTI Perftest 4.1.0 (RTI Connext DDS 7.2.0)
\tReliability: Reliable

Intervals One-Way Latency for 100 Bytes:
Length (Bytes), Latency (μs), Ave (μs), Std (μs), Min (μs), Max (μs), CPU (%)
           100,           31,       31,      0.0,       31,       31,    1.00

           100,           29,       30,      1.0,       29,       31,    1.00

One-way Latency Summary:
Sample Size (Bytes), Ave (μs), Std (μs), Min (μs), Max (μs), 50% (μs), 90% (μs), 99% (μs), 99.99% (μs), 99.9999% (μs)
                100,       30,      1.0,       29,       31,       29,       31,       31,          31,            31
";
    const LEGACY: &str = "\
********** New data length is 100
One way Latency:     31 us  Ave     31 us  Std    0.0 us  Min     31 us  Max     31 us
One way Latency:     29 us  Ave     30 us  Std    1.0 us  Min     29 us  Max     31 us
Length:   100  Latency: Ave     30 us  Std    1.0 us  Min     29 us  Max     31 us  50%     29 us  90%     31 us
";
    const JSON: &str = "Publishing data ...\n{\"perftest\":\n\t[\n{ \"length\":100, \"intervals\":[\n\
        { \"latency\": 31, \"latency_ave\": 31.00, \"latency_min\": 31, \"CPU\": 1.0 },\n\
        { \"latency\": 29, \"latency_ave\": 30.00 } ],\n\
        \"summary\":{ \"latency_ave\": 30.00, \"latency_min\": 29, \"latency_max\": 31, \"latency_99.99\": 31 } } ]}\n";

    fn log(format: &LogFormat, unit: Option<TimeUnit>, text: &str) -> (Vec<(u64, i64)>, LogEnd) {
        let options = LogOptions { unit, ..LogOptions::default() };
        let (block, end) = read_log(format, &options, false, text.as_bytes()).expect(text);
        (block.values.iter().filter_map(|value| value.seq.zip(value.value_ns)).collect(), end)
    }

    fn fault(format: &LogFormat, text: &str) -> LogFault {
        read_log(format, &LogOptions::default(), false, text.as_bytes()).expect_err(text)
    }

    #[test]
    fn halves_are_doubled_and_checked_by_the_summary() {
        let nano = OUTPUT.replace("31,       31,      0.0", "31.250,   31.250,   0.000");
        let one_way = LEGACY.replace("One way", "One-Way").replace(" us", " μs");
        for (format, text, first_ns, resolution) in [
            (&FORMAT, OUTPUT, 62_000, 2_000),
            (&FORMAT, &nano, 62_500, 2),
            (&FORMAT, LEGACY, 62_000, 2_000),
            (&FORMAT, &one_way, 62_000, 2_000),
            (&JSON_FORMAT, JSON, 62_000, 2_000),
            (&JSON_FORMAT, &JSON.replace("\"latency\": 31,", "\"latency\": 31.250,"), 62_500, 2),
        ] {
            let (rows, LogEnd { facts, contradictions, .. }) = log(format, None, text);
            assert_eq!(rows, [(0, first_ns), (1, 58_000)], "{text}");
            assert!(facts.halves_doubled && !facts.unit_assumed && is_detected(format, text.as_bytes()));
            assert_eq!((facts.resolution_ns, facts.value_unit), (Some(Nanos(resolution)), Some(TimeUnit::Micros)));
            assert_eq!((facts.metric, contradictions), (Some(Metric::RoundTripDelay), vec![]), "{text}");
            let wrong = text.replacen("100,       30,      1.0,       29", "100,       30,      1.0,       20", 1);
            let wrong = wrong.replace(
                "Ave     30 us  Std    1.0 us  Min     29 us  Max     31 us  50%",
                "Ave 30 us Min 20 us Max 31 us ",
            );
            let wrong = wrong.replace(
                "Ave     30 μs  Std    1.0 μs  Min     29 μs  Max     31 μs  50%",
                "Ave 30 μs Min 20 μs Max 31 μs ",
            );
            let wrong = wrong.replace("\"latency_min\": 29", "\"latency_min\": 20");
            assert_eq!(
                log(format, None, &wrong).1.contradictions,
                ["a minimum of 40 µs, 58 µs in its rows"],
                "{wrong}"
            );
        }
        assert_eq!(log(&FORMAT, None, OUTPUT).1.facts.version.as_deref(), Some("4.1.0"));
    }

    #[test]
    fn the_unit_is_that_of_the_heading_or_the_line_and_of_a_file_the_given_one() {
        let rows = |factor: i64| vec![(0, 62 * factor), (1, 58 * factor), (2, 0), (5, 2_408 * factor)];
        for (unit, factor, is_assumed) in [(None, 1_000, true), (Some(TimeUnit::Nanos), 1, false)] {
            let (found, LogEnd { facts, .. }) = log(&FORMAT, unit, FILE_LOG);
            assert_eq!((found, facts.unit_assumed, facts.value_unit), (rows(factor), is_assumed, unit));
            assert_eq!((facts.missing_ids, facts.resolution_ns), (2, unit.map(|unit| Nanos(2 * unit.nanos() as i64))));
        }
        assert!(is_detected(&FORMAT, FILE_LOG.as_bytes()));
        for (text, is) in [(OUTPUT, "Latency (μs)"), (LEGACY, " us  Ave")] {
            let text = text.replace(is, &is.replace("μs", "ms").replace("us", "ms"));
            assert_eq!(log(&FORMAT, None, &text).0[0].1, 62_000_000);
            let options = LogOptions { unit: Some(TimeUnit::Micros), ..LogOptions::default() };
            let other = read_log(&FORMAT, &options, true, text.as_bytes()).expect_err("another unit");
            assert_eq!(other.what, "the log states its values in ms, not in µs");
        }
    }

    #[test]
    fn several_runs_or_lengths_and_logs_without_samples_are_refused() {
        let table = &OUTPUT[OUTPUT.find("Length").expect("a table")..];
        let longer = |text: &str| format!("{text}{}", text.replace("100", "200"));
        let scan = JSON.replace("} } ]}", "} }, { \"length\":200, \"intervals\":[ { \"latency\": 31 } ] } ]}");
        for (format, text) in [
            (&FORMAT, format!("{OUTPUT}{table}")),
            (&FORMAT, format!("{FILE_LOG}{FILE_LOG}")),
            (&FORMAT, format!("{LEGACY}RTI Perftest 3.0.1 (RTI Connext DDS 6.0.1)\n{LEGACY}")),
            (&FORMAT, longer(LEGACY)),
            (&FORMAT, OUTPUT.replace("  100,           29", "  200,           29")),
            (&JSON_FORMAT, scan),
        ] {
            assert!(fault(format, &text).what.contains("several runs or lengths"), "{text}");
        }
        let summary = &OUTPUT[OUTPUT.find("One-way").expect("a summary")..];
        let scan = format!(
            "{}{}",
            summary.replace("Sample Size", "Length"),
            &summary[summary.len() - 80..].trim_start_matches(|c: char| c != '\n')
        );
        let subscriber = "{\"perftest\":[ { \"length\":100, \"intervals\":[ { \"packets\": 5, \"lost\": 0 } ] } ]}";
        for (format, text) in [(&FORMAT, summary), (&FORMAT, &scan), (&JSON_FORMAT, subscriber)] {
            assert!(is_detected(format, text.as_bytes()), "{text}");
            let fault = fault(format, text);
            assert!(fault.what.contains("no samples") && fault.hint.is_some_and(|hint| hint.contains("-latencyFile")));
            assert_eq!(fault.column, None, "no row that may be skipped");
        }
    }

    #[test]
    fn a_damaged_row_is_an_error_with_its_column_and_other_lines_are_counted() {
        for (bad, column) in
            [("6, x", 4), ("6", 2), ("-6, 5", 1), ("6, 5, 6", 4), ("6, 4611686018427387", 4), ("x, 5", 1)]
        {
            let fault = fault(&FORMAT, &format!("{FILE_LOG}{bad}\n"));
            assert_eq!((fault.line, fault.column), (Some(7), Some(column)), "{bad}: {fault:?}");
        }
        let cut = fault(&FORMAT, &OUTPUT[..OUTPUT.find("       30,").expect("a row")]);
        assert_eq!((cut.line, cut.column, &*cut.what), (Some(8), Some(30), "the row ends before its value"));
        assert_eq!(log(&FORMAT, None, &OUTPUT.replace("\n\nOne", "\nnew banner\n\nOne")).1.others.count, 4);
        let odd = fault(&JSON_FORMAT, &JSON.replace("\"latency\": 29", "\"latency\": null, \"latency\": 2"));
        assert_eq!((odd.line, &*odd.what), (Some(6), "duplicate field `latency`"));
    }
}
