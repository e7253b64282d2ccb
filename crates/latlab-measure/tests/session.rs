//! Sessions over real loopback sockets, and the wire rules in a simulation without sockets.

#[path = "session/confirmation.rs"]
mod confirmation;
#[path = "session/connected.rs"]
mod connected;
#[path = "session/down.rs"]
mod down;
#[path = "session/reports.rs"]
mod reports;
#[path = "session/rules.rs"]
mod rules;
#[path = "session/stage.rs"]
mod stage;
#[path = "session/streams.rs"]
mod streams;
#[path = "session/trains.rs"]
mod trains;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use latlab_measure::clock::{Clock, Monotonic};
use latlab_measure::session::{
    DropReason, EchoCodec, NativeSession, PreSharedKey, ProbeCodec, ReflectorCounters, ReflectorLimits, Requests,
    SessionError, SessionParams, SessionReflector, open, serve,
};
use latlab_measure::transport::{ReflectorSocket, Transport, UdpReflector};
use latlab_plan::plan::{Schedule, WaitMode};
use latlab_terms::diagnostics::Explain;
use latlab_terms::probe::Seq;
use latlab_terms::units::Nanos;

use stage::{NEVER, key};

/// A connected socket of the standard library as a transport.
struct Wire(UdpSocket);

impl Wire {
    fn to(peer: SocketAddr) -> Wire {
        let socket = UdpSocket::bind(SocketAddr::new(peer.ip(), 0)).expect("a socket");
        socket.connect(peer).expect("connected");
        Wire(socket)
    }
}

