//! The sessions of a reflector: a table of slots, allocated at once, that never grows. Every probe and packet is
//! checked and counted in its session's slot.

use std::net::{IpAddr, SocketAddr};

use super::counters::DropReason;
use crate::transport::{DriverCounts, DriverSession, prefix_of};
use crate::units::{Nanos, ReflectorClock, Stamp};
use crate::wire::{
    Codes, MessageType, Nonce, ProbeHeader, REPLAY_WINDOW, Reflection, ReplayVerdict, ReplayWindow, Report,
    SessionKeys, SocketTerms, StreamPoll, StreamTally, Terms, Train, extend_receive_counter,
};

/// Without a tag nothing confirms the extension of a counter: one so far ahead is more likely an old one.
const KEYLESS_JUMP_MAX: u64 = 1 << 31;
/// A table of at most so many slots gets all its memory at the start. That of a reflector which latlab starts for a run has
/// few, and its thread allocates nothing.
const SMALL_TABLE: u16 = 16;
/// A session without packets for so long does not determine how the socket is read, even if it is open.
const SILENCE: Nanos = Nanos::from_secs(10);

/// A session whose sender confirms ends this long after its OPEN, unless something authentic has come by then. A captured
/// OPEN that is played again therefore holds a slot for this time only.
const CONFIRMATION_TIMEOUT: Nanos = Nanos::from_secs(2);

/// State of the receiving socket and thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverState {
    /// Datagrams that the socket dropped because its buffer was full, since it was made, modulo 2^32; `None` if unknown.
    pub socket_drops: Option<u64>,
    /// Merged buffers came: then `socket_drops` counts buffers.
    pub drops_merged: bool,
    /// CPU time of the thread; `None` if unknown.
    pub thread_cpu: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    Open,
    /// Its session has ended (or it had none yet); the REPORT is available until the slot is used again.
    Closed,
}

/// Counts of a session's stream; dropped packets are in its REPORT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StreamCounts {
    packets: u64,
    bytes: u64,
    reordered: u64,
    /// The number of the last POLL that was answered.
    polled: u64,
}

#[derive(Debug)]
pub(super) struct SessionSlot {
    pub(super) state: SlotState,
    pub(super) session: u16,
    pub(super) address: SocketAddr,
    pub(super) keys: Option<SessionKeys>,
    pub(super) nonce: Nonce,
    pub(super) reflector_nonce: Nonce,
    pub(super) terms: Terms,
    /// An authentic message has come, or its sender does not confirm.
    pub(super) confirmed: bool,
    pub(super) counts: Report,
    stream: StreamCounts,
    at_opening: ReceiverState,
    ends_at: Stamp<ReflectorClock>,
    last_probe: Stamp<ReflectorClock>,
    window: ReplayWindow,
}

/// A session to be put into a slot.
pub(super) struct NewSession {
    pub(super) address: SocketAddr,
    pub(super) nonce: Nonce,
    pub(super) reflector_nonce: Nonce,
    pub(super) terms: Terms,
    pub(super) at: Stamp<ReflectorClock>,
    pub(super) receiver: ReceiverState,
}

impl SessionSlot {
    /// The slot `index` of `slots`.
    fn new(index: u16, slots: u16) -> SessionSlot {
        let is_small_table = slots <= SMALL_TABLE;
        let never = Stamp::from_nanos(i64::MIN);
        SessionSlot {
            state: SlotState::Closed,
            session: index,
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            keys: None,
            nonce: [0; 16],
            reflector_nonce: [0; 16],
            terms: Terms::default(),
            confirmed: true,
            counts: Report::default(),
            stream: StreamCounts::default(),
            at_opening: ReceiverState::default(),
            ends_at: never,
            last_probe: never,
            window: if is_small_table { ReplayWindow::default() } else { ReplayWindow::unused() },
        }
    }

    /// Begins the session `new` under `number`.
    fn begin(&mut self, number: u16, new: NewSession, keys: Option<SessionKeys>) {
        self.state = SlotState::Open;
        self.session = number;
        self.keys = keys;
        self.address = new.address;
        self.nonce = new.nonce;
        self.reflector_nonce = new.reflector_nonce;
        self.terms = new.terms;
        self.confirmed = !new.terms.confirms;
        self.counts = Report { session: number, nonce: new.nonce, ..Report::default() };
        self.stream = StreamCounts::default();
        self.at_opening = new.receiver;
        self.ends_at = new.at + new.terms.duration;
        self.last_probe = new.at;
        self.window.clear();
    }

