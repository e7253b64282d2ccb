//! `events.spool`: a header, then events in the order in which they happened, appended while the run goes on.
//!
//! Plain `write`, no fsync: what a killed process wrote stays in the page cache. The file is locked
//! ([flock(2)](https://man7.org/linux/man-pages/man2/flock.2.html)) while its writer lives; the kernel releases the
//! lock with the process, so a held lock means a living writer. Bytes: docs/recording.md, section 6.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::RecordingError;
use super::event::{EVENT_BYTES, SpoolEvent};
use super::manifest::FormatVersion;

/// The file's name in a recording's directory.
pub(crate) const SPOOL: &str = "events.spool";
/// Bytes before the first record of a spool.
pub(crate) const HEADER_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"latlabSP";
/// Events read at a time: 256 KiB.
const READ_EVENTS: usize = 4096;

/// The header of a spool, of events or of host samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpoolHeader {
    pub(crate) magic: [u8; 8],
    pub(crate) format: FormatVersion,
    pub(crate) record_bytes: u32,
    /// The process that measures; 0 in a spool of host samples.
    pub(crate) pid: u32,
    pub(crate) run_id: [u8; 16],
}

impl SpoolHeader {
    /// The header of records of `record_bytes` of the run `run_id`, in the current format.
    pub(crate) fn new(magic: [u8; 8], record_bytes: usize, pid: u32, run_id: &str) -> SpoolHeader {
        let mut id = [0; 16];
        id.iter_mut().zip(run_id.bytes()).for_each(|(place, byte)| *place = byte);
        SpoolHeader { magic, format: FormatVersion::CURRENT, record_bytes: record_bytes as u32, pid, run_id: id }
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&self.magic);
        bytes[8..10].copy_from_slice(&self.format.major.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.format.minor.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.record_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.pid.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.run_id);
        bytes
    }

    fn from_bytes(bytes: [u8; HEADER_BYTES]) -> SpoolHeader {
        let four = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let two = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let (mut magic, mut run_id) = ([0; 8], [0; 16]);
        magic.copy_from_slice(&bytes[0..8]);
        run_id.copy_from_slice(&bytes[24..40]);
        let format = FormatVersion { major: two(8), minor: two(10) };
        SpoolHeader { magic, format, record_bytes: four(12), pid: four(16), run_id }
    }

    /// The header of `file`.
    ///
    /// # Errors
    /// The file cannot be read or is shorter than a header.
    pub(crate) fn read(file: &File) -> io::Result<SpoolHeader> {
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(SpoolHeader::from_bytes(bytes))
    }
}

/// Creates a spool that is locked by this process. The returned file is at its end, ready for events.
pub(crate) fn create(path: &Path, run_id: &str) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(&SpoolHeader::new(MAGIC, EVENT_BYTES, std::process::id(), run_id).to_bytes())?;
    Ok(file)
}

/// A spool to be read, locked as long as this value lives.
#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    file: File,
    pid: u32,
    events: u64,
    exclusive: bool,
}

impl Spool {
    /// Opens the spool at `path` and locks it, exclusively or with other readers; `None` without such a file. A spool that
    /// is being written or finished is [`RecordingError::Busy`].
    pub(crate) fn open(path: &Path) -> Result<Option<Spool>, RecordingError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(RecordingError::refused("open", path))?,
        };
        let exclusive = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let locked = exclusive || flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        let spool = Spool { exclusive, ..Spool::from_file(file, path)? };
        if !locked {
            let recording = path.parent().unwrap_or(path).to_owned();
            return Err(RecordingError::Busy { path: recording, pid: spool.pid });
        }
        Ok(Some(spool))
    }

    /// The spool in `file`, which is or was at `path`. Bytes after the last whole event are ignored.
    pub(crate) fn from_file(file: File, path: &Path) -> Result<Spool, RecordingError> {
        let length = file.metadata().map_err(RecordingError::refused("read", path))?.len();
        let Ok(header) = SpoolHeader::read(&file) else {
            let what = format!("{length} bytes, and a spool has at least {HEADER_BYTES}");
            return Err(RecordingError::damaged(path, what));
        };
        if header.magic != MAGIC {
            return Err(RecordingError::damaged(path, "it does not begin as a spool"));
        }
        if header.format.major > FormatVersion::CURRENT.major {
            let path = path.parent().unwrap_or(path).to_owned();
            return Err(RecordingError::NewerVersion { path, found: header.format });
        }
        if header.record_bytes as usize != EVENT_BYTES {
            let what = format!("its events have {} bytes, not {EVENT_BYTES}", header.record_bytes);
            return Err(RecordingError::damaged(path, what));
        }
        let events = (length - HEADER_BYTES as u64) / EVENT_BYTES as u64;
        Ok(Spool { path: path.to_owned(), file, pid: header.pid, events, exclusive: true })
    }

    /// Whether no other process reads it: only then may it be finished and removed.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Admits other readers.
    pub(crate) fn share(&self) {
        // If this fails other readers wait.
        _ = flock(&self.file, FlockOperation::NonBlockingLockShared);
    }

    /// Number of whole events.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `take` with the index and the event of each place in `range`, `None` for a hole.
    pub(crate) fn walk(&self, range: Range<u64>, mut take: impl FnMut(u64, Option<SpoolEvent>)) -> io::Result<()> {
        let mut buffer = vec![0; READ_EVENTS * EVENT_BYTES];
        let mut index = range.start;
        let end = range.end.min(self.events);
        while index < end {
            let events = (end - index).min(READ_EVENTS as u64);
            let bytes = &mut buffer[..events as usize * EVENT_BYTES];
            self.file.read_exact_at(bytes, HEADER_BYTES as u64 + index * EVENT_BYTES as u64)?;
            for (offset, event) in bytes.as_chunks::<EVENT_BYTES>().0.iter().enumerate() {
                take(index + offset as u64, SpoolEvent::from_words(words_from(event)));
            }
            index += events;
        }
        Ok(())
    }
}

