//! `host.spool`: rows of host samples, appended while the run goes on. The lock of `events.spool` next to it covers this
//! file too. Since 1.6 each row has a checksum. Bytes: docs/recording.md, section 9.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::error::RecordingError;
use super::spool::{HEADER_BYTES, SpoolHeader, append, words_from};
use super::tables::host::{HOST_GROUP_ROWS, HostBatch, HostRow, Readings};
use crate::facts::{CpuReadings, HostReadings, HostSample};
use crate::plan::Side;
use crate::platform::Directory;

/// The file's name in a recording's directory.
pub(crate) const HOST_SPOOL: &str = "host.spool";
const MAGIC: [u8; 8] = *b"latlabHO";
/// Words of a row: four that identify it, then its readings, then unused ones.
const ROW_WORDS: usize = 24;
const ROW_BYTES: usize = ROW_WORDS * 8;
const HEAD_WORDS: usize = 4;
/// The last two words are the number of the row and the checksum of all others.
const READINGS: usize = ROW_WORDS - HEAD_WORDS - 2;
const NUMBER_WORD: usize = ROW_WORDS - 2;
/// Readings are smaller, nanoseconds of 146 years: differences do not overflow.
const READING_MAX: u64 = 1 << 62;
/// The word of a checksum has this bit, and the checksum in its lower half.
const HAS_CHECKSUM: u64 = 1 << 32;
/// Rows read at a time: 48 KiB.
const READ_ROWS: usize = 256;
/// An absent reading. Readings are counters and states, which are never that small.
const NULL: i64 = i64::MIN;
const NO_CPU: u16 = u16::MAX;
const HOST_KIND: u64 = 1;
const CPU_KIND: u64 = 2;

fn to_words(row: HostRow, number: u64) -> [u64; ROW_WORDS] {
    let mut readings = [Some(0); READINGS];
    let (kind, cpu) = match row.readings {
        Readings::Host(host) => {
            readings[..HostReadings::WIDTH].copy_from_slice(&host.numbers());
            (HOST_KIND, NO_CPU)
        }
        Readings::Cpu(cpu, of_cpu) => {
            readings[..CpuReadings::WIDTH].copy_from_slice(&of_cpu.numbers());
            (CPU_KIND, cpu)
        }
    };
    let sampler = row.sampler_cpu.unwrap_or(NO_CPU);
    let mut words = [0; ROW_WORDS];
    words[0] = kind | u64::from(row.side.is_peer()) << 8 | u64::from(cpu) << 16 | u64::from(sampler) << 32;
    (words[1], words[2], words[3]) = (row.seq, row.start_ns as u64, row.end_ns as u64);
    for (word, reading) in words[HEAD_WORDS..].iter_mut().zip(readings) {
        *word = reading.unwrap_or(NULL) as u64;
    }
    words[NUMBER_WORD] = number;
    words[ROW_WORDS - 1] = checksum(&words);
    words
}

/// The word of the checksum of the other `words`.
fn checksum(words: &[u64; ROW_WORDS]) -> u64 {
    let mut bytes = Vec::with_capacity(ROW_BYTES);
    words[..ROW_WORDS - 1].iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    HAS_CHECKSUM | u64::from(crc32c::crc32c(&bytes))
}

/// The row in `words`; `None` if they hold no row.
fn from_words(words: [u64; ROW_WORDS]) -> Option<HostRow> {
    let known = |reading: &i64| *reading != NULL && reading.unsigned_abs() < READING_MAX;
    let reading = |index: usize| Some(words[HEAD_WORDS + index] as i64).filter(known);
    if words[2..4].iter().any(|at| (*at as i64).unsigned_abs() >= 1 << 62) {
        return None;
    }
    let cpu_at = |shift: u32| Some((words[0] >> shift) as u16).filter(|cpu| *cpu != NO_CPU);
    let readings = match words[0] & 0xff {
        HOST_KIND => Readings::Host(HostReadings::of(std::array::from_fn(reading))),
        CPU_KIND => Readings::Cpu(cpu_at(16)?, CpuReadings::of(std::array::from_fn(reading))),
        _ => return None,
    };
    Some(HostRow {
        side: if words[0] >> 8 & 1 == 1 { Side::Peer } else { Side::Local },
        seq: words[1],
        start_ns: words[2] as i64,
        end_ns: words[3] as i64,
        sampler_cpu: cpu_at(32),
        readings,
    })
}

