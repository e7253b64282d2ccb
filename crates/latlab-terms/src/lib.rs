//! The words of latlab: units, metrics, probes, samples, and messages for users.
#![forbid(unsafe_code)]

pub mod diagnostics;
pub mod metric;
pub mod probe;
pub mod sample;
pub mod units;
mod worded;
