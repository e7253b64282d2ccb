//! `latlab ping --with-wakeup`: wake-ups are measured during a ping, and slow probes are related to late wake-ups.

use std::path::Path;
use std::thread;
use std::time::Duration;

use latlab::plan::WakeupCpus;
use latlab::probe::Phase;
use latlab::recording::Recording;
use rustix::process::Signal;

use crate::harness::{Latlab, Running, wait_until};
use crate::scheduling::precedence;
use crate::skip::skip;
use crate::store::{only_recording, open, recordings, spool_bytes};
use crate::wakeup::{Row, keep_busy, rows};

fn spooled(home: &Path, events: u64) {
    wait_until("events were spooled", || spool_bytes(home) > 64 * events);
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
    let coincidence = &json["coincidence"];
    assert_eq!(
        (&json["condition"]["with_wakeup_ns"], &coincidence["interval_ns"]),
        (&1_000_000.into(), &1_000_000.into())
    );
    assert_eq!((&coincidence["cpus"], &coincidence["late_beyond"]), (&serde_json::json!([0]), &"p99".into()));
    let path = only_recording(ran.directory());
    let (manifest, probes) = open(&path);
    let wakeups = rows(&Recording::open(&path).expect("opens"));
    assert_eq!((manifest.rows, manifest.wakeup_rows), (Some(220), Some(wakeups.len() as u64)));
    assert!(manifest.run.wakeup.is_some_and(|facts| facts.timer_slack_ns.is_some()));
    assert_eq!(probes.len(), 220);
    assert!(wakeups.iter().all(|row| row.4 == Some(0) && row.3 >= row.2), "{wakeups:?}");
    // 200 probes at intervals of 2 ms last 398 ms. Each slot in that time has a row.
    let measured: Vec<&Row> = wakeups.iter().filter(|row| row.1 == Phase::Measure).collect();
    assert!(measured.len() >= 390 && coincidence["wakeup_latency"]["n"] == measured.len(), "{}", measured.len());
    assert!(measured.windows(2).all(|pair| pair[1].2 - pair[0].2 == 1_000_000), "{measured:?}");
    let name = path.file_name().expect("a name");
    let again =
        Latlab::at(ran.directory()).args(["summary", "--json"]).arg(Path::new("latlab-runs").join(name)).measured();
    assert_eq!(&again.json()["coincidence"], coincidence);
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
    }
    let coincidence = &ran.json()["summaries"][0]["coincidence"];
    assert_eq!((&coincidence["late_beyond"], &coincidence["late_beyond_ns"]), (&"stated".into(), &5e6.into()));
}

#[test]
fn slow_probes_coincide_with_late_wakeups_of_a_busy_cpu() {
    let cpu = thread::available_parallelism().map_or(1, usize::from) - 1;
    if cpu == 0 {
        return skip("there is one CPU only");
    }
    let _precedence = precedence();
    let home = tempfile::tempdir().expect("a temporary directory");
    let line = "ping -i 1ms -d 4s --warmup 0 --peer-cpu 0 --deadline 20ms --with-wakeup 1ms:late=20ms --json";
    let running = begun(home.path(), &format!("{line} --cpu {cpu}"));
    let busy = keep_busy(cpu, Duration::from_millis(120));
    let json = running.finishes_measured().json();
    if busy.is_none() {
        return skip("no right to SCHED_FIFO here");
    }
    let coincidence = &json["coincidence"];
    let number = |key: &str| coincidence[key].as_f64().unwrap_or_else(|| panic!("no {key} in {coincidence:#}"));
    // The CPU is busy for 120 ms. All probes that are due in the first 100 ms miss the deadline of 20 ms.
    assert!(number("slow") >= 50.0 && number("late") >= 50.0, "{coincidence:#}");
    assert!(number("coincident_ratio") >= 0.5, "{coincidence:#}");
    // The CPU is busy for 0.12 of 4 s.
    assert!(number("chance_ratio") <= 0.3, "{coincidence:#}");
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
    let (answered, wakeups) = (count(&json["answered"]), count(&json["coincidence"]["wakeup_latency"]["n"]));
    assert!(answered > 0 && wakeups > 0 && 2 * answered + wakeups >= 150, "{json:#}");
}

#[test]
fn an_interrupt_ends_wakeup_threads_with_a_long_interval() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = begun(home.path(), "ping -d 50s --warmup 0 --with-wakeup 1h --json");
    running.signal(Signal::INT);
    let json = running.exits(130).json();
    assert_eq!((&json["coincidence"]["wakeup_latency"]["n"], &json["coincidence"]["late"]), (&0.into(), &0.into()));
}

#[test]
fn lab_can_be_measured_with_wakeups() {
    if !rustix::process::geteuid().is_root() {
        return skip("namespaces need root");
    }
    let ran = Latlab::new().line("ping lab -n 300 --warmup 0 --cpu 0 --fifo 5 --with-wakeup 1ms --json").success();
    assert!(ran.json()["coincidence"]["wakeup_latency"]["n"].as_u64() > Some(0));
}
