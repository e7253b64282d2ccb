//! Any messages of any senders at any time, with and without a key: genuine, altered, repeated, out of order, and noise. A
//! reflector never sends more than it receives, answers no reply and no altered message, keeps its limits, sends a
//! down-stream within its credit only, and its counters add up.
#![no_main]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use arbitrary::Arbitrary;
use latlab::session::{
    DownDue, DropReason, PreSharedKey, ReceiverState, ReflectorAction, ReflectorLimits, SessionReflector,
};
use latlab::units::{Nanos, ReflectorClock, Stamp};
use latlab::wire::*;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Script {
    keyed: bool,
    supports_streams: bool,
    limits: Limits,
    start_s: u32,
    acts: Vec<Act>,
}

#[derive(Arbitrary, Debug)]
struct Limits {
    sessions: u8,
    per_prefix: u8,
    per_second: u8,
    cookies: u8,
    duration_ms: u16,
    idle_ms: u16,
    down_bps: u32,
}

#[derive(Arbitrary, Debug)]
struct Act {
    sender: u8,
    /// Two to the power of this: nanoseconds, up to 34 s.
    after: u8,
    message: Message,
    /// Exclusive or with a byte of the message.
    altered: Option<(u16, u8)>,
    socket_drops: Option<u32>,
    /// Send the reply back as the next datagram, as another reflector would.
    echo: bool,
}

#[derive(Arbitrary, Debug)]
enum Message {
    Hello { nonce: u8, more: u8 },
    Open { nonce: u8, size: u16, interval: u32, duration_ms: u16, idle_ms: u16, flags: u8 },
    Probe { session: u8, counter: u64, padding: u8 },
    Data { session: u8, counter: u64, as_train: bool },
    Poll { session: u8, number: u8, credit: u32 },
    Close { session: u8, wants_socket_drops: bool },
    Noise(Vec<u8>),
    Again(u8),
    Disconnect,
}

/// A session as its sender has it.
struct Opened {
    accept: Accept,
    keys: Option<SessionKeys>,
    credit: u64,
    down_bytes: u64,
}

const SETUP_LINE: &[u8] = b"latlab-psk-1 000102030405060708090a0b0c0d0e0f";

fn sender(number: u8) -> SocketAddr {
    match number % 6 {
        0 | 1 => SocketAddr::from(([127, 0, 0, 1], 4_000 + u16::from(number % 6))),
        2 | 3 => SocketAddr::from(([192, 0, 2, number % 6], 4_000)),
        4 => SocketAddr::from(([198, 51, 100, 4], 4_000)),
        _ => SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 5], 4_000)),
    }
}

struct World {
    reflector: SessionReflector,
    limits: ReflectorLimits,
    setup: Option<SetupKey>,
    now: Stamp<ReflectorClock>,
    tokens: BTreeMap<(SocketAddr, u8), CookieToken>,
    /// By number of the session and address.
    sessions: BTreeMap<(u16, SocketAddr), Opened>,
    /// Sessions in the order in which they were opened.
    order: Vec<(u16, SocketAddr)>,
    sent: Vec<Vec<u8>>,
    reports: u64,
}

impl World {
    fn new(script: &Script) -> World {
        let Limits { sessions, per_prefix, per_second, cookies, duration_ms, idle_ms, down_bps } = script.limits;
        let limits = ReflectorLimits {
            sessions: u16::from(sessions % 6),
            sessions_per_prefix: u16::from(per_prefix % 4),
            new_sessions_per_second: u32::from(per_second),
            cookies_per_second: u32::from(cookies),
            duration: Nanos::from_millis(i64::from(duration_ms)),
            idle: Nanos::from_millis(i64::from(idle_ms)),
            size_bytes: 2_048,
            down_bps: u64::from(down_bps),
        };
        let key = script.keyed.then(|| PreSharedKey::from_reader("fuzz", SETUP_LINE).expect("a key"));
        let mut reflector = SessionReflector::new(limits, key.as_ref(), [3; 32]);
        if script.supports_streams {
            reflector.set_supported_terms(SocketTerms { batched: true, unchecked: true, stamped: true });
        }
        World {
            reflector,
            limits,
            setup: key.map(|key| key.setup_key()),
            now: Stamp::from_nanos(i64::from(script.start_s) * 1_000_000_000),
            tokens: BTreeMap::new(),
            sessions: BTreeMap::new(),
            order: Vec::new(),
            sent: Vec::new(),
            reports: 0,
        }
    }

