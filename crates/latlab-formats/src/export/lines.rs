//! Rows as text, a line for each: comma-separated values (RFC 4180) with a header line, or JSON lines, objects of which every
//! column is a member. Numbers are exact integers. A null is an empty field, or `null`.

use std::io::{self, Write};

use super::{ExportCell, ExportSchema, RowsWriter, is_control};
use crate::recording::{Column, ColumnType, UniformBatch};
use crate::units::human::csv_field;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineForm {
    Csv,
    Json,
}

/// Writes rows as lines of text to `W`.
pub struct LinesWriter<W> {
    target: W,
    form: LineForm,
    /// What stands before the value of each column, and of each key column.
    columns: Vec<(String, ColumnType)>,
    before_keys: Vec<String>,
    /// How the line of each row of the run ends.
    keys: Vec<u8>,
}

impl<W: Write> LinesWriter<W> {
    /// Writes the header line of `schema`, if the form has one.
    ///
    /// # Errors
    /// If the target refuses it.
    pub fn new(mut target: W, form: LineForm, schema: &ExportSchema) -> io::Result<LinesWriter<W>> {
        let mut before = Vec::new();
        for (number, column) in schema.columns.iter().chain(&schema.keys).enumerate() {
            before.push(match (form, number) {
                (LineForm::Csv, 0) => String::new(),
                (LineForm::Csv, _) => ",".to_owned(),
                (LineForm::Json, 0) => format!("{{{}:", string(&column.name)),
                (LineForm::Json, _) => format!(",{}:", string(&column.name)),
            });
        }
        if form == LineForm::Csv {
            let names = schema.columns.iter().chain(&schema.keys).map(|column| field(&column.name));
            target.write_all(format!("{}\n", names.collect::<Vec<_>>().join(",")).as_bytes())?;
        }
        let before_keys = before.split_off(schema.columns.len());
        let columns = before.into_iter().zip(schema.columns.iter().map(|column| column.column_type)).collect();
        Ok(LinesWriter { target, form, columns, before_keys, keys: Vec::new() })
    }
}

impl<W: Write> RowsWriter for LinesWriter<W> {
    fn begin_run(&mut self, keys: &[ExportCell]) -> io::Result<()> {
        let key = |(before, cell): (&String, &ExportCell)| match (cell, self.form) {
            (ExportCell::Null, LineForm::Csv) => before.clone(),
            (ExportCell::Null, LineForm::Json) => format!("{before}null"),
            (ExportCell::Int(value), _) => format!("{before}{value}"),
            (ExportCell::Flag(flag), _) => format!("{before}{flag}"),
            (ExportCell::Text(text), LineForm::Csv) => format!("{before}{}", field(text)),
            (ExportCell::Text(text), LineForm::Json) => format!("{before}{}", string(text)),
        };
        self.keys = self.before_keys.iter().zip(keys).map(key).collect::<String>().into_bytes();
        Ok(())
    }

    fn append(&mut self, batch: UniformBatch) -> io::Result<()> {
        let (null, quote, end): (&[u8], &[u8], &[u8]) = match self.form {
            LineForm::Csv => (b"", b"", b"\n"),
            LineForm::Json => (b"null", b"\"", b"}\n"),
        };
        let mut lines = Vec::new();
        for row in 0..batch.rows {
            for (values, (before, column_type)) in batch.columns.iter().zip(&self.columns) {
                lines.extend_from_slice(before.as_bytes());
                match values {
                    // A word of latlab's own, without a character that is quoted or escaped.
                    Column::Words(words) => {
                        lines.extend_from_slice(quote);
                        lines.extend_from_slice(words.get(row).as_bytes());
                        lines.extend_from_slice(quote);
                    }
                    Column::Ints(ints) => match ints.get(row) {
                        Some(value) => push_int(&mut lines, value, *column_type),
                        None => lines.extend_from_slice(null),
                    },
                }
            }
            lines.extend_from_slice(&self.keys);
            lines.extend_from_slice(end);
            if lines.len() >= CHUNK_BYTES {
                self.target.write_all(&lines)?;
                lines.clear();
            }
        }
        self.target.write_all(&lines)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.target.flush()
    }
}

