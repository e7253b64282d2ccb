//! `latlab summary REC…`: prints summaries of recordings, stores and experiments, and judges gates on them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::observation_groups::{FoundRuns, gone, located, runs_in};
use super::{Outcome, measure_and_report};
use crate::analysis::comparison::{MISSING, RESTORE, missing_runs};
use crate::analysis::{
    AvailableFigures, MetricHistogram, Summary, SummaryOptions, ValueGateResult, rare_delays, summarise,
    summary_outcome, with_gates,
};
use crate::cli::args::SummaryArgs;
use crate::console::{Console, Verbosity};
use crate::diagnostics::Failure;
use crate::experiment::{in_store, is_experiment, read_state};
use crate::metric::Metric;
use crate::plan::{Factors, Kind};
use crate::platform::ownership::quoted;
use crate::recording::{Recording, Store};
use crate::report::text_plots;
use crate::report::view::Showing;

/// Shows the summaries of the recordings in `typed` with the results of its gates.
pub(super) fn run(typed: &SummaryArgs, console: &Console) -> Result<Outcome, Failure> {
    typed.judging.distinct_quantiles()?;
    let every_metric = console.verbosity() > Verbosity::Usual;
    let (mut summaries, mut distributions) = (Vec::new(), Vec::new());
    let (mut half, mut recorded) = (false, Vec::new());
    let has_gates = !typed.gates.gate.is_empty();
    let Recordings { paths, of_experiments, missing, are_named } = recordings(&typed.recordings, has_gates, console)?;
    let mut unjudged: BTreeSet<PathBuf> = of_experiments.values().cloned().collect();
    for path in paths {
        let recording = Recording::open(&path)?;
        recording.note().into_iter().for_each(|note| console.note(note));
        let judging = typed.judging.over(&recording.manifest().spec.judging)?;
        // Only now: a recording declares the metrics that its command printed.
        let gates = measure_and_report::gates(&typed.gates)?;
        if has_gates {
            let available = AvailableFigures::of_recorded(&recording, judging.deadline_ns)?;
            recorded.push((path.display().to_string(), available));
        }
        half |= judging.half;
        let mut options = SummaryOptions {
            judging,
            intervals: !typed.no_intervals,
            metrics: measure_and_report::metrics(typed.json.json || every_metric),
            one_way: typed.one_way,
        };
        gates.include(&mut options);
        if typed.plots.plot {
            distributions.push(MetricHistogram::of(&recording, recording.manifest().metric())?);
        }
        let mut summary = summarise(&recording, &options)?;
        summary.extremes = if typed.extremes { rare_delays(&recording, &summary)? } else { None };
        let is_warmup = recording.manifest().experiment.as_ref().is_some_and(|experiment| experiment.warmup);
        let experiment = of_experiments.get(&path);
        if experiment.is_none() || !is_warmup {
            experiment.into_iter().for_each(|experiment| _ = unjudged.remove(experiment));
            recorded.last().into_iter().for_each(|(_, available)| gates.judge(&mut summary, available));
        }
        // In text the warning on stderr stands beside the summaries.
        summary.caveats.extend(missing_runs(&missing).into_iter().filter(|_| typed.json.json));
        if !missing.is_empty() {
            summary.gates.iter_mut().for_each(ValueGateResult::break_over_missing_runs);
        }
        summaries.push(summary);
    }
    // A gate on what no run can ever have is a wrong request: nothing is shown.
    let gates = measure_and_report::gates(&typed.gates)?;
    gates.expect_recorded(&recorded)?;
    if !typed.json.json && !are_named {
        let order = by_condition(&summaries);
        (summaries, distributions) = (in_order(&order, summaries), in_order(&order, distributions));
    }
    note_unused(typed, &summaries, console);
    measure_and_report::show(
        &summaries,
        Showing { half, every_metric, kept: true, wide: false, of_store: !are_named },
        typed.json.json,
        console,
    )?;
    if typed.plots.plot {
        console.plots(&text_plots::of_runs(&summaries, &distributions, console.data_style()), typed.plots.ascii)?;
    }
    measure_and_report::warn_of_undecided(&summaries, console);
    let gated = match unjudged.first().filter(|_| has_gates) {
        None => gates.outcome(&summaries),
        Some(first) => without_finished_run(first, console),
    };
    with_gates(Ok(summary_outcome(&summaries)), gated)
}

/// Of what `--one-way` is.
pub(super) const NEEDS_BOTH_STAMPS: &str = "`--one-way` is of probes with stamps of both ends";

/// Names the options that were typed and change nothing of any of `summaries`, as of a run that has no such figures.
fn note_unused(typed: &SummaryArgs, summaries: &[Summary], console: &Console) {
    let has_instants = |one: &Summary| matches!(one.kind, Kind::Ping | Kind::Wakeup | Kind::Command);
    let has_round_trips = |one: &Summary| one.metrics.contains_key(&Metric::RoundTripDelay);
    let judging = &typed.judging;
    type HasEffect = fn(&Summary) -> bool;
    let options: [(bool, HasEffect, &str); 5] = [
        (judging.window.is_some(), has_instants, "`--window` divides runs of `ping`, `wakeup` and `command`"),
        (judging.deadline.is_some(), |one| one.deadline.is_some(), "`--deadline` is not of streams"),
        (typed.extremes, |one| one.extremes.is_some(), "`--extremes` is of round trips, wake-ups and imported values"),
        (typed.one_way, |one| one.one_way.is_some(), NEEDS_BOTH_STAMPS),
        (judging.half, has_round_trips, "`--half` is of round trips"),
    ];
    for (is_typed, has_effect, what) in options {
        if is_typed && !summaries.is_empty() && !summaries.iter().any(has_effect) {
            console.note(&format!("{what}: it changes nothing here"));
        }
    }
}

