//! `latlab summary` compared with one query of DuckDB for the same figures over the same file.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Line;
use crate::judge::options::Options;
use crate::judge::paired::Paired;
use crate::judge::programs;
use crate::judge::readings::quantile;
use crate::memory::status_bytes;

/// Time and memory that one contender used in one round, and its output.
struct Cost {
    seconds: f64,
    bytes: f64,
    document: Value,
}

pub(crate) fn run(options: &Options, recording: &Path) -> Result<(Vec<Line>, Value), String> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // Each contender runs once before the rounds, to fill the page cache, and they take turns at being first.
    agree(&latlab(recording)?.document, &duckdb(recording)?.document)?;
    for round in 0..options.rounds {
        if round % 2 == 0 {
            ours.push(latlab(recording)?);
            theirs.push(duckdb(recording)?);
        } else {
            theirs.push(duckdb(recording)?);
            ours.push(latlab(recording)?);
        }
    }
    let line = |what: &str, figure: fn(&Cost) -> f64, unit: &str, scale: f64| -> Line {
        let of = |costs: &[Cost]| costs.iter().map(figure).collect::<Vec<f64>>();
        let (ours, theirs) = (of(&ours), of(&theirs));
        let paired = Paired::of(&ours, &theirs);
        let middle = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2] / scale
        };
        let found = format!(
            "{:.3} × [{}]; {:.2} {unit} beside {:.2} {unit}",
            paired.median,
            paired.interval(),
            middle(ours),
            middle(theirs)
        );
        [what.into(), "≤ 1 × DuckDB".into(), found, paired.at_most(1.0, true).word().into()]
    };
    let lines = vec![
        line("summary: wall time", |cost| cost.seconds, "s", 1.0),
        line("summary: peak memory", |cost| cost.bytes, "MiB", f64::from(1 << 20)),
    ];
    let raw = |costs: &[Cost]| costs.iter().map(|cost| json!([cost.seconds, cost.bytes])).collect::<Vec<_>>();
    Ok((lines, json!({ "latlab": raw(&ours), "duckdb": raw(&theirs), "columns": ["seconds", "bytes"] })))
}

/// The whole process, from start to exit.
fn latlab(recording: &Path) -> Result<Cost, String> {
    let mut command = programs::latlab();
    command.arg("summary").arg(recording).args(["--json", "--no-intervals"]).stdout(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let mut peak = 0;
    // One document is smaller than a pipe, so that writing it never waits for the reader.
    while child.try_wait().map_err(|error| format!("cannot wait: {error}"))?.is_none() {
        peak = peak.max(status_bytes(child.id(), "VmHWM:"));
        sleep(Duration::from_millis(1));
    }
    let seconds = start.elapsed().as_secs_f64();
    let output = child.wait_with_output().map_err(|error| format!("cannot read: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let document = serde_json::from_str(&text).map_err(|error| format!("{command:?}: no JSON ({error}): {text}"))?;
    Ok(Cost { seconds, bytes: peak as f64, document })
}

/// The query alone; start of Python and import of DuckDB are not counted.
fn duckdb(recording: &Path) -> Result<Cost, String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/duckdb_summary.py");
    let python = programs::target_folder().join("readers/bin/python");
    let text = programs::output(Command::new(python).arg(script).arg(recording))?;
    let document: Value = serde_json::from_str(&text).map_err(|error| format!("no JSON ({error}): {text}"))?;
    let number = |name: &str| document[name].as_f64().ok_or_else(|| format!("no `{name}` in {document}"));
    Ok(Cost { seconds: number("seconds")?, bytes: number("memory_bytes")?, document })
}

/// Two tools that disagree about the figures are not compared by their speed.
fn agree(ours: &Value, theirs: &Value) -> Result<(), String> {
    let pairs = [(0.5, 0), (0.9, 1), (0.99, 2), (0.999, 3), (0.9999, 4)];
    for metric in ["round_trip_delay", "round_trip_delay_less_dwell", "reflector_dwell"] {
        for (q, index) in pairs {
            let (one, other) = (quantile(ours, metric, q)?, &theirs["figures"][metric]["quantiles"][index]);
            let close = other.as_f64().is_some_and(|other| (one - other).abs() <= 0.5 + 1e-9 * one.abs());
            if !close {
                return Err(format!("{metric} at {q}: latlab says {one}, DuckDB {other}"));
            }
        }
    }
    Ok(())
}
