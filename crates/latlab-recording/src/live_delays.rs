//! The delays of a run while it goes on, for the progress line and the live view. They are kept by the thread that writes the
//! recording: the thread that measures does nothing for them.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::probe::Seq;
use crate::stats::LogHistogram;
use crate::units::{Nanos, SenderClock, Stamp};

/// The seconds that are kept.
pub const SECONDS_KEPT: usize = 60;
const SECOND: Nanos = Nanos::from_secs(1);
/// The most probes in flight whose delay will be known: 1 MiB of them. If there are more, the oldest are left out.
const IN_FLIGHT_MAX: usize = 1 << 16;

/// The round trip delays, or wake-up latencies, that became known in one second of the measuring phase, to within 0.4 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveSecond {
    pub end: Stamp<SenderClock>,
    /// How many there are; never 0.
    pub n: u64,
    pub p50: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    pub max: Nanos,
}

/// The delays of the seconds of the measuring phase that are over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveDelays {
    /// The last [`SECONDS_KEPT`] seconds that had any delay, the oldest first.
    pub seconds: Vec<LiveSecond>,
    pub whole: LogHistogram,
}

/// Those of a run that goes on.
pub(super) type SharedDelays = Mutex<LiveDelays>;

struct InFlight {
    seq: Seq,
    sent: Stamp<SenderClock>,
    is_answered: bool,
}

/// The delays so far, those of the present second, and the probes in flight.
pub(super) struct DelaySeconds {
    timeout: Nanos,
    /// In the order of sending; the first one is not answered.
    in_flight: VecDeque<InFlight>,
    present: LogHistogram,
    /// Without those of the present second.
    whole: LogHistogram,
    /// The end of the present second; `None` before the first delay.
    end: Option<Stamp<SenderClock>>,
    /// Seconds that are not published yet.
    finished: Vec<LiveSecond>,
}

impl DelaySeconds {
    /// No delays so far, of probes that are lost after `timeout`.
    pub(super) fn new(timeout: Nanos) -> DelaySeconds {
        let (present, whole) = (LogHistogram::default(), LogHistogram::default());
        DelaySeconds { timeout, in_flight: VecDeque::new(), present, whole, end: None, finished: Vec::new() }
    }

    /// Notes that a probe of the measuring phase was sent.
    pub(super) fn sent(&mut self, seq: Seq, sent: Stamp<SenderClock>) {
        let is_over = |first: &InFlight| first.is_answered || first.sent + self.timeout < sent;
        while self.in_flight.len() >= IN_FLIGHT_MAX || self.in_flight.front().is_some_and(is_over) {
            self.in_flight.pop_front();
        }
        self.in_flight.push_back(InFlight { seq, sent, is_answered: false });
    }

    /// Notes that an answer arrived. Duplicates, late answers and those to the warm-up have no delay here.
    pub(super) fn arrived(&mut self, seq: Seq, received: Stamp<SenderClock>) {
        let Ok(place) = self.in_flight.binary_search_by_key(&seq, |probe| probe.seq) else { return };
        let probe = &mut self.in_flight[place];
        if !probe.is_answered && received <= probe.sent + self.timeout {
            probe.is_answered = true;
            let delay = received - probe.sent;
            self.record(received, delay);
        }
        while self.in_flight.front().is_some_and(|first| first.is_answered) {
            self.in_flight.pop_front();
        }
    }

    /// Counts `delay`, which became known at `at`.
    pub(super) fn record(&mut self, at: Stamp<SenderClock>, delay: Nanos) {
        let end = *self.end.get_or_insert(at + SECOND);
        if at >= end {
            self.finish(end);
            let seconds = (at - end).0 / SECOND.0 + 1;
            self.end = Some(end + SECOND.saturating_mul(seconds));
        }
        self.present.record(delay.0);
    }

