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
use judge::run_times::{Contender, RunTimes};
use judge::{programs, results};
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

const LINES: u64 = 10_000_000;
/// The most that latlab may take, as a multiple of DuckDB's time.
const TARGET: f64 = 1.2;
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
        let times = RunTimes::measure(title, options, &mut rng, |contender| row.run(contender).map(|run| run.seconds))?;
        lines.push(times.judged(title, TARGET));
        let part = log.write(home.path(), size / 10, &mut rng)?;
        let memory = |log: &Path| Row { log, ..row }.run(Contender::Latlab).map(|figures| figures.kib);
        let (whole, tenth) = (memory(&path)?, memory(&part)?);
        lines.push(judged_memory(title, whole, tenth));
        let memory = [("kib".to_owned(), json!(whole)), ("kib_of_a_tenth".to_owned(), json!(tenth))];
        raw.push(Value::Object(times.raw(title).into_iter().chain(memory).collect()));
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
            Contender::Peer | Contender::PeerAgain => command.arg(DUCKDB).arg(self.log).arg(self.reading).arg(&table),
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
