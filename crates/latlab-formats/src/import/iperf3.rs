//! iperf3: the JSON of `iperf3 -u -J` (3.7 to 3.21). A UDP stream is a flow; the flows are numbered in the order of the log.
//!
//! The intervals of the end that wrote the log are rows; those of its other end are rows if the log contains its document,
//! for which that end runs with `-J` and the writer with `--get-server-output`. Each end counts time on its own clock,
//! from 0. In an interval of a receiver, `packets` is by how much the highest sequence number rose: the packets that were
//! sent in it, lost ones included; what was delivered is `packets` less `lost_packets`. A late packet is taken from
//! `lost_packets`, which may be negative; a duplicate counts as a late packet.
//!
//! Intervals that `--omit` leaves out of the results are left out here too: time begins anew at 0 behind them. An interval in
//! which that happens is written with packets and `seconds` from its beginning, and with the bytes from 0; `start` is the
//! distance of its beginning from 0, or 0 if that is longer than the omission (`-i 0`). It begins at 0 here, with the packets
//! of these bytes; what a receiver lost is what its totals have beyond the other intervals.
//!
//! An end without intervals has its totals as one interval: of a receiver with one flow `sum_received`, of a sender the bytes
//! of each stream, since the packets there may include some that were omitted. In the `sum_received` of a sender's log with
//! `--omit`, `bytes` are those that arrived since 0 of the receiver, `packets` those that were sent since 0 of the sender, and
//! `lost_packets` those of the whole run: how many of them were lost before 0 is unknown, and a log with any is refused.
//!
//! A receiver counts up to the last packet that arrived: what was lost behind that packet is unknown. If its sender counted more
//! packets, in its intervals or in its totals, or if the log has no count of the sender, as that of a server that receives, losses
//! are unknown. So they are if the totals of the receiver have packets beyond its intervals: since 3.16 a thread counts on for an
//! instant. Other totals than those of its intervals contradict them, and the log is refused; with `--omit` the two count from
//! different instants. A log without totals was cut short, and is refused.
//!
//! A server that sends does not get the totals of its receiver, and writes 0: such a log is refused. The totals of several flows
//! at a receiver do not say which flow lost the packets after the last one that arrived: such a log is refused, as are both
//! directions in one log, and TCP, whose intervals count bytes.

use std::fmt;
use std::io::BufRead;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use self::document::{
    BOTH_ENDS, FlowTotal, Key, LATE_SIZE, LoggedInterval, Start, StreamCounts, StreamTotal, Totals, whole,
};
use super::field::{TOTAL_MAX, bounded};
use super::json::{self, Stopped, each};
use super::{LogFacts, LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::{IntervalCounts, StreamEnd, StreamInterval};
use crate::plan::Kind;
use crate::probe::Phase;

mod document;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "iperf3",
    title: "JSON of iperf3",
    rows: Kind::Stream,
    is_generic: false,
    options: &[],
    states_losses: true,
    detects,
    reader: LogReader::Document(read),
};

/// The most flows of a log.
const FLOWS_MAX: usize = 1_024;
/// Intervals end before this one, which is after 31 years.
const SECONDS_END: f64 = 1e9;
/// The most characters of an error that a message shows.
const SHOWN: usize = 200;
const TCP: &str = "TCP intervals count bytes, not packets";
/// What to do with a log that iperf3 cannot have written.
const AS_WRITTEN: &str = "import the log as iperf3 wrote it";
/// A receiver whose totals and intervals are not of the same run.
const CONTRADICTION: &str = "the totals of the receiver contradict its intervals";

fn detects(head: &LogHead<'_>) -> bool {
    let has = |key: &str| memchr::memmem::find(head.bytes, key.as_bytes()).is_some();
    head.bytes.trim_ascii_start().starts_with(b"{")
        && (has("\"iperf 3") || (has("\"intervals\"") && has("\"bits_per_second\"")))
}

