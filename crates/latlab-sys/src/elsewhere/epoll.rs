use super::{BorrowedFd, unsupported};

/// The readiness to report for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Bytes, a connection, or an end.
    Read,
    /// Space in the send buffer.
    Write,
    /// Errors only.
    None,
}

/// Empty here.
#[derive(Debug)]
pub struct ReadyList;

impl ReadyList {
    /// Empty.
    pub const fn with_capacity(_: usize) -> ReadyList {
        ReadyList
    }

    /// No socket is ready here.
    pub const fn token(&self, _: usize) -> u64 {
        0
    }
}

/// An epoll instance, which cannot be made here.
#[derive(Debug)]
pub struct Epoll;

impl Epoll {
    /// `Unsupported` here.
    pub fn new() -> std::io::Result<Epoll> {
        unsupported()
    }

    /// `Unsupported` here.
    pub fn add(&self, _: BorrowedFd<'_>, _: u64, _: Interest) -> std::io::Result<()> {
        unsupported()
    }

    /// `Unsupported` here.
    pub fn modify(&self, _: BorrowedFd<'_>, _: u64, _: Interest) -> std::io::Result<()> {
        unsupported()
    }

    /// `Unsupported` here.
    pub fn wait(&self, _: &mut ReadyList, _: i32) -> std::io::Result<usize> {
        unsupported()
    }
}
