//! The sending end of a down-stream, at the reflector: the one exception of rule R2 (docs/protocol.md). Pure.

use std::net::SocketAddr;

use super::reflector::SessionReflector;
use super::slot::SessionSlot;
use crate::units::{Nanos, ReflectorClock, Stamp};
use crate::wire::{ProbeHeader, StreamTally, TagKey, Terms};

/// Nothing is sent when the last fresh credit is older than this.
const CREDIT_LASTS: Nanos = Nanos::from_secs(1);
/// Credit further ahead than so long at the granted rate is not used: a path that lost its other end is flooded for so
/// long at most.
const CREDIT_AHEAD: Nanos = Nanos::from_secs(1);
/// What lies further back than this is given up, not sent in one lump.
const BACKLOG: Nanos = Nanos::from_millis(10);

/// What is to be done for a down-stream at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownDue {
    /// Send these first bytes of the buffer to that address.
    Packet {
        /// How many.
        bytes: usize,
        /// The address that its session was opened from.
        to: SocketAddr,
    },
    /// The next packet is due after so long.
    In(Nanos),
    /// Nothing may be sent before a credit comes.
    Nothing,
}

/// One down-stream: whose, how fast, and what it may still send.
#[derive(Clone, Debug)]
pub(super) struct DownSource {
    pub(super) session: u16,
    pub(super) to: SocketAddr,
    /// No down-stream without a key.
    key: TagKey,
    size_bytes: u32,
    gap: Nanos,
    next_due: Stamp<ReflectorClock>,
    /// Bytes that may have been sent, all together.
    credit_bytes: u64,
    credited_at: Option<Stamp<ReflectorClock>>,
    sent_packets: u64,
}

impl DownSource {
    /// A stream of packets of `size_bytes`, `gap` apart, that may not send anything yet.
    fn new(session: u16, to: SocketAddr, key: TagKey, size_bytes: u32, gap: Nanos) -> DownSource {
        let (next_due, gap) = (Stamp::from_nanos(i64::MIN / 2), Nanos(gap.0.max(1)));
        DownSource { session, to, key, size_bytes, gap, next_due, credit_bytes: 0, credited_at: None, sent_packets: 0 }
    }

    /// The down-stream that the session in `slot` is; none where it is none, or there is no key.
    pub(super) fn of(slot: &SessionSlot) -> Option<DownSource> {
        let terms = slot.terms;
        let key = slot.keys.as_ref().filter(|_| terms.down)?.answers;
        Some(DownSource::new(slot.session, slot.address, key, terms.size_bytes, terms.interval))
    }

    /// `tally` of its session, as the answer to a POLL with this credit: what was sent stands where counts stand.
    pub(super) fn told(&mut self, tally: StreamTally, credit_bytes: u64) -> StreamTally {
        self.credited(credit_bytes, tally.at);
        let (packets, bytes) = (self.sent_packets, self.sent_bytes());
        StreamTally { packets, bytes, spanned: packets, ..tally }
    }

    /// Bytes of UDP payload that were sent.
    fn sent_bytes(&self) -> u64 {
        self.sent_packets * u64::from(self.size_bytes)
    }

    /// A fresh credit came at `now`: `credit_bytes` may be sent since the session was opened.
    fn credited(&mut self, credit_bytes: u64, now: Stamp<ReflectorClock>) {
        // Who had to wait for credit is not behind: a backlog in one lump is no pace.
        if !self.may_send(now) {
            self.next_due = self.next_due.max(now);
        }
        let ahead_packets = (CREDIT_AHEAD.0 / self.gap.0).max(1) as u64;
        let usable = self.sent_bytes().saturating_add(ahead_packets.saturating_mul(u64::from(self.size_bytes)));
        self.credit_bytes = self.credit_bytes.max(credit_bytes.min(usable));
        self.credited_at = Some(now);
    }

    /// Whether there is credit for a packet, and it is fresh.
    fn may_send(&self, now: Stamp<ReflectorClock>) -> bool {
        let is_fresh = self.credited_at.is_some_and(|then| now - then <= CREDIT_LASTS);
        is_fresh && self.sent_bytes() + u64::from(self.size_bytes) <= self.credit_bytes
    }

    /// What is due at `now`; a packet is written into `buffer`, and counts as sent.
    pub(super) fn due(&mut self, now: Stamp<ReflectorClock>, buffer: &mut [u8]) -> DownDue {
        if !self.may_send(now) {
            return DownDue::Nothing;
        }
        if now < self.next_due {
            return DownDue::In(self.next_due - now);
        }
        let Some(packet) = buffer.get_mut(..self.size_bytes as usize) else { return DownDue::Nothing };
        ProbeHeader::write_down(self.session, self.sent_packets, &self.key, packet);
        self.sent_packets += 1;
        self.next_due = (self.next_due + self.gap).max(now - BACKLOG);
        DownDue::Packet { bytes: packet.len(), to: self.to }
    }
}

