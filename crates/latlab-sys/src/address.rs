//! Socket addresses in the kernel's form. [sockaddr(3type)](https://man7.org/linux/man-pages/man3/sockaddr.3type.html)

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Internet protocol version of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFamily {
    Ipv4,
    /// AF_INET6.
    Ipv6,
}

impl AddressFamily {
    pub const fn of(address: &SocketAddr) -> AddressFamily {
        match address {
            SocketAddr::V4(_) => AddressFamily::Ipv4,
            SocketAddr::V6(_) => AddressFamily::Ipv6,
        }
    }
}

/// Every form begins with the family, which distinguishes them.
#[derive(Clone, Copy)]
#[repr(C)]
union Form {
    any: libc::sockaddr,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

/// A socket address as the kernel reads and writes it: the hot paths pass it on without decoding.
#[derive(Clone, Copy)]
pub struct Address {
    form: Form,
    length: libc::socklen_t,
}

const CAPACITY: libc::socklen_t = size_of::<Form>() as libc::socklen_t;

impl Address {
    /// Space for an address that the kernel writes.
    pub const fn empty() -> Address {
        // SAFETY: all three forms are plain numbers and byte arrays, for which zero bytes are valid.
        Address { form: unsafe { std::mem::zeroed() }, length: CAPACITY }
    }

    /// The address in the standard library's form; `None` if the kernel wrote no IP address.
    pub fn to_socket_addr(&self) -> Option<SocketAddr> {
        // SAFETY: the union is never smaller than a family and was zeroed first; any bits are a valid family.
        match i32::from(unsafe { self.form.any.sa_family }) {
            libc::AF_INET => {
                // SAFETY: according to the family this form was written; any bits are valid.
                let v4 = unsafe { self.form.v4 };
                let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                Some(SocketAddr::from((ip, u16::from_be(v4.sin_port))))
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let v6 = unsafe { self.form.v6 };
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                let port = u16::from_be(v6.sin6_port);
                Some(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
            }
            _ => None,
        }
    }

    pub(crate) const fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.form).cast()
    }

    pub(crate) const fn length(&self) -> libc::socklen_t {
        self.length
    }

    /// Where the kernel writes the address and its length. The length is reset to the capacity.
    pub(crate) const fn places(&mut self) -> (*mut libc::sockaddr, *mut libc::socklen_t) {
        self.length = CAPACITY;
        ((&raw mut self.form).cast(), &raw mut self.length)
    }

    pub(crate) const fn set_length(&mut self, length: libc::socklen_t) {
        self.length = length;
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        let mut written = Address::empty();
        match address.ip() {
            IpAddr::V4(ip) => {
                written.form.v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from(ip).to_be() },
                    sin_zero: [0; 8],
                };
                written.length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            }
            IpAddr::V6(ip) => {
                let (flow, scope) = match address {
                    SocketAddr::V6(v6) => (v6.flowinfo(), v6.scope_id()),
                    SocketAddr::V4(_) => (0, 0),
                };
                written.form.v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: flow,
                    sin6_addr: libc::in6_addr { s6_addr: ip.octets() },
                    sin6_scope_id: scope,
                };
                written.length = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            }
        }
        written
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_socket_addr().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip_through_the_kernel_form() {
        for text in ["192.0.2.7:9862", "[2001:db8::7]:1", "[::ffff:192.0.2.7]:65535"] {
            let address: SocketAddr = text.parse().expect("an address");
            assert_eq!(Address::from(address).to_socket_addr(), Some(address));
        }
        let scoped = SocketAddr::from(SocketAddrV6::new("fe80::1".parse().expect("an address"), 5, 0, 3));
        assert_eq!(Address::from(scoped).to_socket_addr(), Some(scoped));
        assert_eq!(Address::empty().to_socket_addr(), None);
    }
}
