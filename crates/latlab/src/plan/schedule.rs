//! When probes are due. Pure: offsets from the start of the schedule, chance from a seed.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// What decides when the next probe leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Schedule {
    /// The answer to the last one, or its time-out.
    Closed,
    /// A fixed gap, whatever comes back.
    Periodic {
        /// The gap.
        interval_ns: Nanos,
    },
    /// Exponential gaps (RFC 2330, section 11.1.1): samples that do not lock onto periodic behaviour.
    Poisson {
        /// The mean gap.
        mean_ns: Nanos,
        /// Seed of the gaps, recorded so that a run can be repeated.
        seed: u64,
    },
}

impl Schedule {
    /// The (mean) gap, where the schedule has one.
    pub const fn interval(self) -> Option<Nanos> {
        match self {
            Schedule::Closed => None,
            Schedule::Periodic { interval_ns } => Some(interval_ns),
            Schedule::Poisson { mean_ns, .. } => Some(mean_ns),
        }
    }

    /// The word in a condition: `closed`, `periodic` or `poisson`.
    pub const fn word(self) -> &'static str {
        match self {
            Schedule::Closed => "closed",
            Schedule::Periodic { .. } => "periodic",
            Schedule::Poisson { .. } => "poisson",
        }
    }

    /// The due times after the start, without end; none for a closed loop.
    pub fn due_times(self) -> DueTimes {
        let rng = match self {
            Schedule::Poisson { seed, .. } => Pcg64Mcg::seed_from_u64(seed),
            _ => Pcg64Mcg::seed_from_u64(0),
        };
        DueTimes { schedule: self, next: Nanos::ZERO, rng }
    }
}

/// Offsets from the start of a schedule, each later than the one before.
#[derive(Clone, Debug)]
pub struct DueTimes {
    schedule: Schedule,
    next: Nanos,
    rng: Pcg64Mcg,
}

impl Iterator for DueTimes {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        let due = self.next;
        self.next += match self.schedule {
            Schedule::Closed => return None,
            Schedule::Periodic { interval_ns } => interval_ns,
            Schedule::Poisson { mean_ns, .. } => exponential(mean_ns, &mut self.rng),
        };
        Some(due)
    }
}

/// One exponential gap by inversion; at least 1 ns, so that due times stay distinct.
fn exponential(mean: Nanos, rng: &mut Pcg64Mcg) -> Nanos {
    let uniform = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    Nanos(((mean.0 as f64) * -(1.0 - uniform).ln()).max(1.0) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periodic_gaps_do_not_drift() {
        let schedule = Schedule::Periodic { interval_ns: Nanos(333) };
        let due: Vec<_> = schedule.due_times().take(4).map(|offset| offset.0).collect();
        assert_eq!(due, [0, 333, 666, 999]);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_repeat_by_seed() {
        let schedule = Schedule::Poisson { mean_ns: Nanos(1_000_000), seed: 7 };
        let last = schedule.due_times().nth(100_000).expect("endless");
        assert!((last.0 as f64 / 1e11 - 1.0).abs() < 0.02, "mean gap {}", last.0 / 100_000);
        assert!(schedule.due_times().take(50).eq(schedule.due_times().take(50)));
    }

    #[test]
    fn a_closed_loop_has_no_due_times() {
        assert_eq!(Schedule::Closed.due_times().next(), None);
    }
}
