//! Confirmation of sessions: a sender proves at once that it received the ACCEPT, and a session without this proof holds
//! a slot for 2 s only.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use latlab_measure::clock::Monotonic;
use latlab_measure::session::{
    DownStream, DropReason, NativeSession, ProbeCodec, ReflectorCounters, ReflectorLimits, SessionError, SessionParams,
    UpStream, open,
};
use latlab_measure::transport::{Transport, UdpReflector};
use latlab_measure::wire::{
    Accept, Cookie, MessageType, OPEN_BYTES, Open, RefuseReason, SocketTerms, Terms, hello_datagram,
};
use latlab_plan::plan::WaitMode;
use latlab_terms::probe::Seq;
use latlab_terms::units::{Nanos, Stamp};

use super::stage::{NEVER, Stage, key, wishes};
use super::{Wire, open_over, round_trips, wishes as wishes_for, with_reflector_on};

const LIMITS: ReflectorLimits = ReflectorLimits { sessions: 4, down_bps: 8_000_000, ..ReflectorLimits::DEFAULT };

fn keyed() -> Stage {
    Stage::new(LIMITS, Some(&key(1)))
}

fn open_on(
    stage: &mut impl Transport,
    clock: &super::stage::StageClock,
    nonce: u8,
) -> Result<NativeSession, SessionError> {
    open(stage, clock, Some(&key(1)), &wishes(nonce), &NEVER)
}

fn counters(stage: &mut Stage) -> ReflectorCounters {
    let now = stage.clock.reflector();
    *stage.reflector.counters(now)
}

/// The reply to an OPEN on `terms` from `from`, as of a sender that never confirms or whose OPEN is played again.
fn open_only(stage: &mut Stage, from: SocketAddr, nonce: u8, terms: Terms) -> (Vec<u8>, Option<Vec<u8>>) {
    let cookie = stage.ask_from(from, &hello_datagram(&[nonce; 16])).expect("a COOKIE");
    let token = Cookie::parse(&cookie).expect("a COOKIE").token;
    let mut datagram = [0; OPEN_BYTES];
    Open { nonce: [nonce; 16], token, terms }.write(&key(1).setup_key().codes(), &mut datagram);
    let reply = stage.ask_from(from, &datagram);
    (datagram.to_vec(), reply)
}

fn is_accept(reply: Option<&Vec<u8>>) -> bool {
    reply.is_some_and(|reply| MessageType::of(reply) == Ok(MessageType::Accept))
}

#[test]
fn a_session_without_a_confirmation_ends_after_two_seconds() {
    let mut stage = keyed();
    let from = stage.from;
    let (datagram, reply) = open_only(&mut stage, from, 1, wishes(1).terms);
    assert!(is_accept(reply.as_ref()));
    stage.clock.advance(Nanos::from_millis(2_000));
    let now = stage.clock.reflector();
    assert!(stage.reflector.has_session(from, now));
    let again = stage.ask(&datagram);
    assert!(is_accept(again.as_ref()), "the same session, whose time does not begin anew");
    stage.clock.advance(Nanos(1));
    let now = stage.clock.reflector();
    assert!(!stage.reflector.has_session(from, now));
    assert_eq!(stage.ask(&datagram), None);
    assert_eq!(counters(&mut stage).dropped(DropReason::OpenReplayed), 1);
    let counters = counters(&mut stage);
    assert_eq!((counters.opened, counters.unconfirmed, counters.expired), (1, 1, 0));
}

#[test]
fn every_kind_of_session_is_confirmed_when_it_is_opened() {
    let mut stage = keyed();
    let clock = stage.clock.clone();
    let kinds = [
        wishes(1),
        wishes(2).with_socket(SocketTerms { batched: true, unchecked: false, stamped: false }),
        wishes(3).with_down_stream(Nanos::ZERO),
    ];
    for (params, tallies) in kinds.iter().zip(1..) {
        let session = open(&mut stage, &clock, Some(&key(1)), params, &NEVER).expect("a session");
        assert!(session.terms().confirms);
        assert_eq!(counters(&mut stage).tallies, tallies);
    }
    // A session may wait for its turn.
    stage.clock.advance(Nanos::from_secs(30));
    assert_eq!(stage.reflector.open_sessions(), 3);
    assert_eq!(counters(&mut stage).unconfirmed, 0);
}

#[test]
fn the_confirmation_is_repeated_and_changes_no_count() {
    // Datagrams 0 and 1 are HELLO and OPEN, and their replies.
    for (lost_requests, lost_replies) in [(vec![2, 3], vec![]), (vec![], vec![2, 3]), (vec![2], vec![2])] {
        let mut stage = keyed();
        (stage.lose_requests, stage.lose_replies) = (lost_requests, lost_replies);
        let clock = stage.clock.clone();
        let mut session = open_on(&mut stage, &clock, 1).expect("a session");
        let probe = session.encode(Seq(0)).to_vec();
        let answer = stage.ask(&probe).expect("an answer");
        assert_eq!(session.decode(&answer, Stamp::from_nanos(0)).map(|answer| answer.seq), Some(Seq(0)));
        let late: Vec<_> = stage.replies.clone();
        for reply in &late {
            assert_eq!(session.decode(reply, Stamp::from_nanos(0)), None);
        }
        assert!(session.strays().is_empty(), "late replies of the set-up are no strays: {:?}", session.strays());
        let report = session.close(&mut stage, &clock).expect("a report");
        assert_eq!((report.answered, report.replayed), (1, 0));
        assert!(report.dropped.is_empty());
    }
}

