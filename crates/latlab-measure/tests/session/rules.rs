//! The wire rules R1 to R8, tested with the state machine, without sockets.

use std::net::SocketAddr;

use latlab_measure::session::{
    DropReason, NativeSession, ProbeCodec, ReflectorLimits, SessionError, SessionParams, open,
};
use latlab_measure::wire::{
    ACCEPT_BYTES, Accept, COOKIE_BYTES, Codes, Cookie, MessageType, OPEN_BYTES, Open, REFUSE_BYTES, REPORT_BYTES,
    Refuse, RefuseReason, Report, Terms, hello_datagram,
};
use latlab_terms::probe::Seq;
use latlab_terms::units::{Nanos, Stamp};

use super::stage::{NEVER, Stage, key, wishes};

fn keyed() -> Stage {
    Stage::new(ReflectorLimits::DEFAULT, Some(&key(1)))
}

fn open_on(stage: &mut Stage, nonce: u8) -> Result<NativeSession, SessionError> {
    let clock = stage.clock.clone();
    open(stage, &clock, Some(&key(1)), &wishes(nonce), &NEVER)
}

#[test]
fn failed_system_calls_of_the_reflector_are_counted() {
    let mut stage = keyed();
    stage.reflector.count_failed_reply();
    stage.reflector.count_failed_reply();
    stage.reflector.count_failed_receive();
    let now = stage.clock.reflector();
    let counters = stage.reflector.counters(now);
    assert_eq!((counters.reply_failed, counters.receive_failed), (2, 1));
}

/// The number of datagrams that the reflector dropped for `reason`.
fn dropped(stage: &mut Stage, reason: DropReason) -> u64 {
    let now = stage.clock.reflector();
    stage.reflector.counters(now).dropped(reason)
}

/// An OPEN under `key(1)` with a genuine token for `from`.
fn open_datagram(stage: &mut Stage, from: SocketAddr, nonce: u8, terms: Terms) -> [u8; OPEN_BYTES] {
    let cookie = stage.ask_from(from, &hello_datagram(&[nonce; 16])).expect("a COOKIE");
    let token = Cookie::parse(&cookie).expect("a COOKIE").token;
    let mut datagram = [0; OPEN_BYTES];
    Open { nonce: [nonce; 16], token, terms }.write(&key(1).setup_key().codes(), &mut datagram);
    datagram
}

#[test]
fn a_session_answers_probes_and_reports_its_counts() {
    let mut stage = keyed();
    let mut session = open_on(&mut stage, 1).expect("a session");
    assert!(session.authenticated());
    for seq in 0..1_000 {
        let probe = session.encode(Seq(seq)).to_vec();
        let reflected_at = stage.clock.reflector();
        let answer = stage.ask(&probe).expect("an answer");
        stage.clock.advance(Nanos::from_micros(20));
        let answer = session.decode(&answer, Stamp::from_nanos(i64::try_from(seq).unwrap())).expect("genuine");
        assert_eq!(answer.seq, Seq(seq));
        assert_eq!(answer.reflector_received, Some(reflected_at));
        assert_eq!(answer.reflector_sent, Some(reflected_at + Nanos(250)));
        assert_eq!(answer.reflector_cpu, Some(1));
    }
    let clock = stage.clock.clone();
    let report = session.close(&mut stage, &clock).expect("a report");
    assert_eq!((report.answered, report.replayed), (1_000, 0));
    assert!(report.dropped.is_empty());
    assert_eq!(stage.reflector.open_sessions(), 0);
}

#[test]
fn set_up_and_close_are_repeated_until_answered() {
    for lost in 0..4 {
        let mut stage = keyed();
        stage.lose_requests = vec![lost];
        stage.lose_replies = vec![lost];
        let session = open_on(&mut stage, 1).unwrap_or_else(|error| panic!("datagram {lost} lost: {error:?}"));
        assert_eq!(stage.reflector.open_sessions(), 1, "a repeated OPEN opens no second session");
        let (requests, replies) = (stage.requests.len(), stage.replies.len());
        stage.lose_requests = vec![requests];
        stage.lose_replies = vec![replies];
        let clock = stage.clock.clone();
        assert!(session.close(&mut stage, &clock).is_some(), "the third CLOSE is answered");
    }
}

