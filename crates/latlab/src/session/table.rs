//! The sessions of a reflector: a table made once that never grows.

use std::net::{IpAddr, SocketAddr};

use super::counters::DropReason;
use crate::units::{Nanos, ReflectorClock, Stamp};
use crate::wire::{
    Codes, MessageType, Nonce, ProbeHeader, REPLAY_WINDOW, Reflection, ReplayWindow, Report, Seen, SessionKeys, Tally,
    Terms, extend_receive_counter,
};

/// Without a tag nothing shows that a counter was extended rightly: one so far ahead is rather one from long ago.
const KEYLESS_JUMP_MAX: u64 = 1 << 31;

/// Where a slot stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    /// Holds a session.
    Open,
    /// Held one (or none yet); its report can still be asked for until the slot is used again.
    Closed,
}

/// What a session's stream brought; what it was dropped for stands in its report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamCounts {
    packets: u64,
    bytes: u64,
    reordered: u64,
    /// The number of the last POLL that was answered.
    polled: u64,
}

/// A place for a session, and the session in it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) state: SlotState,
    pub(super) session: u16,
    pub(super) address: SocketAddr,
    pub(super) keys: Option<SessionKeys>,
    pub(super) nonce: Nonce,
    pub(super) reflector_nonce: Nonce,
    pub(super) terms: Terms,
    pub(super) counts: Report,
    pub(super) stream: StreamCounts,
    drops_at_opening: Option<u64>,
    ends_at: Stamp<ReflectorClock>,
    last_probe: Stamp<ReflectorClock>,
    window: ReplayWindow,
}

impl Slot {
    fn new(index: u16) -> Slot {
        let never = Stamp::from_nanos(i64::MIN);
        Slot {
            state: SlotState::Closed,
            session: index,
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            keys: None,
            nonce: [0; 16],
            reflector_nonce: [0; 16],
            terms: Terms { size_bytes: 0, interval: Nanos::ZERO, duration: Nanos::ZERO, idle: Nanos::ZERO },
            counts: Report::default(),
            stream: StreamCounts::default(),
            drops_at_opening: None,
            ends_at: never,
            last_probe: never,
            window: ReplayWindow::default(),
        }
    }

    /// The codes of CLOSE and REPORT.
    pub(super) fn close_codes(&self) -> Codes {
        self.keys.as_ref().map_or(Codes::None, |keys| keys.close.clone())
    }

    /// Ends the session, when its socket has dropped `drops` in all; says whether it was still open. The report tells what
    /// was dropped until the first CLOSE, so that a repeated one gets the same.
    pub(super) fn close(&mut self, drops: Option<u64>) -> bool {
        let was_open = self.state == SlotState::Open;
        self.state = SlotState::Closed;
        if self.counts.socket_drops.is_none() {
            let ends = self.drops_at_opening.zip(drops);
            // The kernel counts with 32 bits: so far apart, the difference is right across its overflow.
            self.counts.socket_drops = ends.map(|(then, now)| u64::from((now as u32).wrapping_sub(then as u32)));
        }
        was_open
    }

    #[inline]
    fn is_over(&self, now: Stamp<ReflectorClock>) -> bool {
        now > self.ends_at || now - self.last_probe > self.terms.idle
    }

    /// Judges a probe of this session, and counts it.
    #[inline]
    fn judge(
        &mut self,
        header: ProbeHeader,
        datagram: &[u8],
        received: Stamp<ReflectorClock>,
    ) -> Result<Reflection, DropReason> {
        let counter = self.admit(header, datagram, received)?;
        self.counts.answered += 1;
        let key = self.keys.as_ref().map(|keys| keys.answers);
        Ok(Reflection { session: self.session, counter, key, received, kernel_received: None })
    }

    /// Judges a packet of this session's stream, and counts it.
    #[inline]
    fn count(
        &mut self,
        header: ProbeHeader,
        datagram: &[u8],
        received: Stamp<ReflectorClock>,
    ) -> Result<(), DropReason> {
        let newest = self.window.newest();
        let counter = self.admit(header, datagram, received)?;
        self.stream.packets += 1;
        self.stream.bytes += datagram.len() as u64;
        self.stream.reordered += u64::from(counter < newest);
        Ok(())
    }

    /// Answers POLL `number`: what was counted so far, and that the socket dropped `drops`; none where it was answered
    /// before.
    pub(super) fn tally(&mut self, number: u64, received: Stamp<ReflectorClock>, drops: Option<u64>) -> Option<Tally> {
        if number <= self.stream.polled {
            return None;
        }
        self.stream.polled = number;
        self.last_probe = received;
        let (stream, counts) = (self.stream, self.counts);
        let any = stream.packets + counts.answered > 0;
        Some(Tally {
            session: self.session,
            nonce: self.nonce,
            number,
            at: received,
            packets: stream.packets,
            bytes: stream.bytes,
            spanned: if any { self.window.newest().saturating_add(1) } else { 0 },
            reordered: stream.reordered,
            seen_before: counts.seen_before,
            left_window: counts.left_window,
            forged: counts.forged,
            wrong_size: counts.wrong_size,
            socket_drops: drops,
        })
    }

