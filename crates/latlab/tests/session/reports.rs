//! The socket drops in REPORTs: those during the session, for older and newer senders.

use latlab::session::{NativeSession, ReflectorLimits, open};
use latlab::wire::{Accept, CLOSE_BYTES, Close, MessageType, REPORT_BYTES, Report, SHORT_REPORT_BYTES, SessionKeys};

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
