//! Executes the runs of an experiment as their commands would, with one progress line for all runs.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use super::keys;
use super::measure_and_report::{LiveText, ProgressLine, measure, warn_of_silence};
use crate::analysis::ExperimentGates;
use crate::analysis::experiment::{PrecisionResult, RemainingTime};
use crate::cli::resolve::ExperimentJob;
use crate::console::{Console, Progress};
use crate::diagnostics::{Explain, Failure, names_full_disk};
use crate::experiment::{
    DueRun, ExperimentEvent, ExperimentState, FailureKind, HookError, HookRunner, HookWait, HookedRun, OpenExperiment,
    PartialReport, ReportReader, RunExecutor, RunResult, StopRule, in_one_line, result_of,
};
use crate::facts::{ExperimentFacts, RunOutcome};
use crate::measure::{PlanOutcome, RecordingTarget};
use crate::plan::{Experiment, ExperimentCondition, Plan, condition_words};
use crate::platform::SignalWatch;
use crate::recording::{Store, mark_failed};
use crate::report::experiment::rough_span;
use crate::units::Nanos;

/// Executes the runs of an experiment.
pub(super) struct ExperimentExecutor<'a> {
    job: &'a ExperimentJob,
    store: Store,
    signals: &'a SignalWatch,
    console: &'a Console,
    stop_rule: StopRule,
    remaining: RemainingTime,
    /// Reasons that were shown: each is a warning once.
    shown: BTreeSet<String>,
    /// What runs around the runs.
    hooks: RefCell<HookRunner>,
    /// Conditions of whose target a warning said that it does not answer: one for each.
    silent: RefCell<BTreeSet<usize>>,
    /// What `{port}` stood for in runs so far.
    ports: BTreeSet<u16>,
    /// When no further run begins.
    deadline: Option<Instant>,
    /// What ends the experiment if it is decided.
    gates: Option<&'a ExperimentGates>,
}

impl<'a> ExperimentExecutor<'a> {
    /// For the runs of `job` in `store`, of which so many `conditions` are measured.
    pub(super) fn new(
        job: &'a ExperimentJob,
        conditions: usize,
        store: Store,
        hooks: HookRunner,
        signals: &'a SignalWatch,
        console: &'a Console,
    ) -> Self {
        let remaining = RemainingTime::of(&job.experiment, conditions);
        let (stop_rule, shown, silent) = (StopRule::default(), BTreeSet::new(), RefCell::default());
        let hooks = RefCell::new(hooks);
        let (ports, deadline, gates) = (BTreeSet::new(), None, None);
        ExperimentExecutor {
            job,
            store,
            hooks,
            signals,
            console,
            stop_rule,
            remaining,
            shown,
            silent,
            ports,
            deadline,
            gates,
        }
    }

    /// Lets `gates` end the experiment.
    pub(super) fn end_by(&mut self, gates: &'a ExperimentGates) {
        self.gates = Some(gates);
    }

    /// Begins no further run when `budget` from now is used up.
    pub(super) fn end_after(&mut self, budget: Nanos) {
        self.deadline = Some(Instant::now() + Duration::from_nanos(budget.0.unsigned_abs()));
    }

    /// `None` if a signal ended it before anything was measured.
    fn measure_plan(
        &self,
        plan: &Plan,
        due: &DueRun,
        facts: &ExperimentFacts,
        runs_done: u64,
    ) -> Result<Option<PlanOutcome>, Failure> {
        let key = keys::find(&self.job.keys[due.condition])?;
        keys::check_other_host(plan)?;
        let progress = self.console.progress(&self.job.experiment.name, Some(self.remaining.steps()));
        let live = LiveText::of(plan, progress.is_shown());
        let target = RecordingTarget {
            store: &self.store,
            directory: None,
            command_line: None,
            experiment: Some(facts),
            service: self.hooks.borrow().service_process(),
            live: Some(&live.progress),
        };
        let (start, condition) = (Instant::now(), condition_words(&due.key.factors));
        let mut draw = |progress: &Progress| {
            // What is sent from here on cannot be answered.
            if self.hooks.borrow_mut().has_lost_service() {
                self.signals.stop().store(true, Ordering::Relaxed);
            }
            progress.show(self.remaining.step(due.condition, runs_done, start.elapsed()), || {
                let position = self.position(due.key.block, runs_done, start.elapsed());
                format!("{position} · {}{condition}", live.text())
            });
            let is_warned = self.silent.borrow().contains(&due.condition);
            if !is_warned && warn_of_silence(plan, &live.progress, self.console) {
                self.silent.borrow_mut().insert(due.condition);
            }
        };
        let line = ProgressLine { progress, draw: &mut draw };
        measure(plan, key.as_ref(), target, self.signals, self.console, line)
    }

