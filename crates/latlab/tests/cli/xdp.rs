//! Paths past the network stack, within the target `lab`.

use std::iter;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use latlab::host::Lab;
use latlab::plan::PathSpec;
use latlab::transport::{PathOptions, PathTransport, Transport, TransportFamily, WaitStrategy, Xdp};
use latlab::units::Nanos;
use rustix::process::Signal;
use serde_json::Value;

use crate::far_end::NamespacedAgent;
use crate::harness::{Latlab, Running, contains, empty, wait_until};
use crate::lab::{ip, loopback_queue, privileged};
use crate::processes::{below, signal};
use crate::store::{manifest, only_recording, spool_bytes};

#[track_caller]
fn measured(line: &str) -> (Value, Value) {
    let ran = Latlab::new().line(line).line("--json").measured();
    (ran.json(), manifest(&only_recording(ran.directory())))
}

#[track_caller]
fn expect_answered(document: &Value, answered: u64) {
    let losses = ["lost", "late", "duplicates", "reordered"].map(|name| document[name].as_u64().expect(name));
    assert_eq!((document["answered"].as_u64(), losses), (Some(answered), [0; 4]), "{document}");
}

#[test]
fn probes_return_whatever_waits_and_whatever_answers() {
    if !privileged() {
        return;
    }
    for options in [
        "",
        "--wait spin",
        "--wait spin --reflect socket",
        "--wait busy-poll",
        "-6 --wait spin",
        "-6 --reflect socket -s 24",
        "-i 1ms -s 1472",
        "-6 -s 1452",
    ] {
        let (document, recorded) = measured(&format!("ping lab --transport xdp -n 200 {options}"));
        expect_answered(&document, 200);
        let used = &recorded["run"]["xdp"];
        assert_eq!((&used["interface"], &used["queue"]), (&"lab0".into(), &0.into()), "{options}: {used}");
        assert_eq!((&used["native"], &used["zero_copy"]), (&false.into(), &false.into()), "{options}: {used}");
    }
    // A UDP socket here, an AF_XDP socket there.
    let (document, recorded) = measured("ping lab --reflect xdp -n 200 --wait spin");
    expect_answered(&document, 200);
    assert_eq!(recorded["run"]["xdp"], Value::Null);
}

/// The program runs in the network stack there, since loopback has no driver.
#[test]
fn loopback_is_measured_too() {
    if !privileged() {
        return;
    }
    let _loopback = loopback_queue();
    let (document, recorded) = measured("ping --transport xdp -n 200");
    expect_answered(&document, 200);
    let used = &recorded["run"]["xdp"];
    assert_eq!((&used["interface"], &used["native"]), (&"lo".into(), &false.into()), "{used}");
    let (document, _) = measured("ping --reflect xdp -n 200");
    expect_answered(&document, 200);
    let refused = Latlab::new().line("ping -4 --transport xdp -n 5").stdout(empty());
    refused.stderr(contains("cannot send from `127.0.0.1`")).stderr(contains("hint: `-6`")).failure(2);
}

#[test]
fn streams_arrive_past_the_network_stack() {
    if !privileged() {
        return;
    }
    for options in ["", "--reflect socket", "--mode batch", "-6 -s 200", "--direction down"] {
        let (document, _) =
            measured(&format!("stream lab --transport xdp --rate 5kpps -d 400ms --warmup 100ms {options}"));
        let flow = &document["stream"]["flows"][0];
        // A busy host gives up packets that are due.
        assert!(flow["sent"].as_u64().expect("a count") > 200, "{options}: {document}");
        assert_eq!(flow["lost"], 0, "{options}: {document}");
    }
    // As fast as packets go, in batches and with pauses of the receiver.
    let (document, recorded) = measured("stream lab --transport xdp --mode batch -s 64 -d 500ms");
    assert!(document["stream"]["flows"][0]["sent"].as_u64().expect("a count") > 10_000, "{document}");
    assert_eq!(document["xdp"]["reflector"], recorded["run"]["xdp_reflector"], "{document}");
}

/// A socket for probes begins with frames for 256 packets.
#[test]
fn the_receiver_of_a_down_stream_has_frames_for_a_long_burst() {
    const BURST: usize = 600;
    if !privileged() {
        return;
    }
    let (lab, never) = (Lab::set_up().expect("root"), AtomicBool::new(false));
    let sender = {
        let _there = lab.enter_reflector().expect("the namespace is there");
        UdpSocket::bind((lab.reflector_ipv4(), 0)).expect("a port")
    };
    let _here = lab.enter_sender().expect("the namespace is there");
    let peer = sender.local_addr().expect("it is bound");
    let options = PathOptions { path: &PathSpec::SYSTEM, peer, wait: WaitStrategy::Spin, stop: &never };
    let mut path = Xdp::open_down(&options).expect("a queue");
    for _ in 0..BURST {
        sender.send_to(&[7; 100], path.path().local).expect("sent");
    }
    let (mut received, mut buffer) = (0, [0; 200]);
    wait_until("the burst had arrived", || {
        received += iter::from_fn(|| path.receive(&mut buffer, Nanos::ZERO).expect("it is there")).count();
        received == BURST
    });
}

