//! A stream for a minute at the highest rate: the memory use of both ends must not grow.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::judge::options::Options;
use crate::judge::programs;
use crate::memory::resident;
use crate::{Line, verdict_word};

const SECONDS: u64 = 60;
/// Time from the start after which memory use must not grow: opening and the first intervals are over.
const SETTLED: Duration = Duration::from_secs(5);
/// Permitted growth, the same as for probes.
const FLAT_BYTES: u64 = 1 << 20;
const LIMIT_BYTES: u64 = 64 << 20;

pub(crate) fn run(options: &Options) -> Result<(Vec<Line>, Value), String> {
    let seconds = if options.quick { 7 } else { SECONDS };
    let store = tempfile::tempdir().map_err(|error| format!("no temporary store: {error}"))?;
    let mut command = programs::latlab();
    command.args(["stream", "local", "--mode", "gso", "--rate", "max", "--warmup", "0", "-q", "--json"]);
    command.args(["--cpu", &options.cpus.0.to_string(), "--peer-cpu", &options.cpus.1.to_string()]);
    command.args(["-d", &format!("{seconds}s"), "--store"]).arg(store.path());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let start = Instant::now();
    let (mut settled, mut peak) = (0, 0);
    // Joining and summarising at the end of the run are excluded.
    while start.elapsed() < Duration::from_secs(seconds) - Duration::from_millis(500) {
        let bytes = resident(child.id());
        if start.elapsed() >= SETTLED && settled == 0 {
            settled = bytes;
        }
        peak = peak.max(bytes);
        match child.try_wait().map_err(|error| format!("cannot wait: {error}"))? {
            Some(status) => return Err(format!("{command:?} ended early with {status}")),
            None => sleep(Duration::from_millis(50)),
        }
    }
    let output = child.wait_with_output().map_err(|error| format!("cannot read: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let document: Value = serde_json::from_str(&text).map_err(|error| format!("no JSON ({error}): {text}"))?;
    let packets = document["sent"].as_u64().ok_or_else(|| format!("no `sent` in {document}"))?;
    let growth = peak.saturating_sub(settled);
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let millions = packets as f64 / 1e6;
    let row = |words: &str, target: &str, bytes: u64, most: u64| -> Line {
        let what = format!("stream of {millions:.0} million packets in {seconds} s: {words}");
        [what, target.into(), mib(bytes), verdict_word(bytes <= most && packets > 0, options.quick)]
    };
    let lines = vec![
        row("growth of both ends' memory", "≤ 1 MiB", growth, FLAT_BYTES),
        row("memory of both ends", "≤ 64 MiB", peak, LIMIT_BYTES),
    ];
    Ok((lines, json!({ "seconds": seconds, "packets": packets, "settled_bytes": settled, "peak_bytes": peak })))
}
