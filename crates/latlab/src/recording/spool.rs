//! `events.spool`: a header, then events as they happened, appended while the run goes on.
//!
//! Plain `write`, no fsync: what a killed process wrote stays in the page cache. The file is locked
//! ([flock(2)](https://man7.org/linux/man-pages/man2/flock.2.html)) while its writer lives; the
//! kernel drops the lock with the process, so a held lock means a living writer. Bytes: docs/recording.md.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::RecordingError;
use super::event::{EVENT_BYTES, EVENT_WORDS, SpoolEvent};
use super::manifest::FormatVersion;

/// The spool's name in a recording's directory.
pub(crate) const SPOOL: &str = "events.spool";
/// Bytes before the first event.
pub(crate) const HEADER_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"latlabSP";
/// Events read at a time: 256 KiB.
const READ_EVENTS: usize = 4096;

/// What stands before the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    format: FormatVersion,
    event_bytes: u32,
    pid: u32,
    run_id: [u8; 16],
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.format.major.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.format.minor.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.event_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.pid.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.run_id);
        bytes
    }

    fn from_bytes(bytes: [u8; HEADER_BYTES]) -> Option<Header> {
        let four = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let two = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let mut run_id = [0; 16];
        run_id.copy_from_slice(&bytes[24..40]);
        let format = FormatVersion { major: two(8), minor: two(10) };
        (bytes[0..8] == MAGIC).then_some(Header { format, event_bytes: four(12), pid: four(16), run_id })
    }
}

/// Makes a new spool, locked by this process. The returned file is at its end, ready for events.
pub(crate) fn create(path: &Path, run_id: &str) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let mut id = [0; 16];
    id.iter_mut().zip(run_id.bytes()).for_each(|(place, byte)| *place = byte);
    let format = FormatVersion::CURRENT;
    let header = Header { format, event_bytes: EVENT_BYTES as u32, pid: std::process::id(), run_id: id };
    file.write_all(&header.to_bytes())?;
    Ok(file)
}

/// A spool to be read, locked as long as this lives.
#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    file: File,
    pid: u32,
    events: u64,
    alone: bool,
}

impl Spool {
    /// Opens the spool at `path` and locks it, alone or with other readers; none where there is no such file. A spool
    /// that a writer or a finisher holds is [`RecordingError::Busy`].
    pub(crate) fn open(path: &Path) -> Result<Option<Spool>, RecordingError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(RecordingError::refused("open", path))?,
        };
        let alone = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let shared = alone || flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        let spool = Spool { alone, ..Spool::of_file(file, path)? };
        if !shared {
            let recording = path.parent().unwrap_or(path).to_owned();
            return Err(RecordingError::Busy { path: recording, pid: spool.pid });
        }
        Ok(Some(spool))
    }

    /// The spool in `file`, which stands (or stood) at `path`. Bytes after the last whole event are a torn
    /// one and not counted.
    pub(crate) fn of_file(file: File, path: &Path) -> Result<Spool, RecordingError> {
        let length = file.metadata().map_err(RecordingError::refused("read", path))?.len();
        let mut bytes = [0; HEADER_BYTES];
        if file.read_exact_at(&mut bytes, 0).is_err() {
            return Err(RecordingError::damaged(
                path,
                format!("{length} bytes, and a spool has at least {HEADER_BYTES}"),
            ));
        }
        let header =
            Header::from_bytes(bytes).ok_or_else(|| RecordingError::damaged(path, "it does not begin as a spool"))?;
        if header.format.major > FormatVersion::CURRENT.major {
            let path = path.parent().unwrap_or(path).to_owned();
            return Err(RecordingError::NewerVersion { path, found: header.format });
        }
        if header.event_bytes as usize != EVENT_BYTES {
            let what = format!("its events have {} bytes, not {EVENT_BYTES}", header.event_bytes);
            return Err(RecordingError::damaged(path, what));
        }
        let events = (length - HEADER_BYTES as u64) / EVENT_BYTES as u64;
        Ok(Spool { path: path.to_owned(), file, pid: header.pid, events, alone: true })
    }

    /// Whether nobody else reads it: only then may it be finished and removed.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    /// Lets other readers in.
    pub(crate) fn share(&self) {
        // Keeping it to oneself makes others wait, nothing worse.
        _ = flock(&self.file, FlockOperation::NonBlockingLockShared);
    }

    /// Whole events in it.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Where it stands.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `take` with the index and the event of each of `range`; a hole, which holds no event, gives none.
    pub(crate) fn walk(&self, range: Range<u64>, mut take: impl FnMut(u64, Option<SpoolEvent>)) -> io::Result<()> {
        let mut buffer = vec![0; READ_EVENTS * EVENT_BYTES];
        let mut index = range.start;
        let end = range.end.min(self.events);
        while index < end {
            let events = (end - index).min(READ_EVENTS as u64);
            let bytes = &mut buffer[..events as usize * EVENT_BYTES];
            self.file.read_exact_at(bytes, HEADER_BYTES as u64 + index * EVENT_BYTES as u64)?;
            for (offset, event) in bytes.as_chunks::<EVENT_BYTES>().0.iter().enumerate() {
                take(index + offset as u64, SpoolEvent::from_words(words_of(event)));
            }
            index += events;
        }
        Ok(())
    }
}

