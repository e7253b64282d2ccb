//! The reflector's end below the network stack: an AF_XDP socket at the interface that has its address.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use latlab_sys::xdp::XdpSocket;

use super::headers::{Flow, Hardware, HeaderTemplate};
use super::program::Match;
use super::queue::XdpQueue;
use super::route;
use crate::facts::XdpFacts;
use crate::plan::{WaitMode, defaults};
use crate::transport::error::TransportError;
use crate::transport::interface::{ReflectorSocket, SocketReport};
use crate::transport::wait::WaitStrategy;
use crate::units::Nanos;

/// Frames for a tenth of a second of 5,000 packets a second.
const FIRST_FRAMES: u32 = 512;

/// Datagrams to one address and port, from any sender, that pass the network stack by.
#[derive(Debug)]
pub struct XdpReflector {
    queue: XdpQueue,
    wait: WaitStrategy,
    local: SocketAddr,
    local_hardware: Hardware,
    /// The sender of the last datagram, and the headers of answers to it.
    newest: Option<(Flow, HeaderTemplate)>,
    /// Reserves address and port, so that the kernel gives them to no other socket.
    _reserved: UdpSocket,
}

impl XdpReflector {
    /// Answers at `local`; port 0: the kernel's choice.
    ///
    /// # Errors
    /// The address is not that of one interface, the port is in use, a permission is missing, or the queue does not exist or
    /// is in use.
    pub fn bind(local: SocketAddr, wait: WaitMode, queue: u32) -> Result<XdpReflector, TransportError> {
        let bind_error = |source| TransportError::Bind { local, source };
        route::refuse_ipv4_loopback(local.ip())?;
        let reserved = UdpSocket::bind(local).map_err(bind_error)?;
        let local = reserved.local_addr().map_err(bind_error)?;
        let interface = route::holding(local.ip()).map_err(bind_error)?;
        let wait = WaitStrategy::of_stream(wait);
        let steered = Match { to: local, from: None };
        let queue = XdpQueue::open(&interface, queue, &steered, wait.busy_polls(), FIRST_FRAMES)?;
        let local_hardware = interface.hardware;
        Ok(XdpReflector { queue, wait, local, local_hardware, newest: None, _reserved: reserved })
    }

    /// The address, with the port that the kernel chose.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// The socket, for the bare loop.
    pub(crate) const fn socket_mut(&mut self) -> &mut XdpSocket {
        self.queue.socket_mut()
    }

    /// Interface, queue and mode.
    pub const fn facts(&self) -> &XdpFacts {
        self.queue.facts()
    }
}

impl ReflectorSocket for XdpReflector {
    #[inline]
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        self.receive_within(buffer, defaults::NAP)
    }

    #[inline]
    fn receive_within(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<(usize, SocketAddr)>> {
        let XdpReflector { queue, wait, newest, local, local_hardware, .. } = self;
        queue.receive(*wait, max_wait, |datagram| {
            let bytes = datagram.payload.len();
            buffer.get_mut(..bytes)?.copy_from_slice(datagram.payload);
            let flow = Flow {
                local: *local,
                peer: datagram.from,
                local_hardware: *local_hardware,
                peer_hardware: datagram.from_hardware,
            };
            if newest.as_ref().is_none_or(|(known, _)| *known != flow) {
                *newest = Some((flow, HeaderTemplate::new(&flow, 0)));
            }
            Some((bytes, datagram.from))
        })
    }

    /// Answers go to the host from which the last datagram came.
    #[inline]
    fn reply(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        let XdpReflector { queue, newest, .. } = self;
        let (_, headers) = newest.as_ref().filter(|(flow, _)| flow.peer == to).ok_or(io::ErrorKind::NotConnected)?;
        queue.send(|frame| headers.write(frame, datagram))
    }

    fn report(&self) -> SocketReport {
        SocketReport { drops: self.queue.drops(), ..SocketReport::default() }
    }
}
