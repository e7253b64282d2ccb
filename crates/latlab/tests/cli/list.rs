//! `latlab list`: the recordings and experiments of a store in every state.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Latlab, check_schema, contains, empty, wait_until};
use crate::store::{only_recording, recordings};

/// The list of the default store of `directory`, checked against its schema.
#[track_caller]
fn list(directory: &Path) -> Vec<Value> {
    let document = Latlab::at(directory).line("list --json").stderr(empty()).success().json();
    check_schema(&document, "list/1");
    document["recordings"].as_array().expect("a list").clone()
}

fn states(list: &[Value]) -> Vec<&str> {
    list.iter().map(|recording| recording["state"].as_str().expect("a word")).collect()
}

#[test]
fn an_empty_or_missing_store_is_not_an_error() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for form in ["list", "list --json"] {
        let missing = Latlab::at(home.path()).line(form).stdout(contains("latlab-runs"));
        let ran = missing.stderr(contains("note: the store `./latlab-runs` does not exist")).success();
        if form.ends_with("--json") {
            check_schema(&ran.json(), "list/1");
            assert_eq!(ran.json()["recordings"], Value::Array(Vec::new()));
        }
    }
    fs::create_dir(home.path().join("latlab-runs")).expect("made");
    assert!(list(home.path()).is_empty());
    Latlab::at(home.path()).line("list").stdout(contains("latlab-runs")).stderr(empty()).success();
    fs::create_dir(home.path().join("latlab-runs/something-else")).expect("made");
    assert!(list(home.path()).is_empty());
    let lab = Latlab::at(home.path()).file("taken", "a file").line("list --store taken").stdout(empty());
    lab.stderr(contains("`taken`")).stderr(contains("\n  hint: ")).failure(2);
}

#[test]
fn the_newest_recording_is_first_also_within_a_second() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for size in 64..70 {
        Latlab::at(home.path()).line(&format!("ping -n 3 --warmup 0 -s {size}")).success();
    }
    let listed = list(home.path());
    assert_eq!(states(&listed), ["completed"; 6]);
    let headings: Vec<_> = listed.iter().map(|one| one["heading"].as_str().expect("a text").to_owned()).collect();
    assert!(headings[0].contains("69 B") && headings[5].contains("64 B"), "{headings:?}");
    assert!(listed.iter().all(|one| one["rows"] == 3));
    let text = Latlab::at(home.path()).line("list").stderr(empty()).success().stdout;
    let at = |size: &str| text.find(size).unwrap_or_else(|| panic!("no {size} in\n{text}"));
    assert!(at("69 B") < at("64 B"), "{text}");
}

#[test]
fn each_state_of_a_recording_is_listed() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).line("ping -d 50s -i 2ms --warmup 0").start();
    let pid = running.pid().as_raw_nonzero().get();
    wait_until("the run was under way", || !recordings(home.path()).is_empty() && !list(home.path()).is_empty());
    let listed = list(home.path());
    assert_eq!(states(&listed), ["measuring"]);
    assert_eq!(listed[0]["reason"], format!("by process {pid}"));
    let recording = only_recording(home.path());
    let busy = Latlab::at(home.path()).arg("summary").arg(&recording).stdout(empty());
    busy.stderr(contains(format!("cause: process {pid}"))).stderr(contains("\n  hint: ")).failure(3);

    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    assert_eq!(states(&list(home.path())), ["unfinished"]);
    assert!(recording.join("events.spool").exists(), "a look changes nothing");
    Latlab::at(home.path()).arg("summary").arg(&recording).measured();
    assert_eq!(states(&list(home.path())), ["recovered"]);

    fs::write(recording.join("manifest.json"), "").expect("ours");
    let listed = list(home.path());
    assert_eq!(states(&listed), ["damaged"]);
    assert!(listed[0]["reason"].as_str().expect("why").ends_with("0 bytes"), "{listed:?}");
    Latlab::at(home.path()).line("list").stdout(contains("damaged")).stderr(empty()).success();
}

/// Four runs of two sizes.
const SMALL: &str = "name = \"small one\"\nkind = \"ping\"\n[base]\ncount = 50\nwarmup = \"0\"\n[factors]\n\
                     size = [24, 64]\n[design]\nruns = 2\nsettle = \"0s\"\n";

#[test]
fn experiments_are_listed_with_their_progress() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let listed = || {
        let document = Latlab::at(home.path()).line("list --json").stderr(empty()).success().json();
        check_schema(&document, "list/1");
        document["experiments"].as_array().expect("a list").clone()
    };
    let facts = |one: &Value| (one["state"].clone(), one["runs_done"].clone(), one["runs_planned"].clone());
    Latlab::at(home.path()).file("x.toml", SMALL).line("run x.toml").measured();
    let [done] = &listed()[..] else { panic!("{:?}", listed()) };
    assert_eq!((facts(done), &done["name"]), (("finished".into(), 4.into(), 4.into()), &"small one".into()));
    assert!(list(home.path()).is_empty(), "its recordings are its own");
    let text = Latlab::at(home.path()).line("list").stderr(empty()).success().stdout;
    assert!(text.contains("4 of 4") && text.contains("finished") && text.contains("small one"), "{text}");
    // The directory of an experiment is listed as the store of its runs.
    let directory = done["experiment"].as_str().expect("a path");
    let inside = Latlab::at(home.path()).args(["list", "--json", "--store", directory]).success().json();
    assert_eq!(inside["recordings"].as_array().map(Vec::len), Some(4));

    let slow = SMALL.replace("count = 50", "duration = \"20s\"");
    let running = Latlab::at(home.path()).file("y.toml", slow).line("run y.toml").start();
    let newest = || listed().into_iter().find(|one| one["state"] != "finished");
    wait_until("it was conducted", || newest().is_some_and(|one| one["state"] == "measuring"));
    let reason = newest().expect("it is there")["reason"].clone();
    assert_eq!(reason, format!("by process {}", running.pid().as_raw_nonzero()));
    running.signal(Signal::INT);
    running.exits(130);
    let one = newest().expect("it is there");
    assert_eq!(facts(&one), ("unfinished".into(), 0.into(), 4.into()));

    fs::write(
        Path::new(&*home.path().join(one["experiment"].as_str().expect("a path"))).join("journal.jsonl"),
        "what\n",
    )
    .expect("ours");
    let one = newest().expect("it is there");
    assert_eq!((&one["state"], &one["runs_done"]), (&"damaged".into(), &Value::Null));
    assert!(one["reason"].as_str().is_some_and(|reason| reason.contains("line 1")), "{one}");
}

#[test]
fn the_summary_of_an_experiment_has_those_of_its_runs() {
    let lab = Latlab::new().file("x.toml", SMALL);
    let home = lab.path("");
    let _done = lab.line("run x.toml").measured();
    let experiment = only_recording(&home);
    let document = Latlab::at(&home).line("summary --json -q").arg(&experiment).success().json();
    let summaries = document["summaries"].as_array().expect("several");
    assert_eq!(summaries.len(), 4);
    assert!(summaries.iter().all(|summary| summary["sent"] == 50 && summary["lost"] == 0), "{document:#}");
    fs::remove_dir_all(experiment.join("runs")).expect("ours");
    let empty_one = Latlab::at(&home).arg("summary").arg(&experiment).stdout(empty());
    empty_one.stderr(contains("has no finished run")).stderr(contains("latlab run FILE --new")).failure(2);
}
