//! `latlab compare` of files of numbers in corner cases: values around 0, overflow, empty and missing files.

use std::process::Command;

use serde_json::json;

use crate::compare::document;
use crate::harness::{Latlab, command, contains, empty, lacks};

/// Two files of six times, those of the second ten times as long. A 0 in the first excludes logarithms.
fn seconds(args: &str) -> Latlab {
    let lab = Latlab::new().file("fast", "0.000\n0.001\n0.002\n0.001\n0.002\n0.001\n");
    lab.file("slow", "0.010\n0.011\n0.012\n0.010\n0.011\n0.012\n").arg("compare").line(args)
}

#[test]
fn a_margin_is_relative_to_the_baseline_at_every_scale() {
    let ran = seconds("fast slow --equivalence 3% --json").success();
    let row = &document(&ran)["comparisons"][0];
    assert_eq!((&row["scale"], &row["verdict"]), (&json!("linear"), &json!("higher")), "{row}");
    assert!(row["relative"]["value"].as_f64().is_some_and(|change| (change - 8.428_571).abs() < 1e-6), "{row}");
    assert!(row["equivalence_p_value"].as_f64().is_some_and(|p| p > 0.9), "{row}");
    seconds("fast slow").stdout(contains("+0.0098 [+0.00")).stdout(contains(" 0.00117 ")).success();
    // Within 1 % of 100, and one value that is not positive, which favours no group.
    let near = |offset: f64| {
        let line = |step: i32| format!("{}\n", offset + f64::from(step % 3));
        (0..12).map(line).collect::<String>() + "-1\n"
    };
    let lab = Latlab::new().file("a", near(100.0)).file("b", near(100.1)).line("compare a b --json --equivalence");
    let wide = lab.arg("40%").success();
    assert_eq!(document(&wide)["comparisons"][0]["verdict"], "equivalent");
    let narrow = Latlab::at(wide.directory()).line("compare a b --json --equivalence 1%").success();
    assert_eq!(document(&narrow)["comparisons"][0]["verdict"], "undecided");
}

#[test]
fn a_gate_is_relative_to_the_baseline_at_every_scale() {
    seconds("fast slow").args(["--gate", "value <= +5%"]).stdout(contains("failed for `slow`: +843 % [")).failure(1);
    seconds("slow fast").args(["--gate", "value >= -5%"]).stdout(contains("failed for `fast`")).failure(1);
    let zeros = |gate: &str| {
        let lab = Latlab::new().file("a", "0\n".repeat(6)).file("b", "1\n2\n1\n2\n1\n2\n");
        lab.line("compare a b --equivalence 3%").args(["--gate", gate])
    };
    let zero = zeros("value <= +5%").stdout(contains("undecided for `b`: +1.5 [+0.9, +2.1]: the baseline is 0, so"));
    zero.stdout(contains("higher")).stderr(contains("the baseline is 0")).stderr(lacks("more runs")).success();
    zeros("value <= +5%").arg("--gate-strict").failure(1);
    let same = Latlab::new().file("a", "1\n-1\n".repeat(4)).file("b", "1\n-1\n".repeat(4));
    let printed = same.line("compare a b --equivalence 3% --json").success();
    let row = &document(&printed)["comparisons"][0];
    assert_eq!((&row["reason"], &row["equivalence_p_value"]), (&json!("zero-baseline"), &json!(null)), "{row}");
}

#[test]
fn a_gate_on_a_statistic_is_refused_with_the_form_that_files_of_numbers_have() {
    for gate in ["median <= +5%", "p50 <= +5%", "value median <= +5%"] {
        let lab = seconds("fast slow").args(["--gate", gate]).stdout(empty());
        lab.stderr(contains("gate on the value: `--gate 'value <= +5%'`")).stderr(lacks("did you mean")).failure(2);
    }
}

