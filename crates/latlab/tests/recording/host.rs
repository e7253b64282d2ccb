//! Host samples on a real file system: read back, recovered after a crash, damaged.

use std::fs;
use std::path::PathBuf;

use latlab::diagnostics::Explain;
use latlab::facts::{CpuReadings, HostReadings, HostSample};
use latlab::plan::Side;
use latlab::recording::manifest::RunEnding;
use latlab::recording::{Recording, RecordingError, RecordingWriter, Store};

use crate::sealed::edit_manifest;
use crate::{files, runs, stop, store, wait_until};

/// Sample `seq` of a host with two CPUs and few known facts.
pub(crate) fn sample(seq: u64) -> HostSample {
    let start_ns = 1_000_000_000 + seq as i64 * 100_000_000;
    let busy = |cpu| CpuReadings { busy_ns: Some(start_ns + cpu), ..CpuReadings::default() };
    HostSample {
        seq,
        start_ns,
        end_ns: start_ns + 50_000,
        sampler_cpu: Some(1),
        host: HostReadings { own_ns: Some(seq as i64), ..HostReadings::default() },
        cpus: vec![(0, busy(0)), (1, busy(1))],
    }
}

fn read(recording: &Recording) -> Vec<(Side, HostSample)> {
    recording.host_samples().expect("opens").collect::<Result<_, _>>().expect("reads")
}

/// A run of ten probes with five samples of the local host and five of the peer, written at its end.
fn sampled(store: &Store, run_id: &str) -> (RecordingWriter, latlab::recording::EventLog, Vec<(Side, HostSample)>) {
    let mut writer = RecordingWriter::create(store, None, runs::manifest(run_id)).expect("created");
    let mut log = writer.start(stop()).expect("started");
    let mut host = writer.host_log().expect("begun");
    runs::fill(&mut log, 0..10);
    let samples: Vec<_> =
        [Side::Local, Side::Peer].iter().flat_map(|side| (0..5).map(|seq| (*side, sample(seq)))).collect();
    samples.iter().for_each(|(side, sample)| host.push(*side, sample));
    writer.note_unwritten_samples(&host);
    (writer, log, samples)
}

/// The directory of a run that died after all its samples were taken.
fn dead_run(store: &Store, run_id: &str) -> (PathBuf, Vec<(Side, HostSample)>) {
    let (writer, log, samples) = sampled(store, run_id);
    let path = writer.path().to_owned();
    drop((writer, log));
    // The writer thread notices that the log was dropped, and releases the lock of the spool.
    wait_until("the writer thread released its spool", || {
        let spool = fs::File::open(path.join("events.spool")).expect("is there");
        rustix::fs::flock(&spool, rustix::fs::FlockOperation::NonBlockingLockShared).is_ok()
    });
    (path, samples)
}

#[test]
fn host_samples_are_read_back() {
    let (_directory, store) = store();
    let (writer, log, samples) = sampled(&store, "0000000000005a3e");
    assert_eq!(files(writer.path()), ["events.spool", "host.spool", "manifest.json", "manifest.next"]);
    let finished = writer.finish(log, RunEnding::Completed, None).expect("finished");
    assert_eq!(files(&finished.path), ["host.parquet", "manifest.json", "probes.parquet"]);
    assert_eq!(finished.manifest.host_rows, Some(30));
    let recording = Recording::open(&finished.path).expect("opens");
    assert_eq!((read(&recording), recording.manifest().caveats.len()), (samples, 0));
}

#[test]
fn a_recording_without_host_samples_has_none() {
    let (_directory, store) = store();
    let finished = runs::recorded(&store, "0000000000000050", 10);
    assert_eq!((finished.manifest.host_rows, read(&Recording::open(&finished.path).expect("opens"))), (None, vec![]));
}

#[test]
fn host_samples_of_a_dead_run_are_finished_with_its_probes() {
    let (_directory, store) = store();
    let (path, samples) = dead_run(&store, "00000000005adead");
    let recording = Recording::open(&path).expect("recovers");
    assert_eq!(recording.manifest().ending, RunEnding::Recovered);
    assert_eq!(read(&recording), samples);
    assert_eq!(files(&path), ["host.parquet", "manifest.json", "probes.parquet"]);
    assert_eq!(read(&Recording::open(&path).expect("opens")), samples);
}

#[test]
fn an_invalid_host_spool_loses_only_the_host_samples() {
    let (_directory, store) = store();
    let (path, _) = dead_run(&store, "0000000000badbad");
    fs::write(path.join("host.spool"), [0; 4_096]).expect("written");
    let recording = Recording::open(&path).expect("recovers");
    assert_eq!((recording.manifest().rows, read(&recording)), (Some(10), vec![]));
    let codes: Vec<_> = recording.manifest().caveats.iter().map(|caveat| caveat.code.as_str()).collect();
    assert_eq!(codes, ["recording-gap"]);
    assert_eq!(files(&path), ["manifest.json", "probes.parquet"]);
}

#[test]
fn a_recording_with_fewer_host_rows_than_its_manifest_says_is_damaged() {
    let (_directory, store) = store();
    let (writer, log, _) = sampled(&store, "00000000000010ac");
    let path = writer.finish(log, RunEnding::Completed, None).expect("finished").path;
    edit_manifest(&path, "\"host_rows\": 30", "\"host_rows\": 31");
    let error = Recording::open(&path).expect_err("a row is missing");
    assert_eq!(error.explain().cause.as_deref(), Some("30 rows, but 31 in the manifest"));
    fs::remove_file(path.join("host.parquet")).expect("removed");
    let error = Recording::open(&path).expect_err("all are missing");
    assert!(matches!(&error, RecordingError::Damaged { path, .. } if path.ends_with("host.parquet")), "{error}");
}
