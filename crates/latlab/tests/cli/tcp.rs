//! `--transport tcp` and `serve --tcp`: sessions over connections, and connections that are refused or closed.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use latlab::clock::Monotonic;
use latlab::plan::PathSpec;
use latlab::plan::Schedule;
use latlab::probe::{Fate, Seq};
use latlab::recording::manifest::RunEnding;
use latlab::session::{ProbeCodec, SessionParams, random_bytes};
use latlab::transport::{TcpTransport, Transport, WaitStrategy};
use latlab::units::Nanos;
use rustix::process::Signal;

use crate::far_end::local_agent;
use crate::harness::{BINARY, Latlab, Running, check_schema, contains, empty, wait_until, warnings_at_most};
use crate::lab::privileged;
use crate::serve::free_port;
use crate::skip::{ipv6, programs};
use crate::store::{manifest, only_recording, open, recordings, spool_bytes};

static NEVER: AtomicBool = AtomicBool::new(false);

/// A reflector over UDP and TCP that ends with the value, and its address.
pub(crate) fn serve_tcp(directory: &Path, options: &str) -> (Running, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let running =
        Latlab::at(directory).args(["serve", "-v", "--tcp", "--bind", &address]).line(options).stdout(empty()).start();
    running.wait_for_stderr(&format!("answering on `{address}` over TCP"));
    (running, address)
}

fn ping(directory: &Path, address: &str) -> Latlab {
    Latlab::at(directory).args(["ping", address, "--transport", "tcp"])
}

#[track_caller]
fn refused(lab: Latlab, code: i32, message: &str, hint: &str) {
    lab.stdout(empty()).stderr(contains(message)).stderr(contains(format!("\n  hint: {hint}"))).failure(code);
}

#[test]
fn a_run_over_tcp_records_its_connection() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for (family, schedule) in [("-4", "-n 50"), ("-6", "-n 20 -i 2ms")] {
        if family == "-6" && !ipv6() {
            continue;
        }
        let place = tempfile::tempdir_in(home.path()).expect("a directory");
        let line = format!("--warmup 3 --timeout 20s --json {family} {schedule}");
        let ran = ping(place.path(), "local").line(&line).stderr(warnings_at_most()).measured();
        check_schema(&ran.json(), "summary/1");
        assert_eq!(ran.json()["condition"]["transport"], "tcp");
        assert_eq!((&ran.json()["sent"], &ran.json()["lost"]), (&ran.json()["answered"], &0.into()));
        let manifest = manifest(&only_recording(place.path()));
        let connection = &manifest["run"]["connection"];
        assert!(connection["congestion_control"].is_string() && connection["retransmitted"].is_u64(), "{connection}");
        assert!(connection["send_segment_bytes"].as_u64().is_some_and(|bytes| bytes > 500), "{connection}");
        assert_eq!(manifest["spec"]["work"]["transport"], "tcp");
        assert!(manifest["run"]["conditions"]["path.unfragmented-bytes"].is_null(), "segments fit the path");
    }
}

#[test]
fn serve_answers_over_udp_and_tcp_and_counts_each() {
    let home = tempfile::tempdir().expect("a temporary directory");
    Latlab::at(home.path()).args(["keygen", "key"]).success();
    let (reflector, address) = serve_tcp(home.path(), "--psk-file key");
    let common = "--psk-file key -n 40 --warmup 3";
    ping(home.path(), &address).line(common).stderr(warnings_at_most()).success();
    // Several sizes have several connections at the same time.
    ping(home.path(), &address).line("--psk-file key -n 20 --warmup 0 -s 24,1000,65507").success();
    Latlab::at(home.path()).args(["ping", &address]).line("--psk-file key -n 30 --warmup 0").success();
    reflector.signal(Signal::TERM);
    let printed = reflector.exits(0).stderr;
    let of_tcp = printed.lines().rfind(|line| line.contains("over TCP: ")).expect("counters");
    assert!(
        of_tcp.contains("answered 103") && of_tcp.contains("connections 4") && !of_tcp.contains("drop-"),
        "{printed}"
    );
    assert!(printed.lines().any(|line| !line.contains("over TCP") && line.contains("answered 30")), "{printed}");
}

#[test]
fn a_wrong_or_missing_key_opens_no_session() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for name in ["key", "other"] {
        Latlab::at(home.path()).args(["keygen", name]).success();
    }
    let (reflector, address) = serve_tcp(home.path(), "--psk-file key");
    let opens_none = format!("`{address}` does not open a session");
    refused(ping(home.path(), &address).line("-n 5 --psk-file other"), 3, &opens_none, "compare the key files");
    let asks = format!("`{address}` asks for a pre-shared key");
    refused(ping(home.path(), &address).line("-n 5"), 3, &asks, "`--psk-file FILE`");
    assert!(recordings(home.path()).is_empty(), "a run that never began left a recording");
    reflector.signal(Signal::TERM);
    let printed = reflector.exits(0).stderr;
    assert!(printed.contains("drop-code") && !printed.contains("opened"), "{printed}");
}

