//! From spool to rows on disk: how every recording is finished, at once or by a later command.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use parquet::errors::ParquetError;

use super::error::RecordingError;
use super::host_parquet::{self, HOST};
use super::host_spool::{HOST_SPOOL, HostSpool};
use super::interval_rows::{self, INTERVALS, SpooledIntervals};
use super::join::{Horizon, Join, JoinCounts, JoinLimits, JoinRules};
use super::manifest::{Manifest, RunEnding};
use super::manifest_file;
use super::parquet_rows::{PROBES, ProbesWriter};
use super::spool::{SPOOL, Spool};
use super::wakeup_rows::{self, SpooledWakeups, WAKEUPS};
use crate::diagnostics::{Caveat, Severity};
use crate::plan::{Kind, RunSpec};
use crate::units::{Nanos, Stamp};

/// The file while it is written; a crash leaves it behind, and the next finisher replaces it.
const UNFINISHED_PROBES: &str = "probes.parquet.unfinished";
const UNFINISHED_WAKEUPS: &str = "wakeups.parquet.unfinished";
const UNFINISHED_INTERVALS: &str = "intervals.parquet.unfinished";
const UNFINISHED_HOST: &str = "host.parquet.unfinished";

/// How the spool of the run of `manifest` is to be joined.
pub(crate) fn rules_of(manifest: &Manifest) -> JoinRules {
    let timeout = manifest.spec.ping().map_or(Nanos::ZERO, |ping| ping.timeout_ns);
    let size_bytes = manifest.spec.size_bytes().unwrap_or(0);
    let horizon = match (manifest.run.listened_until_ns, manifest.ending) {
        (Some(until), _) => Horizon::At(Stamp::from_nanos(until)),
        (None, RunEnding::Measuring) => Horizon::LastEvent,
        (None, _) => Horizon::Enough,
    };
    JoinRules { timeout, size_bytes, horizon, bounds: JoinLimits::default() }
}

/// The same of the probes beside a stream; none where there are none.
pub(crate) fn probe_rules_of(manifest: &Manifest) -> Option<JoinRules> {
    let probes = manifest.spec.concurrent_probes()?;
    Some(JoinRules { timeout: probes.timeout_ns, size_bytes: probes.size_bytes, ..rules_of(manifest) })
}

/// Joins `spool` into rows, writes them, the host's samples and the manifest, and removes the spools. Each step leaves
/// a directory that can be opened: the rows are renamed into place, then the samples, then the manifest, then the
/// spools go, that of the probes last since it holds the lock.
///
/// # Errors
/// Where the rows, the samples or the manifest could not be written: then the spools are still the data.
pub(crate) fn conclude(
    directory: &Path,
    spool: &Arc<Spool>,
    host: Option<HostSpool>,
    rules: JoinRules,
    manifest: &mut Manifest,
) -> Result<(), RecordingError> {
    let run_id = manifest.run_id.clone();
    let wakeups = has_wakeups(&manifest.spec).then(|| write_wakeups(directory, spool, &run_id)).transpose()?;
    let tally = match (manifest.kind, wakeups) {
        (Kind::Wakeup, Some(wakeups)) => wakeups,
        (Kind::Stream, _) => write_intervals(directory, spool, rules, &run_id)?,
        _ => write_rows(directory, spool, rules, &run_id)?,
    };
    manifest.wakeup_rows = wakeups.map(|wakeups| wakeups.rows);
    manifest.interval_rows = (manifest.kind == Kind::Stream).then_some(tally.rows);
    let beside = probe_rules_of(manifest).map(|rules| write_rows(directory, spool, rules, &run_id)).transpose()?;
    manifest.probe_rows = beside.map(|beside| beside.rows);
    let host_rows = host.map(|host| write_host_rows(directory, host, &run_id)).transpose()?;
    note(manifest, tally, rules.horizon);
    if let Some(beside) = beside {
        (manifest.run.undecided_probes, manifest.run.orphan_answers) = (beside.undecided_probes, beside.orphan_answers);
    }
    (manifest.rows, manifest.host_rows) = (Some(tally.rows), host_rows);
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

/// The host samples' spool in `directory`. One that cannot be read as such costs its samples, not the probes: a caveat
/// says so.
pub(crate) fn host_spool_of(directory: &Path, manifest: &mut Manifest) -> Option<HostSpool> {
    HostSpool::open(&directory.join(HOST_SPOOL)).unwrap_or_else(|error| {
        let message = format!("host samples cannot be read: {error}");
        manifest.caveats.push(host_samples_lost(&message, SOUND_DISK));
        None
    })
}

/// The hint where samples that were written cannot be read.
pub(super) const SOUND_DISK: &str = "see whether the disk of `--store` is sound";

/// What a run says whose host samples are not, or not all, in its recording, and what would have kept them.
pub(crate) fn host_samples_lost(message: &str, hint: &str) -> Caveat {
    Caveat::new(
        Severity::Warning,
        "host-samples-lost",
        message,
        "throttling, steal and foreign load in that part of the run would not be noticed",
        hint,
    )
}

/// Whether a run of `spec` has wake-ups to keep.
pub(crate) const fn has_wakeups(spec: &RunSpec) -> bool {
    spec.wakeup().is_some() || spec.concurrent_wakeups().is_some()
}

/// The file that a recording of `kind` cannot be without.
pub(crate) const fn rows_file(kind: Kind) -> &'static str {
    match kind {
        Kind::Ping => PROBES,
        Kind::Wakeup => WAKEUPS,
        Kind::Stream => INTERVALS,
    }
}

