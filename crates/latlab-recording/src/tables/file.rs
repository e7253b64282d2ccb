//! A Parquet file of a recording. What is read from it is compared with the checksums of the manifest before it is decoded,
//! and a panic of the Parquet library is an error.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::Page;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, FooterTail, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;

use super::recorded::GROUP_ROWS;
use crate::checksums::{TableChecksums, crc32c_text, mismatch};
use crate::error::RecordingError;
use crate::platform::Directory;

/// Length and magic number at the end of a Parquet file.
const TAIL_BYTES: usize = 8;
/// The longest footer: that of a billion rows has 20 MB.
const FOOTER_MAX_BYTES: usize = 32 << 20;
/// The longest column chunk; one of 131,072 numbers has at most 1.2 MB.
const CHUNK_MAX_BYTES: u64 = 16 << 20;

/// An open Parquet file whose footer is sound.
#[derive(Debug)]
pub(crate) struct TableFile {
    path: PathBuf,
    file: File,
    length: u64,
    metadata: ParquetMetaData,
    checksums: Option<TableChecksums>,
}

impl TableFile {
    /// Opens the file `name` in `directory`; `None` as checksums if its recording has none.
    ///
    /// # Errors
    /// If it cannot be opened, or its footer is damaged.
    pub(crate) fn open(
        directory: &Directory,
        name: &str,
        checksums: Option<&TableChecksums>,
    ) -> Result<TableFile, RecordingError> {
        let path = directory.path_of(name);
        let file = directory.file(name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => RecordingError::damaged(&path, "the file is missing"),
            _ => RecordingError::unreadable("open", &path)(error),
        })?;
        let length = file.metadata().map_err(RecordingError::refused("open", &path))?.len();
        let footer = read_footer(&file, length, checksums).map_err(read_error(&path))?;
        let metadata = decode_footer(&footer, length).map_err(read_error(&path))?;
        Ok(TableFile { path, file, length, metadata, checksums: checksums.cloned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }

    /// The rows of row group `number`.
    pub(super) fn group_rows(&self, number: usize) -> usize {
        // Bounded when the footer was decoded.
        self.metadata.row_group(number).num_rows() as usize
    }

    /// The pages of a column of a row group.
    ///
    /// # Errors
    /// What is damaged, or that of the system.
    pub(super) fn pages(&self, group: usize, column: usize) -> io::Result<Vec<Page>> {
        let rows = self.group_rows(group);
        let metadata = self.metadata.row_group(group).column(column);
        let chunk = self.chunk(metadata)?;
        if let Some(checksums) = &self.checksums {
            let expected = checksums.of_chunk(group, column);
            let expected = expected.ok_or_else(|| damage("the manifest has no checksum of it"))?;
            mismatch("its bytes were changed", &chunk, expected).map_or(Ok(()), |what| Err(damage(what)))?;
        }
        // Read from the bytes that were compared.
        let within = metadata.clone().into_builder().set_dictionary_page_offset(None).set_data_page_offset(0);
        let within = within.build().map_err(io_error)?;
        let pages = SerializedPageReader::new(Arc::new(Bytes::from(chunk)), &within, rows, None).map_err(io_error)?;
        let pages: Vec<Page> = pages.collect::<ParquetResult<_>>().map_err(io_error)?;
        // The library allocates by the number of values that a page claims.
        match pages.iter().map(Page::num_values).find(|values| *values as usize > rows) {
            Some(values) => Err(damage(format!("a page of {values} values in a row group of {rows} rows"))),
            None => Ok(pages),
        }
    }

    fn chunk(&self, metadata: &ColumnChunkMetaData) -> io::Result<Vec<u8>> {
        let (start, length) = metadata.byte_range();
        read_bytes(&self.file, start, length as usize)
    }

    /// The same table, read from `file`.
    #[cfg(test)]
    pub(super) fn reading(self, file: File) -> TableFile {
        TableFile { file, ..self }
    }

    /// The checksums of the file as it is on disk.
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) fn checksums_on_disk(&self) -> Result<TableChecksums, RecordingError> {
        let digest = || {
            let footer = read_footer(&self.file, self.length, None)?;
            let groups = self.metadata.row_groups().iter().map(|group| {
                let chunks = group.columns().iter().map(|column| Ok(crc32c_text(&self.chunk(column)?)));
                Ok(chunks.collect::<io::Result<Vec<_>>>()?.join(" "))
            });
            let row_groups = groups.collect::<io::Result<_>>()?;
            Ok(TableChecksums { bytes: self.length, footer: crc32c_text(&footer), row_groups })
        };
        digest().map_err(read_error(&self.path))
    }
}

