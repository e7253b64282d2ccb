//! Is what was asked for what arrives? A stream at 10, 50 and 90 % of the rate that `--search` finds.

use serde_json::{Value, json};

use crate::judge::options::Options;
use crate::judge::paired::median;
use crate::judge::{programs, rates};
use crate::{Row, ends};

/// How far the delivered rate may lie from what was asked for.
const ERROR_MAX: f64 = 0.005;
const SHARES: [f64; 3] = [0.1, 0.5, 0.9];
const RUNS: usize = 7;
/// Searches whose middle answer is the found rate …
const SEARCHES: usize = 3;
/// … with trials of 167 ms.
const SEARCH_SECONDS: u32 = 20;

/// What one paced run came to.
struct Paced {
    /// Delivered rate / rate asked for.
    ratio: f64,
    skipped: u64,
    burst_packets: u64,
}

/// The lines of a mode, and its figures.
pub(crate) fn run(row: &Row, batch: u64, options: &Options) -> Result<(Vec<Vec<String>>, Value), String> {
    let runs = if options.quick { 1 } else { RUNS };
    let found = middle((0..SEARCHES.min(runs)).map(|_| found_pps(row)).collect::<Result<Vec<_>, _>>()?);
    let (mut lines, mut raw) = (Vec::new(), Vec::new());
    for share in SHARES {
        let asked_pps = (found * share).round();
        let runs = (0..runs).map(|_| paced(row, asked_pps)).collect::<Result<Vec<_>, _>>()?;
        lines.push(line(row, share, asked_pps, batch, &runs, options.quick));
        let ratios: Vec<f64> = runs.iter().map(|run| run.ratio).collect();
        raw.push(json!({ "share": share, "asked_pps": asked_pps, "delivered_by_asked": ratios }));
    }
    Ok((lines, json!({ "found_pps": found, "paced": raw })))
}

fn line(row: &Row, share: f64, asked_pps: f64, batch: u64, runs: &[Paced], quick: bool) -> Vec<String> {
    let ratio = middle(runs.iter().map(|run| run.ratio).collect());
    let error = |run: &Paced| (run.ratio - 1.0).abs();
    let worst = runs.iter().map(error).fold(0.0, f64::max);
    let burst = runs.iter().map(|run| run.burst_packets).max().unwrap_or(0);
    let skipped = runs.iter().map(|run| run.skipped).sum::<u64>();
    let verdict = match (ratio - 1.0).abs() <= ERROR_MAX && burst <= batch {
        _ if quick => "not judged",
        true => "met",
        false => "**not met**",
    };
    vec![
        format!("{}, paced at {:.0} % of the found rate", row.title(), share * 100.0),
        format!("{asked_pps:.0} packets/s asked for"),
        format!("{ratio:.4} × (worst {:.2} % off), {skipped} skipped, bursts ≤ {burst}", worst * 100.0),
        format!("within 0.5 %, bursts ≤ {batch}"),
        runs.len().to_string(),
        verdict.into(),
    ]
}

fn paced(row: &Row, asked_pps: f64) -> Result<Paced, String> {
    let document = streamed(row, &["--rate", &format!("{asked_pps:.0}pps")])?;
    let count = |at: &str| document.pointer(at).and_then(Value::as_u64).ok_or(format!("no `{at}` in {document}"));
    Ok(Paced {
        ratio: rates::rate(&document, "/rates/delivered_pps")? / asked_pps,
        skipped: count("/stream/flows/0/skipped")?,
        burst_packets: count("/stream/burst_packets")?,
    })
}

/// The highest rate that loses nothing, or else not more than half a per cent.
fn found_pps(row: &Row) -> Result<f64, String> {
    let searched = Row { seconds: SEARCH_SECONDS, ..*row };
    rates::rate(&streamed(&searched, &["--search", "--probe", "off"])?, "/search/found_pps")
}

fn streamed(row: &Row, pace: &[&str]) -> Result<Value, String> {
    let mut command = programs::latlab();
    ends(command.args(["stream", "local"]), row);
    command.args(pace).args(["--warmup", "100ms", "--json", "-q", "--store", row.store]);
    rates::parse(&programs::output(&mut command)?)
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    median(&values)
}
