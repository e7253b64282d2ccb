//! `events.spool`: a header, then events in the order in which they happened, appended while the run goes on.
//!
//! Plain `write`, no fsync: what a killed process wrote stays in the page cache. The file is locked
//! ([flock(2)](https://man7.org/linux/man-pages/man2/flock.2.html)) while its writer lives; the kernel releases the
//! lock with the process, so a held lock means a living writer. Since 1.6 checksums of the events are among them.
//! Bytes: docs/recording.md, section 8.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::RecordingError;
use super::event::{EVENT_BYTES, EVENT_WORDS, SpoolEvent};
use super::manifest::{FormatVersion, Manifest};
use super::plausible::PossibleValues;
use crate::platform::Directory;

/// The file's name in a recording's directory.
pub(crate) const SPOOL: &str = "events.spool";
/// Bytes before the first record of a spool.
pub(crate) const HEADER_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"latlabSP";
/// Events read at a time: 256 KiB.
const READ_EVENTS: usize = 4096;
/// Bytes of a header before its checksum.
const CHECKED_HEADER_BYTES: usize = 60;
const PART_EVENTS: usize = 63;
const CHECKSUM: u64 = 10;
/// Separate damaged parts of a spool that are left out; with more the spool is refused.
const DAMAGED_MAX: usize = 4096;

/// The header of a spool, of events or of host samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpoolHeader {
    pub magic: [u8; 8],
    pub format: FormatVersion,
    pub record_bytes: u32,
    /// The process that measures; 0 in a spool of host samples.
    pub pid: u32,
    pub run_id: [u8; 16],
}

impl SpoolHeader {
    /// The header of records of `record_bytes` of the run `run_id`, in the current format.
    pub(crate) fn new(magic: [u8; 8], record_bytes: usize, pid: u32, run_id: &str) -> SpoolHeader {
        let (format, run_id) = (FormatVersion::CURRENT, id_bytes(run_id));
        SpoolHeader { magic, format, record_bytes: record_bytes as u32, pid, run_id }
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&self.magic);
        bytes[8..10].copy_from_slice(&self.format.major.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.format.minor.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.record_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.pid.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.run_id);
        let checksum = crc32c::crc32c(&bytes[..CHECKED_HEADER_BYTES]);
        bytes[CHECKED_HEADER_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Whether its bytes are those that were written, as far as its version has a checksum.
    fn is_sound(self, bytes: &[u8; HEADER_BYTES]) -> bool {
        !self.format.has_checksums() || self.to_bytes() == *bytes
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
    /// The file cannot be read or is shorter than a header, or the header was changed.
    pub(crate) fn read(file: &File) -> io::Result<SpoolHeader> {
        let mut bytes = [0; HEADER_BYTES];
        file.read_exact_at(&mut bytes, 0)?;
        let header = SpoolHeader::from_bytes(bytes);
        if header.is_sound(&bytes) {
            Ok(header)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, "its header was changed"))
        }
    }

    /// Whether it is of the run `run_id`.
    pub(crate) fn is_of(&self, run_id: &str) -> bool {
        self.run_id == id_bytes(run_id)
    }
}

fn id_bytes(run_id: &str) -> [u8; 16] {
    let mut id = [0; 16];
    id.iter_mut().zip(run_id.bytes()).for_each(|(place, byte)| *place = byte);
    id
}

/// Creates the spool of `directory`, locked by this process. The returned file is at its end, ready for events.
pub(crate) fn create(directory: &Directory, run_id: &str) -> io::Result<File> {
    let mut file = directory.create_file(SPOOL)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.write_all(&SpoolHeader::new(MAGIC, EVENT_BYTES, std::process::id(), run_id).to_bytes())?;
    Ok(file)
}

/// A spool to be read, locked as long as this value lives.
#[derive(Debug)]
pub(crate) struct Spool {
    path: PathBuf,
    file: File,
    header: SpoolHeader,
    events: u64,
    exclusive: bool,
    /// Parts whose checksum is not that of their events, or that come again, in their order.
    damaged: Vec<Range<u64>>,
    /// Parts whose numbers are left out.
    missing_parts: u64,
    unchecked: u64,
    possible: Option<PossibleValues>,
}

