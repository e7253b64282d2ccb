//! A ping run: what its probes are, and when they are due.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use super::defaults;
use super::path::PathSpec;
use super::transport::TransportKind;
use super::wakeup::ConcurrentWakeups;
use crate::units::Nanos;

crate::worded! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Protocol: word {
        /// A session of latlab's protocol (docs/protocol.md).
        Native = "native",
        /// A bare payload that any UDP echo returns unchanged.
        Echo = "echo",
    }
}

crate::worded! {
    /// Where probes are stamped besides by the program.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum StampLayer: word {
        /// By the kernels of both ends (SO_TIMESTAMPING).
        Kernel = "kernel",
        /// By their network interfaces too.
        Nic = "nic",
    }
}

/// The parameters of a ping run: round trips of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PingSpec {
    pub transport: TransportKind,
    pub protocol: Protocol,
    pub path: PathSpec,
    /// Transport payload in both directions.
    pub size_bytes: u32,
    pub schedule: Schedule,
    /// Answers after this time are `late`.
    pub timeout_ns: Nanos,
    /// How far a sender may fall behind its schedule before due probes become `not_sent`.
    pub max_backlog_ns: Nanos,
    /// Wake-ups measured during the probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_wakeup: Option<ConcurrentWakeups>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<StampLayer>,
}

impl PingSpec {
    /// A ping on `schedule`, with every other parameter at its default.
    pub const fn on(schedule: Schedule) -> PingSpec {
        PingSpec {
            transport: TransportKind::Udp,
            protocol: Protocol::Native,
            path: PathSpec::SYSTEM,
            size_bytes: defaults::SIZE_BYTES,
            schedule,
            timeout_ns: defaults::TIMEOUT,
            max_backlog_ns: defaults::MAX_BACKLOG,
            with_wakeup: None,
            stamps: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Schedule {
    /// At the answer to the previous probe, or its time-out.
    Closed,
    Periodic {
        interval_ns: Nanos,
    },
    /// At exponential intervals (RFC 2330, section 11.1.1), which do not synchronise with periodic behaviour.
    Poisson {
        mean_ns: Nanos,
        seed: u64,
    },
}

impl Schedule {
    /// The (mean) interval, if the schedule has one.
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

    /// The endless due times after the start; none for a closed loop.
    pub fn due_times(self) -> DueTimes {
        let rng = match self {
            Schedule::Poisson { seed, .. } => Pcg64Mcg::seed_from_u64(seed),
            _ => Pcg64Mcg::seed_from_u64(0),
        };
        DueTimes { schedule: self, next: Nanos::ZERO, rng }
    }
}

/// Offsets from the start of a schedule, each later than the previous one.
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

/// An exponential interval by inversion, at least 1 ns, so that due times are distinct.
fn exponential(mean: Nanos, rng: &mut Pcg64Mcg) -> Nanos {
    let uniform = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    Nanos(((mean.0 as f64) * -(1.0 - uniform).ln()).max(1.0) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periodic_due_times_do_not_drift() {
        let schedule = Schedule::Periodic { interval_ns: Nanos(333) };
        let due: Vec<_> = schedule.due_times().take(4).map(|offset| offset.0).collect();
        assert_eq!(due, [0, 333, 666, 999]);
    }

    #[test]
    fn poisson_intervals_have_their_mean_and_are_reproducible() {
        let schedule = Schedule::Poisson { mean_ns: Nanos(1_000_000), seed: 7 };
        let last = schedule.due_times().nth(100_000).expect("endless");
        assert!((last.0 as f64 / 1e11 - 1.0).abs() < 0.02, "mean gap {}", last.0 / 100_000);
        assert!(schedule.due_times().take(50).eq(schedule.due_times().take(50)));
    }
}
