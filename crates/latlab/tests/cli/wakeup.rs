//! `latlab wakeup`: slots, ways of sleeping, CPUs, late wake-ups; and experiments of wake-ups.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use latlab::plan::{Via, WakeupCpus};
use latlab::probe::Phase;
use latlab::recording::{Recording, WakeupBatch};
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{BINARY, Latlab, contains, wait_until};
use crate::scheduling::precedence;
use crate::skip::skip;
use crate::store::{only_recording, recordings};

/// `(seq, phase, due, woke, cpu)` of a row.
pub(crate) type Row = (u64, Phase, i64, i64, Option<i64>);

pub(crate) fn rows(recording: &Recording) -> Vec<Row> {
    let batches = recording.wakeups().expect("opens").map(|batch| batch.expect("reads"));
    let row = |batch: &WakeupBatch, row: usize| {
        let (due, woke) = (batch.due_ns.values[row], batch.woke_ns.values[row]);
        (batch.seq.values[row] as u64, batch.phase.get(row), due, woke, batch.cpu.get(row))
    };
    batches.flat_map(|batch| (0..batch.rows).map(|number| row(&batch, number)).collect::<Vec<_>>()).collect()
}

/// The rows of the measuring phase.
fn measured(recording: &Recording) -> Vec<Row> {
    rows(recording).into_iter().filter(|row| row.1 == Phase::Measure).collect()
}

fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn every_slot_has_a_row_and_slots_are_one_interval_apart() {
    let ran = Latlab::new().line("wakeup -i 2ms -n 100 --warmup 10 --json").success();
    let json = ran.json();
    assert_eq!((&json["kind"], &json["condition"]["via"]), (&"wakeup".into(), &"clock_nanosleep".into()));
    assert_eq!(json["metrics"]["wakeup_latency"]["n"], 100);
    assert!(json["wakeups"]["timer_slack_ns"].as_i64() > Some(0), "{json:#}");
    let recording = Recording::open(&only_recording(ran.directory())).expect("opens");
    assert_eq!((recording.manifest().rows, recording.manifest().wakeup_rows), (Some(110), Some(110)));
    let rows = rows(&recording);
    assert_eq!(rows.len(), 110);
    assert!(rows.iter().zip(0..).all(|(row, seq)| row.0 == seq && row.3 >= row.2), "{rows:?}");
    let measured = measured(&recording);
    assert!(measured.windows(2).all(|pair| pair[1].2 - pair[0].2 == 2_000_000), "{measured:?}");
}

#[test]
fn no_way_of_sleeping_wakes_before_it_is_due() {
    let all = Via::ALL.map(Via::word).join(",");
    for relative in ["", " --relative"] {
        let ran = Latlab::new().line(&format!("wakeup -i 3ms -n 20 --warmup 0 --via {all}{relative} --json")).success();
        assert_eq!(ran.json()["summaries"].as_array().map(Vec::len), Some(Via::ALL.len()));
        for path in recordings(ran.directory()) {
            let recording = Recording::open(&path).expect("opens");
            let rows = measured(&recording);
            let via = recording.manifest().spec.wakeup().map(|wakeup| wakeup.via);
            assert_eq!(rows.len(), 20, "{via:?}");
            assert!(rows.iter().all(|row| row.3 >= row.2), "{via:?}{relative}: {rows:?}");
            if !relative.is_empty() {
                assert!(rows.windows(2).all(|pair| pair[1].2 >= pair[0].3 + 3_000_000), "{via:?}: {rows:?}");
            }
        }
    }
}

#[test]
fn each_cpu_has_a_thread_and_a_row_in_the_summary() {
    let ran = Latlab::new().line("wakeup -i 2ms -n 50 --warmup 0 --cpu all --json").success();
    let of_cpus = ran.json()["wakeups"]["cpus"].as_array().expect("a list").clone();
    let recording = Recording::open(&only_recording(ran.directory())).expect("opens");
    let spec = recording.manifest().spec.wakeup().expect("wake-ups").clone();
    let WakeupCpus::These(cpus) = &spec.cpus else { panic!("settled before the run: {:?}", spec.cpus) };
    for cpu in cpus {
        let of_cpu: Vec<_> = measured(&recording).into_iter().filter(|row| row.4 == Some((*cpu).into())).collect();
        assert!(of_cpu.iter().zip(0..).all(|(row, seq)| row.0 == seq) && of_cpu.len() == 50, "{cpu}: {of_cpu:?}");
    }
    if cpus.len() > 1 {
        assert_eq!(of_cpus.len(), cpus.len());
        assert!(of_cpus.iter().all(|one| one["wakeup_latency"]["n"] == 50), "{of_cpus:?}");
    }
}

