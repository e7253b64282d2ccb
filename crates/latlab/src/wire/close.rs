//! CLOSE and REPORT: the end of a session, and what the reflector counted in it.

use super::{Codes, Header, MAC_BYTES, Malformed, MessageType, Nonce, SETUP_HEADER_BYTES, put, take};

/// A CLOSE; longer than the reply to it.
pub const CLOSE_BYTES: usize = 128;
/// A REPORT.
pub const REPORT_BYTES: usize = 96;

const NONCE_AT: usize = SETUP_HEADER_BYTES;
const COUNTS_AT: usize = 24;

/// CLOSE: 8 header, 16 sender's nonce, 72 zero, 32 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// Which session.
    pub session: u16,
    /// The nonce it was opened with.
    pub nonce: Nonce,
}

impl Close {
    /// Reads a CLOSE; its code is the reflector's to check.
    ///
    /// # Errors
    /// [`Malformed`] where `datagram` is none of this version.
    pub fn parse(datagram: &[u8]) -> Result<Close, Malformed> {
        let header = Header::expect(datagram, MessageType::Close, CLOSE_BYTES)?;
        Ok(Close { session: header.session, nonce: take(datagram, NONCE_AT) })
    }

    /// Writes the CLOSE and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; CLOSE_BYTES]) {
        to.fill(0);
        Header::new(MessageType::Close, self.session).write(to);
        put(to, NONCE_AT, self.nonce);
        codes.seal(to);
    }
}

/// REPORT: 8 header, 16 sender's nonce, five counts of 8, 32 code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Which session.
    pub session: u16,
    /// The nonce it was opened with.
    pub nonce: Nonce,
    /// Probes answered.
    pub answered: u64,
    /// Probes dropped because their counter had been seen.
    pub seen_before: u64,
    /// Probes dropped because their counter was older than the replay window.
    pub left_window: u64,
    /// Probes dropped because their tag, or another field, was wrong.
    pub forged: u64,
    /// Probes dropped because they were not as long as agreed.
    pub wrong_size: u64,
}

impl Report {
    /// Reads a REPORT; its code is the sender's to check.
    ///
    /// # Errors
    /// [`Malformed`] where `datagram` is none of this version.
    pub fn parse(datagram: &[u8]) -> Result<Report, Malformed> {
        let header = Header::expect(datagram, MessageType::Report, REPORT_BYTES)?;
        let count = |index: usize| u64::from_be_bytes(take(datagram, COUNTS_AT + 8 * index));
        Ok(Report {
            session: header.session,
            nonce: take(datagram, NONCE_AT),
            answered: count(0),
            seen_before: count(1),
            left_window: count(2),
            forged: count(3),
            wrong_size: count(4),
        })
    }

    /// Writes the REPORT and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; REPORT_BYTES]) {
        to.fill(0);
        Header::new(MessageType::Report, self.session).write(to);
        put(to, NONCE_AT, self.nonce);
        let counts = [self.answered, self.seen_before, self.left_window, self.forged, self.wrong_size];
        for (index, count) in counts.into_iter().enumerate() {
            put(to, COUNTS_AT + 8 * index, count.to_be_bytes());
        }
        codes.seal(to);
    }
}

const _: () = assert!(REPORT_BYTES <= CLOSE_BYTES && COUNTS_AT + 5 * 8 + MAC_BYTES == REPORT_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_survives_its_bytes() {
        let close = Close { session: 9, nonce: [4; 16] };
        let mut bytes = [0xee; CLOSE_BYTES];
        close.write(&Codes::None, &mut bytes);
        assert_eq!(Close::parse(&bytes), Ok(close));
        assert_eq!(Report::parse(&bytes), Err(Malformed::Type));

        let report = Report {
            session: 9,
            nonce: [4; 16],
            answered: 1,
            seen_before: 2,
            left_window: 3,
            forged: 4,
            wrong_size: u64::MAX,
        };
        let mut bytes = [0xee; REPORT_BYTES];
        report.write(&Codes::None, &mut bytes);
        assert_eq!(Report::parse(&bytes), Ok(report));
        assert_eq!(Report::parse(&bytes[..95]), Err(Malformed::Length));
    }
}
