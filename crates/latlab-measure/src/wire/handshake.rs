//! The handshake: HELLO and COOKIE verify that the sender receives at its source address; OPEN and ACCEPT or REFUSE agree on
//! the terms of a session. The layout of HELLO and COOKIE never changes, whatever the version, so that a mismatch of
//! versions can be reported.

use super::{
    Codes, MAC_BYTES, Malformed, MessageHeader, MessageType, NONCE_BYTES, Nonce, PROBE_MIN_BYTES, SETUP_HEADER_BYTES,
    put, take,
};
use crate::units::{Nanos, ReflectorClock, Stamp};

/// The length of the shortest HELLO. Its COOKIE is far shorter, so that a forged source address does not amplify traffic.
pub const HELLO_MIN_BYTES: usize = 128;
/// The length of a COOKIE.
pub const COOKIE_BYTES: usize = 48;
/// The length of an OPEN, more than that of either reply.
pub const OPEN_BYTES: usize = 128;
/// The length of an ACCEPT.
pub const ACCEPT_BYTES: usize = 112;
/// The length of a REFUSE.
pub const REFUSE_BYTES: usize = 72;
/// Proof of an address: a keyed hash that only the reflector can compute and does not store.
pub type CookieToken = [u8; 16];

const NONCE_AT: usize = SETUP_HEADER_BYTES;
const TOKEN_AT: usize = 24;
const OPEN_TERMS_AT: usize = 40;
const REFLECTOR_NONCE_AT: usize = 24;
const STAMP_AT: usize = 40;
const ACCEPT_TERMS_AT: usize = 48;
const REASON_AT: usize = 24;
const LIMIT_AT: usize = 32;
const COOKIE_FLAGS_AT: usize = 40;
const FLAG_KEY_REQUIRED: u8 = 1;

/// HELLO: 8 header, 16 nonce, zeros up to at least 128 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The highest version that the sender supports. Informative.
    pub version: u8,
    /// The sender's nonce: the COOKIE returns it and is bound to it.
    pub nonce: Nonce,
}

impl Hello {
    /// Reads a HELLO of any version.
    ///
    /// # Errors
    /// [`Malformed`] if `datagram` is not a HELLO, or has too little padding.
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
    /// The version of the reflector.
    pub version: u8,
    /// The HELLO's nonce: shows that the reply is to this HELLO.
    pub nonce: Nonce,
    /// To be returned in OPEN.
    pub token: CookieToken,
    /// Whether the reflector requires a pre-shared key.
    pub key_required: bool,
}

impl Cookie {
    pub const fn new(nonce: Nonce, token: CookieToken, key_required: bool) -> Cookie {
        Cookie { version: super::VERSION, nonce, token, key_required }
    }

    /// Reads a COOKIE of any version.
    ///
    /// # Errors
    /// [`Malformed`] if `datagram` is not a COOKIE.
    pub fn parse(datagram: &[u8]) -> Result<Cookie, Malformed> {
        let header = MessageHeader::parse(datagram)?;
        if header.message != MessageType::Cookie {
            return Err(Malformed::Type);
        }
        if datagram.len() != COOKIE_BYTES {
            return Err(Malformed::Length);
        }
        let [flags] = take(datagram, COOKIE_FLAGS_AT);
        Ok(Cookie {
            version: header.version,
            nonce: take(datagram, NONCE_AT),
            token: take(datagram, TOKEN_AT),
            key_required: flags & FLAG_KEY_REQUIRED != 0,
        })
    }

    pub fn write(&self, to: &mut [u8; COOKIE_BYTES]) {
        to.fill(0);
        MessageHeader { version: self.version, ..MessageHeader::new(MessageType::Cookie, 0) }.write(to);
        put(to, NONCE_AT, self.nonce);
        put(to, TOKEN_AT, self.token);
        put(to, COOKIE_FLAGS_AT, [if self.key_required { FLAG_KEY_REQUIRED } else { 0 }]);
    }
}

/// The terms of a session. OPEN requests the least that the sender needs; ACCEPT grants that or more, else the reply is
/// REFUSE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The size of every probe.
    pub size_bytes: u32,
    /// The (mean) gap between probes; zero for a closed loop.
    pub interval: Nanos,
    /// The session ends this long after it was opened. Zero in a request: the longest that the reflector grants.
    pub duration: Nanos,
    /// The session ends after this time without a probe. The reflector always grants its limit.
    pub idle: Nanos,
    /// Further terms of a stream; [`SocketTerms::NONE`] for probes and network loads.
    pub socket: SocketTerms,
    /// The reflector sends one packet per `interval`, within the credit that POLLs give.
    pub down: bool,
    /// The sender confirms the session by a POLL at once: the reflector ends it early if nothing authentic comes. A
    /// reflector that grants this knows the rule; an older one does not.
    pub confirms: bool,
    /// A program in the reflector's network driver answers the probes, which have no tag; its socket answers none.
    pub in_driver: bool,
}

