//! sockperf: the file that `--full-log FILE` writes (3.7). It has totals, and a table between lines of dashes:
//!
//! ```text
//! packet, txTime(sec), rxTime(sec), latency(usec)
//! 0, 2.408848727, 2.408858502, 4.888
//! ```
//!
//! Both instants are of the sender's clock, in seconds since the start of sockperf, so that their difference is a round trip;
//! `--full-rtt` changes only the last column, which is half of it without that option and is not taken. The number of a
//! packet counts rows: dropped messages (`# dropped messages`, a fact of the log) and those that arrived out of order, which
//! count as neither lost nor answered, have no row. The warm-up of 400 ms and the last 50 ms have no rows either. The
//! version is known only if the output of sockperf stands in front of the log.

use memchr::memmem;

use super::field::{LogField, bounded, cells, whole};
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::LoggedProbe;
use crate::plan::Kind;
use crate::units::Nanos;
use crate::units::human::TimeUnit;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "sockperf",
    title: "full log of sockperf",
    rows: Kind::Ping,
    is_generic: false,
    options: &[],
    states_losses: true,
    detects,
    reader: LogReader::Lines(parser),
};

/// The begin of the line above the first row, without its last column.
const HEADER: &[u8] = b"packet, txTime(sec), rxTime(sec)";
const PARAMETERS: &[u8] = b"test was performed using the following parameters:";
/// The begins of other lines: of the log, and of the output of sockperf in front of it.
const OTHERS: [&[u8]; 3] = [b"---", b"sockperf", b"["];
/// The rate of messages that stands for no limit.
const MPS_MAX: u64 = 600_000;

fn detects(head: &LogHead<'_>) -> bool {
    head.lines().any(|line| line.starts_with(HEADER) || line.starts_with(PARAMETERS))
}

fn parser(_: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    Ok(Box::new(SockperfLog {
        facts: LogFacts::of("sockperf"),
        size_bytes: None,
        table: Table::Ahead,
        has_parameters: false,
    }))
}

/// The reading of a log.
struct SockperfLog {
    facts: LogFacts,
    size_bytes: Option<u32>,
    table: Table,
    has_parameters: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Table {
    Ahead,
    Within,
    Behind,
}

impl LineParser for SockperfLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        if self.table == Table::Within {
            if line.starts_with(b"---") {
                self.table = Table::Behind;
                return Ok(LineUse::Taken);
            }
            rows.probe(self.probe(line)?);
            return Ok(LineUse::Taken);
        }
        self.total(line).map(|()| LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        match self.table {
            Table::Ahead => {
                Err(LogFault::whole("the log has no table of messages: no answer arrived, or it was cut off"))
            }
            Table::Within => Err(LogFault::whole("the log ends within its table: it was cut off")),
            Table::Behind => Ok(self.facts.clone()),
        }
    }
}

impl SockperfLog {
    /// A row of the table.
    fn probe(&self, line: &[u8]) -> Result<LoggedProbe, LogFault> {
        let mut cells = cells(line, b',');
        let mut next = || cells.next().ok_or_else(|| LogFault::at(line.len() + 1, "the row has fewer than 4 columns"));
        let id = next()?.count()?;
        let sent_ns = next()?.time(TimeUnit::Seconds)?;
        let received_ns = next()?.time(TimeUnit::Seconds)?;
        next()?.time(TimeUnit::Micros)?;
        if let Some(more) = cells.next() {
            return Err(more.is_not("the end of the row"));
        }
        Ok(LoggedProbe {
            id: Some(id),
            sent_ns: Some(sent_ns),
            received_ns: Some(received_ns),
            size_bytes: self.size_bytes,
            ..LoggedProbe::default()
        })
    }

    /// A line outside of the table. One that is refused states nothing.
    fn total(&mut self, line: &[u8]) -> Result<(), LogFault> {
        let is_known = [HEADER, PARAMETERS].into_iter().chain(OTHERS).any(|start| line.starts_with(start));
        if !is_known && !line.trim_ascii().is_empty() {
            return Err(LogFault::at(1, format!("`{}` is not a line of sockperf", whole(line).shown())));
        }
        if line.starts_with(HEADER) {
            if self.table == Table::Behind {
                let what = "the log has several tables: of several runs, or of the answers of several hosts";
                return Err(LogFault::whole(what).hint("measure one host in one run"));
            }
            self.table = Table::Within;
        } else if line.starts_with(PARAMETERS) {
            if self.has_parameters {
                return Err(LogFault::whole("the log has several runs").hint("import each run as a file of its own"));
            }
            self.has_parameters = true;
            self.parameters(line);
        } else if let Some(dropped) = field_behind(line, "# dropped messages = ") {
            // The output in front of the log states it too.
            self.facts.lost = dropped.total()?;
        } else if let Some((_, version)) = String::from_utf8_lossy(line).split_once("== version #") {
            self.facts.version = version.split(' ').next().map(str::to_owned);
        }
        Ok(())
    }

