//! Text in UTF-16, as Windows writes it.

/// `bytes` in UTF-8, if they begin with a byte order mark of UTF-16. Other values, and half a one at the end, become U+FFFD.
pub fn from_utf16(bytes: &[u8]) -> Option<String> {
    let (mark, text) = bytes.split_at_checked(2)?;
    let unit = match mark {
        b"\xff\xfe" => u16::from_le_bytes,
        b"\xfe\xff" => u16::from_be_bytes,
        _ => return None,
    };
    let pairs = text.chunks(2).map(|pair| pair.try_into().map_or(0xdc00, unit));
    Some(char::decode_utf16(pairs).map(|found| found.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}
