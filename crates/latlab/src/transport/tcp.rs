//! One TCP connection: a message leaves behind its length with one system call, and comes with one.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use latlab_sys::{address, connection, datagram, readiness, socket};
use rustix::io::Errno;

use super::Transport;
use super::burst::{BurstTransport, ConnectionBytes};
use super::frame::{Incoming, Outgoing};
use super::refusal::TransportError;
use super::udp::{family_of, is_interruption, setting, settle_way, wanted_local};
use super::waiting::WaitStep;
pub use super::waiting::WaitStrategy;
use crate::facts::ConnectionFacts;
use crate::plan::{PathSpec, defaults};
use crate::units::Nanos;

/// A connection that nobody has answered by then is given up: as long as HELLOs are sent over UDP.
const CONNECTS_WITHIN: Duration = Duration::from_secs(3);

/// A connection to one peer. Everything it needs is there when it is open: nothing allocates afterwards.
#[derive(Debug)]
pub struct TcpTransport {
    socket: OwnedFd,
    waiting: WaitStrategy,
    local: SocketAddr,
    peer: SocketAddr,
    incoming: Incoming,
    outgoing: Outgoing,
    /// With their lengths in front, and with what is still owed.
    handed_bytes: u64,
}

impl TcpTransport {
    /// Connects to `peer`. `stop` gives up within 100 ms, whoever sets it.
    ///
    /// # Errors
    /// Each step the kernel refuses; nobody listens, or nobody answers within 3 s.
    pub fn open(
        path: &PathSpec,
        peer: SocketAddr,
        waiting: WaitStrategy,
        stop: &AtomicBool,
    ) -> Result<TcpTransport, TransportError> {
        if let Some(local) = path.bind_address.filter(|local| local.is_ipv4() != peer.is_ipv4()) {
            return Err(TransportError::FamilyMismatch { local, peer });
        }
        let family = address::Family::of(&peer);
        let socket =
            connection::tcp(family).map_err(|source| TransportError::Socket { family: family_of(&peer), source })?;
        let fd = socket.as_fd();
        settle(fd, path, family, waiting)?;
        if let Some(local) = wanted_local(path, peer) {
            // The connection before may have left from the same port, and is remembered for a minute (TIME_WAIT).
            connection::reuse_address(fd).map_err(setting("the address", "reusable"))?;
            socket::bind(fd, local).map_err(|source| TransportError::Bind { local, source })?;
        }
        connect(fd, peer, stop)?;
        let local = socket::local_address(fd).map_err(|source| TransportError::Connection { peer, source })?;
        let (incoming, outgoing) = (Incoming::default(), Outgoing::default());
        Ok(TcpTransport { socket, waiting, local, peer, incoming, outgoing, handed_bytes: 0 })
    }

