//! Recordings of earlier versions can be opened, and damaged recordings are reported with the cause.
//!
//! In `old/` and `good/` each directory is a recording, and the JSON file of the same name has its expected facts. In
//! `bad/` the text file of the same name has the whole expected message. A recording that is added is tested without
//! further code; `LATLAB_UPDATE_GOLDENS=1` writes missing expectations.

use std::fs;
use std::path::{Path, PathBuf};

use latlab::diagnostics::Explain;
use latlab::experiment::OpenExperiment;
use latlab::facts::RunOutcome;
use latlab::facts::{IntervalCounts, StreamInterval};
use latlab::plan::{Kind, Side};
use latlab::probe::{Fate, KernelStamps, Phase, ProbeRecord};
use latlab::recording::manifest::Manifest;
use latlab::recording::trace::Trace;
use latlab::recording::{ExecutionBatch, IntColumn, ProbeColumn, RecordedTable, Recording, RecordingError, ValueBatch};
use latlab::units::Stamp;
use serde_json::{Value, json};

mod runs;

fn testdata(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings").join(folder);
    let entries = fs::read_dir(&folder).expect("test data");
    let mut recordings: Vec<_> =
        entries.map(|entry| entry.expect("entry").path()).filter(|path| path.is_dir()).collect();
    recordings.sort();
    assert!(!recordings.is_empty(), "nothing in {}", folder.display());
    recordings
}

/// Copies a recording to a temporary directory, since opening may finish it, and the checked-in one must not change.
fn copied(recording: &Path) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let copy = directory.path().join("recording");
    fs::create_dir(&copy).expect("directory");
    for file in fs::read_dir(recording).expect("recording") {
        let file = file.expect("file");
        fs::copy(file.path(), copy.join(file.file_name())).expect("copied");
    }
    (directory, copy)
}

