//! Sending and receiving datagrams: the only calls of an armed run other than clock and wait. They never allocate.
//!
//! `send`, `recv`, `sendto` and `recvfrom` go to the kernel by number. The C library's functions of these names are
//! cancellation points: in a process of several threads they change the thread's state with an atomic instruction before
//! and after each call, which latlab does not need
//! ([pthreads(7)](https://man7.org/linux/man-pages/man7/pthreads.7.html), "Cancellation points"). AF_XDP sockets use them with
//! no bytes, to wake the kernel.

use std::ffi::c_int;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use crate::address::Address;
use crate::control::{CONTROL_BYTES, Control, put, received};
use crate::length;

/// Sends to the connected peer. [send(2)](https://man7.org/linux/man-pages/man2/send.2.html)
#[inline]
pub fn send(socket: BorrowedFd<'_>, datagram: &[u8]) -> io::Result<usize> {
    send_with(socket, datagram, 0)
}

/// Sends without sleeping; `WouldBlock` if the kernel cannot take the datagram now.
/// [send(2)](https://man7.org/linux/man-pages/man2/send.2.html) with MSG_DONTWAIT
#[inline]
pub fn send_now(socket: BorrowedFd<'_>, datagram: &[u8]) -> io::Result<usize> {
    send_with(socket, datagram, libc::MSG_DONTWAIT)
}

#[inline]
fn send_with(socket: BorrowedFd<'_>, datagram: &[u8], flags: c_int) -> io::Result<usize> {
    // SAFETY: pointer and length describe `datagram`, which the kernel only reads; no address is given.
    length(unsafe {
        libc::syscall(
            libc::SYS_sendto,
            socket.as_raw_fd(),
            datagram.as_ptr(),
            datagram.len(),
            flags,
            ptr::null::<libc::sockaddr>(),
            0,
        )
    })
}

/// Receives from the connected peer; sleeps for at most the socket's receive time-out.
/// [recv(2)](https://man7.org/linux/man-pages/man2/recv.2.html)
#[inline]
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    receive_with(socket, buffer, 0)
}

/// Receives without sleeping; `WouldBlock` without a datagram.
/// [recv(2)](https://man7.org/linux/man-pages/man2/recv.2.html) with MSG_DONTWAIT
#[inline]
pub fn receive_now(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    receive_with(socket, buffer, libc::MSG_DONTWAIT)
}

#[inline]
fn receive_with(socket: BorrowedFd<'_>, buffer: &mut [u8], flags: c_int) -> io::Result<usize> {
    // SAFETY: pointer and length describe `buffer`, which is exclusive; no address is requested.
    length(unsafe {
        libc::syscall(
            libc::SYS_recvfrom,
            socket.as_raw_fd(),
            buffer.as_mut_ptr(),
            buffer.len(),
            flags,
            ptr::null_mut::<libc::sockaddr>(),
            ptr::null_mut::<libc::socklen_t>(),
        )
    })
}

/// Sends to `peer`. [sendto(2)](https://man7.org/linux/man-pages/man2/sendto.2.html)
#[inline]
pub fn send_to(socket: BorrowedFd<'_>, datagram: &[u8], peer: &Address) -> io::Result<usize> {
    send_to_with(socket, datagram, peer, 0)
}

/// [`send_to`] without sleeping; `WouldBlock` if the send buffer is full.
#[inline]
pub fn send_to_now(socket: BorrowedFd<'_>, datagram: &[u8], peer: &Address) -> io::Result<usize> {
    send_to_with(socket, datagram, peer, libc::MSG_DONTWAIT)
}

#[inline]
fn send_to_with(socket: BorrowedFd<'_>, datagram: &[u8], peer: &Address, flags: c_int) -> io::Result<usize> {
    let (place, bytes) = (datagram.as_ptr(), datagram.len());
    // SAFETY: both pairs of pointer and length describe live values, which the kernel only reads.
    length(unsafe {
        libc::syscall(libc::SYS_sendto, socket.as_raw_fd(), place, bytes, flags, peer.as_ptr(), peer.length())
    })
}

