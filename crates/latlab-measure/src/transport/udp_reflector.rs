//! The reflector's UDP socket: datagrams from any sender, each answered from the address that it was sent to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use latlab_sys::address::{self, Address};
use latlab_sys::datagram::{self, Envelope};
use latlab_sys::stamps;
use latlab_sys::{readiness, sleep, socket};
use rustix::net::sockopt;

use super::address::{canonical, family_of, mapped};
use super::error::{TransportError, is_interrupted, setting_error};
use super::interface::BatchBuffer;
use super::interface::{DriverCounts, DriverSession, ReflectorSocket, SocketReport};
use super::stamping::{KernelStamps, Stamping};
use super::udp::{DISCARD_PORT, set_receive_options};
use super::xdp::DriverAnswers;
use crate::facts::XdpFacts;
use crate::plan::{WaitMode, defaults};
use crate::units::Nanos;
use crate::wire::SocketTerms;

/// A UDP socket bound to one local address, or to all of them.
///
/// Bound to one address it costs `recvfrom` and `sendto` per datagram. Bound to all it uses `recvmsg` and `sendmsg`,
/// since on a host with several addresses an answer could otherwise leave from another address than the probe was sent
/// to, and a connected sender would not receive it. Connected to the only sender that it will ever have, it costs `recv`
/// and `send`, and the kernel looks up neither socket nor route for each datagram.
#[derive(Debug)]
pub struct UdpReflector {
    socket: OwnedFd,
    local: SocketAddr,
    spins: bool,
    /// It sleeps without polling, so that it may sleep longer.
    pauses: bool,
    single_sender: bool,
    source: Source,
    configured: SocketTerms,
    merged: bool,
    receive_buffer_bytes: u32,
    driver: Option<DriverAnswers>,
    /// What COOKIEs leave from ([`UdpReflector::cookie_socket`]).
    cookies: Option<OwnedFd>,
    stamping: Option<Stamping>,
}

/// The senders that datagrams are received from.
#[derive(Debug)]
enum Source {
    /// Every sender to the one local address.
    OneAddress,
    /// Every sender to any local address. The envelope holds sender and destination of the last datagram.
    AnyAddress(Envelope),
    /// One sender, to which the socket is connected.
    Connected(SocketAddr),
}

impl UdpReflector {
    /// Binds to `local`; port 0: the kernel's choice. `[::]` receives IPv4 as well.
    ///
    /// # Errors
    /// The port is in use, the address is not local, a permission is missing, busy polling is not supported.
    pub fn bind(local: SocketAddr, wait: WaitMode) -> Result<UdpReflector, TransportError> {
        let owned = unbound(local)?;
        let fd = owned.as_fd();
        let wildcard = local.ip().is_unspecified();
        if wildcard {
            let family = address::AddressFamily::of(&local);
            socket::report_local_address(fd, family).map_err(setting_error("packet information", "on"))?;
        }
        let timeout = defaults::NAP.0;
        socket::set_receive_timeout(fd, timeout).map_err(setting_error("the receive time-out", timeout))?;
        let receive_buffer_bytes = set_receive_options(fd, wait == WaitMode::BusyPoll)?;
        socket::bind(fd, local).map_err(|source| TransportError::Bind { local, source })?;
        let local = socket::local_address(fd).map_err(|source| TransportError::Bind { local, source })?;
        Ok(UdpReflector {
            socket: owned,
            local,
            spins: wait == WaitMode::Spin,
            pauses: wait == WaitMode::Block,
            single_sender: false,
            source: if wildcard { Source::AnyAddress(Envelope::empty()) } else { Source::OneAddress },
            configured: SocketTerms::NONE,
            merged: false,
            receive_buffer_bytes,
            driver: None,
            cookies: None,
            stamping: None,
        })
    }

