//! How many connections a listener takes, and what became of them.

/// How many connections a listener takes (rule R4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionCaps {
    /// At a time. The memory for all of them is there from the start.
    pub connections: u16,
    /// At a time from one /24 (IPv4) or /64 (IPv6); loopback is exempt.
    pub per_prefix: u16,
    /// In a second.
    pub per_second: u32,
}

/// What became of connections, since the listener was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionTally {
    /// Taken.
    pub taken: u64,
    /// Closed at once, being more than the caps allow.
    pub over_caps: u64,
    /// Closed for a length that no message has.
    pub malformed: u64,
    /// Closed, having had no open session for 5 s.
    pub without_session: u64,
    /// Closed with half a message or an untaken reply.
    pub stuck: u64,
}