    fn finish(&mut self, end: Stamp<SenderClock>) {
        let quantile = |q| self.present.quantile(q).map(Nanos);
        if let (Some(p50), Some(p99)) = (quantile(0.5), quantile(0.99)) {
            let (n, max) = (self.present.n(), Nanos(self.present.max()));
            self.finished.push(LiveSecond { end, n, p50, p99, max });
        }
        self.whole.add(&self.present);
        self.present.clear();
    }

    /// Moves the finished seconds to `shared`, and copies all delays, unless another thread reads there: then at the next call.
    pub(super) fn publish(&mut self, shared: &SharedDelays) {
        if self.finished.is_empty() {
            return;
        }
        let Ok(mut shared) = shared.try_lock() else { return };
        shared.seconds.append(&mut self.finished);
        let surplus = shared.seconds.len().saturating_sub(SECONDS_KEPT);
        shared.seconds.drain(..surplus);
        shared.whole.clone_from(&self.whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Stamp<SenderClock> {
        Stamp::from_nanos(micros * 1_000)
    }

    fn published(delays: &mut DelaySeconds) -> LiveDelays {
        let shared = SharedDelays::default();
        delays.publish(&shared);
        shared.into_inner().expect("no panic")
    }

    #[test]
    fn each_second_has_its_quantiles_and_its_exact_maximum() {
        let mut delays = DelaySeconds::new(SECOND);
        for seq in 0..2_100 {
            let sent = at(seq as i64 * 1_000);
            let delay = if seq == 700 { 1_210_345 } else { 48_000 + (seq % 100) as i64 };
            delays.sent(Seq(seq), sent);
            delays.arrived(Seq(seq), sent + Nanos(delay));
            assert!(delays.in_flight.is_empty());
        }
        let LiveDelays { seconds, whole } = published(&mut delays);
        let [first, second] = &seconds[..] else { panic!("two whole seconds") };
        assert_eq!((first.n, first.max, second.max), (1_000, Nanos(1_210_345), Nanos(48_099)));
        for (found, exact) in [(first.p50, 48_050), (second.p99, 48_099)] {
            assert!((found.0 - exact).abs() < 200, "{found:?}");
        }
        assert_eq!(second.end - first.end, SECOND);
        assert_eq!((whole.n(), whole.max()), (first.n + second.n, 1_210_345));
        assert!(published(&mut delays).seconds.is_empty());
    }

    #[test]
    fn answers_count_once_in_time_and_in_any_order() {
        let mut delays = DelaySeconds::new(SECOND);
        for seq in 1..=4 {
            delays.sent(Seq(seq), at(0));
        }
        for (seq, micros) in [(2, 50), (2, 60), (9, 60), (1, 70), (3, 1_000_001)] {
            delays.arrived(Seq(seq), at(micros));
        }
        assert_eq!((delays.present.n(), delays.present.max(), delays.in_flight.len()), (2, 70_000, 2));
        delays.sent(Seq(5), at(1_000_002));
        assert_eq!(delays.in_flight.len(), 1, "the time-outs of the others have passed");
    }

    #[test]
    fn memory_is_bounded_while_nothing_is_answered_or_read() {
        let mut delays = DelaySeconds::new(Nanos::from_secs(1_000));
        (0..2 * IN_FLIGHT_MAX as u64).for_each(|seq| delays.sent(Seq(seq), at(seq as i64)));
        assert_eq!(delays.in_flight.len(), IN_FLIGHT_MAX);
        let shared = SharedDelays::default();
        for second in 0..100 {
            // Seconds without a delay have no entry.
            delays.record(at(second * 2_000_000), Nanos(5_000));
            let reader = (second % 10 > 0).then(|| shared.lock().expect("no panic"));
            delays.publish(&shared);
            drop(reader);
        }
        let LiveDelays { seconds, whole } = shared.into_inner().expect("no panic");
        assert_eq!((seconds.len(), delays.finished.len(), whole.n()), (SECONDS_KEPT, 9, 90));
        assert_eq!(seconds[1].end - seconds[0].end, Nanos::from_secs(2));
    }
}
