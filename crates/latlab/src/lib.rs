//! latlab: how long does a message take, why, and did my change make it better?
//!
//! This crate is the program: arguments, commands, experiments, the console. The other crates of the workspace are its
//! layers (ARCHITECTURE.md): one half measures and writes recordings, the other reads recordings, judges and reports.
#![forbid(unsafe_code)]

pub use latlab_analysis as analysis;
pub use latlab_formats as formats;
pub use latlab_measure::{agent, clock, host, load, measure, session, transport, wire};
pub use latlab_plan::{facts, plan, recipe};
pub use latlab_platform as platform;
pub use latlab_recording as recording;
pub use latlab_report as report;
pub use latlab_stats as stats;
pub use latlab_terms::{diagnostics, metric, probe, sample, units};

pub mod cli;
pub mod commands;
pub mod console;
pub mod experiment;
pub mod tui;
