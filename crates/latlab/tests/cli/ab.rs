//! `latlab run --ab`: the file that it stands for, commands that arrive as typed, and one command under two names.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::harness::{Latlab, contains, lacks};

/// What `latlab run` with these `words` prints.
fn printed(words: &[&str]) -> String {
    Latlab::new().arg("run").args(words).success().stdout
}

/// The file that these `words` stand for.
fn file(words: &[&str]) -> String {
    printed(&[&["--print-file"], words].concat())
}

/// `text` in one line, with the option of `sh` as it was typed.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("'-c'", "-c")
}

#[test]
fn the_file_of_two_commands_can_be_printed_and_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let lab =
        || Latlab::at(directory.path()).args(["run", "--print-file", "--runs", "until p50 ±5%", "--max-runs", "30"]);
    let ran = lab().args([
        "--ab",
        "./old 'a b'",
        "./new",
        "--",
        "ping",
        "127.0.0.1:7000",
        "-n",
        "100",
        "--load",
        "cpu=20%",
        "--load",
        "heaters=1",
    ]);
    let file = ran.success().stdout;
    fs::write(directory.path().join("x.toml"), &file).expect("written");
    for line in [
        "target = \"127.0.0.1:7000\"",
        "count = \"100\"",
        "load = [\"cpu=20%\", \"heaters=1\"]",
        "service = [\"./old 'a b'\", \"./new\"]",
        "ready = \"udp:127.0.0.1:7000\"",
        "runs = \"until p50 ±5%\"",
        "max-runs = 30",
    ] {
        assert!(file.lines().any(|own| own == line), "{line}: {file}");
    }
    Latlab::at(directory.path()).line("run x.toml --dry-run").stdout(contains("service: ./old 'a b'")).success();
    let deployed = lab().args(["--ab", "./deploy a", "./deploy b", "--ab-deploy", "--", "wakeup", "-n", "10"]);
    deployed.stdout(contains("before-run = [\"./deploy a\", \"./deploy b\"]")).stdout(lacks("ready")).success();
    for (words, text) in [
        (vec!["--", "doctor"], "does not measure"),
        (vec!["--", "ping", "-n"], "`--count` needs a value"),
        (vec!["--ab-deploy"], "`COMMAND` is missing"),
    ] {
        let lab = Latlab::at(directory.path()).args(["run", "--ab", "a", "b"]).args(words);
        lab.stderr(contains(text)).failure(2);
    }
}

#[test]
fn commands_arrive_as_typed_whatever_braces_they_have() {
    let (a, b) = ("sh -c 'exec ./old ${PORT} {{x}} {{{y}}} {a b}'", "sh -c 'exec ./new {service}'");
    let waited = "sh -c 'test -e {tag}'";
    let target = "cmd:sh -c 'exec {service} {tag} {{tag}} ${HOST}'";
    for (one, two) in [(a, b), (a, a), (b, b)] {
        let words = ["--ready", waited, "--ab", one, two, "--", "ping", target, "--peer-addr", "127.0.0.1"];
        let plan = in_one_line(&printed(&[&["--dry-run"], &words[..]].concat()));
        for line in [format!("service: {one}"), format!("service: {two}"), format!("ready: {waited}"), target.into()] {
            assert!(plan.contains(&line), "{line}\n{plan}");
        }
        let again = Latlab::new().file("x.toml", file(&words)).line("run x.toml --dry-run").success().stdout;
        let again = in_one_line(&again);
        assert!(again.contains(target) && again.contains(&format!("service: {two}")), "{again}");
    }
}

#[test]
fn a_shell_gets_braces_as_typed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("write");
    fs::write(&path, "#!/bin/sh\necho \"$@\" >> log\n").expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    let words =
        ["run", "--runs", "2", "--ab-deploy", "--ab", "./write {a} {{b}}", "./write c", "--", "wakeup", "-n", "5"];
    Latlab::at(directory.path()).args(words).measured();
    let log = fs::read_to_string(directory.path().join("log")).expect("written");
    let count = |line: &str| log.lines().filter(|own| *own == line).count();
    assert_eq!((count("{a} {{b}}"), count("c")), (2, 2), "{log}");
}

#[test]
fn tags_of_one_command_stand_beside_its_two_names() {
    for (words, levels) in [
        (&["ping", "local"][..], r#"tag = ["name=a", "name=b"]"#),
        (&["ping", "local", "--tag", "host=pi"], r#"tag = [["host=pi", "name=a"], ["host=pi", "name=b"]]"#),
        (
            &["wakeup", "--tag", "host=pi", "--tag", "name=c"],
            r#"tag = [["host=pi", "name=c", "name2=a"], ["host=pi", "name=c", "name2=b"]]"#,
        ),
    ] {
        let file = file(&[&["--ab", "sleep 9", "sleep 9", "--"], words].concat());
        assert!(file.contains(&format!("[factors]\n{levels}\n\n[hooks]\nservice = \"sleep 9\"\n")), "{file}");
        assert_eq!(file.matches("tag = ").count(), 1, "{file}");
        Latlab::new().file("x.toml", file).line("run x.toml --dry-run").success();
    }
}

/// The `[[compare]]` of these `statistics`, each with the line `margin`.
fn comparisons(metric: &str, statistics: &[&str], margin: &str) -> String {
    let row = |statistic: &&str| format!("\n[[compare]]\nmetric = \"{metric}\"\nstatistic = \"{statistic}\"\n{margin}");
    statistics.iter().map(row).collect()
}

#[test]
fn one_command_is_compared_with_itself_in_the_metric_of_its_kind() {
    for (kind, metric, statistics) in [
        ("ping", "round_trip_delay", &["mean", "p50", "p99"][..]),
        ("wakeup", "wakeup_latency", &["mean", "p50", "p99"]),
        ("stream", "delivered_rate", &["mean", "loss_ratio"]),
    ] {
        let file_of = |options: &[&str]| {
            file(&[&["aa", "--quick", "--ab", "sleep 60", "sleep 60"], options, &["--", kind]].concat())
        };
        let rows = comparisons(metric, statistics, "");
        let design = "[design]\nruns = 4\nblocks = 3\nsettle = \"0s\"\norder = \"shuffled\"\n";
        assert!(file_of(&[]).ends_with(&format!("{design}{rows}")), "{}", file_of(&[]));
        let with_margin = file_of(&["--equivalence", "3%"]);
        assert!(with_margin.ends_with(&comparisons(metric, statistics, "equivalence = \"3%\"\n")), "{with_margin}");
    }
    let line = "run aa --quick --json --ab true true --ab-deploy -- wakeup -n 20 -i 1ms --warmup 0";
    let document = Latlab::new().line(line).measured().json();
    let rows = document["comparisons"].as_array().expect("rows");
    assert!(rows.len() == 3 && rows.iter().all(|row| row["metric"] == "wakeup_latency"), "{document:#}");
    let found = |document: &Value, test: &str| document["experiment"]["same"][test]["of"].as_u64();
    // Three blocks and three statistics, and four pairs of runs in each block.
    assert_eq!(
        (found(&document, "exchange_test"), found(&document, "students_t")),
        (Some(9), Some(12)),
        "{document:#}"
    );
}
