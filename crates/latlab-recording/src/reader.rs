//! Opens a recording; one whose run died is finished first.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::conclude::{
    OF_ANOTHER_RUN, conclude, count_rows, enter_counts, enter_damage, has_wakeups, join_rules, open_host_spool,
    probe_rules, remove_spools, rows_file, tables_of,
};
use super::host_spool::{HOST_SPOOL, HostSpool};
use super::join::{JoinRules, ProbeJoin, SpooledIntervals, SpooledWakeups};
use super::manifest::{Manifest, RunEnding};
use super::manifest_file;
use super::plausible::PossibleValues;
use super::spool::{SPOOL, Spool};
use super::tables::decode::TableReader;
use super::tables::file::TableFile;
use super::tables::host::{self, HOST, SampleJoin};
use super::tables::intervals::{self, INTERVALS};
use super::tables::probes::{self, PROBES};
use super::tables::uniform;
use super::tables::values::{self, VALUES};
use super::tables::wakeups::{self, WAKEUPS};
use crate::diagnostics::Explain;
use crate::facts::{HostSample, StreamInterval};
use crate::plan::{Kind, Side};
use crate::platform::Directory;

// The types that `analysis` may use besides `Recording`.
pub use super::error::RecordingError;
pub use super::tables::column::ColumnType;
pub use super::tables::column::{IntColumn, WordColumn};
pub use super::tables::probes::{ProbeBatch, ProbeColumn};
pub use super::tables::uniform::{RecordedTable, UniformBatch, UniformColumn};
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

    /// A note for the user that opening has finished an interrupted recording, or could not.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    fn table(&self, name: &str) -> Result<TableFile, RecordingError> {
        open_table(&self.directory, name, &self.manifest)
    }

    /// `batches` of the table `name`, with an error for an impossible value in latlab's own recordings. `rows`: how many a
    /// batch has.
    fn checked<T: 'static>(
        &self,
        name: &str,
        batches: RecordedRows<T>,
        rows: impl Fn(&T) -> usize + 'static,
        check: impl Fn(&PossibleValues, &T, u64) -> Result<(), String> + 'static,
    ) -> RecordedRows<T> {
        let Some(possible) = PossibleValues::of(&self.manifest) else { return batches };
        let (path, mut first) = (self.directory.path_of(name), 0);
        RecordedRows::new(batches.map(move |batch| {
            let batch = batch?;
            check(&possible, &batch, first).map_err(|what| RecordingError::damaged(&path, what))?;
            first += rows(&batch) as u64;
            Ok(batch)
        }))
    }

    /// The probes in the order of `seq`, in batches of at most 131,072 rows that have `columns`.
    ///
    /// # Errors
    /// If the table cannot be opened. The iterator returns the error of a damaged batch.
    pub fn probes(&self, columns: &[ProbeColumn]) -> Result<RecordedRows<ProbeBatch>, RecordingError> {
        let columns = columns.to_vec();
        let batches = match &self.rows {
            RowSource::Tables => RecordedRows::new(probes::batches(probes::open(self.table(PROBES)?)?, columns)),
            RowSource::Spool(spool, rules) => {
                let rules = probe_rules(&self.manifest).unwrap_or(*rules);
                let mut join =
                    ProbeJoin::new(Arc::clone(spool), rules).map_err(RecordingError::refused("read", spool.path()))?;
                RecordedRows::from_spool(
                    spool,
                    std::iter::from_fn(move || {
                        join.next_block().map(|block| block.map(|block| block.batch(&columns))).transpose()
                    }),
                )
            }
        };
        Ok(self.checked(PROBES, batches, |batch| batch.rows, PossibleValues::check_probes))
    }

    /// The wake-ups in the order in which they were due, in batches of at most 131,072 rows; none if the run had none.
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn wakeups(&self) -> Result<RecordedRows<WakeupBatch>, RecordingError> {
        let batches = match &self.rows {
            _ if !has_wakeups(&self.manifest.spec) => RecordedRows::new(std::iter::empty()),
            RowSource::Tables => RecordedRows::new(wakeups::batches(wakeups::open(self.table(WAKEUPS)?)?)),
            RowSource::Spool(spool, _) => RecordedRows::from_spool(spool, SpooledWakeups::new(Arc::clone(spool))),
        };
        Ok(self.checked(WAKEUPS, batches, |batch| batch.rows, PossibleValues::check_wakeups))
    }

    /// The intervals of a stream, in batches; none if the run had none. Those of one flow and end are in the order of
    /// time.
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn intervals(&self) -> Result<RecordedRows<Vec<StreamInterval>>, RecordingError> {
        let batches = match &self.rows {
            _ if self.manifest.kind != Kind::Stream => RecordedRows::new(std::iter::empty()),
            RowSource::Tables => RecordedRows::new(intervals::batches(intervals::open(self.table(INTERVALS)?)?)),
            RowSource::Spool(spool, _) => RecordedRows::from_spool(spool, SpooledIntervals::new(Arc::clone(spool))),
        };
        let check = |possible: &PossibleValues, batch: &Vec<_>, first| possible.check_intervals(batch, first);
        Ok(self.checked(INTERVALS, batches, Vec::len, check))
    }

    /// The values of an imported log in its order, in batches; none if it has instants.
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn values(&self) -> Result<RecordedRows<ValueBatch>, RecordingError> {
        Ok(match self.manifest.kind {
            Kind::Values => RecordedRows::new(values::batches(values::open(self.table(VALUES)?)?)),
            _ => RecordedRows::new(std::iter::empty()),
        })
    }

    /// The samples of the hosts in the order in which they were taken, those of this host first; none if none were taken
    /// (format 1.0 had none).
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn host_samples(&self) -> Result<RecordedRows<(Side, HostSample)>, RecordingError> {
        Ok(match (self.manifest.host_rows, &self.rows) {
            (Some(_), _) => RecordedRows::new(SampleJoin::new(host::rows(host::open(self.table(HOST)?)?))),
            (None, RowSource::Tables) => RecordedRows::new(std::iter::empty()),
            (None, RowSource::Spool(..)) => match HostSpool::open(&self.directory) {
                Ok(Some(host)) => {
                    let spool = self.directory.path_of(HOST_SPOOL);
                    let refused = move |error| RecordingError::refused("read", spool.as_path())(error);
                    RecordedRows::new(SampleJoin::new(host.rows().map(move |row| row.map_err(&refused))))
                }
                // A damaged host spool is reported by a caveat; the probes can be read.
                Ok(None) | Err(RecordingError::Damaged { .. }) => RecordedRows::new(std::iter::empty()),
                Err(error) => return Err(error),
            },
        })
    }
}

