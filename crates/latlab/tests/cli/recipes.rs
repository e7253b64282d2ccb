//! The built-in experiments: as files, and done quickly.

use std::time::{Duration, Instant};

use crate::harness::{Lab, contains, empty};

/// `--quick` promises a minute; a recipe that takes three is stuck.
const QUICK: Duration = Duration::from_secs(180);

fn quick(recipe: &str) -> String {
    let start = Instant::now();
    let ran = Lab::new().args(["run", recipe, "--quick"]).deadline(QUICK).start().ends_with(&[0, 4]);
    assert!(start.elapsed() < QUICK);
    ran.stdout
}

#[test]
fn they_are_listed_and_shown_as_files_that_run() {
    let list = Lab::new().line("recipes").stderr(empty()).success().stdout;
    for name in ["pi-udp-load", "pi-roundtrip", "aa"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
        for scale in ["", " --quick", " --full"] {
            let file = Lab::new().line(&format!("recipes show {name}{scale} --target lab")).success().stdout;
            assert!(file.starts_with("# ") && file.contains("target = \"lab\""), "{file}");
            Lab::new().file("x.toml", file).line("run x.toml --dry-run").stdout(contains("ping lab")).success();
        }
    }
    Lab::new().line("recipes show pi-udp").stderr(contains("known are pi-udp-load")).failure(2);
}

#[test]
fn pi_udp_load_stands_beside_its_publication() {
    let told = quick("pi-udp-load");
    for words in ["round trip less dwell / 2, ms", "p99.99", "no load", "CPU load 80 %", "14.723", "median of 5 runs"] {
        assert!(told.contains(words), "{words} is not in\n{told}");
    }
}

#[test]
fn pi_roundtrip_stands_beside_its_publication() {
    let told = quick("pi-roundtrip");
    for words in ["round trip delay, µs", "12267.0", "network load", "5,000 probes each", "not measured at this scale"]
    {
        assert!(told.contains(words), "{words} is not in\n{told}");
    }
}

#[test]
fn the_same_under_two_names_tells_false_positives_and_drift() {
    let told = quick("aa");
    for words in
        ["every difference found is false", "of blocks and statistics", "Mann-Whitney", "drift of p99 per minute"]
    {
        assert!(told.contains(words), "{words} is not in\n{told}");
    }
}

#[test]
fn rows_that_a_target_lacks_are_left_out_and_a_target_that_lacks_all_is_refused() {
    // Nothing answers there, and a load at a host without an agent cannot be made at all.
    let told = Lab::new().line("run pi-roundtrip 127.0.0.1:9 --quick").failure(3).stderr;
    assert!(told.contains("left out     load=cpu=80%@both: a load at the peer"), "{told}");
    assert!(
        told.contains("`load=none` is left out") && told.contains("no run of the experiment can be judged"),
        "{told}"
    );
}
