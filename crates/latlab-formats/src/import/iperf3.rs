//! iperf3: the JSON of `iperf3 -u -J` (3.0 to 3.21) and the events of `--json-stream` (from 3.17 on). A UDP stream is a flow.
//!
//! The intervals of the end that wrote the log are rows, as are those of its other end if the log contains its document
//! (`--get-server-output` and `iperf3 -s -J`). In an interval of a receiver, `packets` is by how much the highest sequence number
//! rose: the packets that were sent in it, lost ones included. A late packet is taken from `lost_packets`, which may be negative.
//!
//! What `--omit` leaves out is left out here too: time begins anew at 0 behind it. An interval in which that happens is written
//! with packets and `seconds` from its beginning, and with the bytes from 0; `start` is the distance of its beginning from 0, or
//! 0 if that is longer than the omission (`-i 0`). It begins at 0 here, with the packets of these bytes; what a receiver lost is
//! what its totals have beyond the other intervals.
//!
//! An end without intervals has its totals as one interval of each flow: of a sender the bytes of each stream, since the packets
//! there may include some that were omitted; of a receiver with one flow `sum_received`, which logs since 3.12 have. With several
//! flows, and before, it has the packets that the sender counted less `lost_packets`. In the `sum_received` of a sender that
//! omits, `bytes` arrived since 0 of the receiver, `packets` were sent since 0 of the sender, and `lost_packets` is of the whole run.
//!
//! A receiver counts up to the last packet that arrived. If its sender counted more packets, in its intervals or in its totals, or
//! if the log has no count of the sender, losses are unknown. So they are if the totals of the receiver differ from its intervals:
//! since 3.16 a thread counts on for an instant. With `--omit` the two count from different instants.

use std::io::BufRead;

use serde::de::{IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer};

use super::field::{TOTAL_MAX, bounded};
use super::json::{self, Members, Object, each};
use super::{LogFacts, LogFault, LogFormat, LogOptions, LogReader, LogRows};
use crate::facts::{IntervalCounts, StreamEnd, StreamInterval};
use crate::plan::Kind;
use crate::probe::Phase;

pub(super) const FORMAT: LogFormat = LogFormat {
    name: "iperf3",
    title: "JSON of iperf3",
    rows: Kind::Stream,
    is_generic: false,
    options: &[],
    states_losses: true,
    detects: |head| json::has_any(head, &["\"iperf 3", "\"bits_per_second\""]),
    reader: LogReader::Document(read),
};

/// The most flows of a log.
const FLOWS_MAX: usize = 1_024;
/// The most intervals of an end, of all its flows: four days of one flow, 48 minutes of 128.
const INTERVALS_MAX: usize = 370_000;
/// Intervals end before this one, which is after 31 years.
const SECONDS_END: f64 = 1e9;
/// The most characters of an error that a message shows.
const SHOWN: usize = 200;
/// How a log gets the counts of both ends.
const BOTH_ENDS: &str = "run the other end as `iperf3 -s -J`, and this one with `--get-server-output`";
const DIFFERENT: &str = "the totals of the receiver differ from its intervals";

