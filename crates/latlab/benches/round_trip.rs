//! Compares `latlab ping` with the bare loop and sockperf, over DDS with ddsperf, past the network stack with UDP over the
//! same virtual Ethernet pair, in paired rounds on the same CPUs. The bare loop runs twice
//! in each round, so that its ratio to itself shows the noise. On a schedule the bare loop sleeps as latlab does, and the
//! closed bare loop shows what sleeping costs.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

// Each bench uses only a part of the shared modules.
#[allow(dead_code)]
mod bare;
#[allow(dead_code)]
mod judge;

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use latlab::plan::{self, DdsSpec, EndSpec, History, Reliability, TransportKind};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use bare::{Order, RoundTrips};
use judge::options::Options;
use judge::programs::{self, BackgroundProcess};
use judge::race::{self, Figure, P50_TOLERANCE, P99_TOLERANCE, Rounds, p50, p99, p999};
use judge::readings::{self, Reading};
use judge::results;

const SIZES: [u32; 4] = [24, 64, 1024, 8192];
/// Those of DDS: the published ones at which a fragment, a packet or a datagram is full.
const DDS_SIZES: [u32; 4] = [32, 1024, 8192, 63_000];
/// ddsperf on loopback, without multicast, with the sizes of fragments and the receiving threads that latlab has.
const DDS_CONFIGURATION: &str = "<General><Interfaces><NetworkInterface address=\"127.0.0.1\"/></Interfaces>\
    <AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>\
    <Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>\
    <Internal><MultipleReceiveThreads>true</MultipleReceiveThreads></Internal>";
/// The HISTORY with which ddsperf sends pings and pongs: a reliable writer keeps so many samples until they are acknowledged.
const DDS_HISTORY: [&str; 2] = ["--history", "keep-last:1"];
/// The time between two probes on a schedule: that of [`WAIT_MODES`].
const INTERVAL_NS: i64 = 1_000_000;
/// The default port of sockperf, at which other programs are unlikely to listen.
const SOCKPERF_PORT: &str = "11111";

/// How both ends wait, the transport, whether both ends share a CPU, and the permitted ratio to the bare loop.
struct WaitMode {
    title: &'static str,
    transport: &'static str,
    /// Over DDS: `best-effort` or `reliable`.
    reliability: Option<&'static str>,
    wait: &'static str,
    same_core: bool,
    p50_target: f64,
    /// Round trips of a run, which takes about half a second.
    count: u32,
    /// The time between two probes; `None`: a closed loop.
    interval: Option<&'static str>,
}

const WAIT_MODES: [WaitMode; 13] = [
    udp("blocking, one core", "block", true, 1.03, 50_000),
    udp("blocking, across cores", "block", false, 1.03, 12_000),
    udp("spinning, across cores", "spin", false, 1.05, 100_000),
    tcp("tcp, blocking, one core", "block", true, 1.03, 40_000),
    tcp("tcp, blocking, across cores", "block", false, 1.03, 12_000),
    tcp("tcp, spinning, across cores", "spin", false, 1.05, 80_000),
    dds("dds best effort, blocking, across cores", "block", "best-effort"),
    dds("dds reliable, blocking, across cores", "block", "reliable"),
    dds("dds best effort, spinning, across cores", "spin", "best-effort"),
    dds("dds reliable, spinning, across cores", "spin", "reliable"),
    WaitMode { transport: "xdp", ..udp("xdp, spinning, across cores", "spin", false, 1.05, 50_000) },
    WaitMode { interval: Some("1ms"), ..udp("blocking, every 1 ms, one core", "block", true, 1.05, 500) },
    WaitMode { interval: Some("1ms"), ..udp("blocking, every 1 ms, across cores", "block", false, 1.05, 500) },
];

const fn udp(title: &'static str, wait: &'static str, same_core: bool, p50_target: f64, count: u32) -> WaitMode {
    WaitMode { title, transport: "udp", reliability: None, wait, same_core, p50_target, count, interval: None }
}

const fn tcp(title: &'static str, wait: &'static str, same_core: bool, p50_target: f64, count: u32) -> WaitMode {
    WaitMode { transport: "tcp", ..udp(title, wait, same_core, p50_target, count) }
}

const fn dds(title: &'static str, wait: &'static str, reliability: &'static str) -> WaitMode {
    WaitMode { transport: "dds", reliability: Some(reliability), ..udp(title, wait, false, 1.03, 10_000) }
}

/// Of AF_XDP, relative to UDP sockets on the same pair.
const UDP_TARGET: f64 = 0.60;
const P99_TARGET: f64 = 1.10;
const PEER_TARGET: f64 = 1.00;
/// Of a schedule on one core, whose sender sleeps between two probes.
const CLOSED_TARGET: f64 = 1.15;

struct Row<'a> {
    mode: &'a WaitMode,
    size: u32,
    cpu: u16,
    peer_cpu: u16,
    count: u32,
    store: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Contender {
    Latlab,
    Bare,
    BareAgain,
    Sockperf,
    Ddsperf,
    /// The bare loop without a schedule.
    BareClosed,
    /// UDP sockets at both ends, where AF_XDP is measured.
    UdpSockets,
    /// AF_XDP here, a UDP socket there.
    SocketReflector,
    /// AF_XDP here, a program in the driver there.
    DriverReflector,
}

