//! The time to compare 60 runs of 50,000 probes, relative to the time to read them. Reading decodes every row of every
//! recording once, in the columns that the comparison needs, one recording after the other. Comparing processes several
//! runs in parallel, as the command does. Both run in this process, so that no process start is included.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

// Each bench uses only a part of the shared module.
#[allow(dead_code)]
mod judge;

use std::fs;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use judge::options::Options;
use judge::paired::{Paired, median};
use judge::{programs, results};
use latlab::analysis::comparison::{
    ComparisonOptions, ComparisonRequest, ObservedRun, RunGroups, compare, default_estimands,
};
use latlab::metric::Metric;
use latlab::platform::parallel_map;
use latlab::recording::{ProbeColumn, Recording};
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

const RUNS: usize = 60;
const PROBES: u64 = 50_000;
/// Permitted deviation from 1 of the ratio of two readings.
const TOLERANCE: f64 = 0.01;
/// Rounds that are added at a time while the machine is not quiet.
const ROUNDS_STEP: usize = 15;

/// Seconds of each round.
#[derive(Default)]
struct Rounds {
    compared: Vec<f64>,
    read: Vec<f64>,
    again: Vec<f64>,
}

#[derive(Clone, Copy)]
enum Contender {
    Compare,
    Read,
    ReadAgain,
}

fn main() {
    judge::begin(run);
}

fn run(options: &Options) -> Result<(), String> {
    let home = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    let probes = if options.quick { PROBES / 50 } else { PROBES };
    let recordings = record(home.path(), probes)?;
    let rounds = measure(&recordings, options)?;
    let (ours, self_ratio) = (Paired::of(&rounds.compared, &rounds.read), self_ratio(&rounds));
    let median_ms = |seconds: &[f64]| {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        format!("{:.1}", 1_000.0 * median(&sorted))
    };
    let line = vec![
        format!("compare {RUNS} runs of {probes} probes"),
        "≤ 2.00".into(),
        format!("{:.3}", ours.median),
        ours.interval(),
        format!("{:.3}", self_ratio.median),
        median_ms(&rounds.compared),
        median_ms(&rounds.read),
        ours.rounds.to_string(),
        ours.at_most(2.0, self_ratio.is_quiet(TOLERANCE)).word().into(),
    ];
    let head = ["what", "target", "ratio", "95 % interval", "itself", "compare, ms", "read, ms", "rounds", "verdict"];
    let raw = json!({ "compare_s": rounds.compared, "read_s": rounds.read, "read_again_s": rounds.again });
    results::write("compare", &head, &[line], Value::from(vec![raw]), options.quick)
}

/// Records one run and copies it. The figures do not matter, but each recording must consist of separate files.
fn record(home: &Path, probes: u64) -> Result<Vec<PathBuf>, String> {
    let first = home.join("run-0");
    let mut command = programs::latlab();
    command.args(["ping", "-q", "-n", &probes.to_string(), "--output"]).arg(&first);
    programs::output(&mut command)?;
    let copy = |number: usize| -> Result<PathBuf, String> {
        let to = home.join(format!("run-{number}"));
        let copied = || -> std::io::Result<()> {
            fs::create_dir(&to)?;
            for entry in fs::read_dir(&first)? {
                let file = entry?;
                fs::copy(file.path(), to.join(file.file_name()))?;
            }
            Ok(())
        };
        copied().map_err(|error| format!("cannot copy the recording: {error}"))?;
        Ok(to)
    };
    let copies = (1..RUNS).map(copy).collect::<Result<Vec<_>, _>>()?;
    Ok([vec![first], copies].concat())
}

fn measure(recordings: &[PathBuf], options: &Options) -> Result<Rounds, String> {
    let mut rounds = Rounds::default();
    let mut random = Pcg64Mcg::new(5);
    let mut wanted = options.rounds;
    // the page cache holds them from here on
    read(recordings)?;
    for done in 0.. {
        if done == wanted {
            if wanted >= options.rounds_max || self_ratio(&rounds).is_quiet(TOLERANCE) {
                break;
            }
            wanted = (wanted + ROUNDS_STEP).min(options.rounds_max);
        }
        let mut order = [Contender::Compare, Contender::Read, Contender::ReadAgain];
        for last in (1..order.len()).rev() {
            order.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
        }
        for contender in order {
            let start = Instant::now();
            match contender {
                Contender::Compare => judged(recordings)?,
                Contender::Read | Contender::ReadAgain => read(recordings)?,
            }
            let seconds = start.elapsed().as_secs_f64();
            match contender {
                Contender::Compare => rounds.compared.push(seconds),
                Contender::Read => rounds.read.push(seconds),
                Contender::ReadAgain => rounds.again.push(seconds),
            }
        }
        eprint!("\rcompare: round {} of {wanted}   ", done + 1);
    }
    eprintln!();
    Ok(rounds)
}

fn self_ratio(rounds: &Rounds) -> Paired {
    Paired::of(&rounds.again, &rounds.read)
}

/// Opens every recording and decodes the columns of the round trip.
fn read(recordings: &[PathBuf]) -> Result<(), String> {
    let columns = [ProbeColumn::Phase, ProbeColumn::Fate, ProbeColumn::SentNs, ProbeColumn::ReceivedNs];
    for path in recordings {
        let recording = Recording::open(path).map_err(|error| error.to_string())?;
        for batch in recording.probes(&columns).map_err(|error| error.to_string())? {
            black_box(batch.map_err(|error| error.to_string())?);
        }
    }
    Ok(())
}

/// Mean, median and p99 of every run, and the verdicts on two groups of them.
fn judged(recordings: &[PathBuf]) -> Result<(), String> {
    let mut agenda = ComparisonRequest::default();
    for subject in default_estimands(Metric::RoundTripDelay) {
        agenda.ask(subject, None, None);
    }
    let subjects = agenda.estimands();
    let observe = |path: &PathBuf| -> Result<ObservedRun, String> {
        let recording = Recording::open(path).map_err(|error| error.to_string())?;
        ObservedRun::of(&recording, &subjects).map_err(|error| error.to_string())
    };
    // as the command does
    let runs = parallel_map::each(recordings, parallel_map::available(), |path| ControlFlow::Continue(observe(path)));
    let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (one, other) = runs.split_at(RUNS / 2);
    let groups = RunGroups::named(vec![("one".into(), one.to_vec()), ("other".into(), other.to_vec())]);
    let groups = groups.map_err(|error| error.to_string())?;
    black_box(compare(groups, &agenda, &ComparisonOptions::at(0.95)).map_err(|error| error.to_string())?);
    Ok(())
}
