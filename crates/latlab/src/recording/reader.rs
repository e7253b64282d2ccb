//! A recording, opened to be read; one whose run died is finished on the way.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use latlab_sys::errno::explain;

use super::column_file::ColumnFile;
use super::conclude::{conclude, has_wakeups, host_spool_of, note, probe_rules_of, remove_spools};
use super::conclude::{rows_file, rules_of, survey};
use super::host_parquet::{self, HOST};
use super::host_rows::HostSampleReader;
use super::host_spool::{HOST_SPOOL, HostSpool};
use super::interval_rows::{self, INTERVALS, SpooledIntervals};
use super::join::{Join, JoinRules};
use super::manifest::{Manifest, RunEnding};
use super::manifest_file;
use super::parquet_batches::{ParquetBatches, ProbesFile};
use super::parquet_rows::PROBES;
use super::spool::{SPOOL, Spool};
use super::wakeup_rows::{self, SpooledWakeups, WAKEUPS};

use crate::facts::{HostSample, StreamInterval};
use crate::plan::{Kind, Side};

// what a reader of recordings needs to know, in one room
pub use super::batch::{IntColumn, ProbeBatch, WordColumn};
pub use super::columns::ProbeColumn;
pub use super::error::RecordingError;
pub use super::wakeup_rows::WakeupBatch;

/// How often and for how long to look again where another command is finishing the recording.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// A recording, open.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    manifest: Manifest,
    note: Option<String>,
    rows: RowSource,
}

/// Where the rows come from.
#[derive(Debug)]
enum RowSource {
    /// `probes.parquet`.
    Parquet,
    /// The spool, joined again each time, because the rows could not be written.
    Spool(Arc<Spool>, JoinRules),
}

