//! Compares the delivered rate of a stream with the requested one, at 10, 50 and 90 % of the rate that `--search`
//! finds.

use serde_json::{Value, json};

use crate::judge::options::Options;
use crate::judge::paired::median;
use crate::judge::{programs, rates};
use crate::{Row, add_end_options};

/// Permitted difference of the delivered rate from the requested rate, as a share of the requested rate.
const ERROR_MAX: f64 = 0.005;
const SHARES: [f64; 3] = [0.1, 0.5, 0.9];
const RUNS: usize = 7;
/// Number of searches; the median of their results is the found rate.
const SEARCHES: usize = 3;
/// Duration of a search in seconds, in which a trial takes 167 ms.
const SEARCH_SECONDS: u32 = 20;

/// The result of one paced run.
struct Paced {
    /// Delivered rate / requested rate.
    ratio: f64,
    skipped: u64,
    burst_packets: u64,
}

/// The table lines of a mode, and its raw figures as JSON.
pub(crate) fn run(row: &Row, batch: u64, options: &Options) -> Result<(Vec<Vec<String>>, Value), String> {
    let runs = if options.quick { 1 } else { RUNS };
    let found = median_of((0..SEARCHES.min(runs)).map(|_| found_pps(row)).collect::<Result<Vec<_>, _>>()?);
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
    let ratio = median_of(runs.iter().map(|run| run.ratio).collect());
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

/// The highest rate without loss or, if there is none, with a loss of at most 0.5 %.
fn found_pps(row: &Row) -> Result<f64, String> {
    let searched = Row { seconds: SEARCH_SECONDS, ..*row };
    rates::rate(&streamed(&searched, &["--search", "--probe", "off"])?, "/search/found_pps")
}

fn streamed(row: &Row, pace: &[&str]) -> Result<Value, String> {
    let mut command = programs::latlab();
    add_end_options(command.args(["stream", "local"]), row);
    command.args(pace).args(["--warmup", "100ms", "--json", "-q", "--store", row.store]);
    rates::parse(&programs::output(&mut command)?)
}

fn median_of(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    median(&values)
}
