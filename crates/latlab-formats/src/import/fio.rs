//! fio: the logs that `write_lat_log=NAME` writes, with rows `time, value, direction, block size[, offset], priority[, issue time]`,
//! and the document of `--output-format=json+`.
//!
//! Values are in ns since fio 3.0 and were in µs before, which the log does not say. Logs of bandwidths and rates (`_bw`, `_iops`)
//! differ in their names only. A block size of 0 is an average over `log_avg_msec`. The name of a bin of the document is its middle
//! in ns; from 128 ns on a bin is between 1/128 and 1/64 of its values wide.

use super::prelude::*;
use serde::Deserialize;
use std::collections::BTreeMap;

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
const COLUMNS: std::ops::RangeInclusive<usize> = 4..=7;
/// The smallest block of a device; 0 stands for several blocks.
const BLOCK_MIN: u64 = 512;

/// Whether `line` has whole numbers behind commas and blanks, with a direction in front of the size of a block.
pub(super) fn looks_like_row(line: &[u8]) -> bool {
    let texts: Vec<&[u8]> = line.split(|byte| *byte == b',').collect();
    let is_parted = texts[1..].iter().all(|text| text.starts_with(b" "));
    let number = |at: usize| LogField { text: texts[at].trim_ascii(), column: 1 }.count().ok();
    let is_row = || {
        let is_direction = number(0).and(number(1)).and(number(2))? < DIRECTIONS.len() as u64;
        number(3).map(|block| is_direction && (block == 0 || block >= BLOCK_MIN))
    };
    is_parted && COLUMNS.contains(&texts.len()) && is_row() == Some(true)
}

fn chosen(options: &LogOptions) -> Result<Option<usize>, LogFault> {
    let Some(word) = options.direction.as_deref() else { return Ok(None) };
    match DIRECTIONS.iter().position(|direction| *direction == word) {
        Some(direction) => Ok(Some(direction)),
        None => Err(LogFault::whole(format!("`{word}` is not a direction: read, write or trim"))),
    }
}

pub(super) fn open(options: &LogOptions) -> OpenedLog {
    let chosen = chosen(options)?;
    let (given, metric) = (options.unit, options.metric.unwrap_or(Metric::Delay));
    Ok(Box::new(FioLog { given, metric, is_chosen: chosen.is_some(), direction: chosen.map(|at| at as u64), row: 0 }))
}

struct FioLog {
    given: Option<TimeUnit>,
    metric: Metric,
    is_chosen: bool,
    direction: Option<u64>,
    row: u64,
}

impl LineParser for FioLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        if !line.trim_ascii_start().first().is_some_and(u8::is_ascii_digit) {
            return Ok(LineUse::Other);
        }
        let fields: Vec<LogField<'_>> = cells(line, b',').collect();
        let Some([time, value, direction, block]) = fields.first_chunk().filter(|_| COLUMNS.contains(&fields.len()))
        else {
            let what = format!("the row has {} columns instead of 4 to 7", fields.len());
            return Err(LogFault::at(line.len() + 1, what));
        };
        time.count()?;
        let value_ns = value.time(self.given.unwrap_or(TimeUnit::Nanos))?;
        let number = direction.count()?;
        if number >= DIRECTIONS.len() as u64 {
            return Err(direction.is_not("a direction: 0 read, 1 write, 2 trim"));
        }
        if block.count()? == 0 {
            return Err(LogFault::whole("the log has averages or maxima (`log_avg_msec`), not samples")
                .hint("write the log with `log_avg_msec=0`"));
        }
        if *self.direction.get_or_insert(number) == number {
            rows.are_of(self.metric);
            rows.value(LoggedValue { seq: Some(self.row), value_ns: Some(value_ns), count: 1 });
            self.row += 1;
        } else if !self.is_chosen {
            return Err(mixed());
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> ReadLog {
        if let (true, 0, Some(direction)) = (self.is_chosen, self.row, self.direction) {
            return Err(none_of(DIRECTIONS[direction as usize]));
        }
        let resolution_ns = self.given.map(|unit| Nanos(unit.nanos() as i64));
        Ok(LogFacts { resolution_ns, unit_assumed: self.given.is_none(), ..LogFacts::of("fio") })
    }
}

#[cold]
fn mixed() -> LogFault {
    LogFault::whole("the log mixes reads and writes").hint("choose one: `--direction read`, `write` or `trim`")
}

