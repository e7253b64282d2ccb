//! What latlab gives to other tools. Each format is pure: rows or figures in, bytes out; where the bytes go is the caller's.
//!
//! Rows (`csv`, `jsonl`, `parquet`) share [`ExportSchema`] and [`RowsWriter`]. `hlog`, `benchstat` and `prometheus` take
//! the figures of whole runs. What each format has: docs/export.md.

pub mod benchstat;
pub mod csv;
pub mod hlog;
pub mod jsonl;
pub mod parquet;
pub mod prometheus;

use std::io;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportType {
    /// 64 bits with a sign.
    I64,
    /// 64 bits without a sign, kept as the same bits with one.
    U64,
    /// 32 bits with a sign.
    I32,
    /// 32 bits without a sign.
    U32,
    /// 16 bits without a sign.
    U16,
    /// True or false, as 1 or 0.
    Flag,
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportColumn {
    /// Its name, which is unique among the columns of a file.
    pub name: String,
    pub column_type: ExportType,
    /// Whether a row may lack a value.
    pub nullable: bool,
}

impl ExportColumn {
    /// A column whose rows may lack a value.
    pub fn nullable(name: impl Into<String>, column_type: ExportType) -> ExportColumn {
        ExportColumn { name: name.into(), column_type, nullable: true }
    }
}

/// The columns of a file: those that are constant within a run, and those of the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSchema {
    /// Columns whose value [`RowsWriter::begin_run`] gives once for all rows of a run.
    pub keys: Vec<ExportColumn>,
    /// Columns with a value for each row.
    pub columns: Vec<ExportColumn>,
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

/// The values of one column in consecutive rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportValues {
    Ints {
        /// One for each row; any value where it is null.
        values: Vec<i64>,
        /// Whether the row has a value; `None` if every row has one.
        present: Option<Vec<bool>>,
    },
    /// Words, one for each row.
    Words(Vec<&'static str>),
    /// The same word in every row.
    Word(&'static str),
}

impl ExportValues {
    /// The number in `row`; `None` if it is null, or a word.
    #[inline]
    fn int(&self, row: usize) -> Option<i64> {
        match self {
            ExportValues::Ints { values, present } => {
                present.as_ref().is_none_or(|present| present[row]).then_some(values[row])
            }
            ExportValues::Words(_) | ExportValues::Word(_) => None,
        }
    }

    /// The word in `row`; `None` if it is a number.
    #[inline]
    fn word(&self, row: usize) -> Option<&'static str> {
        match self {
            ExportValues::Ints { .. } => None,
            ExportValues::Words(words) => Some(words[row]),
            ExportValues::Word(word) => Some(word),
        }
    }
}

/// Consecutive rows of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportBatch {
    pub rows: usize,
    /// In the order of [`ExportSchema::columns`].
    pub columns: Vec<ExportValues>,
}

/// Writes rows in one format. Memory does not grow with the number of rows.
pub trait RowsWriter {
    /// Begins the rows of a run, whose `keys` are in the order of [`ExportSchema::keys`].
    ///
    /// # Errors
    /// If the target refuses bytes; so for all methods.
    fn begin_run(&mut self, keys: &[ExportCell]) -> io::Result<()>;

    /// Appends rows of the run that was begun last.
    fn append(&mut self, batch: ExportBatch) -> io::Result<()>;

    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Appends `value`, which column `column_type` holds, in decimal; a flag as `true` or `false`.
fn push_int(text: &mut Vec<u8>, value: i64, column_type: ExportType) {
    match column_type {
        ExportType::Flag => text.extend_from_slice(if value != 0 { b"true" } else { b"false" }),
        ExportType::U64 => push_decimal(text, value as u64),
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

    /// Two keys and three columns with a null, an unsigned number beyond `i64`, a flag and words.
    pub fn small() -> (ExportSchema, [ExportCell; 2], ExportBatch) {
        let column = |name: &str, column_type| ExportColumn { name: name.into(), column_type, nullable: false };
        let schema = ExportSchema {
            keys: vec![column("run", ExportType::Text), ExportColumn::nullable("size_bytes", ExportType::I64)],
            columns: vec![
                column("seq", ExportType::U64),
                ExportColumn::nullable("sent_ns", ExportType::I64),
                column("fate", ExportType::Text),
                column("reordered", ExportType::Flag),
            ],
        };
        let batch = ExportBatch {
            rows: 2,
            columns: vec![
                ExportValues::Ints { values: vec![0, -1], present: None },
                ExportValues::Ints { values: vec![-5, 0], present: Some(vec![true, false]) },
                ExportValues::Words(vec!["answered", "not_sent"]),
                ExportValues::Ints { values: vec![0, 1], present: None },
            ],
        };
        (schema, [ExportCell::Text("a,\"b\"\nc".into()), ExportCell::Null], batch)
    }

    #[test]
    fn numbers_are_written_as_their_column_has_them() {
        for (value, column_type, expected) in [
            (0, ExportType::I64, "0"),
            (i64::MIN, ExportType::I64, "-9223372036854775808"),
            (-1, ExportType::U64, "18446744073709551615"),
            (65_535, ExportType::U16, "65535"),
            (1, ExportType::Flag, "true"),
            (0, ExportType::Flag, "false"),
        ] {
            let mut text = Vec::new();
            push_int(&mut text, value, column_type);
            assert_eq!(String::from_utf8_lossy(&text), expected);
        }
    }

    #[test]
    fn a_line_has_no_character_that_ends_it() {
        assert_eq!(in_one_line("a\nb\u{202e}\u{2028}c\x1b µ"), "a b  c  µ");
    }
}
