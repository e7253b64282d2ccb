//! What recording costs: `cargo run --release --example recording_cost [PROBES]`.
//!
//! Prints ns per probe inside the loop, seconds to finish, bytes per probe, seconds to read back, and the
//! process's peak memory. Figures for docs/performance.md; nothing is judged here.
#![allow(clippy::print_stdout, reason = "an example speaks to whoever runs it")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use latlab::recording::manifest::RunEnding;
use latlab::recording::{EventLog, ProbeColumn, Recording, RecordingWriter, Store};

#[path = "../tests/runs/mod.rs"]
mod runs;

fn main() {
    let probes = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000_000);
    let store = Store::temporary().expect("store");
    let mut writer = RecordingWriter::create(&store, None, runs::manifest("00000000000bec00")).expect("created");
    let mut log = writer.start(Arc::new(AtomicBool::new(false))).expect("started");
    println!("{:8.1} ns a probe in the loop (median of bursts)", in_the_loop(&mut log));
    assert_eq!(log.dropped(), 0, "a burst did not fit the ring");
    writer.discard(Some(log));

    let mut writer = RecordingWriter::create(&store, None, runs::manifest("00000000000bec01")).expect("created");
    let mut log = writer.start(Arc::new(AtomicBool::new(false))).expect("started");
    let armed = peak_kib();
    runs::fill_in_step(&mut log, &writer.progress(), probes);
    println!("{:8.1} MiB at most while measuring ({:.1} when armed)", peak_kib() / 1024.0, armed / 1024.0);
    let start = Instant::now();
    let finished = writer.finish(log, RunEnding::Completed, None).expect("finished");
    println!(
        "{:8.2} s to finish {:?} rows, {} dropped",
        start.elapsed().as_secs_f64(),
        finished.manifest.rows,
        finished.manifest.run.gap_events
    );
    println!("{:8.1} MiB at most with the join", peak_kib() / 1024.0);
    let bytes = std::fs::metadata(finished.path.join("probes.parquet")).expect("rows").len();
    println!("{:8.2} bytes a probe on disk", bytes as f64 / probes as f64);
    for _ in 0..3 {
        let start = Instant::now();
        let sum = read(&Recording::open(&finished.path).expect("opens"));
        println!("{:8.3} s to read four columns (checksum {sum})", start.elapsed().as_secs_f64());
    }
    println!("{:8.1} MiB at most with the reading", peak_kib() / 1024.0);
    if let Some(keep) = std::env::args().nth(2) {
        std::fs::rename(&finished.path, keep).expect("kept");
    }
}

/// Pushing the two events of a probe, in bursts that fit the ring.
fn in_the_loop(log: &mut EventLog) -> f64 {
    const BURST: u64 = 50_000;
    let mut costs: Vec<f64> = (0..40)
        .map(|burst| {
            let start = Instant::now();
            for seq in burst * BURST..(burst + 1) * BURST {
                log.push(runs::departure(50 * seq));
                log.push(runs::answer(seq, 5_000));
            }
            let cost = start.elapsed().as_nanos() as f64 / BURST as f64;
            std::thread::sleep(Duration::from_millis(120));
            cost
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}

fn read(recording: &Recording) -> i64 {
    let columns = [ProbeColumn::SentNs, ProbeColumn::ReceivedNs, ProbeColumn::Phase, ProbeColumn::Fate];
    let mut sum = 0i64;
    for batch in recording.probes(&columns).expect("opens") {
        let batch = batch.expect("reads");
        let delays = (0..batch.rows).filter_map(|row| Some(batch.received_ns.get(row)? - batch.sent_ns.get(row)?));
        sum = delays.fold(sum, i64::wrapping_add);
    }
    sum
}

fn peak_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("peak");
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number")
}