#[test]
fn each_kind_of_silence_has_its_own_error() {
    let mut silent = keyed();
    silent.lose_requests = (0..10).collect();
    assert!(matches!(open_on(&mut silent, 1), Err(SessionError::NoAnswer { hellos: 5, .. })));
    assert_eq!(silent.clock.reflector(), Stamp::from_nanos((Nanos::from_secs(3) + super::stage::OFFSET).0));

    let mut other_key = Stage::new(ReflectorLimits::DEFAULT, Some(&key(2)));
    assert!(matches!(open_on(&mut other_key, 1), Err(SessionError::NotOpened { keyed: true, .. })));
    assert_eq!(other_key.replies.len(), 1, "R1: nothing but the one COOKIE");
    assert_eq!(dropped(&mut other_key, DropReason::Code), 5);

    let mut keyless = Stage::new(ReflectorLimits::DEFAULT, None);
    assert!(matches!(open_on(&mut keyless, 1), Err(SessionError::KeyUnknown { .. })));

    let mut stage = keyed();
    let clock = stage.clock.clone();
    assert!(matches!(open(&mut stage, &clock, None, &wishes(1), &NEVER), Err(SessionError::KeyRequired { .. })));
}

#[test]
fn without_a_key_only_this_host_is_answered() {
    let mut stage = Stage::new(ReflectorLimits::DEFAULT, None);
    let afar = SocketAddr::from(([192, 0, 2, 1], 4_000));
    assert_eq!(stage.ask_from(afar, &hello_datagram(&[1; 16])), None);
    assert_eq!(dropped(&mut stage, DropReason::KeylessRemote), 1);
    let clock = stage.clock.clone();
    let mut session = open(&mut stage, &clock, None, &wishes(1), &NEVER).expect("a session");
    assert!(!session.authenticated());
    let probe = session.encode(Seq(0)).to_vec();
    assert!(stage.ask(&probe).is_some());
}

#[test]
fn replays_are_dropped_and_reported() {
    for key in [None, Some(key(1))] {
        let mut stage = Stage::new(ReflectorLimits::DEFAULT, key.as_ref());
        let clock = stage.clock.clone();
        let mut session = open(&mut stage, &clock, key.as_ref(), &wishes(1), &NEVER).expect("a session");
        let old = session.encode(Seq(0)).to_vec();
        let probe = session.encode(Seq(70_000)).to_vec();
        assert!(stage.ask(&probe).is_some());
        assert_eq!(stage.ask(&probe), None);
        assert_eq!(stage.ask(&old), None);
        assert_eq!(dropped(&mut stage, DropReason::SeenBefore), 1);
        assert_eq!(dropped(&mut stage, DropReason::LeftWindow), 1);
        let within = session.encode(Seq(70_000 - 65_535)).to_vec();
        assert!(stage.ask(&within).is_some(), "65,536 wide");
        let next = session.encode(Seq(70_001)).to_vec();
        assert!(stage.ask(&next).is_some(), "the old one did not move the window");
        let report = session.close(&mut stage, &clock).expect("a report");
        assert_eq!((report.answered, report.replayed), (3, 2));
        assert!(report.dropped.is_empty());
    }
}

#[test]
fn forged_probes_are_dropped_without_effect() {
    let mut stage = keyed();
    let mut session = open_on(&mut stage, 1).expect("a session");
    let genuine = session.encode(Seq(3)).to_vec();
    for at in [1, 2, 3, 4, 7, 8, 12, 16, 23] {
        let mut forged = genuine.clone();
        forged[at] ^= 1;
        assert_eq!(stage.ask(&forged), None, "byte {at}");
    }
    assert_eq!(stage.ask(&genuine[..63]), None);
    assert_eq!(stage.ask(&[&genuine[..], &[0]].concat()), None);
    assert_eq!(dropped(&mut stage, DropReason::WrongSize), 2);
    let elsewhere = SocketAddr::from(([127, 0, 0, 1], 40_001));
    assert_eq!(stage.ask_from(elsewhere, &genuine), None);
    assert_eq!(dropped(&mut stage, DropReason::WrongAddress), 1);
    assert!(stage.ask(&genuine).is_some());
}

#[test]
fn two_reflectors_cannot_loop() {
    let (mut one, mut other) = (keyed(), keyed());
    let mut session = open_on(&mut one, 1).expect("a session");
    open_on(&mut other, 1).expect("the same session number and nonces at the other");
    let probe = session.encode(Seq(0)).to_vec();
    let answer = one.ask(&probe).expect("an answer");
    assert_eq!(MessageType::of(&answer), Ok(MessageType::Answer));
    for reply in one.replies.clone().iter().chain([&answer]) {
        assert!(MessageType::of(reply).is_ok_and(MessageType::is_reply));
        assert_eq!(other.ask(reply), None);
        assert_eq!(one.ask(reply), None);
    }
    assert_eq!(dropped(&mut other, DropReason::Reply), one.replies.len() as u64 + 1);
}

