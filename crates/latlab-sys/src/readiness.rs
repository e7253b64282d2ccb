//! Waiting until sockets are ready: one with [ppoll(2)](https://man7.org/linux/man-pages/man2/ppoll.2.html), many with
//! [epoll(7)](https://man7.org/linux/man-pages/man7/epoll.7.html).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::{done, length};

/// Sleeps until the socket is readable or has an error, at most `timeout_ns`. Returns `false` after the time-out.
/// [ppoll(2)](https://man7.org/linux/man-pages/man2/ppoll.2.html), whose time-out is a high-resolution timer;
/// SO_RCVTIMEO is counted in ticks.
#[inline]
pub fn readable_within(socket: BorrowedFd<'_>, timeout_ns: i64) -> io::Result<bool> {
    ready_within(socket, libc::POLLIN, timeout_ns)
}

/// Sleeps until the socket is writable or has an error, at most `timeout_ns`. Returns `false` after the time-out.
pub fn writable_within(socket: BorrowedFd<'_>, timeout_ns: i64) -> io::Result<bool> {
    ready_within(socket, libc::POLLOUT, timeout_ns)
}

/// Sleeps until the socket is readable or writable, or has an error, at most `timeout_ns`. Returns `false` after the
/// time-out.
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

/// The readiness to report for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Bytes, a new connection, or the end of the stream.
    Read,
    /// Space in the send buffer.
    Write,
    /// Errors only.
    None,
}

impl Interest {
    const fn events(self) -> u32 {
        (match self {
            Interest::Read => libc::EPOLLIN,
            Interest::Write => libc::EPOLLOUT,
            Interest::None => 0,
        }) as u32
    }
}

/// An epoll instance. A socket is removed once its last descriptor is closed.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// The sockets that the last [`Epoll::wait`] reported.
pub struct ReadyList {
    events: Box<[libc::epoll_event]>,
}

impl ReadyList {
    /// Space for `sockets` sockets, at least one.
    pub fn with_capacity(sockets: usize) -> ReadyList {
        ReadyList { events: vec![libc::epoll_event { events: 0, u64: 0 }; sockets.max(1)].into_boxed_slice() }
    }

    /// The token of socket `index` of those reported.
    #[inline]
    pub fn token(&self, index: usize) -> u64 {
        self.events[index].u64
    }
}

impl std::fmt::Debug for ReadyList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadyList").field("capacity", &self.events.len()).finish_non_exhaustive()
    }
}

impl Epoll {
    /// An instance without sockets. [epoll_create1(2)](https://man7.org/linux/man-pages/man2/epoll_create.2.html)
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        done(fd)?;
        // SAFETY: the call has just made this descriptor, which has no other owner.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Adds `socket`, which is reported by `token`.
    /// [epoll_ctl(2)](https://man7.org/linux/man-pages/man2/epoll_ctl.2.html)
    pub fn add(&self, socket: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, token, interest)
    }

    pub fn modify(&self, socket: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, token, interest)
    }

    fn control(&self, operation: i32, socket: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.events(), u64: token };
        // SAFETY: `event` is live and exclusive during the call, which only reads it.
        done(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, socket.as_raw_fd(), &mut event) })
    }

    /// Sleeps until a socket is ready, at most `timeout_ms`, and returns the number of ready sockets, up to the capacity
    /// of `ready`. [epoll_wait(2)](https://man7.org/linux/man-pages/man2/epoll_wait.2.html)
    #[inline]
    pub fn wait(&self, ready: &mut ReadyList, timeout_ms: i32) -> io::Result<usize> {
        let capacity = i32::try_from(ready.events.len()).unwrap_or(i32::MAX);
        // SAFETY: the kernel writes at most `capacity` entries into `ready`, which is exclusive and has as many.
        length(unsafe { libc::epoll_wait(self.0.as_raw_fd(), ready.events.as_mut_ptr(), capacity, timeout_ms.max(0)) })
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn only_ready_sockets_are_reported_and_only_for_their_interest() {
        let epoll = Epoll::new().expect("made");
        let mut ready = ReadyList::with_capacity(4);
        let near = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let far = UdpSocket::bind("127.0.0.1:0").expect("a port");
        epoll.add(near.as_fd(), 7, Interest::Read).expect("added");
        epoll.add(far.as_fd(), 9, Interest::None).expect("added");
        assert_eq!(epoll.wait(&mut ready, 0).expect("a count"), 0);
        far.send_to(b"bytes", near.local_addr().expect("bound")).expect("sent");
        near.send_to(b"bytes", far.local_addr().expect("bound")).expect("sent");
        assert_eq!((epoll.wait(&mut ready, 3_000).expect("a count"), ready.token(0)), (1, 7));
        epoll.modify(near.as_fd(), 8, Interest::Write).expect("modified");
        assert_eq!((epoll.wait(&mut ready, 3_000).expect("a count"), ready.token(0)), (1, 8));
        drop(near);
        // A process that another test starts has the socket for a moment.
        let mut is_reported = || {
            std::thread::sleep(std::time::Duration::from_millis(1));
            epoll.wait(&mut ready, 0).expect("a count") > 0
        };
        assert!((0..5_000).any(|_| !is_reported()), "a closed socket is not reported");
    }
}
