//! `journal.jsonl`: one line for each thing that happened, on the disk before the next thing begins.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::error::ExperimentError;
use super::event::{ExperimentFormat, JournalEntry, JournalLine};
use crate::clock;
use crate::recording::started_at;

/// The journal's name in an experiment's directory.
const JOURNAL: &str = "journal.jsonl";

/// How often and how soon to look again where the journal is held.
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// A journal that this process alone may write.
#[derive(Debug)]
pub struct ExperimentJournal {
    path: PathBuf,
    file: File,
}

impl ExperimentJournal {
    /// A new journal in `directory`, with its first line.
    pub(super) fn begin(directory: &Path, begun: JournalEntry) -> Result<ExperimentJournal, ExperimentError> {
        let path = directory.join(JOURNAL);
        let refused = || ExperimentError::refused("begin the experiment", directory);
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(&path).map_err(refused())?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| refused()(error.into()))?;
        let mut journal = ExperimentJournal { path, file };
        journal.write(begun)?;
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(refused())?;
        Ok(journal)
    }

    /// The journal in `directory` for this process alone, and what stands in it. What a crash left of a line is cut off.
    pub(super) fn open(directory: &Path) -> Result<(ExperimentJournal, Vec<JournalEntry>), ExperimentError> {
        let path = directory.join(JOURNAL);
        let refused = || ExperimentError::refused("open the experiment", directory);
        let mut file = match OpenOptions::new().read(true).append(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(ExperimentError::NotAnExperiment { path: directory.to_owned() });
            }
            opened => opened.map_err(refused())?,
        };
        // whoever only looks whether it is held holds it for less than this
        let is_mine = |_| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let alone = (0..LOOKS).any(|look| {
            is_mine(look) || {
                std::thread::sleep(BETWEEN_LOOKS);
                false
            }
        });
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(refused())?;
        let whole = whole_lines(&text);
        let events = events(directory, &text[..whole])?;
        if !alone {
            return Err(ExperimentError::Busy { path: directory.to_owned(), pid: opened_by(&events) });
        }
        if whole < text.len() {
            file.set_len(whole as u64).map_err(refused())?;
        }
        Ok((ExperimentJournal { path, file }, events))
    }

    /// What stands in the journal in `directory`, whoever writes it.
    pub(super) fn read(directory: &Path) -> Result<Vec<JournalEntry>, ExperimentError> {
        let text = match std::fs::read(directory.join(JOURNAL)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.map_err(ExperimentError::refused("read the experiment", directory))?,
        };
        events(directory, &text[..whole_lines(&text)])
    }

    /// What stands in the journal in `directory`, and whether a process conducts the experiment; its id is none where
    /// nothing was noted yet. A look changes nothing.
    pub(super) fn look(directory: &Path) -> Result<(Vec<JournalEntry>, Option<RunnerProcess>), ExperimentError> {
        let events = ExperimentJournal::read(directory)?;
        let file =
            File::open(directory.join(JOURNAL)).map_err(ExperimentError::refused("read the experiment", directory))?;
        // refused by whoever writes, and by nobody who looks
        let held = flock(&file, FlockOperation::NonBlockingLockShared).is_err();
        let conductor = held.then(|| RunnerProcess { pid: opened_by(&events) });
        Ok((events, conductor))
    }

    /// Adds a line, and returns when the disk has it.
    pub(super) fn write(&mut self, event: JournalEntry) -> Result<(), ExperimentError> {
        let at = started_at(clock::anchor().realtime_ns);
        let written =
            serde_json::to_string(&JournalLine { event, at }).map_err(io::Error::other).and_then(|mut line| {
                line.push('\n');
                self.file.write_all(line.as_bytes())?;
                self.file.sync_data()
            });
        written.map_err(ExperimentError::refused("write", &self.path))
    }
}

/// The process that conducts an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunnerProcess {
    /// As it noted itself.
    pub pid: Option<u32>,
}

