//! The reflector's TCP listener and all its connections, as one [`ReflectorSocket`].
//!
//! With a single connection the thread sleeps in the receive call, so that a message costs as many system calls as over
//! UDP, and accepts further connections ten times a second. With several connections it sleeps in epoll_wait.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use latlab_sys::clock::coarse_ns;
use latlab_sys::readiness::{Epoll, Interest, ReadyList};
use latlab_sys::{address, connection, datagram, socket};
use rustix::net::sockopt;

use super::address::{canonical, family_of, prefix_of};
use super::connection_slot::{CloseReason, ConnectionCaps, ConnectionSlot, ConnectionTally};
use super::error::{TransportError, is_interrupted, setting_error};
use super::frame::MessageEncoder;
use super::interface::{ReflectorSocket, SocketReport};
use super::tcp::set_connection_options;
use crate::plan::{WaitMode, defaults};

/// Connections that may wait to be accepted: those of 100 ms at the highest permitted rate.
const BACKLOG: i32 = 128;
/// The listener's epoll token; those of slots contain their number, which is smaller.
const LISTENER: u64 = u64::MAX;
/// Sockets that one epoll_wait reports.
const READY_MAX: usize = 64;
/// Connections accepted at a time.
const ACCEPTED_MAX: usize = 16;
/// A reflector with a single connection accepts others this often; no sleep is longer.
const ACCEPT_EVERY_NS: i64 = defaults::NAP.0;
/// Connections are checked this often.
const CHECK_EVERY_NS: i64 = 1_000_000_000;

/// A listener and its connections.
#[derive(Debug)]
pub struct TcpReflector {
    listener: Option<OwnedFd>,
    local: SocketAddr,
    wait: WaitMode,
    single_sender: bool,
    caps: ConnectionCaps,
    slots: Box<[ConnectionSlot]>,
    /// For the reply that is being sent.
    encoder: MessageEncoder,
    /// The slot of the last message.
    current: usize,
    /// The slot of the only connection, while it has no unsent reply.
    single: Option<usize>,
    epoll: Epoll,
    ready: ReadyList,
    /// The entries of `ready` that were not handled yet.
    unhandled: std::ops::Range<usize>,
    accept_at_ns: i64,
    check_at_ns: i64,
    accepted: AcceptRate,
    closed: Vec<SocketAddr>,
    /// It has to take the place of one without a session.
    waiting: Option<Accepted>,
    has_work: bool,
    tally: ConnectionTally,
}

/// A new connection and its peer.
type Accepted = (OwnedFd, SocketAddr);

/// Connections accepted in the current second.
#[derive(Debug, Default)]
struct AcceptRate {
    second: i64,
    count: u32,
}

impl AcceptRate {
    /// Counts one more at `now_ns` and returns their number in that second.
    fn count(&mut self, now_ns: i64) -> u32 {
        let second = now_ns / 1_000_000_000;
        let count = if self.second == second { self.count + 1 } else { 1 };
        *self = AcceptRate { second, count };
        count
    }
}

impl TcpReflector {
    /// Listens on `local`; port 0: the kernel's choice. `[::]` accepts IPv4 as well.
    ///
    /// # Errors
    /// The port is in use, the address is not local, a permission is missing.
    pub fn bind(local: SocketAddr, wait: WaitMode, caps: ConnectionCaps) -> Result<TcpReflector, TransportError> {
        let family = address::AddressFamily::of(&local);
        let no_socket = |source| TransportError::Socket { family: family_of(&local), source };
        let not_bound = |source| TransportError::Bind { local, source };
        let listener = connection::tcp_listener(family).map_err(no_socket)?;
        let fd = listener.as_fd();
        if local.is_ipv6() {
            let only = !local.ip().is_unspecified();
            sockopt::set_ipv6_v6only(fd, only).map_err(setting_error("IPv6 only", only))?;
        }
        sockopt::set_socket_reuseaddr(fd, true).map_err(setting_error("the address", "reusable"))?;
        // An unsupported option is refused here and not with the first connection.
        set_connection_options(fd, wait == WaitMode::BusyPoll)?;
        socket::bind(fd, local).map_err(not_bound)?;
        rustix::net::listen(fd, BACKLOG).map_err(|error| not_bound(error.into()))?;
        let local = socket::local_address(fd).map_err(not_bound)?;
        let epoll = Epoll::new().map_err(no_socket)?;
        epoll.add(fd, LISTENER, Interest::Read).map_err(no_socket)?;
        let slots = usize::from(caps.connections.max(1));
        Ok(TcpReflector {
            listener: Some(listener),
            local,
            wait,
            single_sender: false,
            caps,
            slots: (0..slots).map(|_| ConnectionSlot::new()).collect(),
            encoder: MessageEncoder::default(),
            current: 0,
            single: None,
            epoll,
            ready: ReadyList::with_capacity(READY_MAX),
            unhandled: 0..0,
            accept_at_ns: 0,
            check_at_ns: 0,
            accepted: AcceptRate::default(),
            // Each slot is freed at most once between two checks, or given to one of those accepted meanwhile.
            closed: Vec::with_capacity(slots + ACCEPTED_MAX),
            waiting: None,
            has_work: false,
            tally: ConnectionTally::default(),
        })
    }

