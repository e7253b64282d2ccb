//! `latlab list`: what is in a store, in whatever state.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::documents::check;
use crate::harness::{Lab, contains, empty, wait_until};
use crate::store::{only_recording, recordings};

/// The list of the default store of `directory`, checked against its schema.
#[track_caller]
fn list(directory: &Path) -> Vec<Value> {
    let document = Lab::at(directory).line("list --json").stderr(empty()).success().json();
    check(&document, "list/1");
    document["recordings"].as_array().expect("a list").clone()
}

fn states(list: &[Value]) -> Vec<&str> {
    list.iter().map(|recording| recording["state"].as_str().expect("a word")).collect()
}

#[test]
fn an_empty_or_missing_store_is_no_failure() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for form in ["list", "list --json"] {
        let missing = Lab::at(home.path()).line(form).stdout(contains("latlab-runs"));
        let ran = missing.stderr(contains("note: the store `./latlab-runs` does not exist")).success();
        if form.ends_with("--json") {
            check(&ran.json(), "list/1");
            assert_eq!(ran.json()["recordings"], Value::Array(Vec::new()));
        }
    }
    fs::create_dir(home.path().join("latlab-runs")).expect("made");
    assert!(list(home.path()).is_empty());
    Lab::at(home.path()).line("list").stdout(contains("latlab-runs")).stderr(empty()).success();
    fs::create_dir(home.path().join("latlab-runs/something-else")).expect("made");
    assert!(list(home.path()).is_empty());
    let lab = Lab::at(home.path()).file("taken", "a file").line("list --store taken").stdout(empty());
    lab.stderr(contains("`taken`")).stderr(contains("\n  hint: ")).failure(2);
}

#[test]
fn the_newest_stands_first_also_within_a_second() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for size in 64..70 {
        Lab::at(home.path()).line(&format!("ping -n 3 --warmup 0 -s {size}")).success();
    }
    let listed = list(home.path());
    assert_eq!(states(&listed), ["completed"; 6]);
    let headings: Vec<_> = listed.iter().map(|one| one["heading"].as_str().expect("a text").to_owned()).collect();
    assert!(headings[0].contains("69 B") && headings[5].contains("64 B"), "{headings:?}");
    assert!(listed.iter().all(|one| one["rows"] == 3));
    let text = Lab::at(home.path()).line("list").stderr(empty()).success().stdout;
    let at = |size: &str| text.find(size).unwrap_or_else(|| panic!("no {size} in\n{text}"));
    assert!(at("69 B") < at("64 B"), "{text}");
}

#[test]
fn every_state_is_told() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Lab::at(home.path()).line("ping -d 50s -i 2ms --warmup 0").start();
    let pid = running.pid().as_raw_nonzero().get();
    wait_until("the run was under way", || !recordings(home.path()).is_empty() && !list(home.path()).is_empty());
    let listed = list(home.path());
    assert_eq!(states(&listed), ["measuring"]);
    assert_eq!(listed[0]["reason"], format!("by process {pid}"));
    let recording = only_recording(home.path());
    let busy = Lab::at(home.path()).arg("summary").arg(&recording).stdout(empty());
    busy.stderr(contains(format!("cause: process {pid}"))).stderr(contains("\n  hint: ")).failure(3);

    running.signal(Signal::KILL);
    running.dies_of(Signal::KILL);
    assert_eq!(states(&list(home.path())), ["unfinished"]);
    assert!(recording.join("events.spool").exists(), "a look changes nothing");
    Lab::at(home.path()).arg("summary").arg(&recording).success();
    assert_eq!(states(&list(home.path())), ["recovered"]);

    fs::write(recording.join("manifest.json"), "").expect("ours");
    let listed = list(home.path());
    assert_eq!(states(&listed), ["damaged"]);
    assert!(listed[0]["reason"].as_str().expect("why").ends_with("0 bytes"), "{listed:?}");
    Lab::at(home.path()).line("list").stdout(contains("damaged")).stderr(empty()).success();
}