#[test]
fn no_slot_is_lost_and_overrun_slots_are_counted() {
    // A thread on each of at most eight CPUs, with a slot every millisecond.
    let last = cpus().min(8) - 1;
    let ran = Latlab::new().line(&format!("wakeup -i 1ms -d 2s --warmup 0 --cpu 0-{last} --json")).success();
    let recording = Recording::open(&only_recording(ran.directory())).expect("opens");
    assert_eq!(recording.manifest().run.gap_events, 0);
    let rows = measured(&recording);
    assert_eq!(rows.len(), 2_000 * (last + 1));
    let past = |cpu: i64| {
        let of_cpu: Vec<_> = rows.iter().filter(|row| row.4 == Some(cpu)).collect();
        of_cpu.windows(2).filter(|pair| pair[0].3 > pair[1].2).count() as u64
    };
    let past: u64 = (0..=last as i64).map(past).sum();
    assert_eq!(ran.json()["wakeups"]["overrun_slots"], past);
    let is_reported =
        ran.json()["caveats"].as_array().expect("a list").iter().any(|one| one["code"] == "overrun-slots");
    assert_eq!(is_reported, past > 0);
}

#[test]
fn slots_that_an_overloaded_thread_gives_up_are_counted() {
    // A sleep for an overrun slot may cost more than 6 µs, as in virtual machines. Then not all slots are reached.
    let ran = Latlab::new().line("wakeup -i 2us -d 500ms --warmup 0 --cpu 0 --json").success();
    let recording = Recording::open(&only_recording(ran.directory())).expect("opens");
    let rows = measured(&recording);
    let given_up = recording.manifest().run.wakeup.as_ref().expect("facts").not_slept;
    assert_eq!(rows.len() as u64 + given_up, 250_000);
    let last_due = rows[0].2 + 499_998_000;
    assert!(rows[..rows.len() - 1].iter().all(|row| row.3 - last_due <= 1_000_000_000), "{} rows", rows.len());
    assert_eq!(ran.json()["wakeups"]["not_slept"], given_up);
    let is_reported = ran.json()["caveats"]
        .as_array()
        .expect("a list")
        .iter()
        .any(|one| one["message"].as_str().is_some_and(|words| words.contains("given up")));
    assert_eq!(is_reported, given_up > 0);
}

#[test]
fn break_ends_the_run_at_a_late_wakeup() {
    // Every wake-up is more than 1 ns late.
    let ran = Latlab::new().line("wakeup -i 1ms -d 20s --warmup 5 --break 1ns --json").success();
    let json = ran.json();
    assert_eq!((&json["metrics"]["wakeup_latency"]["n"], &json["wakeups"]["broke"]["seq"]), (&1.into(), &5.into()));
    assert!(json["caveats"].as_array().expect("a list").iter().any(|one| one["code"] == "broke"), "{json:#}");
}

#[test]
fn an_interrupt_ends_every_way_of_sleeping() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for via in Via::ALL {
        let store = home.path().join(via.word());
        std::fs::create_dir(&store).expect("made");
        let running = Latlab::at(&store).line(&format!("wakeup -i 1h -n 2 --warmup 0 --via {}", via.word())).start();
        wait_until("the run began", || !recordings(&store).is_empty());
        running.signal(Signal::INT);
        // Otherwise the deadline of the harness ends the test.
        running.exits(130);
    }
}

#[test]
fn a_killed_run_keeps_its_wakeups() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).line("wakeup -i 1ms --warmup 0 -d 50s").start();
    wait_until("wake-ups were spooled", || {
        let spools = recordings(home.path()).into_iter().map(|recording| recording.join("events.spool"));
        spools.filter_map(|spool| std::fs::metadata(spool).ok()).any(|spool| spool.len() > 64 * 100)
    });
    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    let path = only_recording(home.path());
    let name = path.file_name().expect("a name").to_owned();
    let said = Latlab::at(home.path()).args(["summary", "--json"]).arg(Path::new("latlab-runs").join(name)).success();
    assert_eq!(said.json()["ending"], "recovered");
    let wakeups = &said.json()["wakeups"];
    assert!(wakeups["not_slept"].is_null() && wakeups["timer_slack_ns"].is_number(), "{wakeups:#}");
    assert!(said.json()["metrics"]["wakeup_latency"]["n"].as_u64() >= Some(99));
}

/// Keeps CPU `cpu` busy for `span` with a SCHED_FIFO thread. Begin and end in ns of CLOCK_MONOTONIC; `None` without the
/// right to SCHED_FIFO.
pub(crate) fn keep_busy(cpu: usize, span: Duration) -> Option<(i64, i64)> {
    let hogging = thread::Builder::new().name("hog".into()).spawn(move || {
        let mut only = rustix::thread::CpuSet::new();
        only.set(cpu);
        rustix::thread::sched_setaffinity(None, &only).ok()?;
        latlab_sys::scheduler::set_fifo(50).ok()?;
        let begin = latlab_sys::clock::monotonic_ns();
        while latlab_sys::clock::monotonic_ns() - begin < span.as_nanos() as i64 {
            std::hint::spin_loop();
        }
        Some((begin, latlab_sys::clock::monotonic_ns()))
    });
    hogging.expect("a thread").join().expect("no panic")
}

