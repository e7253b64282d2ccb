//! Loads and settings at the remote end of `ssh:` and `cmd:`, all of which end with the run.

use std::fs;

use latlab::host;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::fake_host::FakeHost;
use crate::far_end::{NamespacedAgent, SshRun, local_agent, with_latlab};
use crate::harness::{BINARY, Latlab, Running, check_schema, contains, empty, wait_until, warnings_at_most};
use crate::lab::privileged;
use crate::processes::{arguments, below, children, is_alive, signal};
use crate::scheduling::flooding;
use crate::settings::three_knobs;
use crate::store::{manifest, only_recording, recordings, spool_bytes};

/// Settings of the far host.
const THREE_THERE: &str = "--set governor@peer=performance --set idle-states@peer=max-us:10 --set rt-runtime@peer=-1";
const SET: [&str; 3] = ["performance", "1", "-1"];
const LOADS: [&str; 2] = ["stressor", "net-load"];
const LOADED: &str = "--load cpu=5%@peer --load net=1Mbit/s@peer";

/// The target of an agent on `far`.
fn agent_of(far: &FakeHost) -> String {
    let environment = far.environment().map(|(name, value)| format!("{name}={}", value.display()));
    format!("cmd:env {} {BINARY} agent --stdio", environment.join(" "))
}

/// PATH and further environment of a login on `far`.
fn login_of(far: &FakeHost) -> String {
    let environment = far.environment().map(|(name, value)| format!("{name}={}", value.display()));
    format!("{} {}", with_latlab(), environment.join(" "))
}

/// A measurement from `here` to `far`.
fn between(here: &FakeHost, far: &FakeHost, line: &str) -> Latlab {
    here.latlab("ping").args([&agent_of(far), "--peer-addr", "127.0.0.1"]).line(line)
}

/// Each setting at `end` in `manifest`, and its outcome.
fn settings_at(manifest: &Value, end: &str) -> Vec<(String, Value)> {
    let all = manifest["settings"].as_array().expect("a list").iter().filter(|one| one["at"] == end);
    all.map(|one| (one["setting"].as_str().expect("words").to_owned(), one["ended"]["outcome"].clone())).collect()
}

#[test]
fn settings_of_both_hosts_are_restored_in_reverse_order() {
    let (here, far) = (three_knobs(), three_knobs());
    let both = "--set governor@both=performance --set idle-states@both=max-us:10 --set rt-runtime@both=-1";
    let ran = between(&here, &far, &format!("-n 20 --warmup 0 --json {both}")).stderr(warnings_at_most()).success();
    check_schema(&ran.json(), "summary/1");
    here.expect_restored();
    far.expect_restored();
    let manifest = manifest(&only_recording(ran.directory()));
    for (end, host) in [("local", &here), ("peer", &far)] {
        let settings = manifest["settings"].as_array().expect("a list").iter().filter(|one| one["at"] == end);
        let root = host.root().display().to_string();
        assert!(settings.clone().count() == 3 && settings.clone().all(|one| one["root"] == root), "{manifest:#}");
        let printed = settings_at(&manifest, end);
        let words: Vec<_> = printed.iter().map(|(words, _)| words.as_str()).collect();
        assert_eq!(words, ["governor@both=performance", "idle-states@both=max-us:10", "rt-runtime@both=-1"], "{end}");
        assert!(printed.iter().all(|(_, outcome)| outcome == "restored"), "{printed:?}");
    }
    assert_eq!(ran.json()["condition"]["settings"]["governor@both"], "performance");
}

#[test]
fn a_setting_changes_the_named_end_only() {
    for (place, here_is_set, far_is_set) in [("", true, false), ("@local", true, false), ("@peer", false, true)] {
        let (here, far) = (three_knobs(), three_knobs());
        between(&here, &far, &format!("-n 5 --warmup 0 --set rt-runtime{place}=-1"))
            .stderr(warnings_at_most())
            .success();
        assert_eq!((!here.written().is_empty(), !far.written().is_empty()), (here_is_set, far_is_set), "`{place}`");
        assert_eq!((here.values(), here.pages() + far.pages()), (far.values(), 0));
    }
}

