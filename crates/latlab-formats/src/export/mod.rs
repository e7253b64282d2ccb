//! What latlab gives to other tools. Each format is pure: rows or figures in, bytes out; where the bytes go is the caller's.
//!
//! Rows (`lines`, `parquet`) share [`ExportSchema`] and [`RowsWriter`]; `probes` has the forms of other tools. `hlog`
//! takes the values of whole runs, `perfetto` tracks of slices and counters. What each format has: docs/export.md.

pub mod hlog;
pub mod lines;
pub mod parquet;
pub mod perfetto;
pub mod probes;

use std::io;

use crate::recording::{ColumnSpec, UniformBatch};

/// The columns of a file, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSchema {
    /// Columns with a value for each row.
    pub columns: Vec<ColumnSpec>,
    /// Columns whose value [`RowsWriter::begin_run`] gives once for all rows of a run.
    pub keys: Vec<ColumnSpec>,
}

/// The value of a key column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportCell {
    /// Not known, or not applicable.
    Null,
    Int(i64),
    Flag(bool),
    Text(String),
}

/// Writes rows in one format. Memory does not grow with the number of rows.
pub trait RowsWriter {
    /// Begins the rows of a run, whose `keys` are in the order of [`ExportSchema::keys`].
    ///
    /// # Errors
    /// If the target refuses bytes; so for all methods.
    fn begin_run(&mut self, keys: &[ExportCell]) -> io::Result<()>;

    /// Appends rows of the run that was begun last.
    fn append(&mut self, batch: UniformBatch) -> io::Result<()>;

    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// `text` in one line: each control character becomes a space.
fn in_one_line(text: &str) -> String {
    text.chars().map(|char| if is_control(char) { ' ' } else { char }).collect()
}

/// Whether `char` is a control character, a line separator, or changes the direction of text: a terminal obeys it.
fn is_control(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::recording::{Column, ColumnType, WordColumn};

    /// Two keys and four columns with a null, an unsigned number beyond `i64`, a flag and words.
    pub(crate) fn small() -> (ExportSchema, [ExportCell; 2], UniformBatch) {
        let schema = ExportSchema {
            keys: vec![
                ColumnSpec::required("run", ColumnType::Word),
                ColumnSpec::nullable("size_bytes", ColumnType::I64),
            ],
            columns: vec![
                ColumnSpec::required("seq", ColumnType::U64),
                ColumnSpec::nullable("sent_ns", ColumnType::I64),
                ColumnSpec::required("fate", ColumnType::Word),
                ColumnSpec::required("reordered", ColumnType::Flag),
            ],
        };
        let ints = |values: [Option<i64>; 2]| Column::Ints(values.into_iter().collect());
        let columns = vec![
            ints([Some(0), Some(-1)]),
            ints([Some(-5), None]),
            Column::Words(WordColumn::Each(vec!["answered", "not_sent"])),
            ints([Some(0), Some(1)]),
        ];
        let keys = [ExportCell::Text("a,\"b\"\nc".into()), ExportCell::Null];
        (schema, keys, UniformBatch { rows: 2, columns })
    }

    #[test]
    fn a_line_has_no_character_that_ends_it() {
        assert_eq!(in_one_line("a\nb\u{202e}\u{2028}c\x1b µ"), "a b  c  µ");
    }
}
