//! `latlab export`: every format read back, what is lost or null, where files go, and what is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::process::{Command, Stdio};

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};

use latlab::probe::Fate;

use crate::harness::{BINARY, Finished, Latlab, contains, empty};
use crate::hostile::{copy_directory, testdata};
use crate::lab::without_rights;
use crate::skip::program;
use crate::store::open;

/// A directory with copies of recordings, experiments or stores of testdata: place and name.
fn lab_with(copies: &[(&str, &str)]) -> Latlab {
    let lab = Latlab::new();
    copies.iter().for_each(|(place, name)| copy_directory(&testdata(place), &lab.path(name)));
    lab
}

/// Runs `line` on the recording `good/closed`, of whose 1,997 measured probes 5 were lost or late, named `closed`.
#[track_caller]
fn of_closed(line: &str) -> Finished {
    lab_with(&[("recordings/good/closed", "closed")]).line(line).success()
}

/// The objects of JSON lines.
fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// The records of CSV (RFC 4180) as name → field. Written for this test: it knows nothing of the writer.
fn records(text: &str) -> Vec<BTreeMap<String, String>> {
    let (mut lines, mut line, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                line.push(std::mem::take(&mut field));
                lines.push(std::mem::take(&mut line));
            }
            char => field.push(char),
        }
    }
    assert!(line.is_empty() && field.is_empty() && !quoted, "the last line has no end");
    let names = lines.remove(0);
    assert!(lines.iter().all(|line| line.len() == names.len()), "a line with more or fewer fields than the header");
    lines.into_iter().map(|line| names.iter().cloned().zip(line).collect()).collect()
}

/// A JSON value as a field of CSV.
fn as_field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[test]
fn every_row_of_a_recording_is_exported_with_its_nulls() {
    let ran = of_closed("export closed --format jsonl");
    let rows = objects(&ran.stdout);
    let (manifest, probes) = open(&ran.directory().join("closed"));
    assert_eq!(rows.len(), probes.len());
    for (row, probe) in rows.iter().zip(&probes) {
        let nanos = |stamp: Option<i64>| stamp.map_or(Value::Null, Value::from);
        let expected = [
            ("run", json!(manifest.run_id)),
            ("recording", json!("closed")),
            (
                "round_trip_delay_ns",
                match (probe.fate, probe.sent, probe.received) {
                    (Fate::Answered, Some(sent), Some(received)) => json!(received.as_nanos() - sent.as_nanos()),
                    _ => Value::Null,
                },
            ),
            ("loads", json!("none")),
            ("seq", json!(probe.seq.0)),
            ("phase", json!(probe.phase.word())),
            ("due_ns", Value::Null),
            ("sent_ns", nanos(probe.sent.map(|stamp| stamp.as_nanos()))),
            ("received_ns", nanos(probe.received.map(|stamp| stamp.as_nanos()))),
            ("reflector_sent_ns", nanos(probe.reflector_sent.map(|stamp| stamp.as_nanos()))),
            ("size_bytes", json!(probe.size_bytes)),
            ("sent_cpu", json!(probe.sent_cpu)),
            ("fate", json!(probe.fate.word())),
            ("error", json!(probe.error)),
            ("duplicates", json!(probe.duplicates)),
            ("reordered", json!(probe.reordered)),
        ];
        for (name, value) in expected {
            assert_eq!(row[name], value, "{name} of {row}");
        }
    }
    assert!(rows.iter().any(|row| row["received_ns"].is_null() && row["fate"] == "lost"));
}

#[test]
fn csv_json_lines_and_parquet_have_the_same_rows() {
    let json = of_closed("export closed --format jsonl");
    let rows = objects(&json.stdout);
    let csv = records(&Latlab::at(json.directory()).line("export closed").success().stdout);
    assert_eq!(csv.len(), rows.len());
    for (record, row) in csv.iter().zip(&rows) {
        let row = row.as_object().expect("an object");
        let expected = row.iter().map(|(name, value)| (name.clone(), as_field(value))).collect();
        assert_eq!(*record, expected);
    }
    Latlab::at(json.directory()).line("export closed -o closed.parquet").stdout(empty()).stderr(empty()).success();
    let file = File::open(json.directory().join("closed.parquet")).expect("written");
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    let read = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row").to_json_value());
    let mut rows = rows.into_iter();
    for row in read {
        assert_eq!(Some(row), rows.next());
    }
    assert_eq!(rows.next(), None);
}

