//! Where a run stands, and how far the next stretch of it goes.

use super::in_flight::InFlight;
use crate::plan::DueTimes;
use crate::plan::{PingSpec, StopWhen, Warmup};
use crate::probe::{Phase, Seq};
use crate::units::{Nanos, SenderClock, Stamp};

/// How long an interrupted run still waits for the answers in flight: whoever pressed Ctrl-C wants the summary
/// now. What is unanswered by then and not yet past its time-out has no fate and gets no row.
pub(super) const LINGER: Nanos = Nanos::from_secs(1);

/// A stretch of a run: the loop is armed once per slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Whether its probes count.
    pub phase: Phase,
    /// Due probes in it, at most.
    pub count: u64,
    /// How long probes are due, at most.
    pub duration: Nanos,
}

impl Slice {
    /// The warm-up; none where none was asked for.
    pub fn warmup(warmup: &Warmup) -> Option<Slice> {
        (warmup.count.is_some() || warmup.duration_ns.is_some()).then(|| Slice {
            phase: Phase::Warmup,
            count: warmup.count.unwrap_or(u64::MAX),
            duration: warmup.duration_ns.unwrap_or(Nanos::MAX),
        })
    }

    /// Slice `round` of `rounds` of the measuring phase: counts add up to the whole exactly.
    pub fn measuring(stop: &StopWhen, round: u32, rounds: u32) -> Slice {
        let (round, rounds) = (u128::from(round), u128::from(rounds));
        let share =
            |whole: u64| ((u128::from(whole) * (round + 1) / rounds) - (u128::from(whole) * round / rounds)) as u64;
        Slice {
            phase: Phase::Measure,
            count: stop.count.map_or(u64::MAX, share),
            duration: stop.duration_ns.map_or(Nanos::MAX, |whole| Nanos(share(whole.0.max(0) as u64) as i64)),
        }
    }

    /// The instant from which nothing is due any more, for a slice that starts at `start`.
    pub fn end(&self, start: Stamp<SenderClock>) -> Stamp<SenderClock> {
        start + self.duration
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    use crate::plan::Schedule;

    fn every_10_ns() -> PingSpec {
        PingSpec::on(Schedule::Periodic { interval_ns: Nanos(10) })
    }

    #[test]
    fn slices_add_up_to_the_whole() {
        let stop = StopWhen { count: Some(1_003), duration_ns: Some(Nanos(10_000_000_007)) };
        let slices: Vec<Slice> = (0..10).map(|round| Slice::measuring(&stop, round, 10)).collect();
        assert_eq!(slices.iter().map(|slice| slice.count).sum::<u64>(), 1_003);
        assert_eq!(slices.iter().map(|slice| slice.duration.0).sum::<i64>(), 10_000_000_007);
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
    fn a_missing_limit_never_ends_a_slice() {
        let slice = Slice::measuring(&StopWhen { count: None, duration_ns: Some(Nanos(5)) }, 0, 1);
        assert_eq!((slice.count, slice.duration), (u64::MAX, Nanos(5)));
        assert_eq!(Slice::warmup(&Warmup { count: None, duration_ns: None }), None);
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
}
