//! `latlab list`: the recordings and experiments of a store in every state.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{BINARY, Latlab, check_schema, contains, empty, wait_until};
use crate::hostile::{copy_directory, testdata};
use crate::store::{only_recording, recordings, recordings_in, spool_bytes};

/// The list of the default store of `directory`, checked against its schema.
#[track_caller]
fn list(directory: &Path) -> Vec<Value> {
    let document = Latlab::at(directory).line("list --json").stderr(empty()).success().json();
    check_schema(&document, "list/1");
    document["recordings"].as_array().expect("a list").clone()
}

fn states(list: &[Value]) -> Vec<&str> {
    list.iter().map(|recording| recording["state"].as_str().expect("a word")).collect()
}

#[test]
fn each_state_of_a_recording_is_listed() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = Latlab::at(home.path()).line("ping -d 50s -i 2ms --warmup 0").start();
    let pid = running.pid().as_raw_nonzero().get();
    // A run that is killed before its first event is written is damaged.
    wait_until("the run was under way", || spool_bytes(home.path()) > 128);
    let listed = list(home.path());
    assert_eq!(states(&listed), ["measuring"]);
    assert_eq!(listed[0]["reason"], format!("by process {pid}"));
    let recording = only_recording(home.path());
    let busy = Latlab::at(home.path()).arg("summary").arg(&recording).stdout(empty());
    busy.stderr(contains(format!("cause: process {pid}"))).stderr(contains("\n  hint: ")).failure(3);

    running.signal(Signal::KILL);
    running.killed_by(Signal::KILL);
    assert_eq!(states(&list(home.path())), ["unfinished"]);
    assert!(recording.join("events.spool").exists(), "a look changes nothing");
    Latlab::at(home.path()).arg("summary").arg(&recording).measured();
    assert_eq!(states(&list(home.path())), ["recovered"]);

    fs::write(recording.join("manifest.json"), "").expect("ours");
    let listed = list(home.path());
    assert_eq!(states(&listed), ["damaged"]);
    assert!(listed[0]["reason"].as_str().expect("why").ends_with("0 bytes"), "{listed:?}");
    Latlab::at(home.path()).line("list").stdout(contains("damaged")).stderr(empty()).success();
}

