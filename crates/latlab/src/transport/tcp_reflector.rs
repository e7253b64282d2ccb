//! The reflector's listener and its connections, as one socket from which messages come and replies go.
//!
//! While there is one connection alone, the thread sleeps in its receive call, which costs a message as many system
//! calls as over UDP; it then looks for others ten times a second. With several it sleeps in epoll_wait.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use latlab_sys::clock::coarse_ns;
use latlab_sys::watch::{For, Ready, Watch};
use latlab_sys::{address, connection, datagram, socket};

use super::connections::{ConnectionCaps, ConnectionTally};
use super::place::{CloseReason, ConnectionSlot};
use super::prefix::prefix_of;
use super::reflector::plain;
use super::refusal::TransportError;
use super::tcp::settle_connection;
use super::udp::{family_of, is_interruption, setting};
use crate::plan::{WaitMode, defaults};

/// Connections that may wait to be accepted: what comes in a tenth of a second at the rate that is allowed.
const BACKLOG: u16 = 128;
/// The listener's mark; places are marked by their number, which is smaller.
const LISTENER: u64 = u64::MAX;
/// Places that one epoll_wait tells of.
const READY_MAX: usize = 64;
/// Connections accepted at one look.
const ACCEPTED_MAX: usize = 16;
/// A reflector with one connection looks for others this often; nor does any sleep longer.
const LOOK_EVERY_NS: i64 = defaults::NAP.0;
/// Connections are looked after this often.
const CARE_EVERY_NS: i64 = 1_000_000_000;

/// A listener and its connections.
#[derive(Debug)]
pub struct TcpReflector {
    listener: Option<OwnedFd>,
    local: SocketAddr,
    wait: WaitMode,
    settles: bool,
    caps: ConnectionCaps,
    places: Box<[ConnectionSlot]>,
    /// Whose message was handed out last.
    current: usize,
    /// The only connection there is, as long as it takes its replies.
    alone: Option<usize>,
    watch: Watch,
    ready: Ready,
    /// Those in `ready` that were not looked at yet: from, to.
    unseen: (usize, usize),
    look_at_ns: i64,
    care_at_ns: i64,
    /// The second in which connections are counted, and how many it had.
    accepted: (i64, u32),
    gone: Vec<SocketAddr>,
    wants_care: bool,
    tally: ConnectionTally,
}

impl TcpReflector {
    /// Listens on `local`; port 0: the kernel's choice. `[::]` takes IPv4 as well.
    ///
    /// # Errors
    /// The port is taken, the address is not ours, a right is missing.
    pub fn bind(local: SocketAddr, wait: WaitMode, caps: ConnectionCaps) -> Result<TcpReflector, TransportError> {
        let family = address::Family::of(&local);
        let refused = |source| TransportError::Socket { family: family_of(&local), source };
        let taken = |source| TransportError::Bind { local, source };
        let listener = connection::tcp_listener(family).map_err(refused)?;
        let fd = listener.as_fd();
        if local.is_ipv6() {
            let only = !local.ip().is_unspecified();
            socket::set_ipv6_only(fd, only).map_err(setting("IPv6 only", only))?;
        }
        connection::reuse_address(fd).map_err(setting("the address", "reusable"))?;
        // A wish that cannot be granted is refused here and not with the first connection.
        settle_connection(fd, wait == WaitMode::BusyPoll)?;
        socket::bind(fd, local).map_err(taken)?;
        connection::listen(fd, BACKLOG).map_err(taken)?;
        let local = socket::local_address(fd).map_err(taken)?;
        let watch = Watch::new().map_err(refused)?;
        watch.add(fd, LISTENER, For::Reading).map_err(refused)?;
        let places = usize::from(caps.connections.max(1));
        Ok(TcpReflector {
            listener: Some(listener),
            local,
            wait,
            settles: false,
            caps,
            places: (0..places).map(|_| ConnectionSlot::new()).collect(),
            current: 0,
            alone: None,
            watch,
            ready: Ready::with_room(READY_MAX),
            unseen: (0, 0),
            look_at_ns: 0,
            care_at_ns: 0,
            accepted: (0, 0),
            // Each place is freed once between two looks at most, or is found free.
            gone: Vec::with_capacity(places + ACCEPTED_MAX),
            wants_care: false,
            tally: ConnectionTally::default(),
        })
    }

