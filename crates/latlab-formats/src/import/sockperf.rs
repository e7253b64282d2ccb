//! sockperf: the file that `--full-log FILE` writes (2.7 to 3.10). It has totals, which are of halves without `--full-rtt`, and a
//! table between lines of dashes, `packet, txTime(sec), rxTime(sec), latency(usec)`, until 3.4 of the two instants alone. Dropped
//! messages and those that arrived out of order, which count as neither lost nor answered, have no row.

use super::prelude::*;
pub(super) fn open(_: &LogOptions) -> OpenedLog {
    Ok(Box::<SockperfLog>::default())
}

const PARAMETERS: &str = "test was performed using the following parameters: {}";
pub(super) fn detects(head: &LogHead<'_>) -> bool {
    let is_one = |line: &[u8]| columns_of(line).is_some() || captured::<1>(whole(line), PARAMETERS).is_some();
    head.lines().any(is_one)
}

fn columns_of(line: &[u8]) -> Option<(usize, usize)> {
    let sent = cells(line, b',').position(|cell| cell.text.starts_with(b"txTime"))?;
    let is_next = cells(line, b',').nth(sent + 1)?.text.starts_with(b"rxTime");
    is_next.then(|| (cells(line, b',').count(), sent))
}

#[derive(Default)]
struct SockperfLog {
    facts: LogFacts,
    size_bytes: Option<u32>,
    columns: Option<(usize, usize)>,
    has_ended: bool,
    rows: u64,
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

    fn finish(&mut self, _: &mut LogRows<'_>) -> ReadLog {
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
    fn probe(&mut self, line: &[u8], columns: usize, sent: usize) -> Result<LoggedProbe, LogFault> {
        let cells: Vec<LogField<'_>> = cells(line, b',').collect();
        if cells.len() != columns {
            let what = format!("the row has {} columns instead of {columns}", cells.len());
            return Err(LogFault::at(line.len() + 1, what));
        }
        let id = if sent > 0 { cells[0].count()? } else { self.rows };
        let (sent_ns, received_ns) = (cells[sent].time(TimeUnit::Seconds)?, cells[sent + 1].time(TimeUnit::Seconds)?);
        self.rows += 1;
        let (sent_ns, received_ns) = (Some(sent_ns), Some(received_ns));
        Ok(LoggedProbe { id: Some(id), sent_ns, received_ns, size_bytes: self.size_bytes, ..LoggedProbe::default() })
    }

    fn total(&mut self, line: LogField<'_>) -> Result<bool, LogFault> {
        let totals = &mut self.facts.totals;
        let figure = |field: &LogField<'_>| StatedValue::of(field, TimeUnit::Micros).ok();
        if let Some([parameters]) = captured(line, PARAMETERS) {
            let number = |name: &[u8]| number_at(&parameters.text[memmem::find(parameters.text, name)? + name.len()..]);
            self.size_bytes = number(b"--msg-size=").and_then(|size| u32::try_from(size).ok());
            self.reply_every = number(b"--reply-every=");
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
}

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
        read("sockperf", &LogOptions::default(), false, text.as_bytes()).expect(text)
    }

    fn fault(text: &str) -> LogFault {
        read("sockperf", &LogOptions::default(), true, text.as_bytes()).expect_err(text)
    }

    #[test]
    fn a_log_of_any_version_has_the_instants_of_its_rows_and_checks_them() {
        let (block, end) = log(LOG);
        let (sent_ns, received_ns) = (Some(2_418_679_643), Some(2_422_467_581));
        let first = LoggedProbe { id: Some(0), sent_ns, received_ns, size_bytes: Some(100), ..LoggedProbe::default() };
        assert_eq!((block.probes.len(), block.probes[0], block.probes[2].id), (3, first, Some(26)));
        assert_eq!((end.facts.lost, end.facts.interval_ns), (4, None));
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
            assert!(is_detected("sockperf", text.as_bytes()), "{text}");
        }
        let head = &LOG[..LOG.find("packet, txTime").expect("a table")];
        let (old, _) = log(&format!("{head}txTime, rxTime\n2.4, 2.5\n2.9, 3.0\n------------------------------\n"));
        let rows: Vec<_> = old.probes.iter().map(|probe| (probe.id, probe.sent_ns)).collect();
        assert_eq!(rows, [(Some(0), Some(2_400_000_000)), (Some(1), Some(2_900_000_000))], "before 3.4");
        for (from, to) in [("--mps=500", "--mps=600000"), ("--burst=1", "--burst=3"), ("--mps=500 ", "")] {
            assert_eq!(log(&LOG.replace(from, to)).1.facts.interval_ns, None, "{to}");
        }
    }

    #[test]
    fn a_damaged_row_is_an_error_with_its_column_and_part_of_a_log_is_refused() {
        let row = "26, 2.938679653, 2.938709177, 14.762";
        for (bad, column) in
            [("26, 2.938679653, x, 14.762", 18), ("26, 2.9386", 11), ("x, 1, 2, 3", 1), ("1, 2, 3, 4, 5", 14)]
        {
            let text = LOG.replace(row, bad);
            let fault = read("sockperf", &LogOptions::default(), false, text.as_bytes()).expect_err(bad);
            assert_eq!((fault.line, fault.column), (Some(17), Some(column)), "{fault:?}");
        }
        let end = LOG.len() - "------------------------------\n".len();
        assert!(fault(&LOG[..end]).what.contains("ends within its table"));
        assert!(
            fault(&format!("{LOG}{}", &LOG[LOG.find("packet").expect("a table")..])).what.contains("several tables")
        );
        let summary = &LOG[LOG.find("sockperf: [Total").expect("a summary")..LOG.find("packet").expect("a table")];
        assert!(fault(summary).hint.is_some_and(|hint| hint.contains("--full-log FILE")));
    }
}
