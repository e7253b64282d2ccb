//! Opening of a session by the sender: the requested terms, the handshake HELLO → COOKIE → OPEN → ACCEPT over any
//! transport, the confirmation POLL → TALLY, and their errors.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use super::codec::NativeSession;
use super::key::PreSharedKey;
use crate::clock::Clock;
use crate::diagnostics::{Explain, Failure};
use crate::plan::Schedule;
use crate::transport::{PathReport, PathTransport, Transport, answering_instead, explain_broken};
use crate::units::human::typed_span;
use crate::units::{Nanos, SenderClock, Stamp};
use crate::wire::{
    Accept, Codes, Cookie, Nonce, OPEN_BYTES, Open, POLL_BYTES, Refuse, RefuseReason, SetupKey, SocketTerms,
    TALLY_BYTES, Terms, VERSION, hello_datagram,
};

/// HELLO, or OPEN once there is a COOKIE, is sent at these times: soon again in case of a single loss, then less often.
/// The POLL that confirms the session is sent at these times after the ACCEPT.
const ATTEMPTS_AT_MS: [i64; 5] = [0, 200, 600, 1_200, 2_000];
/// The handshake fails after this time, and then the confirmation.
const HANDSHAKE_TIMEOUT: Nanos = Nanos::from_secs(3);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionParams {
    /// Name of the peer in messages: `192.0.2.9:9862`.
    pub peer: String,
    /// Fresh for every session (`random_bytes`): replies without it are ignored.
    pub nonce: Nonce,
    pub terms: Terms,
}

impl SessionParams {
    /// Added to the duration of a run with its warm-up: for opening other sessions and for closing.
    pub const MARGIN: Nanos = Nanos::from_secs(30);

    /// A session with `peer` for probes of `size_bytes` on `schedule` over `duration`, warm-up included, with answers up
    /// to `timeout` late. Without a duration: as long as the peer grants.
    pub fn new(
        peer: impl Into<String>,
        nonce: Nonce,
        size_bytes: u32,
        schedule: Schedule,
        duration: Option<Nanos>,
        timeout: Nanos,
    ) -> SessionParams {
        let longest_gap = match schedule {
            Schedule::Closed => Nanos::ZERO,
            Schedule::Periodic { interval_ns } => interval_ns.saturating_mul(2),
            // A gap exceeds ten times the mean once in 22,000.
            Schedule::Poisson { mean_ns, .. } => mean_ns.saturating_mul(10),
        };
        let terms = Terms {
            size_bytes,
            interval: schedule.interval().unwrap_or(Nanos::ZERO),
            duration: duration.map_or(Nanos::ZERO, |duration| duration + timeout + SessionParams::MARGIN),
            // A closed loop is idle for a time-out when an answer is lost.
            idle: timeout.max(longest_gap),
            socket: SocketTerms::NONE,
            down: false,
            confirms: true,
            in_driver: false,
        };
        SessionParams { peer: peer.into(), nonce, terms }
    }

    /// The same with terms for the peer's socket. Those that the peer does not know are not granted.
    #[must_use]
    pub fn with_socket(mut self, socket: SocketTerms) -> SessionParams {
        self.terms.socket = socket;
        self
    }

    /// The same with probes that a program in the peer's network driver answers.
    #[must_use]
    pub fn with_answers_in_driver(mut self) -> SessionParams {
        self.terms.in_driver = true;
        self
    }

    /// The same for a stream that the peer sends, a packet in each `gap`, which the peer may lengthen. Zero: as fast as it
    /// permits.
    #[must_use]
    pub fn with_down_stream(mut self, gap: Nanos) -> SessionParams {
        (self.terms.down, self.terms.interval) = (true, gap);
        self
    }
}

