//! What is known about a run of a stream beside its intervals.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// How the two ends were set up, and how the kernel treated them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamFacts {
    /// The largest payload that crosses the path in one packet, as the sender's kernel knows it.
    pub unfragmented_bytes: Option<u32>,
    /// The send buffer that the kernel granted each sender's socket, its bookkeeping included.
    pub send_buffer_bytes: Option<u32>,
    /// The receive buffer that was granted the receiver's socket, where it tells.
    pub receive_buffer_bytes: Option<u32>,
    /// Packets that a sender hands over in one go at most, be it by one call or by several in a row.
    pub burst_packets: u64,
    /// The receiver's kernel counts what its socket drops in merged buffers (GRO), of which each may be many packets.
    pub drops_are_merged: bool,
    /// From one packet of a down-stream to the next, as the end that sends it grants it; none of an up-stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_gap_ns: Option<Nanos>,
    /// Whether the final count of every flow came: else what was sent after the last one is undecided.
    pub settled: bool,
}