fn read(input: &mut dyn BufRead, _: &LogOptions, rows: &mut LogRows<'_>) -> Result<LogFacts, LogFault> {
    let mut log = EndLog::default();
    let mut is_first = true;
    let documents = json::read_each(input, |document| match std::mem::take(&mut is_first) || log.is_stream {
        true => document.deserialize_map(Object(&mut log)),
        false => IgnoredAny::deserialize(document).map(|_| ()),
    })?;
    json::expect_one(if log.is_stream { log.starts } else { documents }, "runs of iperf3")?;
    if let Some(error) = log.error {
        let shown: String = error.chars().take(SHOWN).flat_map(char::escape_debug).collect();
        return Err(LogFault::whole(format!("iperf3 ended with an error: {shown}")));
    }
    let start = std::mem::take(&mut log.start);
    let (test, other) = (start.test_start, log.other.as_ref().and_then(|other| other.role));
    if log.is_both || log.other.as_ref().is_some_and(|other| other.is_both) {
        return Err(LogFault::whole("the log has streams in both directions, which are different measurements")
            .hint("measure each direction in a run of its own, without `--bidir`"));
    }
    let Some(written) = log.role else { return Err(LogFault::whole("the log has no intervals")) };
    if log.totals.streams.is_empty() {
        return Err(LogFault::whole("the log has no totals: it was cut short"));
    }
    let Some(size_bytes) = test.blksize.filter(|size_bytes| *size_bytes > 0) else {
        return Err(LogFault::whole("the log does not state the size of its packets"));
    };
    if other == Some(written) {
        return Err(LogFault::whole("both ends of the log have the same role"));
    }
    let omits = test.omit.is_some_and(|seconds| seconds > 0.0);
    rows.have_packets_of(size_bytes);
    let flows = log.sockets.len().max(log.other.as_ref().map_or(0, |other| other.sockets.len()));
    let mut run = IperfRun { rows, size_bytes: size_bytes.into(), omits, flows: vec![FlowCounts::default(); flows] };
    run.end(&mut log)?;
    if let Some(other) = &mut log.other {
        run.end(other)?;
    }
    let (is_known, note) = match (written, other, start.accepted_connection.is_some()) {
        (_, Some(_), _) => (true, None),
        (StreamEnd::Sender, None, true) => {
            return Err(LogFault::whole("the log is of a server that sends: it does not say what arrived")
                .hint("import the log of its client: `iperf3 -c … -R -J`"));
        }
        (StreamEnd::Sender, None, false) => run.received(&log)?,
        // A server that received has no counts of the sender.
        (StreamEnd::Receiver, None, true) => (false, None),
        (StreamEnd::Receiver, None, false) => (run.sent(&log)?, None),
    };
    let is_whole = run.has_all_intervals(&log);
    let is_known = is_whole && run.has_decided(&log, written) && is_known;
    let note = note.or((!is_whole).then(|| DIFFERENT.to_owned()));
    let version = start.version.map(|version| version.trim_start_matches("iperf ").to_owned());
    let began = start.timestamp.and_then(|timestamp| timestamp.timesecs);
    let started_ns = began.and_then(|seconds| bounded(seconds.checked_mul(1_000_000_000)?));
    let (states_losses, notes) = ((!is_known).then_some(false), note.into_iter().collect());
    Ok(LogFacts { version, started_ns, states_losses, notes, ..LogFacts::of("iperf3") })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Start {
    version: Option<String>,
    timestamp: Option<Timestamp>,
    test_start: TestStart,
    /// A server has it, a client does not.
    accepted_connection: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Timestamp {
    timesecs: Option<i64>,
}

#[derive(Default, Deserialize)]
struct TestStart {
    blksize: Option<u32>,
    /// Seconds.
    omit: Option<f64>,
}

/// What an end counted of a stream in an interval; times in seconds.
#[derive(Deserialize)]
struct StreamCounts {
    /// The number of its flow, once it was taken.
    socket: i64,
    start: f64,
    end: f64,
    /// The time from its beginning to its end.
    #[serde(default)]
    seconds: f64,
    #[serde(default, deserialize_with = "whole")]
    bytes: Option<i64>,
    packets: Option<i64>,
    lost_packets: Option<i64>,
    #[serde(default)]
    omitted: bool,
    sender: Option<bool>,
    /// If some of its losses are before time 0: the most packets since then, of which `packets` were delivered.
    #[serde(skip)]
    divided: Option<i64>,
}

impl StreamCounts {
    /// Whether it began before time 0: `start` is its distance from 0 then.
    fn begins_before_zero(&self) -> bool {
        self.start > 0.0 && self.seconds > self.end
    }

    /// Packets that were sent, and those of them that a receiver missed.
    fn packets(&self) -> (i64, i64) {
        (self.packets.unwrap_or(0), self.lost_packets.unwrap_or(0))
    }
}

/// The totals of the run in the document of an end.
#[derive(Default, Deserialize)]
struct Totals {
    #[serde(default, deserialize_with = "few")]
    streams: Vec<StreamTotal>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
}

#[derive(Deserialize)]
struct StreamTotal {
    udp: Option<Sum>,
}

/// The totals of a flow, or of all.
#[derive(Clone, Copy, Deserialize)]
struct Sum {
    socket: Option<i64>,
    /// Seconds.
    #[serde(default)]
    start: f64,
    /// Seconds.
    #[serde(default)]
    end: f64,
    /// Of a flow, in the totals of a receiver, those that the sender sent.
    #[serde(default, deserialize_with = "whole")]
    bytes: Option<i64>,
    /// Of a flow those that the sender sent; in the document of a server that received, those that it counted. With `--omit`
    /// iperf3 writes a number near 2^64 where it does not know it.
    #[serde(default, deserialize_with = "whole")]
    packets: Option<i64>,
    /// Those of the receiver; 0 in the document of a server that sent.
    #[serde(default, deserialize_with = "whole")]
    lost_packets: Option<i64>,
    out_of_order: Option<u32>,
}

/// The elements of an array, at most one for each flow.
fn few<'de, T: Deserialize<'de>, D: Deserializer<'de>>(array: D) -> Result<Vec<T>, D::Error> {
    let mut elements = Vec::new();
    let keep = |element| {
        elements.push(element);
        if elements.len() > FLOWS_MAX { Err(format!("more than {FLOWS_MAX} streams")) } else { Ok(()) }
    };
    serde::de::DeserializeSeed::deserialize(each(keep), array)?;
    Ok(elements)
}

/// A count, which may be written as a decimal; `None` if it is not whole and below 2^53.
fn whole<'de, D: Deserializer<'de>>(count: D) -> Result<Option<i64>, D::Error> {
    let is_whole = |count: &f64| count.abs() < (1_u64 << 53) as f64 && count.fract() == 0.0;
    Ok(Option::<f64>::deserialize(count)?.filter(is_whole).map(|count| count as i64))
}

/// What an end wrote: a document, or several events.
#[derive(Default)]
struct EndLog {
    start: Start,
    counts: Vec<StreamCounts>,
    totals: Totals,
    /// That of the other end, within this one.
    other: Option<Box<EndLog>>,
    error: Option<String>,
    /// The sockets of its flows.
    sockets: Vec<i64>,
    /// Whether it sends or receives; `None` without intervals.
    role: Option<StreamEnd>,
    is_both: bool,
    is_other: bool,
    /// Whether it is of events, and the last one of them.
    is_stream: bool,
    event: String,
    starts: usize,
}

impl Members for EndLog {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, object: &mut A) -> Result<(), A::Error> {
        match name {
            "event" => (self.event, self.is_stream) = (object.next_value()?, true),
            "data" => {
                let event = std::mem::take(&mut self.event);
                self.part(&event, object)?;
            }
            "streams" => object.next_value_seed(each(|stream| self.take(stream)))?,
            // `--json-stream-full-output` repeats the events as a document.
            _ if self.is_stream => json::ignore(object)?,
            _ => self.part(name, object)?,
        }
        Ok(())
    }
}

