//! `latlab wakeup --try-remedies`: runs an experiment in memory whose only factor is the remedy for late wake-ups.

use std::time::Instant;

use super::Outcome;
use super::experiment_executor::wait;
use super::measure_and_report::{self, LiveText, OpenOutput, ProgressLine};
use crate::analysis::comparison::{
    ComparisonOptions, ComparisonRequest, ObservedRun, RunGroups, compare, parse_estimand,
};
use crate::analysis::{Estimand, comparison_outcome};
use crate::cli::args::MeasuringArgs;
use crate::cli::resolve::MeasureJob;
use crate::console::{Console, Progress};
use crate::diagnostics::{Failure, refused};
use crate::experiment::{DueRun, ExperimentRunner, ExperimentState, RunExecutor, RunPolicy, RunResult, RunnerOutcome};
use crate::facts::{CommandLine, ExperimentFacts, RunOutcome};
use crate::host::HostRoot;
use crate::measure::{MeasureError, RecordingTarget, rehearse_run};
use crate::metric::Metric;
use crate::plan::{
    BetweenBlocks, Design, Experiment, ExperimentCondition, Factors, Hooks, Kind, Plan, Remedy, RunOrder, RunSpec,
    RunsRule, defaults,
};
use crate::platform::SignalWatch;
use crate::recording::fresh_run_id;
use crate::report::experiment::{RemediesView, UntriedRemedy, remedies_json, remedies_text, rough_span};
use crate::units::Nanos;

/// The factor of the experiment: `latlab compare --by remedy` finds the runs again.
const FACTOR: &str = "remedy";
/// Its level without a remedy.
const AS_ASKED: &str = "as asked";
/// Its level with every remedy.
const TOGETHER: &str = "all of these";
const RUNS: u32 = defaults::REMEDY_BLOCKS * defaults::REMEDY_RUNS;
const DESIGN: Design = Design {
    runs: RunsRule::PerBlock(defaults::REMEDY_RUNS),
    warmup_runs: 0,
    blocks: defaults::REMEDY_BLOCKS,
    between: BetweenBlocks::Nothing,
    order: RunOrder::Randomized,
    seed: Some(defaults::EXPERIMENT_SEED),
    settle: Nanos::ZERO,
    looks: None,
};

/// Compares the run of `job` with the same run under every remedy that is possible here.
pub(super) fn run(
    job: &MeasureJob,
    typed: &MeasuringArgs,
    command_line: &CommandLine,
    console: &Console,
) -> Result<Outcome, Failure> {
    // A rehearsal sets knobs, so signals are handled before it.
    let signals = measure_and_report::listen_and_restore(console).map_err(refused("listen to signals"))?;
    let trials = match RemedyTrials::of(&job.plan, &signals) {
        Ok(trials) => trials,
        Err(failure) => return signals.outcome().ok_or(failure),
    };
    let output = measure_and_report::open(&job.output)?;
    let plans = || trials.experiment.conditions.iter().map(|condition| &condition.plan);
    measure_and_report::warn_of_real_time(plans(), console);
    console.note(&announcement(plans()));
    let mut request = ComparisonRequest::default();
    for statistic in ["p50", "p99"] {
        request.ask(parse_estimand(Some(Metric::WakeupLatency.name()), statistic)?, None, None);
    }
    let mut executor = RemedyExecutor {
        experiment: &trials.experiment,
        estimands: request.estimands(),
        output: &output,
        command_line,
        signals: &signals,
        console,
        start: Instant::now(),
        observed: Vec::new(),
        recordings: Vec::new(),
    };
    let mut state = ExperimentState::new(fresh_run_id().map_err(refused("draw an id"))?);
    let boot_id = HostRoot::live().text("proc/sys/kernel/random/boot_id").ok();
    let policy = RunPolicy { boot_id, ..RunPolicy::default() };
    let mut runner =
        ExperimentRunner { experiment: &trials.experiment, policy, journal: &mut state, executor: &mut executor };
    if let RunnerOutcome::Failed(failure) = runner.run()? {
        return Err(failure);
    }
    let shown = show(&job.plan, typed.json.json, &trials.untried, executor, &request, console);
    // After an interrupt there may be too few runs to compare.
    signals.outcome().map_or(shown, Ok)
}

/// The remedies that are possible here, as an experiment.
struct RemedyTrials {
    /// The first condition is the unchanged run.
    experiment: Experiment,
    untried: Vec<UntriedRemedy>,
}

impl RemedyTrials {
    /// Rehearses each remedy on the run of `asked`; fails if a signal arrives.
    fn of(asked: &Plan, signals: &SignalWatch) -> Result<RemedyTrials, Failure> {
        let run = &asked.runs[0];
        rehearse_run(run)?;
        let (mut conditions, mut untried) = (vec![condition(AS_ASKED, run.clone())], Vec::new());
        let mut together = run.clone();
        for remedy in Remedy::ALL {
            expect_no_signal(signals)?;
            match remedy.applied(run).and_then(|with| rehearse_run(&with).map(|()| with).map_err(reason)) {
                Ok(with) => {
                    conditions.push(condition(remedy.words(), with));
                    // A remedy may make another one pointless: SCHED_FIFO has no timer slack to remove.
                    together = remedy.applied(&together).unwrap_or(together);
                }
                Err(reason) => untried.push(UntriedRemedy { remedy: remedy.words().into(), reason }),
            }
        }
        expect_no_signal(signals)?;
        match conditions.len() {
            1 => {
                let reasons = untried.iter().map(|one| format!("{}: {}", one.remedy, one.reason));
                return Err(Failure::world("no remedy can be tried here")
                    .because(reasons.collect::<Vec<_>>().join("\n"))
                    .hint("`latlab doctor` shows what this host lacks"));
            }
            2 => {}
            _ => conditions.push(condition(TOGETHER, together)),
        }
        let (name, kind) = ("remedies".into(), Kind::Wakeup);
        let experiment = Experiment { name, kind, conditions, design: DESIGN, contrasts: Vec::new() };
        Ok(RemedyTrials { experiment, untried })
    }
}

