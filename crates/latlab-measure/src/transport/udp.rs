//! UDP over one connected kernel socket: a probe takes one system call to send and one to receive.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use latlab_sys::address::{Address, AddressFamily};
use latlab_sys::batch::{SendBatch, send_segmented};
use latlab_sys::{datagram, readiness, socket};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

use super::address::{check_family, family_of, requested_local_address};
use super::error::{TransportError, is_interrupted, setting_error};
use super::interface::{BurstTransport, OpenPath, Packets, PathReport, PathTransport, Transport, send_each};
use super::stamping::{KernelStamps, Stamping};
use super::wait::{WaitStep, WaitStrategy};
use crate::plan::{PathSpec, SendMode, SenderSocketOptions, defaults};
use crate::units::Nanos;
use crate::wire::{HELLO_MIN_BYTES, Nonce, hello_datagram};

/// The most kinds of socket error that are counted apart; ICMP has no more.
const ERROR_KINDS: usize = 8;
/// The wait for an answer from an address that was not asked.
const ANSWER_WAIT: Nanos = Nanos::from_millis(500);
/// The discard service (RFC 863).
pub(super) const DISCARD_PORT: u16 = 9;

#[derive(Debug)]
pub struct UdpTransport {
    socket: OwnedFd,
    wait: WaitStrategy,
    local: SocketAddr,
    peer: SocketAddr,
    /// errno and count, in the order of their first occurrence; errno 0 marks an unused entry.
    errors: [(i32, u64); ERROR_KINDS],
    stamping: Option<Stamping>,
}

impl UdpTransport {
    /// Opens the path to `peer`.
    ///
    /// # Errors
    /// The kernel refuses the address, the port, the interface or an option, or has no route.
    pub fn open(path: &PathSpec, peer: SocketAddr, wait: WaitStrategy) -> Result<UdpTransport, TransportError> {
        let socket = configured_socket(path, peer, wait)?;
        if let Some(local) = requested_local_address(path, peer) {
            socket::bind(socket.as_fd(), local).map_err(|source| TransportError::Bind { local, source })?;
        }
        socket::connect(socket.as_fd(), peer).map_err(|source| TransportError::Connect { peer, source })?;
        UdpTransport::from_socket(socket, peer, wait)
    }

    /// Opens the path from `local` to `peer` on a socket that is not connected.
    pub(super) fn open_unconnected(
        path: &PathSpec,
        local: SocketAddr,
        peer: SocketAddr,
        wait: WaitStrategy,
    ) -> Result<UdpTransport, TransportError> {
        let socket = configured_socket(path, peer, wait)?;
        socket::bind(socket.as_fd(), local).map_err(|source| TransportError::Bind { local, source })?;
        UdpTransport::from_socket(socket, peer, wait)
    }

    fn from_socket(socket: OwnedFd, peer: SocketAddr, wait: WaitStrategy) -> Result<UdpTransport, TransportError> {
        let local = socket::local_address(socket.as_fd()).map_err(|source| TransportError::Connect { peer, source })?;
        Ok(UdpTransport { socket, wait, local, peer, errors: [(0, 0); ERROR_KINDS], stamping: None })
    }

    /// The address and port measured from.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// The address and port measured to.
    pub const fn peer_address(&self) -> SocketAddr {
        self.peer
    }

    /// The path MTU known so far less the IP and UDP headers, in bytes.
    pub(super) fn unfragmented_bytes(&self) -> Option<u32> {
        let headers = if self.peer.is_ipv4() { 20 + 8 } else { 40 + 8 };
        let fd = self.socket.as_fd();
        let mtu = if self.peer.is_ipv4() { sockopt::ip_mtu(fd) } else { sockopt::ipv6_mtu(fd) };
        mtu.ok()?.checked_sub(headers)
    }

    fn socket_errors(&self) -> BTreeMap<String, u64> {
        let counted = self.errors.iter().filter(|(errno, _)| *errno != 0);
        let name = |errno| latlab_sys::errno::name(errno).map_or_else(|| format!("errno {errno}"), str::to_owned);
        counted.map(|(errno, count)| (name(*errno), *count)).collect()
    }