    /// Ends the session and returns whether it was open. `drops`: those of the socket so far. The REPORT counts drops up to
    /// the first CLOSE, so that a repeated CLOSE gets the same REPORT.
    pub(super) fn close(&mut self, drops: Option<u64>) -> bool {
        let was_open = self.state == SlotState::Open;
        self.state = SlotState::Closed;
        if self.counts.socket_drops.is_none() {
            let ends = self.at_opening.socket_drops.zip(drops);
            // The kernel counts with 32 bits: the difference is right across an overflow.
            self.counts.socket_drops = ends.map(|(then, now)| u64::from((now as u32).wrapping_sub(then as u32)));
        }
        was_open
    }

    /// The codes of CLOSE, REPORT, POLL and TALLY.
    pub(super) fn close_codes(&self) -> Codes {
        self.keys.as_ref().map_or(Codes::None, |keys| keys.close.clone())
    }

    fn is_open(&self) -> bool {
        self.state == SlotState::Open
    }

    /// Whether its duration or idle time has passed, or the time to confirm it.
    #[inline]
    fn is_expired(&self, now: Stamp<ReflectorClock>) -> bool {
        let silence_max = if self.confirmed { self.terms.idle } else { self.terms.idle.min(CONFIRMATION_TIMEOUT) };
        now > self.ends_at || now - self.last_probe > silence_max
    }

    /// Something authentic came at `received`: it confirms the session and ends its idle time.
    #[inline]
    fn touch(&mut self, received: Stamp<ReflectorClock>) {
        (self.last_probe, self.confirmed) = (received, true);
    }

    /// The session as its program needs it; `None` if there is nothing to answer.
    fn in_driver(&self, now: Stamp<ReflectorClock>) -> Option<DriverSession> {
        let is_answered = self.terms.in_driver && self.is_open() && self.confirmed && !self.is_expired(now);
        is_answered.then_some(DriverSession {
            session: self.session,
            peer: self.address,
            size_bytes: self.terms.size_bytes,
            ends_at: self.ends_at,
            idle: self.terms.idle,
            newest_at: self.last_probe,
        })
    }

    /// Takes over what the program has counted, and returns what is new: answers, probes seen before, probes below the window.
    fn set_driver_counts(&mut self, counts: &DriverCounts) -> [u64; 3] {
        let own = &mut self.counts;
        let before = [own.answered, own.seen_before, own.left_window];
        let now = [counts.answered, counts.seen_before, counts.left_window];
        [own.answered, own.seen_before, own.left_window] = now;
        self.last_probe = self.last_probe.max(counts.newest_at);
        std::array::from_fn(|at| now[at].saturating_sub(before[at]))
    }

    fn is_unconfirmed(&self) -> bool {
        self.is_open() && !self.confirmed
    }

    /// The stream terms that the socket has to fulfil now: none before the session is confirmed, so that an OPEN that is
    /// played again does not change how the socket is read.
    fn required_terms(&self, now: Stamp<ReflectorClock>) -> SocketTerms {
        if !self.is_open() || !self.confirmed {
            return SocketTerms::NONE;
        }
        let batched = self.terms.socket.batched && !self.is_silent(now);
        SocketTerms { batched, ..self.terms.socket }
    }

    /// Whether its sender is of `prefix`; `None`: any sender.
    fn is_of(&self, prefix: Option<u64>) -> bool {
        prefix.is_none() || prefix_of(self.address.ip()) == prefix
    }

    fn is_silent(&self, now: Stamp<ReflectorClock>) -> bool {
        now - self.last_probe > SILENCE
    }

    #[inline]
    fn accept_probe(
        &mut self,
        header: ProbeHeader,
        datagram: &[u8],
        received: Stamp<ReflectorClock>,
    ) -> Result<Reflection, DropReason> {
        let counter = self.accept(header, datagram, received)?;
        self.counts.answered += 1;
        let key = self.keys.as_ref().map(|keys| keys.answers);
        let stamped = self.terms.socket.stamped;
        Ok(Reflection { session: self.session, counter, key, received, stamped, kernel_received: None, passage: None })
    }

    /// Checks and counts a packet of a stream.
    #[inline]
    fn count(
        &mut self,
        header: ProbeHeader,
        datagram: &[u8],
        received: Stamp<ReflectorClock>,
    ) -> Result<(), DropReason> {
        let newest = self.window.newest();
        let counter = self.accept(header, datagram, received)?;
        self.stream.packets += 1;
        self.stream.bytes += datagram.len() as u64;
        self.stream.reordered += u64::from(counter < newest);
        Ok(())
    }

