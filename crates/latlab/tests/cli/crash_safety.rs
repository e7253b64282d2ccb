//! Runs that are interrupted or killed, or whose disk, store or peer fails.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use latlab::clock::{Clock, Monotonic};
use latlab::probe::Fate;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::far_end::local_agent;
use crate::harness::{BINARY, Latlab, Running, check_schema, contains, empty, wait_until};
use crate::processes::{arguments, below, children, is_alive};
use crate::scheduling::precedence;
use crate::serve::serve;
use crate::skip::{program, skip};
use crate::store::{manifest, only_recording, open, recordings, spool_bytes};

/// More bytes than the header and the first few events of a spool.
const SOME_EVENTS: u64 = 1_000;

/// A ping in `directory` that has begun to record, without a warm-up.
#[track_caller]
pub(crate) fn measuring(directory: &Path, line: &str) -> Running {
    under_way(directory, &format!("--warmup 0 {line}"))
}

/// The same with the warm-up that `line` asks for.
#[track_caller]
fn under_way(directory: &Path, line: &str) -> Running {
    let running = Latlab::at(directory).arg("ping").line(line).start();
    wait_until("the run was under way", || spool_bytes(directory) > SOME_EVENTS);
    running
}

/// The reflector process of `running`.
#[track_caller]
fn reflector(running: &Running) -> i32 {
    let all = children(running.pid().as_raw_nonzero().get());
    assert_eq!(all.len(), 1, "one reflector and nothing else");
    assert_eq!(arguments(all[0]).get(1).map(String::as_str), Some("reflector"), "a process of its own");
    all[0]
}

#[test]
fn an_interrupted_run_is_kept() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for schedule in ["", "-i 2ms", "-s 64,128"] {
            let home = tempfile::tempdir().expect("a temporary directory");
            let running = measuring(home.path(), &format!("-d 50s {schedule}"));
            let reflector = reflector(&running);
            running.signal(signal);
            let ran = running.exits(code);
            assert!(ran.stdout.contains("round trip delay"), "no summary:\n{}", ran.stdout);
            assert!(!is_alive(reflector), "the reflector outlived its run");
            for recording in recordings(home.path()) {
                assert_eq!(manifest(&recording)["ending"], "interrupted");
                assert!(!recording.join("events.spool").exists(), "the spool is not closed");
            }
            let rows: usize = recordings(home.path()).iter().map(|recording| open(recording).1.len()).sum();
            assert!(rows > 10, "{rows}");
        }
    }
}

#[test]
fn an_interrupt_during_the_warm_up_is_not_an_error() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = under_way(home.path(), "-d 50s -i 20ms --warmup 1m");
    running.signal(Signal::INT);
    let ran = running.exits(130);
    assert!(!ran.stderr.contains("error"), "{}", ran.stderr);
    assert_eq!(manifest(&only_recording(home.path()))["ending"], "interrupted");
}

#[test]
fn an_interrupt_before_the_session_opens_is_not_an_error() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = silent.local_addr().expect("bound").to_string();
    let running = Latlab::at(home.path()).args(["ping", &address]).start();
    silent.recv(&mut [0; 200]).expect("a HELLO");
    running.signal(Signal::INT);
    let ran = running.exits(130);
    assert!(ran.stderr.contains("note: interrupted before anything was measured"), "{}", ran.stderr);
    assert!(recordings(home.path()).is_empty(), "nothing was measured");
}

#[test]
fn an_interrupt_ends_the_wait_for_a_silent_target() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for options in ["", "-i 10ms", "--wait spin"] {
            let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            let address = silent.local_addr().expect("bound").to_string();
            let running = Latlab::at(home.path()).args(["ping", &address]).line(options).start();
            silent.recv(&mut [0; 200]).expect("a HELLO");
            let signalled = Instant::now();
            running.signal(signal);
            running.exits(code);
            // The promise is 100 ms. Without an interrupt a target is given up after 3 s.
            assert!(signalled.elapsed() < Duration::from_millis(1_500), "{options}: {:?}", signalled.elapsed());
            assert!(recordings(home.path()).is_empty(), "{options}");
        }
    }
}

#[test]
fn an_interrupted_run_prints_its_json_document() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = measuring(home.path(), "-d 50s -i 2ms --json");
    running.signal(Signal::INT);
    let ran = running.exits(130);
    check_schema(&ran.json(), "summary/1");
    assert_eq!(ran.json()["ending"], "interrupted");
}

