//! Writes the recording of an imported log. Its rows go into a hidden directory, which gets its name when the log was read to
//! its end: nothing is imported in part. A killed import leaves the hidden directory.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::conclude::enter_checksums;
use super::error::RecordingError;
use super::manifest::{Manifest, RunEnding};
use super::manifest_file::{self, MANIFEST, NEXT};
use super::reader::Recording;
use super::store::{Store, directory_name};
use super::tables::decode::Batch;
use super::tables::encode::TableWriter;
use super::tables::intervals::IntervalBatch;
use super::tables::probes::ProbeBatch;
use super::tables::recorded::RecordedTable;
use super::tables::values::ValueBatch;
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
        let refused = || RecordingError::refused("write to", directory);
        let path = directory.join(format!("{HIDDEN}{run_id}"));
        let hidden = HiddenDirectory { directory: Directory::create(&path).map_err(refused())?, kind };
        let file = hidden.directory.create_file(UNFINISHED).map_err(refused())?;
        let table = RecordedTable::of(kind);
        let file = BufWriter::with_capacity(1 << 16, file);
        let table = TableWriter::of_run(file, run_id, table, table.imported_columns()).map_err(refused())?;
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
        self.write(ProbeBatch::of_log(probes, &numbers))
    }

    /// Writes values of `metric` in the order of the log.
    ///
    /// # Errors
    /// That of the system.
    pub fn values(&mut self, metric: Metric, values: &[LoggedValue]) -> io::Result<()> {
        let negative = values.iter().filter(|value| value.value_ns.is_some_and(|value| value < 0));
        self.negative_delays += negative.map(|value| value.count).sum::<u64>();
        self.values = values.iter().fold(self.values, |sum, value| sum.saturating_add(value.count));
        self.write(ValueBatch::of_log(metric, values))
    }

    /// Writes intervals of a stream of packets of `size_bytes`.
    ///
    /// # Errors
    /// That of the system.
    pub fn intervals(&mut self, size_bytes: u32, intervals: &[StreamInterval]) -> io::Result<()> {
        self.write(IntervalBatch::of_log(intervals, size_bytes))
    }

    fn write(&mut self, batch: impl Batch) -> io::Result<()> {
        let batch = batch.into_uniform();
        self.rows += batch.rows as u64;
        self.table.write(&batch)
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
        let refused = || RecordingError::refused("write", hidden.directory.path_of(RecordedTable::of(kind).file()));
        let file = table.finish().map_err(refused())?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error).map_err(refused())?;
        file.sync_data()
            .and_then(|()| hidden.directory.rename(UNFINISHED, RecordedTable::of(kind).file()))
            .map_err(refused())?;
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

/// The directory of a recording that is not complete. It is removed unless it is revealed.
struct HiddenDirectory {
    directory: Directory,
    kind: Kind,
}

impl HiddenDirectory {
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
            _ = self.directory.remove_with(&[UNFINISHED, RecordedTable::of(self.kind).file(), NEXT, MANIFEST]);
        }
    }
}
