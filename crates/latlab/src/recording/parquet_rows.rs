//! `probes.parquet`, written: one row group per block, one column at a time, so that memory stays small.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};

use super::batch::{IntColumn, WordColumn};
use super::block::ProbeBlock;
use super::columns::{ColumnShape, ColumnType, ProbeColumn, schema};
use super::join::BLOCK_PROBES;
use super::manifest::FormatVersion;

/// The file's name in a recording's directory.
pub(crate) const PROBES: &str = "probes.parquet";

/// A `probes.parquet` in the making.
pub(crate) struct ProbesWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    scratch: Scratch,
}

/// Buffers that live as long as the writer.
#[derive(Default)]
pub(crate) struct Scratch {
    wide: Vec<i64>,
    narrow: Vec<i32>,
    flags: Vec<bool>,
    words: Vec<ByteArray>,
    levels: Vec<i16>,
}

impl<W: Write + Send> ProbesWriter<W> {
    /// Begins the file of the run `run_id` in `target`.
    pub(crate) fn new(target: W, run_id: &str) -> Result<ProbesWriter<W>> {
        let file = SerializedFileWriter::new(
            target,
            schema()?,
            Arc::new(properties(run_id, &ProbeColumn::ALL.map(ProbeColumn::shape))),
        )?;
        Ok(ProbesWriter { file, scratch: Scratch::default() })
    }

    /// Appends the rows of `block` as a row group.
    pub(crate) fn write(&mut self, block: &ProbeBlock) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for column in ProbeColumn::ALL {
            match column {
                ProbeColumn::Phase => {
                    self.scratch.write_words(&mut group, block.rows(), &block.phases(), |phase| phase.word())?;
                }
                ProbeColumn::Fate => {
                    self.scratch.write_words(&mut group, block.rows(), &block.fates(), |fate| fate.word())?;
                }
                ints => self.scratch.write_ints(&mut group, ints.shape(), &block.ints(ints))?,
            }
        }
        group.close()?;
        Ok(())
    }

    /// Writes the footer and gives the target back.
    pub(crate) fn finish(self) -> Result<W> {
        self.file.into_inner()
    }
}

/// How a file with these columns is written, and by whom.
pub(crate) fn properties(run_id: &str, columns: &[ColumnShape]) -> WriterProperties {
    let FormatVersion { major, minor } = FormatVersion::CURRENT;
    let said = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("latlab {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![
            said("latlab.format", format!("{major}.{minor}")),
            said("latlab.run_id", run_id.to_owned()),
        ]))
        // Packed deltas of stamps are as good as random: a compressor finds nothing (docs/recording.md).
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // One page per chunk: nobody seeks inside a row group.
        .set_data_page_row_count_limit(BLOCK_PROBES)
        .set_data_page_size_limit(BLOCK_PROBES * 8)
        .set_offset_index_disabled(true);
    for column in columns {
        let path = column.name.into();
        properties = match column.column_type {
            ColumnType::Word => properties.set_column_dictionary_enabled(path, true),
            ColumnType::Wide { .. } | ColumnType::Narrow { .. } => {
                properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
            }
            ColumnType::Flag => properties.set_column_encoding(path, Encoding::RLE),
        };
    }
    properties.build()
}

fn next_column<'a, W: Write + Send>(
    group: &'a mut SerializedRowGroupWriter<'_, W>,
) -> Result<SerializedColumnWriter<'a>> {
    group.next_column()?.ok_or_else(|| parquet::errors::ParquetError::General("a column too many".into()))
}

impl Scratch {
    /// Writes the next column, of words.
    pub(crate) fn write_words<W: Write + Send, T: Copy>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        rows: usize,
        words: &WordColumn<T>,
        word: impl Fn(T) -> &'static str,
    ) -> Result<()> {
        self.words.clear();
        match words {
            WordColumn::All(same) => self.words.resize(rows, ByteArray::from(word(*same))),
            WordColumn::Each(each) => {
                // A clone shares its bytes; making one from a word allocates.
                let mut made: Vec<(&str, ByteArray)> = Vec::new();
                for one in each {
                    let text = word(*one);
                    let known = made.iter().position(|(known, _)| *known == text).unwrap_or_else(|| {
                        made.push((text, ByteArray::from(text)));
                        made.len() - 1
                    });
                    self.words.push(made[known].1.clone());
                }
            }
        }
        let mut column = next_column(group)?;
        column.typed::<ByteArrayType>().write_batch(&self.words, None, None)?;
        column.close()
    }

    /// Writes the next column, of numbers.
    pub(crate) fn write_ints<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        column: ColumnShape,
        ints: &IntColumn,
    ) -> Result<()> {
        self.fill_levels(column, ints);
        let levels = column.nullable.then_some(self.levels.as_slice());
        let mut writer = next_column(group)?;
        match column.column_type {
            ColumnType::Wide { .. } => {
                fill(&mut self.wide, ints, |value| value);
                writer.typed::<Int64Type>().write_batch(&self.wide, levels, None)?;
            }
            ColumnType::Narrow { .. } => {
                // Unsigned values keep their bits.
                fill(&mut self.narrow, ints, |value| value as i32);
                writer.typed::<Int32Type>().write_batch(&self.narrow, levels, None)?;
            }
            ColumnType::Flag => {
                fill(&mut self.flags, ints, |value| value != 0);
                writer.typed::<BoolType>().write_batch(&self.flags, levels, None)?;
            }
            ColumnType::Word => (),
        }
        writer.close()
    }

    /// Definition levels: 1 where the row holds a value, 0 where it holds null.
    fn fill_levels(&mut self, column: ColumnShape, ints: &IntColumn) {
        self.levels.clear();
        match &ints.present {
            _ if !column.nullable => (),
            None => self.levels.resize(ints.values.len(), 1),
            Some(present) => self.levels.extend(present.iter().map(|present| i16::from(*present))),
        }
    }
}

/// The values that are there, packed.
fn fill<T>(packed: &mut Vec<T>, ints: &IntColumn, to: impl Fn(i64) -> T) {
    packed.clear();
    match &ints.present {
        None => packed.extend(ints.values.iter().map(|value| to(*value))),
        Some(present) => {
            let there = ints.values.iter().zip(present).filter(|(_, present)| **present);
            packed.extend(there.map(|(value, _)| to(*value)));
        }
    }
}
