//! The reflector's socket: datagrams from anybody, each answered from the address that was asked.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use latlab_sys::address::{self, Address};
use latlab_sys::datagram::{self, Envelope};
use latlab_sys::{readiness, socket};

use super::batch_receiver::BatchBuffer;
use super::refusal::TransportError;
use super::udp::{family_of, is_interruption, setting, settle_buffers};
use crate::plan::{WaitMode, defaults};
use crate::units::Nanos;
use crate::wire::StreamTerms;

/// A UDP socket bound to one local address, or to all of them.
///
/// Bound to one address it costs `recvfrom` and `sendto` per datagram. Bound to all it uses `recvmsg` and
/// `sendmsg`, since on a host with several addresses an answer could otherwise leave from another one than
/// was asked, and a connected sender would not hear it. Connected to the only sender that it will ever have,
/// it costs `recv` and `send`, and the kernel looks up neither socket nor route for each datagram.
#[derive(Debug)]
pub struct UdpReflector {
    socket: OwnedFd,
    local: SocketAddr,
    spins: bool,
    settles: bool,
    hears: Hears,
    adapted: StreamTerms,
    merged: bool,
    receive_buffer_bytes: u32,
}

/// From whom datagrams come.
#[derive(Debug)]
enum Hears {
    /// Anybody who writes to the one local address.
    Anybody,
    /// Anybody who writes to any local address: the last datagram's two ends.
    Everywhere(Envelope),
    /// One sender, to whom the socket is connected.
    Only(SocketAddr),
}

impl UdpReflector {
    /// Binds to `local`; port 0: the kernel's choice. `[::]` takes IPv4 as well.
    ///
    /// # Errors
    /// The port is taken, the address is not ours, a right is missing, busy polling is not to be had.
    pub fn bind(local: SocketAddr, wait: WaitMode) -> Result<UdpReflector, TransportError> {
        let family = address::Family::of(&local);
        let owned =
            socket::udp(family).map_err(|source| TransportError::Socket { family: family_of(&local), source })?;
        let fd = owned.as_fd();
        let wildcard = local.ip().is_unspecified();
        if local.is_ipv6() {
            socket::set_ipv6_only(fd, !wildcard).map_err(setting("IPv6 only", !wildcard))?;
        }
        if wildcard {
            socket::tell_local_address(fd, family).map_err(setting("packet information", "on"))?;
        }
        let nap = defaults::NAP.0;
        socket::set_receive_timeout(fd, nap).map_err(setting("the receive time-out", nap))?;
        socket::set_send_timeout(fd, nap).map_err(setting("the send time-out", nap))?;
        let receive_buffer_bytes = settle_buffers(fd, wait == WaitMode::BusyPoll)?;
        socket::bind(fd, local).map_err(|source| TransportError::Bind { local, source })?;
        let local = socket::local_address(fd).map_err(|source| TransportError::Bind { local, source })?;
        let hears = if wildcard { Hears::Everywhere(Envelope::empty()) } else { Hears::Anybody };
        Ok(UdpReflector {
            socket: owned,
            local,
            spins: wait == WaitMode::Spin,
            settles: false,
            hears,
            adapted: StreamTerms::NONE,
            merged: false,
            receive_buffer_bytes,
        })
    }

    /// Binds to every address of both families, or of IPv4 alone where the host has no IPv6.
    ///
    /// # Errors
    /// As [`UdpReflector::bind`].
    pub fn bind_everywhere(port: u16, wait: WaitMode) -> Result<UdpReflector, TransportError> {
        match UdpReflector::bind((Ipv6Addr::UNSPECIFIED, port).into(), wait) {
            Err(error) if error.lacks_family() => UdpReflector::bind((Ipv4Addr::UNSPECIFIED, port).into(), wait),
            answer => answer,
        }
    }