#[test]
fn a_setting_refused_by_one_host_changes_no_host() {
    let (here, far) = (three_knobs(), three_knobs());
    for (sets, printed) in [
        ("--set rt-runtime=-1 --set busy-poll@peer=50us", "refuses: cannot set `busy-poll=50us`"),
        ("--set rt-runtime@peer=-1 --set busy-poll@local=50us", "cannot set `busy-poll@local=50us`"),
        ("--set rt-runtime@both=-1 --set governor@peer=powersave", "offers `ondemand performance`"),
    ] {
        let lab = between(&here, &far, &format!("-n 5 {sets}")).stdout(empty()).stderr(contains(printed));
        lab.stderr(contains("hint: ")).failure(3);
        assert_eq!((here.written(), far.written()), (Vec::new(), Vec::new()), "{sets}");
        assert_eq!((here.pages(), far.pages(), recordings(here.directory()).len()), (0, 0, 0));
    }
    // The settings are made first; then the reflector's CPU is refused.
    between(&here, &far, &format!("-n 5 --peer-cpu 1023 {THREE_THERE}")).stderr(contains("CPU `1023`")).failure(3);
    far.expect_restored();
}

/// A run from `here` to `far` with settings and loads of the far host, and the pid of its agent.
fn under_way(here: &FakeHost, far: &FakeHost) -> (Running, i32) {
    let mut running = between(here, far, &format!("-d 50s -i 1ms --warmup 0 {THREE_THERE} {LOADED}")).start();
    let pid = running.pid().as_raw_nonzero().get();
    running.wait_until("the run was under way", || spool_bytes(here.directory()) > 1_000);
    assert_eq!(far.values(), SET);
    (running, below(pid, &["agent", "--stdio"]).expect("the agent runs"))
}

fn loads_below(pid: i32) -> Vec<i32> {
    LOADS.iter().map(|word| below(pid, &[word]).unwrap_or_else(|| panic!("no {word} below {pid}"))).collect()
}

#[track_caller]
fn are_gone(loads: &[i32]) {
    wait_until("the loads had ended", || !loads.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn signals_to_latlab_end_loads_and_restore_settings_of_the_far_host() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (here, far) = (three_knobs(), three_knobs());
        let (running, agent) = under_way(&here, &far);
        let loads = loads_below(agent);
        running.signal(signal);
        running.exits(code);
        are_gone(&loads);
        far.expect_restored();
        let manifest = manifest(&only_recording(here.directory()));
        assert!(settings_at(&manifest, "peer").iter().all(|(_, outcome)| outcome == "restored"));
        assert_eq!(manifest["loads"].as_array().map(Vec::len), Some(2), "{manifest:#}");
    }
}

#[test]
fn sigkill_of_latlab_ends_loads_and_restores_settings_of_the_far_host() {
    let (here, far) = (three_knobs(), three_knobs());
    let (running, agent) = under_way(&here, &far);
    let loads = loads_below(agent);
    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    are_gone(&loads);
    wait_until("the agent had ended", || !is_alive(agent));
    far.expect_restored();
}

#[test]
fn settings_left_by_a_killed_agent_and_watchdog_are_restored_by_the_next_latlab_on_its_host() {
    for next in ["doctor --restore", "agent"] {
        let (here, far) = (three_knobs(), three_knobs());
        let (running, agent) = under_way(&here, &far);
        let loads = loads_below(agent);
        signal(below(agent, &["watchdog"]).expect("it runs"), Signal::KILL);
        signal(agent, Signal::KILL);
        let ran = running.exits(3);
        assert!(ran.stderr.contains("lost the agent of `cmd:"), "{}", ran.stderr);
        are_gone(&loads);
        let manifest = manifest(&only_recording(here.directory()));
        assert_eq!(manifest["ending"], "failed");
        assert!(settings_at(&manifest, "peer").iter().all(|(_, outcome)| outcome.is_null()), "the outcome is unknown");
        assert_eq!(settings_at(&manifest, "peer").len(), 3);
        assert!(manifest["loads"][0]["achieved"].is_null() && manifest["loads"][0]["at"] == "peer");
        assert_eq!((far.values(), far.pages()), (SET.map(str::to_owned), 1), "the journal has the settings");
        match next {
            "agent" => drop(between(&here, &far, "-n 5 --warmup 0").success()),
            next => drop(far.latlab(next).stdout(contains("`governor=performance`")).success()),
        }
        far.expect_restored();
    }
}

