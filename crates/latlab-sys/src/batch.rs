//! Many datagrams with one system call. Headers and buffers are allocated once; no call allocates.
//!
//! All calls go to the kernel by number: musl's sendmmsg is a loop of sendmsg
//! ([src/network/sendmmsg.c](https://git.musl-libc.org/cgit/musl/tree/src/network/sendmmsg.c)), and sendmsg is a cancellation
//! point in either C library (see `datagram` for the cost). Headers and control buffers are zeroed first, so that musl's
//! padding of the lengths is 0, as the kernel expects.

use std::ffi::c_int;
use std::fmt;
use std::io;
use std::mem::zeroed;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};

use crate::address::Address;
use crate::control::{CONTROL_BYTES, Control, put, received};
use crate::length;

/// Memory that headers for the kernel point to: it neither moves nor grows.
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

    /// The address of item `index`, which must exist.
    fn at(&self, index: usize) -> *mut T {
        assert!(index < self.len());
        // SAFETY: inside the allocation, as was just checked.
        unsafe { self.0.as_ptr().cast::<T>().add(index) }
    }
}

impl<T> Drop for Fixed<T> {
    fn drop(&mut self) {
        // SAFETY: made from a box in `new`, and freed once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Sends many datagrams with one call.
pub struct SendBatch {
    parts: Fixed<libc::iovec>,
    messages: Fixed<libc::mmsghdr>,
    /// The address that the headers point to; kept alive, never read.
    _peer: Fixed<Address>,
}

// SAFETY: it owns everything that its pointers refer to, which moves with it to the other thread.
unsafe impl Send for SendBatch {}

impl fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendBatch({})", self.messages.len())
    }
}

impl SendBatch {
    /// Sends up to `most` datagrams at a time to `peer`, or on a connected socket.
    pub fn new(most: usize, peer: Option<Address>) -> SendBatch {
        // SAFETY: numbers and pointers, for which zero is valid.
        let parts = Fixed::new(vec![unsafe { zeroed::<libc::iovec>() }; most]);
        // SAFETY: as above.
        let messages = Fixed::new(vec![unsafe { zeroed::<libc::mmsghdr>() }; most]);
        let named = Fixed::new(vec![peer.unwrap_or(Address::empty())]);
        for index in 0..most {
            // SAFETY: all three are in memory that does not move while this value exists and has no other owner.
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

    /// Sends the datagrams of `size` bytes that begin every `stride` bytes in `bytes`, up to the capacity, and returns how
    /// many the kernel took. [sendmmsg(2)](https://man7.org/linux/man-pages/man2/sendmmsg.2.html)
    pub fn send(&mut self, socket: BorrowedFd<'_>, bytes: &[u8], size: usize, stride: usize) -> io::Result<usize> {
        let there = bytes.len().checked_sub(size).map_or(0, |rest| 1 + rest / stride.max(1));
        let count = there.min(self.messages.len());
        for index in 0..count {
            // A checked index: never past the end of `bytes`.
            let datagram = &bytes[index * stride..index * stride + size];
            // SAFETY: exclusive; the kernel reads it during the call below only.
            unsafe {
                *self.parts.at(index) = libc::iovec { iov_base: datagram.as_ptr().cast_mut().cast(), iov_len: size };
            }
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: `count` headers whose pointers are to live values with their lengths; the kernel reads these, and writes
        // only the lengths in the headers.
        length(unsafe {
            libc::syscall(libc::SYS_sendmmsg, socket.as_raw_fd(), self.messages.at(0), count as libc::c_uint, 0)
        })
    }
}

/// Sends `bytes` as datagrams of `segment` bytes each, of which the last may be shorter: one buffer that the kernel or the
/// NIC segments. Returns the number of bytes taken, which is all.
/// [sendmsg(2)](https://man7.org/linux/man-pages/man2/sendmsg.2.html), UDP_SEGMENT
/// ([udp(7)](https://man7.org/linux/man-pages/man7/udp.7.html), Linux 4.18)
pub fn send_segmented(socket: BorrowedFd<'_>, bytes: &[u8], segment: u16, peer: Option<&Address>) -> io::Result<usize> {
    let mut control = Control::empty();
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: numbers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: `message` has a control buffer that is alive, aligned, and large enough for one header and two bytes.
    let used = unsafe { put(&message, libc::IPPROTO_UDP, libc::UDP_SEGMENT, segment) };
    message.msg_controllen = used as _;
    if let Some(peer) = peer {
        message.msg_name = peer.as_ptr().cast_mut().cast();
        message.msg_namelen = peer.length();
    }
    // SAFETY: every pointer is to a live value with its length; sendmsg only reads them.
    length(unsafe { libc::syscall(libc::SYS_sendmsg, socket.as_raw_fd(), &raw const message, 0) })
}

/// Receives many datagrams with one call.
pub struct ReceiveBatch {
    buffers: Fixed<u8>,
    buffer_bytes: usize,
    stride: usize,
    names: Fixed<Address>,
    controls: Fixed<Control>,
    messages: Fixed<libc::mmsghdr>,
    /// Kept alive for the headers, never read.
    _parts: Fixed<libc::iovec>,
    /// The number of buffers that the last call received.
    came: usize,
}

// SAFETY: as for `SendBatch`.
unsafe impl Send for ReceiveBatch {}

impl fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiveBatch({} × {} B)", self.messages.len(), self.buffer_bytes)
    }
}

/// A received datagram, or several of one length from one sender that the kernel has merged.
#[derive(Debug)]
pub struct Arrived<'a> {
    pub bytes: &'a mut [u8],
    pub peer: &'a Address,
    /// Its local address; `None` if the socket does not report it (`socket::report_local_address`).
    pub local: Option<IpAddr>,
    /// The length of each merged datagram except the last; `None` if it is single.
    pub segment: Option<usize>,
}