impl Recording {
    /// Opens the recording in the directory `path`. One whose run died without a word is finished first, and
    /// [`Recording::note`] says so; where that is impossible (a full disk, a read-only one), it is read
    /// from its spool.
    ///
    /// # Errors
    /// Where there is no recording, it is damaged or of a newer major version, or its run still goes on.
    pub fn open(path: &Path) -> Result<Recording, RecordingError> {
        let path = path.to_owned();
        match fs::metadata(&path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => {
                return Err(RecordingError::Missing { path });
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
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

    /// What is known about the run as a whole.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What opening it had to do or could not do, for a person.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The rows in the order of `seq`, in batches of at most 131,072, with only `columns` filled.
    ///
    /// # Errors
    /// Where the rows cannot be opened; a batch that turns out to be damaged is an error of its own.
    pub fn probes(&self, columns: &[ProbeColumn]) -> Result<ProbeBatches, RecordingError> {
        let columns = columns.to_vec();
        let source = match &self.rows {
            RowSource::Parquet => {
                let file = ProbesFile::open(&self.path.join(PROBES))?;
                Source::Parquet(ParquetBatches { file, columns, next: 0 })
            }
            RowSource::Spool(spool, rules) => {
                let rules = probe_rules_of(&self.manifest).unwrap_or(*rules);
                let join =
                    Join::new(Arc::clone(spool), rules).map_err(RecordingError::refused("read", spool.path()))?;
                Source::Spool { join: Box::new(join), columns, path: spool.path().to_owned() }
            }
        };
        Ok(ProbeBatches(source))
    }

    /// The wake-ups in the order in which they were due, in batches of at most 131,072; none where the run had none.
    ///
    /// # Errors
    /// Where they cannot be opened; a batch that turns out to be damaged is an error of its own.
    pub fn wakeups(&self) -> Result<WakeupBatches, RecordingError> {
        Ok(WakeupBatches(match &self.rows {
            _ if !has_wakeups(&self.manifest.spec) => Box::new(std::iter::empty()),
            RowSource::Parquet => Box::new(wakeup_rows::batches(wakeup_rows::open(&self.path.join(WAKEUPS))?)),
            RowSource::Spool(spool, _) => {
                let path = spool.path().to_owned();
                let mut wakeups = SpooledWakeups::new(Arc::clone(spool));
                Box::new(std::iter::from_fn(move || {
                    wakeups.next_batch().map_err(RecordingError::refused("read", path.as_path())).transpose()
                }))
            }
        }))
    }

    /// The intervals of a stream, in batches; none where the run had none. Those of one flow and end stand in the order of
    /// time.
    ///
    /// # Errors
    /// Where they cannot be opened; a batch that turns out to be damaged is an error of its own.
    pub fn intervals(&self) -> Result<IntervalBatches, RecordingError> {
        Ok(IntervalBatches(match &self.rows {
            _ if self.manifest.kind != Kind::Stream => Box::new(std::iter::empty()),
            RowSource::Parquet => Box::new(interval_rows::batches(interval_rows::open(&self.path.join(INTERVALS))?)),
            RowSource::Spool(spool, _) => {
                let path = spool.path().to_owned();
                let mut intervals = SpooledIntervals::new(Arc::clone(spool));
                Box::new(std::iter::from_fn(move || {
                    intervals.next_batch().map_err(RecordingError::refused("read", path.as_path())).transpose()
                }))
            }
        }))
    }

    /// The samples of the hosts, those of this one first, in the order in which they were taken; none where none
    /// were (format 1.0 had none).
    ///
    /// # Errors
    /// Where they cannot be opened; a sample that turns out to be damaged is an error of its own.
    pub fn host_samples(&self) -> Result<HostSamples, RecordingError> {
        let spool = self.path.join(HOST_SPOOL);
        Ok(HostSamples(match (self.manifest.host_rows, &self.rows) {
            (Some(_), _) => {
                Box::new(HostSampleReader::new(host_parquet::rows(host_parquet::open(&self.path.join(HOST))?)))
            }
            (None, RowSource::Parquet) => Box::new(std::iter::empty()),
            (None, RowSource::Spool(..)) => match HostSpool::open(&spool) {
                Ok(Some(host)) => {
                    let refused = move |error| RecordingError::refused("read", spool.as_path())(error);
                    Box::new(HostSampleReader::new(host.rows().map(move |row| row.map_err(&refused))))
                }
                // Told by a caveat where it is damaged, and no reason not to read the probes.
                Ok(None) | Err(RecordingError::Damaged { .. }) => Box::new(std::iter::empty()),
                Err(error) => return Err(error),
            },
        }))
    }
}

/// The wake-ups of a recording, batch by batch.
pub struct WakeupBatches(Box<dyn Iterator<Item = Result<WakeupBatch, RecordingError>>>);

impl Iterator for WakeupBatches {
    type Item = Result<WakeupBatch, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl fmt::Debug for WakeupBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeupBatches").finish_non_exhaustive()
    }
}

/// The intervals of a stream, batch by batch.
pub struct IntervalBatches(Box<dyn Iterator<Item = Result<Vec<StreamInterval>, RecordingError>>>);

impl Iterator for IntervalBatches {
    type Item = Result<Vec<StreamInterval>, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl fmt::Debug for IntervalBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntervalBatches").finish_non_exhaustive()
    }
}

/// The host samples of a recording, one by one.
pub struct HostSamples(Box<dyn Iterator<Item = Result<(Side, HostSample), RecordingError>>>);

impl Iterator for HostSamples {
    type Item = Result<(Side, HostSample), RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl fmt::Debug for HostSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostSamples").finish_non_exhaustive()
    }
}

/// The rows of a recording, batch by batch. After an error there is nothing more.
pub struct ProbeBatches(Source);

enum Source {
    Parquet(ParquetBatches),
    Spool { join: Box<Join>, columns: Vec<ProbeColumn>, path: PathBuf },
    Over,
}

impl Iterator for ProbeBatches {
    type Item = Result<ProbeBatch, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match &mut self.0 {
            Source::Parquet(batches) => batches.next(),
            Source::Spool { join, columns, path } => match join.next_block() {
                Ok(block) => block.map(|block| Ok(block.batch(columns))),
                Err(error) => Some(Err(RecordingError::refused("read", path.as_path())(error))),
            },
            Source::Over => None,
        };
        if !matches!(batch, Some(Ok(_))) {
            self.0 = Source::Over;
        }
        batch
    }
}

