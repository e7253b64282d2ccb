//! Damaged recordings and experiments: every file of them, finished and not, is changed at random, and the real program
//! reads the result. It must refuse it, or show the same figures, or raise a caveat; it must never panic, wait, or need
//! more than 64 MiB.
//!
//! A mutation follows from its number. `LATLAB_MUTATIONS=FROM..TO` makes these (`just mutations`); without it the first ones
//! are made, for a few seconds.
#![allow(clippy::print_stdout, reason = "the number of mutations, with `--nocapture`")]

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use latlab::recording::{RecordingWriter, Store};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde_json::Value;

mod runs;

const USUAL: Range<u64> = 0..300;
const USUAL_TIME: Duration = Duration::from_secs(5);
/// Nothing that is read here takes a second.
const HANG_SECONDS: &str = "20";
/// Private writable memory of the program, in KiB.
const MEMORY_KIB: &str = "65536";

/// Caveats that report damage. Others may follow from other figures, and excuse none.
const OF_DAMAGE: [&str; 4] = ["recording-gap", "no-checksums", "missing-runs", "ended-early"];

/// A directory to be damaged, and how it is read.
struct Subject {
    name: &'static str,
    directory: PathBuf,
    command: &'static [&'static str],
    /// Whether all of it has checksums, so that another figure needs another caveat.
    checked: bool,
    /// Whether its end is not known, because its process was killed.
    ends_anywhere: bool,
    files: Vec<PathBuf>,
    sound: Reading,
}

/// What the program says of a directory.
#[derive(Clone, Debug, PartialEq)]
struct Reading {
    code: Option<i32>,
    /// The document without its caveats.
    figures: Value,
    caveats: BTreeSet<String>,
    stderr: String,
}

fn latlab(directory: &Path, arguments: &[&str]) -> Output {
    let script = format!("ulimit -d {MEMORY_KIB}; exec timeout --signal=KILL {HANG_SECONDS} \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_latlab")]).args(arguments);
    command.current_dir(directory).env("LATLAB_HOME", directory).output().expect("the program starts")
}

fn read(directory: &Path, arguments: &[&str]) -> Reading {
    let output = latlab(directory, arguments);
    let mut figures = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    let mut caveats = BTreeSet::new();
    take_caveats(&mut figures, &mut caveats);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Reading { code: output.status.code(), figures, caveats, stderr }
}

/// Moves the codes of all caveats in `value` to `codes`.
fn take_caveats(value: &mut Value, codes: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::Array(caveats)) = members.remove("caveats") {
                codes.extend(caveats.iter().filter_map(|caveat| Some(caveat["code"].as_str()?.to_owned())));
            }
            members.values_mut().for_each(|member| take_caveats(member, codes));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| take_caveats(item, codes)),
        _ => (),
    }
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

fn copy(from: &Path, to: &Path) {
    for file in files_below(from) {
        let target = to.join(file.strip_prefix(from).expect("below it"));
        fs::create_dir_all(target.parent().expect("it has one")).expect("made");
        fs::copy(&file, target).expect("copied");
    }
}

const SUMMARY: &[&str] = &["summary", "subject", "--json"];
const COMPARE: &[&str] = &["compare", "subject", "--statistic", "p50", "--json"];

