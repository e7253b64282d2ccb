//! UDP sockets: creation and options. All of this happens before a run is armed.

use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{self, Timeout};
use rustix::net::{self, Protocol, SocketFlags, SocketType, ipproto};

use crate::address::AddressFamily;
use crate::done;

/// A blocking UDP socket that children do not inherit.
pub fn udp(family: AddressFamily) -> io::Result<OwnedFd> {
    opened(family, SocketType::DGRAM, SocketFlags::empty(), ipproto::UDP)
}

pub(crate) fn opened(
    family: AddressFamily,
    kind: SocketType,
    flags: SocketFlags,
    protocol: Protocol,
) -> io::Result<OwnedFd> {
    let domain = match family {
        AddressFamily::Ipv4 => net::AddressFamily::INET,
        AddressFamily::Ipv6 => net::AddressFamily::INET6,
    };
    Ok(net::socket_with(domain, kind, flags | SocketFlags::CLOEXEC, Some(protocol))?)
}

pub fn bind(socket: BorrowedFd<'_>, local: SocketAddr) -> io::Result<()> {
    Ok(net::bind(socket, &local)?)
}

pub fn connect(socket: BorrowedFd<'_>, peer: SocketAddr) -> io::Result<()> {
    Ok(net::connect(socket, &peer)?)
}

pub fn local_address(socket: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    Ok(SocketAddr::try_from(net::getsockname(socket)?)?)
}

/// [setsockopt(2)](https://man7.org/linux/man-pages/man2/setsockopt.2.html)
pub(crate) fn set<T: Copy>(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: pointer and length describe `value`, which the kernel only reads.
    done(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const *value).cast(), length) })
}

/// Sends and receives through one interface only (SO_BINDTODEVICE,
/// [socket(7)](https://man7.org/linux/man-pages/man7/socket.7.html)).
pub fn bind_to_device(socket: BorrowedFd<'_>, interface: &str) -> io::Result<()> {
    let mut name = [0u8; libc::IFNAMSIZ];
    // The kernel truncates longer names silently, and would bind to another interface.
    if interface.is_empty() || interface.len() >= name.len() || interface.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    name[..interface.len()].copy_from_slice(interface.as_bytes());
    set(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &name)
}

/// The time after which a receive call stops sleeping, rounded up to the kernel's tick (SO_RCVTIMEO). Zero means no limit.
pub fn set_receive_timeout(socket: BorrowedFd<'_>, timeout_ns: i64) -> io::Result<()> {
    Ok(sockopt::set_socket_timeout(socket, Timeout::Recv, span(timeout_ns))?)
}

/// The time after which a send call stops sleeping for space in the send buffer (SO_SNDTIMEO).
pub fn set_send_timeout(socket: BorrowedFd<'_>, timeout_ns: i64) -> io::Result<()> {
    Ok(sockopt::set_socket_timeout(socket, Timeout::Send, span(timeout_ns))?)
}

fn span(ns: i64) -> Option<Duration> {
    (ns > 0).then(|| Duration::from_nanos(ns.unsigned_abs()))
}

/// How long a receive call polls the driver before it sleeps (SO_BUSY_POLL,
/// [socket(7)](https://man7.org/linux/man-pages/man7/socket.7.html)). Raising it may need CAP_NET_ADMIN.
pub fn set_busy_poll(socket: BorrowedFd<'_>, busy_poll_us: u32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_BUSY_POLL, &c_int::try_from(busy_poll_us).unwrap_or(c_int::MAX))
}

