//! Figures and caveats of wake-ups.

mod caveats;
mod cpu_activity;
mod figures;

pub(super) use caveats::{caveats, overrun_slots};
pub use cpu_activity::{CpuActivity, StateShare};
pub use figures::{Lateness, UnexplainedDelay, Wakeups};
pub(super) use figures::{WakeupAccumulator, is_backlog};
