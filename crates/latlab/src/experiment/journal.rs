//! `journal.jsonl`: one line for each event, on the disk before the next one begins. Bytes and meaning:
//! docs/experiments.md.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Deserializer, Serialize};

use super::error::ExperimentError;
use crate::clock;
use crate::facts::{ExperimentFormat, RecipeFacts, RunKey, RunOutcome, RunPosition};
use crate::plan::Factors;
use crate::platform::input_file;
use crate::recording::manifest::Software;
use crate::recording::started_at;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct JournalLine {
    #[serde(flatten)]
    entry: JournalEntry,
    /// UTC, RFC 3339. Nothing is ordered by it: clocks are set back.
    at: String,
}

/// One event in the course of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub(crate) enum JournalEntry {
    /// The experiment began: always the first line.
    Begun {
        format: ExperimentFormat,
        /// The id of the experiment, 16 hexadecimal digits.
        experiment: String,
        /// The absolute path of its file, or `recipe:…`.
        source: String,
        recipe: Option<RecipeFacts>,
        software: Software,
        /// Its number among the experiments of its store, from 1, whatever the clock says; `None` before format 1.1.
        #[serde(default)]
        number: Option<u64>,
        /// BLAKE3 of its file, hexadecimal; `None` before format 1.1.
        #[serde(default)]
        file_blake3: Option<String>,
    },
    /// A process opened it to run what is due.
    Opened {
        pid: u32,
        boot_id: Option<String>,
    },
    /// `--force` continues with a changed file.
    Changed {
        /// The new name of the previous file, in the experiment's directory.
        kept_as: String,
        /// BLAKE3 of the changed file, hexadecimal; `None` before format 1.1.
        #[serde(default)]
        file_blake3: Option<String>,
    },
    /// A block is about to begin.
    BlockBegan {
        block: u32,
        boot_id: Option<String>,
    },
    /// A run is about to begin.
    RunBegan {
        #[serde(flatten)]
        key: RunKey,
        #[serde(flatten)]
        position: RunPosition,
    },
    /// The recording of a run is finished, or will never be.
    RunEnded {
        block: u32,
        position: u32,
        outcome: RunOutcome,
        /// The name of its recording in `runs/`; `None` if nothing was recorded.
        recording: Option<String>,
        /// Why it did not end by its own stop rule.
        reason: Option<String>,
    },
    /// A condition of a recipe is given up: this host cannot measure it.
    ConditionDropped {
        factors: Factors,
        reason: String,
    },
    BlockEnded {
        block: u32,
        boot_id: Option<String>,
    },
    /// The stop rule held after this block.
    NarrowEnough {
        block: u32,
    },
    /// The gates were judged while runs were left: one of so many looks.
    Looked {
        looks: u32,
    },
    /// Nothing is left to do.
    Finished {
        /// How many looks its file declared, if any; `None` before format 1.2.
        #[serde(default, deserialize_with = "is_there", skip_serializing_if = "Option::is_none")]
        looks: Option<Option<u32>>,
        /// Whether runs were left when its budget was used up.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        over_budget: bool,
    },
    /// An entry of a later version.
    #[serde(other)]
    Unknown,
}

/// A key that is there, whose value may be null.
fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The journal's name in an experiment's directory.
pub(super) const JOURNAL: &str = "journal.jsonl";

/// The longest journal that is read: that of [`EXPERIMENT_RUNS_MAX`](crate::plan::defaults::EXPERIMENT_RUNS_MAX) runs, with
/// more than a thousand bytes for each.
const JOURNAL_MAX_BYTES: u64 = 256 << 20;
/// Others may read it but not change it, whatever the umask.
const JOURNAL_MODE: u32 = 0o644;
/// Attempts to lock a journal that is locked, and the pause between them: [`ExperimentJournal::read_with_runner`] locks
/// it for less than their sum.
const LOCK_ATTEMPTS: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A journal, locked for this process.
#[derive(Debug)]
pub(super) struct ExperimentJournal {
    path: PathBuf,
    file: File,
    checksum: Option<JournalChecksum>,
}

/// The CRC-32C of a journal's lines, each of which ends with that of all lines up to its digits. Journals that began before
/// format 1.3 have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct JournalChecksum(u32);

