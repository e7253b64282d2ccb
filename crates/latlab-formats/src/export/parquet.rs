//! One Parquet file with the rows of all runs, in the encodings of a recording's tables. Words of the key columns are
//! dictionary-encoded, numbers are deltas: a key takes a few bytes of a row group, whatever its number of rows.

use std::io::{self, Write};

use super::{ExportCell, ExportSchema, RowsWriter};
use crate::recording::{Column, IntColumn, TableWriter, UniformBatch, WordColumn};

/// The key in the metadata of the file; its value is the version of this form.
pub const EXPORT_KEY: &str = "latlab.export";

/// Writes rows as Parquet to `W`, each batch as a row group.
pub struct ParquetRowsWriter<W: Write + Send> {
    table: TableWriter<W>,
    keys: Vec<ExportCell>,
}

impl<W: Write + Send> ParquetRowsWriter<W> {
    /// Begins a file of `schema`.
    ///
    /// # Errors
    /// If the target refuses bytes.
    pub fn new(target: W, schema: &ExportSchema) -> io::Result<ParquetRowsWriter<W>> {
        let columns = schema.columns.iter().chain(&schema.keys).cloned().collect();
        Ok(ParquetRowsWriter {
            table: TableWriter::new(target, "row", columns, &[(EXPORT_KEY, "1")])?,
            keys: Vec::new(),
        })
    }
}

impl<W: Write + Send> RowsWriter for ParquetRowsWriter<W> {
    fn begin_run(&mut self, keys: &[ExportCell]) -> io::Result<()> {
        self.keys = keys.to_vec();
        Ok(())
    }

    fn append(&mut self, batch: UniformBatch) -> io::Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        let ints = |value| Column::Ints(IntColumn { values: vec![value; batch.rows], present: None });
        let mut group = self.table.group(batch.rows)?;
        batch.columns.iter().try_for_each(|column| group.write(column))?;
        for key in &self.keys {
            group.write(&match key {
                ExportCell::Null => Column::Ints(IntColumn::nulls(batch.rows)),
                ExportCell::Int(value) => ints(*value),
                ExportCell::Flag(flag) => ints(i64::from(*flag)),
                ExportCell::Text(text) => Column::Words(WordColumn::All(text)),
            })?;
        }
        group.close()
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.table.finish()?.flush()
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
        writer.append(batch.clone()).expect("memory takes it");
        Box::new(writer).finish().expect("memory takes it");
        let reader = SerializedFileReader::new(Bytes::from(file)).expect("a Parquet file");
        let metadata = reader.metadata().file_metadata();
        assert_eq!((metadata.num_rows(), reader.num_row_groups()), (4, 2));
        let marks: Vec<_> = metadata.key_value_metadata().into_iter().flatten().map(|pair| pair.key.as_str()).collect();
        assert!(marks.contains(&EXPORT_KEY), "{marks:?}");
        let rows: Vec<String> =
            reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row").to_string()).collect();
        assert!(rows[0].contains("seq: 0, sent_ns: -5, fate: \"answered\", reordered: false, run: "), "{}", rows[0]);
        assert!(rows[1].contains("seq: 18446744073709551615, sent_ns: null"), "{}", rows[1]);
        let last = rows.last().expect("rows");
        assert!(last.ends_with("run: \"second\", size_bytes: 64}"), "{last}");
    }
}