#[test]
fn a_large_store_is_read_in_little_memory() {
    let home = tempfile::tempdir().expect("a temporary directory");
    copy_directory(&testdata("recordings/good/closed"), &home.path().join("store/first"));
    let files =
        ["manifest.json", "probes.parquet", "host.parquet"].map(|name| home.path().join("store/first").join(name));
    for number in 0..600 {
        let copy = home.path().join(format!("store/20261121T021500Z-ping-{number:04x}"));
        fs::create_dir(&copy).expect("made");
        files.iter().filter(|file| file.exists()).for_each(|file| {
            fs::hard_link(file, copy.join(file.file_name().expect("a name"))).expect("linked");
        });
    }
    for line in ["list --store store", "list --store store --json", "list --store store --kind stream"] {
        let script = format!("ulimit -d 32768; exec {BINARY} {line}");
        let output = Command::new("sh").args(["-c", &script]).current_dir(home.path()).output().expect("sh(1)");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Four runs of two sizes.
const SMALL: &str = "name = \"small one\"\nkind = \"ping\"\n[base]\ncount = 50\nwarmup = \"0\"\n[factors]\n\
                     size = [24, 64]\n[design]\nruns = 2\nsettle = \"0s\"\n";

#[test]
fn experiments_are_listed_with_their_progress() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let listed = || {
        let document = Latlab::at(home.path()).line("list --json").stderr(empty()).success().json();
        check_schema(&document, "list/1");
        document["experiments"].as_array().expect("a list").clone()
    };
    let facts = |one: &Value| (one["state"].clone(), one["runs_done"].clone(), one["runs_planned"].clone());
    let begun = Latlab::at(home.path()).file("x.toml", SMALL).line("run x.toml").measured().stderr;
    let [done] = &listed()[..] else { panic!("{:?}", listed()) };
    assert_eq!((facts(done), &done["name"]), (("finished".into(), 4.into(), 4.into()), &"small one".into()));
    let path = done["experiment"].as_str().expect("a path");
    assert!(begun.contains(&format!("\ndirectory    {path}\n")), "its plan names the directory: {begun}");
    let runs = list(home.path());
    assert_eq!(runs.len(), 4);
    let is_its_own = |run: &Value| run["experiment"] == path && run["condition"]["transport"] == "udp";
    assert!(runs.iter().all(|run| is_its_own(run) && run["bytes"].as_u64() > Some(0)), "{runs:?}");
    let text = Latlab::at(home.path()).line("list").stderr(empty()).success().stdout;
    assert!(text.contains("4 of 4 runs  small one"), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("  2")).count(), 4, "each run has a row: {text}");
    assert!(text.contains("size=24") && text.contains("size=64"), "{text}");
    // The directory of an experiment is listed as the store of its runs.
    let directory = done["experiment"].as_str().expect("a path");
    let inside = Latlab::at(home.path()).args(["list", "--json", "--store", directory]).success().json();
    assert_eq!(inside["recordings"].as_array().map(Vec::len), Some(4));

    let slow = SMALL.replace("count = 50", "duration = \"20s\"");
    let running = Latlab::at(home.path()).file("y.toml", slow).line("run y.toml").start();
    let newest = || listed().into_iter().find(|one| one["state"] != "finished");
    let conductor = format!("by process {}", running.pid().as_raw_nonzero());
    // The process locks the directory before it writes its number.
    wait_until("it was conducted", || newest().is_some_and(|one| one["reason"] == conductor));
    assert_eq!(newest().expect("it is there")["state"], "measuring");
    running.signal(Signal::INT);
    running.exits(130);
    let one = newest().expect("it is there");
    assert_eq!(facts(&one), ("unfinished".into(), 0.into(), 4.into()));

    fs::write(
        Path::new(&*home.path().join(one["experiment"].as_str().expect("a path"))).join("journal.jsonl"),
        "what\n",
    )
    .expect("ours");
    let one = newest().expect("it is there");
    assert_eq!((&one["state"], &one["runs_done"]), (&"damaged".into(), &Value::Null));
    assert!(one["reason"].as_str().is_some_and(|reason| reason.contains("line 1")), "{one}");
}

/// A store with two recordings of testdata of the 21st, `old` and `tagged`, one of the 22nd, `later`, and a finished
/// experiment.
fn filled_store() -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    let store = home.path().join("latlab-runs");
    for (from, name) in [
        ("recordings/good/closed", "old"),
        ("recordings/good/scheduled", "tagged"),
        ("recordings/old/1.3-wakeup", "later"),
        ("experiments/finished/alone", "20261122T082659Z-experiment-0011"),
    ] {
        copy_directory(&testdata(from), &store.join(name));
    }
    change_manifest(&store.join("tagged"), |manifest| manifest["spec"]["tags"]["build"] = "4f2a".into());
    change_manifest(&store.join("later"), |manifest| manifest["started_at"] = "2026-11-22T09:00:00Z".into());
    home
}

/// Changes the manifest of `recording`, whose version has no checksums.
fn change_manifest(recording: &Path, change: impl FnOnce(&mut Value)) {
    let path = recording.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("JSON");
    change(&mut manifest);
    fs::write(path, manifest.to_string()).expect("written");
}

const EXPERIMENT: &str = "20261122T082659Z-experiment-0011";

