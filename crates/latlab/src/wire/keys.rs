//! Keys: what is derived from the pre-shared key, and from what. 256-bit keyed BLAKE3 throughout.

use std::fmt;

use super::{MAC_BYTES, Nonce, TagKey};

/// Separates latlab's use of a key from any other use of the same bytes; never changes within a version.
const SETUP_CONTEXT: &str = "latlab 2026-11 wire version 1 set-up key";
const SESSION_LABEL: &[u8] = b"latlab session 1";

/// The key under which set-up messages are authenticated; one per pre-shared key.
#[derive(Clone)]
pub struct SetupKey([u8; 32]);

impl SetupKey {
    /// The set-up key of `secret`, a pre-shared key of any length.
    pub fn derive(secret: &[u8]) -> SetupKey {
        SetupKey(blake3::derive_key(SETUP_CONTEXT, secret))
    }

    /// The keys of the session that the two nonces and the number name.
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

/// The keys of one session, one per direction (rule R3).
#[derive(Clone, Debug)]
pub struct SessionKeys {
    /// Probes: sender → reflector.
    pub probes: TagKey,
    /// Answers: reflector → sender.
    pub answers: TagKey,
    /// CLOSE and REPORT; their types stand inside the code.
    pub close: Codes,
}

/// How the codes of set-up messages are made and checked: under a key, or, on loopback without one, as zeros.
#[derive(Clone)]
pub enum Codes {
    /// Under this key.
    Keyed([u8; 32]),
    /// No key: the field is zero.
    None,
}

impl Codes {
    /// Writes the code over all bytes before the last [`MAC_BYTES`] into those.
    pub fn seal(&self, message: &mut [u8]) {
        let Some((body, place)) = message.split_last_chunk_mut::<MAC_BYTES>() else { return };
        *place = self.code(body);
    }

    /// Whether the last [`MAC_BYTES`] are the code of all bytes before; takes as long for any wrong one.
    pub fn verify(&self, message: &[u8]) -> bool {
        let Some((body, place)) = message.split_last_chunk::<MAC_BYTES>() else { return false };
        // blake3::Hash compares in constant time.
        blake3::Hash::from_bytes(self.code(body)) == *place
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_holds_for_its_bytes_and_its_key_only() {
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
    fn directions_and_sessions_have_keys_of_their_own() {
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
}
