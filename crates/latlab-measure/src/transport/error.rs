//! Errors of opening a path, of a broken connection, and of a send mode that the kernel does not support.

use std::io;
use std::net::{IpAddr, SocketAddr};

use latlab_sys::errno::explain;
use rustix::io::Errno;
use thiserror::Error;

use crate::diagnostics::{Explain, Failure};
use crate::facts::Capability;
use crate::plan::{Family, SendMode, SenderSocketOptions};
use crate::platform::grant;
use crate::units::{Nanos, human};

/// Why a path could not be opened. Nothing was sent.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The name has no address.
    #[error("cannot find an address for `{host}`")]
    Unresolvable { host: String, source: io::Error },
    /// The name has addresses, but none in the requested family.
    #[error("`{host}` has no {} address", family_word(*.family))]
    NoAddressOfFamily { host: String, family: Family },
    /// The two addresses are of different families.
    #[error("cannot send from `{local}` to `{peer}`")]
    FamilyMismatch { local: IpAddr, peer: SocketAddr },
    /// socket(2) failed.
    #[error("cannot open an {} socket", family_word(*.family))]
    Socket { family: Family, source: io::Error },
    /// The local address or port was refused.
    #[error("cannot use the local address `{local}`")]
    Bind {
        /// The requested address and port.
        local: SocketAddr,
        source: io::Error,
    },
    #[error("cannot send through the interface `{interface}`")]
    Interface { interface: String, source: io::Error },
    /// No route to the peer.
    #[error("cannot reach `{peer}`")]
    Connect { peer: SocketAddr, source: io::Error },
    /// No TCP connection with the peer.
    #[error("cannot connect to `{peer}` over TCP")]
    Connection {
        peer: SocketAddr,
        /// The kernel's error, or `TimedOut`.
        source: io::Error,
    },
    /// The caller's stop flag was set.
    #[error("interrupted before `{peer}` answered")]
    Interrupted { peer: SocketAddr },
    /// This program was built without DDS.
    #[error("this latlab has no DDS")]
    NotBuilt,
    /// The DDS library refused to join a domain, or to make a reader or writer.
    #[error("cannot open a path over DDS in domain {domain}")]
    Dds { domain: u16, cause: String },
    /// With multicast the sockets of the library receive at every address.
    #[error("cannot use multicast over DDS on loopback")]
    LoopbackMulticast,
    /// The configuration in the environment adds interfaces.
    #[error("cannot join a DDS domain at `{local}` alone")]
    OtherInterfaces {
        /// The address of latlab's interface.
        local: IpAddr,
    },
    /// No readers and writers at the peer fitted those of this end.
    #[error("found no partner at `{peer}` in DDS domain {domain} within {}", human::typed_span(*.within))]
    Unmatched {
        /// The address that was asked.
        peer: SocketAddr,
        domain: u16,
        /// The policy that did not fit, if one end was found and refused.
        policy: Option<&'static str>,
        /// How long it was searched.
        within: Nanos,
    },
    /// The kernel or the driver refused an AF_XDP socket, or its program.
    #[error("cannot open an AF_XDP socket on `{interface}` queue {queue}")]
    Xdp { interface: String, queue: u32, source: io::Error },
    /// The program that answers in the network driver was refused.
    #[error("cannot answer in the driver of `{interface}`")]
    XdpProgram { interface: String, source: io::Error },
    /// The kernel takes no packet from 127.0.0.0/8 that comes from a device.
    #[error("cannot send from `{local}` over AF_XDP")]
    XdpLoopback { local: IpAddr },
    /// A socket option was refused.
    #[error("cannot set {option} to `{value}` on the socket")]
    Setting { option: &'static str, value: String, source: io::Error },
}

const fn family_word(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "IPv4",
        Family::Ipv6 => "IPv6",
    }
}

/// Makes the error of a refused socket option.
pub(super) fn setting_error<E: Into<io::Error>>(
    option: &'static str,
    value: impl ToString,
) -> impl FnOnce(E) -> TransportError {
    move |source| TransportError::Setting { option, value: value.to_string(), source: source.into() }
}

