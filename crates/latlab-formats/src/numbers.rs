//! Files of numbers: one observation on each line, in one of its columns. The format is that of FreeBSD's ministat
//! (docs/comparing.md), but text other than a finite number is an error instead of a count.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use latlab_sys::errno;
use thiserror::Error;

use crate::diagnostics::{Explain, Failure};
use crate::plan::defaults::NUMBERS_MAX;
use crate::platform::input_file::{self, UnfitInput};

/// The column of a file that has the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextColumn {
    /// From 1.
    pub number: usize,
    /// The characters between columns, in runs of any length; a run at the beginning of a line is ignored.
    pub delimiters: Vec<u8>,
}

impl TextColumn {
    /// The text in this column of `line`; `None` if the line is blank, a comment or too short.
    ///
    /// A comment begins with `#`, at the beginning of the line or in the place of the value.
    fn of<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        let line = line.trim_ascii_end();
        if line.trim_ascii_start().first() == Some(&b'#') {
            return None;
        }
        let mut columns = line.split(|byte| self.delimiters.contains(byte)).filter(|column| !column.is_empty());
        columns.nth(self.number - 1).filter(|column| !column.starts_with(b"#"))
    }
}

/// A file of numbers that cannot be read.
#[derive(Debug, Error)]
pub enum NumbersError {
    #[error("cannot read `{}`", path.display())]
    Refused {
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// There are more numbers than the limit.
    #[error("cannot read more than {max} numbers from `{name}`")]
    TooMany { name: String, max: usize },
    /// The column of a line does not hold a number.
    #[error("cannot read `{value}` on line {line} of `{name}` as a number")]
    NotANumber {
        name: String,
        /// From 1.
        line: u64,
        /// The text in the column.
        value: String,
        /// The column, from 1.
        column: usize,
    },
}

impl Explain for NumbersError {
    fn explain(&self) -> Failure {
        match self {
            NumbersError::Refused { source, .. } if source.kind() == ErrorKind::NotFound => {
                Failure::request(self).because(errno::explain(source)).hint("check the path; `-` is standard input")
            }
            NumbersError::Refused { source, .. } => {
                let failure = input_file::failure(self, source);
                match (input_file::unfit(source), source.kind()) {
                    (Some(UnfitInput::Type(_)), _) => {
                        failure.hint("a regular file is read, or standard input as `-`: `latlab compare - < PATH`")
                    }
                    (None, ErrorKind::PermissionDenied) => {
                        failure.hint("check its owner and mode: `ls -ld`")
                    }
                    _ => failure,
                }
            }
            NumbersError::TooMany { .. } => Failure::request(self)
                .because("all of them are kept in memory and sorted")
                .hint("compare quantiles of parts of it, or every tenth of its lines"),
            NumbersError::NotANumber { column, .. } => Failure::request(self)
                .because(format!("column {column} of each line must be one finite decimal number"))
                .hint("`-C N` picks another column, `-d DELIMS` splits otherwise; a line that begins with `#` is left out"),
        }
    }
}

/// The name of standard input in tables.
pub const STDIN: &str = "<stdin>";
/// Bytes per read: large enough that system calls cost little, small enough for the second-level cache.
const BUFFER_BYTES: usize = 256 << 10;
/// The longest line: a file without lines, such as `/dev/zero`, would fill the memory.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Memory of a comparison for each number, as measured: the copy that is sorted, those of halves and differences.
const COMPARED_BYTES: usize = 24;
/// Memory of a comparison that does not depend on their number: threads and tables.
const SCRATCH_BYTES: usize = 16 << 20;
const FIRST_VALUES: usize = 4_096;
/// Characters of an invalid value that an error shows.
const SHOWN: usize = 40;

/// The numbers in `column` of the file at `path`, in their order.
///
/// # Errors
/// The file cannot be read, or a value is not a number.
pub fn read_file(path: &Path, column: &TextColumn) -> Result<Vec<f64>, NumbersError> {
    let refused = |source| NumbersError::Refused { path: path.to_owned(), source };
    let file = input_file::open(path).map_err(refused)?;
    read_numbers(&path.display().to_string(), file, column)
}

/// Expects memory for a comparison of `count` numbers beside them: it copies and sorts them, and has scratch of a fixed size.
///
/// # Errors
/// There is too little; the error calls the input `name`.
pub fn expect_memory(name: &str, count: usize) -> Result<(), NumbersError> {
    let bytes = count.saturating_mul(COMPARED_BYTES).saturating_add(SCRATCH_BYTES);
    let reserved = Vec::<u8>::new().try_reserve_exact(bytes);
    reserved.map_err(|_| NumbersError::Refused { path: name.into(), source: ErrorKind::OutOfMemory.into() })
}

/// The numbers in `column` of `input`, in their order; errors call it `name`.
///
/// # Errors
/// The file cannot be read, or a value is not a number.
pub fn read_numbers(name: &str, input: impl Read, column: &TextColumn) -> Result<Vec<f64>, NumbersError> {
    read_at_most(NUMBERS_MAX, name, input, column)
}

fn read_at_most(max: usize, name: &str, mut input: impl Read, column: &TextColumn) -> Result<Vec<f64>, NumbersError> {
    let mut lines = Lines { name, column, max, read: 0, values: Vec::new() };
    let mut buffer = Vec::new();
    lines.extend(&mut buffer, BUFFER_BYTES)?;
    let mut kept = 0;
    loop {
        let read = match input.read(&mut buffer[kept..]) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(source) => return Err(NumbersError::Refused { path: name.into(), source }),
        };
        let filled = kept + read;
        if read == 0 {
            if kept > 0 {
                lines.line(&buffer[..kept])?;
            }
            return Ok(lines.values);
        }
        let whole = lines.take(&buffer[..filled])?;
        buffer.copy_within(whole..filled, 0);
        kept = filled - whole;
        if kept > LINE_BYTES_MAX {
            lines.read += 1;
            return Err(lines.invalid(&buffer[..SHOWN]));
        }
        if kept == buffer.len() {
            lines.extend(&mut buffer, 2 * kept)?;
        }
    }
}

