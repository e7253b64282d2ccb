//! A flood of HELLOs from other networks, with source addresses that the sender's end has made local: senders of this
//! network still open sessions. The namespaces are the test's own, and the flood ends with the last opening.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use latlab_sys::datagram::{Envelope, send_envelope};

use latlab::clock::Monotonic;
use latlab::host::Lab;
use latlab::plan::{PathSpec, Schedule, WaitMode};
use latlab::session::{
    DropReason, PreSharedKey, ReflectorCounters, ReflectorLimits, Requests, SessionParams, SessionReflector, open,
    random_bytes, serve,
};
use latlab::transport::{UdpReflector, UdpTransport, WaitStrategy};
use latlab::units::{Nanos, Stamp};
use latlab::wire::hello_datagram;

use crate::{ip, privileged, skip};

/// HELLOs a second. A slow machine sends fewer.
const FLOOD_RATE: u128 = 50_000;
/// The flood ends after this time, if the openings have not ended it.
const FLOOD_MAX: Duration = Duration::from_secs(60);
/// Threads that open sessions, each one after the other, and the number for each.
const SENDERS: usize = 4;
const OPENINGS_EACH: usize = 25;

/// Makes 100.64.0.0/10 local to the sender's end, and routes it there from the reflector's.
fn add_networks(lab: &Lab) {
    let inside = lab.enter_sender().expect("the namespace is there");
    ip(&["route", "add", "local", "100.64.0.0/10", "dev", "lo"]).expect("a local route");
    drop(inside);
    let inside = lab.enter_reflector().expect("the namespace is there");
    ip(&["route", "add", "100.64.0.0/10", "via", &lab.sender_ipv4().to_string()]).expect("a route");
    drop(inside);
}

/// Sends HELLOs to `peer` from `prefixes` networks in turn until `stop`, and returns the reached rate in HELLOs a second.
fn flood(socket: &UdpSocket, peer: SocketAddr, prefixes: u128, stop: &AtomicBool) -> u128 {
    let begin = Instant::now();
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) && begin.elapsed() < FLOOD_MAX {
        let due = begin.elapsed().as_nanos() * FLOOD_RATE / 1_000_000_000;
        for number in sent..due {
            let network = 0x6440_0000 + ((number % prefixes) as u32) * 256;
            let local = Some(IpAddr::from(Ipv4Addr::from_bits(network + 7)));
            let nonce = u128::to_be_bytes(number);
            // A HELLO that the kernel refuses is missing in the reflector's counters, which the test reads.
            let _ = send_envelope(socket.as_fd(), &hello_datagram(&nonce), &Envelope { peer: peer.into(), local });
        }
        sent = due;
        std::thread::sleep(Duration::from_micros(500));
    }
    sent * 1_000_000_000 / begin.elapsed().as_nanos()
}

/// A session from `path`, opened and closed; whether it was opened within the time-out of its sender.
fn opens(lab: &Lab, path: &PathSpec, peer: SocketAddr, key: &PreSharedKey) -> bool {
    let inside = lab.enter_sender().expect("the namespace is there");
    let waiting = WaitStrategy::Until { busy_poll: false };
    let mut transport = UdpTransport::open(path, peer, waiting).expect("a path");
    drop(inside);
    let (nonce, second) = (random_bytes().expect("chance"), Nanos::from_secs(1));
    let params = SessionParams::new(peer.to_string(), nonce, 64, Schedule::Closed, Some(second), second);
    let session = open(&mut transport, &Monotonic, Some(key), &params, &AtomicBool::new(false));
    session.map(|session| session.close(&mut transport, &Monotonic)).is_ok()
}

/// The number of openings that succeeded. Half of them come from one network, and half
/// from a new network each.
fn open_sessions(lab: &Lab, peer: SocketAddr, key: &PreSharedKey) -> usize {
    let opened = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let opened = &opened;
            scope.spawn(move || {
                for number in 0..OPENINGS_EACH {
                    let network = Ipv4Addr::new(100, 120 + sender as u8, number as u8, 1);
                    let bind_address = (sender % 2 == 0).then_some(network.into());
                    let path = PathSpec { bind_address, ..PathSpec::SYSTEM };
                    opened.fetch_add(usize::from(opens(lab, &path, peer, key)), Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
        }
    });
    opened.into_inner()
}

/// Openings that succeed under a flood from so many networks, and the reflector's counters at the end.
#[allow(clippy::print_stdout, reason = "the documentation has these figures")]
fn opened_under_flood(prefixes: u128) -> (usize, ReflectorCounters) {
    let lab = Lab::set_up().expect("root may build a lab");
    add_networks(&lab);
    let key = PreSharedKey::generate().expect("chance");
    let inside = lab.enter_reflector().expect("the namespace is there");
    let local = SocketAddr::new(lab.reflector_ipv4(), 0);
    let mut reflecting = UdpReflector::bind(local, WaitMode::Block).expect("a port");
    drop(inside);
    let peer = reflecting.local_address();
    let inside = lab.enter_sender().expect("the namespace is there");
    let flooding = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    drop(inside);

    let (ended, stop, counters) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let reflector = scope.spawn(|| {
            let mut reflector = SessionReflector::new(ReflectorLimits::DEFAULT, Some(&key), [7; 32]);
            let requests = Requests { stop: &stop, counters: &counters };
            serve(&mut reflecting, &mut reflector, &Monotonic, requests, || None, |_| {}).expect("the socket works");
            *reflector.counters(Stamp::from_nanos(0))
        });
        assert!(opens(&lab, &PathSpec::SYSTEM, peer, &key), "there is no flood yet");
        let flood = scope.spawn(|| flood(&flooding, peer, prefixes, &ended));
        // The first second is the hardest: every network is new.
        let opened = open_sessions(&lab, peer, &key);
        ended.store(true, Ordering::Relaxed);
        let rate = flood.join().expect("no panic");
        stop.store(true, Ordering::Relaxed);
        let counters = reflector.join().expect("no panic");
        let (hellos, dropped) = (counters.cookies + counters.dropped(DropReason::CookieRate), counters.socket_drops);
        println!(
            "{prefixes} networks, {rate} HELLOs/s: {opened} openings, {hellos} HELLOs received, {} answered, \
             socket drops {dropped:?}",
            counters.cookies
        );
        (opened, counters)
    })
}

#[test]
fn sessions_are_opened_under_a_flood_from_one_network_and_from_many() {
    if !privileged() || !skip::programs(&["ip"]) {
        return;
    }
    for prefixes in [1, 100] {
        let (opened, counters) = opened_under_flood(prefixes);
        let refused = counters.dropped(DropReason::CookieRate);
        assert!(refused > 2 * counters.cookies, "no flood came: {refused} refused, {} answered", counters.cookies);
        let openings = SENDERS * OPENINGS_EACH;
        assert!(opened * 100 >= openings * 95, "{opened} of {openings} openings against {prefixes} networks");
    }
}
