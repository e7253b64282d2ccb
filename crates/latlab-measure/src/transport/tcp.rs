//! One TCP connection of a sender. Each message is one frame, which one system call sends and one receives.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use latlab_sys::{address, connection, datagram, readiness, socket};
use rustix::io::Errno;
use rustix::net::sockopt;

use super::address::{check_family, family_of, requested_local_address};
use super::error::{TransportError, is_interrupted, setting_error};
use super::frame::{MessageDecoder, MessageEncoder};
use super::interface::{BurstTransport, ConnectionBytes, OpenPath, PathReport, PathTransport, Transport};
use super::udp::set_path_options;
use super::wait::{WaitStep, WaitStrategy};
use crate::facts::ConnectionFacts;
use crate::plan::{PathSpec, defaults};
use crate::units::Nanos;

/// A connection attempt without an answer is given up after as long as HELLOs are sent over UDP.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection to one peer. All its memory is allocated when it is opened.
#[derive(Debug)]
pub struct TcpTransport {
    socket: OwnedFd,
    wait: WaitStrategy,
    local: SocketAddr,
    peer: SocketAddr,
    decoder: MessageDecoder,
    encoder: MessageEncoder,
    /// Bytes of all frames, the unsent part included.
    sent_bytes: u64,
}

impl TcpTransport {
    /// Connects to `peer`. When `stop` is set the attempt ends within 100 ms.
    ///
    /// # Errors
    /// The kernel refuses the address, the port, the interface or an option, the peer refuses the connection, or it does
    /// not answer within 3 s.
    pub fn open(
        path: &PathSpec,
        peer: SocketAddr,
        wait: WaitStrategy,
        stop: &AtomicBool,
    ) -> Result<TcpTransport, TransportError> {
        check_family(path, peer)?;
        let family = address::AddressFamily::of(&peer);
        let socket =
            connection::tcp(family).map_err(|source| TransportError::Socket { family: family_of(&peer), source })?;
        let fd = socket.as_fd();
        set_path_options(fd, path, family, wait)?;
        set_connection_options(fd, wait.busy_polls())?;
        if let Some(local) = requested_local_address(path, peer) {
            // An earlier connection from the same port may be in TIME_WAIT for a minute.
            sockopt::set_socket_reuseaddr(fd, true).map_err(setting_error("the address", "reusable"))?;
            socket::bind(fd, local).map_err(|source| TransportError::Bind { local, source })?;
        }
        connect(fd, peer, stop)?;
        let local = socket::local_address(fd).map_err(|source| TransportError::Connection { peer, source })?;
        let (decoder, encoder) = (MessageDecoder::default(), MessageEncoder::default());
        Ok(TcpTransport { socket, wait, local, peer, decoder, encoder, sent_bytes: 0 })
    }

