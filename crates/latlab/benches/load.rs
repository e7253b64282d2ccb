//! The error of `latlab load --load cpu=P%` compared with that of stress-ng's `--cpu-load`, from the CPU time that the
//! kernel accounts to their process trees. The share in `/proc/stat` is shown but not judged: on kernels that sample it
//! at the timer tick, it is wrong for loads whose period is synchronous with the tick.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

// Each bench uses only a part of the shared module.
#[allow(dead_code)]
mod judge;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use judge::options::Options;
use judge::paired::median;
use judge::{programs, results};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const SHARES: [u32; 3] = [20, 50, 80];
/// The largest error that is allowed to latlab in any round, in percentage points.
const PROMISE: f64 = 1.0;
/// How much further off than stress-ng the median may be, in points.
const ALLOWANCE: f64 = 0.3;
const ROUNDS: usize = 5;
/// The control of a load needs a second to settle.
const SETTLE: Duration = Duration::from_millis(1_500);
const WINDOW: Duration = Duration::from_secs(5);

/// What else runs on the host while a load is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Neighbour {
    None,
    Probe,
    Process,
}

impl Neighbour {
    const ALL: [Neighbour; 3] = [Neighbour::None, Neighbour::Probe, Neighbour::Process];

    fn words(self) -> &'static str {
        match self {
            Neighbour::None => "alone",
            Neighbour::Probe => "beside a probe every 10 ms",
            Neighbour::Process => "beside a process that has 10 % of one CPU",
        }
    }

    fn start(self) -> Result<Option<Tree>, String> {
        match self {
            Neighbour::None => Ok(None),
            Neighbour::Probe => {
                let mut probe = programs::latlab();
                Tree::start(probe.args(["ping", "-d", "1m", "-i", "10ms", "--no-record", "-q"])).map(Some)
            }
            Neighbour::Process => {
                let mut stress = Command::new("stress-ng");
                Tree::start(stress.args(["--quiet", "--cpu", "1", "--cpu-load", "10", "--timeout", "60"])).map(Some)
            }
        }
    }
}

/// Shares of all CPUs in percent, over one window.
#[derive(Clone, Copy, Debug)]
struct Seen {
    by_cpu_time: f64,
    by_proc_stat: f64,
}

fn main() {
    judge::begin(run);
}

fn run(options: &Options) -> Result<(), String> {
    let cpus = thread::available_parallelism().map_err(|error| error.to_string())?.get();
    let rounds = if options.quick { 1 } else { ROUNDS };
    let (mut rows, mut raw) = (Vec::new(), Vec::new());
    for neighbour in Neighbour::ALL {
        for share in SHARES {
            let title = format!("{share} %, {}", neighbour.words());
            if options.wants(&title) {
                let (row, document) = compare(share, neighbour, cpus, rounds)?;
                rows.push([vec![title], row].concat());
                raw.push(document);
            }
        }
    }
    if options.wants("locked to the tick") {
        rows.push(locked_to_the_tick(cpus)?);
    }
    let head = ["load", "latlab's error, points: median (worst)", "stress-ng's", "verdict", "/proc/stat saw of latlab"];
    results::write("load", &head, &rows, json!(raw), options.quick)
}

/// One row: the two take turns, and who begins changes from round to round.
fn compare(share: u32, neighbour: Neighbour, cpus: usize, rounds: usize) -> Result<(Vec<String>, Value), String> {
    let (mut ours, mut theirs, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        for turn in 0..2 {
            let _neighbour = neighbour.start()?;
            if (round + turn) % 2 == 0 {
                let seen = watch(&mut latlab(&format!("cpu={share}%")), cpus)?;
                ours.push((seen.by_cpu_time - f64::from(share)).abs());
                shown.push(seen.by_proc_stat);
            } else {
                let seen = watch(&mut stress_ng(share, cpus), cpus)?;
                theirs.push((seen.by_cpu_time - f64::from(share)).abs());
            }
        }
    }
    for figures in [&mut ours, &mut theirs, &mut shown] {
        figures.sort_by(f64::total_cmp);
    }
    let worst = |figures: &[f64]| figures.last().copied().unwrap_or(f64::NAN);
    let met = worst(&ours) <= PROMISE && median(&ours) <= median(&theirs) + ALLOWANCE;
    let row = vec![
        format!("{:.2} ({:.2})", median(&ours), worst(&ours)),
        format!("{:.2} ({:.2})", median(&theirs), worst(&theirs)),
        if met { "met" } else { "**not met**" }.to_owned(),
        format!("{:.1} %", median(&shown)),
    ];
    let document = json!({
        "share": share, "beside": neighbour.words(), "latlab_error_points": ours, "stress_ng_error_points": theirs,
        "proc_stat_percent": shown, "met": met,
    });
    Ok((row, document))
}

