//! An AF_XDP socket at one queue of an interface, and the program that redirects one flow to it. Both end with the process.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use latlab_sys::bpf::{AttachMode, Link, Map, MapKind, Program};
use latlab_sys::xdp::{CopyMode, HEADROOM_BYTES, XdpSocket};
use latlab_sys::{connection, readiness};

use super::headers::{Datagram, ETHERNET_BYTES, header_bytes, parse};
use super::program::{Match, steering};
use super::route::EthernetInterface;
use crate::facts::XdpFacts;
use crate::plan::defaults;
use crate::transport::error::{TransportError, is_interrupted};
use crate::transport::wait::{WaitStep, WaitStrategy};
use crate::units::Nanos;

/// Frames of half a page hold what an Ethernet with the usual MTU carries, those of a page are the longest.
const FRAME_BYTES: [u32; 2] = [2_048, 4_096];
/// Where the program runs, and whether packets are copied.
#[derive(Clone, Copy, Debug)]
struct Way {
    attach: AttachMode,
    copy: CopyMode,
}

const ZERO_COPY: Way = Way { attach: AttachMode::Native, copy: CopyMode::ZeroCopy };
const NATIVE: Way = Way { attach: AttachMode::Native, copy: CopyMode::Copy };
const GENERIC: Way = Way { attach: AttachMode::Generic, copy: CopyMode::Copy };

/// Ways to receive, the fastest first. A virtual Ethernet pair passes packets on as the network stack has them, and makes
/// others of them for a program in its driver: a program in the network stack takes a fifth less of a round trip.
const fn ways(is_veth: bool) -> &'static [Way] {
    if is_veth { &[GENERIC, NATIVE] } else { &[ZERO_COPY, NATIVE, GENERIC] }
}

/// A spinning end calls so often without a packet, some tens of milliseconds, before it looks for an error.
const CALLS: u32 = 1 << 20;
/// The most packets that one call passes over, so that a flood of them does not keep the loop.
const PASSED_OVER_MAX: usize = 64;
/// A packet that the kernel does not take is tried again so often: in copy mode one call takes 32 packets at most.
const KICKS: usize = 64;

/// The most bytes of an IP packet that a frame carries.
pub(super) const PACKET_BYTES_MAX: u32 = FRAME_BYTES[1] - HEADROOM_BYTES - ETHERNET_BYTES as u32;

/// The frames of a socket: the length of each, and how many are for receiving at first.
#[derive(Clone, Copy, Debug)]
struct Frames {
    bytes: u32,
    first: u32,
}

/// The socket, its program, and how it receives.
#[derive(Debug)]
pub(super) struct XdpQueue {
    socket: XdpSocket,
    facts: XdpFacts,
    /// Of the program: the sockets by queue.
    _sockets: Map,
    _link: Link,
    polls: bool,
    /// The kernel may wait for a call before it receives, which its flag says: with zero copy, and where the driver is polled.
    wakes: bool,
    /// The interface is gone or down.
    is_gone: bool,
    /// Packets that were redirected but are no whole datagram with the right checksum.
    damaged: u64,
    /// Calls that may not sleep and whose first look found no packet.
    calls: u32,
}

impl XdpQueue {
    /// Redirects `flow` from `queue` of `interface` to a socket of this process.
    pub(super) fn open(
        interface: &EthernetInterface,
        queue: u32,
        flow: &Match,
        busy_polls: bool,
        first_frames: u32,
    ) -> Result<XdpQueue, TransportError> {
        let refused = |source| TransportError::Xdp { interface: interface.name.clone(), queue, source };
        let frames = Frames { bytes: frame_bytes(interface.mtu_bytes), first: first_frames };
        let mut last = None;
        for way in ways(interface.is_veth) {
            match attached(interface.index, queue, flow, *way, frames) {
                Ok((socket, sockets, link)) => {
                    if busy_polls {
                        socket.set_busy_poll(defaults::BUSY_POLL_US).map_err(refused)?;
                    }
                    let facts = facts(interface, queue, *way);
                    return Ok(XdpQueue {
                        socket,
                        facts,
                        _sockets: sockets,
                        _link: link,
                        polls: busy_polls,
                        wakes: busy_polls || way.copy == CopyMode::ZeroCopy,
                        is_gone: false,
                        damaged: 0,
                        calls: 0,
                    });
                }
                // Another way needs the same permission.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(refused(error)),
                Err(error) => last = Some(error),
            }
        }
        Err(refused(last.unwrap_or_else(|| io::ErrorKind::Unsupported.into())))
    }

    pub(super) const fn socket_mut(&mut self) -> &mut XdpSocket {
        &mut self.socket
    }

    pub(super) const fn facts(&self) -> &XdpFacts {
        &self.facts
    }

    /// Sends what `write` puts into a frame, whose length it returns.
    ///
    /// # Errors
    /// ENOBUFS: the kernel has not sent the earlier packets. The interface is down or gone.
    #[inline]
    pub(super) fn send(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        let queued = self.queue(write);
        // Frames come back when the kernel has sent what is queued.
        self.flush()?;
        queued
    }