/// How the reflector's socket receives. A reflector grants the terms that it supports, an older one none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketTerms {
    /// Many packets may be received with one call, and merged by the kernel.
    pub batched: bool,
    /// Packets may have no UDP checksum.
    pub unchecked: bool,
    /// The kernel stamps probes and answers.
    pub stamped: bool,
}

impl SocketTerms {
    /// No terms: probes and network loads.
    pub const NONE: SocketTerms = SocketTerms { batched: false, unchecked: false, stamped: false };
    /// What probes with stamps ask for.
    pub const STAMPED: SocketTerms = SocketTerms { stamped: true, ..SocketTerms::NONE };

    const BATCHED: u8 = 1;
    const UNCHECKED: u8 = 2;
    const STAMPS: u8 = 32;

    /// The terms that either asks for.
    #[must_use]
    pub(crate) fn or(self, other: SocketTerms) -> SocketTerms {
        SocketTerms::parse(self.flags() | other.flags())
    }

    /// The terms that both have.
    #[must_use]
    pub(crate) fn and(self, other: SocketTerms) -> SocketTerms {
        SocketTerms::parse(self.flags() & other.flags())
    }

    /// Ignores unknown flags: a newer sender sees that they are not granted.
    const fn parse(flags: u8) -> SocketTerms {
        SocketTerms {
            batched: flags & Self::BATCHED != 0,
            unchecked: flags & Self::UNCHECKED != 0,
            stamped: flags & Self::STAMPS != 0,
        }
    }

    fn flags(self) -> u8 {
        let of = |set, flag| u8::from(set) * flag;
        of(self.batched, Self::BATCHED) + of(self.unchecked, Self::UNCHECKED) + of(self.stamped, Self::STAMPS)
    }
}

impl Terms {
    const BYTES: usize = 32;
    /// In the same byte as the flags of [`SocketTerms`].
    const FLAG_DOWN: u8 = 4;
    const FLAG_CONFIRMS: u8 = 8;
    const FLAG_IN_DRIVER: u8 = 16;

    fn parse(from: &[u8], at: usize) -> Result<Terms, Malformed> {
        let [flags] = take(from, at + 4);
        let terms = Terms {
            size_bytes: u32::from_be_bytes(take(from, at)),
            interval: Nanos(i64::from_be_bytes(take(from, at + 8))),
            duration: Nanos(i64::from_be_bytes(take(from, at + 16))),
            idle: Nanos(i64::from_be_bytes(take(from, at + 24))),
            socket: SocketTerms::parse(flags),
            down: flags & Terms::FLAG_DOWN != 0,
            confirms: flags & Terms::FLAG_CONFIRMS != 0,
            in_driver: flags & Terms::FLAG_IN_DRIVER != 0,
        };
        let spans = [terms.interval, terms.duration, terms.idle];
        let possible = terms.size_bytes >= PROBE_MIN_BYTES as u32 && spans.iter().all(|span| span.0 >= 0);
        if possible { Ok(terms) } else { Err(Malformed::Value) }
    }

    fn write(&self, to: &mut [u8], at: usize) {
        put(to, at, self.size_bytes.to_be_bytes());
        put(to, at + 4, [self.flags()]);
        put(to, at + 8, self.interval.0.to_be_bytes());
        put(to, at + 16, self.duration.0.to_be_bytes());
        put(to, at + 24, self.idle.0.to_be_bytes());
    }

    fn flags(&self) -> u8 {
        let of = |set, flag| u8::from(set) * flag;
        self.socket.flags()
            + of(self.down, Terms::FLAG_DOWN)
            + of(self.confirms, Terms::FLAG_CONFIRMS)
            + of(self.in_driver, Terms::FLAG_IN_DRIVER)
    }
}

/// OPEN: 8 header, 16 sender's nonce, 16 token, 4 size, 1 flags, 3 zero, 8 interval, 8 duration, 8 idle, 24 zero,
/// 32 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// The nonce of the HELLO.
    pub nonce: Nonce,
    pub token: CookieToken,
    pub terms: Terms,
}

