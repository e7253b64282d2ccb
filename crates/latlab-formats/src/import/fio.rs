//! fio: the logs that `write_lat_log=NAME` writes, `NAME_lat.1.log`, `NAME_clat.1.log` and `NAME_slat.1.log`. A row is
//! `time, value, direction, block size[, offset], priority[, issue time]`; versions before 3.20 have no priority.
//!
//! The value is in ns since fio 3.0 and was in µs before; the log does not say which, so ns is assumed unless the unit is
//! given, and the facts of the log say so. Logs of bandwidths and rates (`_bw`, `_iops`) look the same and differ in their
//! names only. Rows of several threads are in the order in which fio wrote them. A row with the block size 0 is an average or
//! a maximum over `log_avg_msec`, a row with hundreds of columns is a histogram (`write_hist_log`): neither is a sample, and
//! both are refused. A log that mixes directions needs the option `direction`.

use super::field::{LogField, cells};
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
    let mut numbers = [0; COLUMNS_MAX];
    let mut columns = 0;
    for cell in line.split(|byte| *byte == b',') {
        let text = if columns == 0 { Some(cell) } else { cell.strip_prefix(b" ") };
        let field = LogField { text: text.filter(|text| !text.is_empty())?, column: 1 };
        let number = field.count().ok().or_else(|| priority(&field))?;
        if let Some(place) = numbers.get_mut(columns) {
            *place = number;
        }
        columns += 1;
    }
    let [time, second, third, fourth, fifth, ..] = numbers;
    let is_direction = |number| number < DIRECTIONS.len() as u64;
    // A block of 0 bytes stands for several of them; average and maximum have two columns.
    let is_block = fourth == 0 || fourth >= BLOCK_MIN;
    let is_row = match columns {
        4 => is_direction(third) && is_block,
        5..=COLUMNS_MAX => (is_direction(third) && is_block) || (is_direction(fourth) && fifth == 0),
        _ => columns >= HISTOGRAM_COLUMNS && is_direction(second),
    };
    is_row.then_some(time)
}

/// A priority in the form of `log_prio`: `0x4001`.
fn priority(field: &LogField<'_>) -> Option<u64> {
    let digits = std::str::from_utf8(field.text.strip_prefix(b"0x")?).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

fn parser(options: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    let direction = match options.direction.as_deref() {
        None => None,
        Some(word) => match DIRECTIONS.iter().position(|direction| *direction == word) {
            Some(direction) => Some(direction as u64),
            None => return Err(LogFault::whole(format!("`{word}` is not a direction: read, write or trim"))),
        },
    };
    let (unit, metric) = (options.unit.unwrap_or(TimeUnit::Nanos), options.metric.unwrap_or(Metric::Delay));
    let unit_assumed = options.unit.is_none();
    Ok(Box::new(FioLog { unit, unit_assumed, metric, chosen: direction.is_some(), direction, row: 0 }))
}

/// The reading of a log.
struct FioLog {
    unit: TimeUnit,
    unit_assumed: bool,
    metric: Metric,
    /// Whether the direction was chosen, so that others are skipped.
    chosen: bool,
    /// The direction of the values; `None` before the first row.
    direction: Option<u64>,
    /// Number of the next value.
    row: u64,
}

impl FioLog {
    fn read_line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let mut fields = [LogField { text: b"", column: 1 }; COLUMNS_MAX];
        let mut columns = 0;
        for field in cells(line, b',') {
            match fields.get_mut(columns) {
                Some(place) => *place = field,
                None => return Err(too_many(line, &field)),
            }
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
            return Ok(());
        }
        if self.chosen { Ok(()) } else { Err(mixed()) }
    }
}