/// Records host samples while a run goes on. A refused write ends the log and not the run: see
/// [`super::RecordingWriter::note_unwritten_samples`].
#[derive(Debug)]
pub struct HostLog {
    file: File,
    bytes: Vec<u8>,
    rows: u64,
    failure: Option<io::Error>,
    lost: u64,
}

impl HostLog {
    /// Creates the spool of `directory`.
    pub fn create(directory: &Directory, run_id: &str) -> io::Result<HostLog> {
        let mut file = directory.create_file(HOST_SPOOL)?;
        file.write_all(&SpoolHeader::new(MAGIC, ROW_BYTES, 0, run_id).to_bytes())?;
        Ok(HostLog { file, bytes: Vec::new(), rows: 0, failure: None, lost: 0 })
    }

    /// Appends a sample of the host at `side`, in one write.
    pub fn push(&mut self, side: Side, sample: &HostSample) {
        if self.failure.is_some() {
            self.lost += 1;
            return;
        }
        self.bytes.clear();
        for row in HostRow::from_sample(side, sample) {
            append(to_words(row, self.rows), &mut self.bytes);
            self.rows += 1;
        }
        // A refused write may have written a part: readers ignore a torn row at the end.
        if let Err(error) = self.file.write_all(&self.bytes) {
            (self.failure, self.lost) = (Some(error), 1);
        }
    }

    /// The file, to be read once the log is complete.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Why a write was refused, and how many samples were lost: that one and all later ones.
    pub fn failure(&self) -> Option<(&io::Error, u64)> {
        self.failure.as_ref().map(|error| (error, self.lost))
    }
}

/// A spool to be read.
#[derive(Debug)]
pub(crate) struct HostSpool {
    file: File,
    header: SpoolHeader,
    rows: u64,
}

