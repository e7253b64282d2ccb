//! POLL and TALLY: what the reflector has counted of a stream. Its packets, DATA, look like probes
//! ([`super::ProbeHeader`]).

use super::{Codes, MAC_BYTES, Malformed, MessageHeader, MessageType, Nonce, SETUP_HEADER_BYTES, put, take};
use crate::units::{Nanos, ReflectorClock, Stamp};

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
const FLAG_CPU: u8 = 2;
const FLAG_MERGED: u8 = 4;
const CPU_AT: usize = FLAGS_AT + 8;
const WISH_AT: usize = NUMBER_AT + 8;
const WISH_CPU: u8 = 1;
const CREDIT_AT: usize = WISH_AT + 8;

/// POLL: 8 header, 16 sender's nonce, 8 number, 1 requests, 7 zero, 8 credit, 80 zero,
/// 32 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPoll {
    /// Which session.
    pub session: u16,
    /// The nonce it was opened with.
    pub nonce: Nonce,
    /// Higher than that of any POLL that was answered.
    pub number: u64,
    /// The sender reads a TALLY with the reflector's CPU time.
    pub wants_cpu: bool,
    /// Of a down-stream: bytes of UDP payload that the reflector may have sent since the session was opened; 0 otherwise.
    pub credit_bytes: u64,
}

impl StreamPoll {
    /// Reads a POLL; its code is the reflector's to check.
    ///
    /// # Errors
    /// [`Malformed`] where `datagram` is none of this version.
    pub fn parse(datagram: &[u8]) -> Result<StreamPoll, Malformed> {
        let header = MessageHeader::expect(datagram, MessageType::Poll, POLL_BYTES)?;
        let number = u64::from_be_bytes(take(datagram, NUMBER_AT));
        let [wishes] = take(datagram, WISH_AT);
        let wants_cpu = wishes & WISH_CPU != 0;
        let credit_bytes = u64::from_be_bytes(take(datagram, CREDIT_AT));
        Ok(StreamPoll { session: header.session, nonce: take(datagram, NONCE_AT), number, wants_cpu, credit_bytes })
    }

    /// Writes the POLL and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; POLL_BYTES]) {
        to.fill(0);
        MessageHeader::new(MessageType::Poll, self.session).write(to);
        put(to, NONCE_AT, self.nonce);
        put(to, NUMBER_AT, self.number.to_be_bytes());
        put(to, WISH_AT, [if self.wants_cpu { WISH_CPU } else { 0 }]);
        put(to, CREDIT_AT, self.credit_bytes.to_be_bytes());
        codes.seal(to);
    }
}

/// TALLY: 8 header, 16 sender's nonce, 8 number, 8 stamp, nine counts of 8, 1 flags, 7 zero, 8 CPU time, 32 code.
///
/// All counts are since the session was opened, but for `socket_drops`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTally {
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
    /// Its socket counts merged buffers, each of several datagrams: at least so many were dropped.
    pub drops_merged: bool,
    /// CPU time that the reflector's thread has used since the session was opened, for whomever; none where it was not
    /// asked for, or is unknown.
    pub cpu: Option<Nanos>,
}

impl StreamTally {
    /// One in which nothing went wrong, for tests of what is made of it.
    #[cfg(test)]
    pub(crate) fn plain(number: u64, at: Stamp<ReflectorClock>, packets: u64) -> StreamTally {
        StreamTally {
            session: 1,
            nonce: [0; 16],
            number,
            at,
            packets,
            bytes: 0,
            spanned: packets,
            reordered: 0,
            seen_before: 0,
            left_window: 0,
            forged: 0,
            wrong_size: 0,
            socket_drops: None,
            drops_merged: false,
            cpu: None,
        }
    }

    /// Reads a TALLY; its code is the sender's to check.
    ///
    /// # Errors
    /// [`Malformed`] where `datagram` is none of this version.
    pub fn parse(datagram: &[u8]) -> Result<StreamTally, Malformed> {
        let header = MessageHeader::expect(datagram, MessageType::Tally, TALLY_BYTES)?;
        let count = |index: usize| u64::from_be_bytes(take(datagram, COUNTS_AT + 8 * index));
        let [flags] = take(datagram, FLAGS_AT);
        Ok(StreamTally {
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
            drops_merged: flags & FLAG_MERGED != 0,
            cpu: (flags & FLAG_CPU != 0).then(|| Nanos(i64::from_be_bytes(take(datagram, CPU_AT)))),
        })
    }

