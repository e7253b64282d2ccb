//! latlab: how long does a message take, why, and did my change make it better?
//!
//! The modules are layers: imports go down only (ARCHITECTURE.md, checked by `tests/tidy.rs`). One half measures and
//! writes recordings, the other reads recordings, judges and reports; only recordings connect the two.
#![forbid(unsafe_code)]

pub mod diagnostics;
// terms
pub mod facts;
pub mod metric;
pub mod probe;
pub mod sample;
pub mod stats;
pub mod units;
// intent
pub mod plan;
pub mod recipe;
pub mod wire;
// system
pub mod clock;
pub mod formats;
pub mod host;
pub mod load;
pub mod platform;
pub mod recording;
pub mod transport;
// measuring
pub mod agent;
pub mod measure;
pub mod session;
// judging
pub mod analysis;
// reporting
pub mod report;
// experiments
pub mod experiment;
// commands
pub mod cli;
pub mod commands;
pub mod console;
pub mod tui;
