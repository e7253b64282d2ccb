//! Compares `latlab command -- /bin/true` with the bare loop and hyperfine in paired rounds on the same CPU. The bare loop
//! runs twice in each round, so that its ratio to itself shows the noise.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

// Each bench uses only a part of the shared modules.
#[allow(dead_code)]
mod judge;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use judge::options::Options;
use judge::paired::median;
use judge::programs;
use judge::race::{self, Figure, P50_TOLERANCE, P99_TOLERANCE, Rounds, p50};
use judge::readings::{self, Reading};
use judge::results;

/// The bare loop has the same warm-up.
const WARMUP: &str = "100";
const PROGRAM: &str = "/bin/true";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Contender {
    Latlab,
    Bare,
    BareAgain,
    Hyperfine,
}

fn main() {
    judge::begin(run);
}

/// How far p99 lies above the median.
fn spread(reading: &Reading) -> f64 {
    reading.p99_ns - reading.p50_ns
}

fn run(options: &Options) -> Result<(), String> {
    use Contender::{Bare, BareAgain, Hyperfine, Latlab};
    let home = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    let bare = home.path().join("bare");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/bare/command.c");
    programs::output(Command::new("cc").arg("-O2").arg("-o").arg(&bare).arg(source))?;
    let count = if options.quick { "50" } else { "300" };
    let rounds = Rounds::run(
        "commands",
        (&[Latlab, Bare, BareAgain, Hyperfine], [Bare, BareAgain]),
        options,
        &mut race::seeded_rng(),
        |contender| run_once(contender, &bare, home.path(), (options.cpus.0, count)),
    )?;
    let lines: [(&str, f64, Contender, Figure, f64); 4] = [
        ("p50 / bare loop", 1.02, Bare, p50, P50_TOLERANCE),
        ("p99 - p50 / bare loop", 1.0, Bare, spread, P99_TOLERANCE),
        ("p50 / hyperfine -N", 1.0, Hyperfine, p50, P50_TOLERANCE),
        ("p99 - p50 / hyperfine -N", 1.0, Hyperfine, spread, P99_TOLERANCE),
    ];
    let judged = lines.map(|(title, target, other, figure, tolerance)| {
        let (ours, itself) = (rounds.ratio(Latlab, other, figure), rounds.self_ratio(figure));
        let micros = |contender| format!("{:.1} µs", median(&rounds.sorted(contender, figure)) / 1e3);
        vec![
            title.into(),
            format!("≤ {target:.2}"),
            micros(Latlab),
            micros(other),
            format!("{:.3}", ours.median),
            ours.interval(),
            format!("{:.3}", itself.median),
            ours.rounds.to_string(),
            ours.at_most(target, itself.is_quiet(tolerance)).word().into(),
        ]
    });
    let head = ["what", "target", "latlab", "the other", "ratio", "95 % interval", "bare / bare", "rounds", "verdict"];
    results::write("command", &head, &judged, rounds.raw(), options.quick)
}

fn run_once(contender: Contender, bare: &Path, home: &Path, (cpu, count): (u16, &str)) -> Result<Reading, String> {
    let mut pinned = Command::new("taskset");
    pinned.args(["--cpu-list", &cpu.to_string()]);
    match contender {
        Contender::Latlab => {
            let mut latlab = programs::latlab();
            latlab.args(["command", "--cpu", &cpu.to_string(), "-n", count, "--warmup", WARMUP, "--json", "-q"]);
            latlab.args(["--quantiles", "0.5,0.99", "--store"]).arg(home).args(["--", PROGRAM]);
            readings::latlab_command(&programs::output(&mut latlab)?)
        }
        Contender::Bare | Contender::BareAgain => {
            let text = programs::output(pinned.arg(bare).args([count, PROGRAM]))?;
            readings::of_times(text.lines().filter_map(|line| line.parse().ok()).collect())
        }
        Contender::Hyperfine => {
            let path = home.join("hyperfine.json");
            pinned.args(["hyperfine", "-N", "--warmup", WARMUP, "--runs", count, "--export-json"]).arg(&path);
            programs::output(pinned.arg(PROGRAM))?;
            let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
            let document: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            let times = document["results"][0]["times"].as_array().into_iter().flatten();
            readings::of_times(times.filter_map(|seconds| Some(seconds.as_f64()? * 1e9)).collect())
        }
    }
}