#[test]
fn packets_past_the_network_stack_are_whole() {
    if !privileged() {
        return;
    }
    for line in [
        "ping lab --transport xdp -s 1473 -n 5",
        "ping lab --reflect xdp -s 1473 -n 5",
        "ping lab --reflect xdp-tx -s 1473 -n 5",
        "stream lab --transport xdp -s 1473 -d 1s",
    ] {
        let ran = Latlab::new().line(line).stdout(empty()).stderr(contains("packets of 1473 bytes"));
        ran.stderr(contains("hint: `--size 1472`")).failure(2);
    }
    // A packet must fit into a frame too, whatever the MTU.
    let _loopback = loopback_queue();
    let ran = Latlab::new().line("ping --reflect xdp -s 5000 -n 5").stdout(empty());
    ran.stderr(contains("hint: `--size 3778`")).failure(2);
}

/// Replies of the socket would have a dwell of the socket, and the CPU of its thread.
#[test]
fn probes_are_answered_in_the_driver() {
    if !privileged() {
        return;
    }
    for options in ["", "--transport xdp --wait spin", "-6 --transport xdp -s 24", "-i 1ms -s 36", "-6 -s 1452"] {
        let (document, recorded) = measured(&format!("ping lab --reflect xdp-tx -n 200 {options}"));
        expect_answered(&document, 200);
        let used = &recorded["run"]["xdp_reflector"];
        assert_eq!((&used["interface"], &used["queue"]), (&"lab0".into(), &Value::Null), "{options}: {used}");
        assert_eq!(used["native"], false, "{options}: {used}");
        let reported = recorded["run"]["reflector"]["answered"].as_u64().expect("a count");
        assert!(reported > 200, "with the warm-up: {options}: {recorded}");
    }
}

/// A lab of this test, whose ends outlive the processes of latlab.
struct Ends {
    lab: Lab,
    agent: NamespacedAgent,
    home: tempfile::TempDir,
}

impl Ends {
    fn set_up() -> Ends {
        let lab = Lab::set_up().expect("root");
        Ends { agent: NamespacedAgent::of(&lab), lab, home: tempfile::tempdir().expect("a temporary directory") }
    }

    /// A ping between the ends that has begun to record.
    fn measuring(&self, options: &str) -> Running {
        let _here = self.lab.enter_sender().expect("the namespace is there");
        let latlab = Latlab::at(self.home.path()).args(["ping", &self.agent.target()]);
        let line = format!("--peer-addr {} --warmup 10 --transport xdp {options}", self.lab.reflector_ipv4());
        let mut running = latlab.line(&line).start();
        running.wait_until("the run was under way", || spool_bytes(self.home.path()) > 5_000);
        running
    }

    /// Whether the interfaces of the sender and of the reflector have programs, as the kernel lists them.
    fn attached(&self) -> [bool; 2] {
        let shown = || Command::new("ip").args(["link", "show"]).output().expect("ip(8) is installed").stdout;
        let has_program = |shown: Vec<u8>| String::from_utf8_lossy(&shown).contains("prog/xdp");
        let here = {
            let _here = self.lab.enter_sender().expect("the namespace is there");
            has_program(shown())
        };
        let _there = self.lab.enter_reflector().expect("the namespace is there");
        [here, has_program(shown())]
    }

    fn wait_for_detachment(&self) {
        wait_until("no program was attached", || self.attached() == [false, false]);
    }
}

#[test]
fn a_killed_process_leaves_no_program_behind() {
    if !privileged() {
        return;
    }
    for (reflect, victim) in [
        ("xdp", "sender"),
        ("xdp", "agent"),
        ("xdp", "reflector"),
        ("xdp-tx", "sender"),
        ("xdp-tx", "agent"),
        ("xdp-tx", "reflector"),
    ] {
        let ends = Ends::set_up();
        let running = ends.measuring(&format!("-d 50s -i 1ms --timeout 200ms --reflect {reflect}"));
        assert_eq!(ends.attached(), [true, true], "{reflect}");
        let pid = running.pid().as_raw_nonzero().get();
        match victim {
            "sender" => {
                running.signal(Signal::KILL);
                running.killed_by(Signal::KILL);
            }
            "agent" => {
                signal(below(pid, &["agent", "--stdio"]).expect("it runs"), Signal::KILL);
                running.exits_with_one_of(&[3, 4]);
            }
            _ => {
                signal(below(pid, &["reflector"]).expect("it runs"), Signal::KILL);
                wait_until("the reflector's program was detached", || !ends.attached()[1]);
                running.signal(Signal::INT);
                running.exits_with_one_of(&[3, 4, 130]);
            }
        }
        ends.wait_for_detachment();
    }
}

