//! A slot of a reflector for one TCP connection at a time. The buffers of a connection exist as long as it does, that of
//! an unsent reply until the reply is sent.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use latlab_sys::connection;

use super::error::is_interrupted;
use super::frame::{InvalidLength, MessageDecoder, MessageEncoder};

/// A connection without an open session is closed after so many checks, one a second.
const CHECKS_WITHOUT_SESSION: u8 = 5;
/// A connection is closed after so many checks in a row with an incomplete message or an unsent reply, if meanwhile no
/// message was completed and no part of a reply sent. A path may be broken for this time without ending a run.
const CHECKS_WITHOUT_PROGRESS: u8 = 30;

/// Limits on the connections of a listener (rule R4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionCaps {
    pub connections: u16,
    /// Connections at a time from one /24 (IPv4) or /64 (IPv6); loopback is exempt.
    pub per_prefix: u16,
    /// Connections accepted in a second.
    pub per_second: u32,
}

/// Counts of the connections of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionTally {
    pub accepted: u64,
    /// Closed at once: above the caps, and every other one has a session.
    pub over_caps: u64,
    /// Closed for a length below or above that of any message.
    pub malformed: u64,
    /// Closed after 5 s without an open session, or for a newer one.
    pub without_session: u64,
    /// Closed with half a message, or a reply that was not read.
    pub stuck: u64,
}

/// Why a connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseReason {
    /// The peer closed or reset it, or the reflector needs it no longer.
    Ended,
    /// It sent an invalid length.
    Malformed,
    /// It had no open session for too long, or while another one needed its place.
    WithoutSession,
    /// Half a message, or a reply that was not read, for too long.
    Stuck,
}

/// A slot, in use or free. A free one has no buffers.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    connection: Option<Connection>,
    peer: SocketAddr,
    /// Of its connection among all of the listener.
    number: u64,
    /// Counts the connections of this slot: readiness reported for an earlier one is ignored.
    generation: u32,
    /// A message was decoded, or a part of a reply sent, since the last check.
    progressed: bool,
    checks_without_session: u8,
    checks_without_progress: u8,
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    decoder: MessageDecoder,
    /// The reply that the send buffer has not taken whole yet.
    unsent: Option<MessageEncoder>,
}

impl ConnectionSlot {
    pub(super) fn new() -> ConnectionSlot {
        ConnectionSlot {
            connection: None,
            peer: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0).into(),
            number: 0,
            generation: 0,
            progressed: false,
            checks_without_session: 0,
            checks_without_progress: 0,
        }
    }

    /// Gives the slot to the connection `socket` with `peer`, the `number`th of the listener.
    pub(super) fn occupy(&mut self, socket: OwnedFd, peer: SocketAddr, number: u64) {
        self.connection = Some(Connection { socket, decoder: MessageDecoder::default(), unsent: None });
        (self.peer, self.number, self.progressed) = (peer, number, false);
        (self.checks_without_session, self.checks_without_progress) = (0, 0);
    }

    /// Closes the connection and returns its peer; `None` if the slot was free.
    pub(super) fn free(&mut self) -> Option<SocketAddr> {
        self.connection.take()?;
        self.generation = self.generation.wrapping_add(1);
        Some(self.peer)
    }

    pub(super) fn is_occupied(&self) -> bool {
        self.connection.is_some()
    }

    pub(super) const fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) const fn generation(&self) -> u32 {
        self.generation
    }

    #[inline]
    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.connection.as_ref().map(|connection| connection.socket.as_fd())
    }

    /// The next message, if it is whole and the reply to the one before is sent.
    #[inline]
    pub(super) fn message(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, InvalidLength> {
        let Some(connection) = self.connection.as_mut().filter(|connection| connection.unsent.is_none()) else {
            return Ok(None);
        };
        let decoded = connection.decoder.decode(buffer)?;
        self.progressed |= decoded.is_some();
        Ok(decoded)
    }

    /// Calls `receive` once and returns whether bytes came. An error means that the connection has ended.
    #[inline]
    pub(super) fn read(
        &mut self,
        receive: impl FnOnce(BorrowedFd<'_>, &mut [u8]) -> io::Result<usize>,
    ) -> io::Result<bool> {
        let Some(Connection { socket, decoder, .. }) = &mut self.connection else { return Ok(false) };
        match receive(socket.as_fd(), decoder.space()) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => {
                decoder.filled(bytes);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interrupted(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends `message` by way of `encoder`, as far as the send buffer takes it, and returns whether all of it was sent.
    /// Otherwise the slot keeps the encoder with the rest, and leaves a new one.
    #[inline]
    pub(super) fn send(&mut self, message: &[u8], encoder: &mut MessageEncoder) -> io::Result<bool> {
        let Some(connection) = &mut self.connection else { return Err(io::ErrorKind::NotConnected.into()) };
        let frame = encoder.encode(message).ok_or(io::ErrorKind::InvalidInput)?;
        let all = frame.len();
        let taken = taken_now(connection::send_now(connection.socket.as_fd(), frame))?;
        if taken < all {
            encoder.keep_unsent(taken, all);
            connection.unsent = Some(std::mem::take(encoder));
        }
        Ok(taken == all)
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.unsent.is_some())
    }

    /// Whether half a message is there.
    pub(super) fn has_partial_message(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| !connection.decoder.is_empty())
    }

    /// Sends the unsent part of a reply, as far as the send buffer takes it, and returns whether all of it was sent.
    pub(super) fn send_rest(&mut self) -> io::Result<bool> {
        let Some(Connection { socket, unsent, .. }) = &mut self.connection else { return Ok(true) };
        let Some(rest) = unsent else { return Ok(true) };
        let taken = taken_now(connection::send_now(socket.as_fd(), rest.unsent()))?;
        rest.advance(taken);
        self.progressed |= taken > 0;
        unsent.take_if(|rest| !rest.has_unsent());
        Ok(unsent.is_none())
    }

    /// The check of every second: why the connection is to be closed, if it is.
    pub(super) fn check(&mut self, has_session: bool) -> Option<CloseReason> {
        self.checks_without_session = if has_session { 0 } else { self.checks_without_session.saturating_add(1) };
        let is_stuck = !self.progressed && (self.has_unsent() || self.has_partial_message());
        self.checks_without_progress = if is_stuck { self.checks_without_progress.saturating_add(1) } else { 0 };
        self.progressed = false;
        // `>` and not `>=`, since the first check may come directly after the connection was accepted.
        let is_over = self.checks_without_session > CHECKS_WITHOUT_SESSION
            || self.checks_without_progress > CHECKS_WITHOUT_PROGRESS;
        is_over.then_some(if is_stuck { CloseReason::Stuck } else { CloseReason::WithoutSession })
    }
}

/// Bytes taken by a send call that does not sleep; 0 if the send buffer is full.
fn taken_now(sent: io::Result<usize>) -> io::Result<usize> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_interrupted(&error) => Ok(0),
        sent => sent,
    }
}
