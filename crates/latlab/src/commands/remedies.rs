//! `--try-remedies` of `latlab ping` and `latlab wakeup`: runs an experiment in memory whose only factor is the remedy.

use std::time::Instant;

use super::experiment_executor::wait;
use super::measure_and_report::{self, LiveText, OpenOutput, ProgressLine};
use super::{Outcome, keys};
use crate::analysis::comparison::{
    ComparisonOptions, ComparisonRequest, ObservedRun, RunGroups, compare, parse_estimand,
};
use crate::analysis::{Estimand, SummaryOptions, comparison_outcome, run_outcome, summarise};
use crate::cli::args::MeasuringArgs;
use crate::cli::resolve::{MeasureJob, OutputSpec, expect_a_free_cpu, expect_feasible_intervals};
use crate::console::{Console, Progress};
use crate::diagnostics::{Failure, refused};
use crate::experiment::{DueRun, ExperimentRunner, ExperimentState, RunExecutor, RunPolicy, RunResult, RunnerOutcome};
use crate::facts::{CommandLine, ExperimentFacts, Finding, FindingSeverity, HostFacts, RunOutcome};
use crate::host::HostRoot;
use crate::host::doctor::{Intent, findings};
use crate::host::facts::{self, Interface};
use crate::measure::{PlanOutcome, RecordingTarget};
use crate::plan::{
    BetweenBlocks, Design, Experiment, ExperimentCondition, Factors, Hooks, Kind, Plan, Remedy, RunOrder, RunSpec,
    RunsRule, StopWhen, Warmup, defaults,
};
use crate::platform::SignalWatch;
use crate::recording::fresh_run_id;
use crate::report::experiment::{
    RemediesView, UntriedRemedy, remedies_json, remedies_text, remedies_untried, rough_span,
};
use crate::session::PreSharedKey;
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
    expect_feasible_intervals(&job.plan.runs)?;
    expect_a_free_cpu(&job.plan.runs)?;
    let key = keys::find(&job.key)?;
    keys::check_other_host(&job.plan)?;
    // A rehearsal sets knobs, so signals are handled before it.
    let signals = measure_and_report::listen_and_restore(console).map_err(refused("listen to signals"))?;
    let nowhere = measure_and_report::open(&OutputSpec::Nothing)?;
    let rehearsal = Rehearsal { key: key.as_ref(), output: nowhere, command_line, signals: &signals, console };
    let trials = match RemedyTrials::of(&job.plan.runs[0], &rehearsal) {
        Ok(trials) => trials,
        Err(failure) => return signals.outcome().ok_or(failure),
    };
    let output = measure_and_report::open(&job.output)?;
    let plans = || trials.experiment.conditions.iter().map(|condition| &condition.plan);
    measure_and_report::warn_of_real_time(plans(), console);
    console.note(&announcement(plans()));
    let mut request = ComparisonRequest::default();
    for (metric, statistic) in job.plan.runs[0].compared() {
        request.ask(parse_estimand(Some(metric.name()), statistic)?, None, None);
    }
    let mut executor = RemedyExecutor {
        experiment: &trials.experiment,
        estimands: request.estimands(),
        key: key.as_ref(),
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
    fn of(asked: &RunSpec, rehearsal: &Rehearsal<'_>) -> Result<RemedyTrials, Failure> {
        let facts = rehearsal.facts(asked)?;
        let (mut conditions, mut untried) = (vec![condition(AS_ASKED, asked.clone())], Vec::new());
        let mut together = asked.clone();
        for remedy in Remedy::of(asked.kind()) {
            let possible =
                applied(*remedy, asked, &facts).and_then(|with| rehearsal.facts(&with).map(|_| with).map_err(reason));
            expect_no_signal(rehearsal.signals)?;
            match possible {
                Ok(with) => {
                    conditions.push(condition(remedy.words(), with));
                    // A remedy may exclude another one: SCHED_FIFO has no timer slack to remove.
                    together = applied(*remedy, &together, &facts).unwrap_or(together);
                }
                Err(reason) => untried.push(UntriedRemedy { remedy: remedy.words().into(), reason }),
            }
        }
        match conditions.len() {
            1 => {
                return Err(Failure::world("no remedy can be tried here")
                    .because(remedies_untried(&untried).collect::<Vec<_>>().join("\n"))
                    .hint("`latlab doctor` shows what this host lacks"));
            }
            2 => {}
            _ => conditions.push(condition(TOGETHER, together)),
        }
        let (name, kind) = ("remedies".into(), asked.kind());
        let experiment = Experiment { name, kind, conditions, design: DESIGN, contrasts: Vec::new() };
        Ok(RemedyTrials { experiment, untried })
    }
}