impl Open {
    /// Reads an OPEN without checking its code and token.
    ///
    /// # Errors
    /// [`Malformed`] if `datagram` is not an OPEN of this version.
    pub fn parse(datagram: &[u8]) -> Result<Open, Malformed> {
        MessageHeader::expect(datagram, MessageType::Open, OPEN_BYTES)?;
        let terms = Terms::parse(datagram, OPEN_TERMS_AT)?;
        Ok(Open { nonce: take(datagram, NONCE_AT), token: take(datagram, TOKEN_AT), terms })
    }

    /// Writes the OPEN and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; OPEN_BYTES]) {
        to.fill(0);
        MessageHeader::new(MessageType::Open, 0).write(to);
        put(to, NONCE_AT, self.nonce);
        put(to, TOKEN_AT, self.token);
        self.terms.write(to, OPEN_TERMS_AT);
        codes.seal(to);
    }
}

/// ACCEPT: 8 header, 16 sender's nonce, 16 reflector's nonce, 8 stamp, 4 size, 1 flags, 3 zero, 8 interval, 8 duration,
/// 8 idle, 32 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// The number that probes carry.
    pub session: u16,
    /// The nonce of the OPEN: shows that the reply is to this OPEN.
    pub nonce: Nonce,
    /// The reflector's part of the input of the session's keys.
    pub reflector_nonce: Nonce,
    /// When the OPEN was received, on the reflector's clock: the reference for extending the stamps of answers.
    pub anchor: Stamp<ReflectorClock>,
    pub terms: Terms,
}

impl Accept {
    /// Reads an ACCEPT without checking its code.
    ///
    /// # Errors
    /// [`Malformed`] if `datagram` is not an ACCEPT of this version.
    pub fn parse(datagram: &[u8]) -> Result<Accept, Malformed> {
        let header = MessageHeader::expect(datagram, MessageType::Accept, ACCEPT_BYTES)?;
        Ok(Accept {
            session: header.session,
            nonce: take(datagram, NONCE_AT),
            reflector_nonce: take(datagram, REFLECTOR_NONCE_AT),
            anchor: Stamp::from_nanos(i64::from_be_bytes(take(datagram, STAMP_AT))),
            terms: Terms::parse(datagram, ACCEPT_TERMS_AT)?,
        })
    }

    /// Writes the ACCEPT and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; ACCEPT_BYTES]) {
        to.fill(0);
        MessageHeader::new(MessageType::Accept, self.session).write(to);
        put(to, NONCE_AT, self.nonce);
        put(to, REFLECTOR_NONCE_AT, self.reflector_nonce);
        put(to, STAMP_AT, self.anchor.as_nanos().to_be_bytes());
        self.terms.write(to, ACCEPT_TERMS_AT);
        codes.seal(to);
    }
}

crate::worded! {
    /// Why a peer with the key gets no session. A REFUSE carries the limit that was exceeded.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u16)]
    pub enum RefuseReason: name {
        /// Limit: sessions at a time.
        Sessions[1] = "refuse-sessions",
        /// Limit: sessions at a time from one /24 or /64.
        SessionsPerPrefix[2] = "refuse-sessions-per-prefix",
        /// Limit: new sessions per second.
        NewSessions[3] = "refuse-new-sessions",
        /// Limit: bytes of a probe.
        Size[4] = "refuse-size",
        /// Limit: ns from opening to the end.
        Duration[5] = "refuse-duration",
        /// Limit: ns without a probe.
        Idle[6] = "refuse-idle",
        /// Limit: bits per second of down-streams; 0 if there are no down-streams, or no key.
        Down[7] = "refuse-down",
    }
}

impl RefuseReason {
    fn from_code(code: u16) -> Option<RefuseReason> {
        RefuseReason::ALL.into_iter().find(|reason| *reason as u16 == code)
    }
}

/// REFUSE: 8 header, 16 sender's nonce, 2 reason, 6 zero, 8 limit, 32 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refuse {
    /// The nonce of the OPEN.
    pub nonce: Nonce,
    pub reason: RefuseReason,
    /// The exceeded limit, in the unit of the reason.
    pub limit: u64,
}

impl Refuse {
    /// Reads a REFUSE without checking its code.
    ///
    /// # Errors
    /// [`Malformed`] if `datagram` is not a REFUSE of this version, or its reason is unknown.
    pub fn parse(datagram: &[u8]) -> Result<Refuse, Malformed> {
        MessageHeader::expect(datagram, MessageType::Refuse, REFUSE_BYTES)?;
        let code = u16::from_be_bytes(take(datagram, REASON_AT));
        let reason = RefuseReason::from_code(code).ok_or(Malformed::Value)?;
        Ok(Refuse { nonce: take(datagram, NONCE_AT), reason, limit: u64::from_be_bytes(take(datagram, LIMIT_AT)) })
    }

