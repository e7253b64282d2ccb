//! Recordings on real disks: round trip, death, full and vanished stores, damage.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test that skips or plays a part says so")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use latlab::diagnostics::Explain;
use latlab::probe::{Fate, Phase};
use latlab::recording::manifest::RunEnding;
use latlab::recording::{
    ListingState, ProbeColumn, Recording, RecordingError, RecordingWriter, Store, WordColumn, fresh_run_id,
};

use sealed::edit_manifest;

#[path = "recording/host.rs"]
mod host;
mod runs;
mod sealed;
mod skip;

/// Set for a copy of this test binary that plays the process to be killed, or the one in its own mount namespace.
const ROLE: &str = "LATLAB_TEST_STORE";

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let store = Store::open(&directory.path().join("runs")).expect("store");
    (directory, store)
}

fn stop() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}

fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("directory");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Waits for `happened` within a minute: a deadline for liveness, not a latency.
fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_written_is_read_back() {
    let (_directory, store) = store();
    // More than one row group.
    let finished = runs::recorded(&store, "7f3a00112233aabb", 150_000);
    assert!(finished.failure.is_none(), "{:?}", finished.failure);
    assert!(finished.path.ends_with("20261121T021500Z-ping-7f3a"));
    assert_eq!(files(&finished.path), ["manifest.json", "probes.parquet"]);
    let recording = Recording::open(&finished.path).expect("opens");
    assert_eq!(recording.note(), None);
    assert_eq!(recording.manifest(), &finished.manifest);
    assert_eq!(recording.manifest().rows, Some(150_000));
    let rows = runs::rows(&recording);
    assert_eq!(rows.len(), 150_000);
    assert!(rows.iter().enumerate().all(|(index, row)| row.seq.0 == index as u64));
    let count = |fate| rows.iter().filter(|row| row.fate == fate).count();
    assert_eq!(Fate::ALL.map(count), [141_000, 0, 3_000, 3_000, 3_000]);
    assert_eq!(rows.iter().filter(|row| row.phase == Phase::Warmup).count() as u64, runs::WARMUP);
    let answered = &rows[10];
    assert_eq!(answered.due.map(|due| due.as_nanos()), Some(runs::due(10)));
    assert_eq!(answered.received.map(|at| at.as_nanos()), Some(runs::due(10) + 4_000 + 79_190 % 3_000));
    assert_eq!((answered.sent_cpu, answered.received_cpu, answered.reflector_cpu), (Some(0), Some(1), None));
    assert_eq!((rows[49].error, rows[49].received, rows[48].sent), (Some(105), None, None));
}

#[test]
fn only_what_is_asked_for_is_read_and_constants_are_not_spelled_out() {
    let (_directory, store) = store();
    let finished = runs::recorded(&store, "00000000000000c0", 47);
    let recording = Recording::open(&finished.path).expect("opens");
    let columns = [ProbeColumn::Fate, ProbeColumn::Phase, ProbeColumn::SizeBytes, ProbeColumn::TxHardwareNs];
    let batch = recording.probes(&columns).expect("opens").next().expect("a batch").expect("reads");
    assert_eq!((batch.rows, batch.fate), (47, WordColumn::All(Fate::Answered)));
    assert!(matches!(batch.phase, WordColumn::Each(phases) if phases.len() == 47));
    assert_eq!((batch.size_bytes.values, batch.tx_hardware_ns.get(46)), (vec![64; 47], None));
    assert!(batch.sent_ns.values.is_empty());
}

#[test]
fn a_run_without_a_probe_is_a_recording() {
    let (_directory, store) = store();
    let finished = runs::recorded(&store, "0000000000000000", 0);
    let recording = Recording::open(&finished.path).expect("opens");
    assert_eq!((recording.manifest().rows, runs::rows(&recording).len()), (Some(0), 0));
}