#[test]
fn a_target_that_does_not_serve_tcp_is_refused_with_a_hint() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_reflector, address) = crate::serve::serve(home.path(), "");
    let message = format!("cannot connect to `{address}` over TCP\n  cause: connection refused (ECONNREFUSED)");
    refused(ping(home.path(), &address).line("-n 5"), 3, &message, "start `latlab serve --tcp` there");
    // A service that is not latlab accepts the connection.
    let stranger = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = stranger.local_addr().expect("bound").to_string();
    let closing = std::thread::spawn(move || drop(stranger.accept().expect("it comes")));
    let message = format!("`{address}` takes a connection, but opens no session over it");
    refused(ping(home.path(), &address).line("-n 5"), 3, &message, "check that `latlab serve --tcp`");
    closing.join().expect("no panic");
}

/// A listening socket whose backlog is full: further connections get no answer.
fn full_queue() -> (std::os::fd::OwnedFd, SocketAddr, Vec<TcpStream>) {
    use latlab_sys::{address::AddressFamily, connection, socket};
    let listener = connection::tcp_listener(AddressFamily::Ipv4).expect("a socket");
    socket::bind(listener.as_fd(), ([127, 0, 0, 1], 0).into()).expect("a port");
    rustix::net::listen(&listener, 0).expect("listening");
    let address = socket::local_address(listener.as_fd()).expect("bound");
    let waiting = std::iter::from_fn(|| TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok());
    let waiting: Vec<TcpStream> = waiting.take(8).collect();
    (listener, address, waiting)
}

#[test]
fn a_connection_without_an_answer_is_given_up_or_interrupted() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_listener, address, waiting) = full_queue();
    assert!(waiting.len() < 8, "the queue never filled");
    let start = Instant::now();
    let message = format!("cannot connect to `{address}` over TCP\n  cause: no answer within 3 s");
    refused(ping(home.path(), &address.to_string()).line("-n 5"), 3, &message, "check that `latlab serve --tcp` runs");
    assert!(start.elapsed() < Duration::from_secs(9), "three times the promise");
    let running = ping(home.path(), &address.to_string()).line("-n 5").start();
    let connecting = format!("/proc/{}/net/tcp", running.pid().as_raw_nonzero());
    // 02 is SYN_SENT; nothing else on this host connects to that port.
    let port = format!(":{:04X} 02 ", address.port());
    wait_until("it was connecting", || fs::read_to_string(&connecting).is_ok_and(|table| table.contains(&port)));
    running.signal(Signal::INT);
    running.exits(130);
}

#[test]
fn the_death_of_a_reflector_ends_the_run_and_its_open_probes_are_lost() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for schedule in ["", "-i 1ms"] {
        let place = tempfile::tempdir_in(home.path()).expect("a directory");
        let (reflector, address) = serve_tcp(place.path(), "");
        let running = ping(place.path(), &address).line("-d 50s --warmup 0").line(schedule).start();
        wait_until("the run was under way", || spool_bytes(place.path()) > 10_000);
        reflector.signal(Signal::KILL);
        reflector.killed_by(Signal::KILL);
        let printed = running.exits(3).stderr;
        assert!(
            printed.contains(&format!("error: the socket to `{address}` broke while measuring\n  cause: ")),
            "{printed}"
        );
        let (manifest, rows) = open(&only_recording(place.path()));
        assert_eq!((manifest.ending, manifest.run.undecided_probes), (RunEnding::Failed, 0), "{schedule}");
        let of = |fate: Fate| rows.iter().filter(|row| row.fate == fate).count();
        // Probes in flight at its death, and on a schedule those due before the death was noticed.
        assert!(of(Fate::Answered) > 10 && of(Fate::Lost) + of(Fate::SendFailed) < 100, "{schedule}");
        assert_eq!(of(Fate::Answered) + of(Fate::Lost) + of(Fate::SendFailed) + of(Fate::NotSent), rows.len());
    }
}

#[test]
fn invalid_idle_and_stuck_connections_are_closed_while_others_are_served() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (reflector, address) = serve_tcp(home.path(), "");
    let to: SocketAddr = address.parse().expect("an address");
    let connected = || TcpStream::connect(to).expect("it listens");
    let (mut garbage, mut half, silent) = (connected(), connected(), connected());
    garbage.write_all(&[0, 1, 7]).expect("sent");
    half.write_all(&[1, 0, 7]).expect("sent");
    let slow = slow_reader(to);
    ping(home.path(), &address).line("-n 200 --warmup 0 -s 64,1000").success();
    assert_eq!(garbage.read(&mut [0; 8]).expect("closed in order"), 0);
    let start = Instant::now();
    for mut idle in [half, silent] {
        idle.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
        assert_eq!(idle.read(&mut [0; 8]).expect("closed in order"), 0);
    }
    assert!(start.elapsed() < Duration::from_secs(18), "three times the promise");
    drop(slow);
    reflector.signal(Signal::TERM);
    let printed = reflector.exits(0).stderr;
    for counter in ["closed-malformed 1", "closed-without-session 1", "closed-stuck 1"] {
        assert!(printed.contains(counter), "{counter}: {printed}");
    }
}

