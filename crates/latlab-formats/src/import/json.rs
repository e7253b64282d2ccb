//! JSON documents that are read as a stream: memory is bounded, whatever the document is.

use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::error::Category;

use super::LogFault;
use super::field::bounded;

/// The most bytes of a text or a number. iperf3 writes the whole output of its other end as one text.
const TOKEN_BYTES_MAX: usize = 1 << 24;
/// The most brackets that are open at once.
const DEPTH_MAX: usize = 128;
/// The most elements of an array that is kept: iperf3 has at most 128 streams.
const FEW: usize = 1_024;
/// The bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 16;
/// The first bytes of a file that gzip compressed.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// A visitor stopped the reading, and keeps the reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not imported")
    }
}

/// Reads the document `input`, an object, with `visitor`.
///
/// # Errors
/// Where the document is malformed or the visitor stopped.
pub(super) fn read<V>(input: &mut dyn BufRead, visitor: V) -> Result<(), LogFault>
where
    V: for<'de> Visitor<'de, Value = ()>,
{
    let head = input.fill_buf().map_err(|error| unreadable(&error))?;
    if head.starts_with(GZIP) {
        return Err(LogFault::whole("the log is compressed by gzip").hint("uncompress it first, with `gunzip`"));
    }
    let tokens = BoundedTokens { input, in_text: false, escaped: false, length: 0, depth: 0 };
    let mut document = serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER_BYTES, tokens));
    let end = document.deserialize_map(visitor).and_then(|()| document.end());
    end.map_err(|error| fault_of(&error))
}

fn unreadable(error: &io::Error) -> LogFault {
    LogFault::whole(format!("cannot read the log: {error}"))
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

/// The bytes of a document, in which no text, number or nesting is longer than its limit: the parser keeps these.
struct BoundedTokens<'a> {
    input: &'a mut dyn BufRead,
    in_text: bool,
    escaped: bool,
    /// Bytes of the text or number so far.
    length: usize,
    depth: usize,
}

impl BoundedTokens<'_> {
    fn take(&mut self, byte: u8) {
        self.length += 1;
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_text => self.escaped = true,
            b'"' => (self.in_text, self.length) = (!self.in_text, 0),
            _ if self.in_text => {}
            b'{' | b'[' => (self.depth, self.length) = (self.depth + 1, 0),
            b'}' | b']' => (self.depth, self.length) = (self.depth.saturating_sub(1), 0),
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => self.length = 0,
            _ => {}
        }
    }
}

impl Read for BoundedTokens<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        for byte in &buffer[..read] {
            self.take(*byte);
            if self.length > TOKEN_BYTES_MAX || self.depth > DEPTH_MAX {
                let what =
                    format!("a text has more than {TOKEN_BYTES_MAX} bytes, or more than {DEPTH_MAX} brackets are open");
                return Err(io::Error::new(ErrorKind::InvalidData, what));
            }
        }
        Ok(read)
    }
}

/// Passes each element of an array to a function, and keeps none.
pub(super) struct Each<T, F> {
    take: F,
    element: PhantomData<T>,
}

/// Passes each element of an array to `take`.
pub(super) fn each<T, F: FnMut(T) -> Result<(), Stopped>>(take: F) -> Each<T, F> {
    Each { take, element: PhantomData }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T) -> Result<(), Stopped>> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, array: D) -> Result<(), D::Error> {
        array.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T) -> Result<(), Stopped>> Visitor<'de> for Each<T, F> {
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

/// An instant in ns, which may be missing.
///
/// # Errors
/// It is beyond 146 years.
pub(super) fn instant<'de, D: Deserializer<'de>>(number: D) -> Result<Option<i64>, D::Error> {
    let Some(nanos) = Option::<i64>::deserialize(number)? else { return Ok(None) };
    let too_large = || D::Error::custom(format!("{nanos} ns is not an instant below 146 years"));
    bounded(nanos).ok_or_else(too_large).map(Some)
}

/// The elements of an array that has at most 1,024.
pub(super) fn few<'de, T: Deserialize<'de>, D: Deserializer<'de>>(array: D) -> Result<Vec<T>, D::Error> {
    let mut elements = Vec::new();
    let keep = |element| {
        elements.push(element);
        if elements.len() > FEW { Err(Stopped) } else { Ok(()) }
    };
    each(keep).deserialize(array)?;
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use serde::de::{IgnoredAny, MapAccess};

    use super::*;

    /// Takes an object, and nothing of it.
    struct Nothing;

    impl<'de> Visitor<'de> for Nothing {
        type Value = ();

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
            while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(())
        }
    }

    fn fault(text: &[u8]) -> LogFault {
        read(&mut &text[..], Nothing).expect_err("malformed")
    }

    #[test]
    fn a_malformed_document_is_a_fault_with_line_and_column() {
        let position = |text: &str| {
            let fault = fault(text.as_bytes());
            (fault.line, fault.column, fault.what)
        };
        assert_eq!(position("{\"a\": 1,\n  \"b\": x}"), (Some(2), Some(8), "expected value".into()));
        assert_eq!(position("{\"a\": [1, 2"), (Some(1), Some(11), "the document ends within a value".into()));
        assert_eq!(position("{} {}"), (Some(1), Some(4), "trailing characters".into()));
        assert_eq!(position("[1]").2, "invalid type: sequence, expected an object");
        assert_eq!(position("").2, "the document ends within a value");
        assert!(read(&mut &b"{\"a\": [1, {\"b\": \"}\\\"]\"}]}\n"[..], Nothing).is_ok());
    }

    #[test]
    fn binary_junk_and_gzip_are_faults() {
        assert!(fault(b"\x1f\x8b\x08\x00").hint.expect("a hint").contains("gunzip"));
        assert_eq!(fault(b"\xff\xfe{\x00}\x00").line, Some(1));
        assert_eq!(fault(&[0x80; 100]).line, Some(1));
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

    #[test]
    fn an_instant_beyond_146_years_is_a_fault() {
        let read = |text: &str| instant(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read("-4611686018427387903").expect("an instant"), Some(-(1 << 62) + 1));
        assert_eq!(read("null").expect("no instant"), None);
        for text in ["4611686018427387904", "-4611686018427387904", "9223372036854775807", "1.5"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_array_that_is_kept_is_bounded() {
        let array = |elements: usize| {
            few::<u8, _>(&mut serde_json::Deserializer::from_str(&format!("{:?}", vec![7; elements])))
        };
        assert_eq!(array(FEW).expect("few").len(), FEW);
        assert!(array(FEW + 1).is_err());
    }
}
