//! Memory use with ten million probes over UDP and one million long ones over DDS, a schedule of 100,000 probes a second, wake-ups of eight threads, a stream of
//! one minute, and a summary compared with that of DuckDB.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

// Each bench uses only a part of the shared module.
#[path = "endurance/floor.rs"]
mod floor;
#[allow(dead_code)]
mod judge;
#[path = "endurance/memory.rs"]
mod memory;
#[path = "endurance/schedule.rs"]
mod schedule;
#[path = "endurance/stream.rs"]
mod stream;
#[path = "endurance/summary.rs"]
mod summary;
#[path = "endurance/wakeups.rs"]
mod wakeups;

use serde_json::{Value, json};

use judge::options::Options;
use judge::results;

/// A line of the results: quantity, target, measured value, verdict.
pub(crate) type Line = [String; 4];

fn main() {
    judge::begin(run);
}

fn run(options: &Options) -> Result<(), String> {
    let (mut lines, mut raw) = (Vec::new(), Vec::new());
    let measured = measure(options, |title, outcome| {
        lines.extend(outcome.0.into_iter().map(Vec::from));
        raw.push(json!({ "row": title, "figures": outcome.1 }));
    });
    // If a step fails, the results of the earlier ones are still written.
    results::write("endurance", &["what", "target", "found", "verdict"], &lines, Value::from(raw), options.quick)?;
    measured
}

/// Calls `add` with every row as soon as it is measured.
fn measure(options: &Options, mut add: impl FnMut(&str, (Vec<Line>, Value))) -> Result<(), String> {
    let store = tempfile::tempdir().map_err(|error| format!("no temporary store: {error}"))?;
    if options.wants("schedule") {
        add("schedule", schedule::run(options)?);
    }
    if options.wants("wakeups") {
        add("wakeups", wakeups::run(options)?);
    }
    if options.wants("stream") {
        add("stream", stream::run(options)?);
    }
    if options.wants("memory") || options.wants("summary") {
        let (recording, outcome) = memory::run(options, store.path())?;
        add("memory", outcome);
        add("summary", summary::run(options, &recording)?);
    }
    if options.wants("dds") {
        add("dds", memory::run_dds(options)?);
    }
    Ok(())
}

/// The verdict on a figure against a fixed target; "not judged" with `--quick`.
pub(crate) fn verdict_word(holds: bool, quick: bool) -> String {
    let word = if holds { "met" } else { "**not met**" };
    if quick { "not judged" } else { word }.to_string()
}
