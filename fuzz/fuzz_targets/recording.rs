//! A recording with one damaged file opens, and is read to its end, or is refused. The first byte selects the file; the rest
//! is its content. Checksums are those of an older format, which has none, so that the bytes reach the parsers behind them.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use latlab::recording::{ProbeColumn, Recording, Store};
use libfuzzer_sys::fuzz_target;

const MANIFEST: &[u8] = include_bytes!("../../testdata/recordings/old/1.1-finished/manifest.json");
const PROBES: &[u8] = include_bytes!("../../testdata/recordings/old/1.1-finished/probes.parquet");
const HOST: &[u8] = include_bytes!("../../testdata/recordings/old/1.1-finished/host.parquet");
const DIED: &[u8] = include_bytes!("../../testdata/recordings/old/1.1-died/manifest.json");
const SPOOL: &[u8] = include_bytes!("../../testdata/recordings/old/1.1-died/events.spool");
const HOST_SPOOL: &[u8] = include_bytes!("../../testdata/recordings/old/1.1-died/host.spool");

static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| PathBuf::from(format!("/dev/shm/latlab-fuzz-{}", std::process::id())));

fuzz_target!(|input: &[u8]| {
    let Some((which, content)) = input.split_first() else { return };
    let finished = [("manifest.json", MANIFEST), ("probes.parquet", PROBES), ("host.parquet", HOST)];
    let died = [("manifest.json", DIED), ("events.spool", SPOOL), ("host.spool", HOST_SPOOL)];
    let files = if which & 4 == 0 { finished } else { died };
    let _ = fs::remove_dir_all(&*DIRECTORY);
    fs::create_dir(&*DIRECTORY).expect("memory");
    for (index, (name, sound)) in files.into_iter().enumerate() {
        let content = if index == usize::from(which & 3) { content } else { sound };
        fs::write(DIRECTORY.join(name), content).expect("memory");
    }
    read(&DIRECTORY);
    let _ = Store::at(DIRECTORY.parent().expect("it has one")).list();
});

fn read(path: &Path) {
    let Ok(recording) = Recording::open(path) else { return };
    let _ = recording.probes(&ProbeColumn::ALL).map(|rows| rows.take_while(Result::is_ok).count());
    let _ = recording.wakeups().map(|rows| rows.take_while(Result::is_ok).count());
    let _ = recording.intervals().map(|rows| rows.take_while(Result::is_ok).count());
    let _ = recording.host_samples().map(|rows| rows.take_while(Result::is_ok).count());
}
