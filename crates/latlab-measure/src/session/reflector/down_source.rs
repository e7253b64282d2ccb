//! The sender of a down-stream, at the reflector: the only exception to rule R2 (docs/protocol.md). Pure.

use std::net::SocketAddr;

use crate::units::{Nanos, ReflectorClock, Stamp};
use crate::wire::{ProbeHeader, StreamTally, TagKey};

/// Nothing is sent if the last new credit is older than this.
const CREDIT_LIFETIME: Nanos = Nanos::from_secs(1);
/// The part of a credit beyond so much time at the granted rate is not used: after the other end is lost the path is
/// flooded for so long at most.
const CREDIT_AHEAD: Nanos = Nanos::from_secs(1);
/// Packets overdue by more than this are given up and not sent in a burst.
const BACKLOG: Nanos = Nanos::from_millis(10);

/// The action that a down-stream requires at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownDue {
    /// Send the first `bytes` of the buffer.
    Packet {
        /// The length of the packet.
        bytes: usize,
        /// The address that opened the session.
        to: SocketAddr,
    },
    /// The next packet is due after so long.
    In(Nanos),
    /// Nothing may be sent without new credit.
    Nothing,
}

/// A down-stream: its session, its rate and its credit.
#[derive(Clone, Debug)]
pub(super) struct DownSource {
    pub(super) session: u16,
    pub(super) to: SocketAddr,
    key: TagKey,
    size_bytes: u32,
    gap: Nanos,
    next_due: Stamp<ReflectorClock>,
    /// Bytes that may be sent since the session was opened.
    credit_bytes: u64,
    credited_at: Option<Stamp<ReflectorClock>>,
    sent_packets: u64,
}

impl DownSource {
    /// A stream of packets of `size_bytes`, `gap` apart, without credit.
    pub(super) fn new(session: u16, to: SocketAddr, key: TagKey, size_bytes: u32, gap: Nanos) -> DownSource {
        let (next_due, gap) = (Stamp::from_nanos(i64::MIN / 2), Nanos(gap.0.max(1)));
        DownSource { session, to, key, size_bytes, gap, next_due, credit_bytes: 0, credited_at: None, sent_packets: 0 }
    }

    /// Takes the credit of a POLL, and returns its reply: `tally` with sent packets in the place of counted ones.
    pub(super) fn answer_poll(&mut self, tally: StreamTally, credit_bytes: u64) -> StreamTally {
        self.add_credit(credit_bytes, tally.at);
        let (packets, bytes) = (self.sent_packets, self.sent_bytes());
        StreamTally { packets, bytes, spanned: packets, ..tally }
    }

    fn sent_bytes(&self) -> u64 {
        self.sent_packets * u64::from(self.size_bytes)
    }

    /// A new credit came at `now`: `credit_bytes` may be sent since the session was opened.
    fn add_credit(&mut self, credit_bytes: u64, now: Stamp<ReflectorClock>) {
        // After a wait for credit the pace begins anew, without a backlog.
        if !self.may_send(now) {
            self.next_due = self.next_due.max(now);
        }
        let ahead_packets = (CREDIT_AHEAD.0 / self.gap.0).max(1) as u64;
        let usable = self.sent_bytes().saturating_add(ahead_packets.saturating_mul(u64::from(self.size_bytes)));
        self.credit_bytes = self.credit_bytes.max(credit_bytes.min(usable));
        self.credited_at = Some(now);
    }

    /// Whether there is credit for a packet, and it is new enough.
    fn may_send(&self, now: Stamp<ReflectorClock>) -> bool {
        let is_valid = self.credited_at.is_some_and(|then| now - then <= CREDIT_LIFETIME);
        is_valid && self.sent_bytes() + u64::from(self.size_bytes) <= self.credit_bytes
    }

    /// The action that is due at `now`; a packet is written into `buffer` and counts as sent.
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

    /// The last packet did not leave, and is due again: counters have no gaps. Returns its bytes.
    pub(super) fn take_back(&mut self) -> u64 {
        self.sent_packets -= 1;
        self.next_due = self.next_due - self.gap;
        u64::from(self.size_bytes)
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

    /// Sends all that is due from `from` to `until`, in steps of 100 µs: the number of packets, and when the last one was
    /// sent.
    fn drain(source: &mut DownSource, from: i64, until: i64) -> (u64, Option<i64>) {
        let (mut buffer, mut sent, mut last) = ([0; 100], 0, None);
        for step in from * 10..until * 10 {
            let now = Stamp::from_nanos(step * 100_000);
            while let DownDue::Packet { .. } = source.due(now, &mut buffer) {
                (sent, last) = (sent + 1, Some(step / 10));
            }
        }
        (sent, last)
    }

    #[test]
    fn never_more_than_the_credit_is_sent() {
        let mut source = source(Nanos::from_millis(1));
        assert_eq!(drain(&mut source, 0, 100), (0, None));
        source.add_credit(1_050, at(100));
        assert_eq!(drain(&mut source, 100, 200).0, 10, "half a packet is not sent");
        source.add_credit(1_099, at(200));
        assert_eq!(drain(&mut source, 200, 300).0, 0);
        source.add_credit(0, at(300));
        source.add_credit(1_100, at(300));
        assert_eq!((drain(&mut source, 300, 400).0, source.sent_bytes()), (1, 1_100));
    }

    #[test]
    fn sending_keeps_its_pace_and_stops_a_second_after_the_last_credit() {
        let mut source = source(Nanos::from_millis(1));
        source.add_credit(u64::MAX, at(0));
        let (sent, last) = drain(&mut source, 0, 3_000);
        assert!((1_000..1_012).contains(&sent), "{sent}: a second of the rate, and the backlog of the first step");
        assert!(last.is_some_and(|last| last <= 1_000), "{last:?}");
        // Credit is left, but too old.
        source.add_credit(u64::MAX, at(1_500));
        assert_eq!(drain(&mut source, 2_501, 3_000).0, 0);
        // Of a larger credit only a second's worth is used.
        source.add_credit(u64::MAX, at(3_000));
        let more = drain(&mut source, 3_000, 3_900).0;
        assert!((900..915).contains(&more), "{more}");
    }

    #[test]
    fn the_pace_continues_after_a_wait_for_credit() {
        let mut source = source(Nanos::from_millis(1));
        for (from, credit_bytes) in [(100, 2_000), (600, 4_000)] {
            source.add_credit(credit_bytes, at(from));
            assert_eq!(drain(&mut source, from, from + 10).0, 10, "{from} ms");
            assert_eq!(drain(&mut source, from + 10, from + 200).0, 10, "{from} ms");
        }
    }

    #[test]
    fn a_stall_is_not_followed_by_a_burst() {
        let mut source = source(Nanos::from_millis(1));
        source.add_credit(1_000_000, at(0));
        let before = drain(&mut source, 0, 100).0;
        let after = drain(&mut source, 600, 601).0;
        assert!(before >= 100 && after <= 12, "{before} {after}");
    }
}
