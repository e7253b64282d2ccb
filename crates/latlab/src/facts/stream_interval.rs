//! What one end of a stream saw in an interval of about 100 ms, as plain data.

use crate::probe::Phase;
use crate::units::Nanos;

/// One interval of one flow, told by one of its ends on that end's CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamInterval {
    /// The flow, from 0.
    pub flow: u16,
    /// Whether it counts.
    pub phase: Phase,
    /// When it began, ns.
    pub start_ns: i64,
    /// When it ended, ns.
    pub end_ns: i64,
    /// CPU time of the thread at that end; none where it does not tell, or tells it with another flow.
    pub cpu: Option<Nanos>,
    /// What that end saw.
    pub seen: IntervalCounts,
}

/// What the two ends can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalCounts {
    /// The sender.
    Offered {
        /// Packets that the kernel took.
        packets: u64,
        /// Packets that it refused for want of room; offered again later.
        refused: u64,
        /// Due packets given up, because the sender was more than 100 ms behind.
        skipped: u64,
    },
    /// The receiver, asked by the sender at both ends of the interval.
    Counted {
        /// Packets that the sender had sent between those two questions.
        polled: u64,
        /// Packets that arrived, each once.
        delivered: u64,
        /// Packets of those that came after one that was sent later (RFC 4737).
        reordered: u32,
        /// Packets that came again.
        duplicates: u32,
        /// Packets that came so late that nobody knows whether they came before: older than the replay window.
        outside_window: u32,
        /// Datagrams that the receiver's socket dropped, whosever they were; none where it does not tell, or tells it
        /// with another flow.
        socket_drops: Option<u32>,
    },
}

/// An end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamEnd {
    /// The one that sends.
    Sender,
    /// The one that counts.
    Receiver,
}

impl StreamEnd {
    /// Both.
    pub const ALL: [StreamEnd; 2] = [StreamEnd::Sender, StreamEnd::Receiver];

    /// The word in recordings.
    pub const fn word(self) -> &'static str {
        match self {
            StreamEnd::Sender => "sender",
            StreamEnd::Receiver => "receiver",
        }
    }
}

impl StreamInterval {
    /// Which end told it.
    pub const fn end(&self) -> StreamEnd {
        match self.seen {
            IntervalCounts::Offered { .. } => StreamEnd::Sender,
            IntervalCounts::Counted { .. } => StreamEnd::Receiver,
        }
    }

    /// How long it was.
    pub const fn span(&self) -> Nanos {
        Nanos(self.end_ns.saturating_sub(self.start_ns))
    }
}
