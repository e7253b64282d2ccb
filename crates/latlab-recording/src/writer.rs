//! Creates a recording: its directory, its writer thread, its end, and the trace that may follow.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{Builder, JoinHandle};

use latlab_sys::errno;

use super::conclude::{SOUND_DISK, conclude, count_rows, enter_counts, host_samples_lost, join_rules};
use super::drain::{Drain, Drained, ProbeTally, RecordingProgress, SpoolFailure};
use super::error::RecordingError;
use super::host_spool::{HOST_SPOOL, HostLog, HostSpool};
use super::join::{Horizon, JoinRules};
use super::manifest::{Manifest, RunEnding};
use super::manifest_file::{self, MANIFEST, NEXT};
use super::reader::Recording;
use super::ring::{EventLog, ring};
use super::spool::{self, SPOOL, Spool};
use super::store::{Store, directory_name, refuse_files, trace_file};
use crate::diagnostics::{Caveat, Explain, Failure, Severity};
use crate::plan::{Kind, Side, defaults};
use crate::platform::Directory;
use crate::units::Nanos;

/// A recording that is being written. If it is dropped without [`RecordingWriter::finish`], it stays as after a crash: the
/// next command that opens it finishes it.
#[derive(Debug)]
pub struct RecordingWriter {
    directory: Arc<Directory>,
    manifest: Manifest,
    spool: File,
    host: Option<File>,
    drain: Option<JoinHandle<Drained>>,
    progress: RecordingProgress,
    keeps_delays: bool,
}

/// A recording that is finished, as far as the disk allowed.
#[derive(Debug)]
pub struct Finished {
    /// Directory of the recording; of one that is not kept, that of temporary files.
    pub path: PathBuf,
    directory: Arc<Directory>,
    /// Manifest of the recording as it is on disk.
    pub manifest: Manifest,
    /// The first error, if there was one: then the recording is readable and its ending is `failed`.
    pub failure: Option<RecordingError>,
}

impl RecordingWriter {
    /// Creates the recording's directory: `directory` if given (`--output`), else a new one in `store`. Foreseeable
    /// errors are returned here, before a probe is sent.
    ///
    /// # Errors
    /// If `directory` exists, is below a file, or cannot be written to.
    pub fn create(store: &Store, directory: Option<&Path>, mut manifest: Manifest) -> Result<Self, RecordingError> {
        (manifest.ending, manifest.reason, manifest.rows) = (RunEnding::Measuring, None, None);
        let directory = match directory {
            Some(directory) => make_directory(directory)?,
            None if store.keeps() => make_directory_in(store, &manifest)?,
            None => Directory::nameless(store.path()),
        };
        match begin(&directory, &manifest) {
            Ok(spool) => Ok(RecordingWriter {
                directory: Arc::new(directory),
                manifest,
                spool,
                host: None,
                drain: None,
                progress: RecordingProgress::default(),
                keeps_delays: false,
            }),
            Err(error) => {
                _ = directory.remove_with(&BEGUN);
                Err(RecordingError::refused("make the recording", directory.path())(error))
            }
        }
    }

    /// Keeps the delays of the last seconds for [`RecordingProgress::delays`]. Call before the start. A recording without it
    /// does no work for a display.
    pub fn keep_delays(&mut self) {
        self.keeps_delays = true;
    }

    /// Writes the manifest, creates the ring and starts the writer thread, which sets `stop` if the run can no longer be
    /// recorded. Call once.
    ///
    /// # Errors
    /// If the manifest cannot be written or the thread cannot be started.
    pub fn start(&mut self, stop: Arc<AtomicBool>) -> Result<EventLog, RecordingError> {
        let mut logs = self.start_logs(stop, &[defaults::RING_EVENTS])?;
        Ok(logs.swap_remove(0))
    }

    /// Like [`RecordingWriter::start`], with one ring for each measuring thread. `rings` has their capacities, which are
    /// powers of two.
    ///
    /// # Errors
    /// As [`RecordingWriter::start`].
    pub fn start_logs(&mut self, stop: Arc<AtomicBool>, rings: &[usize]) -> Result<Vec<EventLog>, RecordingError> {
        let refused = |action| RecordingError::refused(action, self.directory.path());
        manifest_file::write(&self.directory, &self.manifest).map_err(refused("write the manifest of"))?;
        manifest_file::reserve(&self.directory).map_err(refused("write the manifest of"))?;
        let (logs, readers) = rings.iter().map(|capacity| ring(*capacity)).unzip();
        let spool = self.spool.try_clone().map_err(refused("write"))?;
        let period = drain_period(self.manifest.kind, rings);
        let timeout = self.manifest.spec.ping().map_or(defaults::TIMEOUT, |ping| ping.timeout_ns);
        let is_traced = self.manifest.spec.is_traced();
        let drain = Drain {
            readers,
            spool,
            period,
            stop,
            tally: ProbeTally::new(timeout, self.progress.clone(), self.keeps_delays, is_traced),
            is_named: !self.directory.is_nameless(),
            parts: 0,
            checked: Vec::new(),
        };
        let thread = Builder::new().name("latlab-spool".into()).spawn(|| drain.run());
        self.drain = Some(thread.map_err(refused("start the writer of"))?);
        Ok(logs)
    }

