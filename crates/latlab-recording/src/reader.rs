//! Opens a recording; one whose run died is finished first.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::conclude::{
    OF_ANOTHER_RUN, conclude, count_rows, enter_counts, enter_damage, join_rules, open_host_spool, probe_rules,
    remove_spools, tables_of,
};
use super::host_spool::{HOST_SPOOL, HostSpool};
use super::join::{JoinRules, ProbeJoin, SpooledRows, SpooledWakeups};
use super::manifest::{Manifest, RunEnding};
use super::manifest_file;
use super::plausible::{Plausible, PossibleValues};
use super::spool::{SPOOL, Spool};
use super::store::trace_file;
use super::tables::decode::{Batch, TableReader};
use super::tables::file::TableFile;
use super::tables::host::{HostBatch, SampleJoin};
use super::tables::intervals::IntervalBatch;
use crate::diagnostics::Explain;
use crate::facts::{Execution, HostSample, PrintedNumber, StreamInterval};
use crate::plan::{Kind, Side};
use crate::platform::Directory;

// The types that `analysis` may use besides `Recording`.
pub use super::error::RecordingError;
pub use super::tables::column::{Column, ColumnSpec, ColumnType, IntColumn, UniformBatch, WordColumn};
pub use super::tables::executions::ExecutionBatch;
pub use super::tables::printed::PrintedBatch;
pub use super::tables::probes::{ProbeBatch, ProbeColumn};
pub use super::tables::recorded::RecordedTable;
pub use super::tables::values::ValueBatch;
pub use super::tables::wakeups::WakeupBatch;

/// Number of attempts to open a recording that another command is finishing, after the first, and the pause before
/// each.
const RETRIES: u32 = 100;
const RETRY_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Recording {
    directory: Arc<Directory>,
    manifest: Manifest,
    note: Option<String>,
    rows: RowSource,
}

#[derive(Debug)]
enum RowSource {
    Tables,
    /// The spool, joined for every reading, because the tables could not be written.
    Spool(Arc<Spool>, JoinRules),
}

