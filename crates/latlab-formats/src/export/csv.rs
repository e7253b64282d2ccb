//! Comma-separated values (RFC 4180) with a header line; lines end with a line feed. A null is an empty field.

use std::io::{self, Write};

use super::{ExportBatch, ExportCell, ExportSchema, ExportType, RowsWriter, push_int};

/// Writes rows as CSV to `W`.
pub struct CsvWriter<W> {
    target: W,
    types: Vec<ExportType>,
    /// The fields of the key columns, each with the comma behind it.
    keys: Vec<u8>,
    lines: Vec<u8>,
}

impl<W: Write> CsvWriter<W> {
    /// Writes the header line of `schema`.
    ///
    /// # Errors
    /// If the target refuses it.
    pub fn new(mut target: W, schema: &ExportSchema) -> io::Result<CsvWriter<W>> {
        let names = schema.keys.iter().chain(&schema.columns).map(|column| field(&column.name));
        target.write_all(format!("{}\n", names.collect::<Vec<_>>().join(",")).as_bytes())?;
        let types = schema.columns.iter().map(|column| column.column_type).collect();
        Ok(CsvWriter { target, types, keys: Vec::new(), lines: Vec::new() })
    }
}

impl<W: Write> RowsWriter for CsvWriter<W> {
    fn begin_run(&mut self, keys: &[ExportCell]) -> io::Result<()> {
        self.keys.clear();
        for key in keys {
            let text = match key {
                ExportCell::Null => String::new(),
                ExportCell::Int(value) => value.to_string(),
                ExportCell::Flag(flag) => flag.to_string(),
                ExportCell::Text(text) => field(text),
            };
            self.keys.extend_from_slice(text.as_bytes());
            self.keys.push(b',');
        }
        Ok(())
    }

    fn append(&mut self, batch: ExportBatch) -> io::Result<()> {
        let CsvWriter { target, types, keys, lines } = self;
        lines.clear();
        for row in 0..batch.rows {
            lines.extend_from_slice(keys);
            for (number, (values, column_type)) in batch.columns.iter().zip(&*types).enumerate() {
                if number > 0 {
                    lines.push(b',');
                }
                match values.word(row) {
                    // A word of latlab's own, without a character that is quoted.
                    Some(word) => lines.extend_from_slice(word.as_bytes()),
                    None => values.int(row).into_iter().for_each(|value| push_int(lines, value, *column_type)),
                }
            }
            lines.push(b'\n');
            if lines.len() >= CHUNK_BYTES {
                target.write_all(lines)?;
                lines.clear();
            }
        }
        target.write_all(lines)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.target.flush()
    }
}

/// Bytes that are handed over at once.
pub(super) const CHUNK_BYTES: usize = 1 << 16;

/// `text` as a field: in quotes if it has a character that needs them, or nothing, which would be null.
fn field(text: &str) -> String {
    match text.is_empty() || text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small;
    use super::*;

    #[test]
    fn a_null_is_an_empty_field_and_commas_quotes_and_line_ends_are_quoted() {
        let (schema, keys, batch) = small();
        let mut text = Vec::new();
        let mut writer = CsvWriter::new(&mut text, &schema).expect("memory takes it");
        writer.begin_run(&keys).expect("memory takes it");
        writer.append(batch).expect("memory takes it");
        Box::new(writer).finish().expect("memory takes it");
        let expected = "run,size_bytes,seq,sent_ns,fate,reordered\n\
            \"a,\"\"b\"\"\nc\",,0,-5,answered,false\n\
            \"a,\"\"b\"\"\nc\",,18446744073709551615,,not_sent,true\n";
        assert_eq!(String::from_utf8_lossy(&text), expected);
        assert_eq!(field(""), "\"\"");
    }

    #[test]
    fn without_rows_the_header_is_all() {
        let mut text = Vec::new();
        let writer = CsvWriter::new(&mut text, &small().0).expect("memory takes it");
        Box::new(writer).finish().expect("memory takes it");
        assert_eq!(String::from_utf8_lossy(&text), "run,size_bytes,seq,sent_ns,fate,reordered\n");
    }
}