impl ReceiveBatch {
    /// Buffers for `most` datagrams of up to `buffer_bytes` bytes. Pages that no datagram has filled are not resident.
    pub fn new(most: usize, buffer_bytes: usize) -> ReceiveBatch {
        // Buffers at a distance of a multiple of 4 KiB would share the same few cache sets.
        let stride = buffer_bytes.next_multiple_of(64) + 4_096 + 64;
        let buffers = Fixed::new(vec![0; most * stride]);
        // SAFETY: numbers and pointers, for which zero is valid.
        let parts = Fixed::new(vec![unsafe { zeroed::<libc::iovec>() }; most]);
        // SAFETY: as above.
        let messages = Fixed::new(vec![unsafe { zeroed::<libc::mmsghdr>() }; most]);
        let names = Fixed::new(vec![Address::empty(); most]);
        let controls = Fixed::new(vec![Control::empty(); most]);
        for index in 0..most {
            // SAFETY: all of these are in memory that does not move while this value exists and has no other owner.
            unsafe {
                *parts.at(index) = libc::iovec { iov_base: buffers.at(index * stride).cast(), iov_len: buffer_bytes };
                let header = &mut (*messages.at(index)).msg_hdr;
                header.msg_iov = parts.at(index);
                header.msg_iovlen = 1;
                header.msg_name = (*names.at(index)).places().0.cast();
                header.msg_control = controls.at(index).cast();
            }
        }
        let mut batch =
            ReceiveBatch { buffers, buffer_bytes, stride, names, controls, messages, _parts: parts, came: most };
        batch.forget();
        batch
    }

    /// Resets the lengths that the kernel has overwritten.
    fn forget(&mut self) {
        for index in 0..self.came {
            // SAFETY: exclusive between two calls.
            unsafe {
                let header = &mut (*self.messages.at(index)).msg_hdr;
                header.msg_namelen = *(*self.names.at(index)).places().1;
                header.msg_controllen = size_of_val(&*self.controls.at(index)) as _;
                header.msg_flags = 0;
            }
        }
        self.came = 0;
    }

