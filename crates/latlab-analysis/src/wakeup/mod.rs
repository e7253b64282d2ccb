//! Figures of wake-ups.

mod figures;

pub(super) use figures::WakeupAccumulator;
pub use figures::{Lateness, UnexplainedDelay, Wakeups};