#[test]
fn numbers_whose_sum_overflows_are_undecided() {
    let huge = |form: &str| {
        let lab = Latlab::new()
            .file("a", "1e308\n-1e308\n1.5e308\n1.7e308\n")
            .file("b", "1.7e308\n1.6e308\n1.5e308\n1e308\n");
        lab.line("compare a b").line(form)
    };
    let text =
        huge("").stdout(contains("undecided")).stdout(contains("the figures are too large to be added")).success();
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{}", text.stdout);
    let row = &document(&huge("--json").success())["comparisons"][0];
    assert_eq!((&row["reason"], &row["difference"], &row["p_value"]), (&json!("overflow"), &json!(null), &json!(null)));
    huge("--format csv").stdout(lacks("inf")).stdout(lacks("NaN")).stdout(contains(",overflow\n")).success();
    // Their ratio is not a number, their difference is.
    let far = |form: &str| {
        let lab = Latlab::new().file("a", "1e-300\n2e-300\n1e-300\n2e-300\n").file("b", "1e300\n2e300\n1e300\n2e300\n");
        lab.line("compare a b").line(form)
    };
    let row = &document(&far("--json").success())["comparisons"][0];
    assert_eq!((&row["verdict"], &row["relative"]), (&json!("higher"), &json!(null)), "{row}");
    assert!(row["difference"]["value"].as_f64().is_some_and(|value| (1e300..2e300).contains(&value)), "{row}");
    let text = far("").stdout(contains("1.41e300")).success();
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{}", text.stdout);
    far("--format csv").stdout(lacks("inf")).stdout(lacks("NaN")).success();
}

#[test]
fn unreadable_input_is_refused_with_its_kind() {
    let numbers = || Latlab::new().file("a", "1\n2\n3\n").file("none", "").file("binary", b"1\n\xff\xfe\n");
    std::fs::create_dir(numbers().path("x")).expect("made");
    for (args, printed) in [
        ("a none", "no number in column 1"),
        ("a binary -C 2", "no number in column 2"),
        ("a absent", "no such file or directory"),
        ("--by load absent", "no such file or directory"),
        (". absent", "no such file or directory"),
        ("a .", "files with files"),
        ("a binary", "as a number"),
    ] {
        let lab =
            numbers().arg("compare").line(args).stdout(empty()).stderr(contains(printed)).stderr(lacks("warmed up"));
        lab.stderr(contains("\n  hint: ")).failure(2);
    }
}

#[test]
fn the_confidence_is_printed_with_all_its_digits() {
    seconds("fast slow -c 99.999").stdout(contains("each, 99.999 % intervals")).success();
}

#[test]
fn gates_are_printed_in_markdown_as_they_were_typed() {
    let lab = seconds("fast slow --format markdown").args(["--gate", "value <= +5%"]);
    lab.stdout(contains("gate `value <= +5%` failed")).stdout(lacks("&lt;")).failure(1);
}

#[test]
fn the_p_value_of_an_equivalence_is_that_of_its_own_test() {
    let close =
        |offset: f64| (0..9).map(|step| format!("{}\n", offset + f64::from(step % 3) / 10.0)).collect::<String>();
    let lab = || Latlab::new().file("a", close(100.0)).file("b", close(100.0)).line("compare a b --equivalence 3%");
    let row = &document(&lab().arg("--json").success())["comparisons"][0];
    let p = row["adjusted_equivalence_p_value"].as_f64().expect("tested");
    assert!(p < 0.001 && row["adjusted_p_value"] == 1.0 && row["verdict"] == "equivalent", "{row}");
    lab().stdout(contains("equivalent  <0.001")).success();
    let csv = lab().line("--format csv").success().stdout;
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (heading, cells) = (lines.next().expect("a heading"), lines.next().expect("a row"));
    assert_eq!(heading[21..], ["margin", "equivalence_p_value", "adjusted_equivalence_p_value", "reason"]);
    assert_eq!((cells[21], cells[23], cells[24]), ("0.03", p.to_string().as_str(), ""));
}

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
fn intervals_allow_for_lines_that_depend_on_each_other() {
    let lines = correlated_lines(4_000);
    let halves = || Latlab::new().file("a", lines[..2_000].concat()).file("b", lines[2_000..].concat());
    let ran = halves().line("compare a b --json").stderr(contains("the 2,000 lines of a count as")).success();
    let document = document(&ran);
    let (group, row) = (&document["groups"][0], &document["comparisons"][0]);
    assert_eq!((&group["runs"], &group["n"]), (&json!(2_000), &json!(2_000)), "{group}");
    assert!(group["effective_n"].as_f64().is_some_and(|n| (50.0..800.0).contains(&n)), "{group}");
    // Standard deviation 0.48: of 2,000 independent lines the interval would be 0.06 wide, and nine lines are worth one.
    let end = |end: &str| row["difference"][end].as_f64().expect("an end");
    assert!((0.1..0.3).contains(&(end("high") - end("low"))), "{row}");
    assert_eq!((&row["verdict"], &row["runs_needed"]), (&json!("undecided"), &json!(null)), "{row}");
    halves().line("compare a b --explain").stdout(contains("2000 and 2000 lines in")).success();
    halves().line("compare --ministat -A a b").stderr(contains("treats all lines as independent")).success();
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
