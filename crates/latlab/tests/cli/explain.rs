//! `latlab explain`: causes that are made here are found in what real processes recorded.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{BINARY, Latlab, Running, check_schema, contains, wait_until};
use crate::lab::privileged;
use crate::processes::{below, signal};
use crate::scheduling::precedence;
use crate::skip::{program, skip};
use crate::store::{only_recording, open, spool_bytes};
use crate::wakeup::keep_busy;
use crate::wakeup_trace::can_trace;

fn begun(home: &Path, line: &str) -> Running {
    recorded(home, Latlab::at(home).line(line).start())
}

/// `running`, when it has recorded probes.
fn recorded(home: &Path, running: Running) -> Running {
    wait_until("probes were recorded", || spool_bytes(home) > 64 * 100);
    running
}

/// The explanation of the only recording in `home`, with every episode.
fn explained(home: &Path) -> Value {
    let recording = only_recording(home);
    let ran = Latlab::at(home).args(["explain", "--worst", "1000", "--json"]).arg(&recording).success();
    check_schema(&ran.json(), "explain/1");
    ran.json()["runs"][0].clone()
}

fn now_ns() -> i64 {
    latlab_sys::clock::monotonic_ns()
}

/// Asserts that most of the slow probes that left in one of `spans`, of which there are some, lost their time in one of
/// `stages`: other processes may disturb any others.
fn expect_stage(home: &Path, spans: &[(i64, i64)], stages: &[&str]) {
    let found = explained(home);
    let (_, rows) = open(&only_recording(home));
    let measured = rows.iter().find(|row| row.seq.0 == 0).expect("the first probe");
    let start = measured.sent.expect("it left").as_nanos();
    let episodes = found["worst"].as_array().expect("episodes");
    let sent = |episode: &Value| start + episode["start_ns"].as_i64().expect("a time");
    let during: Vec<&Value> = episodes
        .iter()
        .filter(|episode| spans.iter().any(|(from, to)| (*from..*to).contains(&sent(episode))))
        .collect();
    let named = during.iter().filter(|episode| stages.contains(&episode["stage"].as_str().unwrap_or_default()));
    let named = named.count();
    assert!(named >= 3 && 2 * named >= during.len(), "{named} of {}: {during:#?}", during.len());
}

#[test]
fn a_stopped_reflector_is_found_at_the_peer() {
    let _precedence = precedence();
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = begun(home.path(), "ping -i 1ms -d 3s --warmup 0 --stamps kernel");
    let reflector = below(running.pid().as_raw_nonzero().get(), &["reflector"]).expect("its reflector");
    let mut spans = Vec::new();
    for stop in 0..8 {
        // Between 200 and 240 ms, without a period. Longer than busy neighbours take.
        thread::sleep(Duration::from_millis(200 + stop * 17 % 41));
        signal(reflector, Signal::STOP);
        let from = now_ns();
        thread::sleep(Duration::from_millis(60));
        spans.push((from, now_ns() - 20_000_000));
        signal(reflector, Signal::CONT);
    }
    running.finishes_measured();
    expect_stage(home.path(), &spans, &["peer's wake-up", "peer's process"]);
}

#[test]
fn a_busy_cpu_of_the_reflector_is_found_in_its_wake_up() {
    expect_hog("local", "local");
}

#[test]
fn a_busy_cpu_of_a_peer_is_found_in_the_trace_of_its_agent() {
    if privileged() {
        expect_hog(&format!("cmd:{BINARY} agent --stdio"), "peer");
    }
}

fn expect_hog(target: &str, at: &str) {
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        return skip("there is one CPU only");
    }
    let _precedence = precedence();
    let (begun, before) = (Instant::now(), switches());
    let is_found = (0..8).any(|_| finds_hog(target, at));
    let rate = (switches() - before) as f64 / begun.elapsed().as_secs_f64();
    // Alone it is 14,000. Neighbours that send as fast as they can make the kernel overwrite a trace.
    assert!(is_found || rate > 20_000.0, "no trace of eight, at {rate} switches/s");
}

/// Context switches of this host since it was booted.
fn switches() -> u64 {
    let text = fs::read_to_string("/proc/stat").expect("Linux has it");
    let count = text.lines().find_map(|line| line.strip_prefix("ctxt ")).expect("it counts them");
    count.parse().expect("a number")
}

