//! Recordings: the files between measurement and analysis. Format: docs/recording.md.
//!
//! A run writes with `Store`, `RecordingWriter` and `EventLog`; analysis reads with `Recording`. Events go through a ring
//! and a spool, and are joined into tables after the run: docs/design/0002-recording.md.
//!
//! The round trips of a recording, without the lost ones:
//!
//! ```no_run
//! use latlab_recording::{ProbeColumn, Recording};
//!
//! let recording = Recording::open("latlab-runs/20261121T021500Z-ping-7f3a".as_ref())?;
//! for batch in recording.probes(&[ProbeColumn::SentNs, ProbeColumn::ReceivedNs])? {
//!     let batch = batch?;
//!     let round_trip = |row| Some(batch.received_ns.get(row)? - batch.sent_ns.get(row)?);
//!     println!("{:?} ns", (0..batch.rows).filter_map(round_trip).max());
//! }
//! # Ok::<(), latlab_recording::RecordingError>(())
//! ```
#![forbid(unsafe_code)]

use latlab_plan::{facts, plan};
use latlab_platform as platform;
use latlab_stats as stats;
use latlab_terms::{diagnostics, metric, probe, units, worded};

mod block;
mod checksums;
mod conclude;
mod drain;
mod error;
mod event;
mod host_spool;
mod import;
mod join;
#[cfg(test)]
mod join_tests;
mod live_delays;
pub mod manifest;
mod manifest_file;
mod plausible;
pub mod reader;
mod ring;
mod spool;
mod store;
mod tables;
pub mod trace;
mod writer;

pub use conclude::mark_failed;
pub use drain::{ProbeCounts, RecordingProgress, SlowSpan};
pub use error::RecordingError;
pub use event::{ProbeStamps, SpoolEvent};
pub use host_spool::HostLog;
pub use import::ImportWriter;
pub use live_delays::{LiveDelays, LiveSecond, SECONDS_KEPT};
pub use reader::{
    Column, ColumnSpec, ColumnType, ExecutionBatch, IntColumn, PrintedBatch, ProbeBatch, ProbeColumn, RecordedRows,
    RecordedTable, Recording, UniformBatch, ValueBatch, WakeupBatch, WordColumn,
};
pub use ring::EventLog;
pub use store::{Listing, ListingState, Store, entry_names, fresh_run_id, start_in_name, started_at};
pub use tables::encode::{GroupWriter, TableWriter};
pub use writer::{Finished, RecordingWriter};
