//! Other tools in whose lines a summary is shown beside its own.

use serde::{Deserialize, Serialize};

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompatOutput {
    /// `netperf -t UDP_STREAM`.
    NetperfUdpStream,
}

impl CompatOutput {
    /// The word on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            CompatOutput::NetperfUdpStream => "netperf-udp-stream",
        }
    }
}
