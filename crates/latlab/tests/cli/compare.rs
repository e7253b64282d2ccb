//! `latlab compare`: verdicts on files of numbers, recordings and experiments; gates; refused requests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Finished, Latlab, check_schema, contains, empty};
use crate::store::recordings_in;

const BEFORE: &str = "48.1\n48.9\n47.7\n48.4\n48.6\n48.2\n";
const AFTER: &str = "52.0\n51.1\n53.4\n52.8\n51.9\n52.2\n";
const SAME: &str = "48.3\n48.8\n47.9\n48.0\n48.7\n48.5\n";

fn files(args: &str) -> Latlab {
    let lab = Latlab::new().file("before", BEFORE).file("after", AFTER).file("same", SAME);
    lab.arg("compare").line(args)
}

pub(crate) fn document(ran: &Finished) -> Value {
    let document = ran.json();
    check_schema(&document, "compare/1");
    document
}

fn testdata(place: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings").join(place)
}

/// A copy of a recording in `store` with a changed manifest.
pub(crate) fn copy(store: &Path, name: &str, change: impl Fn(&mut Value)) {
    let (from, to) = (testdata("good/closed"), store.join(name));
    fs::create_dir_all(&to).expect("made");
    for entry in fs::read_dir(from).expect("a recording") {
        let file = entry.expect("a file").path();
        fs::copy(&file, to.join(file.file_name().expect("it has one"))).expect("copied");
    }
    let path = to.join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path).expect("text")).expect("JSON");
    change(&mut manifest);
    fs::write(path, manifest.to_string()).expect("written");
}

/// Four runs of each of two builds, one build after the other.
fn builds(directory: &Path) {
    for run in 0..8 {
        copy(&directory.join("runs"), &format!("2026112{run}T000000Z-ping-{run:04}"), |manifest| {
            manifest["spec"]["tags"] = json!({ "build": if run < 4 { "old" } else { "new" } });
            manifest["started_at"] = json!(format!("2026-11-2{run}T00:00:00Z"));
        });
    }
}

#[test]
fn recordings_are_grouped_by_tag_and_equal_ones_do_not_differ() {
    let lab = Latlab::new();
    builds(&lab.path(""));
    let ran = lab.line("compare --by tag:build runs --json").stderr(contains("one after the other")).success();
    let document = document(&ran);
    assert_eq!((&document["factor"], &document["groups"][1]["name"]), (&json!("tag:build"), &json!("old")));
    for row in document["comparisons"].as_array().expect("rows") {
        assert_eq!((&row["p_value"], &row["verdict"]), (&json!(1.0), &json!("undecided")), "{row}");
        let change = if row["unit"] == "ratio" { &row["difference"] } else { &row["relative"] };
        assert_eq!((&change["low"], &change["high"]), (&json!(0.0), &json!(0.0)), "{row}");
    }
    let shared = ran.directory();
    let equivalent = Latlab::at(shared).line("compare --by tag:build runs --equivalence 3%");
    equivalent.stdout(contains("equivalent")).stdout(contains("proven to lie within 3 %")).success();
    let shift = Latlab::at(shared).line("compare --by tag:build runs --shift --statistic mean");
    shift.stdout(contains(" p99.9 ")).stdout(contains("along the distribution")).success();
    let globs = ["compare", "--group", "a=runs/2026112[0-3]*", "--group", "b=runs/2026112[4-7]*", "--over", "boots"];
    Latlab::at(shared).args(globs).stdout(contains("at least 6 are needed")).success();
    for (args, cause) in [
        ("--by tag:buidl runs", "did you mean `tag:build`?"),
        ("--by size runs", "in every run"),
        ("--by tag:build runs --statistic p95x", "p95x"),
        ("--by tag:build runs --metric rount_trip_delay", "did you mean `round_trip_delay`?"),
    ] {
        Latlab::at(shared).arg("compare").line(args).stdout(empty()).stderr(contains(cause)).failure(2);
    }
}

#[test]
fn the_figure_of_a_run_equals_that_of_its_summary() {
    let lab = Latlab::new();
    let directory = lab.path("");
    for (tag, count) in [("build=a", "120"), ("build=b", "150"), ("build=a", "130"), ("build=b", "140")] {
        Latlab::at(&directory).line("ping -q --tag").arg(tag).args(["-n", count, "--warmup", "5"]).success();
    }
    let means = recordings_in(&directory.join("latlab-runs")).into_iter().map(|path| {
        let summary = Latlab::at(&directory).line("summary --json -q").arg(path).success().json();
        let mean = summary["metrics"]["round_trip_delay"]["mean"].as_f64().expect("answered");
        (summary["condition"]["tags"]["build"].as_str().expect("tagged").to_owned(), mean)
    });
    let means: Vec<_> = means.collect();
    let compared = lab.line("compare --by tag:build --statistic mean latlab-runs --json -q").success().json();
    for group in compared["groups"].as_array().expect("two") {
        let own: Vec<f64> = means.iter().filter(|(build, _)| group["name"] == **build).map(|(_, mean)| *mean).collect();
        let least = own.iter().copied().fold(f64::INFINITY, f64::min);
        assert_eq!((&group["n"], &group["min"]), (&json!(2), &json!(least)), "{group}");
    }
}

