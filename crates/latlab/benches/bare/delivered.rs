//! What the receiver of a bare stream adds up, and how the sender asks for it.

use serde::Serialize;

pub(crate) const SUMS_BYTES: usize = 16;
/// The number of attempts to ask the receiver, each with the receive time-out.
pub(crate) const QUESTIONS: usize = 20;

/// What a receiver has added up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    /// The time of the first call that received some, and of the last.
    first_ns: Option<i64>,
    last_ns: i64,
    bytes: u64,
}

impl Sums {
    /// Adds what a call received. The bytes of the first call arrived before the measured time.
    pub(crate) fn add(&mut self, now_ns: i64, bytes: u64) {
        self.last_ns = now_ns;
        match self.first_ns {
            None => self.first_ns = Some(now_ns),
            Some(_) => self.bytes += bytes,
        }
    }

    /// Bytes, and the time in ns between the first and the last call, big endian.
    pub(crate) fn to_bytes(self) -> [u8; SUMS_BYTES] {
        let span_ns = self.last_ns - self.first_ns.unwrap_or(self.last_ns);
        ((u128::from(self.bytes) << 64) + span_ns as u128).to_be_bytes()
    }
}

/// The result of a bare stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Delivered {
    /// Packets that the kernel of the sender took.
    pub sent_packets: u64,
    /// Bytes of UDP payload that were received after the first call that received some.
    pub delivered_bytes: u64,
    /// The time from that call to the last.
    pub span_ns: i64,
    /// Bits of UDP payload a second.
    pub delivered_bps: f64,
}

impl Delivered {
    /// What the `sums` of the receiver say.
    pub(crate) fn of(sums: [u8; SUMS_BYTES], sent_packets: u64) -> Delivered {
        let both = u128::from_be_bytes(sums);
        let (delivered_bytes, span_ns) = ((both >> 64) as u64, both as i64);
        let delivered_bps = delivered_bytes as f64 * 8e9 / span_ns.max(1) as f64;
        Delivered { sent_packets, delivered_bytes, span_ns, delivered_bps }
    }
}
