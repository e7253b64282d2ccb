//! The reflector as a state machine without sockets, clocks or randomness, which returns an action for each datagram. A
//! reply is written over the request that it answers, so it cannot be longer (rule R2).

use std::fmt;
use std::net::SocketAddr;

use super::admission::ReflectorLimits;
use super::admission::{CookieJar, TokenBucket};
use super::cookie_rate::CookieRate;
use super::counters::{DropReason, ReflectorCounters};
use super::down_source::{DownDue, DownSource};
use super::sessions::{NewSession, ReceiverState, SessionSlot, SessionTable, SlotState};
use crate::session::key::PreSharedKey;
use crate::transport::{ConnectionTally, DriverCounts, DriverSession, prefix_of};
use crate::units::{Nanos, ReflectorClock, Stamp};
use crate::wire::{
    Accept, Close, Codes, Cookie, Hello, MessageType, Nonce, Open, Passage, Reflection, Refuse, RefuseReason, SetupKey,
    SocketTerms, StreamPoll, Terms, Train,
};

/// The action after a datagram was handled.
#[derive(Debug)]
#[must_use]
pub enum ReflectorAction {
    /// Nothing; the datagram was dropped.
    Drop(DropReason),
    /// Send the first so many bytes of the datagram to its sender.
    Reply(usize),
    /// Read the clock, seal the answer, send it to the sender.
    Reflect(PendingReply),
    /// Nothing; the datagram was a packet of a stream and was counted.
    Counted,
}

/// A genuine probe whose answer lacks only the send stamp.
#[derive(Debug)]
#[must_use]
pub struct PendingReply(Reflection);

impl PendingReply {
    /// The session and counter of the probe, if its session asked for the kernel's stamps.
    #[inline]
    pub fn stamped(&self) -> Option<(u16, u64)> {
        self.0.stamped.then_some((self.0.session, self.0.counter))
    }

    /// Adds the kernel's receive stamp of the probe, and the passage of an earlier answer of its session.
    pub fn add_stamps(&mut self, kernel_received: Option<Stamp<ReflectorClock>>, passage: Option<Passage>) {
        (self.0.kernel_received, self.0.passage) = (kernel_received, passage);
    }

    /// Turns the probe in `datagram`, which must be the handled one, into its answer and returns its length. `sent`: the
    /// clock, read as late as possible.
    #[inline]
    pub fn seal(self, sent: Stamp<ReflectorClock>, cpu: Option<u16>, datagram: &mut [u8]) -> usize {
        self.0.write(sent, cpu, datagram);
        datagram.len()
    }
}

/// The answering end of all sessions.
pub struct SessionReflector {
    limits: ReflectorLimits,
    setup: Option<SetupKey>,
    codes: Codes,
    table: SessionTable,
    cookie_rate: CookieRate,
    session_rate: TokenBucket,
    cookies: CookieJar,
    seed: [u8; 32],
    nonces_made: u64,
    counters: ReflectorCounters,
    receiver: ReceiverState,
    supported_terms: SocketTerms,
    answers_in_driver: bool,
    down: Option<DownSource>,
}

impl fmt::Debug for SessionReflector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionReflector")
            .field("limits", &self.limits)
            .field("keyed", &self.setup.is_some())
            .field("open_sessions", &self.open_sessions())
            .finish_non_exhaustive()
    }
}

impl SessionReflector {
    /// A reflector with `limits` (or the compiled-in bounds, if stricter) for senders that have `key`; without a key for
    /// this host only. All randomness comes from `seed`, which must be fresh and secret.
    pub fn new(limits: ReflectorLimits, key: Option<&PreSharedKey>, seed: [u8; 32]) -> SessionReflector {
        let setup = key.map(PreSharedKey::setup_key);
        let limits = limits.within_bounds();
        SessionReflector {
            limits,
            codes: setup.as_ref().map_or(Codes::None, SetupKey::codes),
            setup,
            table: SessionTable::new(limits.sessions),
            cookie_rate: CookieRate::new(limits.cookies_per_second, &seed),
            session_rate: TokenBucket::new(limits.new_sessions_per_second),
            cookies: CookieJar::new(seed),
            seed,
            nonces_made: 0,
            counters: ReflectorCounters::default(),
            receiver: ReceiverState::default(),
            supported_terms: SocketTerms::NONE,
            answers_in_driver: false,
            down: None,
        }
    }

