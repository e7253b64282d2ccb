//! A run over DDS: the domain, and the policies of its readers and writers (docs/dds.md).

use std::fmt;

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
}

impl DdsSpec {
    /// The highest domain that the library accepts: its ports are 7400 + 250·domain and up to 250 more (RTPS 2.5,
    /// section 9.6.1.1).
    pub const DOMAIN_MAX: u16 = 230;

    /// The longest sample, in bytes, in a UDP datagram with a payload of `datagram_bytes`. RTPS adds the headers of message and
    /// sample, the time of the source and the encoding (64 bytes), the key, and a HEARTBEAT that a reliable writer may append;
    /// it fills a sample up to a multiple of 4 bytes.
    pub fn sample_bytes(self, datagram_bytes: u32) -> u32 {
        let key = if self.keyed { 4 } else { 0 };
        let heartbeat = if self.reliability == Reliability::Reliable { 32 } else { 0 };
        datagram_bytes.saturating_sub(64 + key + heartbeat) & !3
    }

    /// Whether a writer waits for acknowledgements, so that no sample is replaced before every reader has it.
    pub fn waits_for_readers(self) -> bool {
        self.reliability == Reliability::Reliable && self.history == History::KeepAll
    }
}

/// RELIABILITY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reliability {
    /// BEST_EFFORT: a lost sample stays lost.
    #[default]
    BestEffort,
    /// RELIABLE: a lost sample is sent again, as long as its writer keeps it.
    Reliable,
}

impl Reliability {
    /// Every kind, the default first.
    pub const ALL: [Reliability; 2] = [Reliability::BestEffort, Reliability::Reliable];

    /// The word on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Reliability::BestEffort => "best-effort",
            Reliability::Reliable => "reliable",
        }
    }
}

/// HISTORY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// KEEP_LAST with this depth.
    KeepLast(u16),
    /// KEEP_ALL.
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
