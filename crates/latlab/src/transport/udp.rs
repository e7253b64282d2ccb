//! UDP over kernel sockets: one connected socket, two system calls.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use latlab_sys::{address, datagram, readiness, socket};
use rustix::io::Errno;

use super::Transport;
use super::burst::BurstTransport;
use super::refusal::TransportError;
use super::waiting::WaitStep;
pub use super::waiting::WaitStrategy;
use crate::plan::{Family, PathSpec, defaults};
use crate::units::Nanos;

/// How many kinds of error about earlier datagrams are told apart; ICMP has no more.
const ERROR_KINDS: usize = 8;

/// A connected UDP socket.
#[derive(Debug)]
pub struct UdpTransport {
    socket: OwnedFd,
    waiting: WaitStrategy,
    local: SocketAddr,
    peer: SocketAddr,
    /// errno and count, first seen first; errno 0 marks a free place.
    errors: [(i32, u64); ERROR_KINDS],
}

impl UdpTransport {
    /// Opens the path to `peer`.
    ///
    /// # Errors
    /// Each step the kernel refuses: address, port, interface, a setting, no route.
    pub fn open(path: &PathSpec, peer: SocketAddr, waiting: WaitStrategy) -> Result<UdpTransport, TransportError> {
        let owned = prepared(path, peer, waiting)?;
        if let Some(local) = wanted_local(path, peer) {
            socket::bind(owned.as_fd(), local).map_err(|source| TransportError::Bind { local, source })?;
        }
        socket::connect(owned.as_fd(), peer).map_err(|source| TransportError::Connect { peer, source })?;
        UdpTransport::over(owned, peer, waiting)
    }

    /// Opens a path from `local` to `peer` on a socket that is not connected.
    pub(super) fn bound(
        path: &PathSpec,
        local: SocketAddr,
        peer: SocketAddr,
        waiting: WaitStrategy,
    ) -> Result<UdpTransport, TransportError> {
        let owned = prepared(path, peer, waiting)?;
        socket::bind(owned.as_fd(), local).map_err(|source| TransportError::Bind { local, source })?;
        UdpTransport::over(owned, peer, waiting)
    }

    fn over(socket: OwnedFd, peer: SocketAddr, waiting: WaitStrategy) -> Result<UdpTransport, TransportError> {
        let local = socket::local_address(socket.as_fd()).map_err(|source| TransportError::Connect { peer, source })?;
        Ok(UdpTransport { socket, waiting, local, peer, errors: [(0, 0); ERROR_KINDS] })
    }

    /// The address and port measured from.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// The address and port measured to.
    pub const fn peer_address(&self) -> SocketAddr {
        self.peer
    }

    /// The largest payload that leaves unfragmented, in bytes, as far as the kernel knows the path by now:
    /// its MTU less the IP and UDP headers. None where it does not say.
    pub fn unfragmented_bytes(&self) -> Option<u32> {
        let headers = if self.peer.is_ipv4() { 20 + 8 } else { 40 + 8 };
        let mtu = socket::path_mtu_bytes(self.socket.as_fd(), address::Family::of(&self.peer)).ok()?;
        mtu.checked_sub(headers)
    }

    /// Errors that the socket reported about earlier datagrams (ICMP): name of the errno → count.
    pub fn socket_errors(&self) -> BTreeMap<String, u64> {
        let seen = self.errors.iter().filter(|(errno, _)| *errno != 0);
        seen.map(|(errno, count)| {
            (latlab_sys::errno::name(*errno).map_or_else(|| format!("errno {errno}"), str::to_owned), *count)
        })
        .collect()
    }

    /// Datagrams that the kernel threw away at this socket, where it says.
    pub fn socket_drops(&self) -> Option<u64> {
        socket::drops(self.socket.as_fd()).ok().map(u64::from)
    }

