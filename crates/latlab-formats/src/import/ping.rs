//! What `ping` writes: that of iputils, busybox, inetutils, BSD and hping3, in any language and with anything in front of its
//! lines. A line is a packet if it has a number behind `icmp_seq=` or `seq=`, and an answer if it ends with `= 0.35 ms`.
//!
//! Numbers ascend by one for each packet and have 16 bits, so a number that is missing between answers is a packet without an
//! answer. Only the totals say what was sent after the last line. ping of iputils s20180629 prints `17.10` for 17.95 to 17.99.

use super::prelude::*;
use std::collections::VecDeque;

/// The packets that may still be answered: an answer that is later than that is a fault.
const WINDOW: u64 = 1_024;
const UNIT: TimeUnit = TimeUnit::Millis;

pub(super) fn open(options: &LogOptions) -> OpenedLog {
    unit_of(Some(UNIT), options.unit)?;
    Ok(Box::<PingLog>::default())
}

pub(super) fn second_run() -> LogFault {
    LogFault::whole("the log has a second run of ping").hint("import the log of each run by itself")
}

pub(super) fn detects(head: &LogHead<'_>) -> bool {
    let is_answer = |line| number_of(whole(line)).is_some() && round_trip(whole(line)).is_some();
    head.lines().any(|line| first_of(line).is_some() || is_answer(line))
}

/// The number of the first packet, of a line that begins a log. iputils alone writes no colon behind the address in parentheses,
/// and no `PING6(56=40+8+8 bytes)`.
fn first_of(line: &[u8]) -> Option<u64> {
    let is_name = |word: &LogField<'_>| {
        let name = word.text.strip_prefix(b"H").unwrap_or(word.text);
        name == b"PING" || [&b"PING("[..], b"PING4", b"PING6"].iter().any(|start| name.starts_with(start))
    };
    let has = |text: &str| memmem::find(line, text.as_bytes()).is_some();
    // Behind the address are the bytes of a packet.
    let has_bytes = || line.split(|byte| *byte == b')').skip(1).flatten().any(u8::is_ascii_digit);
    let is_first = words(line).find(is_name).is_some_and(|word| if has("(") { has_bytes() } else { word.column == 1 });
    is_first.then(|| (has(") ") && !has("bytes) ")).into())
}