/// A load whose period is synchronous with the tick, which the default period avoids; shown, not judged.
fn locked_to_the_tick(cpus: usize) -> Result<Vec<String>, String> {
    let seen = watch(&mut latlab("cpu=50%:period=20ms"), cpus)?;
    Ok(vec![
        "50 % every 20 ms, locked to the tick".into(),
        format!("{:.2}", (seen.by_cpu_time - 50.0).abs()),
        "–".into(),
        "not judged".into(),
        format!("{:.1} %", seen.by_proc_stat),
    ])
}

fn latlab(load: &str) -> Command {
    let mut command = programs::latlab();
    command.args(["load", "-q", "-d", "1m", "--load", load]);
    command
}

fn stress_ng(share: u32, cpus: usize) -> Command {
    let mut command = Command::new("stress-ng");
    command.args(["--quiet", "--timeout", "60", "--cpu", &cpus.to_string(), "--cpu-load", &share.to_string()]);
    command
}

/// Starts `command`, and looks at it for a window after it has settled.
fn watch(command: &mut Command, cpus: usize) -> Result<Seen, String> {
    let tree = Tree::start(command)?;
    thread::sleep(SETTLE);
    let (start, used, busy) = (Instant::now(), tree.cpu_seconds()?, busy_seconds()?);
    thread::sleep(WINDOW);
    let (used, busy) = (tree.cpu_seconds()? - used, busy_seconds()? - busy);
    let whole = start.elapsed().as_secs_f64() * cpus as f64;
    Ok(Seen { by_cpu_time: used / whole * 100.0, by_proc_stat: busy / whole * 100.0 })
}

/// A process and all that it starts. Dropping this value sends SIGTERM to the process and waits for its end.
struct Tree(Child);

impl Tree {
    fn start(command: &mut Command) -> Result<Tree, String> {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.spawn().map(Tree).map_err(|error| format!("cannot start {command:?}: {error}; `just bench-setup`"))
    }

    /// CPU time of every thread of the tree, by the scheduler's account in nanoseconds.
    fn cpu_seconds(&self) -> Result<f64, String> {
        let mut pids = vec![self.0.id()];
        let mut next = 0;
        while let Some(pid) = pids.get(next).copied() {
            next += 1;
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
            pids.extend(children.flat_map(|text| text.split(' ').flat_map(str::parse).collect::<Vec<u32>>()));
        }
        let tasks = pids.iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/task"))).flatten().flatten();
        let times = tasks.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
        let nanos: f64 = times.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum();
        if nanos > 0.0 { Ok(nanos / 1e9) } else { Err("the kernel tells no schedstat, or the load is gone".into()) }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // stress-ng's workers end when it is asked to, not when it is killed.
        let pid = Pid::from_raw(self.0.id() as i32);
        let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        let _ = self.0.wait();
    }
}

/// Busy time of all CPUs as `/proc/stat` has it: user, nice, system, irq and softirq, in ticks of 10 ms.
fn busy_seconds() -> Result<f64, String> {
    let text = fs::read_to_string("/proc/stat").map_err(|error| format!("cannot read `/proc/stat`: {error}"))?;
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|ticks| ticks.parse().ok()).collect();
    let of = |index: usize| ticks.get(index).copied().unwrap_or_default();
    Ok([0, 1, 2, 5, 6].map(of).iter().sum::<f64>() / 100.0)
}