    /// Writes the REFUSE and seals it.
    pub fn write(&self, codes: &Codes, to: &mut [u8; REFUSE_BYTES]) {
        to.fill(0);
        MessageHeader::new(MessageType::Refuse, 0).write(to);
        put(to, NONCE_AT, self.nonce);
        put(to, REASON_AT, (self.reason as u16).to_be_bytes());
        put(to, LIMIT_AT, self.limit.to_be_bytes());
        codes.seal(to);
    }
}

const _: () = assert!(NONCE_AT + NONCE_BYTES == TOKEN_AT && COOKIE_BYTES < HELLO_MIN_BYTES);
const _: () = assert!(ACCEPT_BYTES <= OPEN_BYTES && REFUSE_BYTES <= OPEN_BYTES);
const _: () = assert!(OPEN_TERMS_AT + Terms::BYTES + MAC_BYTES <= OPEN_BYTES);
const _: () = assert!(ACCEPT_TERMS_AT + Terms::BYTES + MAC_BYTES == ACCEPT_BYTES);
const _: () = assert!(LIMIT_AT + 8 + MAC_BYTES == REFUSE_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_hello_is_refused() {
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
        assert_eq!(bytes[41..], [0; 7], "earlier content of the buffer is not sent");
    }

    const TERMS: Terms = Terms {
        size_bytes: 64,
        interval: Nanos(5),
        duration: Nanos(6),
        idle: Nanos(7),
        socket: SocketTerms { batched: true, unchecked: false, stamped: true },
        down: false,
        confirms: false,
        in_driver: true,
    };

    #[test]
    fn open_accept_and_refuse_round_trip() {
        let codes = super::super::SetupKey::derive(&[1; 16]).codes();
        let open = Open { nonce: [1; 16], token: [2; 16], terms: TERMS };
        let mut bytes = [0xee; OPEN_BYTES];
        open.write(&codes, &mut bytes);
        assert_eq!(Open::parse(&bytes), Ok(open));
        assert!(codes.verify(&bytes));

        let anchor = Stamp::from_nanos(1 << 60);
        let accept = Accept { session: 513, nonce: [1; 16], reflector_nonce: [3; 16], anchor, terms: TERMS };
        let mut bytes = [0xee; ACCEPT_BYTES];
        accept.write(&codes, &mut bytes);
        assert_eq!(Accept::parse(&bytes), Ok(accept));
        assert!(codes.verify(&bytes));

        for reason in RefuseReason::ALL {
            let refuse = Refuse { nonce: [1; 16], reason, limit: u64::MAX };
            let mut bytes = [0xee; REFUSE_BYTES];
            refuse.write(&codes, &mut bytes);
            assert_eq!(Refuse::parse(&bytes), Ok(refuse));
        }
    }

    #[test]
    fn flags_follow_the_size_and_unknown_ones_are_ignored() {
        for flags in 0..64 {
            let [batched, unchecked, down, confirms, in_driver, stamped] =
                [1, 2, 4, 8, 16, 32].map(|flag| flags & flag != 0);
            let socket = SocketTerms { batched, unchecked, stamped };
            let terms = Terms { socket, down, confirms, in_driver, ..TERMS };
            let mut bytes = [0xee; OPEN_BYTES];
            Open { nonce: [1; 16], token: [2; 16], terms }.write(&Codes::None, &mut bytes);
            assert_eq!((bytes[43], bytes[44], &bytes[45..48]), (64, flags, &[0; 3][..]));
            bytes[44] |= 0xc0;
            assert_eq!(Open::parse(&bytes).map(|open| open.terms), Ok(terms));
        }
    }

    #[test]
    fn impossible_terms_and_reasons_are_refused() {
        let mut bytes = [0; OPEN_BYTES];
        let open = Open { nonce: [1; 16], token: [2; 16], terms: Terms { idle: Nanos(-1), ..TERMS } };
        open.write(&Codes::None, &mut bytes);
        assert_eq!(Open::parse(&bytes), Err(Malformed::Value));
        Open { terms: Terms { size_bytes: 23, ..TERMS }, ..open }.write(&Codes::None, &mut bytes);
        assert_eq!(Open::parse(&bytes), Err(Malformed::Value));
        assert_eq!(Open::parse(&bytes[..127]), Err(Malformed::Length));

        let mut bytes = [0; REFUSE_BYTES];
        Refuse { nonce: [1; 16], reason: RefuseReason::Idle, limit: 0 }.write(&Codes::None, &mut bytes);
        bytes[25] = 99;
        assert_eq!(Refuse::parse(&bytes), Err(Malformed::Value));
    }
}
