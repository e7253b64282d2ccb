//! `latlab compare` of files of numbers in corner cases: values around 0, overflow, empty and missing files.

use std::process::Command;

use serde_json::json;

use crate::compare::document;
use crate::harness::{Latlab, command, contains};

/// A stationary log with a lag-1 autocorrelation of 0.8 around 100, from a generator with a fixed seed.
fn correlated_lines(count: usize) -> Vec<String> {
    let (mut seed, mut state) = (1_u64, 0.0);
    let mut line = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state = 0.8 * state + (seed >> 40) as f64 / (1 << 24) as f64 - 0.5;
        format!("{:.4}\n", 100.0 + state)
    };
    (0..count).map(|_| line()).collect()
}

#[test]
fn lines_are_runs_or_probes_as_stated() {
    let lines = correlated_lines(4_000);
    let halves = || Latlab::new().file("a", lines[..2_000].concat()).file("b", lines[2_000..].concat());
    // Each file may be one run: it is compared, without a verdict.
    for option in ["", "--lines probes"] {
        let ran = halves().line("compare a b --json").line(option).success();
        let document = document(&ran);
        let (group, row) = (&document["groups"][0], &document["comparisons"][0]);
        assert_eq!((&group["runs"], &group["n"]), (&json!(1), &json!(2_000)), "{group}");
        assert_eq!((&row["verdict"], &row["reason"]), (&json!("undecided"), &json!("single-runs")), "{row}");
        assert!(row["difference"]["value"].is_number() && row["p_value"].is_null(), "{row}");
        assert_eq!(document["caveats"][0]["hint"], "`--lines runs` if each line is a run");
    }
    // Its mean counts, not that of logarithms.
    let skewed = Latlab::new().file("a", "1\n100\n").file("b", "10\n10\n");
    skewed.line("compare a b --lines probes").stdout(contains(" 50.5  ")).success();
    let as_runs = || halves().line("compare a b --lines runs");
    let warned = as_runs().line("--json").stderr(contains("in their order the 2,000 lines of a count as")).success();
    assert_eq!(document(&warned)["groups"][0]["runs"], 2_000);
    as_runs().line("--explain").stdout(contains("2000 and 2000 lines in")).success();
    halves().line("compare --ministat -A a b").stderr(contains("treats all lines as independent")).success();
    halves().line("compare --ministat --lines runs a b").failure(2);
}

/// RLIMIT_DATA covers all private memory that is written.
#[test]
fn two_million_numbers_are_compared_in_200_mib() {
    let line = |line: u64| format!("{}\n", 1_000 + line.wrapping_mul(2_654_435_761) % 997);
    let text: String = (0..1_000_000).map(line).collect();
    let lab = Latlab::new().file("a", &text).file("b", &text);
    let ran = Command::new("prlimit")
        .arg(format!("--data={}", 200 << 20))
        .arg(command().get_program())
        .args(["compare", "a", "b", "--json", "-q"])
        .current_dir(lab.path(""))
        .output()
        .expect("util-linux is installed");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let document: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert_eq!(document["groups"][0]["n"], 1_000_000);
}
