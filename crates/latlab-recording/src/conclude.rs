//! Finishes a recording: from spools to rows on disk, right after the run or by a later command.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use super::checksums::TableChecksums;
use super::error::RecordingError;
use super::host_spool::{HOST_SPOOL, HostSpool};
use super::join::{EventRow, Horizon, JoinCounts, JoinRules, ProbeJoin, SpooledRows, SpooledWakeups};
use super::manifest::{Manifest, RunEnding};
use super::manifest_file;
use super::spool::{SPOOL, Spool};
use super::tables::decode::Batch;
use super::tables::encode::TableWriter;
use super::tables::executions::ExecutionBatch;
use super::tables::file::TableFile;
use super::tables::intervals::IntervalBatch;
use super::tables::printed::PrintedBatch;
use super::tables::recorded::{GROUP_ROWS, RecordedTable};
use crate::diagnostics::{Caveat, Severity};
use crate::facts::{Execution, StreamInterval};
use crate::plan::Kind;
use crate::platform::Directory;
use crate::units::{Nanos, Stamp};

/// How the spool of the run of `manifest` is joined.
pub(crate) fn join_rules(manifest: &Manifest) -> JoinRules {
    let timeout = manifest.spec.ping().map_or(Nanos::ZERO, |ping| ping.timeout_ns);
    let size_bytes = manifest.spec.size_bytes().unwrap_or(0);
    let horizon = match (manifest.run.listened_until_ns, manifest.ending) {
        (Some(until), _) => Horizon::At(Stamp::from_nanos(until)),
        (None, RunEnding::Measuring) => Horizon::LastEvent,
        (None, _) => Horizon::Enough,
    };
    JoinRules { timeout, size_bytes, horizon, block_probes: GROUP_ROWS }
}

/// How the concurrent probes of a stream are joined; `None` without any.
pub(crate) fn probe_rules(manifest: &Manifest) -> Option<JoinRules> {
    let probes = manifest.spec.concurrent_probes()?;
    Some(JoinRules { timeout: probes.timeout_ns, size_bytes: probes.size_bytes, ..join_rules(manifest) })
}

/// Joins the spools into tables, writes these and the manifest, and removes the spools. Each step leaves a directory
/// that can be opened: the rows are renamed into place, then the host samples, then the manifest; then the spools are
/// removed, that of the events last since it holds the lock.
///
/// # Errors
/// If a table or the manifest could not be written: then the data are in the spools.
pub(crate) fn conclude(
    directory: &Directory,
    spool: &Arc<Spool>,
    samples: Option<HostSpool>,
    rules: JoinRules,
    manifest: &mut Manifest,
) -> Result<(), RecordingError> {
    let run_id = manifest.run_id.clone();
    let target = TableTarget { directory, run_id: &run_id };
    let has_wakeups = RecordedTable::Wakeups.is_of(&manifest.spec);
    let of_wakeups = has_wakeups.then(|| target.wakeups(spool)).transpose()?;
    let counts = match (manifest.kind, of_wakeups) {
        (Kind::Wakeup, Some(of_wakeups)) => of_wakeups,
        (Kind::Stream, _) => target.rows(spool, |rows: &[StreamInterval]| IntervalBatch::of(rows, rules.size_bytes))?,
        (Kind::Command, _) => target.rows(spool, ExecutionBatch::of)?,
        _ => target.probes(spool, rules)?,
    };
    let of_command = manifest.spec.command().filter(|_| RecordedTable::Printed.is_of(&manifest.spec));
    let of_numbers =
        of_command.map(|command| target.rows(spool, |rows| PrintedBatch::of(rows, command))).transpose()?;
    let of_probes = probe_rules(manifest).map(|rules| target.probes(spool, rules)).transpose()?;
    let host_rows = samples.map(|samples| target.write(samples.batches())).transpose()?;
    enter_counts(manifest, counts, rules.horizon);
    if let Some(of_probes) = of_probes {
        manifest.run.undecided_probes = of_probes.undecided_probes;
        manifest.run.orphan_answers = of_probes.orphan_answers;
    }
    (manifest.rows, manifest.host_rows) = (Some(counts.rows), host_rows);
    manifest.wakeup_rows = of_wakeups.map(|counts| counts.rows);
    manifest.interval_rows = (manifest.kind == Kind::Stream).then_some(counts.rows);
    manifest.probe_rows = of_probes.map(|counts| counts.rows);
    manifest.printed_rows = of_numbers.map(|counts| counts.rows);
    enter_damage(manifest, spool);
    enter_checksums(directory, manifest)?;
    let written = manifest_file::write(directory, manifest);
    written.map_err(RecordingError::refused("write the manifest of", directory.path()))?;
    remove_spools(directory)
}