impl fmt::Debug for ProbeBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeBatches").finish_non_exhaustive()
    }
}

/// The spool in `directory`, where there is one. Another command may be finishing the very recording: that is worth
/// waiting for; a run is not.
fn open_spool(directory: &Path) -> Result<Option<Spool>, RecordingError> {
    let path = directory.join(SPOOL);
    let mut looks = 0;
    loop {
        match Spool::open(&path) {
            Err(RecordingError::Busy { pid, .. }) if looks < LOOKS && !is_alive(pid) => {
                looks += 1;
                std::thread::sleep(BETWEEN_LOOKS);
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
    check_beside(path.join(WAKEUPS), wakeup_rows::open, manifest.wakeup_rows)?;
    check_beside(path.join(HOST), host_parquet::open, manifest.host_rows)?;
    if let Some(expected) = manifest.probe_rows {
        check_rows(&path, Kind::Ping, Some(expected))?;
    }
    Ok(Recording { path, manifest, note: None, rows: RowSource::Parquet })
}

fn check_rows(directory: &Path, kind: Kind, expected: Option<u64>) -> Result<(), RecordingError> {
    let path = directory.join(rows_file(kind));
    let rows = match kind {
        Kind::Ping => ProbesFile::open(&path)?.rows(),
        Kind::Wakeup => wakeup_rows::open(&path)?.count(),
        Kind::Stream => interval_rows::open(&path)?.count(),
    };
    keeps_promise(path, rows, expected)
}

/// The rows of a data file are those that the manifest promises, where it promises any.
fn keeps_promise(path: PathBuf, rows: u64, expected: Option<u64>) -> Result<(), RecordingError> {
    match expected {
        Some(expected) if expected != rows => {
            Err(RecordingError::damaged(path, format!("{rows} rows, and the manifest promises {expected}")))
        }
        _ => Ok(()),
    }
}

/// The same of a data file that stands beside those; it is there where the manifest promises rows of it.
fn check_beside(
    path: PathBuf,
    open: fn(&Path) -> Result<ColumnFile, RecordingError>,
    expected: Option<u64>,
) -> Result<(), RecordingError> {
    let Some(_) = expected else { return Ok(()) };
    let rows = open(&path)?.count();
    keeps_promise(path, rows, expected)
}

fn unfinished(path: PathBuf, spool: Spool) -> Result<Recording, RecordingError> {
    let mut manifest = manifest_file::read(&path)?;
    if manifest.rows.is_some() && check_rows(&path, manifest.kind, manifest.rows).is_ok() {
        // Its finisher died between the last two steps, or may not remove files; either way the rows are there.
        if spool.is_alone() {
            _ = remove_spools(&path);
        }
        return Ok(Recording { path, manifest, note: None, rows: RowSource::Parquet });
    }
    let rules = rules_of(&manifest);
    let died = manifest.ending == RunEnding::Measuring;
    if died {
        manifest.ending = RunEnding::Recovered;
        manifest.reason.get_or_insert_with(|| "the process that measured ended without a word".into());
    }
    let spool = Arc::new(spool);
    let host = host_spool_of(&path, &mut manifest);
    let refusal = if spool.is_alone() { conclude(&path, &spool, host, rules, &mut manifest).err() } else { None };
    if spool.is_alone() && refusal.is_none() {
        let note = format!("finished an interrupted recording: {}", count(&manifest));
        return Ok(Recording { path, manifest, note: Some(note), rows: RowSource::Parquet });
    }
    spool.share();
    let tally = survey(&spool, manifest.kind, rules)?;
    note(&mut manifest, tally, rules.horizon);
    (manifest.rows, manifest.wakeup_rows) = (Some(tally.rows), None);
    (manifest.interval_rows, manifest.host_rows, manifest.probe_rows) = (None, None, None);
    let why = refusal.and_then(|refusal| match refusal {
        RecordingError::Refused { source, .. } => Some(explain(&source)),
        _ => None,
    });
    let why = why.unwrap_or_else(|| "another command reads it".into());
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
