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

/// The summary of the recording `name` of testdata with the gate `condition`, which must end with `code`.
#[track_caller]
fn judged(name: &str, condition: &str, code: i32) -> Finished {
    let lab = Latlab::new().arg("summary").arg(testdata(name)).args(["--json", "--gate", condition]);
    lab.failure(code)
}

/// The only gate of the document that `ran` printed.
fn only_gate(ran: &Finished) -> Value {
    let document = ran.json();
    check_schema(&document, "summary/1");
    let [gate] = document["gates"].as_array().expect("a list").as_slice() else { panic!("{document:#}") };
    gate.clone()
}

#[test]
fn a_gate_that_does_not_hold_ends_with_exit_code_1() {
    for (condition, code) in [
        ("p50 <= 0ns", 1),
        ("p50 <= 1h", 0),
        ("p50 >= 1h", 1),
        ("round_trip_delay p50 > 1h", 1),
        ("round_trip_delay mean < 1h", 0),
        ("reflector_dwell max <= 0ns", 1),
        ("min >= 0ns", 0),
        ("stddev <= 0ns", 1),
        ("loss_ratio < 0%", 1),
        ("loss_ratio <= 99%", 0),
    ] {
        let gate = only_gate(&judged("good/closed", condition, code));
        let state = if code == 0 { "kept" } else { "broken" };
        assert_eq!((&gate["gate"], &gate["state"]), (&condition.into(), &state.into()), "{gate}");
        assert!(gate["value"].is_number() && gate["reason"].is_null(), "{gate}");
    }
    let text = Latlab::new().arg("summary").arg(testdata("good/closed")).args(["--gate", "p50 <= 1h"]);
    text.stdout(contains("gate `p50 <= 1h` met: ")).success();
}

#[test]
fn each_of_several_recordings_must_hold_each_gate() {
    let several = || Latlab::new().arg("summary").arg(testdata("good/closed")).arg(testdata("good/scheduled"));
    let ran = several().args(["--gate", "p50 <= 1h", "--gate", "p50 <= 0ns", "-q"]);
    let ran = ran.stdout(contains("gate `p50 <= 1h` met for `")).stdout(contains("gate `p50 <= 0ns` failed for `"));
    ran.stderr(empty()).failure(1);
    let ran = several().args(["--gate", "loss_ratio <= 1%", "--json"]).failure(1);
    let summaries = ran.json()["summaries"].as_array().expect("a list").clone();
    check_schema(&ran.json(), "summaries/1");
    let states: Vec<_> = summaries.iter().map(|summary| &summary["gates"][0]["state"]).collect();
    assert_eq!(states, ["kept", "broken"]);
}

#[test]
fn a_gate_on_a_figure_that_the_recording_lacks_is_refused() {
    let lab = Latlab::new().arg("summary").arg(testdata("good/closed")).args(["--gate", "send_slip p50 <= 1us"]);
    lab.stdout(empty()).stderr(contains("send_slip")).stderr(contains("\n  hint: ")).failure(2);
}

#[test]
fn an_invalid_gate_is_refused() {
    for (condition, hint) in [
        ("p50 <= 200", "250us"),
        ("p50 ~ 1us", "[METRIC] STATISTIC OP VALUE"),
        ("rond_trip_delay p50 <= 1us", "round_trip_delay"),
        ("p50", "[METRIC] STATISTIC OP VALUE"),
        ("p100 <= 1us", ""),
        ("median <= 1us", ""),
        ("loss_ratio <= 1us", ""),
        ("p99 <= +5%", "latlab compare"),
        ("", "[METRIC] STATISTIC OP VALUE"),
    ] {
        let lab = Latlab::new().arg("summary").arg(testdata("good/closed")).args(["--gate", condition]).stdout(empty());
        let lab = lab.stderr(contains(format!("`{condition}`"))).stderr(contains("\n  hint: "));
        lab.stderr(contains(hint)).failure(2);
    }
}

#[test]
fn a_quantile_among_lost_probes_is_infinite() {
    let gate = only_gate(&judged("good/scheduled", "response_time p99 <= 24h", 1));
    assert_eq!((&gate["state"], &gate["reason"], &gate["value"]), (&"broken".into(), &"infinite".into(), &Value::Null));
    // Exit code 4, because its schedule was lost: the gate is kept, but the run is not trusted.
    let gate = only_gate(&judged("good/scheduled", "response_time p99 > 24h", 4));
    assert_eq!((&gate["state"], &gate["reason"]), (&"kept".into(), &"infinite".into()));
}

