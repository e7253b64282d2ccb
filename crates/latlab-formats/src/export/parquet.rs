//! One Parquet file with the rows of all runs. The key columns are dictionary-encoded: a run adds one entry to each, whatever
//! its number of rows.
//!
//! The tables of a recording have a writer of their own, which knows one run and no key columns
//! (`recording/tables/encode.rs`); encodings are the same.

use std::io::{self, Write};
use std::mem;
use std::sync::Arc;

use ::parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::Type;

use super::{ExportBatch, ExportCell, ExportColumn, ExportSchema, ExportType, ExportValues, RowsWriter};

/// The key in the metadata of the file; its value is the version of this form.
pub const EXPORT_KEY: &str = "latlab.export";

/// A row group is written when so many rows wait for it.
const GROUP_ROWS: usize = 1 << 17;

/// Writes rows as Parquet to `W`.
pub struct ParquetRowsWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    schema: ExportSchema,
    /// The keys of the runs whose rows wait, with their numbers of rows.
    runs: Vec<WaitingRun>,
    batches: Vec<ExportBatch>,
    rows: usize,
}

struct WaitingRun {
    keys: Vec<ExportCell>,
    rows: usize,
}

impl<W: Write + Send> ParquetRowsWriter<W> {
    /// Begins a file of `schema`.
    ///
    /// # Errors
    /// If the target refuses bytes.
    pub fn new(target: W, schema: &ExportSchema) -> io::Result<ParquetRowsWriter<W>> {
        let fields = schema.keys.iter().chain(&schema.columns).map(|column| column_field(column).map(Arc::new));
        let begun = fields.collect::<ParquetResult<_>>().and_then(|fields| {
            let root = Type::group_type_builder("row").with_fields(fields).build()?;
            SerializedFileWriter::new(target, Arc::new(root), Arc::new(properties(schema)))
        });
        let file = begun.map_err(as_io)?;
        Ok(ParquetRowsWriter { file, schema: schema.clone(), runs: Vec::new(), batches: Vec::new(), rows: 0 })
    }

    /// Writes the rows that wait as a row group.
    fn write_group(&mut self) -> ParquetResult<()> {
        let (batches, rows) = (mem::take(&mut self.batches), mem::take(&mut self.rows));
        let last = self.runs.last().map(|run| run.keys.clone());
        let runs = mem::take(&mut self.runs);
        self.runs.extend(last.map(|keys| WaitingRun { keys, rows: 0 }));
        if rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for (number, column) in self.schema.keys.iter().enumerate() {
            let mut cells = Cells::default();
            for run in &runs {
                cells.push_run(&run.keys[number], run.rows);
            }
            write_column(&mut group, column, &cells)?;
        }
        for (number, column) in self.schema.columns.iter().enumerate() {
            let mut cells = Cells::default();
            for batch in &batches {
                cells.push_values(&batch.columns[number], batch.rows);
            }
            write_column(&mut group, column, &cells)?;
        }
        group.close().map(drop)
    }
}

impl<W: Write + Send> RowsWriter for ParquetRowsWriter<W> {
    fn begin_run(&mut self, keys: &[ExportCell]) -> io::Result<()> {
        self.runs.push(WaitingRun { keys: keys.to_vec(), rows: 0 });
        Ok(())
    }

    fn append(&mut self, batch: ExportBatch) -> io::Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        self.rows += batch.rows;
        self.runs.last_mut().into_iter().for_each(|run| run.rows += batch.rows);
        self.batches.push(batch);
        if self.rows >= GROUP_ROWS { self.write_group().map_err(as_io) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.write_group().map_err(as_io)?;
        let mut target = self.file.into_inner().map_err(as_io)?;
        target.flush()
    }
}

