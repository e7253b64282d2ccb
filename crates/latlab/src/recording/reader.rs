//! Opens a recording; one whose run died is finished first.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::conclude::{
    conclude, count_rows, enter_counts, has_wakeups, join_rules, open_host_spool, probe_rules, remove_spools, rows_file,
};
use super::host_spool::{HOST_SPOOL, HostSpool};
use super::join::{JoinRules, ProbeJoin, SpooledIntervals, SpooledWakeups};
use super::manifest::{Manifest, RunEnding};
use super::manifest_file;
use super::spool::{SPOOL, Spool};
use super::tables::decode::TableReader;
use super::tables::host::{self, HOST, SampleJoin};
use super::tables::intervals::{self, INTERVALS};
use super::tables::probes::{self, PROBES};
use super::tables::wakeups::{self, WAKEUPS};
use crate::diagnostics::Explain;
use crate::facts::{HostSample, StreamInterval};
use crate::plan::{Kind, Side};

// The types that `analysis` may use besides `Recording`.
pub use super::error::RecordingError;
pub use super::tables::column::{IntColumn, WordColumn};
pub use super::tables::probes::{ProbeBatch, ProbeColumn};
pub use super::tables::wakeups::WakeupBatch;

/// Number of attempts to open a recording that another command is finishing, after the first, and the pause before
/// each.
const RETRIES: u32 = 100;
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// An open recording.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
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
        match open_spool(&path)? {
            Some(spool) => unfinished(path, spool),
            None => finished(path),
        }
    }

    /// The facts and settings of the run.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The directory of the recording.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A note for the user that opening has finished an interrupted recording, or could not.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The probes in the order of `seq`, in batches of at most 131,072 rows that have `columns`.
    ///
    /// # Errors
    /// If the table cannot be opened. The iterator returns the error of a damaged batch.
    pub fn probes(&self, columns: &[ProbeColumn]) -> Result<RecordedRows<ProbeBatch>, RecordingError> {
        let columns = columns.to_vec();
        match &self.rows {
            RowSource::Tables => {
                let table = probes::open(&self.path.join(PROBES))?;
                Ok(RecordedRows::new(probes::batches(table, columns)))
            }
            RowSource::Spool(spool, rules) => {
                let rules = probe_rules(&self.manifest).unwrap_or(*rules);
                let mut join =
                    ProbeJoin::new(Arc::clone(spool), rules).map_err(RecordingError::refused("read", spool.path()))?;
                Ok(RecordedRows::from_spool(
                    spool,
                    std::iter::from_fn(move || {
                        join.next_block().map(|block| block.map(|block| block.batch(&columns))).transpose()
                    }),
                ))
            }
        }
    }

    /// The wake-ups in the order in which they were due, in batches of at most 131,072 rows; none if the run had none.
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn wakeups(&self) -> Result<RecordedRows<WakeupBatch>, RecordingError> {
        Ok(match &self.rows {
            _ if !has_wakeups(&self.manifest.spec) => RecordedRows::new(std::iter::empty()),
            RowSource::Tables => RecordedRows::new(wakeups::batches(wakeups::open(&self.path.join(WAKEUPS))?)),
            RowSource::Spool(spool, _) => RecordedRows::from_spool(spool, SpooledWakeups::new(Arc::clone(spool))),
        })
    }

    /// The intervals of a stream, in batches; none if the run had none. Those of one flow and end are in the order of
    /// time.
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn intervals(&self) -> Result<RecordedRows<Vec<StreamInterval>>, RecordingError> {
        Ok(match &self.rows {
            _ if self.manifest.kind != Kind::Stream => RecordedRows::new(std::iter::empty()),
            RowSource::Tables => RecordedRows::new(intervals::batches(intervals::open(&self.path.join(INTERVALS))?)),
            RowSource::Spool(spool, _) => RecordedRows::from_spool(spool, SpooledIntervals::new(Arc::clone(spool))),
        })
    }

    /// The samples of the hosts in the order in which they were taken, those of this host first; none if none were taken
    /// (format 1.0 had none).
    ///
    /// # Errors
    /// As for [`Recording::probes`].
    pub fn host_samples(&self) -> Result<RecordedRows<(Side, HostSample)>, RecordingError> {
        let spool = self.path.join(HOST_SPOOL);
        Ok(match (self.manifest.host_rows, &self.rows) {
            (Some(_), _) => RecordedRows::new(SampleJoin::new(host::rows(host::open(&self.path.join(HOST))?))),
            (None, RowSource::Tables) => RecordedRows::new(std::iter::empty()),
            (None, RowSource::Spool(..)) => match HostSpool::open(&spool) {
                Ok(Some(host)) => {
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
fn open_spool(directory: &Path) -> Result<Option<Spool>, RecordingError> {
    let path = directory.join(SPOOL);
    let mut retries = 0;
    loop {
        match Spool::open(&path) {
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

fn finished(path: PathBuf) -> Result<Recording, RecordingError> {
    let manifest = manifest_file::read(&path)?;
    if manifest.ending == RunEnding::Measuring && !path.join(rows_file(manifest.kind)).exists() {
        return Err(RecordingError::damaged(path.join(SPOOL), "the run did not end, and its spool is missing"));
    }
    check_rows(&path, manifest.kind, manifest.rows)?;
    if manifest.wakeup_rows.is_some() {
        check(path.join(WAKEUPS), wakeups::open, manifest.wakeup_rows)?;
    }
    if manifest.host_rows.is_some() {
        check(path.join(HOST), host::open, manifest.host_rows)?;
    }
    if manifest.probe_rows.is_some() {
        check(path.join(PROBES), probes::open, manifest.probe_rows)?;
    }
    Ok(Recording { path, manifest, note: None, rows: RowSource::Tables })
}

fn check_rows(directory: &Path, kind: Kind, promised: Option<u64>) -> Result<(), RecordingError> {
    let open = match kind {
        Kind::Ping => probes::open,
        Kind::Wakeup => wakeups::open,
        Kind::Stream => intervals::open,
    };
    check(directory.join(rows_file(kind)), open, promised)
}

/// Checks that the table at `path` opens and has the rows that the manifest promises, if it promises any.
fn check(
    path: PathBuf,
    open: fn(&Path) -> Result<TableReader, RecordingError>,
    promised: Option<u64>,
) -> Result<(), RecordingError> {
    let rows = open(&path)?.rows();
    match promised {
        Some(promised) if promised != rows => {
            Err(RecordingError::damaged(path, format!("{rows} rows, and the manifest promises {promised}")))
        }
        _ => Ok(()),
    }
}

fn unfinished(path: PathBuf, spool: Spool) -> Result<Recording, RecordingError> {
    let mut manifest = manifest_file::read(&path)?;
    if manifest.rows.is_some() && check_rows(&path, manifest.kind, manifest.rows).is_ok() {
        // The process that finished it died between the last two steps, or may not remove files.
        if spool.is_exclusive() {
            _ = remove_spools(&path);
        }
        return Ok(Recording { path, manifest, note: None, rows: RowSource::Tables });
    }
    let rules = join_rules(&manifest);
    if manifest.ending == RunEnding::Measuring {
        manifest.ending = RunEnding::Recovered;
        manifest.reason.get_or_insert_with(|| "the process that measured ended without a word".into());
    }
    let spool = Arc::new(spool);
    let samples = open_host_spool(&path, &mut manifest);
    let refusal = if spool.is_exclusive() {
        match conclude(&path, &spool, samples, rules, &mut manifest) {
            Ok(()) => {
                let note = format!("finished an interrupted recording: {}", count(&manifest));
                return Ok(Recording { path, manifest, note: Some(note), rows: RowSource::Tables });
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
    let why = refusal.unwrap_or_else(|| "another command reads it".into());
    let note = format!(
        "reading an unfinished recording from its spool: {}; it cannot be finished now: {why}",
        count(&manifest)
    );
    Ok(Recording { path, manifest, note: Some(note), rows: RowSource::Spool(spool, rules) })
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