#[test]
fn a_token_is_valid_for_its_address_and_lifetime_only() {
    let mut stage = keyed();
    let here = stage.from;
    let terms = wishes(1).terms;
    let datagram = open_datagram(&mut stage, here, 1, terms);
    let elsewhere = SocketAddr::from(([192, 0, 2, 1], 40_000));
    assert_eq!(stage.ask_from(elsewhere, &datagram), None, "a forged source gets nothing");
    assert_eq!(dropped(&mut stage, DropReason::Token), 1);
    stage.clock.advance(Nanos::from_secs(29));
    let accepted = stage.ask(&datagram).expect("still good");
    assert_eq!(MessageType::of(&accepted), Ok(MessageType::Accept));

    let datagram = open_datagram(&mut stage, here, 2, terms);
    stage.clock.advance(Nanos::from_secs(61));
    assert_eq!(stage.ask(&datagram), None, "two secrets later");
    assert_eq!(dropped(&mut stage, DropReason::Token), 2);
}

#[test]
fn an_open_cannot_be_replayed_once_its_session_is_closed() {
    let mut stage = keyed();
    let session = open_on(&mut stage, 1).expect("a session");
    let datagram = stage.requests[1].clone();
    assert!(stage.ask(&datagram).is_some(), "repeated while open: the same session");
    assert_eq!(stage.reflector.open_sessions(), 1);
    let clock = stage.clock.clone();
    session.close(&mut stage, &clock).expect("a report");
    assert_eq!(stage.ask(&datagram), None);
    assert_eq!(dropped(&mut stage, DropReason::OpenReplayed), 1);
    assert_eq!(stage.reflector.open_sessions(), 0);
}

#[test]
fn every_cap_refuses_with_its_value_until_a_session_ends() {
    let limits = ReflectorLimits { sessions: 2, sessions_per_prefix: 1, ..ReflectorLimits::DEFAULT };
    let mut stage = Stage::new(limits, Some(&key(1)));
    let refused = |stage: &mut Stage, wishes: &SessionParams| {
        let clock = stage.clock.clone();
        match open(stage, &clock, Some(&key(1)), wishes, &NEVER) {
            Err(SessionError::Refused { reason, limit, .. }) => (reason, limit),
            other => panic!("{other:?}"),
        }
    };
    let with = |terms: Terms| SessionParams { terms, ..wishes(9) };
    let terms = wishes(9).terms;
    let long = Nanos::from_secs(90_001);
    assert_eq!(refused(&mut stage, &with(Terms { size_bytes: 70_000, ..terms })), (RefuseReason::Size, 65_507));
    assert_eq!(
        refused(&mut stage, &with(Terms { duration: long, ..terms })),
        (RefuseReason::Duration, 90_000_000_000_000)
    );
    assert_eq!(refused(&mut stage, &with(Terms { idle: long, ..terms })), (RefuseReason::Idle, 600_000_000_000));

    // Only loopback is exempt from the cap per prefix.
    stage.from = SocketAddr::from(([192, 0, 2, 1], 4_000));
    open_on(&mut stage, 1).expect("the first");
    stage.from = SocketAddr::from(([192, 0, 2, 99], 4_000));
    assert_eq!(refused(&mut stage, &wishes(2)), (RefuseReason::SessionsPerPrefix, 1));
    stage.from = SocketAddr::from(([192, 0, 3, 1], 4_000));
    open_on(&mut stage, 3).expect("the second");
    stage.from = SocketAddr::from(([192, 0, 4, 1], 4_000));
    assert_eq!(refused(&mut stage, &wishes(4)), (RefuseReason::Sessions, 2));
    stage.clock.advance(Nanos::from_secs(601));
    open_on(&mut stage, 5).expect("the others were idle for too long");
    let now = stage.clock.reflector();
    assert_eq!(stage.reflector.counters(now).expired, 2);
}

#[test]
fn new_sessions_and_cookies_are_rate_limited() {
    let limits = ReflectorLimits { new_sessions_per_second: 3, cookies_per_second: 5, ..ReflectorLimits::DEFAULT };
    let mut stage = Stage::new(limits, Some(&key(1)));
    for nonce in 1..=3 {
        open_on(&mut stage, nonce).expect("a session");
    }
    assert!(matches!(
        open_on(&mut stage, 4),
        Err(SessionError::Refused { reason: RefuseReason::NewSessions, limit: 3, .. })
    ));
    let cookies = (0..100).filter(|_| stage.ask(&hello_datagram(&[7; 16])).is_some()).count();
    assert_eq!(cookies, 1, "four were spent");
    assert_eq!(dropped(&mut stage, DropReason::CookieRate), 99);
    stage.clock.advance(Nanos::from_secs(2));
    open_on(&mut stage, 5).expect("both ration books are full again");
}

#[test]
fn a_session_ends_by_its_duration_and_by_its_idle_time() {
    for (steps, gap) in [(1, Nanos::from_secs(601)), (40, Nanos::from_secs(1))] {
        let mut stage = keyed();
        let mut session = open_on(&mut stage, 1).expect("a session of 32 s");
        let mut answered = 0;
        for seq in 0..steps {
            stage.clock.advance(gap);
            let probe = session.encode(Seq(seq)).to_vec();
            answered += u64::from(stage.ask(&probe).is_some());
        }
        assert_eq!(answered, if steps == 1 { 0 } else { 32 });
        assert_eq!(
            dropped(&mut stage, DropReason::Ended) + dropped(&mut stage, DropReason::NoSession),
            steps - answered
        );
    }
}

