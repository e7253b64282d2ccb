//! A recording in the making: its directory, its writer thread, its end.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{Builder, JoinHandle};

use latlab_sys::errno::explain;

use super::conclude::{SOUND_DISK, conclude, host_samples_lost, note, rules_of, survey};
use super::drain::{Drain, Drained, RecordingProgress, SpoolFailure};
use super::error::RecordingError;
use super::host_spool::{HOST_SPOOL, HostLog, HostSpool};
use super::join::Horizon;
use super::manifest::{Manifest, RunEnding};
use super::manifest_file;
use super::naming::directory_name;
use super::ring::{EventLog, ring};
use super::spool::{self, SPOOL, Spool};
use super::store::{Store, refuse_files};
use crate::plan::{Kind, defaults};
use crate::units::Nanos;

/// A recording in the making. Dropped without [`RecordingWriter::finish`] it stays as after a crash: the next
/// command that opens it finishes it.
#[derive(Debug)]
pub struct RecordingWriter {
    path: PathBuf,
    manifest: Manifest,
    spool: File,
    host: Option<File>,
    drain: Option<JoinHandle<Drained>>,
    progress: RecordingProgress,
}

/// A recording, finished as well as the disk allowed.
#[derive(Debug)]
pub struct Finished {
    /// Where it is.
    pub path: PathBuf,
    /// Its manifest as it stands on disk.
    pub manifest: Manifest,
    /// What went wrong on the way: the recording is readable all the same, and its ending is `failed`.
    pub failure: Option<RecordingError>,
}

impl RecordingWriter {
    /// Makes the recording's directory: `directory` where one was asked for (`--output`), else a fresh one in `store`.
    /// Everything that can be refused is refused here, before anything is sent.
    ///
    /// # Errors
    /// Where `directory` exists already, a file stands in the way, or the place cannot be written to.
    pub fn create(store: &Store, directory: Option<&Path>, mut manifest: Manifest) -> Result<Self, RecordingError> {
        (manifest.ending, manifest.reason, manifest.rows) = (RunEnding::Measuring, None, None);
        let path = match directory {
            Some(directory) => make_directory(directory)?,
            None => make_directory_in(store, &manifest)?,
        };
        match begin(&path, &manifest) {
            Ok(spool) => Ok(RecordingWriter {
                path,
                manifest,
                spool,
                host: None,
                drain: None,
                progress: RecordingProgress::default(),
            }),
            Err(error) => {
                _ = fs::remove_dir_all(&path);
                Err(RecordingError::refused("make the recording", path)(error))
            }
        }
    }

    /// Writes the manifest as it is now, makes the ring and starts the writer thread. Call once. `stop`
    /// is set by the thread when the run can no longer be recorded.
    ///
    /// # Errors
    /// Where the manifest cannot be written or the system gives no thread.
    pub fn start(&mut self, stop: Arc<AtomicBool>) -> Result<EventLog, RecordingError> {
        let mut logs = self.start_logs(stop, &[defaults::RING_EVENTS])?;
        Ok(logs.swap_remove(0))
    }

    /// The same with a ring of each of these capacities (powers of two), for as many threads that measure.
    ///
    /// # Errors
    /// As [`RecordingWriter::start`].
    pub fn start_logs(&mut self, stop: Arc<AtomicBool>, rings: &[usize]) -> Result<Vec<EventLog>, RecordingError> {
        let refused = |action| RecordingError::refused(action, &self.path);
        manifest_file::write(&self.path, &self.manifest).map_err(refused("write the manifest of"))?;
        manifest_file::reserve(&self.path).map_err(refused("write the manifest of"))?;
        let (logs, readers) = rings.iter().map(|capacity| ring(*capacity)).unzip();
        let spool = self.spool.try_clone().map_err(refused("write"))?;
        let every = drained_every(self.manifest.kind, rings);
        let drain = Drain { readers, spool, every, stop, progress: self.progress.clone() };
        let thread = Builder::new().name("latlab-spool".into()).spawn(|| drain.run());
        self.drain = Some(thread.map_err(refused("start the writer of"))?);
        Ok(logs)
    }