#[test]
fn a_gate_on_an_unsupported_quantile_is_undecided_unless_its_bound_decides() {
    // Of 1,997 probes, 5 of them lost, 8 lie beyond it.
    let ran = judged("good/closed", "p99.6 <= 1h", 0);
    let gate = only_gate(&ran);
    assert_eq!((&gate["state"], &gate["reason"]), (&"undecided".into(), &"unsupported".into()));
    assert!(ran.stderr.contains("warning: the gate `p99.6 <= 1h` is undecided\n  effect: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("\n  hint: "), "{}", ran.stderr);
    let strict = Latlab::new().arg("summary").arg(testdata("good/closed")).args(["--gate", "p99.6 <= 1h"]);
    strict.arg("--gate-strict").stdout(contains("gate `p99.6 <= 1h` undecided: ")).failure(1);
    let ran = judged("good/closed", "p99.6 <= 0ns", 1);
    let gate = only_gate(&ran);
    assert_eq!((&gate["state"], &gate["reason"]), (&"broken".into(), &"unsupported".into()));
    assert!(gate["lower_bound"].is_number() && !ran.stderr.contains("undecided"), "{gate} {}", ran.stderr);
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
fn a_directory_in_place_of_a_file_is_reported() {
    for (place, file) in
        [("good/closed", "probes.parquet"), ("good/closed", "manifest.json"), ("old/1.1-finished", "host.parquet")]
    {
        let home = tempfile::tempdir().expect("a temporary directory");
        let recording = copy(&testdata(place), home.path(), "recording");
        fs::remove_file(recording.join(file)).expect("a copy");
        fs::create_dir(recording.join(file)).expect("made");
        let lab = Latlab::at(home.path()).line("summary recording").stdout(empty()).stderr(contains(file));
        let ran =
            lab.stderr(contains("\n  cause: ")).stderr(contains("directory")).stderr(lacks("os error")).failure(2);
        assert!(!ran.stderr.contains("External"), "{}", ran.stderr);
    }
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
        // Exit code 4 if the remaining run left its schedule.
        let ran = lab.stderr(contains("note: finished an interrupted recording")).measured();
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
}

#[test]
fn a_path_that_is_not_a_recording_is_refused() {
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::write(home.path().join("file"), "no recording").expect("a file");
    fs::write(home.path().join("empty"), "").expect("a file");
    fs::create_dir(home.path().join("directory")).expect("made");
    for (name, message) in [
        ("absent", "no recording at `absent`"),
        ("file", "`file` is a file"),
        ("empty", "`empty` is a file"),
        ("file/below", "no recording at `file/below`"),
        ("directory", "`directory` is not a recording"),
    ] {
        let lab = Latlab::at(home.path()).args(["summary", name]).stdout(empty());
        lab.stderr(contains(message)).stderr(contains("\n  hint: ")).failure(2);
    }
    // If one of several recordings cannot be read nothing is printed.
    let both = Latlab::at(home.path()).arg("summary").arg(testdata("good/closed")).arg("absent").args(["--json"]);
    both.stdout(empty()).stderr(contains("`absent`")).failure(2);
}

#[test]
fn several_recordings_have_one_document_and_one_table() {
    let several = |form: &str| {
        let lab = Latlab::new().arg("summary").arg(testdata("good/closed")).arg(testdata("good/scheduled"));
        lab.line(form).failure(4)
    };
    let ran = several("--json");
    let printed = format!("error: `{}`: ", testdata("good/scheduled").display());
    assert!(ran.stderr.contains(&printed), "which of them is not to be trusted: {}", ran.stderr);
    let document = ran.json();
    check_schema(&document, "summaries/1");
    assert_eq!(document["summaries"].as_array().map(Vec::len), Some(2));
    let ran = several("");
    assert_eq!(ran.stderr, "", "the text has its caveats already");
    let text = ran.stdout;
    assert!(text.contains("good/closed") && text.contains("good/scheduled"), "{text}");
    Latlab::new().arg("summary").arg(testdata("good/closed")).stdout(lacks("round trip / 2")).success();
    let half = Latlab::new().arg("summary").arg(testdata("good/closed")).args(["--half"]);
    half.stdout(contains("round trip / 2")).success();
}

#[test]
fn fatal_caveats_of_a_json_document_are_repeated_on_stderr() {
    let lab = || Latlab::new().arg("summary").arg(testdata("good/scheduled")).arg("--json");
    let ran = lab().stderr(contains("error: ")).stderr(contains("\n  hint: ")).stderr(lacks("note: ")).failure(4);
    let caveats = ran.json()["caveats"].as_array().expect("a list").clone();
    let serious: Vec<_> = caveats.iter().filter(|caveat| caveat["severity"] != "note").collect();
    for (stderr, most) in [(&ran.stderr, 3), (&lab().arg("-v").failure(4).stderr, serious.len())] {
        for (place, caveat) in serious.iter().enumerate() {
            let is_said = stderr.contains(caveat["message"].as_str().expect("a text"));
            assert_eq!(is_said, place < most, "{caveat}: {stderr}");
        }
    }
    assert!(serious.len() > 3 && ran.stderr.contains(" more warning in the document (`-v`)"), "{}", ran.stderr);
    lab().arg("-q").stderr(contains("error: ")).stderr(lacks("note: ")).failure(4);
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

/// The paths at which `found` differs from `expected`. Floating point numbers may differ in their last digits.
fn differences(place: &str, expected: &Value, found: &Value, into: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) if expected.keys().eq(found.keys()) => {
            for (name, value) in expected {
                differences(&format!("{place}/{name}"), value, &found[name], into);
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
                differences(&format!("{place}/{number}"), expected, found, into);
            }
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let (one, other) = (one.as_f64().expect("it is"), other.as_f64().expect("it is"));
            if (one - other).abs() > 1e-9 * one.abs().max(1.0) {
                into.push(format!("{place}: expected {one}, found {other}"));
            }
        }
        _ if expected == found => {}
        _ => into.push(format!("{place}: expected {expected}, found {found}")),
    }
}

#[test]
fn a_typed_option_that_changes_nothing_of_any_recording_is_named() {
    let (ping, wakeup) = (testdata("old/1.2-finished"), testdata("old/1.3-wakeup"));
    let (values, stream) = (testdata("old/1.11-values"), testdata("old/1.4-stream"));
    for (recordings, options, named) in [
        (vec![&ping], ["--half", "--window=1s"], vec![]),
        (vec![&wakeup], ["--half", "--window=1s"], vec!["`--half` is of round trips"]),
        (vec![&wakeup], ["--half", "--like=netperf-udp-stream"], vec!["`--half` is of", "`--like` repeats the output"]),
        (vec![&wakeup, &ping], ["--half", "--window=1s"], vec![]),
        (vec![&values], ["--deadline=1ms", "--window=1s"], vec!["`--window` divides runs of"]),
        (
            vec![&stream],
            ["--deadline=1ms", "--window=1s"],
            vec!["`--window` divides", "`--deadline` is not of streams"],
        ),
    ] {
        let ran = Latlab::new().arg("summary").args(&recordings).args(options).measured();
        let notes = ran.stderr.lines().filter(|line| line.ends_with("it changes nothing here")).collect::<Vec<_>>();
        assert_eq!(notes.len(), named.len(), "{options:?}: {}", ran.stderr);
        assert!(notes.iter().zip(named).all(|(note, what)| note.contains(what)), "{notes:?}");
    }
}

/// `NAME.summary.json` is the summary of the recording `NAME`; `LATLAB_BLESS=1` writes the missing ones.
#[test]
fn figures_of_reference_recordings_do_not_change() {
    let mut wrong = Vec::new();
    for name in [
        "good/closed",
        "good/scheduled",
        "old/1.0-finished",
        "old/1.0-died",
        "old/1.1-finished",
        "old/1.1-died",
        "old/1.2-finished",
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let copied = copy(&testdata(name), directory.path(), "recording");
        let ran = Latlab::new().arg("summary").arg(&copied).args(["--json", "-q"]).measured();
        let mut found = ran.json();
        check_schema(&found, "summary/1");
        found["recording"] = name.into();
        let path = testdata(&format!("{name}.summary.json"));
        if !path.exists() && std::env::var_os("LATLAB_BLESS").is_some() {
            fs::write(&path, format!("{found:#}\n")).expect("blessed");
        }
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        differences(name, &serde_json::from_str(&text).expect("JSON"), &found, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