    /// Where the socket is bound, with the port that the kernel chose.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// For a reflector that answers one sender in all its life: once told who that is, it is connected to it.
    #[must_use]
    pub fn for_one_sender(self) -> UdpReflector {
        UdpReflector { settles: true, ..self }
    }

    /// Told that `peer` has a session and nobody else can get one. A socket that cannot be connected goes on
    /// hearing anybody: that costs time, not answers.
    pub fn hear_only(&mut self, peer: SocketAddr) {
        let settles = self.settles && matches!(self.hears, Hears::Anybody);
        if settles && socket::connect(self.socket.as_fd(), peer).is_ok() {
            self.hears = Hears::Only(peer);
        }
    }

    /// Datagrams that the kernel threw away at this socket, modulo 2^32, where it says.
    pub fn socket_drops(&self) -> Option<u64> {
        socket::drops(self.socket.as_fd()).ok().map(u64::from)
    }

    /// The receive buffer that the kernel gave, in bytes, its own bookkeeping included.
    pub const fn receive_buffer_bytes(&self) -> u32 {
        self.receive_buffer_bytes
    }

    /// What it can do for streams.
    pub const fn abilities(&self) -> StreamTerms {
        StreamTerms { batched: true, unchecked: true }
    }

    /// Told what the open sessions need: as soon as one of them is a stream, datagrams are received many at a time and may
    /// come merged; when none is any more, one by one.
    pub fn adapt(&mut self, needs: StreamTerms) {
        if needs == self.adapted {
            return;
        }
        let fd = self.socket.as_fd();
        // A kernel before 5.0 merges nothing: batches are then a little dearer, and no less right.
        let _ = socket::set_merging(fd, needs.batched);
        if self.local.is_ipv6() {
            // Where that is refused the packets are dropped, and show as lost.
            let _ = socket::take_unchecked(fd, needs.unchecked);
        }
        self.adapted = needs;
    }

    /// Whether datagrams are to be received many at a time.
    #[inline]
    pub const fn batches(&self) -> bool {
        self.adapted.batched
    }

    /// Whether merged buffers came: then the kernel counts drops in those.
    pub const fn has_merged(&self) -> bool {
        self.merged
    }