/// Bytes that are handed over at once.
const CHUNK_BYTES: usize = 1 << 16;

/// Appends `value`, which column `column_type` holds, in decimal; a flag as `true` or `false`.
fn push_int(text: &mut Vec<u8>, value: i64, column_type: ColumnType) {
    match column_type {
        ColumnType::Flag => text.extend_from_slice(if value != 0 { b"true" } else { b"false" }),
        ColumnType::F64 => text.extend_from_slice(f64::from_bits(value as u64).to_string().as_bytes()),
        ColumnType::U64 => push_decimal(text, value as u64),
        _ => {
            if value < 0 {
                text.push(b'-');
            }
            push_decimal(text, value.unsigned_abs());
        }
    }
}

/// Appends `value` in decimal: `write!` takes three times as long, and most of a CSV file is numbers.
fn push_decimal(text: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[start..]);
}

/// `text` as a field, in quotes if it is empty: an empty field is null.
fn field(text: &str) -> String {
    if text.is_empty() { "\"\"".into() } else { csv_field(text) }
}

/// `text` as a JSON string (RFC 8259, section 7). What a terminal obeys is escaped too.
fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            // All of them are below U+10000: one escape each.
            char if is_control(char) => quoted.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::small;
    use super::*;

    fn written(form: LineForm, has_rows: bool) -> String {
        let (schema, keys, batch) = small();
        let mut text = Vec::new();
        let mut writer = LinesWriter::new(&mut text, form, &schema).expect("memory takes it");
        if has_rows {
            writer.begin_run(&keys).expect("memory takes it");
            writer.append(batch).expect("memory takes it");
        }
        Box::new(writer).finish().expect("memory takes it");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn in_csv_a_null_is_an_empty_field_and_commas_quotes_and_line_ends_are_quoted() {
        let header = "seq,sent_ns,fate,reordered,run,size_bytes\n";
        let rows = "0,-5,answered,false,\"a,\"\"b\"\"\nc\",\n\
            18446744073709551615,,not_sent,true,\"a,\"\"b\"\"\nc\",\n";
        assert_eq!(written(LineForm::Csv, true), format!("{header}{rows}"));
        assert_eq!(written(LineForm::Csv, false), header);
        assert_eq!(field(""), "\"\"");
    }

    #[test]
    fn in_json_lines_each_row_is_an_object_with_every_column() {
        let rows = written(LineForm::Json, true);
        let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        let run = "a,\"b\"\nc";
        let expected = [
            json!({"run": run, "size_bytes": null, "seq": 0, "sent_ns": -5, "fate": "answered", "reordered": false}),
            json!({"run": run, "size_bytes": null, "seq": u64::MAX, "sent_ns": null, "fate": "not_sent", "reordered": true}),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn numbers_are_written_as_their_column_has_them() {
        for (value, column_type, expected) in [
            (0, ColumnType::I64, "0"),
            (i64::MIN, ColumnType::I64, "-9223372036854775808"),
            (-1, ColumnType::U64, "18446744073709551615"),
            (1, ColumnType::Flag, "true"),
        ] {
            let mut text = Vec::new();
            push_int(&mut text, value, column_type);
            assert_eq!(String::from_utf8_lossy(&text), expected);
        }
    }

    #[test]
    fn a_string_survives_its_escapes() {
        for text in ["", "µ \"\\\n\t\x1b\x7f\u{9b}\u{202e}\u{1f600}"] {
            let quoted = string(text);
            assert_eq!(serde_json::from_str::<String>(&quoted).expect("JSON"), text);
            assert!(!quoted.contains(is_control), "{quoted}");
        }
    }
}