/// Between two rehearsals the host is as it was found.
fn expect_no_signal(signals: &SignalWatch) -> Result<(), Failure> {
    signals.notice();
    match signals.outcome() {
        None => Ok(()),
        Some(_) => Err(Failure::world("interrupted before every remedy was checked")),
    }
}

fn condition(level: &str, run: RunSpec) -> ExperimentCondition {
    let factors = Factors::from([(FACTOR.to_owned(), level.to_owned())]);
    ExperimentCondition { factors, plan: Plan { runs: vec![run], rounds: 1 }, hooks: Hooks::default() }
}

fn reason(error: MeasureError) -> String {
    let Failure { message, cause, .. } = Failure::from(error);
    cause.unwrap_or(message)
}

/// The number of runs, and how long they take together.
fn announcement<'a>(plans: impl ExactSizeIterator<Item = &'a Plan>) -> String {
    let conditions = plans.len();
    let run = |plan: &Plan| plan.duration().unwrap_or_default() + defaults::RUN_OVERHEAD;
    let one_of_each = plans.map(run).fold(Nanos::ZERO, |sum, span| sum + span);
    let all = rough_span(one_of_each.saturating_mul(i64::from(RUNS)));
    format!("{conditions} conditions, {RUNS} runs of each, in turns: about {all}")
}

/// Measures runs and keeps their figures.
struct RemedyExecutor<'a> {
    experiment: &'a Experiment,
    estimands: Vec<Estimand>,
    output: &'a OpenOutput,
    command_line: &'a CommandLine,
    signals: &'a SignalWatch,
    console: &'a Console,
    start: Instant,
    /// In the order in which they were measured.
    observed: Vec<ObservedRun>,
    recordings: Vec<String>,
}

impl RemedyExecutor<'_> {
    /// False if a signal ended it.
    fn measure_and_observe(&mut self, due: &DueRun, facts: &ExperimentFacts, runs_done: u64) -> Result<bool, Failure> {
        let condition = &self.experiment.conditions[due.condition];
        let all = self.experiment.design.runs_at_most(self.experiment.conditions.len());
        let progress = self.console.progress(&self.experiment.name, Some(all));
        let live = LiveText::of(&condition.plan, progress.is_shown());
        let target = self.output.target(self.command_line);
        let target = RecordingTarget { experiment: Some(facts), live: Some(&live.progress), ..target };
        let mut draw = |progress: &Progress| {
            let elapsed = self.start.elapsed().as_secs_f64();
            progress.show(runs_done, || format!("{elapsed:.0} s · {}{}", live.text(), condition.factors[FACTOR]));
        };
        let line = ProgressLine { progress, draw: &mut draw };
        let measured = measure_and_report::measure(&condition.plan, None, target, self.signals, self.console, line)?;
        let Some(measured) = measured.filter(|_| self.signals.outcome().is_none()) else { return Ok(false) };
        if let Some(failure) = measured.failure {
            return Err(failure.into());
        }
        for finished in measured.recordings {
            if let Some(failure) = finished.failure {
                return Err(failure.into());
            }
            self.observed.push(ObservedRun::of(&finished.open()?, &self.estimands)?);
            self.recordings.push(finished.path.display().to_string());
        }
        Ok(true)
    }
}

impl RunExecutor for RemedyExecutor<'_> {
    fn measure(&mut self, due: &DueRun, facts: &ExperimentFacts, runs_done: u64) -> RunResult {
        match self.measure_and_observe(due, facts, runs_done) {
            Ok(true) => RunResult::unrecorded(RunOutcome::Completed, None),
            Ok(false) => RunResult::unrecorded(RunOutcome::Interrupted, None),
            Err(failure) => RunResult::unrecorded(RunOutcome::Failed, Some(failure)),
        }
    }

    fn wait(&mut self, span: Nanos) -> bool {
        wait(span, &self.experiment.name, self.signals, self.console)
    }
}

fn show(
    plan: &Plan,
    json: bool,
    untried: &[UntriedRemedy],
    executor: RemedyExecutor<'_>,
    request: &ComparisonRequest,
    console: &Console,
) -> Result<Outcome, Failure> {
    let groups = RunGroups::by_condition(executor.observed)?;
    let compared = compare(groups, request, &ComparisonOptions::at(defaults::CONFIDENCE))?;
    let view = RemediesView {
        heading: measure_and_report::title(plan),
        condition: plan.runs[0].condition(),
        blocks: defaults::REMEDY_BLOCKS,
        comparisons: &compared,
        untried,
        recordings: executor.recordings,
    };
    if json {
        console.document(&remedies_json(&view))?;
    } else {
        console.data(&remedies_text(&view, console.data_style()))?;
    }
    Ok(comparison_outcome(&compared))
}