impl Transport for Wire {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        self.0.send(datagram).map(|_| ())
    }

    fn receive(&mut self, buffer: &mut [u8], patience: Nanos) -> io::Result<Option<usize>> {
        self.0.set_read_timeout(Some(patience.to_duration().max(Duration::from_micros(1))))?;
        match self.0.recv(buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Runs `story` with a reflector in another thread, and returns the reflector's counters.
fn with_reflector(
    address: &str,
    key: Option<&PreSharedKey>,
    story: impl FnOnce(SocketAddr, Requests<'_>),
) -> ReflectorCounters {
    let socket = UdpReflector::bind(address.parse().expect("an address"), WaitMode::Block).expect("a socket");
    let here = socket.local_address();
    with_reflector_on(socket, ReflectorLimits::DEFAULT, key, |requests| story(here, requests))
}

/// The same over any socket.
fn with_reflector_on(
    mut socket: impl ReflectorSocket + Send,
    limits: ReflectorLimits,
    key: Option<&PreSharedKey>,
    story: impl FnOnce(Requests<'_>),
) -> ReflectorCounters {
    let (stop, counters) = (AtomicBool::new(false), AtomicBool::new(false));
    let requests = Requests { stop: &stop, counters: &counters };
    let shown = Mutex::new(None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut reflector = SessionReflector::new(limits, key, [7; 32]);
            let show = |counters: &ReflectorCounters| *shown.lock().unwrap() = Some(*counters);
            serve(&mut socket, &mut reflector, &Monotonic, requests, || Some(0), show).expect("no broken socket");
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| story(requests)));
        counters.store(true, Ordering::Relaxed);
        while ended.is_ok() && counters.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    shown.into_inner().unwrap().expect("counters were asked for")
}

fn wishes(peer: SocketAddr, size_bytes: u32) -> SessionParams {
    let nonce = latlab_measure::session::random_bytes().expect("chance");
    SessionParams::new(
        peer.to_string(),
        nonce,
        size_bytes,
        Schedule::Closed,
        Some(Nanos::from_secs(5)),
        Nanos::from_secs(1),
    )
}

fn round_trips(wire: &mut impl Transport, dialogue: &mut impl ProbeCodec, count: u64) -> u64 {
    let mut buffer = vec![0; 65_536];
    let mut answered = 0;
    for seq in 0..count {
        wire.send(dialogue.encode(Seq(seq))).expect("sent");
        // A message may arrive in pieces.
        let mut tries = (0..200).map(|_| wire.receive(&mut buffer, Nanos::from_secs(1)).expect("no error"));
        let Some(bytes) = tries.find_map(|bytes| bytes) else { continue };
        let received = Monotonic.now();
        let answer = dialogue.decode(&buffer[..bytes], received).expect("genuine");
        assert_eq!(answer.seq, Seq(seq));
        if let (Some(came), Some(left)) = (answer.reflector_received, answer.reflector_sent) {
            // On one host both ends have one clock: the reflector's stamps precede the sender's receive stamp.
            assert!(came <= left && left.as_nanos() <= received.as_nanos());
        }
        answered += 1;
    }
    answered
}

fn open_over(
    wire: &mut impl Transport,
    key: Option<&PreSharedKey>,
    wishes: &SessionParams,
) -> Result<NativeSession, SessionError> {
    open(wire, &Monotonic, key, wishes, &NEVER)
}

#[test]
fn sessions_of_all_sizes_over_both_families() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        for key in [None, Some(key(1))] {
            let counters = with_reflector(address, key.as_ref(), |peer, _| {
                for size in [24, 32, 40, 64, 1_024, 8_192, 65_507] {
                    let mut wire = Wire::to(peer);
                    let mut session = open_over(&mut wire, key.as_ref(), &wishes(peer, size)).expect("a session");
                    assert_eq!(session.authenticated(), key.is_some());
                    assert_eq!(round_trips(&mut wire, &mut session, 20), 20);
                    assert!(session.strays().is_empty());
                    assert_eq!(session.close(&mut wire, &Monotonic).map(|report| report.answered), Some(20));
                }
            });
            assert_eq!((counters.opened, counters.closed, counters.answered), (7, 7, 140));
            assert!(counters.replied_bytes <= counters.received_bytes);
            assert_eq!(counters.rows().filter(|(name, count)| name.starts_with("drop") && *count > 0).count(), 0);
        }
    }
}

#[test]
fn concurrent_sessions_do_not_mix() {
    let key = key(1);
    let counters = with_reflector("127.0.0.1:0", Some(&key), |peer, _| {
        let mut ends: Vec<_> = (0..16)
            .map(|_| {
                let mut wire = Wire::to(peer);
                let session = open_over(&mut wire, Some(&key), &wishes(peer, 64)).expect("a session");
                (wire, session)
            })
            .collect();
        for _ in 0..3 {
            for (wire, session) in &mut ends {
                wire.send(session.encode(Seq(0))).expect("sent");
            }
        }
        for (mut wire, session) in ends {
            let report = session.close(&mut wire, &Monotonic).expect("a report");
            assert_eq!((report.answered, report.replayed), (1, 2));
        }
    });
    assert_eq!(counters.dropped(DropReason::SeenBefore), 32);
}

#[test]
fn a_wrong_key_gets_one_cookie_and_a_hint() {
    let counters = with_reflector("127.0.0.1:0", Some(&key(1)), |peer, _| {
        let error = open_over(&mut Wire::to(peer), Some(&key(2)), &wishes(peer, 64)).expect_err("another key");
        assert!(matches!(error, SessionError::NotOpened { keyed: true, .. }));
        assert!(error.explain().cause.is_some_and(|cause| cause.contains("the keys differ")));
    });
    assert_eq!((counters.cookies, counters.replied, counters.opened), (1, 1, 0));
}

#[test]
fn a_silent_peer_is_reported_as_no_answer() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let peer = silent.local_addr().expect("bound");
    let error = open_over(&mut Wire::to(peer), Some(&key(1)), &wishes(peer, 64)).expect_err("silence");
    assert_eq!(error.to_string(), format!("no answer from `{peer}`"));
    assert_eq!(error.explain().cause.as_deref(), Some("5 HELLO packets in 3 s, nothing came back"));
    assert_eq!(error.explain().exit_code, 3);
}

#[test]
fn a_closed_port_is_reported_with_its_error() {
    let peer = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
    let error = open_over(&mut Wire::to(peer), None, &wishes(peer, 64)).expect_err("a closed port");
    assert!(error.explain().cause.is_some_and(|cause| cause.contains("refused")), "{:?}", error.explain().cause);
}

#[test]
fn counters_are_shown_while_serving() {
    with_reflector("127.0.0.1:0", None, |peer, requests| {
        let mut wire = Wire::to(peer);
        wire.send(b"what is this?").expect("sent");
        requests.counters.store(true, Ordering::Relaxed);
        while requests.counters.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        open_over(&mut wire, None, &wishes(peer, 64)).expect("and it still serves");
    });
}

#[test]
fn a_plain_echo_is_enough_for_the_echo_dialogue() {
    let echo = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let peer = echo.local_addr().expect("bound");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 2_048];
            for _ in 0..40 {
                let (bytes, from) = echo.recv_from(&mut buffer).expect("a probe");
                echo.send_to(&buffer[..bytes], from).expect("sent");
            }
        });
        for size in [24, 1_024] {
            let mut dialogue = EchoCodec::new(size, [3; 8]);
            assert_eq!(round_trips(&mut Wire::to(peer), &mut dialogue, 20), 20);
            assert!(dialogue.strays().is_empty());
        }
    });
}
