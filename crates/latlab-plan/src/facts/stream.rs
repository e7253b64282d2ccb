//! The counts of the ends of a stream in intervals of about 100 ms, and facts of their sockets.

use serde::{Deserialize, Serialize};

use crate::probe::Phase;
use crate::units::Nanos;

/// One interval of one flow at one end, on CLOCK_MONOTONIC of that end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamInterval {
    /// Number of the flow, from 0.
    pub flow: u16,
    pub phase: Phase,
    /// Begin of the interval, ns.
    pub start_ns: i64,
    /// End of the interval, ns.
    pub end_ns: i64,
    /// CPU time of the thread at that end; `None` if unknown or counted with another flow.
    pub cpu: Option<Nanos>,
    pub seen: IntervalCounts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalCounts {
    Offered {
        /// Packets accepted by the kernel.
        packets: u64,
        /// Packets refused because its buffer was full; offered again later.
        refused: u64,
        /// Due packets skipped because the sender was more than 100 ms behind.
        skipped: u64,
    },
    /// Of the receiver, polled by the sender at begin and end of the interval.
    Counted {
        /// Packets that the sender sent between those two polls.
        polled: u64,
        delivered: u64,
        /// Of these, packets received after one that was sent later (RFC 4737).
        reordered: u32,
        duplicates: u32,
        /// Packets older than the replay window, which may be duplicates.
        outside_window: u32,
        /// Datagrams dropped by the socket of the receiver, of all sessions; `None` if unknown or counted with another
        /// flow.
        socket_drops: Option<u32>,
    },
}

crate::worded! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum StreamEnd: word {
        Sender = "sender",
        Receiver = "receiver",
    }
}

impl StreamInterval {
    pub const fn end(&self) -> StreamEnd {
        match self.seen {
            IntervalCounts::Offered { .. } => StreamEnd::Sender,
            IntervalCounts::Counted { .. } => StreamEnd::Receiver,
        }
    }

    /// The length of the interval.
    pub const fn span(&self) -> Nanos {
        Nanos(self.end_ns.saturating_sub(self.start_ns))
    }
}

/// Sockets and paths of both ends of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamFacts {
    /// The largest payload of an unfragmented packet, from the path MTU that the kernel of the sender knows.
    pub unfragmented_bytes: Option<u32>,
    /// Send buffer of each sender's socket as granted by the kernel, bookkeeping included.
    pub send_buffer_bytes: Option<u32>,
    /// Receive buffer of the receiver's socket as granted by the kernel, if known.
    pub receive_buffer_bytes: Option<u32>,
    /// The most packets that a sender hands to the kernel in one burst, by one or several calls.
    pub burst_packets: u64,
    /// Whether the receiver's kernel counts dropped merged buffers (GRO), each of which may hold many packets.
    pub drops_are_merged: bool,
    /// Interval of the packets of a down-stream as granted by the end that sends it; absent for an up-stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_gap_ns: Option<Nanos>,
    /// Whether the final count of every flow was received; otherwise packets sent after the last one are undecided.
    pub settled: bool,
}