    /// The bound address, with the port that the kernel chose.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// For a reflector that answers one sender in its lifetime: [`ReflectorSocket::dedicate_to`] closes the listener and
    /// all other connections.
    #[must_use]
    pub(crate) fn for_single_sender(self) -> TcpReflector {
        TcpReflector { single_sender: true, ..self }
    }

    /// The next message of slot `slot`, if it is whole.
    #[inline]
    fn message(&mut self, slot: usize, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        match self.slots[slot].message(buffer) {
            Ok(bytes) => {
                let bytes = bytes?;
                self.current = slot;
                Some((bytes, self.slots[slot].peer()))
            }
            Err(_) => {
                self.close(slot, CloseReason::Malformed);
                None
            }
        }
    }

    #[inline]
    fn read(&mut self, slot: usize, buffer: &mut [u8], sleeps: bool) -> Option<(usize, SocketAddr)> {
        let read = if sleeps {
            self.slots[slot].read(datagram::receive)
        } else {
            self.slots[slot].read(datagram::receive_now)
        };
        match read {
            Ok(true) => self.message(slot, buffer),
            Ok(false) => None,
            Err(_) => {
                self.close(slot, CloseReason::Ended);
                None
            }
        }
    }

    /// The next message of any connection, after at most one wait.
    fn receive_from_any(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        for waits in [true, false] {
            while let Some(index) = self.unhandled.next() {
                let message = self.handle_ready(self.ready.token(index), buffer);
                if message.is_some() {
                    return Ok(message);
                }
            }
            if waits {
                let timeout_ns = if self.wait == WaitMode::Spin { 0 } else { ACCEPT_EVERY_NS };
                self.unhandled = match self.epoll.wait(&mut self.ready, (timeout_ns / 1_000_000) as i32) {
                    Ok(ready) => 0..ready,
                    Err(error) if is_interrupted(&error) => return Ok(None),
                    Err(error) => return Err(error),
                };
            }
        }
        Ok(None)
    }

    /// Accepts, sends or reads, as the socket of `token` is ready for.
    fn handle_ready(&mut self, token: u64, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        if token == LISTENER {
            self.accept_all();
            return None;
        }
        let (generation, slot) = ((token >> 32) as u32, (token & 0xffff_ffff) as usize);
        let connection = self.slots.get_mut(slot).filter(|connection| connection.generation() == generation)?;
        if connection.has_unsent() {
            match connection.send_rest() {
                Ok(true) => self.set_interest(slot, Interest::Read),
                Ok(false) => return None,
                Err(_) => {
                    self.close(slot, CloseReason::Ended);
                    return None;
                }
            }
        }
        self.message(slot, buffer).or_else(|| self.read(slot, buffer, false))
    }

    /// Accepts connections that epoll does not report: it is not called for a single connection, and has lost interest in
    /// the listener after a failed accept call.
    #[cold]
    fn accept_periodically(&mut self, now_ns: i64) {
        self.accept_at_ns = now_ns + ACCEPT_EVERY_NS;
        self.has_work |= now_ns >= self.check_at_ns;
        if let Some(listener) = &self.listener {
            let _ = self.epoll.modify(listener.as_fd(), LISTENER, Interest::Read);
        }
        if self.single.is_some() {
            self.accept_all();
        }
    }