    #[cold]
    fn count_error(&mut self, error: &io::Error) {
        let errno = error.raw_os_error().unwrap_or_default();
        // With more kinds than entries the last entry would count the rest.
        let entry = self.errors.iter().position(|(seen, _)| *seen == errno || *seen == 0).unwrap_or(ERROR_KINDS - 1);
        self.errors[entry] = (errno, self.errors[entry].1 + 1);
    }

    /// Repeats `call`, which failed with `first`, if that error may be about an earlier datagram.
    #[cold]
    pub(super) fn retry_send<T>(
        &mut self,
        first: io::Error,
        call: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        if !(is_interrupted(&first) || may_be_about_earlier(&first)) {
            return Err(first);
        }
        // The kernel reports a pending error once. If the second attempt succeeds, the first error was about an earlier
        // datagram; if it fails, it is about this one.
        let taken = call(self.socket.as_fd())?;
        if !is_interrupted(&first) {
            self.count_error(&first);
        }
        Ok(taken)
    }

    #[cold]
    fn send_again(&mut self, first: io::Error, datagram: &[u8]) -> io::Result<()> {
        if let Some(stamping) = &mut self.stamping {
            stamping.restart(self.socket.as_fd());
        }
        self.retry_send(first, |fd| datagram::send(fd, datagram)).map(drop)
    }

    /// Receives with `call`, whose last argument says whether it may sleep.
    #[inline]
    pub(super) fn receive_with(
        &mut self,
        buffer: &mut [u8],
        max_wait: Nanos,
        call: impl FnOnce(BorrowedFd<'_>, &mut [u8], bool) -> io::Result<usize>,
    ) -> io::Result<Option<usize>> {
        let fd = self.socket.as_fd();
        let received = match self.wait.step(max_wait) {
            WaitStep::SleepInReceive => call(fd, buffer, true),
            WaitStep::Receive => call(fd, buffer, false),
            WaitStep::Poll(span) => match readiness::readable_within(fd, span.0) {
                Ok(false) => return Ok(None),
                Ok(true) => call(fd, buffer, false),
                Err(error) => Err(error),
            },
        };
        match received {
            Ok(bytes) => Ok(Some(bytes)),
            // A spinning thread sees nearly nothing else, so it is not in the cold path.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => self.failed_receive(error),
        }
    }

    #[cold]
    fn failed_receive(&mut self, error: io::Error) -> io::Result<Option<usize>> {
        if is_interrupted(&error) || error.kind() == io::ErrorKind::WouldBlock {
            return Ok(None);
        }
        if may_be_about_earlier(&error) {
            self.count_error(&error);
            return Ok(None);
        }
        Err(error)
    }
}

impl Transport for UdpTransport {
    #[inline]
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let sent = match datagram::send(self.socket.as_fd(), datagram) {
            Ok(_) => Ok(()),
            Err(error) => self.send_again(error, datagram),
        };
        if let Some(stamping) = self.stamping.as_mut().filter(|_| sent.is_ok()) {
            stamping.count();
        }
        sent
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        let mut stamping = self.stamping.take();
        let received = self.receive_with(buffer, max_wait, |fd, buffer, sleeps| match &mut stamping {
            Some(stamping) => stamping.receive(fd, buffer, sleeps),
            None if sleeps => datagram::receive(fd, buffer),
            None => datagram::receive_now(fd, buffer),
        });
        self.stamping = stamping;
        received
    }

    fn request_stamps(&mut self) -> io::Result<()> {
        self.stamping = Some(Stamping::request(self.socket.as_fd(), true)?);
        Ok(())
    }

    #[inline]
    fn stamps(&self) -> Option<KernelStamps<'_>> {
        Some(self.stamping.as_ref()?.stamps(self.socket.as_fd()))
    }

    fn report(&self) -> PathReport {
        let socket_drops = socket::drops(self.socket.as_fd()).ok().map(u64::from);
        PathReport { socket_errors: self.socket_errors(), socket_drops, ..PathReport::default() }
    }
}

/// Packet by packet, as a network load sends.
impl BurstTransport for UdpTransport {}

impl PathTransport for UdpTransport {
    fn path(&self) -> OpenPath {
        let (local, peer, unfragmented_bytes) = (self.local, self.peer, self.unfragmented_bytes());
        OpenPath { local, peer, unfragmented_bytes, send_buffer_bytes: None }
    }
}