#[test]
fn every_early_end_of_an_ssh_connection_restores_the_far_host() {
    for (name, by, planned, code, printed) in [
        ("ssh is killed", Signal::KILL, "50s", 3, "lost the agent"),
        ("ssh is frozen", Signal::STOP, "2s", 3, "the agent of"),
        ("latlab is interrupted", Signal::INT, "50s", 130, ""),
    ] {
        let far = three_knobs();
        let line = format!("-d {planned} --warmup 0 -i 1ms --timeout 100ms {THREE_THERE} {LOADED}");
        let Some(mut run) = SshRun::start_in(&login_of(&far), &line) else { return };
        run.yield_precedence();
        let loads = loads_below(run.sshd.pid());
        assert_eq!(far.values(), SET, "{name}");
        signal(if code == 130 { run.running.pid().as_raw_nonzero().get() } else { run.ssh }, by);
        are_gone(&loads);
        run.wait_for_far_end();
        far.expect_restored();
        let ran = run.running.exits(code);
        assert!(ran.stderr.contains(printed), "{name}: {}", ran.stderr);
        let manifest = manifest(&only_recording(run.home.path()));
        assert_eq!(manifest["loads"].as_array().map(Vec::len), Some(2), "{name}");
        assert_eq!(settings_at(&manifest, "peer").len(), 3, "{name}");
    }
}