#[test]
fn a_stream_ignores_the_tallies_of_its_confirmation() {
    let mut stage = keyed();
    stage.lose_replies = vec![2];
    let clock = stage.clock.clone();
    let mut stream = UpStream::new(open_on(&mut stage, &clock, 1).expect("a session"));
    let confirmations: Vec<_> = stage.replies[2..].to_vec();
    assert_eq!(confirmations.len(), 2);
    let poll = stream.poll();
    assert_eq!(poll.0, 3, "numbers continue");
    let poll = poll.1.to_vec();
    let reply = stage.ask(&poll).expect("a TALLY");
    for tally in &confirmations {
        assert_eq!(stream.decode_tally(tally), None);
    }
    assert_eq!(stream.decode_tally(&reply).map(|tally| (tally.number, tally.packets)), Some((3, 0)));

    let mut stage = keyed();
    let params = wishes(1).with_down_stream(Nanos::ZERO);
    let session = open(&mut stage, &clock, Some(&key(1)), &params, &NEVER).expect("a session");
    let mut down = DownStream::new(session).expect("a down-stream");
    let poll = down.poll(10, u64::MAX).1.to_vec();
    assert!(stage.ask(&poll).is_some(), "the number of the confirmation is not used again");
}

#[test]
fn silence_after_the_accept_is_an_error_of_its_own() {
    let mut stage = keyed();
    stage.lose_requests = (2..20).collect();
    let clock = stage.clock.clone();
    let error = open_on(&mut stage, &clock, 1).expect_err("no TALLY");
    assert!(matches!(error, SessionError::NotConfirmed { polls: 5, .. }), "{error:?}");
    assert_eq!(counters(&mut stage).unconfirmed, 1);
}

#[test]
fn a_full_table_gives_the_oldest_unconfirmed_slot_to_a_new_session() {
    let mut stage = keyed();
    let clock = stage.clock.clone();
    let address = |number: u8| SocketAddr::from(([192, 0, number, 1], 4_000));
    stage.from = address(1);
    open_on(&mut stage, &clock, 1).expect("confirmed");
    for nonce in 2..=4 {
        stage.clock.advance(Nanos::from_millis(1));
        assert!(is_accept(open_only(&mut stage, address(nonce), nonce, wishes(nonce).terms).1.as_ref()));
    }
    assert_eq!(stage.reflector.open_sessions(), 4);
    for (round, evicted) in [(5, 2), (6, 3), (7, 4)] {
        stage.from = address(round);
        open_on(&mut stage, &clock, round).expect("in the place of an unconfirmed one");
        let now = stage.clock.reflector();
        assert!(!stage.reflector.has_session(address(evicted), now), "the oldest one");
        assert_eq!(counters(&mut stage).unconfirmed, u64::from(round - 4));
    }
    stage.from = address(8);
    let refused = open_on(&mut stage, &clock, 8).expect_err("all are confirmed");
    assert!(matches!(refused, SessionError::Refused { reason: RefuseReason::Sessions, limit: 4, .. }), "{refused:?}");
}

#[test]
fn the_limit_per_prefix_and_the_down_stream_yield_to_a_new_session_likewise() {
    let limits = ReflectorLimits { sessions_per_prefix: 2, ..LIMITS };
    let mut stage = Stage::new(limits, Some(&key(1)));
    let clock = stage.clock.clone();
    let address = |host: u8| SocketAddr::from(([192, 0, 2, host], 4_000));
    let down = wishes(1).with_down_stream(Nanos::ZERO);
    for host in [1, 2] {
        let terms = if host == 2 { down.terms } else { wishes(host).terms };
        assert!(is_accept(open_only(&mut stage, address(host), host, terms).1.as_ref()));
    }
    stage.from = address(3);
    let params = SessionParams { nonce: [3; 16], ..down.clone() };
    open(&mut stage, &clock, Some(&key(1)), &params, &NEVER).expect("in the place of the first one of this prefix");
    assert_eq!(stage.reflector.down_peer(), Some(address(3)));
    assert_eq!((counters(&mut stage).unconfirmed, stage.reflector.open_sessions()), (2, 1));
    let params = SessionParams { nonce: [4; 16], ..down };
    stage.from = address(4);
    let refused = open(&mut stage, &clock, Some(&key(1)), &params, &NEVER).expect_err("a confirmed one is kept");
    assert!(matches!(refused, SessionError::Refused { reason: RefuseReason::Down, .. }), "{refused:?}");
}