impl TransportError {
    /// Cause and hint of an error over DDS, of which `failure` is one of the host or the other end.
    fn explain_dds(&self, failure: Failure) -> Failure {
        match self {
            TransportError::NotBuilt => Failure::request(self)
                .because("it was built without the feature `dds`, which needs a C compiler")
                .hint("`cargo build --release` builds it with DDS; `--transport udp` and `--transport tcp` need none"),
            TransportError::Dds { cause, .. } => failure
                .because(cause)
                .hint("check that the interface has the address, and what `CYCLONEDDS_URI` says, if it is set"),
            TransportError::LoopbackMulticast => Failure::request(self)
                .because("its sockets would receive at every address of this host")
                .hint("leave `--multicast` out, or name another host and `--interface`"),
            TransportError::OtherInterfaces { .. } => Failure::request(self)
                .because("`CYCLONEDDS_URI` names interfaces, which are added to this one")
                .hint("leave `Interfaces` out of it, and name the interface with `--interface`"),
            TransportError::Unmatched { peer, domain, policy, .. } => unmatched(failure, *peer, *domain, *policy),
            _ => failure,
        }
    }

    /// Whether this host has no support for the address family at all.
    pub fn lacks_family(&self) -> bool {
        match self {
            TransportError::Socket { source, .. } | TransportError::Bind { source, .. } => {
                matches!(Errno::from_io_error(source), Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
            }
            _ => false,
        }
    }
}

impl Explain for TransportError {
    fn explain(&self) -> Failure {
        match self {
            TransportError::Bind { local: address, source }
            | TransportError::Connect { peer: address, source }
            | TransportError::Connection { peer: address, source }
                if lacks_zone(*address, source) =>
            {
                Failure::request(self)
                    .because("each interface has such addresses of its own (link-local, RFC 4007), and none is named")
                    .hint(format!("name the interface: `{}%IFACE`; `ip link` lists those of this host", address.ip()))
            }
            _ => self.explain_other(),
        }
    }
}

impl TransportError {
    fn explain_other(&self) -> Failure {
        let failure = Failure::world(self);
        match self {
            TransportError::Unresolvable { host, source } => failure.because(resolver_words(source)).hint(format!(
                "check the spelling, ask `getent ahosts {host}`, or give an address instead of the name"
            )),
            TransportError::NoAddressOfFamily { host, family } => {
                let is_literal = host.parse::<IpAddr>().is_ok();
                let failure = if is_literal { Failure::request(self) } else { failure };
                failure.hint(match family {
                    Family::Ipv4 => "leave out `-4`",
                    Family::Ipv6 => "leave out `-6`",
                })
            }
            TransportError::FamilyMismatch { .. } => Failure::request(self)
                .because("one is an IPv4 address, the other an IPv6 address")
                .hint("give both ends in the same family"),
            TransportError::Socket { source, .. } => {
                let failure = failure.because(explain(source));
                match Errno::from_io_error(source) {
                    Some(Errno::AFNOSUPPORT) => {
                        failure.hint("this kernel does not support that family: use the other one")
                    }
                    _ => failure,
                }
            }
            TransportError::Bind { local, source } => {
                hinted(failure.because(explain(source)), bind_hint(*local, source))
            }
            TransportError::Interface { source, .. } => failure.because(explain(source)).hint(match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    format!("grant the right with `{}`, or bind to an address", grant(&[Capability::NetRaw]))
                }
                _ => "`ip link` lists the interfaces of this host".into(),
            }),
            TransportError::Connect { peer, source } if is_broadcast(peer, source) => failure
                .because(format!("it is a broadcast address, or a route prohibits it: {}", explain(source)))
                .hint(format!(
                    "name one host: a round trip has one far end; `ip route get {}` shows what this address is",
                    peer.ip()
                )),
            TransportError::Connect { peer, source } => {
                failure.because(explain(source)).hint(format!("`ip route get {}` shows the route", peer.ip()))
            }
            TransportError::Connection { peer, source } => {
                let cause = match source.kind() {
                    io::ErrorKind::TimedOut => "no answer within 3 s".into(),
                    _ => explain(source),
                };
                let is_silence = source.kind() == io::ErrorKind::TimedOut;
                failure.because(cause).hint(connection_hint(*peer, source)).of_silence(is_silence)
            }
            TransportError::Interrupted { .. } => failure,
            TransportError::NotBuilt
            | TransportError::Dds { .. }
            | TransportError::LoopbackMulticast
            | TransportError::OtherInterfaces { .. }
            | TransportError::Unmatched { .. } => self.explain_dds(failure),
            TransportError::Xdp { interface, source, .. } | TransportError::XdpProgram { interface, source } => {
                failure.because(explain(source)).hint(xdp_hint(interface, source))
            }
            TransportError::XdpLoopback { .. } => Failure::request(self)
                .because("the kernel drops packets from an IPv4 loopback address that do not come from its own stack")
                .hint("`-6`, whose loopback it accepts, or `latlab ping lab --transport xdp`"),
            TransportError::Setting { option, source, .. } => {
                hinted(failure.because(explain(source)), setting_hint(option, source))
            }
        }
    }
}

