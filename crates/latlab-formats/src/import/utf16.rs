//! Text in UTF-16, as Windows writes it, read as UTF-8.

use std::io::{self, Read};

/// The bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 13;

/// Decodes UTF-16 while it is read; other values become U+FFFD.
#[derive(Debug)]
pub struct Utf16 {
    unit: fn([u8; 2]) -> u16,
    /// Bytes that are not yet decoded.
    bytes: Vec<u8>,
    /// What was decoded, and how much of it was taken.
    text: String,
    taken: usize,
}

impl Utf16 {
    /// The decoder of a text that begins with `bytes`, if these begin with a byte order mark of UTF-16.
    pub fn of(bytes: &[u8]) -> Option<Utf16> {
        let (mark, text) = bytes.split_at_checked(2)?;
        let unit = match mark {
            b"\xff\xfe" => u16::from_le_bytes,
            b"\xfe\xff" => u16::from_be_bytes,
            _ => return None,
        };
        Some(Utf16 { unit, bytes: text.to_owned(), text: String::new(), taken: 0 })
    }

    /// Fills the front of `buffer` with the next text of `input`, as `Read` does.
    ///
    /// # Errors
    /// That of `input`.
    pub fn read(&mut self, input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.text.len() {
            let kept = self.bytes.len();
            self.bytes.resize(kept + BUFFER_BYTES, 0);
            let read = input.read(&mut self.bytes[kept..]);
            self.bytes.truncate(kept + *read.as_ref().unwrap_or(&0));
            if read? == 0 && kept == 0 {
                return Ok(0);
            }
            self.decode(self.bytes.len() == kept);
        }
        let length = buffer.len().min(self.text.len() - self.taken);
        buffer[..length].copy_from_slice(&self.text.as_bytes()[self.taken..self.taken + length]);
        self.taken += length;
        Ok(length)
    }

    /// Decodes the bytes, except a part of a character if it is not the `last` one.
    fn decode(&mut self, is_last: bool) {
        let mut units: Vec<u16> = self.bytes.chunks_exact(2).map(|pair| (self.unit)([pair[0], pair[1]])).collect();
        units.pop_if(|unit| (0xd800..0xdc00).contains(unit) && !is_last);
        self.bytes.drain(..2 * units.len());
        self.text.clear();
        self.text.extend(char::decode_utf16(units).map(|found| found.unwrap_or(char::REPLACEMENT_CHARACTER)));
        if is_last && self.bytes.pop().is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_either_order_is_read_in_any_pieces() {
        let text = "Zeit=23ms TTL=57\r\n\u{1f600} µs\n".repeat(2_000);
        for (order, mark) in [(u16::to_le_bytes as fn(u16) -> [u8; 2], [0xff, 0xfe]), (u16::to_be_bytes, [0xfe, 0xff])]
        {
            let bytes: Vec<u8> = mark.into_iter().chain(text.encode_utf16().flat_map(order)).collect();
            for (head, piece) in [(2, 1), (3, 7), (4_001, 4_096)] {
                let mut found = Utf16::of(&bytes[..head]).expect("UTF-16");
                let (mut rest, mut all, mut buffer) = (&bytes[head..], Vec::<u8>::new(), vec![0; piece]);
                while let Ok(read @ 1..) = found.read(&mut (&mut rest).take(u64::MAX), &mut buffer) {
                    all.extend(&buffer[..read]);
                }
                assert!(all == text.as_bytes(), "{head} {piece}");
            }
        }
        let mut half = Utf16::of(b"\xff\xfea\0\x3d\xd8b").expect("UTF-16");
        let mut buffer = [0; 16];
        let read = half.read(&mut io::empty(), &mut buffer).expect("no error");
        assert_eq!(std::str::from_utf8(&buffer[..read]), Ok("a\u{fffd}\u{fffd}"));
        assert!(Utf16::of(b"\xef\xbb\xbf12").is_none());
    }
}
