//! Files of numbers: one observation on each line, in one of its columns. The format is that of FreeBSD's ministat
//! (docs/comparing.md), but text that is no finite number is refused instead of counted.

use latlab_sys::errno::explain;
use std::fs::File;
use std::io;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::path::PathBuf;
use thiserror::Error;

/// Where the numbers stand in a file of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextColumn {
    /// From 1.
    pub number: usize,
    /// What stands between columns, in runs of any length; a run at the beginning of a line is no column.
    pub delimiters: Vec<u8>,
}

impl TextColumn {
    /// Whether a number that begins a line and fills it is the one that is meant.
    fn is_first_of_plain(&self) -> bool {
        let part_of_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
        self.number == 1 && !self.delimiters.iter().any(part_of_number)
    }

    /// The text in this column of `line`; none where the line is blank, a comment or too short.
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
    /// The system gives no access to it.
    #[error("cannot read `{}`", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line does not hold a number where one is due.
    #[error("cannot read `{value}` on line {line} of `{name}` as a number")]
    NotANumber {
        /// The file, or `<stdin>`.
        name: String,
        /// From 1.
        line: u64,
        /// What stands there.
        value: String,
        /// In which column, from 1.
        column: usize,
    },
}

impl NumbersError {
    /// Why.
    pub fn cause(&self) -> Option<String> {
        Some(match self {
            NumbersError::Refused { source, .. } => explain(source),
            NumbersError::NotANumber { column, .. } => {
                format!("column {column} of each line holds one observation, a finite decimal number")
            }
        })
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            NumbersError::Refused { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => "see the path; `-` is standard input".into(),
                _ => "see whose it is and what may be done with it: `ls -ld`".into(),
            },
            NumbersError::NotANumber { .. } => {
                "`-C N` picks another column, `-d DELIMS` splits otherwise; a line that begins with `#` is left out"
                    .into()
            }
        })
    }

    /// 2: no such file, or not one of numbers. 3: the system refuses.
    pub fn exit_code(&self) -> u8 {
        match self {
            NumbersError::Refused { source, .. } if source.kind() != io::ErrorKind::NotFound => 3,
            _ => 2,
        }
    }
}

/// The name of standard input in tables.
pub const STDIN: &str = "<stdin>";
/// Read at once: large enough that system calls cost nothing, small enough for the second-level cache.
const BUFFER_BYTES: usize = 256 << 10;
/// No line of numbers is longer; a file that has none, such as `/dev/zero`, would fill the memory.
const LINE_BYTES_MAX: usize = 16 << 20;
/// Characters of a wrong value that are shown.
const SHOWN: usize = 40;

/// The numbers in `column` of the file at `path`, in their order.
///
/// # Errors
/// Where it cannot be read, or holds something else.
pub fn read_file(path: &Path, column: &TextColumn) -> Result<Vec<f64>, NumbersError> {
    let refused = |source| NumbersError::Refused { path: path.to_owned(), source };
    let file = File::open(path).map_err(refused)?;
    read_numbers(&path.display().to_string(), file, column)
}

/// The numbers in `column` of `input`, in their order; errors call it `name`.
///
/// # Errors
/// Where it cannot be read, or holds something else.
pub fn read_numbers(name: &str, mut input: impl Read, column: &TextColumn) -> Result<Vec<f64>, NumbersError> {
    let mut lines = Lines { name, column, plain: column.is_first_of_plain(), read: 0, values: Vec::new() };
    let mut buffer = vec![0; BUFFER_BYTES];
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
            return Err(lines.wrong(&buffer[..SHOWN]));
        }
        if kept == buffer.len() {
            buffer.resize(2 * kept, 0);
        }
    }
}

/// Lines on their way to values.
struct Lines<'a> {
    name: &'a str,
    column: &'a TextColumn,
    /// Whether a line that is a number and nothing else has its value in it.
    plain: bool,
    /// Lines so far.
    read: u64,
    values: Vec<f64>,
}

