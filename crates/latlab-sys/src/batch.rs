//! Many datagrams with one system call. What the kernel is given to read and write is made once; no call allocates.
//!
//! All of them go to the kernel by number: musl's sendmmsg is a loop of sendmsg
//! ([src/network/sendmmsg.c](https://git.musl-libc.org/cgit/musl/tree/src/network/sendmmsg.c)), and sendmsg is a cancellation
//! point in either C library (`datagram` says what that costs). Headers and control buffers are zeroed first, so that
//! musl's padding beside the lengths is what the kernel expects there.

use std::ffi::c_int;
use std::fmt;
use std::io;
use std::mem::zeroed;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

use crate::address::Address;
use crate::datagram::{local_address, put};
use crate::length;

/// Memory into which headers of the kernel's point: it neither moves nor grows.
struct Fixed<T>(NonNull<[T]>);

impl<T> Fixed<T> {
    fn new(items: Vec<T>) -> Fixed<T> {
        let leaked: *mut [T] = Box::into_raw(items.into_boxed_slice());
        // SAFETY: a box is never null.
        Fixed(unsafe { NonNull::new_unchecked(leaked) })
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// Where item `index` lies, which must be one of them.
    fn at(&self, index: usize) -> *mut T {
        assert!(index < self.len());
        // SAFETY: inside of the allocation, as was just seen.
        unsafe { self.0.as_ptr().cast::<T>().add(index) }
    }
}

impl<T> Drop for Fixed<T> {
    fn drop(&mut self) {
        // SAFETY: made from a box in `new`, and given back once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// What comes with a datagram besides its bytes: either family's packet information (40 bytes) and the size of merged
/// ones (24).
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

const CONTROL_BYTES: usize = 128;
// SAFETY: CMSG_SPACE only computes.
const _: () = assert!(
    unsafe { libc::CMSG_SPACE(size_of::<libc::in6_pktinfo>() as u32) + libc::CMSG_SPACE(size_of::<c_int>() as u32) }
        as usize
        <= CONTROL_BYTES
);

/// Sends many datagrams with one call.
pub struct SendBatch {
    parts: Fixed<libc::iovec>,
    messages: Fixed<libc::mmsghdr>,
    /// Whom the headers point to; kept, never looked at.
    _peer: Fixed<Address>,
}

// SAFETY: all that its pointers lead to is its own, and moves with it to the other thread.
unsafe impl Send for SendBatch {}

impl fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendBatch({})", self.messages.len())
    }
}

impl SendBatch {
    /// Room for `most` datagrams at a time, to `peer` or on a connected socket.
    pub fn new(most: usize, peer: Option<Address>) -> SendBatch {
        // SAFETY: numbers and pointers, for which zero is valid.
        let parts = Fixed::new(vec![unsafe { zeroed::<libc::iovec>() }; most]);
        // SAFETY: as above.
        let messages = Fixed::new(vec![unsafe { zeroed::<libc::mmsghdr>() }; most]);
        let named = Fixed::new(vec![peer.unwrap_or(Address::empty())]);
        for index in 0..most {
            // SAFETY: all three lie in memory that stays where it is as long as this value, and nobody else has it.
            unsafe {
                let header = &mut (*messages.at(index)).msg_hdr;
                header.msg_iov = parts.at(index);
                header.msg_iovlen = 1;
                if peer.is_some() {
                    header.msg_name = (*named.at(0)).as_ptr().cast_mut().cast();
                    header.msg_namelen = (*named.at(0)).length();
                }
            }
        }
        SendBatch { parts, messages, _peer: named }
    }

