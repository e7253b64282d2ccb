//! fio: the logs that `write_lat_log=NAME` writes, `NAME_lat.1.log`, `NAME_clat.1.log` and `NAME_slat.1.log`, and the document of
//! `--output-format=json+`. A row of a log is `time, value, direction, block size[, offset], priority[, issue time]`; versions
//! before 3.20 have no priority.
//!
//! The value is in ns since fio 3.0 and was in µs before; the log does not say which, so ns is assumed unless the unit is
//! given. Logs of bandwidths and rates (`_bw`, `_iops`) look the same and differ in their names only. A row with the block size 0
//! is an average or a maximum over `log_avg_msec`, a row with hundreds of columns is a histogram (`write_hist_log`): neither is a
//! sample, and both are refused. A log that mixes directions needs the option `direction`.
//!
//! The document (fio 3) has bins of total, completion or submission latencies, `lat_ns`, `clat_ns` or `slat_ns`: the first of
//! these that has any is taken. The name of a bin is its middle in ns, cut to a whole number; from 128 ns on a bin is between 1/128
//! and 1/64 of its values wide.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::MapAccess;

use super::check::{LogTotals, StatedValue};
use super::field::{LogField, TOTAL_MAX, bounded, cells};
use super::json::{self, Members, Object, each};
use super::log::are_rows;
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::LoggedValue;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::Nanos;
use crate::units::human::TimeUnit;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "fio",
    title: "latency log of fio",
    rows: Kind::Values,
    is_generic: false,
    options: &["--unit", "--metric", "--direction"],
    states_losses: false,
    detects,
    reader: LogReader::Lines(parser),
};

pub(super) const JSON_FORMAT: LogFormat = LogFormat {
    name: "fio-json",
    title: "JSON of fio with bins",
    options: &["--metric", "--direction"],
    detects: |head| json::has_any(head, &["\"fio version\""]),
    reader: LogReader::Document(read_json),
    ..FORMAT
};

/// The words of the directions, in the order of their numbers.
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
/// The most columns of a row: with average and maximum, offset, priority and issue time.
const COLUMNS_MAX: usize = 8;
/// The fewest columns of a row of a histogram.
const HISTOGRAM_COLUMNS: usize = 16;
/// The lines that decide whether a log is of fio.
const LINES_READ: usize = 100;
/// Times do not descend, except those of one row out of this many, which may be damaged.
const ROWS_PER_DESCENT: usize = 10;
/// The smallest block of a device.
const BLOCK_MIN: u64 = 512;

/// Whether the lines are rows, and their times do not descend: other tables of whole numbers have the form of a row too.
fn detects(head: &LogHead<'_>) -> bool {
    let lines = || head.lines().take(LINES_READ);
    let times: Vec<u64> = lines().filter_map(time_of_row).collect();
    let descents = times.windows(2).filter(|pair| pair[1] < pair[0]).count();
    are_rows(lines(), |line| time_of_row(line).is_some()) && descents * ROWS_PER_DESCENT <= times.len()
}

/// The time of `line`, if it has the columns of a row: whole numbers behind a comma and a blank, with a direction in front of
/// the size of a block.
fn time_of_row(line: &[u8]) -> Option<u64> {
    let mut cells = line.split(|byte| *byte == b',');
    let first = cells.next();
    let texts = first.into_iter().map(Some).chain(cells.map(|cell| cell.strip_prefix(b" ")));
    let number = |text: Option<_>| {
        let field = LogField { text: text?, column: 1 };
        field.count().ok().or_else(|| priority(&field))
    };
    let numbers: Vec<u64> = texts.map(number).collect::<Option<_>>()?;
    let is_direction = |number| number < DIRECTIONS.len() as u64;
    // A block of 0 bytes stands for several of them; average and maximum have two columns.
    let is_block = |number| number == 0 || number >= BLOCK_MIN;
    let is_row = match *numbers {
        [_, _, direction, block] => is_direction(direction) && is_block(block),
        [_, _, third, fourth, fifth, ..] if numbers.len() <= COLUMNS_MAX => {
            (is_direction(third) && is_block(fourth)) || (is_direction(fourth) && fifth == 0)
        }
        [_, direction, ..] => numbers.len() >= HISTOGRAM_COLUMNS && is_direction(direction),
        _ => false,
    };
    is_row.then_some(numbers[0])
}

