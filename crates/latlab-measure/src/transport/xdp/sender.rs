//! The sender's end of a path below the network stack.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use latlab_sys::bpf::{Map, MapKind};
use latlab_sys::socket;
use latlab_sys::xdp::XdpSocket;

use super::headers::{Flow, HeaderTemplate, MOST_HEADER_BYTES};
use super::program::Match;
use super::queue::{XdpQueue, payload_bytes_max};
use super::route;
use crate::plan::PathSpec;
use crate::transport::error::TransportError;
use crate::transport::interface::{BurstTransport, OpenPath, Packets, PathReport, PathTransport, Transport};
use crate::transport::udp::UdpTransport;
use crate::transport::wait::WaitStrategy;
use crate::units::Nanos;

const FIRST_FRAMES: u32 = 256;

/// A UDP flow that passes the network stack by: its packets are written to and read from frames of an AF_XDP socket.
#[derive(Debug)]
pub struct XdpTransport {
    queue: XdpQueue,
    headers: HeaderTemplate,
    wait: WaitStrategy,
    path: OpenPath,
    /// Reserves address and port, so that the kernel gives them to no other socket and refuses no packet to them.
    reserved: UdpTransport,
}

impl XdpTransport {
    /// Opens the path to `peer`.
    ///
    /// # Errors
    /// As [`UdpTransport::open`]; a permission is missing, the queue does not exist or is in use, or the next hop has no
    /// hardware address.
    pub fn open(path: &PathSpec, peer: SocketAddr, wait: WaitStrategy) -> Result<XdpTransport, TransportError> {
        let reserved = UdpTransport::open(path, peer, WaitStrategy::Spin)?;
        let local = reserved.local_address();
        route::refuse_ipv4_loopback(local.ip())?;
        let (interface, peer_hardware) = route::towards(local.ip(), peer)?;
        let flow = Flow { local, peer, local_hardware: interface.hardware, peer_hardware };
        let headers = HeaderTemplate::new(&flow, path.dscp.unwrap_or(0));
        let spec = path.xdp.unwrap_or_default();
        let steered = Match { to: local, from: Some(peer) };
        let queue = XdpQueue::open(&interface, spec.queue, &steered, wait.busy_polls(), FIRST_FRAMES)?;
        let unfragmented_bytes = Some(payload_bytes_max(&interface, peer));
        let path = OpenPath { local, peer, unfragmented_bytes, send_buffer_bytes: None };
        Ok(XdpTransport { queue, headers, wait, path, reserved })
    }

    /// Why this process may open no such path, as far as the kernel says before one is opened; `None` if it may.
    pub fn refusal() -> Option<io::Error> {
        let refused = Map::new(MapKind::XdpSockets, 4, 1).err();
        refused.filter(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// The socket, for the bare loop and for more frames.
    pub const fn socket_mut(&mut self) -> &mut XdpSocket {
        self.queue.socket_mut()
    }

    /// A whole packet with `payload`.
    pub fn packet_of(&self, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; MOST_HEADER_BYTES + payload.len()];
        let bytes = self.headers.write(&mut packet, payload);
        packet.truncate(bytes);
        packet
    }
}

impl Transport for XdpTransport {
    #[inline]
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let XdpTransport { queue, headers, .. } = self;
        queue.send(|frame| headers.write(frame, message))
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        self.queue.receive(self.wait, max_wait, |datagram| {
            let bytes = datagram.payload.len().min(buffer.len());
            buffer[..bytes].copy_from_slice(&datagram.payload[..bytes]);
            Some(bytes)
        })
    }

    fn report(&self) -> PathReport {
        PathReport {
            socket_drops: self.queue.drops(),
            xdp: Some(self.queue.facts().clone()),
            is_at_other_queue: socket::has_queued(self.reserved.as_fd()).unwrap_or(false),
            ..self.reserved.report()
        }
    }
}

impl BurstTransport for XdpTransport {
    #[inline]
    fn burst(&mut self, packets: Packets<'_>) -> io::Result<usize> {
        let XdpTransport { queue, headers, .. } = self;
        let mut taken = 0;
        for packet in packets.iter() {
            match queue.queue(|frame| headers.write(frame, packet)) {
                Err(error) if taken == 0 => {
                    // Frames come back when the kernel has sent what is queued.
                    queue.flush()?;
                    return Err(error);
                }
                Err(_) => break,
                Ok(()) => taken += 1,
            }
        }
        queue.flush()?;
        Ok(taken)
    }
}

impl PathTransport for XdpTransport {
    fn path(&self) -> OpenPath {
        self.path
    }
}
