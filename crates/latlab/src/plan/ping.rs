//! What a ping run does on the network.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{ConcurrentWakeups, defaults};
use crate::plan::Schedule;
use crate::units::Nanos;

/// How datagrams travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportKind {
    /// Kernel UDP sockets.
    #[default]
    Udp,
    /// A TCP connection of the kernel's.
    Tcp,
}

impl TransportKind {
    /// Every transport, the default first.
    pub const ALL: [TransportKind; 2] = [TransportKind::Udp, TransportKind::Tcp];

    /// Whether it is what goes without saying.
    pub fn is_default(&self) -> bool {
        *self == TransportKind::default()
    }

    /// The word of `--transport`.
    pub const fn word(self) -> &'static str {
        match self {
            TransportKind::Udp => "udp",
            TransportKind::Tcp => "tcp",
        }
    }
}

/// What the datagrams say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// latlab's own session (docs/protocol.md).
    Native,
    /// A bare payload that any UDP echo returns unchanged.
    Echo,
}

/// Internet protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Family {
    /// The word in headings.
    pub const fn word(self) -> &'static str {
        match self {
            Family::Ipv4 => "ipv4",
            Family::Ipv6 => "ipv6",
        }
    }
}

/// How the datagrams leave this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSpec {
    /// The family asked for with `-4` or `-6`; none: what the target's name resolves to first.
    pub family: Option<Family>,
    /// Address of the far end, where an agent is reached by another way than probes shall take; none: the address that
    /// ssh reached, or the target's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_address: Option<IpAddr>,
    /// Local address to send from; none: the route's.
    pub bind_address: Option<IpAddr>,
    /// Interface to send through (SO_BINDTODEVICE); none: the route's.
    pub bind_interface: Option<String>,
    /// Local port; none: the kernel's choice.
    pub source_port: Option<u16>,
    /// Differentiated services code point, 0 to 63 (RFC 2474); none: the system's.
    pub dscp: Option<u8>,
    /// Forbid fragmentation on the path (IP_PMTUDISC_DO).
    pub dont_fragment: bool,
}

impl PathSpec {
    /// Everything as the system does it.
    pub const SYSTEM: PathSpec = PathSpec {
        family: None,
        peer_address: None,
        bind_address: None,
        bind_interface: None,
        source_port: None,
        dscp: None,
        dont_fragment: false,
    };
}

/// A ping run: round trips of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PingSpec {
    /// How datagrams travel.
    pub transport: TransportKind,
    /// What they say.
    pub protocol: Protocol,
    /// How they leave.
    pub path: PathSpec,
    /// Transport payload, both ways.
    pub size_bytes: u32,
    /// When they leave.
    pub schedule: Schedule,
    /// Answers after this are `late`.
    pub timeout_ns: Nanos,
    /// How far behind its schedule a sender may fall before due probes become `not_sent`.
    pub max_backlog_ns: Nanos,
    /// Threads that sleep beside the sender; none: none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_wakeup: Option<ConcurrentWakeups>,
}

impl PingSpec {
    /// A ping on `schedule` with every other thing at its default.
    pub const fn on(schedule: Schedule) -> PingSpec {
        PingSpec {
            transport: TransportKind::Udp,
            protocol: Protocol::Native,
            path: PathSpec::SYSTEM,
            size_bytes: defaults::SIZE_BYTES,
            schedule,
            timeout_ns: defaults::TIMEOUT,
            max_backlog_ns: defaults::MAX_BACKLOG,
            with_wakeup: None,
        }
    }
}