/// The number of the packet of a line: behind `icmp_seq=`, that of busybox and hping3 behind `seq=`.
fn number_of(line: LogField<'_>) -> Option<LogField<'_>> {
    let start =
        [&b"seq="[..], b"icmp_seq "].iter().find_map(|mark| Some(memmem::find(line.text, mark)? + mark.len()))?;
    words(&line.text[start..]).next().map(|word| line.part(start, start + word.column - 1 + word.text.len()))
}

/// The number in front of the unit `ms` of an answer, `time=0.35 ms`; with the sign of a bound, `time<1 ms`.
fn round_trip(line: LogField<'_>) -> Option<LogField<'_>> {
    let is_end = |end: &usize| line.text.get(end + 2).is_none_or(|next| next.is_ascii_whitespace() || *next == b',');
    let end = memmem::rfind(line.text, b"ms").filter(is_end).or_else(|| translated_unit(line.text))?;
    let start = line.text[..end].iter().rposition(|byte| b"=<".contains(byte))?;
    Some(line.part(start + usize::from(line.text[start] == b'='), end))
}

/// Where a unit begins that is not ASCII, as in `ttl=64 время=0.35 мс`.
fn translated_unit(text: &[u8]) -> Option<usize> {
    let behind = memmem::find(text, b"ttl=")? + 4;
    let end = behind + text[behind..].windows(2).rposition(|pair| pair[0] == b' ' && !pair[1].is_ascii())?;
    text[behind..end].contains(&b'=').then_some(end)
}

#[derive(Default)]
struct PingLog {
    /// The number of the first packet, from the first line of the log: 1 if it is of iputils.
    first: Option<u64>,
    is_hping: bool,
    oldest: Option<u64>,
    /// Round trips in ns of packets that are not yet rows, without gaps; `Some(None)` without an answer, `None` if a line that may
    /// be its answer was malformed.
    window: VecDeque<Option<Option<i64>>>,
    is_doubtful: bool,
    totals: Option<LogTotals>,
    extremes: [Option<StatedValue>; 3],
    answered: u64,
    unanswered: u64,
    duplicates: u64,
    carried: u64,
    started_ns: Option<i64>,
    /// One unit of the last digit of the values: the least and the largest.
    steps: Option<(i64, i64)>,
}

impl LineParser for PingLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        let taken = self.take(whole(line), rows);
        self.is_doubtful |= taken.is_err();
        taken
    }

    fn finish(&mut self, rows: &mut LogRows<'_>) -> ReadLog {
        let totals = self.totals.take();
        let (sent, received) = totals.as_ref().map_or((None, None), |totals| (totals.sent, totals.received));
        if let Some((first, sent)) = self.first.zip(sent) {
            self.oldest.get_or_insert(first);
            self.sent_before(first.saturating_add(sent), rows);
        }
        while let Some(answer) = self.window.pop_front() {
            self.row(answer, rows);
        }
        if self.answered == 0 && received.is_some_and(|received| received > 0) {
            let fault = LogFault::whole("the log has totals and no round trips");
            return Err(fault.hint("`ping` writes them without `-q` and `-f`, and with a payload of at least 16 bytes"));
        }
        let rows = self.answered + self.unanswered;
        let lost = sent.zip(received).map_or(0, |(sent, received)| {
            sent.saturating_sub(received).saturating_sub(self.unanswered).min(sent.saturating_sub(rows))
        });
        let [min, mean, max] = if self.duplicates == 0 { self.extremes } else { [None; 3] };
        let (finest, coarsest) = self.steps.unwrap_or_default();
        let duplicates = note(self.duplicates, "duplicate answer", "left out");
        let carried = note(self.carried, "value", "printed as `17.10` by iputils s20180629, read as 18.0");
        Ok(LogFacts {
            started_ns: self.started_ns,
            lost,
            // What was sent after the last line is unknown.
            states_losses: totals.is_none().then_some(false),
            resolution_ns: (finest == coarsest && finest > 0).then_some(Nanos(finest)),
            notes: duplicates.into_iter().chain(carried).collect(),
            totals: LogTotals { sent, received, min, mean, max, row_step_ns: coarsest },
            ..LogFacts::of(if self.is_hping { "hping3" } else { "ping" })
        })
    }
}

impl PingLog {
    fn take(&mut self, line: LogField<'_>, rows: &mut LogRows<'_>) -> Result<LineUse, LogFault> {
        if let Some(number) = number_of(line) {
            return self.packet_line(line, number, rows).map(|()| LineUse::Taken);
        }
        if let Some(first) = first_of(line.text) {
            if self.first.replace(first).is_some() || self.oldest.is_some() {
                return Err(second_run());
            }
            self.is_hping = memmem::find(line.text, b"HPING").is_some();
        } else if memmem::find(line.text, b"time of day goes back").is_some() {
            return Err(LogFault::at(line.column, "the clock was set back while a packet was under way"));
        } else if let Some(totals) = totals_of(line) {
            self.totals = Some(totals);
        } else if let Some(extremes) = extremes_of(line) {
            self.extremes = extremes;
        } else if !line.text.starts_with(b"--- ") {
            return Ok(LineUse::Other);
        }
        Ok(LineUse::Taken)
    }

    fn packet_line(
        &mut self,
        line: LogField<'_>,
        number: LogField<'_>,
        rows: &mut LogRows<'_>,
    ) -> Result<(), LogFault> {
        if let Some([instant]) = captured(line, "[{}] *") {
            self.started_ns = self.started_ns.or(instant.time(TimeUnit::Seconds).ok());
        }
        if memmem::find(line.text, b"DUP!").is_some() {
            self.duplicates += 1;
            return Ok(());
        }
        let is_answer = memmem::find(line.text, b"ttl=").is_some();
        let fault = || LogFault::at(line.column + line.text.len(), "an answer without its time in ms");
        let value = match round_trip(line) {
            Some(value) => self.value(&value).map(Some),
            None if !is_answer => Ok(None),
            None if self.steps.is_some() => Err(fault()),
            None => Err(fault().of_all_rows().hint("write the log with `LC_ALL=C`, and a payload of 16 bytes or more")),
        };
        // Without its first line nothing tells a second run, or one to another host, from duplicates.
        let is_headless = self.first.is_none();
        let known = self.packet(number, rows)?;
        match (known.is_some_and(|known| known.is_some()), &value) {
            (true, Ok(Some(_))) if is_headless => return Err(second_run()),
            (true, Ok(Some(_))) => self.duplicates += 1,
            (true, _) | (false, Ok(None)) => {}
            (false, value) => *known = value.as_ref().ok().copied(),
        }
        value.map(|_| ())
    }

