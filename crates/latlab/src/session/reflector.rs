//! The reflector as a machine without sockets, clocks or chance: a datagram goes in, a judgement comes out.
//!
//! Whatever arrives, the wire rules R1 to R8 hold (docs/protocol.md). A reply is written over the request it answers:
//! it cannot be longer.

use std::fmt;
use std::net::SocketAddr;

use super::bucket::TokenBucket;
use super::cookies::CookieJar;
use super::counters::{DropReason, ReflectorCounters};
use super::down_source::DownSource;
use super::key::PreSharedKey;
use super::limits::ReflectorLimits;
use super::slot::{NewSession, ReceiverState, SessionSlot, SlotState};
use super::table::SessionTable;
use crate::units::{Nanos, ReflectorClock, Stamp};
use crate::wire::{
    Accept, Close, Codes, Cookie, Hello, MessageType, Nonce, Open, Reflection, Refuse, RefuseReason, SetupKey,
    StreamPoll, StreamTerms, Terms,
};

/// What to do with a datagram.
#[derive(Debug)]
#[must_use]
pub enum ReflectorAction {
    /// Nothing; it was counted.
    Drop(DropReason),
    /// Send its first so many bytes back to where it came from.
    Reply(usize),
    /// Read the clock, seal the answer, send it back.
    Reflect(PendingReply),
    /// Nothing; it is a packet of a stream, and was counted as such.
    Counted,
}

/// A genuine probe whose answer lacks only the send stamp.
#[derive(Debug)]
#[must_use]
pub struct PendingReply(Reflection);

impl PendingReply {
    /// Adds the kernel's receive stamp, converted to the clock of the other two.
    pub fn with_kernel_stamp(mut self, stamp: Stamp<ReflectorClock>) -> PendingReply {
        self.0.kernel_received = Some(stamp);
        self
    }

    /// Turns the probe in `datagram`, the very one that was judged, into its answer and returns its length.
    /// `sent`: clock read as late as possible.
    #[inline]
    pub fn seal(self, sent: Stamp<ReflectorClock>, cpu: Option<u16>, datagram: &mut [u8]) -> usize {
        self.0.write(sent, cpu, datagram);
        datagram.len()
    }
}

/// The answering end of all sessions.
pub struct SessionReflector {
    pub(super) limits: ReflectorLimits,
    pub(super) setup: Option<SetupKey>,
    codes: Codes,
    pub(super) table: SessionTable,
    cookie_rate: TokenBucket,
    session_rate: TokenBucket,
    jar: CookieJar,
    seed: [u8; 32],
    nonces_made: u64,
    pub(super) counters: ReflectorCounters,
    receiver: ReceiverState,
    abilities: StreamTerms,
    pub(super) down: Option<DownSource>,
}

impl fmt::Debug for SessionReflector {
    /// Shows neither keys nor the seed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionReflector")
            .field("limits", &self.limits)
            .field("keyed", &self.setup.is_some())
            .field("open_sessions", &self.open_sessions())
            .finish_non_exhaustive()
    }
}

impl SessionReflector {
    /// A reflector with `limits` (the compiled-in bounds hold whatever they say), for peers that hold `key`;
    /// without a key for this host only. All its chance comes from `seed`, which must be fresh and secret.
    pub fn new(limits: ReflectorLimits, key: Option<&PreSharedKey>, seed: [u8; 32]) -> SessionReflector {
        let setup = key.map(PreSharedKey::setup_key);
        let limits = limits.within_bounds();
        SessionReflector {
            limits,
            codes: setup.as_ref().map_or(Codes::None, SetupKey::codes),
            setup,
            table: SessionTable::new(limits.sessions),
            cookie_rate: TokenBucket::new(limits.cookies_per_second),
            session_rate: TokenBucket::new(limits.new_sessions_per_second),
            jar: CookieJar::new(seed),
            seed,
            nonces_made: 0,
            counters: ReflectorCounters::default(),
            receiver: ReceiverState::default(),
            abilities: StreamTerms::NONE,
            down: None,
        }
    }

