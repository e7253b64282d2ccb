//! Keys and message authentication codes. All keys are derived from the pre-shared key. Set-up messages carry a 256-bit
//! code (keyed BLAKE3). Probes and answers carry a 64-bit tag (SipHash-2-4; Aumasson and Bernstein, 2012), computed
//! over 64-bit words.

use std::fmt;

use siphasher::sip::SipHasher24;
use zeroize::Zeroize;

use super::{MAC_BYTES, Nonce};

/// The context string of the key derivation, which separates latlab's keys from other keys derived from the same
/// secret. Fixed within a protocol version.
const SETUP_CONTEXT: &str = "latlab 2026-11 wire version 1 set-up key";
const SESSION_LABEL: &[u8] = b"latlab session 1";

/// The key under which set-up messages are authenticated; one per pre-shared key.
#[derive(Clone)]
pub struct SetupKey([u8; 32]);

impl SetupKey {
    /// The set-up key of `secret`, a pre-shared key of any length.
    pub fn derive(secret: &[u8]) -> SetupKey {
        let mut hasher = blake3::Hasher::new_derive_key(SETUP_CONTEXT);
        let key = SetupKey(hasher.update(secret).finalize().into());
        // It has a copy of the secret.
        hasher.zeroize();
        key
    }

    /// The keys of the session that has these two nonces and this number.
    pub fn session(&self, sender: &Nonce, reflector: &Nonce, session: u16) -> SessionKeys {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(SESSION_LABEL).update(sender).update(reflector).update(&session.to_be_bytes());
        let mut output = hasher.finalize_xof();
        let (mut probes, mut answers, mut close) = ([0; 16], [0; 16], [0; 32]);
        output.fill(&mut probes);
        output.fill(&mut answers);
        output.fill(&mut close);
        SessionKeys { probes: TagKey::new(&probes), answers: TagKey::new(&answers), close: Codes::Keyed(close) }
    }

    /// The codes of OPEN, ACCEPT and REFUSE.
    pub fn codes(&self) -> Codes {
        Codes::Keyed(self.0)
    }
}

impl fmt::Debug for SetupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetupKey(…)")
    }
}

/// The keys of one session, one per direction (rule R3 of docs/protocol.md).
#[derive(Clone, Debug)]
pub struct SessionKeys {
    pub probes: TagKey,
    pub answers: TagKey,
    /// CLOSE, REPORT, POLL and TALLY. One key serves both directions, since the code covers the message type.
    pub close: Codes,
}

/// How the codes of set-up messages are computed and verified: with a key, or as zeros without a key, on loopback only.
#[derive(Clone)]
pub enum Codes {
    /// Keyed BLAKE3 with this key.
    Keyed([u8; 32]),
    /// No key: the code is zero.
    None,
}

impl Codes {
    /// Writes the code of all bytes but the last `MAC_BYTES` into the last `MAC_BYTES`.
    pub fn seal(&self, message: &mut [u8]) {
        let Some((body, code)) = message.split_last_chunk_mut::<MAC_BYTES>() else { return };
        *code = self.code(body);
    }

    /// Whether the last `MAC_BYTES` are the code of all bytes before them. Takes constant time.
    pub fn verify(&self, message: &[u8]) -> bool {
        let Some((body, code)) = message.split_last_chunk::<MAC_BYTES>() else { return false };
        // blake3::Hash compares in constant time.
        blake3::Hash::from_bytes(self.code(body)) == *code
    }

    fn code(&self, body: &[u8]) -> [u8; MAC_BYTES] {
        match self {
            Codes::Keyed(key) => *blake3::keyed_hash(key, body).as_bytes(),
            Codes::None => [0; MAC_BYTES],
        }
    }
}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Codes::Keyed(_) => "Codes::Keyed(…)",
            Codes::None => "Codes::None",
        })
    }
}

/// Maximum number of words that a tag covers, reached by an answer with a passage.
const WORDS_MAX: usize = 5;

/// The key of one direction of one session.
#[derive(Clone, Copy)]
pub struct TagKey(SipHasher24);

impl TagKey {
    /// Creates the key from 128 secret bits.
    pub fn new(secret: &[u8; 16]) -> TagKey {
        TagKey(SipHasher24::new_with_key(secret))
    }

    /// The tag of `words`, each as eight bytes in big-endian order; at most five words are covered.
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

/// Whether two tags are equal, in constant time: the exclusive-or of whole words does not end at the first difference.
#[inline]
pub(crate) fn tags_equal(one: u64, other: u64) -> bool {
    std::hint::black_box(one ^ other) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_verifies_for_its_bytes_and_key_only() {
        let codes = SetupKey::derive(b"0123456789abcdef").codes();
        let mut message = [3; 80];
        codes.seal(&mut message);
        assert!(codes.verify(&message));
        assert!(!SetupKey::derive(b"0123456789abcdeg").codes().verify(&message));
        assert!(!Codes::None.verify(&message));
        for at in 0..80 {
            message[at] ^= 0x10;
            assert!(!codes.verify(&message), "byte {at} is not covered");
            message[at] ^= 0x10;
        }
        assert!(!codes.verify(&message[..31]));
    }

    #[test]
    fn directions_and_sessions_have_different_keys() {
        let setup = SetupKey::derive(&[9; 32]);
        let keys = setup.session(&[1; 16], &[2; 16], 3);
        let word = |key: &TagKey| key.tag(&[1, 2, 3]);
        assert_ne!(word(&keys.probes), word(&keys.answers));
        for other in [
            setup.session(&[0; 16], &[2; 16], 3),
            setup.session(&[1; 16], &[0; 16], 3),
            setup.session(&[1; 16], &[2; 16], 4),
        ] {
            assert_ne!(word(&keys.probes), word(&other.probes));
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let setup = SetupKey::derive(&[9; 32]);
        assert_eq!(format!("{setup:?} {:?}", setup.codes()), "SetupKey(…) Codes::Keyed(…)");
        assert!(!format!("{:?}", setup.session(&[1; 16], &[2; 16], 3)).contains(|c: char| c.is_ascii_digit()));
    }

    #[test]
    fn the_tag_is_siphash_2_4() {
        // Key 00 01 … 0f; inputs 00 … 07 and 00 … 0f: two of the reference implementation's test vectors.
        let key = TagKey::new(&std::array::from_fn(|at| at as u8));
        let input = [0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f];
        assert_eq!(key.tag(&input[..1]).to_le_bytes(), [0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93]);
        assert_eq!(key.tag(&input).to_le_bytes(), [0xdb, 0x9b, 0xc2, 0x57, 0x7f, 0xcc, 0x2a, 0x3f]);
    }

    #[test]
    fn the_tag_depends_on_every_word_and_their_number() {
        let key = TagKey::new(&[5; 16]);
        let tag = key.tag(&[1, 2, 3]);
        for other in [&[0, 2, 3][..], &[1, 0, 3], &[1, 2, 0], &[1, 2, 3, 0], &[1, 2]] {
            assert!(!tags_equal(tag, key.tag(other)), "{other:?}");
        }
        assert!(tags_equal(tag, key.tag(&[1, 2, 3])));
        assert!(!tags_equal(tag, TagKey::new(&[6; 16]).tag(&[1, 2, 3])));
    }
}
