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
//! `lost_packets` those of the whole run. If all lost packets are missing in `bytes`, none was lost before 0; else it is unknown
//! how many were, since packets were under way at 0, and the log is refused.
//!
//! A server that sends does not get the totals of its receiver, and writes 0: such a log is refused. The totals of several flows
//! at a receiver do not say which flow lost the packets after the last one that arrived: such a log is refused, as are both
//! directions in one log, and TCP, whose intervals count bytes.

use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::field::{TOTAL_MAX, bounded};
use super::json::{self, Stopped, each};
use super::{LogFault, LogFormat, LogHead, LogOptions, LogReader, LogRows};
use crate::facts::{IntervalCounts, LogFacts, StreamEnd, StreamInterval};
use crate::plan::Kind;
use crate::probe::Phase;

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
const LATE_SIZE: &str = "the log states the size of its packets behind its intervals";
/// How a log gets the counts of both ends.
const BOTH_ENDS: &str = "run the other end as `iperf3 -s -J`, and this one with `--get-server-output`";

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
        totals: None,
        other_totals: Vec::new(),
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
    totals: Option<Totals>,
    /// Those of the flows, in the document of the other end.
    other_totals: Vec<StreamTotal>,
    has_accepted: bool,
    /// Payload of a packet.
    size_bytes: Option<u32>,
    /// Whether `--omit` leaves the beginning out.
    omits: bool,
    /// Why the log was refused.
    stopped: Option<LogFault>,
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
    /// Packets since its beginning.
    packets: i64,
    /// Packets that arrived since time 0.
    delivered: i64,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Start,
    Intervals,
    End,
    Error,
    #[serde(rename = "server_output_json")]
    Other,
    /// Of a line of `--json-stream`.
    Event,
    #[serde(other)]
    Unused,
}