    /// The counter of a datagram that is as long as agreed, genuine and new, which keeps the session alive.
    #[inline]
    fn admit(
        &mut self,
        header: ProbeHeader,
        datagram: &[u8],
        received: Stamp<ReflectorClock>,
    ) -> Result<u64, DropReason> {
        if datagram.len() != self.terms.size_bytes as usize {
            self.counts.wrong_size += 1;
            return Err(DropReason::WrongSize);
        }
        let counter = extend_receive_counter(self.window.newest(), REPLAY_WINDOW, header.counter_low);
        let keys = self.keys.as_ref();
        let believable = keys.is_some() || counter.saturating_sub(self.window.newest()) < KEYLESS_JUMP_MAX;
        if !believable || !header.verify(keys.map(|keys| &keys.probes), counter, datagram) {
            return Err(self.reject(header, counter, datagram));
        }
        match self.window.mark(counter) {
            Seen::New => {}
            Seen::Before => {
                self.counts.seen_before += 1;
                return Err(DropReason::SeenBefore);
            }
            Seen::LeftWindow => {
                self.counts.left_window += 1;
                return Err(DropReason::LeftWindow);
            }
        }
        self.last_probe = received;
        Ok(counter)
    }

    /// Tells a datagram that is older than the window, which the extension took for one of the next 2^32, from a
    /// forged one.
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

/// What a new session is made of.
pub(super) struct NewSession {
    pub(super) address: SocketAddr,
    pub(super) nonce: Nonce,
    pub(super) reflector_nonce: Nonce,
    pub(super) terms: Terms,
    /// What the socket had dropped by then, modulo 2^32; none where unknown.
    pub(super) socket_drops: Option<u64>,
}

/// All slots. Their number is a power of two, so that a session number leads to its slot by a mask.
#[derive(Debug)]
pub(super) struct SessionTable {
    slots: Box<[Slot]>,
}

impl SessionTable {
    /// A table for at least `sessions` sessions.
    pub(super) fn new(sessions: u16) -> SessionTable {
        let slots = sessions.clamp(1, 1 << 15).next_power_of_two();
        SessionTable { slots: (0..slots).map(Slot::new).collect() }
    }

    /// Judges a probe: finds its session, and lets that judge it.
    #[inline]
    pub(super) fn judge(
        &mut self,
        datagram: &[u8],
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> Result<Reflection, DropReason> {
        let header = ProbeHeader::parse(datagram, MessageType::Probe)?;
        self.running(header.session, from, received)?.judge(header, datagram, received)
    }

    /// Judges a packet of a stream: finds its session, and lets that count it.
    #[inline]
    pub(super) fn count(
        &mut self,
        datagram: &[u8],
        from: SocketAddr,
        received: Stamp<ReflectorClock>,
    ) -> Result<(), DropReason> {
        let header = ProbeHeader::parse(datagram, MessageType::Data)?;
        self.running(header.session, from, received)?.count(header, datagram, received)
    }

    /// The slot of `session`, if that is open, not over, and `from`'s.
    #[inline]
    pub(super) fn running(
        &mut self,
        session: u16,
        from: SocketAddr,
        now: Stamp<ReflectorClock>,
    ) -> Result<&mut Slot, DropReason> {
        let slot = self.slot_mut(session);
        if slot.session != session || slot.state != SlotState::Open {
            return Err(DropReason::NoSession);
        }
        if slot.address != from {
            return Err(DropReason::WrongAddress);
        }
        if slot.is_over(now) {
            return Err(DropReason::Ended);
        }
        Ok(slot)
    }

    /// The slot where `session` is or would be.
    #[inline]
    pub(super) fn slot_mut(&mut self, session: u16) -> &mut Slot {
        let mask = self.slots.len() - 1;
        &mut self.slots[usize::from(session) & mask]
    }

    /// The slot whose session, open or closed, was opened by `nonce` from `address`.
    pub(super) fn opened_by(&self, nonce: &Nonce, address: SocketAddr) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.nonce == *nonce && slot.address == address)
    }

    /// Closes what is over at `now` and says how many those were.
    pub(super) fn sweep(&mut self, now: Stamp<ReflectorClock>) -> u64 {
        let over = self.slots.iter_mut().filter(|slot| slot.state == SlotState::Open && slot.is_over(now));
        over.map(|slot| slot.state = SlotState::Closed).count() as u64
    }

    /// Sessions open.
    pub(super) fn open(&self) -> usize {
        self.slots.iter().filter(|slot| slot.state == SlotState::Open).count()
    }

