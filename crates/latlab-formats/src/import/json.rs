//! JSON documents of a log, with messages on lines of their own around them.

use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::de::IoRead;
use serde_json::error::Category;

use super::check::OtherLines;
use super::fault::LogFault;

/// The most bytes between two quotes: iperf3 writes the whole output of its other end as one text.
const TEXT_BYTES_MAX: usize = 1 << 24;
const KEPT_BYTES_MAX: u64 = 1 << 26;

pub struct Documents<'a> {
    input: BufReader<io::Take<&'a mut dyn Read>>,
    pub(super) messages: OtherLines,
    line: u64,
    length: usize,
    is_escaped: bool,
}

pub(super) type DocumentReader<'a, 'b> = serde_json::Deserializer<IoRead<&'a mut Documents<'b>>>;

impl<'a> Documents<'a> {
    pub(super) fn new(input: &'a mut dyn Read, buffer_bytes: usize) -> Documents<'a> {
        let input = BufReader::with_capacity(buffer_bytes, input.take(u64::MAX));
        Documents { input, messages: OtherLines::default(), line: 1, length: 0, is_escaped: false }
    }

    fn begins(&mut self) -> io::Result<bool> {
        loop {
            match self.input.fill_buf()?.first() {
                None => return Ok(false),
                Some(b'{') => return Ok(true),
                Some(blank) if blank.is_ascii_whitespace() => {
                    self.line += u64::from(*blank == b'\n');
                    self.input.consume(1);
                }
                Some(_) => {
                    let mut message = Vec::new();
                    (&mut self.input).take(1 << 20).read_until(b'\n', &mut message)?;
                    self.messages.take(self.line, message.trim_ascii_end());
                    self.line += u64::from(message.ends_with(b"\n"));
                }
            }
        }
    }

    /// Reads each document with `take`; returns how many there are, at least one.
    pub(super) fn read_each(
        &mut self,
        mut take: impl FnMut(&mut DocumentReader<'_, 'a>) -> serde_json::Result<()>,
    ) -> Result<usize, LogFault> {
        let mut count = 0;
        while self.begins().map_err(|error| fault_of(&serde_json::Error::io(error), 0))? {
            let before = self.line - 1;
            take(&mut serde_json::Deserializer::from_reader(&mut *self)).map_err(|error| fault_of(&error, before))?;
            count += 1;
        }
        match count {
            0 => Err(LogFault::whole("the log has no JSON document, which begins with `{`")),
            count => Ok(count),
        }
    }

    /// Passes each document to `take`, which may keep it; returns how many there are, of at most 64 MiB together.
    pub(super) fn read_kept<T: DeserializeOwned>(
        &mut self,
        mut take: impl FnMut(T) -> serde_json::Result<()>,
    ) -> Result<usize, LogFault> {
        self.input.get_mut().set_limit(KEPT_BYTES_MAX);
        let read = self.read_each(|document| T::deserialize(document).and_then(&mut take));
        match self.input.get_ref().limit() {
            0 => Err(LogFault::whole(format!("the log has more than {KEPT_BYTES_MAX} bytes of JSON"))),
            _ => read,
        }
    }

    pub(super) fn read_one<T: DeserializeOwned>(&mut self) -> Result<T, LogFault> {
        let mut last = None;
        let count = self.read_kept(|document| {
            last = Some(document);
            Ok(())
        })?;
        expect_one(count, "documents")?;
        last.ok_or_else(|| LogFault::whole("the log has no document"))
    }
}

impl Read for Documents<'_> {
    /// Reads a byte: none behind the end of the document is taken.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (Some(byte), Some(place)) = (self.input.fill_buf()?.first().copied(), buffer.first_mut()) else {
            return Ok(0);
        };
        self.input.consume(1);
        *place = byte;
        self.line += u64::from(byte == b'\n');
        self.length = if byte == b'"' && !self.is_escaped { 0 } else { self.length + 1 };
        self.is_escaped = byte == b'\\' && !self.is_escaped;
        match self.length > TEXT_BYTES_MAX {
            true => Err(io::Error::new(ErrorKind::InvalidData, "a text has more than 16777216 bytes")),
            false => Ok(1),
        }
    }
}

