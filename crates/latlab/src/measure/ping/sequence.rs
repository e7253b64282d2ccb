//! Where a run stands, and how far the next stretch of it goes.

use crate::plan::{DueTimes, PingSpec};
use crate::probe::Seq;
use crate::units::{Nanos, SenderClock, Stamp};

/// How long an interrupted run still waits for the answers in flight: whoever pressed Ctrl-C wants the summary
/// now. What is unanswered by then and not yet past its time-out has no fate and gets no row.
pub(crate) const LINGER: Nanos = Nanos::from_secs(1);

/// What a run carries from slice to slice: the next probe, where the schedule stands, and what is in flight.
/// Nothing in here allocates after `new`.
#[derive(Clone, Debug)]
pub struct ProbeSequence {
    next: Seq,
    due_times: DueTimes,
    /// Offset of the next due probe in the schedule; never reached in a closed loop.
    offset: Nanos,
    /// Where offset zero lies, for the slice that runs.
    origin: Stamp<SenderClock>,
    pub(crate) flight: InFlight,
    /// How long an interrupted slice still waits for the answers in flight.
    pub(crate) linger: Nanos,
}

impl ProbeSequence {
    /// A run before its first probe.
    pub fn new(ping: &PingSpec) -> ProbeSequence {
        let mut due_times = ping.schedule.due_times();
        let offset = due_times.next().unwrap_or(Nanos::MAX);
        let flight = InFlight::new(in_flight_limit(ping));
        ProbeSequence { next: Seq(0), due_times, offset, origin: Stamp::from_nanos(0), flight, linger: LINGER }
    }

    /// The same, whose interrupted slice waits for answers for another time.
    pub fn lingering(ping: &PingSpec, linger: Nanos) -> ProbeSequence {
        ProbeSequence { linger, ..ProbeSequence::new(ping) }
    }

    /// A slice starts now: the next probe is due now, and the schedule goes on from there.
    pub fn begin(&mut self, now: Stamp<SenderClock>) {
        self.origin = now - self.offset;
    }

    /// When the next probe is due.
    #[inline]
    pub fn due(&self) -> Stamp<SenderClock> {
        self.origin + self.offset
    }

    /// The next probe's place in the run; the one after it becomes the next.
    #[inline]
    pub fn take(&mut self) -> Seq {
        let seq = self.next;
        self.next = Seq(seq.0 + 1);
        self.offset = self.due_times.next().unwrap_or(Nanos::MAX);
        seq
    }
}

/// Probes that can be waiting at once: as many as are due within one time-out, and a whole backlog that was
/// sent in one go before them; twice over for Poisson clumps.
fn in_flight_limit(ping: &PingSpec) -> u64 {
    let interval = ping.schedule.interval().unwrap_or(Nanos::MAX).0.max(1);
    ((ping.timeout_ns + ping.max_backlog_ns).0 / interval).max(32) as u64 * 2
}

/// A bitmap over the last `capacity` probes, allocated before the loop is armed.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    words: Box<[u64]>,
    waiting: u64,
}

impl InFlight {
    /// Remembers at least `capacity` probes. One that is overtaken by so many others counts as given up.
    pub(crate) fn new(capacity: u64) -> InFlight {
        let words = capacity.clamp(64, 1 << 26).next_power_of_two() / 64;
        InFlight { words: vec![0; words as usize].into_boxed_slice(), waiting: 0 }
    }

    /// Waits for nothing.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
        self.waiting = 0;
    }

    /// Probe `seq` left.
    #[inline]
    pub(crate) fn sent(&mut self, seq: Seq) {
        let (word, bit) = self.place(seq);
        self.waiting += u64::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    /// An answer to `seq` came; a second one changes nothing.
    #[inline]
    pub(crate) fn answered(&mut self, seq: Seq) {
        let (word, bit) = self.place(seq);
        self.waiting -= u64::from(self.words[word] & bit != 0);
        self.words[word] &= !bit;
    }

    /// Whether every remembered probe was answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    fn place(&self, seq: Seq) -> (usize, u64) {
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
    fn the_window_holds_a_time_out_and_a_backlog_of_probes() {
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
    fn the_schedule_goes_on_from_slice_to_slice() {
        let mut course = ProbeSequence::new(&every_10_ns());
        course.begin(Stamp::from_nanos(100));
        assert_eq!((course.due(), course.take()), (Stamp::from_nanos(100), Seq(0)));
        assert_eq!((course.due(), course.take()), (Stamp::from_nanos(110), Seq(1)));
        course.begin(Stamp::from_nanos(1_000));
        assert_eq!((course.due(), course.take()), (Stamp::from_nanos(1_000), Seq(2)));
        assert_eq!(course.due(), Stamp::from_nanos(1_010));
    }

    #[test]
    fn duplicates_do_not_answer_for_others() {
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
    fn as_many_as_were_asked_for_are_remembered_and_no_more_than_the_memory_allows() {
        for (asked, remembered) in [
            (0, 64),
            (1, 64),
            (64, 64),
            (65, 128),
            (1_000, 1_024),
            (120_000, 131_072),
            (1 << 26, 1 << 26),
            (u64::MAX, 1 << 26), // 8 MiB of bits
        ] {
            assert_eq!(InFlight::new(asked).words.len() as u64 * 64, remembered, "{asked}");
        }
    }

    #[test]
    fn a_full_window_waits_for_each_of_its_probes_and_never_grows() {
        let mut flight = InFlight::new(128);
        let place = flight.words.as_ptr();
        // Anywhere on the way, also where the counter leaves 32 bits.
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
        // A million probes without an answer: the oldest are given up, and there is nothing more to wait for than
        // the window.
        for seq in 0..1_000_000 {
            flight.sent(Seq(seq));
        }
        assert_eq!((flight.waiting, flight.words.len()), (128, 2));
        assert_eq!(flight.words.as_ptr(), place, "it was allocated once");
    }

    #[test]
    fn an_overtaken_probe_is_given_up() {
        let mut flight = InFlight::new(64);
        flight.sent(Seq(3));
        flight.sent(Seq(67));
        flight.answered(Seq(67));
        assert!(flight.is_empty());
    }
}