impl EndLog {
    fn part<'de, A: MapAccess<'de>>(&mut self, name: &str, object: &mut A) -> Result<(), A::Error> {
        match name {
            "start" => (self.start, self.starts) = (object.next_value()?, self.starts + 1),
            "intervals" | "interval" => object.next_value_seed(Object(self))?,
            "end" => self.totals = object.next_value()?,
            "error" => self.error = Some(object.next_value()?),
            "server_output_json" if !self.is_other => {
                let mut other = Box::new(EndLog { is_other: true, ..EndLog::default() });
                object.next_value_seed(Object(&mut *other))?;
                self.other = Some(other);
            }
            _ => json::ignore(object)?,
        }
        Ok(())
    }

    fn take(&mut self, mut stream: StreamCounts) -> Result<(), String> {
        stream.packets.ok_or("intervals of TCP and SCTP count bytes, not packets: `iperf3 -u`")?;
        let role = match stream.sender.unwrap_or(stream.lost_packets.is_none()) {
            true => StreamEnd::Sender,
            false => StreamEnd::Receiver,
        };
        self.is_both |= *self.role.get_or_insert(role) != role;
        match role {
            StreamEnd::Sender => stream.lost_packets = None,
            StreamEnd::Receiver => _ = stream.lost_packets.ok_or("an interval of a receiver without `lost_packets`")?,
        }
        let flow = self.sockets.iter().position(|socket| *socket == stream.socket).unwrap_or_else(|| {
            self.sockets.push(stream.socket);
            self.sockets.len() - 1
        });
        if flow >= FLOWS_MAX || self.counts.len() >= INTERVALS_MAX {
            return Err(format!("more than {FLOWS_MAX} streams, or more than {INTERVALS_MAX} intervals of them"));
        }
        stream.socket = flow as i64;
        self.counts.push(stream);
        Ok(())
    }

