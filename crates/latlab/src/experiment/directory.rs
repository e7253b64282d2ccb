//! An experiment's directory: its file, its journal, its recordings.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::{ExperimentError, READ};
use super::journal::{ExperimentJournal, JOURNAL, JournalEntry, RunnerProcess, begun_source};
use super::results::outcome_of_recording;
use super::runner::RunJournal;
use super::state::ExperimentState;
use crate::clock;
use crate::facts::{ExperimentFormat, RecipeFacts, RunOutcome, RunState};
use crate::plan::defaults::EXPERIMENT_FILE_MAX_BYTES;
use crate::plan::hooks::{AFTER_RUN, BEFORE_BLOCK, BEFORE_RUN, READY, SERVICE};
use crate::platform::{Directory, input_file};
use crate::recording::manifest::{Manifest, RunEnding, Software};
use crate::recording::{Listing, Recording, Store, entry_names, fresh_run_id, mark_failed, started_at};

/// The file of an experiment: the one it was begun with, or the last changed one.
const FILE: &str = "experiment.toml";
/// Others may read an experiment but not change it, whatever the umask.
const DIRECTORY_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;
/// The store of its recordings.
pub(super) const RUNS: &str = "runs";
/// The directory of the outputs of failed hooks.
pub(super) const OUTPUTS: &str = "hooks";
/// The hooks whose outputs are kept.
const HOOKS_OF_OUTPUTS: [&str; 5] = [BEFORE_BLOCK, BEFORE_RUN, SERVICE, READY, AFTER_RUN];
/// A reason to keep an experiment.
const NOT_FINISHED: &str = "it is not finished: `latlab run` continues it";

/// An experiment whose journal this process has locked.
#[derive(Debug)]
pub struct OpenExperiment {
    path: PathBuf,
    text: String,
    journal: ExperimentJournal,
    state: ExperimentState,
}

/// Where an experiment comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExperimentOrigin {
    /// The absolute path of its file, or `recipe:…`.
    pub source: String,
    pub recipe: Option<RecipeFacts>,
}

/// The lock of a store, held while its experiments are listed and one is begun or opened, so that of two processes
/// that start at once the second finds what the first has begun.
#[derive(Debug)]
pub(crate) struct StoreLock {
    _store: File,
}

impl StoreLock {
    /// Waits for the lock of `store`, which is created if missing.
    ///
    /// # Errors
    /// If it cannot be created or opened.
    pub(crate) fn wait(store: &Path) -> Result<StoreLock, ExperimentError> {
        Store::open(store).map_err(ExperimentError::of_store)?;
        let file = File::open(store).map_err(ExperimentError::refused("open the store", store))?;
        // Some network file systems cannot lock a directory: the lock of the journal is then the only one.
        let _ = flock(&file, FlockOperation::LockExclusive);
        Ok(StoreLock { _store: file })
    }
}

/// Whether `path` is an experiment's directory: it has a file, a journal and a store of runs, of which one may be lost.
/// Without the journal the runs say that they are those of an experiment: a person may have a file of that name.
pub(crate) fn is_experiment(path: &Path) -> bool {
    let (has_file, has_runs) = (path.join(FILE).is_file(), path.join(RUNS).is_dir());
    if path.join(JOURNAL).is_file() {
        has_file || has_runs
    } else {
        has_file && has_runs && may_have_runs(&store_of(path))
    }
}

/// Whether `store` has a run of an experiment, or recordings of which no manifest can be read.
fn may_have_runs(store: &Store) -> bool {
    let mut readable = false;
    let mut is_run = |manifest: Manifest| {
        readable = true;
        manifest.experiment.is_some()
    };
    store.manifests().any(&mut is_run) || (!readable && store.has_recordings())
}

/// The store of the runs of the experiment in `directory`.
pub(crate) fn runs_directory(directory: &Path) -> PathBuf {
    directory.join(RUNS)
}

/// The same; `None` if it holds no experiment.
pub(crate) fn runs_of(directory: &Path) -> Option<PathBuf> {
    is_experiment(directory).then(|| runs_directory(directory))
}

/// The file of the experiment in `directory`.
pub(crate) fn file_path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