/// timeout(1) signals the whole process group, as a terminal does.
#[test]
fn sigint_to_the_process_group_does_not_reach_the_reflector() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let ran = Command::new("timeout")
        .args(["--signal=INT", "2", BINARY])
        .args("ping -d 50s -i 2ms --warmup 0 --json".split(' '))
        .current_dir(home.path())
        .output()
        .expect("timeout(1) is installed");
    let summary: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("one document");
    assert_eq!((&summary["ending"], &summary["lost"]), (&"interrupted".into(), &0.into()), "{summary:#}");
    let manifest = manifest(&only_recording(home.path()));
    assert_eq!(manifest["run"]["reflector"]["answered"], summary["answered"], "the reflector answered to the end");
}

#[test]
fn a_second_interrupt_ends_latlab_at_once() {
    let _precedence = precedence();
    let home = tempfile::tempdir().expect("a temporary directory");
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = silent.local_addr().expect("bound").to_string();
    let line = "--protocol echo --timeout 1m -d 1h";
    let running = Latlab::at(home.path()).args(["ping", &address, "--warmup", "0"]).line(line).start();
    silent.recv(&mut [0; 100]).expect("a probe");
    // After the first signal latlab waits a second for an answer.
    running.signal_until_it_ends(Signal::INT);
    running.exits(130);
    let recording = only_recording(home.path());
    let ran = Latlab::at(home.path()).arg("summary").arg(&recording).success();
    assert!(ran.stderr.contains("finished an interrupted recording"), "{}", ran.stderr);
}

#[test]
fn sigkill_loses_at_most_the_last_three_seconds() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = measuring(home.path(), "-d 50s -i 2ms");
    let reflector = reflector(&running);
    thread::sleep(Duration::from_millis(1_200));
    running.signal(Signal::KILL);
    let killed_ns = Monotonic.now().as_nanos();
    running.killed_by(Signal::KILL);
    wait_until("the reflector had ended", || !is_alive(reflector));

    let recording = only_recording(home.path());
    let lab = Latlab::at(home.path()).arg("summary").arg(&recording).stdout(contains("round trip delay"));
    lab.stderr(contains("note: finished an interrupted recording: ")).measured();
    let (manifest, rows) = open(&recording);
    assert_eq!(manifest.ending, latlab::recording::manifest::RunEnding::Recovered);
    let last_ns = rows.iter().filter_map(|row| row.sent).map(|sent| sent.as_nanos()).max().expect("something was sent");
    assert!(killed_ns - last_ns <= 3_000_000_000, "{} ms are lost", (killed_ns - last_ns) / 1_000_000);
    assert!(rows.iter().all(|row| row.fate == Fate::Answered), "a probe in flight does not count as lost");
    // It is recovered once: the second summary has no note.
    Latlab::at(home.path()).arg("summary").arg(&recording).stderr(empty()).measured();
}

