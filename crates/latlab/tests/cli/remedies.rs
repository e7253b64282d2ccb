//! `--try-remedies`: remedies are measured in alternation with the original options.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::Value;

use crate::fake_host::FakeHost;
use crate::harness::{Latlab, check_schema, contains, empty, wait_until};
use crate::settings::{three_knobs, with_governors};
use crate::store::{manifest, recordings};

#[test]
fn each_possible_remedy_of_a_wakeup_is_tried_in_turn_and_restored() {
    let host = with_governors(1, "ondemand performance", "ondemand");
    let lab = Latlab::new().on(&host).line("wakeup -i 2ms -n 27 --warmup 0 --via select --try-remedies --json -q");
    let ran = lab.success();
    let document = ran.json();
    check_schema(&document, "remedies/1");
    let remedies = document["remedies"].as_array().expect("a list");
    let of = |words: &str| remedies.iter().find(|one| one["remedy"] == words).unwrap_or_else(|| panic!("{document:#}"));
    for tried in ["--via clock_nanosleep", "--set timer-slack=1ns", "--set governor=performance", "all of these"] {
        assert_eq!(
            (&of(tried)["tried"], of(tried)["gains"].as_array().map(Vec::len)),
            (&true.into(), Some(2)),
            "{tried}"
        );
    }
    // A fake host has no /dev/cpu_dma_latency.
    let absent = of("--set cpu-dma-latency=0");
    assert!(absent["tried"] == false && absent["reason"].as_str().is_some_and(|why| !why.is_empty()), "{absent}");
    let mut runs = BTreeMap::<String, usize>::new();
    for recording in recordings(ran.directory()) {
        let manifest = manifest(&recording);
        let remedy = manifest["experiment"]["factors"]["remedy"].as_str().expect("a word").to_owned();
        let settings = manifest["condition"]["settings"].as_object().expect("settings");
        assert_eq!(
            settings.contains_key("governor"),
            ["--set governor=performance", "all of these"].contains(&&*remedy)
        );
        assert_eq!(manifest["wakeup_rows"], 3, "27 wake-ups in 9 runs");
        assert_eq!((&manifest["command"][1], &manifest["command"][10]), (&"wakeup".into(), &"--try-remedies".into()));
        *runs.entry(remedy).or_default() += 1;
    }
    let tried = remedies.iter().filter(|one| one["tried"] == true).count();
    assert_eq!((runs.len(), runs.values().sum::<usize>()), (tried + 1, 9 * (tried + 1)), "{runs:?}");
    assert_eq!(document["recordings"].as_array().map(Vec::len), Some(9 * (tried + 1)));
    assert_eq!(host.governor(0), "ondemand");
    // The recordings name their remedy: they can be compared later.
    let again = Latlab::at(ran.directory()).line("compare --by remedy latlab-runs --json -q").success().json();
    assert_eq!(again["comparisons"][0]["metric"], "wakeup_latency");
}

#[test]
fn an_interrupt_keeps_the_finished_runs() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).line("wakeup -i 1ms -d 5m --try-remedies").start();
    wait_until("the first run began", || !recordings(home.path()).is_empty());
    running.signal(Signal::INT);
    running.exits(130);
    let ending = |path: &std::path::PathBuf| manifest(path)["ending"].clone();
    assert_eq!(recordings(home.path()).iter().map(ending).collect::<Vec<_>>(), [Value::from("interrupted")]);
}

#[test]
fn an_interrupt_during_the_first_setting_restores_everything() {
    // So many that setting all takes far longer than noticing that the first is set.
    let host = with_governors(512, "ondemand performance", "ondemand");
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).on(&host).line("wakeup --try-remedies -i 1ms -d 9s").start();
    wait_until("the first governor was set", || host.governor(0) == "performance");
    running.signal(Signal::INT);
    running.exits(130);
    let left: Vec<usize> = (0..512).filter(|number| host.governor(*number) != "ondemand").collect();
    assert!(left.is_empty(), "{left:?} stayed");
}

/// A host with three knobs, of which the idle state is one that the doctor reports.
fn findings_for_two_knobs() -> FakeHost {
    let host = three_knobs();
    for count in ["usage", "time"] {
        host.write(&format!("sys/devices/system/cpu/cpu0/cpuidle/state2/{count}"), "0\n");
    }
    host
}

