//! The network of a host: the interface of the measured path, limits of sockets, and TCP connections.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// The network. Null: [`super::HostFacts::unknown`] has the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkFacts {
    /// The interface of the measured path.
    pub interface: Option<InterfaceFacts>,
    /// The largest receive buffer of a socket (`net.core.rmem_max`).
    pub receive_buffer_maximum_bytes: Option<u64>,
    /// The default receive buffer of a socket (`net.core.rmem_default`).
    pub receive_buffer_default_bytes: Option<u64>,
    /// The largest send buffer of a socket (`net.core.wmem_max`).
    pub send_buffer_maximum_bytes: Option<u64>,
    /// The default send buffer of a socket (`net.core.wmem_default`).
    pub send_buffer_default_bytes: Option<u64>,
    /// Length of the receive queue of a CPU (`net.core.netdev_max_backlog`).
    pub backlog_packets: Option<u64>,
    /// How long poll(2) and select(2) poll the driver (`net.core.busy_poll`); 0: not at all.
    pub busy_poll_us: Option<u64>,
    /// How long receive calls poll the driver by default (`net.core.busy_read`).
    pub busy_read_us: Option<u64>,
}

/// One interface. Null: [`super::HostFacts::unknown`] has the reason under `network.interface.…`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterfaceFacts {
    /// Name in its network namespace.
    pub name: String,
    /// Kind of a virtual interface: `veth`, `bridge`; null for a device and for loopback.
    pub kind: Option<String>,
    /// `up`, `down`, `unknown` (loopback) or another state of RFC 2863.
    pub state: Option<String>,
    pub mtu_bytes: Option<u32>,
    pub qdisc: Option<String>,
    /// Length of its transmit queue.
    pub transmit_queue_packets: Option<u32>,
    pub driver: Option<Driver>,
    pub speed_mbit_per_s: Option<u32>,
    pub ring: Option<RingSizes>,
    pub coalescing: Option<Coalescing>,
    pub channels: Option<Channels>,
    pub stamping: Option<Stamping>,
    /// Offload features that are on or can be switched on, by the name that the kernel gives them.
    pub offloads: Option<BTreeMap<String, bool>>,
    /// What its driver can do past the network stack.
    pub xdp: Option<XdpAbilities>,
    /// The number of the XDP program that is attached; null: none is.
    pub xdp_program: Option<u32>,
}

/// What a driver can do for XDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdpAbilities {
    /// It runs programs; if not, the network stack does (generic XDP).
    pub native: bool,
    /// Its device writes into the memory of AF_XDP sockets; if not, packets are copied.
    pub zero_copy: bool,
    /// Queues that can be polled; absent: the kernel does not say (before Linux 6.8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polled_queues: Option<u32>,
    /// Whether all of these keep interrupts off meanwhile; absent: there is none, or the kernel does not say (before Linux 6.13).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defers_interrupts: Option<bool>,
}

/// The driver of an interface; a field that the driver does not report is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    pub name: String,
    pub version: String,
    pub firmware: String,
    /// Bus address of the device.
    pub bus: String,
}

/// Descriptors in the rings of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingSizes {
    pub receive: u32,
    pub receive_maximum: u32,
    pub transmit: u32,
    pub transmit_maximum: u32,
}

/// Interrupt coalescing of a device (`ethtool -c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coalescing {
    /// Longest delay of an interrupt after a received frame.
    pub receive_us: u32,
    /// Received frames that end the delay.
    pub receive_frames: u32,
    /// Longest delay of an interrupt after a sent frame.
    pub transmit_us: u32,
    /// Sent frames that end the delay.
    pub transmit_frames: u32,
    /// Whether the driver adapts the receive figures.
    pub adaptive_receive: bool,
    /// Whether the driver adapts the transmit figures.
    pub adaptive_transmit: bool,
}

/// Queues of a device (`ethtool -l`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    pub receive: u32,
    pub transmit: u32,
    pub combined: u32,
}

/// Timestamping capabilities of an interface (`ethtool -T`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamping {
    /// By the driver, when it passes a packet to the device.
    pub transmit_software: bool,
    /// By the kernel, when it takes a packet from the driver.
    pub receive_software: bool,
    /// By the device, when a packet leaves.
    pub transmit_hardware: bool,
    /// By the device, when a packet arrives.
    pub receive_hardware: bool,
}

/// The DDS participant of the sender, and what several flows of a run found together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DdsFacts {
    /// Name and version of the DDS library.
    pub implementation: String,
    /// The time from joining the domain until the writers and readers of both ends knew each other, of the flow that took
    /// longest.
    pub discovery_ns: Nanos,
    /// The value of `CYCLONEDDS_URI`; null if it is not set.
    pub environment: Option<String>,
    /// The effective settings of the library that are not its defaults, in its own words.
    pub configuration: Vec<String>,
    /// Samples that the library reported lost (SAMPLE_LOST), over all flows: of both directions those of answers.
    pub samples_lost: u64,
    /// What the library warned of, 100 messages at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl DdsFacts {
    /// The facts of several flows, which have one participant.
    pub fn together(first: Option<DdsFacts>, next: Option<DdsFacts>) -> Option<DdsFacts> {
        match (first, next) {
            (Some(first), Some(next)) => Some(DdsFacts {
                discovery_ns: first.discovery_ns.max(next.discovery_ns),
                samples_lost: first.samples_lost + next.samples_lost,
                // Those of the process: the last flow has read all of them.
                ..next
            }),
            (first, next) => first.or(next),
        }
    }
}

/// How packets of one end pass the network stack by (XDP).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct XdpFacts {
    pub interface: String,
    /// The queue of the AF_XDP socket; null if a program answers, which runs at every queue.
    pub queue: Option<u32>,
    /// Whether the program runs in the driver; if not, in the network stack (generic XDP).
    pub native: bool,
    /// Whether the device writes into the memory of the process; if not, packets are copied.
    pub zero_copy: bool,
}

/// How packets of both ends pass the network stack by; `None` at an end with a socket of the stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct XdpEnds {
    /// The AF_XDP socket of the sender.
    pub sender: Option<XdpFacts>,
    /// The AF_XDP socket of the reflector, or its program that answers; `None` too if latlab did not start the reflector.
    pub reflector: Option<XdpFacts>,
}

impl XdpEnds {
    /// Whether both ends have sockets of the network stack.
    pub fn is_empty(&self) -> bool {
        *self == XdpEnds::default()
    }
}

/// The TCP connection of the sender (TCP_INFO), read at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionFacts {
    /// Congestion control algorithm, such as `cubic`; null if it could not be read.
    pub congestion_control: Option<String>,
    /// The maximum segment size of this end, in bytes of payload.
    pub send_segment_bytes: u32,
    /// Segments retransmitted by this end, over all connections of the run, set-up and warm-up included. Retransmissions of
    /// the other end are unknown here.
    pub retransmitted: u64,
}

impl ConnectionFacts {
    /// Combines two connections of one run: the first, with the retransmissions of both.
    pub fn together(first: Option<ConnectionFacts>, next: Option<ConnectionFacts>) -> Option<ConnectionFacts> {
        match (first, next) {
            (Some(first), Some(next)) => {
                Some(ConnectionFacts { retransmitted: first.retransmitted + next.retransmitted, ..first })
            }
            (first, next) => first.or(next),
        }
    }
}