#[test]
fn a_busy_cpu_delays_the_wakeups_of_its_own_thread_for_its_time() {
    let cpu = cpus() - 1;
    if cpu == 0 {
        return skip("there is one CPU only");
    }
    let _precedence = precedence();
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).line("wakeup -i 1ms -d 3s --warmup 0 --cpu all").start();
    wait_until("wake-ups were spooled", || {
        let spools = recordings(home.path()).into_iter().map(|recording| recording.join("events.spool"));
        spools.filter_map(|spool| std::fs::metadata(spool).ok()).any(|spool| spool.len() > 64 * 100)
    });
    let busy = keep_busy(cpu, Duration::from_millis(60));
    running.exits(0);
    let Some((begin, end)) = busy else { return skip("no right to SCHED_FIFO here") };
    let rows = measured(&Recording::open(&only_recording(home.path())).expect("opens"));
    let during: Vec<_> =
        rows.iter().filter(|row| row.4 == Some(cpu as i64) && row.2 > begin && row.2 < end - 10_000_000).collect();
    // Slots are due every millisecond while the CPU is busy; each wake-up waits for the end of that time.
    assert!(during.len() >= 40, "{}", during.len());
    let waited = during.iter().filter(|row| row.3 >= end - 1_000_000).count();
    assert!(waited * 10 >= during.len() * 9, "{waited} of {}: {during:?}", during.len());
}

#[test]
fn fifo_without_the_right_is_refused_with_a_hint() {
    if rustix::process::geteuid().is_root() {
        let mut latlab = Command::new(BINARY);
        latlab.args(["wakeup", "--fifo", "10", "-n", "1"]).uid(65_534).gid(65_534).stdin(Stdio::null());
        latlab.current_dir("/tmp").args(["--no-record"]);
        match latlab.output() {
            Ok(output) if output.status.code() == Some(3) => {
                let is_reported = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(is_reported.contains("setcap") || is_reported.contains("ulimit"), "{is_reported}");
            }
            Ok(output) => panic!("{output:?}"),
            Err(error) => skip(format_args!("the user `nobody` may not run the binary: {error}")),
        }
        return;
    }
    Latlab::new().line("wakeup --fifo 10 -n 1").stderr(contains("hint")).failure(3);
}

fn lab(file: &str) -> Latlab {
    Latlab::new().file("x.toml", file)
}

/// The manifests of the runs of the only experiment in the store of `directory`.
fn manifests(directory: &Path) -> Vec<Value> {
    let experiments: Vec<PathBuf> = recordings(directory);
    let [experiment] = &experiments[..] else { panic!("{experiments:?}") };
    let runs = fs::read_dir(experiment.join("runs")).expect("runs").map(|run| run.expect("entry").path());
    let read = |run: PathBuf| {
        let text = fs::read_to_string(run.join("manifest.json")).expect("a manifest");
        serde_json::from_str(&text).expect("JSON")
    };
    runs.map(read).collect()
}

#[test]
fn a_run_on_all_cpus_is_one_observation_also_after_a_pinned_run() {
    let file = "kind = \"wakeup\"\n[base]\ncount = 10\nwarmup = \"0\"\ninterval = \"1ms\"\n\
                [factors]\ncpu = [\"0\", \"all\"]\nmlock = [true, false]\n\
                [design]\nruns = 2\norder = \"listed\"\nsettle = \"0s\"\n";
    let ran = lab(file).line("run x.toml --json -q").success();
    let groups = ran.json()["groups"].as_array().expect("groups").clone();
    assert_eq!(groups.iter().map(|group| group["runs"].as_u64()).collect::<Vec<_>>(), [Some(2); 4], "{groups:#?}");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    for manifest in manifests(ran.directory()) {
        // Each run on all CPUs follows a run that was pinned to CPU 0.
        let threads = if manifest["experiment"]["factors"]["cpu"] == "all" { cpus } else { 1 };
        assert_eq!(manifest["wakeup_rows"].as_u64(), Some(10 * threads), "{}", manifest["experiment"]);
    }
}

/// The median of how late five wake-ups were, in nanoseconds.
fn median_lateness(options: &str) -> i64 {
    let line = format!("wakeup -n 5 --warmup 0 --cpu 0 --set timer-slack=1ns --json {options}");
    let ran = Latlab::new().line(&line).success();
    let recording = Recording::open(&only_recording(ran.directory())).expect("opens");
    let mut late: Vec<i64> = measured(&recording).iter().map(|row| row.3 - row.2).collect();
    late.sort_unstable();
    late[late.len() / 2]
}

/// The kernel may add 0.1 % to the timeout of `select` (fs/select.c): 1 ms of 1 s. An interrupt within this time ends the
/// sleep, so that less is seen on a busy CPU: 300 µs are asserted, and the sleeps are repeated while interrupts hide them.
#[test]
fn select_returns_later_than_clock_nanosleep_by_its_timeout_slack() {
    let _precedence = precedence();
    let mut slacks_ns = Vec::new();
    while slacks_ns.len() < 5 && slacks_ns.last().is_none_or(|slack_ns| *slack_ns <= 300_000) {
        slacks_ns.push(median_lateness("-i 1s --via select") - median_lateness("-i 100ms --via clock_nanosleep"));
    }
    assert!(slacks_ns.last() > Some(&300_000), "slack of each repetition in ns: {slacks_ns:?}");
}