#[test]
fn probes_in_flight_when_the_run_stopped_listening_have_no_row() {
    let (_directory, store) = store();
    let mut writer = RecordingWriter::create(&store, None, runs::manifest("00000000000001f0")).expect("created");
    let mut log = writer.start(stop()).expect("started");
    (0..200).for_each(|seq| log.push(runs::departure(seq)));
    let until = runs::due(199) + runs::TIMEOUT.0 / 2;
    writer.manifest_mut().run.listened_until_ns = Some(until);
    let finished = writer.finish(log, RunEnding::Interrupted, None).expect("finished");
    let rows = runs::rows(&Recording::open(&finished.path).expect("opens"));
    let lost = rows.iter().filter(|row| row.fate == Fate::Lost);
    assert!(lost.clone().count() > 0);
    assert!(lost.clone().all(|row| row.sent.is_some_and(|sent| sent.as_nanos() + runs::TIMEOUT.0 <= until)));
    assert_eq!(rows.len() as u64 + finished.manifest.run.undecided_probes, 200);
    assert!(finished.manifest.run.undecided_probes > 0);
}

#[test]
fn a_full_ring_is_loud() {
    let (_directory, store) = store();
    let mut writer = RecordingWriter::create(&store, None, runs::manifest("000000000000fa11")).expect("created");
    let mut log = writer.start(stop()).expect("started");
    let mut probes = 0;
    while log.dropped() == 0 && probes < 50_000_000 {
        runs::fill(&mut log, probes..probes + 10_000);
        probes += 10_000;
    }
    let dropped = log.dropped();
    assert!(dropped > 0, "this machine empties the ring faster than the loop fills it");
    let finished = writer.finish(log, RunEnding::Completed, None).expect("finished");
    assert_eq!(finished.manifest.run.gap_events, dropped);
    assert!(finished.manifest.rows < Some(probes));
}

#[test]
fn a_living_run_is_busy_and_progress_shows_it() {
    let (_directory, store) = store();
    let mut writer = RecordingWriter::create(&store, None, runs::manifest("0000000000001111")).expect("created");
    let mut log = writer.start(stop()).expect("started");
    runs::fill(&mut log, 0..50);
    let progress = writer.progress();
    wait_until("the spool sees 50 probes", || progress.measured() == 50 - runs::WARMUP);
    assert_eq!((progress.sent(), progress.arrived()), (48, 47));
    let error = Recording::open(writer.path()).expect_err("its run goes on");
    assert!(matches!(error, RecordingError::Busy { pid, .. } if pid == std::process::id()), "{error}");
    assert_eq!(error.explain().exit_code, 3);
    let listed = store.list().expect("lists");
    assert!(matches!(listed[0].state, ListingState::Measuring { pid } if pid == std::process::id()));
    writer.discard(Some(log));
    assert_eq!(store.list().expect("lists").len(), 0);
}

#[test]
fn sigkill_loses_at_most_the_events_in_the_ring() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let mut child = play("play_the_process_to_be_killed", directory.path()).spawn().expect("starts");
    let spool = || {
        let recording = fs::read_dir(directory.path()).ok()?.next()?.ok()?.path();
        Some(recording.join("events.spool"))
    };
    let spooled = || fs::metadata(spool()?).ok().map(|metadata| metadata.len());
    wait_until("some events are in the spool", || spooled() > Some(64 * 2_000));
    child.kill().expect("SIGKILL");
    child.wait().expect("ends");
    let bytes = fs::read(spool().expect("stands")).expect("a spool");
    // Kind 10 is a checksum.
    let events = bytes[64..].chunks_exact(64).filter(|event| event[0] != 10).count() as u64;

    let store = Store::open(directory.path()).expect("store");
    let listed = store.list().expect("lists");
    assert!(matches!(listed[0].state, ListingState::Unfinished), "{:?}", listed[0].state);
    let recording = Recording::open(&listed[0].path).expect("recovers");
    assert!(recording.note().is_some_and(|note| note.contains("finished an interrupted recording")));
    assert_eq!(recording.manifest().ending, RunEnding::Recovered);
    let rows = runs::rows(&recording);
    assert_eq!(recording.manifest().rows, Some(rows.len() as u64));
    // Two events for 47 of 50 probes, one for the others; those in flight at the end have no row.
    let answered = rows.iter().filter(|row| row.fate == Fate::Answered).count() as u64;
    assert_eq!(rows.len() as u64 + answered + recording.manifest().run.undecided_probes, events);
    assert_eq!(files(&listed[0].path), ["manifest.json", "probes.parquet"]);
    assert_eq!(Recording::open(&listed[0].path).expect("opens").note(), None);
}