impl Recording {
    /// Opens the recording in the directory `path`. One whose run died is finished first, and [`Recording::note`] says so;
    /// if it cannot be finished (a full disk, a read-only one) it is read from its spool.
    ///
    /// # Errors
    /// If the recording is missing, it is damaged or of a newer major version, or its run still goes on.
    pub fn open(path: &Path) -> Result<Recording, RecordingError> {
        let path = path.to_owned();
        match fs::metadata(&path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(RecordingError::Missing { path });
            }
            Err(error) => return Err(RecordingError::refused("open", path)(error)),
            Ok(metadata) if !metadata.is_dir() => return Err(RecordingError::NotADirectory { path, due: "recording" }),
            Ok(_) => (),
        }
        let directory = Directory::open(&path).map_err(RecordingError::refused("open", path))?;
        Recording::open_in(Arc::new(directory))
    }

    /// Opens the recording in `directory`, as [`Recording::open`].
    pub(super) fn open_in(directory: Arc<Directory>) -> Result<Recording, RecordingError> {
        match open_spool(&directory)? {
            Some(spool) => unfinished(directory, spool),
            None => finished(directory),
        }
    }

    /// The facts and settings of the run.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The directory of the recording.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The text of its [trace](super::trace) of a host, on that host's clock; `None` without one, or if it cannot be read.
    pub fn trace(&self, side: Side) -> Option<String> {
        let mut bytes = Vec::new();
        self.directory.file(trace_file(side)).ok()?.read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A note for the user that opening has finished an interrupted recording, or could not.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The batches of the table of `B`, of the columns `chosen` or of all; an impossible value in a table that
    /// latlab measured is an error. None if runs like this one have no such rows.
    fn batches<B: Batch + Plausible>(&self, chosen: Option<Vec<usize>>) -> Result<RecordedRows<B>, RecordingError> {
        if !B::TABLE.is_of(&self.manifest.spec) {
            return Ok(RecordedRows::new(std::iter::empty()));
        }
        let table = open_table(&self.directory, B::TABLE, &self.manifest)?;
        let possible = PossibleValues::of(&self.manifest);
        let (path, mut first) = (self.directory.path_of(B::TABLE.file()), 0);
        Ok(RecordedRows::new(table.batches(chosen).map(move |batch: Result<B, _>| {
            let mut batch = batch?;
            if let Some(possible) = &possible {
                batch.check(possible, first).map_err(|what| RecordingError::damaged(&path, what))?;
            }
            first += *batch.rows_mut() as u64;
            Ok(batch)
        })))
    }

    /// The probes in the order of `seq`, in batches of at most 131,072 rows that have `columns`.
    ///
    /// # Errors
    /// If the table cannot be opened. The iterator returns the error of a damaged batch.
    pub fn probes(&self, columns: &[ProbeColumn]) -> Result<RecordedRows<ProbeBatch>, RecordingError> {
        match &self.rows {
            RowSource::Spool(spool, rules) if RecordedTable::Probes.is_of(&self.manifest.spec) => {
                let rules = probe_rules(&self.manifest).unwrap_or(*rules);
                let join = ProbeJoin::new(Arc::clone(spool), rules);
                let mut join = join.map_err(RecordingError::refused("read", spool.path()))?;
                let columns = columns.to_vec();
                let next = move || join.next_block().map(|block| block.map(|block| block.batch(&columns))).transpose();
                Ok(RecordedRows::from_spool(spool, std::iter::from_fn(next)))
            }
            _ => self.batches(Some(columns.iter().map(|column| *column as usize).collect())),
        }
    }

    /// The wake-ups in the order in which they were due, in batches of at most 131,072 rows; none if the run had none.
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn wakeups(&self) -> Result<RecordedRows<WakeupBatch>, RecordingError> {
        match &self.rows {
            RowSource::Spool(spool, _) if RecordedTable::Wakeups.is_of(&self.manifest.spec) => {
                Ok(RecordedRows::from_spool(spool, SpooledWakeups::new(Arc::clone(spool))))
            }
            _ => self.batches(None),
        }
    }

    /// The intervals of a stream, in batches; none if the run had none. Those of one flow and end are in the order of
    /// time.
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn intervals(&self) -> Result<RecordedRows<Vec<StreamInterval>>, RecordingError> {
        Ok(RecordedRows::new(self.interval_batches()?.map(|batch| Ok(batch?.to_rows()))))
    }

    fn interval_batches(&self) -> Result<RecordedRows<IntervalBatch>, RecordingError> {
        let spec = &self.manifest.spec;
        match &self.rows {
            RowSource::Spool(spool, _) if RecordedTable::Intervals.is_of(spec) => {
                let size_bytes = spec.size_bytes().unwrap_or(0);
                let batch = move |rows: io::Result<Vec<StreamInterval>>| Ok(IntervalBatch::of(&rows?, size_bytes));
                Ok(RecordedRows::from_spool(spool, SpooledRows::new(Arc::clone(spool)).map(batch)))
            }
            _ => self.batches(None),
        }
    }

    /// The executions of a command in their order, in batches; none if the run had none.
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn executions(&self) -> Result<RecordedRows<ExecutionBatch>, RecordingError> {
        match &self.rows {
            RowSource::Spool(spool, _) if RecordedTable::Executions.is_of(&self.manifest.spec) => {
                let batch = |rows: io::Result<Vec<Execution>>| Ok(ExecutionBatch::of(&rows?));
                Ok(RecordedRows::from_spool(spool, SpooledRows::new(Arc::clone(spool)).map(batch)))
            }
            _ => self.batches(None),
        }
    }

    /// The numbers that a command printed, in batches, in the order of its executions; none if none were asked for.
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn printed(&self) -> Result<RecordedRows<PrintedBatch>, RecordingError> {
        match (&self.rows, self.manifest.spec.command()) {
            (RowSource::Spool(spool, _), Some(command)) => {
                let command = command.clone();
                let batch = move |rows: io::Result<Vec<PrintedNumber>>| Ok(PrintedBatch::of(&rows?, &command));
                Ok(RecordedRows::from_spool(spool, SpooledRows::new(Arc::clone(spool)).map(batch)))
            }
            _ => self.batches(None),
        }
    }

    /// The values of an imported log in its order, in batches; none if it has instants.
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn values(&self) -> Result<RecordedRows<ValueBatch>, RecordingError> {
        self.batches(None)
    }

    /// The samples of the hosts in the order in which they were taken, those of this host first; none if none were taken
    /// (format 1.0 had none).
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn host_samples(&self) -> Result<RecordedRows<(Side, HostSample)>, RecordingError> {
        let rows = self.host_batches()?.flat_map(|batch| match batch {
            Ok(batch) => batch.to_rows().into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        });
        Ok(RecordedRows::new(SampleJoin::new(rows)))
    }

    fn host_batches(&self) -> Result<RecordedRows<HostBatch>, RecordingError> {
        match (self.manifest.host_rows, &self.rows) {
            (Some(_), _) => self.batches(None),
            (None, RowSource::Tables) => Ok(RecordedRows::new(std::iter::empty())),
            (None, RowSource::Spool(..)) => match HostSpool::open(&self.directory) {
                Ok(Some(host)) => {
                    let path = self.directory.path_of(HOST_SPOOL);
                    let refused = move |error| RecordingError::refused("read", path.as_path())(error);
                    Ok(RecordedRows::new(host.batches().map(move |batch| batch.map_err(&refused))))
                }
                // A damaged host spool is reported by a caveat; the probes can be read.
                Ok(None) | Err(RecordingError::Damaged { .. }) => Ok(RecordedRows::new(std::iter::empty())),
                Err(error) => Err(error),
            },
        }
    }

    /// Whether runs like this one have rows in `table`. Host samples are never certain.
    pub fn can_have(&self, table: RecordedTable) -> bool {
        table.is_of(&self.manifest.spec)
    }

    /// The rows of `table` in its order, in batches of at most 131,072; none if the run has no such rows.
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn rows_of(&self, table: RecordedTable) -> Result<RecordedRows<UniformBatch>, RecordingError> {
        fn uniform(batches: RecordedRows<impl Batch>) -> RecordedRows<UniformBatch> {
            RecordedRows::new(batches.map(|batch| batch.map(Batch::into_uniform)))
        }
        Ok(match table {
            RecordedTable::Probes => uniform(self.probes(&ProbeColumn::ALL)?),
            RecordedTable::Wakeups => uniform(self.wakeups()?),
            RecordedTable::Executions => uniform(self.executions()?),
            RecordedTable::Printed => uniform(self.printed()?),
            RecordedTable::Intervals => uniform(self.interval_batches()?),
            RecordedTable::Values => uniform(self.values()?),
            RecordedTable::Host => uniform(self.host_batches()?),
        })
    }
}

