//! `latlab summary`: gates, damaged and incomplete recordings, several recordings, reference summaries.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Finished, Latlab, check_schema, contains, empty, lacks};
use crate::store::recordings_in;

fn testdata(place: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings").join(place)
}

/// A copy of `recording` as `name` in `directory`.
fn copy(recording: &Path, directory: &Path, name: &str) -> PathBuf {
    let copy = directory.join(name);
    fs::create_dir(&copy).expect("made");
    for entry in fs::read_dir(recording).expect("a recording") {
        let file = entry.expect("a file").path();
        fs::copy(&file, copy.join(file.file_name().expect("it has one"))).expect("copied");
    }
    copy
}

/// The only gate of the document that `ran` printed.
fn only_gate(ran: &Finished) -> Value {
    let document = ran.json();
    check_schema(&document, "summary/1");
    let [gate] = document["gates"].as_array().expect("a list").as_slice() else { panic!("{document:#}") };
    gate.clone()
}

#[test]
fn a_recording_without_an_answer_breaks_every_gate() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let recording = copy(&testdata("old/1.0-died"), home.path(), "nothing");
    let spool = fs::OpenOptions::new().write(true).open(recording.join("events.spool")).expect("a copy");
    spool.set_len(64).expect("cut");
    drop(spool);
    for condition in ["p50 <= 1h", "max >= 0ns", "loss_ratio <= 100%", "loss_ratio >= 0"] {
        let ran = Latlab::at(home.path()).line("summary nothing --json --gate").arg(condition).failure(1);
        assert_eq!(only_gate(&ran)["reason"], "unanswered", "{condition}");
    }
}

#[test]
fn damaged_recordings_are_refused_and_not_changed() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let bad: Vec<_> = recordings_in(&testdata("bad")).into_iter().filter(|path| path.is_dir()).collect();
    assert!(bad.len() >= 12, "{bad:?}");
    for recording in bad {
        let name = recording.file_name().expect("it has one").to_string_lossy().into_owned();
        let copy = copy(&recording, home.path(), &name);
        let before = contents(&copy);
        for form in [&["--json"][..], &[]] {
            let lab = Latlab::at(home.path()).args(["summary", &name]).args(form).stdout(empty());
            lab.stderr(contains(format!("`{name}"))).stderr(contains("\n  hint: ")).failure(2);
        }
        assert_eq!(contents(&copy), before, "{name}");
    }
}

#[test]
fn a_damaged_recording_of_a_store_is_named_once_and_breaks_gates() {
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(home.path().join("store")).expect("made");
    let [_, damaged] =
        ["sound", "damaged"].map(|name| copy(&testdata("good/closed"), &home.path().join("store"), name));
    fs::write(damaged.join("manifest.json"), "").expect("a copy");
    let summary = |form: &str| Latlab::at(home.path()).line("summary store").line(form).stderr(contains("skipped: "));
    summary("").stderr(lacks("gate")).success();
    let broken = "gone, damaged or edited: `damaged`: no gate is met";
    summary("--gate p50<=1h").stderr(contains(broken)).failure(1);
}

fn contents(recording: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    recordings_in(recording).into_iter().map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

#[test]
fn a_spool_truncated_after_its_header_is_recovered() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let died = testdata("old/1.0-died");
    let whole = fs::metadata(died.join("events.spool")).expect("a spool").len();
    for kept in [64, 65, whole / 2 + 1, whole - 1, whole] {
        let name = format!("cut-{kept}");
        let recording = copy(&died, home.path(), &name);
        let spool = fs::OpenOptions::new().write(true).open(recording.join("events.spool")).expect("a copy");
        spool.set_len(kept).expect("cut");
        drop(spool);
        let lab = Latlab::at(home.path()).args(["summary", &name, "--json"]);
        // The remaining run left its schedule.
        let code = if kept <= 65 { 0 } else { 4 };
        let ran = lab.stderr(contains("note: finished an interrupted recording")).failure(code);
        check_schema(&ran.json(), "summary/1");
        assert_eq!(ran.json()["ending"], "recovered");
        if kept <= 65 {
            assert_eq!(ran.json()["sent"], 0, "no whole event is left");
        }
        let again = Latlab::at(home.path())
            .args(["summary", &name, "--json"])
            .stderr(lacks("note: finished"))
            .failure(ran.code);
        assert_eq!(again.stdout, ran.stdout);
    }
    // Right behind a checksum nothing shows how much was cut off: the caveat says so.
    let recording = copy(&testdata("old/1.10-died"), home.path(), "at-a-checksum");
    let spool = fs::OpenOptions::new().write(true).open(recording.join("events.spool")).expect("a copy");
    spool.set_len(64 + 64 * 64).expect("cut");
    let document = Latlab::at(home.path()).line("summary at-a-checksum --json").measured().json();
    let caveats = document["caveats"].as_array().expect("a list");
    let early = caveats.iter().find(|caveat| caveat["code"] == "ended-early").expect("its process was killed");
    assert!(early["effect"].as_str().expect("text").ends_with("what was cut off its event log"), "{early}");
}

#[test]
fn a_recording_without_measured_probes_opens() {
    let home = tempfile::tempdir().expect("a temporary directory");
    // It was killed during the warm-up.
    let recording = copy(&testdata("old/1.0-died"), home.path(), "nothing");
    let spool = fs::OpenOptions::new().write(true).open(recording.join("events.spool")).expect("a copy");
    spool.set_len(64).expect("cut");
    drop(spool);
    let document = Latlab::at(home.path()).line("summary nothing --json").success().json();
    check_schema(&document, "summary/1");
    assert_eq!((&document["sent"], &document["answered"]), (&0.into(), &0.into()));
    let delay = &document["metrics"]["round_trip_delay"];
    assert!(delay["mean"].is_null() && delay["min"].is_null(), "{delay}");
    assert!(!document["caveats"].as_array().expect("a list").is_empty());
}
