//! `wakeups.parquet`: a row per slot of each thread that slept, in the order in which the slots were due.

use std::io;
use std::io::Write;

use parquet::errors::Result as ParquetResult;

use super::column::ColumnType::{I64, U16, U64, Word};
use super::column::{ColumnSpec, IntColumn, WordColumn};
use super::decode::TableReader;
use super::encode::TableWriter;
use super::file::TableFile;
use super::probes::parse_phase;
use crate::plan::Via;
use crate::probe::Phase;
use crate::recording::error::RecordingError;

/// The file's name in a recording's directory.
pub(crate) const WAKEUPS: &str = "wakeups.parquet";

pub(super) const COLUMNS: [ColumnSpec; 6] = [
    ColumnSpec::required("seq", U64),
    ColumnSpec::required("phase", Word),
    ColumnSpec::required("due_ns", I64),
    ColumnSpec::required("woke_ns", I64),
    ColumnSpec::nullable("cpu", U16),
    ColumnSpec::required("via", Word),
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WakeupBatch {
    pub rows: usize,
    /// The slot, from 0; each thread counts its own.
    pub seq: IntColumn,
    pub phase: WordColumn<Phase>,
    /// When the thread was due to wake, ns of CLOCK_MONOTONIC.
    pub due_ns: IntColumn,
    /// The first clock read after the call, ns of CLOCK_MONOTONIC.
    pub woke_ns: IntColumn,
    /// The CPU that the thread slept for, else the one that it woke on.
    pub cpu: IntColumn,
    /// The call that it slept in.
    pub via: WordColumn<Via>,
}

/// Writes `batches` as the table of the run `run_id` to `target`.
pub(crate) fn write<W: Write + Send>(
    target: W,
    run_id: &str,
    batches: impl Iterator<Item = io::Result<WakeupBatch>>,
) -> ParquetResult<W> {
    let mut table = TableWriter::new(target, run_id, "wakeup", &COLUMNS)?;
    for batch in batches {
        let batch = batch?;
        let mut group = table.group(batch.rows)?;
        group.ints(&batch.seq)?;
        group.words(&batch.phase, Phase::word)?;
        group.ints(&batch.due_ns)?;
        group.ints(&batch.woke_ns)?;
        group.ints(&batch.cpu)?;
        group.words(&batch.via, Via::word)?;
        group.close()?;
    }
    table.finish()
}

/// The table in `file`.
///
/// # Errors
/// If it has other columns.
pub(crate) fn open(file: TableFile) -> Result<TableReader, RecordingError> {
    TableReader::new(file, &COLUMNS)
}

/// A batch for each row group.
pub(crate) fn batches(table: TableReader) -> impl Iterator<Item = Result<WakeupBatch, RecordingError>> {
    table.groups(|group| {
        Ok(WakeupBatch {
            rows: group.rows,
            seq: group.ints(0)?,
            phase: group.words(1, parse_phase)?,
            due_ns: group.ints(2)?,
            woke_ns: group.ints(3)?,
            cpu: group.ints(4)?,
            via: group.words(5, Via::from_word)?,
        })
    })
}
