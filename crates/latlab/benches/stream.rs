//! Compares the delivered rate of `latlab stream` with that of the bare stream, iperf3 and, if installed, netperf, in
//! paired rounds on the same CPUs. The bare stream is the one with the fastest of several receivers, which is found
//! before. It runs twice in each round, so that its ratio to itself shows the noise. Then compares delivered with
//! requested rates.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

// Each bench uses only a part of the shared modules.
#[allow(dead_code)]
mod bare;
#[allow(dead_code)]
mod judge;
#[path = "stream/paced.rs"]
mod paced;

use std::collections::BTreeMap;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use latlab::facts::Capability;
use latlab::host::HostRoot;
use latlab::host::facts::rights;
use latlab::plan::{EndSpec, SendMode, SenderSocketOptions, TransportKind};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use bare::receiver::{BareReceiver, ReceiveMode};
use bare::{Order, Stream};
use judge::options::Options;
use judge::paired::Paired;
use judge::programs::{self, BackgroundProcess};
use judge::rates;
use judge::results;

const MODES: [&str; 3] = ["send", "sendmmsg", "gso"];
const SIZES: [u32; 4] = [64, 1472, 8192, 32_768];
/// Past the network stack a packet must fit an Ethernet frame.
const XDP_SIZES: [u32; 2] = [64, 1472];
/// Rounds added at a time while the bare stream does not agree with itself.
const ROUNDS_STEP: usize = 10;
const BARE_TARGET: f64 = 0.97;
const PEER_TARGET: f64 = 1.00;
/// The rate with segmentation offload relative to plain sends, with packets that fit an Ethernet frame.
const GSO_TARGET: f64 = 15.0;
const GSO_SIZE: u32 = 1472;
/// Maximum number of packets in a burst, the default of `latlab stream`.
const BATCH: u64 = 64;
/// The receivers of the bare stream.
const RECEIVERS: [Receiver; 7] = [
    Receiver { mode: ReceiveMode::Pause, merges: true },
    Receiver { mode: ReceiveMode::Pause, merges: false },
    Receiver { mode: ReceiveMode::Recvmmsg, merges: true },
    Receiver { mode: ReceiveMode::Recvmmsg, merges: false },
    Receiver { mode: ReceiveMode::Ppoll, merges: false },
    Receiver { mode: ReceiveMode::Recvfrom, merges: true },
    Receiver { mode: ReceiveMode::Recvfrom, merges: false },
];
/// Rounds of all receivers in which the fastest is found.
const RECEIVER_ROUNDS: usize = 5;
/// The address at which the peers listen, which other programs are unlikely to use.
const IPERF3_PORT: &str = "21511";
const NETPERF_PORT: &str = "21512";

/// A receiver of the bare stream.
#[derive(Clone, Copy)]
struct Receiver {
    mode: ReceiveMode,
    /// Whether the kernel may merge packets.
    merges: bool,
}

impl Receiver {
    fn title(self) -> String {
        format!("{}{}", self.mode.word(), if self.merges { ", UDP_GRO" } else { "" })
    }
}

struct Row<'a> {
    /// Past the network stack, between two private namespaces.
    xdp: bool,
    mode: &'static str,
    size: u32,
    ipv6: bool,
    cpus: (u16, u16),
    seconds: u32,
    store: &'a str,
}

