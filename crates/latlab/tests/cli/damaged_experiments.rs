//! `latlab compare`, `summary` and `run` of an experiment whose runs, file or journal are gone, damaged, copied or changed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::compare::document;
use crate::harness::{Latlab, contains, empty, lacks};
use crate::hostile::{copy_directory, in_place_of, testdata};
use crate::sealed::{write_journal, write_manifest};
use crate::store::recordings_in;

/// Copies the finished experiment `name` of the test data to `to`.
fn copy_of(name: &str, to: &Path) {
    copy_directory(&testdata("experiments/finished").join(name), to);
}

/// A copy of a finished experiment in `E`, and the names of its judged runs.
fn finished_experiment() -> (Latlab, Vec<String>) {
    let lab = Latlab::new();
    copy_of("factors", &lab.path("E"));
    let journal = fs::read_to_string(lab.path("E/journal.jsonl")).expect("a journal");
    let entries = journal.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let ended: Vec<Value> = entries.filter(|entry| entry["outcome"] == "completed").collect();
    let recordings = ended.iter().filter_map(|entry| Some(entry["recording"].as_str()?.to_owned()));
    let judged = recordings.filter(|run| !is_warmup(&lab.path("E/runs").join(run))).collect();
    (lab, judged)
}

fn is_warmup(recording: &Path) -> bool {
    let manifest = fs::read_to_string(recording.join("manifest.json")).expect("a manifest");
    serde_json::from_str::<Value>(&manifest).expect("JSON")["experiment"]["warmup"] == true
}

/// The first gate of a comparison, or of the last of several summaries.
fn first_gate(document: &Value) -> &Value {
    let last_summary = document["summaries"].as_array().and_then(|summaries| summaries.last());
    &last_summary.unwrap_or(document)["gates"][0]
}

#[test]
fn no_form_of_naming_an_experiment_hides_that_a_run_is_gone() {
    let (lab, runs) = finished_experiment();
    let gate = "--gate p50<=+900%";
    let shared = lab.line(&format!("compare E {gate}")).stderr(lacks("gone")).success();
    let at = || Latlab::at(shared.directory());
    let last = runs.last().expect("runs");
    fs::remove_dir_all(shared.directory().join("E/runs").join(last)).expect("removed");
    let links = shared.directory().join("links");
    fs::create_dir(&links).expect("made");
    for run in fs::read_dir(shared.directory().join("E/runs")).expect("runs").map(|run| run.expect("a run").path()) {
        symlink(&run, links.join(run.file_name().expect("a name"))).expect("linked");
    }
    let listed: Vec<String> = runs[..runs.len() - 1].iter().map(|run| format!("E/runs/{run}")).collect();
    let listed = format!("--by size {}", listed.join(" "));
    for paths in ["E", "E/runs", "--by size E/runs", &listed, "--by size links"] {
        let ran = at().line(&format!("compare {paths} {gate} --statistic p50 --json"));
        let document = document(&ran.failure(1));
        let caveat = |code: &str| {
            let caveats = document["caveats"].as_array().expect("caveats").iter();
            caveats.clone().find(|caveat| caveat["code"] == code).cloned().unwrap_or_default()
        };
        assert!(caveat("missing-runs")["message"].as_str().is_some_and(|it| it.contains(last.as_str())), "{paths}");
        assert_eq!(document["gates"][0]["reason"], "missing-runs", "{paths}");
    }
    let summary = at().line("summary E --gate p50<=10s --json").stderr(contains(last)).failure(1);
    let document = summary.json();
    let gate = first_gate(&document);
    assert_eq!((&gate["state"], &gate["reason"]), (&json!("broken"), &json!("missing-runs")), "{gate}");
}

#[test]
fn the_report_of_an_experiment_names_runs_that_are_gone_and_keeps_no_gate() {
    let (lab, runs) = finished_experiment();
    let gone = runs.last().expect("runs");
    fs::remove_dir_all(lab.path("E/runs").join(gone)).expect("removed");
    let ran = lab.line("run E --json --gate p50<=10s").stderr(contains("gone, damaged or edited")).failure(1);
    let document = document(&ran);
    let caveats = document["caveats"].as_array().expect("caveats").iter();
    let missing = caveats.clone().find(|caveat| caveat["code"] == "missing-runs").expect("a run is gone");
    assert!(missing["message"].as_str().is_some_and(|message| message.contains(gone.as_str())), "{missing}");
    let gate = &document["experiment"]["gates"][0];
    assert_eq!((&gate["state"], &gate["reason"]), (&json!("broken"), &json!("missing-runs")), "{gate}");
    for form in ["run E", "run E --format markdown"] {
        Latlab::at(ran.directory()).line(form).stdout(contains(gone)).stderr(contains(gone)).failure(4);
    }
    let text = Latlab::at(ran.directory()).line("run E --gate p50<=10s").failure(1).stdout;
    assert!(text.contains("failed without 1 run that is gone, damaged or edited"), "{text}");
}