    fn flow_totals(&self) -> impl Iterator<Item = Sum> {
        self.totals.streams.iter().filter_map(|stream| stream.udp)
    }
}

/// What the ends counted of a flow.
#[derive(Clone, Copy, Default)]
struct FlowCounts {
    sent: i64,
    /// By the receiver, as delivered or lost.
    decided: i64,
    /// Of the intervals of a receiver that are not divided.
    lost: i64,
    has_begun: bool,
}

/// The rows of a run.
struct IperfRun<'a, 'r> {
    rows: &'a mut LogRows<'r>,
    size_bytes: i64,
    /// Whether `--omit` leaves the beginning out.
    omits: bool,
    flows: Vec<FlowCounts>,
}

fn count(packets: i64) -> Result<u64, LogFault> {
    let count = u64::try_from(packets).ok().filter(|count| *count <= TOTAL_MAX);
    count.ok_or_else(|| LogFault::whole(format!("{packets} packets in an interval")))
}

/// Packets that were sent.
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

impl IperfRun<'_, '_> {
    /// Adds the interval of `flow` from `start` to `end`, in seconds.
    fn row(&mut self, flow: usize, start: f64, end: f64, seen: IntervalCounts) -> Result<(), LogFault> {
        let is_time = |seconds: f64| (0.0..SECONDS_END).contains(&seconds);
        if !(is_time(start) && is_time(end) && start <= end) {
            return Err(LogFault::whole(format!("an interval from {start} s to {end} s")));
        }
        // At most 6 decimal places.
        let [start_ns, end_ns] = [start, end].map(|seconds| (seconds * 1e9).round() as i64);
        let FlowCounts { sent, decided, .. } = &mut self.flows[flow];
        let (sum, packets) = match seen {
            IntervalCounts::Offered { packets, .. } => (sent, packets),
            IntervalCounts::Counted { polled, .. } => (decided, polled),
        };
        *sum = sum.saturating_add(packets as i64);
        let (flow, phase) = (flow as u16, Phase::Measure);
        self.rows.interval(StreamInterval { flow, phase, start_ns, end_ns, cpu: None, seen });
        Ok(())
    }

    /// The packets of so many bytes, if these are whole packets.
    fn packets_of(&self, bytes: Option<i64>) -> Option<i64> {
        bytes.filter(|bytes| bytes % self.size_bytes == 0).map(|bytes| bytes / self.size_bytes)
    }

    /// Adds the intervals of an end.
    fn end(&mut self, end: &mut EndLog) -> Result<(), LogFault> {
        self.flows.iter_mut().for_each(|flow| flow.has_begun = false);
        end.counts.retain(|counts| !counts.omitted);
        for counts in &mut end.counts {
            self.divide(counts)?;
        }
        for counts in &end.counts {
            let flow = counts.socket as usize;
            let (mut packets, mut lost) = counts.packets();
            if let Some(most) = counts.divided {
                let of_flow = end.flow_totals().find(|total| total.socket == Some(end.sockets[flow]));
                let beyond = of_flow.and_then(|total| total.lost_packets?.checked_sub(self.flows[flow].lost));
                let both = beyond.and_then(|lost| Some((packets.checked_add(lost)?, lost)));
                (packets, lost) = both.filter(|(packets, _)| *packets <= most).ok_or_else(|| {
                    let what = "the log does not say how many of the packets lost about the end of `--omit` count";
                    LogFault::whole(what).hint("measure without `--omit`")
                })?;
            }
            let is_sender = end.role == Some(StreamEnd::Sender);
            let seen = if is_sender { offered(packets)? } else { counted(packets, lost, None)? };
            self.row(flow, counts.start, counts.end, seen)?;
        }
        Ok(())
    }

