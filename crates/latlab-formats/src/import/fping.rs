//! `fping -c`, `-C` and `-l`, with or without `-D`, and the line of values that `-C` ends with (SmokePing):
//!
//! ```text
//! 192.0.2.2 : [0], 64 bytes, 0.350 ms (0.350 avg, 0% loss)
//! 192.0.2.2 : [1], timed out (0.350 avg, 50% loss)
//! 192.0.2.2 : 0.35 - 0.37
//! ```
//!
//! A log of several hosts is refused: they are different paths.

use super::check::{LogTotals, StatedValue};
use super::field::{LogField, cells, unit_of, whole, words};
use super::form::captured;
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogRows};
use crate::facts::LoggedValue;
use crate::metric::Metric;
use crate::units::human::TimeUnit;

pub(super) const FORMAT: LogFormat = LogFormat::of_ping("fping", "output of fping", detects, open);

const UNIT: TimeUnit = TimeUnit::Millis;

fn open(options: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    unit_of(Some(UNIT), options.unit)?;
    Ok(Box::<FpingLog>::default())
}

fn detects(head: &LogHead<'_>) -> bool {
    head.lines().any(|line| {
        row_of(whole(line)).is_some() || totals_of(whole(line)).is_some() || values_of(whole(line)).is_some()
    })
}

/// Host, number and outcome of a probe.
fn row_of(line: LogField<'_>) -> Option<[LogField<'_>; 3]> {
    captured(line, "{} : [{}], {}").filter(|[_, seq, _]| seq.count().is_ok())
}

/// Host and figures of `192.0.2.2 : xmt/rcv/%loss = 3/2/33%, min/avg/max = 0.350/0.360/0.370`.
fn totals_of(line: LogField<'_>) -> Option<[LogField<'_>; 2]> {
    captured(line, "{} : xmt/rcv/%loss = {}")
}

/// Host and values of the last line of `-C`.
fn values_of(line: LogField<'_>) -> Option<[LogField<'_>; 2]> {
    let is_value = |word: LogField<'_>| word.text == b"-" || word.time(UNIT).is_ok();
    captured(line, "{} : {}").filter(|[_, values]| !values.text.is_empty() && words(values.text).all(is_value))
}

#[derive(Default)]
struct FpingLog {
    host: Option<Vec<u8>>,
    /// Rows that single lines have.
    rows: u64,
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
        if let Some([host, seq, outcome]) = row_of(line) {
            self.expect_host(host)?;
            self.probe(seq.count()?, outcome, rows)?;
        } else if let Some([host, figures]) = totals_of(line) {
            self.expect_host(host)?;
            self.take_totals(figures)?;
        } else if let Some([host, values]) = values_of(line) {
            self.expect_host(host)?;
            // Beside single lines it repeats them.
            let is_alone = self.rows == 0;
            for (seq, word) in (0..).zip(words(values.text)).filter(|_| is_alone) {
                self.row(seq, Some(word).filter(|word| word.text != b"-"), rows)?;
            }
        } else {
            return Ok(LineUse::Other);
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        if self.rows == 0 && self.host.is_some() {
            return Err(
                LogFault::whole("the log has totals and no round trips").hint("`fping -C N` without `-q` writes them")
            );
        }
        Ok(LogFacts {
            metric: Some(Metric::RoundTripDelay),
            started_ns: self.started_ns,
            totals: LogTotals { row_step_ns: self.step_ns, ..self.totals.clone() },
            ..LogFacts::of("fping")
        })
    }
}

impl FpingLog {
    fn expect_host(&mut self, host: LogField<'_>) -> Result<(), LogFault> {
        let known = self.host.get_or_insert_with(|| host.text.to_vec());
        match known == host.text {
            true => Ok(()),
            false => Err(LogFault::whole("the log has probes of several hosts")
                .hint(format!("import the lines of one: `grep '{} *:' FILE | latlab import -`", host.shown()))),
        }
    }

    /// Takes `64 bytes, 0.350 ms (…)` or `timed out (…)`.
    fn probe(&mut self, seq: u64, outcome: LogField<'_>, rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        match captured(outcome, "{} bytes, {} ms*") {
            Some([_, value]) => self.row(seq, Some(value), rows),
            None if outcome.text.first().is_some_and(u8::is_ascii_digit) => {
                Err(outcome.is_not("an answer with its time"))
            }
            None => self.row(seq, None, rows),
        }
    }

    fn row(&mut self, seq: u64, value: Option<LogField<'_>>, rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let value_ns = value.map(|value| value.time(UNIT)).transpose()?;
        self.step_ns = self.step_ns.max(value.map_or(0, |value| value.step_ns(UNIT)));
        self.rows += 1;
        rows.are_of(Metric::RoundTripDelay);
        rows.value(LoggedValue { seq: Some(seq), value_ns, count: 1 });
        Ok(())
    }

    /// Takes `3/2/33%, min/avg/max = 0.350/0.360/0.370`.
    fn take_totals(&mut self, figures: LogField<'_>) -> Result<(), LogFault> {
        let mut counts = cells(figures.text, b'/');
        let mut count = || counts.next().map(|cell| cell.total()).transpose();
        (self.totals.sent, self.totals.received) = (count()?, count()?);
        if let Some([_, extremes]) = captured(figures, "{}min/avg/max = {}") {
            let mut values = cells(extremes.text, b'/').map(|cell| StatedValue::of(&cell, UNIT).ok());
            let mut value = || values.next().flatten();
            (self.totals.min, self.totals.mean, self.totals.max) = (value(), value(), value());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::LogBlock;
    use super::super::testing::{is_detected, read};
    use super::*;

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
            assert!(is_detected(&FORMAT, text.as_bytes()), "{text}");
            let (block, end) = read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect(text);
            assert_eq!(rows(&block), [Some(350_000), None, Some(370_000)], "{text}");
            assert_eq!((end.contradictions.len(), end.facts.lost), (0, 0), "{text}");
        }
        let fault = |text: &str| read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect_err(text);
        let several = [LOG, &LOG.replace("192.0.2.2", "192.0.2.3")].concat();
        assert!(fault(&several).what.contains("several hosts"));
        assert_eq!(fault(&LOG.replace("0.370 ms", "0.3x ms")).what, "`0.3x` is not a number");
        assert!(fault(LOG.rsplit_once("\n\n").expect("totals").1).what.contains("no round trips"));
        let wrong = read(&FORMAT, &LogOptions::default(), false, LOG.replace("3/2/33%", "3/3/0%").as_bytes());
        assert_eq!(wrong.expect("a log").1.contradictions, ["3 received, 2 in its rows"]);
    }
}