    /// Puts a packet into the ring; it leaves at the next [`XdpQueue::flush`].
    #[inline]
    pub(super) fn queue(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> io::Result<()> {
        let frame = self.socket.free_frame();
        let mut frame = frame.ok_or_else(|| io::Error::from(rustix::io::Errno::NOBUFS))?;
        let bytes = write(self.socket.bytes_mut(&mut frame));
        self.socket.transmit(frame, bytes);
        Ok(())
    }

    /// Makes the kernel take everything that was queued.
    #[inline]
    pub(super) fn flush(&mut self) -> io::Result<()> {
        for _ in 0..KICKS {
            if let Err(error) = self.socket.kick() {
                self.is_gone |= means_gone(&error);
                return Err(error);
            }
            if self.socket.is_sent() {
                break;
            }
        }
        Ok(())
    }

    /// Takes the oldest datagram and returns what `read` makes of it; `None`: nothing is there. Damaged packets before it, and
    /// datagrams of which it makes nothing, are passed over, up to a limit.
    #[inline]
    pub(super) fn take<T>(&mut self, mut read: impl FnMut(&Datagram<'_>) -> Option<T>) -> Option<T> {
        for _ in 0..PASSED_OVER_MAX {
            let received = self.socket.receive()?;
            let datagram = parse(self.socket.packet(&received));
            self.damaged += u64::from(datagram.is_none());
            let taken = datagram.as_ref().and_then(&mut read);
            self.socket.give_back(received.into_frame());
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// Takes the oldest datagram and returns what `read` makes of it. If nothing is there it waits as `wait` says, for at most
    /// `max_wait`.
    ///
    /// # Errors
    /// The interface is gone: nothing can arrive any more.
    #[inline]
    pub(super) fn receive<T>(
        &mut self,
        wait: WaitStrategy,
        max_wait: Nanos,
        mut read: impl FnMut(&Datagram<'_>) -> Option<T>,
    ) -> io::Result<Option<T>> {
        if let Some(taken) = self.take(&mut read) {
            return Ok(Some(taken));
        }
        match self.wait(wait, max_wait) {
            Ok(true) => Ok(self.take(&mut read)),
            Ok(false) => Ok(None),
            Err(error) if is_interrupted(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits as `wait` says, for at most `max_wait`; `true`: something may be there.
    #[inline]
    fn wait(&mut self, wait: WaitStrategy, max_wait: Nanos) -> io::Result<bool> {
        if self.is_gone {
            return Err(rustix::io::Errno::NETDOWN.into());
        }
        let span = match wait.step(max_wait) {
            WaitStep::Receive => {
                self.calls = self.calls.wrapping_add(1);
                if self.calls.is_multiple_of(CALLS) {
                    self.check()?;
                }
                if self.wakes {
                    self.socket.wake(self.polls)?;
                }
                return Ok(max_wait > Nanos::ZERO && self.socket.spin());
            }
            WaitStep::SleepInReceive => max_wait.min(defaults::NAP),
            WaitStep::Poll(span) => span,
        };
        let is_readable = readiness::readable_within(self.socket.as_fd(), span.0)?;
        // A sender on a schedule waits less: a send call reports the error there.
        if !is_readable && span >= defaults::NAP {
            self.check()?;
        }
        Ok(is_readable)
    }

    /// Whether the interface is still there: the kernel wakes nothing up when it takes it away, and says so once.
    #[cold]
    fn check(&mut self) -> io::Result<()> {
        let checked = connection::take_error(self.socket.as_fd());
        self.is_gone |= checked.is_err();
        checked
    }

    /// Packets that were lost at the socket, damaged ones among them; `None` if the kernel does not say.
    pub(super) fn drops(&self) -> Option<u64> {
        self.socket.drops().ok().map(|drops| drops.ring_full + drops.other + self.damaged)
    }
}

impl AsFd for XdpQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether a send call says that the socket has lost its interface.
fn means_gone(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::NXIO | Errno::NETDOWN | Errno::NODEV))
}

/// Where programs run at `interface`, the fastest first.
pub(super) fn places(interface: &EthernetInterface) -> impl Iterator<Item = AttachMode> {
    ways(interface.is_veth).iter().filter(|way| way.copy == CopyMode::Copy).map(|way| way.attach)
}

/// Program, socket and map, in the order in which drivers accept them: a driver that copies nothing needs the program first.
fn attached(interface: u32, queue: u32, flow: &Match, way: Way, frames: Frames) -> io::Result<(XdpSocket, Map, Link)> {
    let sockets = Map::new(MapKind::XdpSockets, 4, queue + 1)?;
    let program = Program::load(&steering(flow, sockets.number()))?;
    let link = program.attach(interface, way.attach)?;
    let socket = XdpSocket::open(interface, queue, way.copy, frames.bytes, frames.first)?;
    sockets.set_socket(queue, socket.as_fd())?;
    Ok((socket, sockets, link))
}

fn frame_bytes(mtu_bytes: u32) -> u32 {
    let fits = |bytes: &u32| mtu_bytes + ETHERNET_BYTES as u32 + HEADROOM_BYTES <= *bytes;
    FRAME_BYTES.into_iter().find(fits).unwrap_or(FRAME_BYTES[1])
}

fn facts(interface: &EthernetInterface, queue: u32, way: Way) -> XdpFacts {
    XdpFacts {
        interface: interface.name.clone(),
        queue: Some(queue),
        native: way.attach == AttachMode::Native,
        zero_copy: way.copy == CopyMode::ZeroCopy,
    }
}

/// The most bytes of payload that an AF_XDP socket receives in one packet.
pub(crate) const fn frame_payload_bytes(ipv6: bool) -> u32 {
    PACKET_BYTES_MAX - (header_bytes(ipv6) - ETHERNET_BYTES) as u32
}

/// The most bytes of payload in one packet on `interface`.
pub(super) fn payload_bytes_max(interface: &EthernetInterface, peer: SocketAddr) -> u32 {
    let headers = header_bytes(peer.is_ipv6()) - ETHERNET_BYTES;
    (interface.mtu_bytes - headers as u32).min(frame_payload_bytes(peer.is_ipv6()))
}