    /// A second socket at the same address, whose send buffer keeps COOKIEs to forged neighbours for the 3 s in which the
    /// kernel looks for these ([arp(7)](https://man7.org/linux/man-pages/man7/arp.7.html), `mcast_solicit`). It receives
    /// nothing: it is connected to a port of this host that sends nothing.
    fn cookie_socket(&self) -> io::Result<OwnedFd> {
        let owned = unbound(self.local).map_err(io::Error::other)?;
        let (receiving, sending) = (self.socket.as_fd(), owned.as_fd());
        let share = |on| [receiving, sending].iter().try_for_each(|fd| sockopt::set_socket_reuseport(fd, on));
        // Only processes of this user could bind the port meanwhile.
        share(true)?;
        let mut silent = self.local;
        silent.set_port(DISCARD_PORT);
        if silent.ip().is_unspecified() {
            silent.set_ip(if silent.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        let bound = socket::bind(sending, self.local).and_then(|()| socket::connect(sending, silent));
        share(false)?;
        bound.map(|()| owned)
    }

    /// `peer` in the family of the socket.
    fn reached(&self, peer: SocketAddr) -> SocketAddr {
        if self.local.is_ipv6() { mapped(peer) } else { peer }
    }

    #[inline]
    fn send_now(&self, fd: BorrowedFd<'_>, datagram: &[u8], peer: SocketAddr) -> io::Result<usize> {
        match &self.source {
            Source::OneAddress | Source::Connected(_) => datagram::send_to_now(fd, datagram, &peer.into()),
            Source::AnyAddress(received) => {
                let envelope = Envelope { peer: self.reached(peer).into(), ..*received };
                datagram::send_envelope_now(fd, datagram, &envelope)
            }
        }
    }

    /// The bound address, with the port that the kernel chose.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// For a reflector that answers one sender in its lifetime: [`ReflectorSocket::dedicate_to`] connects the socket.
    #[must_use]
    pub(crate) fn for_single_sender(self) -> UdpReflector {
        UdpReflector { single_sender: true, ..self }
    }

    /// With a program in the network driver that answers probes in front of the socket, of so many sessions at a time.
    ///
    /// # Errors
    /// A permission is missing, the interface has a program, or the kernel refuses ours.
    pub(crate) fn answering_in_driver(self, sessions: u16) -> Result<UdpReflector, TransportError> {
        let driver = Some(DriverAnswers::open(self.local, sessions)?);
        Ok(UdpReflector { driver, ..self })
    }

    /// Interface and mode of that program.
    pub(crate) fn driver_facts(&self) -> Option<&XdpFacts> {
        self.driver.as_ref().map(DriverAnswers::facts)
    }

    /// The granted receive buffer in bytes, the kernel's bookkeeping included.
    pub const fn receive_buffer_bytes(&self) -> u32 {
        self.receive_buffer_bytes
    }
}

impl ReflectorSocket for UdpReflector {
    #[inline]
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        let fd = self.socket.as_fd();
        let received = match (&mut self.source, self.spins) {
            (source, spins) if self.stamping.is_some() => {
                let mut other = Envelope::empty();
                let envelope = if let Source::AnyAddress(envelope) = source { envelope } else { &mut other };
                let received = receive_envelope(fd, buffer, envelope, spins);
                self.stamping.iter_mut().for_each(|stamping| stamping.received_ns = envelope.received_ns);
                received
            }
            (Source::Connected(peer), false) => datagram::receive(fd, buffer).map(|bytes| Some((bytes, *peer))),
            (Source::Connected(peer), true) => datagram::receive_now(fd, buffer).map(|bytes| Some((bytes, *peer))),
            (Source::OneAddress, spins) => receive_from(fd, buffer, spins),
            (Source::AnyAddress(envelope), spins) => receive_envelope(fd, buffer, envelope, spins),
        };
        match received {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interrupted(&error) => Ok(None),
            received => received,
        }
    }

    /// Waits with nanosecond resolution, whatever the socket's receive time-out is; a spinning socket does not wait.
    #[inline]
    fn receive_within(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<(usize, SocketAddr)>> {
        let max_wait = max_wait.min(defaults::NAP);
        if !self.spins && max_wait > Nanos::ZERO {
            match readiness::readable_within(self.socket.as_fd(), max_wait.0) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if is_interrupted(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let spins = std::mem::replace(&mut self.spins, true);
        let received = self.receive(buffer);
        self.spins = spins;
        received
    }

    #[inline]
    fn receive_batch(&mut self, buffer: &mut BatchBuffer, may_pause: bool) -> io::Result<usize> {
        if buffer.should_pause(self.receive_buffer_bytes) && self.pauses && may_pause {
            // A signal may end the pause early.
            let _ = sleep::clock_nanosleep_for(defaults::STREAM_RECEIVE_PAUSE.0);
        }
        match buffer.fill(self.socket.as_fd(), self.spins) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interrupted(&error) => Ok(0),
            received => received,
        }
    }

    #[inline]
    fn reply(&mut self, datagram: &[u8], peer: SocketAddr) -> io::Result<()> {
        let fd = self.socket.as_fd();
        let sent = match &self.source {
            Source::Connected(_) => datagram::send_now(fd, datagram),
            _ => self.send_now(fd, datagram, peer),
        };
        if let Some(stamping) = &mut self.stamping {
            if sent.is_ok() { stamping.count() } else { stamping.restart(fd) }
        }
        sent.map(drop)
    }

    #[inline]
    fn stamps(&self) -> Option<KernelStamps<'_>> {
        Some(self.stamping.as_ref()?.stamps(self.socket.as_fd()))
    }

    /// A full buffer is given up for a new one. Another error may be of a forged ICMP message, and is taken with it.
    fn reply_cookie(&mut self, datagram: &[u8], peer: SocketAddr) -> io::Result<()> {
        let sent = self.cookies.as_ref().map(|cookies| self.send_now(cookies.as_fd(), datagram, peer));
        match sent {
            Some(Ok(_)) => return Ok(()),
            Some(Err(error)) if error.kind() != io::ErrorKind::WouldBlock => {}
            _ => self.cookies = None, // The old one would hold the port.
        }
        self.cookies = self.cookies.take().or_else(|| self.cookie_socket().ok());
        self.send_now(self.cookies.as_ref().unwrap_or(&self.socket).as_fd(), datagram, peer).map(drop)
    }

    fn last_destination(&self) -> Option<IpAddr> {
        match &self.source {
            Source::AnyAddress(envelope) => envelope.local,
            Source::OneAddress | Source::Connected(_) => None,
        }
    }

    #[inline]
    fn set_reply_source(&mut self, local: Option<IpAddr>, merged: bool) {
        self.merged |= merged;
        if let Source::AnyAddress(envelope) = &mut self.source {
            envelope.local = local;
        }
    }

    /// If connecting fails the socket goes on receiving from every sender: slower, but correct.
    fn dedicate_to(&mut self, peer: SocketAddr) {
        let connects = self.single_sender && matches!(self.source, Source::OneAddress);
        if connects && socket::connect(self.socket.as_fd(), peer).is_ok() {
            self.source = Source::Connected(peer);
        }
    }

    fn supported_terms(&self) -> SocketTerms {
        SocketTerms { batched: true, unchecked: true, stamped: true }
    }

    fn configure(&mut self, terms: SocketTerms) {
        if terms == self.configured {
            return;
        }
        let fd = self.socket.as_fd();
        if terms.stamped != self.configured.stamped {
            // If this fails, answers carry no stamps of the kernel.
            self.stamping = if terms.stamped { Stamping::request(fd, false).ok() } else { None };
            if self.stamping.is_none() {
                let _ = stamps::end(fd);
                while stamps::next_transmitted(fd).is_some() {}
            }
        }
        // A kernel before 5.0 merges nothing: batches then cost a little more and are still correct.
        let _ = socket::set_merging(fd, terms.batched);
        if self.local.is_ipv6() {
            // If this fails, the kernel drops packets without a checksum, and they count as lost.
            let _ = socket::accept_unchecked(fd, terms.unchecked);
        }
        self.configured = terms;
    }

    fn answers_in_driver(&self) -> bool {
        self.driver.is_some()
    }

    fn offer(&mut self, sessions: &mut dyn Iterator<Item = DriverSession>) {
        if let Some(driver) = &mut self.driver {
            driver.offer(sessions);
        }
    }

    fn read_driver(&self, visit: &mut dyn FnMut(u16, DriverCounts)) {
        if let Some(driver) = &self.driver {
            driver.read(visit);
        }
    }

    fn report(&self) -> SocketReport {
        let drops = socket::drops(self.socket.as_fd()).ok().map(u64::from);
        SocketReport { drops, drops_merged: self.merged, ..SocketReport::default() }
    }
}

/// A socket of the family of `local`; a wildcard of IPv6 takes IPv4 too.
fn unbound(local: SocketAddr) -> Result<OwnedFd, TransportError> {
    let socket = socket::udp(address::AddressFamily::of(&local))
        .map_err(|source| TransportError::Socket { family: family_of(&local), source })?;
    if local.is_ipv6() {
        let only = !local.ip().is_unspecified();
        sockopt::set_ipv6_v6only(&socket, only).map_err(setting_error("IPv6 only", only))?;
    }
    Ok(socket)
}

#[inline]
fn receive_from(fd: BorrowedFd<'_>, buffer: &mut [u8], spins: bool) -> io::Result<Option<(usize, SocketAddr)>> {
    let mut peer = Address::empty();
    let bytes = if spins {
        datagram::receive_from_now(fd, buffer, &mut peer)
    } else {
        datagram::receive_from(fd, buffer, &mut peer)
    }?;
    Ok(peer.to_socket_addr().map(|peer| (bytes, canonical(peer))))
}

/// One datagram, its sender, and in `envelope` the local address that it was sent to.
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
    Ok(envelope.peer.to_socket_addr().map(|peer| (bytes, canonical(peer))))
}

impl AsFd for UdpReflector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::plan::DdsSpec;
    use crate::plan::PathSpec;
    use crate::transport::{
        ConnectionCaps, ListenAddress, ListenOptions, Transport, TransportFamily, Udp, UdpTransport, WaitStrategy,
    };

