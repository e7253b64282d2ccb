//! An experiment's directory: its file, its journal, its recordings.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::ExperimentError;
use super::event::{ExperimentFormat, JournalEntry, RecipeFacts, RunOutcome};
use super::file::{first_difference, put};
use super::journal::{ExperimentJournal, RunnerProcess};
use super::judgement::outcome_found;
use super::standing::{ExperimentState, RunState};
use crate::clock;
use crate::recording::manifest::{RunEnding, Software};
use crate::recording::{Recording, Store, fresh_run_id, started_at};

/// The file that an experiment was begun with.
const FILE: &str = "experiment.toml";
/// The store of its recordings.
const RUNS: &str = "runs";

/// An experiment that this process conducts: nobody else writes its journal meanwhile.
#[derive(Debug)]
pub struct OpenExperiment {
    path: PathBuf,
    text: String,
    journal: ExperimentJournal,
    standing: ExperimentState,
}

/// An experiment in a store, as far as a look at it tells.
#[derive(Debug)]
pub struct FoundExperiment {
    /// Its directory.
    pub path: PathBuf,
    /// How far it is.
    pub standing: ExperimentState,
}

/// Where an experiment comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentOrigin {
    /// The absolute path of its file, or `recipe:…`.
    pub source: String,
    /// The recipe that it is, if it is one.
    pub recipe: Option<RecipeFacts>,
}

/// Whether a path is an experiment's directory.
pub fn is_experiment(path: &Path) -> bool {
    path.join(FILE).is_file()
}

/// The store of the runs of the experiment in `directory`; none where there is no experiment.
pub fn runs_of(directory: &Path) -> Option<PathBuf> {
    is_experiment(directory).then(|| directory.join(RUNS))
}

/// The file that the experiment in `directory` was begun with.
///
/// # Errors
/// Where it cannot be read.
pub fn file_text(directory: &Path) -> Result<String, ExperimentError> {
    let path = directory.join(FILE);
    fs::read_to_string(&path).map_err(ExperimentError::refused("read", path))
}

/// Refuses a `text` that is not the one that the experiment in `directory` goes on with; `file` is its name.
///
/// # Errors
/// Where they differ, or the one there cannot be read.
pub fn expect_same(directory: &Path, file: &str, text: &str) -> Result<(), ExperimentError> {
    match first_difference(&file_text(directory)?, text) {
        None => Ok(()),
        Some(difference) => Err(ExperimentError::Changed { file: file.into(), path: directory.to_owned(), difference }),
    }
}

/// Whether the file in `directory` is another than the one that its journal, which says `standing`, speaks of.
///
/// # Errors
/// Where it cannot be read.
pub fn is_edited(directory: &Path, standing: &ExperimentState) -> Result<bool, ExperimentError> {
    Ok(!standing.speaks_of_file(&file_blake3(&file_text(directory)?)))
}

fn file_blake3(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// How far the experiment in `directory` is, whoever conducts it.
///
/// # Errors
/// Where it is none, or damaged, or of a later version.
pub fn look_at(directory: &Path) -> Result<ExperimentState, ExperimentError> {
    ExperimentJournal::read(directory).map(|events| standing_in(directory, events))
}

/// The same, with the process that conducts it, if one does.
///
/// # Errors
/// As [`look_at`].
pub fn look_closer(directory: &Path) -> Result<(ExperimentState, Option<RunnerProcess>), ExperimentError> {
    ExperimentJournal::look(directory).map(|(events, conductor)| (standing_in(directory, events), conductor))
}

/// The experiments in `store`, in whatever state, the newest first; none where there is no store that could be read.
pub fn in_store(store: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(store).into_iter().flatten();
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_experiment(path)).collect();
    paths.sort_unstable_by(|one, other| other.cmp(one));
    paths
}

