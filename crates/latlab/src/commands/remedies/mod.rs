//! `latlab wakeup --try-remedies`: what may let threads wake earlier, in turns with what was asked, and compared.

mod trials;
mod turns;

use super::{Outcome, measure_and_report, wakeup};
use crate::analysis::comparison::{
    ComparisonOptions, ComparisonRequest, Comparisons, RunGroups, compare, parse_estimand,
};
use crate::analysis::experiment::gains;
use crate::cli::resolve::WakeupJob;
use crate::console::Console;
use crate::diagnostics::{Failure, refused};
use crate::metric::Metric;
use crate::plan::{Condition, Plan, defaults};
use crate::report::Style;
use crate::report::experiment::plan::roughly;
use crate::report::experiment::remedies::{RemediesView, json, text};
use crate::units::Nanos;
use trials::RemedyTrials;
use turns::{RUNS, TrialRuns, take};

/// Tries every remedy that this host allows on the run of `job`.
pub(super) fn run(job: &WakeupJob, console: &Console) -> Result<Outcome, Failure> {
    // Before anything is tried: a rehearsal sets knobs already.
    let interrupt = measure_and_report::listen_and_restore(console).map_err(refused("listen to signals"))?;
    let trials = match RemedyTrials::of(&job.plan, &interrupt) {
        Ok(trials) => trials,
        Err(failure) => return interrupt.outcome().ok_or(failure),
    };
    let keep = measure_and_report::open(&job.keeping)?;
    wakeup::warn(trials.tried.iter().map(|trial| &trial.plan), console);
    console.note(&announcement(&trials));
    let mut agenda = ComparisonRequest::default();
    for statistic in ["p50", "p99"] {
        agenda.ask(parse_estimand(Some(Metric::WakeupLatency.name()), statistic)?, None, None);
    }
    let taken = take(&trials, &agenda.estimands(), &keep, (&interrupt, console))?;
    let shown = show(job, &trials, taken, &agenda, console);
    match (interrupt.outcome(), shown) {
        (None, shown) => shown,
        // Too little may have been measured to compare anything: who interrupted knows why.
        (Some(outcome), _) => Ok(outcome),
    }
}

/// How many runs, and how long they take together.
fn announcement(trials: &RemedyTrials) -> String {
    let one = |plan: &Plan| plan.duration().unwrap_or_default() + defaults::RUN_OVERHEAD;
    let all: Nanos = trials.tried.iter().map(|trial| one(&trial.plan)).fold(Nanos::ZERO, |sum, span| sum + span);
    let conditions = trials.tried.len();
    format!(
        "{conditions} conditions, {RUNS} runs of each, in turns: about {}",
        roughly(all.saturating_mul(i64::from(RUNS)))
    )
}

fn show(
    job: &WakeupJob,
    trials: &RemedyTrials,
    taken: TrialRuns,
    agenda: &ComparisonRequest,
    console: &Console,
) -> Result<Outcome, Failure> {
    let TrialRuns { observed, recordings } = taken;
    let groups = RunGroups::by_condition(observed)?;
    let compared = compare(groups, agenda, &ComparisonOptions::at(defaults::CONFIDENCE))?;
    let condition = Condition::of(&job.plan.runs[0]);
    let view = RemediesView {
        heading: measure_and_report::title(&job.plan),
        condition: &condition,
        runs: (fewest_runs(&compared), defaults::REMEDY_BLOCKS),
        gains: gains(&compared),
        impossible: trials.impossible.clone(),
        caveats: &compared.caveats,
        recordings,
    };
    let style = Style { colour: console.data_screen().colour, ..Style::PLAIN };
    console.data(&if job.json { json(&view, defaults::CONFIDENCE) } else { text(&view, style) })?;
    let trusted = compared.groups.groups.iter().flat_map(|group| &group.runs).all(|run| run.fatal.is_empty());
    Ok(if trusted { Outcome::Done } else { Outcome::NotTrusted })
}

fn fewest_runs(compared: &Comparisons) -> usize {
    compared.groups.groups.iter().map(|group| group.runs.len()).min().unwrap_or_default()
}