    #[cold]
    fn note(&mut self, error: &io::Error) {
        let errno = error.raw_os_error().unwrap_or_default();
        // Were there ever more kinds than places, the last place would take the rest.
        let place = self.errors.iter().position(|(seen, _)| *seen == errno || *seen == 0).unwrap_or(ERROR_KINDS - 1);
        self.errors[place] = (errno, self.errors[place].1 + 1);
    }

    /// Makes `call` again that failed with `first`, where that says nothing of what was to be sent.
    #[cold]
    pub(super) fn send_again<T>(
        &mut self,
        first: io::Error,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        if !(is_interruption(&first) || may_be_about_earlier(&first)) {
            return Err(first);
        }
        // The kernel hands over a pending error once and forgets it. Where the second attempt goes through,
        // the first error was about an earlier datagram; where it does not, it is about this one.
        let taken = call(self.socket.as_fd())?;
        if !is_interruption(&first) {
            self.note(&first);
        }
        Ok(taken)
    }

    /// Receives by `take`, which is told whether it may sleep.
    #[inline]
    pub(super) fn receive_by(
        &mut self,
        buffer: &mut [u8],
        patience: Nanos,
        take: impl FnOnce(BorrowedFd<'_>, &mut [u8], bool) -> io::Result<usize>,
    ) -> io::Result<Option<usize>> {
        let fd = self.socket.as_fd();
        let received = match self.waiting.step(patience) {
            WaitStep::Sleep => take(fd, buffer, true),
            WaitStep::Look => take(fd, buffer, false),
            WaitStep::Poll(span) => match readiness::readable_within(fd, span.0) {
                Ok(false) => return Ok(None),
                Ok(true) => take(fd, buffer, false),
                Err(error) => Err(error),
            },
        };
        match received {
            Ok(bytes) => Ok(Some(bytes)),
            // What a spinning thread sees nearly always, so it does not leave the straight path.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => self.nothing(error),
        }
    }

    #[cold]
    fn nothing(&mut self, error: io::Error) -> io::Result<Option<usize>> {
        if is_interruption(&error) || error.kind() == io::ErrorKind::WouldBlock {
            return Ok(None);
        }
        if may_be_about_earlier(&error) {
            self.note(&error);
            return Ok(None);
        }
        Err(error)
    }
}

impl Transport for UdpTransport {
    #[inline]
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        match datagram::send(self.socket.as_fd(), datagram) {
            Ok(_) => Ok(()),
            Err(error) => self.send_again(error, |fd| datagram::send(fd, datagram)).map(drop),
        }
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], patience: Nanos) -> io::Result<Option<usize>> {
        self.receive_by(buffer, patience, |fd, buffer, sleeps| match sleeps {
            true => datagram::receive(fd, buffer),
            false => datagram::receive_now(fd, buffer),
        })
    }
}

/// As a network load sends: one by one.
impl BurstTransport for UdpTransport {}

impl AsFd for UdpTransport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket for the path to `peer`, without addresses yet.
fn prepared(path: &PathSpec, peer: SocketAddr, waiting: WaitStrategy) -> Result<OwnedFd, TransportError> {
    let family = family_of(&peer);
    let raw_family = address::Family::of(&peer);
    if let Some(local) = path.bind_address.filter(|local| local.is_ipv4() != peer.is_ipv4()) {
        return Err(TransportError::FamilyMismatch { local, peer });
    }
    let owned = socket::udp(raw_family).map_err(|source| TransportError::Socket { family, source })?;
    settle(owned.as_fd(), path, raw_family, waiting)?;
    Ok(owned)
}

/// What the socket of any sender promises: its interface, its code point, and how long it sleeps at most.
pub(super) fn settle_way(
    fd: BorrowedFd<'_>,
    path: &PathSpec,
    family: address::Family,
    waiting: WaitStrategy,
) -> Result<(), TransportError> {
    if let Some(interface) = &path.bind_interface {
        socket::bind_to_device(fd, interface)
            .map_err(|source| TransportError::Interface { interface: interface.clone(), source })?;
    }
    if let Some(dscp) = path.dscp {
        socket::set_dscp(fd, family, dscp).map_err(setting("the code point (DSCP)", dscp))?;
    }
    if let WaitStrategy::Sleep { nap: Some(nap), .. } = waiting {
        socket::set_receive_timeout(fd, nap.0).map_err(setting("the receive time-out", nap.0))?;
    }
    Ok(())
}

