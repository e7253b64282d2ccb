//! A Parquet file of a recording. What is read from it is compared with the checksums of the manifest before it is decoded,
//! and a panic of the Parquet library is an error.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use bytes::{Buf, Bytes};
use latlab_sys::errno;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, FooterTail, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::GROUP_ROWS;
use super::thrift::is_whole_struct;
use crate::platform::Directory;
use crate::recording::checksums::{TableChecksums, crc32c_text, mismatch};
use crate::recording::error::RecordingError;

/// Length and magic number at the end of a Parquet file.
const TAIL_BYTES: usize = 8;
/// The longest footer: that of a billion rows has 20 MB.
const FOOTER_MAX_BYTES: usize = 32 << 20;
/// The longest column chunk; one of 131,072 numbers has at most 1.2 MB.
const CHUNK_MAX_BYTES: u64 = 16 << 20;
/// How latlab's own files begin their `created_by`.
const OWN_WRITER: &str = "latlab ";

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
        let footer = read_footer(&file, length, checksums).map_err(|error| TableFault::from(error).of_file(&path))?;
        let metadata = decode_footer(&footer).map_err(|what| RecordingError::damaged(&path, what))?;
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

    /// The values of a column of a row group.
    ///
    /// # Errors
    /// What is damaged, or that of the system.
    pub(super) fn column(&self, group: usize, column: usize) -> Result<ColumnReader, TableFault> {
        let description = self.metadata.row_group(group).column(column).column_descr_ptr();
        Ok(get_column_reader(description, Box::new(self.pages(group, column)?)))
    }

    /// The pages of a column of a row group.
    ///
    /// # Errors
    /// What is damaged, or that of the system.
    pub(super) fn pages(&self, group: usize, column: usize) -> Result<TablePages, TableFault> {
        let rows = self.group_rows(group);
        let metadata = self.metadata.row_group(group).column(column);
        let chunk = self.chunk(metadata)?;
        if let Some(checksums) = &self.checksums {
            let expected = checksums.of_chunk(group, column).ok_or("the manifest has no checksum of it")?;
            if let Some(what) = mismatch("its bytes were changed", &chunk.bytes, expected) {
                return Err(what.into());
            }
        }
        let reader = SerializedPageReader::new(Arc::new(chunk), metadata, rows, None);
        Ok(TablePages { reader: reader.map_err(|error| cause_of(&error))?, rows })
    }

    fn chunk(&self, metadata: &ColumnChunkMetaData) -> Result<TableChunk, TableFault> {
        let (start, length) = metadata.byte_range();
        if length > CHUNK_MAX_BYTES || start.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(format!("a column chunk of {length} bytes at byte {start} of {}", self.length).into());
        }
        let bytes = read_bytes(&self.file, start, length as usize)?;
        Ok(TableChunk { start, file_bytes: self.length, bytes: bytes.into() })
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
        self.digest().map_err(|fault| fault.of_file(&self.path))
    }

    fn digest(&self) -> Result<TableChecksums, TableFault> {
        let footer = read_footer(&self.file, self.length, None)?;
        let groups = self.metadata.row_groups().iter().map(|group| {
            let chunks = group.columns().iter().map(|column| Ok(crc32c_text(&self.chunk(column)?.bytes)));
            Ok(chunks.collect::<Result<Vec<_>, TableFault>>()?.join(" "))
        });
        Ok(TableChecksums {
            bytes: self.length,
            footer: crc32c_text(&footer),
            row_groups: groups.collect::<Result<_, TableFault>>()?,
        })
    }
}

/// Why a part of a table cannot be read.
#[derive(Debug)]
pub(super) enum TableFault {
    Damage(String),
    /// The system refused to read it, or has too little memory for it.
    Refused(io::Error),
}

impl TableFault {
    /// The error of the file at `path`.
    pub(super) fn of_file(self, path: &Path) -> RecordingError {
        match self {
            TableFault::Damage(what) => RecordingError::damaged(path, what),
            TableFault::Refused(error) => RecordingError::unreadable("read", path)(error),
        }
    }
}

impl From<String> for TableFault {
    fn from(what: String) -> TableFault {
        TableFault::Damage(what)
    }
}

impl From<&str> for TableFault {
    fn from(what: &str) -> TableFault {
        TableFault::Damage(what.into())
    }
}

/// An end before the due bytes is damage, as is invalid data.
impl From<io::Error> for TableFault {
    fn from(error: io::Error) -> TableFault {
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => TableFault::Damage(error.to_string()),
            _ => TableFault::Refused(error),
        }
    }
}

