//! A run below the network stack: the queue of each end, and what answers there (docs/xdp.md).

use serde::{Deserialize, Serialize};

use super::transport::TransportKind;

/// How packets pass the network stack by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct XdpSpec {
    /// The queue of the sender's interface, if the sender has an AF_XDP socket.
    pub queue: u32,
    /// What answers, if latlab starts the reflector.
    pub reflect: Reflect,
    /// The queue of the reflector's interface, if the reflector has an AF_XDP socket.
    pub peer_queue: u32,
}

crate::worded! {
    /// What answers probes at the other end.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Reflect: word {
        #[default]
        Socket = "socket",
        Xdp = "xdp",
        /// A program in the network driver, in front of a UDP socket.
        XdpTx = "xdp-tx",
    }
}

impl Reflect {
    /// The transport of the reflector's socket: on the wire all are UDP.
    pub const fn transport(self) -> TransportKind {
        match self {
            Reflect::Socket | Reflect::XdpTx => TransportKind::Udp,
            Reflect::Xdp => TransportKind::Xdp,
        }
    }
}