#[test]
fn pruning_removes_only_what_is_confirmed_finished_and_of_latlab() {
    let home = filled_store();
    let store = home.path().join("latlab-runs");
    fs::create_dir(store.join("notes")).expect("made");
    copy_directory(&testdata("recordings/old/1.1-died"), &store.join("died"));
    copy_directory(&testdata("recordings/bad/zero-bytes-manifest"), &store.join("20261121T021500Z-ping-dead"));
    let all = recordings(home.path());
    let prune = |options: &str| Latlab::at(home.path()).line("list --prune").line(options);

    let dry = prune("--before 2026-11-22").stderr(contains("nothing was removed")).stderr(contains("died` is kept"));
    let dry = dry.stderr(contains("-dead` is kept: it is damaged")).success();
    assert!(dry.stdout.contains("2 would be removed") && !dry.stdout.contains("later"), "{}", dry.stdout);
    assert_eq!(recordings(home.path()), all);
    fs::write(store.join("old/notes.txt"), "mine").expect("written");
    let removed = prune("--before 2026-11-22 --yes").stderr(contains("it has the other file `notes.txt`")).success();
    assert!(removed.stdout.contains("1 removed") && removed.stdout.contains("tagged"), "{}", removed.stdout);
    assert_eq!(recordings(home.path()).len(), all.len() - 1);

    let inside = format!("--before 2026-12-01 --store latlab-runs/{EXPERIMENT}");
    prune(&inside).stderr(contains("cannot remove single runs")).failure(2);
    // Also where its runs are a link to a directory elsewhere.
    let (runs, elsewhere) = (store.join(EXPERIMENT).join("runs"), home.path().join("elsewhere"));
    fs::rename(&runs, &elsewhere).expect("ours");
    std::os::unix::fs::symlink(&elsewhere, &runs).expect("a link");
    prune(&format!("{inside}/runs --yes")).stderr(contains("cannot remove single runs")).failure(2);
    fs::remove_file(&runs).and_then(|()| fs::rename(&elsewhere, &runs)).expect("ours");
    prune("--before 2026-12-01 --kind ping --yes").stderr(contains("an experiment is removed as a whole")).success();
    let whole = prune("--before 2026-12-01 --yes --json").success().json();
    check_schema(&whole, "list/1");
    assert_eq!((&whole["removed"], whole["experiments"].as_array().map(Vec::len)), (&true.into(), Some(1)));
    let kept: Vec<_> =
        recordings(home.path()).iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned)).collect();
    assert_eq!(kept, ["20261121T021500Z-ping-dead", "died", "notes", "old"]);
}

#[test]
fn an_experiment_is_removed_only_if_all_of_its_runs_began_in_the_given_time() {
    let home = filled_store();
    let experiment = home.path().join("latlab-runs").join(EXPERIMENT);
    let prune = |options: &str| Latlab::at(home.path()).line("list --prune --kind experiment --yes").line(options);
    let kept = format!("{EXPERIMENT}` is kept: not all of its runs began in the given time");
    // It began in the morning, and its runs in the evening.
    prune("--before 2026-11-22T12:00").stderr(contains(&kept)).stdout(contains("nothing to remove")).success();
    let run = experiment.join("runs/20261122T205636Z-ping-99ef");
    change_manifest(&run, |manifest| manifest["started_at"] = "2026-11-20T00:00:00Z".into());
    prune("--since 2026-11-22 --before 2026-12-01")
        .stderr(contains(&kept))
        .stdout(contains("nothing to remove"))
        .success();
    assert_eq!(recordings_in(&experiment.join("runs")).len(), 10);
    prune("--before 2026-12-01").stdout(contains("1 removed")).success();
    assert!(!experiment.exists());
}

#[test]
fn an_experiment_with_recordings_that_are_not_of_it_is_kept() {
    let home = filled_store();
    let experiment = home.path().join("latlab-runs").join(EXPERIMENT);
    let prune = || Latlab::at(home.path()).line("list --prune --kind experiment --before 2026-12-01 --yes");
    let other = experiment.join("runs/other");
    for from in ["recordings/good/closed", "experiments/finished/factors/runs/20261122T205641Z-ping-d39e"] {
        copy_directory(&testdata(from), &other);
        prune().stderr(contains("is kept: `runs/other` is not a run of it")).success();
        assert_eq!(recordings_in(&experiment.join("runs")).len(), 11, "{from}");
        fs::remove_dir_all(&other).expect("ours");
    }
    prune().stdout(contains("1 removed")).success();
    assert!(!experiment.exists());
}

