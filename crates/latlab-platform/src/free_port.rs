//! Ports for services that latlab starts.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};

/// Tries for a port that is free for UDP too, and new.
const TRIES: usize = 1_000;

/// A port that no TCP and no UDP socket of this host is bound to, and that is not in `used` unless few are free. Adds it.
pub fn free_port(used: &mut BTreeSet<u16>) -> io::Result<u16> {
    let v6: IpAddr = Ipv6Addr::UNSPECIFIED.into();
    // Where IPv6 exists, its sockets take the ports of IPv4 as well.
    let any = if TcpListener::bind((v6, 0)).is_ok() { v6 } else { Ipv4Addr::UNSPECIFIED.into() };
    let mut free = Err(io::ErrorKind::AddrInUse.into());
    for _ in 0..TRIES {
        let port = TcpListener::bind((any, 0))?.local_addr()?.port();
        if UdpSocket::bind((any, port)).is_ok() {
            free = Ok(port);
            if used.insert(port) {
                break;
            }
        }
    }
    free
}
