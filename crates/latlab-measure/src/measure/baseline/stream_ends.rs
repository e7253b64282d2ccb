//! Both ends of the bare stream, over UDP sockets or past the network stack.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;

use latlab_sys::socket;

use super::bare::Wait;
use super::bare_xdp::BareXdp;
use super::delivered::Delivered;
use super::{bare_receiver, bare_stream};
use crate::plan::{BareReceiver, SenderSocketOptions, TransportKind};

/// The receiver of a bare stream.
#[derive(Debug)]
pub enum BareCounter {
    /// A UDP socket, and how it is read.
    Udp(OwnedFd, BareReceiver),
    Xdp(BareXdp),
}

impl BareCounter {
    /// The receiver at `local`. With port 0 the kernel chooses one.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn bind(kind: TransportKind, local: SocketAddr, wait: Wait, receiver: BareReceiver) -> io::Result<BareCounter> {
        if kind == TransportKind::Xdp {
            return BareXdp::bind(local).map(BareCounter::Xdp).map_err(io::Error::other);
        }
        bare_receiver::bind(local, wait, receiver).map(|socket| BareCounter::Udp(socket, receiver))
    }

    /// Its address.
    ///
    /// # Errors
    /// The kernel's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match self {
            BareCounter::Udp(socket, _) => socket::local_address(socket.as_fd()),
            BareCounter::Xdp(end) => Ok(end.address()),
        }
    }

    /// Adds up received bytes, and answers requests for the sums, until `stop` is set.
    ///
    /// # Errors
    /// The socket failed.
    pub fn count(&mut self, wait: Wait, stop: &AtomicBool) -> io::Result<()> {
        match self {
            BareCounter::Udp(socket, receiver) => bare_receiver::count(socket, wait, *receiver, stop),
            BareCounter::Xdp(end) => end.count(wait, stop),
        }
    }
}

/// Sends packets of `size` bytes to `peer` for `span_ns`, as fast as the kernel takes them.
///
/// # Errors
/// The socket failed, or the receiver did not answer.
pub fn stream_bare(
    kind: TransportKind,
    peer: SocketAddr,
    sending: SenderSocketOptions,
    size: u32,
    span_ns: i64,
) -> io::Result<Delivered> {
    if kind == TransportKind::Xdp {
        let mut end = BareXdp::connect(peer).map_err(io::Error::other)?;
        return end.stream(size as usize, sending, span_ns);
    }
    bare_stream::send(peer, sending, size, span_ns)
}
