//! How a sender gets a session: HELLO → COOKIE → OPEN → ACCEPT, over any transport.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::SessionError;
use super::key::PreSharedKey;
use super::native::NativeSession;
use super::wishes::SessionParams;
use crate::clock::Clock;
use crate::transport::Transport;
use crate::units::{Nanos, SenderClock, Stamp};
use crate::wire::{Accept, Codes, Cookie, OPEN_BYTES, Open, Refuse, SetupKey, VERSION, hello_datagram};

/// HELLO, or OPEN once there is a COOKIE, is sent at these times: quickly again in case of a single loss, then
/// patiently.
const ATTEMPTS_AT_MS: [i64; 5] = [0, 200, 600, 1_200, 2_000];
/// And then it is over.
const PATIENCE: Nanos = Nanos::from_secs(3);

/// Asks the peer of `transport` for a session as in `wishes`, authenticated by `key`. `stop` gives up within one
/// nap of the transport, whoever sets it.
///
/// # Errors
/// [`SessionError`]: the peer is silent for 3 s, holds another key, or refuses; or `stop` came first.
pub fn open(
    transport: &mut impl Transport,
    clock: &impl Clock,
    key: Option<&PreSharedKey>,
    wishes: &SessionParams,
    stop: &AtomicBool,
) -> Result<NativeSession, SessionError> {
    let mut opening = Opening::new(key, wishes);
    // ACCEPT, the longest reply, fits; what is longer is none and may be cut off.
    let mut buffer = [0; OPEN_BYTES];
    let start = clock.now();
    for attempt in 0..ATTEMPTS_AT_MS.len() {
        opening.speak(transport);
        let until = ATTEMPTS_AT_MS.get(attempt + 1).map_or(PATIENCE, |next| Nanos::from_millis(*next));
        while let Some(patience) = Some(start + until - clock.now()).filter(|left| left.0 > 0) {
            if stop.load(Ordering::Relaxed) {
                return Err(SessionError::Interrupted { peer: wishes.peer.clone() });
            }
            match transport.receive(&mut buffer, patience) {
                Ok(None) => {}
                Ok(Some(bytes)) => match opening.hear(&buffer[..bytes.min(OPEN_BYTES)], clock.now())? {
                    Heard::Nothing => {}
                    Heard::Cookie => opening.speak(transport),
                    Heard::Session(session) => return Ok(*session),
                },
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => opening.refused = Some(error),
                Err(source) => return Err(SessionError::Broken { peer: wishes.peer.clone(), source }),
            }
        }
    }
    Err(opening.given_up())
}

/// What a datagram brought.
enum Heard {
    /// Nothing for us.
    Nothing,
    /// A COOKIE: OPEN can be sent.
    Cookie,
    /// A session.
    Session(Box<NativeSession>),
}

struct Opening<'a> {
    wishes: &'a SessionParams,
    setup: Option<SetupKey>,
    codes: Codes,
    cookie: Option<Cookie>,
    hellos: u32,
    opens: u32,
    refused: Option<io::Error>,
}

impl<'a> Opening<'a> {
    fn new(key: Option<&PreSharedKey>, wishes: &'a SessionParams) -> Opening<'a> {
        let setup = key.map(PreSharedKey::setup_key);
        let codes = setup.as_ref().map_or(Codes::None, SetupKey::codes);
        Opening { wishes, setup, codes, cookie: None, hellos: 0, opens: 0, refused: None }
    }

    /// Sends what is next. An error is kept: the next attempt may succeed, and if none does it is the cause.
    fn speak(&mut self, transport: &mut impl Transport) {
        let sent = match &self.cookie {
            None => {
                self.hellos += 1;
                transport.send(&hello_datagram(&self.wishes.nonce))
            }
            Some(cookie) => {
                self.opens += 1;
                let open = Open { nonce: self.wishes.nonce, token: cookie.token, terms: self.wishes.terms };
                let mut datagram = [0; OPEN_BYTES];
                open.write(&self.codes, &mut datagram);
                transport.send(&datagram)
            }
        };
        self.refused = sent.err().or(self.refused.take());
    }

    fn hear(&mut self, datagram: &[u8], received: Stamp<SenderClock>) -> Result<Heard, SessionError> {
        match &self.cookie {
            None => self.hear_cookie(datagram),
            Some(_) => self.hear_terms(datagram, received),
        }
    }

    fn hear_cookie(&mut self, datagram: &[u8]) -> Result<Heard, SessionError> {
        let Ok(cookie) = Cookie::parse(datagram) else { return Ok(Heard::Nothing) };
        if cookie.nonce != self.wishes.nonce {
            return Ok(Heard::Nothing);
        }
        let peer = || self.wishes.peer.clone();
        if cookie.version != VERSION {
            return Err(SessionError::Version { peer: peer(), version: cookie.version });
        }
        match (cookie.key_asked, self.setup.is_some()) {
            (true, false) => return Err(SessionError::KeyAsked { peer: peer() }),
            (false, true) => return Err(SessionError::KeyUnknown { peer: peer() }),
            _ => {}
        }
        self.cookie = Some(cookie);
        Ok(Heard::Cookie)
    }

    fn hear_terms(&mut self, datagram: &[u8], received: Stamp<SenderClock>) -> Result<Heard, SessionError> {
        if !self.codes.verify(datagram) {
            return Ok(Heard::Nothing);
        }
        let wishes = self.wishes;
        if let Ok(refuse) = Refuse::parse(datagram)
            && refuse.nonce == wishes.nonce
        {
            let Refuse { reason, limit, .. } = refuse;
            return Err(SessionError::Refused { peer: wishes.peer.clone(), reason, limit });
        }
        match Accept::parse(datagram) {
            Ok(accept) if accept.nonce == wishes.nonce && accept.terms.size_bytes == wishes.terms.size_bytes => {
                let keys = self.setup.as_ref();
                let keys = keys.map(|setup| setup.session(&accept.nonce, &accept.reflector_nonce, accept.session));
                Ok(Heard::Session(Box::new(NativeSession::new(&accept, keys, received))))
            }
            _ => Ok(Heard::Nothing),
        }
    }

    fn given_up(self) -> SessionError {
        let peer = self.wishes.peer.clone();
        match self.cookie {
            None => SessionError::NoAnswer { peer, hellos: self.hellos, within: PATIENCE, refused: self.refused },
            Some(_) => SessionError::NotOpened { peer, opens: self.opens, keyed: self.setup.is_some() },
        }
    }
}
