//! `latlab wakeup --break`: the kernel's trace around the late wake-up is recorded, and no trace instance is left.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use latlab::host::tracing::{self, Tracing};
use latlab::recording::trace::{Trace, TraceEvent};
use latlab_sys::errno::explain;
use rustix::process::Signal;

use crate::harness::{BINARY, Latlab, wait_until};
use crate::scheduling::precedence;
use crate::skip::skip;
use crate::store::{only_recording, spool_bytes};
use crate::wakeup::keep_busy;

/// Whether this user may use tracefs. If not, the test is skipped.
pub(crate) fn can_trace() -> bool {
    match tracing::instances() {
        Ok(_) => true,
        Err(error) => {
            skip(format_args!("tracefs: {}", explain(&error)));
            false
        }
    }
}

/// Whether tracefs has an instance of process `pid`.
fn traces(pid: u32) -> bool {
    let names = tracing::instances().expect("read before");
    names.iter().any(|name| name.starts_with(&format!("latlab-{pid}-")))
}

#[test]
fn a_trace_has_the_scheduler_events_on_clock_monotonic() {
    if !can_trace() {
        return;
    }
    let mut tracing = Tracing::begin().expect("this user may trace");
    assert!(traces(std::process::id()));
    let before = latlab_sys::clock::monotonic_ns();
    thread::sleep(Duration::from_millis(5));
    let after = latlab_sys::clock::monotonic_ns();
    let mut bytes = Vec::new();
    while tracing.drain(&mut bytes).expect("reads") {}
    let text = String::from_utf8_lossy(&bytes);
    let events = text.lines().filter_map(TraceEvent::parse);
    let during = events.filter(|event| event.event == "sched_switch" && (before..after).contains(&event.at.0));
    assert!(during.count() > 0, "{text}");
    _ = tracing::remove_left();
    assert!(traces(std::process::id()), "its process is alive");
    drop(tracing);
    assert!(!traces(std::process::id()));
}

#[test]
fn the_recording_has_the_trace_around_the_late_wakeup() {
    // Busy neighbours may make the kernel overwrite it.
    assert!(!can_trace() || (0..5).any(|_| has_the_trace_around_the_late_wakeup()), "no trace, five times");
}

/// Whether a run that ends at a late wake-up has a trace of it.
fn has_the_trace_around_the_late_wakeup() -> bool {
    let running = Latlab::new().line("wakeup -i 1ms -d 20s --warmup 5 --break 1ns --json").start();
    let pid = running.pid().as_raw_nonzero().get().unsigned_abs();
    let ran = running.exits(0);
    assert!(!traces(pid), "its instance is gone");
    let broke = &ran.json()["wakeups"]["broke"];
    assert_eq!(broke["seq"], 5);
    let recording = only_recording(ran.directory());
    let text = fs::read_to_string(recording.join("trace.txt")).expect("a trace");
    let (due, woke) = (broke["due_ns"].as_i64().expect("a time"), broke["woke_ns"].as_i64().expect("a time"));
    let trace = Trace::of(&text);
    let during = trace.segments.iter().filter(|segment| segment.from_ns < woke && due < segment.to_ns);
    trace.covers(due, woke + 1_000_000) && during.filter(|segment| !segment.is_interrupt).count() > 0
}

#[test]
fn the_trace_has_the_thread_that_caused_the_late_wakeup() {
    let cpu = thread::available_parallelism().map_or(1, usize::from) - 1;
    if cpu == 0 {
        return skip("there is one CPU only");
    }
    if !can_trace() {
        return;
    }
    let _precedence = precedence();
    // Only a thread of higher priority delays this one, or the hypervisor: in that case the run is repeated.
    for _ in 0..5 {
        let home = tempfile::tempdir().expect("a temporary directory");
        let line = format!("wakeup -i 1ms -d 30s --warmup 0 --break 40ms --fifo 40 --cpu {cpu} --json");
        let running = Latlab::at(home.path()).line(&line).start();
        wait_until("wake-ups were spooled", || spool_bytes(home.path()) > 64 * 100);
        let Some((begin, end)) = keep_busy(cpu, Duration::from_millis(80)) else {
            running.signal(Signal::INT);
            running.exits(130);
            return skip("no right to SCHED_FIFO here");
        };
        let late = running.exits(0).json()["wakeups"]["broke"].clone();
        let (due, woke) = (late["due_ns"].as_i64().expect("it broke"), late["woke_ns"].as_i64().expect("it broke"));
        if woke < begin || due > end {
            continue;
        }
        let text = fs::read_to_string(only_recording(home.path()).join("trace.txt")).expect("a trace");
        if text.is_empty() {
            // Busy neighbours made the kernel overwrite it.
            continue;
        }
        // SCHED_FIFO 50 is priority 49 in the kernel.
        assert!(text.lines().any(|line| line.contains("sched_switch") && line.contains("prev_prio=49")), "{text}");
        return;
    }
    panic!("a wake-up was later than 40 ms five times, before the CPU was kept busy");
}

#[test]
fn the_next_latlab_removes_the_trace_instance_of_a_killed_run() {
    if can_trace() {
        // Processes of other tests may be the next latlab, which then reports the removal on its stderr.
        assert!((0..20).any(|_| removes_what_is_left()), "another latlab was the next 20 times in a row");
    }
}

/// Whether the latlab that this test starts after the death of a run reports that it removed the trace instance.
fn removes_what_is_left() -> bool {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).line("wakeup -i 1ms -d 50s --warmup 0 --break 40s").start();
    let pid = running.pid().as_raw_nonzero().get().unsigned_abs();
    wait_until("it traces", || traces(pid));
    Latlab::at(home.path()).line("list").success();
    assert!(traces(pid), "that of a live process stays");
    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    let printed = Latlab::at(home.path()).line("list").success().stderr;
    assert!(!traces(pid));
    printed.contains(&format!("`latlab-{pid}-"))
}

#[test]
fn without_a_recording_the_trace_is_reported_as_missing() {
    if can_trace() {
        let ran = Latlab::new().line("wakeup -i 1ms -d 20s --warmup 0 --break 1ns --no-record --json").success();
        let document = ran.json();
        assert!(document["wakeups"]["broke"].is_object(), "{document:#}");
        let missing =
            document["caveats"].as_array().expect("caveats").iter().find(|one| one["code"] == "trace-missing");
        let why = missing.expect("said why")["message"].as_str().expect("words");
        assert!(why.contains("nothing is recorded"), "{why}");
    }
}

#[test]
fn without_the_right_to_trace_the_reason_is_reported() {
    let mut latlab = Command::new(BINARY);
    latlab.args(["wakeup", "-i", "1ms", "-n", "50", "--warmup", "0", "--break", "1ns", "--no-record", "--json"]);
    latlab.current_dir("/tmp").stdin(Stdio::null());
    if rustix::process::geteuid().is_root() {
        latlab.uid(65_534).gid(65_534);
    } else if tracing::instances().is_ok() {
        return skip("this user may trace");
    }
    match latlab.output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.contains("\"trace-missing\"") && text.contains("EPERM"), "{output:?}");
        }
        Err(error) => skip(format_args!("the user `nobody` may not run the binary: {error}")),
    }
}
