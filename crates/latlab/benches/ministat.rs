//! Compares the time of `latlab compare --ministat` and of Debian's ministat for a million lines: the whole process, from
//! start to exit, on one CPU; its output is discarded.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

// Each bench uses only a part of the shared module.
#[allow(dead_code)]
mod judge;

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use judge::options::Options;
use judge::paired::{Paired, median};
use judge::{programs, results};
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

/// Lines of one group. The number is odd, since the two programs compute the median of an even number of values
/// differently (docs/comparing.md).
const LINES: usize = 999_999;
/// Title, options (after `--ministat` and after `ministat`), number of groups, lines of a group.
const ROWS: [(&str, &str, usize, usize); 3] = [
    ("figures of one group", "-n", 1, LINES),
    ("plot and figures of one group", "", 1, LINES),
    ("plot, figures and test of two groups", "", 2, LINES / 2),
];
/// Rounds that are added at a time while the machine is not quiet.
const ROUNDS_STEP: usize = 15;
/// Permitted deviation of the median ratio of a program to itself from 1 (docs/design/0004-judging-our-own-cost.md).
const TOLERANCE: f64 = 0.01;

#[derive(Clone, Copy, Debug)]
enum Contender {
    Latlab,
    Ministat,
    MinistatAgain,
}

/// Run time in each round, in s.
#[derive(Default)]
struct Rounds {
    latlab: Vec<f64>,
    ministat: Vec<f64>,
    again: Vec<f64>,
}

fn main() {
    judge::begin(run);
}

fn run(options: &Options) -> Result<(), String> {
    let home = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    let mut rng = Pcg64Mcg::new(5);
    let (mut lines, mut raw) = (Vec::new(), Vec::new());
    for (title, flags, groups, size) in ROWS.into_iter().filter(|(title, ..)| options.wants(title)) {
        let size = if options.quick { size / 100 } else { size };
        let files =
            (0..groups).map(|group| write(home.path(), group, size | 1, &mut rng)).collect::<Result<Vec<_>, _>>()?;
        let row = Row { home: home.path(), flags, files: &files, cpu: options.cpus.0 };
        check_agreement(&row)?;
        let rounds = measure(title, &row, options, &mut rng)?;
        lines.push(judged(title, &rounds));
        raw.push(json!({
            "row": title, "latlab_s": rounds.latlab, "ministat_s": rounds.ministat, "ministat_again_s": rounds.again,
        }));
    }
    let head = ["what", "target", "ratio", "95 % interval", "itself", "latlab, s", "ministat, s", "rounds", "verdict"];
    results::write("ministat", &head, &lines, Value::from(raw), options.quick)
}

/// The input of both programs.
struct Row<'a> {
    home: &'a Path,
    flags: &'a str,
    files: &'a [String],
    cpu: u16,
}

/// Writes a file of `lines` delays of about 50 with three decimals, and returns its name.
fn write(home: &Path, group: usize, lines: usize, rng: &mut Pcg64Mcg) -> Result<String, String> {
    let mut text = String::new();
    for _ in 0..lines {
        // The sum of three uniform numbers has a bell shape with tails.
        let thousandths: u64 = (0..3).map(|_| rng.next_u64() % 10_000).sum::<u64>() + 35_000 + 100 * group as u64;
        writeln!(text, "{}.{:03}", thousandths / 1_000, thousandths % 1_000).map_err(|error| error.to_string())?;
    }
    let name = format!("group-{group}");
    std::fs::write(home.join(&name), text).map_err(|error| format!("cannot write `{name}`: {error}"))?;
    Ok(name)
}

impl Row<'_> {
    fn command(&self, contender: Contender) -> Command {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &self.cpu.to_string()]);
        match contender {
            Contender::Latlab => command.arg(programs::latlab().get_program()).args(["compare", "--ministat"]),
            Contender::Ministat | Contender::MinistatAgain => command.arg("ministat"),
        };
        command.args(self.flags.split_whitespace()).args(self.files).current_dir(self.home).stdin(Stdio::null());
        command
    }

    /// Seconds from start to exit.
    fn run_time(&self, contender: Contender) -> Result<f64, String> {
        let mut command = self.command(contender);
        command.stdout(Stdio::null());
        let start = Instant::now();
        let status =
            command.status().map_err(|error| format!("cannot start {command:?}: {error}; `just bench-setup`"))?;
        let seconds = start.elapsed().as_secs_f64();
        if status.success() { Ok(seconds) } else { Err(format!("{command:?} ended with {status}")) }
    }
}

/// Checks that both programs print the same figures: otherwise their speeds cannot be compared.
fn check_agreement(row: &Row) -> Result<(), String> {
    let figures = |contender| -> Result<Vec<f64>, String> {
        let text = programs::output(&mut row.command(contender))?;
        let lines = text.lines().filter(|line| ["x ", "+ "].iter().any(|start| line.starts_with(start)));
        Ok(lines.flat_map(|line| line.split_whitespace().filter_map(|word| word.parse().ok())).collect())
    };
    let (ours, theirs) = (figures(Contender::Latlab)?, figures(Contender::Ministat)?);
    // Sums of a million values differ in the eighth digit, by the order of adding
    let close = |(one, other): (&f64, &f64)| (one - other).abs() <= 1e-6 * other.abs();
    match ours.len() == theirs.len() && ours.len() >= 6 && ours.iter().zip(&theirs).all(close) {
        true => Ok(()),
        false => Err(format!("latlab says {ours:?}, ministat {theirs:?}")),
    }
}

/// Runs rounds until the ratio of ministat to itself is within the tolerance, or their number is the maximum.
fn measure(title: &str, row: &Row, options: &Options, rng: &mut Pcg64Mcg) -> Result<Rounds, String> {
    let mut rounds = Rounds::default();
    let mut wanted = options.rounds;
    for done in 0.. {
        if done == wanted {
            if wanted >= options.rounds_max || self_ratio(&rounds).is_quiet(TOLERANCE) {
                break;
            }
            wanted = (wanted + ROUNDS_STEP).min(options.rounds_max);
        }
        for contender in shuffled(rng) {
            let seconds = row.run_time(contender)?;
            match contender {
                Contender::Latlab => rounds.latlab.push(seconds),
                Contender::Ministat => rounds.ministat.push(seconds),
                Contender::MinistatAgain => rounds.again.push(seconds),
            }
        }
        eprint!("\r{title}: round {} of {wanted}   ", done + 1);
    }
    eprintln!();
    Ok(rounds)
}

fn shuffled(rng: &mut Pcg64Mcg) -> [Contender; 3] {
    let mut order = [Contender::Latlab, Contender::Ministat, Contender::MinistatAgain];
    for last in (1..order.len()).rev() {
        order.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
    order
}

fn self_ratio(rounds: &Rounds) -> Paired {
    Paired::of(&rounds.again, &rounds.ministat)
}

fn judged(title: &str, rounds: &Rounds) -> Vec<String> {
    let (ours, self_ratio) = (Paired::of(&rounds.latlab, &rounds.ministat), self_ratio(rounds));
    let median_text = |seconds: &[f64]| {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        format!("{:.3}", median(&sorted))
    };
    vec![
        title.into(),
        "≤ 1.00".into(),
        format!("{:.3}", ours.median),
        ours.interval(),
        format!("{:.3}", self_ratio.median),
        median_text(&rounds.latlab),
        median_text(&rounds.ministat),
        ours.rounds.to_string(),
        ours.at_most(1.0, self_ratio.is_quiet(TOLERANCE)).word().into(),
    ]
}