    /// Writes the TALLY and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; TALLY_BYTES]) {
        to.fill(0);
        MessageHeader::new(MessageType::Tally, self.session).write(to);
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
        let flags = [
            (self.socket_drops.is_some(), FLAG_SOCKET_DROPS),
            (self.drops_merged, FLAG_MERGED),
            (self.cpu.is_some(), FLAG_CPU),
        ];
        put(to, FLAGS_AT, [flags.into_iter().filter(|(set, _)| *set).fold(0, |flags, (_, flag)| flags | flag)]);
        put(to, CPU_AT, self.cpu.map_or(0, |cpu| cpu.0).to_be_bytes());
        codes.seal(to);
    }
}

const _: () = assert!(TALLY_BYTES <= POLL_BYTES && FLAGS_AT + 16 + MAC_BYTES == TALLY_BYTES);
const _: () = assert!(CREDIT_AT + 8 + MAC_BYTES <= POLL_BYTES && CPU_AT + 8 + MAC_BYTES == TALLY_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(socket_drops: Option<u64>, drops_merged: bool, cpu: Option<Nanos>) -> StreamTally {
        StreamTally {
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
            drops_merged,
            cpu,
        }
    }

    #[test]
    fn each_survives_its_bytes() {
        let codes = super::super::SetupKey::derive(&[1; 16]).codes();
        for wants_cpu in [false, true] {
            let poll = StreamPoll { session: 9, nonce: [4; 16], number: u64::MAX, wants_cpu, credit_bytes: 1 << 40 };
            let mut bytes = [0xee; POLL_BYTES];
            poll.write(&codes, &mut bytes);
            assert_eq!(StreamPoll::parse(&bytes), Ok(poll));
            assert!(codes.verify(&bytes));
            assert_eq!(StreamTally::parse(&bytes), Err(Malformed::Type));
            assert_eq!(StreamPoll::parse(&bytes[..159]), Err(Malformed::Length));
        }
        for (drops, merged, cpu) in
            [(None, false, None), (Some(0), true, Some(Nanos(0))), (Some(8), false, Some(Nanos(i64::MAX)))]
        {
            let mut bytes = [0xee; TALLY_BYTES];
            tally(drops, merged, cpu).write(&codes, &mut bytes);
            assert_eq!(StreamTally::parse(&bytes), Ok(tally(drops, merged, cpu)));
            assert!(codes.verify(&bytes));
            assert_eq!(bytes[113..120], [0; 7], "nothing of what stood there before is sent");
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_protocol() {
        let mut bytes = [0xee; POLL_BYTES];
        StreamPoll { session: 0x0102, nonce: [4; 16], number: 5, wants_cpu: true, credit_bytes: 0x0607 }
            .write(&Codes::None, &mut bytes);
        assert_eq!(bytes[..8], [0x15, 1, 1, 2, b'l', b'l', b't', b'b']);
        assert_eq!((bytes[31], bytes[32], &bytes[33..46]), (5, 1, &[0; 13][..]));
        assert_eq!((&bytes[46..48], &bytes[48..]), (&[6, 7][..], &[0; 112][..]));

        let mut bytes = [0xee; TALLY_BYTES];
        tally(Some(8), true, Some(Nanos(0x0102_0304))).write(&Codes::None, &mut bytes);
        assert_eq!(bytes[..4], [0x16, 1, 0, 9]);
        assert_eq!((bytes[111], bytes[112]), (8, 0x07));
        assert_eq!(bytes[113..128], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]);
        for (tally, flags) in [(tally(None, false, None), 0), (tally(Some(8), false, None), 1)] {
            tally.write(&Codes::None, &mut bytes);
            assert_eq!((bytes[112], &bytes[120..128]), (flags, &[0; 8][..]), "as the first senders read it");
        }
    }
}
