//! Writes the recording of an imported log. Its rows go into a hidden directory, which gets its name when the log was read to
//! its end: nothing is imported in part. What a killed import leaves is removed by the next one.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use parquet::errors::Result as ParquetResult;
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, openat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::conclude::{enter_checksums, io_error, rows_file};
use super::error::RecordingError;
use super::manifest::{Manifest, RunEnding};
use super::manifest_file::{self, MANIFEST, NEXT};
use super::reader::Recording;
use super::store::{Store, directory_name, entry_names};
use super::tables::encode::TableWriter;
use super::tables::{intervals, probes, values};
use crate::facts::{LoggedProbe, LoggedValue, RowNumbers, StreamInterval};
use crate::metric::Metric;
use crate::plan::Kind;
use crate::platform::Directory;

/// How the names of hidden directories begin.
const HIDDEN: &str = ".import-";
/// The table until it is complete.
const UNFINISHED: &str = "rows.unfinished";

/// The rows of a log on their way into a recording. Dropped before [`ImportWriter::finish`], it leaves nothing.
pub struct ImportWriter {
    hidden: HiddenDirectory,
    run_id: String,
    kind: Kind,
    table: TableWriter<BufWriter<File>>,
    rows: u64,
    values: u64,
    numbers: RowNumbers,
    negative_delays: u64,
}

impl ImportWriter {
    /// Begins the recording of the run `run_id`, whose rows are of `kind`, beside its later place: in `directory`, which must
    /// exist.
    ///
    /// # Errors
    /// If the directory cannot be written to.
    pub fn create(directory: &Path, run_id: &str, kind: Kind) -> Result<ImportWriter, RecordingError> {
        remove_leftovers(directory);
        let refused = || RecordingError::refused("write to", directory);
        let path = directory.join(format!("{HIDDEN}{run_id}"));
        let hidden = HiddenDirectory::create(&path, kind).map_err(refused())?;
        let file = hidden.directory.create_file(UNFINISHED).map_err(refused())?;
        let table = begin(BufWriter::with_capacity(1 << 16, file), run_id, kind);
        let table = table.map_err(io_error).map_err(refused())?;
        let (run_id, numbers) = (run_id.to_owned(), RowNumbers::default());
        Ok(ImportWriter { hidden, run_id, kind, table, rows: 0, values: 0, numbers, negative_delays: 0 })
    }

    /// Writes probes in the order of the log.
    ///
    /// # Errors
    /// That of the system.
    pub fn probes(&mut self, probes: &[LoggedProbe]) -> io::Result<()> {
        let numbers: Vec<u64> = probes.iter().map(|probe| self.numbers.next(probe.id)).collect();
        let is_negative = |probe: &&LoggedProbe| probe.received_ns < probe.sent_ns && probe.received_ns.is_some();
        self.negative_delays += probes.iter().filter(is_negative).count() as u64;
        self.rows += probes.len() as u64;
        probes::write_logged(&mut self.table, probes, &numbers).map_err(io_error)
    }

    /// Writes values of `metric` in the order of the log.
    ///
    /// # Errors
    /// That of the system.
    pub fn values(&mut self, metric: Metric, values: &[LoggedValue]) -> io::Result<()> {
        let negative = values.iter().filter(|value| value.value_ns.is_some_and(|value| value < 0));
        self.negative_delays += negative.map(|value| value.count).sum::<u64>();
        self.rows += values.len() as u64;
        self.values = values.iter().fold(self.values, |sum, value| sum.saturating_add(value.count));
        values::write(&mut self.table, metric, values).map_err(io_error)
    }

    /// Writes intervals of a stream of packets of `size_bytes`.
    ///
    /// # Errors
    /// That of the system.
    pub fn intervals(&mut self, size_bytes: u32, intervals: &[StreamInterval]) -> io::Result<()> {
        self.rows += intervals.len() as u64;
        intervals::write_logged(&mut self.table, size_bytes, intervals).map_err(io_error)
    }

    /// Number of rows so far.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// The sum of the counts of its values so far.
    pub const fn values_counted(&self) -> u64 {
        self.values
    }

    /// The numbers that its probes got.
    pub const fn numbers(&self) -> RowNumbers {
        self.numbers
    }

    /// Delays below zero so far.
    pub const fn negative_delays(&self) -> u64 {
        self.negative_delays
    }