/// What the lines of the journal in `directory` add up to, with what only the recordings know.
fn standing_in(directory: &Path, events: Vec<JournalEntry>) -> ExperimentState {
    let mut standing = ExperimentState::of(events);
    standing.runs.iter_mut().for_each(|run| look_for_its_end(directory, run));
    standing
}

/// A run that failed may have measured to its end without an answer: its recording knows.
fn look_for_its_end(directory: &Path, run: &mut RunState) {
    let (Some(RunOutcome::Failed), Some(name)) = (run.outcome, &run.recording) else { return };
    let ending = Recording::open(&directory.join(RUNS).join(name)).map(|recording| recording.manifest().ending);
    run.complete = ending.is_ok_and(|ending| ending == RunEnding::Completed);
}

/// The newest experiment in `store` that came from `source` and is not finished: by number, since clocks are set back.
/// Directories that hold none, or one that cannot be read, are passed over.
pub fn newest_unfinished(store: &Path, source: &str) -> Option<FoundExperiment> {
    let own = in_store(store).into_iter().filter_map(|path| {
        let standing = look_at(&path).ok()?;
        (standing.source == source && !standing.finished).then_some(FoundExperiment { path, standing })
    });
    own.max_by_key(|found| (found.standing.number, found.path.clone()))
}

/// Refuses while a process conducts an experiment in `store` that came from `source`.
///
/// # Errors
/// Where one does.
pub fn expect_idle(store: &Path, source: &str) -> Result<(), ExperimentError> {
    for path in in_store(store).into_iter().filter(|path| look_at(path).is_ok_and(|standing| standing.source == source))
    {
        if let Err(busy @ ExperimentError::Busy { .. }) = ExperimentJournal::open(&path) {
            return Err(busy);
        }
    }
    Ok(())
}

/// The experiments in `store` that can be read, with their numbers.
fn numbered(store: &Path) -> impl Iterator<Item = (u64, PathBuf)> {
    in_store(store)
        .into_iter()
        .filter_map(|path| Some((ExperimentState::of(ExperimentJournal::read(&path).ok()?).number, path)))
}

impl OpenExperiment {
    /// Begins an experiment of `text` in `store`.
    ///
    /// # Errors
    /// Where its directory cannot be made.
    pub fn begin(store: &Path, text: &str, origin: ExperimentOrigin) -> Result<OpenExperiment, ExperimentError> {
        Store::open(store).map_err(ExperimentError::of_store)?;
        let id = fresh_run_id().map_err(ExperimentError::refused("begin an experiment in", store))?;
        let number = 1 + numbered(store).map(|(number, _)| number).max().unwrap_or_default();
        let path = make_directory(store, &id)?;
        let refused = || ExperimentError::refused("begin the experiment", &path);
        fs::create_dir(path.join(RUNS)).map_err(refused())?;
        put(&path.join(FILE), text).map_err(refused())?;
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
        let journal = ExperimentJournal::begin(&path, begun.clone())?;
        Ok(OpenExperiment { path, text: text.into(), journal, standing: ExperimentState::of(vec![begun]) })
    }

    /// Takes on the experiment in `directory`. A run that was cut off is finished first.
    ///
    /// # Errors
    /// Where it is none, or damaged, or another process has it.
    pub fn open(directory: &Path) -> Result<OpenExperiment, ExperimentError> {
        let (journal, events) = ExperimentJournal::open(directory)?;
        let text = file_text(directory)?;
        let standing = standing_in(directory, events);
        let mut open = OpenExperiment { path: directory.to_owned(), text, journal, standing };
        open.finish_cut_off()?;
        Ok(open)
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that it was begun with.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How far it is.
    pub const fn standing(&self) -> &ExperimentState {
        &self.standing
    }

    /// Where its recordings go.
    pub fn runs(&self) -> PathBuf {
        self.path.join(RUNS)
    }

    /// Notes what happened; returns when the disk has it.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn note(&mut self, event: JournalEntry) -> Result<(), ExperimentError> {
        self.journal.write(event.clone())?;
        self.standing.take(event);
        if let Some(run) = self.standing.runs.last_mut() {
            look_for_its_end(&self.path, run);
        }
        Ok(())
    }

