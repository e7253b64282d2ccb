//! `--load` and `latlab load`: offered and achieved rates, and the end of each load with its command.

use std::fs;
use std::process::Command;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{BINARY, Latlab, Running, check_schema, contains, empty, wait_until, warnings_at_most};
use crate::lab::privileged;
use crate::processes::{arguments, below, children, is_alive};
use crate::scheduling::precedence;
use crate::skip::{program, skip};

/// Waits until `running` has `count` processes of loads.
fn stressors(running: &Running, count: usize) -> Vec<i32> {
    let mut found = Vec::new();
    wait_until("the loads' processes are there", || {
        let pid = running.pid().as_raw_nonzero().get();
        found = children(pid)
            .into_iter()
            .filter(|pid| arguments(*pid).get(1).is_some_and(|word| word == "stressor"))
            .collect();
        found.len() == count
    });
    found
}

/// CPU time of all threads of `pid` in seconds, from /proc.
fn cpu_seconds(pid: i32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a running process");
    let fields: Vec<&str> = text.rsplit_once(')').expect("a name in parentheses").1.split_whitespace().collect();
    let ticks: u64 = [fields[11], fields[12]].iter().map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
    ticks as f64 / 100.0
}

fn figure(load: &Value, key: &str) -> f64 {
    load[key].as_f64().unwrap_or_else(|| panic!("{key}: {load:#}"))
}

#[test]
fn the_json_document_has_the_offered_and_the_achieved_load() {
    let line =
        "load --load cpu=20%:cpus=0 --load heaters=1:cpus=0 --load mem=50MB/s:cpus=0,buffer=2MiB -d 1500ms --json";
    let document = Latlab::new().line(line).stderr(warnings_at_most()).success().json();
    check_schema(&document, "load/1");
    let loads = document["loads"].as_array().expect("a list");
    let asked: Vec<_> = loads.iter().map(|load| (load["kind"].clone(), load["offered"].clone())).collect();
    assert_eq!(json!(asked), json!([["cpu", 0.2], ["heaters", 1.0], ["mem", 5e7]]));
    for load in loads {
        assert!(figure(load, "measured_ns") > 0.0 && figure(load, "achieved") > 0.0, "{load:#}");
        assert!(figure(load, "min") <= figure(load, "max"), "{load:#}");
        assert_eq!((&load["at"], &load["cpus"]), (&json!("local"), &json!([0])));
        // Other processes may use this CPU. A load that was not reached must have its caveat.
        let promise = if load["kind"] == "cpu" { 0.012 } else { 0.05 * figure(load, "offered") };
        let missed = load["kind"] != "heaters" && (figure(load, "achieved") - figure(load, "offered")).abs() > promise;
        let words = load["load"].as_str().expect("words");
        let printed = document["caveats"].to_string().contains(words);
        assert!(printed || !missed, "{document:#}");
    }
}

#[test]
fn the_achieved_cpu_share_agrees_with_the_cpu_time_of_the_kernel() {
    // On a busy CPU the share changes from second to second, and both look at different ones.
    let _precedence = precedence();
    let running = Latlab::new().line("load --load cpu=30%:cpus=0 -d 3s --json").stderr(warnings_at_most()).start();
    let stressor = stressors(&running, 1)[0];
    // Measuring begins after one second of settling.
    let start = Instant::now();
    wait_until("it has settled", || start.elapsed().as_millis() > 1_300);
    let (from, used) = (Instant::now(), cpu_seconds(stressor));
    wait_until("a second has passed", || from.elapsed().as_millis() > 1_000);
    let share = (cpu_seconds(stressor) - used) / from.elapsed().as_secs_f64();
    let document = running.exits(0).json();
    let load = &document["loads"][0];
    // The kernel counts CPU time in steps of 10 ms.
    let tolerance = 0.03;
    assert!(
        share >= figure(load, "min") - tolerance && share <= figure(load, "max") + tolerance,
        "{share}: {document:#}"
    );
}

#[test]
fn loads_of_a_run_are_reported_in_json_manifest_and_text() {
    let line = "ping -n 50 -i 20ms --warmup 0 --load cpu=10%@both:period=20ms --json";
    let ran = Latlab::new().line(line).measured();
    let document = ran.json();
    check_schema(&document, "summary/1");
    assert_eq!(document["condition"]["loads"], json!(["cpu=10%:period=20ms"]), "both ends are this one host");
    let load = &document["loads"][0];
    assert_eq!(
        (&load["unit"], &load["offered"], &load["period_ns"]),
        (&json!("share"), &json!(0.1), &json!(20_000_000))
    );
    assert!(figure(load, "achieved") > 0.0 && figure(load, "measured_ns") >= 0.9e9, "{load:#}");

    let recording = document["recording"].as_str().expect("a path").to_owned();
    let manifest = fs::read_to_string(ran.directory().join(&recording).join("manifest.json")).expect("it was kept");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    assert_eq!(&manifest["loads"], &document["loads"]);
    assert_eq!(manifest["spec"]["loads"][0]["kind"], json!("cpu"));
    let text = Latlab::at(ran.directory()).line(&format!("summary {recording}")).measured().stdout;
    assert!(text.contains("cpu=10%:period=20ms →"), "{text}");
}

