//! Stamps that the kernel takes of datagrams on their way
//! ([timestamping](https://docs.kernel.org/networking/timestamping.html)), on CLOCK_REALTIME.

use std::ffi::c_uint;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use crate::control::{Control, TIMESTAMPING, received};
use crate::datagram::message;
use crate::{length, socket};

/// Where the kernel stamps datagrams that leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransmitPoint {
    /// Before the queueing discipline of the interface.
    Queue,
    /// In the driver, before the device takes it.
    Driver,
}

/// One stamp of a datagram that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitStamp {
    /// Counts the datagrams that the socket has sent since [`request`], from 0.
    pub number: u32,
    pub point: TransmitPoint,
    pub realtime_ns: i64,
}

/// `SOF_TIMESTAMPING_…` (linux/net_tstamp.h).
const TX_SOFTWARE: c_uint = 1 << 1;
const RX_SOFTWARE: c_uint = 1 << 3;
const SOFTWARE: c_uint = 1 << 4;
const OPT_ID: c_uint = 1 << 7;
const TX_SCHED: c_uint = 1 << 8;
const OPT_TSONLY: c_uint = 1 << 11;
/// `SCM_TSTAMP_SND` and `SCM_TSTAMP_SCHED` (linux/errqueue.h).
const SENT: u32 = 0;
const SCHEDULED: u32 = 1;

/// Requests stamps of all datagrams from now on: on receipt, in the driver, and with `queue` before the queueing
/// discipline. The count of [`TransmitStamp::number`] begins anew.
pub fn request(socket: BorrowedFd<'_>, queue: bool) -> io::Result<()> {
    // The kernel restarts the count only if OPT_ID was off.
    set(socket, 0)?;
    let queue = if queue { TX_SCHED } else { 0 };
    set(socket, TX_SOFTWARE | RX_SOFTWARE | SOFTWARE | OPT_ID | OPT_TSONLY | queue)
}

/// Requests no stamps any more.
pub fn end(socket: BorrowedFd<'_>) -> io::Result<()> {
    set(socket, 0)
}

fn set(socket: BorrowedFd<'_>, flags: c_uint) -> io::Result<()> {
    socket::set(socket, libc::SOL_SOCKET, TIMESTAMPING, &flags)
}

/// Receives from the connected peer: the length, and the receive stamp on CLOCK_REALTIME. With `sleeps` it waits for at most
/// the socket's receive time-out. [recvmsg(2)](https://man7.org/linux/man-pages/man2/recvmsg.2.html)
#[inline]
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8], sleeps: bool) -> io::Result<(usize, Option<i64>)> {
    let mut control = Control::empty();
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message = message(&mut part, &mut control);
    let flags = if sleeps { 0 } else { libc::MSG_DONTWAIT };
    // SAFETY: every pointer in `message` is to an exclusive value that outlives the call, with its length.
    let bytes = length(unsafe { libc::syscall(libc::SYS_recvmsg, socket.as_raw_fd(), &raw mut message, flags) })?;
    // SAFETY: the kernel has filled `message` and its control buffer in the call above.
    Ok((bytes, unsafe { received(&message) }.stamp_ns))
}

/// The next stamp of a datagram that left, from the socket's error queue; `None` if it is empty, or holds another error,
/// which is discarded. It never sleeps.
pub fn next_transmitted(socket: BorrowedFd<'_>) -> Option<TransmitStamp> {
    let mut control = Control::empty();
    // OPT_TSONLY: no payload comes back.
    let mut part = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
    let mut message = message(&mut part, &mut control);
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: as for `receive`; no payload is requested.
    let answer = unsafe { libc::syscall(libc::SYS_recvmsg, socket.as_raw_fd(), &raw mut message, flags) };
    length(answer).ok()?;
    // SAFETY: the kernel has filled `message` and its control buffer in the call above.
    let found = unsafe { received(&message) };
    let (point, number) = found.transmitted?;
    let point = match point {
        SENT => TransmitPoint::Driver,
        SCHEDULED => TransmitPoint::Queue,
        _ => return None,
    };
    Some(TransmitStamp { number, point, realtime_ns: found.stamp_ns? })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;
    use crate::clock::realtime_ns;

    #[test]
    fn datagrams_are_stamped_and_numbered_on_their_way_over_either_family() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let [near, far] = [0; 2].map(|_| UdpSocket::bind(loopback).expect("a port"));
            near.connect(far.local_addr().expect("an address")).expect("connected");
            far.connect(near.local_addr().expect("an address")).expect("connected");
            request(far.as_fd(), true).expect("receive stamps");
            // The kernel begins to stamp receipts a moment after the first request.
            let is_stamped = || {
                std::thread::sleep(std::time::Duration::from_millis(1));
                near.send(b"without stamps").expect("sent");
                receive(far.as_fd(), &mut [0; 64], false).expect("received").1.is_some()
            };
            assert!((0..5_000).any(|_| is_stamped()), "no stamp of receipt");
            request(near.as_fd(), true).expect("stamps");
            for number in 0..2 {
                let before = realtime_ns();
                near.send(b"probe").expect("sent");
                let (bytes, arrived) = receive(far.as_fd(), &mut [0; 64], false).expect("received");
                let mut at = vec![before];
                for point in [TransmitPoint::Queue, TransmitPoint::Driver] {
                    let stamp = next_transmitted(near.as_fd()).expect("a stamp");
                    assert_eq!((stamp.number, stamp.point), (number, point));
                    at.push(stamp.realtime_ns);
                }
                assert_eq!(bytes, 5);
                at.extend([arrived.expect("a stamp"), realtime_ns()]);
                assert!(at.is_sorted(), "{at:?}");
            }
            assert_eq!(next_transmitted(near.as_fd()), None);
            end(near.as_fd()).expect("no stamps");
            near.send(b"probe").expect("sent");
            assert_eq!(next_transmitted(near.as_fd()), None);
        }
    }

    #[test]
    fn an_error_queue_that_overflows_loses_stamps_and_mistakes_none() {
        let [near, far] = [0; 2].map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port"));
        near.connect(far.local_addr().expect("an address")).expect("connected");
        socket::set(near.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &4_608_i32).expect("a small buffer");
        request(near.as_fd(), true).expect("stamps");
        let mut left = Vec::new();
        for _ in 0..200 {
            left.push(realtime_ns());
            near.send(b"probe").expect("sent");
        }
        left.push(realtime_ns());
        let stamps: Vec<TransmitStamp> = std::iter::from_fn(|| next_transmitted(near.as_fd())).collect();
        assert!((1..200).contains(&stamps.len()), "{}", stamps.len());
        for TransmitStamp { number, realtime_ns, .. } in stamps {
            let number = number as usize;
            assert!((left[number]..=left[number + 1]).contains(&realtime_ns), "{number}");
        }
        near.send(b"probe").expect("sent");
        assert_eq!(next_transmitted(near.as_fd()).map(|stamp| stamp.number), Some(200));
    }
}