fn subject(name: &'static str, directory: PathBuf, command: &'static [&'static str], checked: bool) -> Subject {
    let files =
        files_below(&directory).iter().map(|file| file.strip_prefix(&directory).expect("below").into()).collect();
    // Opening may finish a recording: the original stays as it is.
    let scratch = tempfile::tempdir().expect("temporary directory");
    copy(&directory, &scratch.path().join("subject"));
    let sound = read(scratch.path(), command);
    assert!(sound.figures.is_object(), "{name}: {sound:?}");
    let ends_anywhere = sound.caveats.contains("ended-early") || name == "begun experiment";
    Subject { name, directory, command, checked, ends_anywhere, files, sound }
}

fn subjects(home: &Path) -> Vec<Subject> {
    let measure = |arguments: &str| {
        let output = latlab(home, &arguments.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    };
    measure("ping -n 300 -o ping");
    measure("ping -n 300 -i 200us -o sleeping --with-wakeup 1ms");
    measure("stream -d 300ms --rate 1000pps -o stream");
    let file = "name = \"x\"\nkind = \"ping\"\n[base]\ncount = 200\n[factors]\nsize = [64, 256]\n[design]\nruns = 3\nsettle = \"0s\"\n";
    fs::write(home.join("x.toml"), file).expect("written");
    measure("run x.toml --store experiments");
    let experiment = fs::read_dir(home.join("experiments")).expect("listed").next().expect("one").expect("one").path();
    let begun = home.join("begun");
    copy(&experiment, &begun);
    let journal = fs::read_to_string(begun.join("journal.jsonl")).expect("a journal");
    let kept: Vec<_> = journal.lines().take(journal.lines().count() - 4).collect();
    fs::write(begun.join("journal.jsonl"), kept.join("\n") + "\n").expect("written");
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings/old");
    vec![
        subject("ping", home.join("ping"), SUMMARY, true),
        subject("with wake-ups", home.join("sleeping"), SUMMARY, true),
        subject("stream", home.join("stream"), SUMMARY, true),
        subject("died", died(home), SUMMARY, true),
        subject("killed", killed(home, "ping -d 50s -i 5ms --warmup 0 -o killed"), SUMMARY, true),
        subject(
            "killed stream",
            killed(home, "stream -d 50s --rate 1000pps --warmup 0 -o killed-stream"),
            SUMMARY,
            true,
        ),
        subject("experiment", experiment, COMPARE, true),
        subject("begun experiment", begun, COMPARE, true),
        subject("old", old.join("1.1-finished"), SUMMARY, false),
        subject("old, died", old.join("1.5-search-died"), SUMMARY, false),
        subject("old wake-ups", old.join("1.3-wakeup"), SUMMARY, false),
    ]
}

/// What is left of a run of `line`, whose last word is its directory, that was killed after some writes of the spool.
fn killed(home: &Path, line: &str) -> PathBuf {
    let directory = home.join(line.split(' ').next_back().expect("words"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_latlab"));
    let output = command.args(line.split(' ')).current_dir(home).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = output.spawn().expect("the program starts");
    let deadline = Instant::now() + Duration::from_secs(30);
    while fs::metadata(directory.join("events.spool")).map_or(0, |file| file.len()) < 64 * 60 {
        assert!(Instant::now() < deadline, "{line}: it does not record");
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("our own child");
    child.wait().expect("it ends");
    directory
}

/// A recording whose process died.
fn died(home: &Path) -> PathBuf {
    let store = Store::open(home).expect("a store");
    let directory = home.join("died");
    let mut writer =
        RecordingWriter::create(&store, Some(&directory), runs::manifest("00000000000000d1")).expect("begun");
    let mut log = writer.start(Default::default()).expect("started");
    runs::fill(&mut log, 0..300);
    let deadline = Instant::now() + Duration::from_secs(20);
    // A header, 300 departures, and 282 answers.
    while fs::metadata(directory.join("events.spool")).expect("it is there").len() < 64 * (1 + 300 + 282) {
        assert!(Instant::now() < deadline, "the writer thread does not write");
        thread::sleep(Duration::from_millis(10));
    }
    // The lock ends with the process, or with its last descriptor.
    drop((log, writer));
    thread::sleep(Duration::from_millis(500));
    directory
}

/// Damages one file of the copy of `subject` in `directory`; returns what was done.
fn damage(subjects: &[Subject], subject: &Subject, directory: &Path, random: &mut Pcg64) -> String {
    let name = subject.files.choose(random).expect("it has files");
    let path = directory.join(name);
    let mut bytes = fs::read(&path).expect("read");
    let what = match random.random_range(0..9) {
        0..3 => flip(&mut bytes, random),
        3 => overwrite(&mut bytes, random),
        4 => truncate(&mut bytes, random),
        5 => splice(&mut bytes, random),
        6 => lengthen(&mut bytes, random),
        7 => repeat_or_remove(&mut bytes, random),
        _ => return swap(subjects, directory, &path, random),
    };
    fs::write(&path, bytes).expect("written");
    format!("{}: {what}", name.display())
}

fn place(bytes: &[u8], random: &mut Pcg64) -> usize {
    // Ends of files have what describes the rest.
    match random.random_range(0..3) {
        0 => bytes.len().saturating_sub(1 + random.random_range(0..600)),
        _ => random.random_range(0..bytes.len().max(1)),
    }
}

fn flip(bytes: &mut [u8], random: &mut Pcg64) -> String {
    let (at, bit) = (place(bytes, random), random.random_range(0..8));
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << bit;
    }
    format!("bit {bit} of byte {at}")
}

fn overwrite(bytes: &mut [u8], random: &mut Pcg64) -> String {
    let (at, length, value) = (place(bytes, random), random.random_range(1..40), [0, 0xff, random.random()]);
    let value = *value.choose(random).expect("three");
    bytes.iter_mut().skip(at).take(length).for_each(|byte| *byte = value);
    format!("{length} bytes of {value:02x} at {at}")
}

fn truncate(bytes: &mut Vec<u8>, random: &mut Pcg64) -> String {
    let kept = place(bytes, random);
    bytes.truncate(kept);
    format!("{kept} bytes are left")
}

fn splice(bytes: &mut [u8], random: &mut Pcg64) -> String {
    let (from, to) = (place(bytes, random), place(bytes, random));
    let length = random.random_range(1..200).min(bytes.len() - from.max(to));
    bytes.copy_within(from..from + length, to);
    format!("{length} bytes from {from} to {to}")
}

fn lengthen(bytes: &mut Vec<u8>, random: &mut Pcg64) -> String {
    let at = place(bytes, random);
    let mut more = vec![0; random.random_range(1..100)];
    random.fill_bytes(&mut more);
    bytes.splice(at..at, more.iter().copied());
    format!("{} more bytes at {at}", more.len())
}

/// Repeats or removes whole places of 64 bytes, as a spool has them.
fn repeat_or_remove(bytes: &mut Vec<u8>, random: &mut Pcg64) -> String {
    let places = bytes.len() / 64;
    let from = 64 * random.random_range(0..places.max(1));
    let to = (from + 64 * random.random_range(1..80)).min(bytes.len());
    let part = bytes[from.min(to)..to].to_vec();
    match random.random() {
        true => {
            bytes.splice(to..to, part);
            format!("bytes {from} to {to} come twice")
        }
        false if to == bytes.len() => {
            bytes.truncate(from);
            format!("{from} bytes are left")
        }
        false => {
            bytes.drain(from..to);
            format!("bytes {from} to {to} are removed")
        }
    }
}

/// Puts a file of another subject, of the same name, in the place of `path`.
fn swap(subjects: &[Subject], directory: &Path, path: &Path, random: &mut Pcg64) -> String {
    let others = subjects.iter().flat_map(|subject| subject.files.iter().map(|file| subject.directory.join(file)));
    let same: Vec<PathBuf> = others.filter(|other| other.file_name() == path.file_name()).collect();
    let other = same.choose(random).expect("itself at least");
    fs::copy(other, path).expect("copied");
    format!("{} is {}", path.strip_prefix(directory).expect("below").display(), other.display())
}

/// Whether a mutation cuts the end of a file.
fn is_cut(what: &str) -> bool {
    what.ends_with(" bytes are left")
}

/// What is wrong with how the program reads `found`; `None` if nothing is.
fn judge(subject: &Subject, what: &str, found: &Reading) -> Option<&'static str> {
    let sound = &subject.sound;
    match found.code {
        None => Some("it was killed: a hang, too much memory, or an abort"),
        Some(101) => Some("it panicked"),
        Some(_) if found.stderr.contains("panicked") => Some("it panicked beside its work"),
        Some(2 | 3) if found.figures.is_null() => {
            if found.stderr.contains("error: ") {
                None
            } else {
                Some("it refused without a message")
            }
        }
        Some(code) if found.figures.is_null() => (code != 4).then_some("neither figures nor a refusal"),
        Some(_) if found.figures == sound.figures => None,
        Some(_) if !subject.checked => {
            let says_so = found.caveats.contains("no-checksums");
            (!says_so).then_some("an old recording does not say that it cannot be checked")
        }
        Some(_) if found.caveats.difference(&sound.caveats).any(|code| OF_DAMAGE.contains(&code.as_str())) => None,
        // A run that has no end in the journal yet belongs to no count of missing runs.
        Some(_) if found.stderr.contains("warning: skipped: ") => None,
        // What was killed ends somewhere: its last parts may be missing.
        Some(_) if subject.ends_anywhere && is_cut(what) => None,
        Some(_) => Some("other figures without a caveat of damage"),
    }
}

fn mutate(subjects: &[Subject], number: u64, scratch: &Path) -> Result<(), String> {
    let mut random = Pcg64::seed_from_u64(number);
    let subject = &subjects[(number % subjects.len() as u64) as usize];
    let directory = scratch.join("subject");
    _ = fs::remove_dir_all(&directory);
    copy(&subject.directory, &directory);
    let what = damage(subjects, subject, &directory, &mut random);
    let found = read(scratch, subject.command);
    match judge(subject, &what, &found) {
        None => Ok(()),
        Some(wrong) => Err(format!("mutation {number}, {}, {what}: {wrong}\n{found:#?}", subject.name)),
    }
}

fn numbers() -> (Range<u64>, Option<Duration>) {
    let Ok(range) = std::env::var("LATLAB_MUTATIONS") else { return (USUAL, Some(USUAL_TIME)) };
    let (from, to) = range.split_once("..").expect("FROM..TO");
    (from.parse().expect("a number")..to.parse().expect("a number"), None)
}

#[test]
fn a_damaged_file_is_refused_or_changes_no_figure_without_a_caveat() {
    let home = tempfile::tempdir().expect("temporary directory");
    let subjects = subjects(home.path());
    let ((range, limit), start) = (numbers(), Instant::now());
    let next = AtomicU64::new(range.start);
    let work = || {
        let scratch = tempfile::tempdir().expect("temporary directory");
        let mut failures = Vec::new();
        while limit.is_none_or(|limit| start.elapsed() < limit) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= range.end {
                break;
            }
            failures.extend(mutate(&subjects, number, scratch.path()).err());
        }
        failures
    };
    let failures: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("it ends")).collect()
    });
    let made = next.into_inner().min(range.end) - range.start;
    println!("{made} mutations, {} failures, {:.0} s", failures.len(), start.elapsed().as_secs_f64());
    assert!(made > 0, "no mutation was made");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
