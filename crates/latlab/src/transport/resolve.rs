//! From a name to an address.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use super::refusal::TransportError;
use crate::plan::Family;

/// The first address of `host` that belongs to `family`, or the first at all.
///
/// The order is the resolver's (RFC 6724). An IPv6 address may carry a zone: `fe80::1%eth0`.
///
/// # Errors
/// The name has no address, or none of that family.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_addresses_need_no_resolver() {
        assert_eq!(resolve("192.0.2.7", 7, None).expect("an address").to_string(), "192.0.2.7:7");
        assert_eq!(resolve("2001:db8::7", 7, Some(Family::Ipv6)).expect("an address").to_string(), "[2001:db8::7]:7");
    }

    #[test]
    fn a_literal_of_the_other_family_is_a_wrong_request() {
        let error = resolve("192.0.2.7", 7, Some(Family::Ipv6)).expect_err("an IPv4 address");
        assert_eq!((error.to_string().as_str(), error.exit_code()), ("`192.0.2.7` has no IPv6 address", 2));
        assert_eq!(error.hint().as_deref(), Some("leave out `-6`"));
    }

    #[test]
    fn a_name_that_cannot_exist_is_refused_by_the_world() {
        // RFC 6761, section 6.4: `.invalid` never resolves; a name of 64 letters is refused without asking.
        let host = format!("{}.invalid", "x".repeat(64));
        let error = resolve(&host, 7, None).expect_err("no such name");
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains(&host) && error.cause().is_some() && error.hint().is_some());
    }
}
