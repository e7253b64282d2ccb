//! How messages travel between the two ends of a measurement. The traits in `seam.rs` are all that sessions and
//! measuring loops see of it (docs/design/0003-transport-seam.md); `open.rs` alone knows which kinds of transport exist.
//! Streams hand over many packets at a time (docs/design/0014-stream.md); messages over TCP are framed
//! (docs/design/0016-tcp.md).

mod address;
mod connection_slot;
mod error;
mod frame;
mod open;
mod seam;
pub mod sim;
mod tcp;
mod tcp_reflector;
mod udp;
mod udp_reflector;
mod wait;

pub use address::{prefix_of, resolve};
pub use connection_slot::{ConnectionCaps, ConnectionTally};
pub use error::{SendModeError, TransportError, explain_broken};
pub use frame::{InvalidLength, MessageDecoder, MessageEncoder};
pub use open::{Bound, FamilyVisitor, ListenAddress, ListenOptions, PathOptions, Tcp, TransportFamily, Udp, visit};
pub use seam::{
    BatchBuffer, BurstTransport, ConnectionBytes, OpenPath, Packets, PathReport, PathTransport, ReflectorSocket,
    SenderBatch, SocketReport, Transport,
};
pub use tcp::TcpTransport;
pub use tcp_reflector::TcpReflector;
pub use udp::{UdpStream, UdpTransport, local_address_towards};
pub use udp_reflector::UdpReflector;
pub use wait::WaitStrategy;
