//! `host.spool`: rows of host samples, appended while the run goes on. The lock of `events.spool` next to it covers this
//! file too. Bytes: docs/recording.md, section 7.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::error::RecordingError;
use super::spool::{HEADER_BYTES, SpoolHeader, append, words_from};
use super::tables::host::{HostRow, Readings};
use crate::facts::{CpuReadings, HostReadings, HostSample};
use crate::plan::Side;

/// The file's name in a recording's directory.
pub(crate) const HOST_SPOOL: &str = "host.spool";
const MAGIC: [u8; 8] = *b"latlabHO";
/// Words of a row: four that identify it, then its readings, then unused ones.
const ROW_WORDS: usize = 24;
const ROW_BYTES: usize = ROW_WORDS * 8;
const HEAD_WORDS: usize = 4;
const READINGS: usize = ROW_WORDS - HEAD_WORDS;
/// Rows read at a time: 48 KiB.
const READ_ROWS: usize = 256;
/// An absent reading. Readings are counters and states, which are never that small.
const NULL: i64 = i64::MIN;
/// An absent CPU.
const NO_CPU: u16 = u16::MAX;
const HOST_KIND: u64 = 1;
const CPU_KIND: u64 = 2;

fn to_words(row: HostRow) -> [u64; ROW_WORDS] {
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
    words
}

/// The row in `words`; `None` if they hold no row.
fn from_words(words: [u64; ROW_WORDS]) -> Option<HostRow> {
    let reading = |index: usize| Some(words[HEAD_WORDS + index] as i64).filter(|reading| *reading != NULL);
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
    failure: Option<io::Error>,
    lost: u64,
}

impl HostLog {
    /// Creates the spool at `path`.
    pub(crate) fn create(path: &Path, run_id: &str) -> io::Result<HostLog> {
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        file.write_all(&SpoolHeader::new(MAGIC, ROW_BYTES, 0, run_id).to_bytes())?;
        Ok(HostLog { file, bytes: Vec::new(), failure: None, lost: 0 })
    }

    /// Appends a sample of the host at `side`, in one write.
    pub fn push(&mut self, side: Side, sample: &HostSample) {
        if self.failure.is_some() {
            self.lost += 1;
            return;
        }
        self.bytes.clear();
        HostRow::from_sample(side, sample).for_each(|row| append(to_words(row), &mut self.bytes));
        // A refused write may have written a part: readers ignore a torn row at the end.
        if let Err(error) = self.file.write_all(&self.bytes) {
            (self.failure, self.lost) = (Some(error), 1);
        }
    }

    /// The file, to be read once the log is complete.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Why a write was refused, and how many samples were lost: that one and all later ones.
    pub(crate) fn failure(&self) -> Option<(&io::Error, u64)> {
        self.failure.as_ref().map(|error| (error, self.lost))
    }
}

/// A spool to be read.
#[derive(Debug)]
pub(crate) struct HostSpool {
    file: File,
    rows: u64,
}

impl HostSpool {
    /// Opens the spool at `path`; `None` without such a file.
    pub(crate) fn open(path: &Path) -> Result<Option<HostSpool>, RecordingError> {
        match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => HostSpool::from_file(opened.map_err(RecordingError::refused("open", path))?, path).map(Some),
        }
    }

    /// The spool in `file`, which is or was at `path`. Bytes after the last whole row are ignored.
    pub(crate) fn from_file(file: File, path: &Path) -> Result<HostSpool, RecordingError> {
        let length = file.metadata().map_err(RecordingError::refused("read", path))?.len();
        let header = SpoolHeader::read(&file).ok();
        if !header.is_some_and(|header| header.magic == MAGIC && header.record_bytes as usize == ROW_BYTES) {
            return Err(RecordingError::damaged(path, "it does not begin as a spool of host samples"));
        }
        Ok(HostSpool { file, rows: (length - HEADER_BYTES as u64) / ROW_BYTES as u64 })
    }

    /// The rows in the order in which they were written, without places that hold none (a power cut leaves zeros).
    pub(crate) fn rows(self) -> impl Iterator<Item = io::Result<HostRow>> {
        let HostSpool { file, rows } = self;
        let chunks =
            (0..rows).step_by(READ_ROWS).map(move |first| read(&file, first, READ_ROWS.min((rows - first) as usize)));
        chunks.flat_map(|chunk| match chunk {
            Ok(rows) => rows.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    }
}

fn read(file: &File, first: u64, rows: usize) -> io::Result<Vec<HostRow>> {
    let mut bytes = vec![0; rows * ROW_BYTES];
    file.read_exact_at(&mut bytes, HEADER_BYTES as u64 + first * ROW_BYTES as u64)?;
    Ok(bytes.as_chunks::<ROW_BYTES>().0.iter().filter_map(|row| from_words(words_from(row))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Explain;
    use crate::recording::tables::host::SampleJoin;
    use crate::recording::tables::host::tests::sample;

    fn samples(spool: HostSpool) -> Vec<HostSample> {
        SampleJoin::new(spool.rows()).map(|sample| sample.expect("reads").1).collect()
    }

    #[test]
    fn a_row_is_read_back_from_its_words() {
        for side in [Side::Local, Side::Peer] {
            for row in (0..3).flat_map(|seq| HostRow::from_sample(side, &sample(seq)).collect::<Vec<_>>()) {
                assert_eq!(from_words(to_words(row)), Some(row));
            }
        }
        assert_eq!(from_words([0; ROW_WORDS]), None);
        assert!(CpuReadings::WIDTH.max(HostReadings::WIDTH) <= READINGS);
    }

    #[test]
    fn pushed_samples_are_read_back_without_a_torn_row() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(HOST_SPOOL);
        assert!(HostSpool::open(&path).expect("no error").is_none());
        let mut log = HostLog::create(&path, "0123456789abcdef").expect("created");
        let pushed: Vec<_> = (0..200).map(sample).collect();
        pushed.iter().for_each(|sample| log.push(Side::Local, sample));
        assert_eq!(samples(HostSpool::open(&path).expect("opens").expect("is there")), pushed);

        let file = log.file().expect("a descriptor");
        file.set_len(file.metadata().expect("metadata").len() - 20).expect("cut");
        let torn = samples(HostSpool::from_file(file, &path).expect("opens"));
        assert_eq!((&torn[..199], torn[199].cpus.len()), (&pushed[..199], 1));
    }

    #[test]
    fn a_refused_write_ends_the_log_and_counts_lost_samples() {
        let mut log = HostLog {
            file: OpenOptions::new().write(true).open("/dev/full").expect("a full device"),
            bytes: Vec::new(),
            failure: None,
            lost: 0,
        };
        (0..3).for_each(|seq| log.push(Side::Local, &sample(seq)));
        let (error, lost) = log.failure().expect("refused");
        assert_eq!((error.kind(), lost), (io::ErrorKind::StorageFull, 3));
    }

    #[test]
    fn a_file_that_is_not_a_spool_is_damaged() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(HOST_SPOOL);
        for bytes in [vec![], vec![0; 64], vec![7; 500]] {
            std::fs::write(&path, bytes).expect("written");
            let error = HostSpool::open(&path).expect_err("no spool");
            assert!(error.explain().exit_code == 2 && error.to_string().contains(HOST_SPOOL), "{error}");
        }
    }
}