#[test]
fn a_removed_interface_ends_the_run() {
    if !privileged() {
        return;
    }
    for options in ["-d 50s --wait spin", "-d 50s", "-d 50s -i 1ms --reflect socket", "-d 50s -i 1ms --reflect xdp-tx"]
    {
        let ends = Ends::set_up();
        let running = ends.measuring(options);
        let removed = Instant::now();
        {
            let _here = ends.lab.enter_sender().expect("the namespace is there");
            ip("link del lab0");
        }
        running.exits(3);
        assert!(removed.elapsed() < Duration::from_secs(20), "{options}: it went on for {:?}", removed.elapsed());
        let recorded = manifest(&only_recording(ends.home.path()));
        assert_eq!(recorded["ending"], "failed", "{options}: {recorded}");
        let summary = Latlab::at(ends.home.path()).line("summary --json").arg(only_recording(ends.home.path()));
        // 4 if the reflector ended first, whose interface is the other end of the pair.
        let summary = summary.start().exits_with_one_of(&[0, 4]);
        let answered = summary.json()["answered"].as_u64().expect("a count");
        assert!(answered > 0, "{options}: what was measured before is kept");
    }
}

/// Packets to another port, to the run's own from another, and to the reflector without a session: the kernel gets the first
/// two, the run none.
#[test]
fn foreign_packets_at_the_queue_neither_disturb_nor_count() {
    if !privileged() {
        return;
    }
    let ends = Ends::set_up();
    let running = ends.measuring("-d 3s -i 1ms --timeout 2s --source-port 5555 --json");
    let sent = thread::scope(|scope| {
        scope.spawn(|| {
            let _here = ends.lab.enter_sender().expect("the namespace is there");
            let socket = UdpSocket::bind((ends.lab.sender_ipv4(), 0)).expect("a port");
            let port = recorded_port(ends.home.path());
            let junk = [0x6c; 1_000];
            for burst in 0..1_000 {
                let to = (ends.lab.reflector_ipv4(), port);
                let sent = (0..20).filter(|length| socket.send_to(&junk[..length * 50], to).is_ok());
                assert!(sent.count() > 0, "burst {burst}");
                thread::sleep(Duration::from_millis(1));
            }
        });
        let flood = scope.spawn(|| {
            let _there = ends.lab.enter_reflector().expect("the namespace is there");
            let socket = UdpSocket::bind((ends.lab.reflector_ipv4(), 0)).expect("a port");
            let end = Instant::now() + Duration::from_millis(1_500);
            let mut sent = 0_u32;
            while Instant::now() < end && sent < 300_000 {
                for port in [9, 5_555] {
                    // Refused by the kernel of the other end, which says so by ICMP.
                    sent += u32::from(socket.send_to(&[0x12; 64], (ends.lab.sender_ipv4(), port)).is_ok());
                }
                // The reflector shares this CPU.
                if sent.is_multiple_of(16) {
                    thread::sleep(Duration::from_micros(200));
                }
            }
            sent
        });
        flood.join().expect("no panic")
    });
    assert!(sent > 1_000, "{sent} packets are no flood");
    // On a busy machine the flood may fill a ring, and lost probes are a fatal caveat from 1 % on.
    let document = running.exits_with_one_of(&[0, 4]).json();
    let [answered, sent] = ["answered", "sent"].map(|name| document[name].as_u64().expect("a count"));
    assert!(answered * 100 > sent * 95, "{document}");
    let run = &manifest(&only_recording(ends.home.path()))["run"];
    assert_eq!(run["strays"], serde_json::json!({}), "{run}");
}

/// The port of the reflector of the only run.
fn recorded_port(home: &Path) -> u16 {
    let recorded = manifest(&only_recording(home));
    let address: SocketAddr = recorded["run"]["peer_address"].as_str().expect("known").parse().expect("an address");
    address.port()
}

/// Packets arrive at queue 0 of a virtual device unless their sender chose another one.
#[test]
fn packets_at_another_queue_are_named() {
    if !privileged() {
        return;
    }
    let ends = Ends::set_up();
    let _here = ends.lab.enter_sender().expect("the namespace is there");
    let channels = Command::new("ethtool").args(["-L", "lab0", "rx", "2", "tx", "2"]).status();
    assert!(channels.is_ok_and(|status| status.success()), "the device has a second queue");
    let refused = |options: &str| {
        let line = format!("--peer-addr {} --transport xdp -n 5 {options}", ends.lab.reflector_ipv4());
        Latlab::at(ends.home.path()).args(["ping", &ends.agent.target()]).line(&line).stdout(empty())
    };
    let elsewhere = refused("--queue 1 --reflect socket").stderr(contains("do not arrive at queue 1 of `lab0`"));
    elsewhere.stderr(contains("`--queue N`")).failure(3);
    refused("--queue 2").stderr(contains("check that the interface has that queue")).failure(3);
}
