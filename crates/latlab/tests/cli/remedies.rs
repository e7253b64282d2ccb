//! `latlab wakeup --try-remedies`: remedies are measured in alternation with the original options.

use std::collections::BTreeMap;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Latlab, check_schema, wait_until};
use crate::settings::with_governors;
use crate::store::{manifest, recordings};

#[test]
fn each_possible_remedy_is_tried_in_turn_and_restored() {
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