    /// Sends the datagrams of `size` bytes that begin every `stride` bytes in `bytes`, as many as there is room for, and
    /// answers how many the kernel took. [sendmmsg(2)](https://man7.org/linux/man-pages/man2/sendmmsg.2.html)
    pub fn send(&mut self, socket: BorrowedFd<'_>, bytes: &[u8], size: usize, stride: usize) -> io::Result<usize> {
        let there = bytes.len().checked_sub(size).map_or(0, |room| 1 + room / stride.max(1));
        let count = there.min(self.messages.len());
        for index in 0..count {
            // Checked, and so never past the end of `bytes`.
            let datagram = &bytes[index * stride..index * stride + size];
            // SAFETY: ours alone; the kernel reads through it during the call below only.
            unsafe {
                *self.parts.at(index) = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: size };
            }
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: `count` headers whose pointers lead to live values with their lengths; the kernel reads through them,
        // and writes only the headers' own lengths.
        length(unsafe {
            libc::syscall(libc::SYS_sendmmsg, socket.as_raw_fd(), self.messages.at(0), count as libc::c_uint, 0)
        })
    }
}

/// Sends `bytes` as datagrams of `segment` bytes each, the last of which may be shorter: one buffer that the kernel or
/// the NIC cuts. Answers how many bytes were taken: all.
/// [sendmsg(2)](https://man7.org/linux/man-pages/man2/sendmsg.2.html), UDP_SEGMENT
/// ([udp(7)](https://man7.org/linux/man-pages/man7/udp.7.html), Linux 4.18)
pub fn send_segmented(socket: BorrowedFd<'_>, bytes: &[u8], segment: u16, peer: Option<&Address>) -> io::Result<usize> {
    let mut control = Control([0; CONTROL_BYTES]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: numbers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: `message` has a control buffer that is alive, aligned and has room for one header and two bytes.
    let used = unsafe { put(&message, libc::IPPROTO_UDP, libc::UDP_SEGMENT, segment) };
    message.msg_controllen = used as _;
    if let Some(peer) = peer {
        message.msg_name = peer.as_ptr().cast_mut().cast();
        message.msg_namelen = peer.length();
    }
    // SAFETY: every pointer leads to a live value with its length; sendmsg only reads through them.
    length(unsafe { libc::syscall(libc::SYS_sendmsg, socket.as_raw_fd(), &raw const message, 0) })
}

/// Receives many datagrams with one call.
pub struct ReceiveBatch {
    room: Fixed<u8>,
    room_each: usize,
    stride: usize,
    names: Fixed<Address>,
    controls: Fixed<Control>,
    messages: Fixed<libc::mmsghdr>,
    /// Kept for the headers, never looked at.
    _parts: Fixed<libc::iovec>,
    /// How many the last call brought.
    came: usize,
}

// SAFETY: as for `SendBatch`.
unsafe impl Send for ReceiveBatch {}

impl fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiveBatch({} × {} B)", self.messages.len(), self.room_each)
    }
}

/// A datagram that came, or several of one length from one sender that the kernel has merged.
#[derive(Debug)]
pub struct Arrived<'a> {
    /// Its bytes.
    pub bytes: &'a mut [u8],
    /// Who sent it.
    pub peer: &'a Address,
    /// Our address, where the socket was told to tell it (`socket::report_local_address`).
    pub local: Option<IpAddr>,
    /// How long each of the merged ones is, but for the last; none where it is one.
    pub segment: Option<usize>,
}

impl ReceiveBatch {
    /// Room for `most` datagrams of up to `room_each` bytes, which the kernel hands out untouched: pages that no datagram
    /// has filled take no memory.
    pub fn new(most: usize, room_each: usize) -> ReceiveBatch {
        // Rooms a multiple of 4 KiB apart would share the same few lines of the cache.
        let stride = room_each.next_multiple_of(64) + 4_096 + 64;
        let room = Fixed::new(vec![0; most * stride]);
        // SAFETY: numbers and pointers, for which zero is valid.
        let parts = Fixed::new(vec![unsafe { zeroed::<libc::iovec>() }; most]);
        // SAFETY: as above.
        let messages = Fixed::new(vec![unsafe { zeroed::<libc::mmsghdr>() }; most]);
        let names = Fixed::new(vec![Address::empty(); most]);
        let controls = Fixed::new(vec![Control([0; CONTROL_BYTES]); most]);
        for index in 0..most {
            // SAFETY: all of these lie in memory that stays where it is as long as this value, and nobody else has it.
            unsafe {
                *parts.at(index) = libc::iovec { iov_base: room.at(index * stride).cast(), iov_len: room_each };
                let header = &mut (*messages.at(index)).msg_hdr;
                header.msg_iov = parts.at(index);
                header.msg_iovlen = 1;
                header.msg_name = (*names.at(index)).places().0.cast();
                header.msg_control = controls.at(index).cast();
            }
        }
        let mut batch = ReceiveBatch { room, room_each, stride, names, controls, messages, _parts: parts, came: most };
        batch.forget();
        batch
    }