    /// Takes what is there into `room`, and says how many buffers came; otherwise as [`UdpReflector::receive`].
    ///
    /// # Errors
    /// The socket broke.
    #[inline]
    pub fn receive_many(&mut self, room: &mut BatchBuffer) -> io::Result<usize> {
        match room.fill(self.socket.as_fd(), self.spins) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interruption(&error) => Ok(0),
            received => received,
        }
    }

    /// Told that what is judged next was sent to `local` and came `merged`: from there the answer leaves.
    #[inline]
    pub fn turn_to(&mut self, local: Option<IpAddr>, merged: bool) {
        self.merged |= merged;
        if let Hears::Everywhere(envelope) = &mut self.hears {
            envelope.local = local;
        }
    }

    /// Takes one datagram: its length and its sender, an IPv4 one in IPv4's own form.
    ///
    /// `None`: nothing came within 100 ms, or at once where the socket spins, or a signal came.
    ///
    /// # Errors
    /// The socket broke.
    #[inline]
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        let fd = self.socket.as_fd();
        let received = match (&mut self.hears, self.spins) {
            (Hears::Only(peer), false) => datagram::receive(fd, buffer).map(|bytes| Some((bytes, *peer))),
            (Hears::Only(peer), true) => datagram::receive_now(fd, buffer).map(|bytes| Some((bytes, *peer))),
            (Hears::Anybody, spins) => receive_from(fd, buffer, spins),
            (Hears::Everywhere(envelope), spins) => receive_envelope(fd, buffer, envelope, spins),
        };
        match received {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interruption(&error) => Ok(None),
            received => received,
        }
    }

    /// The same, waiting no longer than `patience`: to the nanosecond, whatever the time-out of the receive call is.
    ///
    /// # Errors
    /// The socket broke.
    #[inline]
    pub fn receive_within(&mut self, buffer: &mut [u8], patience: Nanos) -> io::Result<Option<(usize, SocketAddr)>> {
        let patience = patience.min(defaults::NAP);
        if !self.spins && patience > Nanos::ZERO {
            match readiness::readable_within(self.socket.as_fd(), patience.0) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if is_interruption(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let spins = std::mem::replace(&mut self.spins, true);
        let received = self.receive(buffer);
        self.spins = spins;
        received
    }

    /// To which address of ours the last datagram was sent, where the socket is bound to all of them.
    pub fn asked_at(&self) -> Option<IpAddr> {
        match &self.hears {
            Hears::Everywhere(envelope) => envelope.local,
            Hears::Anybody | Hears::Only(_) => None,
        }
    }

    /// Sends to `peer`. On a socket bound to every address the datagram leaves from the one to which the
    /// last received datagram was sent, so an answer goes out before the next question is taken.
    ///
    /// # Errors
    /// The kernel refused this datagram.
    #[inline]
    pub fn reply(&mut self, datagram: &[u8], peer: SocketAddr) -> io::Result<()> {
        let fd = self.socket.as_fd();
        match &self.hears {
            Hears::Only(_) => datagram::send(fd, datagram),
            Hears::Anybody => datagram::send_to(fd, datagram, &peer.into()),
            Hears::Everywhere(asked) => {
                let peer = if self.local.is_ipv6() { mapped(peer) } else { peer };
                datagram::send_envelope(fd, datagram, &Envelope { peer: peer.into(), local: asked.local })
            }
        }
        .map(drop)
    }
}

/// One datagram and who sent it.
#[inline]
fn receive_from(fd: BorrowedFd<'_>, buffer: &mut [u8], spins: bool) -> io::Result<Option<(usize, SocketAddr)>> {
    let mut peer = Address::empty();
    let bytes = if spins {
        datagram::receive_from_now(fd, buffer, &mut peer)
    } else {
        datagram::receive_from(fd, buffer, &mut peer)
    }?;
    Ok(peer.to_socket_addr().map(|peer| (bytes, plain(peer))))
}

/// One datagram, who sent it, and which address was asked.
fn receive_envelope(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
    envelope: &mut Envelope,
    spins: bool,
) -> io::Result<Option<(usize, SocketAddr)>> {
    let bytes = if spins {
        datagram::receive_envelope_now(fd, buffer, envelope)
    } else {
        datagram::receive_envelope(fd, buffer, envelope)
    }?;
    Ok(envelope.peer.to_socket_addr().map(|peer| (bytes, plain(peer))))
}

impl AsFd for UdpReflector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An IPv4 sender on an IPv6 socket is `::ffff:a.b.c.d` (RFC 4291, section 2.5.5.2); to everybody above it is IPv4.
pub(super) fn plain(peer: SocketAddr) -> SocketAddr {
    match peer.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::from((ip, peer.port())),
        IpAddr::V6(_) => peer,
    }
}