/// A priority in the form of `log_prio`: `0x4001`.
fn priority(field: &LogField<'_>) -> Option<u64> {
    let digits = std::str::from_utf8(field.text.strip_prefix(b"0x")?).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

/// The number of the direction that the user states.
fn chosen(options: &LogOptions) -> Result<Option<usize>, LogFault> {
    let Some(word) = options.direction.as_deref() else { return Ok(None) };
    match DIRECTIONS.iter().position(|direction| *direction == word) {
        Some(direction) => Ok(Some(direction)),
        None => Err(LogFault::whole(format!("`{word}` is not a direction: read, write or trim"))),
    }
}

fn parser(options: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    let direction = chosen(options)?.map(|direction| direction as u64);
    let (unit, metric) = (options.unit.unwrap_or(TimeUnit::Nanos), options.metric.unwrap_or(Metric::Delay));
    let unit_assumed = options.unit.is_none();
    Ok(Box::new(FioLog { unit, unit_assumed, metric, is_chosen: direction.is_some(), direction, row: 0 }))
}

/// The reading of a log.
struct FioLog {
    unit: TimeUnit,
    unit_assumed: bool,
    metric: Metric,
    /// Whether the direction was chosen, so that others are skipped.
    is_chosen: bool,
    /// The direction of the values; `None` before the first row.
    direction: Option<u64>,
    /// Number of the next value.
    row: u64,
}

impl LineParser for FioLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        if !line.trim_ascii_start().first().is_some_and(u8::is_ascii_digit) {
            return Ok(LineUse::Other);
        }
        let mut fields = [LogField { text: b"", column: 1 }; COLUMNS_MAX];
        let mut columns = 0;
        for field in cells(line, b',') {
            *fields.get_mut(columns).ok_or_else(|| too_many(line, &field))? = field;
            columns += 1;
        }
        if columns < 4 {
            return Err(LogFault::at(line.len() + 1, format!("the row has {columns} columns instead of 4 or more")));
        }
        let [milliseconds, value, direction, block, rest @ ..] = fields;
        milliseconds.count()?;
        let value_ns = value.time(self.unit)?;
        let direction = match direction.count()? {
            number if number < DIRECTIONS.len() as u64 => number,
            // Average and maximum stand in front of the direction.
            _ if block.count()? < DIRECTIONS.len() as u64 && rest[0].text == b"0" => return Err(aggregate()),
            _ => return Err(direction.is_not("a direction: 0 read, 1 write, 2 trim")),
        };
        if block.count()? == 0 {
            return Err(aggregate());
        }
        for field in &rest[..columns - 4] {
            field.count().or_else(|fault| priority(field).ok_or(fault))?;
        }
        if *self.direction.get_or_insert(direction) == direction {
            rows.are_of(self.metric);
            rows.value(LoggedValue { seq: Some(self.row), value_ns: Some(value_ns), count: 1 });
            self.row += 1;
        } else if !self.is_chosen {
            return Err(mixed());
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        if let (true, 0, Some(direction)) = (self.is_chosen, self.row, self.direction) {
            return Err(none_of(DIRECTIONS[direction as usize]));
        }
        let unit_assumed = self.unit_assumed;
        let resolution_ns = Some(Nanos(self.unit.nanos() as i64)).filter(|_| !unit_assumed);
        Ok(LogFacts { metric: Some(self.metric), resolution_ns, unit_assumed, ..LogFacts::of("fio") })
    }
}

/// The fault of a row with more columns than a sample has, of which `field` is the first one too many.
#[cold]
fn too_many(line: &[u8], field: &LogField<'_>) -> LogFault {
    match cells(line, b',').nth(HISTOGRAM_COLUMNS - 1) {
        Some(_) => LogFault::whole("the log has histograms (`write_hist_log`), not samples")
            .hint("write a log of samples with `write_lat_log`"),
        None => field.is_not("the end of the row"),
    }
}

#[cold]
fn aggregate() -> LogFault {
    LogFault::whole("the log has averages or maxima (`log_avg_msec`), not samples")
        .hint("write the log with `log_avg_msec=0`")
}

#[cold]
fn mixed() -> LogFault {
    LogFault::whole("the log mixes reads and writes").hint("choose one: `--direction read`, `write` or `trim`")
}

fn none_of(direction: &str) -> LogFault {
    LogFault::whole(format!("the log has no row of the direction `{direction}`"))
}

