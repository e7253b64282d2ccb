//! iperf3: the JSON of `iperf3 -u -J` (3.0 to 3.21) and the events of `--json-stream` (from 3.17 on). A UDP stream is a flow.
//!
//! The intervals of the end that wrote the log are rows, as are those of its other end if the log contains its document; an end
//! without intervals has its totals as one interval of each flow. In an interval of a receiver, `packets` is by how much the
//! highest sequence number rose, and a late packet is taken from `lost_packets`, which may be negative.
//!
//! A receiver counts up to the last packet that arrived. Losses are unknown if its sender counted more packets, if the log has no
//! count of the sender, if the totals of the receiver differ from its intervals (since 3.16 a thread counts on for an instant),
//! and with `--omit`, where each end counts from an instant of its own.

use super::json::expect_one;
use super::prelude::*;
use crate::facts::{IntervalCounts, StreamEnd, StreamInterval};
use crate::probe::Phase;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, from_value};

const FLOWS_MAX: usize = 1_024;
/// Intervals end before this one, which is after 31 years.
const SECONDS_END: f64 = 1e9;
const BOTH_ENDS: &str = "run the other end as `iperf3 -s -J`, and this one with `--get-server-output`";
const OMITTED: &str = "with `--omit` it has the intervals of the receiver, but for the first behind what is left out";
const DIFFERENT: &str = "the totals of the receiver differ from its intervals";