/// What a full join would find, without writing anything.
pub(crate) fn survey(spool: &Arc<Spool>, kind: Kind, rules: JoinRules) -> Result<JoinCounts, RecordingError> {
    let refused = || RecordingError::refused("read", spool.path());
    if kind == Kind::Wakeup {
        let mut wakeups = SpooledWakeups::new(Arc::clone(spool));
        while wakeups.next_batch().map_err(refused())?.is_some() {}
        return Ok(wakeups.tally());
    }
    if kind == Kind::Stream {
        let mut intervals = SpooledIntervals::new(Arc::clone(spool));
        while intervals.next_batch().map_err(refused())?.is_some() {}
        return Ok(intervals.tally());
    }
    let mut join = Join::new(Arc::clone(spool), rules).map_err(refused())?;
    while join.next_block().map_err(refused())?.is_some() {}
    Ok(join.tally())
}

/// Enters what the joiner saw into the manifest.
pub(crate) fn note(manifest: &mut Manifest, tally: JoinCounts, horizon: Horizon) {
    let run = &mut manifest.run;
    // Events that the writer had to discard are in no spool, but were counted when it happened.
    run.gap_events = run.gap_events.max(tally.gap_events);
    run.timed_out_ns = tally.timed_out;
    run.refused_pause_ns = tally.refused_pause;
    run.undecided_probes = tally.undecided_probes;
    run.orphan_answers = tally.orphan_answers;
    run.unreadable_events = tally.holes;
    if horizon == Horizon::LastEvent {
        run.listened_until_ns = tally.latest.map(Stamp::as_nanos);
    }
}

fn write_rows(
    directory: &Path,
    spool: &Arc<Spool>,
    rules: JoinRules,
    run_id: &str,
) -> Result<JoinCounts, RecordingError> {
    write_named(directory, (UNFINISHED_PROBES, PROBES), |path| write_rows_to(path, spool, rules, run_id))
}

fn write_wakeups(directory: &Path, spool: &Arc<Spool>, run_id: &str) -> Result<JoinCounts, RecordingError> {
    write_named(directory, (UNFINISHED_WAKEUPS, WAKEUPS), |path| {
        let (file, tally) = wakeup_rows::write(buffered(path)?, run_id, spool)?;
        close(file)?;
        Ok(tally)
    })
}

fn write_intervals(
    directory: &Path,
    spool: &Arc<Spool>,
    rules: JoinRules,
    run_id: &str,
) -> Result<JoinCounts, RecordingError> {
    write_named(directory, (UNFINISHED_INTERVALS, INTERVALS), |path| {
        let (file, tally) = interval_rows::write(buffered(path)?, run_id, spool, rules.size_bytes)?;
        close(file)?;
        Ok(tally)
    })
}

fn write_host_rows(directory: &Path, host: HostSpool, run_id: &str) -> Result<u64, RecordingError> {
    write_named(directory, (UNFINISHED_HOST, HOST), |path| {
        let (file, rows) = host_parquet::write(buffered(path)?, run_id, host.rows())?;
        close(file)?;
        Ok(rows)
    })
}

/// Lets `write` make a file under the first of two names, and gives it the second once it is whole.
fn write_named<T>(
    directory: &Path,
    names: (&str, &str),
    write: impl FnOnce(&Path) -> Result<T, ParquetError>,
) -> Result<T, RecordingError> {
    let (unfinished, path) = (directory.join(names.0), directory.join(names.1));
    let named = write(&unfinished).and_then(|written| {
        fs::rename(&unfinished, &path)?;
        Ok(written)
    });
    named.map_err(|error| {
        // Half a file helps nobody, and the room may be needed.
        _ = fs::remove_file(&unfinished);
        RecordingError::refused("write", path)(io_error(error))
    })
}

fn buffered(path: &Path) -> io::Result<BufWriter<File>> {
    Ok(BufWriter::with_capacity(1 << 16, File::create(path)?))
}

/// The spool will be removed: what replaces it must not be only in the page cache.
fn close(file: BufWriter<File>) -> io::Result<()> {
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()
}

fn write_rows_to(path: &Path, spool: &Arc<Spool>, rules: JoinRules, run_id: &str) -> Result<JoinCounts, ParquetError> {
    let mut writer = ProbesWriter::new(buffered(path)?, run_id)?;
    let mut join = Join::new(Arc::clone(spool), rules)?;
    while let Some(block) = join.next_block()? {
        writer.write(block)?;
    }
    close(writer.finish()?)?;
    Ok(join.tally())
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