    /// Gives the kernel back the lengths that it overwrote.
    fn forget(&mut self) {
        for index in 0..self.came {
            // SAFETY: ours alone between two calls.
            unsafe {
                let header = &mut (*self.messages.at(index)).msg_hdr;
                header.msg_namelen = *(*self.names.at(index)).places().1;
                header.msg_controllen = size_of_val(&*self.controls.at(index)) as _;
                header.msg_flags = 0;
            }
        }
        self.came = 0;
    }

    /// Receives up to `wanted` datagrams: the first as soon as there is one, sleeping as long as the socket was told to,
    /// the others only if they are there already. How many came is answered; [`ReceiveBatch::arrived`] has them.
    /// [recvmmsg(2)](https://man7.org/linux/man-pages/man2/recvmmsg.2.html) with MSG_WAITFORONE
    pub fn receive(&mut self, socket: BorrowedFd<'_>, wanted: usize) -> io::Result<usize> {
        self.receive_with(socket, wanted, libc::MSG_WAITFORONE as c_int)
    }

    /// As [`ReceiveBatch::receive`], but only what is there already.
    /// [recvmmsg(2)](https://man7.org/linux/man-pages/man2/recvmmsg.2.html) with MSG_DONTWAIT
    pub fn receive_now(&mut self, socket: BorrowedFd<'_>, wanted: usize) -> io::Result<usize> {
        self.receive_with(socket, wanted, libc::MSG_DONTWAIT)
    }

    fn receive_with(&mut self, socket: BorrowedFd<'_>, wanted: usize, flags: c_int) -> io::Result<usize> {
        self.forget();
        let wanted = wanted.clamp(1, self.messages.len()) as libc::c_uint;
        // SAFETY: at least `wanted` headers whose pointers lead to values of ours, with their lengths, that outlive the
        // call; no time-out is given.
        self.came = length(unsafe {
            libc::syscall(
                libc::SYS_recvmmsg,
                socket.as_raw_fd(),
                self.messages.at(0),
                wanted,
                flags,
                ptr::null_mut::<libc::timespec>(),
            )
        })?;
        Ok(self.came)
    }

    /// Datagram `index` of those that the last call brought.
    pub fn arrived(&mut self, index: usize) -> Option<Arrived<'_>> {
        if index >= self.came {
            return None;
        }
        // SAFETY: the kernel has filled this header in the last call; it and all that it points to are ours alone until
        // the next one, which needs this value exclusively.
        unsafe {
            let message = &*self.messages.at(index);
            let length = (message.msg_len as usize).min(self.room_each);
            let bytes = std::slice::from_raw_parts_mut(self.room.at(index * self.stride), length);
            let name = &mut *self.names.at(index);
            name.set_length(message.msg_hdr.msg_namelen);
            let (local, segment) = match message.msg_hdr.msg_controllen {
                0 => (None, None),
                _ => (local_address(&message.msg_hdr), segment_of(&message.msg_hdr)),
            };
            Some(Arrived { bytes, peer: name, local, segment })
        }
    }
}

