//! `ping` of Windows, in any language: rows are recognised by their numbers.
//!
//! ```text
//! Reply from 192.0.2.2: bytes=32 time=23ms TTL=56
//! Request timed out.
//! ```
//!
//! A line between the first one and the statistics without an answer is a probe without one. Times are whole milliseconds; one
//! that is printed as `<1ms` is taken as 0, which is how the tool averages it.

use super::check::{LogTotals, StatedValue, note};
use super::field::{LogField, cells, unit_of, whole, words};
use super::{LineParser, LineUse, LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogRows};
use crate::facts::LoggedValue;
use crate::metric::Metric;
use crate::units::Nanos;
use crate::units::human::TimeUnit;

pub(super) const FORMAT: LogFormat = LogFormat::of_ping("ping-windows", "output of ping of Windows", detects, open);

const UNIT: TimeUnit = TimeUnit::Millis;

fn open(options: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    unit_of(Some(UNIT), options.unit)?;
    Ok(Box::<WindowsLog>::default())
}

/// Whether it has an answer with the TTL, or one without it and the line of counts.
fn detects(head: &LogHead<'_>) -> bool {
    let has = |is: fn(LogField<'_>) -> bool| head.lines().any(|line| is(whole(line)));
    let is_answer = |line: LogField<'_>| answer_of(line).is_some();
    has(|line| answer_of(line).is_some() && memchr::memmem::find(line.text, b" TTL=").is_some())
        || head.lines().any(|line| line.starts_with(b"Pinging "))
        || (has(is_answer) && has(|line| counts_of(line).is_some()))
}

/// The time of an answer, and whether it is a bound: `time=23ms`, `temps=23 ms`, `time<1ms`, at the end or in front of `TTL=`.
fn answer_of(line: LogField<'_>) -> Option<(LogField<'_>, bool)> {
    if memchr::memmem::find(line.text, b"seq=").is_some() {
        return None;
    }
    let end = memchr::memmem::rfind(line.text, b" TTL=").unwrap_or(line.text.trim_ascii_end().len());
    let text = line.part(0, end);
    let start = text.text.iter().rposition(|byte| b"=<".contains(byte))?;
    let is_whole = end == line.text.trim_ascii_end().len();
    // Without the TTL, as over IPv6, the colon behind the address tells the line from the statistics.
    let has_address = memchr::memmem::find(&text.text[..start], b": ").is_some() && !text.text.contains(&b',');
    let value = text.part(start + 1, text.text.strip_suffix(b"ms")?.len());
    (!is_whole || has_address).then_some((value, text.text[start] == b'<'))
}

/// The three numbers of `Sent = 3, Received = 2, Lost = 1 (33% loss),` in any language.
fn counts_of(line: LogField<'_>) -> Option<[LogField<'_>; 3]> {
    let mut numbers = cells(line.text, b',').filter(|cell| !cell.text.is_empty()).map(|cell| {
        let start = memchr::memmem::find(cell.text, b" = ")? + 3;
        words(&cell.text[start..]).next().map(|word| cell.part(start, start + word.text.len()))
    });
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

#[derive(Default)]
struct WindowsLog {
    has_begun: bool,
    totals: LogTotals,
    answered: u64,
    unanswered: u64,
    bounds: u64,
}

impl LineParser for WindowsLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        let line = whole(line.trim_ascii_end());
        if self.totals.sent.is_some() {
            return self.extremes(line);
        }
        if let Some((value, is_bound)) = answer_of(line) {
            let value_ns = if is_bound { 0 } else { value.time(UNIT)? };
            self.bounds += u64::from(is_bound);
            self.row(Some(value_ns), rows);
        } else if let Some([sent, received, _]) = counts_of(line) {
            (self.totals.sent, self.totals.received) = (Some(sent.total()?), Some(received.total()?));
        } else if !line.text.is_empty() && self.has_begun && !line.text.ends_with(b":") {
            self.row(None, rows);
        } else if line.text.ends_with(b":") {
            self.has_begun = true;
        } else {
            return Ok(LineUse::Other);
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        let rows = self.answered + self.unanswered;
        Ok(LogFacts {
            metric: Some(Metric::RoundTripDelay),
            states_losses: self.totals.sent.is_none().then_some(false),
            lost: self.totals.sent.map_or(0, |sent| sent.saturating_sub(rows)),
            resolution_ns: Some(Nanos(UNIT.nanos() as i64)),
            notes: note(self.bounds, "value", "printed as `<1ms`, taken as 0").into_iter().collect(),
            totals: LogTotals { row_step_ns: UNIT.nanos() as i64, ..self.totals.clone() },
            ..LogFacts::of("ping of Windows")
        })
    }
}

impl WindowsLog {
    fn row(&mut self, value_ns: Option<i64>, rows: &mut LogRows<'_>) {
        self.has_begun = true;
        let seq = Some(self.answered + self.unanswered);
        *(if value_ns.is_some() { &mut self.answered } else { &mut self.unanswered }) += 1;
        rows.are_of(Metric::RoundTripDelay);
        rows.value(LoggedValue { seq, value_ns, count: 1 });
    }

    /// Takes `Minimum = 0ms, Maximum = 23ms, Average = 11ms`.
    fn extremes(&mut self, line: LogField<'_>) -> Result<LineUse, LogFault> {
        if answer_of(line).is_some_and(|(_, is_bound)| is_bound) || memchr::memmem::find(line.text, b" TTL=").is_some()
        {
            return Err(
                LogFault::whole("the log has a second run of ping").hint("import the log of each run by itself")
            );
        }
        let Some(numbers) = counts_of(line) else { return Ok(LineUse::Taken) };
        let [min, max, mean] = numbers.map(|number| {
            let digits = number.text.strip_suffix(b"ms")?.len();
            StatedValue::of(&number.part(0, digits), UNIT).ok()
        });
        (self.totals.min, self.totals.max, self.totals.mean) = (min, max, mean);
        Ok(LineUse::Taken)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::*;

    #[test]
    fn answers_and_lines_without_one_are_rows_in_any_language() {
        let english = "\nPinging 192.0.2.2 with 32 bytes of data:\nReply from 192.0.2.2: bytes=32 time=23ms TTL=56\n\
            Request timed out.\nReply from 192.0.2.2: bytes=32 time<1ms TTL=56\n\nPing statistics for 192.0.2.2:\n    \
            Packets: Sent = 3, Received = 2, Lost = 1 (33% loss),\nApproximate round trip times in milli-seconds:\n    \
            Minimum = 0ms, Maximum = 23ms, Average = 11ms\n";
        let german = "\nPing wird ausgeführt für 192.0.2.2 mit 32 Bytes Daten:\nAntwort von 192.0.2.2: Bytes=32 Zeit=23ms \
            TTL=56\nZeitüberschreitung der Anforderung.\nAntwort von 192.0.2.2: Bytes=32 Zeit<1ms TTL=56\n\n\
            Ping-Statistik für 192.0.2.2:\n    Pakete: Gesendet = 3, Empfangen = 2, Verloren = 1\n    (33% Verlust),\n\
            Ca. Zeitangaben in Millisek.:\n    Minimum = 0ms, Maximum = 23ms, Mittelwert = 11ms\n";
        let over_ipv6 = english.replace("bytes=32 ", "").replace(" TTL=56", "").replace("192.0.2.2", "2001:db8::2");
        for text in [english, german, &over_ipv6] {
            assert!(is_detected(&FORMAT, text.as_bytes()), "{text}");
            let (block, end) = read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect(text);
            let rows: Vec<_> = block.values.iter().map(|row| (row.seq, row.value_ns)).collect();
            assert_eq!(rows, [(Some(0), Some(23_000_000)), (Some(1), None), (Some(2), Some(0))], "{text}");
            assert_eq!((end.contradictions.len(), end.facts.lost, end.facts.notes.len()), (0, 0, 1), "{text}");
        }
        let wrong = english.replace("Average = 11ms", "Average = 14ms").replace("Sent = 3", "Sent = 4");
        let (_, end) = read(&FORMAT, &LogOptions::default(), false, wrong.as_bytes()).expect("a log");
        assert_eq!((end.facts.lost, end.contradictions.len()), (1, 1));
        let bad = english.replace("time=23ms", "time=2x3ms");
        let fault = read(&FORMAT, &LogOptions::default(), false, bad.as_bytes()).expect_err("no number");
        assert_eq!((fault.line, fault.what.as_str()), (Some(3), "`2x3` is not a number"));
    }
}
