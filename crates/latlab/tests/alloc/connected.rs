//! Armed loops over a connection, to a listener with one connection or several.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

use latlab::clock::Monotonic;
use latlab::plan::Schedule;
use latlab::plan::{PingSpec, WaitMode};
use latlab::session::{PreSharedKey, ReflectorLimits, Requests, SessionParams, SessionReflector, open, serve};
use latlab::transport::{TcpReflector, TcpTransport, WaitStrategy};
use latlab::units::Nanos;

use crate::armed::{PROBES, Reflected, SCHEDULES, SETUP_DATAGRAMS, Watched, logged, ping_spec, slices};
use crate::calls_so_far;

fn reflect<'scope>(
    scope: &'scope Scope<'scope, '_>,
    listener: TcpReflector,
    key: Option<&'scope PreSharedKey>,
    stop: &'scope AtomicBool,
) -> ScopedJoinHandle<'scope, Reflected> {
    scope.spawn(move || {
        let mut socket = Watched::new(listener, calls_so_far);
        let mut reflector = SessionReflector::new(ReflectorLimits::own(1), key, [7; 32]);
        let never = AtomicBool::new(false);
        let requests = Requests { stop, counters: &never };
        let cpu = latlab_sys::scheduler::current_cpu;
        serve(&mut socket, &mut reflector, &Monotonic, requests, cpu, |_| {}).expect("the listener works");
        let answered = reflector.counters(latlab::units::Stamp::from_nanos(0)).answered;
        assert!(socket.received > SETUP_DATAGRAMS, "probes came");
        (socket.calls, answered)
    })
}

/// A session over a connection, next to this number of idle ones.
fn connected(wait: WaitMode, ping: &PingSpec, key: Option<&PreSharedKey>, others: usize) {
    let what = format!("{wait:?}, {:?}, key: {}, {others} others", ping.schedule, key.is_some());
    let caps = ReflectorLimits::own(1).connections();
    let listener = TcpReflector::bind(([127, 0, 0, 1], 0).into(), wait, caps).expect("a port");
    let peer = listener.local_address();
    let stop = AtomicBool::new(false);
    let _others: Vec<TcpStream> = (0..others).map(|_| TcpStream::connect(peer).expect("it listens")).collect();
    logged(|log| {
        std::thread::scope(|scope| {
            let reflecting = reflect(scope, listener, key, &stop);
            let waiting = WaitStrategy::new(wait, ping.schedule, ping.timeout_ns);
            let params = SessionParams::new(
                "loopback",
                [7; 16],
                ping.size_bytes,
                Schedule::Closed,
                Some(Nanos::from_secs(60)),
                Nanos::from_secs(9),
            );
            let calls = TcpTransport::open(&ping.path, peer, waiting, &stop).map(|mut transport| {
                let session = open(&mut transport, &Monotonic, key, &params, &stop);
                session.map(|mut session| slices(&mut transport, &mut session, log, ping, PROBES))
            });
            stop.store(true, Ordering::Relaxed);
            let (reflector_calls, answered) = reflecting.join().expect("no panic");
            let sender_calls = calls.expect("a connection").expect("a session");
            // On a busy host the idle connections may be given up meanwhile, and each then frees its buffer.
            assert!(sender_calls == 0 && reflector_calls <= others as u64, "{sender_calls}, {reflector_calls}; {what}");
            // On a busy host a thread that spins may hardly run while the other sends.
            assert!(answered > 0 && log.written() >= 2 * PROBES, "answers come and are written down; {what}");
        });
    });
}

#[test]
fn connected_ends_allocate_nothing() {
    let key = PreSharedKey::generate().expect("chance");
    for wait in [WaitMode::Block, WaitMode::Spin] {
        for schedule in SCHEDULES {
            for (key, others) in [(None, 0), (Some(&key), 2)] {
                connected(wait, &ping_spec(schedule, Nanos::from_secs(1)), key, others);
            }
        }
    }
}