/// The way back of [`plain`].
fn mapped(peer: SocketAddr) -> SocketAddr {
    match peer.ip() {
        IpAddr::V4(ip) => SocketAddr::from((ip.to_ipv6_mapped(), peer.port())),
        IpAddr::V6(_) => peer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::PathSpec;
    use crate::transport::Transport;
    use crate::transport::udp::{UdpTransport, WaitStrategy};

    /// Asks until something comes: waits are bounded by the naps of both ends.
    fn patiently<T>(mut ask: impl FnMut() -> io::Result<Option<T>>) -> T {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        loop {
            if let Some(answer) = ask().expect("the socket works") {
                return answer;
            }
            assert!(std::time::Instant::now() < deadline, "nothing came");
        }
    }

    fn round_trip(reflector: &mut UdpReflector, peer: SocketAddr, waiting: WaitStrategy) {
        let mut sender = UdpTransport::open(&PathSpec::SYSTEM, peer, waiting).expect("a path");
        let mut buffer = [0; 64];
        sender.send(b"probe").expect("sent");
        let (bytes, from) = patiently(|| reflector.receive(&mut buffer));
        assert_eq!((&buffer[..bytes], from), (&b"probe"[..], sender.local_address()));
        reflector.reply(b"answer", from).expect("replied");
        // A connected sender hears nothing that comes from another address than it asked.
        let bytes = patiently(|| sender.receive(&mut buffer, Nanos::from_millis(50)));
        assert_eq!(&buffer[..bytes], b"answer");
    }

    const WAITINGS: [WaitStrategy; 3] = [
        WaitStrategy::Sleep { nap: Some(Nanos::from_millis(50)), busy_poll: false },
        WaitStrategy::Until { busy_poll: false },
        WaitStrategy::Spin,
    ];

    #[test]
    fn every_way_of_waiting_brings_the_answer() {
        for wait in [WaitMode::Block, WaitMode::Spin] {
            let mut reflector = UdpReflector::bind(([127, 0, 0, 1], 0).into(), wait).expect("a port");
            let peer = reflector.local_address();
            for waiting in WAITINGS {
                round_trip(&mut reflector, peer, waiting);
            }
        }
    }

    #[test]
    fn bound_everywhere_it_answers_from_the_address_that_was_asked() {
        for wait in [WaitMode::Block, WaitMode::Spin] {
            let mut reflector = UdpReflector::bind_everywhere(0, wait).expect("a port");
            let port = reflector.local_address().port();
            round_trip(&mut reflector, ([127, 0, 0, 1], port).into(), WaitStrategy::Spin);
            round_trip(&mut reflector, ([127, 0, 0, 77], port).into(), WaitStrategy::Until { busy_poll: false });
            if reflector.local_address().is_ipv6() && std::net::UdpSocket::bind("[::1]:0").is_ok() {
                round_trip(&mut reflector, (Ipv6Addr::LOCALHOST, port).into(), WaitStrategy::Spin);
            }
            let mut reflector = UdpReflector::bind((Ipv4Addr::UNSPECIFIED, 0).into(), wait).expect("a port");
            let port = reflector.local_address().port();
            round_trip(&mut reflector, ([127, 0, 0, 78], port).into(), WaitStrategy::Spin);
        }
    }

    #[test]
    fn connected_it_answers_its_only_sender_and_hears_nobody_else() {
        for wait in [WaitMode::Block, WaitMode::Spin] {
            let reflector = UdpReflector::bind(([127, 0, 0, 1], 0).into(), wait).expect("a port");
            let mut reflector = reflector.for_one_sender();
            let peer = reflector.local_address();
            let mut sender = UdpTransport::open(&PathSpec::SYSTEM, peer, WaitStrategy::Spin).expect("a path");
            reflector.hear_only(sender.local_address());
            let stranger = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
            stranger.send_to(b"stranger", peer).expect("sent");
            let mut buffer = [0; 64];
            sender.send(b"probe").expect("sent");
            let (bytes, from) = patiently(|| reflector.receive(&mut buffer));
            assert_eq!((&buffer[..bytes], from), (&b"probe"[..], sender.local_address()));
            reflector.reply(b"answer", from).expect("replied");
            let bytes = patiently(|| sender.receive(&mut buffer, Nanos::from_millis(50)));
            assert_eq!(&buffer[..bytes], b"answer");
        }
    }

    #[test]
    fn a_taken_port_is_refused_with_its_number() {
        let reflector = UdpReflector::bind(([127, 0, 0, 1], 0).into(), WaitMode::Block).expect("a port");
        let local = reflector.local_address();
        let error = UdpReflector::bind(local, WaitMode::Block).expect_err("the port is taken");
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains(&local.to_string()));
        assert_eq!(error.cause().as_deref(), Some("address already in use (EADDRINUSE)"));
        assert!(error.hint().expect("a hint").contains(&local.port().to_string()));
    }
}
