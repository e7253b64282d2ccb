//! The sessions of a reflector: a table made once that never grows.

use std::net::{IpAddr, SocketAddr};

use super::counters::DropReason;
use super::slot::{NewSession, SessionSlot, SlotState};
use crate::transport::prefix::prefix_of;
use crate::units::{ReflectorClock, Stamp};
use crate::wire::{MessageType, Nonce, ProbeHeader, Reflection, SessionKeys, StreamTerms, Train};

/// All slots. Their number is a power of two, so that a session number leads to its slot by a mask.
#[derive(Debug)]
pub(super) struct SessionTable {
    slots: Box<[SessionSlot]>,
    /// Whether any open session may need something of the socket: looking at all of them takes 25 µs.
    streams: bool,
}

impl SessionTable {
    /// A table for at least `sessions` sessions.
    pub(super) fn new(sessions: u16) -> SessionTable {
        let slots = sessions.clamp(1, 1 << 15).next_power_of_two();
        SessionTable { slots: (0..slots).map(SessionSlot::new).collect(), streams: false }
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

    /// Lets the session of `train` count it, as [`Slot::count_train`] does.
    #[inline]
    pub(super) fn count_train(&mut self, train: Train<'_>, from: SocketAddr, received: Stamp<ReflectorClock>) -> bool {
        self.running(train.session(), from, received).is_ok_and(|slot| slot.count_train(train, received))
    }

    /// The slot of `session`, if that is open, not over, and `from`'s.
    #[inline]
    pub(super) fn running(
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
        if slot.is_over(now) {
            return Err(DropReason::Ended);
        }
        Ok(slot)
    }

    /// The slot where `session` is or would be.
    #[inline]
    pub(super) fn slot_mut(&mut self, session: u16) -> &mut SessionSlot {
        let mask = self.slots.len() - 1;
        &mut self.slots[usize::from(session) & mask]
    }

    /// The slot whose session, open or closed, was opened by `nonce` from `address`.
    pub(super) fn opened_by(&self, nonce: &Nonce, address: SocketAddr) -> Option<&SessionSlot> {
        self.slots.iter().find(|slot| slot.nonce == *nonce && slot.address == address)
    }

    /// Closes what is over at `now` and says how many those were.
    pub(super) fn sweep(&mut self, now: Stamp<ReflectorClock>) -> u64 {
        let over = self.slots.iter_mut().filter(|slot| slot.state == SlotState::Open && slot.is_over(now));
        over.map(|slot| slot.state = SlotState::Closed).count() as u64
    }

    /// Whether anybody at `address` has an open session that is not over at `now`.
    pub(super) fn is_open_for(&self, address: SocketAddr, now: Stamp<ReflectorClock>) -> bool {
        let of = |slot: &&SessionSlot| slot.state == SlotState::Open && slot.address == address;
        self.slots.iter().filter(of).any(|slot| !slot.is_over(now))
    }

    /// Closes the sessions of `address` and says how many those were.
    pub(super) fn hang_up(&mut self, address: SocketAddr) -> u64 {
        let of = |slot: &&mut SessionSlot| slot.state == SlotState::Open && slot.address == address;
        self.slots.iter_mut().filter(of).map(|slot| slot.state = SlotState::Closed).count() as u64
    }

    /// Sessions open.
    pub(super) fn open(&self) -> usize {
        self.slots.iter().filter(|slot| slot.state == SlotState::Open).count()
    }

    /// Where the open sessions' senders are.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.slots.iter().filter(|slot| slot.state == SlotState::Open).map(|slot| slot.address)
    }

    /// What the open sessions together need of the socket at `now`.
    pub(super) fn needs(&mut self, now: Stamp<ReflectorClock>) -> StreamTerms {
        if !self.streams {
            return StreamTerms::NONE;
        }
        self.streams = self.slots.iter().any(SessionSlot::streams);
        let needs = self.slots.iter().map(|slot| slot.needs(now));
        needs.fold(StreamTerms::NONE, |all, one| StreamTerms {
            batched: all.batched || one.batched,
            unchecked: all.unchecked || one.unchecked,
        })
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
        keys: impl FnOnce(u16) -> Option<SessionKeys>,
    ) -> Option<&SessionSlot> {
        let generation = self.slots.len() as u16;
        let closed = self.slots.iter_mut().filter(|slot| slot.state == SlotState::Closed);
        let slot = closed.min_by_key(|slot| slot.last_probe)?;
        let number = slot.session.wrapping_add(generation);
        self.streams |= new.terms.stream != StreamTerms::NONE;
        slot.begin(number, new, keys(number));
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::super::slot::ReceiverState;
    use super::*;
    use crate::units::Nanos;
    use crate::wire::Terms;

    fn from(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().expect("an address"), 4_000)
    }

    fn insert(table: &mut SessionTable, address: &str, nonce: u8, now: i64) -> Option<u16> {
        let terms = Terms {
            size_bytes: 24,
            interval: Nanos::ZERO,
            duration: Nanos::from_secs(60),
            idle: Nanos::from_secs(10),
            stream: StreamTerms { batched: nonce == 2, unchecked: nonce == 1 },
            down: false,
        };
        let (nonce, reflector_nonce) = ([nonce; 16], [0; 16]);
        let (at, receiver) = (Stamp::from_nanos(now), ReceiverState::default());
        let new = NewSession { address: from(address), nonce, reflector_nonce, terms, at, receiver };
        table.insert(new, |_| None).map(|slot| slot.session)
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

    #[test]
    fn a_socket_is_as_its_open_sessions_need_it() {
        let mut table = SessionTable::new(4);
        let needs = |table: &mut SessionTable, seconds| {
            let needs = table.needs(Stamp::from_nanos(Nanos::from_secs(seconds).0));
            (needs.batched, needs.unchecked)
        };
        insert(&mut table, "127.0.0.1", 3, 0).expect("room");
        assert_eq!(needs(&mut table, 0), (false, false));
        insert(&mut table, "127.0.0.1", 1, 0).expect("room");
        let batched = insert(&mut table, "127.0.0.1", 2, 0).expect("room");
        assert_eq!(needs(&mut table, 10), (true, true));
        assert_eq!(needs(&mut table, 11), (false, true), "a silent stream needs no batches");
        table.slot_mut(batched).state = SlotState::Closed;
        assert_eq!(needs(&mut table, 5), (false, true));
    }
}
