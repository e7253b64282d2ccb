//! `latlab command`: what executions use, how they fail, their files, and what is left of them.

use std::fs;

use latlab::plan::Kind;
use latlab::recording::{Column, RecordedTable, Recording};
use rustix::process::Signal;

use crate::harness::{Finished, Latlab, check_schema, contains, wait_until};
use crate::hooks::{processes_with, script};
use crate::store::only_recording;

/// `latlab command OPTIONS -- WORDS`, without a warm-up unless `options` ask for one.
fn command(options: &str, words: &[&str]) -> Latlab {
    let warmup = if options.contains("--warmup") { "" } else { "--warmup 0" };
    Latlab::new().file("data", "one two\n").line(&format!("command {warmup} {options} --")).args(words)
}

fn sh(options: &str, text: &str) -> Latlab {
    command(options, &["sh", "-c", text])
}

fn recording(ran: &Finished) -> Recording {
    Recording::open(&only_recording(ran.directory())).expect("opens")
}

/// A column of numbers of all executions.
fn column(recording: &Recording, name: &str) -> Vec<Option<i64>> {
    let at = RecordedTable::Executions.columns().iter().position(|column| column.name == name).expect("a column");
    let batches = recording.rows_of(RecordedTable::Executions).expect("opens");
    let values = batches.flat_map(|batch| match batch.expect("reads").columns.swap_remove(at) {
        Column::Ints(ints) => (0..ints.values.len()).map(|row| ints.get(row)).collect::<Vec<_>>(),
        Column::Words(_) => panic!("a column of numbers"),
    });
    values.collect()
}

#[test]
fn an_execution_has_a_row_with_what_it_used() {
    const WORK: &str = "import os; block = bytearray(64 << 20); block[::4096] = b'x' * (64 << 8)
while sum(os.times()[:2]) < 0.1: pass";
    let ran = command("-n 3 --warmup 1 --json --tag a=b", &["python3", "-c", WORK]).success();
    let json = ran.json();
    check_schema(&json, "summary/1");
    let executions = &json["executions"];
    assert!(executions["max_resident_bytes"].as_u64() >= Some(64 << 20), "{executions:#}");
    assert_eq!((&json["sent"], &json["lost"], &executions["exit_codes"]["0"]), (&3.into(), &0.into(), &3.into()));
    for metric in ["elapsed_time", "user_time", "system_time"] {
        assert_eq!(json["metrics"][metric]["n"], 3, "{metric}");
    }
    let recording = recording(&ran);
    assert_eq!((recording.manifest().kind, recording.manifest().rows), (Kind::Command, Some(4)));
    let [user, system, started, ended] =
        ["user_ns", "system_ns", "started_ns", "ended_ns"].map(|name| column(&recording, name));
    for row in 0..4 {
        let cpu = user[row].expect("known") + system[row].expect("known");
        let elapsed = ended[row].expect("known") - started[row].expect("known");
        assert!((100_000_000..=elapsed + 1_000_000).contains(&cpu), "{cpu} of {elapsed}");
    }
    let path = recording.path();
    let again = |line: &str| Latlab::at(ran.directory()).line(line).arg(path).success();
    assert_eq!(again("summary --json").json()["metrics"], json["metrics"]);
    assert!(again("export").stdout.lines().count() >= 4);
    again("report -o page.html");
}

#[test]
fn failures_are_data_and_end_the_run_unless_ignored() {
    let cases: [(&str, &[&str], i32, &str); 20] = [
        ("-n 2", &["true"], 0, "2 executions"),
        ("-n 2", &["false"], 3, "`false` failed: exit status 1"),
        ("-n 2 --warmup 1", &["false"], 3, "`false` failed"),
        ("-n 2", &["sh", "-c", "echo the reason >&2; exit 7"], 3, "cause: the reason"),
        ("-n 2", &["sh", "-c", "printf 'bad \\377 bytes' >&2; exit 7"], 3, "bad \u{fffd} bytes"),
        ("-n 2", &["sh", "-c", "kill -SEGV $$"], 3, "killed by SIGSEGV"),
        ("-n 2", &["sh", "-c", "exec >&- 2>&-; exit 4"], 3, "exit status 4"),
        ("-n 2 --ignore-failure", &["sh", "-c", "exit 7"], 0, "exit code 7: 2"),
        ("-n 2 --ignore-failure", &["sh", "-c", "kill -9 $$"], 3, "no execution succeeded"),
        ("-n 1 --timeout 50ms", &["sleep", "60"], 3, "it took longer than 50 ms"),
        ("-n 1 --timeout 50ms", &["sh", "-c", "trap '' TERM; while :; do sleep 60; done"], 3, "longer than 50 ms"),
        (
            "-n 1 --timeout 50ms",
            &["sh", "-c", "trap '' TERM; exec cat /dev/zero >&2"],
            3,
            "or `--ignore-failure` without",
        ),
        ("-n 2 --ignore-failure --timeout 50ms", &["sleep", "60"], 3, "timed out: 2"),
        ("-n 1", &["no-such-program"], 3, "no directory of PATH has such a program"),
        ("-n 1", &["./missing"], 3, "the file does not exist"),
        ("-n 1", &["/"], 3, "it is a directory"),
        ("-n 1", &["./data"], 3, "it may not be executed"),
        ("-n 1", &[""], 2, "it has no name"),
        ("-n 1 --input missing", &["cat"], 3, "cannot open `missing` for `--input`"),
        ("-n 1 --prepare false", &["true"], 3, "`false` failed: exit status 1"),
    ];
    for (options, words, code, says) in cases {
        let ran = command(options, words).failure(code);
        assert!(
            ran.stderr.contains(says) || ran.stdout.contains(says),
            "{options} {words:?}: {}{}",
            ran.stderr,
            ran.stdout
        );
    }
    let latlab = Latlab::new();
    let plain = script(&latlab.path(""), "plain", "true");
    fs::write(&plain, "true\n").expect("without its first line");
    latlab.line("command -n 1 --").arg(&plain).stderr(contains("`--shell` executes it")).failure(3);
}