    /// The log of host samples. Call once; pass the log to [`RecordingWriter::note_unwritten_samples`] at the end.
    ///
    /// # Errors
    /// If its spool cannot be created.
    pub fn host_log(&mut self) -> Result<HostLog, RecordingError> {
        let path = self.directory.path_of(HOST_SPOOL);
        let begun = HostLog::create(&self.directory, &self.manifest.run_id).and_then(|log| Ok((log.file()?, log)));
        let (file, log) = begun.map_err(RecordingError::refused("write", path))?;
        self.host = Some(file);
        Ok(log)
    }

    /// Adds a caveat if samples in `log` could not be written. Call at the end of the run.
    pub fn note_unwritten_samples(&mut self, log: &HostLog) {
        if let Some((error, lost)) = log.failure() {
            let message = format!("{lost} host samples could not be written: {}", errno::explain(error));
            self.manifest.caveats.push(host_samples_lost(&message, "a disk with free space for `--store`"));
        }
    }

    /// Adds a caveat if `given_up`, the number of samples of the far host that did not arrive in time, is not 0.
    pub fn note_samples_given_up(&mut self, given_up: u64) {
        if given_up > 0 {
            let message = format!("the last {given_up} samples of the reflector's host did not arrive in time");
            let hint = "a faster connection to the agent, or a shorter run: the samples must arrive within 10 s";
            self.manifest.caveats.push(host_samples_lost(&message, hint));
        }
    }

    /// Writes the `trace` of a host into the recording; if that fails, the manifest gets a caveat. Call at the end of the run.
    pub fn keep_trace(&mut self, side: Side, trace: &str) {
        let name = trace_file(side);
        let written = self.directory.replace_file(name).and_then(|mut file| {
            let written = file.write_all(trace.as_bytes()).and_then(|()| file.sync_data());
            written.inspect_err(|_| _ = self.directory.remove(name))
        });
        if let Err(error) = &written {
            self.note_trace_missing(error);
        }
    }

    /// Adds the caveat that the trace is missing because of `error`.
    pub fn note_trace_missing(&mut self, error: &io::Error) {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => "as root, or with `cap_sys_admin`",
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space, or another place with `--store`"
            }
            io::ErrorKind::InvalidInput => "without `--no-record`: it would be a part of the recording",
            io::ErrorKind::ReadOnlyFilesystem => "a writable directory with `--store`",
            _ => "a kernel with tracefs and its scheduler events",
        };
        let message = format!("the trace around the slowest is missing: {}", errno::explain(error));
        self.manifest.caveats.push(trace_missing(message, hint));
    }

    /// Adds the caveat that the trace of the peer's host is missing.
    pub fn note_peer_trace_missing(&mut self, Failure { message, cause, hint, .. }: &Failure) {
        let why = [Some(message), cause.as_ref()].into_iter().flatten().map(|it| format!(": {it}"));
        let message = format!("the trace of the peer is missing{}", String::from_iter(why));
        self.manifest.caveats.push(trace_missing(message, hint.as_deref().unwrap_or_default()));
    }

    /// Counts of what was recorded so far.
    pub fn progress(&self) -> RecordingProgress {
        self.progress.clone()
    }

    /// The manifest, which the caller completes during the run.
    pub fn manifest_mut(&mut self) -> &mut Manifest {
        &mut self.manifest
    }

    /// Writes the manifest, so that its present content is kept however the process ends. Waits for the disk. An
    /// error is ignored here; if it persists, the end of the run reports it.
    pub fn save(&mut self) {
        let written = manifest_file::write(&self.directory, &self.manifest);
        _ = written.and_then(|()| manifest_file::reserve(&self.directory));
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Drains the last events, joins the rows, writes them and the manifest, and removes the spool. If that fails,
    /// the recording is readable and has the ending `failed`: see [`Finished::failure`].
    ///
    /// # Errors
    /// If no readable recording could be written.
    pub fn finish(self, log: EventLog, ending: RunEnding, reason: Option<String>) -> Result<Finished, RecordingError> {
        self.finish_logs(vec![log], ending, reason)
    }

    /// Like [`RecordingWriter::finish`], for several measuring threads.
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
        let path = self.directory.path_of(SPOOL);
        (self.manifest.ending, self.manifest.reason) = (ending, reason);
        let mut rules = join_rules(&self.manifest);
        let failure = drained.failure.map(|failure| match failure {
            SpoolFailure::Refused(source) => {
                // The spool ends earlier than the run.
                rules.horizon = Horizon::LastEvent;
                RecordingError::refused("write", &path)(source)
            }
            SpoolFailure::Vanished => RecordingError::Vanished { path: self.directory.path().to_owned() },
        });
        if let Some(failure) = &failure {
            self.fail(failure);
        }
        self.manifest.run.gap_events = dropped + drained.discarded;
        if self.directory.is_removed() {
            self.directory = Arc::new(make_directory(self.directory.path())?);
        }
        let file = self.spool.try_clone().map_err(RecordingError::refused("read", &path))?;
        let spool = Arc::new(Spool::from_file(file, &path)?);
        let host = self.host_spool();
        match conclude(&self.directory, &spool, host, rules, &mut self.manifest) {
            Ok(()) => Ok(self.finished(failure)),
            Err(refusal) => self.finish_without_rows(&spool, rules, failure, refusal),
        }
    }

    fn finished(self, failure: Option<RecordingError>) -> Finished {
        let RecordingWriter { directory, manifest, .. } = self;
        Finished { path: directory.path().to_owned(), directory, manifest, failure }
    }

    /// Opens the spool of host samples, if there is one. Adds a caveat if it cannot be read.
    fn host_spool(&mut self) -> Option<HostSpool> {
        let opened = HostSpool::from_file(self.host.take()?, &self.directory.path_of(HOST_SPOOL));
        opened.map_err(|error| self.manifest.caveats.push(host_samples_lost(&error.to_string(), SOUND_DISK))).ok()
    }

    /// Removes the recording: nothing was measured.
    pub fn discard(mut self, logs: impl IntoIterator<Item = EventLog>) {
        self.stop_draining(logs);
        // If this fails, the next command opens it as an empty recording.
        _ = self.directory.remove_with(&BEGUN);
    }

    fn stop_draining(&mut self, logs: impl IntoIterator<Item = EventLog>) -> Drained {
        logs.into_iter().for_each(drop);
        let Some(drain) = self.drain.take() else { return Drained::default() };
        drain.thread().unpark();
        // The thread does not panic; if it did, its events so far are in the spool.
        drain.join().unwrap_or_default()
    }

    /// Leaves the data in the spool, since the rows could not be written. The manifest gets the cause, if it can be written.
    fn finish_without_rows(
        mut self,
        spool: &Arc<Spool>,
        rules: JoinRules,
        failure: Option<RecordingError>,
        refusal: RecordingError,
    ) -> Result<Finished, RecordingError> {
        if !self.directory.has(SPOOL) {
            return Err(refusal);
        }
        let counts = count_rows(spool, self.manifest.kind, rules)?;
        enter_counts(&mut self.manifest, counts, rules.horizon);
        self.manifest.clear_rows();
        let failure = failure.unwrap_or(refusal);
        self.fail(&failure);
        // If this is refused too, the ending stays `measuring` and the recording is recovered as after a crash.
        _ = manifest_file::write(&self.directory, &self.manifest);
        Ok(self.finished(Some(failure)))
    }

    fn fail(&mut self, failure: &RecordingError) {
        self.manifest.ending = RunEnding::Failed;
        let cause = failure.explain().cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        self.manifest.reason = Some(format!("{failure}{cause}"));
    }
}