    fn accept_all(&mut self) {
        for _ in 0..ACCEPTED_MAX {
            let Some(listener) = self.listener.as_ref().filter(|_| self.waiting.is_none()) else { return };
            match connection::accept(listener.as_fd()) {
                Ok(_) if self.accepted.count(coarse_ns()) > self.caps.per_second => self.tally.over_caps += 1,
                Ok((socket, peer)) => {
                    self.waiting = self.place((socket, canonical(peer)), |_| true);
                    self.has_work |= self.waiting.is_some();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted || is_interrupted(&error) => {}
                Err(_) => {
                    // No descriptor or no memory left: no readiness is reported before the next periodic attempt.
                    let _ = self.epoll.modify(listener.as_fd(), LISTENER, Interest::None);
                    return;
                }
            }
        }
    }

    /// Gives the connection a slot, or else the place of the oldest one without a session: of its prefix if that has its
    /// share. Returns a connection that gets none.
    fn place(&mut self, connection: Accepted, has_session: impl Fn(SocketAddr) -> bool) -> Option<Accepted> {
        let prefix = prefix_of(connection.1.ip());
        let is_near = |slot: &ConnectionSlot| slot.is_occupied() && prefix_of(slot.peer().ip()) == prefix;
        let near = self.slots.iter().filter(|slot| is_near(slot)).count();
        let crowded = prefix.is_some() && near >= usize::from(self.caps.per_prefix);
        let has_none = |slot: &ConnectionSlot| !slot.is_occupied() || !has_session(slot.peer());
        let can_take = |slot: &ConnectionSlot| (is_near(slot) || !crowded) && has_none(slot);
        let numbered = self.slots.iter().enumerate().filter(|(_, slot)| can_take(slot));
        // Free ones first.
        let Some((slot, _)) = numbered.min_by_key(|(_, slot)| slot.is_occupied().then(|| slot.number())) else {
            return Some(connection);
        };
        self.close(slot, CloseReason::WithoutSession);
        self.occupy(slot, connection);
        None
    }

    fn occupy(&mut self, slot: usize, (socket, peer): Accepted) {
        let configured = set_connection_options(socket.as_fd(), self.wait == WaitMode::BusyPoll).is_ok()
            && socket::set_receive_timeout(socket.as_fd(), ACCEPT_EVERY_NS).is_ok()
            && self.epoll.add(socket.as_fd(), self.token(slot), Interest::Read).is_ok();
        if configured {
            self.tally.accepted += 1;
            self.slots[slot].occupy(socket, peer, self.tally.accepted);
            self.find_single();
        }
    }

    fn token(&self, slot: usize) -> u64 {
        u64::from(self.slots[slot].generation()) << 32 | slot as u64
    }

    #[cold]
    fn set_interest(&mut self, slot: usize, interest: Interest) {
        if let Some(socket) = self.slots[slot].socket() {
            let _ = self.epoll.modify(socket, self.token(slot), interest);
        }
        self.find_single();
    }

    #[cold]
    fn close(&mut self, slot: usize, reason: CloseReason) {
        let Some(peer) = self.slots[slot].free() else { return };
        match reason {
            CloseReason::Ended => {}
            CloseReason::Malformed => self.tally.malformed += 1,
            CloseReason::WithoutSession => self.tally.without_session += 1,
            CloseReason::Stuck => self.tally.stuck += 1,
        }
        if self.closed.len() < self.closed.capacity() {
            self.closed.push(peer);
        }
        self.has_work = true;
        self.find_single();
    }

    /// Determines whether there is a single connection.
    fn find_single(&mut self) {
        let mut occupied = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_occupied());
        let first = occupied.next().filter(|(_, slot)| !slot.has_unsent()).map(|(slot, _)| slot);
        self.single = if occupied.next().is_none() { first } else { None };
    }
}

impl ReflectorSocket for TcpReflector {
    /// An error means that epoll fails; an error of a single connection closes that one.
    #[inline]
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        // One call may have received several messages.
        if let Some(message) = self.message(self.current, buffer) {
            return Ok(Some(message));
        }
        let now_ns = coarse_ns();
        if now_ns >= self.accept_at_ns {
            self.accept_periodically(now_ns);
        }
        match self.single {
            Some(slot) => Ok(self.read(slot, buffer, self.wait != WaitMode::Spin)),
            None => self.receive_from_any(buffer),
        }
    }

    /// Replies to the last message, which came from `to`. What the send buffer does not take is sent later; until then no
    /// further message is read from that connection.
    #[inline]
    fn reply(&mut self, message: &[u8], to: SocketAddr) -> io::Result<()> {
        let slot = &mut self.slots[self.current];
        if slot.peer() != to {
            return Err(io::ErrorKind::NotConnected.into());
        }
        match slot.send(message, &mut self.encoder) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.set_interest(self.current, Interest::Write);
                Ok(())
            }
            Err(error) => {
                self.close(self.current, CloseReason::Ended);
                Err(error)
            }
        }
    }

    fn dedicate_to(&mut self, peer: SocketAddr) {
        if !self.single_sender || self.listener.take().is_none() {
            return;
        }
        for slot in 0..self.slots.len() {
            if self.slots[slot].peer() != peer {
                self.close(slot, CloseReason::Ended);
            }
        }
    }

    fn report(&self) -> SocketReport {
        SocketReport { connections: Some(self.tally), ..SocketReport::default() }
    }

    #[inline]
    fn has_connection_work(&self) -> bool {
        self.has_work
    }

    fn next_closed(&mut self) -> Option<SocketAddr> {
        self.closed.pop()
    }

    fn close_idle(&mut self, has_session: impl Fn(SocketAddr) -> bool) {
        self.has_work = false;
        if let Some(waiting) = self.waiting.take() {
            let placed = self.place(waiting, &has_session);
            self.tally.over_caps += u64::from(placed.is_some());
        }
        let now_ns = coarse_ns();
        if now_ns < self.check_at_ns {
            return;
        }
        self.check_at_ns = now_ns + CHECK_EVERY_NS;
        for slot in 0..self.slots.len() {
            let connection = &mut self.slots[slot];
            if connection.is_occupied()
                && let Some(reason) = connection.check(has_session(connection.peer()))
            {
                self.close(slot, reason);
            }
        }
    }
}

#[cfg(test)]
#[path = "tcp_reflector_tests.rs"]
mod tests;