impl AsFd for UdpTransport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The local address of `path` to `peer`. No packet is sent: a UDP socket is connected.
///
/// # Errors
/// As [`UdpTransport::open`].
pub(crate) fn local_address_towards(path: &PathSpec, peer: IpAddr) -> Result<IpAddr, TransportError> {
    path_towards(path, SocketAddr::new(peer, DISCARD_PORT)).map(|open| open.local.ip())
}

/// The ends and limits of a UDP path to `peer`, as [`local_address_towards`].
pub(super) fn path_towards(path: &PathSpec, peer: SocketAddr) -> Result<OpenPath, TransportError> {
    Ok(UdpTransport::open(path, peer, WaitStrategy::Spin)?.path())
}

/// The address that answers instead of the peer of `path`, if one does: a host with several addresses may choose another
/// one for its answers, and a connected socket does not receive these. Sends one HELLO; `None` over other transports.
pub(crate) fn answering_instead(transport: &impl PathTransport) -> Option<SocketAddr> {
    let report = transport.report();
    let is_udp = !report.is_connection && report.dds.is_none() && report.xdp.is_none();
    let OpenPath { mut local, peer, .. } = Some(transport.path()).filter(|_| is_udp)?;
    local.set_port(0);
    let nonce = &Nonce::from(*b"answering where?");
    let socket = socket::udp(AddressFamily::of(&peer)).ok()?;
    let fd = socket.as_fd();
    socket::bind(fd, local).ok()?;
    socket::set_receive_timeout(fd, ANSWER_WAIT.0).ok()?;
    datagram::send_to(fd, &hello_datagram(nonce), &peer.into()).ok()?;
    let (mut buffer, mut from) = ([0; HELLO_MIN_BYTES], Address::empty());
    let bytes = datagram::receive_from(fd, &mut buffer, &mut from).ok()?;
    // A COOKIE has the nonce where the HELLO has it, which an echo returns.
    let is_answer = buffer[..bytes].get(8..24) == Some(nonce);
    from.to_socket_addr().filter(|from| is_answer && (from.ip(), from.port()) != (peer.ip(), peer.port()))
}

/// A socket for the path to `peer`, with its options but without addresses.
fn configured_socket(path: &PathSpec, peer: SocketAddr, wait: WaitStrategy) -> Result<OwnedFd, TransportError> {
    check_family(path, peer)?;
    let family = AddressFamily::of(&peer);
    let socket = socket::udp(family).map_err(|source| TransportError::Socket { family: family_of(&peer), source })?;
    let fd = socket.as_fd();
    set_path_options(fd, path, family, wait)?;
    if path.dont_fragment {
        let forbidden = match family {
            AddressFamily::Ipv4 => sockopt::set_ip_mtu_discover(fd, Ipv4PathMtuDiscovery::DO),
            AddressFamily::Ipv6 => sockopt::set_ipv6_mtu_discover(fd, Ipv6PathMtuDiscovery::DO),
        };
        forbidden.map_err(setting_error("fragmentation", "forbidden"))?;
    }
    socket::set_send_timeout(fd, defaults::NAP.0).map_err(setting_error("the send time-out", defaults::NAP.0))?;
    set_receive_options(fd, wait.busy_polls())?;
    Ok(socket)
}

/// Sets the options of any sender's socket: interface, code point, receive time-out.
pub(super) fn set_path_options(
    fd: BorrowedFd<'_>,
    path: &PathSpec,
    family: AddressFamily,
    wait: WaitStrategy,
) -> Result<(), TransportError> {
    // Addresses and the port are those of bind(2) and connect(2); a connection is cut by the kernel.
    let PathSpec {
        family: _,
        peer_address: _,
        bind_address: _,
        bind_interface,
        source_port: _,
        dscp,
        dont_fragment: _,
        dds: _,
        xdp: _,
    } = path;
    if let Some(interface) = bind_interface {
        socket::bind_to_device(fd, interface)
            .map_err(|source| TransportError::Interface { interface: interface.clone(), source })?;
    }
    if let Some(dscp) = *dscp {
        // The lower two bits of the octet belong to congestion notification (RFC 3168).
        let octet = dscp << 2;
        let marked = match family {
            AddressFamily::Ipv4 => sockopt::set_ip_tos(fd, octet),
            AddressFamily::Ipv6 => sockopt::set_ipv6_tclass(fd, octet.into()),
        };
        marked.map_err(setting_error("the code point (DSCP)", dscp))?;
    }
    if let WaitStrategy::Sleep { receive_timeout: Some(timeout), .. } = wait {
        socket::set_receive_timeout(fd, timeout.0).map_err(setting_error("the receive time-out", timeout.0))?;
    }
    Ok(())
}