/// The process that began the spool at `path`, where a living one holds it.
pub(crate) fn holder(path: &Path) -> Option<u32> {
    let mut file = File::open(path).ok()?;
    // A shared lock is refused by a writer and disturbs no other reader.
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return None;
    }
    let mut bytes = [0; HEADER_BYTES];
    file.read_exact(&mut bytes).ok()?;
    Header::from_bytes(bytes).map(|header| header.pid)
}

/// Appends `words` to `bytes` as they stand in the file: little endian.
pub(crate) fn append(words: [u64; EVENT_WORDS], bytes: &mut Vec<u8>) {
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
}

fn words_of(bytes: &[u8; EVENT_BYTES]) -> [u64; EVENT_WORDS] {
    let words = bytes.as_chunks::<8>().0;
    std::array::from_fn(|word| u64::from_le_bytes(words[word]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Seq;
    use crate::units::{Nanos, Stamp};

    fn spool_with(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(SPOOL);
        std::fs::write(&path, bytes).expect("written");
        (directory, path)
    }

    fn header() -> Header {
        let format = FormatVersion::CURRENT;
        Header { format, event_bytes: EVENT_BYTES as u32, pid: 77, run_id: *b"0123456789abcdef" }
    }

    #[test]
    fn the_header_survives_its_bytes() {
        assert_eq!(Header::from_bytes(header().to_bytes()), Some(header()));
        assert_eq!(Header::from_bytes([0; HEADER_BYTES]), None);
    }

    #[test]
    fn a_torn_last_event_and_a_hole_are_no_events() {
        let event = SpoolEvent::TimedOut { seq: Seq(4), waited: Nanos(9) };
        let mut bytes = header().to_bytes().to_vec();
        append(event.to_words(), &mut bytes);
        append([0; EVENT_WORDS], &mut bytes);
        append(
            SpoolEvent::NotSent { seq: Seq(5), phase: crate::probe::Phase::Measure, due: Stamp::from_nanos(1) }
                .to_words(),
            &mut bytes,
        );
        bytes.truncate(bytes.len() - 1);
        let (_directory, path) = spool_with(&bytes);
        let spool = Spool::open(&path).expect("opens").expect("is there");
        let mut seen = Vec::new();
        spool.walk(0..u64::MAX, |index, event| seen.push((index, event))).expect("reads");
        assert_eq!(seen, [(0, Some(event)), (1, None)]);
    }

    #[test]
    fn what_is_no_spool_is_damaged_and_what_is_newer_is_said_to_be() {
        let newer = Header { format: FormatVersion { major: 2, minor: 0 }, ..header() };
        let wider = Header { event_bytes: 128, ..header() };
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