#[test]
fn a_run_without_its_manifest_and_an_experiment_without_its_file_keep_no_gate() {
    for lost in ["E/runs/RUN/manifest.json", "E/experiment.toml E/runs/RUN"] {
        let (lab, runs) = finished_experiment();
        for path in lost.replace("RUN", runs.last().expect("runs")).split(' ').map(|path| lab.path(path)) {
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("removed");
        }
        let ran = lab.line("compare --by size E/runs --statistic p50 --gate p50<=+900% --json").failure(1);
        assert_eq!(document(&ran)["gates"][0]["reason"], "missing-runs", "{lost}");
    }
}

#[test]
fn a_journal_that_cannot_be_read_keeps_no_gate() {
    let (lab, _) = finished_experiment();
    let journal = lab.path("E/journal.jsonl");
    let text = fs::read_to_string(&journal).expect("a journal");
    let damaged: Vec<&str> = text.lines().enumerate().map(|(at, line)| if at == 2 { "{" } else { line }).collect();
    fs::write(&journal, damaged.join("\n")).expect("written");
    let ran = lab.line("compare E --gate p50<=+900% --json").stderr(contains("the journal of")).failure(1);
    assert_eq!(document(&ran)["gates"][0]["reason"], "missing-runs");
}

#[test]
fn an_experiment_whose_file_cannot_be_read_keeps_no_gate() {
    for form in ["E/runs --statistic p50", "--by size E --statistic p50"] {
        let (lab, _) = finished_experiment();
        fs::write(lab.path("E/experiment.toml"), "name = ").expect("written");
        let command = format!("compare {form} --gate p50<=+900% --json");
        let ran = lab.line(&command).stderr(contains("the file of `")).failure(1);
        assert_eq!(document(&ran)["gates"][0]["reason"], "missing-runs", "{form}");
    }
}

#[test]
fn an_experiment_whose_file_is_lost_is_still_one_and_keeps_no_gate() {
    let (lab, _) = finished_experiment();
    let file = lab.path("E/experiment.toml");
    let shared = lab.line("list").success();
    let at = |line: &str| Latlab::at(shared.directory()).line(line);
    let is_refused = |found: &str| {
        for line in ["compare --by size E --statistic p50 --gate p50<=+900%", "summary E --gate p50<=10s"] {
            let ran = at(line).arg("--json").stderr(contains("the file of `")).failure(1).json();
            assert_eq!(first_gate(&ran)["reason"], "missing-runs", "{line}: {found}");
        }
        for line in ["compare E --gate p50<=+900%", "run E"] {
            at(line).stderr(contains("cannot read `E/experiment.toml`")).stderr(contains("  hint: ")).failure(2);
        }
        assert_eq!(at("list --json --store .").success().json()["experiments"][0]["state"], "finished", "{found}");
    };
    in_place_of(&file, is_refused);
    fs::remove_file(&file).expect("ours");
    is_refused("no file");
    at("run E").stderr(contains("`latlab run FILE --new`")).failure(2);
}

#[test]
fn an_experiment_whose_file_was_edited_keeps_no_gate() {
    let (lab, _) = finished_experiment();
    let path = lab.path("E/experiment.toml");
    let text = fs::read_to_string(&path).expect("a file");
    fs::write(&path, format!("{text}# another comment\n")).expect("written");
    let command = "compare E --statistic p50 --gate p50<=+900% --json";
    let ran = lab.line(command).stderr(contains(", which was edited")).failure(1);
    assert_eq!(document(&ran)["gates"][0]["reason"], "missing-runs");
}

#[test]
fn a_judged_run_of_an_experiment_with_damaged_rows_is_left_out_and_keeps_no_gate() {
    for command in ["compare E --statistic p50 --gate p50<=+900%", "summary E --gate p50<=10s"] {
        let (lab, runs) = finished_experiment();
        let last = runs.last().expect("runs");
        fs::write(lab.path("E/runs").join(last).join("probes.parquet"), "PAR1").expect("written");
        let ran = lab
            .line(command)
            .arg("--json")
            .stderr(contains(last.as_str()))
            .stderr(contains("  cause: "))
            .failure(1)
            .json();
        assert_eq!(first_gate(&ran)["reason"], "missing-runs", "{command}");
    }
}

