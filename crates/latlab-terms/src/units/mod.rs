//! Quantities whose type has their unit, and their conversion from and to text.

pub mod human;
pub mod time;

pub use time::{ClockPair, Nanos, ReflectorClock, SenderClock, SpanRange, Stamp};