    /// Warns of a run with `text`, unless another run was warned of for the same `reason`.
    fn warn_once(&mut self, reason: &str, text: &str, hint: &str) {
        if self.shown.insert(without_numbers(reason)) {
            self.console.warning(text, Some(hint))
        } else {
            self.console.detail(text)
        }
    }

    /// `block 2 of 3 · run 14 of 90 · 12 min left`
    fn position(&self, block: u32, runs_done: u64, elapsed: Duration) -> String {
        let RemainingTime { runs, blocks, .. } = self.remaining;
        let block = if blocks > 1 { format!("block {block} of {blocks} · ") } else { String::new() };
        format!("{block}run {} of {runs} · {} left", runs_done + 1, rough_span(self.remaining.left(runs_done, elapsed)))
    }
}

impl<'a> ExperimentExecutor<'a> {
    fn measured(&self, plan: &Plan, due: &DueRun, facts: &ExperimentFacts, runs_done: u64) -> RunResult {
        let measured = self.measure_plan(plan, due, facts, runs_done);
        let is_interrupted = self.signals.outcome().is_some();
        match measured {
            Ok(Some(measured)) => result_of(measured, is_interrupted),
            Err(failure) if !is_interrupted => {
                let is_full = failure.cause.as_deref().is_some_and(names_full_disk);
                let outcome = if is_full { RunOutcome::Interrupted } else { RunOutcome::Refused };
                RunResult::unrecorded(outcome, Some(failure))
            }
            Ok(None) | Err(_) => RunResult::unrecorded(RunOutcome::Interrupted, None),
        }
    }

    /// Runs the hooks of `run` around `measure`, which is called once all is ready. A hook that fails makes the run a failed
    /// one, whatever was measured. A run that a signal has cut off is repeated whether or not hooks fail.
    fn between_hooks(&self, run: &HookedRun<'_>, measure: impl FnOnce() -> RunResult) -> RunResult {
        let mut heartbeat = || self.signals.notice();
        let mut wait = HookWait { stop: self.signals.stop(), heartbeat: &mut heartbeat };
        let begun = self.hooks.borrow_mut().before(run, &mut wait);
        let (result, begun) = match begun {
            Ok(true) => (measure(), Ok(())),
            Ok(false) => (RunResult::unrecorded(RunOutcome::Interrupted, None), Ok(())),
            Err(error) => (RunResult::unrecorded(RunOutcome::Refused, None), Err(error)),
        };
        let mut errors = Vec::from_iter(begun.err());
        if errors.is_empty() {
            errors.extend(self.hooks.borrow_mut().expect_service().err());
        }
        self.mark(&result, &errors);
        let ended = self.hooks.borrow_mut().end_service();
        // The end of a service that has failed is known.
        errors
            .extend(ended.into_iter().filter(|error| errors.is_empty() || !error.is_of_service()).collect::<Vec<_>>());
        self.mark(&result, &errors);
        errors.extend(self.hooks.borrow_mut().after(run, &mut heartbeat).err());
        // The first failure decides, but that of another hook than the service before it.
        errors.sort_by_key(HookError::is_of_service);
        let is_cut_off = self.is_cut_off(&result);
        let is_served = !errors.iter().any(HookError::is_of_service);
        let decisive = if is_cut_off { None } else { errors.drain(..errors.len().min(1)).next() };
        errors.into_iter().for_each(|error| warn_of_hook(&error.into(), self.console));
        match decisive {
            None if is_cut_off => RunResult { outcome: RunOutcome::Interrupted, ..result },
            None => result,
            Some(error) => self.failed_by(error, result, is_served),
        }
    }

    /// Whether a signal has ended a run before it had a result.
    fn is_cut_off(&self, result: &RunResult) -> bool {
        self.signals.outcome().is_some() && !result.outcome.is_final()
    }