fn read_json(input: &mut dyn BufRead, options: &LogOptions, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
    let mut log = FioDocument { chosen: chosen(options)?, ..FioDocument::default() };
    json::read(input, Object(&mut log))?;
    let (name, latency) = match (log.found.as_slice(), log.chosen.filter(|_| log.has_others)) {
        ([(_, name, latency)], _) => (name, latency),
        ([], Some(direction)) => return Err(none_of(DIRECTIONS[direction])),
        ([], None) => {
            return Err(LogFault::whole("the document has percentiles and no bins")
                .hint("`fio --output-format=json+` of fio 3 writes bins, `write_lat_log=NAME` samples"));
        }
        ([(one, ..), (other, ..), ..], _) if one == other => return Err(mixed()),
        _ => {
            return Err(LogFault::whole("the log has several jobs, which are different measurements")
                .hint("use `group_reporting`, or choose one: `jq '.jobs |= [.[0]]' FILE | latlab import -`"));
        }
    };
    let metric = options.metric.unwrap_or(Metric::Delay);
    rows.are_of(metric);
    for (middle, count) in &latency.bins {
        rows.value(LoggedValue { seq: None, value_ns: Some(*middle), count: *count });
    }
    let notes = vec![format!("bins of `{name}`, of which the middles are the values")];
    let totals = latency.totals();
    Ok(LogFacts { version: log.version, metric: Some(metric), totals, notes, ..LogFacts::of("fio") })
}

/// The reading of a document.
#[derive(Default)]
struct FioDocument {
    /// The number of the direction that the user states.
    chosen: Option<usize>,
    version: Option<String>,
    jobs: u64,
    /// The first two latencies with bins, the number of their job and their name.
    found: Vec<(u64, &'static str, Latency)>,
    /// Whether directions that were not chosen have bins.
    has_others: bool,
}

#[derive(Deserialize)]
struct Job {
    read: Option<Direction>,
    write: Option<Direction>,
    trim: Option<Direction>,
    /// With `unified_rw_reporting`, instead of the others.
    mixed: Option<Direction>,
}

/// Total, completion and submission latencies.
#[derive(Deserialize)]
struct Direction {
    lat_ns: Option<Latency>,
    clat_ns: Option<Latency>,
    slat_ns: Option<Latency>,
}

/// Figures in ns.
#[derive(Deserialize)]
struct Latency {
    min: f64,
    max: f64,
    mean: f64,
    #[serde(rename = "N")]
    count: Option<u64>,
    /// The counts of the bins with these middles.
    #[serde(default)]
    bins: BTreeMap<i64, u64>,
}

impl Members for FioDocument {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, object: &mut A) -> Result<(), A::Error> {
        match name {
            "fio version" => {
                self.version = Some(object.next_value::<String>()?.trim_start_matches("fio-").to_owned());
            }
            "jobs" => object.next_value_seed(each(|job| self.take(job)))?,
            _ => json::ignore(object)?,
        }
        Ok(())
    }
}

impl FioDocument {
    fn take(&mut self, job: Job) -> Result<(), String> {
        self.jobs += 1;
        for (direction, latencies) in [job.read, job.write, job.trim, job.mixed].into_iter().enumerate() {
            let Some(Direction { lat_ns, clat_ns, slat_ns }) = latencies else { continue };
            let named = [("lat_ns", lat_ns), ("clat_ns", clat_ns), ("slat_ns", slat_ns)];
            let mut with_bins = named.into_iter().filter_map(|(name, latency)| Some((name, latency?)));
            let Some((name, latency)) = with_bins.find(|(_, latency)| !latency.bins.is_empty()) else { continue };
            if latency.bins.iter().any(|(middle, count)| bounded(*middle).is_none() || *count > TOTAL_MAX) {
                return Err("a bin beyond 146 years, or with more than 2^40 values".into());
            }
            match self.chosen.is_some_and(|chosen| chosen != direction) {
                true => self.has_others = true,
                false if self.found.len() < 2 => self.found.push((self.jobs, name, latency)),
                false => {}
            }
        }
        Ok(())
    }
}