impl Spool {
    /// Opens the spool of `directory` and locks it, exclusively or with other readers; `None` without such a file. A spool
    /// that is being written or finished is [`RecordingError::Busy`].
    pub(crate) fn open(directory: &Directory) -> Result<Option<Spool>, RecordingError> {
        let path = directory.path_of(SPOOL);
        let file = match directory.file(SPOOL) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(RecordingError::unreadable("open", &path))?,
        };
        let exclusive = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let locked = exclusive || flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
        let mut spool = Spool { exclusive, ..Spool::from_file(file, &path)? };
        if !locked {
            return Err(RecordingError::Busy { path: directory.path().to_owned(), pid: spool.header.pid });
        }
        spool.check().map_err(RecordingError::refused("read", &path))?;
        if spool.damaged.len() > DAMAGED_MAX {
            return Err(RecordingError::damaged(path, format!("more than {DAMAGED_MAX} parts of it were changed")));
        }
        Ok(Some(spool))
    }

    /// The spool in `file`, which is or was at `path`; its checksums are not compared. Bytes after the last whole event are
    /// ignored.
    pub(crate) fn from_file(file: File, path: &Path) -> Result<Spool, RecordingError> {
        let length = file.metadata().map_err(RecordingError::refused("read", path))?.len();
        let header = SpoolHeader::read(&file).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => RecordingError::damaged(path, error),
            _ => RecordingError::damaged(path, format!("{length} bytes, and a spool has at least {HEADER_BYTES}")),
        })?;
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
        let path = path.to_owned();
        let (damaged, missing_parts, unchecked, possible) = (Vec::new(), 0, 0, None);
        Ok(Spool { path, file, header, events, exclusive: true, damaged, missing_parts, unchecked, possible })
    }

    /// Whether no other process reads it: only then may it be finished and removed.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    pub(crate) fn share(&self) {
        // If this fails other readers wait.
        _ = flock(&self.file, FlockOperation::NonBlockingLockShared);
    }

    /// Number of whole events, checksums included.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Takes events that are not possible in the run of `manifest` for holes.
    pub(crate) fn judge_by(&mut self, manifest: &Manifest) {
        self.possible = PossibleValues::of(manifest);
    }

    /// Parts that are missing between others.
    pub(crate) fn missing_parts(&self) -> u64 {
        self.missing_parts
    }

    /// Events at the end that no checksum covers. 0 before format 1.6, which has none.
    pub(crate) fn unchecked_events(&self) -> u64 {
        self.unchecked
    }

    /// Whether it is of the run `run_id`.
    pub(crate) fn is_of(&self, run_id: &str) -> bool {
        self.header.is_of(run_id)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `take` with the index and the event of each place in `range`, `None` for a hole and in a damaged part.
    /// Checksums are left out.
    pub(crate) fn walk(&self, range: Range<u64>, mut take: impl FnMut(u64, Option<SpoolEvent>)) -> io::Result<()> {
        self.read(range, |index, event| {
            let words = words_from(event);
            if self.is_damaged(index) {
                take(index, None);
            } else if !is_checksum(words) {
                take(index, self.event_in(words));
            }
        })
    }

    fn event_in(&self, words: [u64; EVENT_WORDS]) -> Option<SpoolEvent> {
        let is_possible = |event: &SpoolEvent| self.possible.as_ref().is_none_or(|possible| possible.admits(event));
        SpoolEvent::from_words(words).filter(is_possible)
    }

    fn read(&self, range: Range<u64>, mut take: impl FnMut(u64, &[u8; EVENT_BYTES])) -> io::Result<()> {
        let mut buffer = vec![0; READ_EVENTS * EVENT_BYTES];
        let mut index = range.start;
        let end = range.end.min(self.events);
        while index < end {
            let events = (end - index).min(READ_EVENTS as u64);
            let bytes = &mut buffer[..events as usize * EVENT_BYTES];
            self.file.read_exact_at(bytes, HEADER_BYTES as u64 + index * EVENT_BYTES as u64)?;
            for (offset, event) in bytes.as_chunks::<EVENT_BYTES>().0.iter().enumerate() {
                take(index + offset as u64, event);
            }
            index += events;
        }
        Ok(())
    }

    fn is_damaged(&self, index: u64) -> bool {
        // Usually empty.
        let after = self.damaged.partition_point(|part| part.end <= index);
        self.damaged.get(after).is_some_and(|part| part.contains(&index))
    }

    /// Compares all checksums with the events before them.
    fn check(&mut self) -> io::Result<()> {
        if !self.header.format.has_checksums() {
            return Ok(());
        }
        let (mut begin, mut sum, mut damaged) = (0, 0, Vec::new());
        let (mut next, mut missing) = (0, 0);
        self.read(0..self.events, |index, event| {
            let words = words_from(event);
            if !is_checksum(words) {
                sum = crc32c::crc32c_append(sum, event);
                return;
            }
            let number = words[NUMBER_WORD];
            if words != checksum(index - begin, sum, number) {
                damaged.push(begin..index + 1);
                // The part of this place, whatever its number was.
                next += 1;
            } else if number < next {
                damaged.push(begin..index + 1);
            } else {
                missing += number - next;
                next = number + 1;
            }
            damaged.truncate(DAMAGED_MAX + 1);
            (begin, sum) = (index + 1, 0);
        })?;
        (self.damaged, self.missing_parts, self.unchecked) = (damaged, missing, self.events - begin);
        Ok(())
    }
}