/// The process that writes the spool at `path`; `None` if no living process holds its lock.
pub(crate) fn holder(path: &Path) -> Option<u32> {
    let file = File::open(path).ok()?;
    // A writer refuses a shared lock, and no other reader is disturbed by one.
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return None;
    }
    SpoolHeader::read(&file).ok().filter(|header| header.magic == MAGIC).map(|header| header.pid)
}

/// Appends the bytes of `words` to `bytes`: little endian.
pub(crate) fn append<const WORDS: usize>(words: [u64; WORDS], bytes: &mut Vec<u8>) {
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
}

/// The words of a record.
pub(crate) fn words_from<const WORDS: usize>(record: &[u8]) -> [u64; WORDS] {
    let words = record.as_chunks::<8>().0;
    std::array::from_fn(|word| u64::from_le_bytes(words[word]))
}

#[cfg(test)]
mod tests {
    use super::super::event::EVENT_WORDS;
    use super::*;
    use crate::probe::{Phase, Seq};
    use crate::units::{Nanos, Stamp};

    fn spool_with(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(SPOOL);
        std::fs::write(&path, bytes).expect("written");
        (directory, path)
    }

    fn header() -> SpoolHeader {
        SpoolHeader::new(MAGIC, EVENT_BYTES, 77, "0123456789abcdef")
    }

    #[test]
    fn the_header_survives_its_bytes() {
        assert_eq!(SpoolHeader::from_bytes(header().to_bytes()), header());
    }

    #[test]
    fn a_torn_last_event_is_ignored_and_a_hole_has_no_event() {
        let event = SpoolEvent::TimedOut { seq: Seq(4), waited: Nanos(9) };
        let mut bytes = header().to_bytes().to_vec();
        append(event.to_words(), &mut bytes);
        append([0; EVENT_WORDS], &mut bytes);
        let last = SpoolEvent::NotSent { seq: Seq(5), phase: Phase::Measure, due: Stamp::from_nanos(1) };
        append(last.to_words(), &mut bytes);
        bytes.truncate(bytes.len() - 1);
        let (_directory, path) = spool_with(&bytes);
        let spool = Spool::open(&path).expect("opens").expect("is there");
        let mut seen = Vec::new();
        spool.walk(0..u64::MAX, |index, event| seen.push((index, event))).expect("reads");
        assert_eq!(seen, [(0, Some(event)), (1, None)]);
    }

    #[test]
    fn a_file_that_is_not_a_spool_is_damaged_and_a_newer_spool_names_its_format() {
        let newer = SpoolHeader { format: FormatVersion { major: 2, minor: 0 }, ..header() };
        let wider = SpoolHeader { record_bytes: 128, ..header() };
        for (bytes, expected) in [
            (vec![], "damaged"),
            (vec![0; 10], "damaged"),
            (vec![1; 100], "damaged"),
            (wider.to_bytes().to_vec(), "damaged"),
            (newer.to_bytes().to_vec(), "format 2.0"),
        ] {
            let (_directory, path) = spool_with(&bytes);
            let error = Spool::open(&path).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_spool_is_busy_while_its_writer_lives() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(SPOOL);
        let file = create(&path, "0123456789abcdef").expect("created");
        assert_eq!(holder(&path), Some(std::process::id()));
        let error = Spool::open(&path).expect_err("held");
        assert!(matches!(error, RecordingError::Busy { pid, .. } if pid == std::process::id()), "{error}");
        drop(file);
        assert_eq!(holder(&path), None);
        assert_eq!(Spool::open(&path).expect("opens").expect("is there").events(), 0);
    }
}
