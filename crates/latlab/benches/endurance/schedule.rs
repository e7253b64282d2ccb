//! 100,000 probes a second for 30 s: does the schedule hold?

use serde_json::{Value, json};

use crate::judge::options::Options;
use crate::judge::paired::median;
use crate::judge::programs;
use crate::judge::readings::quantile;
use crate::{Line, plainly};

const RUNS: usize = 7;
const PERIOD_NS: f64 = 10_000.0;

/// One run's figures. At most 0.5 % are more than a period late when the 0.995 quantile of the slip is at most one.
struct ScheduleRun {
    slip_p99_ns: f64,
    slip_p995_ns: f64,
    unsent: f64,
    lost: f64,
}

pub(crate) fn run(options: &Options) -> Result<(Vec<Line>, Value), String> {
    let (runs, duration) = if options.quick { (1, "1s") } else { (RUNS, "30s") };
    let runs = (0..runs).map(|_| measure(options, duration)).collect::<Result<Vec<_>, _>>()?;
    let middle = |figure: fn(&ScheduleRun) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        median(&values)
    };
    let (p99, p995) = (middle(|run| run.slip_p99_ns), middle(|run| run.slip_p995_ns));
    let (unsent, lost) = (middle(|run| run.unsent), middle(|run| run.lost));
    let micros = |ns: f64| format!("{:.2} µs", ns / 1e3);
    let line = |what: &str, target: &str, found: String, holds: bool| -> Line {
        [what.into(), target.into(), found, plainly(holds, options.quick)]
    };
    let lines = vec![
        line("100,000/s: send slip p99.5 (0.5 % later than a period)", "≤ 10 µs", micros(p995), p995 <= PERIOD_NS),
        line("100,000/s: send slip p99", "≤ 10 µs", micros(p99), p99 <= 10_000.0),
        line("100,000/s: due and not sent", "0", unsent.to_string(), unsent == 0.0),
        line("100,000/s: lost or late", "0", lost.to_string(), lost == 0.0),
    ];
    let raw: Vec<Value> = runs
        .iter()
        .map(|run| json!({"slip_p99_ns": run.slip_p99_ns, "slip_p995_ns": run.slip_p995_ns, "unsent": run.unsent, "lost": run.lost}))
        .collect();
    Ok((lines, Value::from(raw)))
}

fn measure(options: &Options, duration: &str) -> Result<ScheduleRun, String> {
    let mut command = programs::latlab();
    command.args(["ping", "local", "-i", "10us", "-d", duration, "--wait", "spin", "--json"]);
    command.args(["--quantiles", "0.5,0.99,0.995", "--no-record"]);
    command.args(["--cpu", &options.cpus.0.to_string(), "--peer-cpu", &options.cpus.1.to_string()]);
    // 4: measured but not to be trusted. A lost schedule is what this row is about.
    let text = programs::output_or(&mut command, &[4])?;
    let document: Value = serde_json::from_str(&text).map_err(|error| format!("no JSON ({error}): {text}"))?;
    let count = |name: &str| document[name].as_f64().ok_or_else(|| format!("no `{name}` in {document}"));
    Ok(ScheduleRun {
        slip_p99_ns: quantile(&document, "send_slip", 0.99)?,
        slip_p995_ns: quantile(&document, "send_slip", 0.995)?,
        unsent: count("not_sent")? + count("send_failed")?,
        lost: count("lost")? + count("late")?,
    })
}
