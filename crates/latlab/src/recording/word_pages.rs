//! Dictionary-encoded words, decoded run by run.
//!
//! The general reader makes a byte array of every value; a column of five different words and ten million rows deserves
//! better. Encodings: <https://parquet.apache.org/docs/file-format/data-pages/encodings/>, PLAIN for the
//! dictionary and RLE_DICTIONARY (a bit width, then runs and bit-packed groups) for the rows.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};

/// The words of one column chunk without nulls: `word` says what a dictionary entry means.
///
/// # Errors
/// A sentence about what is wrong with the chunk.
pub(crate) fn read<T: Copy>(
    pages: &mut dyn PageReader,
    rows: usize,
    word: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, String> {
    let mut dictionary: Vec<T> = Vec::new();
    let mut words = Vec::with_capacity(rows);
    while let Some(page) = pages.get_next_page().map_err(|error| error.to_string())? {
        let values = page.num_values() as usize;
        let (encoding, bytes) = match &page {
            Page::DictionaryPage { buf, .. } => {
                dictionary = plain(buf, values, &word)?;
                continue;
            }
            Page::DataPage { buf, encoding, .. } => (*encoding, &buf[..]),
            Page::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
                (*encoding, buf.get(levels..).ok_or("a page shorter than its levels")?)
            }
        };
        match encoding {
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => hybrid(bytes, values, &dictionary, &mut words)?,
            Encoding::PLAIN => words.extend(plain(bytes, values, &word)?),
            other => return Err(format!("words in the encoding {other}")),
        }
    }
    if words.len() == rows { Ok(words) } else { Err(format!("{} words for {rows} rows", words.len())) }
}

/// Length-prefixed strings.
fn plain<T>(mut bytes: &[u8], values: usize, word: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let mut words = Vec::new();
    for _ in 0..values {
        let (length, rest) = bytes.split_first_chunk().ok_or("a dictionary that ends early")?;
        let length = u32::from_le_bytes(*length) as usize;
        let (text, rest) = rest.split_at_checked(length).ok_or("a dictionary that ends early")?;
        let text = String::from_utf8_lossy(text);
        words.push(word(&text).ok_or_else(|| format!("the unknown word `{text}`"))?);
        bytes = rest;
    }
    Ok(words)
}

/// Runs and bit-packed groups of dictionary indices, `values` of them.
fn hybrid<T: Copy>(bytes: &[u8], values: usize, dictionary: &[T], words: &mut Vec<T>) -> Result<(), String> {
    const SHORT: &str = "a page that ends early";
    let (width, mut bytes) = bytes.split_first().ok_or(SHORT)?;
    let width = usize::from(*width);
    if width > 8 {
        return Err(format!("a dictionary index of {width} bits"));
    }
    let look_up = |index: u8| dictionary.get(usize::from(index)).copied().ok_or("an index past the dictionary");
    let mut left = values;
    while left > 0 {
        let (header, rest) = varint(bytes).ok_or(SHORT)?;
        if header & 1 == 0 {
            let (index, rest) = if width == 0 { (&0, rest) } else { rest.split_first().ok_or(SHORT)? };
            let run = left.min((header >> 1) as usize);
            if run == 0 {
                return Err("a run of nothing".into());
            }
            words.resize(words.len() + run, look_up(*index)?);
            (left, bytes) = (left - run, rest);
        } else {
            let groups = (header >> 1) as usize;
            let length = groups.checked_mul(width).ok_or(SHORT)?;
            let (packed, rest) = rest.split_at_checked(length).ok_or(SHORT)?;
            let packed_values = left.min(groups * 8);
            if packed_values == 0 {
                return Err("a group of nothing".into());
            }
            for value in 0..packed_values {
                words.push(look_up(bits(packed, value * width, width))?);
            }
            (left, bytes) = (left - packed_values, rest);
        }
    }
    Ok(())
}

/// The `width` bits (at most 8) that begin at bit `at`.
#[inline]
fn bits(packed: &[u8], at: usize, width: usize) -> u8 {
    let byte = |index: usize| u16::from(packed.get(index).copied().unwrap_or(0));
    let both = byte(at / 8) | byte(at / 8 + 1) << 8;
    ((both >> (at % 8)) & ((1 << width) - 1)) as u8
}

/// An unsigned LEB128 number of at most 32 bits.
fn varint(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut number = 0u64;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(number).ok()?, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_groups_become_words() {
        // Width 2; a run of 3 × index 1; one group of 8: 0 1 2 0 1 2 0 1.
        let bytes = [2, 3 << 1, 1, (1 << 1) | 1, 0b0010_0100, 0b0100_1001];
        let mut words = Vec::new();
        hybrid(&bytes, 10, &['a', 'b', 'c'], &mut words).expect("decodes");
        assert_eq!(words.iter().collect::<String>(), "bbbabcabca");
    }

    #[test]
    fn one_word_needs_no_bits() {
        let mut words = Vec::new();
        hybrid(&[0, 200, 1], 100, &['x'], &mut words).expect("decodes");
        assert_eq!(words, ['x'; 100]);
    }

    #[test]
    fn broken_pages_are_refused_and_never_panic() {
        let mut words: Vec<char> = Vec::new();
        for bytes in [
            &[][..],
            &[2],
            &[2, 6],
            &[2, 0, 0],
            &[2, 6, 3],
            &[9, 6, 0],
            &[2, 1],
            &[2, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[2, 3, 0],
        ] {
            assert!(hybrid(bytes, 3, &['a', 'b', 'c'], &mut words).is_err(), "{bytes:?}");
        }
        assert!(plain(&[9, 0, 0, 0, b'x'], 1, |_| Some(())).is_err());
        assert!(plain(&[1, 0, 0, 0, b'x'], 1, |_| None::<()>).is_err());
    }
}
