//! UDP packets past the network stack: frames in the memory of this process, at one queue of an interface (AF_XDP;
//! docs/design/0024-xdp.md). On the wire they are those of `udp.rs`.

mod assembler;
mod driver;
mod headers;
mod program;
mod queue;
mod reflector;
mod route;
mod sender;
mod slot;

pub(super) use driver::DriverAnswers;
pub(crate) use queue::frame_payload_bytes;
pub use reflector::XdpReflector;
pub use sender::XdpTransport;
