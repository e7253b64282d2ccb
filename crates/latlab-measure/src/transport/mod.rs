//! Transport of messages between the two ends of a measurement. Sessions and measuring loops use only the traits in
//! `interface.rs` (docs/design/0003-transport-seam.md). Only `open.rs` lists the kinds of transport. Streams send and
//! receive many packets per call (docs/design/0014-stream.md). Messages over TCP are framed (docs/design/0016-tcp.md).

mod address;
mod connection_slot;
#[cfg(feature = "dds")]
pub mod dds;
#[cfg(feature = "dds")]
mod dds_reflector;
mod error;
mod frame;
mod interface;
mod open;
#[cfg(any(test, feature = "fixtures"))]
pub mod sim;
mod stamping;
mod tcp;
mod tcp_reflector;
mod udp;
mod udp_reflector;
mod wait;
mod xdp;

pub(crate) use address::prefix_of;
pub use address::{interface_address, resolve};
pub use connection_slot::{ConnectionCaps, ConnectionTally};
pub(crate) use error::explain_broken;
pub use error::{SendModeError, TransportError};
pub use frame::{InvalidLength, MessageDecoder, MessageEncoder};
pub use interface::{
    BatchBuffer, BurstTransport, ConnectionBytes, DriverCounts, DriverSession, OpenPath, Packets, PathReport,
    PathTransport, ReceivingThreads, ReflectorSocket, SenderBatch, SocketReport, Transport,
};
pub use open::{
    Bound, Dds, FamilyVisitor, ListenAddress, ListenOptions, PathOptions, Tcp, TransportFamily, Udp, Xdp, visit,
};
pub(crate) use stamping::stamp_cost_ns;
pub use tcp::TcpTransport;
pub use tcp_reflector::TcpReflector;
pub use udp::{UdpStream, UdpTransport};
pub(crate) use udp::{answering_instead, local_address_towards};
pub use udp_reflector::UdpReflector;
pub use wait::WaitStrategy;
pub(crate) use xdp::frame_payload_bytes;
pub use xdp::{XdpReflector, XdpTransport};