/// Requests the session `params` from the peer of `transport`, authenticated by `key`, and confirms it if the peer knows
/// confirmations. When `stop` is set it ends within one wait of the transport.
///
/// # Errors
/// [`SessionError`]: the peer is silent for 3 s before or after its ACCEPT, has another key, or refuses; or `stop` was
/// set.
pub fn open(
    transport: &mut impl Transport,
    clock: &impl Clock,
    key: Option<&PreSharedKey>,
    params: &SessionParams,
    stop: &AtomicBool,
) -> Result<NativeSession, SessionError> {
    let opened = handshake(transport, clock, key, params, stop);
    opened.map_err(|error| error.on_path(transport.report()))
}

fn handshake(
    transport: &mut impl Transport,
    clock: &impl Clock,
    key: Option<&PreSharedKey>,
    params: &SessionParams,
    stop: &AtomicBool,
) -> Result<NativeSession, SessionError> {
    let mut handshake = Handshake::new(key, params);
    let Some(session) = exchange(&mut handshake, transport, clock, &params.peer, stop)? else {
        return Err(handshake.timed_out());
    };
    if params.terms.in_driver && !session.terms().in_driver {
        return Err(SessionError::NotInDriver { peer: params.peer.clone() });
    }
    if !session.terms().confirms {
        // An older reflector keeps the session for its idle time.
        return Ok(*session);
    }
    let mut confirmation = Confirmation::new(session);
    match exchange(&mut confirmation, transport, clock, &params.peer, stop)? {
        Some(session) => Ok(*session),
        None => Err(SessionError::NotConfirmed { peer: params.peer.clone(), polls: confirmation.polls }),
    }
}

/// Requests that are repeated until the reply has come that ends them.
trait Exchange {
    /// Sends the current request. An error is kept: the next attempt may succeed.
    fn send(&mut self, transport: &mut impl Transport);

    fn handle(&mut self, datagram: &[u8], received: Stamp<SenderClock>) -> Result<Progress, SessionError>;

    /// Keeps an error that an earlier datagram caused.
    fn set_refused(&mut self, error: io::Error);
}

/// The progress that a received datagram brought.
enum Progress {
    None,
    /// The next request can be sent.
    Next,
    Session(Box<NativeSession>),
}

/// Sends the requests of `exchange` at [`ATTEMPTS_AT_MS`] until it has a session; `None` if the time is over.
fn exchange(
    exchange: &mut impl Exchange,
    transport: &mut impl Transport,
    clock: &impl Clock,
    peer: &str,
    stop: &AtomicBool,
) -> Result<Option<Box<NativeSession>>, SessionError> {
    // TALLY, the longest reply, fits; anything longer is not a reply and may be truncated.
    let mut buffer = [0; TALLY_BYTES + 1];
    let start = clock.now();
    for attempt in 0..ATTEMPTS_AT_MS.len() {
        exchange.send(transport);
        let until = ATTEMPTS_AT_MS.get(attempt + 1).map_or(HANDSHAKE_TIMEOUT, |next| Nanos::from_millis(*next));
        while let Some(left) = Some(start + until - clock.now()).filter(|left| left.0 > 0) {
            if stop.load(Ordering::Relaxed) {
                return Err(SessionError::Interrupted { peer: peer.to_owned() });
            }
            match transport.receive(&mut buffer, left) {
                Ok(None) => {}
                Ok(Some(bytes)) => match exchange.handle(&buffer[..bytes.min(buffer.len())], clock.now())? {
                    Progress::None => {}
                    Progress::Next => exchange.send(transport),
                    Progress::Session(session) => return Ok(Some(session)),
                },
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => exchange.set_refused(error),
                Err(source) => return Err(SessionError::Broken { peer: peer.to_owned(), source }),
            }
        }
    }
    Ok(None)
}

/// HELLO until a COOKIE comes, then OPEN until ACCEPT or REFUSE.
struct Handshake<'a> {
    params: &'a SessionParams,
    setup: Option<SetupKey>,
    codes: Codes,
    cookie: Option<Cookie>,
    hellos: u32,
    opens: u32,
    refused: Option<io::Error>,
}

