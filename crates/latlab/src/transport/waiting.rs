//! How long one wait for an answer may last, and in which call.

use crate::plan::{WaitMode, defaults};
use crate::schedule::Schedule;
use crate::units::Nanos;

/// How a transport waits for an answer: settled when it is opened, so that the loop has no branch for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
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

impl Waiting {
    /// What `wait` means for a run on `schedule` with this time-out.
    pub fn settle(wait: WaitMode, schedule: Schedule, timeout: Nanos) -> Waiting {
        let busy_poll = wait == WaitMode::BusyPoll;
        match (wait, schedule) {
            (WaitMode::Spin, _) => Waiting::Spin,
            (_, Schedule::Closed) => Waiting::Sleep { nap: nap_within(timeout), busy_poll },
            _ => Waiting::Until { busy_poll },
        }
    }

    pub(super) const fn busy_polls(self) -> bool {
        matches!(self, Waiting::Sleep { busy_poll: true, .. } | Waiting::Until { busy_poll: true })
    }

    /// How to wait now, with so much patience left.
    #[inline]
    pub(super) fn step(self, patience: Nanos) -> Step {
        match self {
            Waiting::Spin => Step::Look,
            Waiting::Sleep { nap: Some(nap), .. } if patience >= nap + NAP_MARGIN => Step::Sleep,
            _ if patience <= Nanos::ZERO => Step::Look,
            Waiting::Sleep { .. } | Waiting::Until { .. } => Step::Poll(patience.min(defaults::NAP)),
        }
    }
}

/// One wait for one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
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
        let nap = |nap| Waiting::Sleep { nap, busy_poll: false };
        for (timeout_ms, expected) in [(1, None), (20, None), (21, Some(1)), (60, Some(40)), (1_000, Some(100))] {
            let settled = Waiting::settle(WaitMode::Block, Schedule::Closed, Nanos::from_millis(timeout_ms));
            assert_eq!(settled, nap(expected.map(Nanos::from_millis)), "{timeout_ms} ms");
        }
        assert_eq!(Waiting::settle(WaitMode::BusyPoll, periodic, short), Waiting::Until { busy_poll: true });
        assert_eq!(Waiting::settle(WaitMode::Spin, periodic, short), Waiting::Spin);
    }

    #[test]
    fn a_wait_ends_no_later_than_its_patience() {
        let ms = Nanos::from_millis;
        let sleep = Waiting::Sleep { nap: Some(ms(100)), busy_poll: false };
        let short = Waiting::Sleep { nap: None, busy_poll: false };
        let until = Waiting::Until { busy_poll: false };
        for (waiting, patience, expected) in [
            (sleep, ms(1_000), Step::Sleep),
            (sleep, ms(120), Step::Sleep),
            (sleep, ms(119), Step::Poll(ms(100))),
            (sleep, ms(7), Step::Poll(ms(7))),
            (sleep, Nanos::ZERO, Step::Look),
            (short, ms(20), Step::Poll(ms(20))),
            (short, Nanos(1), Step::Poll(Nanos(1))),
            (until, ms(500), Step::Poll(ms(100))),
            (until, ms(-3), Step::Look),
            (Waiting::Spin, ms(500), Step::Look),
        ] {
            assert_eq!(waiting.step(patience), expected, "{waiting:?} with {patience:?}");
        }
    }
}
