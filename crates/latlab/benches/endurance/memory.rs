//! Resident memory of sender and reflector together, while measuring, joining and summarising.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::judge::options::Options;
use crate::judge::programs;
use crate::{Line, verdict_word};

/// Number of probes after which memory use must not grow.
const SETTLED_PROBES: u64 = 100_000;
/// A probe leaves two events of 64 bytes in the spool (docs/recording.md).
const SPOOL_BYTES_PER_PROBE: u64 = 128;
/// Permitted growth: some pages, but less than a byte per probe.
const FLAT_BYTES: u64 = 1 << 20;

/// Round trips whose memory is watched.
struct Ping {
    options: &'static [&'static str],
    probes: u64,
    limit_bytes: u64,
    flat_bytes: u64,
}

const UDP: Ping =
    Ping { options: &["--wait", "spin"], probes: 10_000_000, limit_bytes: 64 << 20, flat_bytes: FLAT_BYTES };
/// The allocator of the C library, which the DDS library uses, keeps some freed memory.
const DDS: Ping = Ping {
    options: &["--wait", "spin", "--transport", "dds", "--reliability", "reliable", "-s", "63000"],
    probes: 1_000_000,
    limit_bytes: 128 << 20,
    flat_bytes: 4 * FLAT_BYTES,
};

/// Peaks of both processes together.
#[derive(Default)]
struct Peaks {
    settled: u64,
    measuring: u64,
    joining: u64,
    summarising: u64,
}

/// The stage of a run, derived from its directory.
enum Stage {
    Starting,
    Measuring { probes: u64 },
    Joining,
    Summarising,
}

/// Measures over UDP; returns the recording too.
pub(crate) fn run(options: &Options, store: &Path) -> Result<(PathBuf, (Vec<Line>, Value)), String> {
    measure(&UDP, options, store)
}

/// Measures long reliable samples over DDS.
pub(crate) fn run_dds(options: &Options) -> Result<(Vec<Line>, Value), String> {
    let store = tempfile::tempdir().map_err(|error| format!("no temporary store: {error}"))?;
    measure(&DDS, options, store.path()).map(|(_, outcome)| outcome)
}

fn measure(ping: &Ping, options: &Options, store: &Path) -> Result<(PathBuf, (Vec<Line>, Value)), String> {
    let probes = if options.quick { ping.probes.min(300_000) } else { ping.probes };
    let peaks = watch(ping, options, store, probes)?;
    let recording = recording(store).ok_or("the run left no recording")?;
    let growth = peaks.measuring.saturating_sub(peaks.settled);
    let [limit, flat] = [ping.limit_bytes, ping.flat_bytes].map(|bytes| format!("≤ {}", mebibytes(bytes)));
    let holds = |bytes: u64| bytes <= ping.limit_bytes;
    let lines = vec![
        line("memory while measuring", &limit, peaks.measuring, holds(peaks.measuring), options.quick),
        line("memory while joining", &limit, peaks.joining, holds(peaks.joining), options.quick),
        line("growth after 100,000 probes", &flat, growth, growth <= ping.flat_bytes, options.quick),
        ["memory of the closing summary".into(), "none".into(), mebibytes(peaks.summarising), "not judged".into()],
    ];
    let raw = json!({
        "probes": probes, "settled_bytes": peaks.settled, "measuring_bytes": peaks.measuring,
        "joining_bytes": peaks.joining, "summarising_bytes": peaks.summarising,
    });
    Ok((recording, (lines, raw)))
}

fn line(what: &str, target: &str, bytes: u64, holds: bool, quick: bool) -> Line {
    [what.into(), target.into(), mebibytes(bytes), verdict_word(holds, quick)]
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn watch(ping: &Ping, options: &Options, store: &Path, probes: u64) -> Result<Peaks, String> {
    let mut command = programs::latlab();
    command.args(["ping", "local", "-q", "--json", "-n", &probes.to_string()]).args(ping.options);
    command.args(["--cpu", &options.cpus.0.to_string(), "--peer-cpu", &options.cpus.1.to_string(), "--store"]);
    command.arg(store).stdout(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let mut peaks = Peaks::default();
    loop {
        let stage = stage(store);
        let bytes = resident(child.id());
        match stage {
            Stage::Starting => {}
            Stage::Measuring { probes } => {
                if probes >= SETTLED_PROBES && peaks.settled == 0 {
                    peaks.settled = bytes;
                }
                peaks.measuring = peaks.measuring.max(bytes);
            }
            Stage::Joining => peaks.joining = peaks.joining.max(bytes),
            Stage::Summarising => peaks.summarising = peaks.summarising.max(bytes),
        }
        match child.try_wait().map_err(|error| format!("cannot wait: {error}"))? {
            Some(status) if status.success() => break,
            Some(status) => return Err(format!("{command:?} ended with {status}")),
            None => sleep(Duration::from_millis(10)),
        }
    }
    let seen = peaks.settled > 0 && peaks.joining > 0;
    if seen { Ok(peaks) } else { Err("the stages of the run could not be told from its directory".into()) }
}

fn recording(store: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(store).ok()?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    found.retain(|path| path.is_dir() && path.join("manifest.json").exists());
    found.sort();
    found.pop()
}

fn stage(store: &Path) -> Stage {
    let Some(recording) = recording(store) else { return Stage::Starting };
    let manifest = fs::read_to_string(recording.join("manifest.json")).unwrap_or_default();
    let ending = serde_json::from_str(&manifest).map_or(Value::Null, |manifest: Value| manifest["ending"].clone());
    let rows_begun = fs::read_dir(&recording)
        .into_iter()
        .flatten()
        .any(|entry| entry.is_ok_and(|entry| entry.file_name().to_string_lossy().contains("parquet")));
    match ending.as_str() {
        Some("measuring") if rows_begun => Stage::Joining,
        Some("measuring") => {
            let spool = fs::metadata(recording.join("events.spool")).map_or(0, |spool| spool.len());
            Stage::Measuring { probes: spool / SPOOL_BYTES_PER_PROBE }
        }
        Some(_) => Stage::Summarising,
        None => Stage::Starting,
    }
}

/// VmRSS of `pid` and its children; 0 for ended processes.
pub(crate) fn resident(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok);
    let children: String =
        threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default()).collect();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    children.chain([pid]).map(|pid| status_bytes(pid, "VmRSS:")).sum()
}

/// A line of a process's status, in bytes; 0 once it is gone.
pub(crate) fn status_bytes(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let value =
        status.lines().find_map(|line| line.strip_prefix(field)?.split_whitespace().next()?.parse::<u64>().ok());
    value.unwrap_or(0) * 1024
}
