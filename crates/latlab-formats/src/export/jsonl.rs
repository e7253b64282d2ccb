//! JSON lines: one object for each row, every column a member, a null `null`. Numbers are exact integers.

use std::io::{self, Write};

use super::csv::CHUNK_BYTES;
use super::{ExportBatch, ExportCell, ExportSchema, ExportType, RowsWriter, is_control, push_int};

/// Writes rows as JSON lines to `W`.
pub struct JsonLinesWriter<W> {
    target: W,
    /// Names of the key columns, each as a JSON string with a colon.
    key_names: Vec<String>,
    columns: Vec<JsonMember>,
    /// The begin of each object: the members of the key columns.
    keys: Vec<u8>,
    lines: Vec<u8>,
}

/// A column of the rows.
struct JsonMember {
    /// The name as a JSON string with a colon, and a comma in front if another member comes before it.
    name: Vec<u8>,
    column_type: ExportType,
}

impl<W: Write> JsonLinesWriter<W> {
    /// A file of `schema`; nothing is written yet.
    pub fn new(target: W, schema: &ExportSchema) -> JsonLinesWriter<W> {
        let key_names = schema.keys.iter().map(|key| format!("{}:", string(&key.name))).collect();
        let columns = schema.columns.iter().enumerate().map(|(number, column)| {
            let comma = if number + schema.keys.len() > 0 { "," } else { "" };
            let name = format!("{comma}{}:", string(&column.name)).into_bytes();
            JsonMember { name, column_type: column.column_type }
        });
        JsonLinesWriter { target, key_names, columns: columns.collect(), keys: Vec::new(), lines: Vec::new() }
    }
}

impl<W: Write> RowsWriter for JsonLinesWriter<W> {
    fn begin_run(&mut self, keys: &[ExportCell]) -> io::Result<()> {
        let member = |(name, cell): (&String, &ExportCell)| match cell {
            ExportCell::Null => format!("{name}null"),
            ExportCell::Int(value) => format!("{name}{value}"),
            ExportCell::Flag(flag) => format!("{name}{flag}"),
            ExportCell::Text(text) => format!("{name}{}", string(text)),
        };
        let members: Vec<String> = self.key_names.iter().zip(keys).map(member).collect();
        self.keys = format!("{{{}", members.join(",")).into_bytes();
        Ok(())
    }

    fn append(&mut self, batch: ExportBatch) -> io::Result<()> {
        let JsonLinesWriter { target, columns, keys, lines, .. } = self;
        lines.clear();
        for row in 0..batch.rows {
            lines.extend_from_slice(keys);
            for (values, column) in batch.columns.iter().zip(&*columns) {
                lines.extend_from_slice(&column.name);
                match (values.word(row), values.int(row)) {
                    (Some(word), _) => {
                        lines.push(b'"');
                        lines.extend_from_slice(word.as_bytes());
                        lines.push(b'"');
                    }
                    (None, Some(value)) => push_int(lines, value, column.column_type),
                    (None, None) => lines.extend_from_slice(b"null"),
                }
            }
            lines.extend_from_slice(b"}\n");
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

    #[test]
    fn each_row_is_an_object_with_every_column() {
        let (schema, keys, batch) = small();
        let mut text = Vec::new();
        let mut writer = JsonLinesWriter::new(&mut text, &schema);
        writer.begin_run(&keys).expect("memory takes it");
        writer.append(batch).expect("memory takes it");
        Box::new(writer).finish().expect("memory takes it");
        let rows = String::from_utf8(text).expect("text");
        let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        let run = "a,\"b\"\nc";
        let expected = [
            json!({"run": run, "size_bytes": null, "seq": 0, "sent_ns": -5, "fate": "answered", "reordered": false}),
            json!({"run": run, "size_bytes": null, "seq": u64::MAX, "sent_ns": null, "fate": "not_sent", "reordered": true}),
        ];
        assert_eq!(rows, expected);
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
