//! `ping` of Windows, in any language: rows are recognised by their numbers, `Reply from 192.0.2.2: bytes=32 time=23ms TTL=56`.
//! A line between the first one and the statistics without an answer is a probe without one. `<1ms` is taken as 0, which is how
//! the tool averages it.

use super::ping::second_run;
use super::prelude::*;

pub(super) fn open(options: &LogOptions) -> OpenedLog {
    unit_of(Some(UNIT), options.unit)?;
    Ok(Box::<WindowsLog>::default())
}

const UNIT: TimeUnit = TimeUnit::Millis;

pub(super) fn detects(head: &LogHead<'_>) -> bool {
    let has = |is: fn(LogField<'_>) -> bool| head.lines().any(|line| is(whole(line)));
    has(|line| line.text.starts_with(b"Pinging ") || (has_ttl(line) && answer_of(line).is_some()))
        || (has(|line| answer_of(line).is_some()) && has(|line| numbers_of(line).len() > 1))
}

/// `ms` in any language.
const UNIT_BYTES_MAX: usize = 9;

fn has_ttl(line: LogField<'_>) -> bool {
    captured::<0>(line, "* TTL=*").is_some()
}

/// The time of an answer, `time=23ms`, `temps=23 ms`, in front of `TTL=`; of a bound `<1`. Units are translated, or cut to `m`.
/// Without the TTL, as over IPv6, a single word behind the address tells the line from the statistics.
fn answer_of(line: LogField<'_>) -> Option<LogField<'_>> {
    let text = match captured(line, "{} TTL=*") {
        Some([text]) => text,
        None => memmem::rfind(line.text, b": ").filter(|at| words(&line.text[at + 2..]).count() == 1).map(|_| line)?,
    };
    let start = text.text.iter().rposition(|byte| b"=<".contains(byte))?;
    let end = text.text.iter().rposition(u8::is_ascii_digit).filter(|end| *end > start)? + 1;
    let value = text.part(start + usize::from(text.text[start] == b'='), end);
    let unit_bytes = text.text.len() - end;
    ((1..=UNIT_BYTES_MAX).contains(&unit_bytes) && captured::<0>(line, "*seq=*").is_none()).then_some(value)
}

/// The numbers of `Sent = 3, Received = 2, Lost = 1 (33% loss),` or `Minimum = 0ms, …` in any language, whatever its commas are.
fn numbers_of(line: LogField<'_>) -> Vec<LogField<'_>> {
    let digits = |field: LogField<'_>| field.text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let behind = memmem::find_iter(line.text, b" = ").map(|at| line.part(at + 3, line.text.len()));
    behind.map(|field| field.part(0, digits(field))).filter(|field| !field.text.is_empty()).collect()
}

#[derive(Default)]
struct WindowsLog {
    has_begun: bool,
    /// A heading follows rows: that of the counts, or of another run.
    is_headed_again: bool,
    totals: LogTotals,
    rows: u64,
    bounds: u64,
}

impl LineParser for WindowsLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        let line = whole(line.trim_ascii_end());
        let (value, numbers) = (answer_of(line), numbers_of(line));
        if self.totals.sent.is_some() {
            // What follows the counts is one heading with the extremes, unless all are lost.
            let is_over = self.totals.received == Some(0) || self.totals.max.is_some();
            if value.is_some() || (is_over && line.text.ends_with(b":")) {
                return Err(second_run());
            }
            if let [min, max, mean] = &numbers[..] {
                let [min, max, mean] = [min, max, mean].map(|number| StatedValue::of(number, UNIT).ok());
                (self.totals.min, self.totals.max, self.totals.mean) = (min, max, mean);
            }
        } else if self.is_headed_again && (value.is_some() || (numbers.is_empty() && !line.text.is_empty())) {
            return Err(second_run());
        } else if let Some(value) = value {
            let is_bound = value.text.starts_with(b"<");
            let value_ns = if is_bound { 0 } else { value.time(UNIT)? };
            self.bounds += u64::from(is_bound);
            self.row(Some(value_ns), rows);
        } else if let [sent, rest @ ..] = &numbers[..] {
            self.totals.sent = Some(sent.total()?);
            self.totals.received = rest.first().map(LogField::total).transpose()?;
        } else if line.text.ends_with(b":") {
            (self.has_begun, self.is_headed_again) = (true, self.rows > 0);
        } else if !line.text.is_empty() && self.has_begun {
            self.row(None, rows);
        } else {
            return Ok(LineUse::Other);
        }
        Ok(LineUse::Taken)
    }

    fn finish(&mut self, _: &mut LogRows<'_>) -> ReadLog {
        Ok(LogFacts {
            states_losses: self.totals.sent.is_none().then_some(false),
            lost: self.totals.sent.map_or(0, |sent| sent.saturating_sub(self.rows)),
            resolution_ns: Some(Nanos(UNIT.nanos() as i64)),
            notes: note(self.bounds, "value", "printed as `<1ms`, taken as 0").into_iter().collect(),
            totals: LogTotals { row_step_ns: UNIT.nanos() as i64, ..self.totals.clone() },
            ..LogFacts::of("ping of Windows")
        })
    }
}

impl WindowsLog {
    fn row(&mut self, value_ns: Option<i64>, rows: &mut LogRows<'_>) {
        rows.are_of(Metric::RoundTripDelay);
        rows.value(LoggedValue { seq: Some(self.rows), value_ns, count: 1 });
        self.has_begun = true;
        self.rows += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::LogOptions;
    use super::super::testing::{is_detected, read};

    #[test]
    fn answers_and_lines_without_one_are_rows_in_any_language() {
        let english = "\nPinging 192.0.2.2 with 32 bytes of data:\nReply from 192.0.2.2: bytes=32 time=23ms TTL=56\n\
            Request timed out.\nReply from 192.0.2.2: bytes=32 time<1ms TTL=56\n\nPing statistics for 192.0.2.2:\n    \
            Packets: Sent = 3, Received = 2, Lost = 1 (33% loss),\nApproximate round trip times in milli-seconds:\n    \
            Minimum = 0ms, Maximum = 23ms, Average = 11ms\n";
        let german = "\nPing wird ausgeführt für 192.0.2.2 mit 32 Bytes Daten:\nAntwort von 192.0.2.2: Bytes=32 Zeit=23ms \
            TTL=56\nZeitüberschreitung der Anforderung.\nAntwort von 192.0.2.2: Bytes=32 Zeit<1m TTL=56\n\n\
            Ping-Statistik für 192.0.2.2:\n    Pakete: Gesendet = 3, Empfangen = 2,\n    Verloren = 1 (33% Verlust),\n\
            Ca. Zeitangaben in Millisek.:\n    Minimum = 0ms, Maximum = 23ms, Mittelwert = 11ms\n";
        let over_ipv6 = english.replace("bytes=32 ", "").replace(" TTL=56", "").replace(", ", "，");
        for text in [english, german, &over_ipv6] {
            assert!(is_detected("ping-windows", text.as_bytes()), "{text}");
            let (block, end) = read("ping-windows", &LogOptions::default(), false, text.as_bytes()).expect(text);
            let rows: Vec<_> = block.values.iter().map(|row| (row.seq, row.value_ns)).collect();
            assert_eq!(rows, [(Some(0), Some(23_000_000)), (Some(1), None), (Some(2), Some(0))], "{text}");
            assert_eq!((end.contradictions.len(), end.facts.lost, end.facts.notes.len()), (0, 0, 1), "{text}");
        }
        let wrong = english.replace("Average = 11ms", "Average = 14ms").replace("Sent = 3", "Sent = 4");
        let (_, end) = read("ping-windows", &LogOptions::default(), false, wrong.as_bytes()).expect("a log");
        assert_eq!((end.facts.lost, end.contradictions.len()), (1, 1));
        let fault = |text: &str| read("ping-windows", &LogOptions::default(), false, text.as_bytes()).expect_err(text);
        let bad = fault(&english.replace("time=23ms", "time=2x3ms"));
        assert_eq!((bad.line, bad.what.as_str()), (Some(3), "`2x3` is not a number"));
        let lost = "Pinging a:\nRequest timed out.\nPing statistics for a:\n Sent = 1, Received = 0, Lost = 1\n";
        for runs in [english.repeat(2), lost.repeat(2), [english, lost].concat()] {
            assert!(fault(&runs).what.contains("second run"), "{runs}");
        }
    }
}
