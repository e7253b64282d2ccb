//! Sockets below the network stack (AF_XDP): packets are frames in memory that process and kernel share, and change their
//! owner by rings. [AF_XDP](https://docs.kernel.org/networking/af_xdp.html)

mod memory;
mod ring;
mod socket;

pub use memory::{Frame, Received};
pub use socket::{CopyMode, HEADROOM_BYTES, XdpDrops, XdpSocket};