/// Refuses a log of several runs, for each of which it has a document or several.
pub(super) fn expect_one(count: usize, noun: &str) -> Result<(), LogFault> {
    match count {
        0 | 1 => Ok(()),
        _ => Err(LogFault::whole(format!("the log has {count} {noun}, one behind the other"))
            .hint("import each by itself: `jq -s '.[0]' FILE | latlab import -`, then `.[1]` and so on")),
    }
}

/// What `error` says behind so many lines, without the position in its text.
fn fault_of(error: &serde_json::Error, lines: u64) -> LogFault {
    let text = error.to_string();
    let what = text.strip_suffix(&format!(" at line {} column {}", error.line(), error.column())).unwrap_or(&text);
    let fault = match error.classify() {
        Category::Io if error.io_error_kind() == Some(ErrorKind::InvalidData) => return LogFault::whole(what),
        Category::Io => return LogFault::whole(format!("cannot read the log: {what}")),
        Category::Eof => LogFault::at(error.column().max(1), "the document ends within a value"),
        Category::Syntax | Category::Data => LogFault::at(error.column().max(1), what),
    };
    LogFault { line: Some(lines + error.line() as u64), ..fault }
}

pub(super) struct Each<T, F>(pub(super) F, pub(super) PhantomData<T>);

impl<'de, T: Deserialize<'de>, F: FnMut(T) -> Result<(), String>> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, array: D) -> Result<(), D::Error> {
        array.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T) -> Result<(), String>> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut array: A) -> Result<(), A::Error> {
        while let Some(element) = array.next_element()? {
            (self.0)(element).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::super::{FORMATS, LogHead, LogOptions};
    use super::*;

    /// The fault of a log of irtt, which is not of its content.
    fn fault(text: &[u8]) -> LogFault {
        read("irtt", &LogOptions::default(), true, text).expect_err("malformed")
    }

    #[test]
    fn a_malformed_document_is_a_fault_with_line_and_column() {
        for (text, line, column, what) in [
            ("{\"a\": 1,\n  \"b\": x}", 2, 8, "expected value"),
            ("{\"a\": [1, 2", 1, 11, "the document ends within a value"),
            ("hello\n\nyou\n{\"a\":\n  [1, 2}", 5, 8, "expected `,` or `]`"),
            ("{\"round_trips\": 7}", 1, 18, "invalid type: integer `7`, expected an array"),
        ] {
            let fault = fault(text.as_bytes());
            assert_eq!((fault.line, fault.column, &*fault.what), (Some(line), Some(column), what), "{text}");
        }
        for text in [&b"[1]"[..], b"", b"no document\n", b"\xff\xfe}\x00", &[0x80; 100]] {
            assert!(fault(text).what.starts_with("the log has no JSON document"), "{text:?}");
        }
    }

    #[test]
    fn messages_around_a_document_are_counted() {
        let text = "[Connecting] to \u{fc}\nseq=1\nseq=2\r\n  {\"a\": \"}\\\"]\", \"round_trips\": [{\"seqno\": 0, \"lost\": \"true\", \"timestamps\": {\"client\": {}}}]}\n\n\nbye";
        let (_, end) = read("irtt", &LogOptions::default(), false, text.as_bytes()).expect("a document");
        let first = [(1, "[Connecting] to \u{fc}".to_owned()), (2, "seq=1".to_owned()), (7, "bye".to_owned())];
        assert_eq!((end.others.count, &end.others.first[..]), (4, &first[..]));
        let several = fault(text.repeat(3).replace("bye", "").as_bytes());
        assert_eq!(several.what, "the log has 3 documents, one behind the other");
        let after = LogHead { bytes: text.as_bytes(), is_whole: true };
        assert!(after.has_document(&["\"round_trips\":"]) && !after.has_document(&["\"other\":"]));
        let several = FORMATS.iter().filter(|format| (format.detects)(&after)).map(|format| format.name);
        assert_eq!(several.collect::<Vec<_>>(), ["irtt"]);
    }

    #[test]
    fn deep_nesting_and_long_texts_are_faults() {
        assert!(fault(&[b"{\"a\":", &vec![b'['; TEXT_BYTES_MAX + 10][..]].concat()).what.contains("16777216 bytes"));
    }
}