    /// Marks the recording of a run with these errors of hooks: latlab may be killed before the next hook has ended. That it
    /// cannot be marked is an error at the end of the run.
    fn mark(&self, result: &RunResult, errors: &[HookError]) {
        if let (Some(error), Some(name), false) = (errors.first(), &result.recording, self.is_cut_off(result)) {
            let _ = mark_failed(&self.store.path().join(name), &in_one_line(&error.explain()));
        }
    }

    /// `result` of a run whose hook failed with `error`: its recording is marked. Unless the run `is_served`, its service is the
    /// cause of what the measurement failed by; another hook is not.
    fn failed_by(&self, error: HookError, result: RunResult, is_served: bool) -> RunResult {
        let is_of_service = error.is_of_service();
        let failure = Failure::from(error);
        let cause = result.failure.as_ref().and_then(|failure| failure.cause.as_deref());
        let is_full = cause.is_some_and(names_full_disk);
        if let Some(own) = result.failure.as_ref().filter(|_| is_full || is_served) {
            self.console.warning(&in_one_line(own), own.hint.as_deref());
        }
        let (outcome, kind) = match result.outcome {
            RunOutcome::Interrupted if is_full => (result.outcome, FailureKind::NoResult),
            _ if is_of_service => (RunOutcome::Failed, FailureKind::Unserved),
            RunOutcome::Interrupted | RunOutcome::Refused => (result.outcome, FailureKind::NoResult),
            _ => (RunOutcome::Failed, FailureKind::NoResult),
        };
        let path = result.recording.as_ref().map(|name| self.store.path().join(name));
        let marked = path.map_or(Ok(()), |path| mark_failed(&path, &in_one_line(&failure)));
        let failure = marked.err().map_or(failure, Failure::from);
        RunResult { outcome, failure: Some(failure), kind, ..result }
    }
}

impl RunExecutor for ExperimentExecutor<'_> {
    fn measure(&mut self, due: &DueRun, facts: &ExperimentFacts, runs_done: u64) -> RunResult {
        let condition = match self.job.condition(due.condition, &mut self.ports) {
            Ok(condition) => condition,
            Err(failure) => return RunResult::unrecorded(RunOutcome::Refused, Some(failure)),
        };
        let ExperimentCondition { plan, hooks, .. } = &*condition;
        let run = HookedRun { hooks, block: due.key.block, position: due.position.position };
        let mut start = Instant::now();
        let result = self.between_hooks(&run, || {
            if due.settle > Nanos::ZERO && !wait(due.settle, &self.job.experiment.name, self.signals, self.console) {
                return RunResult::unrecorded(RunOutcome::Interrupted, None);
            }
            start = Instant::now();
            self.measured(plan, due, facts, runs_done)
        });
        self.signals.rearm();
        self.remaining.learn(due.condition, start.elapsed());
        result
    }

    fn is_interrupted(&self) -> bool {
        self.signals.outcome().is_some()
    }

    fn are_gates_decided(&mut self, state: &ExperimentState) -> bool {
        let ExperimentJob { experiment, impossible, .. } = self.job;
        let note = |text: &str| self.console.note(text);
        let (directory, gates) = (self.store.path().parent().unwrap_or_else(|| Path::new(".")), self.gates);
        let reader = ReportReader { directory, state, experiment, impossible, shift: false, gates, note: &note };
        let PartialReport { report, failure } = reader.read();
        failure.is_none() && ExperimentGates::are_decided(&report.gates, &report.change_gates)
    }

    fn is_over_budget(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() > deadline)
    }

    fn end_block(&mut self) {
        if let Err(error) = self.hooks.borrow_mut().end_block() {
            warn_of_hook(&error.into(), self.console);
        }
    }

    fn wait(&mut self, span: Nanos) -> bool {
        wait(span, &self.job.experiment.name, self.signals, self.console)
    }

    fn check_precision(&mut self, state: &ExperimentState) -> Result<PrecisionResult, Failure> {
        self.stop_rule.check(&self.job.experiment, state, self.store.path(), &|text| self.console.note(text))
    }

    fn show(&mut self, event: ExperimentEvent<'_>) {
        match event {
            ExperimentEvent::BlockBegan(block) => self.console.detail(&format!("block {block} begins")),
            ExperimentEvent::ConditionDropped { factors, reason } => {
                let condition = condition_words(factors);
                if self.shown.insert(reason.to_owned()) {
                    self.console.warning(&format!("`{condition}` is skipped: {reason}"), None)
                } else {
                    self.console.detail(&format!("`{condition}` is skipped too: {reason}"))
                }
            }
            ExperimentEvent::RunFailed { factors, reason } => {
                let text = format!("a run of `{}` failed: {reason}", condition_words(factors));
                self.warn_once(reason, &text, "`-v` names each run that fails for this reason");
            }
            ExperimentEvent::RunUnanswered { factors, reason } => {
                let text = format!("a run of `{}` is judged with loss 1: {reason}", condition_words(factors));
                self.warn_once(reason, &text, "`-v` names each run without an answer");
            }
            ExperimentEvent::InfiniteStatistic => {
                let message = "the statistic of `runs` was infinite in a run because of lost probes: its \
                 interval cannot become narrow";
                if self.shown.insert(message.into()) {
                    self.console.warning(message, Some("only `max-runs` ends the experiment; use a lower quantile"));
                }
            }
            ExperimentEvent::PrecisionChecked { block, is_narrow } => {
                let words = if is_narrow { "narrow enough" } else { "not narrow enough yet" };
                self.console.note(&format!("after block {block} the intervals are {words}"));
            }
        }
    }
}