/// Everything a socket promises besides its two addresses.
fn settle(
    fd: BorrowedFd<'_>,
    path: &PathSpec,
    family: address::Family,
    waiting: WaitStrategy,
) -> Result<(), TransportError> {
    settle_way(fd, path, family, waiting)?;
    if path.dont_fragment {
        socket::forbid_fragments(fd, family).map_err(setting("fragmentation", "forbidden"))?;
    }
    socket::set_send_timeout(fd, defaults::NAP.0).map_err(setting("the send time-out", defaults::NAP.0))?;
    settle_buffers(fd, waiting.busy_polls()).map(drop)
}

/// What both ends ask of their sockets alike; the receive buffer that the kernel gave, in bytes.
pub(super) fn settle_buffers(fd: BorrowedFd<'_>, busy_polls: bool) -> Result<u32, TransportError> {
    if busy_polls {
        let span = defaults::BUSY_POLL_US;
        socket::set_busy_poll(fd, span).map_err(setting("busy polling", format!("{span}us")))?;
    }
    let bytes = defaults::RECEIVE_BUFFER_BYTES;
    socket::set_receive_buffer(fd, bytes).map_err(setting("the receive buffer", bytes))
}

pub(super) fn setting(option: &'static str, value: impl ToString) -> impl FnOnce(io::Error) -> TransportError {
    move |source| TransportError::Setting { option, value: value.to_string(), source }
}

/// The local end that was asked for; none: the kernel's choice on connecting.
pub(super) fn wanted_local(path: &PathSpec, peer: SocketAddr) -> Option<SocketAddr> {
    if path.bind_address.is_none() && path.source_port.is_none() {
        return None;
    }
    let anywhere = if peer.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let mut local = SocketAddr::new(path.bind_address.unwrap_or(anywhere), path.source_port.unwrap_or(0));
    if let (SocketAddr::V6(local), SocketAddr::V6(peer)) = (&mut local, peer) {
        // A link-local address means something only with its link, which the peer's zone names.
        local.set_scope_id(peer.scope_id());
    }
    Some(local)
}

pub(super) const fn family_of(address: &SocketAddr) -> Family {
    if address.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 }
}