/// How many bytes of `text` are whole lines.
fn whole_lines(text: &[u8]) -> usize {
    text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

fn events(directory: &Path, text: &[u8]) -> Result<Vec<JournalEntry>, ExperimentError> {
    let path = || directory.to_owned();
    let text = String::from_utf8_lossy(text);
    let mut events = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let damaged = |error: serde_json::Error| ExperimentError::Damaged {
            path: path(),
            cause: format!("line {}: {error}", number + 1),
        };
        // The version first: another major may write lines that this one cannot read.
        let version = serde_json::from_str::<Versioned>(line).ok().filter(|_| number == 0);
        if let Some(found) =
            version.map(|line| line.format).filter(|found| found.major > ExperimentFormat::CURRENT.major)
        {
            return Err(ExperimentError::NewerVersion { path: path(), found });
        }
        events.push(serde_json::from_str::<JournalLine>(line).map_err(damaged)?.event);
    }
    match events.first() {
        Some(JournalEntry::Begun { .. }) => Ok(events),
        _ => Err(ExperimentError::NotAnExperiment { path: path() }),
    }
}

/// All that must be readable before the format is known to be readable.
#[derive(serde::Deserialize)]
struct Versioned {
    format: ExperimentFormat,
}

fn opened_by(events: &[JournalEntry]) -> Option<u32> {
    events.iter().rev().find_map(|event| match event {
        JournalEntry::Opened { pid, .. } => Some(*pid),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::manifest::Software;

    fn begun() -> JournalEntry {
        JournalEntry::Begun {
            format: ExperimentFormat::CURRENT,
            experiment: "00c0ffee00c0ffee".into(),
            source: "/x.toml".into(),
            recipe: None,
            software: Software { name: "latlab".into(), version: "0".into() },
            number: Some(1),
            file_blake3: None,
        }
    }

    #[test]
    fn what_was_written_is_read_and_a_torn_line_is_cut_off() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut journal = ExperimentJournal::begin(directory.path(), begun()).expect("begun");
        journal.write(JournalEntry::NarrowEnough { block: 3 }).expect("written");
        drop(journal);
        let path = directory.path().join(JOURNAL);
        let whole = std::fs::read(&path).expect("there");
        for torn in ["{\"event\":\"fin", "{", "\u{fffd}"] {
            std::fs::write(&path, [&whole, torn.as_bytes()].concat()).expect("torn");
            assert_eq!(ExperimentJournal::read(directory.path()).expect("readable").len(), 2);
            let (_, events) = ExperimentJournal::open(directory.path()).expect("opened");
            assert_eq!(events, [begun(), JournalEntry::NarrowEnough { block: 3 }]);
            assert_eq!(std::fs::read(&path).expect("there"), whole);
        }
    }

    #[test]
    fn one_process_writes_and_others_are_told_which() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut journal = ExperimentJournal::begin(directory.path(), begun()).expect("begun");
        journal.write(JournalEntry::Opened { pid: 4711, boot_id: None }).expect("written");
        let error = ExperimentJournal::open(directory.path()).expect_err("held");
        assert!(matches!(error, ExperimentError::Busy { pid: Some(4711), .. }), "{error:?}");
        let conductor = ExperimentJournal::look(directory.path()).expect("readable").1;
        assert_eq!(conductor, Some(RunnerProcess { pid: Some(4711) }));
        drop(journal);
        assert_eq!(ExperimentJournal::look(directory.path()).expect("readable").1, None);
        ExperimentJournal::open(directory.path()).expect("free again");
    }

    #[test]
    fn what_is_no_journal_says_why() {
        for (text, message, cause) in [
            ("", "is no experiment", "journal.jsonl"),
            ("{\"event\":\"begun\"", "is no experiment", "journal.jsonl"),
            ("{\"event\":\"finished\",\"at\":\"\"}\n", "is no experiment", "journal.jsonl"),
            ("what\n", "is damaged", "line 1"),
            ("{\"event\":\"begun\",\"format\":{\"major\":2,\"minor\":0}}\n", "has format 2.0", "up to 1.x"),
        ] {
            let directory = tempfile::tempdir().expect("a directory");
            std::fs::write(directory.path().join(JOURNAL), text).expect("written");
            let error = ExperimentJournal::read(directory.path()).expect_err(text);
            assert!(error.to_string().contains(message), "{error}");
            assert!(error.cause().is_some_and(|told| told.contains(cause)), "{error:?}");
            assert!(error.hint().is_some() && error.exit_code() == 2);
        }
    }
}