/// Whether an `experiment` has hooks.
pub(super) fn has_hooks(experiment: &Experiment) -> bool {
    experiment.conditions.iter().any(|condition| !condition.hooks.is_empty())
}

/// Ends the run that was cut off, after the hook that runs after it.
pub(super) fn end_cut_off_run(
    open: &mut OpenExperiment,
    hooks: &mut HookRunner,
    experiment: &Experiment,
    signals: &SignalWatch,
    console: &Console,
) -> Result<(), Failure> {
    let mut failed_hook = None;
    if has_hooks(experiment) {
        let cut_off = open.state().unfinished_run();
        let condition = cut_off.and_then(|run| experiment.conditions.iter().find(|one| one.factors == run.key.factors));
        if let (Some(run), Some(condition)) = (cut_off, condition) {
            let run = HookedRun { hooks: &condition.hooks, block: run.key.block, position: run.position.position };
            failed_hook = hooks.after(&run, &mut || signals.notice()).err().map(Failure::from);
        }
    }
    failed_hook.iter().for_each(|failure| warn_of_hook(failure, console));
    Ok(open.end_unfinished_run(failed_hook.as_ref().map(in_one_line))?)
}

/// Warns of a hook whose failure does not decide on a run.
fn warn_of_hook(failure: &Failure, console: &Console) {
    console.warning(&in_one_line(failure), failure.hint.as_deref());
}

/// `reason` with a mark for each number: counts and times of one reason differ, also in their digits and separators.
fn without_numbers(reason: &str) -> String {
    let mut masked = reason.replace(|char: char| char.is_ascii_digit(), "#");
    while let Some(longer) = ["##", "#.#", "#,#"].into_iter().find(|longer| masked.contains(*longer)) {
        masked = masked.replace(longer, "#");
    }
    masked
}

/// The interval at which a wait looks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);
/// Longer waits have a progress line.
const SILENT_WAIT: Duration = Duration::from_secs(2);

/// Waits for `span`; false if a signal ended it.
pub(super) fn wait(span: Nanos, title: &str, signals: &SignalWatch, console: &Console) -> bool {
    let span = Duration::from_nanos(span.0.unsigned_abs());
    let end = Instant::now() + span;
    let progress = (span > SILENT_WAIT).then(|| console.progress(title, None));
    while signals.outcome().is_none() && Instant::now() < end {
        let rest = end - Instant::now();
        if let Some(progress) = &progress {
            progress.show(0, || format!("waiting for {} s", rest.as_secs() + 1));
        }
        signals.notice();
        thread::sleep(SIGNAL_INTERVAL.min(rest));
    }
    signals.outcome().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_differ_in_numbers_are_the_same() {
        let reason =
            |count: &str, span: &str| without_numbers(&format!("{count} probes were sent in {span}, no answer came"));
        for (count, span) in [("7", "40.1 ms"), ("12", "9 ms"), ("1,000", "1,000 ms"), ("12,345,678", "0.25 ms")] {
            assert_eq!(reason(count, span), reason("20", "40 ms"), "{count} {span}");
        }
        assert_ne!(reason("20", "40 ms"), reason("20", "40 s"));
        assert_eq!(without_numbers("it ended after 3, 2 were sent."), "it ended after #, # were sent.");
    }
}
