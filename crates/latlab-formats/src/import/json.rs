//! JSON documents that are read as a stream: memory is bounded, whatever a log is.

use std::fmt;
use std::io::{self, BufRead, ErrorKind, Read};
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use super::{LogFault, LogHead, OtherLines};

/// The most bytes of a text or a number. iperf3 writes the whole output of its other end as one text.
const TOKEN_BYTES_MAX: usize = 1 << 24;
/// The most brackets that are open at once.
const DEPTH_MAX: usize = 128;
/// The bytes of a message that are kept.
const MESSAGE_BYTES: usize = 160;

/// Whether a document begins in `head`, on a line of its own behind messages, and has one of these texts.
pub(super) fn has_any(head: &LogHead<'_>, texts: &[&str]) -> bool {
    let begins = head.bytes.split(|byte| *byte == b'\n').any(|line| line.trim_ascii_start().starts_with(b"{"));
    begins && texts.iter().any(|text| memchr::memmem::find(head.bytes, text.as_bytes()).is_some())
}

/// The documents of a log: objects, none of whose texts, numbers and nestings is longer than its limit. Lines in front of
/// them and behind them are messages, of which only the ends are passed on.
pub(super) struct Documents<'a> {
    input: &'a mut dyn Read,
    pub(super) messages: OtherLines,
    line: u64,
    place: Place,
    /// The beginning of the message.
    message: Vec<u8>,
    /// Bytes of the text or number so far.
    length: usize,
    depth: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Behind the blanks at the beginning of a line.
    Outside,
    Message,
    Document,
    Text,
    Escape,
}

impl<'a> Documents<'a> {
    pub(super) fn new(input: &'a mut dyn Read) -> Documents<'a> {
        let messages = OtherLines::default();
        Documents { input, messages, line: 1, place: Place::Outside, message: Vec::new(), length: 0, depth: 0 }
    }

    /// Takes `byte`; returns whether it is passed on.
    fn take(&mut self, byte: u8) -> bool {
        let is_end = byte == b'\n';
        self.length += 1;
        self.place = match (self.place, byte) {
            (Place::Outside, b'{') | (Place::Document, b'{' | b'[') => {
                (self.depth, self.length) = (self.depth + 1, 0);
                Place::Document
            }
            (Place::Document, b'}' | b']') => {
                (self.depth, self.length) = (self.depth - 1, 0);
                if self.depth == 0 { Place::Outside } else { Place::Document }
            }
            (Place::Outside, _) if byte.is_ascii_whitespace() => Place::Outside,
            (Place::Message, b'\n') => {
                self.end_message();
                Place::Outside
            }
            (Place::Outside | Place::Message, _) => {
                if self.message.len() < MESSAGE_BYTES {
                    self.message.push(byte);
                }
                Place::Message
            }
            (Place::Document | Place::Text, b'"') => {
                self.length = 0;
                if self.place == Place::Text { Place::Document } else { Place::Text }
            }
            (Place::Text, b'\\') => Place::Escape,
            (Place::Text | Place::Escape, _) => Place::Text,
            (Place::Document, _) => {
                if b",: \t\r\n".contains(&byte) {
                    self.length = 0;
                }
                Place::Document
            }
        };
        self.line += u64::from(is_end);
        is_end || self.place != Place::Message
    }

    fn end_message(&mut self) {
        self.length = 0;
        if !self.message.is_empty() {
            self.messages.take(self.line, self.message.trim_ascii_end());
            self.message.clear();
        }
    }
}

impl Read for Documents<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut kept = 0;
        while kept == 0 {
            let read = self.input.read(buffer)?;
            if read == 0 {
                self.end_message();
                break;
            }
            for at in 0..read {
                let byte = buffer[at];
                if self.take(byte) {
                    buffer[kept] = byte;
                    kept += 1;
                }
                if self.depth > 0 && (self.length > TOKEN_BYTES_MAX || self.depth > DEPTH_MAX) {
                    let what = "a text has more than 16777216 bytes, or more than 128 brackets are open";
                    return Err(io::Error::new(ErrorKind::InvalidData, what));
                }
            }
        }
        Ok(kept)
    }
}

/// What reads a document.
pub(super) type DocumentReader<'a> = serde_json::Deserializer<serde_json::de::IoRead<&'a mut dyn BufRead>>;

