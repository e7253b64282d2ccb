//! What is known about a run of wake-ups beside its rows.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// How the kernel treated the threads that slept, and why the run stopped, if a late wake-up stopped it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupFacts {
    /// The timer slack that was in force, read back in a thread that slept.
    pub timer_slack_ns: Option<Nanos>,
    /// Its niceness, −20 to 19: select, poll and epoll stretch the time-outs of nice threads five times as much.
    pub niceness: Option<i32>,
    /// The wake-up that ended the run; null where none did.
    pub broke: Option<LateWakeup>,
    /// Whether the `--break` of a run beside it ended this one before its time; absent where none did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// Measured slots that nobody slept for, since their thread was too far behind; absent where there were none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub not_slept: u64,
    /// The file beside the rows that holds a trace around it; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

const fn is_none(count: &u64) -> bool {
    *count == 0
}

/// One wake-up that was later than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateWakeup {
    /// Its slot.
    pub seq: u64,
    /// The CPU, where it is known.
    pub cpu: Option<u16>,
    /// When it was due, ns of CLOCK_MONOTONIC as the next.
    pub due_ns: i64,
    /// When the thread ran.
    pub woke_ns: i64,
}
