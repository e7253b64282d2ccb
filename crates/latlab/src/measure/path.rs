//! The transports of probes, as a lane opens them and tells of them afterwards.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use crate::facts::ConnectionFacts;
use crate::plan::PathSpec;
use crate::session::SessionError;
use crate::transport::Transport;
use crate::transport::refusal::TransportError;
use crate::transport::tcp::TcpTransport;
use crate::transport::udp::{UdpTransport, WaitStrategy};
use crate::transport::udp_stream::UdpStream;
use crate::units::{Nanos, SenderClock, Stamp};

/// A path that is open, as the manifest tells of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenPath {
    /// The address and port measured from.
    pub(crate) local: SocketAddr,
    /// The address and port measured to.
    pub(crate) peer: SocketAddr,
    /// The largest payload that leaves unfragmented, where the kernel says.
    pub(crate) unfragmented_bytes: Option<u32>,
}

impl From<&UdpTransport> for OpenPath {
    fn from(open: &UdpTransport) -> OpenPath {
        let (local, peer) = (open.local_address(), open.peer_address());
        OpenPath { local, peer, unfragmented_bytes: open.unfragmented_bytes() }
    }
}

impl From<&UdpStream> for OpenPath {
    fn from(open: &UdpStream) -> OpenPath {
        let (local, peer) = (open.local_address(), open.peer_address());
        OpenPath { local, peer, unfragmented_bytes: open.unfragmented_bytes() }
    }
}

impl From<&TcpTransport> for OpenPath {
    /// Segments fit the path, whatever a message's size is.
    fn from(open: &TcpTransport) -> OpenPath {
        OpenPath { local: open.local_address(), peer: open.peer_address(), unfragmented_bytes: None }
    }
}

/// A transport that a lane can open. The loops see a [`Transport`] and nothing of this.
pub(crate) trait ProbePath: Transport + Send + Sized {
    /// Opens the path to `peer`; `stop` gives up, whoever sets it.
    fn open(
        path: &PathSpec,
        peer: SocketAddr,
        waiting: WaitStrategy,
        stop: &AtomicBool,
    ) -> Result<Self, TransportError>;

    /// Why no session came about, with what the path knows of that.
    fn explained(&self, error: SessionError) -> SessionError;

    /// Its two ends, and what crosses it in one piece.
    fn ends(&self) -> OpenPath;

    /// What it was told about earlier datagrams: name of the errno → count.
    fn socket_errors(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// Datagrams that the kernel threw away at its socket, where it says.
    fn socket_drops(&self) -> Option<u64> {
        None
    }

    /// It broke at `at`: until when it is known that nothing came that was sent to here within `timeout`.
    fn listened_until(&self, at: Stamp<SenderClock>, timeout: Nanos) -> Stamp<SenderClock> {
        _ = timeout;
        at
    }

    /// What the kernel tells of its connection, where there is one.
    fn connection(&self) -> Option<ConnectionFacts> {
        None
    }
}

impl ProbePath for UdpTransport {
    fn open(path: &PathSpec, peer: SocketAddr, waiting: WaitStrategy, _: &AtomicBool) -> Result<Self, TransportError> {
        UdpTransport::open(path, peer, waiting)
    }

    fn explained(&self, error: SessionError) -> SessionError {
        // What ICMP said about earlier datagrams is counted; here it is the reason.
        error.told_by(self.socket_errors().into_keys().next())
    }

    fn ends(&self) -> OpenPath {
        OpenPath::from(self)
    }

    fn socket_errors(&self) -> BTreeMap<String, u64> {
        UdpTransport::socket_errors(self)
    }

    fn socket_drops(&self) -> Option<u64> {
        UdpTransport::socket_drops(self)
    }
}

impl ProbePath for TcpTransport {
    fn open(
        path: &PathSpec,
        peer: SocketAddr,
        waiting: WaitStrategy,
        stop: &AtomicBool,
    ) -> Result<Self, TransportError> {
        TcpTransport::open(path, peer, waiting, stop)
    }

    fn explained(&self, error: SessionError) -> SessionError {
        error.over_a_connection()
    }

    fn ends(&self) -> OpenPath {
        OpenPath::from(self)
    }

    /// What is unanswered when the connection is gone can no longer be answered.
    fn listened_until(&self, at: Stamp<SenderClock>, timeout: Nanos) -> Stamp<SenderClock> {
        at + timeout
    }

    fn connection(&self) -> Option<ConnectionFacts> {
        self.facts()
    }
}
