//! `latlab export` of figures: what of a run counts as lost, which runs are left out, and how conditions differ in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Finished, Latlab, contains, empty, lacks};
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
        assert!(line("--histogram").ends_with(",ns,,,4\n"), "{metric}");
        let benchmark = line("--format benchstat");
        assert!(benchmark.contains(" 9 ") && benchmark.contains(" p50-ns "), "{benchmark}");
        assert!(!benchmark.contains("p90-ns") && benchmark.contains(" loss-ratio\n"), "{benchmark}");
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

#[test]
fn runs_of_several_kinds_with_a_common_metric_are_refused_because_of_their_kinds() {
    let home = home_with(&[("recordings/good/closed", "s/ping"), ("recordings/old/1.11-values", "s/values")]);
    for kind in ["ping", "values"] {
        run(&home, &format!("export s --kind {kind} --format benchstat --metric round_trip_delay"));
    }
    for line in ["export s --format benchstat --metric round_trip_delay", "report s -o page.html"] {
        let refused = Latlab::at(home.path()).line(line).stderr(contains("runs of `ping` and `values`"));
        refused.stderr(contains("of runs of one kind")).stderr(lacks("metric")).stdout(empty()).failure(2);
    }
}

#[test]
fn a_run_without_a_value_of_a_metric_is_not_one_without_an_answer() {
    let home = home_with_sockperf();
    fs::write(home.path().join("log"), "1 1000 5000 5300 251000\n").expect("written");
    run(&home, "import log -o single");
    for format in FIGURES {
        let undefined = Latlab::at(home.path()).line(&format!("export single {format} --metric ipdv"));
        let undefined = undefined.stderr(contains("1 run without a finite value of inter-packet delay variation"));
        undefined.stderr(lacks("answered")).stdout(lacks("\nBenchmark")).success();
        run_quietly(&home, &format!("export single {format}"));
    }
    for metric in ["reflector_dwell", "round_trip_delay_less_dwell", "response_time"] {
        let refused = Latlab::at(home.path()).line(&format!("export logged --format benchstat --metric {metric}"));
        let refused = refused.stderr(contains("this log has `round_trip_delay`, `pdv`\n"));
        refused.failure(2);
        let gate = Latlab::at(home.path()).args(["summary", "logged", "--gate", &format!("{metric} p50 <= 1ms")]);
        gate.stderr(contains(format!("the imported log does not have what `{metric}` is computed from"))).failure(2);
    }
    // The log of which a recording is in testdata has the instants of the reflector.
    let stamped = home_with(&[("recordings/old/1.11-import", "x")]);
    run(&stamped, "export x --format benchstat --metric reflector_dwell");
    let silent = "PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.\n\n--- 10.0.0.1 ping statistics ---\n\
                  3 packets transmitted, 0 received, 100% packet loss, time 2000ms\n";
    fs::write(home.path().join("log"), silent).expect("written");
    run(&home, "import log -o silent");
    for format in FIGURES {
        let silent = Latlab::at(home.path()).line(&format!("export silent {format}"));
        silent.stderr(contains("1 run without a finite value: nothing was answered")).success();
    }
}

/// The formats that have figures of a metric, apart from a statistic of each run.
const FIGURES: [&str; 5] =
    ["--format benchstat", "--format hlog", "--format prometheus", "--format values --singletons", "--histogram"];

/// Runs a command that succeeds and says nothing on stderr.
#[track_caller]
fn run_quietly(home: &TempDir, line: &str) {
    Latlab::at(home.path()).line(line).stderr(empty()).success();
}

#[test]
fn lost_packets_without_a_row_leave_no_ipdv() {
    let home = home_with_sockperf();
    for format in FIGURES {
        let refused = Latlab::at(home.path()).line(&format!("export logged {format} --metric ipdv"));
        let refused = refused.stderr(contains("lost packets of this log have no row"));
        refused.stderr(contains("it has `round_trip_delay`, `pdv`\n")).stdout(empty()).failure(2);
    }
    let gate = Latlab::at(home.path()).args(["summary", "logged", "--gate", "ipdv p50 <= 1ms"]);
    gate.stderr(contains("the imported log does not have what `ipdv` is computed from")).failure(2);
}

#[test]
fn the_stamps_of_a_log_are_those_that_it_has_and_not_those_of_its_format() {
    let trip = |seqno: u64, reflector: &str| {
        let clock = |name: &str, at: u64| format!("\"{name}\": {{\"wall\": {at}, \"monotonic\": {at}}}");
        let sender = [clock("receive", 1_000_000 * seqno + 90_000), clock("send", 1_000_000 * seqno)].join(", ");
        format!("{{\"seqno\": {seqno}, \"lost\": \"false\", \"timestamps\": {{\"client\": {{{sender}}}{reflector}}}}}")
    };
    let stamps =
        ", \"server\": {\"receive\": {\"wall\": 5, \"monotonic\": 5}, \"send\": {\"wall\": 9, \"monotonic\": 9}}";
    let home = home_with(&[]);
    for (name, reflector) in [("plain", ""), ("stamped", stamps)] {
        let trips: Vec<String> = (1..20).map(|seqno| trip(seqno, reflector)).collect();
        let log = format!("{{ \"round_trips\": [{}] }}", trips.join(", "));
        fs::write(home.path().join("log"), log).expect("written");
        run(&home, &format!("import log --from irtt -o {name}"));
    }
    let gate = |name: &str| Latlab::at(home.path()).args(["summary", name, "--gate", "reflector_dwell p50 <= 1ms"]);
    let refused = gate("plain").stdout(empty());
    refused.stderr(contains("the imported log does not have what `reflector_dwell` is computed from")).failure(2);
    gate("stamped").stdout(lacks("failed")).success();
    let export = |name: &str| format!("export {name} --format benchstat --metric reflector_dwell");
    let refused = Latlab::at(home.path()).line(&export("plain"));
    refused.stderr(contains("this log has `round_trip_delay`, `pdv`, `ipdv`\n")).failure(2);
    run_quietly(&home, &export("stamped"));
}

