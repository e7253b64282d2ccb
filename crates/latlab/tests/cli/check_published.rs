//! `latlab check-published`: samples with the faults of published experiments, made here, and a recording.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Finished, Latlab, check_schema, contains, empty, lacks};

/// Numbers between 0 and 1 without a trend, the same in every test.
fn noise(step: u64) -> f64 {
    let mixed = (step + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ (mixed >> 32)) >> 11) as f64 / (1_u64 << 53) as f64
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn quantile(values: &[f64], q: f64) -> f64 {
    let sorted = sorted(values);
    let place = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

fn lines(values: &[f64]) -> String {
    values.iter().fold(String::new(), |mut text, value| {
        writeln!(text, "{value}").expect("a string takes it");
        text
    })
}

fn document(ran: &Finished) -> Value {
    let document = ran.json();
    check_schema(&document, "check-published/1");
    document
}

/// The verdicts of the document's figures.
fn verdicts(document: &Value) -> Vec<String> {
    let own = document["figures"].as_array().expect("a list").iter();
    own.map(|one| one["verdict"].as_str().expect("a word").to_owned()).collect()
}

/// The codes of the mistakes that explain most figures.
fn mistakes(document: &Value) -> Vec<String> {
    let own = document["mistakes"][0]["mistakes"].as_array().expect("a mistake").iter();
    own.map(|one| one["code"].as_str().expect("a word").to_owned()).collect()
}

/// The check of the figures `claims` of `values` in a file, which ends with `code`.
#[track_caller]
fn checked(values: &[f64], args: &str, claims: &str, code: i32) -> Finished {
    let lab = Latlab::new().file("log.txt", lines(values)).line("check-published log.txt").line(args);
    lab.args(["--claims", claims]).failure(code)
}

#[test]
fn ids_in_the_table_halve_every_mean() {
    // Lesson A. Delays of 1.2 ms and more, in ns, beside ids from 1 on.
    let delays: Vec<f64> = (0..10_000).map(|step| (1.2e6 - 2.4e6 * noise(step).ln()).round()).collect();
    let both: Vec<f64> = delays.iter().copied().chain((1..=10_000).map(f64::from)).collect();
    let ms = |value: f64| format!("{:.3}ms", value / 1e6);
    let claims = format!(
        "avg={} p99.9={} p99={} max={} min=1ns n=10000",
        ms(mean(&both)),
        ms(quantile(&both, 0.999)),
        ms(quantile(&both, 0.99)),
        ms(quantile(&both, 1.0))
    );
    let log = delays.iter().enumerate().fold(String::new(), |log, (id, delay)| log + &format!("{},{delay}\n", id + 1));
    let check = |form: &str| {
        let lab = Latlab::new().file("log.csv", &log).line("check-published log.csv -d , -C 2 --id-column 1 --unit ns");
        lab.line(form).args(["--claims", &claims])
    };
    let found = document(&check("--json").failure(1));
    let explained = "explained";
    assert_eq!(verdicts(&found), [explained, explained, explained, "holds", explained, "holds"]);
    assert_eq!(mistakes(&found), ["ids-included"], "{found:#}");
    assert!(found["mistakes"][0]["chance"].as_f64().is_some_and(|chance| chance < 1e-4), "{found:#}");
    // n is that of the values, which the table with ids has twice.
    assert_eq!(found["mistakes"][0]["against"], json!([5]));
    let text = check("").stdout(contains("explained by 1")).stdout(contains("packet ids")).failure(1);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{}", text.stdout);
    // Without the ids no mistake fits.
    let without = Latlab::new().file("log.csv", &log).line("check-published log.csv -d , -C 2 --unit ns --json");
    let found = document(&without.args(["--claims", &claims]).failure(1));
    assert_eq!(verdicts(&found)[0], "contradicted", "{found:#}");
}

/// The check of `claims` about the file `log` with `text`, as it is and imported with `--unit` and the like of `import`: the two
/// documents, whose sources alone may differ.
#[track_caller]
fn direct_and_imported(text: &str, import: &str, args: &str, claims: &str, code: i32) -> Value {
    let ran = Latlab::new().file("log", text).line("import log -o recording").line(import).success();
    let check = |path: &str| {
        let lab = Latlab::at(ran.directory()).arg("check-published").arg(path).line(args).line("--json");
        let mut found = document(&lab.args(["--claims", claims]).failure(code));
        found["source"].take();
        found
    };
    let (direct, imported) = (check("log"), check("recording"));
    assert_eq!(direct, imported, "{direct:#} {imported:#}");
    direct
}

/// Delays of about `centre` with a long tail.
fn delays(n: u64, centre: f64) -> impl Iterator<Item = i64> {
    (0..n).map(move |step| (centre * (0.8 - 0.25 * noise(step).ln())) as i64)
}

#[test]
fn ids_among_halves_less_dwell_are_found_in_a_four_times_log() {
    // Lesson A. The table held ids from 1 on, and ((t4 − t1) − (t3 − t2)) / 2.
    let dwell = |step: u64| 9_000 + (noise(step + 77) * 90_000.0) as i64;
    let (mut log, mut both) = (String::from("# id t1 t2 t3 t4\n"), Vec::new());
    for (step, delay) in (0_u64..).zip(delays(10_000, 7.2e6)) {
        let (sent, arrived) = (step as i64 * 20_000_000, step as i64 * 20_000_000 + 7_000_000_000);
        let (answered, received) = (arrived + dwell(step), sent + delay + dwell(step));
        writeln!(log, "{} {sent} {arrived} {answered} {received}", step + 1).expect("a string takes it");
        both.extend([(step + 1) as f64, delay as f64 / 2.0]);
    }
    let ms = |value: f64| format!("{:.3}ms", value / 1e6);
    let claims = format!(
        "avg={} p99.9={} p99={} max={} min=1ns",
        ms(mean(&both)),
        ms(quantile(&both, 0.999)),
        ms(quantile(&both, 0.99)),
        ms(quantile(&both, 1.0))
    );
    let found = direct_and_imported(&log, "", "", &claims, 1);
    assert_eq!(mistakes(&found), ["dwell-subtracted", "half-round-trip", "ids-included"], "{found:#}");
    // 1 ns is one digit, which many combinations have: it is explained by what the other figures prove.
    assert_eq!(verdicts(&found), ["explained"; 5], "{found:#}");
    let alone = direct_and_imported(&log, "", "", "min=1ns", 1);
    assert_eq!(verdicts(&alone), ["contradicted"], "{alone:#}");
    // With the stated definition one mistake is left, and the maximum holds.
    let stated = "--half --metric round_trip_delay_less_dwell";
    let found = direct_and_imported(&log, "", stated, &claims, 1);
    assert_eq!(mistakes(&found), ["ids-included"], "{found:#}");
    assert_eq!(verdicts(&found)[3..], ["holds", "explained"], "{found:#}");
}

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings/good").join(name)
}