    /// Where the open sessions' senders are.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.slots.iter().filter(|slot| slot.state == SlotState::Open).map(|slot| slot.address)
    }

    /// Sessions open from the prefix of `address`; none are counted for loopback, which is exempt.
    pub(super) fn open_from(&self, address: IpAddr) -> usize {
        let Some(prefix) = prefix_of(address) else { return 0 };
        let open = self.slots.iter().filter(|slot| slot.state == SlotState::Open);
        open.filter(|slot| prefix_of(slot.address.ip()) == Some(prefix)).count()
    }

    /// Puts a session into the closed slot that was idle the longest; none where all are open. `keys` makes the
    /// keys for its number.
    pub(super) fn insert(
        &mut self,
        new: NewSession,
        now: Stamp<ReflectorClock>,
        keys: impl FnOnce(u16) -> Option<SessionKeys>,
    ) -> Option<&Slot> {
        let generation = self.slots.len() as u16;
        let closed = self.slots.iter_mut().filter(|slot| slot.state == SlotState::Closed);
        let slot = closed.min_by_key(|slot| slot.last_probe)?;
        slot.state = SlotState::Open;
        slot.session = slot.session.wrapping_add(generation);
        slot.keys = keys(slot.session);
        slot.address = new.address;
        slot.nonce = new.nonce;
        slot.reflector_nonce = new.reflector_nonce;
        slot.terms = new.terms;
        slot.counts = Report { session: slot.session, nonce: new.nonce, ..Report::default() };
        slot.stream = StreamCounts::default();
        slot.drops_at_opening = new.socket_drops;
        slot.ends_at = now + new.terms.duration;
        slot.last_probe = now;
        slot.window.clear();
        Some(slot)
    }
}

/// The /24 or /64 of an address as a number; none for loopback.
fn prefix_of(address: IpAddr) -> Option<u64> {
    match address.to_canonical() {
        address if address.is_loopback() => None,
        IpAddr::V4(address) => Some(u64::from(address.to_bits() >> 8)),
        // 2000::/3 and fc00::/7 have high bits set: no /64 in use is as small a number as a /24.
        IpAddr::V6(address) => Some((address.to_bits() >> 64) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().expect("an address"), 4_000)
    }

    fn insert(table: &mut SessionTable, address: &str, nonce: u8, now: i64) -> Option<u16> {
        let terms =
            Terms { size_bytes: 24, interval: Nanos::ZERO, duration: Nanos::from_secs(60), idle: Nanos::from_secs(10) };
        let (nonce, reflector_nonce) = ([nonce; 16], [0; 16]);
        let new = NewSession { address: from(address), nonce, reflector_nonce, terms, socket_drops: None };
        table.insert(new, Stamp::from_nanos(now), |_| None).map(|slot| slot.session)
    }

    #[test]
    fn prefixes_are_counted_and_loopback_is_not() {
        let mut table = SessionTable::new(8);
        for (nonce, address) in
            ["192.0.2.1", "192.0.2.200", "192.0.3.1", "::ffff:192.0.2.9", "2001:db8::1", "127.0.0.1"].iter().enumerate()
        {
            insert(&mut table, address, nonce as u8, 0).expect("room");
        }
        let open_from = |address: &str| table.open_from(from(address).ip());
        assert_eq!(open_from("192.0.2.7"), 3);
        assert_eq!(open_from("192.0.3.7"), 1);
        assert_eq!(open_from("2001:db8::ffff"), 1);
        assert_eq!(open_from("2001:db8:0:1::1"), 0);
        assert_eq!(open_from("127.0.0.1"), 0);
        assert_eq!(table.open(), 6);
    }

    #[test]
    fn a_number_comes_back_only_after_all_generations() {
        let mut table = SessionTable::new(2);
        let mut seen = std::collections::HashSet::new();
        for round in 0..u64::from(u16::MAX) + 1 {
            let session = insert(&mut table, "127.0.0.1", round as u8, round as i64).expect("room");
            assert!(seen.insert(session), "{session} again in round {round}");
            table.slot_mut(session).state = SlotState::Closed;
        }
    }

    #[test]
    fn what_is_over_makes_room_and_what_is_open_does_not() {
        let mut table = SessionTable::new(2);
        insert(&mut table, "127.0.0.1", 1, 0).expect("room");
        insert(&mut table, "127.0.0.1", 2, Nanos::from_secs(5).0).expect("room");
        assert_eq!(insert(&mut table, "127.0.0.1", 3, Nanos::from_secs(5).0), None);
        assert_eq!(table.sweep(Stamp::from_nanos(Nanos::from_secs(11).0)), 1);
        assert!(insert(&mut table, "127.0.0.1", 3, Nanos::from_secs(11).0).is_some());
        assert_eq!(table.opened_by(&[1; 16], from("127.0.0.1")).map(|slot| slot.state), None);
        assert_eq!(table.opened_by(&[2; 16], from("127.0.0.1")).map(|slot| slot.state), Some(SlotState::Open));
    }
}
