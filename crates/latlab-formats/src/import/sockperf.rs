//! sockperf: the file that `--full-log FILE` writes (2.7 to 3.10). It has totals, and a table between lines of dashes:
//!
//! ```text
//! packet, txTime(sec), rxTime(sec), latency(usec)
//! 0, 2.408848727, 2.408858502, 4.888
//! ```
//!
//! Until 3.4 it has the two instants alone. Both are of the sender's clock, in seconds since the start of sockperf, so that their
//! difference is a round trip; `--full-rtt` changes only the last column and the totals, which are halves without that option.
//! The number of a packet counts rows: dropped messages (`# dropped messages`, a fact of the log) and those that arrived out of
//! order, which count as neither lost nor answered, have no row. The warm-up of 400 ms and the last 50 ms have no rows either.
//! The version is known only if the output of sockperf stands in front of the log.

use super::check::{LogTotals, StatedValue, note};
use super::field::{LogField, bounded, cells, whole};
use super::form::captured;
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogReader, LogRows};
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
    reader: LogReader::Lines(|_| Ok(Box::<SockperfLog>::default())),
};

const PARAMETERS: &str = "test was performed using the following parameters: {}";
/// The rate of messages that stands for no limit.
const MPS_MAX: u64 = 600_000;

fn detects(head: &LogHead<'_>) -> bool {
    let is_one = |line: &[u8]| columns_of(line).is_some() || captured::<1>(whole(line), PARAMETERS).is_some();
    head.lines().any(is_one)
}

/// The columns of the line above the rows: how many there are, and the first of the two instants.
fn columns_of(line: &[u8]) -> Option<(usize, usize)> {
    let sent = cells(line, b',').position(|cell| cell.text.starts_with(b"txTime"))?;
    let is_next = cells(line, b',').nth(sent + 1)?.text.starts_with(b"rxTime");
    is_next.then(|| (cells(line, b',').count(), sent))
}

#[derive(Default)]
struct SockperfLog {
    facts: LogFacts,
    size_bytes: Option<u32>,
    /// Of the table, once it has begun.
    columns: Option<(usize, usize)>,
    has_ended: bool,
    rows: u64,
    has_parameters: bool,
    is_full_trip: bool,
    reply_every: Option<u64>,
    out_of_order: u64,
}

impl LineParser for SockperfLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        if let Some(columns) = columns_of(line) {
            if self.columns.replace(columns).is_some() {
                let what = "the log has several tables: of several runs, or of the answers of several hosts";
                return Err(LogFault::whole(what).hint("measure one host in one run, and import each run by itself"));
            }
        } else if line.starts_with(b"---") {
            self.has_ended = self.columns.is_some();
        } else if let Some((columns, sent)) = self.columns.filter(|_| !self.has_ended && line.contains(&b',')) {
            rows.probe(self.probe(line, columns, sent)?);
        } else if !self.total(whole(line))? {
            return Ok(LineUse::Other);
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        if self.columns.is_none() {
            let what = "the log has no table of messages: no answer arrived, or it is not that of `--full-log FILE`";
            return Err(LogFault::whole(what).hint("`sockperf … --full-log FILE` writes it"));
        }
        if !self.has_ended {
            return Err(LogFault::whole("the log ends within its table: it was cut off"));
        }
        let mut facts = LogFacts { tool: "sockperf".into(), ..std::mem::take(&mut self.facts) };
        // What was sent counts messages without a reply too, from one with a reply to another.
        let due =
            |sent: u64| Some((sent.checked_sub(1)? / self.reply_every?.max(1) + 1).saturating_sub(self.out_of_order));
        let doubled = |figure: StatedValue| if self.is_full_trip { figure } else { figure.doubled() };
        let LogTotals { sent, received, min, mean, max, .. } = facts.totals;
        let [min, mean, max] = [min, mean, max].map(|figure| figure.map(doubled));
        facts.totals = LogTotals { sent: sent.and_then(due), received, min, mean, max, row_step_ns: 2 };
        facts.notes.extend(note(self.out_of_order, "answer out of order", "has no row"));
        Ok(facts)
    }
}

impl SockperfLog {
    /// A row of the table.
    fn probe(&mut self, line: &[u8], columns: usize, sent: usize) -> Result<LoggedProbe, LogFault> {
        let end = || LogFault::at(line.len() + 1, format!("the row has fewer than {columns} columns"));
        let cell = |at| cells(line, b',').nth(at).ok_or_else(end);
        let id = if sent > 0 { cell(0)?.count()? } else { self.rows };
        let sent_ns = cell(sent)?.time(TimeUnit::Seconds)?;
        let received_ns = cell(sent + 1)?.time(TimeUnit::Seconds)?;
        cell(columns - 1)?;
        if let Some(more) = cells(line, b',').nth(columns) {
            return Err(more.is_not("the end of the row"));
        }
        self.rows += 1;
        let (sent_ns, received_ns) = (Some(sent_ns), Some(received_ns));
        Ok(LoggedProbe { id: Some(id), sent_ns, received_ns, size_bytes: self.size_bytes, ..LoggedProbe::default() })
    }

