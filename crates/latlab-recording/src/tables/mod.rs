//! The Parquet tables of a recording: one file per table over a common encoder and decoder.
//!
//! `column` has types and values of columns, `encode` and `decode` write and read any table, `file` checks what is read
//! before it is decoded, `uniform` gives the rows of any table in one form,
//! and each of the other files has the columns of its table. Tables, columns and encodings: docs/recording.md, sections 3 to 6.

pub(super) mod column;
pub(super) mod decode;
pub(super) mod encode;
pub(super) mod file;
pub(super) mod host;
pub(super) mod intervals;
pub(super) mod probes;
mod thrift;
pub(super) mod uniform;
pub(super) mod values;
pub(super) mod wakeups;

/// Maximum number of rows of a row group, near DuckDB's unit of parallel work.
pub(super) const GROUP_ROWS: usize = 1 << 17;