/// Enters what of `spool` was left out or not checked, after the counts of the join.
pub(crate) fn enter_damage(manifest: &mut Manifest, spool: &Spool) {
    manifest.run.unreadable_events += spool.missing_parts();
    manifest.run.unchecked_events = spool.unchecked_events();
}

/// The tables that the recording of `manifest` has, with their promised numbers of rows.
pub(crate) fn tables_of(manifest: &Manifest) -> Vec<(RecordedTable, Option<u64>)> {
    use RecordedTable::{Host, Printed, Probes, Wakeups};
    let main = RecordedTable::of(manifest.kind);
    let further = [
        (Wakeups, manifest.wakeup_rows),
        (Probes, manifest.probe_rows),
        (Printed, manifest.printed_rows),
        (Host, manifest.host_rows),
    ];
    let further = further.into_iter().filter(|(table, rows)| *table != main && rows.is_some());
    std::iter::once((main, manifest.rows)).chain(further).collect()
}

/// Enters the checksums of the tables in `directory`.
pub(super) fn enter_checksums(directory: &Directory, manifest: &mut Manifest) -> Result<(), RecordingError> {
    let of_table = |(table, _): (RecordedTable, _)| -> Result<(String, TableChecksums), RecordingError> {
        let name = table.file();
        Ok((name.into(), TableFile::open(directory, name, None)?.checksums_on_disk()?))
    };
    manifest.checksums = tables_of(manifest).into_iter().map(of_table).collect::<Result<_, _>>()?;
    Ok(())
}

/// Marks the finished recording at `path` as one of a failed run: what was measured does not count.
///
/// # Errors
/// If its manifest cannot be read or written.
pub fn mark_failed(path: &Path, reason: &str) -> Result<(), RecordingError> {
    let directory = Directory::open(path).map_err(RecordingError::unreadable("open", path))?;
    let mut manifest = manifest_file::read(&directory)?;
    (manifest.ending, manifest.reason) = (RunEnding::Failed, Some(reason.to_owned()));
    manifest_file::rewrite(&directory, &manifest).map_err(RecordingError::refused("write", path))
}

/// Removes the spools of a recording whose rows are written.
pub(crate) fn remove_spools(directory: &Directory) -> Result<(), RecordingError> {
    let remove = |name| directory.remove(name).map_err(RecordingError::refused("remove", directory.path_of(name)));
    [HOST_SPOOL, SPOOL].into_iter().try_for_each(remove)
}

/// The spool of host samples in `directory`. If it cannot be read, a caveat is added.
pub(crate) fn open_host_spool(directory: &Directory, manifest: &mut Manifest) -> Option<HostSpool> {
    let opened = HostSpool::open(directory).and_then(|spool| match spool {
        Some(spool) if !spool.is_of(&manifest.run_id) => {
            Err(RecordingError::damaged(directory.path_of(HOST_SPOOL), OF_ANOTHER_RUN))
        }
        spool => Ok(spool),
    });
    opened.unwrap_or_else(|error| {
        let message = format!("host samples cannot be read: {error}");
        manifest.caveats.push(host_samples_lost(&message, SOUND_DISK));
        None
    })
}

/// The damage of a file whose run id is not that of the manifest.
pub(super) const OF_ANOTHER_RUN: &str = "it is of another run";

/// The hint if samples that were written cannot be read.
pub(super) const SOUND_DISK: &str = "check the disk of `--store`";

/// The caveat of a run whose host samples are not all in the recording; `hint` says what would have kept them.
pub(crate) fn host_samples_lost(message: &str, hint: &str) -> Caveat {
    Caveat::new(
        Severity::Warning,
        "recording-gap",
        message,
        "throttling, steal and foreign load in that part of the run would not be detected",
        hint,
    )
}