fn column_field(column: &ExportColumn) -> ParquetResult<Type> {
    let unsigned = |bits| Some(LogicalType::integer(bits, false));
    let (physical, logical) = match column.column_type {
        ExportType::I64 => (PhysicalType::INT64, None),
        ExportType::U64 => (PhysicalType::INT64, unsigned(64)),
        ExportType::I32 => (PhysicalType::INT32, None),
        ExportType::U32 => (PhysicalType::INT32, unsigned(32)),
        ExportType::U16 => (PhysicalType::INT32, unsigned(16)),
        ExportType::Flag => (PhysicalType::BOOLEAN, None),
        ExportType::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(&column.name, physical).with_repetition(repetition).with_logical_type(logical).build()
}

fn properties(schema: &ExportSchema) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("latlab {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new(EXPORT_KEY.to_owned(), "1".to_owned())]))
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for key in &schema.keys {
        // A flag takes one bit.
        let has_dictionary = key.column_type != ExportType::Flag;
        properties = properties.set_column_dictionary_enabled(path(key), has_dictionary);
    }
    for column in &schema.columns {
        properties = match column.column_type {
            ExportType::Text => properties.set_column_dictionary_enabled(path(column), true),
            ExportType::Flag => properties.set_column_encoding(path(column), Encoding::RLE),
            _ => properties.set_column_encoding(path(column), Encoding::DELTA_BINARY_PACKED),
        };
    }
    properties.build()
}

/// The path of a column of the root, whose name may have points.
fn path(column: &ExportColumn) -> ::parquet::schema::types::ColumnPath {
    ::parquet::schema::types::ColumnPath::new(vec![column.name.clone()])
}

/// The values of a column of a row group.
#[derive(Default)]
struct Cells {
    /// 1 where the row has a value, else 0.
    levels: Vec<i16>,
    /// Numbers and flags that are not null.
    ints: Vec<i64>,
    texts: Vec<ByteArray>,
    /// The words so far: a clone shares its bytes, converting a word allocates.
    words: Vec<(&'static str, ByteArray)>,
}

impl Cells {
    /// Appends `cell` for each of `rows` rows.
    fn push_run(&mut self, cell: &ExportCell, rows: usize) {
        let level = i16::from(*cell != ExportCell::Null);
        self.levels.resize(self.levels.len() + rows, level);
        match cell {
            ExportCell::Null => {}
            ExportCell::Int(value) => self.ints.resize(self.ints.len() + rows, *value),
            ExportCell::Flag(flag) => self.ints.resize(self.ints.len() + rows, i64::from(*flag)),
            ExportCell::Text(text) => self.texts.resize(self.texts.len() + rows, ByteArray::from(text.as_str())),
        }
    }

    fn push_values(&mut self, values: &ExportValues, rows: usize) {
        match values {
            ExportValues::Ints { values, present: None } => {
                self.levels.resize(self.levels.len() + rows, 1);
                self.ints.extend_from_slice(values);
            }
            ExportValues::Ints { values, present: Some(present) } => {
                self.levels.extend(present.iter().map(|present| i16::from(*present)));
                let known = values.iter().zip(present).filter(|(_, present)| **present);
                self.ints.extend(known.map(|(value, _)| *value));
            }
            ExportValues::Words(words) => {
                self.levels.resize(self.levels.len() + rows, 1);
                words.iter().for_each(|word| {
                    let bytes = self.word(word);
                    self.texts.push(bytes);
                });
            }
            ExportValues::Word(word) => {
                self.levels.resize(self.levels.len() + rows, 1);
                let bytes = self.word(word);
                self.texts.resize(self.texts.len() + rows, bytes);
            }
        }
    }

    fn word(&mut self, word: &'static str) -> ByteArray {
        match self.words.iter().find(|(known, _)| *known == word) {
            Some((_, bytes)) => bytes.clone(),
            None => {
                let bytes = ByteArray::from(word);
                self.words.push((word, bytes.clone()));
                bytes
            }
        }
    }

    fn write(&self, writer: &mut SerializedColumnWriter<'_>, column: &ExportColumn) -> ParquetResult<usize> {
        let levels = column.nullable.then_some(self.levels.as_slice());
        match column.column_type {
            ExportType::I64 | ExportType::U64 => writer.typed::<Int64Type>().write_batch(&self.ints, levels, None),
            ExportType::I32 | ExportType::U32 | ExportType::U16 => {
                // Unsigned values keep their bits.
                let narrow: Vec<i32> = self.ints.iter().map(|value| *value as i32).collect();
                writer.typed::<Int32Type>().write_batch(&narrow, levels, None)
            }
            ExportType::Flag => {
                let flags: Vec<bool> = self.ints.iter().map(|value| *value != 0).collect();
                writer.typed::<BoolType>().write_batch(&flags, levels, None)
            }
            ExportType::Text => writer.typed::<ByteArrayType>().write_batch(&self.texts, levels, None),
        }
    }
}

fn write_column<W: Write + Send>(
    group: &mut ::parquet::file::writer::SerializedRowGroupWriter<'_, W>,
    column: &ExportColumn,
    cells: &Cells,
) -> ParquetResult<()> {
    let missing = || ParquetError::General(format!("the file has no column `{}`", column.name));
    let mut writer = group.next_column()?.ok_or_else(missing)?;
    cells.write(&mut writer, column)?;
    writer.close()
}

/// The error of the target, if it is one.
fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(refused) => *refused,
            Err(other) => io::Error::other(other),
        },
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use bytes::Bytes;

    use super::super::tests::small;
    use super::*;

    #[test]
    fn rows_of_several_runs_come_back_with_their_keys() {
        let (schema, keys, batch) = small();
        let mut file = Vec::new();
        let mut writer = ParquetRowsWriter::new(&mut file, &schema).expect("memory takes it");
        writer.begin_run(&keys).expect("memory takes it");
        writer.append(batch.clone()).expect("memory takes it");
        // A run without rows.
        writer.begin_run(&keys).expect("memory takes it");
        writer.begin_run(&[ExportCell::Text("second".into()), ExportCell::Int(64)]).expect("memory takes it");
        for _ in 0..GROUP_ROWS / 2 + 1 {
            writer.append(batch.clone()).expect("memory takes it");
        }
        Box::new(writer).finish().expect("memory takes it");
        let reader = SerializedFileReader::new(Bytes::from(file)).expect("a Parquet file");
        let metadata = reader.metadata().file_metadata();
        assert_eq!((metadata.num_rows(), reader.num_row_groups()), (2 + GROUP_ROWS as i64 + 2, 2));
        let marks: Vec<_> = metadata.key_value_metadata().into_iter().flatten().map(|pair| pair.key.as_str()).collect();
        assert!(marks.contains(&EXPORT_KEY), "{marks:?}");
        let rows: Vec<String> =
            reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row").to_string()).collect();
        assert!(
            rows[0].contains("size_bytes: null, seq: 0, sent_ns: -5, fate: \"answered\", reordered: false"),
            "{}",
            rows[0]
        );
        assert!(rows[1].contains("seq: 18446744073709551615, sent_ns: null"), "{}", rows[1]);
        let last = rows.last().expect("rows");
        assert!(last.starts_with("{run: \"second\", size_bytes: 64, seq: 18446744073709551615"), "{last}");
    }

    #[test]
    fn the_error_of_the_target_keeps_its_kind() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(as_io(ParquetError::External(Box::new(full))).kind(), io::ErrorKind::StorageFull);
    }
}
