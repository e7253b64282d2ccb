//! HELLO and COOKIE: does the sender receive at the address it writes from? The layout of these two never changes,
//! whatever the version, so that a mismatch of versions can be reported.

use super::{Malformed, MessageHeader, MessageType, NONCE_BYTES, Nonce, put, take};

/// The shortest HELLO: its COOKIE is far shorter, so that a forged source gains nothing.
pub const HELLO_MIN_BYTES: usize = 128;
/// A COOKIE.
pub const COOKIE_BYTES: usize = 48;
/// Proof of an address: a keyed hash that only the reflector can make, and that it need not remember.
pub type CookieToken = [u8; 16];

const NONCE_AT: usize = 8;
const TOKEN_AT: usize = 24;
const FLAGS_AT: usize = 40;
const FLAG_KEY_REQUIRED: u8 = 1;

/// HELLO: 8 header, 16 nonce, zeros up to at least 128 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The highest version the sender speaks; for the record only.
    pub version: u8,
    /// The sender's nonce: the COOKIE comes back with it and is bound to it.
    pub nonce: Nonce,
}

impl Hello {
    /// Reads a HELLO of any version.
    ///
    /// # Errors
    /// [`Malformed`] where `datagram` is none, or is not padded enough.
    pub fn parse(datagram: &[u8]) -> Result<Hello, Malformed> {
        let header = MessageHeader::parse(datagram)?;
        if header.message != MessageType::Hello {
            return Err(Malformed::Type);
        }
        if datagram.len() < HELLO_MIN_BYTES {
            return Err(Malformed::Length);
        }
        Ok(Hello { version: header.version, nonce: take(datagram, NONCE_AT) })
    }
}

/// A HELLO with `nonce`, padded.
pub fn hello_datagram(nonce: &Nonce) -> [u8; HELLO_MIN_BYTES] {
    let mut datagram = [0; HELLO_MIN_BYTES];
    MessageHeader::new(MessageType::Hello, 0).write(&mut datagram);
    put(&mut datagram, NONCE_AT, *nonce);
    datagram
}

/// COOKIE: 8 header, 16 nonce, 16 token, 1 flags, 7 zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// The version the reflector speaks.
    pub version: u8,
    /// The HELLO's nonce: shows that the answering end has seen the HELLO.
    pub nonce: Nonce,
    /// To be shown in OPEN.
    pub token: CookieToken,
    /// Whether the reflector asks for a pre-shared key.
    pub key_required: bool,
}

impl Cookie {
    /// This version's COOKIE.
    pub const fn new(nonce: Nonce, token: CookieToken, key_required: bool) -> Cookie {
        Cookie { version: super::VERSION, nonce, token, key_required }
    }

    /// Reads a COOKIE of any version.
    ///
    /// # Errors
    /// [`Malformed`] where `datagram` is none.
    pub fn parse(datagram: &[u8]) -> Result<Cookie, Malformed> {
        let header = MessageHeader::parse(datagram)?;
        if header.message != MessageType::Cookie {
            return Err(Malformed::Type);
        }
        if datagram.len() != COOKIE_BYTES {
            return Err(Malformed::Length);
        }
        let [flags] = take(datagram, FLAGS_AT);
        Ok(Cookie {
            version: header.version,
            nonce: take(datagram, NONCE_AT),
            token: take(datagram, TOKEN_AT),
            key_required: flags & FLAG_KEY_REQUIRED != 0,
        })
    }

    /// Writes the COOKIE.
    pub fn write(&self, to: &mut [u8; COOKIE_BYTES]) {
        to.fill(0);
        MessageHeader { version: self.version, ..MessageHeader::new(MessageType::Cookie, 0) }.write(to);
        put(to, NONCE_AT, self.nonce);
        put(to, TOKEN_AT, self.token);
        put(to, FLAGS_AT, [if self.key_required { FLAG_KEY_REQUIRED } else { 0 }]);
    }
}

const _: () = assert!(NONCE_AT + NONCE_BYTES == TOKEN_AT && COOKIE_BYTES < HELLO_MIN_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_hello_is_none() {
        let datagram = hello_datagram(&[7; 16]);
        assert_eq!(Hello::parse(&datagram), Ok(Hello { version: 1, nonce: [7; 16] }));
        assert_eq!(Hello::parse(&datagram[..127]), Err(Malformed::Length));
        assert!(Hello::parse(&[&datagram[..], &[0; 900]].concat()).is_ok(), "more padding is welcome");
    }

    #[test]
    fn hello_and_cookie_are_read_in_any_version() {
        let mut datagram = hello_datagram(&[7; 16]);
        datagram[1] = 9;
        assert_eq!(Hello::parse(&datagram).map(|hello| hello.version), Ok(9));
        let cookie = Cookie { version: 9, ..Cookie::new([1; 16], [2; 16], true) };
        let mut bytes = [0xff; COOKIE_BYTES];
        cookie.write(&mut bytes);
        assert_eq!(Cookie::parse(&bytes), Ok(cookie));
        assert_eq!(bytes[41..], [0; 7], "nothing of what stood there before is sent");
    }
}