/// The length of merged datagrams in the control messages (UDP_GRO,
/// [udp(7)](https://man7.org/linux/man-pages/man7/udp.7.html)).
///
/// # Safety
/// A receive call must have filled `message`, and its control buffer must still be alive.
unsafe fn segment_of(message: &libc::msghdr) -> Option<usize> {
    // SAFETY: the caller says that the header describes a live control buffer.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: the macros only yield headers that lie inside the buffer, and the content follows its header.
        let (kind, content) = unsafe { (((*header).cmsg_level, (*header).cmsg_type), libc::CMSG_DATA(header)) };
        if kind == (libc::IPPROTO_UDP, libc::UDP_GRO) {
            // SAFETY: the kernel wrote a number there; alignment is not assumed.
            let segment = unsafe { content.cast::<c_int>().read_unaligned() };
            return usize::try_from(segment).ok().filter(|segment| *segment > 0);
        }
        // SAFETY: as for the first header.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::os::fd::{AsFd, OwnedFd};

    use super::*;
    use crate::address::Family;
    use crate::socket;

    fn bound(address: &str) -> (OwnedFd, SocketAddr) {
        let address: SocketAddr = address.parse().expect("an address");
        let socket = socket::udp(Family::of(&address)).expect("a socket");
        socket::bind(socket.as_fd(), address).expect("a port");
        socket::set_receive_timeout(socket.as_fd(), 3_000_000_000).expect("a time-out");
        let local = socket::local_address(socket.as_fd()).expect("an address");
        (socket, local)
    }

    fn all(batch: &mut ReceiveBatch) -> Vec<(Vec<u8>, Option<SocketAddr>, Option<usize>)> {
        let mut seen = Vec::new();
        while let Some(arrived) = batch.arrived(seen.len()) {
            seen.push((arrived.bytes.to_vec(), arrived.peer.to_socket_addr(), arrived.segment));
        }
        seen
    }

    #[test]
    fn batches_arrive_in_order_with_their_sender() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let (receiver, there) = bound(loopback);
            let (sender, here) = bound(loopback);
            let bytes: Vec<u8> = (0..20).collect();
            for connected in [false, true] {
                if connected {
                    socket::connect(sender.as_fd(), there).expect("a peer");
                }
                let mut out = SendBatch::new(16, (!connected).then(|| there.into()));
                // Ten bytes each, beginning every five: three of them, which overlap.
                assert_eq!(out.send(sender.as_fd(), &bytes, 10, 5).expect("sent"), 3);
                let mut batch = ReceiveBatch::new(8, 64);
                let mut seen = Vec::new();
                while seen.len() < 3 {
                    assert!(batch.receive(receiver.as_fd(), 2).expect("received") <= 2);
                    seen.extend(all(&mut batch));
                }
                let expected = [&bytes[0..10], &bytes[5..15], &bytes[10..20]];
                assert_eq!(seen, expected.map(|part| (part.to_vec(), Some(here), None)));
                let error = batch.receive_now(receiver.as_fd(), 8).expect_err("nothing more was sent");
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                assert!(batch.arrived(0).is_none(), "what came before is gone");
            }
        }
    }

    #[test]
    fn no_more_than_there_is_room_for() {
        let (receiver, there) = bound("127.0.0.1:0");
        let (sender, _) = bound("127.0.0.1:0");
        let mut out = SendBatch::new(2, Some(there.into()));
        assert_eq!(out.send(sender.as_fd(), &[7; 100], 10, 10).expect("sent"), 2);
        assert_eq!(out.send(sender.as_fd(), &[7; 9], 10, 10).expect("nothing to send"), 0);
        let mut batch = ReceiveBatch::new(2, 4);
        assert_eq!(batch.receive(receiver.as_fd(), 100).expect("received"), 2);
        assert_eq!(all(&mut batch).iter().map(|(bytes, ..)| bytes.len()).collect::<Vec<_>>(), [4, 4], "cut off");
    }

    #[test]
    fn a_buffer_is_cut_and_can_arrive_merged() {
        let (receiver, there) = bound("127.0.0.1:0");
        let (sender, here) = bound("127.0.0.1:0");
        let bytes: Vec<u8> = (0..250).collect();
        let mut batch = ReceiveBatch::new(8, 65_536);
        for merging in [false, true, false] {
            socket::set_merging(receiver.as_fd(), merging).expect("UDP_GRO");
            assert_eq!(send_segmented(sender.as_fd(), &bytes, 100, Some(&there.into())).expect("sent"), 250);
            let mut seen = Vec::new();
            while seen.iter().map(|(bytes, ..): &(Vec<u8>, _, _)| bytes.len()).sum::<usize>() < 250 {
                batch.receive(receiver.as_fd(), 8).expect("received");
                seen.extend(all(&mut batch));
            }
            assert!(seen.iter().all(|(_, peer, _)| *peer == Some(here)));
            assert_eq!(seen.iter().flat_map(|(bytes, ..)| bytes.clone()).collect::<Vec<_>>(), bytes);
            match merging {
                true => assert_eq!(seen.iter().map(|(.., segment)| *segment).collect::<Vec<_>>(), [Some(100)]),
                false => assert_eq!(seen.iter().map(|(bytes, ..)| bytes.len()).collect::<Vec<_>>(), [100, 100, 50]),
            }
        }
    }
}