/// The child process of the test above; passes at once without its variable.
#[test]
fn play_the_process_to_be_killed() {
    let Some(path) = std::env::var_os(ROLE) else { return eprintln!("played only when another test starts it") };
    let store = Store::open(Path::new(&path)).expect("store");
    let mut writer = RecordingWriter::create(&store, None, runs::manifest("00000000dead0000")).expect("created");
    let mut log = writer.start(stop()).expect("started");
    for seq in (0..).step_by(100) {
        runs::fill(&mut log, seq..seq + 100);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A copy of this test binary that runs only `test`, with `store` to work in.
fn play(test: &str, store: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test binary"));
    command.args([test, "--exact", "--test-threads=1", "--nocapture"]).env(ROLE, store);
    command.stdout(Stdio::null()).stderr(Stdio::inherit());
    command
}

#[test]
fn a_full_disk_ends_the_run_and_leaves_a_readable_recording() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let copy = play("play_on_a_full_disk", directory.path());
    // In its own mount namespace the small disk vanishes with the process.
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "sh", "-c", "mount -t tmpfs -o size=2m tmpfs \"$0\" && exec \"$@\""]);
    command.arg(directory.path()).arg(copy.get_program()).args(copy.get_args()).env(ROLE, directory.path());
    if skip::program("unshare").is_none() {
        return;
    }
    let probe = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !probe.expect("it is there").success() {
        return skip::skip("a mount needs root");
    }
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("the disk was full"), "{text}");
}

/// The child process of the test above; passes at once without its variable.
#[test]
fn play_on_a_full_disk() {
    let Some(path) = std::env::var_os(ROLE).map(PathBuf::from) else {
        return eprintln!("played only when another test starts it");
    };
    let store = Store::open(&path).expect("store");
    let mut writer = RecordingWriter::create(&store, None, runs::manifest("000000000000d15c")).expect("created");
    let stop = stop();
    let mut log = writer.start(Arc::clone(&stop)).expect("started");
    let mut host_log = writer.host_log().expect("begun");
    host_log.push(latlab::plan::Side::Local, &host::sample(0));
    let mut probes = 0;
    while !stop.load(Ordering::Relaxed) {
        assert!(probes < 1_000_000, "2 MiB were not full after {probes} probes");
        runs::fill(&mut log, probes..probes + 100);
        probes += 100;
        std::thread::sleep(Duration::from_millis(1));
    }
    // The allocated block of the spool of samples takes some more.
    (1..100).for_each(|seq| host_log.push(latlab::plan::Side::Local, &host::sample(seq)));
    writer.note_unwritten_samples(&host_log);
    // A file that is open for writing keeps the disk from becoming read-only below.
    drop(host_log);
    let finished = writer.finish(log, RunEnding::Completed, None).expect("readable all the same");
    let lost = finished.manifest.caveats.iter().find(|caveat| caveat.code == "recording-gap").expect("reported");
    assert!(lost.message.contains("ENOSPC"), "{}", lost.message);
    let failure = finished.failure.expect("the disk was full");
    assert_eq!(failure.explain().exit_code, 3);
    assert_eq!(failure.explain().cause.as_deref(), Some("no space left on device (ENOSPC)"));

    // Still full: a new run is refused before it begins, and leaves nothing behind.
    let error = RecordingWriter::create(&store, None, runs::manifest("000000000000d15d")).expect_err("full");
    assert_eq!(
        (error.explain().exit_code, error.explain().cause.as_deref()),
        (3, Some("no space left on device (ENOSPC)"))
    );
    assert_eq!(store.list().expect("lists").len(), 1);

    // Still full: read from the spool, by two readers at once.
    let recording = Recording::open(&finished.path).expect("opens on a full disk");
    assert_eq!(recording.manifest().ending, RunEnding::Failed);
    assert!(recording.manifest().reason.as_ref().is_some_and(|reason| reason.contains("ENOSPC")));
    assert!(recording.note().is_some_and(|note| note.contains("from its spool")), "{:?}", recording.note());
    let from_spool = runs::rows(&recording);
    assert!(from_spool.len() > 10_000);
    let first = |recording: &Recording| recording.host_samples().expect("opens").next().expect("one").expect("reads").1;
    assert_eq!(first(&recording), host::sample(0));
    assert_eq!(recording.manifest().rows, Some(from_spool.len() as u64));
    let second = Recording::open(&finished.path).expect("opens beside another reader");
    assert_eq!(runs::rows(&second), from_spool);
    drop((recording, second));

    // With free space the next opening finishes it, with the same rows and the same verdicts.
    let status = Command::new("mount").args(["-o", "remount,size=16m"]).arg(&path).status().expect("mount");
    assert!(status.success());
    let recording = Recording::open(&finished.path).expect("finishes");
    assert_eq!(recording.manifest().ending, RunEnding::Failed);
    assert_eq!(files(&finished.path), ["host.parquet", "manifest.json", "probes.parquet"]);
    assert_eq!(first(&recording), host::sample(0));
    assert!(recording.manifest().run.gap_events > 0, "events after the full disk are nowhere");
    assert_eq!(runs::rows(&recording), from_spool);
    drop((recording, store));
    on_a_read_only_disk(&path);
    println!("the disk was full");
}