/// Another thread takes the CPU of the reflector that `target` has. Whether the trace of that host was kept, which then shows it.
fn finds_hog(target: &str, at: &str) -> bool {
    let home = tempfile::tempdir().expect("a temporary directory");
    let trace = if can_trace() { " --trace" } else { "" };
    let address = if at == "peer" { "--peer-addr 127.0.0.1 " } else { "" };
    let line = format!("{address}-i 1ms -d 3s --warmup 0 --cpu 0 --peer-cpu 1 --stamps kernel{trace}");
    let running = recorded(home.path(), Latlab::at(home.path()).args(["ping", target]).line(&line).start());
    let mut spans = Vec::new();
    // The time of a peer's trace is twice as long, and its text limited.
    let busy = Duration::from_millis(if at == "peer" { 30 } else { 60 });
    for _ in 0..8 {
        spans.extend(keep_busy(1, busy).map(|(from, to)| (from, to - 20_000_000)));
        thread::sleep(Duration::from_millis(150));
    }
    running.finishes_measured();
    if spans.is_empty() {
        skip("no right to SCHED_FIFO here");
        return true;
    }
    expect_stage(home.path(), &spans, &["peer's wake-up"]);
    if !trace.is_empty() {
        let text = Latlab::at(home.path()).arg("explain").arg(only_recording(home.path())).success().stdout;
        // Each wait is among the 20 longest.
        if !text.contains("ran instead") {
            return false;
        }
        assert!(text.contains("ran instead  `hog` the longest in"), "{text}");
        let found = explained(home.path());
        let ran = found["worst"].as_array().expect("episodes").iter().flat_map(|episode| episode["ran"].as_array());
        let hog =
            ran.flatten().filter(|ran| ran["what"] == "hog").max_by_key(|ran| ran["ns"].as_i64()).expect("it ran");
        assert_eq!((&hog["at"], &hog["cpu"]), (&at.into(), &1.into()), "{found:#}");
        assert!(hog["ns"].as_u64().expect("a time") > busy.as_nanos() as u64 / 2, "{found:#}");
    }
    true
}

#[test]
fn a_peer_that_may_not_trace_leaves_the_trace_of_this_host() {
    let Some(setpriv) = program("setpriv").filter(|_| privileged() && can_trace()) else { return };
    let unprivileged = ["--reuid", "65534", "--regid", "65534", "--clear-groups", BINARY];
    if !Command::new(setpriv).args(unprivileged).arg("--version").output().is_ok_and(|ran| ran.status.success()) {
        return skip("user 65534 may not run the binary");
    }
    let target = format!("cmd:setpriv {} agent --stdio", unprivileged.join(" "));
    let lab = Latlab::new().args(["ping", &target, "--peer-addr", "127.0.0.1"]);
    let ran = lab.line("-i 1ms -n 300 --warmup 0 --trace --json").measured();
    let document = ran.json();
    let caveats = document["caveats"].as_array().expect("caveats");
    let missing = caveats.iter().find(|one| one["code"] == "trace-missing").expect("said why");
    assert!(missing["message"].as_str().expect("words").starts_with("the trace of the peer is missing: "), "{missing}");
    let recording = only_recording(ran.directory());
    assert!(recording.join("trace.txt").exists() && !recording.join("trace-peer.txt").exists());
}

#[test]
fn the_probes_of_a_stream_are_traced_and_explained() {
    if !can_trace() {
        return;
    }
    let alone = Latlab::new().line("stream --trace").failure(2).stderr;
    assert!(alone.contains("`--trace` needs `--probe`"), "{alone}");
    let is_traced = |_| {
        let ran = Latlab::new().line("stream --rate 10Mbit/s -d 1s --warmup 0 --probe 1ms --trace").measured();
        let found = explained(ran.directory());
        assert_eq!((&found["kind"], &found["stages"][1]["name"]), (&"stream".into(), &"peer's process".into()));
        let text = fs::read_to_string(only_recording(ran.directory()).join("trace.txt")).expect("a trace");
        text.starts_with("# latlab: from ")
    };
    assert!((0..5).any(is_traced), "no trace of five");
}

#[test]
fn a_trace_is_refused_where_nothing_keeps_it() {
    if can_trace() {
        let ran = Latlab::new().line("ping -n 10 --trace --no-record").failure(3);
        assert!(ran.stderr.contains("leave out `--no-record`"), "{}", ran.stderr);
    }
}

#[test]
fn a_slow_queueing_discipline_is_found_in_the_queue() {
    if !privileged() {
        return;
    }
    let Some(nsenter) = program("nsenter") else { return };
    let _precedence = precedence();
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = begun(home.path(), "ping lab -i 1ms -d 3s --warmup 0 --stamps kernel");
    let threads = format!("/proc/{}/task", running.pid().as_raw_nonzero());
    let outside = fs::read_link("/proc/self/ns/net").expect("Linux has it");
    let namespaces =
        fs::read_dir(threads).expect("it runs").map(|thread| thread.expect("an entry").path().join("ns/net"));
    let inside = namespaces.into_iter().find(|path| fs::read_link(path).is_ok_and(|namespace| namespace != outside));
    // A datagram of 106 B takes 1.2 ms, and one leaves every millisecond.
    let shaper = "tc qdisc replace dev lab0 root tbf rate 700kbit burst 2000 limit 1000000";
    let inside = inside.expect("the sender's namespace");
    let done = Command::new(nsenter)
        .arg(format!("--net={}", inside.display()))
        .args(shaper.split(' '))
        .output()
        .expect("it is there");
    if !done.status.success() {
        return skip(format_args!("{shaper}: {}", String::from_utf8_lossy(&done.stderr).trim()));
    }
    running.finishes_measured();
    let found = explained(home.path());
    let excess = |stage: &Value| stage["excess_ns"].as_f64().expect("a figure");
    let stages = found["stages"].as_array().expect("stages");
    let most = stages.iter().max_by(|one, other| excess(one).total_cmp(&excess(other))).expect("stages");
    assert_eq!(most["name"], "queue", "{stages:#?}");
    let text = Latlab::at(home.path()).arg("explain").arg(only_recording(home.path()));
    text.stdout(contains("tc -s qdisc show")).success();
}
