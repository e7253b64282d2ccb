//! Many sockets watched by one call: [epoll(7)](https://man7.org/linux/man-pages/man7/epoll.7.html).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::{done, length};

/// What a socket is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// Bytes, a connection, or an end.
    Reading,
    /// Room to write.
    Writing,
    /// Nothing but an error.
    Nothing,
}

impl For {
    const fn events(self) -> u32 {
        (match self {
            For::Reading => libc::EPOLLIN,
            For::Writing => libc::EPOLLOUT,
            For::Nothing => 0,
        }) as u32
    }
}

/// The sockets that are watched. One that is closed is no longer among them.
#[derive(Debug)]
pub struct Watch(OwnedFd);

/// Room for the marks of sockets that are ready.
pub struct Ready {
    events: Box<[libc::epoll_event]>,
}

impl Ready {
    /// Room for so many, at least one.
    pub fn with_room(sockets: usize) -> Ready {
        Ready { events: vec![libc::epoll_event { events: 0, u64: 0 }; sockets.max(1)].into_boxed_slice() }
    }

    /// The mark of that one of those that the last [`Watch::wait`] counted.
    #[inline]
    pub fn mark(&self, index: usize) -> u64 {
        self.events[index].u64
    }
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ready").field("room", &self.events.len()).finish_non_exhaustive()
    }
}

impl Watch {
    /// Watches nothing yet. [epoll_create1(2)](https://man7.org/linux/man-pages/man2/epoll_create.2.html)
    pub fn new() -> io::Result<Watch> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        done(fd)?;
        // SAFETY: the call just made this descriptor, so nobody else owns it.
        Ok(Watch(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Watches `socket`, which is ready under `mark`.
    /// [epoll_ctl(2)](https://man7.org/linux/man-pages/man2/epoll_ctl.2.html)
    pub fn add(&self, socket: BorrowedFd<'_>, mark: u64, what: For) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, mark, what)
    }

    /// Watches a socket for something else.
    pub fn change(&self, socket: BorrowedFd<'_>, mark: u64, what: For) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, mark, what)
    }

    fn control(&self, operation: i32, socket: BorrowedFd<'_>, mark: u64, what: For) -> io::Result<()> {
        let mut event = libc::epoll_event { events: what.events(), u64: mark };
        // SAFETY: `event` is live and exclusive during the call, which only reads it.
        done(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, socket.as_raw_fd(), &mut event) })
    }

    /// Sleeps until a socket is ready, at most `timeout_ms`; how many are, as far as there is room for them.
    /// [epoll_wait(2)](https://man7.org/linux/man-pages/man2/epoll_wait.2.html)
    #[inline]
    pub fn wait(&self, ready: &mut Ready, timeout_ms: i32) -> io::Result<usize> {
        let room = i32::try_from(ready.events.len()).unwrap_or(i32::MAX);
        // SAFETY: the kernel writes at most `room` entries into `ready`, which is exclusive and has as many.
        length(unsafe { libc::epoll_wait(self.0.as_raw_fd(), ready.events.as_mut_ptr(), room, timeout_ms.max(0)) })
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn only_what_is_ready_is_told_and_only_what_it_is_watched_for() {
        let watch = Watch::new().expect("made");
        let mut ready = Ready::with_room(4);
        let near = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let far = UdpSocket::bind("127.0.0.1:0").expect("a port");
        watch.add(near.as_fd(), 7, For::Reading).expect("watched");
        watch.add(far.as_fd(), 9, For::Nothing).expect("watched");
        assert_eq!(watch.wait(&mut ready, 0).expect("asked"), 0);
        far.send_to(b"bytes", near.local_addr().expect("bound")).expect("sent");
        near.send_to(b"bytes", far.local_addr().expect("bound")).expect("sent");
        assert_eq!((watch.wait(&mut ready, 3_000).expect("asked"), ready.mark(0)), (1, 7));
        watch.change(near.as_fd(), 8, For::Writing).expect("watched");
        assert_eq!((watch.wait(&mut ready, 3_000).expect("asked"), ready.mark(0)), (1, 8));
        drop(near);
        assert_eq!(watch.wait(&mut ready, 0).expect("asked"), 0, "who is closed is not watched");
    }
}
