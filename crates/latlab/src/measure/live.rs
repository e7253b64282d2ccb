//! How a stream goes, for whoever watches.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::facts::{IntervalCounts, StreamInterval};

/// What all flows have sent and delivered so far, at most an interval old.
#[derive(Debug, Default)]
pub struct LiveRates {
    sent_bits: AtomicU64,
    delivered_bits: AtomicU64,
}

/// One look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveCounts {
    /// Payload bits that the kernel took.
    pub sent_bits: u64,
    /// Payload bits that arrived.
    pub delivered_bits: u64,
}

impl LiveRates {
    /// One more interval, whose packets have `size_bytes`.
    pub(super) fn add(&self, interval: &StreamInterval, size_bytes: u32) {
        let (bits, packets) = match interval.seen {
            IntervalCounts::Offered { packets, .. } => (&self.sent_bits, packets),
            IntervalCounts::Counted { delivered, .. } => (&self.delivered_bits, delivered),
        };
        bits.fetch_add(packets * u64::from(size_bytes) * 8, Ordering::Relaxed);
    }

    /// Where it stands.
    pub fn read(&self) -> LiveCounts {
        LiveCounts {
            sent_bits: self.sent_bits.load(Ordering::Relaxed),
            delivered_bits: self.delivered_bits.load(Ordering::Relaxed),
        }
    }
}