/// Cause and hint of a search over DDS that found no partner.
fn unmatched(failure: Failure, peer: SocketAddr, domain: u16, policy: Option<&str>) -> Failure {
    match policy {
        Some(policy) => failure
            .because(format!("the policy {policy} of the other end does not match"))
            .hint("give both ends the same policies: docs/dds.md lists those of latlab"),
        None if peer.port() == 0 => failure
            .because("nothing there reads `latlab_probes` and writes `latlab_answers` in the default partition")
            .hint("docs/dds.md has an echo that does; it must be in the same domain")
            .of_silence(true),
        None => failure
            .because("nothing there reads and writes latlab's topics")
            .hint(format!(
                "check that `latlab serve --transport dds --domain {domain}` runs there on that port, and that no firewall drops \
                 UDP to its ports {} to {}",
                7_400 + 250 * u32::from(domain),
                7_649 + 250 * u32::from(domain),
            ))
            .of_silence(true),
    }
}

/// Adds `hint`, if there is one.
fn hinted(failure: Failure, hint: Option<String>) -> Failure {
    Failure { hint, ..failure }
}

/// The cause of a connection that broke, in words.
pub(crate) fn explain_broken(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::UnexpectedEof => "the other end closed the connection".into(),
        io::ErrorKind::InvalidData => "the received bytes are not a message of latlab".into(),
        _ => explain(source),
    }
}

/// Whether connecting failed because `peer` is a broadcast address: EACCES on a socket without SO_BROADCAST
/// (`ip_route_connect` and its caller in net/ipv4/datagram.c). A `prohibit` route gives the same.
fn is_broadcast(peer: &SocketAddr, source: &io::Error) -> bool {
    peer.is_ipv4() && Errno::from_io_error(source) == Some(Errno::ACCESS)
}

/// Whether the kernel refused `address` because it is one of a link and names none.
fn lacks_zone(address: SocketAddr, source: &io::Error) -> bool {
    let is_refused = Errno::from_io_error(source) == Some(Errno::INVAL);
    matches!(address, SocketAddr::V6(v6) if is_refused && v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

pub(super) fn is_interrupted(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
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
            let command = grant(&[Capability::NetBindService]);
            format!("choose a port above 1023, or grant the right with `{command}`")
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
            "check that `latlab serve --tcp` runs there and that firewalls let its TCP port through; `ip route \
             get {}` shows the route",
            peer.ip()
        ),
        _ => format!("`ip route get {}` shows the route", peer.ip()),
    }
}

fn setting_hint(option: &str, source: &io::Error) -> Option<String> {
    if option != "busy polling" {
        return None;
    }
    Some(match source.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("grant the right with `{}`, or use `--wait spin`", grant(&[Capability::NetAdmin]))
        }
        _ => "this kernel was built without CONFIG_NET_RX_BUSY_POLL: use `--wait spin`".into(),
    })
}