#[test]
fn a_failed_execution_counts_as_infinite() {
    // Every second one fails: the file is there.
    let ran = sh("-n 4 --ignore-failure --json", "if rm mark 2>&-; then kill -9 $$; else touch mark; fi").success();
    let json = ran.json();
    check_schema(&json, "summary/1");
    assert_eq!((&json["sent"], &json["lost"], &json["ratios"]["loss_ratio"]), (&4.into(), &2.into(), &0.5.into()));
    assert_eq!((&json["metrics"]["elapsed_time"]["lost"], &json["executions"]["signals"]["9"]), (&2.into(), &2.into()));
    assert_eq!(column(&recording(&ran), "signal"), [None, Some(9), None, Some(9)]);
    let gate = Latlab::at(ran.directory()).args(["summary", "--gate", "loss_ratio <= 10%"]);
    gate.arg(recording(&ran).path()).stdout(contains("failed: 50 %")).failure(1);
}

#[test]
fn input_output_preparation_and_shell() {
    let ran = command("-n 3 --input data --stdout out", &["cat"]).success();
    assert_eq!(fs::read_to_string(ran.directory().join("out")).expect("written"), "one two\n");
    let ran = sh("-n 3 --stdout inherit --no-record -q", "cat; echo out; echo error >&2").success();
    assert!(
        ran.stdout.starts_with("out\nout\nout\n") && ran.stderr.starts_with("error\nerror\nerror\n"),
        "{}",
        ran.stdout
    );
    let ran = Latlab::new()
        .line("command -n 2 --warmup 1 --shell --prepare")
        .args(["echo x >> prepared", "--", "wc -l < prepared >> counts | cat"])
        .success();
    assert_eq!(fs::read_to_string(ran.directory().join("counts")).expect("written"), "1\n2\n3\n");
    assert_eq!(recording(&ran).manifest().spec.command().expect("a command").words[..2], ["sh", "-c"]);
    // More than a pipe holds, on both files.
    sh("-n 2", "head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2").success();
}

#[test]
fn no_process_and_no_terminal_mode_is_left() {
    const LEFT: &str = "61.2468";
    sh("-n 3", &format!("sleep {LEFT} & exit 0")).success();
    sh("-n 1 --timeout 100ms", &format!("sleep {LEFT} & sleep {LEFT}")).failure(3);
    let running = sh("-d 60s", &format!("sleep {LEFT} & sleep {LEFT}")).start();
    wait_until("it sleeps", || processes_with(LEFT).len() >= 2);
    running.signal(Signal::INT);
    let ended = running.exits(130);
    assert_eq!(recording(&ended).manifest().rows, Some(0));
    wait_until("nothing sleeps", || processes_with(&format!("sleep {LEFT}")).is_empty());
    // Without a terminal it cannot change one.
    sh("-n 1", "! (stty -echo < /dev/tty) 2>&-").success();
}

#[test]
fn many_short_executions_have_a_row_each() {
    let ran = command("-n 2000 --json --window 1s", &["true"]).success();
    let recording = recording(&ran);
    let seq = column(&recording, "seq");
    assert!(seq.len() == 2_000 && seq.iter().zip(0..).all(|(seq, number)| *seq == Some(number)));
    assert_eq!((recording.manifest().run.gap_events, &ran.json()["metrics"]["elapsed_time"]["n"]), (0, &2_000.into()));
    check_schema(&ran.json(), "summary/1");
}