/// Type of the JSON that the Parquet library makes of a row.
trait AsJson {
    fn to_json_value(&self) -> Value;
}

impl AsJson for parquet::record::Row {
    fn to_json_value(&self) -> Value {
        use parquet::record::Field;
        let value = |field: &Field| match field {
            Field::Null => Value::Null,
            Field::Bool(flag) => json!(flag),
            Field::Int(value) => json!(value),
            Field::Long(value) => json!(value),
            Field::UShort(value) => json!(value),
            Field::UInt(value) => json!(value),
            Field::ULong(value) => json!(value),
            Field::Str(text) => json!(text),
            other => panic!("{other:?}"),
        };
        self.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
    }
}

#[test]
fn rows_of_an_experiment_have_its_factors_block_and_warm_up_flag() {
    let ran = lab_with(&[("experiments/finished/factors", "x")]).line("export x --format jsonl").success();
    let rows = objects(&ran.stdout);
    let conditions: BTreeSet<(String, String)> =
        rows.iter().map(|row| (row["factor:load"].to_string(), row["factor:size"].to_string())).collect();
    assert_eq!(conditions.len(), 4, "{conditions:?}");
    let runs: BTreeSet<String> = rows.iter().map(|row| row["run"].to_string()).collect();
    let recordings = fs::read_dir(ran.directory().join("x/runs")).expect("runs").count();
    assert_eq!(runs.len(), recordings);
    assert!(rows.iter().all(|row| row["block"].is_u64() && row["warmup_run"].is_boolean()));
    assert!(
        rows.iter()
            .all(|row| row["size_bytes"].as_u64() == row["factor:size"].as_str().and_then(|size| size.parse().ok()))
    );
    // A statistic is over judged runs only.
    let values = Latlab::at(ran.directory()).line("export x --format values").success();
    let judged = rows.iter().filter(|row| row["warmup_run"] == false).map(|row| row["run"].to_string());
    assert_eq!(values.stdout.lines().count(), judged.collect::<BTreeSet<_>>().len());
}

#[test]
fn a_store_is_exported_with_tags_and_a_recording_that_is_named_twice_once() {
    let lab = Latlab::new();
    let directory = lab.path("");
    for line in ["ping -n 20 --tag build=a,\"b", "ping -n 30 --tag build=c"] {
        Latlab::at(&directory).line(line).measured();
    }
    let ran = lab.line("export latlab-runs").success();
    let rows = records(&ran.stdout);
    let of = |build: &str| rows.iter().filter(|row| row["tag:build"] == build && row["phase"] == "measure").count();
    assert_eq!((of("a,\"b"), of("c")), (20, 30));
    let twice =
        Latlab::at(ran.directory()).line("export latlab-runs latlab-runs").stderr(contains("named more than once"));
    assert_eq!(records(&twice.success().stdout).len(), rows.len());
}

#[test]
fn an_interrupted_recording_is_finished_and_exported() {
    let ran = lab_with(&[("recordings/old/1.9-died", "x")]).line("export x");
    let ran = ran.stderr(contains("finished an interrupted recording")).success();
    let (manifest, _) = open(&ran.directory().join("x"));
    assert_eq!(Some(records(&ran.stdout).len() as u64), manifest.rows);
    // A comparison leaves it out, a histogram does not.
    let values = Latlab::at(ran.directory()).line("export x --format values").stderr(contains("left out: 1 run"));
    assert_eq!(values.success().stdout, "");
    let hlog = Latlab::at(ran.directory()).line("export x --format hlog").success();
    assert!(hlog.stdout.contains("Tag=x,0.000,"), "{}", hlog.stdout);
}

#[test]
fn bins_are_those_of_the_summary_and_a_row_without_edges_counts_what_was_lost() {
    let ran = of_closed("export closed --histogram --format jsonl");
    let rows = objects(&ran.stdout);
    let (bins, lost): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| row["low"].is_i64());
    let sum = |rows: &[&Value]| rows.iter().map(|row| row["count"].as_u64().expect("a number")).sum::<u64>();
    assert_eq!((sum(&bins), sum(&lost), lost.len()), (1_992, 5, 1));
    assert!(bins.windows(2).all(|pair| pair[0]["high"] == pair[1]["low"]));
    assert_eq!((&rows[0]["metric"], &rows[0]["unit"]), (&json!("round_trip_delay"), &json!("ns")));
    let summary = Latlab::at(ran.directory()).line("summary closed").success().stdout;
    let counts = bins.iter().map(|row| row["count"].to_string());
    for count in counts {
        assert!(summary.replace(',', "").contains(&count), "{count} in {summary}");
    }
}