fn read(input: &mut dyn BufRead, _: &LogOptions, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
    let mut reading = IperfReading {
        rows,
        facts: LogFacts::of("iperf3"),
        written: EndIntervals::default(),
        other: EndIntervals::default(),
        counts: Vec::new(),
        totals: None,
        other_totals: Totals::default(),
        has_accepted: false,
        size_bytes: None,
        omits: false,
        stopped: None,
    };
    json::read(input, &mut reading).map_err(|fault| match reading.stopped.take() {
        Some(stopped) => LogFault { line: fault.line, ..stopped },
        None => fault,
    })?;
    reading.finish()
}

/// The reading of a document.
struct IperfReading<'a, 'r> {
    rows: &'a mut LogRows<'r>,
    facts: LogFacts,
    /// Those of the end that wrote the log.
    written: EndIntervals,
    /// Those of the document of its other end, within the log.
    other: EndIntervals,
    /// Those of the rows of each flow.
    counts: Vec<EndCounts>,
    totals: Option<Totals>,
    /// Those of the document of the other end; empty without it.
    other_totals: Totals,
    has_accepted: bool,
    size_bytes: Option<u32>,
    /// Whether `--omit` leaves the beginning out.
    omits: bool,
    /// Why the log was refused.
    stopped: Option<LogFault>,
}

/// Packets of a flow that its ends counted.
#[derive(Clone, Copy, Debug, Default)]
struct EndCounts {
    sent: u64,
    /// By the receiver, as delivered or lost.
    decided: u64,
}

impl EndCounts {
    fn agree(self) -> bool {
        self.sent <= self.decided
    }
}

/// What is known about the intervals of an end.
#[derive(Debug, Default)]
struct EndIntervals {
    /// The sockets of its flows.
    sockets: Vec<i64>,
    /// Whether it sends or receives; `None` before its first interval.
    end: Option<StreamEnd>,
    /// Lost packets of the intervals of each flow that are rows.
    lost: Vec<i64>,
    /// Whether each flow has had an interval that counts.
    has_begun: Vec<bool>,
    /// Intervals of a receiver with losses before or behind time 0.
    divided: Vec<DividedInterval>,
}

/// An interval in which omission ended.
#[derive(Clone, Copy, Debug)]
struct DividedInterval {
    flow: u16,
    /// Seconds.
    end: f64,
    packets: i64,
    /// Packets that arrived since time 0.
    delivered: i64,
}

/// What an end counted in a span of time.
struct Span {
    flow: u16,
    /// Seconds.
    start: f64,
    /// Seconds.
    end: f64,
}

impl Span {
    /// The interval with `seen`.
    ///
    /// # Errors
    /// It ends before it begins, or an end of it is not a time of a run.
    fn with(&self, seen: IntervalCounts) -> Result<StreamInterval, LogFault> {
        let is_time = |seconds: f64| (0.0..SECONDS_END).contains(&seconds);
        if !(is_time(self.start) && is_time(self.end) && self.start <= self.end) {
            return Err(LogFault::whole(format!("an interval from {} s to {} s", self.start, self.end)));
        }
        let [start_ns, end_ns] = [self.start, self.end].map(nanos);
        Ok(StreamInterval { flow: self.flow, phase: Phase::Measure, start_ns, end_ns, cpu: None, seen })
    }
}