struct Lines<'a> {
    name: &'a str,
    column: &'a TextColumn,
    max: usize,
    read: u64,
    values: Vec<f64>,
}

impl Lines<'_> {
    /// Takes the complete lines at the beginning of `text`; returns their bytes.
    fn take(&mut self, text: &[u8]) -> Result<usize, NumbersError> {
        let mut taken = 0;
        loop {
            let rest = &text[taken..];
            let Some(length) = memchr::memchr(b'\n', rest) else { return Ok(taken) };
            self.line(&rest[..length])?;
            taken += length + 1;
        }
    }

    /// Takes one line without its end.
    fn line(&mut self, line: &[u8]) -> Result<(), NumbersError> {
        self.read += 1;
        let Some(text) = self.column.of(line) else { return Ok(()) };
        match number(text) {
            Some(value) => self.push(value),
            None => Err(self.invalid(text)),
        }
    }

    #[inline]
    fn push(&mut self, value: f64) -> Result<(), NumbersError> {
        if self.values.len() == self.values.capacity() {
            self.reserve()?;
        }
        self.values.push(value);
        Ok(())
    }

    /// Doubles the capacity, up to the limit.
    #[cold]
    fn reserve(&mut self) -> Result<(), NumbersError> {
        let more = self.values.len().max(FIRST_VALUES).min(self.max - self.values.len());
        if more == 0 {
            return Err(NumbersError::TooMany { name: self.name.into(), max: self.max });
        }
        self.values.try_reserve_exact(more).map_err(|_| self.too_little_memory())
    }

    /// Extends `buffer` with zeros to `length`.
    fn extend(&self, buffer: &mut Vec<u8>, length: usize) -> Result<(), NumbersError> {
        buffer.try_reserve_exact(length - buffer.len()).map_err(|_| self.too_little_memory())?;
        buffer.resize(length, 0);
        Ok(())
    }

    fn too_little_memory(&self) -> NumbersError {
        NumbersError::Refused { path: self.name.into(), source: ErrorKind::OutOfMemory.into() }
    }

    /// The error for `text` in the present line.
    fn invalid(&self, text: &[u8]) -> NumbersError {
        let value = String::from_utf8_lossy(text).trim().chars().take(SHOWN).collect();
        NumbersError::NotANumber { name: self.name.into(), line: self.read, value, column: self.column.number }
    }
}

