//! A run over DDS: the domain, and the policies of its readers and writers (docs/dds.md).

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// How messages are exchanged over DDS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DdsSpec {
    /// The domain, 0 to [`DdsSpec::DOMAIN_MAX`].
    pub domain: u16,
    /// RELIABILITY of every reader and writer.
    pub reliability: Reliability,
    /// HISTORY of every reader and writer.
    pub history: History,
    /// Whether the type of the topics has a key; all messages are then of one instance.
    pub keyed: bool,
    /// Whether participants are searched, and found, by multicast.
    pub multicast: bool,
    /// The longest RTPS message, which is one datagram, in bytes; `None`: as the library is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<u16>,
}

impl DdsSpec {
    /// The highest domain that the library accepts: its ports are 7400 + 250·domain and up to 250 more (RTPS 2.5,
    /// section 9.6.1.1).
    pub const DOMAIN_MAX: u16 = 230;
    /// The limits of `message_bytes`: what every path over IPv6 carries in a packet, and what the library sends.
    pub const MESSAGE_BYTES: RangeInclusive<u16> = 1_232..=65_500;

    /// The longest sample, in bytes, in a UDP datagram with a payload of `datagram_bytes`. RTPS fills a sample up to a multiple
    /// of 4 bytes.
    pub fn sample_bytes(self, datagram_bytes: u32) -> u32 {
        datagram_bytes.saturating_sub(self.datagram_bytes(0)) & !3
    }

    /// The UDP payload that carries a sample of `sample_bytes`. RTPS adds the header of the message (20 bytes), for each sample
    /// its time, header and encoding (44) and its key, and a HEARTBEAT that a reliable writer may append.
    pub fn datagram_bytes(self, sample_bytes: u32) -> u32 {
        20 + self.heartbeat_bytes() + self.part_bytes(sample_bytes)
    }

    /// The most samples of `sample_bytes` in a UDP datagram with a payload of `datagram_bytes`.
    pub fn samples_in(self, datagram_bytes: u32, sample_bytes: u32) -> u32 {
        datagram_bytes.saturating_sub(20 + self.heartbeat_bytes()) / self.part_bytes(sample_bytes)
    }

    /// The bytes of a HEARTBEAT that may follow a sample.
    pub(crate) fn heartbeat_bytes(self) -> u32 {
        if self.reliability == Reliability::Reliable { 32 } else { 0 }
    }

    fn part_bytes(self, sample_bytes: u32) -> u32 {
        let key = if self.keyed { 4 } else { 0 };
        44 + key + sample_bytes.next_multiple_of(4)
    }

    /// Whether a writer waits for acknowledgements, so that no sample is replaced before every reader has it.
    pub fn waits_for_readers(self) -> bool {
        self.reliability == Reliability::Reliable && self.history == History::KeepAll
    }
}

crate::worded! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reliability: word {
        /// BEST_EFFORT: a lost sample stays lost.
        #[default]
        BestEffort = "best-effort",
        /// RELIABLE: a lost sample is sent again, as long as its writer keeps it.
        Reliable = "reliable",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    KeepLast(u16),
    KeepAll,
}

impl Default for History {
    fn default() -> History {
        History::KeepLast(16)
    }
}

/// As on the command line.
impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            History::KeepLast(depth) => write!(f, "keep-last:{depth}"),
            History::KeepAll => f.write_str("keep-all"),
        }
    }
}