pub(super) fn is_interruption(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

/// Whether a connected socket raises this error for ICMP answers to earlier datagrams
/// (`icmp_err_convert` in net/ipv4/icmp.c, `icmpv6_err_convert` in net/ipv6/icmp.c).
fn may_be_about_earlier(error: &io::Error) -> bool {
    let Some(errno) = Errno::from_io_error(error) else { return false };
    matches!(
        errno,
        Errno::CONNREFUSED
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::NOPROTOOPT
            | Errno::MSGSIZE
            | Errno::ACCESS
            | Errno::PROTO
    )
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::plan::Schedule;
    use crate::plan::WaitMode;

    fn peer() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address");
        (socket, address)
    }

    #[test]
    fn neither_a_short_time_out_nor_a_late_answer_prolongs_a_wait() {
        for (timeout, stray_after) in [(Nanos::from_millis(1), None), (Nanos::from_millis(150), Some(60))] {
            let (far, address) = peer();
            let waiting = WaitStrategy::settle(WaitMode::Block, Schedule::Closed, timeout);
            let mut transport = UdpTransport::open(&PathSpec::SYSTEM, address, waiting).expect("a path");
            let local = transport.local_address();
            let sender = stray_after.map(|after_ms| {
                std::thread::spawn(move || {
                    std::thread::sleep(std::time::Duration::from_millis(after_ms));
                    far.send_to(b"late", local).expect("sent");
                })
            });
            // The least of several waits: others may use the CPU, but the kernel's rounding is in every one.
            let waits = (0..if stray_after.is_some() { 1 } else { 20 }).map(|_| wait_out(&mut transport, timeout));
            let least = waits.min().expect("at least one");
            assert!(least >= timeout && least < timeout + timeout + timeout, "{least:?} for {timeout:?}");
            sender.into_iter().for_each(|thread| thread.join().expect("sent"));
        }
    }

    /// How long it takes until `timeout` is over, whatever comes.
    fn wait_out(transport: &mut UdpTransport, timeout: Nanos) -> Nanos {
        let start = std::time::Instant::now();
        let waited = || Nanos(start.elapsed().as_nanos() as i64);
        while waited() < timeout {
            transport.receive(&mut [0; 8], timeout - waited()).expect("a socket of our own");
        }
        waited()
    }

    #[test]
    fn a_broadcast_address_is_refused_as_what_it_is() {
        let peer = SocketAddr::from(([127, 255, 255, 255], 9862));
        let error = UdpTransport::open(&PathSpec::SYSTEM, peer, WaitStrategy::Spin).expect_err("no host");
        assert!(error.cause().is_some_and(|cause| cause.starts_with("it is a broadcast address")), "{error:?}");
        assert!(error.hint().is_some_and(|hint| hint.starts_with("name one host")), "{error:?}");
    }

    #[test]
    fn a_closed_port_is_counted_and_hinders_no_probe() {
        let (socket, address) = peer();
        drop(socket);
        let mut transport = UdpTransport::open(&PathSpec::SYSTEM, address, WaitStrategy::Spin).expect("a path");
        for _ in 0..3 {
            transport.send(b"probe").expect("the kernel took it");
        }
        assert_eq!(transport.receive(&mut [0; 8], Nanos::ZERO).expect("an earlier error is none now"), None);
        assert_eq!(transport.socket_errors(), BTreeMap::from([("ECONNREFUSED".to_owned(), 3)]));
    }

    #[test]
    fn a_refused_datagram_is_an_error_of_its_own() {
        let (_socket, address) = peer();
        let mut transport = UdpTransport::open(&PathSpec::SYSTEM, address, WaitStrategy::Spin).expect("a path");
        let error = transport.send(&vec![0; 70_000]).expect_err("larger than any datagram");
        assert_eq!(Errno::from_io_error(&error), Some(Errno::MSGSIZE));
        assert_eq!(transport.socket_errors(), BTreeMap::new());
    }

    #[test]
    fn without_fragments_the_path_has_a_limit() {
        let (_socket, address) = peer();
        let wish = PathSpec { dont_fragment: true, dscp: Some(46), ..PathSpec::SYSTEM };
        let transport = UdpTransport::open(&wish, address, WaitStrategy::Spin).expect("a path");
        assert!(transport.unfragmented_bytes().expect("an MTU") > 1_000);
    }

    #[test]
    fn what_cannot_be_opened_says_why() {
        let (_socket, address) = peer();
        let cases = [
            (PathSpec { bind_interface: Some("absent0".into()), ..PathSpec::SYSTEM }, "`absent0`", 3),
            (
                PathSpec { bind_address: Some("192.0.2.1".parse().expect("an address")), ..PathSpec::SYSTEM },
                "`192.0.2.1:0`",
                3,
            ),
            (PathSpec { bind_address: Some(Ipv6Addr::LOCALHOST.into()), ..PathSpec::SYSTEM }, "`::1`", 2),
            (
                PathSpec { source_port: Some(address.port()), bind_address: Some(address.ip()), ..PathSpec::SYSTEM },
                &format!("`{address}`"),
                3,
            ),
        ];
        for (wish, value, code) in cases {
            let error = UdpTransport::open(&wish, address, WaitStrategy::Spin).expect_err(value);
            assert!(error.to_string().contains(value), "{error}");
            assert_eq!(error.exit_code(), code);
            assert!(error.cause().is_some() && error.hint().is_some(), "{error}");
        }
    }
}