    fn codes(&self) -> Codes {
        self.setup.as_ref().map_or(Codes::None, SetupKey::codes)
    }

    /// Number, nonce, terms and keys of the session that `choice` selects.
    fn session(&self, choice: u8, from: SocketAddr) -> (u16, Nonce, Terms, Option<SessionKeys>) {
        let none = Terms { size_bytes: 24, ..Terms::default() };
        let chosen = self.order.len().checked_sub(1 + usize::from(choice >> 1)).map(|at| self.order[at]);
        // Usually of the same sender: the latest session of `from`, else any.
        let own = || self.order.iter().rev().find(|(_, address)| *address == from).copied();
        let found = if choice & 1 == 0 { own() } else { chosen };
        match found.and_then(|place| self.sessions.get(&place)) {
            Some(Opened { accept, keys, .. }) => (accept.session, accept.nonce, accept.terms, keys.clone()),
            None => (u16::from(choice), [choice; 16], none, None),
        }
    }

    /// The datagram of `message`, without alteration.
    fn datagram(&self, message: &Message, from: SocketAddr) -> Vec<u8> {
        match *message {
            Message::Hello { nonce, more } => {
                let mut hello = hello_datagram(&[nonce; 16]).to_vec();
                hello.resize(HELLO_MIN_BYTES + usize::from(more), 0);
                hello
            }
            Message::Open { nonce, size, interval, duration_ms, idle_ms, flags } => {
                let terms = Terms {
                    size_bytes: 24 + u32::from(size) % 2_100,
                    interval: Nanos(i64::from(interval)),
                    duration: Nanos::from_millis(i64::from(duration_ms)),
                    idle: Nanos::from_millis(i64::from(idle_ms)),
                    socket: SocketTerms { batched: flags & 1 != 0, unchecked: flags & 2 != 0, stamped: flags & 32 != 0 },
                    down: flags & 4 != 0,
                    confirms: flags & 8 != 0,
                    in_driver: flags & 16 != 0,
                };
                let token = self.tokens.get(&(from, nonce)).copied().unwrap_or_default();
                let mut open = [0; OPEN_BYTES];
                Open { nonce: [nonce; 16], token, terms }.write(&self.codes(), &mut open);
                open.to_vec()
            }
            Message::Probe { session, counter, padding } => {
                let (number, _, terms, keys) = self.session(session, from);
                let mut probe = vec![padding; terms.size_bytes as usize];
                ProbeHeader::write_probe(number, counter, keys.as_ref().map(|keys| &keys.probes), &mut probe);
                probe
            }
            Message::Data { session, counter, .. } => {
                let (number, _, terms, keys) = self.session(session, from);
                let mut packet = vec![0xaa; terms.size_bytes as usize];
                ProbeHeader::write_data(number, counter, keys.as_ref().map(|keys| &keys.probes), &mut packet);
                packet
            }
            Message::Poll { session, number, credit } => {
                let (session, nonce, _, keys) = self.session(session, from);
                let codes = keys.map_or(Codes::None, |keys| keys.close);
                let (number, credit_bytes) = (u64::from(number), u64::from(credit));
                let mut poll = [0; POLL_BYTES];
                StreamPoll { session, nonce, number, wants_cpu: true, credit_bytes }.write(&codes, &mut poll);
                poll.to_vec()
            }
            Message::Close { session, wants_socket_drops } => {
                let (session, nonce, _, keys) = self.session(session, from);
                let codes = keys.map_or(Codes::None, |keys| keys.close);
                let mut close = [0; CLOSE_BYTES];
                Close { session, nonce, wants_socket_drops }.write(&codes, &mut close);
                close.to_vec()
            }
            Message::Noise(ref noise) => noise.clone(),
            Message::Again(back) => {
                self.sent.len().checked_sub(1 + usize::from(back)).map_or(Vec::new(), |at| self.sent[at].clone())
            }
            Message::Disconnect => Vec::new(),
        }
    }