fn main() {
    bare::run_if_asked();
    judge::begin(run);
}

fn run(options: &Options) -> Result<(), String> {
    let mut rng = race::seeded_rng();
    let (mut table, mut raw) = (Vec::new(), Vec::new());
    for mode in &WAIT_MODES {
        // Over TCP one size shows the cost of length prefixes and of copying messages, and on a schedule that of sleeping.
        let is_short = options.quick || mode.transport == "tcp" || mode.interval.is_some();
        let sizes = match mode.transport {
            "dds" => &DDS_SIZES[..],
            "xdp" => &[64, 1_024][..],
            _ if is_short => &SIZES[1..2],
            _ => &SIZES[..],
        };
        for size in sizes.iter().filter(|size| options.wants(&format!("{}, {size} B", mode.title))) {
            let rounds = measure(mode, *size, options, &mut rng)?;
            table.extend(judged(mode, *size, &rounds));
            raw.push(json!({ "manner": mode.title, "size_bytes": size, "rounds": rounds.raw() }));
        }
    }
    let head =
        ["manner", "size", "figure", "target", "median ratio", "95 % interval", "bare / bare", "rounds", "verdict"];
    results::write("round_trip", &head, &table, Value::from(raw), options.quick)
}

/// Runs rounds until the ratio of the bare loop to itself is within the tolerance, or their number is the maximum.
fn measure(mode: &WaitMode, size: u32, options: &Options, rng: &mut Pcg64Mcg) -> Result<Rounds<Contender>, String> {
    let store = tempfile::tempdir().map_err(|error| format!("no temporary store: {error}"))?;
    let (cpu, peer_cpu) = if mode.same_core { (options.cpus.0, options.cpus.0) } else { options.cpus };
    let count = if options.quick { 2_000 } else { mode.count };
    let store = store.path().to_string_lossy();
    let row = Row { mode, size, cpu, peer_cpu, count, store: &store };
    let bare = [Contender::Bare, Contender::BareAgain];
    let title = format!("{}, {size} B", mode.title);
    let other = match mode {
        WaitMode { interval: Some(_), .. } => Contender::BareClosed,
        WaitMode { reliability: Some(_), .. } => Contender::Ddsperf,
        _ => Contender::Sockperf,
    };
    let contenders = match mode.transport {
        "xdp" => vec![
            Contender::Latlab,
            Contender::Bare,
            Contender::BareAgain,
            Contender::UdpSockets,
            Contender::SocketReflector,
            Contender::DriverReflector,
        ],
        _ => vec![Contender::Latlab, Contender::Bare, Contender::BareAgain, other],
    };
    Rounds::run(&title, (&contenders, bare), options, rng, |contender| run_once(contender, &row))
}

fn run_once(contender: Contender, row: &Row) -> Result<Reading, String> {
    match contender {
        Contender::Latlab => readings::latlab(&programs::output(&mut latlab_ping(row))?),
        Contender::UdpSockets => readings::latlab(&programs::output(&mut latlab_over(row, "udp"))?),
        Contender::SocketReflector => {
            readings::latlab(&programs::output(latlab_ping(row).args(["--reflect", "socket"]))?)
        }
        Contender::DriverReflector => {
            readings::latlab(&programs::output(latlab_ping(row).args(["--reflect", "xdp-tx"]))?)
        }
        Contender::Bare | Contender::BareAgain => bare(row, row.mode.interval.map(|_| INTERVAL_NS)),
        Contender::BareClosed => bare(row, None),
        Contender::Sockperf => race_sockperf(row),
        Contender::Ddsperf => race_ddsperf(row),
    }
}

fn add_end_options(command: &mut Command, row: &Row) {
    command.args(["-n", &row.count.to_string(), "-s", &row.size.to_string(), "--wait", row.mode.wait]);
    command.args(["--cpu", &row.cpu.to_string(), "--peer-cpu", &row.peer_cpu.to_string()]);
}

fn latlab_ping(row: &Row) -> Command {
    latlab_over(row, row.mode.transport)
}

fn latlab_over(row: &Row, transport: &str) -> Command {
    let mut command = programs::latlab();
    let target = if row.mode.transport == "xdp" { "lab" } else { "local" };
    add_end_options(command.args(["ping", target]), row);
    command.args(["--transport", transport]);
    if let Some(reliability) = row.mode.reliability {
        command.args(["--reliability", reliability]).args(DDS_HISTORY);
    }
    command.args(["--json", "--quantiles", "0.5,0.99,0.999", "--store", row.store]);
    // The default warm-up of a schedule takes a second.
    command.args(row.mode.interval.iter().flat_map(|interval| ["-i", *interval, "--warmup", "100"]));
    command
}