/// The rows of any table in one form.
impl Recording {
    /// Whether runs like this one have rows in `table`. Host samples are never certain.
    pub fn can_have(&self, table: RecordedTable) -> bool {
        let spec = &self.manifest.spec;
        match table {
            RecordedTable::Probes => self.manifest.kind == Kind::Ping || spec.concurrent_probes().is_some(),
            RecordedTable::Wakeups => has_wakeups(spec),
            RecordedTable::Intervals => self.manifest.kind == Kind::Stream,
            RecordedTable::Values => self.manifest.kind == Kind::Values,
            RecordedTable::Host => spec.import().is_none(),
        }
    }

    /// The rows of `table` in its order, in batches of at most 131,072; none if the run has no such rows.
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn rows_of(&self, table: RecordedTable) -> Result<RecordedRows<UniformBatch>, RecordingError> {
        if !self.can_have(table) {
            return Ok(RecordedRows::new(std::iter::empty()));
        }
        Ok(match table {
            RecordedTable::Probes => {
                let batches = self.probes(&ProbeColumn::ALL)?;
                RecordedRows::new(batches.map(|batch| batch.map(uniform::of_probes)))
            }
            RecordedTable::Wakeups => RecordedRows::new(self.wakeups()?.map(|batch| batch.map(uniform::of_wakeups))),
            RecordedTable::Intervals => {
                let (spec, is_imported) = (&self.manifest.spec, self.manifest.spec.import().is_some());
                let size_bytes = spec.size_bytes().unwrap_or(0);
                let of_rows = move |rows: Vec<StreamInterval>| uniform::of_intervals(&rows, size_bytes, is_imported);
                RecordedRows::new(self.intervals()?.map(move |batch| batch.map(of_rows)))
            }
            RecordedTable::Values => RecordedRows::new(self.values()?.map(|batch| batch.map(uniform::of_values))),
            RecordedTable::Host => RecordedRows::new(uniform::of_host_samples(self.host_samples()?)),
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

/// The table `name` of the recording of `manifest`.
fn open_table(directory: &Directory, name: &str, manifest: &Manifest) -> Result<TableFile, RecordingError> {
    let checksums = manifest.checksums.get(name);
    if checksums.is_none() && manifest.format.has_checksums() {
        return Err(RecordingError::damaged(directory.path_of(name), "the manifest has no checksums of it"));
    }
    TableFile::open(directory, name, checksums)
}

fn finished(directory: Arc<Directory>) -> Result<Recording, RecordingError> {
    let manifest = manifest_file::read(&directory)?;
    if manifest.ending == RunEnding::Measuring && !directory.has(rows_file(manifest.kind)) {
        let spool = directory.path_of(SPOOL);
        return Err(RecordingError::damaged(spool, "the run did not end, and its spool is missing"));
    }
    check_tables(&directory, &manifest)?;
    Ok(Recording { directory, manifest, note: None, rows: RowSource::Tables })
}

/// Checks that the tables open and have the rows that the manifest promises, if it promises any.
fn check_tables(directory: &Directory, manifest: &Manifest) -> Result<(), RecordingError> {
    tables_of(manifest).into_iter().try_for_each(|(name, promised)| {
        let rows = open_any(open_table(directory, name, manifest)?, name)?.rows();
        match promised {
            Some(promised) if promised != rows => {
                let what = format!("{rows} rows, but {promised} in the manifest");
                Err(RecordingError::damaged(directory.path_of(name), what))
            }
            _ => Ok(()),
        }
    })
}

/// Whether the tables are as they were written, every byte: their spool is needed no more.
fn has_sound_tables(directory: &Directory, manifest: &Manifest) -> bool {
    let is_sound = |(name, _): (&str, _)| {
        let found = open_table(directory, name, manifest).ok().and_then(|file| file.checksums_on_disk().ok());
        found.is_some_and(|found| manifest.checksums.get(name).is_none_or(|written| *written == found))
    };
    check_tables(directory, manifest).is_ok() && tables_of(manifest).into_iter().all(is_sound)
}

fn open_any(file: TableFile, name: &str) -> Result<TableReader, RecordingError> {
    match name {
        WAKEUPS => wakeups::open(file),
        INTERVALS => intervals::open(file),
        VALUES => values::open(file),
        HOST => host::open(file),
        _ => probes::open(file),
    }
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
        _ if manifest.kind == Kind::Stream => format!("{rows} intervals"),
        0 => format!("{rows} probes"),
        1 => format!("{rows} probes, and 1 in flight without a row"),
        several => format!("{rows} probes, and {several} in flight without a row"),
    }
}