impl<'a> Handshake<'a> {
    fn new(key: Option<&PreSharedKey>, params: &'a SessionParams) -> Handshake<'a> {
        let setup = key.map(PreSharedKey::setup_key);
        let codes = setup.as_ref().map_or(Codes::None, SetupKey::codes);
        Handshake { params, setup, codes, cookie: None, hellos: 0, opens: 0, refused: None }
    }

    fn handle_cookie(&mut self, datagram: &[u8]) -> Result<Progress, SessionError> {
        let Ok(cookie) = Cookie::parse(datagram) else { return Ok(Progress::None) };
        if cookie.nonce != self.params.nonce {
            return Ok(Progress::None);
        }
        let peer = || self.params.peer.clone();
        if cookie.version != VERSION {
            return Err(SessionError::Version { peer: peer(), version: cookie.version });
        }
        match (cookie.key_required, self.setup.is_some()) {
            (true, false) => return Err(SessionError::KeyRequired { peer: peer() }),
            (false, true) => return Err(SessionError::KeyUnknown { peer: peer() }),
            _ => {}
        }
        self.cookie = Some(cookie);
        Ok(Progress::Next)
    }

    fn handle_terms(&mut self, datagram: &[u8], received: Stamp<SenderClock>) -> Result<Progress, SessionError> {
        if !self.codes.verify(datagram) {
            return Ok(Progress::None);
        }
        let params = self.params;
        if let Ok(refuse) = Refuse::parse(datagram)
            && refuse.nonce == params.nonce
        {
            let Refuse { reason, limit, .. } = refuse;
            return Err(SessionError::Refused { peer: params.peer.clone(), reason, limit });
        }
        match Accept::parse(datagram) {
            Ok(accept) if accept.nonce == params.nonce && accept.terms.size_bytes == params.terms.size_bytes => {
                let keys = self.setup.as_ref();
                let keys = keys.map(|setup| setup.session(&accept.nonce, &accept.reflector_nonce, accept.session));
                Ok(Progress::Session(Box::new(NativeSession::new(&accept, keys, received))))
            }
            _ => Ok(Progress::None),
        }
    }

    fn timed_out(self) -> SessionError {
        let peer = self.params.peer.clone();
        match self.cookie {
            None => SessionError::NoAnswer {
                peer,
                hellos: self.hellos,
                within: HANDSHAKE_TIMEOUT,
                refused: self.refused,
                queue_of_peer: None,
            },
            Some(_) => SessionError::NotOpened { peer, opens: self.opens, keyed: self.setup.is_some() },
        }
    }
}

impl Exchange for Handshake<'_> {
    /// Sends HELLO or OPEN. If no attempt succeeds, the last error is the cause.
    fn send(&mut self, transport: &mut impl Transport) {
        let sent = match &self.cookie {
            None => {
                self.hellos += 1;
                transport.send(&hello_datagram(&self.params.nonce))
            }
            Some(cookie) => {
                self.opens += 1;
                let open = Open { nonce: self.params.nonce, token: cookie.token, terms: self.params.terms };
                let mut datagram = [0; OPEN_BYTES];
                open.write(&self.codes, &mut datagram);
                transport.send(&datagram)
            }
        };
        self.refused = sent.err().or(self.refused.take());
    }

    fn handle(&mut self, datagram: &[u8], received: Stamp<SenderClock>) -> Result<Progress, SessionError> {
        match &self.cookie {
            None => self.handle_cookie(datagram),
            Some(_) => self.handle_terms(datagram, received),
        }
    }

    fn set_refused(&mut self, error: io::Error) {
        self.refused = Some(error);
    }
}

/// POLL until its TALLY comes. The code of a POLL depends on the nonces of both ends, so only an end that has received
/// the ACCEPT and has the key can send it. A POLL has a number of its own and changes no count of the session.
struct Confirmation {
    /// Absent once it is confirmed.
    session: Option<Box<NativeSession>>,
    polls: u64,
}