    /// For a stream, which asks what arrived behind all that it has sent: the kernel takes no more than it is about to send.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn for_a_stream(self) -> Result<TcpTransport, TransportError> {
        let bytes = defaults::STREAM_UNSENT_BYTES;
        let limited = connection::set_unsent_limit(self.socket.as_fd(), bytes);
        limited.map_err(setting("the limit of unsent bytes (TCP_NOTSENT_LOWAT)", bytes)).map(|()| self)
    }

    /// The address and port measured from.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// The address and port measured to.
    pub const fn peer_address(&self) -> SocketAddr {
        self.peer
    }

    /// What the kernel tells of the connection; none where it does not.
    pub fn facts(&self) -> Option<ConnectionFacts> {
        let fd = self.socket.as_fd();
        let counts = connection::counts(fd).ok()?;
        Some(ConnectionFacts {
            congestion_control: connection::congestion_control(fd).ok(),
            send_segment_bytes: counts.send_segment_bytes,
            retransmitted: u64::from(counts.retransmitted),
        })
    }

    /// Hands over what of the message before is still owed, as far as the kernel takes it by `send`. Whether nothing is
    /// owed any more.
    #[cold]
    fn pay(&mut self, send: impl FnOnce(BorrowedFd<'_>, &[u8]) -> io::Result<usize>) -> io::Result<bool> {
        match send(self.socket.as_fd(), self.outgoing.owed()) {
            Ok(taken) => self.outgoing.paid(taken),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interruption(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(!self.outgoing.owes())
    }

    /// As [`Transport::receive`] while a part of a message waits to be sent: looks after that as well.
    #[cold]
    fn receive_owing(&mut self, buffer: &mut [u8], patience: Nanos) -> io::Result<Option<usize>> {
        let fd = self.socket.as_fd();
        if let WaitStep::Sleep | WaitStep::Poll(_) = self.waiting.step(patience) {
            match readiness::either_within(fd, patience.min(defaults::NAP).0) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if is_interruption(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        self.pay(connection::send_now)?;
        let received = datagram::receive_now(self.socket.as_fd(), self.incoming.room());
        self.taken(received, buffer)
    }

    /// The next message, if what the receive call brought makes one whole.
    #[inline]
    fn taken(&mut self, received: io::Result<usize>, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match received {
            // The other end has closed the connection.
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => {
                self.incoming.came(bytes);
                self.next(buffer)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interruption(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn next(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.incoming.take(buffer).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

impl Transport for TcpTransport {
    /// As over UDP the call waits for room in the send buffer, 100 ms at most. A message of which the kernel has taken a
    /// part is sent: the rest goes before everything else.
    #[inline]
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        if self.outgoing.owes() && !self.pay(datagram::send)? {
            return Err(io::Error::from_raw_os_error(Errno::AGAIN.raw_os_error()));
        }
        let too_long = || io::Error::from_raw_os_error(Errno::MSGSIZE.raw_os_error());
        let frame = self.outgoing.frame(message).ok_or_else(too_long)?;
        let all = frame.len();
        let mut sent = datagram::send(self.socket.as_fd(), frame);
        if sent.as_ref().is_err_and(is_interruption) {
            sent = datagram::send(self.socket.as_fd(), frame);
        }
        let taken = sent?;
        self.handed_bytes += all as u64;
        if taken < all {
            self.outgoing.owe(taken, all);
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], patience: Nanos) -> io::Result<Option<usize>> {
        // One call may have brought several.
        if let Some(bytes) = self.next(buffer)? {
            return Ok(Some(bytes));
        }
        if self.outgoing.owes() {
            return self.receive_owing(buffer, patience);
        }
        let fd = self.socket.as_fd();
        let received = match self.waiting.step(patience) {
            WaitStep::Sleep => datagram::receive(fd, self.incoming.room()),
            WaitStep::Look => datagram::receive_now(fd, self.incoming.room()),
            WaitStep::Poll(span) => match readiness::readable_within(fd, span.0) {
                Ok(false) => return Ok(None),
                Ok(true) => datagram::receive_now(fd, self.incoming.room()),
                Err(error) => Err(error),
            },
        };
        self.taken(received, buffer)
    }
}

/// Message by message: the kernel cuts and joins them as the path wants it.
impl BurstTransport for TcpTransport {
    fn carried(&self) -> Option<ConnectionBytes> {
        let under_way = connection::unacknowledged(self.as_fd()).ok()? + self.outgoing.owed().len() as u64;
        let acknowledged_bytes = self.handed_bytes.saturating_sub(under_way);
        Some(ConnectionBytes { handed_bytes: self.handed_bytes, acknowledged_bytes })
    }
}

impl AsFd for TcpTransport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Everything the socket promises besides its two addresses. Buffers are left to the kernel, which tunes those of a
/// connection by itself.
fn settle(
    fd: BorrowedFd<'_>,
    path: &PathSpec,
    family: address::Family,
    waiting: WaitStrategy,
) -> Result<(), TransportError> {
    settle_way(fd, path, family, waiting)?;
    settle_connection(fd, waiting.busy_polls())
}

/// What both ends ask of a connection alike.
pub(super) fn settle_connection(fd: BorrowedFd<'_>, busy_polls: bool) -> Result<(), TransportError> {
    let nap = defaults::NAP.0;
    // Also how long `connect` sleeps.
    socket::set_send_timeout(fd, nap).map_err(setting("the send time-out", nap))?;
    connection::set_no_delay(fd).map_err(setting("TCP_NODELAY", "on"))?;
    if busy_polls {
        let span = defaults::BUSY_POLL_US;
        socket::set_busy_poll(fd, span).map_err(setting("busy polling", format!("{span}us")))?;
    }
    Ok(())
}

/// Connects in naps, so that Ctrl-C is heard.
fn connect(fd: BorrowedFd<'_>, peer: SocketAddr, stop: &AtomicBool) -> Result<(), TransportError> {
    let refused = |source| TransportError::Connection { peer, source };
    let start = Instant::now();
    match socket::connect(fd, peer) {
        Ok(()) => return Ok(()),
        Err(error) if is_under_way(&error) => {}
        Err(source) => return Err(refused(source)),
    }
    while start.elapsed() < CONNECTS_WITHIN {
        if stop.load(Ordering::Relaxed) {
            return Err(TransportError::Interrupted { peer });
        }
        match readiness::writable_within(fd, defaults::NAP.0) {
            Ok(true) => return connection::failure(fd).map_err(refused),
            Ok(false) => {}
            Err(error) if is_interruption(&error) => {}
            Err(source) => return Err(refused(source)),
        }
    }
    Err(refused(io::ErrorKind::TimedOut.into()))
}

/// A connect call that slept its nap out, or was interrupted, goes on by itself.
fn is_under_way(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::INPROGRESS | Errno::INTR | Errno::AGAIN))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    const WAITINGS: [WaitStrategy; 3] = [
        WaitStrategy::Sleep { nap: Some(Nanos::from_millis(50)), busy_poll: false },
        WaitStrategy::Until { busy_poll: false },
        WaitStrategy::Spin,
    ];

    fn pair(waiting: WaitStrategy, address: &str) -> (TcpTransport, TcpStream) {
        let listener = TcpListener::bind(address).expect("a port");
        let peer = listener.local_addr().expect("bound");
        let transport = TcpTransport::open(&PathSpec::SYSTEM, peer, waiting, &NEVER).expect("somebody listens");
        let (far, from) = listener.accept().expect("somebody connects");
        assert_eq!((from, peer), (transport.local_address(), transport.peer_address()));
        (transport, far)
    }

    /// Asks until a message comes.
    fn patiently(transport: &mut TcpTransport, buffer: &mut [u8]) -> usize {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            if let Some(bytes) = transport.receive(buffer, Nanos::from_millis(50)).expect("the connection lives") {
                return bytes;
            }
            assert!(Instant::now() < deadline, "nothing came");
        }
    }

    #[test]
    fn every_way_of_waiting_brings_messages_whole() {
        for waiting in WAITINGS {
            let (mut transport, mut far) = pair(waiting, "127.0.0.1:0");
            assert_eq!(transport.receive(&mut [0; 64], Nanos::ZERO).expect("it lives"), None);
            transport.send(&[7; 30]).expect("sent");
            let mut frame = [0; 32];
            far.read_exact(&mut frame).expect("a frame");
            assert_eq!((frame[..2].to_vec(), frame[2..].to_vec()), (vec![0, 30], vec![7; 30]));
            // Two messages in one piece, then one in two.
            far.write_all(&[[0, 24].as_slice(), &[1; 24], &[0, 25], &[2; 25], &[0]].concat()).expect("sent");
            let mut buffer = [0; 64];
            for (length, byte) in [(24, 1), (25, 2)] {
                assert_eq!((patiently(&mut transport, &mut buffer), buffer[0]), (length, byte), "{waiting:?}");
            }
            assert_eq!(transport.receive(&mut buffer, Nanos::from_millis(5)).expect("it lives"), None);
            far.write_all(&[[26].as_slice(), &[3; 26]].concat()).expect("sent");
            assert_eq!(patiently(&mut transport, &mut buffer), 26);
            let facts = transport.facts().expect("told");
            assert_eq!((facts.retransmitted, facts.congestion_control.is_some()), (0, true));
        }
    }

    #[test]
    fn the_end_of_the_connection_is_an_error_and_so_is_garbage() {
        for (garbage, kind) in [(&[][..], io::ErrorKind::UnexpectedEof), (&[0, 1, 7], io::ErrorKind::InvalidData)] {
            let (mut transport, mut far) = pair(WaitStrategy::Until { busy_poll: false }, "127.0.0.1:0");
            far.write_all(garbage).expect("sent");
            drop(far);
            let error = transport.receive(&mut [0; 64], Nanos::from_secs(5)).expect_err("no message any more");
            assert_eq!(error.kind(), kind);
        }
    }

    #[test]
    fn a_reader_that_stops_refuses_probes_and_none_is_torn() {
        let (mut transport, mut far) = pair(WAITINGS[0], "127.0.0.1:0");
        let message = [5; 60_000];
        let mut sent = 0_usize;
        let refused = loop {
            match transport.send(&message) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
            assert!(sent < 10_000, "the other end reads nothing");
        };
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        // The reader goes on: what was sent in part comes whole, and what was refused does not come at all.
        let reading = std::thread::spawn(move || {
            let mut frame = vec![0; 2 + 60_000];
            (0..sent).for_each(|_| {
                far.read_exact(&mut frame).expect("a frame");
                assert!(frame[..2] == 60_000_u16.to_be_bytes() && frame[2..].iter().all(|byte| *byte == 5));
            });
            far
        });
        let deadline = Instant::now() + Duration::from_secs(10);
        while transport.outgoing.owes() {
            assert_eq!(transport.receive(&mut [0; 64], Nanos::from_millis(50)).expect("it lives"), None);
            assert!(Instant::now() < deadline, "the rest was not taken");
        }
        let mut far = reading.join().expect("every frame was whole");
        transport.send(&[6; 24]).expect("there is room again");
        let mut frame = [0; 26];
        far.read_exact(&mut frame).expect("a frame");
        assert_eq!(frame[2..], [6; 24]);
    }

    #[test]
    fn nobody_who_listens_is_told_apart_from_nobody_who_answers() {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let peer = SocketAddr::from(([127, 0, 0, 1], port));
        let error =
            TcpTransport::open(&PathSpec::SYSTEM, peer, WaitStrategy::Spin, &NEVER).expect_err("nobody listens");
        assert!(error.to_string().contains(&format!("`{peer}`")) && error.exit_code() == 3, "{error}");
        assert_eq!(error.cause().as_deref(), Some("connection refused (ECONNREFUSED)"));
        assert!(error.hint().is_some_and(|hint| hint.contains("serve --tcp")), "{error:?}");
        let error = TransportError::Connection { peer, source: io::ErrorKind::TimedOut.into() };
        assert_eq!(error.cause().as_deref(), Some("no answer within 3 s"));
    }

    #[test]
    fn a_message_longer_than_any_is_refused() {
        let (mut transport, _far) = pair(WaitStrategy::Spin, "127.0.0.1:0");
        let error = transport.send(&[0; 65_508]).expect_err("too long");
        assert_eq!(Errno::from_io_error(&error), Some(Errno::MSGSIZE));
    }
}
