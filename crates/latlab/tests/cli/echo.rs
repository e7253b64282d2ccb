//! `--protocol echo` against echoes that lose, duplicate, delay, reorder and alter datagrams: every fate is counted exactly.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use latlab::probe::Fate;
use serde_json::Value;

use crate::harness::{Latlab, check_schema, contains, empty, lacks, warnings_at_most};
use crate::store::{manifest, only_recording, open};

/// The reaction of an echo to a datagram.
#[derive(Clone, Copy)]
enum Treatment {
    Return,
    Lose,
    Repeat,
    Delay(Duration),
    /// Return it after the next one.
    Swap,
    /// Return it without its last byte, which is not a valid answer, and then unchanged.
    Garble,
    /// Return it without its last byte.
    Cut,
}

/// An echo server in a thread, which ends when this value is dropped.
struct Echo {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn new(treat: fn(u64) -> Treatment) -> Echo {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(5))).expect("a socket of our own");
        let address = socket.local_addr().expect("bound");
        let over = Arc::new(AtomicBool::new(false));
        let printed = Arc::clone(&over);
        let thread = Some(thread::spawn(move || answer(&socket, treat, &printed)));
        Echo { address, over, thread }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().expect("dropped once").join().expect("the echo did not panic");
    }
}

fn answer(socket: &UdpSocket, treat: fn(u64) -> Treatment, over: &AtomicBool) {
    let mut held: Vec<(Instant, Vec<u8>, SocketAddr)> = Vec::new();
    let mut behind: Option<Vec<u8>> = None;
    let mut buffer = [0; 65_536];
    while !over.load(Ordering::Relaxed) {
        if let Ok((length, sender)) = socket.recv_from(&mut buffer) {
            let datagram = &buffer[..length];
            let send = |datagram: &[u8]| _ = socket.send_to(datagram, sender).expect("loopback takes it");
            // docs/protocol.md: mark, nonce, sequence number.
            let seq = u64::from_be_bytes(*datagram[16..].first_chunk().expect("24 bytes at least"));
            match treat(seq) {
                Treatment::Return => send(datagram),
                Treatment::Lose => (),
                Treatment::Repeat => (0..2).for_each(|_| send(datagram)),
                Treatment::Delay(span) => held.push((Instant::now() + span, datagram.to_vec(), sender)),
                Treatment::Swap => behind = Some(datagram.to_vec()),
                Treatment::Cut => send(&datagram[..length - 1]),
                Treatment::Garble => {
                    send(&datagram[..length - 1]);
                    send(datagram);
                }
            }
            if let Some(datagram) = behind.take_if(|behind| behind[..] != *datagram) {
                send(&datagram);
            }
        }
        held.retain(|(due, datagram, sender)| {
            let waits = Instant::now() < *due;
            if !waits {
                socket.send_to(datagram, sender).expect("loopback takes it");
            }
            waits
        });
    }
}

/// The summary of a run against `echo`, and the finished process.
#[track_caller]
fn ping(echo: &Echo, options: &str) -> (Value, crate::harness::Finished) {
    let line = format!("ping {} --protocol echo --warmup 0 --json {options}", echo.address);
    let ran = Latlab::new().line(&line).stderr(warnings_at_most()).measured();
    check_schema(&ran.json(), "summary/1");
    (ran.json(), ran)
}

/// sent, answered, late, lost, duplicates, reordered.
fn counts(summary: &Value) -> [u64; 6] {
    ["sent", "answered", "late", "lost", "duplicates", "reordered"].map(|key| summary[key].as_u64().expect(key))
}