#[test]
fn the_figures_of_a_recording_hold_as_its_summary_states_them() {
    let summary = Latlab::new().line("summary --json").arg(recording("closed")).success().json();
    let figures = &summary["metrics"]["round_trip_delay"];
    let number = |name: &str| figures[name].as_f64().expect("a figure");
    let claims = |half: f64| {
        format!("min={}ns max={}ns mean={:.3}ns", number("min") / half, number("max") / half, number("mean") / half)
    };
    let check = |claims: &str, args: &str| {
        Latlab::new().arg("check-published").arg(recording("closed")).line(args).args(["--claims", claims])
    };
    let n = figures["n"].as_u64().expect("a count");
    check(&format!("{} n={n} stddev={:.3}ns", claims(1.0), number("stddev")), "").success();
    let halved = document(&check(&claims(2.0), "--json").failure(1));
    assert_eq!((verdicts(&halved), mistakes(&halved)), (vec!["explained".into(); 3], vec!["half-round-trip".into()]));
    check(&claims(2.0), "--half").success();
    check("mean=1us", "--metric loss_ratio").stderr(contains("name a delay of it")).failure(2);
    check("mean=1us", "--metric offered_rate").stderr(contains("round_trip_delay")).failure(2);
}

#[test]
fn a_file_of_claims_is_read_like_the_option() {
    let lab =
        Latlab::new().file("log.txt", "1\n2\n3\n").file("table.txt", "# a table\nmin=1 max=3\nmean=2.0 # exact\n");
    let lab = lab.line("check-published log.txt --claims-file table.txt --claims n=3 --json");
    assert_eq!(verdicts(&document(&lab.success())), ["holds"; 4]);
}

