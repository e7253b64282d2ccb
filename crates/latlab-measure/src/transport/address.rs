//! Addresses of the two ends: resolution of names, the local address of a path, and networks of addresses for limits.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;

use latlab_sys::address::AddressFamily;
use latlab_sys::{ethtool, socket};

use super::error::TransportError;
use crate::plan::{Family, PathSpec};

/// The first address of `host` in `family`; without a family the first of all, in the resolver's order (RFC 6724). An
/// IPv6 address may carry a zone: `fe80::1%eth0`.
///
/// # Errors
/// The name has no address, or none in that family.
pub fn resolve(host: &str, port: u16, family: Option<Family>) -> Result<SocketAddr, TransportError> {
    let unresolvable = |source| TransportError::Unresolvable { host: host.into(), source };
    let mut found = (host, port).to_socket_addrs().map_err(unresolvable)?.peekable();
    if found.peek().is_none() {
        return Err(unresolvable(io::ErrorKind::NotFound.into()));
    }
    match family {
        None => found.next(),
        Some(Family::Ipv4) => found.find(SocketAddr::is_ipv4),
        Some(Family::Ipv6) => found.find(SocketAddr::is_ipv6),
    }
    .ok_or_else(|| TransportError::NoAddressOfFamily {
        host: host.into(),
        // Without a family the first address was taken above.
        family: family.unwrap_or(Family::Ipv4),
    })
}

/// The address that `interface` is, or has: a name stands for its first IPv4 address.
///
/// # Errors
/// No interface has the name, or it has no IPv4 address.
pub fn interface_address(interface: &str) -> Result<IpAddr, TransportError> {
    if let Ok(address) = interface.parse() {
        return Ok(address);
    }
    let socket = socket::udp(AddressFamily::Ipv4);
    let found = socket.and_then(|socket| ethtool::ipv4_address(socket.as_fd(), interface));
    found.map(IpAddr::V4).map_err(|source| TransportError::Interface { interface: interface.into(), source })
}

/// The /24 (IPv4) or /64 (IPv6) of `address` as a number, for limits per network (rule R4); `None` for loopback, which
/// is exempt.
pub(crate) fn prefix_of(address: IpAddr) -> Option<u64> {
    match address.to_canonical() {
        address if address.is_loopback() => None,
        IpAddr::V4(address) => Some(u64::from(address.to_bits() >> 8)),
        // 2000::/3 and fc00::/7 have high bits set: no /64 in use is as small a number as a /24.
        IpAddr::V6(address) => Some((address.to_bits() >> 64) as u64),
    }
}

/// The local address and port that `path` asks for; `None` if the kernel chooses them on connecting.
pub(super) fn requested_local_address(path: &PathSpec, peer: SocketAddr) -> Option<SocketAddr> {
    if path.bind_address.is_none() && path.source_port.is_none() {
        return None;
    }
    let any = if peer.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    let mut local = SocketAddr::new(path.bind_address.unwrap_or(any), path.source_port.unwrap_or(0));
    if let (SocketAddr::V6(local), SocketAddr::V6(peer)) = (&mut local, peer) {
        // A link-local address is ambiguous without its link, which the peer's zone names.
        local.set_scope_id(peer.scope_id());
    }
    Some(local)
}

/// Checks that the local address of `path`, if it names one, is of the peer's family.
pub(super) fn check_family(path: &PathSpec, peer: SocketAddr) -> Result<(), TransportError> {
    match path.bind_address.filter(|local| local.is_ipv4() != peer.is_ipv4()) {
        Some(local) => Err(TransportError::FamilyMismatch { local, peer }),
        None => Ok(()),
    }
}

pub(super) const fn family_of(address: &SocketAddr) -> Family {
    if address.is_ipv4() { Family::Ipv4 } else { Family::Ipv6 }
}

/// `peer` with an IPv4-mapped address (`::ffff:a.b.c.d`, RFC 4291, section 2.5.5.2: an IPv4 sender on an IPv6 socket)
/// as IPv4.
pub(super) fn canonical(peer: SocketAddr) -> SocketAddr {
    match peer.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::from((ip, peer.port())),
        IpAddr::V6(_) => peer,
    }
}

/// The inverse of [`canonical`].
pub(super) fn mapped(peer: SocketAddr) -> SocketAddr {
    match peer.ip() {
        IpAddr::V4(ip) => SocketAddr::from((ip.to_ipv6_mapped(), peer.port())),
        IpAddr::V6(_) => peer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_addresses_need_no_resolver() {
        assert_eq!(resolve("192.0.2.7", 7, None).expect("an address").to_string(), "192.0.2.7:7");
        assert_eq!(resolve("2001:db8::7", 7, Some(Family::Ipv6)).expect("an address").to_string(), "[2001:db8::7]:7");
    }

    #[test]
    fn the_prefix_is_a_24_or_a_64_and_loopback_has_none() {
        let prefix = |text: &str| prefix_of(text.parse().expect("an address"));
        assert_eq!(prefix("192.0.2.1"), prefix("::ffff:192.0.2.200"));
        assert_ne!(prefix("192.0.2.1"), prefix("192.0.3.1"));
        assert_eq!(prefix("2001:db8::1"), prefix("2001:db8::ffff:0:0:1"));
        assert_eq!((prefix("127.0.0.9"), prefix("::1")), (None, None));
    }
}