impl JournalChecksum {
    const BEFORE: &str = ",\"crc32c\":\"";
    const AFTER: &str = "\"}";
    const DIGITS: usize = 8;

    /// `line`, an object with members, with the checksum as last member.
    fn add(&mut self, mut line: String) -> String {
        line.truncate(line.len() - "}".len());
        line.push_str(JournalChecksum::BEFORE);
        self.0 = crc32c::crc32c_append(self.0, line.as_bytes());
        format!("{line}{:08x}{}", self.0, JournalChecksum::AFTER)
    }

    /// Whether a journal that begins with `line`, which is `entry`, has checksums. A changed version does not hide them.
    fn is_due(line: &str, entry: &JournalEntry) -> bool {
        let has_one = line.contains(JournalChecksum::BEFORE);
        has_one || matches!(entry, JournalEntry::Begun { format, .. } if format.has_checksums())
    }

    /// Whether `line` was written by a version without checksums: it ends with its instant.
    fn is_of_older(line: &str) -> bool {
        line.ends_with("Z\"}") && !line.contains("crc")
    }

    /// Whether `line` ends with the checksum of what was written.
    fn accepts(&mut self, line: &str) -> bool {
        let covered = line.len().checked_sub(JournalChecksum::AFTER.len() + JournalChecksum::DIGITS);
        let Some((covered, end)) = covered.and_then(|covered| line.split_at_checked(covered)) else { return false };
        self.0 = crc32c::crc32c_append(self.0, covered.as_bytes());
        covered.ends_with(JournalChecksum::BEFORE) && end == format!("{:08x}{}", self.0, JournalChecksum::AFTER)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunnerProcess {
    /// `None` if it is not in the journal yet.
    pub(crate) pid: Option<u32>,
}

impl ExperimentJournal {
    /// Creates the journal in `directory` with its first entry.
    pub(super) fn create(directory: &Path, begun: JournalEntry) -> Result<ExperimentJournal, ExperimentError> {
        let path = directory.join(JOURNAL);
        let refused = || ExperimentError::refused("begin the experiment", directory);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true).mode(JOURNAL_MODE);
        let file = options.open(&path).map_err(refused())?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| refused()(error.into()))?;
        let mut journal = ExperimentJournal { path, file, checksum: Some(JournalChecksum::default()) };
        journal.write(begun)?;
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(refused())?;
        Ok(journal)
    }

    /// Opens and locks the journal in `directory`, and reads its entries. An incomplete last line, left by a crash, is
    /// cut off.
    pub(super) fn open(directory: &Path) -> Result<(ExperimentJournal, Vec<JournalEntry>), ExperimentError> {
        let path = directory.join(JOURNAL);
        let refused = || ExperimentError::refused("open the experiment", directory);
        let file = match input_file::open_to_append(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(ExperimentError::NotAnExperiment { path: directory.to_owned() });
            }
            opened => opened.map_err(refused())?,
        };
        let locked = lock(&file);
        let text =
            file.try_clone().and_then(|file| input_file::read_open(file, JOURNAL_MAX_BYTES)).map_err(refused())?;
        let whole = whole_lines(&text);
        let (entries, checksum) = parse(directory, &text[..whole])?;
        if !locked {
            return Err(ExperimentError::Busy { path: directory.to_owned(), pid: last_pid(&entries) });
        }
        if whole < text.len() {
            file.set_len(whole as u64).map_err(refused())?;
        }
        Ok((ExperimentJournal { path, file, checksum }, entries))
    }

    /// The entries of the journal in `directory`, locked or not.
    pub(super) fn read(directory: &Path) -> Result<Vec<JournalEntry>, ExperimentError> {
        let text = match input_file::read(&directory.join(JOURNAL), JOURNAL_MAX_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read.map_err(ExperimentError::refused("read the experiment", directory))?,
        };
        Ok(parse(directory, &text[..whole_lines(&text)])?.0)
    }

    /// The same, with the process that has it locked, if one has. Changes nothing.
    pub(super) fn read_with_runner(
        directory: &Path,
    ) -> Result<(Vec<JournalEntry>, Option<RunnerProcess>), ExperimentError> {
        let entries = ExperimentJournal::read(directory)?;
        let file = input_file::open(&directory.join(JOURNAL))
            .map_err(ExperimentError::refused("read the experiment", directory))?;
        // A shared lock conflicts with the lock of a writer, not with those of other readers.
        let is_locked = flock(&file, FlockOperation::NonBlockingLockShared).is_err();
        let runner = is_locked.then(|| RunnerProcess { pid: last_pid(&entries) });
        Ok((entries, runner))
    }

    /// Appends a line; returns when it is on the disk.
    pub(super) fn write(&mut self, entry: JournalEntry) -> Result<(), ExperimentError> {
        self.append(entry).map_err(ExperimentError::refused("write", &self.path))
    }

    fn append(&mut self, entry: JournalEntry) -> io::Result<()> {
        let at = started_at(clock::anchor().realtime_ns);
        let mut line = serde_json::to_string(&JournalLine { entry, at }).map_err(io::Error::other)?;
        let mut checksum = self.checksum;
        if let Some(checksum) = &mut checksum {
            line = checksum.add(line);
        }
        line.push('\n');
        self.file.write_all(line.as_bytes())?;
        self.checksum = checksum;
        self.file.sync_data()
    }
}