#[test]
fn damaged_rows_of_a_run_that_is_not_judged_break_no_gate() {
    // Some of the runs have fatal caveats, with which `latlab run` ends.
    for (command, code) in [
        ("compare E --statistic p50 --gate p50<=+900%", 0),
        ("summary E --gate p50<=10s", 0),
        ("run E --gate p50<=10s", 4),
    ] {
        let (lab, runs) = finished_experiment();
        let (all, unknown) = (lab.path("E/runs"), lab.path("E/runs/20261122T203411Z-ping-dead"));
        let mut warmups = recordings_in(&all).into_iter().filter(|run| is_warmup(run));
        let copied = Command::new("cp").arg("-r").arg(all.join(&runs[0])).arg(&unknown).status().expect("cp runs");
        assert!(copied.success());
        for run in [unknown, warmups.next().expect("a warm-up run")] {
            fs::write(run.join("probes.parquet"), "PAR1").expect("written");
        }
        lab.line(command).failure(code);
    }
}

fn copy_run(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").args([from, to]).status().expect("cp runs").success());
}

/// The journal calls it failed: only its recording says that it was measured to its end.
#[test]
fn a_run_without_an_answer_that_is_gone_or_damaged_keeps_no_gate() {
    for (command, code) in [
        ("compare E --statistic loss_ratio --gate loss_ratio<=+99% --json", 1),
        ("summary E --gate p50<=10s --json", 1),
        ("run E --gate p50<=10s --json", 1),
    ] {
        for is_gone in [true, false] {
            let (lab, runs) = finished_experiment();
            let last = runs.last().expect("runs");
            let journal = fs::read_to_string(lab.path("E/journal.jsonl")).expect("a journal");
            let failed = |line: &str| match line.contains(last.as_str()) {
                true => line.replace(r#""outcome":"completed""#, r#""outcome":"failed""#) + "\n",
                false => line.to_owned() + "\n",
            };
            write_journal(&lab.path("E"), &journal.lines().map(failed).collect::<String>());
            let run = lab.path("E/runs").join(last);
            match is_gone {
                true => fs::remove_dir_all(run).expect("removed"),
                false => fs::write(run.join("manifest.json"), "").expect("written"),
            }
            lab.line(command).stderr(contains(last.as_str())).failure(code);
        }
    }
}

#[test]
fn a_copy_of_a_run_is_left_out_and_one_in_place_of_another_run_is_missing() {
    let counts = |document: &Value| -> Vec<Value> {
        document["groups"].as_array().expect("groups").iter().map(|group| group["runs"].clone()).collect()
    };
    let (lab, _) = finished_experiment();
    let intact = counts(&document(&lab.line("compare E --statistic p50 --json").success()));
    let (lab, runs) = finished_experiment();
    let path = |name: &str| lab.path("E/runs").join(name);
    copy_run(&path(&runs[0]), &path("20261122T203411Z-ping-dead"));
    // An earlier attempt at the same place was refused, and has no recording.
    let journal = fs::read_to_string(lab.path("E/journal.jsonl")).expect("a journal");
    let ended = journal.lines().find(|line| line.contains(runs[0].as_str())).expect("its end");
    let mut refused: Value = serde_json::from_str(ended).expect("JSON");
    (refused["outcome"], refused["recording"]) = (json!("refused"), Value::Null);
    let began = journal.lines().take_while(|line| *line != ended).last().expect("its begin");
    let twice = journal.replace(began, &format!("{began}\n{refused}\n{began}"));
    write_journal(&lab.path("E"), &twice);
    let ran = lab.line("compare E --statistic p50 --json").stderr(contains("or it is a copy of one"));
    assert_eq!(counts(&document(&ran.success())), intact);

    let (lab, runs) = finished_experiment();
    let of_another = lab.path("E/runs/20261122T203411Z-ping-dead");
    copy_run(&lab.path("E/runs").join(&runs[0]), &of_another);
    let manifest = fs::read_to_string(of_another.join("manifest.json")).expect("a manifest");
    let mut manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    (manifest["experiment"]["experiment"], manifest["experiment"]["position"]) = (json!("00000000deadbeef"), json!(99));
    write_manifest(&of_another, manifest);
    let ran = lab.line("compare E --statistic p50 --json").stderr(contains("it is not a run of this experiment"));
    assert_eq!(counts(&document(&ran.success())), intact);

    let (lab, runs) = finished_experiment();
    let path = |name: &String| lab.path("E/runs").join(name);
    fs::remove_dir_all(path(&runs[1])).expect("removed");
    copy_run(&path(&runs[0]), &path(&runs[1]));
    let ran = lab.line("compare E --statistic p50 --gate p50<=+900% --json").stderr(contains(runs[1].as_str()));
    assert_eq!(document(&ran.failure(1))["gates"][0]["reason"], "missing-runs");
}

#[test]
fn gates_of_an_experiment_are_about_its_judged_runs() {
    let (lab, runs) = finished_experiment();
    let ran = lab.line("summary E --gate p50<=10s --json").success();
    let summaries = ran.json()["summaries"].as_array().expect("summaries").clone();
    assert!(summaries.len() > runs.len(), "warm-up runs are shown");
    for summary in summaries {
        let path = ran.directory().join(summary["recording"].as_str().expect("a path"));
        let gates = summary["gates"].as_array().map_or(0, Vec::len);
        assert_eq!(gates, usize::from(!is_warmup(&path)), "{}", path.display());
    }
}

#[test]
fn an_experiment_whose_judged_runs_are_all_gone_names_them() {
    let (lab, runs) = finished_experiment();
    let judged = recordings_in(&lab.path("E/runs")).into_iter().filter(|run| !is_warmup(run));
    judged.for_each(|run| fs::remove_dir_all(run).expect("removed"));
    let last = runs.last().expect("runs");
    let ran = lab
        .line("compare E")
        .stdout(empty())
        .stderr(contains("gone, damaged or edited"))
        .stderr(contains(last.as_str()));
    let ran = ran.failure(2);
    let gated = Latlab::at(ran.directory()).line("summary E --gate p50<=10s").stderr(contains("has no finished run"));
    gated.failure(1);
    for run in recordings_in(&ran.directory().join("E/runs")) {
        fs::remove_dir_all(run).expect("removed");
    }
    let none = Latlab::at(ran.directory()).line("compare --by size E/runs").stderr(contains("gone, damaged or edited"));
    none.failure(2);
    let none = Latlab::at(ran.directory()).line("summary E").stderr(contains("cause: gone, damaged or edited"));
    none.stderr(contains(last.as_str())).failure(2);
    Latlab::at(ran.directory()).line("run E").stderr(lacks("one condition")).stderr(contains(last.as_str())).failure(2);
}

#[test]
fn the_report_of_an_experiment_without_a_comparison_names_runs_that_are_gone() {
    for name in ["alone", "until"] {
        let lab = Latlab::new();
        copy_of(name, &lab.path("E"));
        let runs = recordings_in(&lab.path("E/runs"));
        let gone = runs.iter().rfind(|run| !is_warmup(run)).expect("a judged run");
        fs::remove_dir_all(gone).expect("removed");
        let gone = gone.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        let ran = lab.line("run E --json").stderr(contains(gone)).start().exits_with_one_of(&[0, 4]);
        for form in ["run E", "run E --format markdown"] {
            let shown = Latlab::at(ran.directory()).line(form).stdout(contains(gone));
            shown.start().exits_with_one_of(&[0, 4]);
        }
        let caveats = document(&ran)["caveats"].clone();
        let missing = caveats.as_array().and_then(|all| all.iter().find(|caveat| caveat["code"] == "missing-runs"));
        assert!(
            missing.is_some_and(|it| it["message"].as_str().is_some_and(|it| it.contains(gone))),
            "{name}: {caveats}"
        );
    }
}

#[test]
fn an_experiment_that_has_lost_its_journal_or_its_runs_keeps_no_gate() {
    let (lab, runs) = finished_experiment();
    let shared = lab.line("list --store E").success();
    let at = |line: &str| Latlab::at(shared.directory()).line(line);
    let lost = |name: &str| fs::rename(shared.directory().join("E").join(name), shared.directory().join(name));
    lost("journal.jsonl").expect("moved");
    for line in ["compare --by size E --statistic p50 --gate p50<=+900%", "summary E --gate p50<=10s"] {
        let ran = at(line).arg("--json").stderr(contains("the journal of `")).failure(1).json();
        assert_eq!(first_gate(&ran)["reason"], "missing-runs", "{line}");
    }
    fs::rename(shared.directory().join("journal.jsonl"), shared.directory().join("E/journal.jsonl")).expect("moved");
    lost("runs").expect("moved");
    for line in ["compare E --gate p50<=+900%", "summary E --gate p50<=10s", "run E --gate p50<=10s"] {
        at(line).stderr(contains(runs.last().expect("runs").as_str())).stdout(empty()).failure(2);
    }
}

#[test]
fn a_directory_with_a_file_and_a_store_of_these_names_is_not_an_experiment() {
    let lab = Latlab::new().file("experiment.toml", "# mine");
    fs::create_dir(lab.path("runs")).expect("made");
    copy_directory(&testdata("recordings/good/closed"), &lab.path("runs/20261122T020000Z-ping-aaaa"));
    copy_directory(&testdata("recordings/good/closed"), &lab.path("runs/20261122T020001Z-ping-bbbb"));
    let form = "compare runs/20261122T020000Z-ping-aaaa runs/20261122T020001Z-ping-bbbb --statistic p50 --json";
    let compared = lab.line(form).stderr(lacks("gone")).start().exits_with_one_of(&[0, 4]);
    assert!(compared.json()["caveats"].as_array().expect("caveats").iter().all(|it| it["code"] != "missing-runs"));
}

#[test]
fn an_experiment_whose_journal_is_damaged_is_not_begun_again_unasked() {
    let (lab, _) = finished_experiment();
    let journal = lab.path("E/journal.jsonl");
    let text = fs::read_to_string(&journal).expect("a journal");
    fs::write(&journal, text.replacen("block_began", "", 1).replacen('{', "", 3)).expect("written");
    fs::copy(lab.path("E/experiment.toml"), lab.path("same.toml")).expect("copied");
    let shared = lab.line("list --store .").success();
    let at = |line: &str| Latlab::at(shared.directory()).line(line);
    let journal = shared.directory().join("E/journal.jsonl");
    let refused = "run same.toml --store . --dry-run";
    at(refused)
        .stderr(contains("the experiment `./E` has runs, but its journal"))
        .stderr(contains("--new`"))
        .failure(2);
    at("run same.toml --store . --dry-run --new").success();
    fs::write(&journal, "").expect("written");
    at(refused).stderr(contains("cause: it has no `journal.jsonl` that begins one")).failure(2);
    at("run E").stderr(contains("the experiment `E` has runs, but its journal")).failure(2);
    // Of a later version, and in place of a file.
    fs::write(&journal, text.replacen("\"major\":1,", "\"major\":9,", 1)).expect("written");
    at(refused).stderr(contains("has format 9.")).stderr(contains("use the latlab that wrote it")).failure(2);
    // In the same words for a file that was changed meanwhile: the first line of the journal names it.
    let file = shared.directory().join("same.toml");
    let own = fs::read_to_string(&file).expect("a file");
    fs::write(&file, format!("{own}# changed\n")).expect("written");
    let mut first: serde_json::Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    first["source"] = fs::canonicalize(&file).expect("a path").display().to_string().into();
    fs::write(&journal, format!("{first}\nno line\n")).expect("written");
    at(refused).stderr(contains("has runs, but its journal")).failure(2);
    fs::write(&file, own).expect("written");
    fs::remove_file(&journal).expect("removed");
    fs::create_dir(&journal).expect("made");
    at(refused).stderr(contains("the experiment `./E` has runs, but its journal")).failure(2);
    at("run E").stderr(contains("has runs, but its journal")).stderr(contains("restore the journal")).failure(2);
    fs::remove_dir(&journal).expect("removed");
    // Runs whose manifests cannot be read either are runs.
    fs::write(&journal, text.replacen('{', "", 3)).expect("written");
    let runs = recordings_in(&shared.directory().join("E/runs"));
    runs.iter().for_each(|run| fs::write(run.join("manifest.json"), "\n").expect("written"));
    at(refused).stderr(contains("the experiment `./E` has runs, but its journal")).failure(2);
    fs::rename(&journal, shared.directory().join("lost")).expect("moved");
    at(refused).stderr(contains("the experiment `./E` has runs, but its journal")).failure(2);
    fs::rename(shared.directory().join("lost"), &journal).expect("moved");
    // A start that a full disk ended has nothing to repeat.
    runs.iter().for_each(|run| fs::remove_dir_all(run).expect("removed"));
    at(refused).success();
}

/// The journal says which runs count. A directory that a killed start left does not count.
#[test]
fn a_damaged_directory_that_the_journal_does_not_name_breaks_no_gate_of_an_experiment() {
    let (lab, _) = finished_experiment();
    let killed = lab.path("E/runs/20261122T203411Z-ping-dead");
    fs::create_dir(&killed).expect("made");
    fs::write(killed.join("events.spool"), "").expect("written");
    lab.line("compare E --statistic p50 --gate p50<=+900% -q").success();
}
