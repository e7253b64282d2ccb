//! Sessions over TCP connections: the rules are those of UDP, and a session ends with its connection.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use latlab_measure::clock::Monotonic;
use latlab_measure::session::{
    DropReason, NativeSession, PreSharedKey, ProbeCodec, ReflectorCounters, ReflectorLimits, SessionError,
};
use latlab_measure::transport::{TcpReflector, TcpTransport, Transport, WaitStrategy};
use latlab_measure::wire::RefuseReason;
use latlab_plan::plan::{PathSpec, WaitMode};
use latlab_terms::diagnostics::Explain;
use latlab_terms::probe::Seq;
use latlab_terms::units::Nanos;

use super::stage::{NEVER, key};
use super::{open_over, round_trips, wishes, with_reflector_on};

/// Runs `story` with a listener in another thread, and returns the counters of its reflector.
fn with_listener(
    address: &str,
    limits: ReflectorLimits,
    key: Option<&PreSharedKey>,
    story: impl FnOnce(SocketAddr),
) -> ReflectorCounters {
    let address = address.parse().expect("an address");
    let listener = TcpReflector::bind(address, WaitMode::Block, limits.connections()).expect("a port");
    let here = listener.local_address();
    with_reflector_on(listener, limits, key, |_| story(here))
}

fn connected(peer: SocketAddr) -> TcpTransport {
    TcpTransport::open(&PathSpec::SYSTEM, peer, WaitStrategy::Until { busy_poll: false }, &NEVER).expect("it listens")
}

fn session(peer: SocketAddr, key: Option<&PreSharedKey>) -> Result<(TcpTransport, NativeSession), SessionError> {
    let mut transport = connected(peer);
    open_over(&mut transport, key, &wishes(peer, 64)).map(|session| (transport, session))
}

#[test]
fn sessions_of_all_sizes_over_both_families() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        for key in [None, Some(key(1))] {
            let counters = with_listener(address, ReflectorLimits::DEFAULT, key.as_ref(), |peer| {
                for size in [24, 32, 40, 64, 1_024, 8_192, 65_507] {
                    let mut transport = connected(peer);
                    let mut session = open_over(&mut transport, key.as_ref(), &wishes(peer, size)).expect("a session");
                    assert_eq!(session.authenticated(), key.is_some());
                    assert_eq!(round_trips(&mut transport, &mut session, 20), 20);
                    assert!(session.strays().is_empty());
                    assert_eq!(session.close(&mut transport, &Monotonic).map(|report| report.answered), Some(20));
                }
            });
            assert_eq!((counters.opened, counters.closed, counters.answered), (7, 7, 140));
            assert!(counters.replied_bytes <= counters.received_bytes);
            assert_eq!(counters.connections.map(|tally| (tally.accepted, tally.over_caps)), Some((7, 0)));
            assert_eq!(counters.rows().filter(|(name, count)| name.starts_with("drop") && *count > 0).count(), 0);
        }
    }
}

#[test]
fn a_wrong_key_gets_one_cookie_and_no_session() {
    let counters = with_listener("127.0.0.1:0", ReflectorLimits::DEFAULT, Some(&key(1)), |peer| {
        let error = session(peer, Some(&key(2))).expect_err("another key");
        assert!(matches!(error, SessionError::NotOpened { keyed: true, .. }), "{error:?}");
    });
    assert_eq!((counters.cookies, counters.replied, counters.opened), (1, 1, 0));
    assert!(counters.dropped(DropReason::Code) > 0);
}

#[test]
fn a_session_ends_with_its_connection_and_frees_its_slot() {
    let limits = ReflectorLimits { sessions: 1, ..ReflectorLimits::DEFAULT };
    let counters = with_listener("127.0.0.1:0", limits, None, |peer| {
        for _ in 0..3 {
            let deadline = Instant::now() + Duration::from_secs(5);
            // The end of the connection before may not have been seen yet.
            let (mut transport, mut session) = loop {
                match session(peer, None) {
                    Ok(opened) => break opened,
                    Err(SessionError::Refused { reason: RefuseReason::Sessions, .. }) => {}
                    Err(other) => panic!("{other:?}"),
                }
                assert!(Instant::now() < deadline, "the place was not freed");
            };
            assert_eq!(round_trips(&mut transport, &mut session, 3), 3);
        }
    });
    assert_eq!((counters.opened, counters.closed), (3, 0));
    assert!(counters.disconnected >= 2, "{}", counters.disconnected);
}

#[test]
fn a_session_accepts_probes_of_its_connection_only_and_each_once() {
    let counters = with_listener("127.0.0.1:0", ReflectorLimits::DEFAULT, Some(&key(1)), |peer| {
        let (mut one, mut session_of_one) = session(peer, Some(&key(1))).expect("a session");
        let (mut other, mut session_of_other) = session(peer, Some(&key(1))).expect("another");
        let probe = session_of_one.encode(Seq(0)).to_vec();
        other.send(&probe).expect("sent");
        assert_eq!(round_trips(&mut other, &mut session_of_other, 1), 1, "and nothing comes before its answer");
        assert_eq!(round_trips(&mut one, &mut session_of_one, 1), 1);
        one.send(&probe).expect("sent");
        let report = session_of_one.close(&mut one, &Monotonic).expect("a report");
        assert_eq!((report.answered, report.replayed), (1, 1));
    });
    assert_eq!(counters.dropped(DropReason::WrongAddress), 1);
    assert_eq!(counters.dropped(DropReason::SeenBefore), 1);
}

#[test]
fn sessions_over_tcp_have_the_same_caps_as_over_udp() {
    let limits = ReflectorLimits { sessions: 2, size_bytes: 100, ..ReflectorLimits::DEFAULT };
    let counters = with_listener("127.0.0.1:0", limits, None, |peer| {
        let _held = [session(peer, None).expect("a session"), session(peer, None).expect("a session")];
        let error = session(peer, None).expect_err("two are the limit");
        assert!(matches!(error, SessionError::Refused { reason: RefuseReason::Sessions, limit: 2, .. }), "{error:?}");
        let error = open_over(&mut connected(peer), None, &wishes(peer, 101)).expect_err("100 bytes are the limit");
        assert!(matches!(error, SessionError::Refused { reason: RefuseReason::Size, limit: 100, .. }), "{error:?}");
    });
    assert_eq!(counters.refused(RefuseReason::Sessions), 1);
    assert_eq!(counters.refused(RefuseReason::Size), 1);
}

#[test]
fn silence_and_another_protocol_have_different_errors() {
    let mute = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let peer = mute.local_addr().expect("bound");
    let error = session(peer, None).expect_err("it takes connections and says nothing");
    assert_eq!(error.explain().cause.as_deref(), Some("nothing came back within 3 s"));
    assert!(error.explain().hint.is_some_and(|hint| hint.contains("latlab serve --tcp")), "{error:?}");
    let mut transport = connected(peer);
    drop(mute);
    let error = open_over(&mut transport, None, &wishes(peer, 64)).expect_err("a closed listener");
    assert!(matches!(error, SessionError::NoGreeting { instead: Some(_), .. }), "{error:?}");
    assert_eq!(transport.receive(&mut [0; 8], Nanos::ZERO).map_err(|error| error.kind()).ok().flatten(), None);
}
