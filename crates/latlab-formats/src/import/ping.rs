//! What `ping` writes: that of iputils with and without `-D`, `-O` and `-v`, of busybox, of inetutils, and of BSD. What it
//! writes to standard error may be among the lines, such as the counts so far on SIGQUIT. ICMP errors of BSD and inetutils have
//! no number of a packet; the header of the packet may follow, as a table or in hexadecimal.
//!
//! Packets are numbered by `icmp_seq`, which ascends by one for each packet and has 16 bits, so a number that is missing
//! between answers is a packet without an answer. iputils begins with 1; busybox and BSD begin with 0 and have a colon in the
//! first line. A packet that could not be sent (`ping: sendmsg: …`) has a number, and iputils counts it as transmitted: it is one
//! without an answer, as in the totals of the log; busybox and inetutils end there. Only the totals say what was sent after the
//! last line: a log without them, of a ping that was killed or ended with an error, does not state its losses, and the packets
//! that are known to be lost are rows all the same. Duplicates are not rows. The instants of `-D` are those of receiving, and
//! only the first one is kept.

use std::collections::VecDeque;

use memchr::memmem;

use super::field::{LogField, cells, unit_of, whole, words};
use super::{LineParser, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::{LogFacts, LoggedValue};
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::Nanos;
use crate::units::human::TimeUnit;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "ping",
    title: "output of ping",
    rows: Kind::Values,
    is_generic: false,
    options: &["--unit"],
    states_losses: true,
    detects,
    reader: LogReader::Lines(open),
};

/// The beginnings of lines that say nothing about a packet.
const KNOWN: [&str; 10] = [
    "--- ",
    "rtt ",
    "round-trip ",
    "pipe ",
    "ai->ai_family: ",
    // Of the packet of an ICMP error.
    "Vr HL TOS ",
    "IP Hdr Dump:",
    "ICMP: type ",
    "TCP: from port ",
    "UDP: from port ",
];
/// The beginnings of what inetutils and BSD call ICMP errors.
const ICMP_ERRORS: [&str; 15] = [
    "Destination ",
    "Dest Unreachable",
    "Dest. ",
    "frag needed ",
    "Fragmentation needed ",
    "Source Route Failed",
    "Source Quench",
    "Communication ",
    "Network ",
    "Host ",
    "Redirect",
    "Time to live exceeded",
    "Time exceeded",
    "Frag reassembly time exceeded",
    "Parameter problem",
];
/// The packets that may still be answered: an answer that is later than that is a fault.
const WINDOW: usize = 1_024;
/// The most packets without an answer after the last line that are rows; further ones are in `LogFacts::lost`.
const TAIL_MAX: u64 = 1 << 20;

fn open(options: &LogOptions) -> Result<Box<dyn LineParser>, LogFault> {
    unit_of(Some(TimeUnit::Millis), options.unit)?;
    Ok(Box::<PingLog>::default())
}

/// Whether it has the first line of ping, or an answer.
fn detects(head: &LogHead<'_>) -> bool {
    let is_answer = |line| memmem::find(line, b" bytes from ").is_some() && number_of(whole(line)).is_some();
    head.lines().any(|line| line.starts_with(b"PING ") || is_answer(line))
}

/// What is known of a packet that was sent.
#[derive(Clone, Copy)]
enum PacketAnswer {
    Missing,
    /// Its round trip in ns.
    Received(i64),
    /// A line that may be its answer was malformed.
    Unread,
}

/// The statistics at the end.
#[derive(Clone, Copy)]
struct PingTotals {
    transmitted: u64,
    received: u64,
}

#[derive(Default)]
struct PingLog {
    /// The number of the first packet, from the first line of the log.
    first: Option<u64>,
    /// The number of the packet at the front of `window`; `None` before the first one.
    oldest: Option<u64>,
    /// Packets that are not yet rows, without gaps.
    window: VecDeque<PacketAnswer>,
    /// Whether a line since the last number was malformed.
    is_doubtful: bool,
    totals: Option<PingTotals>,
    /// Rows with and without an answer.
    answered: u64,
    unanswered: u64,
    started_ns: Option<i64>,
    /// Decimal places of the values, if all have the same.
    places: Option<usize>,
    are_places_mixed: bool,
}

/// What follows `mark` in `field`, up to the next white space.
fn after<'a>(field: LogField<'a>, mark: &[u8]) -> Option<LogField<'a>> {
    let start = memmem::find(field.text, mark)? + mark.len();
    let text = &field.text[start..];
    let length = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    Some(LogField { text: &text[..length], column: field.column + start })
}