fn none_of(direction: &str) -> LogFault {
    LogFault::whole(format!("the log has no row of the direction `{direction}`"))
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "fio version")]
    version: Option<String>,
    #[serde(default)]
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    read: Option<Direction>,
    write: Option<Direction>,
    trim: Option<Direction>,
    /// With `unified_rw_reporting`, instead of the others.
    mixed: Option<Direction>,
}

#[derive(Deserialize)]
struct Direction {
    lat_ns: Option<Latency>,
    clat_ns: Option<Latency>,
    slat_ns: Option<Latency>,
}

#[derive(Deserialize)]
struct Latency {
    #[serde(rename = "N")]
    count: Option<u64>,
    #[serde(flatten)]
    times: StatedTimes,
    #[serde(default)]
    bins: BTreeMap<i64, u64>,
}

impl Direction {
    fn with_bins(self) -> Option<(&'static str, Latency)> {
        let named = [("lat_ns", self.lat_ns), ("clat_ns", self.clat_ns), ("slat_ns", self.slat_ns)];
        let mut some = named.into_iter().filter_map(|(name, latency)| Some((name, latency?)));
        some.find(|(_, latency)| !latency.bins.is_empty())
    }
}

pub(super) fn read_json(input: &mut Documents<'_>, options: &LogOptions, rows: &mut LogRows<'_>) -> ReadLog {
    let Document { version, jobs } = input.read_one()?;
    let jobs = jobs.into_iter().map(|job| [job.read, job.write, job.trim, job.mixed]).enumerate();
    let each =
        jobs.flat_map(|(job, directions)| (0..).zip(directions).map(move |(number, found)| (job, number, found)));
    let mut found: Vec<_> = each.filter_map(|(job, at, found)| Some((job, at, found?.with_bins()?))).collect();
    let chosen = chosen(options)?.filter(|_| !found.is_empty());
    found.retain(|(_, direction, _)| chosen.is_none_or(|chosen| chosen == *direction));
    let (name, latency) = match (found.as_slice(), chosen) {
        ([(.., (name, latency))], _) => (name, latency),
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
    if latency.bins.iter().any(|(middle, count)| bounded(*middle).is_none() || *count > TOTAL_MAX) {
        return Err(LogFault::whole("a bin beyond 146 years, or with more than 2^40 values"));
    }
    rows.are_of(options.metric.unwrap_or(Metric::Delay));
    for (middle, count) in &latency.bins {
        rows.value(LoggedValue { seq: None, value_ns: Some(*middle), count: *count });
    }
    Ok(LogFacts {
        version: version.map(|version| version.trim_start_matches("fio-").to_owned()),
        totals: LogTotals { received: latency.count, ..latency.times.within(|ns| ns / 64 + 1) },
        notes: vec![format!("bins of `{name}`, of which the middles are the values")],
        ..LogFacts::of("fio")
    })
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
        let (block, _) = read("fio", options, false, log.as_bytes()).expect(log);
        let numbers: Vec<_> = block.values.iter().map(|value| value.seq).collect();
        assert_eq!(numbers, (0..block.values.len() as u64).map(Some).collect::<Vec<_>>());
        block.values.iter().filter_map(|value| value.value_ns).collect()
    }

    fn fault(format: &str, log: &str) -> LogFault {
        read(format, &LogOptions::default(), true, log.as_bytes()).expect_err(log)
    }

    #[test]
    fn every_version_of_a_row_is_read() {
        let default = LogOptions::default();
        assert_eq!(values(&default, LOG), [281_109, 70_536, 48_753, 11_858]);
        for text in [LOG, &LOG.replace('\n', "\r\n")] {
            assert!(is_detected("fio", text.as_bytes()));
            let (_, end) = read("fio", &default, false, text.as_bytes()).expect(text);
            let facts = LogFacts { metric: Some(Metric::Delay), unit_assumed: true, ..LogFacts::of("fio") };
            assert_eq!(end.facts, facts);
        }
        for end in ["", ", 249856", ", 249856, 1", ", 0x4001", ", 249856, 0x0000, 1795781773000000000"] {
            let row = format!("3, -12, 0, 4096{end}");
            assert_eq!(values(&default, &row), [-12], "{row}");
            assert!(looks_like_row(row.replace("-", "").as_bytes()), "{row}");
        }
        let micros = LogOptions { unit: Some(TimeUnit::Micros), metric: Some(Metric::RoundTripDelay), ..default };
        let (block, end) = read("fio", &micros, false, LOG.as_bytes()).expect("a log");
        assert_eq!((block.values[0].value_ns, end.facts.resolution_ns), (Some(281_109_000), Some(Nanos(1_000))));
        assert_eq!(end.facts.metric, Some(Metric::RoundTripDelay));
    }

    #[test]
    fn mixed_directions_need_a_choice_and_aggregates_are_refused() {
        let mixed = fault("fio", MIXED);
        assert_eq!((mixed.line, mixed.column, &*mixed.what), (Some(2), None, "the log mixes reads and writes"));
        assert_eq!(values(&options("read"), MIXED), [281_109, 48_032]);
        assert_eq!(values(&options("trim"), MIXED), [10]);
        let refused = |direction| read("fio", &options(direction), true, LOG.as_bytes()).expect_err("none").what;
        assert_eq!(refused("trim"), "the log has no row of the direction `trim`");
        assert!(refused("both").contains("`both` is not a direction"));
        let averages = "5, 4609, 1, 0, 0\n5, 46164, 0, 0, 0\n";
        assert!(fault("fio", averages).what.contains("not samples") && is_detected("fio", averages.as_bytes()));
        for (log, what) in [
            ("5, 4609, 46164, 1, 0, 0\n", "`46164` is not a direction: 0 read, 1 write, 2 trim"),
            ("1, 0, 4096, 0, 0, 0, 0, 0\n", "the row has 8 columns instead of 4 to 7"),
        ] {
            assert_eq!(read("fio", &LogOptions::default(), false, log.as_bytes()).expect_err(log).what, what);
        }
    }

    #[test]
    fn bins_of_a_document_are_values_at_their_middles() {
        let (block, end) = read("fio-json", &LogOptions::default(), false, DOCUMENT.as_bytes()).expect("a document");
        let rows: Vec<_> = block.values.iter().map(|row| (row.seq, row.value_ns, row.count)).collect();
        assert_eq!(rows, [(None, Some(7_008), 3), (None, Some(44_800), 1)]);
        assert_eq!((end.facts.version.as_deref(), end.contradictions, end.others.count), (Some("3.33"), vec![], 2));
        assert_eq!(end.facts.notes, ["bins of `clat_ns`, of which the middles are the values"]);
        assert!(is_detected("fio-json", DOCUMENT.as_bytes()));
        let wrong = DOCUMENT.replace("\"N\" : 4, \"p", "\"N\" : 5, \"p");
        let (_, end) = read("fio-json", &LogOptions::default(), false, wrong.as_bytes()).expect("a document");
        assert_eq!(end.contradictions, ["5 received, 4 in its rows"]);
        let total =
            DOCUMENT.replace("1.5, \"N\" : 4 }", "1.5, \"N\" : 4, \"bins\" : { \"7072\" : 3, \"44800\" : 1 } }");
        let (block, _) = read("fio-json", &LogOptions::default(), false, total.as_bytes()).expect("bins of two");
        assert_eq!(block.values[0].value_ns, Some(7_072), "total latencies are preferred");
    }

    #[test]
    fn a_document_without_bins_or_with_those_of_several_measurements_is_refused() {
        let bins = "\"bins\" : { \"7008\" : 3, \"44800\" : 1 }";
        let both = DOCUMENT.replace("0.0, \"N\" : 0 }", &format!("1.0, \"N\" : 4, {bins} }}"));
        assert_eq!(fault("fio-json", &both).what, "the log mixes reads and writes");
        let (_, end) = read("fio-json", &options("write"), false, both.as_bytes()).expect("writes");
        assert_eq!(end.contradictions[0], "a minimum of 0 µs, 7.008 µs in its rows", "that of writes");
        let none = read("fio-json", &options("trim"), false, both.as_bytes()).expect_err("no trims");
        assert_eq!(none.what, "the log has no row of the direction `trim`");
        let plain = fault("fio-json", &DOCUMENT.replace(bins, "\"bins\" : {}"));
        assert!(plain.what.contains("no bins") && plain.hint.is_some_and(|hint| hint.contains("json+")));
        let job = &DOCUMENT[DOCUMENT.find("    { \"jobname").expect("a job")..DOCUMENT.find(" ],\n").expect("its end")];
        assert!(fault("fio-json", &DOCUMENT.replace(job, &format!("{job}, {job}"))).what.contains("several jobs"));
        let damaged = fault("fio-json", &DOCUMENT.replace("\"7008\" : 3", "\"7o08\" : 3"));
        assert_eq!((damaged.line, damaged.column), (Some(6), Some(24)), "{damaged:?}");
    }
}