impl Lines<'_> {
    /// Takes the whole lines that `text` begins with; how many bytes they have.
    fn take(&mut self, text: &[u8]) -> Result<usize, NumbersError> {
        let mut taken = 0;
        loop {
            let rest = &text[taken..];
            let plain = if self.plain { plain_line(rest) } else { None };
            if let Some((value, length)) = plain {
                self.read += 1;
                self.values.push(value);
                taken += length;
                continue;
            }
            let Some(length) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(taken) };
            self.line(&rest[..length])?;
            taken += length + 1;
        }
    }

    /// Takes one line without its end.
    fn line(&mut self, line: &[u8]) -> Result<(), NumbersError> {
        self.read += 1;
        let Some(text) = self.column.of(line) else { return Ok(()) };
        match number(text) {
            Some(value) => self.values.push(value),
            None => return Err(self.wrong(text)),
        }
        Ok(())
    }

    /// What stands in the line that is read is no number.
    fn wrong(&self, text: &[u8]) -> NumbersError {
        let value = String::from_utf8_lossy(text).trim().chars().take(SHOWN).collect();
        NumbersError::NotANumber { name: self.name.into(), line: self.read, value, column: self.column.number }
    }
}

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
/// Whole numbers up to here are doubles.
const WHOLE_MAX: u64 = 1 << 53;
/// So many digits are below `WHOLE_MAX` whatever they are.
const DIGITS_MAX: usize = 15;

/// A number that begins `text` and ends with its line: its value, and where the next line begins.
///
/// Only what is plain: a sign, at most 15 digits, a point. A quotient of two exact doubles is rounded once, so that
/// the value is the one that the standard library finds (W. D. Clinger, "How to read floating point numbers
/// accurately", 1990).
#[inline]
fn plain_line(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let first = usize::from(negative);
    let (mut digits, mut whole, mut point) = (0_usize, 0_u64, None);
    for (at, byte) in text.iter().enumerate().skip(first) {
        match byte {
            b'0'..=b'9' => {
                whole = whole * 10 + u64::from(byte - b'0');
                digits += 1;
                if digits > DIGITS_MAX {
                    return None;
                }
            }
            b'.' if point.is_none() => point = Some(digits),
            b'\n' if digits > 0 => {
                debug_assert!(whole < WHOLE_MAX);
                let fraction = point.map_or(0, |point| digits - point);
                let value = whole as f64 / POWERS[fraction];
                return Some((if negative { -value } else { value }, at + 1));
            }
            _ => return None,
        }
    }
    None
}

/// Any finite decimal number, with white space around it.
fn number(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    // the library also reads words such as `inf`
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

    /// Gives one byte at a time, as a slow pipe does.
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
    fn lines_may_be_longer_than_the_buffer() {
        let long = format!("1{}\n2\n{} 3\n", " ".repeat(3 * BUFFER_BYTES), " ".repeat(BUFFER_BYTES));
        assert_eq!(read_numbers("x", long.as_bytes(), &first()).expect("numbers"), [1.0, 2.0, 3.0]);
        let many: String = (0..200_000).map(|number| format!("{number}.25\n")).collect();
        let values = read_numbers("x", many.as_bytes(), &first()).expect("numbers");
        assert_eq!((values.len(), values[123_456]), (200_000, 123_456.25));
    }

    #[test]
    fn a_file_without_lines_does_not_fill_the_memory() {
        let read = read_numbers("x", std::io::repeat(b'7'), &first());
        assert!(matches!(read, Err(NumbersError::NotANumber { line: 1, .. })), "{read:?}");
    }

    #[test]
    fn a_wrong_value_is_told_with_its_place() {
        for (text, line, value) in
            [("1\n2\nabc\n", 3, "abc"), ("1\n\n# c\nNaN", 4, "NaN"), ("inf\n", 1, "inf"), ("1\n5\0\n", 2, "5\0")]
        {
            match read_numbers("x", text.as_bytes(), &first()) {
                Err(error @ NumbersError::NotANumber { .. }) => {
                    assert_eq!(error.to_string(), format!("cannot read `{value}` on line {line} of `x` as a number"));
                    assert!(error.hint().is_some() && error.cause().is_some() && error.exit_code() == 2);
                }
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn plain_lines_have_the_value_of_the_library() {
        for text in [
            "0",
            "-0",
            "1",
            "-17",
            "007",
            "5.",
            ".5",
            "-.25",
            "0.1",
            "123456.789012345",
            "999999999999999",
            "0.00000000000001",
            "48.7",
            "3.141592653589",
            "100000000000001",
        ] {
            let line = format!("{text}\n2\n");
            let expected: f64 = text.parse().expect("a number");
            let (value, next) = plain_line(line.as_bytes()).expect(text);
            assert_eq!((value.to_bits(), next), (expected.to_bits(), text.len() + 1), "{text}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_library() {
        for line in ["", "\n", "-\n", ".\n", "1", "1 \n", "1e3\n", "+1\n", "1.2.3\n", "1234567890123456\n", "x\n"] {
            assert_eq!(plain_line(line.as_bytes()), None, "{line:?}");
        }
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
