//! Writes a table: row group after row group, one column at a time, so that memory stays small.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;
use std::{iter, slice};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::{ColumnCloseResult, get_column_writer, get_typed_column_writer_mut};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type};

use super::column::{Column, ColumnSpec, ColumnType, IntColumn, UniformBatch, WordColumn};
use super::file::io_error;
use super::recorded::{GROUP_ROWS, RecordedTable};
use crate::manifest::FormatVersion;

/// A table that is being written.
pub struct TableWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<ColumnSpec>,
    /// The last columns of one word.
    of_one_word: Vec<WordChunk>,
}

/// An encoded column that has one word in all of its rows. Most columns of words do, in one row group after the other: to
/// encode them once takes a tenth of the time of a row group.
struct WordChunk {
    column: usize,
    rows: usize,
    word: String,
    bytes: Bytes,
    close: ColumnCloseResult,
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins a table of `columns` in `target`, whose rows are called `row`, with `marks` in its metadata.
    ///
    /// # Errors
    /// If the target refuses bytes; so for all methods.
    pub fn new(target: W, row: &str, columns: Vec<ColumnSpec>, marks: &[(&str, &str)]) -> io::Result<TableWriter<W>> {
        let begun = || -> ParquetResult<_> {
            let fields = columns.iter().map(|column| column.field().map(Arc::new)).collect::<Result<_, _>>()?;
            let schema = Arc::new(Type::group_type_builder(row).with_fields(fields).build()?);
            SerializedFileWriter::new(target, schema, Arc::new(properties(&columns, marks)))
        };
        let file = begun().map_err(io_error)?;
        Ok(TableWriter { file, columns, of_one_word: Vec::new() })
    }

    /// Begins `table` of the run `run_id`, whose columns are `columns`.
    pub(crate) fn of_run(target: W, run_id: &str, table: RecordedTable, columns: Vec<ColumnSpec>) -> io::Result<Self> {
        let FormatVersion { major, minor } = FormatVersion::CURRENT;
        let format = format!("{major}.{minor}");
        TableWriter::new(target, table.row(), columns, &[("latlab.format", &format), ("latlab.run_id", run_id)])
    }

    /// Writes `batch` as a row group.
    pub(crate) fn write(&mut self, batch: &UniformBatch) -> io::Result<()> {
        let mut group = self.group(batch.rows)?;
        batch.columns.iter().try_for_each(|column| group.write(column))?;
        group.close()
    }

    /// Begins a row group of `rows` rows; its columns follow in the order of the table.
    pub fn group(&mut self, rows: usize) -> io::Result<GroupWriter<'_, W>> {
        let (schema, properties) = (self.file.schema_descr().clone(), Arc::clone(self.file.properties()));
        let group = self.file.next_row_group().map_err(io_error)?;
        let (columns, of_one_word) = (self.columns.iter().enumerate(), &mut self.of_one_word);
        Ok(GroupWriter { group, rows, columns, of_one_word, schema, properties })
    }

    /// Writes the footer and returns the target.
    pub fn finish(self) -> io::Result<W> {
        self.file.into_inner().map_err(io_error)
    }
}

fn properties(columns: &[ColumnSpec], marks: &[(&str, &str)]) -> WriterProperties {
    let marks = marks.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("latlab {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(marks.collect()))
        // Packed deltas of stamps have the entropy of random numbers: compression gains nothing (docs/recording.md).
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // One page per chunk: no reader seeks inside a row group.
        .set_data_page_row_count_limit(GROUP_ROWS)
        .set_data_page_size_limit(GROUP_ROWS * 8)
        .set_offset_index_disabled(true);
    for column in columns {
        // A name may have points.
        let path = ColumnPath::new(vec![column.name.to_string()]);
        properties = match column.column_type {
            ColumnType::Word => properties.set_column_dictionary_enabled(path, true),
            ColumnType::Flag => properties.set_column_encoding(path, Encoding::RLE),
            ColumnType::F64 => properties.set_column_encoding(path, Encoding::PLAIN),
            _ => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        };
    }
    properties.build()
}

/// A row group that is being written.
pub struct GroupWriter<'a, W: Write + Send> {
    group: SerializedRowGroupWriter<'a, W>,
    rows: usize,
    /// The columns that are still to be written.
    columns: iter::Enumerate<slice::Iter<'a, ColumnSpec>>,
    of_one_word: &'a mut Vec<WordChunk>,
    schema: SchemaDescriptor,
    properties: WriterPropertiesPtr,
}