/// `latlab command OPTIONS --metric METRIC -- sh -c TEXT`
fn printing(options: &str, metric: &str, text: &str) -> Latlab {
    Latlab::new().line(&format!("command {options} --metric")).args([metric, "--", "sh", "-c", text])
}

#[test]
fn printed_numbers_are_a_metric() {
    let cases = [
        (r"v=([0-9.]+) t/s:t/s:higher", "echo 5.25 t/s 6.75 t/s", 2, 6.0, "t/s", "v mean >= 5.99"),
        ("tail=/latency/p99:us", r#"echo '{"latency": {"p99": 1.5}}'"#, 1, 1_500.0, "ns", "tail p50 <= 1501ns"),
        ("mark=*", r"printf 'begin\n-1\n2e1\n\377\n'", 2, 9.5, "", "mark max <= 20"),
    ];
    for (metric, text, count, mean, unit, gate) in cases {
        let ran = printing("-n 3 --warmup 1 --json", metric, text).success();
        let json = ran.json();
        check_schema(&json, "summary/1");
        let name = gate.split(' ').next().expect("a name");
        let found = &json["metrics"][name];
        assert_eq!((&found["n"], &found["mean"], &found["unit"]), (&(3 * count).into(), &mean.into(), &unit.into()));
        let recording = recording(&ran);
        assert_eq!(recording.manifest().printed_rows, Some(4 * count));
        let again = |words: &[&str]| Latlab::at(ran.directory()).args(words).arg(recording.path()).success().stdout;
        assert!(again(&["summary", "--gate", gate]).contains(name), "{gate}");
        assert_eq!(again(&["export", "--table", "printed"]).lines().count() as u64, 1 + 4 * count);
        let values = again(&["export", "--format", "values", "--statistic", "mean", "--metric", name]);
        assert!(values.starts_with(&mean.to_string()), "{values}");
    }
}

#[test]
fn an_execution_that_prints_no_number_has_failed_in_that_metric() {
    let silent = printing("-n 2 --warmup 0", "x=is ([0-9]+)", "echo last words");
    silent.stderr(contains("no number of `x`")).stderr(contains("last words")).failure(3);
    // Otherwise a build that crashes would have fewer slow numbers.
    let crashing =
        printing("-n 4 --warmup 0 --ignore-failure", "x=*", "if [ -e mark ]; then kill -9 $$; fi; touch mark; echo 4");
    crashing.stderr(contains("SIGKILL")).failure(3);
    for (metric, says) in [
        ("x=a", "0 groups instead of one"),
        ("x", "it has no `=`"),
        ("Elapsed_time=*", "a metric or statistic `Elapsed_time` of its own"),
        ("p99=*", "a metric or statistic `p99` of its own"),
        ("loss_ratio=*", "a metric or statistic `loss_ratio` of its own"),
        ("x y=*", "letters, digits and `_`"),
    ] {
        printing("-n 1", metric, "true").stderr(contains(says)).failure(2);
    }
}

#[test]
fn output_of_more_than_16_mebibytes_is_a_failure() {
    let ran = printing("-n 2 --warmup 0", "x=^([0-9]+)", "echo 7; head -c 100000000 /dev/zero");
    ran.stderr(contains("has 100000002 bytes, more than 16 MiB")).failure(3);
    let long = printing("-n 1 --warmup 0 --json", "x=*", "seq 100000 400000").success().json();
    assert_eq!((&long["metrics"]["x"]["n"], &long["metrics"]["x"]["min"]), (&300_001.into(), &100_000.into()));
}

#[test]
fn a_comparison_of_two_commands_is_about_the_numbers_that_they_print() {
    let line = "run --ab A B --names old,new --runs 5 -- command -n 2 --warmup 0 --metric";
    let words = line.split(' ').map(|word| match word {
        "A" => "echo 10 MB/s",
        "B" => "echo 12 MB/s",
        word => word,
    });
    let gate = ["--gate", "x p50 >= -5%", "--gate", "x mean <= +5%"];
    let unnamed = Latlab::new().line("command -n 1 --metric x=* --gate p50<=5ms -- true");
    unnamed.stderr(contains("it names no metric")).stderr(contains("`x p50<=5ms`")).failure(2);
    let ran = Latlab::new().line("run").args(gate).args(words.skip(1)).args(["x=([0-9]+) MB:MB/s:higher"]).failure(1);
    for words in [" p50 ", "10.0 MB/s", "higher (better)", "`x mean <= +5%` failed for `new`", "`x p50 >= -5%` met"] {
        assert!(ran.stdout.contains(words) || ran.stderr.contains(words), "{words}: {}{}", ran.stdout, ran.stderr);
    }
    assert!(!ran.stdout.contains("elapsed"), "{}", ran.stdout);
}
