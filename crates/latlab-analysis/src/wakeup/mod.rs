//! Figures of wake-ups.

mod figures;

pub use figures::{CpuActivity, Lateness, StateShare, UnexplainedDelay, Wakeups};
pub(super) use figures::{WakeupAccumulator, is_backlog};