    /// Receives until something comes: single waits are bounded by the receive time-outs of both ends.
    fn eventually<T>(mut receive: impl FnMut() -> io::Result<Option<T>>) -> T {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        loop {
            if let Some(received) = receive().expect("the socket works") {
                return received;
            }
            assert!(std::time::Instant::now() < deadline, "nothing came");
        }
    }

    fn round_trip(reflector: &mut UdpReflector, peer: SocketAddr, wait: WaitStrategy) {
        let mut sender = UdpTransport::open(&PathSpec::SYSTEM, peer, wait).expect("a path");
        let mut buffer = [0; 64];
        sender.send(b"probe").expect("sent");
        let (bytes, from) = eventually(|| reflector.receive(&mut buffer));
        assert_eq!((&buffer[..bytes], from), (&b"probe"[..], sender.local_address()));
        reflector.reply(b"answer", from).expect("replied");
        // A connected sender receives only from the address that it sent to.
        let bytes = eventually(|| sender.receive(&mut buffer, Nanos::from_millis(50)));
        assert_eq!(&buffer[..bytes], b"answer");
    }

    const STRATEGIES: [WaitStrategy; 3] = [
        WaitStrategy::Sleep { receive_timeout: Some(Nanos::from_millis(50)), busy_poll: false },
        WaitStrategy::Until { busy_poll: false },
        WaitStrategy::Spin,
    ];