    /// Counts a train whose packets are all of the agreed size, genuine, in order and newer than any before. Otherwise
    /// returns false without a change: each packet is to be counted by itself.
    #[inline]
    fn count_train(&mut self, train: Train<'_>, received: Stamp<ReflectorClock>) -> bool {
        let newest = self.window.newest();
        let first = extend_receive_counter(newest, REPLAY_WINDOW, train.counter_low());
        let keys = self.keys.as_ref();
        let plausible = keys.is_some() || first.saturating_sub(newest) < KEYLESS_JUMP_MAX;
        let fits = train.each_bytes() == self.terms.size_bytes as usize && first > newest && plausible;
        if !fits || !train.verify(keys.map(|keys| &keys.probes), first) {
            return false;
        }
        let packets = train.packets();
        self.window.mark_newer(first, first + (packets - 1));
        self.stream.packets += packets;
        self.stream.bytes += packets * train.each_bytes() as u64;
        self.touch(received);
        true
    }

    /// The reply to `poll`: the counts so far and the state of the `receiver`; `None` if the POLL was answered before.
    pub(super) fn tally(
        &mut self,
        poll: &StreamPoll,
        received: Stamp<ReflectorClock>,
        receiver: ReceiverState,
    ) -> Option<StreamTally> {
        if poll.number <= self.stream.polled {
            return None;
        }
        self.stream.polled = poll.number;
        self.touch(received);
        let (stream, counts) = (self.stream, self.counts);
        // What the driver answers is not in the window.
        let any = stream.packets + counts.answered > 0 && !self.terms.in_driver;
        let cpu = receiver.thread_cpu.zip(self.at_opening.thread_cpu).filter(|_| poll.wants_cpu);
        Some(StreamTally {
            session: self.session,
            nonce: self.nonce,
            number: poll.number,
            at: received,
            packets: stream.packets,
            bytes: stream.bytes,
            spanned: if any { self.window.newest().saturating_add(1) } else { 0 },
            reordered: stream.reordered,
            seen_before: counts.seen_before,
            left_window: counts.left_window,
            forged: counts.forged,
            wrong_size: counts.wrong_size,
            socket_drops: receiver.socket_drops,
            drops_merged: receiver.drops_merged,
            cpu: cpu.map(|(now, then)| now - then),
        })
    }

    /// The counter of a datagram that is of the agreed size, genuine and new. It ends the session's idle time.
    #[inline]
    fn accept(
        &mut self,
        header: ProbeHeader,
        datagram: &[u8],
        received: Stamp<ReflectorClock>,
    ) -> Result<u64, DropReason> {
        if datagram.len() != self.terms.size_bytes as usize {
            self.counts.wrong_size += 1;
            return Err(DropReason::WrongSize);
        }
        if self.terms.in_driver {
            self.counts.forged += 1;
            return Err(DropReason::NotInDriver);
        }
        let counter = extend_receive_counter(self.window.newest(), REPLAY_WINDOW, header.counter_low);
        let keys = self.keys.as_ref();
        let plausible = keys.is_some() || counter.saturating_sub(self.window.newest()) < KEYLESS_JUMP_MAX;
        if !plausible || !header.verify(keys.map(|keys| &keys.probes), counter, datagram) {
            return Err(self.reject(header, counter, datagram));
        }
        match self.window.mark(counter) {
            ReplayVerdict::New => {}
            ReplayVerdict::Duplicate => {
                self.counts.seen_before += 1;
                return Err(DropReason::SeenBefore);
            }
            ReplayVerdict::BelowWindow => {
                self.counts.left_window += 1;
                return Err(DropReason::LeftWindow);
            }
        }
        self.touch(received);
        Ok(counter)
    }

    /// Distinguishes a datagram below the window, whose counter was extended to the next 2^32, from a forged one.
    #[cold]
    fn reject(&mut self, header: ProbeHeader, counter: u64, datagram: &[u8]) -> DropReason {
        let key = self.keys.as_ref().map(|keys| &keys.probes);
        let genuine = counter.checked_sub(1 << 32).is_some_and(|older| header.verify(key, older, datagram));
        if genuine {
            self.counts.left_window += 1;
            DropReason::LeftWindow
        } else {
            self.counts.forged += 1;
            DropReason::Tag
        }
    }
}