    fn parameters(&mut self, line: &[u8]) {
        let size = number_behind(line, "--msg-size=");
        self.size_bytes = size.and_then(|size| u32::try_from(size).ok());
        let [mps, burst, reply_every] = ["--mps=", "--burst=", "--reply-every="].map(|name| number_behind(line, name));
        if let (Some(mps @ 1..MPS_MAX), Some(1), Some(reply_every)) = (mps, burst, reply_every) {
            let interval = reply_every.checked_mul(1_000_000_000).map(|ns| ns.saturating_add(mps / 2) / mps);
            self.facts.interval_ns = interval.and_then(|ns| i64::try_from(ns).ok().and_then(bounded)).map(Nanos);
        }
    }
}

/// The digits behind `name` in `line`.
fn field_behind<'a>(line: &'a [u8], name: &str) -> Option<LogField<'a>> {
    let start = memmem::find(line, name.as_bytes())? + name.len();
    let rest = &line[start..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some(LogField { text: &rest[..digits], column: start + 1 })
}

/// The whole number behind `name` in `line`.
fn number_behind(line: &[u8], name: &str) -> Option<u64> {
    field_behind(line, name)?.count().ok()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::*;

    const LOG: &str = "\
------------------------------
test was performed using the following parameters: --mps=500 --burst=1 --reply-every=10 --msg-size=100 --time=1
------------------------------
sockperf: [Total Run] RunTime=1.000 sec; Warm up time=400 msec; SentMessages=501; ReceivedMessages=50
sockperf: ========= Printing statistics for Server No: 0
sockperf: [Valid Duration] RunTime=0.520 sec; SentMessages=261; ReceivedMessages=27
sockperf: \u{1b}[2;35m====> avg-latency=98.121 (std-dev=365.726)\u{1b}[0m
sockperf: # dropped messages = 4; # duplicated messages = 0; # out-of-order messages = 1
sockperf: \u{1b}[2;35mTotal 27 observations\u{1b}[0m; each percentile contains 0.27 observations
sockperf: ---> <MAX> observation = 1893.969
sockperf: ---> percentile 99.999 = 1893.969
sockperf: ---> <MIN> observation =   12.618
------------------------------
packet, txTime(sec), rxTime(sec), latency(usec)
0, 2.418679643, 2.422467581, 1893.969
1, 2.438679646, 2.438705995, 13.175
26, 2.938679653, 2.938709177, 14.762
------------------------------
";

    fn fault(text: &str, skip_bad: bool) -> LogFault {
        read(&FORMAT, &LogOptions::default(), skip_bad, text.as_bytes()).expect_err(text)
    }

    #[test]
    fn a_log_has_the_instants_of_its_rows() {
        let (block, end) = read(&FORMAT, &LogOptions::default(), false, LOG.as_bytes()).expect("a log");
        let first = LoggedProbe {
            id: Some(0),
            sent_ns: Some(2_418_679_643),
            received_ns: Some(2_422_467_581),
            size_bytes: Some(100),
            ..LoggedProbe::default()
        };
        assert_eq!((block.probes.len(), block.probes[0]), (3, first));
        let facts = LogFacts { lost: 4, interval_ns: Some(Nanos(20_000_000)), ..LogFacts::of("sockperf") };
        assert_eq!(end.facts, facts);
        assert!(is_detected(&FORMAT, LOG.as_bytes()));
        for other in [LOG.replace('\n', "\r\n"), LOG.replace("latency(usec)", "rtt(usec)")] {
            assert_eq!(read(&FORMAT, &LogOptions::default(), false, other.as_bytes()).expect("a log").0, block);
            assert!(is_detected(&FORMAT, other.as_bytes()));
        }
    }

    #[test]
    fn an_unlimited_rate_has_no_interval() {
        for changed in [("--mps=500", "--mps=600000"), ("--burst=1", "--burst=3"), ("--mps=500", "--mps=0")] {
            let log = LOG.replace(changed.0, changed.1);
            let (_, end) = read(&FORMAT, &LogOptions::default(), false, log.as_bytes()).expect("a log");
            assert_eq!(end.facts.interval_ns, None, "{changed:?}");
        }
    }

    #[test]
    fn the_version_is_that_of_the_output_in_front() {
        let output =
            "sockperf: \u{1b}[2;35m== version #3.7-no.git == \u{1b}[0m\nsockperf: # dropped messages = 4; # dup\n";
        let log = format!("{output}{LOG}");
        let (_, end) = read(&FORMAT, &LogOptions::default(), false, log.as_bytes()).expect("a log");
        assert_eq!((end.facts.version.as_deref(), end.facts.lost), (Some("3.7-no.git"), 4));
    }

    #[test]
    fn a_negative_round_trip_is_kept() {
        let log = LOG.replace("2.438705995, 13.175", "2.438679640, -0.003");
        let (block, _) = read(&FORMAT, &LogOptions::default(), false, log.as_bytes()).expect("a log");
        assert_eq!((block.probes[1].sent_ns, block.probes[1].received_ns), (Some(2_438_679_646), Some(2_438_679_640)));
    }

    #[test]
    fn a_bad_row_is_an_error_with_its_column() {
        for (bad, column) in
            [("26, 2.938679653, x, 14.762", 18), ("26, 2.9386", 11), ("x", 1), ("1, 2, 3, 4, 5", 13), ("", 1)]
        {
            let log = LOG.replace("26, 2.938679653, 2.938709177, 14.762", bad);
            let fault = fault(&log, false);
            assert_eq!((fault.line, fault.column), (Some(17), Some(column)), "{fault:?}");
            let (block, end) = read(&FORMAT, &LogOptions::default(), true, log.as_bytes()).expect("a log");
            assert_eq!((block.probes.len(), end.skipped, end.first_skipped), (2, 1, Some(fault)));
        }
    }

    #[test]
    fn other_lines_and_rows_behind_the_table_are_faults() {
        let row = "27, 2.958679653, 2.958709177, 14.762";
        for (bad, line) in [(row, 19), ("\n27, 2.958679653", 20), ("# dropped messages = 9", 19)] {
            let fault = fault(&format!("{LOG}{bad}\n"), false);
            assert_eq!((fault.line, fault.column), (Some(line), Some(1)), "{fault:?}");
            assert!(fault.what.ends_with("is not a line of sockperf"), "{fault:?}");
        }
        let ahead = fault(&LOG.replace("packet, ", "pocket, "), false);
        assert_eq!((ahead.line, ahead.column), (Some(14), Some(1)));
        let output = "sockperf[CLIENT] send on:sockperf: using recvfrom() to block on socket(s)\n\n\
            [ 0] IP = 127.0.0.1       PORT = 11111 # UDP\nsockperf: Warmup stage (sending a few dummy messages)...\n";
        let (block, _) =
            read(&FORMAT, &LogOptions::default(), false, format!("{output}{LOG}\n").as_bytes()).expect("a log");
        assert_eq!(block.probes.len(), 3);
    }

    #[test]
    fn a_line_that_is_refused_states_nothing() {
        let log = format!("{LOG}# dropped messages = 9\n== version #9.9 ==\n");
        let (_, end) = read(&FORMAT, &LogOptions::default(), true, log.as_bytes()).expect("two bad lines");
        assert_eq!((end.skipped, end.facts.lost, end.facts.version), (2, 4, None));
        for dropped in ["1099511627777", "18446744073709551616"] {
            let log = LOG.replace("messages = 4", &format!("messages = {dropped}"));
            let fault = fault(&log, false);
            assert_eq!((fault.line, fault.column), (Some(8), Some(32)), "{fault:?}");
            let (_, end) = read(&FORMAT, &LogOptions::default(), true, log.as_bytes()).expect("a bad line");
            assert_eq!((end.skipped, end.facts.lost), (1, 0));
        }
    }

    #[test]
    fn a_log_that_was_cut_off_or_has_several_runs_is_refused() {
        let end = LOG.len() - "------------------------------\n".len();
        assert!(fault(&LOG[..end], true).what.contains("ends within its table"));
        assert!(fault(&LOG[..400], true).what.contains("no table"));
        assert!(fault(&format!("{LOG}{LOG}"), true).what.contains("several runs"));
        let table = &LOG[LOG.find("packet").expect("a table")..];
        assert!(fault(&format!("{LOG}{table}"), true).what.contains("several tables"));
        for junk in ["\u{0}\u{1}\u{2}", "", "1,2,3,4\n"] {
            assert!(fault(junk, true).what.contains("no table"));
        }
    }

    #[test]
    fn other_text_is_not_detected() {
        let utf_16: Vec<u8> = LOG.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [&utf_16[..], b"0, 2.4, 2.5, 12\n", b"seq,rtt\n1,2\n", b"\xff\xfe\x00", b""] {
            assert!(!detects(&LogHead { bytes, is_whole: true }));
        }
    }
}
