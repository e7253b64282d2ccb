//! Finishes a recording: from spools to rows on disk, right after the run or by a later command.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use parquet::errors::{ParquetError, Result as ParquetResult};

use super::error::RecordingError;
use super::host_spool::{HOST_SPOOL, HostSpool};
use super::join::{Horizon, JoinCounts, JoinLimits, JoinRules, ProbeJoin, SpooledIntervals, SpooledWakeups};
use super::manifest::{Manifest, RunEnding};
use super::manifest_file;
use super::spool::{SPOOL, Spool};
use super::tables::host::{self, HOST};
use super::tables::intervals::{self, INTERVALS};
use super::tables::probes::{self, PROBES};
use super::tables::wakeups::{self, WAKEUPS};
use crate::diagnostics::{Caveat, Severity};
use crate::plan::{Kind, RunSpec};
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
    JoinRules { timeout, size_bytes, horizon, limits: JoinLimits::default() }
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
    directory: &Path,
    spool: &Arc<Spool>,
    samples: Option<HostSpool>,
    rules: JoinRules,
    manifest: &mut Manifest,
) -> Result<(), RecordingError> {
    let run_id = manifest.run_id.clone();
    let of_wakeups = has_wakeups(&manifest.spec).then(|| write_wakeups(directory, spool, &run_id)).transpose()?;
    let counts = match (manifest.kind, of_wakeups) {
        (Kind::Wakeup, Some(of_wakeups)) => of_wakeups,
        (Kind::Stream, _) => write_intervals(directory, spool, rules.size_bytes, &run_id)?,
        _ => write_probes(directory, spool, rules, &run_id)?,
    };
    let of_probes = probe_rules(manifest).map(|rules| write_probes(directory, spool, rules, &run_id)).transpose()?;
    let host_rows = samples.map(|samples| write_samples(directory, samples, &run_id)).transpose()?;
    enter_counts(manifest, counts, rules.horizon);
    if let Some(of_probes) = of_probes {
        manifest.run.undecided_probes = of_probes.undecided_probes;
        manifest.run.orphan_answers = of_probes.orphan_answers;
    }
    (manifest.rows, manifest.host_rows) = (Some(counts.rows), host_rows);
    manifest.wakeup_rows = of_wakeups.map(|counts| counts.rows);
    manifest.interval_rows = (manifest.kind == Kind::Stream).then_some(counts.rows);
    manifest.probe_rows = of_probes.map(|counts| counts.rows);
    let written = manifest_file::write(directory, manifest);
    written.map_err(RecordingError::refused("write the manifest of", directory))?;
    remove_spools(directory)
}

/// Removes the spools of a recording whose rows are written.
pub(crate) fn remove_spools(directory: &Path) -> Result<(), RecordingError> {
    for path in [directory.join(HOST_SPOOL), directory.join(SPOOL)] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RecordingError::refused("remove", path)(error));
            }
            _ => (),
        }
    }
    Ok(())
}

/// The spool of host samples in `directory`. If it cannot be read, a caveat is added.
pub(crate) fn open_host_spool(directory: &Path, manifest: &mut Manifest) -> Option<HostSpool> {
    HostSpool::open(&directory.join(HOST_SPOOL)).unwrap_or_else(|error| {
        let message = format!("host samples cannot be read: {error}");
        manifest.caveats.push(host_samples_lost(&message, SOUND_DISK));
        None
    })
}

/// The hint if samples that were written cannot be read.
pub(super) const SOUND_DISK: &str = "see whether the disk of `--store` is sound";

/// The caveat of a run whose host samples are not all in the recording; `hint` says what would have kept them.
pub(crate) fn host_samples_lost(message: &str, hint: &str) -> Caveat {
    Caveat::new(
        Severity::Warning,
        "host-samples-lost",
        message,
        "throttling, steal and foreign load in that part of the run would not be noticed",
        hint,
    )
}

/// Whether a run of `spec` records wake-ups.
pub(crate) const fn has_wakeups(spec: &RunSpec) -> bool {
    spec.wakeup().is_some() || spec.concurrent_wakeups().is_some()
}

/// The file that every finished recording of `kind` has.
pub(crate) const fn rows_file(kind: Kind) -> &'static str {
    match kind {
        Kind::Ping => PROBES,
        Kind::Wakeup => WAKEUPS,
        Kind::Stream => INTERVALS,
    }
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
            Kind::Stream => {
                let mut rows = SpooledIntervals::new(Arc::clone(spool));
                rows.try_for_each(|batch| batch.map(drop))?;
                Ok(rows.counts())
            }
            Kind::Ping => {
                let mut join = ProbeJoin::new(Arc::clone(spool), rules)?;
                while join.next_block()?.is_some() {}
                Ok(join.counts())
            }
        }
    };
    count().map_err(RecordingError::refused("read", spool.path()))
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

fn write_probes(
    directory: &Path,
    spool: &Arc<Spool>,
    rules: JoinRules,
    run_id: &str,
) -> Result<JoinCounts, RecordingError> {
    write_table(directory, PROBES, |file| {
        let mut table = probes::create(file, run_id)?;
        let mut join = ProbeJoin::new(Arc::clone(spool), rules)?;
        while let Some(block) = join.next_block()? {
            block.write(&mut table)?;
        }
        Ok((table.finish()?, join.counts()))
    })
}

fn write_wakeups(directory: &Path, spool: &Arc<Spool>, run_id: &str) -> Result<JoinCounts, RecordingError> {
    write_table(directory, WAKEUPS, |file| {
        let mut rows = SpooledWakeups::new(Arc::clone(spool));
        Ok((wakeups::write(file, run_id, &mut rows)?, rows.counts()))
    })
}

fn write_intervals(
    directory: &Path,
    spool: &Arc<Spool>,
    size_bytes: u32,
    run_id: &str,
) -> Result<JoinCounts, RecordingError> {
    write_table(directory, INTERVALS, |file| {
        let mut rows = SpooledIntervals::new(Arc::clone(spool));
        Ok((intervals::write(file, run_id, size_bytes, &mut rows)?, rows.counts()))
    })
}

fn write_samples(directory: &Path, samples: HostSpool, run_id: &str) -> Result<u64, RecordingError> {
    write_table(directory, HOST, |file| host::write(file, run_id, samples.rows()))
}

/// Lets `write` fill a new file, which gets its name once it is whole. A crash leaves it behind as `NAME.unfinished`, and
/// the next command that finishes the recording replaces it.
fn write_table<T>(
    directory: &Path,
    name: &str,
    write: impl FnOnce(BufWriter<File>) -> ParquetResult<(BufWriter<File>, T)>,
) -> Result<T, RecordingError> {
    let (unfinished, path) = (directory.join(format!("{name}.unfinished")), directory.join(name));
    let write = || {
        let (file, written) = write(BufWriter::with_capacity(1 << 16, File::create(&unfinished)?))?;
        // Synced, since the spool will be removed.
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
        fs::rename(&unfinished, &path)?;
        Ok(written)
    };
    write().map_err(|error| {
        // A part of a table has no use, and the space may be needed.
        _ = fs::remove_file(&unfinished);
        RecordingError::refused("write", &path)(io_error(error))
    })
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other.to_string()),
        },
        other => io::Error::other(other.to_string()),
    }
}
