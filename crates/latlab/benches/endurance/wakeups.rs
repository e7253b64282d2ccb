//! Eight threads that wake every millisecond for a minute: memory use is constant, every slot has a row, and every
//! overrun slot is in the summary.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

use latlab::recording::Recording;
use serde_json::{Value, json};

use crate::judge::options::Options;
use crate::judge::programs;
use crate::memory::status_bytes;
use crate::{Line, verdict_word};

const THREADS: usize = 8;
const SECONDS: u64 = 60;
/// Time from the start after which memory use must be constant.
const SETTLED: Duration = Duration::from_secs(3);
/// Permitted growth of constant memory use, the same as for probes.
const FLAT_BYTES: u64 = 1 << 20;

/// A run with a thread on each CPU. With fewer than eight CPUs several runs measure at the same time.
struct WakeupRun {
    child: Child,
    directory: PathBuf,
    settled_bytes: u64,
    peak_bytes: u64,
}

/// Counts over the rows of all runs.
#[derive(Default)]
struct Slots {
    rows: u64,
    /// Slots between the first and the last of a thread that have no row.
    absent: u64,
    /// Slots that were due before their thread woke for the previous slot, counted from the rows.
    overrun: u64,
    /// Overrun slots according to the summaries.
    reported: u64,
    gap_events: u64,
}

pub(crate) fn run(options: &Options) -> Result<(Vec<Line>, Value), String> {
    let store = tempfile::tempdir().map_err(|error| format!("no temporary store: {error}"))?;
    let cpus = available_parallelism().map_err(|error| error.to_string())?.get().min(THREADS);
    let seconds = if options.quick { 5 } else { SECONDS };
    let mut runs: Vec<WakeupRun> = (0..THREADS.div_ceil(cpus))
        .map(|number| WakeupRun::start(store.path().join(format!("wakeups-{number}")), cpus, seconds))
        .collect::<Result<_, _>>()?;
    watch(&mut runs, Duration::from_secs(seconds))?;
    let growth = runs.iter().map(|run| run.peak_bytes.saturating_sub(run.settled_bytes)).max().unwrap_or(0);
    let peak = runs.iter().map(|run| run.peak_bytes).max().unwrap_or(0);
    let (runs_at_once, threads) = (runs.len(), runs.len() * cpus);
    let mut slots = Slots::default();
    for run in runs {
        run.count(&mut slots)?;
    }
    let expected = threads as u64 * seconds * 1_000;
    let what = |words: &str| format!("{threads} threads at 1 ms for {seconds} s ({runs_at_once} runs): {words}");
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let row = |words: &str, target: &str, found: String, holds: bool| -> Line {
        [what(words), target.into(), found, verdict_word(holds, options.quick)]
    };
    let lines = vec![
        row("growth of memory", "≤ 1 MiB", mib(growth), growth <= FLAT_BYTES),
        row("slots without a row", "0", slots.absent.to_string(), slots.absent == 0 && slots.rows == expected),
        row(
            "past slots not told",
            "0",
            slots.overrun.abs_diff(slots.reported).to_string(),
            slots.overrun == slots.reported,
        ),
        row("events lost", "0", slots.gap_events.to_string(), slots.gap_events == 0),
    ];
    let raw = json!({
        "threads": threads, "runs": runs_at_once, "seconds": seconds, "peak_bytes": peak, "growth_bytes": growth,
        "rows": slots.rows, "expected": expected, "past": slots.overrun, "told": slots.reported,
    });
    Ok((lines, raw))
}

impl WakeupRun {
    fn start(directory: PathBuf, cpus: usize, seconds: u64) -> Result<WakeupRun, String> {
        let mut command = programs::latlab();
        command.args(["wakeup", "-i", "1ms", "--warmup", "0", "-q", "--json", "--cpu", &format!("0-{}", cpus - 1)]);
        command.args(["-d", &format!("{seconds}s"), "-o"]).arg(&directory).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        Ok(WakeupRun { child, directory, settled_bytes: 0, peak_bytes: 0 })
    }

    fn sample_memory(&mut self, is_settled: bool) {
        let bytes = status_bytes(self.child.id(), "VmRSS:");
        if is_settled && self.settled_bytes == 0 {
            self.settled_bytes = bytes;
        }
        self.peak_bytes = self.peak_bytes.max(bytes);
    }

    /// Waits for the end of the run and adds the counts of its rows and of its summary.
    fn count(mut self, slots: &mut Slots) -> Result<(), String> {
        let status = self.child.wait().map_err(|error| format!("cannot wait: {error}"))?;
        if !status.success() {
            return Err(format!("a run of wake-ups ended with {status}"));
        }
        let mut summary = programs::latlab();
        summary.args(["summary", "--json", "-q", "--no-intervals"]).arg(&self.directory);
        let text = programs::output(&mut summary)?;
        let document: Value = serde_json::from_str(&text).map_err(|error| format!("no JSON ({error})"))?;
        slots.reported += document["wakeups"]["overrun_slots"].as_u64().ok_or("no `overrun_slots`")?;
        let recording = Recording::open(&self.directory).map_err(|error| error.to_string())?;
        slots.gap_events += recording.manifest().run.gap_events;
        // By CPU: the last slot, and the time at which the thread woke for it.
        let mut last: std::collections::BTreeMap<i64, (i64, i64)> = std::collections::BTreeMap::new();
        for batch in recording.wakeups().map_err(|error| error.to_string())? {
            let batch = batch.map_err(|error| error.to_string())?;
            slots.rows += batch.rows as u64;
            for row in 0..batch.rows {
                let cpu = batch.cpu.get(row).ok_or("a row without its CPU")?;
                let (seq, due, woke) = (batch.seq.values[row], batch.due_ns.values[row], batch.woke_ns.values[row]);
                let previous = last.insert(cpu, (seq, woke));
                slots.absent += previous.map_or(seq, |(seq_before, _)| seq - seq_before - 1).unsigned_abs();
                slots.overrun += u64::from(previous.is_some_and(|(_, woke_before)| woke_before > due));
            }
        }
        Ok(())
    }
}

impl Drop for WakeupRun {
    fn drop(&mut self) {
        // An error means that the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Samples the memory of `runs` while they measure. Another row measures the memory of joining and summarising.
fn watch(runs: &mut [WakeupRun], measuring: Duration) -> Result<(), String> {
    let start = Instant::now();
    while start.elapsed() < measuring - Duration::from_millis(500) {
        let is_settled = start.elapsed() >= SETTLED;
        runs.iter_mut().for_each(|run| run.sample_memory(is_settled));
        sleep(Duration::from_millis(50));
    }
    let seen = runs.iter().all(|run| run.settled_bytes > 0);
    if seen { Ok(()) } else { Err("a run of wake-ups ended before its time".into()) }
}
