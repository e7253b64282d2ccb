//! `latlab ping --with-wakeup`: wake-ups are measured during a ping, and slow probes are related to late wake-ups.

use std::path::Path;
use std::thread;
use std::time::Duration;

use latlab::plan::WakeupCpus;
use latlab::probe::Phase;
use latlab::recording::Recording;
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Latlab, Running, wait_until};
use crate::scheduling::precedence;
use crate::skip::skip;
use crate::store::{only_recording, open, recordings, spool_bytes};
use crate::wakeup::{Row, keep_busy, rows};

fn spooled(home: &Path, events: u64) {
    wait_until("events were spooled", || spool_bytes(home) > 64 * events);
}

/// What is explained of the wake-ups during the probes of `recording`.
fn watched(home: &Path, recording: &Path) -> Value {
    let ran = Latlab::at(home).args(["explain", "--json"]).arg(home.join(recording)).success();
    ran.json()["runs"][0]["wakeups"].clone()
}

fn begun(home: &Path, line: &str) -> Running {
    let running = Latlab::at(home).line(line).start();
    spooled(home, 300);
    running
}

#[test]
fn one_recording_has_probes_and_wakeups() {
    // A thread without a CPU does not reach its slots before the probes end.
    let _precedence = precedence();
    let ran = Latlab::new().line("ping -i 2ms -n 200 --warmup 20 --cpu 0 --with-wakeup 1ms --json").measured();
    let json = ran.json();
    let path = only_recording(ran.directory());
    let watched = watched(ran.directory(), &path);
    assert_eq!((&json["condition"]["with_wakeup_ns"], &watched["interval_ns"]), (&1_000_000.into(), &1_000_000.into()));
    assert_eq!((&watched["cpus"], &watched["late_from_ns"]), (&serde_json::json!([0]), &Value::Null));
    let (manifest, probes) = open(&path);
    let wakeups = rows(&Recording::open(&path).expect("opens"));
    assert_eq!((manifest.rows, manifest.wakeup_rows), (Some(220), Some(wakeups.len() as u64)));
    assert!(manifest.run.wakeup.is_some_and(|facts| facts.timer_slack_ns.is_some()));
    assert_eq!(probes.len(), 220);
    assert!(wakeups.iter().all(|row| row.4 == Some(0) && row.3 >= row.2), "{wakeups:?}");
    // 200 probes at intervals of 2 ms last 398 ms. Each slot in that time has a row.
    let measured: Vec<&Row> = wakeups.iter().filter(|row| row.1 == Phase::Measure).collect();
    assert!(measured.len() >= 390 && watched["n"] == measured.len(), "{}", measured.len());
    assert!(measured.windows(2).all(|pair| pair[1].2 - pair[0].2 == 1_000_000), "{measured:?}");
}

#[test]
fn an_unpinned_sender_has_a_wakeup_thread_on_each_usable_cpu() {
    let ran =
        Latlab::new().line("ping -d 1s --warmup 0 -s 64,128 --cpu any --with-wakeup 1ms:late=5ms --json").success();
    for path in recordings(ran.directory()) {
        let recording = Recording::open(&path).expect("opens");
        let beside = recording.manifest().spec.concurrent_wakeups().expect("wake-ups").clone();
        let WakeupCpus::These(cpus) = &beside.cpus else { panic!("settled before the run: {beside:?}") };
        assert_eq!(cpus.len(), thread::available_parallelism().map_or(1, usize::from));
        let rows = rows(&recording);
        assert!(cpus.iter().all(|cpu| rows.iter().any(|row| row.4 == Some((*cpu).into()))), "{cpus:?}: {rows:?}");
        assert_eq!(watched(ran.directory(), &path)["late_from_ns"], 5_000_000);
    }
}

#[test]
fn slow_probes_coincide_with_late_wakeups_of_a_busy_cpu() {
    let cpu = thread::available_parallelism().map_or(1, usize::from) - 1;
    if cpu == 0 {
        return skip("there is one CPU only");
    }
    let _precedence = precedence();
    let home = tempfile::tempdir().expect("a temporary directory");
    let line = "ping -d 4s --warmup 0 --peer-cpu 0 --with-wakeup 1ms:late=5ms --json";
    let running = begun(home.path(), &format!("{line} --cpu {cpu}"));
    // Each stall is an episode of its own: in a closed loop a probe is always under way.
    let stalls = (0..12).map_while(|stall| {
        thread::sleep(Duration::from_millis(100 + stall * 37 % 90));
        keep_busy(cpu, Duration::from_millis(25))
    });
    let stalls = stalls.count();
    running.finishes_measured();
    if stalls == 0 {
        return skip("no right to SCHED_FIFO here");
    }
    let ran = Latlab::at(home.path()).args(["explain", "--json"]).arg(only_recording(home.path())).success();
    let json = ran.json();
    let common = json["runs"][0]["common"].as_array().expect("tests");
    let cause = common.iter().find(|cause| cause["test"] == "late_wakeup").unwrap_or_else(|| panic!("{json:#}"));
    let number = |key: &str| cause[key].as_f64().unwrap_or_else(|| panic!("no {key} in {cause:#}"));
    // The CPU is busy for 0.3 of 4 s.
    assert!(number("hits") >= 6.0 && number("hits") > 1.5 * number("expected"), "{cause:#}");
}

#[test]
fn a_killed_run_keeps_probes_and_wakeups() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = begun(home.path(), "ping -i 1ms -d 50s --warmup 0 --cpu 0 --with-wakeup 1ms");
    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    let path = only_recording(home.path());
    let name = path.file_name().expect("a name");
    let said = Latlab::at(home.path()).args(["summary", "--json"]).arg(Path::new("latlab-runs").join(name)).measured();
    let json = said.json();
    assert_eq!(json["ending"], "recovered");
    // At least 300 events were spooled, two of each answered probe. How many are wake-ups depends on which thread had a CPU.
    let count = |value: &serde_json::Value| value.as_u64().unwrap_or_else(|| panic!("no count in {json:#}"));
    let (answered, wakeups) = (count(&json["answered"]), count(&watched(home.path(), &path)["n"]));
    assert!(answered > 0 && wakeups > 0 && 2 * answered + wakeups >= 150, "{json:#}");
}

#[test]
fn an_interrupt_ends_wakeup_threads_with_a_long_interval() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = begun(home.path(), "ping -d 50s --warmup 0 --with-wakeup 1h --json");
    running.signal(Signal::INT);
    running.exits(130);
    let watched = watched(home.path(), &only_recording(home.path()));
    assert_eq!((&watched["n"], &watched["late"]), (&0.into(), &0.into()));
}

#[test]
fn lab_can_be_measured_with_wakeups() {
    if !rustix::process::geteuid().is_root() {
        return skip("namespaces need root");
    }
    let ran = Latlab::new().line("ping lab -n 300 --warmup 0 --cpu 0 --fifo 5 --with-wakeup 1ms --json").success();
    assert!(watched(ran.directory(), &only_recording(ran.directory()))["n"].as_u64() > Some(0));
}