    /// Handles `datagram` from the sender `from`, received at `received`. A reply is written over it.
    #[inline]
    pub fn handle(
        &mut self,
        datagram: &mut [u8],
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> ReflectorAction {
        self.counters.received += 1;
        self.counters.received_bytes += datagram.len() as u64;
        let handled = match MessageType::of(datagram) {
            Ok(MessageType::Probe) => self.table.accept_probe(datagram, from, received).map(|reflection| {
                self.counters.answered += 1;
                (datagram.len(), ReflectorAction::Reflect(PendingReply(reflection)))
            }),
            Ok(MessageType::Data) => return self.count(datagram, from, received),
            Ok(MessageType::Poll) => {
                self.poll(datagram, from, received).map(|bytes| (bytes, ReflectorAction::Reply(bytes)))
            }
            Ok(message) => {
                self.set_up(message, datagram, from, received).map(|bytes| (bytes, ReflectorAction::Reply(bytes)))
            }
            Err(malformed) => Err(malformed.into()),
        };
        match handled {
            Ok((bytes, action)) => {
                self.counters.replied += 1;
                self.counters.replied_bytes += bytes as u64;
                action
            }
            Err(reason) => {
                self.counters.drop_for(reason);
                ReflectorAction::Drop(reason)
            }
        }
    }

    #[inline]
    fn count(&mut self, datagram: &[u8], from: SocketAddr, received: Stamp<ReflectorClock>) -> ReflectorAction {
        match self.table.count(datagram, from, received) {
            Ok(()) => {
                self.counters.counted += 1;
                ReflectorAction::Counted
            }
            Err(reason) => {
                self.counters.drop_for(reason);
                ReflectorAction::Drop(reason)
            }
        }
    }

    /// Counts the packets of `each_bytes` in `bytes` at once, if they are the next packets of a stream: the same result as
    /// [`SessionReflector::handle`] of each, in a fraction of the time. Otherwise returns false without a change.
    #[inline]
    pub fn count_train(
        &mut self,
        bytes: &[u8],
        each_bytes: usize,
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> bool {
        let Some(train) = Train::parse(bytes, each_bytes) else { return false };
        let counted = self.table.count_train(train, from, received);
        if counted {
            self.counters.received += train.packets();
            self.counters.received_bytes += bytes.len() as u64;
            self.counters.counted += train.packets();
        }
        counted
    }

    /// The action that the down-stream requires at `now`, if there is one; a packet is written into `buffer` and counts
    /// as sent.
    #[inline]
    pub fn down_due(&mut self, now: Stamp<ReflectorClock>, buffer: &mut [u8]) -> DownDue {
        let Some(down) = &mut self.down else { return DownDue::Nothing };
        if self.table.find(down.session, down.to, now).is_err() {
            self.down = None;
            return DownDue::Nothing;
        }
        let due = down.due(now, buffer);
        if let DownDue::Packet { bytes, .. } = due {
            self.counters.down += 1;
            self.counters.down_bytes += bytes as u64;
        }
        due
    }

    /// The packet of [`SessionReflector::down_due`] was not sent, and is due again.
    pub fn take_back_down(&mut self) {
        let Some(down) = &mut self.down else { return };
        self.counters.down -= 1;
        self.counters.down_bytes -= down.take_back();
    }

    /// The destination of the down-stream, if there is one.
    #[inline]
    pub fn down_peer(&self) -> Option<SocketAddr> {
        self.down.as_ref().map(|down| down.to)
    }

    /// The counters since the start; expired sessions are closed first.
    pub fn counters(&mut self, now: Stamp<ReflectorClock>) -> &ReflectorCounters {
        self.close_expired(now);
        &self.counters
    }

    fn close_expired(&mut self, now: Stamp<ReflectorClock>) {
        let expired = self.table.close_expired(now);
        self.counters.expired += expired.confirmed;
        self.count_unconfirmed(expired.unconfirmed);
    }

    /// Sets the terms that the socket supports: others are not granted. Before the first datagram.
    pub fn set_supported_terms(&mut self, terms: SocketTerms) {
        self.supported_terms = terms;
    }

    /// A program in the network driver can answer probes: such sessions are granted. Before the first datagram.
    pub fn set_answers_in_driver(&mut self, answers: bool) {
        self.answers_in_driver = answers;
    }

    /// The sessions that the program answers.
    pub fn in_driver(&self, now: Stamp<ReflectorClock>) -> impl Iterator<Item = DriverSession> {
        self.table.in_driver(now)
    }

    /// Takes over what the program has counted in `session`.
    pub fn set_driver_counts(&mut self, session: u16, counts: &DriverCounts) {
        let ([answered, seen_before, left_window], size_bytes) = self.table.set_driver_counts(session, counts);
        let (received, counters) = (answered + seen_before + left_window, &mut self.counters);
        counters.received += received;
        counters.received_bytes += received * u64::from(size_bytes);
        counters.replied += answered;
        counters.replied_bytes += answered * u64::from(size_bytes);
        counters.answered += answered;
        counters.drop_many(DropReason::SeenBefore, seen_before);
        counters.drop_many(DropReason::LeftWindow, left_window);
    }

    /// The terms that the socket has to fulfil for the open sessions.
    pub fn required_terms(&mut self, now: Stamp<ReflectorClock>) -> SocketTerms {
        self.table.required_terms(now)
    }

    /// Whether every open session that is not silent is a stream, so that no sender measures how long the reflector takes.
    pub fn has_streams_only(&self, now: Stamp<ReflectorClock>) -> bool {
        self.table.has_streams_only(now)
    }

    /// Whether the receiver's state matters for `datagram`: it may begin or end a count of socket drops or CPU time. False
    /// for probes and for noise, which so cost no further system call.
    #[inline]
    pub(crate) fn needs_receiver_state(datagram: &[u8]) -> bool {
        matches!(MessageType::of(datagram), Ok(MessageType::Open | MessageType::Close | MessageType::Poll))
    }

    /// Sets the receiver's state, before a datagram that needs it (`SessionReflector::needs_receiver_state`) is handled
    /// and before the counters are read.
    pub fn set_receiver_state(&mut self, receiver: ReceiverState) {
        self.counters.socket_drops = receiver.socket_drops;
        self.receiver = receiver;
    }

    /// Sets the counts of connections, before the counters are read.
    pub(crate) fn set_connections(&mut self, tally: ConnectionTally) {
        self.counters.connections = Some(tally);
    }

    /// Sets the count of ignored samples, before the counters are read.
    pub(crate) fn set_ignored_samples(&mut self, ignored: Option<u64>) {
        self.counters.ignored_samples = ignored;
    }

    /// The connection of `peer` was closed: its sessions end.
    pub fn disconnect(&mut self, peer: SocketAddr) {
        self.counters.disconnected += self.table.close_all_of(peer);
    }

    /// Whether `peer` has an open session.
    pub fn has_session(&self, peer: SocketAddr, now: Stamp<ReflectorClock>) -> bool {
        self.table.has_session(peer, now)
    }

    pub fn open_sessions(&self) -> usize {
        self.table.open().count()
    }

    /// The sender of the only session that is granted at a time; `None` without a session, or if more are granted.
    pub(crate) fn single_peer(&self) -> Option<SocketAddr> {
        (self.limits.sessions == 1).then(|| self.table.open().next()).flatten().map(|slot| slot.address)
    }

    /// Counts a reply that could not be sent.
    pub fn count_failed_reply(&mut self) {
        self.counters.reply_failed += 1;
    }

    pub fn count_failed_receive(&mut self) {
        self.counters.receive_failed += 1;
    }

    /// Handles a message of set-up or end. Replies are written into the request; their length is returned.
    #[inline(never)]
    fn set_up(
        &mut self,
        message: MessageType,
        datagram: &mut [u8],
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> Result<usize, DropReason> {
        if self.setup.is_none() && !from.ip().to_canonical().is_loopback() {
            return Err(DropReason::KeylessRemote);
        }
        match message {
            MessageType::Hello => self.hello(datagram, from, received),
            MessageType::Open => self.open(datagram, from, received),
            MessageType::Close => self.close(datagram, from),
            _ => Err(DropReason::Reply),
        }
    }

    fn hello(
        &mut self,
        datagram: &mut [u8],
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> Result<usize, DropReason> {
        let hello = Hello::parse(datagram)?;
        if !self.cookie_rate.take(from.ip(), received) {
            return Err(DropReason::CookieRate);
        }
        let token = self.cookies.token(from, &hello.nonce, received);
        self.counters.cookies += 1;
        reply_over(datagram, |reply| Cookie::new(hello.nonce, token, self.setup.is_some()).write(reply))
    }

    fn open(
        &mut self,
        datagram: &mut [u8],
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> Result<usize, DropReason> {
        let open = Open::parse(datagram)?;
        if !self.cookies.verify(&open.token, from, &open.nonce, received) {
            return Err(DropReason::Token);
        }
        if !self.codes.verify(datagram) {
            return Err(DropReason::Code);
        }
        // The sender has proved its address and the key: from here on it gets a reply.
        self.close_expired(received);
        if let Some(slot) = self.table.opened_by(&open.nonce, from) {
            if slot.state == SlotState::Closed {
                return Err(DropReason::OpenReplayed);
            }
            self.counters.accepts_repeated += 1;
            let accept = accept_of(slot, received);
            return reply_over(datagram, |reply| accept.write(&self.codes, reply));
        }
        match self.admit(&open, from, received) {
            Ok(accept) => reply_over(datagram, |reply| accept.write(&self.codes, reply)),
            Err(Refusal { reason, limit }) => {
                self.counters.refuse_for(reason);
                let refuse = Refuse { nonce: open.nonce, reason, limit };
                reply_over(datagram, |reply| refuse.write(&self.codes, reply))
            }
        }
    }

    fn admit(&mut self, open: &Open, from: SocketAddr, received: Stamp<ReflectorClock>) -> Result<Accept, Refusal> {
        self.check_caps(&open.terms, from)?;
        if open.terms.down && !self.permits_down(received) {
            return Err(Refusal { reason: RefuseReason::Down, limit: self.down_limit_bps() });
        }
        let limits = self.limits;
        if !self.session_rate.take(received) {
            let limit = u64::from(limits.new_sessions_per_second);
            return Err(Refusal { reason: RefuseReason::NewSessions, limit });
        }
        self.make_room(&open.terms, from);
        let reflector_nonce = self.next_nonce();
        let duration = if open.terms.duration == Nanos::ZERO { limits.duration } else { open.terms.duration };
        let socket = open.terms.socket.and(self.supported_terms);
        let in_driver = open.terms.in_driver && self.answers_in_driver;
        let terms = self.with_permitted_rate(Terms { duration, idle: limits.idle, socket, in_driver, ..open.terms });
        let (nonce, at, receiver) = (open.nonce, received, self.receiver);
        let new = NewSession { address: from, nonce, reflector_nonce, terms, at, receiver };
        let keys = |session| self.setup.as_ref().map(|setup| setup.session(&open.nonce, &reflector_nonce, session));
        let full = Refusal { reason: RefuseReason::Sessions, limit: u64::from(limits.sessions) };
        let slot = self.table.insert(new, keys).ok_or(full)?;
        self.counters.opened += 1;
        self.down = down_source(slot).or(self.down.take());
        Ok(accept_of(slot, received))
    }

    /// Counts `sessions` that ended without a confirmation. What they took of the rate of new sessions is given back: an OPEN
    /// that is played again uses up nothing.
    fn count_unconfirmed(&mut self, sessions: u64) {
        self.counters.unconfirmed += sessions;
        (0..sessions).for_each(|_| self.session_rate.put_back());
    }

    /// Refuses a session on `terms` for the first cap that it exceeds.
    fn check_caps(&self, terms: &Terms, from: SocketAddr) -> Result<(), Refusal> {
        let limits = &self.limits;
        let prefix = prefix_of(from.ip());
        let caps = [
            (terms.size_bytes > limits.size_bytes, RefuseReason::Size, u64::from(limits.size_bytes)),
            (terms.duration > limits.duration, RefuseReason::Duration, limits.duration.0 as u64),
            (terms.idle > limits.idle, RefuseReason::Idle, limits.idle.0 as u64),
            (self.is_full() && !self.table.has_unconfirmed(None), RefuseReason::Sessions, u64::from(limits.sessions)),
            (
                self.is_full_for(from) && !self.table.has_unconfirmed(prefix),
                RefuseReason::SessionsPerPrefix,
                u64::from(limits.sessions_per_prefix),
            ),
        ];
        let exceeded = caps.into_iter().find(|(is_exceeded, ..)| *is_exceeded);
        exceeded.map_or(Ok(()), |(_, reason, limit)| Err(Refusal { reason, limit }))
    }

    fn is_full(&self) -> bool {
        self.open_sessions() >= usize::from(self.limits.sessions)
    }

    /// Whether the prefix of `from` has as many sessions as it may have.
    fn is_full_for(&self, from: SocketAddr) -> bool {
        self.table.open_from(from.ip()) >= usize::from(self.limits.sessions_per_prefix)
    }

    /// Closes the sessions without a confirmation whose slot, share of the prefix or down-stream a new session from `from`
    /// on `terms` takes.
    fn make_room(&mut self, terms: &Terms, from: SocketAddr) {
        let prefix = prefix_of(from.ip());
        if self.is_full_for(from) {
            let closed = self.table.close_unconfirmed(prefix);
            self.count_unconfirmed(u64::from(closed));
        }
        if self.is_full() {
            let closed = self.table.close_unconfirmed(None);
            self.count_unconfirmed(u64::from(closed));
        }
        if let Some(down) = self.down.take_if(|_| terms.down) {
            let closed = self.table.close_if_unconfirmed(down.session);
            self.count_unconfirmed(u64::from(closed));
        }
    }

    /// Whether a down-stream may be opened: there is a key, a rate is permitted, and no other is open and confirmed.
    fn permits_down(&mut self, now: Stamp<ReflectorClock>) -> bool {
        let find = |down: &DownSource| self.table.find(down.session, down.to, now).is_ok_and(|slot| slot.confirmed);
        let busy = self.down.as_ref().is_some_and(find);
        !busy && self.down_limit_bps() > 0
    }

    /// The permitted rate of a down-stream, in bits of UDP payload a second: 0 without a key.
    fn down_limit_bps(&self) -> u64 {
        if self.setup.is_some() { self.limits.down_bps } else { 0 }
    }

    /// `terms` with the interval of a down-stream lengthened to its permitted rate.
    fn with_permitted_rate(&self, terms: Terms) -> Terms {
        if !terms.down {
            return terms;
        }
        let bits_ns = u128::from(terms.size_bytes) * 8 * 1_000_000_000;
        let shortest = bits_ns.div_ceil(u128::from(self.down_limit_bps().max(1)));
        let shortest = Nanos(i64::try_from(shortest).unwrap_or(i64::MAX));
        Terms { interval: terms.interval.max(shortest), ..terms }
    }

    fn close(&mut self, datagram: &mut [u8], from: SocketAddr) -> Result<usize, DropReason> {
        let close = Close::parse(datagram)?;
        let slot = self.table.slot_mut(close.session);
        if slot.session != close.session || slot.nonce == [0; 16] {
            return Err(DropReason::NoSession);
        }
        if slot.address != from || slot.nonce != close.nonce {
            return Err(DropReason::WrongAddress);
        }
        let codes = slot.close_codes();
        if !codes.verify(datagram) {
            return Err(DropReason::Code);
        }
        self.counters.closed += u64::from(slot.close(self.receiver.socket_drops));
        let report = slot.counts;
        if close.wants_socket_drops {
            reply_over(datagram, |reply| report.write(&codes, reply))
        } else {
            reply_over(datagram, |reply| report.write_short(&codes, reply))
        }
    }

    #[inline(never)]
    fn poll(
        &mut self,
        datagram: &mut [u8],
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> Result<usize, DropReason> {
        let poll = StreamPoll::parse(datagram)?;
        let slot = self.table.find(poll.session, from, received)?;
        if slot.nonce != poll.nonce {
            return Err(DropReason::WrongAddress);
        }
        let codes = slot.close_codes();
        if !codes.verify(datagram) {
            return Err(DropReason::Code);
        }
        let tally = slot.tally(&poll, received, self.receiver).ok_or(DropReason::SeenBefore)?;
        self.counters.tallies += 1;
        let tally = match self.down.as_mut().filter(|down| down.session == poll.session) {
            Some(down) => down.answer_poll(tally, poll.credit_bytes),
            None => tally,
        };
        reply_over(datagram, |reply| tally.write(&codes, reply))
    }

    /// An unpredictable nonce: the keyed hash of a counter.
    fn next_nonce(&mut self) -> Nonce {
        self.nonces_made += 1;
        let mut hasher = blake3::Hasher::new_keyed(&self.seed);
        hasher.update(b"nonce").update(&self.nonces_made.to_be_bytes());
        let hash = hasher.finalize();
        std::array::from_fn(|at| hash.as_bytes()[at])
    }
}

/// An exceeded cap and its value.
struct Refusal {
    reason: RefuseReason,
    limit: u64,
}

/// The down-stream of the session in `slot`, if its terms contain one and it has a key.
fn down_source(slot: &SessionSlot) -> Option<DownSource> {
    let terms = slot.terms;
    let key = slot.keys.as_ref().filter(|_| terms.down)?.answers;
    Some(DownSource::new(slot.session, slot.address, key, terms.size_bytes, terms.interval))
}

fn accept_of(slot: &SessionSlot, received: Stamp<ReflectorClock>) -> Accept {
    Accept {
        session: slot.session,
        nonce: slot.nonce,
        reflector_nonce: slot.reflector_nonce,
        anchor: received,
        terms: slot.terms,
    }
}

/// Writes a reply of `N` bytes over the request, which must not be shorter.
fn reply_over<const N: usize>(datagram: &mut [u8], write: impl FnOnce(&mut [u8; N])) -> Result<usize, DropReason> {
    let reply = datagram.first_chunk_mut::<N>().ok_or(DropReason::Length)?;
    write(reply);
    Ok(N)
}
