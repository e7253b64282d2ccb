//! Compares two builds of latlab, pinned to the same CPUs, in paired rounds: the binary that `LATLAB_BEFORE` names, which
//! runs twice in each round, and this build. It checks that a change does not slow down the measuring loops.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

// Each bench uses only a part of the shared module.
#[allow(dead_code)]
mod judge;

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use judge::options::Options;
use judge::programs;
use judge::race::{self, P50_TOLERANCE, Rounds, p50};
use judge::rates;
use judge::readings::{self, Reading};
use judge::results;

/// The largest permitted ratio of the cost of this build to that of the other; its 95 % interval must not exceed it.
const TARGET: f64 = 1.02;

/// A kind of run, made with both builds.
struct Row {
    title: &'static str,
    arguments: &'static [&'static str],
    /// Whether the peer runs on the other CPU; `None` without a peer.
    peer_on_other_cpu: Option<bool>,
    read: fn(&str) -> Result<Reading, String>,
}

const ROWS: [Row; 9] = [
    ping("ping, blocking, one core", &["ping", "local", "-n", "50000"], false),
    ping("ping, blocking, across cores", &["ping", "local", "-n", "12000"], true),
    ping("ping, spinning, across cores", &["ping", "local", "-n", "100000", "--wait", "spin"], true),
    ping("ping, tcp, one core", &["ping", "local", "-n", "40000", "--transport", "tcp"], false),
    ping(
        "ping, AF_XDP, spinning, across cores",
        &["ping", "lab", "-n", "50000", "--transport", "xdp", "--wait", "spin"],
        true,
    ),
    Row {
        title: "wakeup, 1 ms",
        arguments: &["wakeup", "-i", "1ms", "-n", "1000", "--fifo", "80", "--mlock", "--set", "cpu-dma-latency=0"],
        peer_on_other_cpu: None,
        read: readings::latlab_wakeup,
    },
    stream("stream, send, 1472 B", &["stream", "local", "--mode", "send", "-s", "1472", "-d", "1s", "--rate", "max"]),
    stream(
        "stream, sendmmsg, 64 B",
        &["stream", "local", "--mode", "sendmmsg", "-s", "64", "-d", "1s", "--rate", "max"],
    ),
    stream("stream, gso, 1472 B", &["stream", "local", "--mode", "gso", "-s", "1472", "-d", "1s", "--rate", "max"]),
];

const fn ping(title: &'static str, arguments: &'static [&'static str], other_cpu: bool) -> Row {
    Row { title, arguments, peer_on_other_cpu: Some(other_cpu), read: readings::latlab }
}

const fn stream(title: &'static str, arguments: &'static [&'static str]) -> Row {
    Row { title, arguments, peer_on_other_cpu: Some(true), read: time_per_bit }
}

/// The delivered rate as a cost, so that a smaller figure is better in every row: nanoseconds for 1,000 bits.
fn time_per_bit(text: &str) -> Result<Reading, String> {
    let cost_ns = 1e12 / rates::latlab(text)?;
    Ok(Reading { p50_ns: cost_ns, p99_ns: cost_ns, p999_ns: None })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Contender {
    After,
    Before,
    BeforeAgain,
}

const CONTENDERS: [Contender; 3] = [Contender::After, Contender::Before, Contender::BeforeAgain];

fn main() {
    judge::begin(run);
}

fn run(options: &Options) -> Result<(), String> {
    let before = std::env::var("LATLAB_BEFORE").map_err(|_| "LATLAB_BEFORE names the other build's binary")?;
    let mut rng = race::seeded_rng();
    let (mut table, mut raw) = (Vec::new(), Vec::new());
    for row in ROWS.iter().filter(|row| options.wants(row.title)) {
        let store = tempfile::tempdir().map_err(|error| format!("no temporary store: {error}"))?;
        let store = store.path().to_string_lossy();
        let baseline = [Contender::Before, Contender::BeforeAgain];
        let rounds = Rounds::run(row.title, (&CONTENDERS, baseline), options, &mut rng, |contender| {
            let mut command = match contender {
                Contender::After => programs::latlab(),
                Contender::Before | Contender::BeforeAgain => Command::new(&before),
            };
            command.stdin(Stdio::null()).env_remove("LATLAB_STORE").args(row.arguments);
            pin(&mut command, row, options);
            command.args(["--json", "-q", "--quantiles", "0.5,0.99", "--store", &store]);
            (row.read)(&programs::output(&mut command)?)
        })?;
        table.push(judged(row, &rounds));
        raw.push(json!({ "row": row.title, "rounds": rounds.raw() }));
    }
    let head = ["row", "target", "after / before (median)", "95 % interval", "before / before", "rounds", "verdict"];
    results::write("before_after", &head, &table, Value::from(raw), options.quick)
}

fn pin(command: &mut Command, row: &Row, options: &Options) {
    let (cpu, other) = options.cpus;
    command.args(["--cpu", &cpu.to_string()]);
    if let Some(on_other) = row.peer_on_other_cpu {
        command.args(["--peer-cpu", &if on_other { other } else { cpu }.to_string()]);
    }
}

fn judged(row: &Row, rounds: &Rounds<Contender>) -> Vec<String> {
    let (ours, self_ratio) = (rounds.ratio(Contender::After, Contender::Before, p50), rounds.self_ratio(p50));
    vec![
        row.title.into(),
        format!("≤ {TARGET:.2}"),
        format!("{:.3}", ours.median),
        ours.interval(),
        format!("{:.3}", self_ratio.median),
        ours.rounds.to_string(),
        ours.at_most(TARGET, self_ratio.is_quiet(P50_TOLERANCE)).word().into(),
    ]
}