#[test]
fn an_unconfirmed_stream_does_not_change_how_the_socket_is_read() {
    let mut stage = keyed();
    let terms = SocketTerms { batched: true, unchecked: true, stamped: false };
    stage.reflector.set_supported_terms(terms);
    let from = stage.from;
    let (_, reply) = open_only(&mut stage, from, 1, wishes(1).with_socket(terms).terms);
    assert_eq!(Accept::parse(&reply.expect("an ACCEPT")).map(|accept| accept.terms.socket), Ok(terms));
    let clock = stage.clock.clone();
    assert_eq!(stage.reflector.required_terms(clock.reflector()), SocketTerms::NONE);
    let params = wishes(2).with_socket(terms);
    open(&mut stage, &clock, Some(&key(1)), &params, &NEVER).expect("a session");
    assert_eq!(stage.reflector.required_terms(clock.reflector()), terms);
}

/// A path to a reflector that does not know the flag of confirmations: it ignores it in an OPEN.
struct OlderReflector(Stage);

impl Transport for OlderReflector {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let Ok(opening) = Open::parse(datagram) else { return self.0.send(datagram) };
        let mut older = [0; OPEN_BYTES];
        let terms = Terms { confirms: false, ..opening.terms };
        Open { terms, ..opening }.write(&key(1).setup_key().codes(), &mut older);
        self.0.send(&older)
    }

    fn receive(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        self.0.receive(buffer, max_wait)
    }
}

#[test]
fn older_versions_of_both_ends_work_as_before() {
    // A newer sender and an older reflector: no confirmation is expected or sent.
    let mut older = OlderReflector(keyed());
    let clock = older.0.clock.clone();
    let mut session = open_on(&mut older, &clock, 1).expect("a session");
    assert_eq!(older.0.requests.len(), 2, "HELLO and OPEN");
    assert!(!session.terms().confirms);
    older.0.clock.advance(Nanos::from_secs(30));
    let probe = session.encode(Seq(0)).to_vec();
    assert!(older.0.ask(&probe).is_some());

    // An older sender and a newer reflector: its session has its idle time, and no slot is taken from it.
    let mut stage = keyed();
    let terms = Terms { confirms: false, ..wishes(1).terms };
    let from = stage.from;
    let (datagram, reply) = open_only(&mut stage, from, 1, terms);
    assert_eq!(datagram[44], 0, "the byte of an older sender");
    assert_eq!(reply.map(|accept| accept[52]), Some(0), "an older sender sees the byte that it knows");
    for nonce in 2..=4 {
        open_on(&mut stage, &clock, nonce).expect("a session");
    }
    let refused = open_on(&mut stage, &clock, 5).expect_err("none is unconfirmed");
    assert!(matches!(refused, SessionError::Refused { reason: RefuseReason::Sessions, .. }), "{refused:?}");
}

/// A socket of which a host on the path captures every OPEN.
struct Captured {
    wire: Wire,
    opens: Vec<Vec<u8>>,
}

impl Captured {
    fn play_again(&self) {
        self.opens.iter().for_each(|datagram| _ = self.wire.0.send(datagram).expect("sent"));
    }
}

impl Transport for Captured {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        if MessageType::of(datagram) == Ok(MessageType::Open) {
            self.opens.push(datagram.to_vec());
        }
        self.wire.send(datagram)
    }

    fn receive(&mut self, buffer: &mut [u8], max_wait: Nanos) -> io::Result<Option<usize>> {
        self.wire.receive(buffer, max_wait)
    }
}

#[test]
fn captured_opens_that_are_played_again_keep_no_sender_out() {
    let limits = ReflectorLimits { sessions: 8, new_sessions_per_second: 1_000, ..ReflectorLimits::DEFAULT };
    let socket = UdpReflector::bind(([127, 0, 0, 1], 0).into(), WaitMode::Block).expect("a socket");
    let peer = socket.local_address();
    let key = key(1);
    let one_session = |transport: &mut Captured| {
        let mut session = open_over(transport, Some(&key), &wishes_for(peer, 64)).expect("a session");
        assert_eq!(round_trips(transport, &mut session, 3), 3);
        session.close(transport, &Monotonic).expect("a report");
    };
    let captured = || Captured { wire: Wire::to(peer), opens: Vec::new() };
    let mut legitimate = 0;
    let counters = with_reflector_on(socket, limits, Some(&key), |_| {
        let mut senders: Vec<Captured> = (0..8).map(|_| captured()).collect();
        senders.iter_mut().for_each(one_session);
        // Their slots are used again, so that the reflector has forgotten their OPENs.
        (0..8).for_each(|_| one_session(&mut captured()));
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(3_000) {
            if begin.elapsed() < Duration::from_millis(900) {
                senders.iter().for_each(Captured::play_again);
            }
            one_session(&mut captured());
            legitimate += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert!(counters.unconfirmed >= 8, "they do take slots: {counters:?}");
    assert_eq!(counters.opened, 16 + legitimate + counters.unconfirmed);
    assert_eq!(counters.closed, 16 + legitimate);
    assert_eq!((counters.expired, counters.refused(RefuseReason::Sessions)), (0, 0));
}