    /// Lets go of it: its directory, and how far it is.
    pub fn close(self) -> (PathBuf, ExperimentState) {
        (self.path, self.standing)
    }

    /// Goes on with another file. The old one is kept beside it.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn change(&mut self, text: &str) -> Result<(), ExperimentError> {
        let kept_as = format!("experiment.{}.toml", self.standing.changes + 1);
        let refused = || ExperimentError::refused("change the file of", &self.path);
        put(&self.path.join(&kept_as), &self.text).map_err(refused())?;
        // Before the file is replaced: whoever is killed in between has changed nothing yet, and asks again.
        self.note(JournalEntry::Changed { kept_as, file_blake3: Some(file_blake3(text)) })?;
        put(&self.path.join(FILE), text).map_err(ExperimentError::refused("change the file of", &self.path))?;
        self.text = text.into();
        Ok(())
    }

    /// The run that began and has no end: how it ended, its recording knows as the process did that made it. One that was
    /// cut short is finished and kept.
    fn finish_cut_off(&mut self) -> Result<(), ExperimentError> {
        let Some(run) = self.standing.cut_off() else { return Ok(()) };
        let (block, position) = (run.key.block, run.place.position);
        let named: Vec<&String> = self.standing.runs.iter().filter_map(|run| run.recording.as_ref()).collect();
        let listings = Store::at(&self.runs()).list()?;
        let unnamed = listings.iter().find(|listing| {
            let place = listing.manifest.as_ref().and_then(|manifest| manifest.experiment.as_ref());
            let here = place.is_some_and(|place| (place.block, place.position) == (block, position));
            here && !named.contains(&&listing.name())
        });
        let (outcome, recording, reason) = match unnamed {
            None => (RunOutcome::Died, None, Some("its process died before anything was recorded".into())),
            Some(listing) => {
                let (outcome, reason) = outcome_found(&Recording::open(&listing.path)?)?;
                (outcome, Some(listing.name()), reason)
            }
        };
        self.note(JournalEntry::RunEnded { block, position, outcome, recording, reason })
    }
}