    /// Begins to take host samples as well. Call once; give the log back with [`RecordingWriter::keep_host_log`].
    ///
    /// # Errors
    /// Where their spool cannot be made.
    pub fn host_log(&mut self) -> Result<HostLog, RecordingError> {
        let path = self.path.join(HOST_SPOOL);
        let begun = HostLog::create(&path, &self.manifest.run_id).and_then(|log| Ok((log.file()?, log)));
        let (file, log) = begun.map_err(RecordingError::refused("write", path))?;
        self.host = Some(file);
        Ok(log)
    }

    /// Takes the log back when the last sample is in it. A disk that refused samples leaves a caveat, and the run as
    /// it is.
    pub fn keep_host_log(&mut self, log: &HostLog) {
        if let Some((error, lost)) = log.failure() {
            let message = format!("{lost} host samples could not be written down: {}", explain(error));
            self.manifest.caveats.push(host_samples_lost(&message, "a disk with room for `--store`"));
        }
    }

    /// Notes that so many samples of the far host were too long on their way home.
    pub fn note_samples_given_up(&mut self, given_up: u64) {
        if given_up > 0 {
            let message =
                format!("the last {given_up} samples of the reflector's host were too long on their way home");
            let hint = "a faster connection to the agent, or a shorter run: its samples come home within 10 s";
            self.manifest.caveats.push(host_samples_lost(&message, hint));
        }
    }

    /// How far the run is.
    pub fn progress(&self) -> RecordingProgress {
        self.progress.clone()
    }

    /// The manifest, to be completed until the end.
    pub fn manifest_mut(&mut self) -> &mut Manifest {
        &mut self.manifest
    }

    /// Writes the manifest down as it is now: what is in it by then is kept, however the process ends. It waits for the
    /// disk; where that refuses, the end of the run will say so.
    pub fn save(&mut self) {
        let written = manifest_file::write(&self.path, &self.manifest);
        _ = written.and_then(|()| manifest_file::reserve(&self.path));
    }

    /// The recording's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the last events, joins the rows, writes them and the manifest, and removes the spool. A disk
    /// that refused something leaves a readable recording with the ending `failed`: see [`Finished::failure`].
    ///
    /// # Errors
    /// Where not even that could be had.
    pub fn finish(self, log: EventLog, ending: RunEnding, reason: Option<String>) -> Result<Finished, RecordingError> {
        self.finish_logs(vec![log], ending, reason)
    }

    /// The same where several threads measured.
    ///
    /// # Errors
    /// As [`RecordingWriter::finish`].
    pub fn finish_logs(
        mut self,
        logs: Vec<EventLog>,
        ending: RunEnding,
        reason: Option<String>,
    ) -> Result<Finished, RecordingError> {
        let dropped = logs.iter().map(EventLog::dropped).sum::<u64>();
        let drained = self.stop_draining(logs);
        let path = self.path.join(SPOOL);
        (self.manifest.ending, self.manifest.reason) = (ending, reason);
        let mut rules = rules_of(&self.manifest);
        let failure = drained.failure.map(|failure| match failure {
            SpoolFailure::Refused(source) => {
                // The spool ends before the run did.
                rules.horizon = Horizon::LastEvent;
                RecordingError::refused("write", &path)(source)
            }
            SpoolFailure::Vanished => RecordingError::Vanished { path: self.path.clone() },
        });
        if let Some(failure) = &failure {
            self.fail(failure);
        }
        self.manifest.run.gap_events = dropped + drained.discarded;
        fs::create_dir_all(&self.path).map_err(RecordingError::refused("make the recording", &self.path))?;
        let spool =
            Arc::new(Spool::of_file(self.spool.try_clone().map_err(RecordingError::refused("read", &path))?, &path)?);
        let host = self.host_spool();
        match conclude(&self.path, &spool, host, rules, &mut self.manifest) {
            Ok(()) => Ok(Finished { path: self.path, manifest: self.manifest, failure }),
            Err(refusal) => self.leave_to_the_spool(&spool, rules, failure, refusal),
        }
    }

