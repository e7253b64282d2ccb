//! File formats of other tools.

pub mod numbers;