#[test]
fn loads_of_both_ends_are_reported_in_json_manifest_and_text() {
    let (here, far) = (three_knobs(), three_knobs());
    let line = "-d 1500ms -i 5ms --warmup 0 --json --load cpu=10%@both:cpus=0 --load net=2Mbit/s@both";
    let ran = between(&here, &far, line).measured();
    check_schema(&ran.json(), "summary/1");
    let loads = ran.json()["loads"].clone();
    let printed: Vec<_> = loads.as_array().expect("a list").iter().map(|one| json!([one["kind"], one["at"]])).collect();
    let expected = json!([["cpu", "local"], ["net", "local"], ["cpu", "peer"], ["net", "peer"]]);
    assert_eq!(json!(printed), expected);
    for load in loads.as_array().expect("a list") {
        assert!(load["achieved"].as_f64() > Some(0.0), "{load:#}");
    }
    let recording = only_recording(ran.directory());
    assert_eq!(manifest(&recording)["loads"], loads);
    let text = Latlab::at(ran.directory()).arg("summary").arg(recording).measured().stdout;
    for line in ["cpu=10%:cpus=0 → ", "cpu=10%:cpus=0 at peer → ", "net=2Mbit/s at peer → "] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn the_rate_for_a_relative_load_is_searched_for_at_the_far_end() {
    let _flooding = flooding();
    let (here, far) = (three_knobs(), three_knobs());
    let line = "-d 600ms -i 5ms --warmup 0 --json --load net=10%@peer";
    let ran = between(&here, &far, line).measured();
    let load = &ran.json()["loads"][0];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{load:#}"));
    let (searched, offered) = (number(&load["stream"]["searched_bps"]), number(&load["offered"]));
    assert!((offered / searched - 0.1).abs() < 1e-6 && number(&load["achieved"]) > 0.0, "{load:#}");
    assert_eq!(load["at"], "peer");
    let text = Latlab::at(ran.directory()).arg("summary").arg(only_recording(ran.directory())).measured().stdout;
    assert!(text.contains("net=10% at peer (") && text.contains(" of "), "the rate is missing: {text}");
}

#[test]
fn an_interrupt_ends_the_search_for_the_rate_of_a_load() {
    let _flooding = flooding();
    let (here, far) = (three_knobs(), three_knobs());
    let line = format!("-d 50s --warmup 0 {THREE_THERE} --load net=90%@peer");
    let running = between(&here, &far, &line).start();
    let pid = running.pid().as_raw_nonzero().get();
    wait_until("it searches", || below(pid, &["net-load"]).is_some());
    let (agent, load) = (below(pid, &["agent"]).expect("it runs"), below(pid, &["net-load"]).expect("it runs"));
    running.signal(Signal::INT);
    running.exits(130);
    are_gone(&[agent, load]);
    far.expect_restored();
}

#[test]
fn two_ends_on_one_host_cannot_set_the_same_knob() {
    let host = three_knobs();
    let lab = between(&host, &host, "-n 5 --set rt-runtime@both=-1").stdout(empty());
    let lab = lab.stderr(contains("refuses: cannot set `rt-runtime=-1`"));
    lab.stderr(contains("both ends are on one host")).stderr(contains("hint: set it for one end")).failure(3);
    assert_eq!((host.values()[2].as_str(), host.pages()), ("950000", 0));
    between(&host, &host, "-n 5 --warmup 0 --set rt-runtime=-1").success();
}

#[test]
fn load_sends_over_the_named_addresses() {
    let line = "load cmd --peer-addr 127.0.0.1 --bind 127.0.0.2 -d 600ms --json --load net=2Mbit/s@both";
    let target = local_agent();
    let load = |line: &str| {
        let words: Vec<_> = line.split(' ').map(|word| if word == "cmd" { target.as_str() } else { word }).collect();
        Latlab::new().args(words)
    };
    let document = load(line).success().json();
    check_schema(&document, "load/1");
    for end in [0, 1] {
        assert!(document["loads"][end]["stream"]["delivered_packets"].as_u64() > Some(10), "{document:#}");
    }
    // CPU loads need no address.
    load("load cmd -d 300ms --load cpu=5%@both").stdout(contains("cpu=5% at peer")).success();
    load("load cmd --peer-addr 127.0.0.1 --bind 192.0.2.1 -d 1s --load net=1Mbit/s")
        .stdout(empty())
        .stderr(contains("`192.0.2.1"))
        .stderr(contains("hint: "))
        .failure(3);
}

#[test]
fn load_reports_what_was_reached_if_the_agent_is_lost() {
    let target = local_agent();
    let running = Latlab::new().args(["load", &target]).line("-d 50s --load cpu=5%@both").start();
    let pid = running.pid().as_raw_nonzero().get();
    let agent = || below(pid, &["agent", "--stdio"]);
    wait_until("both loads run", || {
        agent().is_some_and(|agent| below(agent, &["stressor"]).is_some()) && loads_here(pid) == 1
    });
    // Measuring begins after one second of settling.
    let start = std::time::Instant::now();
    wait_until("it is held", || start.elapsed().as_millis() > 1_500);
    signal(agent().expect("it runs"), Signal::KILL);
    let ran = running.exits(3);
    assert!(ran.stderr.contains("lost the agent of `cmd:") && ran.stderr.contains("hint: "), "{}", ran.stderr);
    assert!(ran.stdout.contains("cpu=5% at local") && ran.stdout.contains("cpu=5% at peer"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("ended before the run did:") && ran.stdout.contains("lost the agent of"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stderr.contains("recording"), "there is none: {}", ran.stderr);
}

/// The number of stressors among the children of `pid`.
fn loads_here(pid: i32) -> usize {
    children(pid).into_iter().filter(|child| arguments(*child).iter().any(|word| word == "stressor")).count()
}

#[test]
fn a_load_that_cannot_start_at_the_far_end_is_refused_with_exit_code_3() {
    let target = format!("cmd:sh -c 'ulimit -v 500000; exec {BINARY} agent --stdio'");
    let lab = Latlab::new().args(["ping", &target, "--peer-addr", "127.0.0.1", "-n", "5"]);
    let lab = lab.args(["--load", "mem=1GB/s@peer:buffer=1024MiB"]).stdout(empty());
    let ran = lab.stderr(contains("refuses: cannot make the load `mem=1GB/s:buffer=1024MiB`")).failure(3);
    assert!(ran.stderr.contains("hint: ") && recordings(ran.directory()).is_empty(), "{}", ran.stderr);
}

#[test]
fn interface_settings_and_network_loads_apply_to_the_path_at_both_ends() {
    if !privileged() {
        return;
    }
    let lab = host::Lab::set_up().expect("root may build a lab");
    let namespaced = NamespacedAgent::of(&lab);
    let _inside = lab.enter_sender().expect("the namespace is there");
    let home = tempfile::tempdir().expect("a temporary directory");
    let far = lab.reflector_ipv4().to_string();
    let measured = Latlab::at(home.path()).args(["ping", &namespaced.target(), "--peer-addr", &far]);
    let line = "-d 1200ms -i 5ms --warmup 0 --json --set mtu@both=1400 --load net=2Mbit/s@both";
    let ran = measured.line(line).environment("LATLAB_STATE_DIR", home.path().join("state")).measured();
    let manifest = manifest(&only_recording(home.path()));
    for end in ["local", "peer"] {
        assert_eq!(settings_at(&manifest, end), [("mtu@both=1400".to_owned(), json!("restored"))], "{manifest:#}");
    }
    assert_eq!(manifest["run"]["conditions"]["path.unfragmented-bytes"], "1372");
    for load in ran.json()["loads"].as_array().expect("a list") {
        assert!(load["stream"]["delivered_packets"].as_u64() > Some(20), "{load:#}");
    }
    assert_eq!(fs::read_dir(home.path().join("state/journal")).map_or(0, Iterator::count), 0);
}
