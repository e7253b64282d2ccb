//! TCP connections: sockets, options, and the kernel's counts. Bytes are sent and received with the calls of
//! [`crate::datagram`], which also work for a connection, and with [`send_now`].

use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{self, SocketFlags, SocketType, ipproto, sockopt};

use crate::address::AddressFamily;
use crate::socket::{opened, set};
use crate::{done, length};

/// A blocking TCP socket that children do not inherit.
pub fn tcp(family: AddressFamily) -> io::Result<OwnedFd> {
    opened(family, SocketType::STREAM, SocketFlags::empty(), ipproto::TCP)
}

/// The same for a socket that is to listen: [`accept`] never sleeps.
pub fn tcp_listener(family: AddressFamily) -> io::Result<OwnedFd> {
    opened(family, SocketType::STREAM, SocketFlags::NONBLOCK, ipproto::TCP)
}

/// The next connection, blocking and not inherited by children, with its peer; `WouldBlock` if none waits.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<(OwnedFd, SocketAddr)> {
    let (connection, peer) = net::acceptfrom_with(listener, SocketFlags::CLOEXEC)?;
    // A connection that was reset before it is accepted may have no address.
    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok()).ok_or(io::ErrorKind::ConnectionAborted)?;
    Ok((connection, peer))
}

/// Sends what fits into the send buffer, without sleeping; `WouldBlock` if nothing fits.
/// [send(2)](https://man7.org/linux/man-pages/man2/send.2.html) with MSG_DONTWAIT
#[inline]
pub fn send_now(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe `bytes`, which the kernel only reads; no address is given. By number, as in
    // `datagram`.
    length(unsafe {
        libc::syscall(
            libc::SYS_sendto,
            socket.as_raw_fd(),
            bytes.as_ptr(),
            bytes.len(),
            libc::MSG_DONTWAIT,
            std::ptr::null::<libc::sockaddr>(),
            0,
        )
    })
}

/// The number of unsent bytes in the send buffer above which a send call sleeps (TCP_NOTSENT_LOWAT,
/// Linux 3.12, [tcp(7)](https://man7.org/linux/man-pages/man7/tcp.7.html)).
pub fn set_unsent_limit(socket: BorrowedFd<'_>, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &c_int::try_from(bytes).unwrap_or(c_int::MAX))
}

/// The pending error of a connection attempt or a connection (SO_ERROR). Reading it clears it.
pub fn take_error(socket: BorrowedFd<'_>) -> io::Result<()> {
    Ok(sockopt::socket_error(socket)??)
}

/// Counts of a connection (TCP_INFO, linux/tcp.h;
/// [tcp(7)](https://man7.org/linux/man-pages/man7/tcp.7.html)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// The maximum segment size of sending, in bytes of payload.
    pub send_segment_bytes: u32,
    /// Segments retransmitted since the connection was made.
    pub retransmitted: u32,
}

pub fn counts(socket: BorrowedFd<'_>) -> io::Result<ConnectionCounts> {
    // SAFETY: all its fields are numbers, for which zero bytes are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let place = (&raw mut info).cast();
    // SAFETY: the kernel writes at most `length` bytes into `info`, and any bits are valid numbers. An older kernel, with
    // fewer fields, writes fewer bytes; both fields that are read are older than Linux 3.
    done(unsafe { libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, place, &mut length) })?;
    Ok(ConnectionCounts { send_segment_bytes: info.tcpi_snd_mss, retransmitted: info.tcpi_total_retrans })
}

/// Bytes in the send queue that the peer's kernel has not acknowledged (SIOCOUTQ,
/// [tcp(7)](https://man7.org/linux/man-pages/man7/tcp.7.html)).
pub fn unacknowledged(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: c_int = 0;
    // SAFETY: the kernel writes one int into `bytes`. SIOCOUTQ is another name of TIOCOUTQ.
    done(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ as _, &raw mut bytes) })?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::{datagram, readiness, socket};

    /// Both ends of a connection over loopback.
    fn pair() -> (OwnedFd, OwnedFd) {
        let listener = tcp_listener(AddressFamily::Ipv4).expect("a socket");
        sockopt::set_socket_reuseaddr(listener.as_fd(), true).expect("an option");
        socket::bind(listener.as_fd(), "127.0.0.1:0".parse().expect("an address")).expect("a port");
        assert_eq!(accept(listener.as_fd()).expect_err("it does not listen").kind(), io::ErrorKind::InvalidInput);
        net::listen(listener.as_fd(), 4).expect("listening");
        assert_eq!(accept(listener.as_fd()).expect_err("no connection").kind(), io::ErrorKind::WouldBlock);
        let address = socket::local_address(listener.as_fd()).expect("an address");
        let near = tcp(AddressFamily::Ipv4).expect("a socket");
        socket::connect(near.as_fd(), address).expect("a listener");
        let (far, peer) = accept(listener.as_fd()).expect("a connection");
        assert_eq!(peer, socket::local_address(near.as_fd()).expect("an address"));
        (near, far)
    }

    #[test]
    fn options_and_counts_of_a_connection_can_be_read() {
        let (near, far) = pair();
        let no_delay = || i32::from(sockopt::tcp_nodelay(near.as_fd()).expect("an option"));
        assert_eq!(no_delay(), 0);
        sockopt::set_tcp_nodelay(near.as_fd(), true).expect("an option");
        set_unsent_limit(near.as_fd(), 1 << 18).expect("an option");
        assert_ne!(no_delay(), 0);
        assert_eq!(send_now(near.as_fd(), b"seven b").expect("space"), 7);
        let mut buffer = [0; 16];
        assert!(readiness::readable_within(far.as_fd(), 3_000_000_000).expect("asked"));
        assert_eq!(datagram::receive_now(far.as_fd(), &mut buffer).expect("bytes"), 7);
        let counts = counts(near.as_fd()).expect("counts");
        assert!(counts.send_segment_bytes > 500 && counts.retransmitted == 0, "{counts:?}");
        assert!(!sockopt::tcp_congestion(near.as_fd()).expect("a name").is_empty());
        take_error(near.as_fd()).expect("nothing is wrong");
        drop(far);
        assert_eq!(datagram::receive(near.as_fd(), &mut buffer).expect("the end"), 0);
    }

    #[test]
    fn sending_into_a_full_buffer_would_block() {
        let (near, _far) = pair();
        let bytes = vec![7; 1 << 20];
        let mut sent = 0;
        let full = loop {
            match send_now(near.as_fd(), &bytes) {
                Ok(more) => sent += more,
                Err(error) => break error,
            }
            assert!(sent < 1 << 30, "the other end reads nothing");
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert!(!readiness::writable_within(near.as_fd(), 0).expect("asked"));
    }

    #[test]
    fn a_refused_connection_attempt_reports_its_error() {
        let taken = tcp_listener(AddressFamily::Ipv4).expect("a socket");
        socket::bind(taken.as_fd(), "127.0.0.1:0".parse().expect("an address")).expect("a port");
        let closed = socket::local_address(taken.as_fd()).expect("an address");
        let near = tcp_listener(AddressFamily::Ipv4).expect("a socket that does not sleep");
        let error = socket::connect(near.as_fd(), closed).expect_err("no listener");
        let reported = match error.raw_os_error() {
            Some(libc::EINPROGRESS) => {
                assert!(readiness::writable_within(near.as_fd(), 3_000_000_000).expect("asked"));
                take_error(near.as_fd()).expect_err("no listener")
            }
            _ => error,
        };
        assert_eq!(reported.kind(), io::ErrorKind::ConnectionRefused);
    }
}