pub(crate) fn file_text(directory: &Path) -> Result<String, ExperimentError> {
    let path = file_path(directory);
    input_file::read_text(&path, EXPERIMENT_FILE_MAX_BYTES).map_err(ExperimentError::refused(READ, path))
}

/// Refuses an experiment whose file or journal another user can write or exchange: both say which commands run.
pub(crate) fn expect_own(directory: &Path) -> Result<(), ExperimentError> {
    [FILE, JOURNAL].map(|name| directory.join(name)).iter().filter(|path| path.exists()).try_for_each(|path| {
        input_file::open_own(path).map(drop).map_err(ExperimentError::refused("go on with", directory))
    })
}

/// Refuses a `text`, read from `file`, that differs from the file of the experiment in `directory`.
pub(crate) fn expect_same(directory: &Path, file: &str, text: &str) -> Result<(), ExperimentError> {
    match first_difference(&file_text(directory)?, text) {
        None => Ok(()),
        Some(difference) => Err(ExperimentError::Changed { file: file.into(), path: directory.to_owned(), difference }),
    }
}

/// Whether the file in `directory` is another than the one that `state` names.
pub(crate) fn is_edited(directory: &Path, state: &ExperimentState) -> Result<bool, ExperimentError> {
    Ok(!state.names_file(&file_blake3(&file_text(directory)?)))
}

fn file_blake3(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// The state of the experiment in `directory`, whether or not a process runs it.
///
/// # Errors
/// If it holds no experiment, a damaged one, or one of a later version.
pub(crate) fn read_state(directory: &Path) -> Result<ExperimentState, ExperimentError> {
    ExperimentJournal::read(directory).map(|entries| state_in(directory, entries))
}

/// The same, with the process that runs it, if one does.
pub(crate) fn read_state_with_runner(
    directory: &Path,
) -> Result<(ExperimentState, Option<RunnerProcess>), ExperimentError> {
    ExperimentJournal::read_with_runner(directory).map(|(entries, runner)| (state_in(directory, entries), runner))
}

/// The experiments in `store`, whatever their state, the newest first; none if the store cannot be read.
pub(crate) fn in_store(store: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(store).into_iter().flatten();
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_experiment(path)).collect();
    paths.sort_unstable_by(|one, other| other.cmp(one));
    paths
}

/// The state after `entries` of the journal in `directory`, completed from the recordings.
fn state_in(directory: &Path, entries: Vec<JournalEntry>) -> ExperimentState {
    let mut state = ExperimentState::of(entries);
    state.runs.iter_mut().for_each(|run| complete_from_recording(directory, run));
    state
}

/// A failed run may have been measured to its end without an answer: the manifest of its recording says so.
fn complete_from_recording(directory: &Path, run: &mut RunState) {
    let (Some(RunOutcome::Failed), Some(name)) = (run.outcome, &run.recording) else { return };
    let ending = Recording::open(&directory.join(RUNS).join(name)).map(|recording| recording.manifest().ending);
    run.complete = ending.is_ok_and(|ending| ending == RunEnding::Completed);
}

/// The newest unfinished experiment in `store` that came from `source`. Directories that cannot be read are passed over.
pub(crate) fn newest_unfinished(store: &Path, source: &str) -> Option<PathBuf> {
    newest(store, source, false)
}

/// The newest experiment in `store` that came from `source` and is finished or not; newest by number, since clocks are set
/// back.
pub(crate) fn newest(store: &Path, source: &str, is_finished: bool) -> Option<PathBuf> {
    let own = in_store(store).into_iter().filter_map(|path| {
        let state = read_state(&path).ok()?;
        (state.source == source && state.finished == is_finished).then_some((state.number, path))
    });
    own.max().map(|(_, path)| path)
}