/// Sessions that were closed because their time had passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ExpiredSessions {
    pub(super) confirmed: u64,
    pub(super) unconfirmed: u64,
}

/// All slots. Their number is a power of two, so that a session number leads to its slot by a mask.
#[derive(Debug)]
pub(super) struct SessionTable {
    slots: Box<[SessionSlot]>,
    /// Whether an open session may have stream terms: looking at all slots takes 25 µs.
    has_streams: bool,
}

impl SessionTable {
    /// A table for at least `sessions` sessions.
    pub(super) fn new(sessions: u16) -> SessionTable {
        let slots = sessions.clamp(1, 1 << 15).next_power_of_two();
        SessionTable { slots: (0..slots).map(|index| SessionSlot::new(index, slots)).collect(), has_streams: false }
    }

    /// Checks and counts a probe in its session.
    #[inline]
    pub(super) fn accept_probe(
        &mut self,
        datagram: &[u8],
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> Result<Reflection, DropReason> {
        let header = ProbeHeader::parse(datagram, MessageType::Probe)?;
        self.find(header.session, from, received)?.accept_probe(header, datagram, received)
    }

    /// Checks and counts a packet of a stream in its session.
    #[inline]
    pub(super) fn count(
        &mut self,
        datagram: &[u8],
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> Result<(), DropReason> {
        let header = ProbeHeader::parse(datagram, MessageType::Data)?;
        self.find(header.session, from, received)?.count(header, datagram, received)
    }

    /// [`SessionSlot::count_train`] in the session of `train`.
    #[inline]
    pub(super) fn count_train(&mut self, train: Train<'_>, from: SocketAddr, received: Stamp<ReflectorClock>) -> bool {
        self.find(train.session(), from, received).is_ok_and(|slot| slot.count_train(train, received))
    }

    /// The slot of `session`, if that is open, not expired, and of the sender `from`.
    #[inline]
    pub(super) fn find(
        &mut self,
        session: u16,
        from: SocketAddr,
        now: Stamp<ReflectorClock>,
    ) -> Result<&mut SessionSlot, DropReason> {
        let slot = self.slot_mut(session);
        if slot.session != session || slot.state != SlotState::Open {
            return Err(DropReason::NoSession);
        }
        if slot.address != from {
            return Err(DropReason::WrongAddress);
        }
        if slot.is_expired(now) {
            return Err(DropReason::Ended);
        }
        Ok(slot)
    }

    /// The slot that `session` has or would have.
    #[inline]
    pub(super) fn slot_mut(&mut self, session: u16) -> &mut SessionSlot {
        let mask = self.slots.len() - 1;
        &mut self.slots[usize::from(session) & mask]
    }

    /// The slot whose session, open or closed, was opened with `nonce` from `address`.
    pub(super) fn opened_by(&self, nonce: &Nonce, address: SocketAddr) -> Option<&SessionSlot> {
        self.slots.iter().find(|slot| slot.nonce == *nonce && slot.address == address)
    }

    /// The sessions whose probes are answered in the network driver.
    pub(super) fn in_driver(&self, now: Stamp<ReflectorClock>) -> impl Iterator<Item = DriverSession> {
        self.slots.iter().filter_map(move |slot| slot.in_driver(now))
    }

    /// Takes over what the program has counted in `session`, and returns what is new (answers, probes seen before, probes
    /// below the window) and the size of each probe.
    pub(super) fn set_driver_counts(&mut self, session: u16, counts: &DriverCounts) -> ([u64; 3], u32) {
        let slot = self.slot_mut(session);
        let is_current = slot.session == session && slot.terms.in_driver && slot.is_open();
        let new = if is_current { slot.set_driver_counts(counts) } else { [0; 3] };
        (new, slot.terms.size_bytes)
    }

    /// Closes expired sessions and returns the number of those that were confirmed and of those that were not.
    pub(super) fn close_expired(&mut self, now: Stamp<ReflectorClock>) -> ExpiredSessions {
        let mut closed = ExpiredSessions::default();
        for slot in self.slots.iter_mut().filter(|slot| slot.is_open() && slot.is_expired(now)) {
            slot.state = SlotState::Closed;
            closed.confirmed += u64::from(slot.confirmed);
            closed.unconfirmed += u64::from(!slot.confirmed);
        }
        closed
    }

    /// Whether a session is open that is not confirmed yet; `prefix`: of this prefix.
    pub(super) fn has_unconfirmed(&self, prefix: Option<u64>) -> bool {
        self.slots.iter().any(|slot| slot.is_unconfirmed() && slot.is_of(prefix))
    }

    /// Closes the oldest of the sessions that are not confirmed yet, and returns whether there was one; `prefix`: of this
    /// prefix.
    pub(super) fn close_unconfirmed(&mut self, prefix: Option<u64>) -> bool {
        let unconfirmed = self.slots.iter_mut().filter(|slot| slot.is_unconfirmed() && slot.is_of(prefix));
        unconfirmed.min_by_key(|slot| slot.last_probe).map(|slot| slot.state = SlotState::Closed).is_some()
    }

    /// Closes `session` if it is open and not confirmed yet, and returns whether it was.
    pub(super) fn close_if_unconfirmed(&mut self, session: u16) -> bool {
        let slot = self.slot_mut(session);
        let closes = slot.session == session && slot.is_unconfirmed();
        if closes {
            slot.state = SlotState::Closed;
        }
        closes
    }

    /// Whether `address` has an open session that is not expired.
    pub(super) fn has_session(&self, address: SocketAddr, now: Stamp<ReflectorClock>) -> bool {
        self.open().any(|slot| slot.address == address && !slot.is_expired(now))
    }

    /// Closes the sessions of `address` and returns their number.
    pub(super) fn close_all_of(&mut self, address: SocketAddr) -> u64 {
        let closed = self.slots.iter_mut().filter(|slot| slot.is_open() && slot.address == address);
        closed.map(|slot| slot.state = SlotState::Closed).count() as u64
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &SessionSlot> + '_ {
        self.slots.iter().filter(|slot| slot.is_open())
    }

    /// The stream terms that the socket has to fulfil for all open sessions.
    pub(super) fn required_terms(&mut self, now: Stamp<ReflectorClock>) -> SocketTerms {
        if !self.has_streams {
            return SocketTerms::NONE;
        }
        let has_streams = self.open().any(|slot| slot.terms.socket != SocketTerms::NONE);
        self.has_streams = has_streams;
        self.slots.iter().map(|slot| slot.required_terms(now)).fold(SocketTerms::NONE, SocketTerms::or)
    }

    /// Whether every open session is a stream, but for silent ones: a sender that was killed leaves its session open.
    pub(super) fn has_streams_only(&self, now: Stamp<ReflectorClock>) -> bool {
        let mut confirmed = self.open().filter(|slot| slot.confirmed);
        confirmed.all(|slot| slot.terms.socket.batched || slot.is_silent(now))
    }

    /// Open sessions from the prefix of `address`; 0 for loopback, which is exempt.
    pub(super) fn open_from(&self, address: IpAddr) -> usize {
        let Some(prefix) = prefix_of(address) else { return 0 };
        self.open().filter(|slot| prefix_of(slot.address.ip()) == Some(prefix)).count()
    }

    /// Puts a session into the closed slot that was idle the longest; `None` if all are open. `keys` makes the keys for
    /// its number.
    pub(super) fn insert(
        &mut self,
        new: NewSession,
        keys: impl FnOnce(u16) -> Option<SessionKeys>,
    ) -> Option<&SessionSlot> {
        let slots = self.slots.len() as u16;
        let closed = self.slots.iter_mut().filter(|slot| !slot.is_open());
        let slot = closed.min_by_key(|slot| slot.last_probe)?;
        let number = slot.session.wrapping_add(slots);
        self.has_streams |= new.terms.socket != SocketTerms::NONE;
        slot.begin(number, new, keys(number));
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().expect("an address"), 4_000)
    }

    fn insert(table: &mut SessionTable, address: &str, nonce: u8, now: i64) -> Option<u16> {
        let terms = Terms {
            size_bytes: 24,
            duration: Nanos::from_secs(60),
            idle: Nanos::from_secs(10),
            socket: SocketTerms { batched: nonce == 2, unchecked: nonce == 1, stamped: false },
            ..Terms::default()
        };
        let (nonce, reflector_nonce) = ([nonce; 16], [0; 16]);
        let (at, receiver) = (Stamp::from_nanos(now), ReceiverState::default());
        let new = NewSession { address: from(address), nonce, reflector_nonce, terms, at, receiver };
        table.insert(new, |_| None).map(|slot| slot.session)
    }

    #[test]
    fn open_sessions_are_counted_by_prefix_but_for_loopback() {
        let mut table = SessionTable::new(8);
        for (nonce, address) in
            ["192.0.2.1", "192.0.2.200", "192.0.3.1", "::ffff:192.0.2.9", "2001:db8::1", "127.0.0.1"].iter().enumerate()
        {
            insert(&mut table, address, nonce as u8, 0).expect("a free slot");
        }
        let open_from = |address: &str| table.open_from(from(address).ip());
        assert_eq!(open_from("192.0.2.7"), 3);
        assert_eq!(open_from("192.0.3.7"), 1);
        assert_eq!(open_from("2001:db8::ffff"), 1);
        assert_eq!(open_from("2001:db8:0:1::1"), 0);
        assert_eq!(open_from("127.0.0.1"), 0);
        assert_eq!(table.open().count(), 6);
    }

    #[test]
    fn all_sessions_of_one_address_are_closed_and_no_others() {
        let mut table = SessionTable::new(4);
        for (nonce, address) in ["192.0.2.1", "192.0.2.2", "192.0.2.1"].iter().enumerate() {
            insert(&mut table, address, nonce as u8, 0).expect("a free slot");
        }
        assert_eq!(table.close_all_of(from("192.0.2.1")), 2);
        let is_open = |address| table.has_session(from(address), Stamp::from_nanos(0));
        assert_eq!((is_open("192.0.2.1"), is_open("192.0.2.2")), (false, true));
    }

    #[test]
    fn a_session_number_is_reused_only_after_all_others_of_its_slot() {
        let mut table = SessionTable::new(2);
        let mut seen = std::collections::HashSet::new();
        for round in 0..u64::from(u16::MAX) + 1 {
            let session = insert(&mut table, "127.0.0.1", round as u8, round as i64).expect("a free slot");
            assert!(seen.insert(session), "{session} again in round {round}");
            table.slot_mut(session).state = SlotState::Closed;
        }
    }

    #[test]
    fn an_expired_session_frees_its_slot_and_an_open_one_does_not() {
        let mut table = SessionTable::new(2);
        insert(&mut table, "127.0.0.1", 1, 0).expect("a free slot");
        insert(&mut table, "127.0.0.1", 2, Nanos::from_secs(5).0).expect("a free slot");
        assert_eq!(insert(&mut table, "127.0.0.1", 3, Nanos::from_secs(5).0), None);
        let expired = table.close_expired(Stamp::from_nanos(Nanos::from_secs(11).0));
        assert_eq!(expired, ExpiredSessions { confirmed: 1, unconfirmed: 0 });
        assert!(insert(&mut table, "127.0.0.1", 3, Nanos::from_secs(11).0).is_some());
        assert_eq!(table.opened_by(&[1; 16], from("127.0.0.1")).map(|slot| slot.state), None);
        assert_eq!(table.opened_by(&[2; 16], from("127.0.0.1")).map(|slot| slot.state), Some(SlotState::Open));
    }

    #[test]
    fn one_open_session_of_probes_is_enough_to_have_more_than_streams() {
        let mut table = SessionTable::new(4);
        insert(&mut table, "127.0.0.1", 2, 0).expect("a free slot");
        let at = |seconds: i64| Stamp::from_nanos(Nanos::from_secs(seconds).0);
        assert!(table.has_streams_only(at(1)));
        let probes = insert(&mut table, "127.0.0.1", 3, 0).expect("a free slot");
        assert!(!table.has_streams_only(at(10)));
        assert!(table.has_streams_only(at(11)), "the sender of the probes was killed");
        table.slot_mut(probes).state = SlotState::Closed;
        assert!(table.has_streams_only(at(1)));
    }

    #[test]
    fn the_socket_fulfils_the_terms_of_all_open_sessions() {
        let mut table = SessionTable::new(4);
        let required = |table: &mut SessionTable, seconds| {
            let terms = table.required_terms(Stamp::from_nanos(Nanos::from_secs(seconds).0));
            (terms.batched, terms.unchecked)
        };
        insert(&mut table, "127.0.0.1", 3, 0).expect("a free slot");
        assert_eq!(required(&mut table, 0), (false, false));
        insert(&mut table, "127.0.0.1", 1, 0).expect("a free slot");
        let batched = insert(&mut table, "127.0.0.1", 2, 0).expect("a free slot");
        assert_eq!(required(&mut table, 10), (true, true));
        assert_eq!(required(&mut table, 11), (false, true), "a silent stream needs no batches");
        table.slot_mut(batched).state = SlotState::Closed;
        assert_eq!(required(&mut table, 5), (false, true));
    }
}