/// The footer with its length and magic number, compared with `checksums`.
fn read_footer(file: &File, length: u64, checksums: Option<&TableChecksums>) -> io::Result<Vec<u8>> {
    if let Some(bytes) = checksums.map(|checksums| checksums.bytes).filter(|bytes| *bytes != length) {
        return Err(damage(format!("{length} bytes, and {bytes} were written")));
    }
    let before_tail = length.checked_sub(TAIL_BYTES as u64).ok_or_else(|| damage(format!("{length} bytes")))?;
    let tail = FooterTail::try_from(&read_bytes(file, before_tail, TAIL_BYTES)?[..]).map_err(io_error)?;
    let footer_bytes = tail.metadata_length() + TAIL_BYTES;
    if tail.is_encrypted_footer() || footer_bytes > FOOTER_MAX_BYTES || footer_bytes as u64 > length {
        return Err(damage(format!("a footer of {footer_bytes} bytes in a file of {length}")));
    }
    let footer = read_bytes(file, length - footer_bytes as u64, footer_bytes)?;
    let changed = checksums.and_then(|checksums| mismatch("its footer was changed", &footer, &checksums.footer));
    changed.map_or(Ok(footer), |what| Err(damage(what)))
}

/// The metadata in `footer`, whose sizes and places fit a file of `length` bytes.
fn decode_footer(footer: &[u8], length: u64) -> io::Result<ParquetMetaData> {
    let encoded = &footer[..footer.len() - TAIL_BYTES];
    contained(|| {
        let metadata = ParquetMetaDataReader::decode_metadata(encoded).map_err(io_error)?;
        let rows: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
        if let Some(rows) = rows.iter().find(|rows| !(0..=GROUP_ROWS as i64).contains(*rows)) {
            return Err(damage(format!("a row group of {rows} rows, and {GROUP_ROWS} is the maximum")));
        }
        let (all, sum) = (metadata.file_metadata().num_rows(), rows.iter().sum::<i64>());
        if all != sum {
            return Err(damage(format!("{all} rows, and its row groups have {sum}")));
        }
        let chunks = metadata.row_groups().iter().flat_map(|group| group.columns());
        chunks.into_iter().try_for_each(|chunk| check_chunk(chunk, length))?;
        Ok(metadata)
    })
}

fn check_chunk(chunk: &ColumnChunkMetaData, length: u64) -> io::Result<()> {
    if chunk.compression() != Compression::UNCOMPRESSED {
        return Err(damage("a compressed column, and latlab compresses none"));
    }
    let (start, bytes) = chunk.byte_range();
    if bytes > CHUNK_MAX_BYTES || start.checked_add(bytes).is_none_or(|end| end > length) {
        return Err(damage(format!("a column chunk of {bytes} bytes at byte {start} of {length}")));
    }
    Ok(())
}

fn read_bytes(file: &File, start: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// The result of `decode`; a panic in it is an error, and prints nothing. Sound files cause none; damaged ones without
/// checksums do.
pub(super) fn contained<T>(decode: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    thread_local!(static CONTAINED: Cell<bool> = const { Cell::new(false) });
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !CONTAINED.get() {
                report(info);
            }
        }));
    });
    let outer = CONTAINED.replace(true);
    let decoded = panic::catch_unwind(AssertUnwindSafe(decode));
    CONTAINED.set(outer);
    decoded.unwrap_or_else(|_| Err(damage("its content cannot be decoded")))
}

/// An error of kind [`io::ErrorKind::InvalidData`], which stands for damage.
pub(super) fn damage(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// The error of the system that the library passes on, else damage.
pub(crate) fn io_error(error: ParquetError) -> io::Error {
    let text = error.to_string();
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(refused) => *refused,
            Err(other) => io::Error::other(other),
        },
        _ => damage(text.strip_prefix("Parquet error: ").unwrap_or(&text)),
    }
}

/// The error of a file at `path`. An end before the due bytes is damage, as is invalid data.
pub(super) fn read_error(path: &Path) -> impl Fn(io::Error) -> RecordingError {
    move |error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => RecordingError::damaged(path, error),
        _ => RecordingError::unreadable("read", path)(error),
    }
}