/// The number of the packet of a line: behind `icmp_seq=`, that of busybox behind `seq=`.
fn number_of(line: LogField<'_>) -> Option<LogField<'_>> {
    after(line, b"seq=").or_else(|| after(line, b"icmp_seq "))
}

impl LineParser for PingLog {
    fn line(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let result = self.stamped(line, rows);
        self.is_doubtful |= result.is_err() && !is_message(line);
        result
    }

    fn finish(&mut self, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
        if let Some((first, totals)) = self.first.zip(self.totals) {
            self.end_at(first.saturating_add(totals.transmitted), rows);
        }
        while let Some(answer) = self.window.pop_front() {
            self.row(answer, rows);
        }
        let lost = self.totals.map_or(Ok(0), |totals| self.lost(totals))?;
        Ok(LogFacts {
            metric: Some(Metric::RoundTripDelay),
            started_ns: self.started_ns,
            lost,
            // What was sent after the last line is unknown.
            states_losses: self.totals.is_none().then_some(false),
            resolution_ns: self.resolution(),
            ..LogFacts::of("ping")
        })
    }
}

impl PingLog {
    /// Takes a line that may begin with the instant of `-D`.
    fn stamped(&mut self, line: &[u8], rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let Some(inside) = line.strip_prefix(b"[") else { return self.unstamped(whole(line), rows) };
        let Some(length) = memmem::find(inside, b"] ") else { return Err(not_of_ping(whole(line))) };
        let instant = LogField { text: &inside[..length], column: 2 }.time(TimeUnit::Seconds)?;
        self.started_ns.get_or_insert(instant);
        self.unstamped(LogField { text: &inside[length + 2..], column: length + 4 }, rows)
    }

    fn unstamped(&mut self, line: LogField<'_>, rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let begins = |start: &str| line.text.starts_with(start.as_bytes());
        let contains = |part: &str| memmem::find(line.text, part.as_bytes()).is_some();
        if contains(" bytes from ") {
            return self.answer(line, rows);
        }
        if begins("no answer yet for ") || begins("Request timeout for ") {
            let number = number_of(line).ok_or_else(|| not_of_ping(line))?;
            return self.packet(number, rows).map(|_| ());
        }
        if begins("From ") {
            return number_of(line).map_or(Ok(()), |number| self.packet(number, rows).map(|_| ()));
        }
        if begins("PING ") {
            return self.begin(line);
        }
        if contains(" packets transmitted") {
            self.totals = Some(totals_of(line)?);
            return Ok(());
        }
        if contains("time of day goes back") {
            return Err(LogFault::at(line.column, "the clock was set back while a packet was under way"));
        }
        let is_known = KNOWN.into_iter().any(begins) || is_message(line.text) || is_status(line.text);
        match is_known || is_packet_header(line.text) || line.text.trim_ascii().is_empty() {
            true => Ok(()),
            false => Err(not_of_ping(line)),
        }
    }

    fn begin(&mut self, line: LogField<'_>) -> Result<(), LogFault> {
        if self.first.is_some() || self.oldest.is_some() {
            return Err(
                LogFault::whole("the log has a second run of ping").hint("import the log of each run by itself")
            );
        }
        let counts_from_zero = memmem::find(line.text, b"): ").is_some();
        self.first = Some(if counts_from_zero { 0 } else { 1 });
        Ok(())
    }

    /// Takes `64 bytes from HOST: icmp_seq=1 ttl=64 time=0.045 ms`.
    fn answer(&mut self, line: LogField<'_>, rows: &mut LogRows<'_>) -> Result<(), LogFault> {
        let Some(number) = number_of(line) else {
            return match is_icmp_error(line) {
                true => Ok(()),
                false => Err(LogFault::at(line.column, "an answer without `icmp_seq=`")),
            };
        };
        if memmem::find(line.text, b" (DUP!)").is_some() {
            return Ok(());
        }
        let value = round_trip(line);
        let answer = self.packet(number, rows)?;
        if !matches!(answer, PacketAnswer::Received(_)) {
            *answer = value.as_ref().map_or(PacketAnswer::Unread, |(value_ns, _)| PacketAnswer::Received(*value_ns));
        }
        let (_, places) = value?;
        self.are_places_mixed |= *self.places.get_or_insert(places) != places;
        Ok(())
    }

    /// The answer to the packet that `field` numbers. Packets before it that no line has named so far were sent too.
    fn packet(&mut self, field: LogField<'_>, rows: &mut LogRows<'_>) -> Result<&mut PacketAnswer, LogFault> {
        let wire = field.count().ok().and_then(|number| u16::try_from(number).ok());
        let wire = wire.ok_or_else(|| field.is_not("a number of 16 bits"))?;
        let number = self.unwrapped(wire);
        let oldest = *self.oldest.get_or_insert(self.first.unwrap_or(number));
        if number < oldest {
            return Err(field.is_not(&format!("one of the last {WINDOW} packets")));
        }
        self.sent_before(number, rows);
        self.is_doubtful = false;
        self.sent_before(number.saturating_add(1), rows);
        let oldest = self.oldest.unwrap_or(oldest);
        Ok(&mut self.window[(number - oldest) as usize])
    }

    /// The number of a packet without the limit of 16 bits: the one that is nearest to the last packet.
    fn unwrapped(&self, wire: u16) -> u64 {
        match (self.oldest, self.first) {
            (Some(oldest), _) => {
                let due = oldest.saturating_add(self.window.len() as u64);
                let ahead = wire.wrapping_sub(due as u16) as i16;
                due.saturating_add_signed(i64::from(ahead))
            }
            (None, Some(first)) => first.saturating_add(u64::from(wire.wrapping_sub(first as u16))),
            (None, None) => u64::from(wire),
        }
    }

    /// Extends the window by the packets before `number`.
    fn sent_before(&mut self, number: u64, rows: &mut LogRows<'_>) {
        let sent = if self.is_doubtful { PacketAnswer::Unread } else { PacketAnswer::Missing };
        while self.oldest.is_some_and(|oldest| oldest.saturating_add(self.window.len() as u64) < number) {
            self.window.push_back(sent);
            if self.window.len() > WINDOW
                && let Some(answer) = self.window.pop_front()
            {
                self.row(answer, rows);
            }
        }
    }

    /// Extends the window by the packets before `end`, which no line names.
    fn end_at(&mut self, end: u64, rows: &mut LogRows<'_>) {
        let oldest = *self.oldest.get_or_insert(self.first.unwrap_or_default());
        let named = oldest.saturating_add(self.window.len() as u64);
        self.sent_before(end.min(named.saturating_add(TAIL_MAX)), rows);
    }

    /// Passes on the oldest packet of the window.
    fn row(&mut self, answer: PacketAnswer, rows: &mut LogRows<'_>) {
        let Some(seq) = self.oldest else { return };
        self.oldest = Some(seq.saturating_add(1));
        let value_ns = match answer {
            PacketAnswer::Missing => None,
            PacketAnswer::Received(value_ns) => Some(value_ns),
            PacketAnswer::Unread => return,
        };
        *(if value_ns.is_some() { &mut self.answered } else { &mut self.unanswered }) += 1;
        rows.are_of(Metric::RoundTripDelay);
        rows.value(LoggedValue { seq: Some(seq), value_ns, count: 1 });
    }

    /// The packets without an answer that are not rows.
    fn lost(&self, totals: PingTotals) -> Result<u64, LogFault> {
        let lost = totals.transmitted.saturating_sub(totals.received);
        if totals.received > 0 && self.answered == 0 {
            let fault = LogFault::whole("the log has totals and no round trips");
            return Err(fault.hint("`ping` writes them without `-q` and `-f`, and with a payload of at least 16 bytes"));
        }
        lost.checked_sub(self.unanswered).ok_or_else(|| {
            let (unanswered, answered) = (self.unanswered, totals.received);
            LogFault::whole(format!(
                "{unanswered} packets have no answer, {lost} according to the totals: lines are missing"
            ))
            .hint(format!("the log of this run had {answered} answers"))
        })
    }

    /// The last decimal place of all values; iputils shows three digits of values above 1 ms, so it is often not the same.
    fn resolution(&self) -> Option<Nanos> {
        let places = u32::try_from(self.places.filter(|_| !self.are_places_mixed)?).ok()?;
        Some(Nanos(10_i64.pow(6_u32.checked_sub(places)?)))
    }
}

/// Whether `line` begins with the name of the program, which may have a path: `ping: sendmsg: Network is unreachable`.
fn is_message(line: &[u8]) -> bool {
    let name = line.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    [&b"ping:"[..], b"ping4:", b"ping6:"].contains(&file)
}

/// Whether `line` is what iputils writes on SIGQUIT, over the line before: `5/5 packets, 0% loss, min/avg/ewma/max = …`.
fn is_status(line: &[u8]) -> bool {
    let is_count = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let mut words = words(line);
    let (counts, packets) = (words.next(), words.next());
    counts.is_some_and(|counts| counts.text.split(|byte| *byte == b'/').map(is_count).eq([true; 2]))
        && packets.is_some_and(|packets| packets.text == b"packets,")
}

/// Whether `line` is the header of the packet of an ICMP error, as inetutils and BSD write it: at least ten numbers in
/// hexadecimal, and addresses.
fn is_packet_header(line: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace() || *byte == b'.';
    line.iter().all(is_part) && words(line).count() >= 10
}

/// Whether `line`, which has no number of a packet, is what inetutils and BSD write of an ICMP error:
/// `92 bytes from 10.9.0.1: Destination Host Unreachable`.
fn is_icmp_error(line: LogField<'_>) -> bool {
    let has = |error: &&str| memmem::find(line.text, [": ", error].concat().as_bytes()).is_some();
    ICMP_ERRORS.iter().any(has)
}

#[cold]
fn not_of_ping(line: LogField<'_>) -> LogFault {
    line.is_not("a line of ping")
}

/// The round trip of an answer in ns, and its decimal places.
fn round_trip(line: LogField<'_>) -> Result<(i64, usize), LogFault> {
    let end = line.column + line.text.len();
    let number = match (after(line, b" time="), after(line, b" time<")) {
        (Some(number), _) => number,
        (None, Some(bound)) => return Err(LogFault::at(bound.column - 1, format!("`<{}` is a bound", bound.shown()))),
        (None, None) => return Err(LogFault::at(end, "an answer without `time=`")),
    };
    let value_ns = number.time(TimeUnit::Millis)?;
    let behind = number.column - line.column + number.text.len();
    let mut rest =
        words(&line.text[behind..]).map(|word| LogField { column: line.column + behind + word.column - 1, ..word });
    let unit = rest.next().ok_or_else(|| LogFault::at(end, "a time without `ms`"))?;
    if unit.text != b"ms" {
        return Err(unit.is_not("the unit `ms`"));
    }
    if let Some(more) = rest.next().filter(|more| !is_harmless(&line.text[more.column - line.column..])) {
        return Err(LogFault::at(more.column, format!("an answer with the remark `{}`", more.shown())));
    }
    let places = number.text.iter().rev().position(|byte| *byte == b'.').unwrap_or(0);
    Ok((value_ns, places))
}

/// Whether `remark` is on an answer from another address than that which was asked, whose round trip counts.
fn is_harmless(remark: &[u8]) -> bool {
    [&b"(DIFFERENT ADDRESS!)"[..], b"(different address)"].contains(&remark.trim_ascii_end())
}

/// The totals of `4 packets transmitted, 3 received, 25% packet loss, time 612ms`.
fn totals_of(line: LogField<'_>) -> Result<PingTotals, LogFault> {
    let count = |part: &str| {
        let cell = cells(line.text, b',').find(|cell| memmem::find(cell.text, part.as_bytes()).is_some());
        let word = cell.and_then(|cell| words(cell.text).next().map(|word| (cell.column, word)));
        let (start, word) = word.ok_or_else(|| LogFault::at(line.column, format!("totals without `{part}`")))?;
        LogField { column: line.column + start + word.column - 2, ..word }.total()
    };
    Ok(PingTotals { transmitted: count("transmitted")?, received: count("received")? })
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
        [1795782005.601417] 64 bytes from 10.9.0.2: icmp_seq=5 ttl=64 time=120 ms\n\
        [1795782005.601486] 64 bytes from 10.9.0.2: icmp_seq=7 ttl=64 time=0.041 ms\n\
        [1795782005.602560] 64 bytes from 10.9.0.2: icmp_seq=6 ttl=64 time=15.4 ms\n\
        \n\
        --- 10.9.0.2 ping statistics ---\n\
        8 packets transmitted, 5 received, +1 duplicates, 37.5% packet loss, time 511ms\n\
        rtt min/avg/max/mdev = 0.041/31.286/120.000/45.726 ms, pipe 10\n";

    fn read_ping(text: &str) -> Result<(LogBlock, LogEnd), LogFault> {
        read(&FORMAT, &LogOptions::default(), false, text.as_bytes())
    }

    fn rows(block: &LogBlock) -> Vec<(u64, Option<i64>)> {
        assert!(block.values.iter().all(|row| row.count == 1));
        block.values.iter().map(|row| (row.seq.expect("a number"), row.value_ns)).collect()
    }

    /// A line with an answer.
    fn answer(number: u64) -> String {
        format!("64 bytes from 10.9.0.2: icmp_seq={} ttl=64 time=0.0{:02} ms\n", number % 65_536, number % 100)
    }

    #[test]
    fn answers_are_rows_in_the_order_of_sending_and_missing_ones_are_lost() {
        let expected = [
            (1, Some(5_790_000)),
            (2, None),
            (3, Some(15_200_000)),
            (4, None),
            (5, Some(120_000_000)),
            (6, Some(15_400_000)),
            (7, Some(41_000)),
            (8, None),
        ];
        for text in [LOG.to_owned(), LOG.replace('\n', "\r\n")] {
            let (block, end) = read_ping(&text).expect("a log");
            assert_eq!((rows(&block), block.metric), (expected.to_vec(), Some(Metric::RoundTripDelay)));
            let facts = LogFacts {
                metric: Some(Metric::RoundTripDelay),
                started_ns: Some(1_795_782_005_485_779_000),
                ..LogFacts::of("ping")
            };
            assert_eq!(end.facts, facts);
        }
    }

    #[test]
    fn a_log_without_instants_of_ipv6_has_its_rows_and_resolution() {
        let text = "PING ::1(::1) 56 data bytes\n\
            64 bytes from ::1: icmp_seq=1 ttl=64 time=0.033 ms\n\
            64 bytes from localhost (::1): icmp_seq=2 ttl=64 time=0.051 ms\n\n\
            --- ::1 ping statistics ---\n\
            2 packets transmitted, 2 received, 0% packet loss, time 2033ms\n\
            rtt min/avg/max/mdev = 0.033/0.043/0.051/0.007 ms\n";
        let (block, end) = read_ping(text).expect("a log");
        assert_eq!(rows(&block), [(1, Some(33_000)), (2, Some(51_000))]);
        assert_eq!((end.facts.started_ns, end.facts.lost, end.facts.resolution_ns), (None, 0, Some(Nanos(1_000))));
    }

    #[test]
    fn busybox_and_bsd_count_from_zero() {
        let busybox = "PING 127.0.0.1 (127.0.0.1): 56 data bytes\n\
            64 bytes from 127.0.0.1: seq=0 ttl=64 time=0.045 ms\n\
            64 bytes from 127.0.0.1: seq=2 ttl=64 time=0.061 ms\n\n\
            --- 127.0.0.1 ping statistics ---\n\
            4 packets transmitted, 2 packets received, 50% packet loss\n\
            round-trip min/avg/max = 0.045/0.053/0.061 ms\n";
        let expected = [(0, Some(45_000)), (1, None), (2, Some(61_000)), (3, None)];
        let bsd = busybox.replace("seq=0", "icmp_seq=0").replace(
            "64 bytes from 127.0.0.1: seq=2",
            "Request timeout for icmp_seq 1\n64 bytes from 127.0.0.1: icmp_seq=2",
        );
        for text in [busybox, &*bsd] {
            assert_eq!(rows(&read_ping(text).expect(text).0), expected, "{text}");
        }
    }

    #[test]
    fn a_host_that_never_answers_loses_every_packet() {
        let text = "PING 10.9.0.77 (10.9.0.77) 56(84) bytes of data.\n\
            [1795782015.431255] no answer yet for icmp_seq=1\n\
            [1795782017.959395] From 10.9.0.1 icmp_seq=1 Destination Host Unreachable\n\
            From 10.9.0.1 icmp_seq=2 Destination Host Unreachable\n\n\
            --- 10.9.0.77 ping statistics ---\n\
            3 packets transmitted, 0 received, +2 errors, 100% packet loss, time 4111ms\npipe 6\n";
        let (block, end) = read_ping(text).expect("a log");
        assert_eq!((rows(&block), end.facts.lost), (vec![(1, None), (2, None), (3, None)], 0));
        let silent =
            "PING a (10.9.0.77) 56(84) bytes of data.\n\n2 packets transmitted, 0 received, 100% packet loss\n";
        assert_eq!(rows(&read_ping(silent).expect("a log").0), [(1, None), (2, None)]);
        let cut = text.split("\n\n").next().expect("lines");
        let (block, end) = read_ping(cut).expect("a log without totals");
        assert_eq!((rows(&block), end.facts.states_losses), (vec![(1, None), (2, None)], Some(false)));
    }

    #[test]
    fn losses_are_unknown_without_the_totals() {
        let states = |text: &str| read_ping(text).expect(text).1.facts.states_losses;
        assert_eq!(states(LOG), None, "as every log of ping");
        let (lines, _) = LOG.split_once("\n\n").expect("totals");
        let killed = [lines, "\n"].concat();
        assert_eq!(states(&killed), Some(false));
        assert_eq!(rows(&read_ping(&killed).expect("a log").0)[..4], rows(&read_ping(LOG).expect("a log").0)[..4]);
        let status = [lines, "\n\r8/5 packets, 37% loss, min/avg/ewma/max = 0.041/31.286/20.1/120.000 ms\n"].concat();
        assert_eq!(states(&status), Some(false), "the counts so far are not those of the end");
    }

    #[test]
    fn numbers_continue_behind_16_bits() {
        let lines: String = (1..=70_000).filter(|number| *number != 65_540).map(answer).collect();
        let totals = "70000 packets transmitted, 69999 received, 0.00142857% packet loss, time 1ms\n";
        let (block, _) = read_ping(&format!("PING a (a) 56(84) bytes of data.\n{lines}{totals}")).expect("a log");
        let found = rows(&block);
        assert!(found.iter().zip(1..).all(|((seq, _), number)| *seq == number));
        assert_eq!((found.len(), found[65_539], found[69_999]), (70_000, (65_540, None), (70_000, Some(0))));
        let (block, _) = read_ping(&[answer(65_535), answer(0), answer(2)].concat()).expect("a part of a log");
        let numbers: Vec<_> = rows(&block).iter().map(|row| row.0).collect();
        assert_eq!(numbers, [65_535, 65_536, 65_537, 65_538]);
    }

    #[test]
    fn an_answer_is_kept_if_it_is_one_of_the_last_packets() {
        let ahead = |count: u64| (2..=count).map(answer).collect::<String>();
        let late = format!("PING a (a) 56(84) bytes of data.\n{}{}", ahead(1_024), answer(1));
        assert_eq!(rows(&read_ping(&late).expect("in the window").0)[0], (1, Some(1_000)));
        let later = format!("PING a (a) 56(84) bytes of data.\n{}{}", ahead(1_025), answer(1));
        let fault = read_ping(&later).expect_err("out of the window");
        assert_eq!((fault.line, fault.column), (Some(1_026), Some(34)));
        assert_eq!(fault.what, "`1` is not one of the last 1024 packets");
    }

    #[test]
    fn a_malformed_line_does_not_lose_a_packet() {
        let begin = "PING a (a) 56(84) bytes of data.\n";
        let end = "5 packets transmitted, 4 received, 20% packet loss, time 1ms\n";
        for line in ["64 bytes from a: icmp_seq=3 ttl=64 time=0.0x5 ms\n", "64 by\0\u{1b}\n"] {
            let text = [begin, &answer(1), &answer(2), line, &answer(4), end].concat();
            let fault = read_ping(&text).expect_err(line);
            assert_eq!(fault.line, Some(4), "{line}");
            let (block, log_end) = read(&FORMAT, &LogOptions::default(), true, text.as_bytes()).expect(line);
            assert_eq!(rows(&block), [(1, Some(1_000)), (2, Some(2_000)), (4, Some(4_000)), (5, None)], "{line}");
            assert_eq!((log_end.skipped, log_end.facts.lost), (1, 0));
        }
    }

    #[test]
    fn messages_of_ping_are_not_answers_and_lose_no_packet() {
        let begin = "ping: sock4.fd: 3 (socktype: SOCK_RAW), sock6.fd: 4 (socktype: SOCK_RAW), hints.ai_family: AF_UNSPEC\n\n\
            ai->ai_family: AF_INET, ai->ai_canonname: 'a'\nPING a (a) 56(84) bytes of data.\n";
        let end = "5 packets transmitted, 3 received, 40% packet loss, time 1ms\n";
        let answers = [1, 2, 5].map(answer);
        for message in [
            "ping: sendmsg: Network is unreachable",
            "/usr/bin/ping: sendmsg: Operation not permitted",
            "ping6: sendto: No route to host",
            "ping: warning: got ICMP 3 (Destination Unreachable)",
        ] {
            let text = [begin, &answers[0], &answers[1], message, "\n", message, "\n", &answers[2], end].concat();
            let (block, log_end) = read_ping(&text).expect(message);
            let expected = [(1, Some(1_000)), (2, Some(2_000)), (3, None), (4, None), (5, Some(5_000))];
            assert_eq!((rows(&block), log_end.facts.lost), (expected.to_vec(), 0), "{message}");
        }
        for line in ["pings: x\n", "a/pinging: x\n", "x ping: y\n"] {
            assert!(read_ping(&[begin, line].concat()).is_err(), "{line}");
        }
        let set_back = "ping: Warning: time of day goes back (-5us), taking countermeasures\n";
        let text = [begin, &answers[0], &answers[1], set_back, &answers[2], end].concat();
        assert!(read_ping(&text).is_err_and(|fault| fault.what.starts_with("the clock was set back")));
        let (block, log_end) = read(&FORMAT, &LogOptions::default(), true, text.as_bytes()).expect("a log");
        assert_eq!((rows(&block).len(), log_end.skipped), (5, 1), "packets 3 and 4 are lost all the same");
    }

    #[test]
    fn a_run_that_ends_with_an_error_has_its_answers() {
        let lines = "64 bytes from a: seq=0 ttl=64 time=0.049 ms\n64 bytes from a: seq=1 ttl=64 time=0.062 ms\n";
        let busybox = format!("PING a (a): 56 data bytes\n{lines}ping: sendto: Network is unreachable\n");
        let unordered = format!("ping: sendto: Network is unreachable\nPING a (a): 56 data bytes\n{lines}");
        let inetutils = busybox.replace("seq=", "icmp_seq=").replace("sendto", "sending packet");
        for text in [busybox, unordered, inetutils] {
            assert!(is_detected(&FORMAT, text.as_bytes()), "{text}");
            let (block, end) = read_ping(&text).expect(&text);
            assert_eq!(rows(&block), [(0, Some(49_000)), (1, Some(62_000))], "{text}");
            assert_eq!(end.facts.states_losses, Some(false), "{text}");
        }
    }

    #[test]
    fn the_counts_of_sigquit_are_not_an_answer() {
        let text = |status: &str| {
            let totals = "3 packets transmitted, 2 received, 33% packet loss, time 1ms\n";
            ["PING a (a) 56(84) bytes of data.\n", &answer(1), status, "\n", &answer(3), totals].concat()
        };
        for status in
            ["\r1/1 packets, 0% loss, min/avg/ewma/max = 0.014/0.019/0.016/0.024 ms", "\r0/2 packets, 100% loss"]
        {
            let (block, end) = read_ping(&text(status)).expect(status);
            assert_eq!(rows(&block), [(1, Some(1_000)), (2, None), (3, Some(3_000))], "{status}");
            assert_eq!(end.facts.states_losses, None);
        }
        for line in ["1/ packets, 0% loss", "1/1/1 packets, 0% loss", "1/1 packet", "/ packets,", "1 packets,"] {
            assert!(read_ping(&text(line)).is_err(), "{line}");
        }
    }

    #[test]
    fn an_icmp_error_without_a_number_is_not_an_answer() {
        let text = "PING 10.9.0.77 (10.9.0.77): 56 data bytes\n\
            92 bytes from 10.9.0.1: Destination Host Unreachable\n\
            92 bytes from 10.9.0.1: Time to live exceeded\n\
            Vr HL TOS  Len   ID Flg  off TTL Pro  cks      Src      Dst\n \
            4  5  00 5400 4d3a   0 0000  40  01 0000 10.9.0.2  10.9.0.77 \n\n\
            92 bytes from 10.9.0.1: Communication prohibited by filter\n\
            36 bytes from 10.9.0.1: Redirect Host(New addr: 10.9.0.3)\n\
            92 bytes from 10.9.0.1: frag needed and DF set (MTU 1400)\n\
            92 bytes from 10.9.0.1: Dest Unreachable, Bad Code: 14\n\
            IP Hdr Dump:\n 4500 0054 4d3a 4000 4001 0000 0a09 0002 0a09 004d \n\
            ICMP: type 8, code 0, size 64, id 0x2f1c, seq 0x0000\n\
            --- 10.9.0.77 ping statistics ---\n3 packets transmitted, 0 packets received, 100% packet loss\n";
        assert_eq!(rows(&read_ping(text).expect("a log").0), [(0, None), (1, None), (2, None)]);
    }

    #[test]
    fn other_lines_are_faults_at_their_column() {
        for (line, column, what) in [
            ("abc", 1, "`abc` is not a line of ping"),
            ("[abc", 1, "`[abc` is not a line of ping"),
            ("[1x] 64 bytes from a: icmp_seq=1 ttl=64 time=1 ms", 2, "`1x` is not a number"),
            ("[1.5] ...", 7, "`...` is not a line of ping"),
            ("64 bytes from a: ttl=64 time=1 ms", 1, "an answer without `icmp_seq=`"),
            ("64 bytes from a: icm", 1, "an answer without `icmp_seq=`"),
            ("4 5 00 5400 4d3a 0 0000 40 01", 1, "`4 5 00 5400 4d3a 0 0000 40 01` is not a line of ping"),
            ("64 bytes from a: icmp_seq=1 ttl=64", 35, "an answer without `time=`"),
            ("64 bytes from a: icmp_seq=1 ttl=64 time<1 ms", 40, "`<1` is a bound"),
            ("64 bytes from a: icmp_seq=1 ttl=64 time=1,5 ms", 41, "`1,5` is not a number"),
            ("64 bytes from a: icmp_seq=1 ttl=64 time=15", 43, "a time without `ms`"),
            ("64 bytes from a: icmp_seq=1 ttl=64 time=15 us", 44, "`us` is not the unit `ms`"),
            ("64 bytes from a: icmp_seq=1 ttl=64 time=15 ms (BAD CHECKSUM!)", 47, "an answer with the remark `(BAD`"),
            ("64 bytes from a: icmp_seq=70000 ttl=64 time=15 ms", 27, "`70000` is not a number of 16 bits"),
            ("no answer yet for icmp_seq=x", 28, "`x` is not a number of 16 bits"),
            ("8 packets transmitted, -1 received", 24, "`-1` is not a whole number"),
            ("1099511627777 packets transmitted, 1 received", 1, "`1099511627777` is not a count up to 2^40"),
            (
                "8 packets transmitted, 18446744073709551615 received",
                24,
                "`18446744073709551615` is not a count up to 2^40",
            ),
            ("8 packets transmitted", 1, "totals without `received`"),
        ] {
            let fault = read_ping(line).expect_err(line);
            assert_eq!((fault.column, &*fault.what), (Some(column), what), "{line}");
        }
        assert!(read_ping("64 bytes from a: icmp_seq=1 ttl=64 time=1,5 ms").is_err_and(|fault| fault.hint.is_some()));
        let utf_16: Vec<u8> = LOG.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for text in [&utf_16[..], b"\x7fELF\0\xff\n"] {
            assert!(read(&FORMAT, &LogOptions::default(), false, text).is_err() && !is_detected(&FORMAT, text));
        }
        assert!(read_ping("").expect("an empty log").0.is_empty());
    }

    #[test]
    fn totals_that_contradict_the_lines_are_faults() {
        let without = LOG.replace("[1795782005.601486] 64 bytes from 10.9.0.2: icmp_seq=7 ttl=64 time=0.041 ms\n", "");
        let fault = read_ping(&without).expect_err("an answer is missing");
        assert_eq!(fault.what, "4 packets have no answer, 3 according to the totals: lines are missing");
        let quiet = "PING a (a) 56(84) bytes of data.\n\n3 packets transmitted, 3 received, 0% packet loss, time 1ms\n";
        assert!(read_ping(quiet).is_err_and(|fault| fault.hint.is_some_and(|hint| hint.contains("-q"))));
        assert!(read_ping(&LOG.repeat(2)).is_err_and(|fault| fault.what.contains("second run")));
        let options = LogOptions { unit: Some(TimeUnit::Micros), ..LogOptions::default() };
        assert!(read(&FORMAT, &options, false, LOG.as_bytes()).is_err());
    }

    #[test]
    fn an_answer_from_another_address_keeps_its_value() {
        for remark in ["(DIFFERENT ADDRESS!)", "(different address)"] {
            let text = LOG.replace("time=15.2 ms", &format!("time=15.2 ms {remark}"));
            assert_eq!(rows(&read_ping(&text).expect(remark).0), rows(&read_ping(LOG).expect("a log").0));
            let bad = text.replace("ms (DUP!)", &format!("ms (DUP!) {remark}"));
            assert_eq!(rows(&read_ping(&bad).expect(remark).0), rows(&read_ping(LOG).expect("a log").0));
        }
    }

    #[test]
    fn without_the_first_line_the_totals_say_what_was_lost() {
        let text = LOG.split_once('\n').expect("lines").1;
        let (block, end) = read_ping(text).expect("a log without its first line");
        assert_eq!((rows(&block).len(), rows(&block)[6], end.facts.lost), (7, (7, Some(41_000)), 1));
        let silent = "--- a ping statistics ---\n3 packets transmitted, 0 received, 100% packet loss, time 1ms\n";
        assert_eq!(read_ping(silent).expect("totals alone").1.facts.lost, 3);
    }

    #[test]
    fn a_long_end_without_answers_is_counted() {
        let text =
            format!("PING a (a) 56(84) bytes of data.\n{}5000000000 packets transmitted, 1 received\n", answer(1));
        let (block, end) = read_ping(&text).expect("a log");
        assert_eq!((block.len() as u64, end.facts.lost), (TAIL_MAX + 1, 5_000_000_000 - 1 - TAIL_MAX));
    }

    #[test]
    fn only_output_of_ping_is_detected() {
        for text in [LOG, &LOG[50..], &answer(7)] {
            assert!(is_detected(&FORMAT, text.as_bytes()), "{text}");
        }
        for text in ["", "64 bytes from a\n", "pinging\n", "icmp_seq=1 time=5 ms\n"] {
            assert!(!is_detected(&FORMAT, text.as_bytes()), "{text}");
        }
    }
}