/// Reads each document of `input` with `take`; returns how many there are, at least one.
///
/// # Errors
/// Where a document is malformed or `take` stopped, or that there is none.
pub(super) fn read_each(
    input: &mut dyn BufRead,
    mut take: impl FnMut(&mut DocumentReader<'_>) -> serde_json::Result<()>,
) -> Result<usize, LogFault> {
    let mut documents = serde_json::Deserializer::from_reader(input);
    let mut count = 0;
    loop {
        match documents.end() {
            Ok(()) if count > 0 => return Ok(count),
            Ok(()) => return Err(LogFault::whole("the log has no JSON document, which begins with `{`")),
            Err(error) if error.classify() == Category::Io => return Err(fault_of(&error)),
            Err(_) => take(&mut documents).map_err(|error| fault_of(&error))?,
        }
        count += 1;
    }
}

/// Reads the only document of `input`, an object, with `visitor`.
///
/// # Errors
/// Where the document is malformed or the visitor stopped, or that it is not the only one.
pub(super) fn read<V>(input: &mut dyn BufRead, visitor: V) -> Result<(), LogFault>
where
    V: for<'de> Visitor<'de, Value = ()>,
{
    let mut visitor = Some(visitor);
    let count = read_each(input, |document| match visitor.take() {
        Some(visitor) => document.deserialize_map(visitor),
        None => IgnoredAny::deserialize(document).map(|_| ()),
    })?;
    expect_one(count, "documents")
}

/// Refuses a log of several runs, for each of which it has a document or several.
pub(super) fn expect_one(count: usize, noun: &str) -> Result<(), LogFault> {
    match count {
        0 | 1 => Ok(()),
        _ => Err(LogFault::whole(format!("the log has {count} {noun}, one behind the other"))
            .hint("import each by itself: `jq -s '.[0]' FILE | latlab import -`, then `.[1]` and so on")),
    }
}

/// What `error` says, without the position in its text.
fn fault_of(error: &serde_json::Error) -> LogFault {
    let text = error.to_string();
    let what = text.strip_suffix(&format!(" at line {} column {}", error.line(), error.column())).unwrap_or(&text);
    let fault = match error.classify() {
        Category::Io if error.io_error_kind() == Some(ErrorKind::InvalidData) => return LogFault::whole(what),
        Category::Io => return LogFault::whole(format!("cannot read the log: {what}")),
        Category::Eof => LogFault::at(error.column().max(1), "the document ends within a value"),
        Category::Syntax | Category::Data => LogFault::at(error.column().max(1), what),
    };
    LogFault { line: Some(error.line() as u64), ..fault }
}

/// What takes the members of an object.
pub(super) trait Members {
    /// Takes the value of the member `name` from `object`; one that is not read is an [`IgnoredAny`].
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, object: &mut A) -> Result<(), A::Error>;
}

/// Passes each member of an object, or of each object of an array, on, and keeps none.
pub(super) struct Object<'a, M>(pub(super) &'a mut M);

impl<'de, M: Members> DeserializeSeed<'de> for Object<'_, M> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, object: D) -> Result<(), D::Error> {
        object.deserialize_any(self)
    }
}

impl<'de, M: Members> Visitor<'de> for Object<'_, M> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        while array.next_element_seed(Object(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(name) = object.next_key::<String>()? {
            self.0.member(&name, &mut object)?;
        }
        Ok(())
    }
}

/// Reads the value of a member, and keeps nothing.
pub(super) fn ignore<'de, A: MapAccess<'de>>(object: &mut A) -> Result<(), A::Error> {
    object.next_value::<IgnoredAny>().map(|_| ())
}

/// Passes each element of an array to a function, and keeps none.
pub(super) struct Each<T, F> {
    take: F,
    element: PhantomData<T>,
}

/// Passes each element of an array to `take`, which may stop the reading with a reason.
pub(super) fn each<T, F: FnMut(T) -> Result<(), String>>(take: F) -> Each<T, F> {
    Each { take, element: PhantomData }
}

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
            (self.take)(element).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::super::{FORMATS, LogOptions, irtt};
    use super::*;

    /// The fault of a log of irtt, which is not of its content.
    fn fault(text: &[u8]) -> LogFault {
        read(&irtt::FORMAT, &LogOptions::default(), true, text).expect_err("malformed")
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
        let (_, end) = read(&irtt::FORMAT, &LogOptions::default(), false, text.as_bytes()).expect("a document");
        let first = [(1, "[Connecting] to \u{fc}".to_owned()), (2, "seq=1".to_owned()), (7, "bye".to_owned())];
        assert_eq!((end.others.count, &end.others.first[..]), (4, &first[..]));
        let several = fault(text.repeat(3).replace("bye", "").as_bytes());
        assert_eq!(several.what, "the log has 3 documents, one behind the other");
        let after = LogHead { bytes: text.as_bytes(), is_whole: true };
        assert!(has_any(&after, &["\"round_trips\":"]) && !has_any(&after, &["\"other\":"]));
        let several = FORMATS.iter().filter(|format| (format.detects)(&after)).map(|format| format.name);
        assert_eq!(several.collect::<Vec<_>>(), ["irtt"]);
    }

    #[test]
    fn deep_nesting_and_long_texts_are_faults() {
        assert!(fault(&b"{\"a\":".repeat(2 * DEPTH_MAX)).what.contains("128 brackets"));
        let mut long = b"{\"".to_vec();
        long.resize(TOKEN_BYTES_MAX + 10, b'x');
        assert!(fault(&long).what.contains("16777216 bytes"));
        long.fill(b'1');
        long[..5].copy_from_slice(b"{\"a\":");
        assert!(fault(&long).what.contains("16777216 bytes"));
    }
}