/// `seconds`, which are below 10^9 and have at most 6 decimal places.
fn nanos(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

fn offered(packets: i64) -> Result<IntervalCounts, LogFault> {
    Ok(IntervalCounts::Offered { packets: count(packets)?, refused: 0, skipped: 0 })
}

/// What a receiver counted: the packets that were sent until its last one, and those of them that are missing.
fn counted(packets: i64, lost: i64, late: Option<u32>) -> Result<IntervalCounts, LogFault> {
    Ok(IntervalCounts::Counted {
        polled: count(packets)?,
        delivered: count(packets.saturating_sub(lost))?,
        reordered: late.unwrap_or(0),
        duplicates: 0,
        outside_window: 0,
        socket_drops: None,
    })
}

fn count(packets: i64) -> Result<u64, LogFault> {
    let count = u64::try_from(packets).ok().filter(|count| *count <= TOTAL_MAX);
    count.ok_or_else(|| LogFault::whole(format!("{packets} packets in an interval")))
}

impl EndIntervals {
    /// The number of the flow of `counts`, whose end must be that of the intervals before.
    fn flow(&mut self, counts: &StreamCounts) -> Result<u16, LogFault> {
        let end = match counts.sender.unwrap_or(counts.lost_packets.is_none()) {
            true => StreamEnd::Sender,
            false => StreamEnd::Receiver,
        };
        if *self.end.get_or_insert(end) != end {
            return Err(LogFault::whole("the log has streams in both directions, which are different measurements")
                .hint("measure each direction in a run of its own, without `--bidir`"));
        }
        let flow = self.sockets.iter().position(|socket| *socket == counts.socket).unwrap_or_else(|| {
            self.sockets.push(counts.socket);
            self.lost.push(0);
            self.has_begun.push(false);
            self.sockets.len() - 1
        });
        match u16::try_from(flow) {
            Ok(number) if flow < FLOWS_MAX => Ok(number),
            _ => Err(LogFault::whole(format!("the log has more than {FLOWS_MAX} streams"))),
        }
    }

    /// The interval of `counts`, whose packets have `size_bytes`; `None` if it does not count, or not yet. In the first one that
    /// counts the omission may have ended, if the log `omits`.
    fn interval(
        &mut self,
        counts: &StreamCounts,
        size_bytes: Option<u32>,
        omits: bool,
    ) -> Result<Option<StreamInterval>, LogFault> {
        let mut packets = counts.packets.ok_or_else(|| LogFault::whole(TCP))?;
        let flow = self.flow(counts)?;
        if counts.omitted {
            return Ok(None);
        }
        let is_sender = self.end == Some(StreamEnd::Sender);
        let lost = match counts.lost_packets {
            _ if is_sender => 0,
            Some(lost) => lost,
            None => {
                return Err(LogFault::whole("an interval of a receiver without `lost_packets`").hint(AS_WRITTEN));
            }
        };
        let mut span = Span { flow, start: counts.start, end: counts.end };
        let is_first = !std::mem::replace(&mut self.has_begun[usize::from(flow)], true);
        if counts.begins_before_zero() || (omits && is_first && size_bytes.is_some()) {
            let delivered = counts.delivered(size_bytes)?;
            let is_whole = packets.checked_sub(lost) == Some(delivered);
            if !is_whole && lost != 0 {
                self.divided.push(DividedInterval { flow, end: counts.end, packets, delivered });
                return Ok(None);
            }
            if !is_whole {
                packets = delivered;
            }
            if !is_whole || counts.begins_before_zero() {
                span.start = 0.0;
            }
        }
        let sum = &mut self.lost[usize::from(flow)];
        *sum = sum.saturating_add(lost);
        let seen = if is_sender { offered(packets)? } else { counted(packets, lost, None)? };
        span.with(seen).map(Some)
    }

    /// The intervals in which omission ended, with the losses that the totals of their flow have beyond the other intervals.
    fn divided(&self, totals: &[StreamTotal]) -> Result<Vec<StreamInterval>, LogFault> {
        let interval = |divided: &DividedInterval| {
            let at = usize::from(divided.flow);
            let of_flow =
                totals.iter().filter_map(|total| total.udp).find(|total| total.socket == Some(self.sockets[at]));
            let lost = of_flow.and_then(|total| total.lost_packets?.checked_sub(self.lost[at]));
            let counts = lost.and_then(|lost| Some((divided.delivered.checked_add(lost)?, lost)));
            let Some((packets, lost)) = counts.filter(|(packets, _)| *packets <= divided.packets) else {
                let what =
                    "the log does not say how many of the packets that were lost about the end of `--omit` count";
                return Err(LogFault::whole(what).hint("measure without `--omit`"));
            };
            Span { flow: divided.flow, start: 0.0, end: divided.end }.with(counted(packets, lost, None)?)
        };
        self.divided.iter().map(interval).collect()
    }
}

impl IperfReading<'_, '_> {
    fn stop(&mut self, fault: LogFault) -> Stopped {
        self.stopped = Some(fault);
        Stopped
    }

    fn start(&mut self, start: Start) -> Result<(), LogFault> {
        let version = start.version.map(|version| version.trim_start_matches("iperf ").to_owned());
        self.facts.version = version.or(self.facts.version.take());
        self.has_accepted = start.accepted_connection.is_some();
        let began = start.timestamp.and_then(|timestamp| timestamp.timesecs);
        self.facts.started_ns = began.and_then(|seconds| bounded(seconds.checked_mul(1_000_000_000)?));
        let Some(test) = start.test_start else { return Ok(()) };
        match test.protocol.as_deref() {
            None | Some("UDP") => {
                self.size_bytes = test.blksize.filter(|size_bytes| *size_bytes > 0);
                self.omits = test.omit.is_some_and(|seconds| seconds > 0.0);
                let has_intervals = self.written.end.or(self.other.end).is_some();
                if self.rows.has_passed() || (self.omits && has_intervals) {
                    return Err(LogFault::whole(LATE_SIZE));
                }
                self.size_bytes.into_iter().for_each(|size_bytes| self.rows.have_packets_of(size_bytes));
                Ok(())
            }
            Some("TCP") => Err(LogFault::whole(TCP)),
            Some(protocol) => Err(LogFault::whole(format!("intervals of {protocol} do not count packets"))),
        }
    }

    fn take(&mut self, interval: &LoggedInterval, is_other: bool) -> Result<(), Stopped> {
        for counts in &interval.streams {
            let end = if is_other { &mut self.other } else { &mut self.written };
            match end.interval(counts, self.size_bytes, self.omits) {
                Ok(Some(interval)) => self.row(interval),
                Ok(None) => {}
                Err(fault) => return Err(self.stop(fault)),
            }
        }
        if self.rows.has_failed() { Err(Stopped) } else { Ok(()) }
    }

    fn row(&mut self, interval: StreamInterval) {
        let flow = usize::from(interval.flow);
        if self.counts.len() <= flow {
            self.counts.resize(flow + 1, EndCounts::default());
        }
        let EndCounts { sent, decided } = &mut self.counts[flow];
        let (sum, packets) = match interval.seen {
            IntervalCounts::Offered { packets, .. } => (sent, packets),
            IntervalCounts::Counted { polled, .. } => (decided, polled),
        };
        *sum = sum.saturating_add(packets);
        self.rows.interval(interval);
    }

    /// Whether the receiver counted what its sender sent. Packets behind the last one that arrived are not in its counts.
    fn has_decided(&self, totals: &Totals) -> bool {
        let rows_agree = self.counts.iter().all(|counts| counts.agree());
        if !self.omits {
            return rows_agree && self.has_decided_totals(totals) && self.has_decided_totals(&self.other_totals);
        }
        // With `--omit` the rows of each end count from a 0 of its own; the totals of a sender count from its 0.
        if self.written.end != Some(StreamEnd::Sender) {
            return false;
        }
        let sum = totals.sum_received.as_ref();
        let Some(decided) = sum.and_then(|sum| u64::try_from(whole(sum.packets)?).ok()) else { return rows_agree };
        let sent = self.counts.iter().fold(0, |sum: u64, counts| sum.saturating_add(counts.sent));
        EndCounts { sent, decided }.agree() && (rows_agree || self.counts.len() == 1)
    }

    /// Whether the receiver counted what its sender sent by these totals. Those of a receiver alone are its own counts.
    fn has_decided_totals(&self, totals: &Totals) -> bool {
        let is_decided = |packets: i64, decided: u64| u64::try_from(packets).is_ok_and(|packets| packets <= decided);
        let of_flow = |flow: usize, counts: &EndCounts| {
            let total = totals.of_flow(flow, self.counts.len());
            total.is_none_or(|total| is_decided(total.packets, counts.decided))
        };
        let sum = totals.sum_sent.as_ref().and_then(|sum| whole(sum.packets));
        sum.is_none_or(|sum| is_decided(sum, self.decided()))
            && self.counts.iter().enumerate().all(|(flow, counts)| of_flow(flow, counts))
    }

    /// Packets of all flows that the receiver counted.
    fn decided(&self) -> u64 {
        self.counts.iter().fold(0, |sum, counts| sum.saturating_add(counts.decided))
    }

    /// Whether the intervals of the receiver have all that it counted. With `--omit` they count from another 0 than its totals.
    ///
    /// # Errors
    /// They contradict its totals.
    fn has_all_intervals(&self, totals: &Totals) -> Result<bool, LogFault> {
        let is_receiver = |end: &&EndIntervals| end.end == Some(StreamEnd::Receiver);
        let receiver = [&self.written, &self.other].into_iter().find(is_receiver);
        let is_of_whole_run = |end: &&EndIntervals| !self.omits && end.divided.is_empty();
        let Some(receiver) = receiver.filter(is_of_whole_run) else { return Ok(true) };
        let packets = i64::try_from(self.decided()).unwrap_or(i64::MAX);
        let are_all_in = |totals: &Totals| {
            totals.are_all_in(packets, &receiver.lost).ok_or_else(|| LogFault::whole(CONTRADICTION).hint(AS_WRITTEN))
        };
        // The totals of a server that sends state 0 of its receiver.
        let of_other = self.other.end != receiver.end || are_all_in(&self.other_totals)?;
        Ok(are_all_in(totals)? && of_other)
    }

    /// Adds the totals of an end without intervals.
    fn finish(mut self) -> Result<LogFacts, LogFault> {
        let Some(written) = self.written.end else {
            return Err(LogFault::whole("the log has no intervals"));
        };
        let Some(totals) = self.totals.take().filter(|totals| !totals.streams.is_empty()) else {
            return Err(LogFault::whole("the log has no totals: it was cut short"));
        };
        let Some(size_bytes) = self.size_bytes else {
            return Err(LogFault::whole("the log does not state the size of its packets"));
        };
        if self.other.end == Some(written) {
            return Err(LogFault::whole("both ends of the log have the same role"));
        }
        for divided in
            [self.written.divided(&totals.streams)?, self.other.divided(&self.other_totals.streams)?].concat()
        {
            self.row(divided);
        }
        let flows = self.written.sockets.len();
        let of_other = match written {
            _ if self.other.end.is_some() => Vec::new(),
            StreamEnd::Sender if self.has_accepted => {
                return Err(LogFault::whole("the log is of a server that sends: it does not say what arrived")
                    .hint("import the log of its client: `iperf3 -c … -R -J`"));
            }
            StreamEnd::Sender => vec![received(&totals, flows, self.omits.then_some(size_bytes))?],
            // A server that received has no counts of the sender.
            StreamEnd::Receiver if self.has_accepted => Vec::new(),
            StreamEnd::Receiver => sent(&totals, flows, size_bytes)?,
        };
        let is_of_receiver_alone = self.other.end.is_none() && of_other.is_empty();
        let is_whole = self.has_all_intervals(&totals)?;
        of_other.into_iter().for_each(|total| self.row(total));
        let is_unknown = is_of_receiver_alone || !is_whole || !self.has_decided(&totals);
        Ok(LogFacts { states_losses: is_unknown.then_some(false), ..self.facts })
    }
}

/// The total of a receiver with one flow, in the log of a sender that was `omitting` packets of this size or none.
fn received(totals: &Totals, flows: usize, omitting: Option<u32>) -> Result<StreamInterval, LogFault> {
    let sum = totals.sum_received.as_ref().filter(|_| flows == 1);
    let counts = sum.and_then(|sum| Some((sum, whole(sum.packets)?, whole(sum.lost_packets)?)));
    let Some((sum, packets, lost)) = counts else {
        let what = "the log does not say how many packets of each stream arrived";
        return Err(LogFault::whole(what).hint(BOTH_ENDS));
    };
    let late = totals.streams.first().and_then(|stream| stream.udp.as_ref()?.out_of_order);
    let [packets, lost] = match omitting {
        Some(size_bytes) => [sum.since_zero(size_bytes)?, 0],
        None if totals.are_all_in(packets, &[lost]).is_none() => {
            return Err(LogFault::whole("the totals of the receiver contradict each other").hint(AS_WRITTEN));
        }
        None => [packets, lost],
    };
    Span { flow: 0, start: sum.start, end: sum.end }.with(counted(packets, lost, late)?)
}

/// The totals of each flow of a sender, whose packets have `size_bytes`; empty if the log does not have them.
fn sent(totals: &Totals, flows: usize, size_bytes: u32) -> Result<Vec<StreamInterval>, LogFault> {
    let Some(sum) = &totals.sum_sent else { return Ok(Vec::new()) };
    let flow_totals: Vec<_> = totals.streams.iter().filter_map(|stream| stream.udp).collect();
    let is_sum = |count: fn(&FlowTotal) -> Option<i64>, due: Option<f64>| {
        let sum = flow_totals.iter().try_fold(0_i64, |sum, total| sum.checked_add(count(total)?));
        whole(due).is_some() && sum == whole(due)
    };
    // A log of a receiver alone has its own counts there, and a sum of 0.
    if flow_totals.len() != flows || !is_sum(|total| Some(total.packets), sum.packets) {
        return Ok(Vec::new());
    }
    let are_bytes_sent = is_sum(|total| total.bytes, sum.bytes);
    let packets = |total: &FlowTotal| {
        let whole = total.bytes.filter(|bytes| are_bytes_sent && bytes % i64::from(size_bytes) == 0);
        whole.map_or(total.packets, |bytes| bytes / i64::from(size_bytes))
    };
    let span = |flow| Span { flow, start: sum.start, end: sum.end };
    (0..).zip(&flow_totals).map(|(flow, total)| span(flow).with(offered(packets(total))?)).collect()
}

/// The document of the other end, within the log.
struct OtherEnd<'s, 'a, 'r>(&'s mut IperfReading<'a, 'r>);

