//! Compares the time of `latlab import` with that of DuckDB from CSV to Parquet on one thread, for ten million lines, and the
//! memory of latlab for one million and for ten million lines. Both write to the same disk. The start of Python and the loading
//! of DuckDB are not counted; the start of latlab is.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

// Each bench uses only a part of the shared module.
#[allow(dead_code)]
mod judge;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use judge::options::Options;
use judge::paired::{Paired, median};
use judge::{programs, results};
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

const LINES: u64 = 10_000_000;
/// Rounds that are added at a time while the machine is not quiet.
const ROUNDS_STEP: usize = 15;
/// Permitted deviation of the median ratio of a program to itself from 1 (docs/design/0004-judging-our-own-cost.md).
const TOLERANCE: f64 = 0.01;
/// The most that latlab may take, as a multiple of DuckDB's time.
const TARGET: f64 = 1.5;
/// The most that the memory for ten million lines may be, as a multiple of that for one million.
const MEMORY_TARGET: f64 = 1.1;

/// Title, format, and how DuckDB reads it.
const ROWS: [(&str, Log, &str); 3] = [
    ("four times", Log::FourTimes, "delim=' ', header=false"),
    ("csv of seconds", Log::Csv, "header=true"),
    ("numbers", Log::Numbers, "header=false"),
];

/// Prints the seconds of a query on one thread.
const DUCKDB: &str = "
import duckdb, sys, time
log, options, table = sys.argv[1:]
connection = duckdb.connect()
connection.execute('SET threads = 1')
start = time.perf_counter()
connection.execute(f\"COPY (SELECT * FROM read_csv('{log}', {options})) TO '{table}' (FORMAT parquet)\")
print(time.perf_counter() - start)
";

/// Prints the seconds and the largest resident memory in KiB of a command.
const WATCHED: &str = "
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
";

#[derive(Clone, Copy, Debug)]
enum Log {
    FourTimes,
    Csv,
    Numbers,
}

#[derive(Clone, Copy, Debug)]
enum Contender {
    Latlab,
    DuckDb,
    DuckDbAgain,
}

/// Run time in each round, in s.
#[derive(Default)]
struct Rounds {
    latlab: Vec<f64>,
    duckdb: Vec<f64>,
    again: Vec<f64>,
}

fn main() {
    judge::begin(run);
}

fn run(options: &Options) -> Result<(), String> {
    let home = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    let mut rng = Pcg64Mcg::new(5);
    let (mut lines, mut raw) = (Vec::new(), Vec::new());
    for (title, log, reading) in ROWS.into_iter().filter(|(title, ..)| options.wants(title)) {
        let size = if options.quick { LINES / 100 } else { LINES };
        let path = log.write(home.path(), size, &mut rng)?;
        let row =
            Row { home: home.path(), log: &path, reading, cpu: options.cpus.0, is_bare: matches!(log, Log::Numbers) };
        let rounds = measure(title, &row, options, &mut rng)?;
        lines.push(judged(title, &rounds));
        let part = log.write(home.path(), size / 10, &mut rng)?;
        let memory = |log: &Path| Row { log, ..row }.run(Contender::Latlab).map(|figures| figures.kib);
        let (whole, tenth) = (memory(&path)?, memory(&part)?);
        lines.push(judged_memory(title, whole, tenth));
        raw.push(json!({
            "row": title, "latlab_s": rounds.latlab, "duckdb_s": rounds.duckdb, "duckdb_again_s": rounds.again,
            "kib": whole, "kib_of_a_tenth": tenth,
        }));
    }
    let head = ["what", "target", "ratio", "95 % interval", "itself", "latlab", "other", "rounds", "verdict"];
    results::write("import", &head, &lines, Value::from(raw), options.quick)
}

impl Log {
    /// Writes a log of so many `lines`, and returns its path.
    fn write(self, home: &Path, lines: u64, rng: &mut Pcg64Mcg) -> Result<PathBuf, String> {
        let path = home.join(format!("{self:?}-{lines}"));
        let mut fill = || -> std::io::Result<()> {
            let mut file = BufWriter::new(File::create(&path)?);
            if matches!(self, Log::Csv) {
                writeln!(file, "id,roundtrip_time [s]")?;
            }
            let mut sent = 1_700_000_000_000_000_000_u64;
            for id in 0..lines {
                let delay = 250_000 + rng.next_u64() % 100_000;
                sent += 1_000_000 + rng.next_u64() % 1_000;
                match self {
                    Log::FourTimes => {
                        let there = sent / 3 + delay / 2;
                        writeln!(file, "{id} {sent} {there} {} {}", there + 900, sent + delay)?;
                    }
                    Log::Csv => writeln!(file, "{id:>8},0.{delay:09}")?,
                    Log::Numbers => writeln!(file, "{}.{:03}", delay / 1_000, delay % 1_000)?,
                }
            }
            file.flush()
        };
        fill().map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
        Ok(path)
    }
}

/// The input of both programs.
#[derive(Clone, Copy)]
struct Row<'a> {
    home: &'a Path,
    log: &'a Path,
    reading: &'a str,
    cpu: u16,
    /// Whether the log does not state its unit.
    is_bare: bool,
}