impl HostSpool {
    /// Opens the spool of `directory`; `None` without such a file.
    pub(crate) fn open(directory: &Directory) -> Result<Option<HostSpool>, RecordingError> {
        let path = directory.path_of(HOST_SPOOL);
        let file = match directory.file(HOST_SPOOL) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(RecordingError::unreadable("open", &path))?,
        };
        let spool = HostSpool::from_file(file, &path)?;
        match spool.changed_row().map_err(RecordingError::refused("read", &path))? {
            Some(row) => Err(RecordingError::damaged(path, format!("its row {row} was changed"))),
            None => Ok(Some(spool)),
        }
    }

    /// The spool in `file`, which is or was at `path`; its checksums are not compared. Bytes after the last whole row are
    /// ignored.
    pub(crate) fn from_file(file: File, path: &Path) -> Result<HostSpool, RecordingError> {
        let length = file.metadata().map_err(RecordingError::refused("read", path))?.len();
        let header = SpoolHeader::read(&file).ok();
        let header = header.filter(|header| header.magic == MAGIC && header.record_bytes as usize == ROW_BYTES);
        let Some(header) = header else {
            return Err(RecordingError::damaged(path, "it does not begin as a spool of host samples"));
        };
        Ok(HostSpool { file, header, rows: (length - HEADER_BYTES as u64) / ROW_BYTES as u64 })
    }

    /// Whether it is of the run `run_id`.
    pub(crate) fn is_of(&self, run_id: &str) -> bool {
        self.header.is_of(run_id)
    }

    /// The rows in the order in which they were written, without places that hold none (a power cut leaves zeros).
    pub(crate) fn batches(self) -> impl Iterator<Item = io::Result<HostBatch>> {
        let mut rows = self.rows();
        std::iter::from_fn(move || {
            let taken: io::Result<Vec<HostRow>> = rows.by_ref().take(HOST_GROUP_ROWS).collect();
            taken.map(|rows| (!rows.is_empty()).then(|| HostBatch::of(&rows))).transpose()
        })
    }

    fn rows(self) -> impl Iterator<Item = io::Result<HostRow>> {
        (0..self.rows).step_by(READ_ROWS).flat_map(move |first| match self.read(first) {
            Ok(rows) => rows.into_iter().filter_map(from_words).map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    }

    /// The words of at most so many rows.
    fn read(&self, first: u64) -> io::Result<Vec<[u64; ROW_WORDS]>> {
        let mut bytes = vec![0; READ_ROWS.min((self.rows - first) as usize) * ROW_BYTES];
        self.file.read_exact_at(&mut bytes, HEADER_BYTES as u64 + first * ROW_BYTES as u64)?;
        Ok(bytes.as_chunks::<ROW_BYTES>().0.iter().map(|row| words_from(row)).collect())
    }

    /// The first row whose checksum is not that of its words; formats before 1.6 have none.
    fn changed_row(&self) -> io::Result<Option<u64>> {
        if !self.header.format.has_checksums() {
            return Ok(None);
        }
        for first in (0..self.rows).step_by(READ_ROWS) {
            let is_changed = |(number, words): &(u64, [u64; ROW_WORDS])| {
                let is_its = words[NUMBER_WORD] == *number && words[ROW_WORDS - 1] == checksum(words);
                *words != [0; ROW_WORDS] && !is_its
            };
            if let Some((number, _)) = (first..).zip(self.read(first)?).find(is_changed) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Explain;
    use crate::tables::host::SampleJoin;
    use crate::tables::host::tests::sample;

    fn opened() -> (tempfile::TempDir, Directory) {
        let above = tempfile::tempdir().expect("temporary directory");
        let directory = Directory::open(above.path()).expect("opens");
        (above, directory)
    }

    fn samples(spool: HostSpool) -> Vec<HostSample> {
        SampleJoin::new(spool.rows()).map(|sample| sample.expect("reads").1).collect()
    }

    #[test]
    fn a_row_is_read_back_from_its_words() {
        for side in [Side::Local, Side::Peer] {
            for row in (0..3).flat_map(|seq| HostRow::from_sample(side, &sample(seq)).collect::<Vec<_>>()) {
                assert_eq!(from_words(to_words(row, 7)), Some(row));
            }
        }
        assert_eq!(from_words([0; ROW_WORDS]), None);
        assert!(CpuReadings::WIDTH.max(HostReadings::WIDTH) <= READINGS);
    }

    #[test]
    fn pushed_samples_are_read_back_without_a_torn_row() {
        let (_above, directory) = opened();
        assert!(HostSpool::open(&directory).expect("no error").is_none());
        let mut log = HostLog::create(&directory, "0123456789abcdef").expect("created");
        let pushed: Vec<_> = (0..200).map(sample).collect();
        pushed.iter().for_each(|sample| log.push(Side::Local, sample));
        assert_eq!(samples(HostSpool::open(&directory).expect("opens").expect("is there")), pushed);

        let file = log.file().expect("a descriptor");
        file.set_len(file.metadata().expect("metadata").len() - 20).expect("cut");
        let torn = samples(HostSpool::from_file(file, directory.path()).expect("opens"));
        assert_eq!((&torn[..199], torn[199].cpus.len()), (&pushed[..199], 1));
    }

    #[test]
    fn a_refused_write_ends_the_log_and_counts_lost_samples() {
        let mut log = HostLog {
            file: File::options().write(true).open("/dev/full").expect("a full device"),
            bytes: Vec::new(),
            rows: 0,
            failure: None,
            lost: 0,
        };
        (0..3).for_each(|seq| log.push(Side::Local, &sample(seq)));
        let (error, lost) = log.failure().expect("refused");
        assert_eq!((error.kind(), lost), (io::ErrorKind::StorageFull, 3));
    }

    #[test]
    fn a_file_that_is_not_a_spool_is_damaged() {
        let (_above, directory) = opened();
        for bytes in [vec![], vec![0; 64], vec![7; 500]] {
            std::fs::write(directory.path_of(HOST_SPOOL), bytes).expect("written");
            let error = HostSpool::open(&directory).expect_err("no spool");
            assert!(error.explain().exit_code == 2 && error.to_string().contains(HOST_SPOOL), "{error}");
        }
    }

    #[test]
    fn every_flipped_bit_of_a_row_is_damage_with_its_number() {
        let (_above, directory) = opened();
        let mut log = HostLog::create(&directory, "0123456789abcdef").expect("created");
        (0..2).for_each(|seq| log.push(Side::Local, &sample(seq)));
        let sound = std::fs::read(directory.path_of(HOST_SPOOL)).expect("there");
        for bit in (0..8 * ROW_BYTES).step_by(7) {
            let mut changed = sound.clone();
            changed[HEADER_BYTES + ROW_BYTES + bit / 8] ^= 1 << (bit % 8);
            std::fs::write(directory.path_of(HOST_SPOOL), changed).expect("written");
            let cause = HostSpool::open(&directory).expect_err("damaged").explain().cause;
            assert_eq!(cause.as_deref(), Some("its row 1 was changed"), "bit {bit}");
        }
    }
}
