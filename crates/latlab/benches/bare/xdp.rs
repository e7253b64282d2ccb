//! The bare loop past the network stack: a round trip with latlab's own system calls, rings and clock reads, between AF_XDP
//! sockets that are opened as for a run. No session, no checksums, no parsing, no recording: the sender copies one packet into
//! frames and copies answers out of them, the reflector exchanges addresses. Only the round-trip times are kept.

use std::hint::black_box;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use latlab_sys::clock::monotonic_ns;
use latlab_sys::readiness;
use latlab_sys::xdp::{Frame, Received, XdpSocket};

use latlab::measure::baseline::bare::Wait;
use latlab::plan::{PathSpec, WaitMode, defaults};
use latlab::transport::{PathTransport, TransportError, WaitStrategy, XdpReflector, XdpTransport};

const GIVE_UP_NS: i64 = 1_000_000_000;
/// The addresses in an Ethernet frame with UDP over IPv4, which an answer exchanges: where both are, and their length.
const ADDRESSES: [(usize, usize, usize); 3] = [(0, 6, 6), (26, 30, 4), (34, 36, 2)];

/// One end, over IPv4.
#[derive(Debug)]
pub(crate) enum BareXdp {
    Sender(Box<XdpTransport>),
    Reflector(Box<XdpReflector>),
}

impl BareXdp {
    /// The sender of a reflector at `peer`.
    pub(crate) fn connect(peer: SocketAddr) -> Result<BareXdp, TransportError> {
        XdpTransport::open(&PathSpec::SYSTEM, peer, WaitStrategy::Spin).map(Box::new).map(BareXdp::Sender)
    }

    /// The reflector at `local`; port 0: the kernel's choice.
    pub(crate) fn bind(local: SocketAddr) -> Result<BareXdp, TransportError> {
        XdpReflector::bind(local, WaitMode::Spin, 0).map(Box::new).map(BareXdp::Reflector)
    }

    /// The address of this end.
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            BareXdp::Sender(sender) => sender.path().local,
            BareXdp::Reflector(reflector) => reflector.local_address(),
        }
    }

    /// Sends `count` packets with `size` bytes of payload, each after the answer to the one before. Returns the round-trip
    /// times in ns.
    pub(crate) fn ping(&mut self, size: usize, wait: Wait, count: usize) -> io::Result<Vec<u32>> {
        let BareXdp::Sender(sender) = self else { return Err(io::ErrorKind::Unsupported.into()) };
        let packet = sender.packet_of(&vec![0x5a; size]);
        let socket = sender.socket_mut();
        let (mut answer, mut round_trips_ns) = (Vec::with_capacity(packet.len()), vec![u32::MAX; count]);
        for round_trip_ns in &mut round_trips_ns {
            let mut frame = free_frame(socket)?;
            let sent = monotonic_ns();
            socket.bytes_mut(&mut frame)[..packet.len()].copy_from_slice(&packet);
            send(socket, frame, packet.len())?;
            let received = loop {
                if let Some(received) = receive(socket, wait)? {
                    copy_out(socket.packet(&received), &mut answer);
                    *round_trip_ns = u32::try_from(monotonic_ns() - sent).unwrap_or(u32::MAX);
                    break received;
                }
                if monotonic_ns() - sent > GIVE_UP_NS {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            };
            socket.give_back(received.into_frame());
        }
        Ok(round_trips_ns)
    }

    /// Returns every packet to its sender.
    pub(crate) fn reflect(&mut self, wait: Wait) -> io::Result<()> {
        let BareXdp::Reflector(reflector) = self else { return Err(io::ErrorKind::Unsupported.into()) };
        let socket = reflector.socket_mut();
        loop {
            let Some(received) = receive(socket, wait)? else { continue };
            let mut frame = free_frame(socket)?;
            // For the two stamps of every answer.
            black_box(monotonic_ns());
            let bytes = socket.copy_packet(&received, &mut frame);
            exchange_addresses(&mut socket.bytes_mut(&mut frame)[..bytes]);
            socket.give_back(received.into_frame());
            black_box(monotonic_ns());
            send(socket, frame, bytes)?;
        }
    }
}

pub(crate) fn free_frame(socket: &mut XdpSocket) -> io::Result<Frame> {
    socket.free_frame().ok_or_else(|| rustix::io::Errno::NOBUFS.into())
}

pub(crate) fn send(socket: &mut XdpSocket, frame: Frame, bytes: usize) -> io::Result<()> {
    socket.transmit(frame, bytes);
    kick_all(socket)
}

/// Makes the kernel take everything that is queued.
pub(crate) fn kick_all(socket: &mut XdpSocket) -> io::Result<()> {
    socket.kick()?;
    while !socket.is_sent() {
        socket.kick()?;
    }
    Ok(())
}

pub(crate) fn receive(socket: &mut XdpSocket, wait: Wait) -> io::Result<Option<Received>> {
    let received = if wait != Wait::Spin || socket.spin() { socket.receive() } else { None };
    if received.is_none() && wait != Wait::Spin && readiness::readable_within(socket.as_fd(), defaults::NAP.0)? {
        return Ok(socket.receive());
    }
    Ok(received)
}

/// As a receive call does: without it the receiver would read no cache line of the packet.
pub(crate) fn copy_out(packet: &[u8], buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.extend_from_slice(packet);
    black_box(buffer);
}

pub(crate) fn exchange_addresses(packet: &mut [u8]) {
    for (one, other, bytes) in ADDRESSES {
        (0..bytes).for_each(|byte| packet.swap(one + byte, other + byte));
    }
}