/// Requests a receive buffer and returns the granted size: SO_RCVBUFFORCE if permitted, else SO_RCVBUF within
/// `net.core.rmem_max` ([socket(7)](https://man7.org/linux/man-pages/man7/socket.7.html)). The kernel doubles the
/// requested size for its bookkeeping.
pub fn set_receive_buffer(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<u32> {
    let forced = sockopt::set_socket_recv_buffer_size_force(socket, bytes as usize);
    forced.or_else(|_| sockopt::set_socket_recv_buffer_size(socket, bytes as usize))?;
    Ok(sockopt::socket_recv_buffer_size(socket)? as u32)
}

/// The same for the send buffer and `net.core.wmem_max`.
pub fn set_send_buffer(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<u32> {
    let forced = sockopt::set_socket_send_buffer_size_force(socket, bytes as usize);
    forced.or_else(|_| sockopt::set_socket_send_buffer_size(socket, bytes as usize))?;
    Ok(sockopt::socket_send_buffer_size(socket)? as u32)
}

/// Whether datagrams leave with a UDP checksum: SO_NO_CHECK
/// ([socket(7)](https://man7.org/linux/man-pages/man7/socket.7.html)); over IPv6 UDP_NO_CHECK6_TX (linux/udp.h, RFC 6935),
/// and receivers drop datagrams without one unless [`accept_unchecked`] is set.
pub fn set_checksums(socket: BorrowedFd<'_>, family: AddressFamily, on: bool) -> io::Result<()> {
    let off = c_int::from(!on);
    match family {
        AddressFamily::Ipv4 => set(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, &off),
        AddressFamily::Ipv6 => set(socket, libc::IPPROTO_UDP, libc::UDP_NO_CHECK6_TX, &off),
    }
}

/// Whether an IPv6 socket accepts datagrams without a UDP checksum (UDP_NO_CHECK6_RX, linux/udp.h, RFC 6936).
pub fn accept_unchecked(socket: BorrowedFd<'_>, taken: bool) -> io::Result<()> {
    set(socket, libc::IPPROTO_UDP, libc::UDP_NO_CHECK6_RX, &c_int::from(taken))
}

/// Whether datagrams of one sender and one length may arrive merged into one buffer (UDP_GRO,
/// [udp(7)](https://man7.org/linux/man-pages/man7/udp.7.html), Linux 5.0).
pub fn set_merging(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    set(socket, libc::IPPROTO_UDP, libc::UDP_GRO, &c_int::from(on))
}

/// Datagrams that the kernel dropped at this socket because its receive buffer was full or a checksum was wrong
/// (SO_MEMINFO, SK_MEMINFO_DROPS in linux/sock_diag.h; Linux 4.12; `sk_get_meminfo` in
/// [net/core/sock.c](https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/net/core/sock.c)). Wraps
/// at 2³².
pub fn drops(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let [.., drops] = memory_numbers(socket)?;
    Ok(drops)
}

/// Whether datagrams wait in the receive buffer (SK_MEMINFO_RMEM_ALLOC).
pub fn has_queued(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let [allocated, ..] = memory_numbers(socket)?;
    Ok(allocated > 0)
}

const MEMORY_NUMBERS: usize = 9;

fn memory_numbers(socket: BorrowedFd<'_>) -> io::Result<[u32; MEMORY_NUMBERS]> {
    let mut numbers = [0u32; MEMORY_NUMBERS];
    let mut length = size_of_val(&numbers) as libc::socklen_t;
    let place = numbers.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `length` bytes into `numbers`, and any bits are valid numbers.
    done(unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, place, &mut length) })?;
    if length as usize == size_of_val(&numbers) { Ok(numbers) } else { Err(io::ErrorKind::Unsupported.into()) }
}

/// Makes the kernel report the local address of each received datagram (IP_PKTINFO,
/// [ip(7)](https://man7.org/linux/man-pages/man7/ip.7.html); IPV6_RECVPKTINFO,
/// [ipv6(7)](https://man7.org/linux/man-pages/man7/ipv6.7.html)).
pub fn report_local_address(socket: BorrowedFd<'_>, family: AddressFamily) -> io::Result<()> {
    let on: c_int = 1;
    match family {
        AddressFamily::Ipv4 => set(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, &on),
        AddressFamily::Ipv6 => set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, &on),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn options_are_accepted_by_the_kernel() {
        let socket = udp(AddressFamily::Ipv4).expect("a socket");
        let socket = socket.as_fd();
        set_receive_timeout(socket, 1_000_000).expect("a time-out");
        set_send_timeout(socket, 1_000_000).expect("a time-out");
        report_local_address(socket, AddressFamily::Ipv4).expect("packet info");
        assert!(set_receive_buffer(socket, 65_536).expect("a buffer") >= 65_536);
        assert!(set_send_buffer(socket, 65_536).expect("a buffer") >= 65_536);
        set_merging(socket, true).expect("merging");
        for family in [AddressFamily::Ipv4, AddressFamily::Ipv6] {
            let socket = udp(family).expect("a socket");
            set_checksums(socket.as_fd(), family, false).expect("no checksums");
            set_checksums(socket.as_fd(), family, true).expect("checksums");
            accept_unchecked(socket.as_fd(), true).expect("an option");
        }
        assert_eq!(drops(socket).expect("a count"), 0);
        bind(socket, "127.0.0.1:0".parse().expect("an address")).expect("a port");
        let local = local_address(socket).expect("an address");
        assert!(local.ip().is_loopback() && local.port() != 0);
        connect(socket, local).expect("a peer");
    }

    #[test]
    fn datagrams_beyond_the_receive_buffer_are_counted_as_drops() {
        let socket = udp(AddressFamily::Ipv4).expect("a socket");
        let socket = socket.as_fd();
        // The kernel's minimum: a few datagrams fit.
        set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &1).expect("a buffer");
        bind(socket, "127.0.0.1:0".parse().expect("an address")).expect("a port");
        assert_eq!(drops(socket).expect("a count"), 0);
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let local = local_address(socket).expect("an address");
        (0..100).for_each(|_| assert_eq!(sender.send_to(&[0; 1_000], local).expect("sent"), 1_000));
        let dropped = drops(socket).expect("a count");
        assert!((50..100).contains(&dropped), "{dropped} of 100");
    }
}