/// Sets busy polling and the receive buffer, at either end; returns the granted receive buffer in bytes.
pub(super) fn set_receive_options(fd: BorrowedFd<'_>, busy_polls: bool) -> Result<u32, TransportError> {
    if busy_polls {
        let span = defaults::BUSY_POLL_US;
        socket::set_busy_poll(fd, span).map_err(setting_error("busy polling", format!("{span}us")))?;
    }
    let bytes = defaults::RECEIVE_BUFFER_BYTES;
    socket::set_receive_buffer(fd, bytes).map_err(setting_error("the receive buffer", bytes))
}

/// Whether a connected socket reports this error for ICMP messages about earlier datagrams
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

/// A UDP socket that sends a stream.
#[derive(Debug)]
pub struct UdpStream {
    socket: UdpTransport,
    /// The destination of each packet; `None`: the socket is connected.
    to: Option<Address>,
    options: SenderSocketOptions,
    batch: SendBatch,
    path: OpenPath,
}

impl UdpStream {
    /// Opens the path to `peer`, whose packets leave as `options` say; they have checksums until
    /// [`BurstTransport::set_checksums`].
    ///
    /// # Errors
    /// As [`UdpTransport::open`].
    pub fn open(
        path: &PathSpec,
        peer: SocketAddr,
        wait: WaitStrategy,
        options: SenderSocketOptions,
    ) -> Result<UdpStream, TransportError> {
        // Only a connected socket knows its local address and the path MTU.
        let connected = UdpTransport::open(path, peer, wait)?;
        let unconnected_path = connected.path();
        let (socket, to) = if options.connect {
            (connected, None)
        } else {
            drop(connected);
            let local = unconnected_path.local;
            (UdpTransport::open_unconnected(path, local, peer, wait)?, Some(Address::from(peer)))
        };
        let (fd, bytes) = (socket.as_fd(), defaults::STREAM_BUFFER_BYTES);
        let granted = socket::set_send_buffer(fd, bytes).map_err(setting_error("the send buffer", bytes))?;
        socket::set_receive_buffer(fd, bytes).map_err(setting_error("the receive buffer", bytes))?;
        let most = if options.mode == SendMode::Sendmmsg { options.batch.max(1) } else { 0 };
        let batch = SendBatch::new(usize::from(most), to);
        let path = OpenPath { send_buffer_bytes: Some(granted), ..unconnected_path };
        Ok(UdpStream { socket, to, options, batch, path })
    }
}

impl Transport for UdpStream {
    #[inline]
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let Some(to) = &self.to else { return self.socket.send(datagram) };
        match datagram::send_to(self.socket.as_fd(), datagram, to) {
            Err(error) if is_interrupted(&error) => datagram::send_to(self.socket.as_fd(), datagram, to),
            sent => sent,
        }
        .map(drop)
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        if self.to.is_none() {
            return self.socket.receive(buffer, max_wait);
        }
        let peer = self.path.peer;
        self.socket.receive_with(buffer, max_wait, |fd, buffer, sleeps| {
            let mut from = Address::empty();
            let bytes = if sleeps {
                datagram::receive_from(fd, buffer, &mut from)
            } else {
                datagram::receive_from_now(fd, buffer, &mut from)
            }?;
            // The filter of a connected socket.
            let is_peer =
                from.to_socket_addr().is_some_and(|from| from.ip() == peer.ip() && from.port() == peer.port());
            if is_peer { Ok(bytes) } else { Err(io::ErrorKind::WouldBlock.into()) }
        })
    }

    /// A socket that is not connected reports no errors.
    fn report(&self) -> PathReport {
        self.socket.report()
    }
}