/// What an end wrote: a document, or several events, each of which is read as one.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EndLog {
    event: String,
    data: Value,
    #[serde(skip)]
    runs: usize,
    start: Start,
    intervals: Vec<Interval>,
    end: Totals,
    error: Option<String>,
    #[serde(rename = "server_output_json")]
    other: Option<Box<EndLog>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Start {
    version: Option<String>,
    timestamp: Option<Timestamp>,
    test_start: TestStart,
    accepted_connection: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Timestamp {
    timesecs: Option<i64>,
}

#[derive(Default, Deserialize)]
struct TestStart {
    blksize: Option<u32>,
    omit: Option<f64>,
}

#[derive(Deserialize)]
struct Interval {
    #[serde(default)]
    streams: Vec<StreamCounts>,
}

#[derive(Deserialize)]
struct StreamCounts {
    socket: i64,
    start: f64,
    end: f64,
    packets: Option<i64>,
    lost_packets: Option<i64>,
    #[serde(default)]
    omitted: bool,
    sender: Option<bool>,
}

impl StreamCounts {
    fn role(&self) -> StreamEnd {
        match self.sender.unwrap_or(self.lost_packets.is_none()) {
            true => StreamEnd::Sender,
            false => StreamEnd::Receiver,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Totals {
    streams: Vec<StreamTotal>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
}

#[derive(Deserialize)]
struct StreamTotal {
    udp: Option<Sum>,
}

#[derive(Clone, Copy, Deserialize)]
struct Sum {
    #[serde(default)]
    start: f64,
    #[serde(default)]
    end: f64,
    /// Of a flow those that the sender sent; in the document of a server that received, those that it counted. With `--omit`
    /// iperf3 writes a number near 2^64 where it does not know it.
    #[serde(default, deserialize_with = "whole")]
    packets: Option<i64>,
    /// Those of the receiver; 0 in the document of a server that sent.
    #[serde(default, deserialize_with = "whole")]
    lost_packets: Option<i64>,
    out_of_order: Option<u32>,
}

/// A count, which may be written as a decimal; `None` if it is not whole and below 2^53.
fn whole<'de, D: Deserializer<'de>>(count: D) -> Result<Option<i64>, D::Error> {
    let is_whole = |count: &f64| count.abs() < (1_u64 << 53) as f64 && count.fract() == 0.0;
    Ok(Option::<f64>::deserialize(count)?.filter(is_whole).map(|count| count as i64))
}

impl EndLog {
    fn take(&mut self, document: EndLog) -> serde_json::Result<()> {
        match &*document.event {
            "" if self.runs == 0 => *self = EndLog { runs: 1, ..document },
            // `--json-stream-full-output` repeats the events as a document.
            "" => self.runs += usize::from(self.event.is_empty()),
            event => {
                match event {
                    "start" => (self.start, self.runs) = (from_value(document.data)?, self.runs + 1),
                    "interval" => self.intervals.push(from_value(document.data)?),
                    "end" => self.end = from_value(document.data)?,
                    "error" => self.error = Some(from_value(document.data)?),
                    "server_output_json" => self.other = Some(from_value(document.data)?),
                    _ => {}
                }
                self.event = document.event;
            }
        }
        Ok(())
    }

    fn streams(&self) -> impl Iterator<Item = &StreamCounts> {
        self.intervals.iter().flat_map(|interval| &interval.streams)
    }

    /// Whether it sends or receives; `None` without intervals.
    fn role(&self) -> Result<Option<StreamEnd>, LogFault> {
        let role = self.streams().next().map(StreamCounts::role);
        for stream in self.streams() {
            if stream.packets.is_none() {
                return Err(LogFault::whole("intervals of TCP and SCTP count bytes, not packets: `iperf3 -u`"));
            }
            if Some(stream.role()) != role {
                let what = "the log has streams in both directions, which are different measurements";
                return Err(LogFault::whole(what).hint("measure each direction in a run of its own, without `--bidir`"));
            }
            if role == Some(StreamEnd::Receiver) && stream.lost_packets.is_none() {
                return Err(LogFault::whole("an interval of a receiver without `lost_packets`"));
            }
        }
        Ok(role)
    }

    fn sockets(&self) -> Result<Vec<i64>, LogFault> {
        let mut sockets = Vec::new();
        for stream in self.streams() {
            if !sockets.contains(&stream.socket) {
                sockets.push(stream.socket);
            }
            if sockets.len() > FLOWS_MAX {
                return Err(LogFault::whole(format!("more than {FLOWS_MAX} streams")));
            }
        }
        Ok(sockets)
    }

    fn flow_totals(&self) -> impl Iterator<Item = Sum> {
        self.end.streams.iter().filter_map(|stream| stream.udp)
    }
}

pub(super) fn read(input: &mut Documents<'_>, _: &LogOptions, rows: &mut LogRows<'_>) -> ReadLog {
    let mut log = EndLog::default();
    input.read_kept(|document| log.take(document))?;
    expect_one(log.runs, "runs of iperf3")?;
    if let Some(error) = log.error {
        return Err(LogFault::whole(format!(
            "iperf3 ended with an error: {}",
            error.escape_debug().take(200).collect::<String>()
        )));
    }
    let Some(written) = log.role()? else { return Err(LogFault::whole("the log has no intervals")) };
    if log.end.streams.is_empty() {
        return Err(LogFault::whole("the log has no totals: it was cut short"));
    }
    let Some(size_bytes) = log.start.test_start.blksize.filter(|size_bytes| *size_bytes > 0) else {
        return Err(LogFault::whole("the log does not state the size of its packets"));
    };
    let other = log.other.as_ref().map_or(Ok(None), |other| other.role())?;
    if other == Some(written) {
        return Err(LogFault::whole("both ends of the log have the same role"));
    }
    let omits = log.start.test_start.omit.is_some_and(|seconds| seconds > 0.0);
    rows.have_packets_of(size_bytes);
    let mut run = IperfRun { rows, omits, flows: Vec::new() };
    // The two ends omit until instants of their own: the receiver's intervals alone are compared with nothing.
    let ends = [(Some(&log), Some(written)), (log.other.as_deref(), other)];
    for (end, role) in ends.into_iter().filter_map(|(end, role)| end.zip(role)) {
        if !omits || role == StreamEnd::Receiver {
            run.end(end, role)?;
        }
    }
    let (is_known, note) = match (written, other, log.start.accepted_connection.is_some()) {
        (_, Some(_), _) => (true, None),
        (StreamEnd::Sender, None, true) => {
            return Err(LogFault::whole("the log is of a server that sends: it does not say what arrived")
                .hint("import the log of its client: `iperf3 -c … -R -J`"));
        }
        (StreamEnd::Sender, None, false) if omits => {
            let what = "the log does not say what arrived behind the beginning that `--omit` leaves out";
            return Err(LogFault::whole(what).hint(format!("{BOTH_ENDS}, or measure without `--omit`")));
        }
        (StreamEnd::Sender, None, false) => run.received(&log)?,
        // A server that received has no counts of the sender.
        (StreamEnd::Receiver, None, true) => (false, None),
        (StreamEnd::Receiver, None, false) if omits => (false, None),
        (StreamEnd::Receiver, None, false) => (run.sent(&log)?, None),
    };
    let receiver = if written == StreamEnd::Receiver { Some(&log) } else { log.other.as_deref() };
    // The totals of a server that sends state 0 of its receiver.
    let is_whole = omits || receiver.is_none_or(|receiver| [receiver, &log].iter().all(|end| run.are_all_in(&end.end)));
    let is_known = is_whole && run.has_decided(&log) && is_known && !omits;
    let note = note.or(omits.then_some(OMITTED)).or((!is_whole).then_some(DIFFERENT));
    let version = log.start.version.map(|version| version.trim_start_matches("iperf ").to_owned());
    let began = log.start.timestamp.and_then(|timestamp| timestamp.timesecs);
    let started_ns = began.and_then(|seconds| bounded(seconds.checked_mul(1_000_000_000)?));
    let (states_losses, notes) = ((!is_known).then_some(false), note.into_iter().map(str::to_owned).collect());
    Ok(LogFacts { version, started_ns, states_losses, notes, ..LogFacts::of("iperf3") })
}

#[derive(Clone, Copy, Default)]
struct FlowCounts {
    sent: i64,
    /// By the receiver, as delivered or lost, and those that are lost.
    decided: i64,
    lost: i64,
}

struct IperfRun<'a, 'r> {
    rows: &'a mut LogRows<'r>,
    /// Whether `--omit` leaves the beginning out.
    omits: bool,
    flows: Vec<FlowCounts>,
}

fn count(packets: i64) -> Result<u64, LogFault> {
    let count = u64::try_from(packets).ok().filter(|count| *count <= TOTAL_MAX);
    count.ok_or_else(|| LogFault::whole(format!("{packets} packets in an interval")))
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

impl IperfRun<'_, '_> {
    fn row(&mut self, flow: usize, start: f64, end: f64, seen: IntervalCounts) -> Result<(), LogFault> {
        let is_time = |seconds: f64| (0.0..SECONDS_END).contains(&seconds);
        if !(is_time(start) && is_time(end) && start <= end) {
            return Err(LogFault::whole(format!("an interval from {start} s to {end} s")));
        }
        let [start_ns, end_ns] = [start, end].map(|seconds| (seconds * 1e9).round() as i64);
        let counts = &mut self.flows[flow];
        match seen {
            IntervalCounts::Offered { packets, .. } => counts.sent = counts.sent.saturating_add(packets as i64),
            IntervalCounts::Counted { polled, delivered, .. } => {
                counts.decided = counts.decided.saturating_add(polled as i64);
                counts.lost = counts.lost.saturating_add(polled as i64 - delivered as i64);
            }
        }
        let (flow, phase) = (flow as u16, Phase::Measure);
        self.rows.interval(StreamInterval { flow, phase, start_ns, end_ns, cpu: None, seen });
        Ok(())
    }

    fn end(&mut self, log: &EndLog, role: StreamEnd) -> Result<(), LogFault> {
        let sockets = log.sockets()?;
        self.flows.resize(self.flows.len().max(sockets.len()), FlowCounts::default());
        let mut has_begun = vec![false; sockets.len()];
        for counts in log.streams().filter(|counts| !counts.omitted) {
            let Some(flow) = sockets.iter().position(|socket| *socket == counts.socket) else { continue };
            let lost = counts.lost_packets.filter(|_| role == StreamEnd::Receiver).unwrap_or(0);
            let packets = counts.packets.unwrap_or(0);
            if !std::mem::replace(&mut has_begun[flow], true) && self.omits {
                continue;
            }
            let is_sender = role == StreamEnd::Sender;
            let seen = if is_sender { offered(packets)? } else { counted(packets, lost, None)? };
            self.row(flow, counts.start, counts.end, seen)?;
        }
        Ok(())
    }

    /// Adds the totals of the receiver in the log of a sender; returns whether they have all that was lost, and a note if not.
    fn received(&mut self, log: &EndLog) -> Result<(bool, Option<&'static str>), LogFault> {
        let sum = log.end.sum_received;
        let counts = sum.and_then(|sum| Some((sum, sum.packets?, sum.lost_packets?)));
        let totals: Vec<_> = log.flow_totals().collect();
        if let Some((sum, packets, lost)) = counts.filter(|_| self.flows.len() == 1) {
            let late = totals.first().and_then(|total| total.out_of_order);
            self.row(0, sum.start, sum.end, counted(packets, lost, late)?)?;
            let is_whole = self.are_all_in(&log.end);
            return Ok((is_whole, (!is_whole).then_some(DIFFERENT)));
        }
        let of_flows: Option<Vec<_>> =
            totals.iter().map(|total| Some((*total, total.packets?, total.lost_packets?))).collect();
        let Some(of_flows) = of_flows.filter(|of_flows| of_flows.len() == self.flows.len()) else {
            let what = "the log does not say how many packets of each stream were lost";
            return Err(LogFault::whole(what).hint(BOTH_ENDS));
        };
        let mut sent = 0_i64;
        for (flow, (total, packets, lost)) in of_flows.into_iter().enumerate() {
            self.row(flow, total.start, total.end, counted(packets, lost, total.out_of_order)?)?;
            sent = sent.saturating_add(packets);
        }
        let is_known = counts.is_some_and(|(_, packets, _)| packets >= sent);
        let note = "delivered packets are those that each stream sent less the lost ones that its receiver stated";
        Ok((is_known, (!is_known).then_some(note)))
    }

    /// Adds the totals of each flow of the sender in the log of a receiver; returns whether the log has them.
    fn sent(&mut self, log: &EndLog) -> Result<bool, LogFault> {
        let Some(sum) = &log.end.sum_sent else { return Ok(false) };
        let totals: Vec<_> = log.flow_totals().collect();
        let sent = totals.iter().try_fold(0_i64, |sent, total| sent.checked_add(total.packets?));
        // A log of a receiver alone has its own counts there, and a sum of 0.
        if totals.len() != self.flows.len() || sent.is_none() || sent != sum.packets {
            return Ok(false);
        }
        for (flow, total) in totals.iter().enumerate() {
            self.row(flow, sum.start, sum.end, offered(total.packets.unwrap_or(0))?)?;
        }
        Ok(true)
    }

    fn all(&self, count: fn(&FlowCounts) -> i64) -> i64 {
        self.flows.iter().fold(0, |sum, flow| sum.saturating_add(count(flow)))
    }

    /// Whether the receiver counted what its sender sent. Packets behind the last one that arrived are not in its counts.
    fn has_decided(&self, log: &EndLog) -> bool {
        let mut ends = [Some(log), log.other.as_deref()].into_iter().flatten();
        self.flows.iter().all(|flow| flow.sent <= flow.decided) && ends.all(|end| self.has_decided_totals(&end.end))
    }

    /// Whether the receiver counted what its sender sent by these totals. Those of a receiver alone are its own counts.
    fn has_decided_totals(&self, totals: &Totals) -> bool {
        let is_decided = |sum: Option<Sum>, decided| {
            sum.and_then(|sum| sum.packets).is_none_or(|packets| (0..=decided).contains(&packets))
        };
        let streams = totals.streams.iter().filter(|_| totals.streams.len() == self.flows.len());
        is_decided(totals.sum_sent, self.all(|flow| flow.decided))
            && self.flows.iter().zip(streams).all(|(flow, stream)| is_decided(stream.udp, flow.decided))
    }

    fn are_all_in(&self, totals: &Totals) -> bool {
        let is = |stated: Option<i64>, sum: i64| stated.is_none_or(|stated| stated == sum);
        let [decided, lost] = [self.all(|flow| flow.decided), self.all(|flow| flow.lost)];
        let streams = totals.streams.iter().filter(|_| totals.streams.len() == self.flows.len());
        let mut flows = self.flows.iter().zip(streams);
        totals.sum_received.is_none_or(|sum| is(sum.packets, decided) && is(sum.lost_packets, lost))
            && flows.all(|(flow, total)| is(total.udp.and_then(|udp| udp.lost_packets), flow.lost))
    }
}

#[cfg(test)]
mod tests;