/// `run` with `remedy`, judged by the `facts` of this host.
///
/// # Errors
/// The reason why it would change nothing, or spoil the measurement.
fn applied(remedy: Remedy, run: &RunSpec, facts: &HostFacts) -> Result<RunSpec, String> {
    let found = |run: &RunSpec| {
        let peer = run.peer.as_ref().filter(|_| run.target.is_this_host());
        findings(facts, None, Intent { here: &run.here, peer })
    };
    let now = found(run);
    let is_named = |finding: &Finding| {
        finding.severity < FindingSeverity::Fine && remedy.findings().contains(&finding.code.as_str())
    };
    if run.kind() == Kind::Ping && !now.iter().any(is_named) {
        return Err("no finding of `latlab doctor` asks for it".into());
    }
    let with = remedy.applied(run)?;
    expect_a_free_cpu([&with]).map_err(|failure| failure.message)?;
    let blockers = |found: Vec<Finding>| found.into_iter().filter(|one| one.severity == FindingSeverity::Blocker);
    let known: Vec<String> = blockers(now).map(|one| one.code).collect();
    let added = blockers(found(&with)).find(|one| !known.contains(&one.code));
    added.map_or(Ok(with), |blocker| Err(blocker.message))
}

/// Measures runs of one probe or wake-up, without keeping them: whatever a host or the other end refuses is refused then.
struct Rehearsal<'a> {
    key: Option<&'a PreSharedKey>,
    output: OpenOutput,
    command_line: &'a CommandLine,
    signals: &'a SignalWatch,
    console: &'a Console,
}

impl Rehearsal<'_> {
    /// The facts of this host after `run`, with the interface of its path.
    fn facts(&self, run: &RunSpec) -> Result<HostFacts, Failure> {
        let (stop, warmup) = (StopWhen { count: Some(1), ..run.stop }, Warmup { count: None, duration_ns: None });
        let plan = Plan { runs: vec![RunSpec { stop, warmup, ..run.clone() }], rounds: 1 };
        let mut draw = |progress: &Progress| progress.show(0, || "looks at what is possible here".into());
        let line = ProgressLine { progress: self.console.progress("remedies", None), draw: &mut draw };
        let target = self.output.target(self.command_line);
        let measured = measure_and_report::measure(&plan, self.key, target, self.signals, self.console, line)?;
        expect_no_signal(self.signals)?;
        let PlanOutcome { recordings, failure } = measured.unwrap_or_default();
        let mut facts = facts::read(&HostRoot::for_knobs(), Interface::Named("lo"));
        for finished in recordings {
            if let Some(failure) = finished.failure {
                return Err(failure.into());
            }
            facts.network.interface = finished.manifest.here.after.and_then(|after| after.network.interface);
        }
        failure.map_or(Ok(facts), |failure| Err(failure.into()))
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

fn reason(failure: Failure) -> String {
    failure.cause.unwrap_or(failure.message)
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
    key: Option<&'a PreSharedKey>,
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
        let measured =
            measure_and_report::measure(&condition.plan, self.key, target, self.signals, self.console, line)?;
        let Some(measured) = measured.filter(|_| self.signals.outcome().is_none()) else { return Ok(false) };
        if let Some(failure) = measured.failure {
            return Err(failure.into());
        }
        for finished in measured.recordings {
            if let Some(failure) = finished.failure {
                return Err(failure.into());
            }
            let recording = finished.open()?;
            if self.observed.is_empty() {
                // A silent target ends the trials at once.
                run_outcome(&[summarise(&recording, &SummaryOptions::of(&recording.manifest().spec))?])?;
            }
            self.observed.push(ObservedRun::of(&recording, &self.estimands)?);
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
