//! Compares `latlab wakeup` with the bare loop and cyclictest in paired rounds on the same CPU. The bare loop runs twice in
//! each round, so that its ratio to itself shows the noise.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

// Each bench uses only a part of the shared modules.
#[allow(dead_code)]
mod bare;
#[allow(dead_code)]
mod judge;

use std::process::Command;

use latlab::plan::EndSpec;
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use bare::{Order, Wakeups};
use judge::options::Options;
use judge::paired::median;
use judge::programs;
use judge::race::{self, Figure, P50_TOLERANCE, P99_TOLERANCE, Rounds, p50, p99};
use judge::readings::{self, Reading};
use judge::results;

const P50_TARGET: f64 = 1.05;
const P99_TARGET: f64 = 1.10;
/// Wake-ups that are excluded at the start of a run, by every contender that can exclude some.
const WARMUP: u32 = 20;
/// The upper end of cyclictest's histogram: 1 ms, in ns because of `-N`. It counts later wake-ups without their latencies.
const HISTOGRAM_NS: &str = "1000000";

/// Interval in ms and number of wake-ups of a run, which takes 1 s to 2 s.
const INTERVALS: [(u32, u32); 2] = [(1, 1_000), (10, 150)];

/// The scheduling parameters of the measuring thread, and the peer to compare with.
struct Manner {
    title: &'static str,
    options: &'static [&'static str],
    peer: Peer,
}

/// Whether cyclictest runs in the rounds of a row, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    None,
    /// cyclictest with `--default-system`, which leaves the system as it is. Its main thread wakes the machine every 10 ms:
    /// the figures are shown, but not judged.
    DefaultSystem,
    /// cyclictest with its defaults, by which it holds /dev/cpu_dma_latency at 0.
    Judged,
}

const MANNERS: [Manner; 4] = [
    Manner { title: "default", options: &[], peer: Peer::None },
    Manner { title: "slack 1 ns", options: &["--set", "timer-slack=1ns"], peer: Peer::None },
    Manner { title: "FIFO 80", options: &["--fifo", "80", "--mlock"], peer: Peer::DefaultSystem },
    Manner {
        title: "FIFO 80, cpu-dma-latency 0",
        options: &["--fifo", "80", "--mlock", "--set", "cpu-dma-latency=0"],
        peer: Peer::Judged,
    },
];

struct Row<'a> {
    manner: &'a Manner,
    interval_ms: u32,
    count: u32,
    cpu: u16,
    store: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Contender {
    Latlab,
    Bare,
    BareAgain,
    Cyclictest,
}

fn main() {
    bare::run_if_asked();
    judge::begin(run);
}

fn run(options: &Options) -> Result<(), String> {
    let mut rng = race::seeded_rng();
    let (mut table, mut raw) = (Vec::new(), Vec::new());
    for (interval_ms, count) in INTERVALS {
        let title = |manner: &Manner| format!("{interval_ms} ms, {}", manner.title);
        for manner in MANNERS.iter().filter(|manner| options.wants(&title(manner))) {
            let count = if options.quick { 50 } else { count };
            let rounds = measure(&title(manner), (manner, interval_ms, count), options, &mut rng)?;
            table.extend(judged(manner, interval_ms, &rounds));
            raw.push(json!({ "manner": manner.title, "interval_ms": interval_ms, "rounds": rounds.raw() }));
        }
    }
    let head = [
        "interval",
        "manner",
        "figure",
        "target",
        "latlab",
        "the other",
        "median ratio",
        "95 % interval",
        "bare / bare",
        "rounds",
        "verdict",
    ];
    results::write("wakeup", &head, &table, Value::from(raw), options.quick)
}

fn measure(
    title: &str,
    (manner, interval_ms, count): (&Manner, u32, u32),
    options: &Options,
    rng: &mut Pcg64Mcg,
) -> Result<Rounds<Contender>, String> {
    let store = tempfile::tempdir().map_err(|error| format!("no temporary store: {error}"))?;
    let store = store.path().to_string_lossy();
    let row = Row { manner, interval_ms, count, cpu: options.cpus.0, store: &store };
    let bare = [Contender::Bare, Contender::BareAgain];
    let mut contenders = vec![Contender::Latlab, bare[0], bare[1]];
    if manner.peer != Peer::None {
        contenders.push(Contender::Cyclictest);
    }
    Rounds::run(title, (&contenders, bare), options, rng, |contender| run_once(contender, &row))
}