impl LineParser for FioLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        self.read_line(line, rows).map(|()| LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        if let (true, 0, Some(direction)) = (self.chosen, self.row, self.direction) {
            let word = DIRECTIONS[direction as usize];
            return Err(LogFault::whole(format!("the log has no row of the direction `{word}`")));
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

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::*;

    const LOG: &str = "\
0, 281109, 0, 4096, 0
0, 70536, 0, 4096, 0
0, 48753, 0, 4096, 0
1, 11858, 0, 4096, 0
";
    const MIXED: &str = "0, 281109, 0, 4096, 0\n0, 11858, 1, 4096, 0\n0, 48032, 0, 4096, 0\n1, 10, 2, 512, 0\n";

    fn options(direction: &str) -> LogOptions {
        LogOptions { direction: Some(direction.into()), ..LogOptions::default() }
    }

    fn values(options: &LogOptions, log: &str) -> Vec<i64> {
        let (block, _) = read(&FORMAT, options, false, log.as_bytes()).expect(log);
        let numbers: Vec<_> = block.values.iter().map(|value| value.seq).collect();
        assert_eq!(numbers, (0..block.values.len() as u64).map(Some).collect::<Vec<_>>());
        block.values.iter().filter_map(|value| value.value_ns).collect()
    }

    fn fault(log: &str) -> LogFault {
        read(&FORMAT, &LogOptions::default(), true, log.as_bytes()).expect_err(log)
    }

    #[test]
    fn a_log_of_one_direction_has_its_values() {
        let default = LogOptions::default();
        assert_eq!(values(&default, LOG), [281_109, 70_536, 48_753, 11_858]);
        assert_eq!(values(&default, &LOG.replace('\n', "\r\n")), values(&default, LOG));
        assert!(is_detected(&FORMAT, LOG.as_bytes()) && is_detected(&FORMAT, LOG.replace('\n', "\r\n").as_bytes()));
        let micros = LogOptions { unit: Some(TimeUnit::Micros), metric: Some(Metric::RoundTripDelay), ..default };
        assert_eq!(values(&micros, LOG)[0], 281_109_000);
        let (_, end) = read(&FORMAT, &micros, false, LOG.as_bytes()).expect("a log");
        assert_eq!((end.facts.metric, end.facts.resolution_ns), (Some(Metric::RoundTripDelay), Some(Nanos(1_000))));
        let (_, end) = read(&FORMAT, &LogOptions::default(), false, LOG.as_bytes()).expect("a log");
        let facts = LogFacts { metric: Some(Metric::Delay), unit_assumed: true, ..LogFacts::of("fio") };
        assert_eq!(end.facts, facts);
    }

    #[test]
    fn every_version_of_a_row_is_read() {
        for row in [
            "3, -12, 0, 4096",
            "3, -12, 0, 4096, 249856",
            "3, -12, 0, 4096, 249856, 1",
            "3, -12, 0, 4096, 0x4001",
            "3, -12, 0, 4096, 249856, 0x0000, 1795781773000000000",
        ] {
            assert_eq!(values(&LogOptions::default(), row), [-12], "{row}");
            assert_eq!(time_of_row(row.replace('-', "").as_bytes()), Some(3), "{row}");
        }
    }

    #[test]
    fn mixed_directions_need_a_choice() {
        let fault = fault(MIXED);
        assert_eq!((fault.line, fault.column, fault.what.as_str()), (Some(2), None, "the log mixes reads and writes"));
        assert_eq!(values(&options("read"), MIXED), [281_109, 48_032]);
        assert_eq!(values(&options("write"), MIXED), [11_858]);
        assert_eq!(values(&options("trim"), MIXED), [10]);
        let refused =
            |direction: &str, log: &str| read(&FORMAT, &options(direction), true, log.as_bytes()).expect_err("none");
        assert_eq!(refused("trim", LOG).what, "the log has no row of the direction `trim`");
        assert!(refused("both", LOG).what.contains("`both` is not a direction"));
    }

    #[test]
    fn aggregates_are_refused() {
        let averages = "5, 4609, 1, 0, 0\n5, 46164, 0, 0, 0\n";
        let both = "5, 4609, 46164, 1, 0, 0\n";
        let small = "5, 1, 2, 1, 0, 0\n";
        let histogram = format!("13, 0, 4096{}\n", ", 0".repeat(1_216));
        for log in [averages, both, &histogram] {
            assert!(fault(log).what.contains("not samples"), "{log}");
            assert!(is_detected(&FORMAT, log.as_bytes()), "{log}");
        }
        assert_eq!(values(&LogOptions::default(), small), [1], "a row with an offset has the same form");
    }

    #[test]
    fn a_bad_line_is_an_error_with_its_column() {
        for (bad, column) in [
            ("2, x, 0, 4096, 0", 4),
            ("2, 5", 5),
            ("2, 5, 3, 4096, 0", 7),
            ("2, 5, 0, 4096, y", 16),
            ("2.5, 5, 0, 4096", 1),
            ("1, 2, 0, 4096, 5, 6, 7, 8, 9", 28),
            ("\u{0}\u{1}", 3),
        ] {
            let log = format!("{LOG}{bad}\n");
            let fault = read(&FORMAT, &LogOptions::default(), false, log.as_bytes()).expect_err(bad);
            assert_eq!((fault.line, fault.column), (Some(5), Some(column)), "{fault:?}");
            let (block, end) = read(&FORMAT, &LogOptions::default(), true, log.as_bytes()).expect("a log");
            assert_eq!((block.values.len(), end.skipped, end.first_skipped), (4, 1, Some(fault)));
        }
    }

    #[test]
    fn other_text_is_not_detected() {
        let utf_16: Vec<u8> = LOG.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in
            [&utf_16[..], b"1,2,0,4096,0\n", b"1 2 0 4096\n", b"1, 2\n", b"time, value, 0, 4096\n", b"\xff\x00", b""]
        {
            assert!(!detects(&LogHead { bytes, is_whole: true }), "{bytes:?}");
        }
    }

    #[test]
    fn other_tables_of_whole_numbers_are_not_detected() {
        let small_blocks = "1, 2, 0, 64\n2, 3, 1, 64\n";
        let descending = "3, 2, 0, 4096\n1, 3, 1, 4096\n2, 5, 1, 4096\n";
        for text in [small_blocks, descending, "0, 1, 0, 1, 1\n", "5, 6, 7, 0\n"] {
            assert!(!detects(&LogHead { bytes: text.as_bytes(), is_whole: true }), "{text:?}");
        }
        let damaged = format!("{}{}", "1, 7, 0, 4096\n".repeat(19), "0, 7, 0, 4096\n");
        assert!(detects(&LogHead { bytes: damaged.as_bytes(), is_whole: true }), "one descent of many rows");
    }
}