/// An iterator over the rows of a recording, `T` being one row or a batch of them. It ends after the first error.
pub struct RecordedRows<T>(Option<Box<dyn Iterator<Item = Result<T, RecordingError>>>>);

impl<T> RecordedRows<T> {
    fn new(batches: impl Iterator<Item = Result<T, RecordingError>> + 'static) -> RecordedRows<T> {
        RecordedRows(Some(Box::new(batches)))
    }

    fn from_spool(spool: &Spool, batches: impl Iterator<Item = io::Result<T>> + 'static) -> RecordedRows<T> {
        let path = spool.path().to_owned();
        RecordedRows::new(batches.map(move |batch| batch.map_err(RecordingError::refused("read", path.as_path()))))
    }
}

impl<T> Iterator for RecordedRows<T> {
    type Item = Result<T, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.0.as_mut()?.next();
        if !matches!(batch, Some(Ok(_))) {
            self.0 = None;
        }
        batch
    }
}

impl<T> fmt::Debug for RecordedRows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedRows").finish_non_exhaustive()
    }
}

/// The spool in `directory`, if there is one. Waits while another command finishes the recording, but not for a
/// recording that is still being measured.
///
/// # Errors
/// [`RecordingError::Busy`] if the recording is still being measured, or the wait took too long.
fn open_spool(directory: &Directory) -> Result<Option<Spool>, RecordingError> {
    let mut retries = 0;
    loop {
        match Spool::open(directory) {
            Err(RecordingError::Busy { pid, .. }) if retries < RETRIES && !is_alive(pid) => {
                retries += 1;
                std::thread::sleep(RETRY_PAUSE);
            }
            opened => return opened,
        }
    }
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// `table` of the recording of `manifest`.
fn open_table(directory: &Directory, table: RecordedTable, manifest: &Manifest) -> Result<TableReader, RecordingError> {
    let name = table.file();
    let checksums = manifest.checksums.get(name);
    if checksums.is_none() && manifest.format.has_checksums() {
        return Err(RecordingError::damaged(directory.path_of(name), "the manifest has no checksums of it"));
    }
    TableReader::new(TableFile::open(directory, name, checksums)?, table.columns())
}

fn finished(directory: Arc<Directory>) -> Result<Recording, RecordingError> {
    let manifest = manifest_file::read(&directory)?;
    if manifest.ending == RunEnding::Measuring && !directory.has(RecordedTable::of(manifest.kind).file()) {
        let spool = directory.path_of(SPOOL);
        return Err(RecordingError::damaged(spool, "the run did not end, and its spool is missing"));
    }
    check_tables(&directory, &manifest)?;
    Ok(Recording { directory, manifest, note: None, rows: RowSource::Tables })
}

/// Checks that the tables open and have the rows that the manifest promises, if it promises any.
fn check_tables(directory: &Directory, manifest: &Manifest) -> Result<(), RecordingError> {
    tables_of(manifest).into_iter().try_for_each(|(table, promised)| {
        let rows = open_table(directory, table, manifest)?.rows();
        match promised {
            Some(promised) if promised != rows => {
                let what = format!("{rows} rows, but {promised} in the manifest");
                Err(RecordingError::damaged(directory.path_of(table.file()), what))
            }
            _ => Ok(()),
        }
    })
}

/// Whether the tables are as they were written, every byte: their spool is needed no more.
fn has_sound_tables(directory: &Directory, manifest: &Manifest) -> bool {
    let is_sound = |(table, _): (RecordedTable, _)| {
        let found = TableFile::open(directory, table.file(), None).and_then(|file| file.checksums_on_disk());
        found.is_ok_and(|found| manifest.checksums.get(table.file()).is_none_or(|written| *written == found))
    };
    check_tables(directory, manifest).is_ok() && tables_of(manifest).into_iter().all(is_sound)
}

fn unfinished(directory: Arc<Directory>, mut spool: Spool) -> Result<Recording, RecordingError> {
    let mut manifest = manifest_file::read(&directory)?;
    if !spool.is_of(&manifest.run_id) {
        return Err(RecordingError::damaged(spool.path(), OF_ANOTHER_RUN));
    }
    if manifest.rows.is_some() && has_sound_tables(&directory, &manifest) {
        // The process that finished it died between the last two steps, or may not remove files.
        if spool.is_exclusive() {
            _ = remove_spools(&directory);
        }
        return Ok(Recording { directory, manifest, note: None, rows: RowSource::Tables });
    }
    let rules = join_rules(&manifest);
    if manifest.ending == RunEnding::Measuring {
        manifest.ending = RunEnding::Recovered;
        manifest.reason.get_or_insert_with(|| "the process that measured was killed".into());
    }
    spool.judge_by(&manifest);
    let spool = Arc::new(spool);
    let samples = open_host_spool(&directory, &mut manifest);
    let refusal = if spool.is_exclusive() {
        match conclude(&directory, &spool, samples, rules, &mut manifest) {
            Ok(()) => {
                let note = format!("finished an interrupted recording: {}", count(&manifest));
                return Ok(Recording { directory, manifest, note: Some(note), rows: RowSource::Tables });
            }
            Err(refusal) => refusal.explain().cause.filter(|_| matches!(refusal, RecordingError::Refused { .. })),
        }
    } else {
        None
    };
    spool.share();
    let counts = count_rows(&spool, manifest.kind, rules)?;
    enter_counts(&mut manifest, counts, rules.horizon);
    manifest.clear_rows();
    manifest.rows = Some(counts.rows);
    enter_damage(&mut manifest, &spool);
    let why = refusal.unwrap_or_else(|| "another command reads it".into());
    let note = format!(
        "reading an unfinished recording from its spool: {}; it cannot be finished now: {why}",
        count(&manifest)
    );
    Ok(Recording { directory, manifest, note: Some(note), rows: RowSource::Spool(spool, rules) })
}

fn count(manifest: &Manifest) -> String {
    let rows = manifest.rows.unwrap_or(0);
    match manifest.run.undecided_probes {
        _ if manifest.kind == Kind::Wakeup => format!("{rows} wake-ups"),
        _ if manifest.kind == Kind::Command => format!("{rows} executions"),
        _ if manifest.kind == Kind::Stream => format!("{rows} intervals"),
        0 => format!("{rows} probes"),
        1 => format!("{rows} probes, and 1 in flight without a row"),
        several => format!("{rows} probes, and {several} in flight without a row"),
    }
}
