//! The tag of a probe: SipHash-2-4, 64 bits (Aumasson and Bernstein, 2012), over words rather than bytes.

use std::fmt;

use siphasher::sip::SipHasher24;

/// The most words a tag covers: what an answer of 32 bytes or more says.
const WORDS_MAX: usize = 4;

/// The key of one direction of one session.
#[derive(Clone, Copy)]
pub struct TagKey(SipHasher24);

impl TagKey {
    /// The tag key of 128 secret bits.
    pub fn new(secret: &[u8; 16]) -> TagKey {
        TagKey(SipHasher24::new_with_key(secret))
    }

    /// The tag of `words`, each taken as eight bytes, big endian; never more than four.
    #[inline]
    pub fn tag(&self, words: &[u64]) -> u64 {
        let mut bytes = [0; WORDS_MAX * 8];
        let (places, _) = bytes.as_chunks_mut::<8>();
        for (place, word) in places.iter_mut().zip(words) {
            *place = word.to_be_bytes();
        }
        self.0.hash(&bytes[..words.len().min(WORDS_MAX) * 8])
    }
}

impl fmt::Debug for TagKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TagKey(…)")
    }
}

/// Whether two tags are equal, in a time that tells nothing of where they differ: the
/// exclusive-or of whole words has no early way out.
#[inline]
pub fn tags_equal(one: u64, other: u64) -> bool {
    std::hint::black_box(one ^ other) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_siphash_2_4() {
        // Key 00 01 … 0f; inputs 00 … 07 and 00 … 0f: two of the reference implementation's test vectors.
        let key = TagKey::new(&std::array::from_fn(|at| at as u8));
        let input = [0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f];
        assert_eq!(key.tag(&input[..1]).to_le_bytes(), [0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93]);
        assert_eq!(key.tag(&input).to_le_bytes(), [0xdb, 0x9b, 0xc2, 0x57, 0x7f, 0xcc, 0x2a, 0x3f]);
    }

    #[test]
    fn every_word_and_their_number_count() {
        let key = TagKey::new(&[5; 16]);
        let tag = key.tag(&[1, 2, 3]);
        for other in [&[0, 2, 3][..], &[1, 0, 3], &[1, 2, 0], &[1, 2, 3, 0], &[1, 2]] {
            assert!(!tags_equal(tag, key.tag(other)), "{other:?}");
        }
        assert!(tags_equal(tag, key.tag(&[1, 2, 3])));
        assert!(!tags_equal(tag, TagKey::new(&[6; 16]).tag(&[1, 2, 3])));
    }
}