#[test]
fn another_version_is_an_error_in_a_cookie_and_dropped_in_an_open() {
    let mut stage = keyed();
    let mut hello = hello_datagram(&[1; 16]);
    hello[1] = 200;
    let cookie = stage.ask(&hello).expect("HELLO is answered in any version");
    assert_eq!(Cookie::parse(&cookie).map(|cookie| cookie.version), Ok(1));
    let mut datagram = [0; OPEN_BYTES];
    Open { nonce: [1; 16], token: [0; 16], terms: wishes(1).terms }.write(&Codes::None, &mut datagram);
    datagram[1] = 2;
    assert_eq!(stage.ask(&datagram), None);
    assert_eq!(dropped(&mut stage, DropReason::Version), 1);
}

#[test]
fn a_forged_close_closes_nothing() {
    let mut stage = keyed();
    let session = open_on(&mut stage, 1).expect("a session");
    let mut datagram = [0; latlab_measure::wire::CLOSE_BYTES];
    let close = latlab_measure::wire::Close { session: session.number(), nonce: [1; 16], wants_socket_drops: true };
    close.write(&key(2).setup_key().codes(), &mut datagram);
    assert_eq!(stage.ask(&datagram), None);
    assert_eq!(dropped(&mut stage, DropReason::Code), 1);
    assert_eq!(stage.reflector.open_sessions(), 1);
}

#[test]
fn a_close_of_another_session_number_or_nonce_is_dropped_with_its_reason() {
    let mut stage = keyed();
    let session = open_on(&mut stage, 1).expect("a session");
    let mut close = |session, nonce| {
        let mut datagram = [0; latlab_measure::wire::CLOSE_BYTES];
        let close = latlab_measure::wire::Close { session, nonce, wants_socket_drops: true };
        close.write(&key(1).setup_key().codes(), &mut datagram);
        assert_eq!(stage.ask(&datagram), None);
    };
    let others = (0..=u16::MAX).filter(|number| *number != session.number());
    others.for_each(|number| close(number, [1; 16]));
    close(session.number(), [2; 16]);
    assert_eq!(dropped(&mut stage, DropReason::NoSession), u64::from(u16::MAX));
    assert_eq!(dropped(&mut stage, DropReason::WrongAddress), 1);
    assert_eq!(stage.reflector.open_sessions(), 1);
}

#[test]
fn a_session_continues_past_a_wrap_of_the_low_half_of_the_counter() {
    let mut stage = keyed();
    let mut session = open_on(&mut stage, 1).expect("a session");
    let turn = 1u64 << 32;
    // The reflector can extend a counter after a jump of less than 2^32.
    for seq in [0, turn / 2, turn - 3, turn - 1, turn - 2, turn, turn + 1, turn - 4, turn + 2] {
        let probe = session.encode(Seq(seq)).to_vec();
        let answer = stage.ask(&probe).unwrap_or_else(|| panic!("probe {seq} was dropped"));
        let answer = session.decode(&answer, Stamp::from_nanos(0)).expect("genuine");
        assert_eq!(answer.seq, Seq(seq));
    }
}

#[test]
fn a_sender_ignores_forged_replies() {
    let mut stage = keyed();
    let forger = key(2).setup_key().codes();
    let mut cookie = [0; COOKIE_BYTES];
    Cookie::new([2; 16], [0; 16], false).write(&mut cookie);
    let mut accept = [0; ACCEPT_BYTES];
    let terms = wishes(1).terms;
    let anchor = Stamp::from_nanos(0);
    Accept { session: 9, nonce: [1; 16], reflector_nonce: [0; 16], anchor, terms }.write(&forger, &mut accept);
    let mut refuse = [0; REFUSE_BYTES];
    Refuse { nonce: [1; 16], reason: RefuseReason::Sessions, limit: 0 }.write(&forger, &mut refuse);
    stage.forgeries = vec![cookie.to_vec(), refuse.to_vec(), accept.to_vec()];
    let mut session = open_on(&mut stage, 1).expect("the genuine session");
    let probe = session.encode(Seq(0)).to_vec();
    assert!(stage.ask(&probe).is_some());

    let mut report = [0; REPORT_BYTES];
    Report { session: session.number(), nonce: [1; 16], answered: 77, ..Report::default() }.write(&forger, &mut report);
    stage.forgeries = vec![report.to_vec()];
    let clock = stage.clock.clone();
    assert_eq!(session.close(&mut stage, &clock).map(|report| report.answered), Some(1));
}
