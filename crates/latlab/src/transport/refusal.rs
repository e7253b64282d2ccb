//! Why a path could not be opened.

use std::io;
use std::net::{IpAddr, SocketAddr};

use latlab_sys::errno::explain;
use rustix::io::Errno;
use thiserror::Error;

use crate::plan::Family;

/// A path that could not be opened. Nothing was sent.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The name means no address.
    #[error("cannot find an address for `{host}`")]
    Unresolvable {
        /// As typed.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// The name has addresses, but none of the family asked for.
    #[error("`{host}` has no {} address", family_word(*.family))]
    NoAddressOfFamily {
        /// As typed.
        host: String,
        /// The family asked for.
        family: Family,
    },
    /// The two ends speak different protocols.
    #[error("cannot send from `{local}` to `{peer}`")]
    FamilyMismatch {
        /// Address to send from.
        local: IpAddr,
        /// Address to send to.
        peer: SocketAddr,
    },
    /// The kernel made no socket.
    #[error("cannot open an {} socket", family_word(*.family))]
    Socket {
        /// The family asked for.
        family: Family,
        /// Why.
        source: io::Error,
    },
    /// The local address or port was refused.
    #[error("cannot use the local address `{local}`")]
    Bind {
        /// Address and port asked for.
        local: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The interface was refused.
    #[error("cannot send through the interface `{interface}`")]
    Interface {
        /// As typed.
        interface: String,
        /// Why.
        source: io::Error,
    },
    /// There is no way to the peer.
    #[error("cannot reach `{peer}`")]
    Connect {
        /// The peer.
        peer: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// There is no TCP connection with the peer.
    #[error("cannot connect to `{peer}` over TCP")]
    Connection {
        /// The peer.
        peer: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Whoever asked did not want to wait any longer.
    #[error("interrupted before `{peer}` answered")]
    Interrupted {
        /// The peer.
        peer: SocketAddr,
    },
    /// A promise of the socket was refused.
    #[error("cannot set {option} to `{value}` on the socket")]
    Setting {
        /// What was to be set, as a user knows it.
        option: &'static str,
        /// To what.
        value: String,
        /// Why.
        source: io::Error,
    },
}

const fn family_word(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "IPv4",
        Family::Ipv6 => "IPv6",
    }
}

impl TransportError {
    /// Whether this host does not speak the protocol at all.
    pub fn lacks_family(&self) -> bool {
        match self {
            TransportError::Socket { source, .. } | TransportError::Bind { source, .. } => {
                matches!(Errno::from_io_error(source), Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
            }
            _ => false,
        }
    }

    /// The reason in one line.
    pub fn cause(&self) -> Option<String> {
        match self {
            TransportError::Unresolvable { source, .. } => Some(resolver_words(source)),
            TransportError::NoAddressOfFamily { .. } => None,
            TransportError::FamilyMismatch { .. } => Some("one is an IPv4 address, the other an IPv6 one".into()),
            TransportError::Socket { source, .. }
            | TransportError::Bind { source, .. }
            | TransportError::Interface { source, .. }
            | TransportError::Setting { source, .. } => Some(explain(source)),
            TransportError::Connect { peer, source } if is_broadcast(peer, source) => {
                Some(format!("it is a broadcast address, or a route prohibits it: {}", explain(source)))
            }
            TransportError::Connect { source, .. } => Some(explain(source)),
            TransportError::Connection { source, .. } if source.kind() == io::ErrorKind::TimedOut => {
                Some("no answer within 3 s".into())
            }
            TransportError::Connection { source, .. } => Some(explain(source)),
            TransportError::Interrupted { .. } => None,
        }
    }

    /// What to do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            TransportError::Unresolvable { host, .. } => {
                format!("check the spelling, ask `getent ahosts {host}`, or give an address instead of the name")
            }
            TransportError::NoAddressOfFamily { family: Family::Ipv4, .. } => "leave out `-4`".into(),
            TransportError::NoAddressOfFamily { family: Family::Ipv6, .. } => "leave out `-6`".into(),
            TransportError::FamilyMismatch { .. } => "give both ends in the same family".into(),
            TransportError::Socket { source, .. } => match source.raw_os_error() {
                Some(libc_errno::EAFNOSUPPORT) => "this kernel does not speak that family: use the other one".into(),
                _ => return None,
            },
            TransportError::Bind { local, source } => return bind_hint(*local, source),
            TransportError::Interface { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "grant the right with `sudo setcap cap_net_raw+ep $(command -v latlab)`, or bind to an address"
                        .into()
                }
                _ => "`ip link` lists the interfaces of this host".into(),
            },
            TransportError::Connect { peer, source } if is_broadcast(peer, source) => {
                let ip = peer.ip();
                format!("name one host: a round trip has one far end; `ip route get {ip}` shows what this address is")
            }
            TransportError::Connect { peer, .. } => {
                format!("`ip route get {}` shows what this host knows about the way", peer.ip())
            }
            TransportError::Connection { peer, source } => connection_hint(*peer, source),
            TransportError::Interrupted { .. } => return None,
            TransportError::Setting { option, source, .. } => return setting_hint(option, source),
        })
    }

    /// 2 where the request contradicts itself, 3 where the world refuses.
    pub fn exit_code(&self) -> u8 {
        match self {
            TransportError::FamilyMismatch { .. } => 2,
            TransportError::NoAddressOfFamily { host, .. } if host.parse::<IpAddr>().is_ok() => 2,
            _ => 3,
        }
    }
}