/// The footer with its length and magic number, compared with `checksums`; damage is invalid data.
fn read_footer(file: &File, length: u64, checksums: Option<&TableChecksums>) -> io::Result<Vec<u8>> {
    let damaged = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    match checksums.map(|checksums| checksums.bytes) {
        Some(bytes) if bytes != length => return damaged(format!("{length} bytes, and {bytes} were written")),
        _ => (),
    }
    let Some(before_tail) = length.checked_sub(TAIL_BYTES as u64) else { return damaged(format!("{length} bytes")) };
    let tail = match FooterTail::try_from(&read_bytes(file, before_tail, TAIL_BYTES)?[..]) {
        Ok(tail) => tail,
        Err(error) => return damaged(cause_of(&error)),
    };
    let footer_bytes = tail.metadata_length() + TAIL_BYTES;
    if tail.is_encrypted_footer() || footer_bytes > FOOTER_MAX_BYTES || footer_bytes as u64 > length {
        return damaged(format!("a footer of {footer_bytes} bytes in a file of {length}"));
    }
    let footer = read_bytes(file, length - footer_bytes as u64, footer_bytes)?;
    let expected = checksums.map(|checksums| &checksums.footer);
    match expected.and_then(|expected| mismatch("its footer was changed", &footer, expected)) {
        Some(what) => damaged(what),
        None => Ok(footer),
    }
}

fn decode_footer(footer: &[u8]) -> Result<ParquetMetaData, String> {
    let encoded = &footer[..footer.len() - TAIL_BYTES];
    if !is_whole_struct(encoded) {
        return Err("its footer is not a whole structure".into());
    }
    let metadata = contained(|| ParquetMetaDataReader::decode_metadata(encoded).map_err(|error| cause_of(&error)))?;
    let file = metadata.file_metadata();
    let rows: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
    if let Some(rows) = rows.iter().find(|rows| !(0..=GROUP_ROWS as i64).contains(*rows)) {
        return Err(format!("a row group of {rows} rows, and {GROUP_ROWS} is the maximum"));
    }
    if rows.iter().sum::<i64>() != file.num_rows() {
        return Err(format!("{} rows, and its row groups have {}", file.num_rows(), rows.iter().sum::<i64>()));
    }
    let is_own = file.created_by().is_some_and(|writer| writer.starts_with(OWN_WRITER));
    let mut chunks = metadata.row_groups().iter().flat_map(|group| group.columns());
    let inflated =
        chunks.clone().map(ColumnChunkMetaData::uncompressed_size).find(|bytes| *bytes > CHUNK_MAX_BYTES as i64);
    if let Some(bytes) = inflated {
        return Err(format!(
            "a column chunk of {bytes} bytes without compression, and {CHUNK_MAX_BYTES} is the maximum"
        ));
    }
    if is_own && chunks.any(|chunk| chunk.compression() != Compression::UNCOMPRESSED) {
        return Err("a compressed column, and latlab compresses none".into());
    }
    Ok(metadata)
}

fn read_bytes(file: &File, start: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
    bytes.resize(length, 0);
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// The bytes of one column chunk, at their place in the file.
struct TableChunk {
    start: u64,
    file_bytes: u64,
    bytes: Bytes,
}

impl TableChunk {
    fn from(&self, start: u64) -> ParquetResult<Bytes> {
        let skipped = start.checked_sub(self.start).and_then(|skipped| usize::try_from(skipped).ok());
        let skipped = skipped.filter(|skipped| *skipped <= self.bytes.len());
        let outside = || ParquetError::EOF(format!("byte {start} is outside of its column chunk"));
        Ok(self.bytes.slice(skipped.ok_or_else(outside)?..))
    }
}

impl Length for TableChunk {
    fn len(&self) -> u64 {
        self.file_bytes
    }
}

impl ChunkReader for TableChunk {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF(format!("a page of {length} bytes in {} of its column chunk", bytes.len())));
        }
        Ok(bytes.slice(..length))
    }
}

/// The pages of a column chunk, each with at most as many values as its row group has rows: the library allocates by that
/// number.
pub(super) struct TablePages {
    reader: SerializedPageReader<TableChunk>,
    rows: usize,
}

impl Iterator for TablePages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for TablePages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        match self.reader.get_next_page()? {
            Some(page) if page.num_values() as usize > self.rows => Err(ParquetError::General(format!(
                "a page of {} values in a row group of {} rows",
                page.num_values(),
                self.rows
            ))),
            page => Ok(page),
        }
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.reader.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.reader.skip_next_page()
    }
}

/// The result of `decode`; a panic in it is an error, and prints nothing. Sound files cause none; damaged ones without
/// checksums do.
pub(super) fn contained<T, E: From<&'static str>>(decode: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
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
    decoded.unwrap_or_else(|_| Err("its content cannot be decoded".into()))
}

pub(super) fn cause_of(error: &ParquetError) -> String {
    if let ParquetError::External(source) = error
        && let Some(refused) = source.downcast_ref::<io::Error>()
    {
        return errno::explain(refused);
    }
    let text = error.to_string();
    text.strip_prefix("Parquet error: ").unwrap_or(&text).to_owned()
}
