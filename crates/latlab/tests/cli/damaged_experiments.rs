//! `latlab compare`, `summary` and `run` of an experiment whose runs, file or journal are gone, damaged, copied or changed.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::compare::document;
use crate::harness::{Latlab, contains};
use crate::hostile::{copy_directory, testdata};
use crate::sealed::{write_journal, write_manifest};
use crate::store::recordings_in;

/// A copy of the finished experiment `name` of the test data in `E`, and the names of its judged runs.
fn finished_experiment(name: &str) -> (Latlab, Vec<String>) {
    let lab = Latlab::new();
    copy_directory(&testdata("experiments/finished").join(name), &lab.path("E"));
    let judged = recordings_in(&lab.path("E/runs")).into_iter().filter(|run| !is_warmup(run));
    let names = judged.map(|run| run.file_name().expect("a name").to_string_lossy().into_owned()).collect();
    (lab, names)
}

fn is_warmup(recording: &Path) -> bool {
    let manifest = fs::read_to_string(recording.join("manifest.json")).expect("a manifest");
    serde_json::from_str::<Value>(&manifest).expect("JSON")["experiment"]["warmup"] == true
}

/// Runs `script` in the directory of the experiment, in which `$FIRST` and `$LAST` are its first and last judged run, and
/// `$WARMUP` is a warm-up run.
fn damage(lab: &Latlab, runs: &[String], script: &str) {
    let (first, last) = (&runs[0], &runs[runs.len() - 1]);
    let warmup = recordings_in(&lab.path("E/runs")).into_iter().find(|run| is_warmup(run)).unwrap_or_default();
    let mut shell = Command::new("sh");
    let shell = shell.args(["-ec", script]).current_dir(lab.path("E")).env("FIRST", first).env("LAST", last);
    assert!(shell.env("WARMUP", warmup).status().expect("a shell").success(), "{script}");
}

/// The first gate of a comparison or of an experiment, or of the last of several summaries.
fn first_gate(document: &Value) -> &Value {
    let last_summary = document["summaries"].as_array().and_then(|summaries| summaries.last());
    let gates = [&last_summary.unwrap_or(document)["gates"], &document["experiment"]["gates"]];
    &gates.into_iter().find(|gates| gates.is_array()).expect("gates")[0]
}

const GONE: &str = "rm -r runs/$LAST";
const NO_ROWS: &str = "printf PAR1 >runs/$LAST/probes.parquet";
const NO_FILE: &str = "rm experiment.toml";
const NO_JOURNAL: &str = "rm journal.jsonl";
const BAD_JOURNAL: &str = "sed -i '3s/.*/{/' journal.jsonl";
const REPEATED: &str = "run same.toml --store . --dry-run";
const HAS_RUNS: &str = "has runs, but its journal";
/// The journal says that the last run failed: only its recording says that it was measured to its end.
const FAILED_AND_GONE: &str = ": failed; rm -r runs/$LAST";

/// What happened to the experiment, the command line, its exit code, and words on stderr, in which `LAST` and `FIRST` are runs.
/// Exit code 1 is that of a gate that is broken because runs are missing.
const DAMAGES: [(&str, &str, i32, &str); 38] = [
    (GONE, "compare E", 1, "LAST"),
    (GONE, "compare E/runs", 1, "LAST"),
    (GONE, "compare --by size E/runs", 1, "LAST"),
    ("rm -r runs/$LAST; mkdir ../links; ln -s $PWD/runs/* ../links", "compare --by size links", 1, "LAST"),
    (GONE, "summary E", 1, "LAST"),
    (GONE, "run E", 1, "LAST"),
    (GONE, "run E --format markdown", 4, "LAST"),
    ("rm runs/$LAST/manifest.json", "compare --by size E/runs", 1, "LAST"),
    ("rm -r experiment.toml runs/$LAST", "compare --by size E/runs", 1, ""),
    (FAILED_AND_GONE, "compare E", 1, "LAST"),
    (FAILED_AND_GONE, "summary E", 1, "LAST"),
    (FAILED_AND_GONE, "run E", 1, "LAST"),
    ("rm -r runs/$FIRST; cp -r runs/$LAST runs/$FIRST", "compare E", 1, "FIRST"),
    (NO_ROWS, "compare E", 1, "LAST"),
    (NO_ROWS, "summary E", 1, "LAST"),
    (NO_FILE, "compare --by size E", 1, "the file of `"),
    (NO_FILE, "summary E", 1, "the file of `"),
    (NO_FILE, "compare E", 1, "the file of `"),
    (NO_FILE, "run E", 2, "`latlab run FILE --new`"),
    ("echo 'name = ' >experiment.toml", "compare E/runs", 1, "the file of `"),
    ("echo 'name = ' >experiment.toml", "compare --by size E", 1, "the file of `"),
    ("echo '# a comment' >>experiment.toml", "compare E", 1, ", which was edited"),
    (BAD_JOURNAL, "compare E", 1, "the journal of `"),
    (NO_JOURNAL, "compare --by size E", 1, "the journal of `"),
    (NO_JOURNAL, "summary E", 1, "the journal of `"),
    ("rm -r runs", "compare E", 2, "LAST"),
    ("rm -r runs", "run E", 2, "LAST"),
    // The journal says which runs count: no damage to others breaks a gate.
    ("printf PAR1 >$WARMUP/probes.parquet", "compare E", 0, ""),
    ("printf PAR1 >$WARMUP/probes.parquet", "summary E", 0, ""),
    ("mkdir runs/20261122T203411Z-ping-dead; : >runs/20261122T203411Z-ping-dead/events.spool", "compare E", 0, ""),
    // An experiment with runs is not begun again unasked.
    (BAD_JOURNAL, REPEATED, 2, HAS_RUNS),
    (NO_JOURNAL, REPEATED, 2, HAS_RUNS),
    (": >journal.jsonl", REPEATED, 2, "cause: it has no `journal.jsonl` that begins one"),
    (": >journal.jsonl", "run E", 2, HAS_RUNS),
    ("sed -i 's/\"major\":1,/\"major\":9,/' journal.jsonl", REPEATED, 2, "use the latlab that wrote it"),
    ("echo '{' >journal.jsonl; for run in runs/*; do echo >$run/manifest.json; done", REPEATED, 2, HAS_RUNS),
    (BAD_JOURNAL, "run same.toml --store . --dry-run --new", 0, ""),
    ("echo '{' >journal.jsonl; rm -r runs/*", REPEATED, 0, ""),
];