    /// Listens on every address of both families, or of IPv4 alone where the host has no IPv6.
    ///
    /// # Errors
    /// As [`TcpReflector::bind`].
    pub fn bind_everywhere(port: u16, wait: WaitMode, caps: ConnectionCaps) -> Result<TcpReflector, TransportError> {
        match TcpReflector::bind((Ipv6Addr::UNSPECIFIED, port).into(), wait, caps) {
            Err(error) if error.lacks_family() => TcpReflector::bind((Ipv4Addr::UNSPECIFIED, port).into(), wait, caps),
            answer => answer,
        }
    }

    /// Where it listens, with the port that the kernel chose.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// For a reflector that answers one sender in all its life: once told who that is, it takes nobody else.
    #[must_use]
    pub fn for_one_sender(self) -> TcpReflector {
        TcpReflector { settles: true, ..self }
    }

    /// Told that `peer` has a session and nobody else can get one.
    pub fn hear_only(&mut self, peer: SocketAddr) {
        if !self.settles || self.listener.take().is_none() {
            return;
        }
        for place in 0..self.places.len() {
            if self.places[place].peer() != peer {
                self.close(place, CloseReason::Ended);
            }
        }
    }

    /// What became of connections.
    pub const fn tally(&self) -> ConnectionTally {
        self.tally
    }

    /// Whether [`TcpReflector::gone`] or [`TcpReflector::care`] has something to do.
    #[inline]
    pub const fn wants_care(&self) -> bool {
        self.wants_care
    }

    /// Somebody whose connection is gone; each is told once.
    pub fn gone(&mut self) -> Option<SocketAddr> {
        self.gone.pop()
    }

    /// Closes the connections that cost more than they are worth. `has_session` tells whether somebody has an open session.
    pub fn care(&mut self, has_session: impl Fn(SocketAddr) -> bool) {
        self.wants_care = false;
        let now_ns = coarse_ns();
        if now_ns < self.care_at_ns {
            return;
        }
        self.care_at_ns = now_ns + CARE_EVERY_NS;
        for place in 0..self.places.len() {
            let connection = &mut self.places[place];
            if connection.is_taken()
                && let Some(why) = connection.look(has_session(connection.peer()))
            {
                self.close(place, why);
            }
        }
    }

