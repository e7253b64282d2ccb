//! 100,000 probes a second for 30 s: is each probe sent in time, and can a loop that only reads the clock meet the same
//! schedule on this machine?

use std::time::Duration;

use serde_json::{Value, json};

use crate::judge::options::Options;
use crate::judge::paired::median;
use crate::judge::programs;
use crate::judge::readings::quantile;
use crate::{Line, floor, verdict_word};

const RUNS: usize = 7;
const PERIOD_NS: f64 = 10_000.0;
/// The target for the 99th percentile and the 0.995 quantile of the send slip: the schedule is not met if either is
/// above.
const SLIP_MAX_NS: f64 = 10_000.0;

/// One run's figures. At most 0.5 % of the probes are more than one period late if the 0.995 quantile of the slip is at
/// most one period.
struct ScheduleRun {
    slip_p99_ns: f64,
    slip_p995_ns: f64,
    unsent: f64,
    lost: f64,
    /// The same quantiles of a loop that only reads the clock, measured just before the run.
    floor_p99_ns: f64,
    floor_p995_ns: f64,
}

pub(crate) fn run(options: &Options) -> Result<(Vec<Line>, Value), String> {
    let (runs, seconds) = if options.quick { (1, 1) } else { (RUNS, 30) };
    let runs = (0..runs).map(|_| measure(options, seconds)).collect::<Result<Vec<_>, _>>()?;
    let median_of = |figure: fn(&ScheduleRun) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        median(&values)
    };
    let (p99, p995) = (median_of(|run| run.slip_p99_ns), median_of(|run| run.slip_p995_ns));
    // The target is zero losses in all runs; a median would hide losses in three of seven runs.
    let total = |count: fn(&ScheduleRun) -> f64| runs.iter().map(count).sum::<f64>();
    let (unsent, lost) = (total(|run| run.unsent), total(|run| run.lost));
    let micros = |ns: f64| format!("{:.2} µs", ns / 1e3);
    let (floor_p99, floor_p995) = (median_of(|run| run.floor_p99_ns), median_of(|run| run.floor_p995_ns));
    let line = |what: &str, target: &str, found: String, holds: bool| -> Line {
        [what.into(), target.into(), found, verdict_word(holds, options.quick)]
    };
    let slip = |what: &str, slip_ns: f64, floor_ns: f64| -> Line {
        let found = format!("{} (a loop that only reads the clock: {})", micros(slip_ns), micros(floor_ns));
        [what.into(), "≤ 10 µs".into(), found, verdict(slip_ns, floor_ns, options.quick)]
    };
    let lines = vec![
        slip("100,000/s: send slip p99.5 (0.5 % later than a period)", p995, floor_p995),
        slip("100,000/s: send slip p99", p99, floor_p99),
        line("100,000/s: due and not sent, all runs", "0", unsent.to_string(), unsent == 0.0),
        line("100,000/s: lost or late, all runs", "0", lost.to_string(), lost == 0.0),
    ];
    let raw: Vec<Value> = runs.iter().map(raw).collect();
    Ok((lines, Value::from(raw)))
}

/// If the machine alone is later than the limit, the run does not measure latlab.
fn verdict(slip_ns: f64, floor_ns: f64, quick: bool) -> String {
    if !quick && slip_ns > SLIP_MAX_NS && floor_ns > SLIP_MAX_NS {
        return "undecided: the machine alone is later".to_string();
    }
    verdict_word(slip_ns <= SLIP_MAX_NS, quick)
}

fn raw(run: &ScheduleRun) -> Value {
    json!({
        "slip_p99_ns": run.slip_p99_ns,
        "slip_p995_ns": run.slip_p995_ns,
        "unsent": run.unsent,
        "lost": run.lost,
        "floor_p99_ns": run.floor_p99_ns,
        "floor_p995_ns": run.floor_p995_ns,
    })
}

fn measure(options: &Options, seconds: u64) -> Result<ScheduleRun, String> {
    let floor = floor::slips_ns(options.cpus, Duration::from_nanos(PERIOD_NS as u64), Duration::from_secs(seconds))?;
    let mut command = programs::latlab();
    command.args(["ping", "local", "-i", "10us", "-d", &format!("{seconds}s"), "--wait", "spin", "--json"]);
    command.args(["--quantiles", "0.5,0.99,0.995", "--no-record"]);
    command.args(["--cpu", &options.cpus.0.to_string(), "--peer-cpu", &options.cpus.1.to_string()]);
    // 4: measured but not to be trusted. This row is about a lost schedule.
    let text = programs::output_tolerating(&mut command, &[4])?;
    let document: Value = serde_json::from_str(&text).map_err(|error| format!("no JSON ({error}): {text}"))?;
    let count = |name: &str| document[name].as_f64().ok_or_else(|| format!("no `{name}` in {document}"));
    Ok(ScheduleRun {
        slip_p99_ns: quantile(&document, "send_slip", 0.99)?,
        slip_p995_ns: quantile(&document, "send_slip", 0.995)?,
        unsent: count("not_sent")? + count("send_failed")?,
        lost: count("lost")? + count("late")?,
        floor_p99_ns: floor[floor.len() * 99 / 100],
        floor_p995_ns: floor[floor.len() * 995 / 1000],
    })
}