/// The word of a checksum that has the number of its part.
const NUMBER_WORD: usize = 3;

/// The words of the checksum of part `number`: `sum` is that of its `events`.
fn checksum(events: u64, sum: u32, number: u64) -> [u64; EVENT_WORDS] {
    let sum = crc32c::crc32c_append(sum, &number.to_le_bytes());
    [CHECKSUM, events, u64::from(sum), number, 0, 0, 0, 0]
}

fn is_checksum(words: [u64; EVENT_WORDS]) -> bool {
    words[0] & 0xff == CHECKSUM
}

/// Appends `events` to `bytes`, a checksum after every 63 of them and after the last: 4 KiB together, like a page. `number`:
/// that of the next part of the spool.
pub(crate) fn append_with_checksums(events: &[u8], number: &mut u64, bytes: &mut Vec<u8>) {
    for part in events.chunks(PART_EVENTS * EVENT_BYTES) {
        bytes.extend_from_slice(part);
        append(checksum((part.len() / EVENT_BYTES) as u64, crc32c::crc32c(part), *number), bytes);
        *number += 1;
    }
}

/// How many of the first `places` that [`append_with_checksums`] appends are events.
pub(crate) const fn events_in(places: u64) -> u64 {
    places - places / (PART_EVENTS as u64 + 1)
}