#[test]
fn an_experiment_with_outputs_of_failed_hooks_is_removed_as_a_whole() {
    let home = filled_store();
    let experiment = home.path().join("latlab-runs").join(EXPERIMENT);
    let prune = || Latlab::at(home.path()).line("list --prune --kind experiment --before 2026-12-01 --yes");
    fs::create_dir(experiment.join("hooks")).expect("made");
    fs::write(experiment.join("hooks/block-1-run-2-service.txt"), "a bug\n").expect("written");
    fs::write(experiment.join("hooks/deploy"), "mine").expect("written");
    let before = recordings_in(&experiment.join("runs")).len();
    prune().stderr(contains("is kept: it has the other file `hooks/deploy`")).success();
    assert_eq!(recordings_in(&experiment.join("runs")).len(), before);
    fs::remove_file(experiment.join("hooks/deploy")).expect("ours");
    prune().stdout(contains("1 removed")).success();
    assert!(!experiment.exists());
}

#[test]
fn each_listed_name_can_be_typed_behind_summary() {
    let home = filled_store();
    let words = |options: &str| -> Vec<String> {
        let text = Latlab::at(home.path()).line("list").line(options).success().stdout;
        let rows = text.lines().skip(1).filter(|line| !line.starts_with("   "));
        rows.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    };
    let [by_name, by_path] = ["", "--store latlab-runs --kind ping"].map(words);
    assert!(by_name.len() > 5 && by_name.contains(&"old".to_owned()), "{by_name:?}");
    assert!(by_name.contains(&EXPERIMENT.to_owned()) && by_name.iter().any(|name| name.ends_with("-ping-99ef")));
    assert!(by_path.contains(&"latlab-runs/old".to_owned()) && !by_path.contains(&"old".to_owned()), "{by_path:?}");
    let all = by_name.iter().filter(|word| *word != "recording");
    for word in all.chain(by_path.iter().filter(|word| word.contains('/'))) {
        Latlab::at(home.path()).line("summary --no-intervals").arg(word).start().exits_with_one_of(&[0, 4]);
    }
    // The end of a name is enough if no other one has it.
    for id in ["99ef", "ping-99ef"] {
        let shown = Latlab::at(home.path()).line("summary --no-intervals").arg(id).start().exits_with_one_of(&[0, 4]);
        assert!(shown.stdout.contains("-ping-99ef"), "{}", shown.stdout);
    }
    // A name that another directory has is shown as a path.
    fs::create_dir(home.path().join("old")).expect("made");
    assert!(words("").contains(&"./latlab-runs/old".to_owned()), "{:?}", words(""));
}

#[test]
fn the_summary_of_a_store_has_those_of_its_recordings() {
    let home = filled_store();
    let left_out = format!("1 experiment is left out: `latlab summary latlab-runs/{EXPERIMENT}` shows the newest");
    let lab = Latlab::at(home.path()).line("summary latlab-runs --json --no-intervals").stderr(contains(left_out));
    // The schedule of one of them was lost.
    let document = lab.failure(4).json();
    check_schema(&document, "summaries/1");
    let of: Vec<_> =
        document["summaries"].as_array().expect("several").iter().map(|one| one["recording"].clone()).collect();
    assert_eq!(of, ["latlab-runs/old", "latlab-runs/tagged", "latlab-runs/later"]);
    for name in ["old", "tagged", "later"] {
        fs::remove_dir_all(home.path().join("latlab-runs").join(name)).expect("ours");
    }
    let none = Latlab::at(home.path()).line("summary latlab-runs").stdout(empty());
    none.stderr(contains("the store `latlab-runs` has no run to be summarised"))
        .stderr(contains("\n  hint: "))
        .failure(2);
}