/// Any finite decimal number, with white space around it.
fn number(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    // The standard library also parses `inf` and `NaN`.
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_past_runs_of_delimiters() {
        for (number, delimiters, line, expected) in [
            (1, " \t", "12", Some("12")),
            (1, " \t", "  12\t 13 \r", Some("12")),
            (2, " \t", "  12\t 13 \r", Some("13")),
            (3, " \t", "  12\t 13 \r", None),
            (2, ",", "1, 9", Some(" 9")),
            (2, ",", ",,1,,9,", Some("9")),
            (2, ",;", "1;9", Some("9")),
            (1, " \t", "", None),
            (1, " \t", " \t\r", None),
            (1, " \t", "# 5", None),
            (2, " \t", "  # 5", None),
            (2, " \t", "5 # five", None),
            (1, " \t", "5 # five", Some("5")),
        ] {
            let column = TextColumn { number, delimiters: delimiters.into() };
            assert_eq!(column.of(line.as_bytes()), expected.map(str::as_bytes), "{number} of {line:?}");
        }
    }

    fn first() -> TextColumn {
        TextColumn { number: 1, delimiters: b" \t".to_vec() }
    }

    /// Returns one byte at a time, like a slow pipe.
    struct Dripping<'a>(&'a [u8]);

    impl Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = self.0.len().min(buffer.len()).min(1);
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    #[test]
    fn lines_are_values_however_they_arrive() {
        for (text, expected) in [
            ("", vec![]),
            ("1\n2\n3\n", vec![1.0, 2.0, 3.0]),
            ("1\n2\n3", vec![1.0, 2.0, 3.0]),
            ("1\r\n2\r\n", vec![1.0, 2.0]),
            ("\n 1 first\n\n# a\n2 # b\n#3\n", vec![1.0, 2.0]),
            ("1e3\n-2.5\n+3\n", vec![1000.0, -2.5, 3.0]),
        ] {
            for values in
                [read_numbers("x", text.as_bytes(), &first()), read_numbers("x", Dripping(text.as_bytes()), &first())]
            {
                assert_eq!(values.expect(text), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn a_delimiter_that_can_be_part_of_a_number_splits_it() {
        for (delimiter, text, expected) in
            [(".", "1.5\n2.25\n", [1.0, 2.0]), ("-", "-1-2\n-3\n", [1.0, 3.0]), ("0", "10\n203\n", [1.0, 2.0])]
        {
            let column = TextColumn { number: 1, delimiters: delimiter.into() };
            assert_eq!(read_numbers("x", text.as_bytes(), &column).expect("numbers"), expected, "{delimiter}");
        }
    }

    #[test]
    fn lines_may_be_longer_than_the_buffer() {
        let long = format!("1{}\n2\n{} 3\n", " ".repeat(3 * BUFFER_BYTES), " ".repeat(BUFFER_BYTES));
        assert_eq!(read_numbers("x", long.as_bytes(), &first()).expect("numbers"), [1.0, 2.0, 3.0]);
        let many: String = (0..200_000).map(|number| format!("{number}.25\n")).collect();
        let values = read_numbers("x", many.as_bytes(), &first()).expect("numbers");
        assert_eq!((values.len(), values[123_456]), (200_000, 123_456.25));
    }

    #[test]
    fn a_file_without_lines_does_not_fill_the_memory() {
        let longest = [" ".repeat(LINE_BYTES_MAX - 1).as_bytes(), b"7"].concat();
        assert_eq!(read_numbers("x", &longest[..], &first()).expect("the longest line"), [7.0]);
        let read = read_numbers("x", std::io::repeat(b'7'), &first());
        assert!(matches!(read, Err(NumbersError::NotANumber { line: 1, .. })), "{read:?}");
    }

    #[test]
    fn finite_decimals_are_numbers() {
        for (text, expected) in [(" 9", 9.0), ("+1", 1.0), ("1e3\r", 1000.0), ("1E-3", 0.001), ("5e-324", 5e-324)] {
            assert_eq!(number(text.as_bytes()), Some(expected), "{text}");
        }
        for text in ["", " ", "NaN", "inf", "-Infinity", "1e400", "0x10", "12us", "1,5", "5 x", "\u{663}"] {
            assert_eq!(number(text.as_bytes()), None, "{text}");
        }
    }
}