impl BurstTransport for UdpStream {
    #[inline]
    fn burst(&mut self, packets: Packets<'_>) -> io::Result<usize> {
        let (size, stride) = (packets.size_bytes(), packets.stride_bytes());
        match self.options.mode {
            SendMode::Send | SendMode::Batch => send_each(self, packets),
            SendMode::Sendmmsg => {
                let UdpStream { socket, batch, .. } = self;
                match batch.send(socket.as_fd(), packets.bytes(), size, stride) {
                    Err(error) => socket.retry_send(error, |fd| batch.send(fd, packets.bytes(), size, stride)),
                    sent => sent,
                }
            }
            SendMode::Gso => {
                let UdpStream { socket, to, .. } = self;
                // The kernel takes all of it or nothing.
                match send_segmented(socket.as_fd(), packets.bytes(), size as u16, to.as_ref()) {
                    Err(error) => {
                        socket.retry_send(error, |fd| send_segmented(fd, packets.bytes(), size as u16, to.as_ref()))
                    }
                    sent => sent,
                }
                .map(|_| packets.count())
            }
        }
    }

    fn set_checksums(&mut self, on: bool) -> io::Result<()> {
        let family = AddressFamily::of(&self.path.peer);
        socket::set_checksums(self.socket.as_fd(), family, on || self.options.checksum)
    }
}

impl PathTransport for UdpStream {
    fn path(&self) -> OpenPath {
        self.path
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;
    use crate::plan::{Schedule, WaitMode};
    use crate::transport::SendModeError;

    fn peer() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address");
        (socket, address)
    }

    #[test]
    fn neither_a_short_timeout_nor_a_late_answer_prolongs_a_wait() {
        for (timeout, stray_after) in [(Nanos::from_millis(1), None), (Nanos::from_millis(150), Some(60))] {
            let (far, address) = peer();
            let wait = WaitStrategy::new(WaitMode::Block, Schedule::Closed, timeout);
            let mut transport = UdpTransport::open(&PathSpec::SYSTEM, address, wait).expect("a path");
            let local = transport.local_address();
            let sender = stray_after.map(|after_ms| {
                std::thread::spawn(move || {
                    std::thread::sleep(std::time::Duration::from_millis(after_ms));
                    far.send_to(b"late", local).expect("sent");
                })
            });
            // The least of several waits: other processes may use the CPU, but the kernel's rounding is in every one.
            let waits = (0..if stray_after.is_some() { 1 } else { 20 }).map(|_| wait_out(&mut transport, timeout));
            let least = waits.min().expect("at least one");
            assert!(least >= timeout && least < timeout + timeout + timeout, "{least:?} for {timeout:?}");
            sender.into_iter().for_each(|thread| thread.join().expect("sent"));
        }
    }

    /// Receives until `timeout` has passed and returns how long that took.
    fn wait_out(transport: &mut UdpTransport, timeout: Nanos) -> Nanos {
        let start = std::time::Instant::now();
        let waited = || Nanos(start.elapsed().as_nanos() as i64);
        while waited() < timeout {
            transport.receive(&mut [0; 8], timeout - waited()).expect("a working socket");
        }
        waited()
    }

    #[test]
    fn an_error_about_an_earlier_datagram_is_counted_and_fails_no_send() {
        let (socket, address) = peer();
        drop(socket);
        let mut transport = UdpTransport::open(&PathSpec::SYSTEM, address, WaitStrategy::Spin).expect("a path");
        for _ in 0..3 {
            transport.send(b"probe").expect("the kernel took it");
        }
        assert_eq!(transport.receive(&mut [0; 8], Nanos::ZERO).expect("the error is not this call's"), None);
        assert_eq!(transport.report().socket_errors, BTreeMap::from([("ECONNREFUSED".to_owned(), 3)]));
    }

    #[test]
    fn a_refused_datagram_is_an_error_of_its_own_send() {
        let (_socket, address) = peer();
        let mut transport = UdpTransport::open(&PathSpec::SYSTEM, address, WaitStrategy::Spin).expect("a path");
        let error = transport.send(&vec![0; 70_000]).expect_err("larger than any datagram");
        assert_eq!(Errno::from_io_error(&error), Some(Errno::MSGSIZE));
        assert_eq!(transport.report().socket_errors, BTreeMap::new());
    }

