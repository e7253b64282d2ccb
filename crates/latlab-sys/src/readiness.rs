//! Sleeping until a datagram is there.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::done;

/// Sleeps until the socket can be read or has an error to tell, at most `timeout_ns`; whether it can.
/// [ppoll(2)](https://man7.org/linux/man-pages/man2/ppoll.2.html), whose time-out is a high-resolution timer
/// where SO_RCVTIMEO is counted in ticks.
#[inline]
pub fn readable_within(socket: BorrowedFd<'_>, timeout_ns: i64) -> io::Result<bool> {
    ready_within(socket, libc::POLLIN, timeout_ns)
}

/// Sleeps until the socket can be written to or has an error to tell, at most `timeout_ns`; whether it can.
pub fn writable_within(socket: BorrowedFd<'_>, timeout_ns: i64) -> io::Result<bool> {
    ready_within(socket, libc::POLLOUT, timeout_ns)
}

/// Sleeps until the socket can be read or written to, or has an error to tell, at most `timeout_ns`; whether it can.
pub fn either_within(socket: BorrowedFd<'_>, timeout_ns: i64) -> io::Result<bool> {
    ready_within(socket, libc::POLLIN | libc::POLLOUT, timeout_ns)
}

#[inline]
fn ready_within(socket: BorrowedFd<'_>, events: libc::c_short, timeout_ns: i64) -> io::Result<bool> {
    let mut wanted = libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
    let span_ns = timeout_ns.max(0);
    let span = libc::timespec { tv_sec: (span_ns / 1_000_000_000) as _, tv_nsec: (span_ns % 1_000_000_000) as _ };
    // SAFETY: `wanted` is one exclusive entry, as the count says; `span` is only read; no signal mask is given.
    done(unsafe { libc::ppoll(&mut wanted, 1, &span, std::ptr::null()) })?;
    Ok(wanted.revents != 0)
}
