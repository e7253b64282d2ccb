//! The members of a document of iperf3 that are read.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::{LogFault, json};

pub(super) const LATE_SIZE: &str = "the log states the size of its packets behind its intervals";
/// How a log gets the counts of both ends.
pub(super) const BOTH_ENDS: &str = "run the other end as `iperf3 -s -J`, and this one with `--get-server-output`";

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
pub(super) enum Key {
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
pub(super) struct Start {
    pub(super) version: Option<String>,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) test_start: Option<TestStart>,
    /// A server has it, a client does not.
    pub(super) accepted_connection: Option<IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct Timestamp {
    pub(super) timesecs: Option<i64>,
}

#[derive(Deserialize)]
pub(super) struct TestStart {
    pub(super) protocol: Option<String>,
    pub(super) blksize: Option<u32>,
    /// Seconds.
    pub(super) omit: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct LoggedInterval {
    #[serde(default, deserialize_with = "json::few")]
    pub(super) streams: Vec<StreamCounts>,
}

/// A stream in an interval.
#[derive(Deserialize)]
pub(super) struct StreamCounts {
    pub(super) socket: i64,
    /// Seconds.
    pub(super) start: f64,
    /// Seconds.
    pub(super) end: f64,
    /// The time from its beginning to its end.
    pub(super) seconds: Option<f64>,
    pub(super) bytes: Option<i64>,
    pub(super) packets: Option<i64>,
    pub(super) lost_packets: Option<i64>,
    #[serde(default)]
    pub(super) omitted: bool,
    pub(super) sender: Option<bool>,
}

impl StreamCounts {
    /// Whether it began before time 0: `start` is its distance from 0 then.
    pub(super) fn begins_before_zero(&self) -> bool {
        self.start > 0.0 && self.seconds.is_some_and(|seconds| seconds > self.end)
    }

    /// The packets of its bytes, which have `size_bytes` each: those that were sent or arrived since time 0.
    pub(super) fn delivered(&self, size_bytes: Option<u32>) -> Result<i64, LogFault> {
        let size_bytes = size_bytes.map(i64::from).ok_or_else(|| LogFault::whole(LATE_SIZE))?;
        let bytes = self.bytes.filter(|bytes| bytes % size_bytes == 0);
        bytes.map(|bytes| bytes / size_bytes).ok_or_else(|| {
            LogFault::whole("the interval in which `--omit` ended does not have the bytes of whole packets")
        })
    }
}

/// The totals of the run in the document of an end.
#[derive(Default, Deserialize)]
pub(super) struct Totals {
    #[serde(default, deserialize_with = "json::few")]
    pub(super) streams: Vec<StreamTotal>,
    pub(super) sum_sent: Option<SumDocument>,
    pub(super) sum_received: Option<SumDocument>,
}

impl Totals {
    /// Those of a flow, if they are of so many `flows`.
    pub(super) fn of_flow(&self, flow: usize, flows: usize) -> Option<FlowTotal> {
        self.streams.get(flow).filter(|_| self.streams.len() == flows)?.udp
    }

    /// Whether the intervals of a receiver, which have `packets` and of each flow so many `lost` ones, are all that it counted: it
    /// may go on counting for an instant behind its last interval, and a late packet is then one less that is lost. `None` if the
    /// totals contradict these intervals: they have fewer packets, or losses that differ by more.
    pub(super) fn are_all_in(&self, packets: i64, lost: &[i64]) -> Option<bool> {
        let sum = self.sum_received.as_ref();
        let total = sum.and_then(|sum| whole(sum.packets)).unwrap_or(packets);
        let beyond = u64::try_from(total.checked_sub(packets)?).ok()?;
        let late = self.streams.iter().filter_map(|stream| stream.udp?.out_of_order).map(u64::from);
        let of_flow = |flow| self.of_flow(flow, lost.len()).and_then(|total| total.lost_packets);
        let all_lost = lost.iter().fold(0_i64, |sum, lost| sum.saturating_add(*lost));
        let differences = lost.iter().enumerate().filter_map(|(flow, lost)| Some(of_flow(flow)?.abs_diff(*lost)));
        let of_sum = sum.and_then(|sum| Some(whole(sum.lost_packets)?.abs_diff(all_lost)));
        let most = differences.chain(of_sum).max().unwrap_or_default();
        (most <= late.fold(beyond, u64::saturating_add)).then_some(beyond == 0 && most == 0)
    }
}

#[derive(Deserialize)]
pub(super) struct StreamTotal {
    pub(super) udp: Option<FlowTotal>,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) struct FlowTotal {
    pub(super) socket: Option<i64>,
    /// In the totals of a receiver those that the sender sent.
    pub(super) bytes: Option<i64>,
    /// Those that the sender sent; in the document of a server that received, those that it counted.
    pub(super) packets: i64,
    /// Those of the receiver; 0 in the document of a server that sent.
    pub(super) lost_packets: Option<i64>,
    pub(super) out_of_order: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct SumDocument {
    /// Seconds.
    pub(super) start: f64,
    /// Seconds.
    pub(super) end: f64,
    pub(super) bytes: Option<f64>,
    /// With `--omit` iperf3 writes a number near 2^64 where it does not know it.
    pub(super) packets: Option<f64>,
    pub(super) lost_packets: Option<f64>,
}

impl SumDocument {
    /// The packets that a receiver counted since time 0, which have `size_bytes`, in the log of a sender that omits. What it lost
    /// is of the whole run.
    pub(super) fn since_zero(&self, size_bytes: u32) -> Result<i64, LogFault> {
        let size_bytes = i64::from(size_bytes);
        let delivered = whole(self.bytes).filter(|bytes| bytes % size_bytes == 0).map(|bytes| bytes / size_bytes);
        let is_lossless = whole(self.lost_packets).is_some_and(|lost| lost <= 0);
        delivered.filter(|_| is_lossless).ok_or_else(|| {
            LogFault::whole("the log does not say how many of the lost packets `--omit` leaves out")
                .hint(format!("{BOTH_ENDS}, or measure without `--omit`"))
        })
    }
}

/// A count of a sum, which is below 2^53.
pub(super) fn whole(count: Option<f64>) -> Option<i64> {
    count.filter(|count| count.abs() < (1_u64 << 53) as f64 && count.fract() == 0.0).map(|count| count as i64)
}
