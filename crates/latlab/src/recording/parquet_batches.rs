//! `probes.parquet`, read: one batch per row group, only the columns asked for, and of those only what
//! the chunk statistics leave open.

use std::fs::File;
use std::path::{Path, PathBuf};

use latlab_sys::errno::explain;
use parquet::basic::Type as PhysicalType;
use parquet::column::reader::ColumnReader;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::statistics::Statistics;

use super::batch::{IntColumn, ProbeBatch, WordColumn};
use super::columns::{ColumnShape, ColumnType, ProbeColumn};
use super::error::RecordingError;
use super::word_pages;
use crate::probe::{Fate, Phase};

/// A `probes.parquet`, open.
pub(crate) struct ProbesFile {
    path: PathBuf,
    file: SerializedFileReader<File>,
}

impl ProbesFile {
    /// Opens the file at `path` and checks its schema.
    pub(crate) fn open(path: &Path) -> Result<ProbesFile, RecordingError> {
        let probes = ProbesFile { path: path.to_owned(), file: open_file(path)? };
        for column in ProbeColumn::ALL {
            probes.leaf(column)?;
        }
        Ok(probes)
    }

    /// Rows in the file.
    pub(crate) fn rows(&self) -> u64 {
        rows_of(&self.file)
    }

    fn groups(&self) -> usize {
        self.file.num_row_groups()
    }

    fn leaf(&self, column: ProbeColumn) -> Result<usize, RecordingError> {
        let leaf = leaf_of(&self.file, column.shape()).map_err(|what| self.damaged(what))?;
        leaf.ok_or_else(|| self.damaged(format!("it has no column `{}`", column.name())))
    }

    /// The row group `group` as a batch of `columns`.
    fn batch(&self, group: usize, columns: &[ProbeColumn]) -> Result<ProbeBatch, RecordingError> {
        let reader = self.file.get_row_group(group).map_err(|error| self.damaged(words_of(error)))?;
        let rows = usize::try_from(reader.metadata().num_rows()).unwrap_or(0);
        let mut batch = ProbeBatch { rows, ..ProbeBatch::default() };
        for column in columns {
            let leaf = self.leaf(*column)?;
            let chunk = Chunk { group: reader.as_ref(), leaf, rows };
            let named = |what: String| self.damaged(format!("column `{}`, row group {group}: {what}", column.name()));
            match column {
                ProbeColumn::Phase => batch.phase = chunk.words(phase_of).map_err(named)?,
                ProbeColumn::Fate => batch.fate = chunk.words(fate_of).map_err(named)?,
                ints => {
                    if let Some(place) = batch.ints_mut(*ints) {
                        *place = chunk.ints(ints.column_type()).map_err(named)?;
                    }
                }
            }
        }
        Ok(batch)
    }

    fn damaged(&self, what: String) -> RecordingError {
        RecordingError::damaged(&self.path, what)
    }
}

/// A Parquet file of a recording, open.
pub(crate) fn open_file(path: &Path) -> Result<SerializedFileReader<File>, RecordingError> {
    let file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => RecordingError::damaged(path, "the file is missing"),
        _ => RecordingError::refused("open", path)(error),
    })?;
    match file.metadata().map_err(RecordingError::refused("open", path))? {
        metadata if metadata.is_dir() => return Err(RecordingError::damaged(path, "a directory stands in its place")),
        metadata if metadata.len() == 0 => return Err(RecordingError::damaged(path, "0 bytes")),
        _ => (),
    }
    SerializedFileReader::new(file).map_err(|error| RecordingError::damaged(path, words_of(error)))
}

/// Rows in `file`.
pub(crate) fn rows_of(file: &SerializedFileReader<File>) -> u64 {
    u64::try_from(file.metadata().file_metadata().num_rows()).unwrap_or(0)
}

/// Which of the file's columns is `column`: found by name, since later versions may add others. None where it has no
/// such column; what is wrong where that column holds something else.
pub(crate) fn leaf_of(file: &SerializedFileReader<File>, column: ColumnShape) -> Result<Option<usize>, String> {
    let schema = file.metadata().file_metadata().schema_descr();
    let Some(leaf) = schema.columns().iter().position(|leaf| leaf.path().string() == column.name) else {
        return Ok(None);
    };
    let descriptor = schema.column(leaf);
    let expected = match column.column_type {
        ColumnType::Wide { .. } => PhysicalType::INT64,
        ColumnType::Narrow { .. } => PhysicalType::INT32,
        ColumnType::Word => PhysicalType::BYTE_ARRAY,
        ColumnType::Flag => PhysicalType::BOOLEAN,
    };
    let fits = descriptor.physical_type() == expected
        && descriptor.max_rep_level() == 0
        && descriptor.max_def_level() == i16::from(column.nullable);
    if fits { Ok(Some(leaf)) } else { Err(format!("its column `{}` has another type", column.name)) }
}

/// The batches of a file, in order.
pub(crate) struct ParquetBatches {
    pub(crate) file: ProbesFile,
    pub(crate) columns: Vec<ProbeColumn>,
    pub(crate) next: usize,
}