impl<W: Write + Send> GroupWriter<'_, W> {
    /// Writes the next column.
    ///
    /// # Errors
    /// As [`TableWriter::new`].
    pub fn write(&mut self, values: &Column<'_>) -> io::Result<()> {
        self.encode(values).map_err(io_error)
    }

    fn encode(&mut self, values: &Column<'_>) -> ParquetResult<()> {
        let too_many = || ParquetError::General("more columns than the table has".into());
        let (at, column) = self.columns.next().ok_or_else(too_many)?;
        if let (ColumnType::Word, Column::Words(WordColumn::All(word)), false) =
            (column.column_type, values, column.nullable)
        {
            return self.append_word(at, word);
        }
        let mut writer = self.group.next_column()?.ok_or_else(too_many)?;
        let (ints, words) = match values {
            Column::Ints(ints) => (Cow::Borrowed(ints), Vec::new()),
            Column::Words(words) => (Cow::Owned(IntColumn::default()), byte_arrays(words, self.rows)),
        };
        let present = ints.present.as_deref();
        let levels: Option<Vec<i16>> = column.nullable.then(|| match present {
            None => vec![1; self.rows],
            Some(present) => present.iter().map(|present| i16::from(*present)).collect(),
        });
        let levels = levels.as_deref();
        let known = match present {
            None => Cow::Borrowed(&ints.values[..]),
            Some(present) => {
                let known = ints.values.iter().zip(present).filter(|(_, present)| **present);
                Cow::Owned(known.map(|(value, _)| *value).collect())
            }
        };
        match column.column_type {
            ColumnType::I64 | ColumnType::U64 => writer.typed::<Int64Type>().write_batch(&known, levels, None)?,
            ColumnType::I32 | ColumnType::U32 | ColumnType::U16 => {
                // Unsigned values keep their bits.
                let narrow: Vec<i32> = known.iter().map(|value| *value as i32).collect();
                writer.typed::<Int32Type>().write_batch(&narrow, levels, None)?
            }
            ColumnType::Flag => {
                let flags: Vec<bool> = known.iter().map(|value| *value != 0).collect();
                writer.typed::<BoolType>().write_batch(&flags, levels, None)?
            }
            ColumnType::F64 => {
                let numbers: Vec<f64> = known.iter().map(|bits| f64::from_bits(*bits as u64)).collect();
                writer.typed::<DoubleType>().write_batch(&numbers, levels, None)?
            }
            ColumnType::Word => writer.typed::<ByteArrayType>().write_batch(&words, levels, None)?,
        };
        writer.close()
    }

    /// Writes the column `at`, whose rows all have this `word`.
    fn append_word(&mut self, at: usize, word: &str) -> ParquetResult<()> {
        let rows = self.rows;
        let is_same = |chunk: &&WordChunk| chunk.column == at && chunk.rows == rows && chunk.word == word;
        if let Some(chunk) = self.of_one_word.iter().find(is_same) {
            return self.group.append_column(&chunk.bytes, chunk.close.clone());
        }
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut sink));
        let mut writer = get_column_writer(self.schema.column(at), Arc::clone(&self.properties), pages);
        let words = vec![ByteArray::from(word); rows];
        get_typed_column_writer_mut::<ByteArrayType>(&mut writer).write_batch(&words, None, None)?;
        let close = writer.close()?;
        let bytes = Bytes::from(sink.into_inner()?);
        self.group.append_column(&bytes, close.clone())?;
        self.of_one_word.retain(|chunk| chunk.column != at);
        self.of_one_word.push(WordChunk { column: at, rows, word: word.to_owned(), bytes, close });
        Ok(())
    }

    /// Ends the row group, whose columns are all written.
    ///
    /// # Errors
    /// As [`TableWriter::new`].
    pub fn close(self) -> io::Result<()> {
        self.group.close().map(drop).map_err(io_error)
    }
}

fn byte_arrays(words: &WordColumn<&str>, rows: usize) -> Vec<ByteArray> {
    // A clone shares its bytes; converting a word allocates.
    let mut converted: Vec<(&str, ByteArray)> = Vec::new();
    let mut of_word = |word| match converted.iter().find(|(known, _)| *known == word) {
        Some((_, bytes)) => bytes.clone(),
        None => {
            converted.push((word, ByteArray::from(word)));
            ByteArray::from(word)
        }
    };
    match words {
        WordColumn::All(word) => vec![of_word(word); rows],
        WordColumn::Each(words) => words.iter().map(|word| of_word(word)).collect(),
    }
}
