//! Other tools in whose lines a summary is shown beside its own.

use serde::{Deserialize, Serialize};

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Like {
    /// `netperf -t UDP_STREAM`.
    NetperfUdpStream,
}

impl Like {
    /// The word on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Like::NetperfUdpStream => "netperf-udp-stream",
        }
    }
}