/// A store that cannot be written to is refused; a dead run in it is read from its spool.
fn on_a_read_only_disk(path: &Path) {
    let died = path.join("died");
    fs::create_dir(&died).expect("directory");
    for file in ["manifest.json", "events.spool"] {
        let checked_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings/old/1.0-died");
        fs::copy(checked_in.join(file), died.join(file)).expect("copied");
    }
    let status = Command::new("mount").args(["-o", "remount,ro"]).arg(path).status().expect("mount");
    assert!(status.success());
    let error = Store::open(path).expect_err("read-only");
    assert_eq!(
        (error.explain().exit_code, error.explain().cause.as_deref()),
        (3, Some("read-only file system (EROFS)"))
    );
    let recording = Recording::open(&died).expect("reads");
    assert!(recording.note().is_some_and(|note| note.contains("EROFS")), "{:?}", recording.note());
    assert_eq!(recording.manifest().ending, RunEnding::Recovered);
    assert_eq!(recording.manifest().rows, Some(runs::rows(&recording).len() as u64));
    assert!(died.join("events.spool").exists());
}

#[test]
fn a_recording_that_vanishes_mid_run_is_written_again() {
    let (_directory, store) = store();
    let mut writer = RecordingWriter::create(&store, None, runs::manifest("000000000000901e")).expect("created");
    let stop = stop();
    let mut log = writer.start(Arc::clone(&stop)).expect("started");
    runs::fill(&mut log, 0..1_000);
    fs::remove_dir_all(store.path()).expect("removed");
    wait_until("the writer noticed", || stop.load(Ordering::Relaxed));
    let finished = writer.finish(log, RunEnding::Completed, None).expect("written again");
    let failure = finished.failure.expect("reported");
    assert!(matches!(failure, RecordingError::Vanished { .. }) && failure.explain().exit_code == 3, "{failure}");
    let recording = Recording::open(&finished.path).expect("opens");
    assert_eq!((recording.manifest().ending, runs::rows(&recording).len()), (RunEnding::Failed, 1_000));
}

#[test]
fn what_cannot_be_recorded_is_refused_before_the_run() {
    let (directory, store) = store();
    let manifest = || runs::manifest(&fresh_run_id().expect("chance"));
    let there = directory.path().join("there");
    fs::create_dir(&there).expect("directory");
    let error = RecordingWriter::create(&store, Some(&there), manifest()).expect_err("exists");
    assert!(matches!(error, RecordingError::Exists { .. }) && error.explain().exit_code == 2, "{error}");
    let file = directory.path().join("file");
    fs::write(&file, "x").expect("file");
    for path in [file.clone(), file.join("below")] {
        let error = RecordingWriter::create(&store, Some(&path), manifest()).expect_err("a file is in the way");
        assert!(matches!(&error, RecordingError::NotADirectory { path, .. } if *path == file), "{error}");
        let error = Store::open(&path).expect_err("a file is in the way");
        assert!(error.explain().exit_code == 2 && error.to_string().contains(&*file.to_string_lossy()), "{error}");
    }
    // A place in which not even root can create directories.
    let error = Store::open(Path::new("/proc/latlab-store")).expect_err("refused");
    assert!(
        error.explain().exit_code == 3 && error.explain().cause.is_some() && error.explain().hint.is_some(),
        "{error}"
    );
    assert_eq!(store.list().expect("lists").len(), 0);
}