#[test]
fn the_metric_that_an_import_chose_is_named_as_a_choice() {
    let home = home_with(&[]);
    fs::write(home.path().join("log"), "1\n2\n").expect("written");
    run(&home, "import log --unit us -o numbers");
    fs::write(home.path().join("log"), "Sample Number, Value\n0, 31\n1, 29\n").expect("written");
    run(&home, "import log -o perftest");
    let export = |name: &str, metric: &str| {
        let ran = Latlab::at(home.path()).line(&format!("export {name} --format hlog --metric {metric}"));
        ran.stdout(empty()).failure(2).stderr
    };
    let chosen = export("numbers", "round_trip_delay");
    assert!(chosen.contains("this log was imported as values of `delay`\n"), "{chosen}");
    assert!(chosen.contains("import the log again with `--metric round_trip_delay`; `--metric` names"), "{chosen}");
    for (name, metric, known) in [("numbers", "pdv", "delay"), ("perftest", "delay", "round_trip_delay")] {
        let refused = export(name, metric);
        assert!(refused.contains(&format!("imported as values of `{known}`\n")), "{refused}");
        assert!(!refused.contains("again"), "{refused}");
    }
}

#[test]
fn a_missing_tag_of_an_interval_log_is_not_the_tag_none() {
    let home = home_with(&[]);
    fs::write(home.path().join("log"), "1\n2\n").expect("written");
    for tags in ["", "--tag a=none", "--tag a=b", "--tag a=none --tag b=c", "--tag b=c"] {
        for _ in 0..2 {
            run(&home, &format!("import log --unit us --store s {tags}"));
        }
    }
    let names = |format: &str, start: &str, end: &str| -> BTreeSet<String> {
        let text = run(&home, &format!("export s --format {format}")).stdout;
        text.lines().filter_map(|line| Some(line.strip_prefix(start)?.split_once(end)?.0.to_owned())).collect()
    };
    let tags = names("hlog", "Tag=", ",");
    let expected = ["none", "tag:a=none", "tag:a=b", "tag:a=none;tag:b=c", "tag:b=c"];
    assert_eq!(tags, expected.map(str::to_owned).into());
    assert_eq!(names("benchstat", "Benchmark", " ").len(), tags.len());
}

#[test]
fn the_factors_of_a_tag_are_in_the_order_of_headings() {
    let home = home_with(&[("experiments/finished/factors", "x")]);
    let text = run(&home, "export x --format hlog").stdout;
    let tags: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("Tag=")?.split(',').next()).collect();
    assert!(!tags.is_empty() && tags.iter().all(|tag| tag.starts_with("size=") && tag.contains(";load=")), "{tags:?}");
}

#[test]
fn fates_are_those_of_probes_and_values_and_not_of_a_stream() {
    let home = home_with(&[
        ("recordings/old/1.11-values", "values"),
        ("recordings/old/1.11-import-stream", "stream"),
        ("recordings/forms/stream-down", "own-stream"),
    ]);
    let metrics = |recording: &str| run(&home, &format!("export {recording} --format prometheus")).stdout;
    assert!(metrics("values").contains("latlab_probes_total{"));
    for stream in ["stream", "own-stream"] {
        assert!(!metrics(stream).contains("latlab_probes_total"), "{stream}");
    }
}

#[test]
fn a_refusal_says_what_cannot_be_done_and_what_to_do() {
    let home = home_with(&[("recordings/good/closed", "closed"), ("recordings/good/closed", "again")]);
    for line in ["export closed --format values --statistic foo", "compare closed again --statistic foo"] {
        let refused = Latlab::at(home.path()).line(line).stderr(contains("cannot compute `foo`"));
        refused.stderr(lacks("compare `foo`")).failure(2);
    }
    let refused = Latlab::at(home.path()).line("export closed -o nodir/x.csv");
    let refused = refused.stderr(contains("`nodir` is not a directory")).stderr(contains("`mkdir -p nodir`"));
    refused.stderr(lacks("file system")).stdout(empty()).failure(2);
    let refused = Latlab::at(home.path()).line("export closed -o nodir/../x.csv");
    refused.stderr(contains("`nodir` is not a directory")).stderr(contains("`mkdir -p nodir`")).failure(2);
}