    fn value(&mut self, field: &LogField<'_>) -> Result<i64, LogFault> {
        let value_ns = field.time(UNIT)?;
        // With three digits there is one place from 10 ms on, and 99 hundredths are rounded to `.10`.
        if let Some(front) = field.text.strip_suffix(b".10").filter(|front| self.first == Some(1) && front.len() >= 2) {
            self.carried += 1;
            return LogField { text: front, ..*field }.time(UNIT).map(|whole| whole + UNIT.nanos() as i64);
        }
        let step = field.step_ns(UNIT);
        let (finest, coarsest) = self.steps.unwrap_or((step, step));
        self.steps = Some((finest.min(step), coarsest.max(step)));
        Ok(value_ns)
    }

    /// The answer to the packet that `field` numbers. Packets before it that no line has named so far were sent too.
    fn packet(&mut self, field: LogField<'_>, rows: &mut LogRows<'_>) -> Result<&mut Option<Option<i64>>, LogFault> {
        let wire = field.count().ok().and_then(|number| u16::try_from(number).ok());
        let wire = wire.ok_or_else(|| field.is_not("a number of 16 bits"))?;
        // Without the limit of 16 bits it is the number that is nearest to the last packet.
        let number = match (self.due(), self.first) {
            (Some(due), _) => due.saturating_add_signed(i64::from(wire.wrapping_sub(due as u16) as i16)),
            (None, Some(1)) if wire == 0 => *self.first.insert(0),
            (None, Some(first)) => first.saturating_add(u64::from(wire.wrapping_sub(first as u16))),
            (None, None) => u64::from(wire),
        };
        if number < *self.oldest.get_or_insert(self.first.unwrap_or(number)) {
            return Err(field.is_not(&format!("one of the last {WINDOW} packets")));
        }
        self.sent_before(number, rows);
        self.is_doubtful = false;
        self.sent_before(number.saturating_add(1), rows);
        let place = number - self.oldest.unwrap_or(number);
        self.window.get_mut(place as usize).ok_or_else(|| field.is_not("the number of a packet"))
    }

    fn due(&self) -> Option<u64> {
        Some(self.oldest?.saturating_add(self.window.len() as u64))
    }

    /// Extends the window by the packets before `number`. A gap that is longer than the window becomes one row.
    fn sent_before(&mut self, number: u64, rows: &mut LogRows<'_>) {
        let Some(missing) = self.due().and_then(|due| number.checked_sub(due)) else { return };
        if let Some(gap @ 1..) = missing.checked_sub(WINDOW) {
            while let Some(answer) = self.window.pop_front() {
                self.row(answer, rows);
            }
            self.oldest = self.oldest.map(|oldest| oldest.saturating_add(gap));
            if !self.is_doubtful {
                self.unanswered += gap;
                rows.value(LoggedValue { seq: None, value_ns: None, count: gap });
            }
        }
        for _ in 0..missing.min(WINDOW) {
            self.window.push_back((!self.is_doubtful).then_some(None));
            if self.window.len() as u64 > WINDOW
                && let Some(answer) = self.window.pop_front()
            {
                self.row(answer, rows);
            }
        }
    }

    fn row(&mut self, answer: Option<Option<i64>>, rows: &mut LogRows<'_>) {
        let seq = self.oldest;
        self.oldest = seq.map(|seq| seq.saturating_add(1));
        let Some(value_ns) = answer else { return };
        *(if value_ns.is_some() { &mut self.answered } else { &mut self.unanswered }) += 1;
        rows.are_of(Metric::RoundTripDelay);
        rows.value(LoggedValue { seq, value_ns, count: 1 });
    }
}