/// Why a connection cannot be used any more, for people.
pub fn broken_words(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::UnexpectedEof => "the other end closed the connection".into(),
        io::ErrorKind::InvalidData => "what came is none of latlab's messages".into(),
        _ => explain(source),
    }
}

/// Whether the kernel keeps a socket without SO_BROADCAST from this address, which it does with EACCES: `ip_route_connect`
/// and its caller in net/ipv4/datagram.c. A `prohibit` route gives the same.
fn is_broadcast(peer: &SocketAddr, source: &io::Error) -> bool {
    peer.is_ipv4() && Errno::from_io_error(source) == Some(Errno::ACCESS)
}

/// Error numbers that the standard library has no kind for.
mod libc_errno {
    pub(super) const EAFNOSUPPORT: i32 = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
}

/// The resolver's sentence without the standard library's preface.
fn resolver_words(source: &io::Error) -> String {
    let words = explain(source);
    match words.split_once("address information: ") {
        Some((_, reason)) => reason.to_lowercase(),
        None => words,
    }
}

fn bind_hint(local: SocketAddr, source: &io::Error) -> Option<String> {
    Some(match source.kind() {
        io::ErrorKind::AddrInUse => {
            format!("`ss -tulpn sport = :{}` shows who has this port; choose another one", local.port())
        }
        io::ErrorKind::AddrNotAvailable => "`ip address` lists the addresses of this host".into(),
        io::ErrorKind::PermissionDenied => {
            "choose a port above 1023, or grant the right with `sudo setcap cap_net_bind_service+ep $(command -v latlab)`"
                .into()
        }
        _ => return None,
    })
}

fn connection_hint(peer: SocketAddr, source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => {
            "start `latlab serve --tcp` there, with `--psk-file FILE` unless it is this host: without `--tcp` it listens on \
             UDP alone"
                .into()
        }
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => {
            "leave `--source-port` out, or wait a minute: the connection before may still hold that port (TIME_WAIT)".into()
        }
        io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => format!(
            "see that `latlab serve --tcp` runs there and that firewalls let its TCP port through; `ip route get {}` shows \
             the way",
            peer.ip()
        ),
        _ => format!("`ip route get {}` shows what this host knows about the way", peer.ip()),
    }
}

fn setting_hint(option: &str, source: &io::Error) -> Option<String> {
    if option != "busy polling" {
        return None;
    }
    Some(match source.kind() {
        io::ErrorKind::PermissionDenied => {
            "grant the right with `sudo setcap cap_net_admin+ep $(command -v latlab)`, or use `--wait spin`".into()
        }
        _ => "this kernel was built without CONFIG_NET_RX_BUSY_POLL: use `--wait spin`".into(),
    })
}