    /// Leaves out what an interval counted before time 0, which may be in the first one of a flow that counts.
    fn divide(&mut self, counts: &mut StreamCounts) -> Result<(), LogFault> {
        let flow = counts.socket as usize;
        let (packets, lost) = counts.packets();
        let is_first = !std::mem::replace(&mut self.flows[flow].has_begun, true);
        if counts.begins_before_zero() || (self.omits && is_first) {
            let delivered = self.packets_of(counts.bytes).ok_or_else(|| {
                LogFault::whole("the interval in which `--omit` ended does not have the bytes of whole packets")
            })?;
            let is_whole = packets.checked_sub(lost) == Some(delivered);
            if !is_whole || counts.begins_before_zero() {
                counts.start = 0.0;
            }
            if !is_whole {
                (counts.divided, counts.packets) = ((lost != 0).then_some(packets), Some(delivered));
            }
        }
        if counts.divided.is_none() {
            self.flows[flow].lost = self.flows[flow].lost.saturating_add(lost);
        }
        Ok(())
    }

    /// Adds the totals of the receiver in the log of a sender; returns whether they have all that was lost, and a note if not.
    fn received(&mut self, log: &EndLog) -> Result<(bool, Option<String>), LogFault> {
        let sum = log.totals.sum_received;
        let counts = sum.and_then(|sum| Some((sum, sum.packets?, sum.lost_packets?)));
        let totals: Vec<_> = log.flow_totals().collect();
        if let Some((sum, packets, lost)) = counts.filter(|_| self.flows.len() == 1) {
            let delivered = self.packets_of(sum.bytes).filter(|_| lost <= 0);
            let (packets, lost) = match self.omits {
                true => (delivered.ok_or_else(lost_before_zero)?, 0),
                false => (packets, lost),
            };
            let late = totals.first().and_then(|total| total.out_of_order);
            self.row(0, sum.start, sum.end, counted(packets, lost, late)?)?;
            self.flows[0].lost = lost;
            let is_whole = self.omits || self.are_all_in(&log.totals);
            return Ok((is_whole, (!is_whole).then(|| DIFFERENT.to_owned())));
        }
        let of_flows: Option<Vec<_>> = totals.iter().map(|total| Some((total.packets?, total.lost_packets?))).collect();
        let Some(of_flows) = of_flows.filter(|of_flows| of_flows.len() == self.flows.len()) else {
            let what = "the log does not say how many packets of each stream were lost";
            return Err(LogFault::whole(what).hint(BOTH_ENDS));
        };
        if self.omits && of_flows.iter().any(|(_, lost)| *lost != 0) {
            return Err(lost_before_zero());
        }
        let mut sent = 0_i64;
        for (flow, ((packets, lost), total)) in of_flows.into_iter().zip(&totals).enumerate() {
            self.row(flow, total.start, total.end, counted(packets, lost, total.out_of_order)?)?;
            sent = sent.saturating_add(packets);
        }
        let is_known = counts.is_some_and(|(_, packets, _)| packets >= sent);
        let note = "delivered packets are those that each stream sent less the lost ones that its receiver stated";
        Ok((is_known, (!is_known).then(|| note.to_owned())))
    }

    /// Adds the totals of each flow of the sender in the log of a receiver; returns whether the log has them.
    fn sent(&mut self, log: &EndLog) -> Result<bool, LogFault> {
        let Some(sum) = &log.totals.sum_sent else { return Ok(false) };
        let totals: Vec<_> = log.flow_totals().collect();
        let is_sum = |count: fn(&Sum) -> Option<i64>| {
            let of_flows = totals.iter().try_fold(0_i64, |sum, total| sum.checked_add(count(total)?));
            of_flows.is_some() && of_flows == count(sum)
        };
        // A log of a receiver alone has its own counts there, and a sum of 0.
        if totals.len() != self.flows.len() || !is_sum(|total| total.packets) {
            return Ok(false);
        }
        let are_bytes_sent = is_sum(|total| total.bytes);
        for (flow, total) in totals.iter().enumerate() {
            let of_bytes = self.packets_of(total.bytes.filter(|_| are_bytes_sent));
            self.row(flow, sum.start, sum.end, offered(of_bytes.or(total.packets).unwrap_or(0))?)?;
        }
        Ok(true)
    }