#[test]
fn bad_requests_are_refused_with_a_hint() {
    for (args, claims, said) in [
        ("log.txt", "meen=3us", "`mean` is one"),
        ("log.txt", "mean=3us", "have no unit"),
        ("log.txt --unit ms", "mean=1,821ms", "it has a comma"),
        ("log.txt --unit us", "mean=--5us", "it is not a decimal number"),
        ("log.txt --unit us", "a > b", "`latlab compare` says"),
        ("log.txt --unit us --metric pdv", "mean=3", "file of numbers"),
        ("log.txt --id-column 2", "mean=3", "packet ids"),
        ("absent.txt", "mean=3", "no such file"),
        ("log.txt --claims-file absent", "mean=3", "absent"),
    ] {
        let lab =
            Latlab::new().file("log.txt", "1\n2\n3\n").line("check-published").line(args).args(["--claims", claims]);
        lab.stdout(empty()).stderr(contains(said)).stderr(lacks("panicked")).failure(2);
    }
    let lab = Latlab::new().file("log.txt", "1\n2\n").line("check-published log.txt --claims #none");
    lab.stderr(contains("there is nothing to check")).failure(2);
}

#[test]
fn all_digits_of_a_file_count_and_those_that_a_log_loses_are_not_judged() {
    checked(&[0.2, 0.3, 0.4], "--unit ns", "mean=0.3ns max=0.4ns min=0.2ns", 0);
    checked(&[281.41234, 282.51234, 283.6], "--unit us", "min=281.41234us max=283.60000us median=282.51234us", 0);
    checked(&[0.000123456781, 0.000123456792], "", "min=0.000123456781 max=0.000123456792", 0);
    checked(&[0.1234567890123], "--unit s", "max=0.1234567890124s", 1);
    let log = "id,rtt_us\n0,281.41234\n1,282.51234\n2,283.6\n";
    let check = |claims: &str, args: &str| {
        Latlab::new().file("log", log).line("check-published log").args(["--claims", claims]).line(args)
    };
    check("min=281.412us", "").stdout(contains("digits below 1 ns")).success();
    assert_eq!(document(&check("min=281.412us", "--json").success())["rounded"], json!(true));
    // What the log has below 1 ns is not compared, and nothing else is let through.
    check("max=283.6us min=281.4120us", "").success();
    check("min=281.4150us", "").stdout(contains("contradicted")).failure(1);
    let long = "id,rtt_us\n0,281.41200000000000000000001\n1,000000000000000000000283.412\n";
    let lab = Latlab::new().file("log", long).line("check-published log --claims");
    lab.arg("min=281.4120000000000000000000us mean=282.412us").success();
}

#[test]
fn quantiles_of_another_type_hold_and_left_out_values_are_named() {
    let values: Vec<f64> = (0..4_003).map(|step| (3e5 - 9e4 * noise(step).ln()).round()).collect();
    let own = sorted(&values);
    // Type 8 of Hyndman and Fan: q(n + 1/3) + 1/3.
    let place = 0.99 * (4_003.0 + 1.0 / 3.0) - 2.0 / 3.0_f64;
    let (low, next) = (own[place as usize], own[place as usize + 1]);
    let p99 = low + place.fract() * (next - low);
    let found = document(&checked(&values, "--unit ns --json", &format!("p99={p99:.2}ns n=4003"), 0));
    assert_eq!(found["figures"][0]["convention"], json!("quantile-type-8"), "{found:#}");
    let text = checked(&values, "--unit ns", &format!("p99={p99:.2}ns"), 0).stdout;
    assert!(text.contains("convention") && text.contains("type 8"), "{text}");
    let mean = mean(&own[..3_999]);
    let found = document(&checked(&values, "--unit ns --json", &format!("mean={mean:.1}ns max={}ns", own[4_002]), 1));
    assert_eq!((mistakes(&found), verdicts(&found)[1].as_str()), (vec!["slowest-0-1-left-out".to_owned()], "holds"));
}