/// The remedies of a ping on `host`, each with whether it was tried and why not.
fn remedies_of_ping(host: &FakeHost, options: &str) -> (Value, BTreeMap<String, Option<String>>) {
    let line = format!("ping --cpu any --peer-cpu any --warmup 0 --try-remedies --json -q {options}");
    let document = host.latlab(&line).success().json();
    check_schema(&document, "remedies/1");
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let remedies = document["remedies"].as_array().expect("a list").iter();
    let reasons = remedies.map(|one| {
        assert_eq!(one["tried"], one["reason"].is_null());
        (word(&one["remedy"]).expect("a name"), word(&one["reason"]))
    });
    let reasons = reasons.collect();
    (document, reasons)
}

#[test]
fn a_ping_tries_what_corrects_a_finding_of_the_doctor() {
    let host = findings_for_two_knobs();
    let (document, reasons) = remedies_of_ping(&host, "-n 27");
    let tried = ["--set governor=performance", "--wait spin", "all of these"];
    let found: Vec<&str> = reasons.iter().filter(|(_, why)| why.is_none()).map(|(remedy, _)| remedy.as_str()).collect();
    assert_eq!(found, tried, "{reasons:?}");
    let why = |remedy: &str| reasons[remedy].as_deref().expect(remedy);
    assert!(why("--set busy-poll=50us").contains("no finding"));
    // The idle states are a finding, but a fake host has no /dev/cpu_dma_latency.
    assert!(!why("--set cpu-dma-latency=0").contains("no finding"), "{reasons:?}");
    for gains in document["remedies"].as_array().expect("a list").iter().filter(|one| one["tried"] == true) {
        let gains = gains["gains"].as_array().expect("a list").iter();
        let metrics = gains.filter(|gain| gain["metric"] == "round_trip_delay").map(|gain| gain["statistic"].clone());
        assert_eq!(metrics.collect::<Vec<_>>(), ["p50", "p99"]);
    }
    let mut runs = BTreeMap::<String, usize>::new();
    for recording in recordings(host.directory()) {
        let manifest = manifest(&recording);
        let remedy = manifest["experiment"]["factors"]["remedy"].as_str().expect("a word").to_owned();
        let has = |one: &str| remedy == one || remedy == "all of these";
        assert_eq!(manifest["condition"]["settings"].get("governor").is_some(), has(tried[0]), "{remedy}");
        let wait = if has(tried[1]) { "spin" } else { "block" };
        assert_eq!([&manifest["spec"]["here"]["wait"], &manifest["spec"]["peer"]["wait"]], [wait, wait], "{remedy}");
        *runs.entry(remedy).or_default() += 1;
    }
    assert_eq!((runs.len(), runs.values().all(|runs| *runs == 9)), (4, true), "{runs:?}");
    assert_eq!((host.values(), host.pages()), (["ondemand", "0", "950000"].map(str::to_owned), 0));
}

#[test]
fn what_was_asked_for_is_not_tried() {
    let host = findings_for_two_knobs();
    let (_, reasons) = remedies_of_ping(&host, "-n 9 --set governor=ondemand");
    assert!(reasons["--set governor=performance"].as_deref().is_some_and(|why| why.contains("was asked for")));
    // One remedy is left: there is nothing to combine.
    assert!(reasons["--wait spin"].is_none() && !reasons.contains_key("all of these"), "{reasons:?}");
}

#[test]
fn what_would_spoil_the_measurement_is_not_tried() {
    let host = findings_for_two_knobs();
    host.write("sys/devices/system/cpu/online", "0\n");
    let (_, reasons) = remedies_of_ping(&host, "-n 9");
    assert!(reasons["--wait spin"].as_deref().is_some_and(|why| why.contains("only one CPU")), "{reasons:?}");
}

#[test]
fn a_ping_without_answers_or_remedies_ends_at_once() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("bound").port();
    let host = three_knobs();
    let line = format!("ping 127.0.0.1:{port} --protocol echo --timeout 50ms --warmup 0 -n 9 --try-remedies");
    host.latlab(&line).stdout(empty()).stderr(contains("no probe was answered")).failure(3);
    assert_eq!((recordings(host.directory()).len(), host.values()[0].as_str()), (1, "ondemand"));
    // Nothing is known of an empty host, so that the doctor finds nothing.
    let host = FakeHost::with(&[]);
    host.latlab("ping -n 9 --try-remedies").stdout(empty()).stderr(contains("no remedy can be tried here")).failure(3);
    assert!(recordings(host.directory()).is_empty());
}

#[test]
fn remedies_left_by_sigkill_are_restored_by_the_next_command() {
    let host = three_knobs();
    let running = host.latlab("ping -d 5m --try-remedies").start();
    wait_until("the governor was set", || host.values()[0] == "performance");
    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    host.latlab("doctor --restore").start().exits_with_one_of(&[0, 1]);
    assert_eq!((host.values(), host.pages()), (["ondemand", "0", "950000"].map(str::to_owned), 0));
}
