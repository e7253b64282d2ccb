//! A flood of HELLOs from other networks, with source addresses that the sender's end has made local: senders of this
//! network still open sessions, and open sessions get their answers. The namespaces are the test's own, and the flood ends
//! with the last opening.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use latlab_sys::datagram::{Envelope, send_envelope_now};

use latlab::clock::{Clock, Monotonic};
use latlab::host::Lab;
use latlab::plan::{PathSpec, Schedule, WaitMode};
use latlab::probe::Seq;
use latlab::session::{
    DropReason, NativeSession, PreSharedKey, ProbeCodec, ReflectorCounters, ReflectorLimits, Requests, SessionParams,
    SessionReflector, open, random_bytes, serve,
};
use latlab::transport::{Transport, UdpReflector, UdpTransport, WaitStrategy};
use latlab::units::{Nanos, Stamp};
use latlab::wire::{Terms, hello_datagram};

use crate::{ip, privileged, skip};

/// HELLOs a second that come through a gateway. A slow machine sends fewer.
const FLOOD_RATE: u128 = 50_000;
/// Neighbours that do not exist: fewer than make the kernel's table full, which all namespaces share.
const NEIGHBOURS: u128 = 200;
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

/// Sends HELLOs to `peer` at `rate`, each from the address that `from` gives for its number, until `stop`. Returns the
/// reached rate in HELLOs a second.
fn flood(socket: &UdpSocket, peer: SocketAddr, rate: u128, from: impl Fn(u128) -> IpAddr, stop: &AtomicBool) -> u128 {
    let begin = Instant::now();
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) && begin.elapsed() < FLOOD_MAX {
        let due = begin.elapsed().as_nanos() * rate / 1_000_000_000;
        for number in sent..due {
            let local = Some(from(number));
            let nonce = u128::to_be_bytes(number);
            // A HELLO that the kernel refuses is missing in the reflector's counters, which the test reads.
            let _ = send_envelope_now(
                socket.as_fd(),
                &hello_datagram(&nonce),
                &Envelope { peer: peer.into(), local, received_ns: None },
            );
        }
        sent = due;
        std::thread::sleep(Duration::from_micros(500));
    }
    sent * 1_000_000_000 / begin.elapsed().as_nanos()
}

/// A session from `path`; `None` if it was not opened within the time-out of its sender.
fn opened(lab: &Lab, path: &PathSpec, peer: SocketAddr, key: &PreSharedKey) -> Option<(UdpTransport, NativeSession)> {
    let inside = lab.enter_sender().expect("the namespace is there");
    let waiting = WaitStrategy::Until { busy_poll: false };
    let mut transport = UdpTransport::open(path, peer, waiting).expect("a path");
    drop(inside);
    let (nonce, second) = (random_bytes().expect("chance"), Nanos::from_secs(1));
    let params = SessionParams::new(peer.to_string(), nonce, 64, Schedule::Closed, Some(second), second);
    let params = SessionParams { terms: Terms { duration: Nanos::from_secs(60), ..params.terms }, ..params };
    let session = open(&mut transport, &Monotonic, Some(key), &params, &AtomicBool::new(false));
    session.ok().map(|session| (transport, session))
}

/// A session from `path`, opened and closed; whether it was opened.
fn opens(lab: &Lab, path: &PathSpec, peer: SocketAddr, key: &PreSharedKey) -> bool {
    let session = opened(lab, path, peer, key);
    session.map(|(mut transport, session)| session.close(&mut transport, &Monotonic)).is_some()
}

/// The answers to `count` probes, one after the other.
fn answers((transport, session): &mut (UdpTransport, NativeSession), count: u64) -> u64 {
    let mut buffer = [0; 64];
    let mut is_answered = |seq| {
        transport.send(session.encode(Seq(seq))).expect("sent");
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            let received = transport.receive(&mut buffer, Nanos::from_millis(50)).expect("a working socket");
            let answer = received.and_then(|bytes| session.decode(&buffer[..bytes], Monotonic.now()));
            if answer.is_some_and(|answer| answer.seq == Seq(seq)) {
                return true;
            }
        }
        false
    };
    // So many losses decide the test.
    count - (0..count).filter(|seq| !is_answered(*seq)).take(11).count() as u64
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

