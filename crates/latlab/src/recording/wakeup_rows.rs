//! `wakeups.parquet`, written and read, and the same rows straight from a spool.

use std::io;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::errors::Result;
use parquet::file::writer::SerializedFileWriter;

use super::batch::{IntColumn, WordColumn};
use super::column_file::ColumnFile;
use super::columns::{ColumnShape, ColumnType, schema_of};
use super::error::RecordingError;
use super::event::SpoolEvent;
use super::join::{BLOCK_PROBES, JoinCounts};
use super::parquet_batches::phase_of;
use super::parquet_rows::{Scratch, properties};
use super::spool::Spool;
use crate::plan::Via;
use crate::probe::Phase;
use crate::units::Stamp;

/// The file's name in a recording's directory.
pub(crate) const WAKEUPS: &str = "wakeups.parquet";
/// Events of the spool looked at in one go.
const LOOK_EVENTS: u64 = 1 << 14;

/// Every column, in the order of the file.
const COLUMNS: [ColumnShape; 6] = [
    ColumnShape { name: "seq", column_type: ColumnType::Wide { signed: false }, nullable: false },
    ColumnShape { name: "phase", column_type: ColumnType::Word, nullable: false },
    ColumnShape { name: "due_ns", column_type: ColumnType::Wide { signed: true }, nullable: false },
    ColumnShape { name: "woke_ns", column_type: ColumnType::Wide { signed: true }, nullable: false },
    ColumnShape { name: "cpu", column_type: ColumnType::Narrow { bits: 16, signed: false }, nullable: true },
    ColumnShape { name: "via", column_type: ColumnType::Word, nullable: false },
];

/// Consecutive wake-ups, in the order in which they were due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WakeupBatch {
    /// How many.
    pub rows: usize,
    /// The slot, from 0; each thread counts its own.
    pub seq: IntColumn,
    /// Whether it counts.
    pub phase: WordColumn<Phase>,
    /// When it was due, ns of CLOCK_MONOTONIC as the next.
    pub due_ns: IntColumn,
    /// The first clock read after the call.
    pub woke_ns: IntColumn,
    /// The CPU that the thread slept for, else the one that it woke on.
    pub cpu: IntColumn,
    /// How it slept.
    pub via: WordColumn<Via>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    seq: u64,
    phase: Phase,
    due: i64,
    woke: i64,
    cpu: Option<u16>,
    via: Via,
}

fn batch(rows: &[Row]) -> WakeupBatch {
    WakeupBatch {
        rows: rows.len(),
        seq: rows.iter().map(|row| Some(row.seq as i64)).collect(),
        phase: rows.iter().map(|row| row.phase).collect(),
        due_ns: rows.iter().map(|row| Some(row.due)).collect(),
        woke_ns: rows.iter().map(|row| Some(row.woke)).collect(),
        cpu: rows.iter().map(|row| row.cpu.map(i64::from)).collect(),
        via: rows.iter().map(|row| row.via).collect(),
    }
}

/// The wake-ups of a spool, batch by batch, in the order in which they were due.
///
/// The writer empties one ring after the other, so that events of several threads stand in the spool in stretches.
/// So many rows are held back that any stretch shorter than a batch finds its place.
#[derive(Debug)]
pub(crate) struct SpooledWakeups {
    spool: Arc<Spool>,
    next: u64,
    held: Vec<Row>,
    tally: JoinCounts,
}

impl SpooledWakeups {
    pub(crate) fn new(spool: Arc<Spool>) -> SpooledWakeups {
        SpooledWakeups { spool, next: 0, held: Vec::new(), tally: JoinCounts::default() }
    }

    /// The next rows; none after the last.
    pub(crate) fn next_batch(&mut self) -> io::Result<Option<WakeupBatch>> {
        while self.held.len() < 2 * BLOCK_PROBES && self.next < self.spool.events() {
            let end = (self.next + LOOK_EVENTS).min(self.spool.events());
            let (held, tally) = (&mut self.held, &mut self.tally);
            self.spool.walk(self.next..end, |_, event| take(held, tally, event))?;
            self.next = end;
        }
        if self.held.is_empty() {
            return Ok(None);
        }
        self.held.sort_by_key(|row| (row.due, row.cpu));
        let rest = self.held.split_off(self.held.len().min(BLOCK_PROBES));
        let rows = std::mem::replace(&mut self.held, rest);
        self.tally.rows += rows.len() as u64;
        Ok(Some(batch(&rows)))
    }

    /// What was seen so far; complete after the last batch.
    pub(crate) fn tally(&self) -> JoinCounts {
        self.tally
    }
}

fn take(held: &mut Vec<Row>, tally: &mut JoinCounts, event: Option<SpoolEvent>) {
    match event {
        Some(SpoolEvent::Woke { seq, phase, due, woke, cpu, via }) => {
            tally.latest = tally.latest.max(Some(woke));
            let [due, woke] = [due, woke].map(Stamp::as_nanos);
            held.push(Row { seq: seq.0, phase, due, woke, cpu, via });
        }
        Some(SpoolEvent::Gap { events, .. }) => tally.gap_events += events,
        Some(_) => (),
        None => tally.holes += 1,
    }
}

/// Writes the wake-ups of `spool` as the `wakeups.parquet` of the run `run_id` to `target`; what was seen.
pub(crate) fn write<W: Write + Send>(target: W, run_id: &str, spool: &Arc<Spool>) -> Result<(W, JoinCounts)> {
    let properties = Arc::new(properties(run_id, &COLUMNS));
    let mut file = SerializedFileWriter::new(target, schema_of("wakeup", COLUMNS)?, properties)?;
    let mut scratch = Scratch::default();
    let mut wakeups = SpooledWakeups::new(Arc::clone(spool));
    while let Some(batch) = wakeups.next_batch()? {
        let mut group = file.next_row_group()?;
        scratch.write_ints(&mut group, COLUMNS[0], &batch.seq)?;
        scratch.write_words(&mut group, batch.rows, &batch.phase, Phase::word)?;
        scratch.write_ints(&mut group, COLUMNS[2], &batch.due_ns)?;
        scratch.write_ints(&mut group, COLUMNS[3], &batch.woke_ns)?;
        scratch.write_ints(&mut group, COLUMNS[4], &batch.cpu)?;
        scratch.write_words(&mut group, batch.rows, &batch.via, Via::word)?;
        group.close()?;
    }
    Ok((file.into_inner()?, wakeups.tally()))
}

/// The `wakeups.parquet` at `path`, open.
pub(crate) fn open(path: &Path) -> std::result::Result<ColumnFile, RecordingError> {
    ColumnFile::open(path, COLUMNS)
}

/// A batch for each row group of `file`.
pub(crate) fn batches(file: ColumnFile) -> impl Iterator<Item = std::result::Result<WakeupBatch, RecordingError>> {
    file.groups(|group| {
        Ok(WakeupBatch {
            rows: group.rows,
            seq: group.ints(0)?,
            phase: group.words(1, phase_of)?,
            due_ns: group.ints(2)?,
            woke_ns: group.ints(3)?,
            cpu: group.ints(4)?,
            via: group.words(5, Via::from_word)?,
        })
    })
}