fn xdp_hint(interface: &str, source: &io::Error) -> String {
    match Errno::from_io_error(source) {
        Some(Errno::PERM | Errno::ACCESS) => {
            let rights = [Capability::NetRaw, Capability::NetAdmin, Capability::Bpf];
            format!("grant the rights with `{}`", grant(&rights))
        }
        Some(Errno::BUSY | Errno::EXIST) => format!(
            "another socket has that queue, or another program the interface: `ip link show {interface}` names it; one AF_XDP \
             socket at a time can have a queue"
        ),
        Some(Errno::INVAL | Errno::RANGE) => {
            format!(
                "check that the interface has that queue: `ethtool -l {interface}`, or `ls /sys/class/net/{interface}/queues`"
            )
        }
        Some(Errno::NOBUFS) => {
            "the memory of the packets exceeds RLIMIT_MEMLOCK: raise `ulimit -l` to 16384 (two ends on one host)".into()
        }
        _ => "the kernel needs CONFIG_XDP_SOCKETS, and Linux 5.9 or newer".into(),
    }
}

/// Why a kernel cannot send packets in the requested [`SendMode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendModeError {
    /// The kernel computes the checksum of each packet that it segments.
    #[error("cannot send by `gso` with the checksum off")]
    ChecksumOff,
    /// A packet with its headers exceeds the path MTU, and segments are not fragmented.
    #[error("cannot send packets of {size_bytes} bytes by `gso` on this path")]
    SegmentOverMtu { size_bytes: u32 },
    /// Before Linux 6.11 the device must compute checksums.
    #[error("cannot send by `gso` through a device that computes no checksums")]
    NoChecksumOffload,
    /// Packets past the network stack are not fragmented, and one exceeds what the interface carries.
    #[error("cannot send packets of {size_bytes} bytes over AF_XDP")]
    TooLongForXdp { size_bytes: u32, most_bytes: u32 },
    /// Fragmentation is forbidden, and a packet exceeds the path MTU.
    #[error("cannot send packets of {size_bytes} bytes in one piece on this path")]
    TooLong { size_bytes: u32 },
}

impl SendModeError {
    /// The meaning of `error` for packets of `size_bytes` sent with `options`; `None` if the options are not its reason.
    pub fn of(error: &io::Error, options: SenderSocketOptions, size_bytes: u32) -> Option<SendModeError> {
        // `udp_send_skb` in net/ipv4/udp.c and `udp_v6_send_skb` in net/ipv6/udp.c.
        match (Errno::from_io_error(error)?, options.mode) {
            (Errno::INVAL, SendMode::Gso) if !options.checksum => Some(SendModeError::ChecksumOff),
            (Errno::INVAL | Errno::MSGSIZE, SendMode::Gso) => Some(SendModeError::SegmentOverMtu { size_bytes }),
            (Errno::IO, SendMode::Gso) => Some(SendModeError::NoChecksumOffload),
            (Errno::MSGSIZE, _) => Some(SendModeError::TooLong { size_bytes }),
            _ => None,
        }
    }
}

/// Exit code 2 where the request contradicts itself or the path, 3 where the host lacks support.
impl Explain for SendModeError {
    fn explain(&self) -> Failure {
        let errno = |errno: Errno| explain(&io::Error::from(errno));
        let too_long = "with its headers such a packet is longer than the path carries in one piece";
        match self {
            SendModeError::ChecksumOff => Failure::request(self)
                .because(format!("the kernel must compute the checksum of every segment: {}", errno(Errno::INVAL)))
                .hint("leave out `--checksum off`, or use `--mode sendmmsg`"),
            SendModeError::SegmentOverMtu { .. } => {
                Failure::request(self).because(too_long).hint("choose a smaller `--size`, or `--mode sendmmsg`")
            }
            SendModeError::NoChecksumOffload => Failure::world(self)
                .because(format!(
                    "Linux before 6.11 leaves the checksums of segments to the device: {}",
                    errno(Errno::IO)
                ))
                .hint("`ethtool -K DEV tx-checksum-ip-generic on` where the device can, or `--mode sendmmsg`"),
            SendModeError::TooLongForXdp { most_bytes, .. } => Failure::request(self)
                .because(format!(
                    "the interface carries up to {most_bytes} bytes of payload in one piece, and AF_XDP cuts none"
                ))
                .hint(format!("`--size {most_bytes}`, or a larger MTU: a frame of AF_XDP has up to a page")),
            SendModeError::TooLong { .. } => {
                Failure::request(self).because(too_long).hint("choose a smaller `--size`, or leave out `--df`")
            }
        }
    }
}