/// Reflects until `stop`, and returns the counters.
fn reflect(socket: &mut UdpReflector, key: &PreSharedKey, stop: &AtomicBool) -> ReflectorCounters {
    let mut reflector = SessionReflector::new(ReflectorLimits::DEFAULT, Some(key), [7; 32]);
    let requests = Requests { stop, counters: &AtomicBool::new(false) };
    serve(socket, &mut reflector, &Monotonic, requests, || None, |_| {}).expect("the socket works");
    *reflector.counters(Stamp::from_nanos(0))
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

    let from = |number| Ipv4Addr::from_bits(0x6440_0007 + ((number % prefixes) as u32) * 256).into();
    let (ended, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let reflector = scope.spawn(|| reflect(&mut reflecting, &key, &stop));
        assert!(opens(&lab, &PathSpec::SYSTEM, peer, &key), "nothing floods yet");
        let flood = scope.spawn(|| flood(&flooding, peer, FLOOD_RATE, from, &ended));
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

/// Makes the forged neighbours addresses that the sender's end sends from and does not answer for, on its link.
fn add_neighbours(lab: &Lab) {
    let inside = lab.enter_sender().expect("the namespace is there");
    ip(&["route", "add", "local", "100.64.0.0/16", "dev", "lo"]).expect("a local route");
    for (option, value) in [("ipv4/conf/all/arp_ignore", "1"), ("ipv6/ip_nonlocal_bind", "1")] {
        std::fs::write(format!("/proc/sys/net/{option}"), value).expect("an option of this namespace");
    }
    drop(inside);
    let inside = lab.enter_reflector().expect("the namespace is there");
    for network in ["100.64.0.0/16", "fd98:6264::/64"] {
        ip(&["route", "add", network, "dev", "lab0"]).expect("a route");
    }
    drop(inside);
}

/// COOKIEs to forged neighbours wait in a send buffer until the kernel has given up looking for these.
#[test]
fn cookies_to_neighbours_that_do_not_exist_keep_no_answer_and_no_opening_out() {
    if !privileged() || !skip::programs(&["ip"]) {
        return;
    }
    for (is_ipv6, rate) in [(false, 300), (true, 900), (false, 20_000), (true, 20_000)] {
        let lab = Lab::set_up().expect("root may build a lab");
        add_neighbours(&lab);
        let local = if is_ipv6 { lab.reflector_ipv6() } else { Some(lab.reflector_ipv4()) };
        let Some(local) = local else { return skip::skip("this host has no IPv6") };
        let from = |number| match is_ipv6 {
            true => Ipv6Addr::from_bits((0xfd98_6264 << 96) | (number % NEIGHBOURS + 7)).into(),
            false => Ipv4Addr::from_bits(0x6440_0007 + (number % NEIGHBOURS) as u32).into(),
        };
        let (key, stop, ended) =
            (PreSharedKey::generate().expect("chance"), AtomicBool::new(false), AtomicBool::new(false));
        let inside = lab.enter_reflector().expect("the namespace is there");
        let mut reflecting = UdpReflector::bind((local, 0).into(), WaitMode::Block).expect("a port");
        drop(inside);
        let peer = reflecting.local_address();
        let inside = lab.enter_sender().expect("the namespace is there");
        let flooding = UdpSocket::bind(if is_ipv6 { "[::]:0" } else { "0.0.0.0:0" }).expect("a socket");
        drop(inside);
        let (answered, opened, counters) = std::thread::scope(|scope| {
            let reflector = scope.spawn(|| {
                let _inside = lab.enter_reflector().expect("the namespace is there");
                reflect(&mut reflecting, &key, &stop)
            });
            let mut session = opened(&lab, &PathSpec::SYSTEM, peer, &key).expect("nothing floods yet");
            let flood = scope.spawn(|| flood(&flooding, peer, rate, from, &ended));
            // So many COOKIEs as fill a send buffer of the usual 208 KiB.
            std::thread::sleep(Duration::from_millis(if rate < 1_000 { 1_200 } else { 500 }));
            let answered = answers(&mut session, 1_000);
            let opened = (0..3).filter(|_| opens(&lab, &PathSpec::SYSTEM, peer, &key)).count();
            ended.store(true, Ordering::Relaxed);
            flood.join().expect("no panic");
            stop.store(true, Ordering::Relaxed);
            (answered, opened, reflector.join().expect("no panic"))
        });
        assert!(counters.cookies > 300, "no flood came: {counters:?}");
        assert!(
            answered >= 990 && opened == 3,
            "{answered} of 1000 answers, {opened} of 3 openings at {rate}/s: {counters:?}"
        );
    }
}