/// The counts of `4 packets transmitted, 3 received, +1 duplicates, 25% packet loss, time 612ms`, in any language. What stands in
/// front of the line may be numbers too.
fn totals_of(line: LogField<'_>) -> Option<LogTotals> {
    let [front, received] = captured(line, "{}, {} *%*")?;
    let sent = words(front.text).filter_map(|word| word.total().ok()).last()?;
    let received = received.total().ok().filter(|received| *received <= sent)?;
    Some(LogTotals { sent: Some(sent), received: Some(received), ..LogTotals::default() })
}

/// Minimum, mean and maximum of `rtt min/avg/max/mdev = 0.041/31.286/120.000/45.726 ms`.
fn extremes_of(line: LogField<'_>) -> Option<[Option<StatedValue>; 3]> {
    let [heading, figures] =
        captured(line, "{} = {} ms*").filter(|[heading, _]| !heading.text.ends_with(b"ewma/max"))?;
    memchr::memchr(b'/', heading.text)?;
    let mut values = cells(figures.text, b'/').map(|cell| StatedValue::of(&cell, UNIT).ok());
    Some([values.next()??, values.next()??, values.next()??].map(Some))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{is_detected, read};
    use super::super::{LogBlock, LogEnd};
    use super::*;

    /// `ping -D -O` of iputils to a host that answers some packets late, twice or not at all.
    const LOG: &str = "PING 10.9.0.2 (10.9.0.2) 56(84) bytes of data.\n\
        [1795782005.485779] 64 bytes from 10.9.0.2: icmp_seq=1 ttl=64 time=5.79 ms\n\
        [1795782005.503154] no answer yet for icmp_seq=2\n\
        [1795782005.510848] 64 bytes from 10.9.0.2: icmp_seq=1 ttl=64 time=30.9 ms (DUP!)\n\
        [1795782005.518404] 64 bytes from 10.9.0.2: icmp_seq=3 ttl=64 time=15.2 ms\n\
        [1795782005.571152] no answer yet for icmp_seq=4\n\
        [1795782005.587163] no answer yet for icmp_seq=5\n\
        [1795782005.601417] 64 bytes from 10.9.0.2: icmp_seq=5 ttl=64 time=120 ms (DIFFERENT ADDRESS!)\n\
        [1795782005.601486] 64 bytes from 10.9.0.2: icmp_seq=7 ttl=64 time=0.041 ms\n\
        [1795782005.602560] 64 bytes from 10.9.0.2: icmp_seq=6 ttl=64 time=15.4 ms\n\
        \n\
        --- 10.9.0.2 ping statistics ---\n\
        8 packets transmitted, 5 received, +1 duplicates, 37.5% packet loss, time 511ms\n\
        rtt min/avg/max/mdev = 0.041/31.286/120.000/45.726 ms, pipe 10\n";

    fn read_ping(text: &str) -> Result<(LogBlock, LogEnd), LogFault> {
        read("ping", &LogOptions::default(), false, text.as_bytes())
    }

    fn rows(block: &LogBlock) -> Vec<(u64, Option<i64>)> {
        block.values.iter().map(|row| (row.seq.expect("a number"), row.value_ns)).collect()
    }

    #[test]
    fn a_translated_log_is_read() {
        let log = "PING 10.9.0.2 (10.9.0.2) 56(84) 字节的数据。\n\
            64 字节，来自 10.9.0.2: icmp_seq=1 ttl=64 时间=5.79 毫秒\n\
            对于 icmp_seq=2 没有响应\n\
            64 байта от 10.9.0.2: icmp_seq=3 ttl=64 время=0.030 мс\n";
        let (block, _) = read_ping(log).expect("a log");
        assert_eq!(rows(&block), [(1, Some(5_790_000)), (2, None), (3, Some(30_000))]);
    }

    fn answer(number: u64) -> String {
        format!("64 bytes from 10.9.0.2: icmp_seq={} ttl=64 time=0.0{:02} ms\n", number % 65_536, number % 100)
    }

    #[test]
    fn answers_are_rows_in_the_order_of_sending_and_missing_ones_are_lost() {
        let us = |value: i64| Some(value * 1_000);
        let expected =
            [us(5_790), None, us(15_200), None, us(120_000), us(15_400), us(41), None].into_iter().enumerate();
        let expected: Vec<_> = expected.map(|(at, value)| (at as u64 + 1, value)).collect();
        for text in [
            LOG.to_owned(),
            LOG.replace('\n', "\r\n"),
            LOG.replace("bytes from", "Bytes von").replace("time=", "Zeit="),
        ] {
            assert!(is_detected("ping", text.as_bytes()));
            let (block, end) = read_ping(&text).expect("a log");
            assert_eq!((rows(&block), block.metric), (expected.clone(), Some(Metric::RoundTripDelay)));
            assert_eq!((end.facts.started_ns, end.facts.lost), (Some(1_795_782_005_485_779_000), 0));
            assert_eq!(
                (end.facts.notes, end.contradictions),
                (vec!["1 duplicate answer left out".into()], Vec::<String>::new())
            );
            assert_eq!(end.others.count, 0, "{:?}", end.others);
        }
        let killed = LOG.split_once("\n\n").expect("totals").0;
        assert_eq!(read_ping(killed).expect("a log").1.facts.states_losses, Some(false), "without totals");
    }

    #[test]
    fn the_tools_of_other_systems_count_from_zero() {
        let busybox = "PING 127.0.0.1 (127.0.0.1): 56 data bytes\n\
            64 bytes from 127.0.0.1: seq=0 ttl=64 time=0.045 ms\n\
            64 bytes from 127.0.0.1: seq=2 ttl=64 time=0.061 ms\n\n\
            --- 127.0.0.1 ping statistics ---\n\
            4 packets transmitted, 2 packets received, 50% packet loss\n\
            round-trip min/avg/max = 0.045/0.053/0.061 ms\n";
        let bsd = busybox.replace("seq=0", "icmp_seq=0").replace(
            "64 bytes from 127.0.0.1: seq=2",
            "Request timeout for icmp_seq 1\n92 bytes from 10.9.0.1: Time to live exceeded\n64 bytes from 127.0.0.1: icmp_seq=2",
        );
        let bsd_6 = busybox.replace("PING 127.0.0.1 (127.0.0.1): 56 data bytes", "PING6(56=40+8+8 bytes) ::1 --> ::1");
        let hping = busybox.replace("PING 127.0.0.1 (127", "HPING 127.0.0.1 (lo 127").replace(" time=", " rtt=");
        let behind_instants = format!("1700000000 {}", busybox.replace('\n', "\n1700000000 "));
        for text in [busybox, &bsd, &bsd_6, &hping, &behind_instants] {
            let (block, end) = read_ping(text).expect(text);
            assert_eq!(rows(&block), [(0, Some(45_000)), (1, None), (2, Some(61_000)), (3, None)], "{text}");
            assert_eq!((end.contradictions.len(), end.facts.resolution_ns), (0, Some(Nanos(1_000))), "{text}");
        }
    }

    #[test]
    fn what_stands_in_front_of_lines_and_between_them_is_left_out() {
        let date = "[2026/11/28 13:00:00] 64 bytes from 192.0.2.2: icmp_seq=1 ttl=64 time=0.350 ms\n^C64 bytes from \
            192.0.2.2: icmp_seq=2 ttl=64 time=0.370 ms\n^C\nPATTERN: 0xff\nping: sendmsg: Network is unreachable\n\
            \r2/2 packets, 0% loss, min/avg/ewma/max = 0.350/0.360/0.370/0.370 ms\n";
        let (block, end) = read_ping(date).expect("a log");
        assert_eq!(rows(&block), [(1, Some(350_000)), (2, Some(370_000))]);
        assert_eq!((end.facts.started_ns, end.others.count), (None, 4));
        assert_eq!(end.others.first[0], (3, "^C".into()));
    }

    #[test]
    fn a_log_is_checked_by_its_own_totals() {
        let without = LOG.replace("[1795782005.601486] 64 bytes from 10.9.0.2: icmp_seq=7 ttl=64 time=0.041 ms\n", "");
        let (_, end) = read_ping(&without).expect("a log");
        assert_eq!(end.contradictions, ["5 received, 4 in its rows"]);
        let tens = "PING 192.0.2.2 (192.0.2.2) 56(84) bytes of data.\n\
            64 bytes from 192.0.2.2: icmp_seq=1 ttl=64 time=17.10 ms\n\
            64 bytes from 192.0.2.2: icmp_seq=2 ttl=64 time=16.4 ms\n\n\
            2 packets transmitted, 2 received, 0% packet loss, time 1001ms\n\
            rtt min/avg/max/mdev = 16.402/17.178/17.955/0.777 ms\n";
        let (block, end) = read_ping(tens).expect("a log");
        assert_eq!(rows(&block), [(1, Some(18_000_000)), (2, Some(16_400_000))]);
        assert_eq!((end.contradictions.len(), end.facts.notes.len()), (0, 1));
        let wrong = tens.replace("17.10", "17.1");
        assert_eq!(read_ping(&wrong).expect("a log").1.contradictions.len(), 2, "its mean and its maximum");
        let quiet = "PING a (a) 56(84) bytes of data.\n\n3 packets transmitted, 3 received, 0% packet loss, time 1ms\n";
        assert!(read_ping(quiet).is_err_and(|fault| fault.hint.is_some_and(|hint| hint.contains("-q"))));
        let behind_times = LOG.replace("PING", "13:00:00 PING");
        for runs in [LOG.repeat(2), behind_times.repeat(2), [answer(1), answer(2), answer(1)].concat()] {
            assert!(read_ping(&runs).is_err_and(|fault| fault.what.contains("second run")), "{runs}");
        }
        let unmarked = LOG.replace(" (DUP!)", "");
        let (block, end) = read_ping(&unmarked).expect("a log");
        assert_eq!((rows(&block)[0], end.facts.notes.len()), ((1, Some(5_790_000)), 1), "the first answer counts");
    }

    #[test]
    fn numbers_continue_behind_16_bits_and_a_long_gap_is_one_row() {
        let lines: String = (1..=70_000).filter(|number| *number != 65_540).map(answer).collect();
        let totals = "70000 packets transmitted, 69999 received, 0.00142857% packet loss, time 1ms\n";
        let (block, _) = read_ping(&format!("PING a (a) 56(84) bytes of data.\n{lines}{totals}")).expect("a log");
        let found = rows(&block);
        assert!(found.iter().zip(1..).all(|((seq, _), number)| *seq == number));
        assert_eq!((found.len(), found[65_539], found[69_999]), (70_000, (65_540, None), (70_000, Some(0))));
        let silent = "PING a (a) 56(84) bytes of data.\n\n1000000 packets transmitted, 0 received, 100% packet loss\n";
        let (block, end) = read_ping(silent).expect("a log");
        assert_eq!(block.values.iter().map(|row| row.count).sum::<u64>(), 1_000_000);
        assert!(block.values.len() as u64 <= WINDOW + 1 && end.contradictions.is_empty());
        let late =
            format!("PING a (a) 56(84) bytes of data.\n{}{}", (2..=1_025).map(answer).collect::<String>(), answer(1));
        assert_eq!(read_ping(&late).expect_err("out of the window").what, "`1` is not one of the last 1024 packets");
    }

    #[test]
    fn a_malformed_row_is_a_fault_and_does_not_lose_a_packet() {
        for (line, column, what) in [
            ("64 bytes from a: icmp_seq=3 ttl=64 time=0.0x5 ms", 41, "`0.0x5` is not a number"),
            ("64 bytes from a: icmp_seq=3 ttl=64 time<1 ms", 40, "`<1` is not a number"),
            ("64 bytes from a: icmp_seq=3 ttl=64 time=15", 43, "an answer without its time in ms"),
            ("64 bytes from a: icmp_seq=70000 ttl=64 time=15 ms", 27, "`70000` is not a number of 16 bits"),
        ] {
            let fault = read_ping(line).expect_err(line);
            assert_eq!((fault.column, &*fault.what), (Some(column), what), "{line}");
            assert_eq!(fault.is_skippable, !what.contains("without its time"), "that of all rows: {line}");
        }
        let [begin, bad] = ["PING a (a) 56(84) bytes of data.\n", "64 bytes from a: icmp_seq=3 ttl=64 time=0.0x5 ms\n"];
        let text =
            [begin, &answer(1), &answer(2), bad, &answer(4), "5 packets transmitted, 4 received, 20% loss\n"].concat();
        let (block, end) = read("ping", &LogOptions::default(), true, text.as_bytes()).expect("with --skip-bad");
        assert_eq!(rows(&block), [(1, Some(1_000)), (2, Some(2_000)), (4, Some(4_000)), (5, None)]);
        assert_eq!((end.skipped, end.facts.lost), (1, 0));
    }
}