/// Returns datagrams from another address, as a host with several addresses may.
#[test]
fn answers_from_another_address_and_a_link_local_address_without_its_link_are_named() {
    let echo = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let other = UdpSocket::bind("127.0.0.2:0").expect("a socket");
    let (address, from) = (echo.local_addr().expect("bound"), other.local_addr().expect("bound"));
    echo.set_read_timeout(Some(Duration::from_millis(5))).expect("a socket of our own");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 2_000];
            while !over.load(Ordering::Relaxed) {
                if let Ok((length, sender)) = echo.recv_from(&mut buffer) {
                    other.send_to(&buffer[..length], sender).expect("loopback takes it");
                }
            }
        });
        let ping = |line: &str, code| {
            let ran = Latlab::new().line(&format!("ping {address} -n 5 -i 5ms --warmup 0 {line}"));
            ran.stderr(contains(format!("another address or port: `{from}`")))
                .stderr(contains("--bind ADDR"))
                .failure(code)
        };
        ping("--protocol echo --no-record", 3);
        ping("", 3);
        over.store(true, Ordering::Relaxed);
    });
    if crate::skip::ipv6() {
        let ran = Latlab::new().line("ping fe80::1 --protocol echo -n 5");
        ran.stderr(contains("name the interface: `fe80::1%IFACE`")).failure(2);
    }
}

#[test]
fn all_probes_to_a_correct_echo_are_answered() {
    let echo = Echo::new(|_| Treatment::Return);
    let (summary, ran) = ping(&echo, "-n 30");
    assert_eq!(counts(&summary), [30, 30, 0, 0, 0, 0]);
    assert_eq!(summary["condition"]["protocol"], "echo");
    assert!(summary["metrics"]["reflector_dwell"].is_null(), "a plain echo tells nothing of itself");
    assert!(open(&only_recording(ran.directory())).1.iter().all(|row| row.reflector_received.is_none()));
    assert_eq!(counts(&ping(&echo, "-n 30 -s 1400 -i 1ms").0), [30, 30, 0, 0, 0, 0]);
}

#[test]
fn lost_probes_are_counted_and_have_infinite_delay() {
    let lossy = |seq| if seq % 10 == 9 { Treatment::Lose } else { Treatment::Return };
    let echo = Echo::new(lossy);
    let (summary, ran) = ping(&echo, "-n 100 -i 2ms --timeout 500ms");
    assert_eq!(counts(&summary), [100, 90, 0, 10, 0, 0]);
    assert_eq!(summary["ratios"]["loss_ratio"], 0.1);
    let quantiles = summary["metrics"]["round_trip_delay"]["quantiles"].as_array().expect("a list");
    let p99 = quantiles.iter().find(|one| one["q"] == 0.99).expect("asked for");
    assert_eq!((&p99["value"], &p99["reason"]), (&Value::Null, &"lost".into()), "the tenth beyond is infinite");
    let lost = open(&only_recording(ran.directory())).1.into_iter().filter(|row| row.fate == Fate::Lost);
    assert_eq!(lost.map(|row| row.seq.0).collect::<Vec<_>>(), (9..100).step_by(10).collect::<Vec<_>>());

    // In a closed loop each lost probe takes one time-out, which is reported.
    let (summary, _) = ping(&echo, "-n 20 --timeout 200ms");
    assert_eq!(counts(&summary), [20, 18, 0, 2, 0, 0]);
    assert!(summary["timed_out_ns"].as_u64().expect("a number") >= 400_000_000);
    let line = format!("ping {} --protocol echo --warmup 0 -n 20 --timeout 200ms", echo.address);
    let lab = Latlab::new().line(&line).stdout(contains("n 20 · lost 2"));
    lab.stdout(contains("spent waiting for answers that did not come")).success();
}

#[test]
fn duplicated_answers_are_counted() {
    let echo = Echo::new(|seq| if seq % 7 == 0 { Treatment::Repeat } else { Treatment::Return });
    for options in ["-n 70", "-n 70 -i 2ms"] {
        let (summary, ran) = ping(&echo, options);
        assert_eq!(counts(&summary), [70, 70, 0, 0, 10, 0], "{options}");
        let twice = open(&only_recording(ran.directory())).1.into_iter().filter(|row| row.duplicates == 1);
        assert_eq!(twice.map(|row| row.seq.0).collect::<Vec<_>>(), (0..70).step_by(7).collect::<Vec<_>>(), "{options}");
    }
}