    /// Takes one message: its length and its sender, an IPv4 one in IPv4's own form.
    ///
    /// `None`: nothing came within 100 ms, or at once where it spins, or a signal came.
    ///
    /// # Errors
    /// Connections cannot be watched any more. What happens to one of them is no error.
    #[inline]
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        // One call may have brought several.
        if let Some(message) = self.hand_out(self.current, buffer) {
            return Ok(Some(message));
        }
        let now_ns = coarse_ns();
        if now_ns >= self.look_at_ns {
            self.look_up(now_ns);
        }
        match self.alone {
            Some(place) => Ok(self.read(place, buffer, self.wait != WaitMode::Spin)),
            None => self.receive_from_any(buffer),
        }
    }

    /// Replies to the message that was handed out last, which came from `to`. What the send buffer has no room for is sent
    /// later; until then nothing more is taken from there.
    ///
    /// # Errors
    /// The connection is gone.
    #[inline]
    pub fn reply(&mut self, message: &[u8], to: SocketAddr) -> io::Result<()> {
        let place = &mut self.places[self.current];
        if place.peer() != to {
            return Err(io::ErrorKind::NotConnected.into());
        }
        match place.send(message) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.watch_for(self.current, For::Writing);
                Ok(())
            }
            Err(error) => {
                self.close(self.current, CloseReason::Ended);
                Err(error)
            }
        }
    }

    #[inline]
    fn hand_out(&mut self, place: usize, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        match self.places[place].message(buffer) {
            Ok(bytes) => {
                let bytes = bytes?;
                self.current = place;
                Some((bytes, self.places[place].peer()))
            }
            Err(_) => {
                self.close(place, CloseReason::Malformed);
                None
            }
        }
    }

    #[inline]
    fn read(&mut self, place: usize, buffer: &mut [u8], sleeps: bool) -> Option<(usize, SocketAddr)> {
        let read = match sleeps {
            true => self.places[place].read(datagram::receive),
            false => self.places[place].read(datagram::receive_now),
        };
        match read {
            Ok(true) => self.hand_out(place, buffer),
            Ok(false) => None,
            Err(_) => {
                self.close(place, CloseReason::Ended);
                None
            }
        }
    }

    /// The next message of any connection, after at most one wait.
    fn receive_from_any(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        for waits in [true, false] {
            while self.unseen.0 < self.unseen.1 {
                let mark = self.ready.mark(self.unseen.0);
                self.unseen.0 += 1;
                let message = self.attend(mark, buffer);
                if message.is_some() {
                    return Ok(message);
                }
            }
            if waits {
                let timeout_ns = if self.wait == WaitMode::Spin { 0 } else { LOOK_EVERY_NS };
                self.unseen = match self.watch.wait(&mut self.ready, (timeout_ns / 1_000_000) as i32) {
                    Ok(ready) => (0, ready),
                    Err(error) if is_interruption(&error) => return Ok(None),
                    Err(error) => return Err(error),
                };
            }
        }
        Ok(None)
    }

    /// Does what the socket under `mark` is ready for.
    fn attend(&mut self, mark: u64, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        if mark == LISTENER {
            self.accept();
            return None;
        }
        let (generation, place) = ((mark >> 32) as u32, (mark & 0xffff_ffff) as usize);
        let connection = self.places.get_mut(place).filter(|connection| connection.generation() == generation)?;
        if connection.owes() {
            match connection.pay() {
                Ok(true) => self.watch_for(place, For::Reading),
                Ok(false) => return None,
                Err(_) => {
                    self.close(place, CloseReason::Ended);
                    return None;
                }
            }
        }
        self.hand_out(place, buffer).or_else(|| self.read(place, buffer, false))
    }

    /// Looks for new connections, which a reflector with one alone does not hear of, or one that could not take them.
    #[cold]
    fn look_up(&mut self, now_ns: i64) {
        self.look_at_ns = now_ns + LOOK_EVERY_NS;
        self.wants_care |= now_ns >= self.care_at_ns;
        if let Some(listener) = &self.listener {
            let _ = self.watch.change(listener.as_fd(), LISTENER, For::Reading);
        }
        if self.alone.is_some() {
            self.accept();
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED_MAX {
            let Some(listener) = &self.listener else { return };
            match connection::accept(listener.as_fd()) {
                Ok((socket, peer)) => self.admit(socket, plain(peer)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted || is_interruption(&error) => {}
                Err(_) => {
                    // No descriptor or no memory is left: until the next look nobody is told that somebody waits.
                    let _ = self.watch.change(listener.as_fd(), LISTENER, For::Nothing);
                    return;
                }
            }
        }
    }

    /// Gives `peer` a place, if the caps allow it; otherwise its connection is closed here.
    fn admit(&mut self, socket: OwnedFd, peer: SocketAddr) {
        let second = coarse_ns() / 1_000_000_000;
        self.accepted = if self.accepted.0 == second { (second, self.accepted.1 + 1) } else { (second, 1) };
        let prefix = prefix_of(peer.ip());
        let neighbours = self.places.iter().filter(|place| place.is_taken() && prefix_of(place.peer().ip()) == prefix);
        let crowded = prefix.is_some() && neighbours.count() >= usize::from(self.caps.per_prefix);
        let free = self.places.iter().position(|place| !place.is_taken());
        let Some(place) = free.filter(|_| !crowded && self.accepted.1 <= self.caps.per_second) else {
            self.tally.over_caps += 1;
            return;
        };
        let settled = settle_connection(socket.as_fd(), self.wait == WaitMode::BusyPoll).is_ok()
            && socket::set_receive_timeout(socket.as_fd(), LOOK_EVERY_NS).is_ok()
            && self.watch.add(socket.as_fd(), self.mark(place), For::Reading).is_ok();
        if settled {
            self.tally.taken += 1;
            self.places[place].take(socket, peer);
            self.count_off();
        }
    }

    fn mark(&self, place: usize) -> u64 {
        u64::from(self.places[place].generation()) << 32 | place as u64
    }

    #[cold]
    fn watch_for(&mut self, place: usize, what: For) {
        if let Some(socket) = self.places[place].socket() {
            let _ = self.watch.change(socket, self.mark(place), what);
        }
        self.count_off();
    }

    #[cold]
    fn close(&mut self, place: usize, why: CloseReason) {
        let Some(peer) = self.places[place].free() else { return };
        match why {
            CloseReason::Ended => {}
            CloseReason::Malformed => self.tally.malformed += 1,
            CloseReason::WithoutSession => self.tally.without_session += 1,
            CloseReason::Stuck => self.tally.stuck += 1,
        }
        if self.gone.len() < self.gone.capacity() {
            self.gone.push(peer);
        }
        self.wants_care = true;
        self.count_off();
    }

    /// Finds out whether there is one connection alone.
    fn count_off(&mut self) {
        let mut taken = self.places.iter().enumerate().filter(|(_, place)| place.is_taken());
        let only = taken.next().filter(|(_, place)| !place.owes()).map(|(place, _)| place);
        self.alone = if taken.next().is_none() { only } else { None };
    }
}

#[cfg(test)]
#[path = "tcp_reflector_tests.rs"]
mod tests;