#[test]
fn what_is_damaged_is_named_and_keeps_no_gate() {
    for (script, line, code, words) in DAMAGES {
        let (lab, runs) = finished_experiment("factors");
        let (first, last) = (&runs[0], &runs[runs.len() - 1]);
        if script.starts_with(": failed") {
            let journal = fs::read_to_string(lab.path("E/journal.jsonl")).expect("a journal");
            let lines = journal.lines().map(|line| {
                if line.contains(last) {
                    line.replace(r#""outcome":"completed""#, r#""outcome":"failed""#) + "\n"
                } else {
                    line.to_owned() + "\n"
                }
            });
            write_journal(&lab.path("E"), &lines.collect::<String>());
        }
        fs::copy(lab.path("E/experiment.toml"), lab.path("same.toml")).expect("copied");
        damage(&lab, &runs, script);
        let listed = runs[..runs.len() - 1].iter().map(|run| format!(" E/runs/{run}")).collect::<String>();
        let options = match line.split(' ').next() {
            Some("compare") => "--statistic p50 --gate p50<=+900% --json",
            _ if line.contains(" --") => "",
            _ => "--gate p50<=10s --json",
        };
        let words = words.replace("LAST", last).replace("FIRST", first);
        let ran = lab.line(&line.replace(" E/runs/*", &listed)).line(options).stderr(contains(words)).failure(code);
        if code == 1 {
            let gate = first_gate(&ran.json()).clone();
            assert_eq!(
                (&gate["state"], &gate["reason"]),
                (&json!("broken"), &json!("missing-runs")),
                "{script}: {line}"
            );
        }
    }
}

#[test]
fn a_copy_of_a_run_and_a_run_of_another_experiment_are_left_out() {
    let counts = |lab: Latlab, words: &str| -> Vec<Value> {
        let document = document(&lab.line("compare E --statistic p50 --json").stderr(contains(words)).success());
        document["groups"].as_array().expect("groups").iter().map(|group| group["runs"].clone()).collect()
    };
    let intact = counts(finished_experiment("factors").0, "");
    let copied = || {
        let (lab, runs) = finished_experiment("factors");
        damage(&lab, &runs, "cp -r runs/$FIRST runs/20261122T203411Z-ping-dead");
        (lab, runs)
    };
    let (lab, runs) = copied();
    // An earlier attempt at the same place was refused, and has no recording.
    let journal = fs::read_to_string(lab.path("E/journal.jsonl")).expect("a journal");
    let ended = journal.lines().find(|line| line.contains(&runs[0])).expect("its end");
    let mut refused: Value = serde_json::from_str(ended).expect("JSON");
    (refused["outcome"], refused["recording"]) = (json!("refused"), Value::Null);
    let began = journal.lines().take_while(|line| *line != ended).last().expect("its begin");
    write_journal(&lab.path("E"), &journal.replace(began, &format!("{began}\n{refused}\n{began}")));
    assert_eq!(counts(lab, "or it is a copy of one"), intact);

    let (lab, _) = copied();
    let of_another = lab.path("E/runs/20261122T203411Z-ping-dead");
    let manifest = fs::read_to_string(of_another.join("manifest.json")).expect("a manifest");
    let mut manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    (manifest["experiment"]["experiment"], manifest["experiment"]["position"]) = (json!("00000000deadbeef"), json!(99));
    write_manifest(&of_another, manifest);
    assert_eq!(counts(lab, "it is not a run of this experiment"), intact);
}

#[test]
fn the_report_of_an_experiment_without_a_comparison_names_runs_that_are_gone() {
    let (lab, runs) = finished_experiment("alone");
    damage(&lab, &runs, GONE);
    let last = &runs[runs.len() - 1];
    let ran = lab.line("run E --json").stderr(contains(last)).start().exits_with_one_of(&[0, 4]);
    let caveats = document(&ran)["caveats"].as_array().expect("caveats").clone();
    let missing = caveats.iter().find(|caveat| caveat["code"] == "missing-runs").expect("a run is gone");
    assert!(missing["message"].to_string().contains(last), "{missing}");
    Latlab::at(ran.directory()).line("run E").stdout(contains(last)).start().exits_with_one_of(&[0, 4]);
}