#[test]
fn runs_that_begin_together_get_names_of_their_own_and_output_is_taken_as_given() {
    let (directory, store) = store();
    let one = runs::recorded(&store, "7f3a000000000001", 5);
    let other = runs::recorded(&store, "7f3a000100000002", 5);
    assert_ne!(one.path, other.path);
    let output = directory.path().join("deep/down");
    let writer = RecordingWriter::create(&store, Some(&output), runs::manifest("7f3a000000000003")).expect("created");
    assert_eq!(writer.path(), output);
    let listed: Vec<_> = store.list().expect("lists").iter().map(|listing| listing.name()).collect();
    assert_eq!(listed, ["20261121T021500Z-ping-7f3a0001", "20261121T021500Z-ping-7f3a"]);
}

#[test]
fn a_damaged_table_beside_its_spool_is_written_again() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let died = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/recordings/old/1.6-died");
    for file in fs::read_dir(died).expect("test data") {
        let file = file.expect("a file");
        fs::copy(file.path(), directory.path().join(file.file_name())).expect("copied");
    }
    let [spool, table] = ["events.spool", "probes.parquet"].map(|name| directory.path().join(name));
    let spooled = fs::read(&spool).expect("a spool");
    let rows = runs::rows(&Recording::open(directory.path()).expect("recovers"));
    // As if the process that finished it had died before it removed the spool.
    fs::write(&spool, spooled).expect("written");
    let mut bytes = fs::read(&table).expect("a table");
    bytes[1_000] ^= 1;
    fs::write(&table, bytes).expect("written");
    assert_eq!(runs::rows(&Recording::open(directory.path()).expect("writes it again")), rows);
    assert!(!spool.exists(), "it is finished");
}

#[test]
fn a_recording_in_a_temporary_store_has_no_name_and_can_be_read() {
    let store = Store::temporary().expect("store");
    let finished = runs::recorded(&store, "0000000000007e39", 5);
    let recording = finished.open().expect("opens");
    assert_eq!(runs::rows(&recording).len(), 5);
    assert_eq!(recording.manifest().rows, Some(5));
    let named = fs::read_dir(store.path()).expect("listed").filter_map(|entry| Some(entry.ok()?.file_name()));
    assert!(!named.into_iter().any(|name| name.to_string_lossy().contains("7e39")));
}

/// The result of opening a finished recording after `spoil` damaged it.
fn spoiled(spoil: impl FnOnce(&Path)) -> RecordingError {
    let (_directory, store) = store();
    let finished = runs::recorded(&store, "00000000000000bd", 1_000);
    spoil(&finished.path);
    Recording::open(&finished.path)
        .and_then(|recording| {
            let batches = recording.probes(&ProbeColumn::ALL)?;
            batches.collect::<Result<Vec<_>, _>>().map(|_| ())
        })
        .expect_err("damaged")
}

fn cut(path: PathBuf, keep: impl FnOnce(u64) -> u64) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("opens");
    let length = file.metadata().expect("metadata").len();
    file.set_len(keep(length)).expect("cut");
}

#[test]
fn damage_is_an_error_that_names_the_file() {
    let probes = |path: &Path| path.join("probes.parquet");
    let manifest = |path: &Path| path.join("manifest.json");
    type Spoil<'a> = (&'a str, Box<dyn FnOnce(&Path) + 'a>);
    let cases: Vec<Spoil> = vec![
        ("probes.parquet", Box::new(|path| cut(probes(path), |_| 0))),
        ("probes.parquet", Box::new(|path| cut(probes(path), |length| length - 1))),
        ("probes.parquet", Box::new(|path| cut(probes(path), |length| length / 2))),
        ("probes.parquet", Box::new(|path| fs::remove_file(probes(path)).expect("removed"))),
        ("manifest.json", Box::new(|path| cut(manifest(path), |_| 0))),
        ("manifest.json", Box::new(|path| cut(manifest(path), |length| length / 2))),
        ("is not a recording", Box::new(|path| fs::remove_file(manifest(path)).expect("removed"))),
        ("format 2.", Box::new(|path| edit_manifest(path, "\"major\": 1", "\"major\": 2"))),
        ("probes.parquet", Box::new(|path| edit_manifest(path, "\"rows\": 1000", "\"rows\": 1001"))),
        (
            "events.spool",
            Box::new(|path| {
                edit_manifest(path, "completed", "measuring");
                fs::remove_file(probes(path)).expect("removed");
            }),
        ),
    ];
    for (expected, spoil) in cases {
        let error = spoiled(spoil);
        assert!(error.to_string().contains(expected), "{expected}: {error}");
        assert_eq!((error.explain().exit_code, error.explain().hint.is_some()), (2, true), "{error}");
    }
}
