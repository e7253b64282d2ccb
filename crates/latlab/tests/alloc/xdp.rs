//! Armed loops past the network stack, between two private network namespaces.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use latlab::clock::Monotonic;
use latlab::facts::{Capability, Rights};
use latlab::host::{HostRoot, Lab};
use latlab::plan::{Schedule, WaitMode};
use latlab::session::{PreSharedKey, ReflectorLimits, Requests, SessionParams, SessionReflector, open, serve};
use latlab::transport::{WaitStrategy, XdpReflector, XdpTransport};
use latlab::units::Nanos;

use crate::armed::{PROBES, SCHEDULES, SETUP_DATAGRAMS, Watched, logged, ping_spec, slices};
use crate::{calls_so_far, skip};

fn privileged() -> bool {
    let rights = Rights::read(&HostRoot::live()).expect("this process has rights");
    let enough = rights.has(Capability::SysAdmin) && rights.has(Capability::NetAdmin);
    if !enough {
        skip::skip("namespaces need root");
    }
    enough
}

fn measured(wait: WaitMode, schedule: Schedule) {
    let (what, key) = (format!("{wait:?}, {schedule:?}"), PreSharedKey::generate().expect("chance"));
    let (lab, stop, never) = (Lab::set_up().expect("root"), AtomicBool::new(false), AtomicBool::new(false));
    let ping = ping_spec(schedule, Nanos::from_secs(1));
    let (ready, address) = mpsc::channel();
    let (lab, stop, never, key) = (&lab, &stop, &never, &key);
    logged(|log| {
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
            let peer = address.recv().expect("an address");
            let waiting = WaitStrategy::new(wait, schedule, ping.timeout_ns);
            let (minute, limit) = (Some(Nanos::from_secs(60)), Nanos::from_secs(9));
            let params = SessionParams::new("lab", [7; 16], ping.size_bytes, Schedule::Closed, minute, limit);
            let calls = XdpTransport::open(&ping.path, peer, waiting).map(|mut transport| {
                let session = open(&mut transport, &Monotonic, Some(key), &params, stop);
                session.map(|mut session| slices(&mut transport, &mut session, log, &ping, PROBES))
            });
            stop.store(true, Ordering::Relaxed);
            let (reflector_calls, received) = reflecting.join().expect("no panic");
            let sender_calls = calls.expect("a queue").expect("a session");
            assert_eq!((sender_calls, reflector_calls), (0, 0), "{what}");
            assert!(received > SETUP_DATAGRAMS && log.written() >= 2 * PROBES, "answers are written down; {what}");
        });
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