#[derive(Deserialize)]
struct Start {
    version: Option<String>,
    timestamp: Option<Timestamp>,
    test_start: Option<TestStart>,
    /// A server has it, a client does not.
    accepted_connection: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Timestamp {
    timesecs: Option<i64>,
}

#[derive(Deserialize)]
struct TestStart {
    protocol: Option<String>,
    /// Payload of a packet.
    blksize: Option<u32>,
    /// Seconds.
    omit: Option<f64>,
}

#[derive(Deserialize)]
struct Interval {
    #[serde(default, deserialize_with = "json::few")]
    streams: Vec<StreamCounts>,
}

/// A stream in an interval.
#[derive(Deserialize)]
struct StreamCounts {
    socket: i64,
    /// Seconds.
    start: f64,
    /// Seconds.
    end: f64,
    /// The time from its beginning to its end.
    seconds: Option<f64>,
    bytes: Option<i64>,
    packets: Option<i64>,
    lost_packets: Option<i64>,
    #[serde(default)]
    omitted: bool,
    sender: Option<bool>,
}

/// The totals of the run.
#[derive(Deserialize)]
struct Totals {
    #[serde(default, deserialize_with = "json::few")]
    streams: Vec<StreamTotal>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
}

#[derive(Deserialize)]
struct StreamTotal {
    udp: Option<FlowTotal>,
}

#[derive(Clone, Copy, Deserialize)]
struct FlowTotal {
    socket: Option<i64>,
    /// In the totals of a receiver those that the sender sent.
    bytes: Option<i64>,
    packets: i64,
    lost_packets: Option<i64>,
    out_of_order: Option<u32>,
}

/// The totals of the document of the other end.
#[derive(Deserialize)]
struct OtherTotals {
    #[serde(default, deserialize_with = "json::few")]
    streams: Vec<StreamTotal>,
}

#[derive(Deserialize)]
struct Sum {
    /// Seconds.
    start: f64,
    /// Seconds.
    end: f64,
    bytes: Option<f64>,
    /// With `--omit` iperf3 writes a number near 2^64 where it does not know it.
    packets: Option<f64>,
    lost_packets: Option<f64>,
}

impl Sum {
    /// What a receiver counted since time 0, in the log of a sender that omits: the packets, which have `size_bytes`, and those
    /// of them that were lost.
    fn since_zero(&self, size_bytes: u32) -> Result<[i64; 2], LogFault> {
        let size_bytes = i64::from(size_bytes);
        let delivered = whole(self.bytes).filter(|bytes| bytes % size_bytes == 0).map(|bytes| bytes / size_bytes);
        let counts = delivered.zip(whole(self.packets)).zip(whole(self.lost_packets));
        match counts {
            // One packet more may be missing, which arrived before the receiver's 0.
            Some(((delivered, sent), lost)) if lost <= 0 || sent.saturating_sub(delivered) >= lost => {
                let lost = lost.max(0);
                Ok([delivered.saturating_add(lost), lost])
            }
            _ => Err(LogFault::whole("the log does not say how many of the lost packets `--omit` leaves out")
                .hint(format!("{BOTH_ENDS}, or measure without `--omit`"))),
        }
    }
}

/// A count of a sum, which is below 2^53.
fn whole(count: Option<f64>) -> Option<i64> {
    count.filter(|count| count.abs() < (1_u64 << 53) as f64 && count.fract() == 0.0).map(|count| count as i64)
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

/// What a sender counted.
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
        let lost = if is_sender { 0 } else { counts.lost_packets.unwrap_or(0) };
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

impl StreamCounts {
    /// Whether it began before time 0: `start` is its distance from 0 then.
    fn begins_before_zero(&self) -> bool {
        self.start > 0.0 && self.seconds.is_some_and(|seconds| seconds > self.end)
    }

    /// The packets of its bytes, which have `size_bytes` each: those that were sent or arrived since time 0.
    fn delivered(&self, size_bytes: Option<u32>) -> Result<i64, LogFault> {
        let size_bytes = size_bytes.map(i64::from).ok_or_else(|| LogFault::whole(LATE_SIZE))?;
        let bytes = self.bytes.filter(|bytes| bytes % size_bytes == 0);
        bytes.map(|bytes| bytes / size_bytes).ok_or_else(|| {
            LogFault::whole("the interval in which `--omit` ended does not have the bytes of whole packets")
        })
    }
}

impl IperfReading<'_, '_> {
    /// Keeps `fault`, and stops.
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

    fn take(&mut self, interval: &Interval, is_other: bool) -> Result<(), Stopped> {
        for counts in &interval.streams {
            let end = if is_other { &mut self.other } else { &mut self.written };
            match end.interval(counts, self.size_bytes, self.omits) {
                Ok(Some(interval)) => self.rows.interval(interval),
                Ok(None) => {}
                Err(fault) => return Err(self.stop(fault)),
            }
        }
        if self.rows.has_failed() { Err(Stopped) } else { Ok(()) }
    }

    /// Adds the totals of an end without intervals.
    fn finish(self) -> Result<LogFacts, LogFault> {
        let Some(written) = self.written.end else {
            return Err(LogFault::whole("the log has no intervals"));
        };
        let Some(size_bytes) = self.size_bytes else {
            return Err(LogFault::whole("the log does not state the size of its packets"));
        };
        if self.other.end == Some(written) {
            return Err(LogFault::whole("both ends of the log have the same role"));
        }
        let own_totals = self.totals.as_ref().map_or(&[][..], |totals| &totals.streams);
        for divided in [self.written.divided(own_totals)?, self.other.divided(&self.other_totals)?].concat() {
            self.rows.interval(divided);
        }
        if self.other.end.is_none() {
            let flows = self.written.sockets.len();
            let totals = match (written, &self.totals) {
                (StreamEnd::Sender, _) if self.has_accepted => {
                    return Err(LogFault::whole("the log is of a server that sends: it does not say what arrived")
                        .hint("import the log of its client: `iperf3 -c … -R -J`"));
                }
                (StreamEnd::Sender, totals) => {
                    let omitting = self.omits.then_some(size_bytes);
                    vec![received(totals.as_ref(), flows, omitting)?]
                }
                // A server that received has no counts of the sender.
                (StreamEnd::Receiver, Some(_)) if self.has_accepted => Vec::new(),
                (StreamEnd::Receiver, Some(totals)) => sent(totals, flows, size_bytes)?,
                (StreamEnd::Receiver, None) => Vec::new(),
            };
            totals.into_iter().for_each(|total| self.rows.interval(total));
        }
        Ok(self.facts)
    }
}

/// The total of a receiver with one flow, in the log of a sender that was `omitting` packets of this size or none.
fn received(totals: Option<&Totals>, flows: usize, omitting: Option<u32>) -> Result<StreamInterval, LogFault> {
    let sum = totals.and_then(|totals| totals.sum_received.as_ref()).filter(|_| flows == 1);
    let counts = sum.and_then(|sum| Some((sum, whole(sum.packets)?, whole(sum.lost_packets)?)));
    let Some((sum, packets, lost)) = counts else {
        let what = "the log does not say how many packets of each stream arrived";
        return Err(LogFault::whole(what).hint(BOTH_ENDS));
    };
    let late = totals.and_then(|totals| totals.streams.first()?.udp.as_ref()?.out_of_order);
    let [packets, lost] = match omitting {
        Some(size_bytes) => sum.since_zero(size_bytes)?,
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
                    document.next_value_seed(each(|interval: Interval| self.0.take(&interval, true)))?;
                }
                Key::End => self.0.other_totals = document.next_value::<OtherTotals>()?.streams,
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
                    document.next_value_seed(each(|interval: Interval| self.take(&interval, false)))?;
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
mod tests {
    use super::super::testing::{is_detected, read};
    use super::*;

    fn start(protocol: &str) -> String {
        format!(
            r#""start": {{ "connected": [{{ "socket": 5, "local_host": "127.0.0.1" }}], "version": "iperf 3.12",
  "timestamp": {{ "time": "Fri, 27 Nov 2026 12:16:13 GMT", "timesecs": 1795781773 }}, "sock_bufsize": 0, "sock_bufsize": 0,
  "test_start": {{ "protocol": "{protocol}", "num_streams": 2, "blksize": 1000, "omit": 0, "duration": 3, "reverse": 0 }} }}"#
        )
    }

    fn sending(socket: u8, start: &str, end: &str, packets: u64) -> String {
        format!(
            r#"{{ "socket": {socket}, "start": {start}, "end": {end}, "seconds": 1.0001039505004883, "bytes": 1249000,
  "bits_per_second": 9990961.43, "packets": {packets}, "omitted": false, "sender": true }}"#
        )
    }

    fn receiving(socket: u8, start: &str, end: &str, packets: u64, lost: i64) -> String {
        format!(
            r#"{{ "socket": {socket}, "start": {start}, "end": {end}, "seconds": 1, "bytes": 1, "bits_per_second": 99.8,
  "jitter_ms": 0.005, "lost_packets": {lost}, "packets": {packets}, "lost_percent": 0, "omitted": false, "sender": false }}"#
        )
    }

    /// A list of intervals, each of which has the given streams.
    fn intervals(streams: &[&[String]]) -> String {
        let sum = r#""sum": { "start": 0, "end": 1.000104, "packets": 2498, "omitted": false, "sender": true }"#;
        let each = streams.iter().map(|streams| format!("{{ \"streams\": [{}], {sum} }}", streams.join(", ")));
        format!("\"intervals\": [{}]", each.collect::<Vec<_>>().join(",\n"))
    }

    /// The totals of streams with these packets.
    fn end(streams: &[u64], sent: u64, received: u64, lost: i64) -> String {
        let udp = |packets: &u64| {
            format!(
                r#"{{ "udp": {{ "socket": 5, "end": 2, "packets": {packets}, "lost_packets": {lost}, "out_of_order": 3 }} }}"#
            )
        };
        let streams: Vec<_> = streams.iter().map(udp).collect();
        format!(
            r#""end": {{ "streams": [{}], "sum": {{ "start": 0, "end": 9, "packets": 1 }},
  "sum_sent": {{ "start": 0, "end": 2.000112, "packets": {sent}, "lost_packets": 0, "sender": true }},
  "sum_received": {{ "start": 0, "end": 2.00017, "packets": {received}, "lost_packets": {lost}, "sender": false }},
  "cpu_utilization_percent": {{ "host_total": 2.9 }} }}"#,
            streams.join(", ")
        )
    }

    fn document(members: &[String]) -> String {
        format!("{{\n{}\n}}\n", members.join(",\n"))
    }

    fn one_flow() -> [String; 3] {
        let streams = [[sending(5, "0", "1.000104", 1_249)], [sending(5, "1.000104", "2.000106", 1_250)]];
        [start("UDP"), intervals(&streams.each_ref().map(|streams| &streams[..])), end(&[2_499], 2_499, 2_490, 20)]
    }

    fn rows(text: &str) -> Vec<StreamInterval> {
        read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect("a log").0.intervals
    }

    fn fault(text: &str) -> LogFault {
        read(&FORMAT, &LogOptions::default(), true, text.as_bytes()).expect_err(text)
    }

    fn row(flow: u16, start_ns: i64, end_ns: i64, seen: IntervalCounts) -> StreamInterval {
        StreamInterval { flow, phase: Phase::Measure, start_ns, end_ns, cpu: None, seen }
    }

    #[test]
    fn a_sender_has_its_intervals_and_the_total_of_the_receiver() {
        let text = document(&one_flow());
        let (block, end) = read(&FORMAT, &LogOptions::default(), false, text.as_bytes()).expect("a log");
        let expected = [
            row(0, 0, 1_000_104_000, offered(1_249).expect("a count")),
            row(0, 1_000_104_000, 2_000_106_000, offered(1_250).expect("a count")),
            row(0, 0, 2_000_170_000, counted(2_490, 20, Some(3)).expect("counts")),
        ];
        assert_eq!(block.intervals, expected);
        let began = Some(1_795_781_773_000_000_000);
        let facts = LogFacts { version: Some("3.12".into()), started_ns: began, ..LogFacts::of("iperf3") };
        assert_eq!(end.facts, facts);
        assert!(is_detected(&FORMAT, text.as_bytes()));
        let mut reversed = one_flow();
        reversed.reverse();
        assert_eq!(rows(&document(&reversed).replace('\n', "\r\n")), block.intervals, "in any order");
    }

    #[test]
    fn a_receiver_has_its_intervals_and_the_totals_of_the_sender() {
        let streams = [[receiving(5, "0", "1", 100, 40), receiving(7, "0", "1.5", 50, -2)]];
        let intervals = intervals(&[&streams[0]]);
        let text = |end: String| document(&[start("UDP"), intervals.clone(), end]);
        let received = [
            row(0, 0, 1_000_000_000, counted(100, 40, None).expect("counts")),
            row(1, 0, 1_500_000_000, counted(50, -2, None).expect("counts")),
        ];
        let sent = |flow, packets| row(flow, 0, 2_000_112_000, offered(packets).expect("a count"));
        assert_eq!(rows(&text(end(&[110, 50], 160, 150, 38))), [&received[..], &[sent(0, 110), sent(1, 50)]].concat());
        for sum in [0, 18_446_744_073_709_551_612] {
            assert_eq!(rows(&text(end(&[110, 50], sum, 150, 38))), received, "the log of a receiver alone");
        }
        let IntervalCounts::Counted { polled, delivered, .. } = received[1].seen else { panic!("a receiver") };
        assert_eq!((polled, delivered), (50, 52), "two late packets of the interval before");
    }

    #[test]
    fn what_a_sender_sent_is_the_bytes_of_its_totals_if_a_receiver_wrote_them() {
        let received = intervals(&[&[receiving(5, "0", "1", 100, 40)]]);
        let totals = end(&[110], 110, 100, 40).replace("\"packets\": 110,", "\"bytes\": 108000, \"packets\": 110,");
        let text = document(&[start("UDP"), received, totals]);
        let sent = |text: &str| rows(text)[1].seen;
        assert_eq!(sent(&text), offered(108).expect("a count"));
        for other in [
            text.replacen("\"bytes\": 108000, \"packets\": 110,", "\"bytes\": 9000, \"packets\": 110,", 1),
            text.replace("\"bytes\": 108000", "\"bytes\": 108001"),
        ] {
            assert_eq!(sent(&other), offered(110).expect("a count"), "{other}");
        }
    }

    #[test]
    fn a_log_of_a_sender_that_accepted_the_connection_is_refused() {
        let [start, sent, _] = one_flow();
        let accepting =
            start.replace("\"connected\"", "\"accepted_connection\": { \"host\": \"a\", \"port\": 1 }, \"connected\"");
        let fault = fault(&document(&[accepting, sent, end(&[2_499], 2_499, 0, 0)]));
        assert!(fault.what.contains("a server that sends") && fault.hint.is_some_and(|hint| hint.contains("-R -J")));
    }

    #[test]
    fn the_document_of_the_other_end_has_its_intervals() {
        let sent = intervals(&[&[sending(5, "0", "1", 100), sending(7, "0", "1", 50)]]);
        let received = intervals(&[&[receiving(5, "0", "1.1", 99, 9), receiving(6, "0", "1.1", 50, 0)]]);
        let other = format!("\"server_output_json\": {}", document(&[start("UDP"), received, end(&[0, 0], 0, 149, 9)]));
        let rows = rows(&document(&[start("UDP"), sent.clone(), end(&[100, 50], 150, 149, 9), other]));
        let ends: Vec<_> = rows.iter().map(|row| (row.flow, row.end())).collect();
        let (sender, receiver) = (StreamEnd::Sender, StreamEnd::Receiver);
        assert_eq!(ends, [(0, sender), (1, sender), (0, receiver), (1, receiver)]);
        let refused = fault(&document(&[start("UDP"), sent, end(&[100, 50], 150, 149, 9)]));
        assert_eq!(refused.what, "the log does not say how many packets of each stream arrived");
    }

    #[test]
    fn omitted_intervals_are_left_out() {
        let text = document(&one_flow());
        assert_eq!(rows(&text.replacen("\"omitted\": false", "\"omitted\": true", 1)), rows(&text)[1..]);
    }

    /// `stream` with other `seconds` and `bytes`.
    fn lasting(stream: &str, seconds: &str, bytes: u64) -> String {
        let (head, rest) = stream.split_once("\"seconds\"").expect("seconds");
        let (_, tail) = rest.split_once("\"bits_per_second\"").expect("a rate");
        format!("{head}\"seconds\": {seconds}, \"bytes\": {bytes}, \"bits_per_second\"{tail}")
    }

    #[test]
    fn an_interval_in_which_omission_ends_begins_at_0_with_the_packets_of_its_bytes() {
        let later = |start, packets| lasting(&sending(5, start, "0.200077", packets), "0.100000", 5_000);
        let sent = |start, end_s| lasting(&sending(5, start, end_s, 3), "0.20011900067329407", 1_000);
        let totals = end(&[6], 6, 6, 0);
        for (start_s, end_s, end_ns) in [("0.100042", "0.100077", 100_077_000), ("0.100077", "0.100042", 100_042_000)] {
            let intervals = intervals(&[&[sent(start_s, end_s)], &[later(end_s, 5)]]);
            let rows = rows(&document(&[start("UDP"), intervals, totals.clone()]));
            assert_eq!(rows[0], row(0, 0, end_ns, offered(1).expect("a count")), "{start_s}");
            assert_eq!(rows[1], row(0, end_ns, 200_077_000, offered(5).expect("a count")), "{start_s}");
        }
        let first = intervals(&[&[sent("0.100042", "0.100077")]]);
        assert_eq!(fault(&document(&[first.clone(), start("UDP"), totals.clone()])).what, LATE_SIZE);
        let odd = first.replace("\"bytes\": 1000", "\"bytes\": 1001");
        assert!(fault(&document(&[start("UDP"), odd, totals])).what.contains("bytes of whole packets"));
    }

    #[test]
    fn a_receiver_has_what_it_lost_since_omission_ended() {
        let later = lasting(&receiving(5, "0.100077", "0.2", 10, 1), "0.099923", 9_000);
        let log = |packets, lost, arrived: u64, total, total_lost| {
            let first = lasting(&receiving(5, "0.1", "0.100077", packets, lost), "0.200077", arrived * 1_000);
            let intervals = intervals(&[&[first], std::slice::from_ref(&later)]);
            let text = document(&[start("UDP"), intervals.clone(), end(&[total], 0, total, total_lost)]);
            let other = document(&[start("UDP"), intervals, end(&[total], u64::MAX - 3, total, total_lost)]);
            let sent = intervals_sent();
            let own = end(&[total], total, total, total_lost);
            [text, document(&[start("UDP"), sent, own, format!("\"server_output_json\": {other}")])]
        };
        let span = |packets, lost| row(0, 0, 100_077_000, counted(packets, lost, None).expect("counts"));
        for (texts, packets, lost) in [
            (log(3, 0, 2, 12, 1), 2, 0),
            (log(5, 2, 3, 15, 3), 5, 2),
            (log(9, 3, 4, 16, 3), 6, 2),
            (log(9, 3, 4, 20, 3), 6, 2),
            (log(9, -1, 4, 13, 0), 3, -1),
        ] {
            for text in &texts {
                assert!(rows(text).contains(&span(packets, lost)), "{text}");
            }
        }
        for text in log(9, 3, 4, 17, 7) {
            assert!(fault(&text).what.contains("lost about the end of `--omit`"), "{text}");
        }
    }

    /// `text` of a run that omits its beginning.
    fn omitting(text: &str) -> String {
        text.replace("\"omit\": 0", "\"omit\": 1")
    }

    #[test]
    fn an_interval_that_is_longer_than_the_omission_has_the_packets_of_its_bytes() {
        let sent = intervals(&[
            &[lasting(&sending(5, "0", "5", 8_750), "5.0", 6_251_000)],
            &[lasting(&sending(5, "5", "6", 1_249), "1.0", 1_000)],
        ]);
        let totals =
            end(&[7_500], 7_500, 7_500, 222).replace("\"sum_received\": {", "\"sum_received\": { \"bytes\": 7278000,");
        let text = omitting(&document(&[start("UDP"), sent.clone(), totals.clone()]));
        let expected = [
            row(0, 0, 5_000_000_000, offered(6_251).expect("a count")),
            row(0, 5_000_000_000, 6_000_000_000, offered(1_249).expect("a count")),
            row(0, 0, 2_000_170_000, counted(7_500, 222, Some(3)).expect("counts")),
        ];
        assert_eq!(rows(&text), expected, "only the first one is divided");
        let late = omitting(&document(&[sent, start("UDP"), totals]));
        assert_eq!(fault(&late).what, LATE_SIZE);
        let received = |packets, lost, arrived: u64, total_lost| {
            let first = lasting(&receiving(5, "0", "2", packets, lost), "2.0", arrived * 1_000);
            let last = lasting(&receiving(5, "2", "3", 121_930, 57_213), "1.0", 64_717_000);
            let text = document(&[start("UDP"), intervals(&[&[first], &[last]]), end(&[9], 0, 9, total_lost)]);
            rows(&omitting(&text))[..2].to_vec()
        };
        let first = |packets, lost| row(0, 0, 2_000_000_000, counted(packets, lost, None).expect("counts"));
        assert!(received(262_136, 80_839, 118_242, 129_464).contains(&first(190_493, 72_251)), "losses of the totals");
        assert_eq!(received(2_500, 0, 1_250, 57_213)[0], first(1_250, 0));
        assert_eq!(received(2_500, 100, 2_400, 57_313)[0], first(2_500, 100), "omission ended before it");
    }

    #[test]
    fn a_sender_that_omits_has_losses_unless_some_may_be_omitted() {
        let log = |arrived: u64, packets, lost| {
            let sent = intervals(&[&[lasting(&sending(5, "0", "1", 99_985), "1.0", 99_985_000)]]);
            let bytes = format!("\"sum_received\": {{ \"bytes\": {}, ", arrived * 1_000);
            let totals = end(&[99_985], 99_985, packets, lost).replace("\"sum_received\": {", &bytes);
            omitting(&document(&[start("UDP"), sent, totals]))
        };
        for (arrived, packets, lost, polled) in
            [(7_278, 7_500, 222, 7_500), (1_249, 1_250, 0, 1_249), (1_251, 1_250, 0, 1_251), (1_234, 1_351, 116, 1_350)]
        {
            let seen = counted(polled, lost, Some(3)).expect("counts");
            assert_eq!(rows(&log(arrived, packets, lost))[1].seen, seen, "{arrived} {packets} {lost}");
        }
        let text = log(7_278, 7_500, 222);
        for other in [
            log(53_924, 99_954, 90_010),
            log(77_757, 130_713, 131_150),
            log(1_250, 1_250, 751),
            text.replace("7278000", "7278001"),
            text.replace("\"bytes\": 7278000,", ""),
        ] {
            let fault = fault(&other);
            assert!(fault.what.contains("`--omit` leaves out"), "{fault:?}");
            assert!(fault.hint.is_some_and(|hint| hint.contains("--get-server-output")));
        }
    }

    fn intervals_sent() -> String {
        intervals(&[&[sending(5, "0", "0.2", 16)]])
    }

    #[test]
    fn what_does_not_count_packets_in_one_direction_is_refused() {
        let [_, sent, totals] = one_flow();
        assert_eq!(fault(&document(&[start("TCP"), sent.clone(), totals.clone()])).what, TCP);
        let bytes = sent.replace("\"packets\": 1250, ", "");
        assert_eq!(fault(&document(&[bytes, totals.clone()])).what, TCP);
        assert!(fault(&document(&[start("SCTP")])).what.contains("SCTP"));
        let both = intervals(&[&[sending(5, "0", "1", 100), receiving(7, "0", "1", 50, 0)]]);
        assert!(fault(&document(&[start("UDP"), both, totals])).hint.expect("a hint").contains("--bidir"));
        let error = "\"intervals\": [], \"end\": {}, \"error\": \"unable to connect to \\u001b server\"".to_owned();
        assert_eq!(fault(&document(&[error])).what, "iperf3 ended with an error: unable to connect to \\u{1b} server");
        assert!(fault("{\"event\":\"start\",\"data\":{}}\n").what.contains("--json-stream"));
        assert_eq!(fault("{}").what, "the log has no intervals");
        let negative = document(&[intervals(&[&[receiving(5, "0", "1", 1, 4)]])]);
        assert_eq!(fault(&negative).what, "-3 packets in an interval");
        let many = document(&[intervals(&[&[sending(5, "0", "1", TOTAL_MAX + 1)]])]);
        assert_eq!(fault(&many).what, "1099511627777 packets in an interval");
    }

    #[test]
    fn a_log_without_the_size_of_its_packets_is_refused() {
        let [start, sent, totals] = one_flow();
        let without = start.replace("\"blksize\": 1000, ", "");
        let without_test = start.replace("\"test_start\"", "\"test\"");
        for start in [Some(without), Some(start.replace("1000", "0")), Some(without_test), None] {
            let members: Vec<_> = start.into_iter().chain([sent.clone(), totals.clone()]).collect();
            assert_eq!(fault(&document(&members)).what, "the log does not state the size of its packets");
        }
        let late = intervals(&[&[sending(5, "0", "1", 9), sending(6, "0", "1", 9), sending(7, "0", "1", 9)]]);
        let late = fault(&document(&[late, start, totals]));
        assert_eq!(late.what, "the log states the size of its packets behind its intervals");
    }

    #[test]
    fn an_interval_that_is_not_a_span_of_a_run_is_refused() {
        for (start_s, end_s) in [("2", "1"), ("-1", "1"), ("0", "1e9"), ("1e300", "1e300"), ("0", "-0.5")] {
            let text = document(&[start("UDP"), intervals(&[&[receiving(5, start_s, end_s, 10, 0)]])]);
            assert!(fault(&text).what.starts_with("an interval from "), "{start_s} {end_s}");
        }
        let sum = document(&one_flow()).replace("\"end\": 2.00017,", "\"end\": 2e18,");
        assert_eq!(fault(&sum).what, "an interval from 0 s to 2000000000000000000 s");
        let empty = document(&[start("UDP"), intervals(&[&[receiving(5, "1", "1", 0, 0)]])]);
        assert_eq!(rows(&empty)[0].start_ns, 1_000_000_000);
        let late = document(&one_flow()).replace("\"timesecs\": 1795781773", "\"timesecs\": 5000000000");
        let (_, end) = read(&FORMAT, &LogOptions::default(), false, late.as_bytes()).expect("a log");
        assert_eq!(end.facts.started_ns, None, "beyond 146 years");
    }

    #[test]
    fn a_malformed_log_is_a_fault_with_line_and_column() {
        let text = document(&one_flow());
        let bad = fault(&text.replace("\"packets\": 1250", "\"packets\": \"x\""));
        assert_eq!((bad.line, bad.column), (Some(8), Some(47)), "{bad:?}");
        for length in (0..text.len() - 2).step_by(7) {
            assert!(fault(&text[..length]).line.is_some(), "{length}");
        }
    }

    #[test]
    fn other_text_is_not_detected() {
        for bytes in [&b"{\"version\": {\"irtt\": \"0.9.0\"}}"[..], b"1,2\n", b"\xff\xfe{\x00", b"\x1f\x8b\x08", b""] {
            assert!(!detects(&LogHead { bytes, is_whole: true }), "{bytes:?}");
        }
    }
}
