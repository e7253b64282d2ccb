//! Made-up runs for tests of recordings.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use latlab::facts::ClockAnchor;
use latlab::plan::Schedule;
use latlab::plan::{PingSpec, RunSpec, StopWhen, SummaryDefaults, Warmup};
use latlab::probe::{Phase, ProbeRecord, Seq};
use latlab::recording::SpoolEvent;
use latlab::recording::manifest::{Manifest, RunEnding};
use latlab::recording::{EventLog, Finished, ProbeColumn, Recording, RecordingProgress, RecordingWriter, Store};
use latlab::units::{Nanos, Stamp};

/// The time-out of every made-up run.
pub(crate) const TIMEOUT: Nanos = Nanos::from_millis(1);
/// The gap of its schedule.
pub(crate) const INTERVAL: i64 = 10_000;
pub(crate) const WARMUP: u64 = 3;

/// The manifest of a made-up run as it stands before the run.
pub(crate) fn manifest(run_id: &str) -> Manifest {
    let mut manifest = Manifest::new(spec(), run_id.to_owned(), "2026-11-21T02:15:00Z".into());
    let clock_start = ClockAnchor { monotonic_ns: 1, realtime_ns: 2, boottime_ns: 3, tai_ns: 4, width_ns: 5 };
    manifest.here.clock_start = Some(clock_start);
    manifest.instrument.clock_read_ns = Some(23.5);
    manifest.software.version = "0.1.0".into();
    manifest
}

fn spec() -> RunSpec {
    let schedule = Schedule::Periodic { interval_ns: Nanos(INTERVAL) };
    RunSpec {
        stop: StopWhen { count: Some(1_000), duration_ns: None },
        warmup: Warmup { count: Some(WARMUP), duration_ns: None },
        judging: SummaryDefaults { quantiles: vec![0.5], window_ns: None, deadline_ns: None, half: false },
        ..RunSpec::local(PingSpec { timeout_ns: TIMEOUT, ..PingSpec::on(schedule) })
    }
}

/// When probe `seq` is due.
pub(crate) fn due(seq: u64) -> i64 {
    1_000_000_000 + seq as i64 * INTERVAL
}

/// The departure of probe `seq`: the last of each 50 is refused, and the one before it given up.
pub(crate) fn departure(seq: u64) -> SpoolEvent {
    let at = Stamp::from_nanos(due(seq));
    let (seq, phase) = (Seq(seq), if seq < WARMUP { Phase::Warmup } else { Phase::Measure });
    match seq.0 % 50 {
        49 => SpoolEvent::SendFailed { seq, phase, due: Some(at), tried: at + Nanos(70), errno: 105 },
        48 => SpoolEvent::NotSent { seq, phase, due: at },
        _ => SpoolEvent::Sent { seq, phase, due: Some(at), sent: at + Nanos(50), cpu: Some((seq.0 % 2) as u16) },
    }
}

/// The answer to probe `seq`, `delay` after it was due.
pub(crate) fn answer(seq: u64, delay: i64) -> SpoolEvent {
    let received = Stamp::from_nanos(due(seq) + delay);
    SpoolEvent::Arrived {
        seq: Seq(seq),
        received,
        reflector_received: Some(Stamp::from_nanos(due(seq) + 5_000_000 + delay / 2)),
        reflector_sent: Some(Stamp::from_nanos(due(seq) + 5_000_900 + delay / 2)),
        rx_software: None,
        reflector_rx_software: None,
        cpu: Some(1),
        reflector_cpu: None,
    }
}

/// The departures of `probes`, each with its answer but for the last three of each 50: lost, given up and refused.
pub(crate) fn fill(log: &mut EventLog, probes: std::ops::Range<u64>) {
    for seq in probes {
        log.push(departure(seq));
        if seq % 50 < 47 {
            log.push(answer(seq, 4_000 + (seq as i64 * 7_919) % 3_000));
        }
    }
}

/// As [`fill`], never further ahead of the writer thread than the ring is long.
pub(crate) fn fill_in_step(log: &mut EventLog, progress: &RecordingProgress, probes: u64) {
    const STEP: u64 = 20_000;
    for start in (0..probes).step_by(STEP as usize) {
        fill(log, start..probes.min(start + STEP));
        while progress.measured() + WARMUP + 2 * STEP < start + STEP {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// A run of `probes` as [`fill`] makes them, recorded in `store` and finished.
pub(crate) fn recorded(store: &Store, run_id: &str, probes: u64) -> Finished {
    let mut writer = RecordingWriter::create(store, None, manifest(run_id)).expect("created");
    let mut log = writer.start(Arc::new(AtomicBool::new(false))).expect("started");
    fill_in_step(&mut log, &writer.progress(), probes);
    writer.finish(log, RunEnding::Completed, None).expect("finished")
}

pub(crate) fn rows(recording: &Recording) -> Vec<ProbeRecord> {
    let mut rows = Vec::new();
    for batch in recording.probes(&ProbeColumn::ALL).expect("rows open") {
        let batch = batch.expect("batch");
        rows.extend((0..batch.rows).map(|row| batch.record(row)));
    }
    rows
}