/// The files of a recording that has begun.
const BEGUN: [&str; 4] = [HOST_SPOOL, NEXT, MANIFEST, SPOOL];

fn begin(directory: &Directory, manifest: &Manifest) -> io::Result<File> {
    // The spool is created first: a manifest without a locked spool means that its run died.
    let spool = spool::create(directory, &manifest.run_id)?;
    manifest_file::write(directory, manifest)?;
    manifest_file::reserve(directory)?;
    Ok(spool)
}

fn make_directory(path: &Path) -> Result<Directory, RecordingError> {
    refuse_files(path)?;
    let refused = || RecordingError::refused("make the recording", path);
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(refused())?;
    Directory::create(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => RecordingError::Exists { path: path.to_owned() },
        _ => refused()(error),
    })
}

/// Runs that begin in the same second with the same first digits of their ids get names with more digits.
fn make_directory_in(store: &Store, manifest: &Manifest) -> Result<Directory, RecordingError> {
    let name_with = |digits| directory_name(&manifest.started_at, manifest.kind, &manifest.run_id, digits);
    let path_with = |digits| store.path().join(name_with(digits));
    for digits in [4, 8, 16] {
        match store.make_directory(&name_with(digits)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            made => return made.map_err(RecordingError::refused("make the recording", path_with(digits))),
        }
    }
    Err(RecordingError::Exists { path: path_with(16) })
}

/// The time between two drains. Rings of wake-ups and executions hold seconds of events, unless wake-ups are so frequent
/// that the capacity is the maximum.
fn drain_period(kind: Kind, rings: &[usize]) -> Nanos {
    let is_below_maximum = rings.iter().all(|capacity| *capacity < defaults::RING_EVENTS);
    if matches!(kind, Kind::Wakeup | Kind::Command) && is_below_maximum {
        defaults::WAKEUP_DRAIN
    } else {
        defaults::DRAIN
    }
}

/// The caveat of a run whose trace could not be recorded or written.
fn trace_missing(message: String, hint: &str) -> Caveat {
    Caveat::new(Severity::Note, "trace-missing", message, "it is not known what ran on the CPU then", hint)
}

impl Finished {
    /// Opens the recording.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn open(&self) -> Result<Recording, RecordingError> {
        Recording::open_in(Arc::clone(&self.directory))
    }
}
