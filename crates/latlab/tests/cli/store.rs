//! Recordings in a store.

use std::fs;
use std::path::{Path, PathBuf};

use latlab::diagnostics::Explain;
use latlab::probe::{Phase, ProbeRecord};
use latlab::recording::manifest::{EndFacts, Manifest};
use latlab::recording::{ProbeColumn, Recording};
use serde_json::Value;

/// The recordings in the default store of `directory`, the oldest first; empty without a store.
pub(crate) fn recordings(directory: &Path) -> Vec<PathBuf> {
    recordings_in(&directory.join("latlab-runs"))
}

pub(crate) fn recordings_in(store: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(store) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a store can be read").path()).collect();
    paths.sort();
    paths
}

/// The size of the largest spool in the default store of `directory`; 0 if there is none.
pub(crate) fn spool_bytes(directory: &Path) -> u64 {
    let spools = recordings(directory).into_iter().map(|recording| recording.join("events.spool"));
    spools.filter_map(|spool| fs::metadata(spool).ok()).map(|spool| spool.len()).max().unwrap_or(0)
}

/// The only recording in the default store of `directory`.
#[track_caller]
pub(crate) fn only_recording(directory: &Path) -> PathBuf {
    let mut all = recordings(directory);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// The manifest of `recording` as plain JSON, with all facts of both hosts `before` and `after` the run.
pub(crate) fn manifest(recording: &Path) -> Value {
    let text = fs::read_to_string(recording.join("manifest.json")).expect("every recording has one");
    let mut manifest: Value = serde_json::from_str(&text).expect("it is JSON");
    if manifest["peer_is_here"] == true {
        manifest["peer"] = manifest["here"].clone();
    }
    for end in ["here", "peer"] {
        let facts: EndFacts = serde_json::from_value(manifest[end].clone()).expect("facts of an end");
        manifest[end]["after"] = serde_json::to_value(facts.after).expect("JSON");
    }
    manifest
}

/// The manifest and the rows of `recording`.
pub(crate) fn open(recording: &Path) -> (Manifest, Vec<ProbeRecord>) {
    let opened = Recording::open(recording).unwrap_or_else(|error| panic!("{error}: {:?}", error.explain().cause));
    let mut rows = Vec::new();
    for batch in opened.probes(&ProbeColumn::ALL).expect("rows") {
        let batch = batch.expect("undamaged rows");
        rows.extend((0..batch.rows).map(|row| batch.record(row)));
    }
    (opened.manifest().clone(), rows)
}

/// The gaps between the due times of the measured probes of `recording`.
pub(crate) fn due_gaps_ns(recording: &Path) -> Vec<i64> {
    let rows = open(recording).1.into_iter().filter(|row| row.phase == Phase::Measure);
    let due: Vec<_> = rows.map(|row| row.due.expect("a schedule says when").as_nanos()).collect();
    due.windows(2).map(|pair| pair[1] - pair[0]).collect()
}
