//! Cost per probe inside the measuring loop: recording its events, and computing its tag.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

// Each bench uses only a part of the shared module.
#[allow(dead_code)]
mod judge;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use latlab::plan::Schedule;
use latlab::plan::{PingSpec, RunSpec, StopWhen};
use latlab::probe::{Phase, Seq};
use latlab::recording::SpoolEvent;
use latlab::recording::manifest::{Manifest, RunEnding};
use latlab::recording::{EventLog, RecordingWriter, Store, fresh_run_id};
use latlab::units::{SenderClock, Stamp};
use latlab::wire::TagKey;
use serde_json::{Value, json};

use judge::options::Options;
use judge::paired::median;
use judge::results;

/// Probes between two readings of the clock.
const BATCH: u64 = 5_000;
/// Pause before each batch. The writer thread empties the ring every 50 ms, and a real loop does not fill it in that
/// time. With this pause the bench does not either: it pushes 20,000 events in 50 ms, and the ring holds 131,072.
const REST: Duration = Duration::from_millis(25);

fn main() {
    judge::begin(run);
}

fn run(options: &Options) -> Result<(), String> {
    let batches = if options.quick { 5 } else { 200 };
    let (recording_ns, dropped) = recording(batches)?;
    if dropped > 0 {
        return Err(format!("{dropped} events did not fit into the ring: the figure would be that of dropping"));
    }
    let (two_words_ns, four_words_ns) = (tags::<2>(batches), tags::<4>(batches));
    let line = |what: &str, limit: f64, found: f64| -> Vec<String> {
        let verdict = match options.quick {
            true => "not judged",
            false if found <= limit => "met",
            false => "**not met**",
        };
        vec![what.into(), format!("≤ {limit} ns"), format!("{found:.1} ns"), verdict.into()]
    };
    let rows = [
        line("recording a probe (sent and arrived)", 50.0, recording_ns),
        line("a tag over 16 bytes", 25.0, two_words_ns),
        line("a tag over 32 bytes", 25.0, four_words_ns),
    ];
    let raw = json!({ "recording_ns": recording_ns, "tag_16_ns": two_words_ns, "tag_32_ns": four_words_ns });
    results::write(
        "loop_cost",
        &["what", "target", "median of batches", "verdict"],
        &rows,
        Value::from(vec![raw]),
        options.quick,
    )
}

/// Median over batches of the mean cost of one call of `step`, in ns. Sleeps for `rest` before each batch.
fn cost_ns(batches: usize, rest: Duration, mut step: impl FnMut(u64)) -> f64 {
    let mut costs: Vec<f64> = (0..batches)
        .map(|_| {
            std::thread::sleep(rest);
            let start = Instant::now();
            (0..BATCH).for_each(&mut step);
            start.elapsed().as_nanos() as f64 / BATCH as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    median(&costs)
}

/// Cost in ns of pushing both events of a probe into the ring of a real recording while its writer thread drains the
/// ring, and the number of dropped events.
fn recording(batches: usize) -> Result<(f64, u64), String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary store: {error}"))?;
    let message = |error: latlab::recording::RecordingError| error.to_string();
    let store = Store::open(folder.path()).map_err(message)?;
    let run_id = fresh_run_id().map_err(|error| format!("no chance to be had: {error}"))?;
    let mut writer = RecordingWriter::create(&store, None, manifest(run_id)).map_err(message)?;
    let mut log = writer.start(Arc::new(AtomicBool::new(false))).map_err(message)?;
    let cost = cost_ns(batches, REST, |seq| push(&mut log, seq));
    let dropped = log.dropped();
    writer.finish(log, RunEnding::Completed, None).map_err(message)?;
    Ok((cost, dropped))
}

#[inline]
fn push(log: &mut EventLog, seq: u64) {
    let at: Stamp<SenderClock> = Stamp::from_nanos(black_box(seq as i64) * 50_000);
    let reflected = Some(Stamp::from_nanos(at.as_nanos() + 20_000));
    log.push(SpoolEvent::Sent { seq: Seq(seq), phase: Phase::Measure, due: None, sent: at, cpu: Some(0) });
    log.push(SpoolEvent::Arrived {
        seq: Seq(seq),
        received: Stamp::from_nanos(at.as_nanos() + 40_000),
        reflector_received: reflected,
        reflector_sent: reflected,
        rx_software: None,
        reflector_rx_software: None,
        cpu: Some(0),
        reflector_cpu: Some(1),
    });
}

fn tags<const WORDS: usize>(batches: usize) -> f64 {
    let key = TagKey::new(&[7; 16]);
    cost_ns(batches, Duration::ZERO, |seq| {
        black_box(key.tag(&black_box([seq; WORDS])));
    })
}

/// The manifest of a run without probes, which the writer needs.
fn manifest(run_id: String) -> Manifest {
    let spec = RunSpec {
        stop: StopWhen { count: Some(BATCH), duration_ns: None },
        ..RunSpec::local(PingSpec::on(Schedule::Closed))
    };
    Manifest::new(spec, run_id, jiff::Timestamp::now().to_string())
}