#[test]
fn a_load_on_cpus_that_the_host_lacks_is_refused() {
    for command in ["ping -n 5", "load"] {
        let lab = Latlab::new().line(command).line("--load cpu=50%:cpus=1023").stdout(empty());
        lab.stderr(contains("usable are `")).stderr(contains("hint: ")).failure(2);
    }
}

#[test]
fn a_load_that_cannot_start_is_refused_with_exit_code_3() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = format!("ulimit -v 300000; exec '{}' load --load mem=1GB/s:buffer=1024MiB -d 1s", BINARY);
    let ran = Command::new("sh").args(["-c", &script]).current_dir(directory.path()).output().expect("a shell");
    let printed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{printed}");
    assert!(
        printed.contains("cannot make the load `mem=1GB/s:buffer=1024MiB`") && printed.contains("hint: "),
        "{printed}"
    );
}

#[test]
fn no_load_outlives_latlab() {
    for (signal, code) in [(Signal::KILL, None), (Signal::INT, Some(130)), (Signal::TERM, Some(143))] {
        let running = Latlab::new().line("load --load cpu=5% --load heaters=1 -d 1m").start();
        let loads = stressors(&running, 2);
        running.signal(signal);
        match code {
            Some(code) => assert!(running.exits(code).stdout.contains("cpu=5%"), "what was achieved is reported"),
            None => drop(running.killed_by(signal)),
        }
        wait_until("the loads have ended", || !loads.iter().any(|pid| is_alive(*pid)));
    }
}

#[test]
fn the_early_death_of_a_load_is_reported() {
    let running = Latlab::new().line("load --load cpu=5% -d 8s --json").start();
    let load = stressors(&running, 1)[0];
    // A load is killed after its second of settling, also beside a busy neighbour: before that it would fail to start.
    let start = Instant::now();
    wait_until("it worked", || start.elapsed().as_millis() > 4_000);
    kill_process(Pid::from_raw(load).expect("a pid"), Signal::KILL).expect("our own child");
    let document = running.exits(0).json();
    check_schema(&document, "load/1");
    assert_eq!(document["loads"][0]["achieved"], Value::Null);
    assert_eq!(document["loads"][0]["ended_early"], "its process ended: killed by SIGKILL");
    assert!(document["caveats"][0]["message"].to_string().contains("killed by SIGKILL"), "{document:#}");
    assert_eq!(document["caveats"][0]["code"], json!("load-unreached"), "{document:#}");
}

/// A script for an agent whose replies arrive 0.3 s late.
const FAR_AWAY: &str = "heard=$(mktemp); LATLAB agent --stdio | \
                        while dd bs=65536 count=1 of=$heard 2>/dev/null && test -s $heard; \
                        do sleep 0.3; cat $heard; done; rm $heard";

#[test]
fn the_achieved_load_is_that_of_the_run_without_the_end_of_its_session() {
    let _precedence = precedence();
    // A run of one second, then several round trips of messages that ask the agent for its results.
    let target = format!("cmd:sh -c '{}'", FAR_AWAY.replace("LATLAB", BINARY));
    let line = "-d 1s -i 20ms --warmup 0 --timeout 100ms --json --load cpu=5%@both:cpus=0 --load net=1Mbit/s";
    let document = Latlab::new().args(["ping", &target, "--peer-addr", "127.0.0.1"]).line(line).measured().json();
    let loads = document["loads"].as_array().expect("a list");
    assert_eq!(loads.len(), 3, "{document:#}");
    for load in loads {
        let seconds = load["measured_ns"].as_f64().unwrap_or_else(|| panic!("{load:#}")) / 1e9;
        // The load at the far end is measured from arming on; each message there and back takes 0.3 s.
        assert!((0.8..2.5).contains(&seconds), "{load:#}");
    }
}

/// The scheduling policies of all threads of `pid`: 0 is SCHED_OTHER, 1 SCHED_FIFO (proc_pid_stat(5), field 41).
fn policies(pid: i32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a running process").flatten();
    let policy = |text: String| text.rsplit_once(')')?.1.split_whitespace().nth(38).map(str::to_owned);
    threads.filter_map(|thread| policy(fs::read_to_string(thread.path().join("stat")).ok()?)).collect()
}

#[test]
fn loads_run_under_sched_other_below_a_real_time_latlab() {
    if !privileged() {
        return;
    }
    let Some(chrt) = program("chrt") else { return };
    if !Command::new(chrt).args(["-f", "10", "true"]).status().expect("it is there").success() {
        return skip("no right to SCHED_FIFO here");
    }
    let target = format!("cmd:chrt -f 10 {BINARY} agent --stdio");
    let words = ["load", &target, "--peer-addr", "127.0.0.1", "-d", "50s"];
    let running = Latlab::new().args(words).line("--load cpu=5%@peer:cpus=0 --load net=1Mbit/s@peer").start();
    let pid = running.pid().as_raw_nonzero().get();
    wait_until("both loads are there", || below(pid, &["stressor"]).is_some() && below(pid, &["net-load"]).is_some());
    let agent = below(pid, &["agent", "--stdio"]).expect("it runs");
    assert!(
        policies(agent).iter().all(|policy| policy == "1"),
        "the agent runs under SCHED_FIFO: {:?}",
        policies(agent)
    );
    for word in ["stressor", "net-load"] {
        let load = below(pid, &[word]).expect("it runs");
        wait_until("the load runs under SCHED_OTHER", || policies(load).iter().all(|policy| policy == "0"));
    }
    running.signal(Signal::INT);
    running.exits(130);
}