    /// Packets of all flows that the receiver counted.
    fn decided(&self) -> i64 {
        self.flows.iter().fold(0, |sum, flow| sum.saturating_add(flow.decided))
    }

    /// Whether the receiver counted what its sender sent. Packets behind the last one that arrived are not in its counts.
    fn has_decided(&self, log: &EndLog, written: StreamEnd) -> bool {
        let rows_agree = self.flows.iter().all(|flow| flow.sent <= flow.decided);
        if !self.omits {
            let of_other = log.other.as_deref().is_none_or(|other| self.has_decided_totals(other));
            return rows_agree && self.has_decided_totals(log) && of_other;
        }
        // With `--omit` the rows of each end count from a 0 of its own; the totals of a sender count from its 0.
        let sum = log.totals.sum_received.and_then(|sum| sum.packets);
        let sent = self.flows.iter().fold(0_i64, |sum, flow| sum.saturating_add(flow.sent));
        let totals_agree = sum.map_or(rows_agree, |sum| sent <= sum && (rows_agree || self.flows.len() == 1));
        written == StreamEnd::Sender && totals_agree
    }

    /// Whether the receiver counted what its sender sent by these totals. Those of a receiver alone are its own counts.
    fn has_decided_totals(&self, log: &EndLog) -> bool {
        let is_decided = |sum: Option<Sum>, decided| {
            sum.and_then(|sum| sum.packets).is_none_or(|packets| (0..=decided).contains(&packets))
        };
        let streams = log.totals.streams.iter().filter(|_| log.totals.streams.len() == self.flows.len());
        is_decided(log.totals.sum_sent, self.decided())
            && self.flows.iter().zip(streams).all(|(flow, stream)| is_decided(stream.udp, flow.decided))
    }

    /// Whether the intervals of the receiver have all that it counted. With `--omit` they count from another 0 than its totals.
    fn has_all_intervals(&self, log: &EndLog) -> bool {
        let ends = [Some(log), log.other.as_deref()].into_iter().flatten();
        let Some(receiver) = ends.clone().find(|end| end.role == Some(StreamEnd::Receiver)) else { return true };
        let is_divided = receiver.counts.iter().any(|counts| counts.divided.is_some());
        // The totals of a server that sends state 0 of its receiver.
        let mut of_receiver = ends.filter(|end| end.role == receiver.role || !end.is_other);
        self.omits || is_divided || of_receiver.all(|end| self.are_all_in(&end.totals))
    }

    /// Whether the totals of a receiver are the sums of its intervals.
    fn are_all_in(&self, totals: &Totals) -> bool {
        let is = |stated: Option<i64>, sum: i64| stated.is_none_or(|stated| stated == sum);
        let lost = self.flows.iter().fold(0_i64, |sum, flow| sum.saturating_add(flow.lost));
        let of_sum =
            totals.sum_received.is_none_or(|sum| is(sum.packets, self.decided()) && is(sum.lost_packets, lost));
        let flows = self.flows.iter().filter(|_| totals.streams.len() == self.flows.len());
        let of_flow =
            |(flow, total): (&FlowCounts, &StreamTotal)| is(total.udp.and_then(|udp| udp.lost_packets), flow.lost);
        of_sum && flows.zip(&totals.streams).all(of_flow)
    }
}

#[cold]
fn lost_before_zero() -> LogFault {
    LogFault::whole("the log does not say how many of the lost packets `--omit` leaves out")
        .hint(format!("{BOTH_ENDS}, or measure without `--omit`"))
}

#[cfg(test)]
mod tests;