/// Receives from any peer and stores its address; sleeps for at most the socket's receive time-out.
/// [recvfrom(2)](https://man7.org/linux/man-pages/man2/recvfrom.2.html)
#[inline]
pub fn receive_from(socket: BorrowedFd<'_>, buffer: &mut [u8], peer: &mut Address) -> io::Result<usize> {
    receive_from_with(socket, buffer, peer, 0)
}

/// [`receive_from`] without sleeping.
/// [recvfrom(2)](https://man7.org/linux/man-pages/man2/recvfrom.2.html) with MSG_DONTWAIT
#[inline]
pub fn receive_from_now(socket: BorrowedFd<'_>, buffer: &mut [u8], peer: &mut Address) -> io::Result<usize> {
    receive_from_with(socket, buffer, peer, libc::MSG_DONTWAIT)
}

#[inline]
fn receive_from_with(socket: BorrowedFd<'_>, buffer: &mut [u8], peer: &mut Address, flags: c_int) -> io::Result<usize> {
    let (place, bytes) = (buffer.as_mut_ptr(), buffer.len());
    let (address, address_length) = peer.places();
    // SAFETY: `buffer` and `peer` are exclusive; each length is the capacity behind its pointer.
    length(unsafe {
        libc::syscall(libc::SYS_recvfrom, socket.as_raw_fd(), place, bytes, flags, address, address_length)
    })
}

#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    pub peer: Address,
    /// The local address; `None` if the socket does not report it (`socket::report_local_address`).
    pub local: Option<IpAddr>,
    /// The kernel's receive stamp on CLOCK_REALTIME; `None` unless the socket stamps (`stamps::request`).
    pub received_ns: Option<i64>,
}

impl Envelope {
    /// Space for addresses that the kernel writes.
    pub const fn empty() -> Envelope {
        Envelope { peer: Address::empty(), local: None, received_ns: None }
    }
}

/// Receives from any peer, and stores both addresses and the kernel's stamp.
/// [recvmsg(2)](https://man7.org/linux/man-pages/man2/recvmsg.2.html)
pub fn receive_envelope(socket: BorrowedFd<'_>, buffer: &mut [u8], envelope: &mut Envelope) -> io::Result<usize> {
    receive_envelope_with(socket, buffer, envelope, 0)
}

/// [`receive_envelope`] without sleeping.
/// [recvmsg(2)](https://man7.org/linux/man-pages/man2/recvmsg.2.html) with MSG_DONTWAIT
pub fn receive_envelope_now(socket: BorrowedFd<'_>, buffer: &mut [u8], envelope: &mut Envelope) -> io::Result<usize> {
    receive_envelope_with(socket, buffer, envelope, libc::MSG_DONTWAIT)
}

fn receive_envelope_with(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    envelope: &mut Envelope,
    flags: c_int,
) -> io::Result<usize> {
    let mut control = Control::empty();
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message = message(&mut part, &mut control);
    let (name, name_length) = envelope.peer.places();
    message.msg_name = name.cast();
    // SAFETY: the pointer was just made from a live address.
    message.msg_namelen = unsafe { *name_length };
    // SAFETY: every pointer in `message` is to an exclusive value that outlives the call, with its length.
    let bytes = length(unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, flags) })?;
    // SAFETY: the kernel has filled `message` and its control buffer in the call above.
    let received = unsafe { received(&message) };
    (envelope.local, envelope.received_ns) = (received.local, received.stamp_ns);
    envelope.peer.set_length(message.msg_namelen);
    Ok(bytes)
}

