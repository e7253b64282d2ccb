//! Figures and caveats of wake-ups.

mod caveats;
mod figures;

pub(super) use caveats::{caveats, overrun_slots};
pub use figures::{CpuActivity, Lateness, StateShare, UnexplainedDelay, Wakeups};
pub(super) use figures::{WakeupAccumulator, is_backlog};
