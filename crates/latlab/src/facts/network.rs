//! The network of a host: the interface that a path leaves through, and the limits of sockets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The network. Null: the reason stands in [`super::HostFacts::unknown`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkFacts {
    /// The interface of the path that is measured.
    pub interface: Option<InterfaceFacts>,
    /// The largest receive buffer that a socket may ask for (`net.core.rmem_max`).
    pub receive_buffer_maximum_bytes: Option<u64>,
    /// What it has without asking (`net.core.rmem_default`).
    pub receive_buffer_default_bytes: Option<u64>,
    /// The largest send buffer (`net.core.wmem_max`).
    pub send_buffer_maximum_bytes: Option<u64>,
    /// What it has without asking (`net.core.wmem_default`).
    pub send_buffer_default_bytes: Option<u64>,
    /// Packets that wait for one CPU at most (`net.core.netdev_max_backlog`).
    pub backlog_packets: Option<u64>,
    /// How long poll calls poll the driver (`net.core.busy_poll`); 0: they sleep.
    pub busy_poll_us: Option<u64>,
    /// How long receive calls poll the driver unless told otherwise (`net.core.busy_read`).
    pub busy_read_us: Option<u64>,
}

/// One interface. Null: the reason stands in [`super::HostFacts::unknown`] under `network.interface.…`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterfaceFacts {
    /// Its name in its namespace.
    pub name: String,
    /// What kind of virtual interface: `veth`, `bridge`; null for a device and for loopback.
    pub kind: Option<String>,
    /// `up`, `down`, `unknown` (loopback) or another state of RFC 2863.
    pub state: Option<String>,
    /// Largest packet.
    pub mtu_bytes: Option<u32>,
    /// How packets queue before they are sent.
    pub qdisc: Option<String>,
    /// Packets that may queue there.
    pub transmit_queue_packets: Option<u32>,
    /// Who drives it.
    pub driver: Option<Driver>,
    /// The link's rate.
    pub speed_mbit_per_s: Option<u32>,
    /// Receive and transmit descriptors.
    pub ring: Option<RingSizes>,
    /// How long the device collects before it interrupts.
    pub coalescing: Option<Coalescing>,
    /// Queues.
    pub channels: Option<Channels>,
    /// What can put a time on packets.
    pub stamping: Option<Stamping>,
    /// What device and driver do for the kernel, as far as it is on or could be: the kernel's name → whether on.
    pub offloads: Option<BTreeMap<String, bool>>,
}

/// Who drives an interface; empty where the driver does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// The driver's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The firmware's version.
    pub firmware: String,
    /// Where the device sits.
    pub bus: String,
}

/// How many frames the device's rings hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingSizes {
    /// Receive descriptors.
    pub receive: u32,
    /// Receive descriptors that there could be.
    pub receive_maximum: u32,
    /// Transmit descriptors.
    pub transmit: u32,
    /// Transmit descriptors that there could be.
    pub transmit_maximum: u32,
}

/// How long the device collects before it interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coalescing {
    /// Longest wait after a received frame.
    pub receive_us: u32,
    /// Received frames that end the wait.
    pub receive_frames: u32,
    /// Longest wait after a sent frame.
    pub transmit_us: u32,
    /// Sent frames that end the wait.
    pub transmit_frames: u32,
    /// Whether the driver changes the receive figures as it sees fit.
    pub adaptive_receive: bool,
    /// Whether it changes the transmit figures.
    pub adaptive_transmit: bool,
}

/// Queues that the device serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    /// That only receive.
    pub receive: u32,
    /// That only transmit.
    pub transmit: u32,
    /// That do both.
    pub combined: u32,
}

/// What can put a time on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamping {
    /// The driver, when it hands a packet to the device.
    pub transmit_software: bool,
    /// The kernel, when it takes a packet from the driver.
    pub receive_software: bool,
    /// The device, when a packet leaves.
    pub transmit_hardware: bool,
    /// The device, when a packet comes.
    pub receive_hardware: bool,
}