impl Row<'_> {
    fn loopback(&self) -> &'static str {
        if self.ipv6 { "::1" } else { "127.0.0.1" }
    }

    fn title(&self) -> String {
        format!(
            "{}, {} B, {}",
            if self.xdp { format!("xdp {}", self.mode) } else { self.mode.to_owned() },
            self.size,
            if self.ipv6 { "IPv6" } else { "IPv4" }
        )
    }

    /// The contenders of a row. The peers use plain sends, with which segmentation offload is compared too.
    fn contenders(&self) -> Vec<Contender> {
        let mut racing = vec![Contender::Latlab, Contender::Bare, Contender::BareAgain];
        if self.xdp {
            return racing;
        }
        if self.mode == "send" || (self.mode == "gso" && self.size == GSO_SIZE) {
            racing.push(Contender::Iperf3);
        }
        if self.mode == "send" && programs::is_installed("netperf") {
            racing.push(Contender::Netperf);
        }
        racing
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Contender {
    Latlab,
    Bare,
    BareAgain,
    Iperf3,
    Netperf,
}

/// Delivered bits a second.
type Rounds = BTreeMap<Contender, Vec<f64>>;

fn main() {
    bare::run_if_asked();
    judge::begin(run);
}

fn run(options: &Options) -> Result<(), String> {
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    println!("order of the contenders from seed {seed}");
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let store = tempfile::tempdir().map_err(|error| format!("no temporary store: {error}"))?;
    let store = store.path().to_string_lossy();
    let (mut table, mut raw) = (Vec::new(), Vec::new());
    let sizes = if options.quick { &SIZES[1..2] } else { &SIZES[..] };
    let row = |mode, size, ipv6| Row { xdp: false, mode, size, ipv6, cpus: options.cpus, seconds: 1, store: &store };
    let of_mode = |mode| sizes.iter().flat_map(move |size| [row(mode, *size, false), row(mode, *size, true)]);
    let of_xdp = XDP_SIZES
        .into_iter()
        .flat_map(|size| ["send", "batch"].map(|mode| Row { xdp: true, ..row(mode, size, false) }));
    let has_rights = rights(&HostRoot::live())
        .is_ok_and(|rights| rights.has(Capability::SysAdmin) && rights.has(Capability::NetAdmin));
    if !has_rights {
        println!("without root no rows past the network stack");
    }
    let of_xdp = of_xdp.filter(|_| has_rights);
    let rows = MODES.into_iter().flat_map(of_mode).chain(of_xdp);
    for row in rows.filter(|row| options.wants(&row.title())) {
        let receiver = if row.xdp { RECEIVERS[0] } else { fastest_receiver(&row, options, &mut rng)? };
        let rounds = measure(&row, receiver, options, &mut rng)?;
        table.extend(judged(&row, receiver, &rounds));
        let receiver = if row.xdp { "AF_XDP".to_owned() } else { receiver.title() };
        raw.push(json!({ "row": row.title(), "receiver": receiver, "delivered_bps": raw_rounds(&rounds) }));
    }
    let (mut paced_table, mut paced_raw) = (Vec::new(), Vec::new());
    for mode in MODES {
        let row = Row { seconds: 2, ..row(mode, GSO_SIZE, false) };
        if options.wants(&format!("paced {}", row.mode)) {
            let (lines, figures) = paced::run(&row, BATCH, options)?;
            paced_table.extend(lines);
            paced_raw.push(json!({ "row": row.title(), "figures": figures }));
        }
    }
    let head = ["mode", "rate", "delivered / asked for (median)", "target", "runs", "verdict"];
    results::write("stream-paced", &head, &paced_table, Value::from(paced_raw), options.quick)?;
    let head =
        ["mode", "against", "delivered", "target", "median ratio", "95 % interval", "bare / bare", "rounds", "verdict"];
    results::write("stream", &head, &table, Value::from(raw), options.quick)
}

/// The receiver with which the bare stream has the highest median rate.
fn fastest_receiver(row: &Row, options: &Options, rng: &mut Pcg64Mcg) -> Result<Receiver, String> {
    let mut rates = RECEIVERS.map(|receiver| (receiver, Vec::new()));
    for _ in 0..if options.quick { 1 } else { RECEIVER_ROUNDS } {
        for index in shuffled((0..rates.len()).collect(), rng) {
            let (receiver, found) = &mut rates[index];
            found.push(rates::bare(&programs::output(&mut bare_stream(row, *receiver).command())?)?);
        }
    }
    let mut medians = rates.map(|(receiver, mut found)| {
        found.sort_by(f64::total_cmp);
        (receiver, judge::paired::median(&found))
    });
    medians.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    for (receiver, median) in medians {
        eprintln!("{}: receiver {}: {:.3} Gbit/s", row.title(), receiver.title(), median / 1e9);
    }
    Ok(medians[0].0)
}

/// Runs rounds until the ratio of the bare stream to itself is within the tolerance, or their number is the maximum.
fn measure(row: &Row, receiver: Receiver, options: &Options, rng: &mut Pcg64Mcg) -> Result<Rounds, String> {
    let mut rounds = Rounds::new();
    let mut wanted = options.rounds;
    for done in 0.. {
        if done == wanted {
            if wanted >= options.rounds_max || ratio(&rounds, Contender::BareAgain, Contender::Bare).is_quiet(0.01) {
                break;
            }
            wanted = (wanted + ROUNDS_STEP).min(options.rounds_max);
        }
        for contender in shuffled(row.contenders(), rng) {
            rounds.entry(contender).or_default().push(race(contender, row, receiver)?);
        }
        eprint!("\r{}: round {} of {wanted}   ", row.title(), done + 1);
    }
    eprintln!();
    Ok(rounds)
}

fn shuffled<T>(mut order: Vec<T>, rng: &mut Pcg64Mcg) -> Vec<T> {
    for last in (1..order.len()).rev() {
        order.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
    order
}

fn race(contender: Contender, row: &Row, receiver: Receiver) -> Result<f64, String> {
    match contender {
        Contender::Latlab => rates::latlab(&programs::output(&mut latlab_stream(row))?),
        Contender::Bare | Contender::BareAgain => {
            rates::bare(&programs::output(&mut bare_stream(row, receiver).command())?)
        }
        Contender::Iperf3 => race_iperf3(row),
        Contender::Netperf => race_netperf(row),
    }
}

fn add_end_options(command: &mut Command, row: &Row) {
    command.args(["--mode", row.mode, "-s", &row.size.to_string(), "-d", &format!("{}s", row.seconds)]);
    command.args(["--cpu", &row.cpus.0.to_string(), "--peer-cpu", &row.cpus.1.to_string()]);
    if row.ipv6 {
        command.arg("-6");
    }
}

fn latlab_stream(row: &Row) -> Command {
    let mut command = programs::latlab();
    if row.xdp {
        command.args(["stream", "lab", "--transport", "xdp"])
    } else {
        command.args(["stream", "local"])
    };
    add_end_options(&mut command, row);
    command.args(["--rate", "max", "--warmup", "100ms", "--json", "-q", "--store", row.store]);
    command
}

fn bare_stream(row: &Row, receiver: Receiver) -> Order {
    let end = |cpu| EndSpec { cpu: Some(cpu), ..EndSpec::SYSTEM };
    let mode = SendMode::ALL.into_iter().find(|mode| mode.word() == row.mode).unwrap_or(SendMode::Send);
    let sending = SenderSocketOptions { mode, connect: false, ..SenderSocketOptions::PLAIN };
    Order::Stream(Stream {
        transport: if row.xdp { TransportKind::Xdp } else { TransportKind::Udp },
        sending,
        receiver: BareReceiver::new(receiver.mode, receiver.merges, sending, row.size),
        size_bytes: row.size,
        span_ns: i64::from(row.seconds) * 1_000_000_000,
        ipv6: row.ipv6,
        here: end(row.cpus.0),
        peer: end(row.cpus.1),
    })
}

fn race_iperf3(row: &Row) -> Result<f64, String> {
    let pinned = |cpu: u16| {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &cpu.to_string(), "iperf3", "-p", IPERF3_PORT]);
        command
    };
    let _receiver = BackgroundProcess::start(pinned(row.cpus.1).args(["-s", "-1", "-B", row.loopback()]))?;
    sleep(Duration::from_millis(200));
    let mut sender = pinned(row.cpus.0);
    sender.args(["-c", row.loopback(), "-u", "-b", "0", "-J"]);
    sender.args(["-l", &row.size.to_string(), "-t", &row.seconds.to_string()]);
    rates::iperf3(&programs::output(&mut sender)?)
}

