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
use judge::run_times::{Contender, RunTimes};
use judge::{programs, results};
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use serde_json::Value;

/// Lines of one group. The number is odd, since the two programs compute the median of an even number of values
/// differently (docs/comparing.md).
const LINES: usize = 999_999;
/// Largest ratio of the run time to that of ministat.
const TARGET: f64 = 1.0;
/// Title, options (after `--ministat` and after `ministat`), number of groups, lines of a group.
const ROWS: [(&str, &str, usize, usize); 3] = [
    ("figures of one group", "-n", 1, LINES),
    ("plot and figures of one group", "", 1, LINES),
    ("plot, figures and test of two groups", "", 2, LINES / 2),
];

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
        let times = RunTimes::measure(title, options, &mut rng, |contender| row.run_time(contender))?;
        lines.push(times.judged(title, TARGET));
        raw.push(Value::Object(times.raw(title)));
    }
    let head = ["what", "target", "ratio", "95 % interval", "itself", "latlab", "ministat", "rounds", "verdict"];
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
            Contender::Peer | Contender::PeerAgain => command.arg("ministat"),
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
    let (ours, theirs) = (figures(Contender::Latlab)?, figures(Contender::Peer)?);
    // Sums of a million values differ in the eighth digit, by the order of adding
    let close = |(one, other): (&f64, &f64)| (one - other).abs() <= 1e-6 * other.abs();
    if ours.len() == theirs.len() && ours.len() >= 6 && ours.iter().zip(&theirs).all(close) {
        Ok(())
    } else {
        Err(format!("latlab says {ours:?}, ministat {theirs:?}"))
    }
}
