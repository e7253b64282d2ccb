//! Armed loops past the network stack, between two private network namespaces.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use latlab::clock::{Clock, Monotonic};
use latlab::facts::Capability;
use latlab::host::facts::rights;
use latlab::host::{HostRoot, Lab};
use latlab::measure::stream::{StreamMeter, StreamSender, TokenSchedule};
use latlab::plan::{PathSpec, Schedule, SendMode, SenderSocketOptions, WaitMode};
use latlab::session::{
    PreSharedKey, ReflectorLimits, Requests, SessionParams, SessionReflector, UpStream, open, serve,
};
use latlab::transport::{WaitStrategy, XdpReflector, XdpTransport};
use latlab::units::Nanos;
use latlab::wire::SocketTerms;

use crate::armed::{PROBES, SCHEDULES, SETUP_DATAGRAMS, Watched, logged, ping_spec, slices};
use crate::{calls_of, calls_so_far, skip};

fn privileged() -> bool {
    let rights = rights(&HostRoot::live()).expect("this process has rights");
    let enough = rights.has(Capability::SysAdmin) && rights.has(Capability::NetAdmin);
    if !enough {
        skip::skip("namespaces need root");
    }
    enough
}

/// What `run` returns of the sender's end, whose peer is the address, and the calls to the allocator and the messages of the
/// reflector.
fn between<R>(wait: WaitMode, run: impl FnOnce(SocketAddr, &PreSharedKey) -> R) -> (R, (u64, u64)) {
    let key = PreSharedKey::generate().expect("chance");
    let (lab, stop, never) = (Lab::set_up().expect("root"), AtomicBool::new(false), AtomicBool::new(false));
    let (ready, address) = mpsc::channel();
    let (lab, stop, never, key) = (&lab, &stop, &never, &key);
    std::thread::scope(|scope| {
        let reflecting = scope.spawn(move || {
            let _there = lab.enter_reflector().expect("the namespace is there");
            let socket = XdpReflector::bind((lab.reflector_ipv4(), 0).into(), wait, 0).expect("a queue");
            ready.send(socket.local_address()).expect("it is waited for");
            let mut socket = Watched::new(socket, calls_so_far);
            let mut reflector = SessionReflector::new(ReflectorLimits::own(1), Some(key), [7; 32]);
            let requests = Requests { stop, counters: never };
            let cpu = latlab_sys::scheduler::current_cpu;
            serve(&mut socket, &mut reflector, &Monotonic, requests, cpu, |_| {}).expect("the socket works");
            (socket.calls, socket.received)
        });
        let _here = lab.enter_sender().expect("the namespace is there");
        let ran = catch_unwind(AssertUnwindSafe(|| run(address.recv().expect("an address"), key)));
        stop.store(true, Ordering::Relaxed);
        let reflected = reflecting.join().expect("no panic");
        (ran.unwrap_or_else(|panic| resume_unwind(panic)), reflected)
    })
}

fn measured(wait: WaitMode, schedule: Schedule) {
    let what = format!("{wait:?}, {schedule:?}");
    let ping = ping_spec(schedule, Nanos::from_secs(1));
    let waiting = WaitStrategy::new(wait, schedule, ping.timeout_ns);
    let (minute, limit) = (Some(Nanos::from_secs(60)), Nanos::from_secs(9));
    let params = SessionParams::new("lab", [7; 16], ping.size_bytes, Schedule::Closed, minute, limit);
    logged(|log| {
        let (sender_calls, (reflector_calls, received)) = between(wait, |peer, key| {
            let mut transport = XdpTransport::open(&ping.path, peer, waiting).expect("a queue");
            let stop = AtomicBool::new(false);
            let mut session = open(&mut transport, &Monotonic, Some(key), &params, &stop).expect("a session");
            slices(&mut transport, &mut session, log, &ping, PROBES)
        });
        assert_eq!((sender_calls, reflector_calls), (0, 0), "{what}");
        assert!(received > SETUP_DATAGRAMS && log.written() >= 2 * PROBES, "answers are written down; {what}");
    });
}

#[test]
fn ends_past_the_network_stack_allocate_nothing() {
    if !privileged() {
        return;
    }
    for wait in [WaitMode::Block, WaitMode::Spin, WaitMode::BusyPoll] {
        for schedule in SCHEDULES {
            measured(wait, schedule);
        }
    }
}

#[test]
fn a_stream_past_the_network_stack_allocates_nothing() {
    if !privileged() {
        return;
    }
    let sending = SenderSocketOptions { mode: SendMode::Batch, ..SenderSocketOptions::PLAIN };
    let terms = SocketTerms { batched: true, unchecked: false, stamped: false };
    let ((calls, tally), (reflector_calls, _)) = between(WaitMode::Block, |peer, key| {
        let waiting = WaitStrategy::Until { busy_poll: false };
        let mut transport = XdpTransport::open(&PathSpec::SYSTEM, peer, waiting).expect("a queue");
        let (never, second) = (AtomicBool::new(false), Nanos::from_secs(1));
        let params = SessionParams::new("lab", [7; 16], 1_400, Schedule::Closed, None, second).with_socket(terms);
        let session = open(&mut transport, &Monotonic, Some(key), &params, &never).expect("a session");
        assert_eq!(session.terms().socket, terms, "granted");
        let up = UpStream::with_options(session, sending);
        let mut stream = StreamSender::measured(transport, Monotonic, up).expect("armed");
        let begin = Monotonic.now();
        let mut meter = StreamMeter::new(begin);
        let mut schedule = TokenSchedule::new(begin, 1, 20_000).in_bursts_of(64);
        let end = begin + Nanos::from_millis(350);
        let calls = calls_of(|| stream.run(&mut schedule, &mut meter, end, &never).expect("it runs"));
        (calls, meter.last().copied().expect("a TALLY").tally)
    });
    assert_eq!((calls, reflector_calls), (0, 0));
    assert!(tally.packets > 1_000, "{tally:?}");
}
