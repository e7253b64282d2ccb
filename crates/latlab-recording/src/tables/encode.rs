//! Writes a table: row group after row group, one column at a time, so that memory stays small.

use std::io::Write;
use std::slice;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};

use super::GROUP_ROWS;
use super::column::{ColumnSpec, ColumnType, IntColumn, WordColumn, schema};
use crate::recording::manifest::FormatVersion;

/// A table that is being written.
pub(crate) struct TableWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<ColumnSpec>,
    buffers: Buffers,
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins a table of the run `run_id` in `target`, whose rows are called `row`.
    pub(super) fn new(target: W, run_id: &str, row: &str, columns: &[ColumnSpec]) -> Result<TableWriter<W>> {
        let file = SerializedFileWriter::new(target, schema(row, columns)?, Arc::new(properties(run_id, columns)))?;
        Ok(TableWriter { file, columns: columns.to_vec(), buffers: Buffers::default() })
    }

    /// Begins a row group of `rows` rows; its columns follow in the order of the table.
    pub(crate) fn group(&mut self, rows: usize) -> Result<GroupWriter<'_, W>> {
        let group = self.file.next_row_group()?;
        Ok(GroupWriter { group, rows, columns: self.columns.iter(), buffers: &mut self.buffers })
    }

    /// Writes the footer and returns the target.
    pub(crate) fn finish(self) -> Result<W> {
        self.file.into_inner()
    }
}

fn properties(run_id: &str, columns: &[ColumnSpec]) -> WriterProperties {
    let FormatVersion { major, minor } = FormatVersion::CURRENT;
    let entry = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("latlab {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![
            entry("latlab.format", format!("{major}.{minor}")),
            entry("latlab.run_id", run_id.to_owned()),
        ]))
        // Packed deltas of stamps have the entropy of random numbers: compression gains nothing (docs/recording.md).
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // One page per chunk: no reader seeks inside a row group.
        .set_data_page_row_count_limit(GROUP_ROWS)
        .set_data_page_size_limit(GROUP_ROWS * 8)
        .set_offset_index_disabled(true);
    for column in columns {
        let path = column.name.into();
        properties = match column.column_type {
            ColumnType::Word => properties.set_column_dictionary_enabled(path, true),
            ColumnType::Flag => properties.set_column_encoding(path, Encoding::RLE),
            _ => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        };
    }
    properties.build()
}

/// A row group that is being written.
pub(crate) struct GroupWriter<'a, W: Write + Send> {
    group: SerializedRowGroupWriter<'a, W>,
    rows: usize,
    /// The columns that are still to be written.
    columns: slice::Iter<'a, ColumnSpec>,
    buffers: &'a mut Buffers,
}

/// Values on their way to the encoder, allocated once per table.
#[derive(Default)]
struct Buffers {
    wide: Vec<i64>,
    narrow: Vec<i32>,
    flags: Vec<bool>,
    words: Vec<ByteArray>,
    levels: Vec<i16>,
}

impl<W: Write + Send> GroupWriter<'_, W> {
    /// Writes the next column, of words.
    pub(crate) fn words<T: Copy>(&mut self, words: &WordColumn<T>, text: impl Fn(T) -> &'static str) -> Result<()> {
        let (_, mut writer) = next_column(&mut self.group, &mut self.columns)?;
        let bytes = &mut self.buffers.words;
        bytes.clear();
        match words {
            WordColumn::All(word) => bytes.resize(self.rows, ByteArray::from(text(*word))),
            WordColumn::Each(words) => {
                // A clone shares its bytes; converting a word allocates.
                let mut converted: Vec<(&str, ByteArray)> = Vec::new();
                for word in words {
                    let text = text(*word);
                    let index = converted.iter().position(|(known, _)| *known == text).unwrap_or_else(|| {
                        converted.push((text, ByteArray::from(text)));
                        converted.len() - 1
                    });
                    bytes.push(converted[index].1.clone());
                }
            }
        }
        writer.typed::<ByteArrayType>().write_batch(bytes, None, None)?;
        writer.close()
    }

    /// Writes the next column, of numbers.
    pub(crate) fn ints(&mut self, ints: &IntColumn) -> Result<()> {
        let (column, mut writer) = next_column(&mut self.group, &mut self.columns)?;
        let Buffers { wide, narrow, flags, levels, .. } = &mut *self.buffers;
        let levels = column.nullable.then(|| definition_levels(levels, ints));
        match column.column_type {
            ColumnType::I64 | ColumnType::U64 => {
                pack(wide, ints, |value| value);
                writer.typed::<Int64Type>().write_batch(wide, levels, None)?;
            }
            ColumnType::I32 | ColumnType::U32 | ColumnType::U16 => {
                // Unsigned values keep their bits.
                pack(narrow, ints, |value| value as i32);
                writer.typed::<Int32Type>().write_batch(narrow, levels, None)?;
            }
            ColumnType::Flag => {
                pack(flags, ints, |value| value != 0);
                writer.typed::<BoolType>().write_batch(flags, levels, None)?;
            }
            ColumnType::Word => return Err(ParquetError::General(format!("`{}` holds words", column.name))),
        }
        writer.close()
    }

    /// Writes the next `N` columns, of numbers, from rows.
    pub(super) fn int_rows<const N: usize>(&mut self, rows: impl Iterator<Item = [Option<i64>; N]>) -> Result<()> {
        IntColumn::transposed(rows).iter().try_for_each(|column| self.ints(column))
    }

    pub(crate) fn close(self) -> Result<()> {
        self.group.close().map(drop)
    }
}

fn next_column<'a, 'c, W: Write + Send>(
    group: &'a mut SerializedRowGroupWriter<'_, W>,
    columns: &mut slice::Iter<'c, ColumnSpec>,
) -> Result<(&'c ColumnSpec, SerializedColumnWriter<'a>)> {
    let too_many = || ParquetError::General("more columns than the table has".into());
    Ok((columns.next().ok_or_else(too_many)?, group.next_column()?.ok_or_else(too_many)?))
}

/// Definition levels: 1 where the row holds a value, 0 where it holds null.
fn definition_levels<'a>(levels: &'a mut Vec<i16>, ints: &IntColumn) -> &'a [i16] {
    levels.clear();
    match &ints.present {
        None => levels.resize(ints.values.len(), 1),
        Some(present) => levels.extend(present.iter().map(|present| i16::from(*present))),
    }
    levels
}

/// The values that are not null.
fn pack<T>(packed: &mut Vec<T>, ints: &IntColumn, convert: impl Fn(i64) -> T) {
    packed.clear();
    match &ints.present {
        None => packed.extend(ints.values.iter().map(|value| convert(*value))),
        Some(present) => {
            let values = ints.values.iter().zip(present).filter(|(_, present)| **present);
            packed.extend(values.map(|(value, _)| convert(*value)));
        }
    }
}