/// The expectation in the file next to `recording`. If there is none and `LATLAB_UPDATE_GOLDENS` is set, `actual` becomes it.
fn expected(recording: &Path, extension: &str, actual: &str) -> String {
    // Not `with_extension`: a version in the name has a dot.
    let path = PathBuf::from(format!("{}.{extension}", recording.display()));
    if !path.exists() && std::env::var_os("LATLAB_UPDATE_GOLDENS").is_some() {
        fs::write(&path, actual).expect("blessed");
    }
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Over DDS since format 1.7, past the network stack since 1.8, with the command line since 1.10, imported since 1.11,
/// with stamps since 1.13.
fn add_later_facts(manifest: &Manifest, rows: &[ProbeRecord], facts: &mut Value) {
    let (run, path) = (&manifest.run, manifest.spec.path());
    if run.dds.is_some() {
        facts["dds"] = json!([run.dds, path.and_then(|path| path.dds)]);
    }
    if run.xdp.is_some() {
        facts["xdp"] = json!([run.xdp, run.xdp_reflector, path.and_then(|path| path.xdp)]);
    }
    if run.stamps.is_some() {
        facts["stamps"] = json!([run.stamps, manifest.spec.ping().map(|ping| ping.stamps)]);
        let sum =
            |of: fn(&KernelStamps) -> Option<i64>| wrapping_sum(&mut rows.iter().filter_map(|row| of(&row.kernel)));
        facts["sums_of_stamps"] = json!([
            sum(|kernel| kernel.tx_sched.map(Stamp::as_nanos)),
            sum(|kernel| kernel.tx_software.map(Stamp::as_nanos)),
            sum(|kernel| kernel.reflector_tx_software.map(Stamp::as_nanos)),
        ]);
    }
    if let Some(command) = &manifest.command {
        facts["command"] = json!(command);
    }
    if let Some(import) = &manifest.run.import {
        facts["import"] = json!([import, manifest.spec.import(), manifest.software]);
    }
}

/// Facts of a recording that every later version can compute.
fn facts(recording: &Recording) -> Value {
    let manifest = recording.manifest();
    let rows = runs::rows(recording);
    let fates: serde_json::Map<_, _> = Fate::ALL
        .map(|fate| (fate.word().to_owned(), json!(rows.iter().filter(|row| row.fate == fate).count())))
        .into_iter()
        .collect();
    let mut facts = json!({
        "run_id": manifest.run_id,
        "ending": manifest.ending,
        "note": recording.note().is_some(),
        "rows": manifest.rows,
        "fates": fates,
        "duplicates": rows.iter().map(|row| u64::from(row.duplicates)).sum::<u64>(),
        "reordered": rows.iter().filter(|row| row.reordered).count(),
        "undecided_probes": manifest.run.undecided_probes,
        "timed_out_ns": manifest.run.timed_out_ns,
        "sum_of_due_ns": wrapping_sum(&mut rows.iter().filter_map(|row| row.due).map(|at| at.as_nanos())),
        "sum_of_sent_ns": wrapping_sum(&mut rows.iter().filter_map(|row| row.sent).map(|at| at.as_nanos())),
        "sum_of_received_ns": wrapping_sum(&mut rows.iter().filter_map(|row| row.received).map(|at| at.as_nanos())),
        "sum_of_reflector_sent_ns":
            wrapping_sum(&mut rows.iter().filter_map(|row| row.reflector_sent).map(|at| at.as_nanos())),
    });
    // Since format 1.3.
    if manifest.kind == Kind::Wakeup {
        let wakeups = wakeups(recording);
        facts["wakeup_rows"] = json!(manifest.wakeup_rows);
        facts["sum_of_due_ns"] = json!(wrapping_sum(&mut wakeups.iter().map(|row| row.0)));
        facts["sum_of_woke_ns"] = json!(wrapping_sum(&mut wakeups.iter().map(|row| row.1)));
        facts["timer_slack_ns"] = json!(manifest.run.wakeup.as_ref().and_then(|facts| facts.timer_slack_ns));
    }
    // Since format 1.4.
    if manifest.kind == Kind::Stream {
        let rows = intervals(recording);
        let sum = |of: fn(&IntervalCounts) -> u64| rows.iter().map(|row| of(&row.seen)).sum::<u64>();
        facts["interval_rows"] = json!(manifest.interval_rows);
        facts["sum_of_interval_end_ns"] = json!(wrapping_sum(&mut rows.iter().map(|row| row.end_ns)));
        facts["sum_of_cpu_ns"] = json!(wrapping_sum(&mut rows.iter().filter_map(|row| row.cpu).map(|cpu| cpu.0)));
        facts["measured_intervals"] = json!(rows.iter().filter(|row| row.phase == Phase::Measure).count());
        facts["offered"] =
            json!(sum(|seen| if let IntervalCounts::Offered { packets, .. } = seen { *packets } else { 0 }));
        facts["refused"] =
            json!(sum(|seen| if let IntervalCounts::Offered { refused, .. } = seen { *refused } else { 0 }));
        facts["polled"] =
            json!(sum(|seen| if let IntervalCounts::Counted { polled, .. } = seen { *polled } else { 0 }));
        facts["delivered"] =
            json!(sum(|seen| if let IntervalCounts::Counted { delivered, .. } = seen { *delivered } else { 0 }));
        facts["socket_drops"] = json!(sum(|seen| match seen {
            IntervalCounts::Counted { socket_drops: Some(drops), .. } => u64::from(*drops),
            _ => 0,
        }));
    }
    facts_of_executions(recording, &mut facts);
    facts_of_values(recording, &mut facts);
    add_later_facts(manifest, &rows, &mut facts);
    // Since format 1.5.
    if let (Some(facts_of_search), Some(stream)) = (&manifest.run.search, manifest.spec.stream()) {
        let goals = stream.search.as_ref().map(|search| search.goals.as_slice()).unwrap_or_default();
        facts["probe_rows"] = json!(manifest.probe_rows);
        facts["trials"] = json!(facts_of_search.trials.len());
        facts["found_pps"] = json!(facts_of_search.found_pps(goals));
        facts["sum_of_stage_begin_ns"] =
            json!(wrapping_sum(&mut manifest.run.stages.iter().map(|stage| stage.begin_ns)));
    }
    if let Some(connection) = &manifest.run.connection {
        facts["connection"] = json!(connection);
    }
    facts_of_host(recording, &mut facts);
    facts
}

/// Adds facts of the executions of a command, since format 1.12.
fn facts_of_executions(recording: &Recording, facts: &mut Value) {
    if recording.manifest().kind == Kind::Command {
        let batches: Vec<_> = recording.executions().expect("opens").map(|batch| batch.expect("reads")).collect();
        let sum = |of: fn(&ExecutionBatch) -> &IntColumn| {
            wrapping_sum(&mut batches.iter().flat_map(|batch| of(batch).values.iter().copied()))
        };
        facts["sum_of_elapsed_ns"] = json!(sum(|batch| &batch.ended_ns) - sum(|batch| &batch.started_ns));
        facts["sum_of_cpu_ns"] = json!(sum(|batch| &batch.user_ns) + sum(|batch| &batch.system_ns));
        facts["sum_of_resident_bytes"] = json!(sum(|batch| &batch.max_resident_bytes));
        facts["sums_of_codes"] = json!([sum(|batch| &batch.exit_code), sum(|batch| &batch.signal)]);
        facts["sum_of_counts"] = json!(sum(|batch| &batch.minor_faults) + sum(|batch| &batch.involuntary_switches));
        let bits = recording.printed().expect("opens").flat_map(|batch| batch.expect("reads").value.values);
        facts["sum_of_printed"] = json!(bits.map(|bits| f64::from_bits(bits as u64)).sum::<f64>());
    }
}

/// Adds facts of the values of an imported log, since format 1.11.
fn facts_of_values(recording: &Recording, facts: &mut Value) {
    if recording.manifest().kind == Kind::Values {
        let rows = values(recording);
        facts["sum_of_seq"] = json!(wrapping_sum(&mut rows.iter().filter_map(|row| row[0])));
        facts["sum_of_value_ns"] = json!(wrapping_sum(&mut rows.iter().filter_map(|row| row[1])));
        facts["sum_of_count"] = json!(wrapping_sum(&mut rows.iter().filter_map(|row| row[2])));
        facts["without_answer"] = json!(rows.iter().filter(|row| row[1].is_none()).count());
    }
}

/// Adds facts of the host samples, which format 1.0 does not have, and those of the hosts, if the recording has any.
fn facts_of_host(recording: &Recording, facts: &mut Value) {
    if let Some(text) = recording.trace(Side::Local) {
        let segments = Trace::of(&text).segments;
        let sum = wrapping_sum(&mut segments.iter().map(|segment| segment.to_ns - segment.from_ns));
        facts["trace"] = json!([recording.manifest().run.trace_cost_ns, segments.len(), sum]);
    }
    let manifest = recording.manifest();
    let hosts = [&manifest.here, &manifest.peer].map(|end| [&end.before, &end.after]);
    if hosts.iter().flatten().any(|facts| facts.is_some()) {
        facts["hosts"] = json!(hosts);
    }
    let samples: Vec<_> = recording.host_samples().expect("open").map(|sample| sample.expect("reads").1).collect();
    if !samples.is_empty() {
        let cpus = || samples.iter().flat_map(|sample| &sample.cpus);
        facts["host_rows"] = json!(recording.manifest().host_rows);
        facts["host_samples"] = json!(samples.len());
        facts["sum_of_busy_ns"] = json!(wrapping_sum(&mut cpus().filter_map(|(_, cpu)| cpu.busy_ns)));
        facts["sum_of_own_ns"] = json!(wrapping_sum(&mut samples.iter().filter_map(|sample| sample.host.own_ns)));
        facts["sum_of_start_ns"] = json!(wrapping_sum(&mut samples.iter().map(|sample| sample.start_ns)));
    }
}

fn wrapping_sum(stamps: &mut dyn Iterator<Item = i64>) -> i64 {
    stamps.fold(0, i64::wrapping_add)
}

fn intervals(recording: &Recording) -> Vec<StreamInterval> {
    recording.intervals().expect("open").flat_map(|batch| batch.expect("reads")).collect()
}

/// Number, value and count of every row, in file order.
fn values(recording: &Recording) -> Vec<[Option<i64>; 3]> {
    let batches = recording.values().expect("open").map(|batch| batch.expect("reads"));
    let row = |batch: &ValueBatch, row| [batch.seq.get(row), batch.value_ns.get(row), batch.count.get(row)];
    batches.flat_map(|batch| (0..batch.rows).map(|at| row(&batch, at)).collect::<Vec<_>>()).collect()
}

/// Due time and wake-up time of every row in ns, in file order.
fn wakeups(recording: &Recording) -> Vec<(i64, i64)> {
    let batches = recording.wakeups().expect("open").map(|batch| batch.expect("reads"));
    batches.flat_map(|batch| batch.due_ns.values.into_iter().zip(batch.woke_ns.values)).collect()
}

fn check(folder: &str) {
    for recording in testdata(folder) {
        let (_directory, copy) = copied(&recording);
        let opened = Recording::open(&copy).unwrap_or_else(|error| panic!("{}: {error}", recording.display()));
        let table = RecordedTable::of(opened.manifest().kind);
        let rows: usize = opened.rows_of(table).expect("open").map(|batch| batch.expect("reads").rows).sum();
        assert_eq!(opened.manifest().rows, Some(rows as u64), "{}", recording.display());
        assert!(wakeups(&opened).is_sorted_by_key(|row| row.0), "{}", recording.display());
        let probes = runs::rows(&opened);
        assert!(probes.windows(2).all(|pair| pair[0].seq < pair[1].seq), "{}", recording.display());
        expect_the_same_facts(&opened, &recording);
    }
}

/// Expects the facts of `opened` to equal those in the file next to `recording`.
fn expect_the_same_facts(opened: &Recording, recording: &Path) {
    let actual = facts(opened);
    let text = expected(recording, "json", &format!("{actual:#}\n"));
    let expected: Value = serde_json::from_str(&text).expect("expected facts");
    assert_eq!(actual, expected, "{}", recording.display());
}

#[test]
fn recordings_of_earlier_versions_have_the_expected_facts() {
    check("old");
}

#[test]
fn good_recordings_have_the_expected_facts() {
    check("good");
}

#[test]
fn bad_recordings_are_reported_with_the_expected_message() {
    for recording in testdata("bad") {
        let (_directory, copy) = copied(&recording);
        let error = read_whole(&copy).expect_err("damaged");
        let cause = error.explain().cause.map(|cause| format!("  cause: {cause}\n")).unwrap_or_default();
        let hint = error.explain().hint.map(|hint| format!("  hint: {hint}\n")).unwrap_or_default();
        let message = format!("error: {error}\n{cause}{hint}exit code {}\n", error.explain().exit_code);
        let message = message.replace(&*copy.to_string_lossy(), "RECORDING");
        assert_eq!(message, expected(&recording, "txt", &message), "{}", recording.display());
    }
}

fn read_whole(path: &Path) -> Result<(), RecordingError> {
    for batch in Recording::open(path)?.probes(&ProbeColumn::ALL)? {
        batch?;
    }
    Ok(())
}

/// `testdata/experiments/old/`: each directory is an experiment whose process died.
#[test]
fn experiments_of_earlier_versions_can_be_continued() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/experiments/old");
    let entries: Vec<_> = fs::read_dir(&folder).expect("test data").map(|entry| entry.expect("entry").path()).collect();
    for experiment in entries.into_iter().filter(|path| path.is_dir()) {
        let directory = tempfile::tempdir().expect("temporary directory");
        let copy = directory.path().join("experiment");
        copy_tree(&experiment, &copy);
        let opened = OpenExperiment::open(&copy).and_then(|mut open| open.end_unfinished_run(None).map(|()| open));
        let open = opened.unwrap_or_else(|error| panic!("{}: {error}", experiment.display()));
        let state = open.state();
        let runs: Vec<_> = state
            .runs
            .iter()
            .map(|run| {
                json!({
                    "block": run.key.block, "position": run.position.position, "factors": run.key.factors,
                    "repetition": run.key.repetition, "warmup": run.key.warmup, "outcome": run.outcome,
                    "recording": run.recording,
                })
            })
            .collect();
        assert!(state.runs_that(RunOutcome::Died).next().is_some(), "a run that died");
        let facts = json!({
            "id": state.id, "source": state.source, "done": state.runs_done(), "runs": runs,
            "file": open.text(),
        });
        let text = expected(&experiment, "json", &format!("{facts:#}\n"));
        assert_eq!(facts, serde_json::from_str::<Value>(&text).expect("expected facts"), "{}", experiment.display());
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir(to).expect("directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name())).expect("entry");
        if entry.is_dir() {
            copy_tree(&entry, &to.join(name));
        } else {
            fs::copy(entry, to.join(name)).expect("copied");
        }
    }
}

#[test]
fn recordings_before_1_10_have_no_command_line() {
    for recording in testdata("old") {
        let (_directory, copy) = copied(&recording);
        let opened = Recording::open(&copy).unwrap_or_else(|error| panic!("{}: {error}", recording.display()));
        let manifest = opened.manifest();
        assert_eq!(manifest.command.is_some(), manifest.format.minor >= 10, "{}", recording.display());
    }
}

#[test]
fn the_fifo_priority_of_older_recordings_is_that_of_their_spec() {
    let old = testdata("old").into_iter().find(|path| path.ends_with("1.2-finished")).expect("an old recording");
    let (_directory, copy) = copied(&old);
    let path = copy.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).expect("read")).expect("JSON");
    assert!(manifest["condition"].get("fifo").is_none(), "{manifest:#}");
    manifest["spec"]["here"]["fifo"] = 10.into();
    fs::write(&path, manifest.to_string()).expect("written");
    let recording = Recording::open(&copy).expect("opens");
    assert_eq!(recording.manifest().spec.levels()["fifo"], "10");
}
