//! POLL and TALLY: what the reflector has counted of a stream. Its packets, DATA, look like probes
//! ([`super::ProbeHeader`]).

use super::{Codes, Header, MAC_BYTES, Malformed, MessageType, Nonce, SETUP_HEADER_BYTES, put, take};
use crate::units::{ReflectorClock, Stamp};

/// A POLL; as long as the reply to it.
pub const POLL_BYTES: usize = 160;
/// A TALLY.
pub const TALLY_BYTES: usize = 160;

const NONCE_AT: usize = SETUP_HEADER_BYTES;
const NUMBER_AT: usize = 24;
const STAMP_AT: usize = 32;
const COUNTS_AT: usize = 40;
const COUNTS: usize = 9;
const FLAGS_AT: usize = COUNTS_AT + 8 * COUNTS;
const FLAG_SOCKET_DROPS: u8 = 1;

/// POLL: 8 header, 16 sender's nonce, 8 number, 96 zero, 32 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Which session.
    pub session: u16,
    /// The nonce it was opened with.
    pub nonce: Nonce,
    /// Higher than that of any POLL that was answered.
    pub number: u64,
}

impl Poll {
    /// Reads a POLL; its code is the reflector's to check.
    ///
    /// # Errors
    /// [`Malformed`] where `datagram` is none of this version.
    pub fn parse(datagram: &[u8]) -> Result<Poll, Malformed> {
        let header = Header::expect(datagram, MessageType::Poll, POLL_BYTES)?;
        let number = u64::from_be_bytes(take(datagram, NUMBER_AT));
        Ok(Poll { session: header.session, nonce: take(datagram, NONCE_AT), number })
    }

    /// Writes the POLL and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; POLL_BYTES]) {
        to.fill(0);
        Header::new(MessageType::Poll, self.session).write(to);
        put(to, NONCE_AT, self.nonce);
        put(to, NUMBER_AT, self.number.to_be_bytes());
        codes.seal(to);
    }
}

/// TALLY: 8 header, 16 sender's nonce, 8 number, 8 stamp, nine counts of 8, 1 flags, 15 zero, 32 code.
///
/// All counts are since the session was opened, but for `socket_drops`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Which session.
    pub session: u16,
    /// The nonce it was opened with.
    pub nonce: Nonce,
    /// The number of the POLL that it answers.
    pub number: u64,
    /// When the POLL arrived, on the reflector's clock.
    pub at: Stamp<ReflectorClock>,
    /// Packets counted: genuine, new, as long as agreed.
    pub packets: u64,
    /// Their bytes of UDP payload.
    pub bytes: u64,
    /// The highest counter seen + 1; 0 where none was.
    pub spanned: u64,
    /// Packets counted that came after one with a higher counter.
    pub reordered: u64,
    /// Packets dropped because their counter had been seen.
    pub seen_before: u64,
    /// Packets dropped because their counter was older than the replay window.
    pub left_window: u64,
    /// Packets dropped because their tag, or another field, was wrong.
    pub forged: u64,
    /// Packets dropped because they were not as long as agreed.
    pub wrong_size: u64,
    /// Datagrams that the reflector's socket dropped since it was made, whosever they were, modulo 2^32; none where
    /// unknown.
    pub socket_drops: Option<u64>,
}

impl Tally {
    /// Reads a TALLY; its code is the sender's to check.
    ///
    /// # Errors
    /// [`Malformed`] where `datagram` is none of this version.
    pub fn parse(datagram: &[u8]) -> Result<Tally, Malformed> {
        let header = Header::expect(datagram, MessageType::Tally, TALLY_BYTES)?;
        let count = |index: usize| u64::from_be_bytes(take(datagram, COUNTS_AT + 8 * index));
        let [flags] = take(datagram, FLAGS_AT);
        Ok(Tally {
            session: header.session,
            nonce: take(datagram, NONCE_AT),
            number: u64::from_be_bytes(take(datagram, NUMBER_AT)),
            at: Stamp::from_nanos(i64::from_be_bytes(take(datagram, STAMP_AT))),
            packets: count(0),
            bytes: count(1),
            spanned: count(2),
            reordered: count(3),
            seen_before: count(4),
            left_window: count(5),
            forged: count(6),
            wrong_size: count(7),
            socket_drops: (flags & FLAG_SOCKET_DROPS != 0).then_some(count(8)),
        })
    }

    /// Writes the TALLY and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; TALLY_BYTES]) {
        to.fill(0);
        Header::new(MessageType::Tally, self.session).write(to);
        put(to, NONCE_AT, self.nonce);
        put(to, NUMBER_AT, self.number.to_be_bytes());
        put(to, STAMP_AT, self.at.as_nanos().to_be_bytes());
        let counts: [u64; COUNTS] = [
            self.packets,
            self.bytes,
            self.spanned,
            self.reordered,
            self.seen_before,
            self.left_window,
            self.forged,
            self.wrong_size,
            self.socket_drops.unwrap_or(0),
        ];
        for (index, count) in counts.into_iter().enumerate() {
            put(to, COUNTS_AT + 8 * index, count.to_be_bytes());
        }
        put(to, FLAGS_AT, [if self.socket_drops.is_some() { FLAG_SOCKET_DROPS } else { 0 }]);
        codes.seal(to);
    }
}

const _: () = assert!(TALLY_BYTES <= POLL_BYTES && FLAGS_AT + 16 + MAC_BYTES == TALLY_BYTES);
const _: () = assert!(NUMBER_AT + 8 + MAC_BYTES <= POLL_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(socket_drops: Option<u64>) -> Tally {
        Tally {
            session: 9,
            nonce: [4; 16],
            number: 77,
            at: Stamp::from_nanos(-5),
            packets: 1,
            bytes: 2,
            spanned: 3,
            reordered: 4,
            seen_before: 5,
            left_window: 6,
            forged: 7,
            wrong_size: u64::MAX,
            socket_drops,
        }
    }

    #[test]
    fn each_survives_its_bytes() {
        let codes = super::super::SetupKey::derive(&[1; 16]).codes();
        let poll = Poll { session: 9, nonce: [4; 16], number: u64::MAX };
        let mut bytes = [0xee; POLL_BYTES];
        poll.write(&codes, &mut bytes);
        assert_eq!(Poll::parse(&bytes), Ok(poll));
        assert!(codes.verify(&bytes));
        assert_eq!(Tally::parse(&bytes), Err(Malformed::Type));
        assert_eq!(Poll::parse(&bytes[..159]), Err(Malformed::Length));

        for drops in [None, Some(0), Some(8)] {
            let mut bytes = [0xee; TALLY_BYTES];
            tally(drops).write(&codes, &mut bytes);
            assert_eq!(Tally::parse(&bytes), Ok(tally(drops)));
            assert!(codes.verify(&bytes));
            assert_eq!(bytes[113..128], [0; 15], "nothing of what stood there before is sent");
        }
    }
}
