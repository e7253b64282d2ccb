//! Recordings: the disk in the middle of the river. Format: docs/recording.md.
//!
//! Left of it: `Store`, `RecordingWriter`, `EventLog`. Right of it: `Recording` and its batches. Why it
//! goes through a ring, a spool and a join: docs/design/0002-recording.md.

mod batch;
mod block;
mod column_file;
mod columns;
mod conclude;
mod drain;
mod error;
pub mod event;
mod host_parquet;
mod host_rows;
mod host_spool;
mod interval_rows;
mod interval_words;
mod join;
#[cfg(test)]
mod join_against_naive;
pub mod manifest;
mod manifest_file;
mod naming;
mod parquet_batches;
mod parquet_rows;
pub mod reader;
mod ring;
mod spool;
mod store;
mod trace;
mod wakeup_rows;
mod word_pages;
mod writer;

pub use batch::{IntColumn, ProbeBatch, WordColumn};
pub use columns::ProbeColumn;
pub use drain::RecordingProgress;
pub use error::RecordingError;
pub use host_spool::HostLog;
pub use naming::{fresh_run_id, started_at};
pub use reader::{HostSamples, IntervalBatches, ProbeBatches, Recording, WakeupBatches};
pub use ring::EventLog;
pub use store::{Listing, ListingState, Store};
pub(crate) use trace::{trace_awaited, trace_missing};
pub use wakeup_rows::WakeupBatch;
pub use writer::{Finished, RecordingWriter};