    /// The host samples so far; a spool that cannot be read costs them only.
    fn host_spool(&mut self) -> Option<HostSpool> {
        let opened = HostSpool::of_file(self.host.take()?, &self.path.join(HOST_SPOOL));
        opened.map_err(|error| self.manifest.caveats.push(host_samples_lost(&error.to_string(), SOUND_DISK))).ok()
    }

    /// Takes everything back: nothing was measured.
    pub fn discard(mut self, logs: impl IntoIterator<Item = EventLog>) {
        self.stop_draining(logs);
        // What cannot be removed is an unfinished recording, which the next command opens as an empty one.
        _ = fs::remove_dir_all(&self.path);
    }

    fn stop_draining(&mut self, logs: impl IntoIterator<Item = EventLog>) -> Drained {
        logs.into_iter().for_each(drop);
        let Some(drain) = self.drain.take() else { return Drained::default() };
        drain.thread().unpark();
        // The thread has no panic of its own; if it had one, its events so far are in the spool.
        drain.join().unwrap_or_default()
    }

    /// The rows could not be written: the spool stays the data, and the manifest, if it can be written, says why.
    fn leave_to_the_spool(
        mut self,
        spool: &Arc<Spool>,
        rules: super::join::JoinRules,
        failure: Option<RecordingError>,
        refusal: RecordingError,
    ) -> Result<Finished, RecordingError> {
        if !spool.path().exists() {
            return Err(refusal);
        }
        let tally = survey(spool, self.manifest.kind, rules)?;
        note(&mut self.manifest, tally, rules.horizon);
        (self.manifest.rows, self.manifest.wakeup_rows) = (None, None);
        (self.manifest.interval_rows, self.manifest.host_rows) = (None, None);
        self.manifest.probe_rows = None;
        let failure = failure.unwrap_or(refusal);
        self.fail(&failure);
        // Where even this is refused, the recording stays at `measuring` and is recovered like after a crash.
        _ = manifest_file::write(&self.path, &self.manifest);
        Ok(Finished { path: self.path, manifest: self.manifest, failure: Some(failure) })
    }

    fn fail(&mut self, failure: &RecordingError) {
        self.manifest.ending = RunEnding::Failed;
        let cause = failure.cause().map(|cause| format!(": {cause}")).unwrap_or_default();
        self.manifest.reason = Some(format!("{failure}{cause}"));
    }
}

fn begin(path: &Path, manifest: &Manifest) -> io::Result<File> {
    // The spool first: where there is a manifest, a living run holds a lock.
    let spool = spool::create(&path.join(SPOOL), &manifest.run_id)?;
    manifest_file::write(path, manifest)?;
    manifest_file::reserve(path)?;
    Ok(spool)
}

fn make_directory(path: &Path) -> Result<PathBuf, RecordingError> {
    if path.is_dir() {
        return Err(RecordingError::Exists { path: path.to_owned() });
    }
    refuse_files(path)?;
    fs::create_dir_all(path).map_err(RecordingError::refused("make the recording", path))?;
    Ok(path.to_owned())
}

/// Two runs may begin in the same second with the same first digits: then the name takes more of them.
fn make_directory_in(store: &Store, manifest: &Manifest) -> Result<PathBuf, RecordingError> {
    let path_with =
        |digits| store.path().join(directory_name(&manifest.started_at, manifest.kind, &manifest.run_id, digits));
    for digits in [4, 8, 16] {
        match fs::create_dir(path_with(digits)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            made => {
                made.map_err(RecordingError::refused("make the recording", path_with(digits)))?;
                return Ok(path_with(digits));
            }
        }
    }
    Err(RecordingError::Exists { path: path_with(16) })
}

/// How often `rings` are emptied: those of wake-ups that are not so dense that they fill one hold seconds.
fn drained_every(kind: Kind, rings: &[usize]) -> Nanos {
    let is_roomy = rings.iter().all(|capacity| *capacity < defaults::RING_EVENTS);
    if kind == Kind::Wakeup && is_roomy { defaults::WAKEUP_DRAIN } else { defaults::DRAIN }
}