    /// Handles `datagram` and returns the reply, or why there is none.
    fn handle(&mut self, datagram: &[u8], from: SocketAddr) -> Result<Vec<u8>, Option<DropReason>> {
        let mut buffer = datagram.to_vec();
        let length = match self.reflector.handle(&mut buffer, from, self.now) {
            ReflectorAction::Drop(reason) => return Err(Some(reason)),
            ReflectorAction::Counted => return Err(None),
            ReflectorAction::Reply(length) => length,
            ReflectorAction::Reflect(pending) => pending.seal(self.now + Nanos(250), Some(1), &mut buffer),
        };
        assert!(length <= datagram.len(), "a reply is longer than its request");
        assert!(MessageType::of(&buffer).is_ok_and(MessageType::is_reply));
        buffer.truncate(length);
        Ok(buffer)
    }

    /// Enters what the sender learns from `reply` to its `request`, and requires that the reply suits it and is genuine.
    fn learn(&mut self, request: &[u8], reply: &[u8], from: SocketAddr, opened: bool) {
        let asked = MessageType::of(request).expect("it was answered");
        match MessageType::of(reply).expect("a type") {
            MessageType::Cookie => {
                assert_eq!(asked, MessageType::Hello);
                let cookie = Cookie::parse(reply).expect("a COOKIE");
                assert_eq!((cookie.nonce[..] == request[8..24], cookie.key_required), (true, self.setup.is_some()));
                if cookie.nonce == [cookie.nonce[0]; 16] {
                    self.tokens.insert((from, cookie.nonce[0]), cookie.token);
                }
            }
            MessageType::Accept => {
                assert!(asked == MessageType::Open && self.codes().verify(reply));
                self.learn_session(Accept::parse(reply).expect("an ACCEPT"), from, opened);
            }
            MessageType::Refuse => {
                assert!(asked == MessageType::Open && self.codes().verify(reply) && Refuse::parse(reply).is_ok());
            }
            MessageType::Answer => assert_eq!((asked, reply.len()), (MessageType::Probe, request.len())),
            MessageType::Tally => self.learn_tally(request, reply, from),
            MessageType::Report => {
                assert!(asked == MessageType::Close && Report::parse(reply).is_ok());
                self.reports += 1;
            }
            message => panic!("{message:?}"),
        }
    }

    fn learn_session(&mut self, accept: Accept, from: SocketAddr, opened: bool) {
        let (terms, limits) = (accept.terms, self.limits);
        assert!(terms.size_bytes <= limits.size_bytes && terms.duration <= limits.duration);
        assert_eq!(terms.idle, limits.idle);
        assert!(!terms.down || (self.setup.is_some() && limits.down_bps > 0));
        if !opened {
            return;
        }
        let keys = self.setup.as_ref();
        let keys = keys.map(|setup| setup.session(&accept.nonce, &accept.reflector_nonce, accept.session));
        let place = (accept.session, from);
        self.sessions.insert(place, Opened { accept, keys, credit: 0, down_bytes: 0 });
        self.order.retain(|other| *other != place);
        self.order.push(place);
    }

    fn learn_tally(&mut self, request: &[u8], reply: &[u8], from: SocketAddr) {
        let (poll, tally) = (StreamPoll::parse(request).expect("a POLL"), StreamTally::parse(reply).expect("a TALLY"));
        assert_eq!((tally.session, tally.nonce, tally.number), (poll.session, poll.nonce, poll.number));
        let session = self.sessions.get_mut(&(poll.session, from)).expect("only its sender can ask");
        assert!(session.keys.as_ref().is_none_or(|keys| keys.close.verify(reply)));
        let size = u64::from(session.accept.terms.size_bytes);
        assert_eq!(tally.bytes, size * tally.packets);
        assert!(tally.packets <= tally.spanned);
        match session.accept.terms.down {
            true => assert_eq!(tally.bytes, session.down_bytes),
            false => assert!(tally.reordered <= tally.packets),
        }
        session.credit = session.credit.max(poll.credit_bytes);
    }

