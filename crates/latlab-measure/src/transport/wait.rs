//! The longest duration of one wait for an answer, and the system call in which the thread waits.

use crate::plan::{Schedule, WaitMode, defaults};
use crate::units::Nanos;

/// How a transport waits for an answer; fixed when it is opened, so that the loop has no branch for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitStrategy {
    /// Sleep in the receive call while `max_wait` is longer than its time-out: one system call per answer. The rest of
    /// the wait, and every wait of a shorter time-out, as `Until`. For closed loops, which wait for nothing but the
    /// answer.
    Sleep {
        /// SO_RCVTIMEO, which the kernel rounds up to its tick, plus one; `None` if the run's time-out is too short
        /// for one.
        receive_timeout: Option<Nanos>,
        /// Whether the kernel polls the driver before it sleeps (SO_BUSY_POLL).
        busy_poll: bool,
    },
    /// Sleep until a message is there or `max_wait` has passed, to the nanosecond, then receive: two system calls per
    /// answer. For schedules, where the next probe is due at an instant.
    Until {
        /// As above; in the poll call it acts only if `net.core.busy_poll` is set.
        busy_poll: bool,
    },
    Spin,
}

impl WaitStrategy {
    /// The strategy of a run that waits as `wait` on `schedule`, for answers up to `timeout` late.
    pub fn new(wait: WaitMode, schedule: Schedule, timeout: Nanos) -> WaitStrategy {
        let busy_poll = wait == WaitMode::BusyPoll;
        match (wait, schedule) {
            (WaitMode::Spin, _) => WaitStrategy::Spin,
            (_, Schedule::Closed) => WaitStrategy::Sleep { receive_timeout: receive_timeout(timeout), busy_poll },
            _ => WaitStrategy::Until { busy_poll },
        }
    }

    /// The strategy of a stream, which always has something due at an instant.
    pub fn of_stream(wait: WaitMode) -> WaitStrategy {
        match wait {
            WaitMode::Spin => WaitStrategy::Spin,
            wait => WaitStrategy::Until { busy_poll: wait == WaitMode::BusyPoll },
        }
    }

    pub(super) const fn busy_polls(self) -> bool {
        matches!(self, WaitStrategy::Sleep { busy_poll: true, .. } | WaitStrategy::Until { busy_poll: true })
    }

    /// How to wait now, for at most `max_wait`.
    #[inline]
    pub(super) fn step(self, max_wait: Nanos) -> WaitStep {
        match self {
            WaitStrategy::Spin => WaitStep::Receive,
            WaitStrategy::Sleep { receive_timeout: Some(timeout), .. } if max_wait >= timeout + TIMEOUT_MARGIN => {
                WaitStep::SleepInReceive
            }
            _ if max_wait <= Nanos::ZERO => WaitStep::Receive,
            WaitStrategy::Sleep { .. } | WaitStrategy::Until { .. } => WaitStep::Poll(max_wait.min(defaults::NAP)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitStep {
    /// Receive with the socket's time-out.
    SleepInReceive,
    /// Poll for readiness, at most so long, then receive what is there.
    Poll(Nanos),
    Receive,
}

/// SO_RCVTIMEO ends up to two ticks late, and a tick at HZ 100 is 10 ms.
const TIMEOUT_MARGIN: Nanos = Nanos::from_millis(20);
/// A shorter time-out hardly ever passes before the answer comes; it would only wake the thread.
const TIMEOUT_MIN: Nanos = Nanos::from_millis(1);

/// The receive time-out of a closed loop: it ends before the run's `timeout`, however late the kernel wakes the thread.
fn receive_timeout(timeout: Nanos) -> Option<Nanos> {
    let receive_timeout = (timeout - TIMEOUT_MARGIN).min(defaults::NAP);
    (receive_timeout >= TIMEOUT_MIN).then_some(receive_timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strategy_follows_from_wait_mode_schedule_and_timeout() {
        let periodic = Schedule::Periodic { interval_ns: Nanos(1) };
        let short = Nanos::from_millis(3);
        let sleep = |receive_timeout| WaitStrategy::Sleep { receive_timeout, busy_poll: false };
        for (timeout_ms, expected) in [(1, None), (20, None), (21, Some(1)), (60, Some(40)), (1_000, Some(100))] {
            let strategy = WaitStrategy::new(WaitMode::Block, Schedule::Closed, Nanos::from_millis(timeout_ms));
            assert_eq!(strategy, sleep(expected.map(Nanos::from_millis)), "{timeout_ms} ms");
        }
        assert_eq!(WaitStrategy::new(WaitMode::BusyPoll, periodic, short), WaitStrategy::Until { busy_poll: true });
        assert_eq!(WaitStrategy::new(WaitMode::Spin, periodic, short), WaitStrategy::Spin);
    }

    #[test]
    fn a_wait_is_never_longer_than_asked() {
        let ms = Nanos::from_millis;
        let sleep = WaitStrategy::Sleep { receive_timeout: Some(ms(100)), busy_poll: false };
        let short = WaitStrategy::Sleep { receive_timeout: None, busy_poll: false };
        let until = WaitStrategy::Until { busy_poll: false };
        for (strategy, max_wait, expected) in [
            (sleep, ms(1_000), WaitStep::SleepInReceive),
            (sleep, ms(120), WaitStep::SleepInReceive),
            (sleep, ms(119), WaitStep::Poll(ms(100))),
            (sleep, ms(7), WaitStep::Poll(ms(7))),
            (sleep, Nanos::ZERO, WaitStep::Receive),
            (short, ms(20), WaitStep::Poll(ms(20))),
            (short, Nanos(1), WaitStep::Poll(Nanos(1))),
            (until, ms(500), WaitStep::Poll(ms(100))),
            (until, ms(-3), WaitStep::Receive),
            (WaitStrategy::Spin, ms(500), WaitStep::Receive),
        ] {
            assert_eq!(strategy.step(max_wait), expected, "{strategy:?} with {max_wait:?}");
        }
    }
}