/// The part of a reflector that sends.
impl SessionReflector {
    /// What is due of its down-stream at `now`, if there is one: a packet is written into `buffer`, and counts as sent.
    #[inline]
    pub fn down_due(&mut self, now: Stamp<ReflectorClock>, buffer: &mut [u8]) -> DownDue {
        let Some(down) = &mut self.down else { return DownDue::Nothing };
        if self.table.running(down.session, down.to, now).is_err() {
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

    /// Whom its down-stream goes to; none where there is none.
    #[inline]
    pub fn gives_to(&self) -> Option<SocketAddr> {
        self.down.as_ref().map(|down| down.to)
    }

    /// Whether another down-stream may be opened: there is a key, it is allowed, and none is open.
    pub(super) fn may_go_down(&mut self, now: Stamp<ReflectorClock>) -> bool {
        let busy = self.down.as_ref().is_some_and(|down| self.table.running(down.session, down.to, now).is_ok());
        !busy && self.down_limit_bps() > 0
    }

    /// The rate that a down-stream may have, in bits of UDP payload a second: 0 without a key, whatever is allowed.
    pub(super) fn down_limit_bps(&self) -> u64 {
        if self.setup.is_some() { self.limits.down_bps } else { 0 }
    }

    /// `terms` with a gap that keeps a down-stream to the rate that is allowed, if they are those of one.
    pub(super) fn paced(&self, terms: Terms) -> Terms {
        if !terms.down {
            return terms;
        }
        let bits_ns = u128::from(terms.size_bytes) * 8 * 1_000_000_000;
        let least = bits_ns.div_ceil(u128::from(self.down_limit_bps().max(1)));
        let least = Nanos(i64::try_from(least).unwrap_or(i64::MAX));
        Terms { interval: terms.interval.max(least), ..terms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(gap: Nanos) -> DownSource {
        let to = SocketAddr::from(([127, 0, 0, 1], 4_000));
        DownSource::new(7, to, TagKey::new(&[1; 16]), 100, gap)
    }

    fn at(millis: i64) -> Stamp<ReflectorClock> {
        Stamp::from_nanos(Nanos::from_millis(millis).0)
    }

    /// Sends whatever is due from `from` to `until`, looking every 100 µs; when the last packet left.
    fn drain(source: &mut DownSource, from: i64, until: i64) -> (u64, Option<i64>) {
        let (mut buffer, mut sent, mut last) = ([0; 100], 0, None);
        for look in from * 10..until * 10 {
            let now = Stamp::from_nanos(look * 100_000);
            while let DownDue::Packet { .. } = source.due(now, &mut buffer) {
                (sent, last) = (sent + 1, Some(look / 10));
            }
        }
        (sent, last)
    }

    #[test]
    fn without_credit_nothing_is_sent_and_never_more_than_it() {
        let mut source = source(Nanos::from_millis(1));
        assert_eq!(drain(&mut source, 0, 100), (0, None));
        source.credited(1_050, at(100));
        assert_eq!(drain(&mut source, 100, 200).0, 10, "half a packet is none");
        source.credited(1_099, at(200));
        assert_eq!(drain(&mut source, 200, 300).0, 0);
        source.credited(0, at(300));
        source.credited(1_100, at(300));
        assert_eq!((drain(&mut source, 300, 400).0, source.sent_bytes()), (1, 1_100));
    }

    #[test]
    fn it_stops_a_second_after_the_last_credit_and_keeps_its_pace() {
        let mut source = source(Nanos::from_millis(1));
        source.credited(u64::MAX, at(0));
        let (sent, last) = drain(&mut source, 0, 3_000);
        assert!((1_000..1_012).contains(&sent), "{sent}: a second of the rate, and the backlog of the first look");
        assert!(last.is_some_and(|last| last <= 1_000), "{last:?}");
        // Credit is left, but it is stale.
        source.credited(u64::MAX, at(1_500));
        assert_eq!(drain(&mut source, 2_501, 3_000).0, 0);
        // A credit of centuries is used for a second only.
        source.credited(u64::MAX, at(3_000));
        let more = drain(&mut source, 3_000, 3_900).0;
        assert!((900..915).contains(&more), "{more}");
    }

    #[test]
    fn who_waited_for_credit_goes_on_at_the_pace() {
        let mut source = source(Nanos::from_millis(1));
        for (from, credit_bytes) in [(100, 2_000), (600, 4_000)] {
            source.credited(credit_bytes, at(from));
            assert_eq!(drain(&mut source, from, from + 10).0, 10, "{from} ms");
            assert_eq!(drain(&mut source, from + 10, from + 200).0, 10, "{from} ms");
        }
    }

    #[test]
    fn what_a_stall_held_up_is_not_sent_in_one_lump() {
        let mut source = source(Nanos::from_millis(1));
        source.credited(1_000_000, at(0));
        let before = drain(&mut source, 0, 100).0;
        let after = drain(&mut source, 600, 601).0;
        assert!(before >= 100 && after <= 12, "{before} {after}");
    }
}