#[test]
fn recordings_are_named_by_what_differs_and_can_be_given_by_their_short_ids() {
    let lab = Latlab::new();
    let store = lab.path("latlab-runs");
    for (id, size) in [("aa01", 64), ("bb02", 1024), ("cc03", 64)] {
        copy(&store, &format!("20261122T000000Z-ping-{id}"), |manifest| {
            manifest["spec"]["work"]["size_bytes"] = json!(size);
        });
    }
    let home = lab.path("");
    Latlab::at(&home).line("compare aa01 bb02").stdout(contains("\n64 B → 1,024 B\n")).success();
    let three = Latlab::at(&home).line("compare aa01 cc03 bb02").stdout(contains("\n64 B · aa01 → 64 B · cc03\n"));
    three.stdout(contains("\n64 B · aa01 → 1,024 B\n")).success();
    let json = Latlab::at(&home).line("compare ping-aa01 bb02 --json -q").success();
    assert_eq!(names_of_groups(&json), ["20261122T000000Z-ping-aa01", "20261122T000000Z-ping-bb02"]);
    Latlab::at(&home).line("compare latlab-runs --by size").stdout(contains("\n64 B → 1,024 B\n")).success();
    for level in ["1024", "1,024 B"] {
        let ran = Latlab::at(&home).line("compare latlab-runs --by size --baseline").arg(level);
        ran.stdout(contains("\n1,024 B → 64 B\n")).success();
    }
    Latlab::at(&home).line("summary --no-intervals cc03").stdout(contains("20261122T000000Z-ping-cc03")).success();
    copy(&store, "20261123T000000Z-ping-cc03", |_| {});
    let ambiguous = Latlab::at(&home).line("compare aa01 cc03").stdout(empty());
    let both = "`./latlab-runs/20261122T000000Z-ping-cc03`, `./latlab-runs/20261123T000000Z-ping-cc03`";
    ambiguous.stderr(contains("2 recordings have the name or short id `cc03`")).stderr(contains(both)).failure(2);
}

fn names_of_groups(ran: &Finished) -> Vec<String> {
    let groups = document(ran)["groups"].as_array().expect("groups").clone();
    groups.iter().map(|group| group["name"].as_str().expect("a name").to_owned()).collect()
}

/// The output that docs/comparing.md shows below a command.
fn shown(command: &str) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/comparing.md");
    let page = fs::read_to_string(page).expect("the page");
    let below = page.split(&format!("$ latlab {command}\n")).nth(1).unwrap_or_else(|| panic!("no `{command}`"));
    below.split("```").next().unwrap_or_default().to_owned()
}

#[test]
fn docs_comparing_shows_the_output_of_compare() {
    for (command, code) in
        [("compare before.txt after.txt", 0), ("compare before.txt after.txt --gate 'value <= +5%'", 1)]
    {
        let words = shlex::split(command).expect("words");
        let lab = Latlab::new().file("before.txt", BEFORE).file("after.txt", AFTER);
        assert_eq!(lab.args(words).failure(code).stdout, shown(command), "{command}");
    }
}

#[test]
fn the_same_run_counts_once_and_is_not_compared_with_itself() {
    let lab = Latlab::new();
    builds(&lab.path(""));
    let globs =
        ["--group", "a=runs/2026112[0-3]*", "--group", "a=runs/2026112[1-3]*", "--group", "b=runs/2026112[4-7]*"];
    let ran = lab.arg("compare").args(globs).arg("--json").stderr(contains("3 paths, the first `"));
    let ran = ran.success();
    let document = document(&ran);
    assert_eq!((&document["groups"][0]["runs"], &document["groups"][1]["runs"]), (&json!(4), &json!(4)));
    let shared = ran.directory();
    symlink(shared.join("runs"), shared.join("link")).expect("linked");
    for args in ["runs runs", "runs link", "--group a=runs/* --group b=runs/*7T*"] {
        let refused = Latlab::at(shared).arg("compare").line(args).stdout(empty());
        refused.stderr(contains("is named twice")).stderr(contains("hint: ")).failure(2);
    }
    Latlab::at(shared).line("compare --by tag:build runs link -q").success();
    files("before ./before").stdout(empty()).stderr(contains("`./before` is named twice")).failure(2);
    let twice = Latlab::new().file("n", "1\n2\n3\n").stdin("n").line("compare - -").stdout(empty());
    twice.stderr(contains("standard input can be read once")).failure(2);
}

#[test]
fn a_recording_of_a_store_without_its_manifest_keeps_no_gate_and_is_listed_as_damaged() {
    for is_emptied in [false, true] {
        let lab = Latlab::new();
        builds(&lab.path(""));
        let name = "20261120T000000Z-ping-0000";
        let run = lab.path("runs").join(name);
        for file in fs::read_dir(&run).expect("a run").map(|file| file.expect("an entry").path()) {
            if is_emptied || file.ends_with("manifest.json") {
                fs::remove_file(file).expect("removed");
            }
        }
        let command = "compare --by tag:build runs --statistic p50 --json --gate p50<=+50%";
        let ran = lab.line(command).stderr(contains(name)).failure(1);
        assert_eq!(document(&ran)["gates"][0]["reason"], "missing-runs");
        let listed = Latlab::at(ran.directory()).line("list --store runs").stdout(contains("damaged")).success();
        assert!(listed.stdout.contains(name), "{}", listed.stdout);
        let summary = Latlab::at(ran.directory()).arg("summary").arg(&run).stdout(empty());
        summary.stderr(contains(name)).failure(2);
    }
}

#[test]
fn a_strict_limit_is_broken_by_the_limit_itself() {
    // Compared by logarithms, whose inverse is rounded.
    for (from, to, gate, code) in [
        (5, 5, "value<0", 1),
        (5, 5, "value<=0", 0),
        (200, 300, "value<=50%", 0),
        (10, 11, "value<10%", 1),
        (7, 14, "value<100%", 1),
        (7, 14, "value<=100%", 0),
    ] {
        let lines = |value: i32| format!("{value}\n").repeat(12);
        let lab = Latlab::new().file("a", lines(from)).file("b", lines(to)).line("compare a b --gate").arg(gate);
        lab.start().exits(code);
    }
}