#[test]
fn ministat_reads_one_value_for_each_run() {
    if program("ministat").is_none() {
        return;
    }
    let lab = lab_with(&[("experiments/finished/factors", "x")]);
    let ran = lab.line("export x --format values --statistic p50 -o x.txt").success();
    let path = ran.directory().join("x.txt");
    let count = fs::read_to_string(&path).expect("written").lines().count();
    let shown = Command::new("ministat").arg("-n").arg(&path).output().expect("it starts");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.lines().any(|line| line.split_whitespace().nth(1) == Some(&count.to_string())), "{shown}");
}

#[test]
fn a_file_is_replaced_if_it_is_such_an_export() {
    let ran = of_closed("export closed -o x.csv");
    let line = |line: &str| Latlab::at(ran.directory()).line(line);
    let first = fs::read(ran.directory().join("x.csv")).expect("written");
    line("export closed -o x.csv").success();
    assert_eq!(fs::read(ran.directory().join("x.csv")).expect("written"), first);
    for format in ["jsonl", "parquet", "hlog", "values", "roundtrip-csv", "jitter"] {
        let refused = line(&format!("export closed -o x.csv --format {format}"));
        refused
            .stderr(contains("nothing in it shows that latlab wrote it in this form"))
            .stderr(contains("--force"))
            .failure(2);
        line(&format!("export closed -o x.{format} --format {format}")).success();
        let again = line(&format!("export closed -o x.{format} --format {format}"));
        again.failure(if matches!(format, "values" | "jitter") { 2 } else { 0 });
    }
    assert_eq!(fs::read(ran.directory().join("x.csv")).expect("kept"), first);
    line("export closed -o x.csv --format jsonl --force").success();
    line("export closed -o closed").stderr(contains("it is a directory")).failure(2);
    let left = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    let hidden = fs::read_dir(ran.directory()).expect("readable").map(|entry| entry.expect("an entry"));
    assert_eq!(hidden.filter(left).count(), 0);
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_not() {
    let lab = lab_with(&[("recordings/good/closed", "closed")]);
    let directory = lab.path("");
    for line in ["export closed", "export closed --format parquet"] {
        let full = File::options().write(true).open("/dev/full").expect("every Linux has it");
        let ran =
            Command::new(BINARY).args(line.split(' ')).current_dir(&directory).stdout(full).output().expect("runs");
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(3), "{line}: {stderr}");
        assert!(stderr.contains("(ENOSPC)"), "{stderr}");
    }
    lab.line("export closed -o /dev/full").stderr(contains("(ENOSPC)")).failure(3);
    let mut running = Command::new(BINARY)
        .args(["export", "closed", "--format", "jsonl"])
        .current_dir(testdata("recordings/good"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(running.stdout.take());
    let ended = running.wait_with_output().expect("ends");
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn a_link_is_not_written_through_and_a_file_that_cannot_be_read_exists() {
    let lab = lab_with(&[("recordings/good/closed", "closed")]);
    let (directory, sticky) = (lab.path(""), lab.path("sticky"));
    fs::create_dir(&sticky).expect("made");
    fs::set_permissions(&sticky, Permissions::from_mode(0o1777)).expect("own");
    fs::write(lab.path("own"), "own").expect("written");
    for (name, target) in [("file", lab.path("own")), ("pipe", "/dev/stdout".into()), ("nothing", lab.path("none"))] {
        symlink(target, sticky.join(name)).expect("linked");
    }
    let line = |line: &str| Latlab::at(&directory).line(line);
    line("export closed -o sticky/pipe").success();
    let is_others = lchown(sticky.join("pipe"), Some(65_534), None).is_ok();
    for name in ["file", "nothing", "pipe"].into_iter().take(if is_others { 3 } else { 2 }) {
        line(&format!("export closed --force -o sticky/{name}")).stderr(contains("symbolic link")).failure(2);
        line(&format!("report closed --force -o sticky/{name}")).stderr(contains("symbolic link")).failure(2);
    }
    assert!(fs::read_to_string(directory.join("own")).expect("kept") == "own" && !directory.join("none").exists());
    fs::set_permissions(&directory, Permissions::from_mode(0o1777)).expect("own");
    fs::set_permissions(directory.join("own"), Permissions::from_mode(0o222)).expect("own");
    let Some(refused) = without_rights(&directory, "export closed -o own") else { return };
    let printed = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && printed.contains("`--force` replaces it"), "{printed}");
}

#[test]
fn a_damaged_recording_leaves_no_file() {
    let lab = lab_with(&[("recordings/bad/truncated-rows", "x")]);
    let ran = lab.line("export x -o x.csv").stdout(empty()).failure(2);
    assert!(!ran.directory().join("x.csv").exists());
    let names: Vec<_> =
        fs::read_dir(ran.directory()).expect("readable").map(|it| it.expect("an entry").file_name()).collect();
    assert_eq!(names, ["x"]);
    Latlab::new().line("export nothing").stderr(contains("no recording at `nothing`")).failure(2);
}

/// The summary of `recording` in the directory of `ran`.
#[track_caller]
fn round_trips(ran: &Finished, recording: &str) -> Value {
    let summary = Latlab::at(ran.directory()).line(&format!("summary {recording} --json"));
    let summary = summary.start().exits_with_one_of(&[0, 4]).json();
    let figures = &summary["metrics"]["round_trip_delay"];
    json!([figures["min"], figures["mean"], figures["max"], figures["stddev"], summary["answered"], figures["lost"]])
}

#[test]
fn the_forms_of_other_tools_are_imported_with_the_same_round_trips() {
    let ran = lab_with(&[("recordings/good/scheduled", "x")]).line("export x --format jitter").success();
    let own = round_trips(&ran, "x");
    let line = |line: &str| Latlab::at(ran.directory()).line(line).success();
    for (format, metric) in [
        ("csv", ""),
        ("roundtrip-csv", ""),
        ("four-times", ""),
        ("hlog", ""),
        ("values --singletons", " --from numbers --unit ns --metric round_trip_delay"),
    ] {
        line(&format!("export x --format {format} -o out --force"));
        line(&format!("import out -o again{metric}"));
        let again = round_trips(&ran, "again");
        if format == "hlog" {
            let close = |place: usize| again[place].as_f64().zip(own[place].as_f64()).expect("figures");
            assert!((0..4).map(close).all(|(a, b)| (a - b).abs() <= b * 0.002), "{own} {again}");
        } else {
            assert_eq!(again.as_array().map(|all| &all[..5]), own.as_array().map(|all| &all[..5]), "{format}");
        }
        assert!(again[5] == own[5] || format != "hlog", "{own} {again}");
        fs::remove_dir_all(ran.directory().join("again")).expect("own");
    }
    let wakeups = lab_with(&[
        ("recordings/old/1.3-wakeup", "w"),
        ("recordings/good/closed", "s/a"),
        ("recordings/good/scheduled", "s/b"),
    ])
    .line("export w -o w.csv")
    .success();
    let line = |line: &str| Latlab::at(wakeups.directory()).line(line);
    line("import w.csv").stdout(contains("of wake-up latency from")).success();
    line("export s -o s.csv").success();
    line("import s.csv").stderr(contains("it has several runs")).failure(2);
    let micros = |place: usize| own[place].as_f64().expect("a figure") / 1e3;
    let jitter: Vec<(&str, f64)> = ran
        .stdout
        .lines()
        .map(|line| line.split_once(' ').map(|(name, value)| (name, value.parse().expect("a number"))).expect(line))
        .collect();
    assert_eq!(jitter.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["mean", "stdev"]);
    assert!((jitter[0].1 - micros(1)).abs() < 1e-6 && (jitter[1].1 - micros(3)).abs() < 1e-6, "{jitter:?} {own}");
}

#[test]
fn a_form_of_probes_is_of_one_run_and_of_probes() {
    let lab = lab_with(&[
        ("recordings/good/closed", "s/a"),
        ("recordings/good/closed", "s/b"),
        ("recordings/old/1.3-wakeup", "w"),
    ]);
    let ran = lab.line("export s --format four-times").stderr(contains("cannot write 2 runs in one file")).failure(2);
    let line = |line: &str| Latlab::at(ran.directory()).line(line);
    line("export w --format roundtrip-csv").stderr(contains("no table `probes`")).failure(2);
    line("export s --format roundtrip-csv --unit us").stderr(contains("--unit")).failure(2);
    let ran = line("export s/a --format roundtrip-csv")
        .stderr(contains("left out: 5 probes, which were lost or late"))
        .success();
    assert_eq!(ran.stdout.lines().count(), 1 + 1_992);
}
