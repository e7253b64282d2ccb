//! CLOSE and REPORT: the end of a session, and the reflector's counts of it.

use super::{Codes, MAC_BYTES, Malformed, MessageHeader, MessageType, Nonce, SETUP_HEADER_BYTES, put, take};

/// The length of a CLOSE, more than that of its reply.
pub const CLOSE_BYTES: usize = 128;
/// The length of a REPORT with the drops of the reflector's socket.
pub const REPORT_BYTES: usize = 112;
/// The length of a REPORT for a sender that does not request these.
pub const SHORT_REPORT_BYTES: usize = 96;

const NONCE_AT: usize = SETUP_HEADER_BYTES;
const WISH_AT: usize = 24;
const WISH_SOCKET_DROPS: u8 = 1;
const COUNTS_AT: usize = 24;
const COUNTS: usize = 5;
const SOCKET_DROPS_AT: usize = COUNTS_AT + 8 * COUNTS;
const FLAGS_AT: usize = SOCKET_DROPS_AT + 8;
const FLAG_SOCKET_DROPS: u8 = 1;

/// CLOSE: 8 header, 16 sender's nonce, 1 requests, 71 zero, 32 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    pub session: u16,
    /// The nonce with which it was opened.
    pub nonce: Nonce,
    /// The sender requests the drops of the reflector's socket.
    pub wants_socket_drops: bool,
}

impl Close {
    /// Reads a CLOSE without checking its code.
    ///
    /// # Errors
    /// [`Malformed`] if `datagram` is not a CLOSE of this version.
    pub fn parse(datagram: &[u8]) -> Result<Close, Malformed> {
        let header = MessageHeader::expect(datagram, MessageType::Close, CLOSE_BYTES)?;
        let [wishes] = take(datagram, WISH_AT);
        let wants_socket_drops = wishes & WISH_SOCKET_DROPS != 0;
        Ok(Close { session: header.session, nonce: take(datagram, NONCE_AT), wants_socket_drops })
    }

    /// Writes the CLOSE and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; CLOSE_BYTES]) {
        to.fill(0);
        MessageHeader::new(MessageType::Close, self.session).write(to);
        put(to, NONCE_AT, self.nonce);
        put(to, WISH_AT, [if self.wants_socket_drops { WISH_SOCKET_DROPS } else { 0 }]);
        codes.seal(to);
    }
}

/// REPORT: 8 header, 16 sender's nonce, five counts of 8, 32 code. Where the CLOSE asked for it, 8 drops of the socket,
/// 1 flags and 7 zero stand before the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub session: u16,
    /// The nonce with which it was opened.
    pub nonce: Nonce,
    pub answered: u64,
    /// Probes dropped because their counter was received before.
    pub seen_before: u64,
    /// Probes dropped because their counter was below the replay window.
    pub left_window: u64,
    /// Probes dropped because their tag, or another field, was wrong.
    pub forged: u64,
    /// Probes dropped because they were not of the agreed size.
    pub wrong_size: u64,
    /// Datagrams of all senders that the reflector's socket dropped during the session, modulo 2^32; `None` if unknown.
    pub socket_drops: Option<u64>,
}

impl Report {
    /// Reads a REPORT of either length without checking its code.
    ///
    /// # Errors
    /// [`Malformed`] if `datagram` is not a REPORT of this version.
    pub fn parse(datagram: &[u8]) -> Result<Report, Malformed> {
        let is_short = datagram.len() == SHORT_REPORT_BYTES;
        let bytes = if is_short { SHORT_REPORT_BYTES } else { REPORT_BYTES };
        let header = MessageHeader::expect(datagram, MessageType::Report, bytes)?;
        let knows_drops = !is_short && take::<1>(datagram, FLAGS_AT)[0] & FLAG_SOCKET_DROPS != 0;
        let count = |index: usize| u64::from_be_bytes(take(datagram, COUNTS_AT + 8 * index));
        Ok(Report {
            session: header.session,
            nonce: take(datagram, NONCE_AT),
            answered: count(0),
            seen_before: count(1),
            left_window: count(2),
            forged: count(3),
            wrong_size: count(4),
            socket_drops: knows_drops.then(|| u64::from_be_bytes(take(datagram, SOCKET_DROPS_AT))),
        })
    }

    /// Writes the REPORT and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; REPORT_BYTES]) {
        self.write_counts(to);
        put(to, SOCKET_DROPS_AT, self.socket_drops.unwrap_or(0).to_be_bytes());
        put(to, FLAGS_AT, [if self.socket_drops.is_some() { FLAG_SOCKET_DROPS } else { 0 }]);
        codes.seal(to);
    }

    /// Writes the REPORT without the drops of the socket, and seals it.
    pub fn write_short(&self, codes: &Codes, to: &mut [u8; SHORT_REPORT_BYTES]) {
        self.write_counts(to);
        codes.seal(to);
    }

    fn write_counts(&self, to: &mut [u8]) {
        to.fill(0);
        MessageHeader::new(MessageType::Report, self.session).write(to);
        put(to, NONCE_AT, self.nonce);
        let counts: [u64; COUNTS] = [self.answered, self.seen_before, self.left_window, self.forged, self.wrong_size];
        for (index, count) in counts.into_iter().enumerate() {
            put(to, COUNTS_AT + 8 * index, count.to_be_bytes());
        }
    }
}

const _: () = assert!(REPORT_BYTES <= CLOSE_BYTES && FLAGS_AT + 8 + MAC_BYTES == REPORT_BYTES);
const _: () = assert!(SOCKET_DROPS_AT + MAC_BYTES == SHORT_REPORT_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    fn report(socket_drops: Option<u64>) -> Report {
        Report {
            session: 9,
            nonce: [4; 16],
            answered: 1,
            seen_before: 2,
            left_window: 3,
            forged: 4,
            wrong_size: u64::MAX,
            socket_drops,
        }
    }

    #[test]
    fn close_and_report_round_trip() {
        let codes = super::super::SetupKey::derive(&[1; 16]).codes();
        for wants_socket_drops in [false, true] {
            let close = Close { session: 9, nonce: [4; 16], wants_socket_drops };
            let mut bytes = [0xee; CLOSE_BYTES];
            close.write(&codes, &mut bytes);
            assert_eq!(Close::parse(&bytes), Ok(close));
            assert!(codes.verify(&bytes));
            assert_eq!(Report::parse(&bytes), Err(Malformed::Type));
        }
        for socket_drops in [None, Some(0), Some(8)] {
            let mut bytes = [0xee; REPORT_BYTES];
            report(socket_drops).write(&codes, &mut bytes);
            assert_eq!(Report::parse(&bytes), Ok(report(socket_drops)));
            assert!(codes.verify(&bytes));
            assert_eq!(bytes[73..80], [0; 7], "earlier content of the buffer is not sent");
            assert_eq!(Report::parse(&bytes[..111]), Err(Malformed::Length));
        }
    }

    #[test]
    fn a_report_without_socket_drops_is_the_short_one() {
        let codes = super::super::SetupKey::derive(&[1; 16]).codes();
        let mut bytes = [0xee; SHORT_REPORT_BYTES];
        report(Some(8)).write_short(&codes, &mut bytes);
        assert_eq!(Report::parse(&bytes), Ok(report(None)));
        assert!(codes.verify(&bytes));
        assert_eq!(Report::parse(&bytes[..95]), Err(Malformed::Length));
    }
}
