//! `latlab export` of figures: what of a run counts as lost, which runs are left out, and how conditions differ in it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Finished, Latlab, contains};
use crate::hostile::{copy_directory, testdata};

/// A log of sockperf with 9 rows, whose totals count 4 lost messages more.
fn sockperf_log() -> String {
    let row = |row: u64| {
        let sent = row * 20_000_000;
        format!("{row}, 2.{sent:09}, 2.{:09}, 5.9\n", sent + 12_000 + row * 100)
    };
    format!(
        "------------------------------\n\
         test was performed using the following parameters: --mps=50 --burst=1 --reply-every=1 --msg-size=14 --time=1\n\
         ------------------------------\n\
         sockperf: [Valid Duration] RunTime=0.260 sec; SentMessages=13; ReceivedMessages=9\n\
         sockperf: # dropped messages = 4; # duplicated messages = 0; # out-of-order messages = 0\n\
         ------------------------------\n\
         packet, txTime(sec), rxTime(sec), latency(usec)\n\
         {}------------------------------\n",
        (0..9).map(row).collect::<String>()
    )
}

/// A directory with copies of recordings of testdata: place and name.
fn home_with(copies: &[(&str, &str)]) -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    copies.iter().for_each(|(place, name)| copy_directory(&testdata(place), &home.path().join(name)));
    home
}

/// A directory with the recording `logged` of [`sockperf_log`].
fn home_with_sockperf() -> TempDir {
    let home = home_with(&[]);
    fs::write(home.path().join("log"), sockperf_log()).expect("written");
    run(&home, "import log -o logged");
    home
}

#[track_caller]
fn run(home: &TempDir, line: &str) -> Finished {
    Latlab::at(home.path()).line(line).success()
}

#[track_caller]
fn summary(home: &TempDir, recording: &str) -> Value {
    Latlab::at(home.path()).line(&format!("summary {recording} --json")).start().exits_with_one_of(&[0, 4]).json()
}

#[test]
fn losses_that_a_log_counts_in_its_totals_are_those_of_the_summary_in_every_figure() {
    let home = home_with_sockperf();
    let described = summary(&home, "logged")["metrics"]["pdv"].clone();
    assert_eq!((&described["n"], &described["lost"]), (&json!(13), &json!(4)));
    for (metric, p50) in [("round_trip_delay", 12_600.0), ("pdv", 600.0)] {
        let line = |rest: &str| run(&home, &format!("export logged --metric {metric} {rest}")).stdout;
        assert_eq!(line("--format values").trim().parse::<f64>().ok(), Some(p50), "{metric}");
        assert_eq!(line("--format values --statistic p90"), "", "{metric}");
        assert!(line("--format hlog").contains("#[lost: 4]\n"), "{metric}");
        assert!(line("--histogram").contains(&format!("\n{metric},ns,,,4,")), "{metric}");
    }
    assert_eq!(described["quantiles"][0]["value"], json!(600.0));
    copy_directory(&home.path().join("logged"), &home.path().join("again"));
    let compared = Latlab::at(home.path()).line("compare logged again --metric pdv --statistic p50 --statistic p90");
    let compared = compared.start().exits_with_one_of(&[0, 1, 2, 3, 4, 5]);
    assert!(
        compared.stdout.contains("600 ns") && compared.stdout.contains("infinite in every run"),
        "{}",
        compared.stdout
    );
}

/// The summary of the import of the export of `recording`, a log of HdrHistogram.
#[track_caller]
fn summary_of_import(home: &TempDir, recording: &str, metric: &str) -> Value {
    run(home, &format!("export {recording} --format hlog --metric {metric} --force -o x.hlog"));
    let name = format!("{recording}-{metric}");
    run(home, &format!("import x.hlog -o {name}"));
    summary(home, &name)
}

#[test]
fn an_import_of_an_interval_log_states_losses_only_if_its_metric_shows_them() {
    let home = home_with(&[("recordings/good/scheduled", "x"), ("recordings/good/closed", "closed")]);
    for (recording, metric) in [("x", "send_slip"), ("x", "reflector_dwell"), ("closed", "reflector_dwell")] {
        let imported = summary_of_import(&home, recording, metric);
        assert_eq!((&imported["lost"], &imported["loss_ratio"]), (&Value::Null, &Value::Null), "{metric}");
        let text = fs::read_to_string(home.path().join("x.hlog")).expect("written");
        assert!(!text.contains("#[lost") && !text.contains("#[infinite"), "{text}");
        let gate = format!("summary {recording}-{metric} --gate loss_ratio<=1%");
        Latlab::at(home.path()).line(&gate).stderr(contains("imported log")).failure(2);
    }
    let loss_ratio = summary(&home, "x")["loss_ratio"].clone();
    for metric in ["round_trip_delay", "round_trip_delay_less_dwell", "pdv"] {
        let imported = summary_of_import(&home, "x", metric);
        assert_eq!((&imported["lost"], &imported["loss_ratio"]), (&json!(40), &loss_ratio), "{metric}");
    }
    // Probes that were never sent are infinite in it as well.
    assert_eq!(summary_of_import(&home, "x", "response_time")["lost"], 120);
    let stream = home_with(&[("recordings/forms/stream-down", "x")]);
    run(&stream, "export x --format hlog -o x.hlog");
    assert!(!fs::read_to_string(stream.path().join("x.hlog")).expect("written").contains("#[lost"));
}

#[test]
fn singletons_are_those_of_runs_that_a_comparison_would_compare() {
    let home = home_with(&[("recordings/good/closed", "s/a"), ("recordings/good/closed", "s/failed")]);
    set_ending(&home.path().join("s/failed"), "failed");
    let ran = Latlab::at(home.path()).line("export s --format values --singletons");
    let ran = ran.stderr(contains("left out: 1 run (warm-up runs, and what did not end by itself")).success();
    assert_eq!(ran.stdout.lines().count(), 1_992);
    let figures = Latlab::at(home.path()).line("export s --format values").stderr(contains("left out: 1 run"));
    assert_eq!(figures.success().stdout.lines().count(), 1);
}

fn set_ending(recording: &Path, ending: &str) {
    let path = recording.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).expect("a manifest")).expect("JSON");
    manifest["ending"] = ending.into();
    fs::write(&path, manifest.to_string()).expect("its own");
}