/// The outcome of gates on the experiment in `directory`, of which nothing is finished.
fn without_finished_run(directory: &Path, console: &Console) -> Outcome {
    let hint = format!("`{}` measures what is not finished", run_command(directory));
    let message = format!("no gate is met: the experiment `{}` has no finished run", directory.display());
    console.warning(&message, Some(&hint));
    Outcome::AnswerIsNo
}

/// What `summary` was asked for.
pub(super) struct Recordings {
    pub(super) paths: Vec<PathBuf>,
    /// Those that the directory of an experiment stands for, with this directory: its warm-up runs are shown and not judged.
    of_experiments: BTreeMap<PathBuf, PathBuf>,
    /// Finished runs of an experiment, or recordings of a store, that are gone or damaged.
    missing: BTreeSet<String>,
    /// Whether recordings were named themselves: they are shown in the order of their names on the command line.
    are_named: bool,
}

/// Indices that put the runs of one condition next to each other, in their order; those of an experiment in the order of its
/// conditions.
fn by_condition(summaries: &[Summary]) -> Vec<usize> {
    let experiment = |one: &Summary| one.experiment.as_ref().map(|facts| facts.experiment.clone());
    let levels: Vec<_> = summaries.iter().map(|one| one.spec.levels()).collect();
    let place = |(one, own): (&Summary, &Factors)| {
        let first_of = |is_alike: &dyn Fn(&Summary) -> bool| summaries.iter().position(is_alike);
        let number = one.experiment.as_ref().map(|facts| facts.condition);
        let of_experiment = first_of(&|other| experiment(other) == experiment(one));
        (of_experiment, number, levels.iter().position(|other| other == own))
    };
    let places: Vec<_> = summaries.iter().zip(&levels).map(place).collect();
    let mut order: Vec<usize> = (0..summaries.len()).collect();
    order.sort_by_key(|index| places[*index]);
    order
}

/// The `items` in the order of their indices; without items there is nothing to move.
fn in_order<T>(order: &[usize], items: Vec<T>) -> Vec<T> {
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.iter().filter_map(|index| items.get_mut(*index)?.take()).collect()
}

/// The recordings that `paths` name: a store or the directory of an experiment stands for those in it.
pub(super) fn recordings(paths: &[PathBuf], with_gates: bool, console: &Console) -> Result<Recordings, Failure> {
    let mut found =
        Recordings { paths: Vec::new(), of_experiments: BTreeMap::new(), missing: BTreeSet::new(), are_named: false };
    for path in paths {
        let path = located(path)?;
        let is_experiment = is_experiment(&path);
        if !is_experiment && !is_store(&path) {
            found.paths.push(path);
            found.are_named = true;
            continue;
        }
        let FoundRuns { mut runs, damaged } = runs_in(&path, console)?;
        // A store without a finished recording stands for itself in a comparison.
        runs.retain(|run| run.path != path);
        let mut missing = damaged;
        if is_experiment {
            missing.extend(gone(&path));
            found.of_experiments.extend(runs.iter().map(|run| (run.path.clone(), path.clone())));
        } else {
            note_experiments(&path, console);
        }
        if runs.is_empty() {
            return Err(without_runs(&path, is_experiment, &missing));
        }
        found.paths.extend(runs.into_iter().map(|run| run.path));
        found.missing.extend(missing);
    }
    // Of a store each was named above; an experiment may lack runs that are nowhere.
    if !found.missing.is_empty() && (with_gates || !found.of_experiments.is_empty()) {
        let names = found.missing.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let consequence = if with_gates { ": no gate is met" } else { "" };
        console.warning(&format!("{MISSING}: {names}{consequence}"), Some(RESTORE));
    }
    Ok(found)
}

/// Whether `path` is a directory with recordings or experiments.
fn is_store(path: &Path) -> bool {
    path.is_dir() && (Store::at(path).recordings().next().is_some() || !in_store(path).is_empty())
}

/// Says that the experiments in `store` are not summarised with its recordings.
fn note_experiments(store: &Path, console: &Console) {
    let experiments = in_store(store);
    let Some(newest) = experiments.first() else { return };
    let left_out = match experiments.len() {
        1 => "1 experiment is left out".to_owned(),
        count => format!("{count} experiments are left out"),
    };
    console.note(&format!("{left_out}: `latlab summary {}` shows the newest", quoted(newest)));
}

/// There is nothing to be summarised at `path`; the recordings `missing` cannot be opened.
fn without_runs(path: &Path, is_experiment: bool, missing: &[String]) -> Failure {
    let what = if is_experiment { "experiment" } else { "store" };
    let failure = Failure::request(format!("the {what} `{}` has no run to be summarised", path.display()));
    let cause = (!missing.is_empty()).then(|| format!("{MISSING}: {}", missing.join(", ")));
    let goes_on = is_experiment && missing.is_empty() && read_state(path).is_ok_and(|state| !state.finished);
    let hint = match (goes_on, is_experiment) {
        (true, _) => format!("`{}` measures its runs", run_command(path)),
        (false, true) => RESTORE.into(),
        (false, false) => format!("`latlab list --store {}` shows what it holds", quoted(path)),
    };
    Failure { cause, ..failure.hint(hint) }
}

fn run_command(experiment: &Path) -> String {
    format!("latlab run {}", quoted(experiment))
}
