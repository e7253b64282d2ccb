//! `latlab doctor`: findings with their remedies, exit code 1 for a blocker, and the floor of the instrument.

use std::fs;

use serde_json::Value;

use crate::documents::check;
use crate::harness::{Latlab, contains, empty, lacks};

fn severities(document: &Value) -> Vec<&str> {
    let findings = document["findings"].as_array().expect("a list");
    findings.iter().map(|finding| finding["severity"].as_str().expect("a word")).collect()
}

#[test]
fn findings_are_a_document_and_a_blocker_is_exit_code_1() {
    // Whether this host is fit is not for a test to say; that the code agrees with the findings is.
    let running = Latlab::new().line("doctor --json --cpu 0").stderr(empty()).start();
    let ran = running.exits_with_one_of(&[0, 1]);
    let document = ran.json();
    check(&document, "doctor/1");
    assert_eq!(severities(&document).contains(&"blocker"), ran.code == 1, "{document:#}");

    let ran = Latlab::new().line("doctor --json --cpu 1023").stderr(empty()).failure(1);
    let document = ran.json();
    check(&document, "doctor/1");
    assert_eq!(severities(&document)[0], "blocker", "worst first");
    assert!(document["findings"][0]["fix"].is_string(), "{document:#}");
    let text = Latlab::new().line("doctor --cpu 1023").stdout(contains("blocker")).stdout(contains("CPU 1023"));
    text.stdout(lacks("\u{1b}")).stderr(empty()).failure(1);
}

#[test]
fn the_same_host_is_judged_by_how_it_shall_be_measured() {
    let find = |line: &str, code: &str| -> Value {
        let ran = Latlab::new().line(line).stderr(empty()).start().exits_with_one_of(&[0, 1]);
        let findings = ran.json()["findings"].as_array().expect("a list").clone();
        findings.into_iter().find(|finding| finding["code"] == code).unwrap_or_default()
    };
    assert!(find("doctor --json --wait spin", "timer-slack").is_null(), "who spins has no timer");
    let steal = find("doctor --json", "steal");
    assert!(steal["message"].as_str().is_some_and(|message| message.starts_with("steal ")), "two looks: {steal}");
}

#[test]
fn the_bare_loop_becomes_the_floor_of_later_summaries_on_the_same_pins() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let state = home.path().join("state");
    let lab = |line: &str| Latlab::at(home.path()).line(line).environment("XDG_STATE_HOME", &state);
    let floor = |line: &str| lab(line).success().json()["instrument"]["bare_loop"].clone();
    let ping = "ping -n 5 --warmup 0 --json --cpu 0 --peer-cpu 0";
    assert!(floor(ping).is_null(), "nothing was measured yet");

    let ran = lab("doctor --calibrate --cpu 0 --peer-cpu 0 --json").start().exits_with_one_of(&[0, 1]);
    check(&ran.json(), "doctor/1");
    let findings = ran.json()["findings"].to_string();
    assert!(findings.contains("bare-loop"), "{findings}");
    assert!(state.join("latlab/calibrations.json").exists());

    assert!(floor(ping)["p50_ns"].as_f64() > Some(0.0));
    assert!(floor("ping -n 5 --warmup 0 --json --cpu 0 --peer-cpu 0 -s 65").is_null(), "another size, another floor");
    assert!(floor("ping -n 5 --warmup 0 --json").is_null(), "other pins, another floor");
    let text = lab("ping -n 5 --warmup 0 --cpu 0 --peer-cpu 0").success().stdout;
    let words: Vec<_> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("bare loop on these pins p50"), "{text}");
}

#[test]
fn a_calibration_that_cannot_be_kept_is_told_all_the_same() {
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::write(home.path().join("state"), "a file").expect("a file");
    let lab = Latlab::at(home.path()).line("doctor --calibrate --json").environment("XDG_STATE_HOME", "state");
    let lab = lab.stderr(contains("warning: cannot keep the calibration: ")).stderr(contains("XDG_STATE_HOME"));
    let document = lab.start().exits_with_one_of(&[0, 1]).json();
    assert!(document["findings"].to_string().contains("bare loop on loopback"), "{document:#}");
}