/// Whether `file` could be locked for this process alone.
fn lock(file: &File) -> bool {
    (0..LOCK_ATTEMPTS).any(|_| {
        flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() || {
            std::thread::sleep(LOCK_PAUSE);
            false
        }
    })
}

/// The length of the complete lines of `text`, in bytes.
fn whole_lines(text: &[u8]) -> usize {
    text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

/// The entries in `text`, and the checksum to continue with.
fn parse(directory: &Path, text: &[u8]) -> Result<(Vec<JournalEntry>, Option<JournalChecksum>), ExperimentError> {
    let path = || directory.to_owned();
    let text = String::from_utf8_lossy(text);
    let (mut entries, mut checksum) = (Vec::new(), None);
    for (number, line) in text.lines().enumerate() {
        let damaged = |error: &dyn fmt::Display| ExperimentError::Damaged {
            path: path(),
            cause: format!("line {}: {error}", number + 1),
        };
        // The version first: another major may write lines that this one cannot read.
        let version = serde_json::from_str::<VersionedLine>(line).ok().filter(|_| number == 0);
        if let Some(found) =
            version.map(|line| line.format).filter(|found| found.major > ExperimentFormat::CURRENT.major)
        {
            return Err(ExperimentError::NewerVersion { path: path(), found });
        }
        let entry = serde_json::from_str::<JournalLine>(line).map_err(|error| damaged(&error))?.entry;
        if number == 0 && JournalChecksum::is_due(line, &entry) {
            checksum = Some(JournalChecksum::default());
        }
        if matches!(entry, JournalEntry::Opened { .. }) && JournalChecksum::is_of_older(line) {
            // An older latlab goes on with the experiment.
            checksum = None;
        }
        if checksum.as_mut().is_some_and(|checksum: &mut JournalChecksum| !checksum.accepts(line)) {
            return Err(damaged(&"its checksum `crc32c` does not match: it, or a line before it, was changed"));
        }
        entries.push(entry);
    }
    match entries.first() {
        Some(JournalEntry::Begun { .. }) => Ok((entries, checksum)),
        _ => Err(ExperimentError::NotAnExperiment { path: path() }),
    }
}

/// The file that the first line of the journal in `directory` names, which may be readable where later lines are not, and
/// in every version; `None` otherwise.
pub(super) fn begun_source(directory: &Path) -> Option<String> {
    let text = input_file::read(&directory.join(JOURNAL), JOURNAL_MAX_BYTES).ok()?;
    let first: SourceLine = serde_json::from_slice(text.split(|byte| *byte == b'\n').next()?).ok()?;
    Some(first.source)
}

/// What the first line says of the file.
#[derive(Deserialize)]
struct SourceLine {
    source: String,
}

/// The part of the first line that every version keeps.
#[derive(Deserialize)]
struct VersionedLine {
    format: ExperimentFormat,
}

/// The process that opened the experiment last.
fn last_pid(entries: &[JournalEntry]) -> Option<u32> {
    entries.iter().rev().find_map(|entry| match entry {
        JournalEntry::Opened { pid, .. } => Some(*pid),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn complete_lines_are_read_and_an_incomplete_one_is_cut_off() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut journal = ExperimentJournal::create(directory.path(), begun()).expect("begun");
        journal.write(JournalEntry::NarrowEnough { block: 3 }).expect("written");
        drop(journal);
        let path = directory.path().join(JOURNAL);
        let whole = std::fs::read(&path).expect("there");
        for torn in ["{\"event\":\"fin", "{", "\u{fffd}"] {
            std::fs::write(&path, [&whole, torn.as_bytes()].concat()).expect("torn");
            assert_eq!(ExperimentJournal::read(directory.path()).expect("readable").len(), 2);
            let (_, entries) = ExperimentJournal::open(directory.path()).expect("opened");
            assert_eq!(entries, [begun(), JournalEntry::NarrowEnough { block: 3 }]);
            assert_eq!(std::fs::read(&path).expect("there"), whole);
        }
    }

    #[test]
    fn every_changed_byte_and_every_missing_line_is_damage() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut journal = ExperimentJournal::create(directory.path(), begun()).expect("begun");
        (1..4).for_each(|block| journal.write(JournalEntry::NarrowEnough { block }).expect("written"));
        drop(journal);
        let path = directory.path().join(JOURNAL);
        let whole = std::fs::read(&path).expect("there");
        let read = |text: &[u8]| {
            std::fs::write(&path, text).expect("written");
            ExperimentJournal::read(directory.path())
        };
        assert_eq!(read(&whole).expect("sound").len(), 4);
        // The last line end is the one of an incomplete line.
        for at in 0..whole.len() - 1 {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(read(&changed).is_err(), "byte {at}");
        }
        let lines: Vec<_> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        assert!(read(&[lines[0], lines[2], lines[3]].concat()).is_err(), "a line is missing");
        assert!(read(&[lines[0], lines[2], lines[1], lines[3]].concat()).is_err(), "two lines are exchanged");
        let (mut journal, _) = {
            std::fs::write(&path, &whole).expect("written");
            ExperimentJournal::open(directory.path()).expect("opens")
        };
        journal.write(JournalEntry::NarrowEnough { block: 4 }).expect("written");
        assert_eq!(ExperimentJournal::read(directory.path()).expect("goes on").len(), 5);
    }

    #[test]
    fn a_line_has_the_documented_form() {
        let factors = Factors::from([("load".to_owned(), "none".to_owned())]);
        let key = RunKey { block: 1, factors, repetition: 2, warmup: false };
        let entry = JournalEntry::RunBegan { key, position: RunPosition { position: 3, condition: 1 } };
        let line = JournalLine { entry, at: "2026-11-22T03:00:00.000Z".into() };
        let text = serde_json::to_string(&line).expect("plain");
        assert_eq!(
            text,
            "{\"event\":\"run_began\",\"block\":1,\"factors\":{\"load\":\"none\"},\"repetition\":2,\"warmup\":false,\
             \"position\":3,\"condition\":1,\"at\":\"2026-11-22T03:00:00.000Z\"}"
        );
        assert_eq!(serde_json::from_str::<JournalLine>(&text).expect("reads"), line);
    }

    #[test]
    fn unknown_events_and_keys_are_ignored() {
        let later = r#"{"event":"moon_rose","phase":"full","at":"2030-01-01T00:00:00.000Z"}"#;
        assert_eq!(serde_json::from_str::<JournalLine>(later).expect("reads").entry, JournalEntry::Unknown);
        let more = r#"{"event":"finished","party":true,"at":"2030-01-01T00:00:00.000Z"}"#;
        let entry = |text: &str| serde_json::from_str::<JournalLine>(text).expect("reads").entry;
        assert_eq!(entry(more), JournalEntry::Finished { looks: None, over_budget: false });
        for looks in [None, Some(5)] {
            let line = JournalLine {
                entry: JournalEntry::Finished { looks: Some(looks), over_budget: false },
                at: "now".into(),
            };
            assert_eq!(entry(&serde_json::to_string(&line).expect("writes")), line.entry, "since 1.2");
        }
    }
}