    /// Receives up to `wanted` datagrams and returns their number. It sleeps for the first, for at most the socket's receive
    /// time-out; the others are received if they are queued. [`ReceiveBatch::arrived`] returns each.
    /// [recvmmsg(2)](https://man7.org/linux/man-pages/man2/recvmmsg.2.html) with MSG_WAITFORONE
    pub fn receive(&mut self, socket: BorrowedFd<'_>, wanted: usize) -> io::Result<usize> {
        self.receive_with(socket, wanted, libc::MSG_WAITFORONE as c_int)
    }

    /// [`ReceiveBatch::receive`] without sleeping.
    /// [recvmmsg(2)](https://man7.org/linux/man-pages/man2/recvmmsg.2.html) with MSG_DONTWAIT
    pub fn receive_now(&mut self, socket: BorrowedFd<'_>, wanted: usize) -> io::Result<usize> {
        self.receive_with(socket, wanted, libc::MSG_DONTWAIT)
    }

    fn receive_with(&mut self, socket: BorrowedFd<'_>, wanted: usize, flags: c_int) -> io::Result<usize> {
        self.forget();
        let wanted = wanted.clamp(1, self.messages.len()) as libc::c_uint;
        // SAFETY: at least `wanted` headers whose pointers are to exclusive values with their lengths that outlive the call;
        // no time-out is given.
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

    /// Empties the batch, so that [`ReceiveBatch::put`] can fill it.
    pub fn clear(&mut self) {
        self.forget();
    }

    /// Appends a datagram that came in another way than by a call; `false` if it does not fit.
    #[inline]
    pub fn put(&mut self, bytes: &[u8], from: SocketAddr) -> bool {
        let index = self.came;
        if index == self.messages.len() || bytes.len() > self.buffer_bytes {
            return false;
        }
        // SAFETY: as for `forget`; the buffer of this header has `buffer_bytes` bytes.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.buffers.at(index * self.stride), bytes.len());
            let name = self.names.at(index);
            *name = from.into();
            let message = &mut *self.messages.at(index);
            message.msg_len = bytes.len() as libc::c_uint;
            message.msg_hdr.msg_namelen = *(*name).places().1;
            message.msg_hdr.msg_controllen = 0;
        }
        self.came += 1;
        true
    }

    /// Buffer `index` of those that the last call received, or that were put.
    pub fn arrived(&mut self, index: usize) -> Option<Arrived<'_>> {
        if index >= self.came {
            return None;
        }
        // SAFETY: the kernel has filled this header in the last call. It and everything that it points to are exclusive
        // until the next call, which borrows this value mutably.
        unsafe {
            let message = &*self.messages.at(index);
            let length = (message.msg_len as usize).min(self.buffer_bytes);
            let bytes = std::slice::from_raw_parts_mut(self.buffers.at(index * self.stride), length);
            let name = &mut *self.names.at(index);
            name.set_length(message.msg_hdr.msg_namelen);
            let (local, segment) = match message.msg_hdr.msg_controllen {
                0 => (None, None),
                _ => {
                    let received = received(&message.msg_hdr);
                    (received.local, received.segment)
                }
            };
            Some(Arrived { bytes, peer: name, local, segment })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::os::fd::{AsFd, OwnedFd};

    use super::*;
    use crate::address::AddressFamily;
    use crate::socket;

    fn bound(address: &str) -> (OwnedFd, SocketAddr) {
        let address: SocketAddr = address.parse().expect("an address");
        let socket = socket::udp(AddressFamily::of(&address)).expect("a socket");
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
                // Three overlapping datagrams of ten bytes, five bytes apart.
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
                assert!(batch.arrived(0).is_none(), "earlier datagrams are removed");
            }
        }
    }

    #[test]
    fn a_batch_never_exceeds_its_capacity() {
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
    fn a_segmented_buffer_may_be_received_merged() {
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
            if merging {
                assert_eq!(seen.iter().map(|(.., segment)| *segment).collect::<Vec<_>>(), [Some(100)])
            } else {
                assert_eq!(seen.iter().map(|(bytes, ..)| bytes.len()).collect::<Vec<_>>(), [100, 100, 50])
            }
        }
    }
}
