//! A recording with one damaged file opens, and is read to its end, or is refused. The first byte selects the file; the rest
//! is its content. The recordings are of formats without checksums, so that the bytes reach the parsers behind these.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use latlab::recording::{ProbeColumn, Recording, Store};
use libfuzzer_sys::fuzz_target;

type Files = &'static [(&'static str, &'static [u8])];

macro_rules! files {
    ($directory:literal: $($file:literal)+) => {
        &[$(($file, include_bytes!(concat!("../../testdata/recordings/", $directory, "/", $file)))),+]
    };
}

/// The recordings. Their order is part of the format of the corpus (scripts/fuzz_seeds.py).
const RECORDINGS: [Files; 6] = [
    files!("old/1.1-finished": "manifest.json" "probes.parquet" "host.parquet"),
    files!("old/1.3-wakeup": "manifest.json" "wakeups.parquet" "host.parquet"),
    files!("old/1.4-stream": "manifest.json" "intervals.parquet" "host.parquet"),
    files!("old/1.1-died": "manifest.json" "events.spool" "host.spool"),
    files!("old/1.4-stream-died": "manifest.json" "events.spool" "host.spool"),
    files!("forms/with-wakeup": "manifest.json" "probes.parquet" "wakeups.parquet" "host.parquet"),
];

/// A store with one recording. `scripts/fuzz_smoke.sh` sets TMPDIR to a file system in memory, and removes it.
static STORE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("latlab-fuzz-{}", std::process::id())));

fuzz_target!(|input: &[u8]| {
    let Some((which, content)) = input.split_first() else { return };
    let files = RECORDINGS[usize::from(which >> 2) % RECORDINGS.len()];
    let directory = STORE.join("20261121T021500Z-ping-0123abcd");
    let _ = fs::remove_dir_all(&*STORE);
    fs::create_dir_all(&directory).expect("space for a recording");
    for (index, (name, sound)) in files.iter().enumerate() {
        let content = if index == usize::from(which & 3) % files.len() { content } else { sound };
        fs::write(directory.join(name), content).expect("space for a recording");
    }
    assert_eq!(Store::at(&STORE).list().expect("a store").len(), 1);
    let rows = read(&directory);
    // What was opened once is finished, and then has the same rows.
    if let Some(rows) = rows {
        assert_eq!(read(&directory), Some(rows), "another reading has other rows");
    }
});

/// The number of rows in each table, up to the first error; `None` if it cannot be opened.
fn read(path: &Path) -> Option<[usize; 4]> {
    let recording = Recording::open(path).ok()?;
    let probes = recording.probes(&ProbeColumn::ALL);
    Some([
        probes.map_or(0, |rows| rows.map_while(Result::ok).map(|batch| batch.rows).sum()),
        recording.wakeups().map_or(0, |rows| rows.map_while(Result::ok).map(|batch| batch.rows).sum()),
        recording.intervals().map_or(0, |rows| rows.map_while(Result::ok).map(|batch| batch.len()).sum()),
        recording.host_samples().map_or(0, |rows| rows.map_while(Result::ok).count()),
    ])
}