impl<'de> DeserializeSeed<'de> for OtherEnd<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<(), D::Error> {
        document.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OtherEnd<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the object that iperf3 writes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut document: A) -> Result<(), A::Error> {
        while let Some(key) = document.next_key()? {
            match key {
                Key::Intervals => {
                    document.next_value_seed(each(|interval: LoggedInterval| self.0.take(&interval, true)))?;
                }
                Key::End => self.0.other_totals = document.next_value()?,
                _ => {
                    document.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for &mut IperfReading<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the object that iperf3 writes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut document: A) -> Result<(), A::Error> {
        while let Some(key) = document.next_key()? {
            let result = match key {
                Key::Start => self.start(document.next_value()?),
                Key::Intervals => {
                    document.next_value_seed(each(|interval: LoggedInterval| self.take(&interval, false)))?;
                    Ok(())
                }
                Key::End => {
                    self.totals = Some(document.next_value()?);
                    Ok(())
                }
                Key::Other => {
                    document.next_value_seed(OtherEnd(self))?;
                    Ok(())
                }
                Key::Error => {
                    let text: String = document.next_value()?;
                    let shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
                    Err(LogFault::whole(format!("iperf3 ended with an error: {shown}")))
                }
                Key::Event => {
                    let what = "the log is of `--json-stream`, which has a document on each line";
                    Err(LogFault::whole(what).hint("measure with `-J` alone"))
                }
                Key::Unused => document.next_value::<IgnoredAny>().map(|_| Ok(()))?,
            };
            result.map_err(|fault| serde::de::Error::custom(self.stop(fault)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