/// `<UTC start>-experiment-<short id>`; where two began in one second with the same digits, with more of them.
fn make_directory(store: &Path, id: &str) -> Result<PathBuf, ExperimentError> {
    let start = started_at(clock::anchor().realtime_ns);
    let start: String = start.chars().take("2026-11-22T03:00:00".len()).filter(char::is_ascii_alphanumeric).collect();
    let mut path = PathBuf::new();
    for digits in [4, 8, 16] {
        path = store.join(format!("{start}Z-experiment-{}", &id[..digits]));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            made => return made.map(|()| path.clone()).map_err(ExperimentError::refused("begin the experiment", path)),
        }
    }
    let exists = io::Error::from(io::ErrorKind::AlreadyExists);
    Err(ExperimentError::refused("begin the experiment", path)(exists))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(source: &str) -> ExperimentOrigin {
        ExperimentOrigin { source: source.into(), recipe: None }
    }

    #[test]
    fn the_newest_that_is_not_finished_is_found_by_its_file() {
        let store = tempfile::tempdir().expect("a store");
        assert!(newest_unfinished(store.path(), "/a.toml").is_none());
        assert!(newest_unfinished(&store.path().join("nowhere"), "/a.toml").is_none());
        fs::create_dir_all(store.path().join("20990101T000000Z-experiment-dead"))
            .expect("killed before its first line");
        fs::write(store.path().join("20990101T000000Z-experiment-dead/experiment.toml"), "").expect("written");
        let mut first = OpenExperiment::begin(store.path(), "kind='ping'", origin("/a.toml")).expect("begun");
        OpenExperiment::begin(store.path(), "kind='ping'", origin("/b.toml")).expect("begun");
        let found = newest_unfinished(store.path(), "/a.toml").expect("there");
        assert_eq!(found.path, first.path());
        first.note(JournalEntry::Finished).expect("noted");
        assert!(newest_unfinished(store.path(), "/a.toml").is_none());
    }

    #[test]
    fn the_newest_is_the_one_with_the_highest_number_whatever_the_clock_said() {
        let store = tempfile::tempdir().expect("a store");
        let begin = || {
            let open = OpenExperiment::begin(store.path(), "kind='ping'", origin("/a.toml")).expect("begun");
            (open.path().to_owned(), open.standing().number)
        };
        let ((first, one), (second, two)) = (begin(), begin());
        assert_eq!((one, two), (1, 2));
        fs::rename(&first, first.with_file_name("20990101T000000Z-experiment-ffff")).expect("the clock was ahead");
        assert_eq!(newest_unfinished(store.path(), "/a.toml").expect("there").path, second);
        assert_eq!(begin().1, 3);
    }

    #[test]
    fn an_edited_file_is_noticed() {
        let store = tempfile::tempdir().expect("a store");
        let mut open = OpenExperiment::begin(store.path(), "a", origin("/a.toml")).expect("begun");
        let path = open.path().to_owned();
        let is_noticed = |text: &str| {
            fs::write(path.join(FILE), text).expect("edited");
            is_edited(&path, &look_at(&path).expect("readable")).expect("readable")
        };
        assert_eq!([is_noticed("a"), is_noticed("a\n"), is_noticed("a")], [false, true, false]);
        open.change("b").expect("changed");
        // Killed before the file was replaced, the change is noted and not made.
        assert_eq!([is_noticed("b"), is_noticed("a"), is_noticed("c")], [false, false, true]);
        open.change("d").expect("changed");
        assert_eq!([is_noticed("d"), is_noticed("b"), is_noticed("a")], [false, false, true]);
    }

    #[test]
    fn one_that_is_measured_is_not_idle() {
        let store = tempfile::tempdir().expect("a store");
        let open = OpenExperiment::begin(store.path(), "kind='ping'", origin("/a.toml")).expect("begun");
        let error = expect_idle(store.path(), "/a.toml").expect_err("measured");
        assert!(matches!(error, ExperimentError::Busy { .. }), "{error:?}");
        expect_idle(store.path(), "/b.toml").expect("another file");
        drop(open);
        expect_idle(store.path(), "/a.toml").expect("nobody measures");
    }

    #[test]
    fn a_changed_file_is_refused_with_what_changed() {
        let store = tempfile::tempdir().expect("a store");
        let mut open = OpenExperiment::begin(store.path(), "a\nruns = 10\n", origin("/a.toml")).expect("begun");
        assert!(expect_same(open.path(), "a.toml", "a\nruns = 10\n").is_ok());
        for (text, told) in [
            ("a\nruns = 20\n", "line 2 is `runs = 20`, it was `runs = 10`"),
            ("a\n", "line 2 is not there, it was `runs = 10`"),
            ("a\nruns = 10\nb", "line 3 is `b`, it was not there"),
            ("a\r\nruns = 10\n", "its line ends are others"),
        ] {
            let error = expect_same(open.path(), "a.toml", text).expect_err(text);
            assert_eq!(error.cause().as_deref(), Some(told));
            assert!(error.hint().is_some_and(|hint| hint.contains("`--force`")));
        }
        open.change("b").expect("changed");
        let path = open.path().to_owned();
        drop(open);
        let open = OpenExperiment::open(&path).expect("opened");
        assert_eq!((open.text(), open.standing().changes), ("b", 1));
        assert_eq!(fs::read_to_string(path.join("experiment.1.toml")).expect("kept"), "a\nruns = 10\n");
    }
}
