//! Quantities with their unit in the type, and the one place where they become text.

pub mod human;
pub mod time;

pub use time::{Nanos, Realtime, ReflectorClock, SenderClock, Stamp};