/// The process that writes the spool in `directory`; `None` if no living process holds its lock.
pub(crate) fn holder(directory: &Directory) -> Option<u32> {
    let file = directory.file(SPOOL).ok()?;
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
    use super::*;
    use crate::probe::{Phase, Seq};
    use crate::units::{Nanos, Stamp};

    fn spool_with(bytes: &[u8]) -> (tempfile::TempDir, Directory) {
        let directory = tempfile::tempdir().expect("temporary directory");
        std::fs::write(directory.path().join(SPOOL), bytes).expect("written");
        let opened = Directory::open(directory.path()).expect("opens");
        (directory, opened)
    }

    fn events_in_spool(spool: &Spool) -> Vec<(u64, Option<SpoolEvent>)> {
        let mut seen = Vec::new();
        spool.walk(0..u64::MAX, |index, event| seen.push((index, event))).expect("reads");
        seen
    }

    fn opened(bytes: &[u8]) -> Spool {
        Spool::open(&spool_with(bytes).1).expect("opens").expect("is there")
    }

    fn header() -> SpoolHeader {
        SpoolHeader::new(MAGIC, EVENT_BYTES, 0x0102_0304, "0123456789abcdef")
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
        let spool = opened(&bytes);
        assert_eq!(events_in_spool(&spool), [(0, Some(event)), (1, None)]);
        assert_eq!(spool.unchecked_events(), 2);
    }

    #[test]
    fn many_events_have_a_checksum_after_every_63_of_them() {
        let mut events = Vec::new();
        (0..200)
            .for_each(|seq| append(SpoolEvent::TimedOut { seq: Seq(seq), waited: Nanos(9) }.to_words(), &mut events));
        let mut bytes = header().to_bytes().to_vec();
        append_with_checksums(&events, &mut 0, &mut bytes);
        let spool = opened(&bytes);
        assert_eq!((spool.events(), spool.unchecked_events()), (204, 0));
        assert_eq!((events_in_spool(&spool).len(), events_in(204), events_in(63), events_in(64)), (200, 201, 63, 63));
    }

    /// Three parts of two events and a checksum.
    fn three_parts() -> Vec<u8> {
        let (mut bytes, mut number) = (header().to_bytes().to_vec(), 0);
        for seqs in [0..2, 2..4, 4..6] {
            let event = |seq| SpoolEvent::TimedOut { seq: Seq(seq), waited: Nanos(9) };
            let mut part = Vec::new();
            seqs.for_each(|seq| append(event(seq).to_words(), &mut part));
            append_with_checksums(&part, &mut number, &mut bytes);
        }
        bytes
    }

    #[test]
    fn a_changed_part_counts_as_the_one_of_its_place() {
        let part_bytes = 3 * EVENT_BYTES;
        for part in 0..3 {
            let mut bytes = three_parts();
            bytes[HEADER_BYTES + part * part_bytes + 9] ^= 1;
            let spool = opened(&bytes);
            let events = |part: usize| part as u64 * 3..part as u64 * 3 + 3;
            assert_eq!((&spool.damaged[..], spool.missing_parts, spool.unchecked), (&[events(part)][..], 0, 0));
        }
    }

    #[test]
    fn a_part_that_is_missing_doubled_or_exchanged_is_noticed() {
        let bytes = three_parts();
        let (head, parts) = bytes.split_at(HEADER_BYTES);
        let parts: Vec<_> = parts.chunks(3 * EVENT_BYTES).collect();
        let found = |order: &[usize]| {
            let parts: Vec<_> = order.iter().map(|part| parts[*part]).collect();
            let spool = opened(&[head, &parts.concat()].concat());
            let events = events_in_spool(&spool).iter().filter(|(_, event)| event.is_some()).count();
            (events, spool.damaged.len(), spool.missing_parts())
        };
        assert_eq!(found(&[0, 1, 2]), (6, 0, 0));
        assert_eq!(found(&[0, 2]), (4, 0, 1));
        assert_eq!(found(&[1, 2]), (4, 0, 1));
        assert_eq!(found(&[0, 1, 1, 2]), (6, 1, 0));
        assert_eq!(found(&[0, 2, 1]), (4, 1, 1));
        assert_eq!(found(&[0, 1]), (4, 0, 0), "the end of a spool cannot be known");
    }

    #[test]
    fn every_flipped_bit_leaves_out_its_part_and_no_other() {
        let event = |seq| SpoolEvent::TimedOut { seq: Seq(seq), waited: Nanos(9) };
        let bytes = three_parts();
        let sound = opened(&bytes);
        let all = [0, 1, 3, 4, 6, 7].into_iter().zip(0..).map(|(index, seq)| (index, Some(event(seq))));
        assert_eq!((events_in_spool(&sound), sound.unchecked_events()), (all.collect(), 0));
        let middle = HEADER_BYTES + 3 * EVENT_BYTES;
        for bit in 0..8 * 3 * EVENT_BYTES {
            let mut changed = bytes.clone();
            changed[middle + bit / 8] ^= 1 << (bit % 8);
            let seen = events_in_spool(&opened(&changed));
            let read: Vec<_> = seen.into_iter().filter_map(|(_, event)| event).collect();
            // A changed kind of the checksum takes the part after it along.
            let expected = [vec![event(0), event(1)], vec![event(4), event(5)]];
            assert!(read == expected.concat() || read == expected[0], "bit {bit}: {read:?}");
        }
    }

    #[test]
    fn every_flipped_bit_of_the_header_is_damage_or_a_spool_without_checksums() {
        for bit in 0..8 * HEADER_BYTES {
            let mut changed = header().to_bytes();
            changed[bit / 8] ^= 1 << (bit % 8);
            match Spool::open(&spool_with(&changed).1) {
                Ok(spool) => assert!(!spool.expect("is there").header.format.has_checksums(), "bit {bit}"),
                Err(error) => assert!(error.to_string().contains("damaged") || bit / 8 == 8 || bit / 8 == 9, "{error}"),
            }
        }
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
            let error = Spool::open(&spool_with(&bytes).1).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_spool_is_busy_while_its_writer_lives() {
        let above = tempfile::tempdir().expect("temporary directory");
        let directory = Directory::open(above.path()).expect("opens");
        let file = create(&directory, "0123456789abcdef").expect("created");
        assert_eq!(holder(&directory), Some(std::process::id()));
        let error = Spool::open(&directory).expect_err("held");
        assert!(matches!(error, RecordingError::Busy { pid, .. } if pid == std::process::id()), "{error}");
        drop(file);
        assert_eq!(holder(&directory), None);
        assert_eq!(Spool::open(&directory).expect("opens").expect("is there").events(), 0);
    }
}
