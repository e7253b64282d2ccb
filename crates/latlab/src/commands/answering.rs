//! What `latlab serve` and a reflector process answer with.

use std::fmt;
use std::net::SocketAddr;

use crate::clock::Monotonic;
use crate::plan::{TransportKind, WaitMode};
use crate::session::{
    ReflectorCounters, ReflectorLimits, ReflectorSocket, Requests, ServeError, SessionReflector, serve,
};
use crate::transport::reflector::UdpReflector;
use crate::transport::refusal::TransportError;
use crate::transport::tcp_reflector::TcpReflector;

/// A socket that answers.
#[derive(Debug)]
pub(super) enum AnyReflector {
    /// Datagrams.
    Udp(UdpReflector),
    /// Connections. Boxed: it has a place for each of them.
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

    /// For a reflector that answers one sender in all its life.
    pub(super) fn for_one_sender(self) -> AnyReflector {
        match self {
            AnyReflector::Udp(socket) => AnyReflector::Udp(socket.for_one_sender()),
            AnyReflector::Tcp(socket) => AnyReflector::Tcp(Box::new(socket.for_one_sender())),
        }
    }

    /// Where it answers, and the receive buffer that its kernel gave, where it asked for one.
    pub(super) fn place(&self) -> (SocketAddr, Option<u32>) {
        match self {
            AnyReflector::Udp(socket) => (socket.local_address(), Some(socket.receive_buffer_bytes())),
            AnyReflector::Tcp(socket) => (socket.local_address(), None),
        }
    }
}

/// As messages name it: UDP goes without saying.
impl fmt::Display for AnyReflector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyReflector::Udp(socket) => write!(out, "`{}`", socket.local_address()),
            AnyReflector::Tcp(socket) => write!(out, "`{}` over TCP", socket.local_address()),
        }
    }
}

/// Reflects what comes to `socket`, whatever it is: the loop is compiled once for each.
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

/// Reflects on this host's clock, with the CPU where that can be told without a system call: on a
/// pinned thread there is nothing to ask.
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
