//! The ring between the hot loop and the writer thread: one producer, one consumer, no lock, no wait.
//!
//! An event is eight words, one cache line. The producer writes the words of a slot relaxed and publishes them with a
//! release store of `head`; the consumer frees slots with one of `tail`. The words are atomics, so that a race would
//! read an old word and is never undefined behaviour; the two indices prevent it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use super::event::{EVENT_WORDS, SpoolEvent};
use crate::units::{Nanos, SenderClock, Stamp};

#[repr(align(64))]
struct Slot([AtomicU64; EVENT_WORDS]);

/// An index in cache lines of its own, so that the two sides do not share one (two lines, since adjacent ones are
/// fetched in pairs).
#[repr(align(128))]
struct Index(AtomicU64);

/// The state that both sides share.
pub(crate) struct EventRing {
    slots: Box<[Slot]>,
    head: Index,
    tail: Index,
    dropped: AtomicU64,
    pending_gap_events: AtomicU64,
    pending_gap_since: AtomicI64,
    closed: AtomicBool,
}

impl EventRing {
    /// A ring of `capacity` slots (a power of two). Every page is touched, and locked as far as the process may, so
    /// that it stays resident.
    fn new(capacity: usize) -> EventRing {
        assert!(capacity.is_power_of_two(), "the ring's capacity is a power of two");
        let slots: Box<[Slot]> = (0..capacity).map(|_| Slot(Default::default())).collect();
        // A store of zero could be folded into a lazily zeroed allocation.
        slots.iter().for_each(|slot| slot.0[0].store(u64::MAX, Ordering::Relaxed));
        lock_pages(&slots);
        EventRing {
            slots,
            head: Index(AtomicU64::new(0)),
            tail: Index(AtomicU64::new(0)),
            dropped: AtomicU64::new(0),
            pending_gap_events: AtomicU64::new(0),
            pending_gap_since: AtomicI64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    #[inline]
    fn slot(&self, index: u64) -> &Slot {
        &self.slots[index as usize & (self.slots.len() - 1)]
    }
}

/// Locks in pieces: the usual limit of an unprivileged process is 8 MiB, so a ring of that size that begins within a
/// page would be refused as a whole.
fn lock_pages(slots: &[Slot]) {
    const PIECE_SLOTS: usize = (512 << 10) / size_of::<Slot>();
    let _locked = slots.chunks(PIECE_SLOTS).take_while(|piece| latlab_sys::process::lock_memory(piece).is_ok()).count();
}

/// A ring of `capacity` events (a power of two).
pub(crate) fn ring(capacity: usize) -> (EventLog, RingReader) {
    let ring = Arc::new(EventRing::new(capacity));
    let log = EventLog { ring: Arc::clone(&ring), head: 0, free_until: capacity as u64, gap: 0, gap_since: None };
    (log, RingReader { ring, tail: 0 })
}

/// The producer: records the events of a hot loop and never waits.
pub struct EventLog {
    ring: Arc<EventRing>,
    head: u64,
    /// Slots below this index are free. `tail` is read again only when the head reaches it.
    free_until: u64,
    gap: u64,
    gap_since: Option<Stamp<SenderClock>>,
}

impl EventLog {
    /// Records `event` without allocation, lock, system call or wait. A full ring drops it, and a [`SpoolEvent::Gap`]
    /// follows as soon as there are free slots.
    // Inlined always: with a known kind of event callgrind counts 51 instructions less in the 716 of a round trip.
    #[inline(always)]
    pub fn push(&mut self, event: SpoolEvent) {
        if self.head == self.free_until || self.gap > 0 {
            return self.push_cold(event);
        }
        self.publish(event.to_words());
    }

    /// Waits until the ring has room for an event: for loops that are not armed.
    pub fn wait_for_room(&mut self) {
        while self.head == self.free_until {
            std::thread::sleep(Duration::from_millis(1));
            self.free_until = self.ring.tail.0.load(Ordering::Acquire) + self.ring.slots.len() as u64;
        }
    }

    /// Number of events written to the ring since its creation.
    pub fn written(&self) -> u64 {
        self.head
    }

    /// Number of events dropped because the ring was full.
    pub fn dropped(&self) -> u64 {
        self.ring.dropped.load(Ordering::Relaxed)
    }

    #[inline]
    fn publish(&mut self, words: [u64; EVENT_WORDS]) {
        let slot = self.ring.slot(self.head);
        for (place, word) in slot.0.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        self.head += 1;
        self.ring.head.0.store(self.head, Ordering::Release);
        // The writer thread reads the slots, so their lines are in the cache of its CPU.
        latlab_sys::prefetch::to_write(self.ring.slot(self.head + 1));
    }

    #[cold]
    #[inline(never)]
    fn push_cold(&mut self, event: SpoolEvent) {
        self.free_until = self.ring.tail.0.load(Ordering::Acquire) + self.ring.slots.len() as u64;
        let wanted = 1 + u64::from(self.gap > 0);
        if self.free_until - self.head < wanted {
            self.gap += 1;
            self.gap_since = self.gap_since.or(event.at());
            self.ring.pending_gap_since.store(nanos(self.gap_since), Ordering::Relaxed);
            self.ring.dropped.fetch_add(1, Ordering::Relaxed);
            self.ring.pending_gap_events.store(self.gap, Ordering::Relaxed);
            return;
        }
        if self.gap > 0 {
            let since = Stamp::from_nanos(nanos(self.gap_since));
            self.publish(SpoolEvent::Gap { since, events: self.gap }.to_words());
            (self.gap, self.gap_since) = (0, None);
            self.ring.pending_gap_events.store(0, Ordering::Relaxed);
        }
        self.publish(event.to_words());
    }
}

/// The instant of a gap. Time-outs have none: a gap of time-outs alone is written with the origin of the clock.
fn nanos(since: Option<Stamp<SenderClock>>) -> i64 {
    since.map_or(0, Stamp::as_nanos)
}

impl Drop for EventLog {
    fn drop(&mut self) {
        self.ring.closed.store(true, Ordering::Release);
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog").field("written", &self.head).finish_non_exhaustive()
    }
}

pub(crate) struct RingReader {
    ring: Arc<EventRing>,
    tail: u64,
}

impl RingReader {
    /// Passes at most `limit` events to `take`, oldest first; returns their number.
    pub(crate) fn drain(&mut self, limit: u64, mut take: impl FnMut([u64; EVENT_WORDS])) -> u64 {
        let head = self.ring.head.0.load(Ordering::Acquire);
        let events = (head - self.tail).min(limit);
        for index in self.tail..self.tail + events {
            let slot = self.ring.slot(index);
            take(std::array::from_fn(|word| slot.0[word].load(Ordering::Relaxed)));
        }
        self.tail += events;
        self.ring.tail.0.store(self.tail, Ordering::Release);
        events
    }

    /// Whether the ring would be more than a quarter full after `period` if events came as often as `events` in `span`.
    pub(crate) fn fills_a_quarter(&self, events: u64, span: Nanos, period: Nanos) -> bool {
        events as f64 * period.0 as f64 > self.ring.slots.len() as f64 / 4.0 * span.0 as f64
    }

    /// Whether the producer was dropped: no more events follow.
    pub(crate) fn is_closed(&self) -> bool {
        self.ring.closed.load(Ordering::Acquire)
    }

    /// The gap that the producer could not record. Meaningful once it is dropped.
    pub(crate) fn pending_gap(&self) -> Option<SpoolEvent> {
        let events = self.ring.pending_gap_events.load(Ordering::Relaxed);
        let since = Stamp::from_nanos(self.ring.pending_gap_since.load(Ordering::Relaxed));
        (events > 0).then_some(SpoolEvent::Gap { since, events })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{Phase, Seq};

    fn sent(seq: u64) -> SpoolEvent {
        let at = Stamp::from_nanos(seq as i64 * 10);
        SpoolEvent::Sent { seq: Seq(seq), phase: Phase::Measure, due: None, sent: at, cpu: None }
    }

    fn drained(reader: &mut RingReader) -> Vec<SpoolEvent> {
        let mut events = Vec::new();
        reader.drain(u64::MAX, |words| events.extend(SpoolEvent::from_words(words)));
        events
    }

    #[test]
    fn a_full_ring_drops_and_counts_and_records_a_gap_once_it_has_space() {
        let (mut log, mut reader) = ring(4);
        (0..7).for_each(|seq| log.push(sent(seq)));
        assert_eq!((log.written(), log.dropped()), (4, 3));
        assert_eq!(drained(&mut reader), (0..4).map(sent).collect::<Vec<_>>());
        log.push(sent(7));
        let gap = SpoolEvent::Gap { since: Stamp::from_nanos(40), events: 3 };
        assert_eq!(drained(&mut reader), [gap, sent(7)]);
        assert_eq!(reader.pending_gap(), None);
    }

    #[test]
    fn one_free_slot_is_not_enough_to_end_a_gap() {
        let (mut log, mut reader) = ring(2);
        (0..3).for_each(|seq| log.push(sent(seq)));
        assert_eq!(reader.drain(1, |_| ()), 1);
        log.push(sent(3));
        assert_eq!(drained(&mut reader), [sent(1)]);
        drop(log);
        assert!(reader.is_closed());
        assert_eq!(reader.pending_gap(), Some(SpoolEvent::Gap { since: Stamp::from_nanos(20), events: 2 }));
    }

    #[test]
    fn a_quarter_of_the_ring_is_filled_at_the_rate_of_the_last_events() {
        let (_log, reader) = ring(1_024);
        let (short, long) = (Nanos::from_millis(50), Nanos::from_millis(200));
        for (events, span, expected) in
            [(0, long, false), (256, long, false), (257, long, true), (64, short, false), (65, short, true)]
        {
            assert_eq!(reader.fills_a_quarter(events, span, long), expected, "{events} events in {span:?}");
        }
    }

    #[test]
    fn every_event_passes_once_and_in_order_between_two_threads() {
        let (mut log, mut reader) = ring(64);
        let producer = std::thread::spawn(move || {
            (0..100_000).for_each(|seq| log.push(sent(seq)));
            log.dropped()
        });
        let (mut next, mut gaps) = (0, 0);
        loop {
            let over = reader.is_closed();
            for event in drained(&mut reader) {
                match event {
                    SpoolEvent::Sent { seq, sent: at, .. } => {
                        assert_eq!((seq.0, at.as_nanos()), (next, next as i64 * 10));
                        next += 1;
                    }
                    SpoolEvent::Gap { events, .. } => {
                        gaps += events;
                        next += events;
                    }
                    other => panic!("never pushed: {other:?}"),
                }
            }
            if over {
                break;
            }
        }
        if let Some(SpoolEvent::Gap { events, .. }) = reader.pending_gap() {
            gaps += events;
            next += events;
        }
        assert_eq!((next, gaps), (100_000, producer.join().expect("producer")));
    }
}
