//! latlab: how long does a message take, why, and did my change make it better?
//!
//! The library is a house of floors; imports go down only (ARCHITECTURE.md, checked by `tests/tidy.rs`).
//! Two wings meet at the disk: the left one measures and writes a recording, the right one reads
//! recordings, judges and shows. Whoever changes a statistic never enters the left wing.
#![forbid(unsafe_code)]

// F0 words
pub mod caveat;
pub mod facts;
pub mod metric;
pub mod probe;
pub mod sample;
pub mod stats;
pub mod units;
// F1 intent
pub mod plan;
pub mod recipe;
pub mod schedule;
pub mod wire;
// F2 world
pub mod clock;
pub mod host;
pub mod load;
pub mod numbers;
mod own_process;
pub mod recording;
pub mod threads;
pub mod transport;
// F3 measuring
pub mod agent;
pub mod measure;
pub mod session;
// F4 judging
pub mod analysis;
// F5 showing
pub mod report;
// F6 conducting
pub mod experiment;
// F7 door
pub mod cli;
pub mod commands;
pub mod console;
pub mod error;