#[test]
fn answers_after_the_timeout_are_counted_as_late() {
    let slow = |seq| match seq {
        5 | 15 => Treatment::Delay(Duration::from_millis(700)),
        _ => Treatment::Return,
    };
    // Late answers arrive while later probes are still being sent.
    let (summary, ran) = ping(&Echo::new(slow), "-n 100 -i 10ms --timeout 400ms");
    assert_eq!(counts(&summary), [100, 98, 2, 0, 0, 2]);
    assert_eq!(summary["ratios"]["late_ratio"], 0.02);
    let late = open(&only_recording(ran.directory())).1.into_iter().filter(|row| row.fate == Fate::Late);
    assert_eq!(late.map(|row| (row.seq.0, row.received.is_some())).collect::<Vec<_>>(), [(5, true), (15, true)]);
}

#[test]
fn reordered_answers_are_counted() {
    let echo = Echo::new(|seq| if seq % 20 == 10 { Treatment::Swap } else { Treatment::Return });
    let (summary, ran) = ping(&echo, "-n 60 -i 3ms");
    assert_eq!(counts(&summary), [60, 60, 0, 0, 0, 3]);
    let reordered = open(&only_recording(ran.directory())).1.into_iter().filter(|row| row.reordered);
    assert_eq!(reordered.map(|row| row.seq.0).collect::<Vec<_>>(), [10, 30, 50]);
}

#[test]
fn altered_answers_are_counted_as_strays() {
    let (summary, ran) = ping(&Echo::new(|_| Treatment::Garble), "-n 20");
    assert_eq!(counts(&summary), [20, 20, 0, 0, 0, 0]);
    assert_eq!(manifest(&only_recording(ran.directory()))["run"]["strays"]["altered"], 20);
}

#[test]
fn a_run_without_answers_fails_and_is_recorded() {
    let echo = Echo::new(|_| Treatment::Lose);
    let line = format!("ping {} --protocol echo --warmup 0 -n 3 --timeout 50ms", echo.address);
    let lab = Latlab::new().line(&line).stdout(contains("n 3 · lost 3")).stdout(lacks("none of 3 probes"));
    let printed = lab.stderr(contains(format!("error: no probe was answered by `{}`", echo.address)));
    let ran = printed.stderr(contains("cause: 3 probes were sent")).stderr(contains("hint: ")).failure(3);
    let recording = only_recording(ran.directory());
    Latlab::at(ran.directory())
        .arg("summary")
        .arg(&recording)
        .stdout(contains("n 3 · lost 3"))
        .stdout(contains("warning: none of 3 probes was answered in time"))
        .stderr(empty())
        .success();
}

#[test]
fn an_echo_that_alters_every_datagram_is_named_as_the_cause() {
    let echo = Echo::new(|_| Treatment::Cut);
    let line = format!("ping {} --protocol echo --warmup 0 -n 3 --timeout 50ms", echo.address);
    let lab = Latlab::new().line(&line).stderr(contains("\n  cause: 3 answers came back changed, none unchanged\n"));
    lab.stderr(contains("\n  hint: an echo must return each datagram unchanged")).failure(3);
}

#[test]
fn a_closed_port_is_named_as_the_cause() {
    let unused = format!("127.0.0.1:{}", crate::serve::free_port());
    let line = "--protocol echo --warmup 0 -n 7 --timeout 20ms";
    let lab = Latlab::new().args(["ping", &unused]).line(line);
    let cause = "\n  cause: the port is closed: 7 of 7 probes were refused there (ECONNREFUSED)\n";
    lab.stderr(contains(cause)).stderr(contains("\n  hint: start the echo there, or give its port")).failure(3);
}

#[test]
fn socket_errors_of_the_warm_up_are_not_counted() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let unused = format!("127.0.0.1:{}", crate::serve::free_port());
    let line = "--protocol echo --warmup 5 -n 7 --timeout 20ms";
    Latlab::at(home.path()).args(["ping", &unused]).line(line).failure(3);
    let manifest = manifest(&only_recording(home.path()));
    // In a closed loop the ICMP message for each probe arrives before the next probe is sent.
    assert_eq!(manifest["run"]["socket_errors"], serde_json::json!({ "ECONNREFUSED": 7 }));
}
