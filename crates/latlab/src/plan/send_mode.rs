//! How the packets of a stream are handed to the kernel, and by what kind of socket.

use serde::{Deserialize, Serialize};

use super::defaults;

/// How the packets of a stream are handed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendMode {
    /// One system call for each packet.
    Send,
    /// One system call for a batch of packets (sendmmsg(2)).
    Sendmmsg,
    /// One system call for a buffer that the kernel, or the NIC, cuts into packets: generic segmentation offload
    /// (UDP_SEGMENT, udp(7)).
    Gso,
}

impl SendMode {
    /// Every mode, the plainest first.
    pub const ALL: [SendMode; 3] = [SendMode::Send, SendMode::Sendmmsg, SendMode::Gso];

    /// As typed behind `--mode`.
    pub const fn word(self) -> &'static str {
        match self {
            SendMode::Send => "send",
            SendMode::Sendmmsg => "sendmmsg",
            SendMode::Gso => "gso",
        }
    }

    /// How many packets of `size_bytes` one system call takes, where a batch has `batch`.
    pub fn packets_per_call(self, size_bytes: u32, batch: u16) -> u16 {
        let most = match self {
            SendMode::Send => 1,
            SendMode::Sendmmsg => batch,
            // All of a buffer are cut from one datagram, and no datagram is longer than an IP packet may be.
            SendMode::Gso => {
                let fitting = defaults::SIZE_MAX_BYTES / size_bytes.max(1);
                batch.min(defaults::GSO_SEGMENTS_MAX).min(fitting as u16)
            }
        };
        most.max(1)
    }
}

/// What the sender of a stream asks of its socket, settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderSocketOptions {
    /// How packets are handed over.
    pub mode: SendMode,
    /// Packets between two looks at clock and schedule: what leaves in one burst at most.
    pub batch: u16,
    /// Packets carry a UDP checksum.
    pub checksum: bool,
    /// The socket is connected to its peer; otherwise each packet carries the address.
    pub connect: bool,
}

impl SenderSocketOptions {
    /// One connected send for each packet, with a checksum: what probes and network loads do.
    pub const PLAIN: SenderSocketOptions =
        SenderSocketOptions { mode: SendMode::Send, batch: defaults::STREAM_BATCH, checksum: true, connect: true };

    /// How many packets of `size_bytes` one system call takes.
    pub fn packets_per_call(&self, size_bytes: u32) -> u16 {
        self.mode.packets_per_call(size_bytes, self.batch)
    }

    /// How many packets of `size_bytes` leave in one burst: as many full calls as a batch has.
    pub fn burst_packets(&self, size_bytes: u32) -> u16 {
        let per_call = self.packets_per_call(size_bytes);
        (self.batch / per_call).max(1) * per_call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_a_batch_or_what_a_datagram_holds() {
        let rows = [
            (SendMode::Send, 1_472, 64, 1),
            (SendMode::Sendmmsg, 1_472, 64, 64),
            (SendMode::Sendmmsg, 65_507, 1_024, 1_024),
            (SendMode::Gso, 64, 1_024, 64),
            (SendMode::Gso, 64, 16, 16),
            (SendMode::Gso, 1_472, 64, 44),
            (SendMode::Gso, 8_192, 64, 7),
            (SendMode::Gso, 32_768, 64, 1),
            (SendMode::Gso, 65_507, 64, 1),
            (SendMode::Sendmmsg, 64, 0, 1),
        ];
        for (mode, size_bytes, batch, expected) in rows {
            assert_eq!(mode.packets_per_call(size_bytes, batch), expected, "{mode:?} {size_bytes} × {batch}");
        }
    }

    #[test]
    fn a_burst_is_of_full_calls() {
        let burst = |mode, size_bytes, batch| {
            SenderSocketOptions { mode, batch, ..SenderSocketOptions::PLAIN }.burst_packets(size_bytes)
        };
        assert_eq!([64, 1_472, 8_192, 32_768].map(|size| burst(SendMode::Gso, size, 64)), [64, 44, 63, 64]);
        assert_eq!([SendMode::Send, SendMode::Sendmmsg].map(|mode| burst(mode, 1_472, 16)), [16, 16]);
        assert_eq!(burst(SendMode::Gso, 1_472, 0), 1);
    }
}