fn race_netperf(row: &Row) -> Result<f64, String> {
    let pinned = |cpu: u16, program: &str| {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &cpu.to_string(), program, "-p", NETPERF_PORT]);
        command
    };
    let _receiver = BackgroundProcess::start(pinned(row.cpus.1, "netserver").args(["-D", "-L", row.loopback()]))?;
    sleep(Duration::from_millis(200));
    let mut sender = pinned(row.cpus.0, "netperf");
    sender.args(["-H", row.loopback(), "-P", "0", "-t", "UDP_STREAM", "-l", &row.seconds.to_string(), "--"]);
    sender.args(["-m", &row.size.to_string(), "-R", "1"]);
    rates::netperf(&programs::output(&mut sender)?)
}

fn ratio(rounds: &Rounds, one: Contender, other: Contender) -> Paired {
    Paired::of(&rounds[&one], &rounds[&other])
}

/// The lines of a row: relative to the bare stream, and relative to each peer.
fn judged(row: &Row, receiver: Receiver, rounds: &Rounds) -> Vec<Vec<String>> {
    let mut sorted = rounds[&Contender::Latlab].clone();
    sorted.sort_by(f64::total_cmp);
    let delivered = judge::paired::median(&sorted) / 1e9;
    let self_ratio = ratio(rounds, Contender::BareAgain, Contender::Bare);
    let receiver = if row.xdp { "AF_XDP".to_owned() } else { receiver.title() };
    let against = [
        (format!("bare stream ({receiver})"), Contender::Bare, BARE_TARGET),
        ("iperf3 -u -b 0".into(), Contender::Iperf3, if row.mode == "gso" { GSO_TARGET } else { PEER_TARGET }),
        ("netperf UDP_STREAM".into(), Contender::Netperf, PEER_TARGET),
    ];
    let raced = against.into_iter().filter(|(_, contender, _)| rounds.contains_key(contender));
    raced
        .map(|(title, contender, target)| {
            let ours = ratio(rounds, Contender::Latlab, contender);
            vec![
                row.title(),
                title,
                format!("{delivered:.2} Gbit/s"),
                format!("≥ {target:.2}"),
                format!("{:.3}", ours.median),
                ours.interval(),
                format!("{:.3}", self_ratio.median),
                ours.rounds.to_string(),
                ours.at_least(target, self_ratio.is_quiet(0.01)).word().into(),
            ]
        })
        .collect()
}

fn raw_rounds(rounds: &Rounds) -> Value {
    let named = rounds.iter().map(|(contender, rates)| (format!("{contender:?}").to_lowercase(), json!(rates)));
    Value::Object(named.collect())
}