impl Confirmation {
    fn new(session: Box<NativeSession>) -> Confirmation {
        Confirmation { session: Some(session), polls: 0 }
    }
}

impl Exchange for Confirmation {
    fn send(&mut self, transport: &mut impl Transport) {
        let Some(session) = &mut self.session else { return };
        let mut datagram = [0; POLL_BYTES];
        self.polls = session.write_poll(0, &mut datagram);
        // A POLL that cannot be sent is repeated like a lost one.
        let _ = transport.send(&datagram);
    }

    fn handle(&mut self, datagram: &[u8], _received: Stamp<SenderClock>) -> Result<Progress, SessionError> {
        let is_confirmed = |session: &mut Box<NativeSession>| session.decode_tally(datagram).is_some();
        Ok(self.session.take_if(is_confirmed).map_or(Progress::None, |mut session| {
            session.set_confirmed();
            Progress::Session(session)
        }))
    }

    fn set_refused(&mut self, _error: io::Error) {}
}

/// Why the sender got no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("no answer from `{peer}`")]
    NoAnswer {
        peer: String,
        hellos: u32,
        within: Nanos,
        /// The last error of the socket, if there was one: ICMP messages appear there.
        refused: Option<io::Error>,
        /// The queue of the reflector's AF_XDP socket, if latlab gave it one.
        queue_of_peer: Option<u32>,
    },
    /// A host with several addresses, or a translator on the path.
    #[error("`{peer}` answers from another address or port: `{from}`")]
    OtherAddress { peer: String, from: SocketAddr },
    /// An AF_XDP socket has one queue of its interface.
    #[error("packets from `{peer}` do not arrive at queue {queue} of `{interface}`")]
    OtherQueue { peer: String, interface: String, queue: u32 },
    /// The stop flag was set.
    #[error("interrupted before `{peer}` opened a session")]
    Interrupted { peer: String },
    /// A connection was made, but no session over it: another protocol, caps that were reached, or a broken path.
    #[error("`{peer}` takes a connection, but opens no session over it")]
    NoGreeting {
        peer: String,
        /// The error of the connection; `None`: silence.
        instead: Option<io::Error>,
    },
    /// A COOKIE came, but no reply to OPEN.
    #[error("`{peer}` does not open a session")]
    NotOpened {
        peer: String,
        opens: u32,
        /// Whether both ends use a key.
        keyed: bool,
    },
    /// A session was opened, but no reply to the POLLs that confirm it came.
    #[error("`{peer}` opened a session, but does not answer in it")]
    NotConfirmed { peer: String, polls: u64 },
    /// The reflector has no program in its network driver.
    #[error("`{peer}` does not answer in its network driver")]
    NotInDriver { peer: String },
    /// The reflector has a key, this end has none.
    #[error("`{peer}` asks for a pre-shared key")]
    KeyRequired { peer: String },
    /// This end has a key, the reflector has none.
    #[error("`{peer}` has no pre-shared key")]
    KeyUnknown { peer: String },
    /// The reflector has another protocol version.
    #[error("`{peer}` speaks version `{version}` of the protocol")]
    Version {
        peer: String,
        /// Protocol version of the peer.
        version: u8,
    },
    /// A cap of the reflector.
    #[error("`{peer}` refuses the session: {}", refusal(*reason, *limit))]
    Refused {
        peer: String,
        reason: RefuseReason,
        /// The value of the cap.
        limit: u64,
    },
    #[error("cannot talk to `{peer}`")]
    Broken { peer: String, source: io::Error },
}

