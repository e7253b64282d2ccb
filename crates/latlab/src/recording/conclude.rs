//! From spool to rows on disk: how every recording is finished, at once or by a later command.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;

use parquet::errors::ParquetError;

use super::error::RecordingError;
use super::join::{Bounds, Horizon, Join, Rules, Tally};
use super::manifest::{Ending, Manifest};
use super::manifest_file;
use super::parquet_rows::{PROBES, ProbesWriter};
use super::spool::{SPOOL, Spool};
use crate::units::Stamp;

/// The file while it is written; a crash leaves it behind, and the next finisher replaces it.
const UNFINISHED_PROBES: &str = "probes.parquet.unfinished";

/// How the spool of the run of `manifest` is to be joined.
pub(crate) fn rules_of(manifest: &Manifest) -> Rules {
    let ping = manifest.spec.ping();
    let horizon = match (manifest.run.listened_until_ns, manifest.ending) {
        (Some(until), _) => Horizon::At(Stamp::from_nanos(until)),
        (None, Ending::Measuring) => Horizon::LastEvent,
        (None, _) => Horizon::Enough,
    };
    Rules { timeout: ping.timeout_ns, size_bytes: ping.size_bytes, horizon, bounds: Bounds::default() }
}

/// Joins `spool` into rows, writes them and the manifest, and removes the spool. Each step leaves a
/// directory that can be opened: the rows are renamed into place, then the manifest, then the spool goes.
///
/// # Errors
/// Where the rows or the manifest could not be written: then the spool is still the data.
pub(crate) fn conclude(
    directory: &Path,
    spool: &Arc<Spool>,
    rules: Rules,
    manifest: &mut Manifest,
) -> Result<(), RecordingError> {
    let tally = write_rows(directory, spool, rules, &manifest.run_id)?;
    note(manifest, tally, rules.horizon);
    manifest.rows = Some(tally.rows);
    let written = manifest_file::write(directory, manifest);
    written.map_err(RecordingError::refused("write the manifest of", directory))?;
    let path = directory.join(SPOOL);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(RecordingError::refused("remove", path)(error)),
        _ => Ok(()),
    }
}

/// What a full join would find, without writing anything.
pub(crate) fn survey(spool: &Arc<Spool>, rules: Rules) -> Result<Tally, RecordingError> {
    let refused = || RecordingError::refused("read", spool.path());
    let mut join = Join::new(Arc::clone(spool), rules).map_err(refused())?;
    while join.next_block().map_err(refused())?.is_some() {}
    Ok(join.tally())
}

/// Enters what the joiner saw into the manifest.
pub(crate) fn note(manifest: &mut Manifest, tally: Tally, horizon: Horizon) {
    let run = &mut manifest.run;
    // Events that the writer had to discard are in no spool, but were counted when it happened.
    run.gap_events = run.gap_events.max(tally.gap_events);
    run.timed_out_ns = tally.timed_out;
    run.undecided_probes = tally.undecided_probes;
    run.orphan_answers = tally.orphan_answers;
    run.unreadable_events = tally.holes;
    if horizon == Horizon::LastEvent {
        run.listened_until_ns = tally.latest.map(Stamp::as_nanos);
    }
}

fn write_rows(directory: &Path, spool: &Arc<Spool>, rules: Rules, run_id: &str) -> Result<Tally, RecordingError> {
    let unfinished = directory.join(UNFINISHED_PROBES);
    let written = write_rows_to(&unfinished, spool, rules, run_id);
    let path = directory.join(PROBES);
    let named = written.and_then(|tally| {
        fs::rename(&unfinished, &path)?;
        Ok(tally)
    });
    named.map_err(|error| {
        // Half a file helps nobody, and the room may be needed.
        _ = fs::remove_file(&unfinished);
        RecordingError::refused("write", path)(io_error(error))
    })
}

fn write_rows_to(path: &Path, spool: &Arc<Spool>, rules: Rules, run_id: &str) -> Result<Tally, ParquetError> {
    let file = BufWriter::with_capacity(1 << 16, File::create(path)?);
    let mut writer = ProbesWriter::new(file, run_id)?;
    let mut join = Join::new(Arc::clone(spool), rules)?;
    while let Some(block) = join.next_block()? {
        writer.write(block)?;
    }
    // The spool will be removed: what replaces it must not be only in the page cache.
    writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
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
