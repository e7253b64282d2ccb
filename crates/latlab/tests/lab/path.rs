//! Datagrams across the lab.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use latlab::host::Lab;
use latlab::measure::baseline::bare;
use latlab::plan::{PathSpec, WaitMode};
use latlab::transport::{PathTransport, ReflectorSocket, Transport, UdpReflector, UdpTransport, WaitStrategy};
use latlab::units::Nanos;

use crate::privileged;

/// Calls `ask` until it has a result, since a busy machine may delay it.
fn wait_for<T>(mut ask: impl FnMut() -> std::io::Result<Option<T>>) -> T {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        if let Some(answer) = ask().expect("the socket works") {
            return answer;
        }
        assert!(Instant::now() < deadline, "no result within 5 s");
    }
}

fn round_trip(lab: &Lab, path: &PathSpec, reflector_address: IpAddr) {
    let inside = lab.enter_reflector().expect("the namespace is there");
    let local = SocketAddr::new(reflector_address, 0);
    let mut reflector = UdpReflector::bind(local, WaitMode::Block).expect("a port");
    drop(inside);
    let inside = lab.enter_sender().expect("the namespace is there");
    let waiting = WaitStrategy::Until { busy_poll: false };
    let mut sender = UdpTransport::open(path, reflector.local_address(), waiting).expect("a path");
    drop(inside);

    let mut buffer = [0; 2_000];
    sender.send(&[7; 1_000]).expect("sent");
    // A socket stays in the namespace in which it was opened, wherever the thread is.
    let (bytes, from) = wait_for(|| reflector.receive(&mut buffer));
    assert_eq!((bytes, from), (1_000, sender.local_address()));
    reflector.reply(&buffer[..bytes], from).expect("replied");
    assert_eq!(wait_for(|| sender.receive(&mut buffer, Nanos::from_millis(100))), 1_000);
}

#[test]
fn a_datagram_crosses_the_lab_and_comes_back() {
    if !privileged() {
        return;
    }
    let lab = Lab::set_up().expect("root may build a lab");
    round_trip(&lab, &PathSpec::SYSTEM, lab.reflector_ipv4());
    let through = PathSpec { bind_interface: Some("lab0".into()), source_port: Some(40_000), ..PathSpec::SYSTEM };
    round_trip(&lab, &through, lab.reflector_ipv4());
    if let Some(ipv6) = lab.reflector_ipv6() {
        round_trip(&lab, &PathSpec::SYSTEM, ipv6);
    }
}

#[test]
fn the_first_datagram_in_a_new_lab_arrives() {
    if !privileged() {
        return;
    }
    // The kernel finishes links and addresses in work queues. A lab that does not wait for them fails here about once in 30
    // times.
    for _ in 0..60 {
        let lab = Lab::set_up().expect("root may build a lab");
        round_trip(&lab, &PathSpec::SYSTEM, lab.reflector_ipv6().unwrap_or(lab.reflector_ipv4()));
    }
}

#[test]
fn without_fragments_a_large_datagram_is_refused() {
    if !privileged() {
        return;
    }
    let lab = Lab::set_up().expect("root may build a lab");
    let _inside = lab.enter_sender().expect("the namespace is there");
    let peers = [Some(lab.reflector_ipv4()), lab.reflector_ipv6()];
    for peer in peers.into_iter().flatten() {
        let path = PathSpec { dont_fragment: true, ..PathSpec::SYSTEM };
        let mut sender = UdpTransport::open(&path, SocketAddr::new(peer, 9), WaitStrategy::Spin).expect("a path");
        let limit = sender.path().unfragmented_bytes.expect("the kernel knows the link") as usize;
        sender.send(&vec![0; limit]).expect("fits exactly");
        let error = sender.send(&vec![0; limit + 1]).expect_err("one byte too many");
        assert_eq!(rustix::io::Errno::from_io_error(&error), Some(rustix::io::Errno::MSGSIZE));
    }
}

fn bare_round_trips(reflector: &OwnedFd, sender: &OwnedFd, wait: bare::Wait) -> Vec<u32> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reflecting = scope.spawn(|| bare::reflect(reflector, wait, &stop));
        let round_trips = bare::ping(sender, 64, wait, 100);
        stop.store(true, Ordering::Relaxed);
        reflecting.join().expect("no panic").expect("the socket works");
        round_trips.expect("every answer comes")
    })
}

#[test]
fn the_bare_loop_crosses_the_lab() {
    if !privileged() {
        return;
    }
    let lab = Lab::set_up().expect("root may build a lab");
    let peer = SocketAddr::new(lab.reflector_ipv4(), 9862);
    let inside = lab.enter_reflector().expect("the namespace is there");
    let reflector = bare::bind(peer, bare::Wait::Block).expect("a port");
    drop(inside);
    let inside = lab.enter_sender().expect("the namespace is there");
    let sender = bare::connect(peer, bare::Wait::Block).expect("a path");
    drop(inside);
    let round_trips_ns = bare_round_trips(&reflector, &sender, bare::Wait::Block);
    assert!(round_trips_ns.len() == 100 && round_trips_ns.iter().all(|round_trip_ns| *round_trip_ns < u32::MAX));
}

#[test]
fn the_bare_loop_runs_on_loopback_with_every_wait_mode() {
    for wait in [bare::Wait::Block, bare::Wait::BusyPoll, bare::Wait::Spin] {
        if wait == bare::Wait::BusyPoll && !privileged() {
            continue;
        }
        let reflector = bare::bind(([127, 0, 0, 1], 0).into(), wait).expect("a port");
        let peer = latlab_sys::socket::local_address(reflector.as_fd()).expect("bound");
        let sender = bare::connect(peer, wait).expect("a path");
        assert_eq!(bare_round_trips(&reflector, &sender, wait).len(), 100);
    }
}

#[test]
fn the_bare_loop_times_out_without_an_answer() {
    let reflector = bare::bind(([127, 0, 0, 1], 0).into(), bare::Wait::Block).expect("a port");
    let peer = latlab_sys::socket::local_address(reflector.as_fd()).expect("bound");
    let sender = bare::connect(peer, bare::Wait::Spin).expect("a path");
    let error = bare::ping(&sender, 64, bare::Wait::Spin, 1).expect_err("there is no answer");
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
}
