//! When loads begin and end to be judged, who ended them, and under which scheduling they work.

use std::fs;
use std::process::Command;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{BINARY, Latlab, wait_until};
use crate::lab::privileged;
use crate::remote::{below, signal};
use crate::skip::{program, skip};

/// An agent whose every word takes a third of a second to get here.
const FAR_AWAY: &str = "heard=$(mktemp); LATLAB agent --stdio | \
                        while dd bs=65536 count=1 of=$heard 2>/dev/null && test -s $heard; \
                        do sleep 0.3; cat $heard; done; rm $heard";

#[test]
fn loads_are_judged_to_the_end_of_the_run_and_no_longer() {
    // A second, and then a farewell of several: what happened at the far end is asked for word by word.
    let target = format!("cmd:sh -c '{}'", FAR_AWAY.replace("LATLAB", BINARY));
    let line = "-d 1s -i 20ms --warmup 0 --timeout 100ms --json --load cpu=5%@both:cpus=0 --load net=1Mbit/s";
    let document = Latlab::new().args(["ping", &target, "--peer-addr", "127.0.0.1"]).line(line).measured().json();
    let loads = document["loads"].as_array().expect("a list");
    assert_eq!(loads.len(), 3, "{document:#}");
    for load in loads {
        let seconds = load["measured_ns"].as_f64().unwrap_or_else(|| panic!("{load:#}")) / 1e9;
        // From arming at the far end; each way of a word there and back is 0.3 s.
        assert!((0.8..2.5).contains(&seconds), "{load:#}");
    }
}

#[test]
fn a_network_load_whose_end_nobody_hears_says_why() {
    for (pace, offered) in [("max", Value::Null), ("1Mbit/s", 1e6.into())] {
        let running = Latlab::new().line(&format!("load --load net={pace} -d 50s --json")).start();
        let pid = running.pid().as_raw_nonzero().get();
        wait_until("it is there", || below(pid, &["net-load"]).is_some());
        let start = Instant::now();
        wait_until("it is held", || start.elapsed().as_millis() > 1_500);
        signal(below(pid, &["net-load"]).expect("it runs"), Signal::KILL);
        running.signal(Signal::INT);
        let document = running.exits(130).json();
        let load = &document["loads"][0];
        assert_eq!((&load["offered"], &load["achieved"]), (&offered, &Value::Null), "{document:#}");
        assert_eq!(load["ended_early"], "its process ended: killed by SIGKILL");
        let caveat = &document["caveats"][0];
        assert_eq!(caveat["code"], "load-unreached", "{document:#}");
        assert!(caveat["message"].to_string().contains("killed by SIGKILL"), "{caveat:#}");
    }
}

/// The policies of all threads of `pid`: 0 is SCHED_OTHER, 1 SCHED_FIFO (proc_pid_stat(5), field 41).
fn policies(pid: i32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives").flatten();
    let policy = |text: String| text.rsplit_once(')')?.1.split_whitespace().nth(38).map(str::to_owned);
    threads.filter_map(|thread| policy(fs::read_to_string(thread.path().join("stat")).ok()?)).collect()
}

#[test]
fn loads_have_no_right_of_way_however_latlab_was_started() {
    const TEST: &str = "loads below a latlab of real-time policy";
    if !privileged(TEST) {
        return;
    }
    let Some(chrt) = program(TEST, "chrt") else { return };
    if !Command::new(chrt).args(["-f", "10", "true"]).status().expect("it is there").success() {
        return skip(TEST, "no right to SCHED_FIFO here");
    }
    let target = format!("cmd:chrt -f 10 {BINARY} agent --stdio");
    let words = ["load", &target, "--peer-addr", "127.0.0.1", "-d", "50s"];
    let running = Latlab::new().args(words).line("--load cpu=5%@peer:cpus=0 --load net=1Mbit/s@peer").start();
    let pid = running.pid().as_raw_nonzero().get();
    wait_until("both loads are there", || below(pid, &["stressor"]).is_some() && below(pid, &["net-load"]).is_some());
    let agent = below(pid, &["agent", "--stdio"]).expect("it runs");
    assert!(policies(agent).iter().all(|policy| policy == "1"), "chrt did what it shall: {:?}", policies(agent));
    for word in ["stressor", "net-load"] {
        let load = below(pid, &[word]).expect("it runs");
        wait_until("it works as usual", || policies(load).iter().all(|policy| policy == "0"));
    }
    running.signal(Signal::INT);
    running.exits(130);
}
