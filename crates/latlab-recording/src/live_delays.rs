//! The delays of a run while it goes on, for the progress line and the live view. They are kept by the thread that writes the
//! recording: the thread that measures does nothing for them.

use std::sync::Mutex;

use crate::stats::LogHistogram;
use crate::units::{Nanos, SenderClock, Stamp};

/// The seconds that are kept.
pub const SECONDS_KEPT: usize = 60;
const SECOND: Nanos = Nanos::from_secs(1);

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

/// The delays so far, and those of the present second.
#[derive(Default)]
pub(super) struct DelaySeconds {
    present: LogHistogram,
    /// Without those of the present second.
    whole: LogHistogram,
    /// The end of the present second; `None` before the first delay.
    end: Option<Stamp<SenderClock>>,
    /// Seconds that are not published yet.
    finished: Vec<LiveSecond>,
}

impl DelaySeconds {
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
        let mut delays = DelaySeconds::default();
        for number in 0..2_100 {
            let delay = if number == 700 { 1_210_345 } else { 48_000 + number % 100 };
            delays.record(at(number * 1_000 + 48), Nanos(delay));
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
    fn memory_is_bounded_while_nothing_is_read() {
        let mut delays = DelaySeconds::default();
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
