//! The sequence of the probes of a run: their numbers, due times, and those in flight.

use crate::plan::{DueTimes, PingSpec};
use crate::probe::Seq;
use crate::units::{Nanos, SenderClock, Stamp};

/// The time for which an interrupted run still waits for answers in flight. Probes that are unanswered then and not past
/// their time-out have no fate and no row.
pub(super) const LINGER: Nanos = Nanos::from_secs(1);

/// The state of a run between slices: the next probe, its due time, and the probes in flight. Nothing in here allocates
/// after `new`.
#[derive(Clone, Debug)]
pub struct ProbeSequence {
    next: Seq,
    due_times: DueTimes,
    /// The offset of the next probe in the schedule; `Nanos::MAX` in a closed loop.
    offset: Nanos,
    /// The instant of offset zero in the current slice.
    origin: Stamp<SenderClock>,
    pub flight: InFlight,
    /// The time for which an interrupted slice still waits for answers in flight.
    pub linger: Nanos,
}

impl ProbeSequence {
    /// The state before the first probe.
    pub fn new(ping: &PingSpec) -> ProbeSequence {
        let mut due_times = ping.schedule.due_times();
        let offset = due_times.next().unwrap_or(Nanos::MAX);
        let flight = InFlight::new(in_flight_limit(ping));
        ProbeSequence { next: Seq(0), due_times, offset, origin: Stamp::from_nanos(0), flight, linger: LINGER }
    }

    /// The state before the first probe of a run whose interrupted slices wait for `linger`.
    pub(crate) fn lingering(ping: &PingSpec, linger: Nanos) -> ProbeSequence {
        ProbeSequence { linger, ..ProbeSequence::new(ping) }
    }

    /// Begins a slice: the next probe is due `now`, and the schedule continues from there.
    pub fn begin(&mut self, now: Stamp<SenderClock>) {
        self.origin = now - self.offset;
    }

    /// The due time of the next probe.
    #[inline]
    pub fn due(&self) -> Stamp<SenderClock> {
        self.origin + self.offset
    }

    /// Takes the number of the next probe and advances to the one after it.
    #[inline]
    pub fn take(&mut self) -> Seq {
        let seq = self.next;
        self.next = Seq(seq.0 + 1);
        self.offset = self.due_times.next().unwrap_or(Nanos::MAX);
        seq
    }
}

/// The most probes in flight: those due within a time-out and a whole backlog that was sent at once, doubled for the
/// clusters of a Poisson process.
fn in_flight_limit(ping: &PingSpec) -> u64 {
    let interval = ping.schedule.interval().unwrap_or(Nanos::MAX).0.max(1);
    ((ping.timeout_ns + ping.max_backlog_ns).0 / interval).max(32) as u64 * 2
}

/// A bitmap over the last `capacity` probes, allocated before the loop is armed.
#[derive(Clone, Debug)]
pub struct InFlight {
    words: Box<[u64]>,
    waiting: u64,
}

impl InFlight {
    /// A bitmap of at least `capacity` probes. A probe is forgotten when that many later ones have been sent.
    pub fn new(capacity: u64) -> InFlight {
        let words = capacity.clamp(64, 1 << 26).next_power_of_two() / 64;
        InFlight { words: vec![0; words as usize].into_boxed_slice(), waiting: 0 }
    }

    pub fn clear(&mut self) {
        self.words.fill(0);
        self.waiting = 0;
    }

    #[inline]
    pub fn sent(&mut self, seq: Seq) {
        let (word, bit) = self.position(seq);
        self.waiting += u64::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    /// Removes probe `seq`; a second answer has no effect.
    #[inline]
    pub fn answered(&mut self, seq: Seq) {
        let (word, bit) = self.position(seq);
        self.waiting -= u64::from(self.words[word] & bit != 0);
        self.words[word] &= !bit;
    }

    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    fn position(&self, seq: Seq) -> (usize, u64) {
        let index = seq.0 & (self.words.len() as u64 * 64 - 1);
        ((index / 64) as usize, 1 << (index % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::plan::Schedule;

    fn every_10_ns() -> PingSpec {
        PingSpec::on(Schedule::Periodic { interval_ns: Nanos(10) })
    }

    #[test]
    fn the_capacity_covers_a_time_out_and_a_backlog_of_probes() {
        for (interval, timeout, backlog, probes) in [
            (Nanos::from_millis(1), Nanos::from_secs(1), Nanos::from_secs(1), 2_000),
            (Nanos::from_micros(10), Nanos::from_secs(1), Nanos::from_secs(1), 200_000),
            (Nanos::from_micros(10), Nanos::from_millis(1), Nanos::ZERO, 100),
            (Nanos::from_secs(3_600), Nanos::from_secs(60), Nanos::from_secs(1), 32),
            (Nanos::from_micros(1), Nanos::from_secs(60), Nanos::from_secs(60), 120_000_000),
        ] {
            for schedule in
                [Schedule::Periodic { interval_ns: interval }, Schedule::Poisson { mean_ns: interval, seed: 1 }]
            {
                let ping = PingSpec { timeout_ns: timeout, max_backlog_ns: backlog, ..PingSpec::on(schedule) };
                assert_eq!(in_flight_limit(&ping), 2 * probes, "{ping:?}");
            }
        }
        assert_eq!(in_flight_limit(&PingSpec::on(Schedule::Closed)), 64, "one at a time");
    }

    #[test]
    fn the_schedule_continues_in_the_next_slice() {
        let mut sequence = ProbeSequence::new(&every_10_ns());
        sequence.begin(Stamp::from_nanos(100));
        assert_eq!((sequence.due(), sequence.take()), (Stamp::from_nanos(100), Seq(0)));
        assert_eq!((sequence.due(), sequence.take()), (Stamp::from_nanos(110), Seq(1)));
        sequence.begin(Stamp::from_nanos(1_000));
        assert_eq!((sequence.due(), sequence.take()), (Stamp::from_nanos(1_000), Seq(2)));
        assert_eq!(sequence.due(), Stamp::from_nanos(1_010));
    }

    #[test]
    fn a_duplicate_answer_removes_no_other_probe() {
        let mut flight = InFlight::new(10);
        flight.sent(Seq(0));
        flight.sent(Seq(1));
        flight.answered(Seq(0));
        flight.answered(Seq(0));
        assert!(!flight.is_empty());
        flight.answered(Seq(1));
        assert!(flight.is_empty());
        flight.sent(Seq(2));
        flight.clear();
        flight.answered(Seq(2));
        assert!(flight.is_empty());
    }

    #[test]
    fn a_full_bitmap_tracks_each_of_its_probes_and_never_grows() {
        let mut flight = InFlight::new(128);
        let address = flight.words.as_ptr();
        // From several numbers on, also where they exceed 32 bits.
        for first in [0, 100, u64::from(u32::MAX) - 50] {
            for seq in first..first + 128 {
                flight.sent(Seq(seq));
            }
            assert_eq!(flight.waiting, 128);
            for (seq, left) in (first..first + 128).rev().zip((0..128).rev()) {
                assert!(!flight.is_empty());
                flight.answered(Seq(seq));
                assert_eq!(flight.waiting, left);
            }
            assert!(flight.is_empty());
        }
        // A million probes without an answer: only the latest 128 are tracked.
        for seq in 0..1_000_000 {
            flight.sent(Seq(seq));
        }
        assert_eq!((flight.waiting, flight.words.len()), (128, 2));
        assert_eq!(flight.words.as_ptr(), address, "it was allocated once");
    }
}