#[test]
fn the_removal_of_the_store_ends_the_run() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = measuring(home.path(), "-d 50s -i 2ms");
    fs::remove_dir_all(home.path().join("latlab-runs")).expect("removed");
    let ran = running.exits(3);
    assert!(ran.stderr.contains("was removed while it was being measured"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\n  hint: "), "{}", ran.stderr);
    let (manifest, rows) = open(&only_recording(home.path()));
    assert_eq!(manifest.ending, latlab::recording::manifest::RunEnding::Failed);
    assert!(rows.len() > 10, "what was measured is written again");
}

/// Exit code, stdout and stderr of `script` with `arguments` in a mount namespace of its own; `$0` is latlab. `None` if the
/// test is skipped.
pub(crate) fn in_own_mounts(directory: &Path, script: &str, arguments: &[&str]) -> Option<(Option<i32>, String)> {
    let unshare = program("unshare")?;
    let possible =
        Command::new(&unshare).args(["--mount", "true"]).stderr(Stdio::null()).status().expect("it is there");
    if !possible.success() {
        skip("mounts need root");
        return None;
    }
    let output = Command::new(unshare)
        .args(["--mount", "--", "sh", "-c", script, BINARY])
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("it has just run");
    let printed = [output.stdout, output.stderr].map(|stream| String::from_utf8_lossy(&stream).into_owned()).concat();
    assert!(!printed.contains("panicked") && !printed.contains("os error"), "{printed}");
    Some((output.status.code(), printed))
}

#[test]
fn a_read_only_store_is_refused_before_anything_is_sent() {
    let target = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    target.set_nonblocking(true).expect("a socket of our own");
    let address = target.local_addr().expect("bound").to_string();
    let script = "mkdir ro && mount -t tmpfs -o ro tmpfs ro && exec \"$0\" ping -n 5 \"$@\"";
    for place in [["--store", "ro"], ["--store", "ro/below"], ["-o", "ro/new"]] {
        let home = tempfile::tempdir().expect("a temporary directory");
        let Some((code, printed)) = in_own_mounts(home.path(), script, &[&[&*address][..], &place].concat()) else {
            return;
        };
        assert_eq!(code, Some(3), "{printed}");
        assert!(printed.contains("`ro") && printed.contains("cause: read-only file system (EROFS)"), "{printed}");
        assert!(printed.contains("hint: "), "{printed}");
    }
    assert!(target.recv(&mut [0; 2_048]).is_err(), "something was sent");
}

#[test]
fn the_death_of_the_reflector_process_ends_the_run_with_exit_code_4() {
    for line in ["-d 50s", "-d 50s -i 10ms -s 64,128"] {
        let home = tempfile::tempdir().expect("a temporary directory");
        let running = measuring(home.path(), line);
        let reflector = reflector(&running);
        let killed = Instant::now();
        kill_process(Pid::from_raw(reflector).expect("a pid"), Signal::KILL).expect("our own grandchild");
        let ran = running.exits(4);
        assert!(killed.elapsed() < Duration::from_secs(20), "it went on for {:?}", killed.elapsed());
        assert!(ran.stdout.contains("fatal: the reflector process of this run ended"), "{line}: {}", ran.stdout);
        let mut answered = 0;
        for recording in recordings(home.path()) {
            let manifest = manifest(&recording);
            assert_eq!(
                (&manifest["ending"], &manifest["run"]["reflector_died"]),
                (&"failed".into(), &"killed by SIGKILL".into())
            );
            assert!(manifest["run"]["reflector"].is_null(), "a dead reflector reports no counters");
            let summary = Latlab::at(home.path()).arg("summary").arg(&recording).arg("--json").failure(4).json();
            answered += summary["answered"].as_u64().expect("a count");
            assert_eq!(summary["caveats"][0]["code"], "answers-ended");
        }
        assert!(answered > 0, "{line}: nothing was measured before");
    }
}

/// latlab did not start it, and sees only that no answer comes any more.
#[test]
fn the_death_of_a_reflector_of_another_process_leads_to_exit_code_4() {
    for line in ["-d 3s --timeout 100ms", "-d 3s -i 10ms --timeout 100ms"] {
        let home = tempfile::tempdir().expect("a temporary directory");
        let (reflector, address) = serve(home.path(), "");
        let running = measuring(home.path(), &format!("{address} {line} --json"));
        reflector.signal(Signal::KILL);
        reflector.killed_by(Signal::KILL);
        let ran = running.exits(4);
        let summary = ran.json();
        let count = |key: &str| summary[key].as_u64().expect("a count");
        assert!(count("answered") > 0 && count("lost") > 0, "{line}: {summary:#}");
        let is_named = |caveat: &Value| caveat["code"] == "answers-ended" && caveat["severity"] == "fatal";
        assert!(summary["caveats"].as_array().expect("a list").iter().any(is_named), "{line}: {summary:#}");
        let manifest = manifest(&only_recording(home.path()));
        assert_eq!(manifest["ending"], "completed");
        assert!(manifest["run"]["reflector_died"].is_null(), "{manifest:#}");
        let refused = manifest["run"]["socket_errors"]["ECONNREFUSED"].as_u64();
        assert!(refused > Some(0) && refused <= Some(count("lost")), "CLOSE is no probe: {refused:?} {line}");
        assert!(ran.stderr.contains("no probe was answered after the first "), "{line}: {}", ran.stderr);
    }
}

/// The reflector of an agent: on another host, from which latlab learns it after the run.
#[test]
fn the_death_of_the_reflector_of_an_agent_leads_to_exit_code_4() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let lab = Latlab::at(home.path()).args(["ping", &local_agent()]);
    let running = lab.line("--peer-addr 127.0.0.1 --warmup 0 -d 3s -i 10ms").start();
    wait_until("the run was under way", || spool_bytes(home.path()) > SOME_EVENTS);
    let reflector = below(running.pid().as_raw_nonzero().get(), &["reflector"]).expect("it runs");
    kill_process(Pid::from_raw(reflector).expect("a pid"), Signal::KILL).expect("our own descendant");
    let ran = running.exits(4);
    assert!(ran.stdout.contains("fatal: the reflector process of this run ended"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("no probe was answered after"), "one caveat for one cause: {}", ran.stdout);
}
