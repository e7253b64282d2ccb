//! `host.spool`: host samples as they are taken, appended while the run goes on. Bytes: docs/recording.md, section 7.
//!
//! Its lock is that of `events.spool`, beside which it stands.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::error::RecordingError;
use super::host_rows::{HostRow, ROW_BYTES, ROW_WORDS};
use super::manifest::FormatVersion;
use crate::facts::HostSample;
use crate::plan::Side;

/// The spool's name in a recording's directory.
pub(crate) const HOST_SPOOL: &str = "host.spool";
const MAGIC: [u8; 8] = *b"latlabHO";
const HEADER_BYTES: usize = 64;
/// Rows read at a time: 48 KiB.
const READ_ROWS: usize = 256;

/// Takes host samples while a run goes on. A disk that refuses one ends the log, not the run: see
/// [`super::RecordingWriter::keep_host_log`].
#[derive(Debug)]
pub struct HostLog {
    file: File,
    bytes: Vec<u8>,
    failure: Option<io::Error>,
    lost: u64,
}

impl HostLog {
    /// Begins the spool at `path`.
    pub(crate) fn create(path: &Path, run_id: &str) -> io::Result<HostLog> {
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let mut header = [0; HEADER_BYTES];
        let FormatVersion { major, minor } = FormatVersion::CURRENT;
        header[0..8].copy_from_slice(&MAGIC);
        header[8..10].copy_from_slice(&major.to_le_bytes());
        header[10..12].copy_from_slice(&minor.to_le_bytes());
        header[12..16].copy_from_slice(&(ROW_BYTES as u32).to_le_bytes());
        header[24..40].iter_mut().zip(run_id.bytes()).for_each(|(place, byte)| *place = byte);
        file.write_all(&header)?;
        Ok(HostLog { file, bytes: Vec::new(), failure: None, lost: 0 })
    }

    /// Writes `sample` of the host at `side` down, in one write.
    pub fn push(&mut self, side: Side, sample: &HostSample) {
        if self.failure.is_some() {
            self.lost += 1;
            return;
        }
        self.bytes.clear();
        for row in HostRow::of(side, sample) {
            row.to_words().iter().for_each(|word| self.bytes.extend_from_slice(&word.to_le_bytes()));
        }
        // A part may have been taken; a torn row at the end is ignored by every reader.
        if let Err(error) = self.file.write_all(&self.bytes) {
            (self.failure, self.lost) = (Some(error), 1);
        }
    }

    /// The file, to be read once the log is complete.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Why the disk refused a sample, and how many were lost with it.
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
    /// Opens the spool at `path`; none where there is none.
    pub(crate) fn open(path: &Path) -> Result<Option<HostSpool>, RecordingError> {
        match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => HostSpool::of_file(opened.map_err(RecordingError::refused("open", path))?, path).map(Some),
        }
    }

    /// The spool in `file`, which stands (or stood) at `path`. Bytes after the last whole row are a torn one.
    pub(crate) fn of_file(file: File, path: &Path) -> Result<HostSpool, RecordingError> {
        let length = file.metadata().map_err(RecordingError::refused("read", path))?.len();
        let mut header = [0; HEADER_BYTES];
        let read = file.read_exact_at(&mut header, 0);
        let row_bytes = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
        if read.is_err() || header[0..8] != MAGIC || row_bytes as usize != ROW_BYTES {
            return Err(RecordingError::damaged(path, "it does not begin as a spool of host samples"));
        }
        Ok(HostSpool { file, rows: (length - HEADER_BYTES as u64) / ROW_BYTES as u64 })
    }

    /// Its rows in the order in which they were written; places that hold none (a power cut leaves zeros) are left out.
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
    let words = |row: &[u8; ROW_BYTES]| -> [u64; ROW_WORDS] {
        let words = row.as_chunks::<8>().0;
        std::array::from_fn(|word| u64::from_le_bytes(words[word]))
    };
    Ok(bytes.as_chunks::<ROW_BYTES>().0.iter().filter_map(|row| HostRow::from_words(words(row))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::host_rows::HostSampleReader;
    use crate::recording::host_rows::tests::sample;

    fn samples(spool: HostSpool) -> Vec<HostSample> {
        HostSampleReader::new(spool.rows()).map(|sample| sample.expect("reads").1).collect()
    }

    #[test]
    fn what_is_pushed_is_read_back_and_a_torn_row_is_left_out() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(HOST_SPOOL);
        assert!(HostSpool::open(&path).expect("no error").is_none());
        let mut log = HostLog::create(&path, "0123456789abcdef").expect("created");
        let pushed: Vec<_> = (0..200).map(sample).collect();
        pushed.iter().for_each(|sample| log.push(Side::Local, sample));
        assert_eq!(samples(HostSpool::open(&path).expect("opens").expect("is there")), pushed);

        let file = log.file().expect("a descriptor");
        file.set_len(file.metadata().expect("metadata").len() - 20).expect("cut");
        let torn = samples(HostSpool::of_file(file, &path).expect("opens"));
        assert_eq!((&torn[..199], torn[199].cpus.len()), (&pushed[..199], 1));
    }

    #[test]
    fn a_disk_that_refuses_ends_the_log_and_is_told() {
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
    fn what_is_no_spool_is_damaged() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join(HOST_SPOOL);
        for bytes in [vec![], vec![0; 64], vec![7; 500]] {
            std::fs::write(&path, bytes).expect("written");
            let error = HostSpool::open(&path).expect_err("no spool");
            assert!(error.exit_code() == 2 && error.to_string().contains(HOST_SPOOL), "{error}");
        }
    }
}