impl SessionError {
    /// The same with what the path reported: errors about earlier datagrams, such as `ECONNREFUSED`, and whether it is a
    /// connection, where silence has other reasons. The queue of an AF_XDP socket is another one.
    fn on_path(self, report: PathReport) -> SessionError {
        let queue = report.xdp.filter(|_| report.is_at_other_queue).and_then(|xdp| Some((xdp.interface, xdp.queue?)));
        if let (SessionError::NoAnswer { peer, .. }, Some((interface, queue))) = (&self, queue) {
            return SessionError::OtherQueue { peer: peer.clone(), interface, queue };
        }
        match (self, report.is_connection) {
            (SessionError::NoAnswer { peer, refused, .. }, true) => SessionError::NoGreeting { peer, instead: refused },
            (SessionError::Broken { peer, source }, true) => SessionError::NoGreeting { peer, instead: Some(source) },
            (SessionError::NoAnswer { peer, hellos, within, refused: None, .. }, false) => {
                let refused = report.socket_errors.into_keys().next().map(io::Error::other);
                SessionError::NoAnswer { peer, hellos, within, refused, queue_of_peer: None }
            }
            (error, _) => error,
        }
    }

    /// The same if the peer of a UDP path answers from elsewhere.
    #[must_use]
    pub(crate) fn answered_elsewhere(self, transport: &impl PathTransport) -> SessionError {
        let SessionError::NoAnswer { peer, refused: None, .. } = &self else { return self };
        match answering_instead(transport) {
            Some(from) => SessionError::OtherAddress { peer: peer.clone(), from },
            None => self,
        }
    }

    /// The same for a reflector whose AF_XDP socket has this queue.
    #[must_use]
    pub(crate) fn at_queue(mut self, queue: Option<u32>) -> SessionError {
        if let SessionError::NoAnswer { queue_of_peer, .. } = &mut self {
            *queue_of_peer = queue;
        }
        self
    }

    fn cause(&self) -> Option<String> {
        Some(match self {
            SessionError::NoAnswer { hellos, within, refused, queue_of_peer, .. } => {
                let sent = format!("{hellos} HELLO packets in {} s", within.as_secs_f64());
                match (refused, queue_of_peer) {
                    (Some(error), _) => format!("{sent}, the last error was: {error}"),
                    (None, Some(queue)) => format!("{sent}, nothing came back from the socket at queue {queue} there"),
                    (None, None) => format!("{sent}, nothing came back"),
                }
            }
            SessionError::OtherAddress { .. } => "a sender takes answers only from where it sends to".into(),
            SessionError::OtherQueue { .. } => {
                "they came through the network stack: they arrived at another queue, or with IP options, extension headers, \
                 fragments or a VLAN tag"
                    .into()
            }
            SessionError::Interrupted { .. } => return None,
            SessionError::NoGreeting { instead: Some(error), .. } => explain_broken(error),
            SessionError::NoGreeting { instead: None, .. } => "nothing came back within 3 s".into(),
            SessionError::NotOpened { opens, keyed: true, .. } => {
                format!(
                    "it answers HELLO, but not {opens} OPEN packets: the keys differ, or the path loses packets"
                )
            }
            SessionError::NotOpened { opens, keyed: false, .. } => {
                format!("it answers HELLO, but not {opens} OPEN packets: the path loses packets")
            }
            SessionError::NotConfirmed { polls, .. } => {
                format!("{polls} POLL packets in 3 s, no TALLY came back: the path loses packets")
            }
            SessionError::NotInDriver { .. } => "it has no program there, or is an older latlab".into(),
            SessionError::KeyRequired { .. } => "no key was given here".into(),
            SessionError::KeyUnknown { .. } => {
                "a key was given here, so that an unauthenticated session is refused".into()
            }
            SessionError::Version { .. } => format!("this latlab speaks version {VERSION}"),
            SessionError::Refused { .. } => "a cap of that reflector".into(),
            SessionError::Broken { source, .. } => explain_broken(source),
        })
    }