/// What a run took.
struct RunFigures {
    seconds: f64,
    /// Largest resident memory; 0 of DuckDB.
    kib: f64,
}

impl Row<'_> {
    /// Runs a program on one CPU.
    fn run(&self, contender: Contender) -> Result<RunFigures, String> {
        let (store, table) = (self.home.join("store"), self.home.join("table.parquet"));
        let python = programs::target_folder().join("readers/bin/python");
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &self.cpu.to_string()]).arg(python).arg("-c");
        match contender {
            Contender::Latlab => {
                command.arg(WATCHED).arg(programs::latlab().get_program()).arg("import").arg(self.log);
                // The other logs state theirs.
                command.args(if self.is_bare { &["--unit", "us"][..] } else { &[] });
                command.arg("--store").arg(&store)
            }
            Contender::DuckDb | Contender::DuckDbAgain => {
                command.arg(DUCKDB).arg(self.log).arg(self.reading).arg(&table)
            }
        };
        let text = programs::output(&mut command)?;
        // What was written is not kept: the next run finds the same disk.
        _ = std::fs::remove_dir_all(&store);
        _ = std::fs::remove_file(&table);
        let mut figures = text.split_whitespace().filter_map(|word| word.parse().ok());
        let seconds = figures.next().ok_or_else(|| format!("`{text}` is not a time"))?;
        Ok(RunFigures { seconds, kib: figures.next().unwrap_or(0.0) })
    }
}

/// Runs rounds until the ratio of DuckDB to itself is within the tolerance, or their number is the maximum.
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
            let seconds = row.run(contender)?.seconds;
            match contender {
                Contender::Latlab => rounds.latlab.push(seconds),
                Contender::DuckDb => rounds.duckdb.push(seconds),
                Contender::DuckDbAgain => rounds.again.push(seconds),
            }
        }
        eprint!("\r{title}: round {} of {wanted}   ", done + 1);
    }
    eprintln!();
    Ok(rounds)
}

fn shuffled(rng: &mut Pcg64Mcg) -> [Contender; 3] {
    let mut order = [Contender::Latlab, Contender::DuckDb, Contender::DuckDbAgain];
    for last in (1..order.len()).rev() {
        order.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
    order
}

fn self_ratio(rounds: &Rounds) -> Paired {
    Paired::of(&rounds.again, &rounds.duckdb)
}

fn judged(title: &str, rounds: &Rounds) -> Vec<String> {
    let (ours, self_ratio) = (Paired::of(&rounds.latlab, &rounds.duckdb), self_ratio(rounds));
    let median_text = |seconds: &[f64]| {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        format!("{:.2} s", median(&sorted))
    };
    vec![
        title.into(),
        format!("≤ {TARGET:.2}"),
        format!("{:.3}", ours.median),
        ours.interval(),
        format!("{:.3}", self_ratio.median),
        median_text(&rounds.latlab),
        median_text(&rounds.duckdb),
        ours.rounds.to_string(),
        ours.at_most(TARGET, self_ratio.is_quiet(TOLERANCE)).word().into(),
    ]
}

fn judged_memory(title: &str, whole: f64, tenth: f64) -> Vec<String> {
    let mib = |kib: f64| format!("{:.1} MiB", kib / 1024.0);
    let verdict = if whole <= MEMORY_TARGET * tenth { "met" } else { "NOT MET" };
    vec![
        format!("{title}: memory, ten times the lines"),
        format!("≤ {MEMORY_TARGET:.2}"),
        format!("{:.3}", whole / tenth),
        "–".into(),
        "–".into(),
        mib(whole),
        mib(tenth),
        "1".into(),
        verdict.into(),
    ]
}
