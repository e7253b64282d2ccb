//! RTI Perftest: the latencies of a publisher, each of which is half of a round trip without its fraction. They are doubled here.
//! Three logs have them: the file of `-latencyFile FILE` (4.1 to 4.3), the table of intervals in the output (3.1 to 4.3), whose
//! latencies are single samples, and the document of `-outputFormat json`, in µs. By their source only the file does not state
//! its unit.

use super::prelude::*;
use serde::Deserialize;

pub(super) fn open(options: &LogOptions) -> OpenedLog {
    Ok(Box::new(PerftestLog { given: options.unit, ..PerftestLog::default() }))
}

/// The forms of the line above the rows of the file, of that above the intervals, and of that above a summary.
const FILE: &str = "Sample Number, Value";
const INTERVALS: &str = "Length (Bytes), Latency ({}),*";
const SUMMARIES: [&str; 2] = ["Sample Size (Bytes), Ave ({}),*", "Length (Bytes), Ave ({}),*"];
fn heading<'a>(line: LogField<'a>, forms: &[&str]) -> Option<LogField<'a>> {
    forms.iter().find_map(|form| captured::<1>(line, form)).map(|[gap]| gap)
}

pub(super) fn detects(head: &LogHead<'_>) -> bool {
    let is_one = |line| heading(line, &SUMMARIES).or(heading(line, &[INTERVALS])).is_some();
    head.lines().any(|line| line == FILE.as_bytes() || is_one(whole(line)))
}