    fn hint(&self) -> Option<&'static str> {
        Some(match self {
            SessionError::NoAnswer { queue_of_peer: Some(_), .. } => {
                "check that firewalls let UDP through; an AF_XDP reflector has one queue of its interface: try others by \
                 `--peer-queue N`, or give that device one queue: `ethtool -L DEV combined 1`"
            }
            SessionError::NoAnswer { peer, .. } if is_loopback(peer) => {
                "start `latlab serve` in another shell (loopback needs no key); `--protocol echo` measures against a \
                 plain UDP echo"
            }
            SessionError::NoAnswer { .. } => {
                "start `latlab serve --psk-file FILE` there, and check that firewalls let its \
                 UDP port through; `--protocol echo` measures against a plain UDP echo"
            }
            SessionError::OtherAddress { .. } => {
                "measure to that address, or make the service there answer from the one that is asked: `latlab serve --bind ADDR`"
            }
            SessionError::OtherQueue { .. } => {
                "try the other queues by `--queue N` (`ethtool -l` counts them), or give the device one: \
                 `ethtool -L DEV combined 1`"
            }
            SessionError::NoGreeting { .. } => {
                "check that `latlab serve --tcp` listens there; its counters show whether its caps are reached"
            }
            SessionError::NotOpened { keyed: true, .. } => {
                "compare the key files of both hosts, as with `sha256sum FILE`"
            }
            SessionError::NotOpened { keyed: false, .. } | SessionError::NotConfirmed { .. } => {
                "try again; see the counters of `latlab serve` there"
            }
            SessionError::NotInDriver { .. } => "run the same version of latlab on both hosts, or `--reflect socket`",
            SessionError::KeyRequired { .. } => "`--psk-file FILE` with the key of that `latlab serve`",
            SessionError::KeyUnknown { .. } => "start it with the same `--psk-file`, or leave that out here too",
            SessionError::Version { .. } => "run the same version of latlab on both hosts",
            SessionError::Refused { reason, .. } => remedy(*reason),
            SessionError::Interrupted { .. } | SessionError::Broken { .. } => return None,
        })
    }
}

impl Explain for SessionError {
    fn explain(&self) -> Failure {
        let failure = Failure { cause: self.cause(), hint: self.hint().map(Into::into), ..Failure::world(self) };
        failure.of_silence(matches!(
            self,
            SessionError::NoAnswer { refused: None, .. } | SessionError::NoGreeting { instead: None, .. }
        ))
    }
}

/// Whether `peer` is a loopback address with its port.
fn is_loopback(peer: &str) -> bool {
    peer.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
}

fn refusal(reason: RefuseReason, limit: u64) -> String {
    match reason {
        RefuseReason::Sessions => format!("it has `{limit}` already"),
        RefuseReason::SessionsPerPrefix => format!("it has `{limit}` from this network already"),
        RefuseReason::NewSessions => format!("it opens `{limit}` per second, and this limit is reached"),
        RefuseReason::Size => format!("probes are larger than `{limit}` bytes"),
        RefuseReason::Duration => format!("it would last longer than `{}`", typed(limit)),
        RefuseReason::Idle => format!("gaps between probes may be longer than `{}`", typed(limit)),
        RefuseReason::Down if limit == 0 => "it allows no down-streams".into(),
        RefuseReason::Down => format!("it sends one down-stream at a time, at `{limit}` bit/s at most"),
    }
}

/// A limit in nanoseconds in the form of an option's value: `--duration 24h`.
fn typed(limit_ns: u64) -> String {
    typed_span(Nanos(i64::try_from(limit_ns).unwrap_or(i64::MAX)))
}

const fn remedy(reason: RefuseReason) -> &'static str {
    match reason {
        RefuseReason::Sessions | RefuseReason::SessionsPerPrefix => {
            "wait for other measurements to end, or raise the cap of `latlab serve` there"
        }
        RefuseReason::NewSessions => "try again in a second",
        RefuseReason::Size => "choose a smaller `--size`, or raise the cap of `latlab serve` there",
        RefuseReason::Duration => "choose a shorter `--duration`, or raise the cap of `latlab serve` there",
        RefuseReason::Idle => "choose a shorter `--interval`, or raise the cap of `latlab serve` there",
        RefuseReason::Down => "`latlab serve --psk-file FILE --allow-down RATE` there, and one down-stream at a time",
    }
}
