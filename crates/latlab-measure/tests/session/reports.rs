//! The socket drops in REPORTs: those during the session, for older and newer senders.

use latlab_measure::session::{DropReason, NativeSession, ProbeCodec, ReflectorLimits, SessionError, open};
use latlab_measure::transport::DriverCounts;
use latlab_measure::wire::{
    Accept, CLOSE_BYTES, Close, MessageType, REPORT_BYTES, Report, SHORT_REPORT_BYTES, SessionKeys,
};
use latlab_terms::probe::Seq;
use latlab_terms::units::Nanos;

use super::stage::{NEVER, Stage, key, wishes};

/// A session that was opened when the socket had dropped `before` datagrams.
fn opened(before: Option<u64>) -> (Stage, NativeSession) {
    let mut stage = Stage::new(ReflectorLimits::DEFAULT, Some(&key(1)));
    stage.socket_drops = before;
    let clock = stage.clock.clone();
    let session = open(&mut stage, &clock, Some(&key(1)), &wishes(1), &NEVER).expect("a session");
    (stage, session)
}

/// The keys of that session, derived as by its sender.
fn keys(stage: &Stage) -> SessionKeys {
    let accept = stage.replies.iter().find_map(|reply| Accept::parse(reply).ok()).expect("an ACCEPT");
    key(1).setup_key().session(&[1; 16], &accept.reflector_nonce, accept.session)
}

#[test]
fn drops_are_those_between_opening_and_closing() {
    for (before, after, expected) in [
        (Some(0), Some(0), Some(0)),
        (Some(5), Some(12), Some(7)),
        // The kernel counts with 32 bits.
        (Some(u64::from(u32::MAX)), Some(2), Some(3)),
        (None, Some(12), None),
        (Some(5), None, None),
    ] {
        let (mut stage, session) = opened(before);
        stage.socket_drops = after;
        let clock = stage.clock.clone();
        let report = session.close(&mut stage, &clock).expect("a report");
        assert_eq!(report.socket_drops, expected, "from {before:?} to {after:?}");
        let now = stage.clock.reflector();
        assert_eq!(stage.reflector.counters(now).socket_drops, after, "R8: the owner reads it too");
    }
}

#[test]
fn a_repeated_close_gets_the_same_report() {
    let (mut stage, session) = opened(Some(5));
    let close = Close { session: session.number(), nonce: [1; 16], wants_socket_drops: true };
    let mut datagram = [0; CLOSE_BYTES];
    close.write(&keys(&stage).close, &mut datagram);
    let mut reports = Vec::new();
    for drops in [6, 600] {
        stage.socket_drops = Some(drops);
        reports.push(stage.ask(&datagram).expect("a REPORT"));
    }
    assert_eq!(reports[0], reports[1]);
    assert_eq!(Report::parse(&reports[0]).map(|report| report.socket_drops), Ok(Some(1)));
    let now = stage.clock.reflector();
    assert_eq!(stage.reflector.counters(now).closed, 1);
}

#[test]
fn an_older_sender_gets_the_short_report() {
    for (wants_socket_drops, bytes) in [(false, SHORT_REPORT_BYTES), (true, REPORT_BYTES)] {
        let (mut stage, session) = opened(Some(5));
        let codes = keys(&stage).close;
        let mut datagram = [0; CLOSE_BYTES];
        Close { session: session.number(), nonce: [1; 16], wants_socket_drops }.write(&codes, &mut datagram);
        let report = stage.ask(&datagram).expect("a REPORT");
        assert!(codes.verify(&report));
        assert_eq!((report.len(), report[0]), (bytes, MessageType::Report as u8));
        assert_eq!(Report::parse(&report).expect("a REPORT").socket_drops.is_some(), wants_socket_drops);
    }
}

#[test]
fn a_newer_sender_reads_the_report_of_an_older_reflector() {
    let (mut stage, session) = opened(Some(5));
    let mut short = [0; SHORT_REPORT_BYTES];
    let older = Report { session: session.number(), nonce: [1; 16], answered: 77, ..Report::default() };
    older.write_short(&keys(&stage).close, &mut short);
    stage.forgeries = vec![short.to_vec()];
    let clock = stage.clock.clone();
    let report = session.close(&mut stage, &clock).expect("a report");
    assert_eq!((report.answered, report.socket_drops), (77, None));
}

/// Sessions whose probes a program in the network driver answers.
#[test]
fn what_the_driver_has_answered_is_reported() {
    let params = wishes(1).with_answers_in_driver();
    let mut stage = Stage::new(ReflectorLimits::DEFAULT, Some(&key(1)));
    let clock = stage.clock.clone();
    let refused = open(&mut stage, &clock, Some(&key(1)), &params, &NEVER).expect_err("this reflector lacks a program");
    assert!(matches!(refused, SessionError::NotInDriver { .. }), "{refused:?}");

    let mut stage = Stage::new(ReflectorLimits::DEFAULT, Some(&key(1)));
    stage.reflector.set_answers_in_driver(true);
    let clock = stage.clock.clone();
    let mut session = open(&mut stage, &clock, Some(&key(1)), &params, &NEVER).expect("a session");
    let offered: Vec<_> = stage.reflector.in_driver(clock.reflector()).collect();
    assert_eq!(offered.len(), 1, "{offered:?}");
    assert_eq!((offered[0].session, offered[0].peer, offered[0].size_bytes), (session.number(), stage.from, 64));

    let probe = session.encode(Seq(0)).to_vec();
    assert_eq!(probe[1], 0, "a program checks no tag");
    assert_eq!(stage.ask(&probe), None, "the socket answers none of them");
    clock.advance(Nanos::from_secs(5));
    let newest_at = clock.reflector();
    let counts = DriverCounts { answered: 9, seen_before: 2, left_window: 1, newest_at };
    stage.reflector.set_driver_counts(session.number(), &counts);
    stage.reflector.set_driver_counts(session.number().wrapping_add(1), &counts);
    let counters = *stage.reflector.counters(newest_at);
    assert_eq!((counters.answered, counters.dropped(DropReason::NotInDriver)), (9, 1));

    // The idle time counts from the newest probe that the driver has seen.
    clock.advance(Nanos::from_secs(6));
    assert_eq!(stage.reflector.in_driver(clock.reflector()).count(), 1);
    let report = session.close(&mut stage, &clock).expect("a report");
    assert_eq!((report.answered, report.replayed), (9, 3));
    assert_eq!(report.dropped.values().sum::<u64>(), 1, "the driver passed it on: {report:?}");
    assert_eq!(stage.reflector.in_driver(clock.reflector()).count(), 0, "it has ended");
}

/// The slot of an OPEN that nothing authentic has followed.
#[test]
fn an_unconfirmed_session_is_not_answered_in_the_driver() {
    let mut stage = Stage::new(ReflectorLimits::DEFAULT, Some(&key(1)));
    stage.reflector.set_answers_in_driver(true);
    let clock = stage.clock.clone();
    // HELLO and OPEN arrive, the POLLs do not.
    stage.lose_requests = (2..20).collect();
    let params = wishes(1).with_answers_in_driver();
    open(&mut stage, &clock, Some(&key(1)), &params, &NEVER).expect_err("no TALLY");
    assert_eq!(stage.reflector.in_driver(clock.reflector()).count(), 0);
}
