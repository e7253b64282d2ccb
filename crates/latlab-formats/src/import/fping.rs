//! `fping -c`, `-C` and `-l`, with or without `-D`: `192.0.2.2 : [0], 64 bytes, 0.350 ms (0.350 avg, 0% loss)`, and the line of
//! values that `-C` ends with (SmokePing): `192.0.2.2 : 0.35 - 0.37`.

use super::ping::second_run;
use super::prelude::*;
pub(super) fn detects(head: &LogHead<'_>) -> bool {
    // A single number may be of anything: `threads : 4`.
    let is_single = |part| matches!(part, Part::Values(values) if words(values.text).count() < 2);
    head.lines().filter_map(|line| part_of(whole(line))).any(|(_, part)| !is_single(part))
}

pub(super) fn open(options: &LogOptions) -> OpenedLog {
    unit_of(Some(UNIT), options.unit)?;
    Ok(Box::<FpingLog>::default())
}

const UNIT: TimeUnit = TimeUnit::Millis;

enum Part<'a> {
    Probe(u64, LogField<'a>),
    /// `3/2/33%, min/avg/max = 0.350/0.360/0.370`.
    Totals(LogField<'a>),
    Values(LogField<'a>),
}

fn part_of(line: LogField<'_>) -> Option<(LogField<'_>, Part<'_>)> {
    if let Some([host, figures]) = captured(line, "{} : xmt/rcv/%loss = {}") {
        return Some((host, Part::Totals(figures)));
    }
    if let Some([host, seq, outcome]) = captured(line, "{} : [{}], {}") {
        return Some((host, Part::Probe(seq.count().ok()?, outcome)));
    }
    let is_value = |word: LogField<'_>| word.text == b"-" || word.time(UNIT).is_ok();
    let [host, values] = captured(line, "{} : {}")?;
    words(values.text).all(is_value).then_some((host, Part::Values(values)))
}

#[derive(Default)]
struct FpingLog {
    host: Option<Vec<u8>>,
    has_single_lines: bool,
    rows: u64,
    /// The least and the largest number of a row, and how many between them have none. Timeouts may follow later answers.
    numbers: Option<(u64, u64)>,
    missing: u64,
    step_ns: i64,
    totals: LogTotals,
    started_ns: Option<i64>,
}

impl LineParser for FpingLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        let mut line = whole(line);
        if let Some([instant, rest]) = captured(line, "[{}] {}") {
            self.started_ns = self.started_ns.or(instant.time(TimeUnit::Seconds).ok());
            line = rest;
        }
        let Some((host, part)) = part_of(line) else { return Ok(LineUse::Other) };
        if *self.host.get_or_insert_with(|| host.text.to_vec()) != host.text {
            return Err(LogFault::whole("the log has probes of several hosts")
                .hint(format!("import the lines of one: `grep '{} *:' FILE | latlab import -`", host.shown())));
        }
        self.has_single_lines |= matches!(part, Part::Probe(..));
        match part {
            Part::Probe(seq, outcome) => match captured(outcome, "{} bytes, {} ms*") {
                Some([_, value]) => self.row(seq, Some(value), rows)?,
                None if outcome.text.first().is_some_and(u8::is_ascii_digit) => {
                    return Err(outcome.is_not("an answer with its time"));
                }
                None => self.row(seq, None, rows)?,
            },
            Part::Totals(figures) => self.take_totals(figures)?,
            // Beside single lines it repeats them.
            Part::Values(values) if !self.has_single_lines => {
                for (seq, word) in (0..).zip(words(values.text)) {
                    self.row(seq, Some(word).filter(|word| word.text != b"-"), rows)?;
                }
            }
            Part::Values(_) => {}
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> ReadLog {
        if self.rows == 0 && self.host.is_some() {
            let fault = LogFault::whole("the log has totals and no round trips");
            return Err(fault.hint("`fping -C N` without `-q` writes them"));
        }
        Ok(LogFacts {
            started_ns: self.started_ns,
            missing_ids: self.missing,
            states_losses: (self.missing > 0).then_some(false),
            totals: LogTotals { row_step_ns: self.step_ns, ..self.totals.clone() },
            ..LogFacts::of("fping")
        })
    }
}

impl FpingLog {
    fn row(&mut self, seq: u64, value: Option<LogField<'_>>, rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let value_ns = value.map(|value| value.time(UNIT)).transpose()?;
        self.step_ns = self.step_ns.max(value.map_or(0, |value| value.step_ns(UNIT)));
        let (least, largest) = self.numbers.map_or((seq, seq), |(least, largest)| (least.min(seq), largest.max(seq)));
        self.numbers = Some((least, largest));
        self.missing = (largest - least).checked_sub(self.rows).ok_or_else(second_run)?;
        self.rows += 1;
        rows.are_of(Metric::RoundTripDelay);
        rows.value(LoggedValue { seq: Some(seq), value_ns, count: 1 });
        Ok(())
    }

    fn take_totals(&mut self, figures: LogField<'_>) -> Result<(), LogFault> {
        let Some([sent, received]) = captured(figures, "{}/{}/*") else {
            return Err(figures.is_not("the counts of packets"));
        };
        (self.totals.sent, self.totals.received) = (Some(sent.total()?), Some(received.total()?));
        if let Some([extremes]) = captured(figures, "*min/avg/max = {}") {
            let mut values = cells(extremes.text, b'/').map(|cell| StatedValue::of(&cell, UNIT).ok());
            let mut value = || values.next().flatten();
            (self.totals.min, self.totals.mean, self.totals.max) = (value(), value(), value());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::super::{LogBlock, LogOptions};

    const LOG: &str = "192.0.2.2 : [0], 64 bytes, 0.350 ms (0.350 avg, 0% loss)\n\
        192.0.2.2 : [1], timed out (0.350 avg, 50% loss)\n\
        192.0.2.2 : [2], 64 bytes, 0.370 ms (0.360 avg, 33% loss)\n\n\
        192.0.2.2 : xmt/rcv/%loss = 3/2/33%, min/avg/max = 0.350/0.360/0.370\n";

    fn rows(block: &LogBlock) -> Vec<Option<i64>> {
        block.values.iter().map(|row| row.value_ns).collect()
    }

    #[test]
    fn each_probe_is_a_row() {
        let smokeping = "192.0.2.2 : 0.35 - 0.37\n";
        let both = [LOG, smokeping].concat();
        let dated = LOG.replace("192.0.2.2 : [", "[1700000000.12345] 192.0.2.2 : [");
        for text in [LOG, smokeping, &both, &dated] {
            assert!(is_detected("fping", text.as_bytes()), "{text}");
            let (block, end) = read("fping", &LogOptions::default(), false, text.as_bytes()).expect(text);
            assert_eq!(rows(&block), [Some(350_000), None, Some(370_000)], "{text}");
            assert_eq!((end.contradictions.len(), end.facts.lost), (0, 0), "{text}");
        }
        let fault = |text: &str| read("fping", &LogOptions::default(), false, text.as_bytes()).expect_err(text);
        let several = [LOG, &LOG.replace("192.0.2.2", "192.0.2.3")].concat();
        assert!(fault(&several).what.contains("several hosts"));
        for runs in [LOG.repeat(2), smokeping.repeat(2)] {
            assert!(fault(&runs).what.contains("second run"), "{runs}");
        }
        assert!(!is_detected("fping", b"threads : 4\n"));
        assert_eq!(fault(&LOG.replace("0.370 ms", "0.3x ms")).what, "`0.3x` is not a number");
        assert!(fault(LOG.rsplit_once("\n\n").expect("totals").1).what.contains("no round trips"));
        let filtered = LOG.replace("192.0.2.2 : [1]", "").replace("3/2/33%", "2/2/0%");
        let (_, end) = read("fping", &LogOptions::default(), false, filtered.as_bytes()).expect("a log");
        assert_eq!((end.facts.states_losses, end.facts.missing_ids, end.contradictions.len()), (Some(false), 1, 0));
        let wrong = read("fping", &LogOptions::default(), false, LOG.replace("3/2/33%", "3/3/0%").as_bytes());
        assert_eq!(wrong.expect("a log").1.contradictions, ["3 received, 2 in its rows"]);
    }
}
