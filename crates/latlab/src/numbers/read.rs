use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use super::column::TextColumn;
use super::error::NumbersError;
use super::parse::{number, plain_line};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