    /// Takes a line outside of the table; returns whether it states something. The output in front of the log repeats its totals.
    fn total(&mut self, line: LogField<'_>) -> Result<bool, LogFault> {
        let totals = &mut self.facts.totals;
        let figure = |field: &LogField<'_>| StatedValue::of(field, TimeUnit::Micros).ok();
        if let Some([parameters]) = captured(line, PARAMETERS) {
            if std::mem::replace(&mut self.has_parameters, true) {
                return Err(LogFault::whole("the log has several runs").hint("import each run as a file of its own"));
            }
            self.parameters(parameters.text);
        } else if let Some([sent, received]) = captured(line, "*[Valid Duration]*SentMessages={}; ReceivedMessages={}")
        {
            (totals.sent, totals.received) = (Some(sent.total()?), Some(received.total()?));
        } else if let Some([dropped, late]) = captured(line, "*# dropped messages = {};*# out-of-order messages = {}") {
            self.facts.lost = dropped.total()?;
            self.out_of_order = number_at(late.text).unwrap_or(0);
        } else if let Some([what, mean]) = captured(line, "*====> avg-{}={} (*") {
            self.is_full_trip |= what.text == b"rtt";
            totals.mean = figure(&mean);
        } else if let Some([max]) = captured(line, "*<MAX> observation = {}") {
            totals.max = figure(&max);
        } else if let Some([min]) = captured(line, "*<MIN> observation = {}") {
            totals.min = figure(&min);
        } else if let Some([version]) = captured(line, "*== version #{} ==*") {
            self.facts.version = Some(version.shown());
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn parameters(&mut self, text: &[u8]) {
        let number = |name: &str| number_at(&text[memchr::memmem::find(text, name.as_bytes())? + name.len()..]);
        self.size_bytes = number("--msg-size=").and_then(|size| u32::try_from(size).ok());
        self.reply_every = number("--reply-every=");
        if let (Some(mps @ 1..MPS_MAX), Some(1), Some(reply_every)) =
            (number("--mps="), number("--burst="), self.reply_every)
        {
            let interval = reply_every.checked_mul(1_000_000_000).map(|ns| ns.saturating_add(mps / 2) / mps);
            self.facts.interval_ns = interval.and_then(|ns| i64::try_from(ns).ok().and_then(bounded)).map(Nanos);
        }
    }
}

/// The whole number at the beginning of `text`.
fn number_at(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    whole(&text[..digits]).count().ok()
}

#[cfg(test)]
mod tests {
    use super::super::LogBlock;
    use super::super::LogEnd;
    use super::super::LogOptions;
    use super::super::testing::{is_detected, read};
    use super::*;

    const LOG: &str = "\
------------------------------
test was performed using the following parameters: --mps=500 --burst=1 --reply-every=10 --msg-size=100 --time=1
------------------------------
sockperf: [Total Run] RunTime=1.000 sec; Warm up time=400 msec; SentMessages=501; ReceivedMessages=50
sockperf: ========= Printing statistics for Server No: 0
sockperf: [Valid Duration] RunTime=0.520 sec; SentMessages=71; ReceivedMessages=3
sockperf: \u{1b}[2;35m====> avg-latency=640.635 (std-dev=365.726)\u{1b}[0m
sockperf: # dropped messages = 4; # duplicated messages = 0; # out-of-order messages = 1
sockperf: \u{1b}[2;35mTotal 3 observations\u{1b}[0m; each percentile contains 0.27 observations
sockperf: ---> <MAX> observation = 1893.969
sockperf: ---> percentile 99.999 = 1893.969
sockperf: ---> <MIN> observation =   13.174
------------------------------
packet, txTime(sec), rxTime(sec), latency(usec)
0, 2.418679643, 2.422467581, 1893.969
1, 2.438679646, 2.438705995, 13.175
26, 2.938679653, 2.938709177, 14.762
------------------------------
";

    fn log(text: &str) -> (LogBlock, LogEnd) {
        read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect(text)
    }

    fn fault(text: &str) -> LogFault {
        read(&FORMAT, &LogOptions::default(), true, text.as_bytes()).expect_err(text)
    }

    #[test]
    fn a_log_of_any_version_has_the_instants_of_its_rows_and_checks_them() {
        let (block, end) = log(LOG);
        let (sent_ns, received_ns) = (Some(2_418_679_643), Some(2_422_467_581));
        let first = LoggedProbe { id: Some(0), sent_ns, received_ns, size_bytes: Some(100), ..LoggedProbe::default() };
        assert_eq!((block.probes.len(), block.probes[0], block.probes[2].id), (3, first, Some(26)));
        assert_eq!((end.facts.lost, end.facts.interval_ns), (4, Some(Nanos(20_000_000))));
        assert_eq!((end.contradictions, end.facts.notes.len(), end.others.count), (vec![], 1, 4));
        let full = LOG.replace("latency(usec)", "rtt(usec)").replace("avg-latency=640.635", "avg-rtt=1281.270");
        let full = full
            .replace("= 1893.969\nsockperf: ---> p", "= 3787.938\nsockperf: ---> p")
            .replace("13.174\n", "26.349\n");
        let output = "sockperf: \u{1b}[2;35m== version #3.7-no.git == \u{1b}[0m\nsockperf[CLIENT] send on:sockperf: using \
            recvfrom() to block\n\n[ 0] IP = 127.0.0.1       PORT = 11111 # UDP\n";
        for text in [LOG.replace('\n', "\r\n"), full, format!("{output}{LOG}\n")] {
            let (other, end) = log(&text);
            assert_eq!((other, end.contradictions), (block.clone(), vec![]), "{text}");
            assert_eq!(end.facts.version.as_deref(), text.contains("version").then_some("3.7-no.git"));
            assert!(is_detected(&FORMAT, text.as_bytes()), "{text}");
        }
        let old =
            LOG.replace("packet, txTime(sec), rxTime(sec), latency(usec)", "txTime, rxTime").replace(", 13.175", "");
        let old = old.replace(", 14.762", "").replace(", 1893.969", "").replace("\n0, ", "\n").replace("\n1, ", "\n");
        let (old, end) = log(&old.replace("\n26, ", "\n"));
        let ids: Vec<_> = old.probes.iter().map(|probe| (probe.id, probe.sent_ns)).collect();
        assert_eq!(ids[2], (Some(2), Some(2_938_679_653)));
        assert_eq!(end.contradictions.len(), 0);
        for (from, to) in [("--mps=500", "--mps=600000"), ("--burst=1", "--burst=3"), ("--mps=500 ", "")] {
            assert_eq!(log(&LOG.replace(from, to)).1.facts.interval_ns, None, "{to}");
        }
    }

    #[test]
    fn totals_that_contradict_the_rows_are_said() {
        for (from, to, due) in [
            ("SentMessages=71", "SentMessages=91", "9 sent, 7 in its rows"),
            ("ReceivedMessages=3\n", "ReceivedMessages=4\n", "4 received, 3 in its rows"),
            ("latency=640.635", "latency=640.645", "a mean of 1281.29 µs, 1281.27 µs in its rows"),
            ("   13.174\n", "   13.178\n", "a minimum of 26.356 µs, 26.349 µs in its rows"),
        ] {
            assert_eq!(log(&LOG.replace(from, to)).1.contradictions, [due]);
        }
        let negative = log(&LOG.replace("2.438705995, 13.175", "2.438679640, -0.003"));
        assert_eq!(negative.0.probes[1].received_ns, Some(2_438_679_640));
    }

    #[test]
    fn a_damaged_row_is_an_error_with_its_column_and_part_of_a_log_is_refused() {
        let row = "26, 2.938679653, 2.938709177, 14.762";
        for (bad, column) in
            [("26, 2.938679653, x, 14.762", 18), ("26, 2.9386", 11), ("x, 1", 1), ("1, 2, 3, 4, 5", 13)]
        {
            let text = LOG.replace(row, bad);
            let fault = read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect_err(bad);
            assert_eq!((fault.line, fault.column), (Some(17), Some(column)), "{fault:?}");
        }
        let dropped = LOG.replace("messages = 4", "messages = 1099511627777");
        assert_eq!(
            read(&FORMAT, &LogOptions::default(), false, dropped.as_bytes()).expect_err("2^40").column,
            Some(32)
        );
        let end = LOG.len() - "------------------------------\n".len();
        assert!(fault(&LOG[..end]).what.contains("ends within its table"));
        assert!(fault(&format!("{LOG}{LOG}")).what.contains("several runs"));
        assert!(
            fault(&format!("{LOG}{}", &LOG[LOG.find("packet").expect("a table")..])).what.contains("several tables")
        );
        let summary = &LOG[LOG.find("sockperf: [Total").expect("a summary")..LOG.find("packet").expect("a table")];
        assert!(fault(summary).hint.is_some_and(|hint| hint.contains("--full-log FILE")));
    }
}
