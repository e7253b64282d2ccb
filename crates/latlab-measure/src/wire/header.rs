//! Headers: the type of every message; version, session and magic number of set-up messages, POLL and TALLY.

use super::{Malformed, put, take};

/// The protocol version that this latlab speaks.
pub const VERSION: u8 = 1;
/// Bytes of a set-up message's header.
pub(crate) const SETUP_HEADER_BYTES: usize = 8;
pub(crate) const NONCE_BYTES: usize = 16;
/// Bytes of a set-up message's authentication code.
pub(crate) const MAC_BYTES: usize = 32;

pub type Nonce = [u8; NONCE_BYTES];

/// `lltb`: distinguishes set-up messages from datagrams of other programs.
const MAGIC: u32 = 0x6c6c_7462;

/// The first byte of every datagram. Requests are odd, replies even, so that neither is accepted as the other even before
/// a tag is checked (rule R3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MessageType {
    /// Sender → reflector: request for a COOKIE.
    Hello = 0x01,
    /// Reflector → sender: a token that proves the sender's address.
    Cookie = 0x02,
    /// Sender → reflector: the token, and the requested terms.
    Open = 0x03,
    /// Reflector → sender: the session is open, with these terms.
    Accept = 0x04,
    /// Reflector → sender: the session is refused, with the reason.
    Refuse = 0x06,
    /// Sender → reflector: the session is over.
    Close = 0x07,
    /// Reflector → sender: the counts of the session.
    Report = 0x08,
    /// Sender → reflector: a probe.
    Probe = 0x11,
    /// Reflector → sender: the answer to a probe.
    Answer = 0x12,
    /// Sender → reflector: a packet of a stream, to be counted.
    Data = 0x13,
    /// Reflector → sender: a packet of a down-stream, to be counted.
    Down = 0x14,
    /// Sender → reflector: request for a TALLY.
    Poll = 0x15,
    /// Reflector → sender: the counts of a stream so far.
    Tally = 0x16,
}

impl MessageType {
    /// The type of a datagram, by its first byte.
    ///
    /// # Errors
    /// [`Malformed::Length`] for an empty datagram, [`Malformed::Type`] for any byte that is not a type.
    #[inline]
    pub fn of(datagram: &[u8]) -> Result<MessageType, Malformed> {
        Ok(match *datagram.first().ok_or(Malformed::Length)? {
            0x11 => MessageType::Probe,
            0x12 => MessageType::Answer,
            0x13 => MessageType::Data,
            0x14 => MessageType::Down,
            0x15 => MessageType::Poll,
            0x16 => MessageType::Tally,
            0x01 => MessageType::Hello,
            0x02 => MessageType::Cookie,
            0x03 => MessageType::Open,
            0x04 => MessageType::Accept,
            0x06 => MessageType::Refuse,
            0x07 => MessageType::Close,
            0x08 => MessageType::Report,
            _ => return Err(Malformed::Type),
        })
    }

    /// Whether it is a message that reflectors send. It must never be answered: two reflectors would answer each other
    /// without an end.
    pub const fn is_reply(self) -> bool {
        (self as u8).is_multiple_of(2)
    }
}

/// The header of a set-up message: type, version, session (0 until ACCEPT), magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    pub message: MessageType,
    /// The protocol version of its sender.
    pub version: u8,
    /// The session; 0 if there is none.
    pub session: u16,
}

impl MessageHeader {
    /// The header of this version's `message`.
    pub const fn new(message: MessageType, session: u16) -> MessageHeader {
        MessageHeader { message, version: VERSION, session }
    }

    /// Reads a header of any version, since HELLO and COOKIE are the same in all.
    ///
    /// # Errors
    /// [`Malformed`] if `datagram` does not begin with a header.
    pub fn parse(datagram: &[u8]) -> Result<MessageHeader, Malformed> {
        let message = MessageType::of(datagram)?;
        if datagram.len() < SETUP_HEADER_BYTES {
            return Err(Malformed::Length);
        }
        if u32::from_be_bytes(take(datagram, 4)) != MAGIC {
            return Err(Malformed::Magic);
        }
        let [version] = take(datagram, 1);
        Ok(MessageHeader { message, version, session: u16::from_be_bytes(take(datagram, 2)) })
    }

    /// Reads the header of a message of this version that must have the `expected` type and exactly `bytes` bytes.
    pub(super) fn expect(datagram: &[u8], expected: MessageType, bytes: usize) -> Result<MessageHeader, Malformed> {
        let header = MessageHeader::parse(datagram)?;
        if header.message != expected {
            return Err(Malformed::Type);
        }
        if header.version != VERSION {
            return Err(Malformed::Version);
        }
        if datagram.len() != bytes {
            return Err(Malformed::Length);
        }
        Ok(header)
    }

    pub(super) fn write(self, to: &mut [u8]) {
        put(to, 0, [self.message as u8, self.version]);
        put(to, 2, self.session.to_be_bytes());
        put(to, 4, MAGIC.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_is_the_type_and_its_parity_the_direction() {
        assert_eq!(MessageType::of(&[]), Err(Malformed::Length));
        assert_eq!(MessageType::of(&[0]), Err(Malformed::Type));
        let known = || (0..=u8::MAX).filter_map(|byte| Some((byte, MessageType::of(&[byte]).ok()?)));
        assert!(known().all(|(byte, message)| message as u8 == byte));
        let replies = known().map(|(_, message)| message).filter(|message| message.is_reply()).collect::<Vec<_>>();
        use MessageType::*;
        assert_eq!((known().count(), &*replies), (13, &[Cookie, Accept, Refuse, Report, Answer, Down, Tally][..]));
    }

    #[test]
    fn a_header_round_trips_and_another_magic_number_is_refused() {
        let mut bytes = [0; SETUP_HEADER_BYTES];
        let header = MessageHeader::new(MessageType::Close, 0x1234);
        header.write(&mut bytes);
        assert_eq!(bytes, [0x07, 1, 0x12, 0x34, b'l', b'l', b't', b'b']);
        assert_eq!(MessageHeader::parse(&bytes), Ok(header));
        assert_eq!(MessageHeader::parse(&bytes[..7]), Err(Malformed::Length));
        bytes[5] ^= 1;
        assert_eq!(MessageHeader::parse(&bytes), Err(Malformed::Magic));
    }

    #[test]
    fn wrong_type_version_and_length_are_distinguished() {
        let mut bytes = [0; 20];
        MessageHeader::new(MessageType::Open, 0).write(&mut bytes);
        assert!(MessageHeader::expect(&bytes, MessageType::Open, 20).is_ok());
        assert_eq!(MessageHeader::expect(&bytes, MessageType::Open, 21), Err(Malformed::Length));
        assert_eq!(MessageHeader::expect(&bytes, MessageType::Close, 20), Err(Malformed::Type));
        bytes[1] = 2;
        assert_eq!(MessageHeader::expect(&bytes, MessageType::Open, 20), Err(Malformed::Version));
    }
}
