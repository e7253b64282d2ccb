//! Sockets that answer: sessions for `latlab serve` and a child process, bare loops for benchmarks.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;

use super::Outcome;
use crate::clock::Monotonic;
use crate::diagnostics::{Failure, refused};
use crate::measure::baseline::{bare, bare_stream, bare_tcp};
use crate::plan::{TransportKind, WaitMode};
use crate::session::{
    ReflectorCounters, ReflectorEvent, ReflectorLimits, ReflectorSocket, Requests, ServeError, SessionReflector, serve,
};
use crate::transport::reflector::UdpReflector;
use crate::transport::refusal::TransportError;
use crate::transport::tcp_reflector::TcpReflector;

/// A socket that answers.
#[derive(Debug)]
pub(super) enum AnyReflector {
    /// Datagrams.
    Udp(UdpReflector),
    /// Connections. Boxed: it holds a slot for each of them.
    Tcp(Box<TcpReflector>),
}

impl AnyReflector {
    /// Binds to `local`, or to its port on every address of this host, for what `limits` allow.
    pub(super) fn bind(
        transport: TransportKind,
        (local, everywhere): (SocketAddr, bool),
        wait: WaitMode,
        limits: &ReflectorLimits,
    ) -> Result<AnyReflector, TransportError> {
        let caps = limits.connections();
        Ok(match (transport, everywhere) {
            (TransportKind::Udp, false) => AnyReflector::Udp(UdpReflector::bind(local, wait)?),
            (TransportKind::Udp, true) => AnyReflector::Udp(UdpReflector::bind_everywhere(local.port(), wait)?),
            (TransportKind::Tcp, false) => AnyReflector::Tcp(Box::new(TcpReflector::bind(local, wait, caps)?)),
            (TransportKind::Tcp, true) => {
                AnyReflector::Tcp(Box::new(TcpReflector::bind_everywhere(local.port(), wait, caps)?))
            }
        })
    }

    /// Limits the socket to its first sender.
    pub(super) fn for_one_sender(self) -> AnyReflector {
        match self {
            AnyReflector::Udp(socket) => AnyReflector::Udp(socket.for_one_sender()),
            AnyReflector::Tcp(socket) => AnyReflector::Tcp(Box::new(socket.for_one_sender())),
        }
    }

    /// The local address, and the receive buffer in bytes that the kernel granted; `None` if none was requested.
    pub(super) fn place(&self) -> (SocketAddr, Option<u32>) {
        match self {
            AnyReflector::Udp(socket) => (socket.local_address(), Some(socket.receive_buffer_bytes())),
            AnyReflector::Tcp(socket) => (socket.local_address(), None),
        }
    }
}

/// The name in messages; UDP is not mentioned.
impl fmt::Display for AnyReflector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyReflector::Udp(socket) => write!(out, "`{}`", socket.local_address()),
            AnyReflector::Tcp(socket) => write!(out, "`{}` over TCP", socket.local_address()),
        }
    }
}

/// Answers on `socket` until `requests` end it. The loop is compiled once for each kind of socket.
pub(super) fn answer(
    socket: &mut AnyReflector,
    reflector: &mut SessionReflector,
    pin: Option<u16>,
    requests: Requests<'_>,
    show: impl FnMut(&ReflectorCounters),
) -> Result<(), ServeError> {
    match socket {
        AnyReflector::Udp(socket) => reflect(socket, reflector, pin, requests, show),
        AnyReflector::Tcp(socket) => reflect(&mut **socket, reflector, pin, requests, show),
    }
}

/// Answers with stamps of this host's clock. The CPU of a pinned thread is known without a system call.
fn reflect(
    socket: &mut impl ReflectorSocket,
    reflector: &mut SessionReflector,
    pin: Option<u16>,
    requests: Requests<'_>,
    show: impl FnMut(&ReflectorCounters),
) -> Result<(), ServeError> {
    match pin {
        Some(cpu) => serve(socket, reflector, &Monotonic, requests, || Some(cpu), show),
        None => serve(socket, reflector, &Monotonic, requests, latlab_sys::scheduler::current_cpu, show),
    }
}

/// What a reflector child process runs.
pub(super) enum ReflectorService {
    /// Sessions.
    Sessions(AnyReflector, Box<SessionReflector>),
    /// Every datagram, unparsed.
    Bare(OwnedFd, bare::Wait),
    /// The same over one connection, in messages of this many bytes.
    BareTcp(OwnedFd, bare::Wait, u32),
    /// No answers: counts what arrives, with this many buffers a call.
    BareStream(OwnedFd, bare::Wait, u16),
}

impl ReflectorService {
    /// Address and receive buffer.
    pub(super) fn ready(&self) -> Result<ReflectorEvent, Failure> {
        let (address, receive_buffer_bytes) = match self {
            ReflectorService::Sessions(socket, _) => socket.place(),
            ReflectorService::Bare(socket, _)
            | ReflectorService::BareTcp(socket, ..)
            | ReflectorService::BareStream(socket, ..) => {
                let address = latlab_sys::socket::local_address(socket.as_fd());
                (address.map_err(refused("ask for the address"))?, None)
            }
        };
        Ok(ReflectorEvent::Ready { address, receive_buffer_bytes })
    }

    /// Answers until `stop`, on a thread that is pinned to `pin`.
    pub(super) fn answer(self, pin: Option<u16>, stop: &AtomicBool) -> Result<Outcome, Failure> {
        match self {
            ReflectorService::Sessions(mut socket, mut sessions) => {
                let never = AtomicBool::new(false);
                answer(&mut socket, &mut sessions, pin, Requests { stop, counters: &never }, |_| {})?;
            }
            ReflectorService::Bare(socket, wait) => bare::reflect(&socket, wait, stop).map_err(refused("reflect"))?,
            ReflectorService::BareTcp(listener, wait, size_bytes) => {
                bare_tcp::reflect(&listener, size_bytes as usize, wait, stop).map_err(refused("reflect"))?;
            }
            ReflectorService::BareStream(socket, wait, wanted) => {
                bare_stream::count(&socket, wait, usize::from(wanted), stop).map_err(refused("receive"))?;
            }
        }
        Ok(Outcome::Done)
    }
}
