//! The reflector's socket: datagrams from anybody, each answered from the address that was asked.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use latlab_sys::address::{self, Address};
use latlab_sys::datagram::{self, Envelope};
use latlab_sys::socket;

use super::refusal::TransportError;
use super::udp::{family_of, is_interruption, setting, settle_buffers};
use crate::plan::{WaitMode, defaults};

/// A UDP socket bound to one local address, or to all of them.
///
/// Bound to one address it costs `recvfrom` and `sendto` per datagram. Bound to all it uses `recvmsg` and
/// `sendmsg`, since on a host with several addresses an answer could otherwise leave from another one than
/// was asked, and a connected sender would not hear it.
#[derive(Debug)]
pub struct UdpReflector {
    socket: OwnedFd,
    local: SocketAddr,
    spins: bool,
    /// The last datagram's two ends; `None` on a socket bound to one address.
    envelope: Option<Envelope>,
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
        settle_buffers(fd, wait == WaitMode::BusyPoll)?;
        socket::bind(fd, local).map_err(|source| TransportError::Bind { local, source })?;
        let local = socket::local_address(fd).map_err(|source| TransportError::Bind { local, source })?;
        let envelope = wildcard.then(Envelope::empty);
        Ok(UdpReflector { socket: owned, local, spins: wait == WaitMode::Spin, envelope })
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

    /// Takes one datagram: its length and its sender, an IPv4 one in IPv4's own form.
    ///
    /// `None`: nothing came within 100 ms, or at once where the socket spins, or a signal came.
    ///
    /// # Errors
    /// The socket broke.
    #[inline]
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        let fd = self.socket.as_fd();
        let mut alone = Address::empty();
        let received = match (&mut self.envelope, self.spins) {
            (None, false) => datagram::receive_from(fd, buffer, &mut alone),
            (None, true) => datagram::receive_from_now(fd, buffer, &mut alone),
            (Some(envelope), false) => datagram::receive_envelope(fd, buffer, envelope),
            (Some(envelope), true) => datagram::receive_envelope_now(fd, buffer, envelope),
        };
        let peer = self.envelope.as_ref().map_or(&alone, |envelope| &envelope.peer);
        match received {
            Ok(bytes) => Ok(peer.to_socket_addr().map(|peer| (bytes, plain(peer)))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interruption(&error) => Ok(None),
            Err(error) => Err(error),
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
        match &self.envelope {
            None => datagram::send_to(fd, datagram, &peer.into()),
            Some(asked) => {
                let peer = if self.local.is_ipv6() { mapped(peer) } else { peer };
                datagram::send_envelope(fd, datagram, &Envelope { peer: peer.into(), local: asked.local })
            }
        }
        .map(drop)
    }
}

impl AsFd for UdpReflector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An IPv4 sender on an IPv6 socket is `::ffff:a.b.c.d` (RFC 4291, section 2.5.5.2); to everybody above it is IPv4.
fn plain(peer: SocketAddr) -> SocketAddr {
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
    use crate::transport::udp::{UdpTransport, Waiting};
    use crate::units::Nanos;

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

    fn round_trip(reflector: &mut UdpReflector, peer: SocketAddr, waiting: Waiting) {
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

    const WAITINGS: [Waiting; 3] = [
        Waiting::Sleep { nap: Nanos::from_millis(50), busy_poll: false },
        Waiting::Until { busy_poll: false },
        Waiting::Spin,
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
            round_trip(&mut reflector, ([127, 0, 0, 1], port).into(), Waiting::Spin);
            round_trip(&mut reflector, ([127, 0, 0, 77], port).into(), Waiting::Until { busy_poll: false });
            if reflector.local_address().is_ipv6() && std::net::UdpSocket::bind("[::1]:0").is_ok() {
                round_trip(&mut reflector, (Ipv6Addr::LOCALHOST, port).into(), Waiting::Spin);
            }
            let mut reflector = UdpReflector::bind((Ipv4Addr::UNSPECIFIED, 0).into(), wait).expect("a port");
            let port = reflector.local_address().port();
            round_trip(&mut reflector, ([127, 0, 0, 78], port).into(), Waiting::Spin);
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
