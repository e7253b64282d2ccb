//! How long the other end may be silent. Pure: the clock is an argument.

use std::time::{Duration, Instant};

use crate::plan::defaults::{AGENT_DEAD_MAN, AGENT_SILENCE, SERVE_DURATION_MAX};
use crate::units::Nanos;

/// A connection over which no preamble comes is none of latlab's.
const UNMET: Duration = Duration::from_secs(10);

/// What silence means at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SilencePolicy {
    /// Nobody has introduced itself.
    Unmet,
    /// Heartbeats come.
    Idle,
    /// A run is armed.
    Armed,
}

/// The dead-man timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeadManTimer {
    silence: SilencePolicy,
    limit: Duration,
    heard: Instant,
}

impl DeadManTimer {
    /// Begins `now`.
    pub(super) fn new(now: Instant) -> DeadManTimer {
        DeadManTimer { silence: SilencePolicy::Unmet, limit: UNMET, heard: now }
    }

    /// A whole frame came.
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Heartbeats are expected from `now` on.
    pub(super) fn expect_beats(&mut self, now: Instant) {
        *self = DeadManTimer { silence: SilencePolicy::Idle, limit: AGENT_SILENCE.to_duration(), heard: now };
    }

    /// A run of `planned` begins `now`; no plan is longer than a session can be.
    pub(super) fn arm(&mut self, planned: Nanos, now: Instant) {
        let limit = (planned.min(SERVE_DURATION_MAX) + AGENT_DEAD_MAN).to_duration();
        *self = DeadManTimer { silence: SilencePolicy::Armed, limit, heard: now };
    }

    /// When everything is undone unless something is heard before.
    pub(super) fn deadline(&self) -> Instant {
        self.heard + self.limit
    }

    /// What the silence means, and how long it lasts at most.
    pub(super) const fn state(&self) -> (SilencePolicy, Duration) {
        (self.silence, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_ends_sooner_or_later() {
        let start = Instant::now();
        let after = |span: Duration| start + span;
        let mut watch = DeadManTimer::new(start);
        assert_eq!(watch.deadline(), after(UNMET));
        let met = after(Duration::from_secs(1));
        watch.expect_beats(met);
        assert_eq!(watch.deadline(), after(Duration::from_millis(2_500)));
        for (planned, seconds) in [(Nanos::from_secs(10), 15), (Nanos(-7), 4), (Nanos::MAX, 7 * 24 * 3_600 + 5)] {
            watch.arm(planned, start);
            let deadline = watch.deadline();
            assert!(
                deadline >= after(Duration::from_secs(seconds)) && deadline < after(Duration::from_secs(seconds + 1))
            );
        }
        watch.arm(Nanos::from_secs(60), start);
        watch.hear(after(Duration::from_secs(30)));
        assert_eq!(watch.deadline(), after(Duration::from_secs(95)), "a beat starts the span anew");
    }
}