/// Sends to `envelope.peer` from `envelope.local`, so that an answer has the address that the request was sent to, without
/// sleeping. [sendmsg(2)](https://man7.org/linux/man-pages/man2/sendmsg.2.html)
pub fn send_envelope_now(socket: BorrowedFd<'_>, datagram: &[u8], envelope: &Envelope) -> io::Result<usize> {
    let Some(local) = envelope.local else { return send_to_now(socket, datagram, &envelope.peer) };
    let mut control = Control::empty();
    let mut part = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: datagram.len() };
    let mut message = message(&mut part, &mut control);
    // SAFETY: `message` has a live control buffer of `CONTROL_BYTES`, enough for one header and either packet information.
    let used = unsafe { put_local_address(&message, local) };
    message.msg_controllen = used as _;
    message.msg_name = envelope.peer.as_ptr().cast_mut().cast();
    message.msg_namelen = envelope.peer.length();
    // SAFETY: every pointer is to a live value with its length; sendmsg only reads them.
    length(unsafe { libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_DONTWAIT) })
}

pub(crate) fn message(part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: a message header is numbers and pointers, for which zero is valid. It is zeroed since musl's has private
    // padding fields.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    message
}

/// Writes `local` as the only control message and returns the length of all control data.
///
/// # Safety
/// `message` must describe a live control buffer of at least [`CONTROL_BYTES`], aligned for a header.
unsafe fn put_local_address(message: &libc::msghdr, local: IpAddr) -> usize {
    // The interface stays 0: routing chooses it, or the scope of a link-local peer's address.
    match local {
        IpAddr::V4(ip) => {
            let own = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr { s_addr: u32::from(ip).to_be() },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            // SAFETY: the contract is that of this function.
            unsafe { put(message, libc::IPPROTO_IP, libc::IP_PKTINFO, own) }
        }
        IpAddr::V6(ip) => {
            let own = libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: ip.octets() }, ipi6_ifindex: 0 };
            // SAFETY: as above.
            unsafe { put(message, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, own) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::os::fd::AsFd;

    use super::*;
    use crate::address::AddressFamily;
    use crate::socket;

    fn bound(address: &str) -> (std::os::fd::OwnedFd, SocketAddr) {
        let address: SocketAddr = address.parse().expect("an address");
        let socket = socket::udp(AddressFamily::of(&address)).expect("a socket");
        socket::report_local_address(socket.as_fd(), AddressFamily::of(&address)).expect("packet info");
        socket::bind(socket.as_fd(), address).expect("a port");
        socket::set_receive_timeout(socket.as_fd(), 3_000_000_000).expect("a time-out");
        let local = socket::local_address(socket.as_fd()).expect("an address");
        (socket, local)
    }

    #[test]
    fn an_answer_has_the_address_that_the_request_was_sent_to() {
        let (wildcard, local) = bound("0.0.0.0:0");
        let (asking, _) = bound("127.0.0.1:0");
        let asked = SocketAddr::from(([127, 0, 0, 9], local.port()));
        send_to(asking.as_fd(), b"question", &asked.into()).expect("sent");

        let mut buffer = [0; 64];
        let mut envelope = Envelope::empty();
        let bytes = receive_envelope(wildcard.as_fd(), &mut buffer, &mut envelope).expect("received");
        assert_eq!(&buffer[..bytes], b"question");
        assert_eq!(envelope.local, Some(asked.ip()));
        send_envelope_now(wildcard.as_fd(), b"answer", &envelope).expect("answered");

        let mut from = Address::empty();
        let bytes = receive_from(asking.as_fd(), &mut buffer, &mut from).expect("received");
        assert_eq!((&buffer[..bytes], from.to_socket_addr()), (&b"answer"[..], Some(asked)));
    }

    #[test]
    fn receiving_without_a_datagram_would_block() {
        let (socket, _) = bound("127.0.0.1:0");
        let mut buffer = [0; 8];
        for error in [
            receive_now(socket.as_fd(), &mut buffer),
            receive_from_now(socket.as_fd(), &mut buffer, &mut Address::empty()),
            receive_envelope_now(socket.as_fd(), &mut buffer, &mut Envelope::empty()),
        ] {
            assert_eq!(error.expect_err("nothing was sent").kind(), io::ErrorKind::WouldBlock);
        }
        assert!(!crate::readiness::readable_within(socket.as_fd(), 0).expect("asked"));
    }
}