    /// Limits the bytes that the kernel takes before it can send them: a stream's POLL waits behind them.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn with_unsent_limit(self) -> Result<TcpTransport, TransportError> {
        let bytes = defaults::STREAM_UNSENT_BYTES;
        let limited = connection::set_unsent_limit(self.socket.as_fd(), bytes);
        limited.map_err(setting_error("the limit of unsent bytes (TCP_NOTSENT_LOWAT)", bytes)).map(|()| self)
    }

    /// The address and port measured from.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    fn facts(&self) -> Option<ConnectionFacts> {
        let fd = self.socket.as_fd();
        let counts = connection::counts(fd).ok()?;
        Some(ConnectionFacts {
            congestion_control: sockopt::tcp_congestion(fd).ok(),
            send_segment_bytes: counts.send_segment_bytes,
            retransmitted: u64::from(counts.retransmitted),
        })
    }

    /// Sends the unsent part of the last frame with `send`, as far as the kernel takes it, and returns whether all of it
    /// was sent.
    #[cold]
    fn send_rest(&mut self, send: impl FnOnce(BorrowedFd<'_>, &[u8]) -> io::Result<usize>) -> io::Result<bool> {
        match send(self.socket.as_fd(), self.encoder.unsent()) {
            Ok(taken) => self.encoder.advance(taken),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interrupted(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(!self.encoder.has_unsent())
    }

    /// [`Transport::receive`] while a part of a frame is unsent: waits for either direction.
    #[cold]
    fn receive_and_send_rest(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        let fd = self.socket.as_fd();
        if let WaitStep::SleepInReceive | WaitStep::Poll(_) = self.wait.step(max_wait) {
            match readiness::either_within(fd, max_wait.min(defaults::NAP).0) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if is_interrupted(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        self.send_rest(connection::send_now)?;
        let received = datagram::receive_now(self.socket.as_fd(), self.decoder.space());
        self.decode_received(received, buffer)
    }

    /// The next message, if the received bytes complete one.
    #[inline]
    fn decode_received(&mut self, received: io::Result<usize>, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match received {
            // The peer has closed the connection.
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => {
                self.decoder.filled(bytes);
                self.decode(buffer)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interrupted(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    #[inline]
    fn decode(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.decoder.decode(buffer).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

impl Transport for TcpTransport {
    /// As over UDP the call waits for space in the send buffer, 100 ms at most. A message of which the kernel has taken a
    /// part is sent: its rest precedes everything else.
    #[inline]
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        if self.encoder.has_unsent() && !self.send_rest(datagram::send)? {
            return Err(io::Error::from_raw_os_error(Errno::AGAIN.raw_os_error()));
        }
        let too_long = || io::Error::from_raw_os_error(Errno::MSGSIZE.raw_os_error());
        let frame = self.encoder.encode(message).ok_or_else(too_long)?;
        let all = frame.len();
        let mut sent = datagram::send(self.socket.as_fd(), frame);
        if sent.as_ref().is_err_and(is_interrupted) {
            sent = datagram::send(self.socket.as_fd(), frame);
        }
        let taken = sent?;
        self.sent_bytes += all as u64;
        if taken < all {
            self.encoder.keep_unsent(taken, all);
        }
        Ok(())
    }

    #[inline]
    fn receive(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        // One call may have received several messages.
        if let Some(bytes) = self.decode(buffer)? {
            return Ok(Some(bytes));
        }
        if self.encoder.has_unsent() {
            return self.receive_and_send_rest(buffer, max_wait);
        }
        let fd = self.socket.as_fd();
        let received = match self.wait.step(max_wait) {
            WaitStep::SleepInReceive => datagram::receive(fd, self.decoder.space()),
            WaitStep::Receive => datagram::receive_now(fd, self.decoder.space()),
            WaitStep::Poll(span) => match readiness::readable_within(fd, span.0) {
                Ok(false) => return Ok(None),
                Ok(true) => datagram::receive_now(fd, self.decoder.space()),
                Err(error) => Err(error),
            },
        };
        self.decode_received(received, buffer)
    }

    fn report(&self) -> PathReport {
        PathReport { is_connection: true, connection: self.facts(), ..PathReport::default() }
    }
}

/// Message by message: the kernel cuts and joins them.
impl BurstTransport for TcpTransport {
    fn progress(&self) -> Option<ConnectionBytes> {
        let pending = connection::unacknowledged(self.as_fd()).ok()? + self.encoder.unsent().len() as u64;
        let acknowledged_bytes = self.sent_bytes.saturating_sub(pending);
        Some(ConnectionBytes { sent_bytes: self.sent_bytes, acknowledged_bytes })
    }
}

impl PathTransport for TcpTransport {
    fn path(&self) -> OpenPath {
        OpenPath { local: self.local, peer: self.peer, unfragmented_bytes: None, send_buffer_bytes: None }
    }
}

impl AsFd for TcpTransport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sets the options of a connection at either end. Buffers are left to the kernel, which tunes them by itself.
pub(super) fn set_connection_options(fd: BorrowedFd<'_>, busy_polls: bool) -> Result<(), TransportError> {
    let timeout = defaults::NAP.0;
    // Also the longest sleep of `connect`.
    socket::set_send_timeout(fd, timeout).map_err(setting_error("the send time-out", timeout))?;
    sockopt::set_tcp_nodelay(fd, true).map_err(setting_error("TCP_NODELAY", "on"))?;
    if busy_polls {
        let span = defaults::BUSY_POLL_US;
        socket::set_busy_poll(fd, span).map_err(setting_error("busy polling", format!("{span}us")))?;
    }
    Ok(())
}

/// Connects in waits of 100 ms, so that `stop` is seen.
fn connect(fd: BorrowedFd<'_>, peer: SocketAddr, stop: &AtomicBool) -> Result<(), TransportError> {
    let refused = |source| TransportError::Connection { peer, source };
    let start = Instant::now();
    match socket::connect(fd, peer) {
        Ok(()) => return Ok(()),
        Err(error) if is_in_progress(&error) => {}
        Err(source) => return Err(refused(source)),
    }
    while start.elapsed() < CONNECT_TIMEOUT {
        if stop.load(Ordering::Relaxed) {
            return Err(TransportError::Interrupted { peer });
        }
        match readiness::writable_within(fd, defaults::NAP.0) {
            Ok(true) => return connection::take_error(fd).map_err(refused),
            Ok(false) => {}
            Err(error) if is_interrupted(&error) => {}
            Err(source) => return Err(refused(source)),
        }
    }
    Err(refused(io::ErrorKind::TimedOut.into()))
}

/// Whether the connection attempt goes on in the kernel after a connect call that timed out or was interrupted.
fn is_in_progress(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::INPROGRESS | Errno::INTR | Errno::AGAIN))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    const STRATEGIES: [WaitStrategy; 3] = [
        WaitStrategy::Sleep { receive_timeout: Some(Nanos::from_millis(50)), busy_poll: false },
        WaitStrategy::Until { busy_poll: false },
        WaitStrategy::Spin,
    ];

    fn pair(wait: WaitStrategy, address: &str) -> (TcpTransport, TcpStream) {
        let listener = TcpListener::bind(address).expect("a port");
        let peer = listener.local_addr().expect("bound");
        let transport = TcpTransport::open(&PathSpec::SYSTEM, peer, wait, &NEVER).expect("a connection");
        let (far, from) = listener.accept().expect("a connection");
        assert_eq!((from, peer), (transport.local, transport.peer));
        (transport, far)
    }

    /// Receives until a message comes.
    fn receive_one(transport: &mut TcpTransport, buffer: &mut [u8]) -> usize {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            if let Some(bytes) = transport.receive(buffer, Nanos::from_millis(50)).expect("an open connection") {
                return bytes;
            }
            assert!(Instant::now() < deadline, "nothing came");
        }
    }

    #[test]
    fn every_wait_strategy_receives_whole_messages() {
        for wait in STRATEGIES {
            let (mut transport, mut far) = pair(wait, "127.0.0.1:0");
            assert_eq!(transport.receive(&mut [0; 64], Nanos::ZERO).expect("an open connection"), None);
            transport.send(&[7; 30]).expect("sent");
            let mut frame = [0; 32];
            far.read_exact(&mut frame).expect("a frame");
            assert_eq!((frame[..2].to_vec(), frame[2..].to_vec()), (vec![0, 30], vec![7; 30]));
            // Two messages in one piece, then one in two.
            far.write_all(&[[0, 24].as_slice(), &[1; 24], &[0, 25], &[2; 25], &[0]].concat()).expect("sent");
            let mut buffer = [0; 64];
            for (length, byte) in [(24, 1), (25, 2)] {
                assert_eq!((receive_one(&mut transport, &mut buffer), buffer[0]), (length, byte), "{wait:?}");
            }
            assert_eq!(transport.receive(&mut buffer, Nanos::from_millis(5)).expect("an open connection"), None);
            far.write_all(&[[26].as_slice(), &[3; 26]].concat()).expect("sent");
            assert_eq!(receive_one(&mut transport, &mut buffer), 26);
            let facts = transport.report().connection.expect("known");
            assert_eq!((facts.retransmitted, facts.congestion_control.is_some()), (0, true));
        }
    }

    #[test]
    fn a_closed_connection_and_an_invalid_length_are_errors() {
        for (garbage, kind) in [(&[][..], io::ErrorKind::UnexpectedEof), (&[0, 1, 7], io::ErrorKind::InvalidData)] {
            let (mut transport, mut far) = pair(WaitStrategy::Until { busy_poll: false }, "127.0.0.1:0");
            far.write_all(garbage).expect("sent");
            drop(far);
            let error = transport.receive(&mut [0; 64], Nanos::from_secs(5)).expect_err("no message");
            assert_eq!(error.kind(), kind);
        }
    }

    #[test]
    fn a_peer_that_stops_reading_refuses_messages_and_splits_none() {
        let (mut transport, mut far) = pair(STRATEGIES[0], "127.0.0.1:0");
        let message = [5; 60_000];
        let mut sent = 0_usize;
        let refused = loop {
            match transport.send(&message) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
            assert!(sent < 10_000, "the peer reads nothing");
        };
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        // The peer reads on: a message that was taken in part arrives whole, a refused one does not arrive.
        let reading = std::thread::spawn(move || {
            let mut frame = vec![0; 2 + 60_000];
            (0..sent).for_each(|_| {
                far.read_exact(&mut frame).expect("a frame");
                assert!(frame[..2] == 60_000_u16.to_be_bytes() && frame[2..].iter().all(|byte| *byte == 5));
            });
            far
        });
        let deadline = Instant::now() + Duration::from_secs(10);
        while transport.encoder.has_unsent() {
            assert_eq!(transport.receive(&mut [0; 64], Nanos::from_millis(50)).expect("an open connection"), None);
            assert!(Instant::now() < deadline, "the rest was not sent");
        }
        let mut far = reading.join().expect("every frame was whole");
        transport.send(&[6; 24]).expect("space in the send buffer");
        let mut frame = [0; 26];
        far.read_exact(&mut frame).expect("a frame");
        assert_eq!(frame[2..], [6; 24]);
    }
}