impl Iterator for ParquetBatches {
    type Item = Result<ProbeBatch, RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.next;
        self.next += 1;
        (group < self.file.groups()).then(|| self.file.batch(group, &self.columns))
    }
}

/// One column of one row group.
pub(crate) struct Chunk<'a> {
    pub(crate) group: &'a dyn RowGroupReader,
    pub(crate) leaf: usize,
    pub(crate) rows: usize,
}

impl Chunk<'_> {
    fn metadata(&self) -> &ColumnChunkMetaData {
        self.group.metadata().column(self.leaf)
    }

    /// Its words, each understood by `word`; or what is wrong with them.
    pub(crate) fn words<T: Copy>(&self, word: impl Fn(&str) -> Option<T>) -> Result<WordColumn<T>, String> {
        if let Some(only) = self.metadata().statistics().and_then(constant_word) {
            return word(only).map(WordColumn::All).ok_or_else(|| format!("the unknown word `{only}`"));
        }
        let mut pages = self.group.get_column_page_reader(self.leaf).map_err(words_of)?;
        word_pages::read(pages.as_mut(), self.rows, word).map(WordColumn::Each)
    }

    /// Its numbers; or what is wrong with them.
    pub(crate) fn ints(&self, column_type: ColumnType) -> Result<IntColumn, String> {
        let statistics = self.metadata().statistics();
        if statistics.and_then(Statistics::null_count_opt) == Some(self.rows as u64) {
            return Ok(IntColumn::nulls(self.rows));
        }
        if let Some(same) = statistics.and_then(constant_int) {
            return Ok(IntColumn { values: vec![widened(same, column_type); self.rows], present: None });
        }
        let mut levels = Vec::new();
        let values = self.decode(column_type, &mut levels)?;
        if values.len() == self.rows {
            return Ok(IntColumn { values, present: None });
        }
        if levels.len() != self.rows {
            return Err(format!("{} values for {} rows", levels.len(), self.rows));
        }
        let mut values = values.into_iter();
        Ok(levels.iter().map(|level| if *level == 0 { None } else { values.next() }).collect())
    }

    /// The values that are there, packed, and the definition levels of the rows.
    fn decode(&self, column_type: ColumnType, levels: &mut Vec<i16>) -> Result<Vec<i64>, String> {
        let rows = self.rows;
        match self.group.get_column_reader(self.leaf).map_err(words_of)? {
            ColumnReader::Int64ColumnReader(mut reader) => {
                let mut values = Vec::with_capacity(rows);
                reader.read_records(rows, Some(levels), None, &mut values).map_err(words_of)?;
                Ok(values)
            }
            ColumnReader::Int32ColumnReader(mut reader) => {
                let mut values = Vec::with_capacity(rows);
                reader.read_records(rows, Some(levels), None, &mut values).map_err(words_of)?;
                Ok(values.into_iter().map(|value| widened(i64::from(value), column_type)).collect())
            }
            ColumnReader::BoolColumnReader(mut reader) => {
                let mut values = Vec::with_capacity(rows);
                reader.read_records(rows, Some(levels), None, &mut values).map_err(words_of)?;
                Ok(values.into_iter().map(i64::from).collect())
            }
            _ => Err("not a number".into()),
        }
    }
}

/// An unsigned value of 32 bits came as a signed one.
fn widened(value: i64, column_type: ColumnType) -> i64 {
    match column_type {
        ColumnType::Narrow { signed: false, .. } => i64::from(value as i32 as u32),
        _ => value,
    }
}

/// The word that every row holds, if the statistics know it.
fn constant_word(statistics: &Statistics) -> Option<&str> {
    let Statistics::ByteArray(words) = statistics else { return None };
    let exact = words.min_is_exact() && words.max_is_exact() && words.null_count_opt() == Some(0);
    let (min, max) = (words.min_opt()?, words.max_opt()?);
    if exact && min.data() == max.data() { min.as_utf8().ok() } else { None }
}

/// The number that every row holds, if the statistics know it.
fn constant_int(statistics: &Statistics) -> Option<i64> {
    if statistics.null_count_opt() != Some(0) {
        return None;
    }
    let (min, max) = match statistics {
        Statistics::Int64(ints) => (*ints.min_opt()?, *ints.max_opt()?),
        Statistics::Int32(ints) => (i64::from(*ints.min_opt()?), i64::from(*ints.max_opt()?)),
        Statistics::Boolean(flags) => (i64::from(*flags.min_opt()?), i64::from(*flags.max_opt()?)),
        _ => return None,
    };
    (min == max).then_some(min)
}

pub(crate) fn phase_of(word: &str) -> Option<Phase> {
    [Phase::Warmup, Phase::Measure].into_iter().find(|phase| phase.word() == word)
}

fn fate_of(word: &str) -> Option<Fate> {
    Fate::ALL.into_iter().find(|fate| fate.word() == word)
}

pub(crate) fn words_of(error: parquet::errors::ParquetError) -> String {
    if let parquet::errors::ParquetError::External(source) = &error
        && let Some(refused) = source.downcast_ref::<std::io::Error>()
    {
        return explain(refused);
    }
    let text = error.to_string();
    text.strip_prefix("Parquet error: ").unwrap_or(&text).to_owned()
}