impl Latency {
    /// What is stated beside the bins, within the half of a bin.
    fn totals(&self) -> LogTotals {
        let within = |ns: f64| Some(StatedValue::within(ns.round() as i64, (ns / 128.0) as i64 + 1));
        let (min, mean, max) = (within(self.min), within(self.mean), within(self.max));
        LogTotals { received: self.count, min, mean, max, ..LogTotals::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::*;

    const LOG: &str = "0, 281109, 0, 4096, 0\n0, 70536, 0, 4096, 0\n0, 48753, 0, 4096, 0\n1, 11858, 0, 4096, 0\n";
    const MIXED: &str = "0, 281109, 0, 4096, 0\n0, 11858, 1, 4096, 0\n0, 48032, 0, 4096, 0\n1, 10, 2, 512, 0\n";
    /// With bins of reads, from 6,976 to 7,039 and from 44,544 to 45,055 ns.
    const DOCUMENT: &str = r#"fio: a message
{ "fio version" : "fio-3.33", "time" : "x", "jobs" : [
    { "jobname" : "j", "error" : 0, "job options" : { "rw" : "read" },
      "read" : { "total_ios" : 4, "slat_ns" : { "min" : 0, "max" : 0, "mean" : 0.000000, "stddev" : 0, "N" : 0 },
        "clat_ns" : { "min" : 7000, "max" : 44600, "mean" : 16410.25, "N" : 4, "percentile" : { "1.000000" : 7008 },
          "bins" : { "7008" : 3, "44800" : 1 } },
        "lat_ns" : { "min" : 7100, "max" : 44700, "mean" : 16500.25, "stddev" : 1.5, "N" : 4 } },
      "write" : { "clat_ns" : { "min" : 0, "max" : 0, "mean" : 0.0, "N" : 0 } },
      "sync" : { "lat_ns" : { "min" : 1, "max" : 1, "mean" : 1.0, "N" : 1, "bins" : { "1" : 1 } } } } ],
  "disk_util" : [ { "name" : "sda" } ] }
Run status group 0 (all jobs):
"#;

    fn options(direction: &str) -> LogOptions {
        LogOptions { direction: Some(direction.into()), ..LogOptions::default() }
    }

    fn values(options: &LogOptions, log: &str) -> Vec<i64> {
        let (block, _) = read(&FORMAT, options, false, log.as_bytes()).expect(log);
        let numbers: Vec<_> = block.values.iter().map(|value| value.seq).collect();
        assert_eq!(numbers, (0..block.values.len() as u64).map(Some).collect::<Vec<_>>());
        block.values.iter().filter_map(|value| value.value_ns).collect()
    }

    fn fault(format: &LogFormat, log: &str) -> LogFault {
        read(format, &LogOptions::default(), true, log.as_bytes()).expect_err(log)
    }

    #[test]
    fn every_version_of_a_row_is_read() {
        let default = LogOptions::default();
        assert_eq!(values(&default, LOG), [281_109, 70_536, 48_753, 11_858]);
        for text in [LOG, &LOG.replace('\n', "\r\n")] {
            assert!(is_detected(&FORMAT, text.as_bytes()));
            let (_, end) = read(&FORMAT, &default, false, text.as_bytes()).expect(text);
            let facts = LogFacts { metric: Some(Metric::Delay), unit_assumed: true, ..LogFacts::of("fio") };
            assert_eq!(end.facts, facts);
        }
        for end in ["", ", 249856", ", 249856, 1", ", 0x4001", ", 249856, 0x0000, 1795781773000000000"] {
            let row = format!("3, -12, 0, 4096{end}");
            assert_eq!(values(&default, &row), [-12], "{row}");
            assert_eq!(time_of_row(row.replace('-', "").as_bytes()), Some(3), "{row}");
        }
        let micros = LogOptions { unit: Some(TimeUnit::Micros), metric: Some(Metric::RoundTripDelay), ..default };
        let (block, end) = read(&FORMAT, &micros, false, LOG.as_bytes()).expect("a log");
        assert_eq!((block.values[0].value_ns, end.facts.resolution_ns), (Some(281_109_000), Some(Nanos(1_000))));
        assert_eq!(end.facts.metric, Some(Metric::RoundTripDelay));
    }

    #[test]
    fn mixed_directions_need_a_choice_and_aggregates_are_refused() {
        let mixed = fault(&FORMAT, MIXED);
        assert_eq!((mixed.line, mixed.column, &*mixed.what), (Some(2), None, "the log mixes reads and writes"));
        assert_eq!(values(&options("read"), MIXED), [281_109, 48_032]);
        assert_eq!(values(&options("trim"), MIXED), [10]);
        let refused = |direction| read(&FORMAT, &options(direction), true, LOG.as_bytes()).expect_err("none").what;
        assert_eq!(refused("trim"), "the log has no row of the direction `trim`");
        assert!(refused("both").contains("`both` is not a direction"));
        let histogram = format!("13, 0, 4096{}\n", ", 0".repeat(1_216));
        for log in ["5, 4609, 1, 0, 0\n5, 46164, 0, 0, 0\n", "5, 4609, 46164, 1, 0, 0\n", &histogram] {
            assert!(fault(&FORMAT, log).what.contains("not samples"), "{log}");
            assert!(is_detected(&FORMAT, log.as_bytes()), "{log}");
        }
    }

    #[test]
    fn a_damaged_row_is_an_error_with_its_column_and_other_tables_are_not_detected() {
        for (bad, column) in [
            ("2, x, 0, 4096, 0", 4),
            ("2, 5", 5),
            ("2, 5, 3, 4096, 0", 7),
            ("2, 5, 0, 4096, y", 16),
            ("2.5, 5, 0, 4096", 1),
            ("1, 2, 0, 4096, 5, 6, 7, 8, 9", 28),
        ] {
            let log = format!("fio: a message\n{LOG}{bad}\n");
            let fault = read(&FORMAT, &LogOptions::default(), false, log.as_bytes()).expect_err(bad);
            assert_eq!((fault.line, fault.column), (Some(6), Some(column)), "{fault:?}");
        }
        for text in [
            "1,2,0,4096,0\n",
            "1 2 0 4096\n",
            "1, 2\n",
            "time, value, 0, 4096\n1, 2, 0, 4096\n",
            "1, 2, 0, 64\n2, 3, 1, 64\n",
            "3, 2, 0, 4096\n1, 3, 1, 4096\n2, 5, 1, 4096\n",
            "5, 6, 7, 0\n",
        ] {
            assert!(!detects(&LogHead { bytes: text.as_bytes(), is_whole: true }), "{text:?}");
        }
    }

    #[test]
    fn bins_of_a_document_are_values_at_their_middles() {
        let (block, end) = read(&JSON_FORMAT, &LogOptions::default(), false, DOCUMENT.as_bytes()).expect("a document");
        let rows: Vec<_> = block.values.iter().map(|row| (row.seq, row.value_ns, row.count)).collect();
        assert_eq!(rows, [(None, Some(7_008), 3), (None, Some(44_800), 1)]);
        assert_eq!((end.facts.version.as_deref(), end.contradictions, end.others.count), (Some("3.33"), vec![], 2));
        assert_eq!(end.facts.notes, ["bins of `clat_ns`, of which the middles are the values"]);
        assert!(is_detected(&JSON_FORMAT, DOCUMENT.as_bytes()));
        for (from, to, due) in [
            ("\"N\" : 4, \"p", "\"N\" : 5, \"p", "5 received, 4 in its rows"),
            ("44600", "46000", "a maximum of 46 µs, 44.8 µs in its rows"),
            ("16410.25", "16800.5", "a mean of 16.801 µs, 16.456 µs in its rows"),
        ] {
            let text = DOCUMENT.replace(from, to);
            let (_, end) = read(&JSON_FORMAT, &LogOptions::default(), false, text.as_bytes()).expect(to);
            assert_eq!(end.contradictions, [due]);
        }
        let total =
            DOCUMENT.replace("1.5, \"N\" : 4 }", "1.5, \"N\" : 4, \"bins\" : { \"7072\" : 3, \"44800\" : 1 } }");
        let (block, _) = read(&JSON_FORMAT, &LogOptions::default(), false, total.as_bytes()).expect("bins of two");
        assert_eq!(block.values[0].value_ns, Some(7_072), "total latencies are preferred");
    }

    #[test]
    fn a_document_without_bins_or_with_those_of_several_measurements_is_refused() {
        let bins = "\"bins\" : { \"7008\" : 3, \"44800\" : 1 }";
        let both = DOCUMENT.replace("0.0, \"N\" : 0 }", &format!("1.0, \"N\" : 4, {bins} }}"));
        assert_eq!(fault(&JSON_FORMAT, &both).what, "the log mixes reads and writes");
        let (_, end) = read(&JSON_FORMAT, &options("write"), false, both.as_bytes()).expect("writes");
        assert_eq!(end.contradictions.len(), 3, "those of writes");
        let none = read(&JSON_FORMAT, &options("trim"), false, both.as_bytes()).expect_err("no trims");
        assert_eq!(none.what, "the log has no row of the direction `trim`");
        let plain = fault(&JSON_FORMAT, &DOCUMENT.replace(bins, "\"bins\" : {}"));
        assert!(plain.what.contains("no bins") && plain.hint.is_some_and(|hint| hint.contains("json+")));
        let job = &DOCUMENT[DOCUMENT.find("    { \"jobname").expect("a job")..DOCUMENT.find(" ],\n").expect("its end")];
        assert!(fault(&JSON_FORMAT, &DOCUMENT.replace(job, &format!("{job}, {job}"))).what.contains("several jobs"));
        let damaged = fault(&JSON_FORMAT, &DOCUMENT.replace("\"7008\" : 3", "\"7o08\" : 3"));
        assert_eq!((damaged.line, damaged.column), (Some(6), Some(24)), "{damaged:?}");
    }
}