fn bare(row: &Row, interval_ns: Option<i64>) -> Result<Reading, String> {
    let wait = if row.mode.wait == "spin" { plan::WaitMode::Spin } else { plan::WaitMode::Block };
    let end = |cpu| EndSpec { wait, cpu: Some(cpu), ..EndSpec::SYSTEM };
    let is_reliable = row.mode.reliability == Some("reliable");
    let order = Order::RoundTrips(RoundTrips {
        transport: match row.mode.transport {
            "tcp" => TransportKind::Tcp,
            "dds" => TransportKind::Dds,
            "xdp" => TransportKind::Xdp,
            _ => TransportKind::Udp,
        },
        dds: DdsSpec {
            reliability: if is_reliable { Reliability::Reliable } else { Reliability::BestEffort },
            history: History::KeepLast(1),
            ..DdsSpec::default()
        },
        interval_ns,
        count: row.count as usize,
        size_bytes: row.size,
        here: end(row.cpu),
        peer: end(row.peer_cpu),
    });
    readings::bare(&programs::output(&mut order.command())?)
}

/// ddsperf receives in a listener. It prints a line each second, of which the last one counts.
fn race_ddsperf(row: &Row) -> Result<Reading, String> {
    let pinned = |cpu: u16, words: &[&str]| {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &cpu.to_string(), "ddsperf"]).env("CYCLONEDDS_URI", DDS_CONFIGURATION);
        command.args((row.mode.reliability == Some("best-effort")).then_some("-u")).args(words);
        command
    };
    let _reflector = BackgroundProcess::start(&mut pinned(row.peer_cpu, &["-D", "30", "pong"]))?;
    sleep(Duration::from_millis(150));
    let mut sender = pinned(row.cpu, &["-D", "2.2", "ping", "size", &row.size.to_string()]);
    readings::ddsperf(&programs::output(&mut sender)?)
}

/// sockperf measures for a whole number of seconds, and discards 0.45 s of it.
fn race_sockperf(row: &Row) -> Result<Reading, String> {
    let pinned = |cpu: u16, role: &str| {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &cpu.to_string(), "sockperf", role, "-i", "127.0.0.1", "-p", SOCKPERF_PORT]);
        if row.mode.wait == "spin" {
            command.arg("--nonblocked");
        }
        if row.mode.transport == "tcp" {
            // sockperf sets TCP_NODELAY by default.
            command.arg("--tcp");
        }
        command
    };
    let _reflector = BackgroundProcess::start(&mut pinned(row.peer_cpu, "server"))?;
    sleep(Duration::from_millis(150));
    let mut sender = pinned(row.cpu, "ping-pong");
    sender.args(["--full-rtt", "-t", "1", "-m", &row.size.to_string()]);
    readings::sockperf(&programs::output(&mut sender)?)
}

/// The lines of a row: quantiles relative to the bare loop, the median relative to the other contender.
fn judged(mode: &WaitMode, size: u32, rounds: &Rounds<Contender>) -> Vec<Vec<String>> {
    type Line = (&'static str, f64, Contender, Figure, f64);
    let (ours, bare) = (Contender::Latlab, Contender::Bare);
    let mut lines: Vec<(Contender, Line)> = [
        ("p50 / bare loop", mode.p50_target, bare, p50 as Figure, P50_TOLERANCE),
        ("p99 / bare loop", P99_TARGET, bare, p99, P99_TOLERANCE),
        ("p99.9 / bare loop", P99_TARGET, bare, p999, P99_TOLERANCE),
    ]
    .map(|line| (ours, line))
    .into();
    lines.extend(match mode {
        WaitMode { transport: "xdp", .. } => vec![
            (ours, ("p50 / udp", UDP_TARGET, Contender::UdpSockets, p50 as Figure, P50_TOLERANCE)),
            (ours, ("p50 / reflector with a socket", PEER_TARGET, Contender::SocketReflector, p50, P50_TOLERANCE)),
            (Contender::DriverReflector, ("reflector in the driver / p50", PEER_TARGET, ours, p50, P50_TOLERANCE)),
        ],
        WaitMode { interval: Some(_), .. } => {
            vec![(ours, ("p50 / closed bare loop", CLOSED_TARGET, Contender::BareClosed, p50 as Figure, P50_TOLERANCE))]
        }
        WaitMode { reliability: Some(_), .. } => {
            vec![(ours, ("p50 / ddsperf", PEER_TARGET, Contender::Ddsperf, p50 as Figure, P50_TOLERANCE))]
        }
        _ => vec![(ours, ("p50 / sockperf", PEER_TARGET, Contender::Sockperf, p50 as Figure, P50_TOLERANCE))],
    });
    lines
        .into_iter()
        .map(|(ours, (title, target, peer, figure, tolerance))| {
            let (ours, self_ratio) = (rounds.ratio(ours, peer, figure), rounds.self_ratio(figure));
            vec![
                mode.title.into(),
                format!("{size} B"),
                title.into(),
                format!("≤ {target:.2}"),
                format!("{:.3}", ours.median),
                ours.interval(),
                format!("{:.3}", self_ratio.median),
                ours.rounds.to_string(),
                ours.at_most(target, self_ratio.is_quiet(tolerance)).word().into(),
            ]
        })
        .collect()
}