/// Refuses if the newest experiment in `store` that can be of `source`, whose file has `text`, has runs and a journal that
/// does not say what they are: they would be repeated. Its file has this text, or its journal begins with this source. A
/// journal that cannot be read has no number, so that the newest one is that with the latest name.
pub(crate) fn expect_readable(store: &Path, source: &str, text: &str) -> Result<(), ExperimentError> {
    let can_be_own = |path: &PathBuf| {
        let is_named = || begun_source(path).is_some_and(|own| own == source);
        file_text(path).is_ok_and(|own| own == text) || is_named()
    };
    for path in in_store(store).into_iter().filter(can_be_own) {
        match read_state(&path) {
            Ok(state) if state.source == source => break,
            Err(error) if store_of(&path).has_recordings() => return Err(unreadable(&path, error)),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// The state of the experiment in `directory`, which a person named to go on with it.
///
/// # Errors
/// As [`read_state`]; that of an experiment with runs whose journal is gone says so.
pub(crate) fn read_named_state(directory: &Path) -> Result<ExperimentState, ExperimentError> {
    read_state(directory).map_err(|error| match error {
        ExperimentError::NotAnExperiment { .. } | ExperimentError::Refused { .. }
            if is_experiment(directory) && store_of(directory).has_recordings() =>
        {
            unreadable(directory, error)
        }
        other => other,
    })
}

fn unreadable(directory: &Path, error: ExperimentError) -> ExperimentError {
    ExperimentError::Unreadable { path: directory.to_owned(), source: Box::new(error) }
}

/// The runs of the experiment in `directory`.
fn store_of(directory: &Path) -> Store {
    Store::at(&runs_directory(directory))
}

/// Refuses while a process runs an experiment in `store` that came from `source`.
pub(crate) fn expect_idle(store: &Path, source: &str) -> Result<(), ExperimentError> {
    for path in in_store(store).into_iter().filter(|path| read_state(path).is_ok_and(|state| state.source == source)) {
        if let Err(busy @ ExperimentError::Busy { .. }) = ExperimentJournal::open(&path) {
            return Err(busy);
        }
    }
    Ok(())
}

/// Why [`remove`] would not remove the experiment in `directory`: only one that is finished is removed, if every recording of
/// it can be removed and it has no other files.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn reason_to_keep(directory: &Path) -> Result<Option<String>, ExperimentError> {
    let (state, runner) = read_state_with_runner(directory)?;
    match runner {
        Some(_) => Ok(Some("a process measures it".into())),
        None if !state.finished => Ok(Some(NOT_FINISHED.into())),
        None => foreign_content(directory, &state),
    }
}

/// The reason to keep a finished experiment in `directory`, whose journal has this `state`.
fn foreign_content(directory: &Path, state: &ExperimentState) -> Result<Option<String>, ExperimentError> {
    if directory.is_symlink() {
        return Ok(Some("it is a link".into()));
    }
    if runs_directory(directory).is_symlink() {
        return Ok(Some(format!("its `{RUNS}` is a link")));
    }
    if outputs_directory(directory).is_symlink() {
        return Ok(Some(format!("its `{OUTPUTS}` is a link")));
    }
    let is_foreign = |name: &String| {
        let is_directory = fs::symlink_metadata(directory.join(name)).is_ok_and(|facts| facts.is_dir());
        !is_own_name(name) || is_directory != [RUNS, OUTPUTS].contains(&name.as_str())
    };
    let names = entry_names(directory).map_err(ExperimentError::refused("list", directory))?;
    let foreign = match names.into_iter().find(is_foreign) {
        None => foreign_output(directory)?,
        found => found,
    };
    match foreign {
        Some(name) => Ok(Some(format!("it has the other file `{name}`"))),
        None => foreign_run(directory, state),
    }
}

/// What is among the outputs of failed hooks of the experiment in `directory` and is not one of them.
fn foreign_output(directory: &Path) -> Result<Option<String>, ExperimentError> {
    let outputs = outputs_directory(directory);
    let is_file = |name: &str| fs::symlink_metadata(outputs.join(name)).is_ok_and(|facts| facts.is_file());
    let names = names_if_there(&outputs).map_err(ExperimentError::refused("list", directory))?;
    let foreign = names.into_iter().find(|name| !is_output_name(name) || !is_file(name));
    Ok(foreign.map(|name| format!("{OUTPUTS}/{name}")))
}

/// The entries of `directory`; none if an interrupted removal has removed it.
fn names_if_there(directory: &Path) -> io::Result<Vec<String>> {
    match entry_names(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names,
    }
}

/// The outputs of failed hooks of the experiment in `directory`.
fn outputs_directory(directory: &Path) -> PathBuf {
    directory.join(OUTPUTS)
}

/// What is in the store of runs of that experiment and is not a run of it that can be removed.
fn foreign_run(directory: &Path, state: &ExperimentState) -> Result<Option<String>, ExperimentError> {
    let refused = || ExperimentError::refused("list", directory);
    let listings = store_of(directory).list()?;
    let known: Vec<String> = listings.iter().map(Listing::name).collect();
    let names = names_if_there(&runs_directory(directory)).map_err(refused())?;
    if let Some(name) = names.into_iter().find(|name| !known.contains(name)) {
        return Ok(Some(format!("`{RUNS}/{name}` is not a recording")));
    }
    for listing in listings.iter().filter(|listing| !is_empty(listing)) {
        if let Some(reason) = listing.reason_to_keep().map_err(refused())? {
            return Ok(Some(format!("{reason}: `{RUNS}/{}`", listing.name())));
        }
        if !is_run_of(listing, state) {
            return Ok(Some(format!("`{RUNS}/{}` is not a run of it", listing.name())));
        }
    }
    Ok(None)
}

/// Whether the recording was made in the experiment in `state`. The journal does not name each of them: a run that ended with
/// an error may have left one.
fn is_run_of(listing: &Listing, state: &ExperimentState) -> bool {
    let facts = listing.manifest.as_ref().and_then(|manifest| manifest.experiment.as_ref());
    facts.is_some_and(|facts| facts.experiment == state.id)
}

/// Removes the experiment in `directory` with its recordings. No process runs it meanwhile. If it is interrupted, a second call
/// removes the rest.
///
/// # Errors
/// If there is a reason to keep it, or something cannot be removed.
pub(crate) fn remove(directory: &Path) -> Result<(), ExperimentError> {
    let refused = || ExperimentError::refused("remove", directory);
    let (_locked, entries) = ExperimentJournal::open(directory)?;
    let state = ExperimentState::of(entries);
    let reason = if state.finished { foreign_content(directory, &state)? } else { Some(NOT_FINISHED.into()) };
    if let Some(reason) = reason {
        return Err(refused()(io::Error::other(reason)));
    }
    for listing in store_of(directory).list()? {
        if is_empty(&listing) { fs::remove_dir(&listing.path).map_err(refused())? } else { listing.remove()? }
    }
    match fs::remove_dir(runs_directory(directory)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        removed => removed.map_err(refused())?,
    }
    let open = Directory::open(directory).map_err(refused())?;
    remove_outputs(&open).map_err(refused())?;
    let mut names = entry_names(directory).map_err(refused())?;
    // The file and the journal are the last: together they say that the directory is an experiment.
    names.sort_by_key(|name| [FILE, JOURNAL].iter().position(|last| last == name));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    open.remove_with(&names).map_err(refused())
}

/// Removes the outputs of failed hooks in the `experiment`, if it has any.
fn remove_outputs(experiment: &Directory) -> io::Result<()> {
    if !experiment.has(OUTPUTS) {
        return Ok(());
    }
    let outputs = experiment.directory(OUTPUTS)?;
    let names = entry_names(outputs.path())?;
    outputs.remove_with(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Whether latlab writes a file or directory of this name into an experiment: `experiment.3.toml` is an earlier file of it.
fn is_own_name(name: &str) -> bool {
    let number = name.strip_prefix("experiment.").and_then(|rest| rest.strip_suffix(".toml"));
    [FILE, JOURNAL, RUNS, OUTPUTS, "experiment.next"].contains(&name)
        || number.is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Whether latlab writes the output of a failed hook to a file of this name: `block-2-run-5-service.txt`.
fn is_output_name(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let place = name.strip_prefix("block-").and_then(|rest| rest.strip_suffix(".txt"));
    let place = place.and_then(|place| place.split_once("-run-"));
    place.is_some_and(|(block, rest)| {
        let run_and_hook = rest.split_once('-');
        is_number(block) && run_and_hook.is_some_and(|(run, hook)| is_number(run) && HOOKS_OF_OUTPUTS.contains(&hook))
    })
}

/// A process that is killed as it begins a run leaves an empty directory.
fn is_empty(listing: &Listing) -> bool {
    !listing.path.is_symlink() && fs::read_dir(&listing.path).is_ok_and(|mut entries| entries.next().is_none())
}

/// The highest number of an experiment in `store`; 0 if there is none.
fn last_number(store: &Path) -> u64 {
    let number = |path: PathBuf| Some(ExperimentState::of(ExperimentJournal::read(&path).ok()?).number);
    in_store(store).into_iter().filter_map(number).max().unwrap_or_default()
}

impl OpenExperiment {
    /// Begins an experiment of `text` in `store`.
    ///
    /// # Errors
    /// If its directory cannot be created.
    pub(crate) fn begin(store: &Path, text: &str, origin: ExperimentOrigin) -> Result<OpenExperiment, ExperimentError> {
        Store::open(store).map_err(ExperimentError::of_store)?;
        let id = fresh_run_id().map_err(ExperimentError::refused("begin an experiment in", store))?;
        let number = 1 + last_number(store);
        let path = create_directory(store, &id)?;
        let refused = || ExperimentError::refused("begin the experiment", &path);
        DirBuilder::new().mode(DIRECTORY_MODE).create(path.join(RUNS)).map_err(refused())?;
        replace_file(&path.join(FILE), text).map_err(refused())?;
        let software = Software { name: "latlab".into(), version: env!("CARGO_PKG_VERSION").into() };
        let begun = JournalEntry::Begun {
            format: ExperimentFormat::CURRENT,
            experiment: id,
            source: origin.source,
            recipe: origin.recipe,
            software,
            number: Some(number),
            file_blake3: Some(file_blake3(text)),
        };
        let journal = ExperimentJournal::create(&path, begun.clone())?;
        Ok(OpenExperiment { path, text: text.into(), journal, state: ExperimentState::of(vec![begun]) })
    }

    /// Opens the experiment in `directory`. A run whose process died has to be [ended](OpenExperiment::end_unfinished_run)
    /// before another one begins.
    ///
    /// # Errors
    /// If it holds no experiment, a damaged one, or one that another process runs.
    pub fn open(directory: &Path) -> Result<OpenExperiment, ExperimentError> {
        expect_own(directory)?;
        let (journal, entries) = ExperimentJournal::open(directory)?;
        let text = file_text(directory)?;
        let state = state_in(directory, entries);
        Ok(OpenExperiment { path: directory.to_owned(), text, journal, state })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub const fn state(&self) -> &ExperimentState {
        &self.state
    }

    /// The store of its recordings.
    pub(crate) fn runs(&self) -> PathBuf {
        self.path.join(RUNS)
    }

    /// Unlocks the experiment, and returns its directory and its state.
    pub(crate) fn close(self) -> (PathBuf, ExperimentState) {
        (self.path, self.state)
    }

    /// Continues with a changed file. The previous one is kept in the directory.
    pub(crate) fn change(&mut self, text: &str) -> Result<(), ExperimentError> {
        let kept_as = format!("experiment.{}.toml", self.state.changes + 1);
        let refused = || ExperimentError::refused("change the file of", &self.path);
        replace_file(&self.path.join(&kept_as), &self.text).map_err(refused())?;
        // The entry comes before the replacement: if the process dies in between, the previous file is still accepted.
        self.note(JournalEntry::Changed { kept_as, file_blake3: Some(file_blake3(text)) })?;
        replace_file(&self.path.join(FILE), text)
            .map_err(ExperimentError::refused("change the file of", &self.path))?;
        self.text = text.into();
        Ok(())
    }

    /// Ends the run that began and has no end, with the outcome that its recording shows; or as failed, if it would be over
    /// and the hook after it has failed for the reason `failed_hook`.
    ///
    /// # Errors
    /// If its recording cannot be read, or the journal not be written.
    pub fn end_unfinished_run(&mut self, failed_hook: Option<String>) -> Result<(), ExperimentError> {
        let Some(run) = self.state.unfinished_run() else { return Ok(()) };
        let (block, position) = (run.key.block, run.position.position);
        let known: Vec<&String> = self.state.runs.iter().filter_map(|run| run.recording.as_ref()).collect();
        let listings = Store::at(&self.runs()).list()?;
        let unknown = listings.iter().find(|listing| {
            let facts = listing.manifest.as_ref().and_then(|manifest| manifest.experiment.as_ref());
            let is_its = facts.is_some_and(|facts| {
                facts.experiment == self.state.id && (facts.block, facts.position) == (block, position)
            });
            is_its && !known.contains(&&listing.name())
        });
        let (outcome, recording, reason) = match unknown {
            None => (RunOutcome::Died, None, Some("its process was killed before anything was recorded".into())),
            Some(listing) => {
                let (outcome, reason) = outcome_of_recording(&Recording::open(&listing.path)?)?;
                let ended = match failed_hook.filter(|_| outcome.is_final()) {
                    None => (outcome, reason),
                    Some(failure) => {
                        mark_failed(&listing.path, &failure)?;
                        (RunOutcome::Failed, Some(failure))
                    }
                };
                (ended.0, Some(listing.name()), ended.1)
            }
        };
        self.note(JournalEntry::RunEnded { block, position, outcome, recording, reason })
    }
}

impl RunJournal for OpenExperiment {
    /// Returns when the entry is on the disk.
    fn note(&mut self, entry: JournalEntry) -> Result<(), ExperimentError> {
        self.journal.write(entry.clone())?;
        self.state.apply(entry);
        if let Some(run) = self.state.runs.last_mut() {
            complete_from_recording(&self.path, run);
        }
        Ok(())
    }

    fn state(&self) -> &ExperimentState {
        &self.state
    }
}

/// `<UTC start>-experiment-<short id>`; more digits of the id if two begin in one second with the same ones.
fn create_directory(store: &Path, id: &str) -> Result<PathBuf, ExperimentError> {
    let start = started_at(clock::anchor().realtime_ns);
    let start: String = start.chars().take("2026-11-22T03:00:00".len()).filter(char::is_ascii_alphanumeric).collect();
    let mut path = PathBuf::new();
    for digits in [4, 8, 16] {
        path = store.join(format!("{start}Z-experiment-{}", &id[..digits]));
        match DirBuilder::new().mode(DIRECTORY_MODE).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            created => {
                return created.map(|()| path.clone()).map_err(ExperimentError::refused("begin the experiment", path));
            }
        }
    }
    let exists = io::Error::from(io::ErrorKind::AlreadyExists);
    Err(ExperimentError::refused("begin the experiment", path)(exists))
}

/// Replaces the file at `path` atomically; it is on the disk when this returns.
fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let next = path.with_extension("next");
    // Left by a process that died.
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&next)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    fs::rename(next, path)
}

/// The first line in which two texts differ, in words.
fn first_difference(old: &str, new: &str) -> Option<String> {
    if old == new {
        return None;
    }
    let (mut old, mut new) = (old.lines(), new.lines());
    for line in 1.. {
        match (old.next(), new.next()) {
            (Some(old), Some(new)) if old == new => (),
            (None, None) => break,
            (old, new) => {
                let word = |line: Option<&str>| line.map_or("not there".into(), |line| format!("`{}`", line.trim()));
                return Some(format!("line {line} is {}, it was {}", word(new), word(old)));
            }
        }
    }
    Some("its line ends differ".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(source: &str) -> ExperimentOrigin {
        ExperimentOrigin { source: source.into(), recipe: None }
    }

    #[test]
    fn the_newest_unfinished_experiment_is_found_by_its_source() {
        let store = tempfile::tempdir().expect("a store");
        assert!(newest_unfinished(store.path(), "/a.toml").is_none());
        assert!(newest_unfinished(&store.path().join("nowhere"), "/a.toml").is_none());
        fs::create_dir_all(store.path().join("20990101T000000Z-experiment-dead"))
            .expect("killed before its first line");
        fs::write(store.path().join("20990101T000000Z-experiment-dead/experiment.toml"), "").expect("written");
        let mut first = OpenExperiment::begin(store.path(), "kind='ping'", origin("/a.toml")).expect("begun");
        OpenExperiment::begin(store.path(), "kind='ping'", origin("/b.toml")).expect("begun");
        let found = newest_unfinished(store.path(), "/a.toml").expect("there");
        assert_eq!(found, first.path);
        first.note(JournalEntry::Finished { looks: Some(None), over_budget: false }).expect("noted");
        assert!(newest_unfinished(store.path(), "/a.toml").is_none());
    }

    #[test]
    fn the_newest_experiment_has_the_highest_number_whatever_the_clock_said() {
        let store = tempfile::tempdir().expect("a store");
        let begin = || {
            let open = OpenExperiment::begin(store.path(), "kind='ping'", origin("/a.toml")).expect("begun");
            (open.path.clone(), open.state().number)
        };
        let ((first, one), (second, two)) = (begin(), begin());
        assert_eq!((one, two), (1, 2));
        fs::rename(&first, first.with_file_name("20990101T000000Z-experiment-ffff")).expect("the clock was ahead");
        assert_eq!(newest_unfinished(store.path(), "/a.toml").expect("there"), second);
        assert_eq!(begin().1, 3);
    }

    #[test]
    fn an_edited_file_is_detected() {
        let store = tempfile::tempdir().expect("a store");
        let mut open = OpenExperiment::begin(store.path(), "a", origin("/a.toml")).expect("begun");
        let path = open.path.clone();
        let is_detected = |text: &str| {
            fs::write(path.join(FILE), text).expect("edited");
            is_edited(&path, &read_state(&path).expect("readable")).expect("readable")
        };
        assert_eq!([is_detected("a"), is_detected("a\n"), is_detected("a")], [false, true, false]);
        open.change("b").expect("changed");
        // Killed before the file was replaced, the change is noted and not made.
        assert_eq!([is_detected("b"), is_detected("a"), is_detected("c")], [false, false, true]);
        open.change("d").expect("changed");
        assert_eq!([is_detected("d"), is_detected("b"), is_detected("a")], [false, false, true]);
    }

    #[test]
    fn only_a_finished_experiment_without_other_files_is_removed() {
        let store = tempfile::tempdir().expect("a store");
        let mut open = OpenExperiment::begin(store.path(), "a", origin("/a.toml")).expect("begun");
        let path = open.path.clone();
        open.change("b").expect("changed");
        let is_kept = || reason_to_keep(&path).expect("readable").is_some() && remove(&path).is_err();
        assert!(is_kept(), "a process runs it");
        drop(open);
        assert!(is_kept(), "it is not finished");
        let mut open = OpenExperiment::open(&path).expect("opened");
        open.end_unfinished_run(None).expect("ended");
        open.note(JournalEntry::Finished { looks: Some(None), over_budget: false }).expect("noted");
        drop(open);
        for other in [path.join("notes.txt"), path.join(RUNS).join("notes.txt")] {
            fs::write(&other, "mine").expect("written");
            assert!(is_kept() && other.exists(), "{}", other.display());
            fs::remove_file(other).expect("removed");
        }
        let (runs, elsewhere) = (path.join(RUNS), store.path().join("elsewhere"));
        fs::rename(&runs, &elsewhere).expect("moved");
        std::os::unix::fs::symlink(&elsewhere, &runs).expect("linked");
        assert!(is_kept() && elsewhere.exists(), "its runs are elsewhere");
        fs::remove_file(&runs).expect("removed");
        fs::rename(&elsewhere, &runs).expect("moved back");
        let link = runs.join("20261121T021500Z-ping-7f3b");
        let empty = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::symlink(empty.path(), &link).expect("linked");
        assert!(is_kept() && link.is_symlink(), "a link is in place of a run");
        fs::remove_file(&link).expect("removed");
        let damaged = runs.join("20261121T021500Z-ping-7f3a");
        fs::create_dir(&damaged).expect("made");
        fs::write(damaged.join("probes.parquet"), "").expect("written");
        assert!(is_kept() && damaged.exists(), "a recording of it is damaged");
        fs::remove_file(damaged.join("probes.parquet")).expect("removed");
        remove(&path).expect("removed");
        assert_eq!(fs::read_dir(store.path()).expect("readable").count(), 0);
    }

    #[test]
    fn an_interrupted_removal_is_completed_by_the_next() {
        let store = tempfile::tempdir().expect("a store");
        let mut open = OpenExperiment::begin(store.path(), "a", origin("/a.toml")).expect("begun");
        let path = open.path.clone();
        open.change("b").expect("changed");
        open.note(JournalEntry::Finished { looks: Some(None), over_budget: false }).expect("noted");
        drop(open);
        // Killed between the runs and the files.
        fs::remove_dir(path.join(RUNS)).expect("there were no runs");
        assert!(is_experiment(&path));
        assert_eq!(reason_to_keep(&path).expect("readable"), None);
        remove(&path).expect("removed");
        assert_eq!(fs::read_dir(store.path()).expect("readable").count(), 0);
    }
}