/// A session that sends until the buffers of both ends are full, and reads nothing.
fn slow_reader(to: SocketAddr) -> TcpTransport {
    let waiting = WaitStrategy::Until { busy_poll: false };
    let mut transport = TcpTransport::open(&PathSpec::SYSTEM, to, waiting, &NEVER).expect("it listens");
    let nonce = random_bytes().expect("chance");
    let second = Nanos::from_secs(1);
    let params = SessionParams::new(to.to_string(), nonce, 60_000, Schedule::Closed, Some(second), second);
    let session = latlab::session::open(&mut transport, &Monotonic, None, &params, &NEVER);
    let mut session = session.expect("a session");
    let taken = (0..10_000).take_while(|seq| transport.send(session.encode(Seq(*seq))).is_ok()).count();
    assert!(taken < 10_000, "the reflector takes everything and keeps it");
    transport
}

#[test]
fn source_addresses_and_ports_can_be_reused_at_once() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let (_reflector, address) = serve_tcp(home.path(), "");
    let port = free_port();
    for _ in 0..3 {
        let place = tempfile::tempdir_in(home.path()).expect("a directory");
        let line = format!("-n 5 --warmup 0 --bind 127.0.0.9 --source-port {port} --dscp 46 --cpu 0");
        ping(place.path(), &address).line(&line).success();
        let manifest = manifest(&only_recording(place.path()));
        assert_eq!(manifest["run"]["local_address"], format!("127.0.0.9:{port}"));
    }
    let ran = ping(home.path(), &address)
        .line("-n 3 --warmup 0 --timeout 20s --source-port sweep --json --no-record")
        .success();
    let summaries = ran.json()["summaries"].as_array().expect("one for each port").clone();
    assert_eq!(summaries.len(), 16);
    assert!(summaries.iter().all(|summary| summary["answered"] == 3), "{summaries:?}");
}

#[test]
fn lab_and_agents_answer_over_tcp() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let there = local_agent();
    let mut targets = vec![(there, "--peer-addr 127.0.0.1")];
    if privileged() {
        targets.extend([("lab".to_owned(), "-4"), ("lab".to_owned(), "-6 --wait spin")]);
    }
    for (target, options) in targets {
        let place = tempfile::tempdir_in(home.path()).expect("a directory");
        let lab = ping(place.path(), &target).line(options).line("-n 30 --warmup 2 --timeout 20s -s 64,9000 --json");
        let ran = lab.stderr(warnings_at_most()).success();
        for summary in ran.json()["summaries"].as_array().expect("two sizes") {
            assert_eq!((&summary["answered"], &summary["condition"]["transport"]), (&30.into(), &"tcp".into()));
            let codes = summary["caveats"].as_array().expect("a list").iter().map(|caveat| &caveat["code"]);
            assert!(codes.clone().all(|code| code != "fragmentation"), "{target}");
        }
    }
}

/// The loopback of a network namespace is down for 0.3 s: probes in flight are retransmitted.
#[test]
fn retransmitted_probes_are_answered_and_reported() {
    if !privileged() || !programs(&["ip", "nsenter", "unshare"]) {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let script = "ip link set lo up && exec \"$0\" ping --transport tcp -i 2ms -d 3s --warmup 0 --timeout 30s --json";
    let running = Command::new("unshare")
        .args(["--net", "sh", "-c", script, BINARY])
        .current_dir(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it is there");
    let under_way = || spool_bytes(home.path()) > 5_000;
    wait_until("the run was under way", under_way);
    let set = |state: &str| {
        let there = format!("--net=/proc/{}/ns/net", running.id());
        let done = Command::new("nsenter").args([&there, "ip", "link", "set", "lo", state]).status();
        assert!(done.expect("it is there").success(), "lo {state}");
    };
    set("down");
    std::thread::sleep(Duration::from_millis(300));
    set("up");
    let ended = running.wait_with_output().expect("our own child");
    let document: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("a summary");
    assert_eq!((&document["lost"], &document["answered"]), (&0.into(), &document["sent"]));
    let caveats = document["caveats"].as_array().expect("a list");
    assert!(caveats.iter().any(|caveat| caveat["code"] == "tcp-retransmits"), "{caveats:#?}");
    let connection = &manifest(&only_recording(home.path()))["run"]["connection"];
    assert!(connection["retransmitted"].as_u64().is_some_and(|again| again > 0), "{connection}");
}