    /// Sends what is due of a down-stream: within its credit, to the sender of its session.
    fn send_down(&mut self) {
        let mut buffer = [0; 2_048];
        for _ in 0..4 {
            let DownDue::Packet { bytes, to } = self.reflector.down_due(self.now, &mut buffer) else { return };
            assert_eq!(self.reflector.down_peer(), Some(to));
            let header = ProbeHeader::parse(&buffer[..bytes], MessageType::Down).expect("a packet");
            let session = self.sessions.get_mut(&(header.session, to)).expect("an opened session");
            session.down_bytes += bytes as u64;
            assert!(session.accept.terms.down && session.down_bytes <= session.credit, "more than the credit");
        }
    }

    fn act(&mut self, act: Act) {
        let Act { sender: number, after, message, altered, socket_drops, echo } = act;
        self.now = self.now + Nanos(1 << (after % 36));
        let from = sender(number);
        if let Message::Disconnect = message {
            return self.reflector.disconnect(from);
        }
        let mut request = self.datagram(&message, from);
        let genuine = request.clone();
        if let Some((at, with)) = altered.filter(|_| !request.is_empty()) {
            let at = usize::from(at) % request.len();
            request[at] ^= with;
        }
        let socket_drops = socket_drops.map(u64::from);
        let thread_cpu = Some(Nanos(self.now.as_nanos() / 2));
        self.reflector.set_receiver_state(ReceiverState { socket_drops, drops_merged: false, thread_cpu });
        let before = self.reflector.counters(self.now).opened;
        let as_train = matches!(message, Message::Data { as_train: true, .. });
        let handled = match as_train && self.reflector.count_train(&request, request.len(), from, self.now) {
            true => Err(None),
            false => self.handle(&request, from),
        };
        // Altering an altered message again may restore it.
        if !matches!(message, Message::Again(_) | Message::Noise(_)) {
            self.expect_drop_of_altered(&genuine, &request, &handled);
        }
        let opened = self.reflector.counters(self.now).opened > before;
        if let Ok(reply) = handled {
            self.learn(&request, &reply, from, opened);
            if echo {
                assert!(matches!(self.handle(&reply, from), Err(Some(_))), "a reply was answered");
            }
        }
        self.sent.push(request);
        self.send_down();
    }

    /// With a key, every byte of a message with a code is covered by it, and the first 24 of a probe by its tag.
    fn expect_drop_of_altered(&self, genuine: &[u8], sent: &[u8], handled: &Result<Vec<u8>, Option<DropReason>>) {
        let covered = match MessageType::of(genuine) {
            Ok(MessageType::Open | MessageType::Close | MessageType::Poll) => genuine.len(),
            Ok(MessageType::Probe | MessageType::Data) => PROBE_MIN_BYTES.min(genuine.len()),
            _ => 0,
        };
        let is_altered = genuine[..covered] != sent[..covered];
        // A changed type may make a HELLO of it, which has no code.
        let is_hello = MessageType::of(sent) == Ok(MessageType::Hello);
        if self.setup.is_some() && is_altered && !is_hello {
            assert!(matches!(handled, Err(Some(_))), "an altered message was accepted");
        }
    }

    fn expect_counters_to_add_up(&mut self) {
        let counters = *self.reflector.counters(self.now);
        let dropped = DropReason::ALL.into_iter().map(|reason| counters.dropped(reason)).sum::<u64>();
        let refused = RefuseReason::ALL.into_iter().map(|reason| counters.refused(reason)).sum::<u64>();
        assert!(counters.replied_bytes <= counters.received_bytes);
        assert_eq!(counters.received, counters.replied + counters.counted + dropped);
        let set_up = counters.cookies + counters.opened + counters.accepts_repeated + refused;
        assert_eq!(counters.replied, set_up + counters.answered + counters.tallies + self.reports);
        let open = self.reflector.open_sessions();
        let ended = counters.closed + counters.expired + counters.unconfirmed + counters.disconnected;
        assert_eq!(counters.opened, ended + open as u64);
        assert!(open <= usize::from(self.limits.sessions));
        assert_eq!(counters.down_bytes, self.sessions.values().map(|session| session.down_bytes).sum::<u64>());
        assert!(self.setup.is_some() || counters.down == 0);
    }
}

fuzz_target!(|script: Script| {
    let mut world = World::new(&script);
    for act in script.acts {
        world.act(act);
        world.expect_counters_to_add_up();
    }
    let _ = world.reflector.required_terms(world.now);
    let _ = world.reflector.has_streams_only(world.now);
});