/// The counts of a join whose rows are not kept.
pub(crate) fn count_rows(spool: &Arc<Spool>, kind: Kind, rules: JoinRules) -> Result<JoinCounts, RecordingError> {
    let count = || -> io::Result<JoinCounts> {
        match kind {
            Kind::Wakeup => {
                let mut rows = SpooledWakeups::new(Arc::clone(spool));
                rows.try_for_each(|batch| batch.map(drop))?;
                Ok(rows.counts())
            }
            Kind::Stream => count_events::<StreamInterval>(spool),
            Kind::Command => count_events::<Execution>(spool),
            // Values are not measured, so that no spool has any.
            Kind::Ping | Kind::Values => {
                let mut join = ProbeJoin::new(Arc::clone(spool), rules)?;
                while join.next_block()?.is_some() {}
                Ok(join.counts())
            }
        }
    };
    count().map_err(RecordingError::refused("read", spool.path()))
}

fn count_events<T: EventRow>(spool: &Arc<Spool>) -> io::Result<JoinCounts> {
    let mut rows = SpooledRows::<T>::new(Arc::clone(spool));
    rows.try_for_each(|batch| batch.map(drop))?;
    Ok(rows.counts())
}

/// Enters the counts of the join into the manifest.
pub(crate) fn enter_counts(manifest: &mut Manifest, counts: JoinCounts, horizon: Horizon) {
    let run = &mut manifest.run;
    // Events that the writer discarded are not in the spool, but were counted then.
    run.gap_events = run.gap_events.max(counts.gap_events);
    run.timed_out_ns = counts.timed_out;
    run.refused_pause_ns = counts.refused_pause;
    run.undecided_probes = counts.undecided_probes;
    run.orphan_answers = counts.orphan_answers;
    run.unreadable_events = counts.holes;
    if horizon == Horizon::LastEvent {
        run.listened_until_ns = counts.latest.map(Stamp::as_nanos);
    }
}

/// Where the tables of a recording are written.
struct TableTarget<'a> {
    directory: &'a Directory,
    run_id: &'a str,
}

impl TableTarget<'_> {
    fn probes(&self, spool: &Arc<Spool>, rules: JoinRules) -> Result<JoinCounts, RecordingError> {
        self.fill(RecordedTable::Probes, |table| {
            let mut join = ProbeJoin::new(Arc::clone(spool), rules)?;
            while let Some(block) = join.next_block()? {
                block.write(table)?;
            }
            Ok(join.counts())
        })
    }

    fn wakeups(&self, spool: &Arc<Spool>) -> Result<JoinCounts, RecordingError> {
        let mut rows = SpooledWakeups::new(Arc::clone(spool));
        self.write(&mut rows)?;
        Ok(rows.counts())
    }

    fn rows<T: EventRow, B: Batch>(
        &self,
        spool: &Arc<Spool>,
        batch: impl Fn(&[T]) -> B,
    ) -> Result<JoinCounts, RecordingError> {
        let mut rows = SpooledRows::<T>::new(Arc::clone(spool));
        self.write(rows.by_ref().map(|rows| Ok(batch(&rows?))))?;
        Ok(rows.counts())
    }

    /// Writes each of `batches` as a row group; returns the number of rows.
    fn write<B: Batch>(&self, batches: impl Iterator<Item = io::Result<B>>) -> Result<u64, RecordingError> {
        self.fill(B::TABLE, |table| {
            let mut rows = 0;
            for batch in batches {
                let batch = batch?.into_uniform();
                rows += batch.rows as u64;
                table.write(&batch)?;
            }
            Ok(rows)
        })
    }

    /// Lets `fill` fill a new file, which gets its name once it is whole. A crash leaves it behind as `NAME.unfinished`,
    /// and the next command that finishes the recording replaces it.
    fn fill<T>(
        &self,
        table: RecordedTable,
        fill: impl FnOnce(&mut TableWriter<BufWriter<File>>) -> io::Result<T>,
    ) -> Result<T, RecordingError> {
        let unfinished = format!("{}.unfinished", table.file());
        let write = || {
            let file = BufWriter::with_capacity(1 << 16, self.directory.replace_file(&unfinished)?);
            let mut writer = TableWriter::of_run(file, self.run_id, table, table.columns())?;
            let filled = fill(&mut writer)?;
            // Synced, since the spool will be removed.
            writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
            self.directory.rename(&unfinished, table.file())?;
            Ok(filled)
        };
        write().map_err(|error| {
            // A part of a table has no use, and the space may be needed.
            _ = self.directory.remove(&unfinished);
            RecordingError::refused("write", self.directory.path_of(table.file()))(error)
        })
    }
}