    /// Completes the recording with `manifest`, and gives it its place: `output`, or a name of its own in `store`.
    ///
    /// # Errors
    /// If it cannot be written, or something is in its place.
    pub fn finish(
        self,
        mut manifest: Manifest,
        store: &Store,
        output: Option<&Path>,
    ) -> Result<Recording, RecordingError> {
        let ImportWriter { hidden, run_id, kind, table, rows, .. } = self;
        let refused = || RecordingError::refused("write", hidden.directory.path_of(rows_file(kind)));
        let file = table.finish().map_err(io_error).map_err(refused())?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error).map_err(refused())?;
        file.sync_data().and_then(|()| hidden.directory.rename(UNFINISHED, rows_file(kind))).map_err(refused())?;
        (manifest.ending, manifest.rows) = (RunEnding::Completed, Some(rows));
        manifest.interval_rows = (kind == Kind::Stream).then_some(rows);
        enter_checksums(&hidden.directory, &mut manifest)?;
        let written = manifest_file::write(&hidden.directory, &manifest);
        written.map_err(RecordingError::refused("write the manifest of", hidden.directory.path()))?;
        let name = |digits| store.path().join(directory_name(&manifest.started_at, kind, &run_id, digits));
        let places: Vec<PathBuf> = match output {
            Some(output) => vec![output.to_owned()],
            None => [4, 8, 16].map(name).into(),
        };
        Recording::open(&hidden.reveal(&places)?)
    }
}

/// The table of `kind` in `file`.
fn begin(file: BufWriter<File>, run_id: &str, kind: Kind) -> ParquetResult<TableWriter<BufWriter<File>>> {
    match kind {
        Kind::Values | Kind::Wakeup => values::create(file, run_id),
        Kind::Ping => probes::create_for_import(file, run_id),
        Kind::Stream => intervals::create(file, run_id),
    }
}

/// The directory of a recording that is not complete. Its lock says that its process is alive, in whatever namespace or on
/// whatever host that is.
struct HiddenDirectory {
    directory: Directory,
    kind: Kind,
    _lock: OwnedFd,
}

impl HiddenDirectory {
    fn create(path: &Path, kind: Kind) -> io::Result<HiddenDirectory> {
        // Between its creation and its lock another import may take it for a leftover, and remove it.
        for _ in 0..CREATIONS {
            let directory = Directory::create(path)?;
            if let Some(lock) = locked(path)? {
                return Ok(HiddenDirectory { directory, kind, _lock: lock });
            }
        }
        Err(ErrorKind::ResourceBusy.into())
    }

    /// Gives it the first of `places` that is free, and returns that.
    fn reveal(self, places: &[PathBuf]) -> Result<PathBuf, RecordingError> {
        for place in places {
            match renameat_with(CWD, self.directory.path(), CWD, place, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => (),
                Err(errno) => return Err(RecordingError::refused("make the recording", place)(errno.into())),
                Ok(()) => return Ok(place.clone()),
            }
        }
        Err(RecordingError::Exists { path: places.last().cloned().unwrap_or_default() })
    }
}

impl Drop for HiddenDirectory {
    fn drop(&mut self) {
        // Once it has its place, its path leads nowhere.
        if self.directory.path().exists() {
            _ = self.directory.remove_with(&[UNFINISHED, rows_file(self.kind), NEXT, MANIFEST]);
        }
    }
}

/// How often a hidden directory is created if others remove it before it is locked.
const CREATIONS: u32 = 100;

/// The directory at `path`, which is not a link, locked; `None` if another process has locked, moved or removed it.
fn locked(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match openat(CWD, path, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        locked => locked?,
    }
    // Before the lock it may have got its name as a recording.
    let own = fstat(&directory)?;
    let is_there = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|there| (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino));
    Ok(is_there.then_some(directory))
}

/// Removes what dead imports of this user left in `directory`.
fn remove_leftovers(directory: &Path) {
    let names = entry_names(directory).unwrap_or_default();
    for path in names.iter().filter(|name| name.starts_with(HIDDEN)).map(|name| directory.join(name)) {
        // An error means that another process removes it, or may not: it is tried again by the next import.
        _ = remove_leftover(&path);
    }
}

fn remove_leftover(path: &Path) -> io::Result<()> {
    let leftover = locked(path)?.filter(|leftover| fstat(leftover).is_ok_and(|own| own.st_uid == geteuid().as_raw()));
    let Some(leftover) = leftover else { return Ok(()) };
    for name in [UNFINISHED, NEXT, MANIFEST].into_iter().chain([Kind::Ping, Kind::Values, Kind::Stream].map(rows_file))
    {
        match unlinkat(&leftover, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(unlinkat(CWD, path, AtFlags::REMOVEDIR)?)
}
