//! The types of each kind of transport at both ends, which only this file assigns, and the opening of their paths.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::AtomicBool;

use super::connection_slot::ConnectionCaps;
#[cfg(feature = "dds")]
use super::dds::DdsTransport;
#[cfg(feature = "dds")]
use super::dds_reflector::DdsReflector;
use super::error::TransportError;
use super::interface::{PathTransport, ReflectorSocket};
use super::tcp::TcpTransport;
use super::tcp_reflector::TcpReflector;
use super::udp::UdpStream;
use super::udp::UdpTransport;
use super::udp_reflector::UdpReflector;
use super::wait::WaitStrategy;
use super::xdp::{XdpReflector, XdpTransport};
use crate::facts::XdpFacts;
use crate::plan::{DdsSpec, PathSpec, SenderSocketOptions, TransportKind, WaitMode};

/// The types that implement one kind of transport. Loops are generic over them and compiled once for each kind.
pub trait TransportFamily: 'static {
    const KIND: TransportKind;
    /// Sends probes, one at a time.
    type Path: PathTransport;
    /// Sends streams, many packets at a time.
    type Stream: PathTransport;
    type Listener: ReflectorSocket + Send;

    /// Opens the path of probes.
    ///
    /// # Errors
    /// The path cannot be opened, or the stop flag was set.
    fn open(options: &PathOptions<'_>) -> Result<Self::Path, TransportError>;

    /// Opens the path on which a down-stream is received.
    ///
    /// # Errors
    /// As [`TransportFamily::open`].
    fn open_down(options: &PathOptions<'_>) -> Result<Self::Path, TransportError> {
        Self::open(options)
    }

    /// Opens the path of a stream's flow.
    ///
    /// # Errors
    /// As [`TransportFamily::open`].
    fn open_stream(options: &PathOptions<'_>, sending: SenderSocketOptions) -> Result<Self::Stream, TransportError>;

    /// Binds a reflector's socket to `local`; port 0: the kernel's choice.
    ///
    /// # Errors
    /// The port is in use, the address is not local, a permission is missing.
    fn bind(local: SocketAddr, options: &ListenOptions) -> Result<Bound<Self::Listener>, TransportError>;

    /// Binds a reflector's socket to the address in `options`.
    ///
    /// # Errors
    /// As [`TransportFamily::bind`].
    fn listen(options: &ListenOptions) -> Result<Bound<Self::Listener>, TransportError> {
        match options.address {
            ListenAddress::One(local) => Self::bind(local, options),
            ListenAddress::All { port } => match Self::bind((Ipv6Addr::UNSPECIFIED, port).into(), options) {
                Err(error) if error.lacks_family() => Self::bind((Ipv4Addr::UNSPECIFIED, port).into(), options),
                bound => bound,
            },
        }
    }
}

/// How a sender opens a path.
#[derive(Clone, Copy, Debug)]
pub struct PathOptions<'a> {
    /// Local end and socket options.
    pub path: &'a PathSpec,
    pub peer: SocketAddr,
    /// How the transport waits for answers.
    pub wait: WaitStrategy,
    /// Ends an attempt within 100 ms when it is set.
    pub stop: &'a AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// One address and port; port 0: the kernel's choice.
    One(SocketAddr),
    /// Every address of both families, or of IPv4 alone if the host has no IPv6.
    All {
        /// The port; 0: the kernel's choice.
        port: u16,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct ListenOptions {
    pub address: ListenAddress,
    /// How it waits for datagrams.
    pub wait: WaitMode,
    pub caps: ConnectionCaps,
    /// The reflector answers one sender in its lifetime.
    pub single_sender: bool,
    /// Domain and policies of a reflector over DDS.
    pub dds: DdsSpec,
    /// The queue of a reflector with an AF_XDP socket.
    pub queue: u32,
    /// A program in the network driver answers the sessions that ask for it, in front of a UDP socket.
    pub in_driver: bool,
}

/// A reflector's socket and its address.
#[derive(Debug)]
pub struct Bound<S> {
    pub socket: S,
    /// Its address, with the port that the kernel chose.
    pub address: SocketAddr,
    /// The granted receive buffer in bytes, the kernel's bookkeeping included; `None` if none was requested.
    pub receive_buffer_bytes: Option<u32>,
    /// Its AF_XDP socket or its program.
    pub xdp: Option<XdpFacts>,
}

/// Work that depends on the types of a transport kind.
pub trait FamilyVisitor {
    /// The result of the work.
    type Output;

    /// Does the work with the types of `F`.
    fn visit<F: TransportFamily>(self) -> Self::Output;
}

/// Runs `visitor` with the types of `kind`.
pub fn visit<V: FamilyVisitor>(kind: TransportKind, visitor: V) -> V::Output {
    match kind {
        TransportKind::Udp => visitor.visit::<Udp>(),
        TransportKind::Tcp => visitor.visit::<Tcp>(),
        TransportKind::Dds => visitor.visit::<Dds>(),
        TransportKind::Xdp => visitor.visit::<Xdp>(),
    }
}

#[derive(Debug)]
pub enum Udp {}

impl TransportFamily for Udp {
    const KIND: TransportKind = TransportKind::Udp;
    type Path = UdpTransport;
    type Stream = UdpStream;
    type Listener = UdpReflector;

    fn open(options: &PathOptions<'_>) -> Result<UdpTransport, TransportError> {
        UdpTransport::open(options.path, options.peer, options.wait)
    }

    fn open_stream(options: &PathOptions<'_>, sending: SenderSocketOptions) -> Result<UdpStream, TransportError> {
        UdpStream::open(options.path, options.peer, options.wait, sending)
    }

    fn bind(local: SocketAddr, options: &ListenOptions) -> Result<Bound<UdpReflector>, TransportError> {
        let socket = UdpReflector::bind(local, options.wait)?;
        let socket = if options.single_sender { socket.for_single_sender() } else { socket };
        let socket = if options.in_driver { socket.answering_in_driver(options.caps.connections)? } else { socket };
        let (address, receive_buffer_bytes) = (socket.local_address(), Some(socket.receive_buffer_bytes()));
        let xdp = socket.driver_facts().cloned();
        Ok(Bound { socket, address, receive_buffer_bytes, xdp })
    }
}

#[derive(Debug)]
pub enum Tcp {}

impl TransportFamily for Tcp {
    const KIND: TransportKind = TransportKind::Tcp;
    type Path = TcpTransport;
    type Stream = TcpTransport;
    type Listener = TcpReflector;

    fn open(options: &PathOptions<'_>) -> Result<TcpTransport, TransportError> {
        TcpTransport::open(options.path, options.peer, options.wait, options.stop)
    }

    /// The kernel joins and segments messages itself: the socket options for streams do not apply.
    fn open_stream(options: &PathOptions<'_>, _: SenderSocketOptions) -> Result<TcpTransport, TransportError> {
        Tcp::open(options)?.with_unsent_limit()
    }

    /// Buffers are the kernel's choice.
    fn bind(local: SocketAddr, options: &ListenOptions) -> Result<Bound<TcpReflector>, TransportError> {
        let socket = TcpReflector::bind(local, options.wait, options.caps)?;
        let socket = if options.single_sender { socket.for_single_sender() } else { socket };
        Ok(Bound { address: socket.local_address(), socket, receive_buffer_bytes: None, xdp: None })
    }
}

#[derive(Debug)]
pub enum Dds {}

#[cfg(feature = "dds")]
impl TransportFamily for Dds {
    const KIND: TransportKind = TransportKind::Dds;
    type Path = DdsTransport;
    type Stream = DdsTransport;
    type Listener = DdsReflector;

    fn open(options: &PathOptions<'_>) -> Result<DdsTransport, TransportError> {
        Dds::open_stream(options, SenderSocketOptions::PLAIN)
    }

    /// Of the options for streams, batches apply.
    fn open_stream(options: &PathOptions<'_>, sending: SenderSocketOptions) -> Result<DdsTransport, TransportError> {
        DdsTransport::open(options.path, options.peer, options.wait, options.stop, sending)
    }

    fn bind(local: SocketAddr, options: &ListenOptions) -> Result<Bound<DdsReflector>, TransportError> {
        let socket = DdsReflector::bind(local, options.wait, options.dds)?;
        Ok(Bound { address: socket.local_address(), socket, receive_buffer_bytes: None, xdp: None })
    }
}

/// Without the feature `dds` the library is missing: the types of another transport stand in, and are never opened.
#[cfg(not(feature = "dds"))]
impl TransportFamily for Dds {
    const KIND: TransportKind = TransportKind::Dds;
    type Path = UdpTransport;
    type Stream = UdpTransport;
    type Listener = UdpReflector;

    fn open(_: &PathOptions<'_>) -> Result<UdpTransport, TransportError> {
        Err(TransportError::NotBuilt)
    }

    fn open_stream(_: &PathOptions<'_>, _: SenderSocketOptions) -> Result<UdpTransport, TransportError> {
        Err(TransportError::NotBuilt)
    }

    fn bind(_: SocketAddr, _: &ListenOptions) -> Result<Bound<UdpReflector>, TransportError> {
        Err(TransportError::NotBuilt)
    }
}

/// UDP packets past the network stack.
#[derive(Debug)]
pub enum Xdp {}

impl TransportFamily for Xdp {
    const KIND: TransportKind = TransportKind::Xdp;
    type Path = XdpTransport;
    type Stream = XdpTransport;
    type Listener = XdpReflector;

    fn open(options: &PathOptions<'_>) -> Result<XdpTransport, TransportError> {
        XdpTransport::open(options.path, options.peer, options.wait)
    }

    fn open_down(options: &PathOptions<'_>) -> Result<XdpTransport, TransportError> {
        let mut path = Xdp::open(options)?;
        // A burst is longer than what a sender of probes has frames for.
        path.socket_mut().give_all();
        Ok(path)
    }

    /// The options for streams are those of sockets.
    fn open_stream(options: &PathOptions<'_>, _: SenderSocketOptions) -> Result<XdpTransport, TransportError> {
        Xdp::open(options)
    }

    fn bind(local: SocketAddr, options: &ListenOptions) -> Result<Bound<XdpReflector>, TransportError> {
        let socket = XdpReflector::bind(local, options.wait, options.queue)?;
        let xdp = Some(socket.facts().clone());
        Ok(Bound { address: socket.local_address(), socket, receive_buffer_bytes: None, xdp })
    }
}
