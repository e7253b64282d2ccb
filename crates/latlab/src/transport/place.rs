//! A place for one connection at a reflector: made once, used by one connection after the other.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use latlab_sys::connection;

use super::frame::{Incoming, NoMessage, Outgoing};
use super::udp::is_interruption;

/// A connection without an open session is closed after so many looks, a second apart …
const LOOKS_WITHOUT_SESSION: u8 = 5;
/// … and one with a session after so many in which half a message came no further: as long as a path may be broken
/// without ending a run.
const LOOKS_WITHOUT_PROGRESS: u8 = 30;

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// Its other end closed or broke it, or the reflector has no more use for it.
    Ended,
    /// It sent a length that no message has.
    Malformed,
    /// It had no open session for too long.
    WithoutSession,
    /// It sent half a message, or took no reply, for too long.
    Stuck,
}

/// A place, taken or not.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    socket: Option<OwnedFd>,
    peer: SocketAddr,
    /// Which connection of this place it is: what was said about an earlier one does not concern it.
    generation: u32,
    incoming: Incoming,
    outgoing: Outgoing,
    /// A message came whole, or some of a reply went, since the last look.
    moved: bool,
    looks_without_session: u8,
    looks_without_progress: u8,
}

impl ConnectionSlot {
    /// A free place with all the memory that a connection needs.
    pub(super) fn new() -> ConnectionSlot {
        ConnectionSlot {
            socket: None,
            peer: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0).into(),
            generation: 0,
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
            moved: false,
            looks_without_session: 0,
            looks_without_progress: 0,
        }
    }

    /// Gives it to the connection over `socket` with `peer`.
    pub(super) fn take(&mut self, socket: OwnedFd, peer: SocketAddr) {
        (self.socket, self.peer, self.moved) = (Some(socket), peer, false);
        (self.looks_without_session, self.looks_without_progress) = (0, 0);
    }

    /// Frees it and closes the connection: who that was with.
    pub(super) fn free(&mut self) -> Option<SocketAddr> {
        self.socket.take()?;
        self.generation = self.generation.wrapping_add(1);
        self.incoming.clear();
        self.outgoing.clear();
        Some(self.peer)
    }

    pub(super) fn is_taken(&self) -> bool {
        self.socket.is_some()
    }

    pub(super) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(super) const fn generation(&self) -> u32 {
        self.generation
    }

    /// The socket, where the place is taken.
    #[inline]
    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// The next message, if it is whole and the reply to the one before is gone.
    #[inline]
    pub(super) fn message(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, NoMessage> {
        if self.outgoing.owes() {
            return Ok(None);
        }
        let taken = self.incoming.take(buffer)?;
        self.moved |= taken.is_some();
        Ok(taken)
    }

    /// Reads what is there by `receive`: whether something came. An error means that the connection is over.
    #[inline]
    pub(super) fn read(
        &mut self,
        receive: impl FnOnce(BorrowedFd<'_>, &mut [u8]) -> io::Result<usize>,
    ) -> io::Result<bool> {
        let Some(socket) = &self.socket else { return Ok(false) };
        match receive(socket.as_fd(), self.incoming.room()) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => {
                self.incoming.came(bytes);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interruption(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends `message`, as far as the send buffer takes it: whether it is gone.
    #[inline]
    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<bool> {
        let Some(socket) = &self.socket else { return Err(io::ErrorKind::NotConnected.into()) };
        let frame = self.outgoing.frame(message).ok_or(io::ErrorKind::InvalidInput)?;
        let all = frame.len();
        let taken = now_or_later(connection::send_now(socket.as_fd(), frame))?;
        if taken < all {
            self.outgoing.owe(taken, all);
        }
        Ok(taken == all)
    }

    pub(super) fn owes(&self) -> bool {
        self.outgoing.owes()
    }

    /// Whether half a message is there.
    #[cfg(test)]
    pub(super) fn is_torn(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// Sends what is left of a reply, as far as the send buffer takes it: whether all of it is gone.
    pub(super) fn pay(&mut self) -> io::Result<bool> {
        let Some(socket) = &self.socket else { return Ok(true) };
        let taken = now_or_later(connection::send_now(socket.as_fd(), self.outgoing.owed()))?;
        self.outgoing.paid(taken);
        self.moved |= taken > 0;
        Ok(!self.outgoing.owes())
    }

    /// A second has passed: whether it is to be closed, and why.
    pub(super) fn look(&mut self, has_session: bool) -> Option<CloseReason> {
        self.looks_without_session = if has_session { 0 } else { self.looks_without_session.saturating_add(1) };
        let is_stuck = !self.moved && (self.outgoing.owes() || !self.incoming.is_empty());
        self.looks_without_progress = if is_stuck { self.looks_without_progress.saturating_add(1) } else { 0 };
        self.moved = false;
        // The first look may come at once.
        let too_long =
            self.looks_without_session > LOOKS_WITHOUT_SESSION || self.looks_without_progress > LOOKS_WITHOUT_PROGRESS;
        too_long.then_some(if is_stuck { CloseReason::Stuck } else { CloseReason::WithoutSession })
    }
}

fn now_or_later(sent: io::Result<usize>) -> io::Result<usize> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interruption(&error) => Ok(0),
        sent => sent,
    }
}