    /// Judges `datagram`, which came `from` there when the clock showed `received`. The reply is written over it.
    #[inline]
    pub fn judge(&mut self, datagram: &mut [u8], from: SocketAddr, received: Stamp<ReflectorClock>) -> ReflectorAction {
        self.counters.received += 1;
        self.counters.received_bytes += datagram.len() as u64;
        let judged = match MessageType::of(datagram) {
            Ok(MessageType::Probe) => self.table.judge(datagram, from, received).map(|reflection| {
                self.counters.answered += 1;
                (datagram.len(), ReflectorAction::Reflect(PendingReply(reflection)))
            }),
            Ok(MessageType::Data) => return self.count(datagram, from, received),
            Ok(MessageType::Poll) => {
                self.tally(datagram, from, received).map(|bytes| (bytes, ReflectorAction::Reply(bytes)))
            }
            Ok(message) => {
                self.converse(message, datagram, from, received).map(|bytes| (bytes, ReflectorAction::Reply(bytes)))
            }
            Err(malformed) => Err(malformed.into()),
        };
        match judged {
            Ok((bytes, judgement)) => {
                self.counters.replied += 1;
                self.counters.replied_bytes += bytes as u64;
                judgement
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

    /// The counters since the start; sessions that are over at `now` are counted as such first.
    pub fn counters(&mut self, now: Stamp<ReflectorClock>) -> &ReflectorCounters {
        self.counters.expired += self.table.sweep(now);
        &self.counters
    }

    /// Told what its socket can do for streams, before the first datagram: nothing else is granted.
    pub fn grants(&mut self, abilities: StreamTerms) {
        self.abilities = abilities;
    }

    /// What the open sessions need of the socket at `now`.
    pub fn needs(&mut self, now: Stamp<ReflectorClock>) -> StreamTerms {
        self.table.needs(now)
    }

    /// Told how its socket and its thread stand. Whoever owns them says so before the judgement of a message that tells
    /// it on ([`SessionReflector::tells_receiver`]), and before the counters are read.
    pub fn note_receiver(&mut self, receiver: ReceiverState) {
        self.counters.socket_drops = receiver.socket_drops;
        self.receiver = receiver;
    }

    /// Whether `datagram` may begin or end a count of what the socket dropped, or of CPU time. Neither a probe nor what is
    /// dropped as noise does: they cost no system call more.
    #[inline]
    pub fn tells_receiver(datagram: &[u8]) -> bool {
        matches!(MessageType::of(datagram), Ok(MessageType::Open | MessageType::Close | MessageType::Poll))
    }

    /// Sessions open.
    pub fn open_sessions(&self) -> usize {
        self.table.open()
    }

    /// Who holds the only session that is granted at a time; none where there is none, or more can be had.
    pub fn only_peer(&self) -> Option<SocketAddr> {
        (self.limits.sessions == 1).then(|| self.table.addresses().next()).flatten()
    }

    /// Counts a reply that the kernel would not send.
    pub fn count_failed_reply(&mut self) {
        self.counters.reply_failed += 1;
    }

    /// Counts a receive call that failed.
    pub fn count_failed_receive(&mut self) {
        self.counters.receive_failed += 1;
    }

    /// Set-up and tear-down. Replies are written into the request; their length is returned.
    #[inline(never)]
    fn converse(
        &mut self,
        message: MessageType,
        datagram: &mut [u8],
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> Result<usize, DropReason> {
        if self.setup.is_none() && !from.ip().to_canonical().is_loopback() {
            return Err(DropReason::KeylessAfar);
        }
        match message {
            MessageType::Hello => self.greet(datagram, from, received),
            MessageType::Open => self.open(datagram, from, received),
            MessageType::Close => self.close(datagram, from),
            _ => Err(DropReason::Reply),
        }
    }

    fn greet(
        &mut self,
        datagram: &mut [u8],
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> Result<usize, DropReason> {
        let hello = Hello::parse(datagram)?;
        if !self.cookie_rate.take(received) {
            return Err(DropReason::CookieRate);
        }
        let token = self.jar.token(from, &hello.nonce, received);
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
        if !self.jar.honours(&open.token, from, &open.nonce, received) {
            return Err(DropReason::Token);
        }
        if !self.codes.verify(datagram) {
            return Err(DropReason::Code);
        }
        // From here on the peer has shown its address and the key: it is owed an answer.
        self.counters.expired += self.table.sweep(received);
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
            Err((reason, limit)) => {
                self.counters.refuse_for(reason);
                let refuse = Refuse { nonce: open.nonce, reason, limit };
                reply_over(datagram, |reply| refuse.write(&self.codes, reply))
            }
        }
    }

    fn admit(
        &mut self,
        open: &Open,
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> Result<Accept, (RefuseReason, u64)> {
        self.refusal(&open.terms, from).map_or(Ok(()), Err)?;
        if open.terms.down && !self.may_go_down(received) {
            return Err((RefuseReason::Down, self.down_limit_bps()));
        }
        let limits = self.limits;
        if !self.session_rate.take(received) {
            return Err((RefuseReason::NewSessions, u64::from(limits.new_sessions_per_second)));
        }
        let reflector_nonce = self.next_nonce();
        let duration = if open.terms.duration == Nanos::ZERO { limits.duration } else { open.terms.duration };
        let (asked, able) = (open.terms.stream, self.abilities);
        let stream =
            StreamTerms { batched: asked.batched && able.batched, unchecked: asked.unchecked && able.unchecked };
        let terms = self.paced(Terms { duration, idle: limits.idle, stream, ..open.terms });
        let (nonce, at, receiver) = (open.nonce, received, self.receiver);
        let new = NewSession { address: from, nonce, reflector_nonce, terms, at, receiver };
        let keys = |session| self.setup.as_ref().map(|setup| setup.session(&open.nonce, &reflector_nonce, session));
        let full = (RefuseReason::Sessions, u64::from(limits.sessions));
        let slot = self.table.insert(new, keys).ok_or(full)?;
        self.counters.opened += 1;
        self.down = DownSource::of(slot).or(self.down.take());
        Ok(accept_of(slot, received))
    }

    /// The first cap that stands against a session on these terms, with its value.
    fn refusal(&self, terms: &Terms, from: SocketAddr) -> Option<(RefuseReason, u64)> {
        let limits = &self.limits;
        let caps = [
            (terms.size_bytes > limits.size_bytes, RefuseReason::Size, u64::from(limits.size_bytes)),
            (terms.duration > limits.duration, RefuseReason::Duration, limits.duration.0 as u64),
            (terms.idle > limits.idle, RefuseReason::Idle, limits.idle.0 as u64),
            (self.table.open() >= usize::from(limits.sessions), RefuseReason::Sessions, u64::from(limits.sessions)),
            (
                self.table.open_from(from.ip()) >= usize::from(limits.sessions_per_prefix),
                RefuseReason::SessionsPerPrefix,
                u64::from(limits.sessions_per_prefix),
            ),
        ];
        caps.into_iter().find(|(met, ..)| *met).map(|(_, reason, limit)| (reason, limit))
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
        match close.wants_socket_drops {
            true => reply_over(datagram, |reply| report.write(&codes, reply)),
            false => reply_over(datagram, |reply| report.write_short(&codes, reply)),
        }
    }

    #[inline(never)]
    fn tally(
        &mut self,
        datagram: &mut [u8],
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> Result<usize, DropReason> {
        let poll = StreamPoll::parse(datagram)?;
        let slot = self.table.running(poll.session, from, received)?;
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
            Some(down) => down.told(tally, poll.credit_bytes),
            None => tally,
        };
        reply_over(datagram, |reply| tally.write(&codes, reply))
    }

    /// A nonce that nobody can foresee: the keyed hash of a count.
    fn next_nonce(&mut self) -> Nonce {
        self.nonces_made += 1;
        let mut hasher = blake3::Hasher::new_keyed(&self.seed);
        hasher.update(b"nonce").update(&self.nonces_made.to_be_bytes());
        let hash = hasher.finalize();
        std::array::from_fn(|at| hash.as_bytes()[at])
    }
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

/// Writes a reply of `N` bytes over the request: impossible where that is shorter.
fn reply_over<const N: usize>(datagram: &mut [u8], write: impl FnOnce(&mut [u8; N])) -> Result<usize, DropReason> {
    let reply = datagram.first_chunk_mut::<N>().ok_or(DropReason::Length)?;
    write(reply);
    Ok(N)
}