#[cold]
fn several() -> LogFault {
    LogFault::whole("the log has several runs or lengths, which are different measurements")
        .hint("import each as a file of its own; measure each length without `-scan`")
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Table {
    #[default]
    Outside,
    File,
    Intervals,
    Summary,
}

#[derive(Default)]
struct PerftestLog {
    given: Option<TimeUnit>,
    unit: Option<TimeUnit>,
    table: Table,
    length: Option<u64>,
    version: Option<String>,
    count: u64,
    numbers: RowNumbers,
    steps: Option<(i64, i64)>,
    summaries: u64,
    figures: [Option<StatedValue>; 3],
}

impl LineParser for PerftestLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        let line = whole(line).part(0, line.len());
        if line.text == FILE.as_bytes() {
            self.begin(Table::File)?;
        } else if let Some(unit) = heading(line, &[INTERVALS]) {
            self.begin(Table::Intervals)?;
            let word = std::str::from_utf8(unit.text).ok().and_then(TimeUnit::from_word);
            let stated = word.ok_or_else(|| unit.is_not("a unit of time"))?;
            self.unit = Some(unit_of(Some(stated), self.given)?);
        } else if heading(line, &SUMMARIES).is_some() {
            self.table = Table::Summary;
        } else if let Some(version) = heading(line, &["RTI Perftest {} *"]) {
            self.begin(Table::Outside)?;
            self.version = Some(version.shown());
        } else {
            return self.row(line, rows);
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> ReadLog {
        self.facts(self.unit.or(self.given))
    }
}

impl PerftestLog {
    fn begin(&mut self, table: Table) -> Result<(), LogFault> {
        self.table = table;
        if self.count > 0 { Err(several()) } else { Ok(()) }
    }

    /// A row of a table: other lines do not begin with a number, or are without a comma in a file.
    fn row(&mut self, line: LogField<'_>, rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        let begins = line.text.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-');
        let end = || LogFault::at(line.column + line.text.len(), "the row ends before its value");
        match self.table {
            Table::Summary if begins => {
                let [mean, min, max] = captured(line, "*,{},*,{},{},*").ok_or_else(end)?;
                let unit = self.unit.unwrap_or(TimeUnit::Micros);
                self.summaries += 1;
                self.figures = [mean, min, max].map(|field| StatedValue::of(&field, unit).ok());
            }
            Table::Intervals if begins => {
                let [length, value] = captured(line, "{},{},*,*,*,*").ok_or_else(end)?;
                let length = length.count()?;
                if self.length.replace(length).is_some_and(|before| before != length) {
                    return Err(several());
                }
                self.half(None, value, rows)?;
            }
            Table::File if begins || line.text.contains(&b',') => {
                let [id, value] = captured(line, "{},{}").ok_or_else(end)?;
                self.half(Some(id.count()?), value, rows)?;
            }
            _ => return Ok(LineUse::Other),
        }
        Ok(LineUse::Taken)
    }

    fn half(&mut self, id: Option<u64>, field: LogField<'_>, rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let unit = self.unit.or(self.given).unwrap_or(TimeUnit::Micros);
        let added = self.add(id, field.time(unit)?, field.step_ns(unit), rows);
        added.ok_or_else(|| field.is_not("half of a round trip below 146 years"))
    }

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

    fn facts(&mut self, unit: Option<TimeUnit>) -> Result<LogFacts, LogFault> {
        if self.count == 0 {
            let what = if self.summaries > 0 { "a summary and no samples" } else { "no samples" };
            return Err(LogFault::whole(format!("the log has {what}"))
                .hint("write them with the option `-latencyFile FILE` of the publisher"));
        }
        let figures = if self.summaries == 1 { self.figures } else { [None; 3] };
        let [mean, min, max] = figures.map(|figure| figure.map(StatedValue::doubled));
        let (finest, coarsest) = self.steps.unwrap_or_default();
        Ok(LogFacts {
            version: self.version.take(),
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

#[derive(Deserialize)]
struct Document {
    perftest: Vec<Length>,
}

#[derive(Deserialize)]
struct Length {
    #[serde(default)]
    intervals: Vec<Interval>,
    summary: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Interval {
    latency: Option<f64>,
}

pub(super) fn read_json(input: &mut Documents<'_>, _: &LogOptions, rows: &mut LogRows<'_>) -> ReadLog {
    let mut log = PerftestLog::default();
    // They have three decimal places at most.
    let nanos = |micros: f64| (micros * 1e3).round() as i64;
    let Document { perftest } = input.read_one()?;
    for latency in perftest.iter().flat_map(|length| &length.intervals).filter_map(|interval| interval.latency) {
        let step_ns = if latency.fract() == 0.0 { TimeUnit::Micros.nanos() as i64 } else { 1 };
        let too_long = || LogFault::whole(format!("{latency} µs is not half of a round trip below 146 years"));
        log.add(None, nanos(latency), step_ns, rows).ok_or_else(too_long)?;
    }
    log.summaries = perftest.iter().filter(|length| length.summary.is_some()).count() as u64;
    match log.count > 0 && perftest.len() > 1 {
        true => Err(several()),
        false => log.facts(Some(TimeUnit::Micros)),
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
    const JSON: &str = "Publishing data ...\n{\"perftest\":\n\t[\n{ \"length\":100, \"intervals\":[\n\
        { \"latency\": 31, \"latency_ave\": 31.00, \"latency_min\": 31, \"CPU\": 1.0 },\n\
        { \"latency\": 29, \"latency_ave\": 30.00 } ],\n\
        \"summary\":{ \"latency_ave\": 30.00, \"latency_min\": 29, \"latency_max\": 31, \"latency_99.99\": 31 } } ]}\n";

    fn log(format: &str, unit: Option<TimeUnit>, text: &str) -> (Vec<(u64, i64)>, LogEnd) {
        let options = LogOptions { unit, ..LogOptions::default() };
        let (block, end) = read_log(format, &options, false, text.as_bytes()).expect(text);
        (block.values.iter().filter_map(|value| value.seq.zip(value.value_ns)).collect(), end)
    }

    fn fault(format: &str, text: &str) -> LogFault {
        read_log(format, &LogOptions::default(), false, text.as_bytes()).expect_err(text)
    }

    #[test]
    fn halves_are_doubled_and_checked_by_the_summary() {
        let nano = OUTPUT.replace("31,       31,      0.0", "31.250,   31.250,   0.000");
        for (format, text, first_ns, resolution) in [
            ("perftest", OUTPUT, 62_000, 2_000),
            ("perftest", &nano, 62_500, 2),
            ("perftest-json", JSON, 62_000, 2_000),
            ("perftest-json", &JSON.replace("\"latency\": 31,", "\"latency\": 31.250,"), 62_500, 2),
        ] {
            let (rows, LogEnd { facts, contradictions, .. }) = log(format, None, text);
            assert_eq!(rows, [(0, first_ns), (1, 58_000)], "{text}");
            assert!(facts.halves_doubled && !facts.unit_assumed && is_detected(format, text.as_bytes()));
            assert_eq!((facts.resolution_ns, facts.value_unit), (Some(Nanos(resolution)), Some(TimeUnit::Micros)));
            assert_eq!((facts.metric, contradictions), (Some(Metric::RoundTripDelay), vec![]), "{text}");
        }
        let wrong = OUTPUT.replacen("100,       30,      1.0,       29", "100,       30,      1.0,       20", 1);
        assert_eq!(log("perftest", None, &wrong).1.contradictions, ["a minimum of 40 µs, 58 µs in its rows"]);
        assert_eq!(log("perftest", None, OUTPUT).1.facts.version.as_deref(), Some("4.1.0"));
    }

    #[test]
    fn the_unit_is_that_of_the_heading_and_of_a_file_the_given_one() {
        let rows = |factor: i64| vec![(0, 62 * factor), (1, 58 * factor), (2, 0), (5, 2_408 * factor)];
        for (unit, factor, is_assumed) in [(None, 1_000, true), (Some(TimeUnit::Nanos), 1, false)] {
            let (found, LogEnd { facts, .. }) = log("perftest", unit, FILE_LOG);
            assert_eq!((found, facts.unit_assumed, facts.value_unit), (rows(factor), is_assumed, unit));
            assert_eq!((facts.missing_ids, facts.resolution_ns), (2, unit.map(|unit| Nanos(2 * unit.nanos() as i64))));
        }
        assert!(is_detected("perftest", FILE_LOG.as_bytes()));
        let text = OUTPUT.replace("Latency (μs)", "Latency (ms)");
        assert_eq!(log("perftest", None, &text).0[0].1, 62_000_000);
        let options = LogOptions { unit: Some(TimeUnit::Micros), ..LogOptions::default() };
        let other = read_log("perftest", &options, true, text.as_bytes()).expect_err("another unit");
        assert_eq!(other.what, "the log states its values in ms, not in µs");
    }

    #[test]
    fn several_runs_or_lengths_and_logs_without_samples_are_refused() {
        let table = &OUTPUT[OUTPUT.find("Length").expect("a table")..];
        let scan = JSON.replace("} } ]}", "} }, { \"length\":200, \"intervals\":[ { \"latency\": 31 } ] } ]}");
        for (format, text) in [
            ("perftest", format!("{OUTPUT}{table}")),
            ("perftest", format!("{FILE_LOG}{FILE_LOG}")),
            ("perftest", OUTPUT.repeat(2)),
            ("perftest", OUTPUT.replace("  100,           29", "  200,           29")),
            ("perftest-json", scan),
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
        for (format, text) in [("perftest", summary), ("perftest", &scan), ("perftest-json", subscriber)] {
            assert!(is_detected(format, text.as_bytes()), "{text}");
            let fault = fault(format, text);
            assert!(fault.what.contains("no samples") && fault.hint.is_some_and(|hint| hint.contains("-latencyFile")));
            assert_eq!(fault.column, None, "no row that may be skipped");
        }
    }
}
