//! How long one wait for an answer may last, and in which call.

use crate::plan::Schedule;
use crate::plan::{WaitMode, defaults};
use crate::units::Nanos;

/// How a transport waits for an answer: settled when it is opened, so that the loop has no branch for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitStrategy {
    /// Sleep in the receive call while the patience holds a whole nap: one system call per answer. What is left
    /// after that, and every wait of a shorter time-out, as in `Until`. For closed loops, where nothing but the
    /// answer is waited for.
    Sleep {
        /// The kernel rounds it up to its tick and adds one; none where the time-out has no room for that.
        nap: Option<Nanos>,
        /// Whether the kernel polls the driver before it sleeps (SO_BUSY_POLL).
        busy_poll: bool,
    },
    /// Sleep until something is there or the patience has run out, to the nanosecond, then receive: two
    /// system calls per answer. For schedules, where the next probe is due at an instant.
    Until {
        /// As above; in the poll call it acts only where `net.core.busy_poll` is set.
        busy_poll: bool,
    },
    /// Look and return at once.
    Spin,
}

impl WaitStrategy {
    /// What `wait` means for a run on `schedule` with this time-out.
    pub fn settle(wait: WaitMode, schedule: Schedule, timeout: Nanos) -> WaitStrategy {
        let busy_poll = wait == WaitMode::BusyPoll;
        match (wait, schedule) {
            (WaitMode::Spin, _) => WaitStrategy::Spin,
            (_, Schedule::Closed) => WaitStrategy::Sleep { nap: nap_within(timeout), busy_poll },
            _ => WaitStrategy::Until { busy_poll },
        }
    }

    pub(super) const fn busy_polls(self) -> bool {
        matches!(self, WaitStrategy::Sleep { busy_poll: true, .. } | WaitStrategy::Until { busy_poll: true })
    }

    /// How to wait now, with so much patience left.
    #[inline]
    pub(super) fn step(self, patience: Nanos) -> WaitStep {
        match self {
            WaitStrategy::Spin => WaitStep::Look,
            WaitStrategy::Sleep { nap: Some(nap), .. } if patience >= nap + NAP_MARGIN => WaitStep::Sleep,
            _ if patience <= Nanos::ZERO => WaitStep::Look,
            WaitStrategy::Sleep { .. } | WaitStrategy::Until { .. } => WaitStep::Poll(patience.min(defaults::NAP)),
        }
    }
}

/// One wait for one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitStep {
    /// In the receive call, for the nap that was settled.
    Sleep,
    /// Ask for readiness, at most so long, then receive what is there.
    Poll(Nanos),
    /// Receive what is there.
    Look,
}

/// A nap of SO_RCVTIMEO ends up to two ticks late, and a tick at HZ 100 is 10 ms.
const NAP_MARGIN: Nanos = Nanos::from_millis(20);
/// A shorter nap is hardly ever whole before the answer comes; it would only wake the thread.
const NAP_MIN: Nanos = Nanos::from_millis(1);

/// The nap of a closed loop with this time-out: it ends before the time-out does, however late the kernel wakes us.
fn nap_within(timeout: Nanos) -> Option<Nanos> {
    let nap = (timeout - NAP_MARGIN).min(defaults::NAP);
    (nap >= NAP_MIN).then_some(nap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_follows_from_schedule_and_wish() {
        let periodic = Schedule::Periodic { interval_ns: Nanos(1) };
        let short = Nanos::from_millis(3);
        let nap = |nap| WaitStrategy::Sleep { nap, busy_poll: false };
        for (timeout_ms, expected) in [(1, None), (20, None), (21, Some(1)), (60, Some(40)), (1_000, Some(100))] {
            let settled = WaitStrategy::settle(WaitMode::Block, Schedule::Closed, Nanos::from_millis(timeout_ms));
            assert_eq!(settled, nap(expected.map(Nanos::from_millis)), "{timeout_ms} ms");
        }
        assert_eq!(WaitStrategy::settle(WaitMode::BusyPoll, periodic, short), WaitStrategy::Until { busy_poll: true });
        assert_eq!(WaitStrategy::settle(WaitMode::Spin, periodic, short), WaitStrategy::Spin);
    }

    #[test]
    fn a_wait_ends_no_later_than_its_patience() {
        let ms = Nanos::from_millis;
        let sleep = WaitStrategy::Sleep { nap: Some(ms(100)), busy_poll: false };
        let short = WaitStrategy::Sleep { nap: None, busy_poll: false };
        let until = WaitStrategy::Until { busy_poll: false };
        for (waiting, patience, expected) in [
            (sleep, ms(1_000), WaitStep::Sleep),
            (sleep, ms(120), WaitStep::Sleep),
            (sleep, ms(119), WaitStep::Poll(ms(100))),
            (sleep, ms(7), WaitStep::Poll(ms(7))),
            (sleep, Nanos::ZERO, WaitStep::Look),
            (short, ms(20), WaitStep::Poll(ms(20))),
            (short, Nanos(1), WaitStep::Poll(Nanos(1))),
            (until, ms(500), WaitStep::Poll(ms(100))),
            (until, ms(-3), WaitStep::Look),
            (WaitStrategy::Spin, ms(500), WaitStep::Look),
        ] {
            assert_eq!(waiting.step(patience), expected, "{waiting:?} with {patience:?}");
        }
    }
}