    #[test]
    fn every_wait_strategy_receives_the_answer() {
        for wait in [WaitMode::Block, WaitMode::Spin] {
            let mut reflector = UdpReflector::bind(([127, 0, 0, 1], 0).into(), wait).expect("a port");
            let peer = reflector.local_address();
            for strategy in STRATEGIES {
                round_trip(&mut reflector, peer, strategy);
            }
        }
    }

    #[test]
    fn on_every_address_it_answers_from_the_address_that_was_sent_to() {
        for wait in [WaitMode::Block, WaitMode::Spin] {
            let caps = ConnectionCaps { connections: 1, per_prefix: 1, per_second: 1 };
            let address = ListenAddress::All { port: 0 };
            let options = ListenOptions {
                address,
                wait,
                caps,
                single_sender: false,
                dds: DdsSpec::default(),
                queue: 0,
                in_driver: false,
            };
            let mut reflector = Udp::listen(&options).expect("a port").socket;
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
    fn dedicated_to_a_sender_it_receives_from_no_other() {
        for wait in [WaitMode::Block, WaitMode::Spin] {
            let reflector = UdpReflector::bind(([127, 0, 0, 1], 0).into(), wait).expect("a port");
            let mut reflector = reflector.for_single_sender();
            let peer = reflector.local_address();
            let mut sender = UdpTransport::open(&PathSpec::SYSTEM, peer, WaitStrategy::Spin).expect("a path");
            reflector.dedicate_to(sender.local_address());
            let stranger = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
            stranger.send_to(b"stranger", peer).expect("sent");
            let mut buffer = [0; 64];
            sender.send(b"probe").expect("sent");
            let (bytes, from) = eventually(|| reflector.receive(&mut buffer));
            assert_eq!((&buffer[..bytes], from), (&b"probe"[..], sender.local_address()));
            reflector.reply(b"answer", from).expect("replied");
            let bytes = eventually(|| sender.receive(&mut buffer, Nanos::from_millis(50)));
            assert_eq!(&buffer[..bytes], b"answer");
        }
    }
}
