//! Clocks. The only module that reads time; pure code takes stamps as arguments.

use crate::facts::ClockAnchor;
use crate::units::{Nanos, SenderClock, Stamp};

/// A source of stamps on the sender's clock: the real one, or the simulated network's.
pub trait Clock {
    fn now(&self) -> Stamp<SenderClock>;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> Stamp<SenderClock> {
        Stamp::from_nanos(latlab_sys::clock::monotonic_ns())
    }
}

/// CPU time that the calling thread has used: a system call, and nothing for a hot loop.
pub(crate) fn thread_cpu_time() -> Nanos {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Nanos(spent.tv_sec * 1_000_000_000 + spent.tv_nsec)
}

/// Reads the four clocks together; the narrowest of a few attempts, since an interrupt may fall between.
pub fn anchor() -> ClockAnchor {
    (0..5).map(|_| anchor_once()).min_by_key(|anchor| anchor.width_ns).expect("five attempts")
}

fn anchor_once() -> ClockAnchor {
    use latlab_sys::clock;
    let first = clock::monotonic_ns();
    let realtime_ns = clock::realtime_ns();
    let boottime_ns = clock::boottime_ns();
    let tai_ns = clock::tai_ns();
    let last = clock::monotonic_ns();
    ClockAnchor { monotonic_ns: first + (last - first) / 2, realtime_ns, boottime_ns, tai_ns, width_ns: last - first }
}

/// CLOCK_REALTIME less CLOCK_MONOTONIC, for the kernel's stamps. It changes only when a clock is set: both clocks are slewed
/// alike.
#[derive(Clone, Copy, Debug)]
pub struct RealtimeOffset {
    offset_ns: i64,
    /// Half the time between the two readings of CLOCK_MONOTONIC, rounded up.
    error_ns: i64,
}

impl RealtimeOffset {
    /// The narrowest of a few readings.
    pub fn read() -> RealtimeOffset {
        (0..5).map(|_| RealtimeOffset::read_once()).min_by_key(|read| read.error_ns).expect("five readings")
    }

    #[inline]
    fn read_once() -> RealtimeOffset {
        let first = latlab_sys::clock::monotonic_ns();
        let realtime_ns = latlab_sys::clock::realtime_ns();
        let width = latlab_sys::clock::monotonic_ns() - first;
        RealtimeOffset { offset_ns: realtime_ns - (first + width / 2), error_ns: width / 2 + 1 }
    }

    /// Reads again. False if a clock was set since: a stamp between both readings is of an unknown side.
    #[inline]
    pub fn holds(&mut self) -> bool {
        let now = RealtimeOffset::read_once();
        let holds = (now.offset_ns - self.offset_ns).abs() <= now.error_ns + self.error_ns;
        if !holds {
            *self = RealtimeOffset::read();
        }
        holds
    }

    /// The stamp on CLOCK_MONOTONIC of what was stamped `realtime_ns` on CLOCK_REALTIME.
    #[inline]
    pub fn to_monotonic<C>(self, realtime_ns: i64) -> Stamp<C> {
        Stamp::from_nanos(realtime_ns - self.offset_ns)
    }

    /// The largest error of the result, in ns.
    pub const fn error_ns(self) -> i64 {
        self.error_ns
    }
}

pub fn resolution() -> Nanos {
    Nanos(latlab_sys::clock::monotonic_resolution_ns())
}

/// Median cost of one clock read over a few thousand, in ns.
pub(crate) fn read_cost_ns() -> f64 {
    cost_ns(|| Monotonic.now())
}

/// Median cost of one call of `work` over a few thousand, in ns, to a sixty-fourth: the clock is read
/// around batches, and the median leaves out those that something else interrupted.
pub fn cost_ns<T>(mut work: impl FnMut() -> T) -> f64 {
    const BATCH: i64 = 64;
    let mut costs: Vec<i64> = (0..64)
        .map(|_| {
            let start = Monotonic.now();
            for _ in 0..BATCH {
                std::hint::black_box(work());
            }
            (Monotonic.now() - start).0
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2] as f64 / BATCH as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let mut offset = RealtimeOffset::read();
        assert!(offset.holds());
        let at: Stamp<SenderClock> = offset.to_monotonic(latlab_sys::clock::realtime_ns());
        assert!((Monotonic.now() - at).0 >= -offset.error_ns());
        offset.offset_ns -= 1_000_000_000;
        assert!(!offset.holds());
        assert!(offset.holds(), "it follows");
    }

    #[test]
    fn the_clock_goes_forward_and_the_anchor_is_narrow() {
        let before = Monotonic.now();
        let anchor = anchor();
        let after = Monotonic.now();
        assert!(before.as_nanos() <= anchor.monotonic_ns && anchor.monotonic_ns <= after.as_nanos());
        assert!(anchor.width_ns >= 0 && anchor.boottime_ns >= anchor.monotonic_ns - anchor.width_ns);
    }
}