    const SIZE: usize = 100;

    fn far(loopback: &str) -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind(loopback).expect("a port");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
        let address = socket.local_addr().expect("an address");
        (socket, address)
    }

    fn stream(peer: SocketAddr, options: SenderSocketOptions) -> UdpStream {
        UdpStream::open(&PathSpec::SYSTEM, peer, WaitStrategy::Until { busy_poll: false }, options).expect("a path")
    }

    fn all_options() -> impl Iterator<Item = SenderSocketOptions> {
        let modes = [SendMode::Send, SendMode::Sendmmsg, SendMode::Gso].into_iter();
        modes.flat_map(|mode| {
            [true, false].map(|connect| SenderSocketOptions { mode, connect, ..SenderSocketOptions::PLAIN })
        })
    }

    #[test]
    fn every_mode_delivers_every_packet_and_receives_from_its_peer_only() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            for options in all_options() {
                let (socket, peer) = far(loopback);
                let mut stream = stream(peer, options);
                let path = stream.path();
                let bytes: Vec<u8> = (0..5 * SIZE).map(|at| at as u8).collect();
                assert_eq!(stream.burst(Packets::new(&bytes, SIZE, SIZE)).expect("sent"), 5, "{options:?}");
                let mut buffer = [0; 512];
                for number in 0..5 {
                    let (length, from) = socket.recv_from(&mut buffer).expect("a packet");
                    assert_eq!((&buffer[..length], from), (&bytes[number * SIZE..][..SIZE], path.local));
                }
                let (stranger, _) = far(loopback);
                stranger.send_to(b"stranger", path.local).expect("sent");
                socket.send_to(b"answer", path.local).expect("sent");
                let received = (0..100)
                    .find_map(|_| stream.receive(&mut buffer, Nanos::from_millis(50)).expect("a working socket"));
                assert_eq!(received.map(|length| &buffer[..length]), Some(&b"answer"[..]), "{options:?}");
                assert!(path.send_buffer_bytes.is_some_and(|bytes| bytes >= 100_000), "{path:?}");
                assert!(path.unfragmented_bytes.is_some_and(|bytes| bytes > 1_200));
            }
        }
    }

    #[test]
    fn gso_without_checksums_is_refused_by_name() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let (_socket, peer) = far(loopback);
            let gso = SenderSocketOptions { mode: SendMode::Gso, ..SenderSocketOptions::PLAIN };
            let unchecked = SenderSocketOptions { checksum: false, ..gso };
            let mut stream = stream(peer, unchecked);
            let packets = |bytes| Packets::new(bytes, SIZE, SIZE);
            assert_eq!(stream.burst(packets(&[7; 3 * SIZE])).expect("with checksums at first"), 3);
            stream.set_checksums(false).expect("checksums off");
            let error = stream.burst(packets(&[7; 3 * SIZE])).expect_err("EINVAL");
            assert_eq!(SendModeError::of(&error, unchecked, 100), Some(SendModeError::ChecksumOff), "{error}");
            stream.set_checksums(true).expect("checksums on");
            assert_eq!(stream.burst(packets(&[7; 3 * SIZE])).expect("with checksums again"), 3);
        }
    }

    #[test]
    fn packets_without_checksums_arrive_at_a_socket_that_accepts_them() {
        for (loopback, mode) in [("127.0.0.1:0", SendMode::Send), ("[::1]:0", SendMode::Sendmmsg)] {
            let (socket, peer) = far(loopback);
            let mut stream = stream(peer, SenderSocketOptions { mode, checksum: false, ..SenderSocketOptions::PLAIN });
            stream.set_checksums(false).expect("checksums off");
            if peer.is_ipv6() {
                socket::accept_unchecked(socket.as_fd(), true).expect("UDP_NO_CHECK6_RX");
            }
            assert_eq!(stream.burst(Packets::new(&[7; 2 * SIZE], SIZE, SIZE)).expect("sent"), 2);
            assert_eq!(socket.recv_from(&mut [0; 512]).expect("a packet").0, SIZE);
        }
    }
}
