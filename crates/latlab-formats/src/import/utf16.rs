//! Text in UTF-16, as Windows writes it, read as UTF-8.

use std::io::{self, Read};

/// Decodes UTF-16 while it is read; other values become U+FFFD.
#[derive(Debug)]
pub struct Utf16 {
    unit: fn([u8; 2]) -> u16,
    bytes: Vec<u8>,
    text: io::Cursor<String>,
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
        Some(Utf16 { unit, bytes: text.to_owned(), text: io::Cursor::default() })
    }

    /// Fills the front of `buffer` with the next text of `input`, as `Read` does.
    pub fn read(&mut self, input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.text.read(buffer)? {
                0 => {}
                taken => return Ok(taken),
            }
            let kept = self.bytes.len();
            input.take(1 << 13).read_to_end(&mut self.bytes)?;
            if self.bytes.is_empty() {
                return Ok(0);
            }
            let is_last = self.bytes.len() == kept;
            let mut units: Vec<u16> = self.bytes.chunks_exact(2).map(|pair| (self.unit)([pair[0], pair[1]])).collect();
            // The other half of a character may follow.
            units.pop_if(|unit| (0xd800..0xdc00).contains(unit) && !is_last);
            self.bytes.drain(..2 * units.len());
            let chars = char::decode_utf16(units).map(|found| found.unwrap_or(char::REPLACEMENT_CHARACTER));
            let odd = self.bytes.pop_if(|_| is_last).map(|_| char::REPLACEMENT_CHARACTER);
            self.text = io::Cursor::new(chars.chain(odd).collect());
        }
    }
}