fn run_once(contender: Contender, row: &Row) -> Result<Reading, String> {
    match contender {
        Contender::Latlab => {
            let mut command = latlab_wakeup(row);
            command.args(["--json", "-q", "--quantiles", "0.5,0.99", "--store", row.store]);
            readings::latlab_wakeup(&programs::output(&mut command)?)
        }
        Contender::Bare | Contender::BareAgain => readings::bare(&programs::output(&mut bare_wakeups(row).command())?),
        Contender::Cyclictest => readings::cyclictest(&programs::output(&mut cyclictest(row))?),
    }
}

fn bare_wakeups(row: &Row) -> Order {
    let is_real_time = row.manner.options.contains(&"--fifo");
    Order::Wakeups(Wakeups {
        interval_ns: i64::from(row.interval_ms) * 1_000_000,
        count: row.count as usize,
        warmup: WARMUP as usize,
        end: EndSpec { cpu: Some(row.cpu), fifo: is_real_time.then_some(80), mlock: is_real_time, ..EndSpec::SYSTEM },
        is_exact: row.manner.options.contains(&"timer-slack=1ns"),
        keeps_awake: row.manner.options.contains(&"cpu-dma-latency=0"),
    })
}

fn latlab_wakeup(row: &Row) -> Command {
    let mut latlab = programs::latlab();
    latlab.args(["wakeup", "--cpu", &row.cpu.to_string(), "--warmup", &WARMUP.to_string()]);
    latlab.args(["-i", &format!("{}ms", row.interval_ms), "-n", &row.count.to_string()]).args(row.manner.options);
    latlab
}

/// cyclictest with one thread, in nanoseconds (`-N`), which prints its latencies as a histogram.
fn cyclictest(row: &Row) -> Command {
    let mut command = Command::new("cyclictest");
    command.args(["-N", "-q", "-m", "-t", "1", "-p", "80", "-a", &row.cpu.to_string(), "-h", HISTOGRAM_NS]);
    command.args(["-i", &(row.interval_ms * 1_000).to_string(), "-l", &row.count.to_string()]);
    if row.manner.peer == Peer::DefaultSystem {
        command.arg("--default-system");
    }
    command
}

/// The lines of a row: both quantiles compared with the bare loop and, if it runs, with cyclictest.
fn judged(manner: &Manner, interval_ms: u32, rounds: &Rounds<Contender>) -> Vec<Vec<String>> {
    type Line = (&'static str, f64, Contender, Figure, f64);
    let mut lines: Vec<Line> = vec![
        ("p50 / bare loop", P50_TARGET, Contender::Bare, p50, P50_TOLERANCE),
        ("p99 / bare loop", P99_TARGET, Contender::Bare, p99, P99_TOLERANCE),
    ];
    if manner.peer != Peer::None {
        lines.push(("p50 / cyclictest", P50_TARGET, Contender::Cyclictest, p50, P50_TOLERANCE));
        lines.push(("p99 / cyclictest", P99_TARGET, Contender::Cyclictest, p99, P99_TOLERANCE));
    }
    let micros = |contender, figure| format!("{:.1} µs", median(&rounds.sorted(contender, figure)) / 1e3);
    lines
        .into_iter()
        .map(|(title, target, other, figure, tolerance)| {
            let (ours, self_ratio) = (rounds.ratio(Contender::Latlab, other, figure), rounds.self_ratio(figure));
            let shown = other == Contender::Cyclictest && manner.peer == Peer::DefaultSystem;
            let verdict = ours.at_most(target, self_ratio.is_quiet(tolerance)).word();
            vec![
                format!("{interval_ms} ms"),
                manner.title.into(),
                if shown { format!("{title} --default-system") } else { title.into() },
                if shown { "–".into() } else { format!("≤ {target:.2}") },
                micros(Contender::Latlab, figure),
                micros(other, figure),
                format!("{:.3}", ours.median),
                ours.interval(),
                format!("{:.3}", self_ratio.median),
                ours.rounds.to_string(),
                if shown { "not judged" } else { verdict }.into(),
            ]
        })
        .collect()
}
