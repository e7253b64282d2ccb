use super::{BorrowedFd, unsupported};

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

/// No room.
#[derive(Debug)]
pub struct Ready;

impl Ready {
    /// No room.
    pub const fn with_room(_: usize) -> Ready {
        Ready
    }

    /// No socket is ready here.
    pub const fn mark(&self, _: usize) -> u64 {
        0
    }
}

/// Watches nothing.
#[derive(Debug)]
pub struct Watch;

impl Watch {
    /// `Unsupported` here.
    pub fn new() -> std::io::Result<Watch> {
        unsupported()
    }

    /// `Unsupported` here.
    pub fn add(&self, _: BorrowedFd<'_>, _: u64, _: For) -> std::io::Result<()> {
        unsupported()
    }

    /// `Unsupported` here.
    pub fn change(&self, _: BorrowedFd<'_>, _: u64, _: For) -> std::io::Result<()> {
        unsupported()
    }

    /// `Unsupported` here.
    pub fn wait(&self, _: &mut Ready, _: i32) -> std::io::Result<usize> {
        unsupported()
    }
}
