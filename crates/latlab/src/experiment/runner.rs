//! Runs what is due until nothing is left or the experiment is stopped. The journal holds every step before it begins,
//! and again after it ended.

use std::collections::BTreeSet;

use super::error::ExperimentError;
use super::journal::JournalEntry;
use super::scheduler::{DueRun, NextStep, RunScheduler};
use super::state::ExperimentState;
use crate::analysis::experiment::PrecisionResult;
use crate::diagnostics::Failure;
use crate::facts::{ExcludedCondition, ExperimentFacts, RunOutcome};
use crate::plan::{Experiment, ExperimentCondition, Factors, defaults};
use crate::units::Nanos;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunResult {
    pub(crate) outcome: RunOutcome,
    /// The name of its recording.
    pub(crate) recording: Option<String>,
    /// Why it failed, could not begin, or was interrupted if not by a signal.
    pub(crate) failure: Option<Failure>,
    /// What it is if it failed.
    pub(crate) kind: FailureKind,
}

/// Whether a failed run is a result, after which the experiment continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// It is none.
    #[default]
    NoResult,
    /// It was measured to its end and lost all that it sent: it is judged.
    Unanswered,
    /// The service under test did not start or ended early: it is not judged.
    Unserved,
}

impl RunResult {
    /// The result of a run that left no recording.
    pub(crate) const fn unrecorded(outcome: RunOutcome, failure: Option<Failure>) -> RunResult {
        RunResult { outcome, recording: None, failure, kind: FailureKind::NoResult }
    }
}

/// Events for the user while an experiment runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ExperimentEvent<'a> {
    BlockBegan(u32),
    ConditionDropped {
        factors: &'a Factors,
        reason: &'a str,
    },
    /// A run failed, and the experiment continues.
    RunFailed {
        factors: &'a Factors,
        reason: &'a str,
    },
    /// A run ended without an answer. It is judged, with loss 1, and the experiment continues.
    RunUnanswered {
        factors: &'a Factors,
        reason: &'a str,
    },
    PrecisionChecked {
        block: u32,
        is_narrow: bool,
    },
    /// The statistic of the stop rule is infinite in a run: its interval cannot become narrow.
    InfiniteStatistic,
}

/// The actions of the runner outside of its state: measurements, waits and checks.
pub(crate) trait RunExecutor {
    /// Measures one run, `runs_done` runs being over; `facts` go into the manifest of its recording. Waits for the pause
    /// that is due before it.
    fn measure(&mut self, due: &DueRun, facts: &ExperimentFacts, runs_done: u64) -> RunResult;
    /// Whether a signal asks to stop.
    fn is_interrupted(&self) -> bool {
        false
    }
    fn wait(&mut self, span: Nanos) -> bool;
    /// Judges the precision of the runs so far; called only if the experiment has a stop rule.
    fn check_precision(&mut self, _state: &ExperimentState) -> Result<PrecisionResult, Failure> {
        Ok(PrecisionResult::Wide)
    }
    /// Whether each of its gates is decided by the runs so far.
    fn are_gates_decided(&mut self, _state: &ExperimentState) -> bool {
        false
    }
    /// Whether the time of the experiment is up.
    fn is_over_budget(&self) -> bool {
        false
    }
    fn end_block(&mut self) {}
    fn show(&mut self, _event: ExperimentEvent<'_>) {}
}

/// The journal of a runner: that of an open experiment, or only in memory.
pub(crate) trait RunJournal {
    fn note(&mut self, entry: JournalEntry) -> Result<(), ExperimentError>;
    /// The state after all entries.
    fn state(&self) -> &ExperimentState;
}

impl RunJournal for ExperimentState {
    fn note(&mut self, entry: JournalEntry) -> Result<(), ExperimentError> {
        self.apply(entry);
        Ok(())
    }

    fn state(&self) -> &ExperimentState {
        self
    }
}

/// How the runner treats boots and failures, and what it measures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunPolicy {
    /// The id of this boot; `None` if it cannot be read.
    pub(crate) boot_id: Option<String>,
    /// Continue after a failed run.
    pub(crate) keep_going: bool,
    /// Conditions that this host cannot measure. Those that were never measured are dropped before anything is run.
    pub(crate) absent: Vec<ExcludedCondition>,
    /// Give up a condition if it was never measured and a run of it cannot begin.
    pub(crate) drop_impossible: bool,
    /// How often its gates are judged, the end included; 0 without gates.
    pub(crate) gate_looks: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunnerOutcome {
    /// Nothing is left to do.
    Finished,
    /// The host must reboot before this block.
    Reboot {
        block: u32,
        /// Whether the runner did anything before.
        progressed: bool,
    },
    Interrupted,
    Failed(Failure),
    /// So many runs from the start have no answer, and none has one: the target is probably down. The failure is that of the
    /// last.
    Silent {
        runs: usize,
        failure: Failure,
    },
}

/// Runs an experiment from the state that its journal is in.
pub(crate) struct ExperimentRunner<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) policy: RunPolicy,
    pub(crate) journal: &'a mut dyn RunJournal,
    pub(crate) executor: &'a mut dyn RunExecutor,
}

impl ExperimentRunner<'_> {
    /// Runs what is due.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(crate) fn run(&mut self) -> Result<RunnerOutcome, ExperimentError> {
        let boot_id = self.policy.boot_id.clone();
        self.journal.note(JournalEntry::Opened { pid: std::process::id(), boot_id: boot_id.clone() })?;
        for ExcludedCondition { factors, reason } in std::mem::take(&mut self.policy.absent) {
            if self.journal.state().is_open(&factors) {
                self.journal.note(JournalEntry::ConditionDropped { factors, reason })?;
            }
        }
        let mut scheduler = RunScheduler::of(self.experiment);
        let (mut progressed, mut has_run) = (false, false);
        loop {
            let mut step = scheduler.next(self.journal.state(), boot_id.as_deref());
            if let NextStep::CheckPrecision { block } = step {
                match self.is_narrow(block) {
                    Err(failure) => return Ok(RunnerOutcome::Failed(failure)),
                    Ok(true) => {
                        self.journal.note(JournalEntry::NarrowEnough { block })?;
                        continue;
                    }
                    Ok(false) => step = scheduler.enter(block + 1, self.journal.state(), boot_id.as_deref()),
                }
            }
            let is_left = matches!(step, NextStep::BeginBlock { .. } | NextStep::Run(_));
            let is_balanced = is_left && self.journal.state().is_balanced(&self.experiment.conditions);
            let is_over_budget = is_balanced && self.executor.is_over_budget();
            if is_over_budget || (is_left && self.is_decided()?) {
                self.executor.end_block();
                return self.finish(is_over_budget);
            }
            match step {
                NextStep::BeginBlock { block, pause } => {
                    if pause.is_some_and(|pause| !self.executor.wait(pause)) {
                        return Ok(RunnerOutcome::Interrupted);
                    }
                    self.executor.show(ExperimentEvent::BlockBegan(block));
                    self.journal.note(JournalEntry::BlockBegan { block, boot_id: boot_id.clone() })?;
                }
                NextStep::EndBlock { block } => {
                    self.executor.end_block();
                    self.journal.note(JournalEntry::BlockEnded { block, boot_id: boot_id.clone() })?;
                }
                NextStep::Reboot { block } => return Ok(RunnerOutcome::Reboot { block, progressed }),
                NextStep::Run(_) if self.executor.is_interrupted() => return Ok(RunnerOutcome::Interrupted),
                NextStep::Run(mut due) => {
                    due.settle = if has_run { self.experiment.settle() } else { Nanos::ZERO };
                    has_run = true;
                    if let Some(end) = self.run_one(&due)? {
                        return Ok(end);
                    }
                }
                NextStep::Finish | NextStep::CheckPrecision { .. } => return self.finish(false),
            }
            progressed = true;
        }
    }

    fn finish(&mut self, over_budget: bool) -> Result<RunnerOutcome, ExperimentError> {
        if !self.journal.state().finished {
            self.journal.note(JournalEntry::Finished { looks: Some(self.experiment.design.looks), over_budget })?;
        }
        Ok(RunnerOutcome::Finished)
    }

    /// Judges the gates if that is due after the last run.
    fn is_decided(&mut self) -> Result<bool, ExperimentError> {
        let (looks, state) = (self.policy.gate_looks, self.journal.state());
        let all = self.experiment.design.runs_at_most(self.experiment.conditions.len());
        if state.runs_done() == 0 || state.runs_done() * u64::from(looks) % all > 0 || looks < 2 {
            return Ok(false);
        }
        if !state.is_looked_at() {
            self.journal.note(JournalEntry::Looked { looks })?;
        }
        Ok(self.executor.are_gates_decided(self.journal.state()))
    }

    fn is_narrow(&mut self, block: u32) -> Result<bool, Failure> {
        let precision = self.executor.check_precision(self.journal.state())?;
        if precision == PrecisionResult::Infinite {
            self.executor.show(ExperimentEvent::InfiniteStatistic);
        }
        let is_narrow = precision == PrecisionResult::Narrow;
        self.executor.show(ExperimentEvent::PrecisionChecked { block, is_narrow });
        Ok(is_narrow)
    }

    /// Measures one run; the outcome of the runner if it stops with this run.
    fn run_one(&mut self, due: &DueRun) -> Result<Option<RunnerOutcome>, ExperimentError> {
        self.journal.note(JournalEntry::RunBegan { key: due.key.clone(), position: due.position })?;
        let state = self.journal.state();
        let has_rounds = self.experiment.design.has_rounds();
        let facts = due.key.facts(due.position, &state.id, self.policy.boot_id.clone(), has_rounds);
        let RunResult { outcome, recording, failure, kind } = self.executor.measure(due, &facts, state.runs_done());
        let factors = &due.key.factors;
        let is_refused = outcome == RunOutcome::Refused;
        let impossible = self.policy.drop_impossible && is_refused && !self.journal.state().has_measured(factors);
        // A run that is refused while the runner keeps going is over: it is not repeated.
        let is_over = is_refused && self.policy.keep_going && !impossible;
        let noted = if is_over { RunOutcome::Failed } else { outcome };
        let reason = failure.as_ref().map(in_one_line);
        let why = reason.clone().unwrap_or_default();
        let (block, position) = (due.key.block, due.position.position);
        self.journal.note(JournalEntry::RunEnded { block, position, outcome: noted, recording, reason })?;
        match outcome {
            RunOutcome::Completed | RunOutcome::Untrusted => Ok(None),
            RunOutcome::Interrupted | RunOutcome::Died => {
                Ok(Some(failure.map_or(RunnerOutcome::Interrupted, RunnerOutcome::Failed)))
            }
            RunOutcome::Refused if impossible => {
                self.executor.show(ExperimentEvent::ConditionDropped { factors, reason: &why });
                self.journal.note(JournalEntry::ConditionDropped { factors: factors.clone(), reason: why })?;
                Ok(None)
            }
            RunOutcome::Failed if kind != FailureKind::NoResult && !self.policy.keep_going => {
                match (self.silent_from_the_start(), failure) {
                    (Some(runs), Some(failure)) => Ok(Some(RunnerOutcome::Silent { runs, failure })),
                    _ => Ok(self.go_on(kind, factors, &why)),
                }
            }
            RunOutcome::Failed | RunOutcome::Refused if self.policy.keep_going => Ok(self.go_on(kind, factors, &why)),
            RunOutcome::Failed | RunOutcome::Refused => {
                Ok(Some(RunnerOutcome::Failed(failure.unwrap_or_else(|| Failure::world("a run failed")))))
            }
        }
    }

    /// Shows a failed run, after which the runner continues.
    fn go_on(&mut self, kind: FailureKind, factors: &Factors, reason: &str) -> Option<RunnerOutcome> {
        self.executor.show(match kind {
            FailureKind::Unanswered => ExperimentEvent::RunUnanswered { factors, reason },
            FailureKind::Unserved | FailureKind::NoResult => ExperimentEvent::RunFailed { factors, reason },
        });
        None
    }

    /// The number of failed runs if it is so high, and none was answered, that the target is probably down. One condition of
    /// several may lose everything, which is a result.
    fn silent_from_the_start(&self) -> Option<usize> {
        let state = self.journal.state();
        let is_answered = |outcome| state.runs_that(outcome).next().is_some();
        let silent: BTreeSet<&Factors> = state.runs_that(RunOutcome::Failed).map(|run| &run.key.factors).collect();
        let is_open = |condition: &&ExperimentCondition| !state.is_dropped(&condition.factors);
        let open = self.experiment.conditions.iter().filter(is_open).count();
        let runs = state.runs_that(RunOutcome::Failed).count();
        let is_silent = !is_answered(RunOutcome::Completed)
            && !is_answered(RunOutcome::Untrusted)
            && runs >= defaults::SILENT_RUNS
            && silent.len() >= defaults::SILENT_CONDITIONS.min(open);
        is_silent.then_some(runs)
    }
}

/// Message and cause of a failure, for the journal.
pub(crate) fn in_one_line(failure: &Failure) -> String {
    let because = failure.cause.as_ref().map(|cause| format!(": {}", cause.replace('\n', "; ")));
    format!("{}{}", failure.message, because.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BetweenBlocks, Design, Hooks, Kind, Plan, RunOrder, RunsRule};

    /// Plays back outcomes and writes down what happens.
    #[derive(Default)]
    struct FakeExecutor {
        /// Of the runs, in their order; those after the last are completed.
        outcomes: Vec<(RunOutcome, Option<Failure>)>,
        precisions: Vec<PrecisionResult>,
        refuses_to_wait: bool,
        log: Vec<String>,
    }

    impl RunExecutor for FakeExecutor {
        fn measure(&mut self, due: &DueRun, facts: &ExperimentFacts, runs_done: u64) -> RunResult {
            if due.settle > Nanos::ZERO && !self.wait(due.settle) {
                return RunResult::unrecorded(RunOutcome::Interrupted, None);
            }
            let (outcome, failure) =
                if self.outcomes.is_empty() { (RunOutcome::Completed, None) } else { self.outcomes.remove(0) };
            assert_eq!((facts.position, facts.experiment.as_str()), (due.position.position, "id"));
            self.log.push(format!("run {} after {runs_done}", due.key.factors["load"]));
            let is_silence = failure.as_ref().is_some_and(|failure| failure.is_silence);
            let kind = if is_silence { FailureKind::Unanswered } else { FailureKind::NoResult };
            RunResult { kind, ..RunResult::unrecorded(outcome, failure) }
        }

        fn wait(&mut self, span: Nanos) -> bool {
            self.log.push(format!("wait {}", span.0));
            !self.refuses_to_wait
        }

        fn check_precision(&mut self, _state: &ExperimentState) -> Result<PrecisionResult, Failure> {
            if self.precisions.is_empty() { Err(Failure::world("unreadable")) } else { Ok(self.precisions.remove(0)) }
        }

        fn show(&mut self, event: ExperimentEvent<'_>) {
            self.log.push(match event {
                ExperimentEvent::BlockBegan(block) => format!("block {block}"),
                ExperimentEvent::ConditionDropped { reason, .. } => format!("dropped: {reason}"),
                ExperimentEvent::RunFailed { reason, .. } => format!("failed: {reason}"),
                ExperimentEvent::RunUnanswered { reason, .. } => format!("unanswered: {reason}"),
                ExperimentEvent::PrecisionChecked { block, is_narrow } => format!("narrow after {block}: {is_narrow}"),
                ExperimentEvent::InfiniteStatistic => "infinite".into(),
            });
        }
    }

    /// Two conditions in turn, a run of each in every block.
    fn experiment(blocks: u32, between: BetweenBlocks) -> Experiment {
        let condition = |value: &str| ExperimentCondition {
            hooks: Hooks::default(),
            factors: Factors::from([("load".to_owned(), value.to_owned())]),
            plan: Plan { runs: Vec::new(), rounds: 1 },
        };
        let design = Design {
            runs: RunsRule::PerBlock(1),
            warmup_runs: 0,
            blocks,
            between,
            order: RunOrder::Listed,
            seed: Some(1),
            settle: Nanos(7),
            looks: None,
        };
        let conditions = vec![condition("a"), condition("b")];
        Experiment { name: "x".into(), kind: Kind::Ping, conditions, design, contrasts: Vec::new() }
    }

    fn failure(message: &str) -> Option<Failure> {
        Some(Failure::world(message).because("one\ntwo"))
    }

    fn run(
        experiment: &Experiment,
        policy: RunPolicy,
        state: &mut ExperimentState,
        executor: &mut FakeExecutor,
    ) -> RunnerOutcome {
        ExperimentRunner { experiment, policy, journal: state, executor }.run().expect("a journal in memory")
    }

    #[test]
    fn runs_settle_and_blocks_pause() {
        let experiment = experiment(2, BetweenBlocks::Pause(Nanos(60)));
        let (mut state, mut executor) = (ExperimentState::new("id".into()), FakeExecutor::default());
        let end = run(&experiment, RunPolicy::default(), &mut state, &mut executor);
        assert_eq!((end, state.finished, state.runs_done()), (RunnerOutcome::Finished, true, 4));
        let log = [
            "block 1",
            "run a after 0",
            "wait 7",
            "run b after 1",
            "wait 60",
            "block 2",
            "wait 7",
            "run a after 2",
            "wait 7",
            "run b after 3",
        ];
        assert_eq!(executor.log, log);
    }

    #[test]
    fn a_failed_run_stops_the_runner_with_its_failure() {
        let experiment = experiment(1, BetweenBlocks::Nothing);
        let mut state = ExperimentState::new("id".into());
        let outcomes = vec![(RunOutcome::Failed, failure("it broke"))];
        let mut executor = FakeExecutor { outcomes, ..FakeExecutor::default() };
        let end = run(&experiment, RunPolicy::default(), &mut state, &mut executor);
        assert!(matches!(end, RunnerOutcome::Failed(failure) if failure.message == "it broke"));
        assert_eq!(state.runs[0].reason.as_deref(), Some("it broke: one; two"));
        // The failed run is over; the runner continues with the next one.
        let end = run(&experiment, RunPolicy::default(), &mut state, &mut executor);
        assert_eq!((end, state.runs.len()), (RunnerOutcome::Finished, 2));
    }

    #[test]
    fn the_failure_is_that_of_the_run_that_stopped_the_runner() {
        let experiment = experiment(1, BetweenBlocks::Nothing);
        let mut state = ExperimentState::new("id".into());
        let outcomes = vec![(RunOutcome::Refused, failure("no CPU")), (RunOutcome::Failed, failure("it broke"))];
        let mut executor = FakeExecutor { outcomes, ..FakeExecutor::default() };
        let policy = RunPolicy { drop_impossible: true, ..RunPolicy::default() };
        let end = run(&experiment, policy, &mut state, &mut executor);
        assert!(matches!(end, RunnerOutcome::Failed(failure) if failure.message == "it broke"));
        assert_eq!(state.dropped[0].reason, "no CPU: one; two");
        assert!(executor.log.contains(&"dropped: no CPU: one; two".to_owned()), "{:?}", executor.log);
    }

    /// Outcomes of runs that were answered or not.
    fn answers(answered: &[bool]) -> Vec<(RunOutcome, Option<Failure>)> {
        let silence = || Failure::world("no answer").of_silence(true);
        let outcome = |answered: &bool| {
            if *answered { (RunOutcome::Completed, None) } else { (RunOutcome::Failed, Some(silence())) }
        };
        answered.iter().map(outcome).collect()
    }

    #[test]
    fn a_single_silent_condition_of_several_does_not_stop_the_runner() {
        let mut experiment = experiment(1, BetweenBlocks::Nothing);
        (experiment.design.runs, experiment.design.order) = (RunsRule::PerBlock(4), RunOrder::Randomized);
        let begins_with = |seed: &u64| {
            let order = Design { seed: Some(*seed), ..experiment.design.clone() }.schedule(2, 1);
            order.iter().take_while(|run| run.condition == order[0].condition).count()
        };
        experiment.design.seed = Some((1..1_000).find(|seed| begins_with(seed) == 3).expect("a seed"));
        let ended = |answered: &[bool]| {
            let mut state = ExperimentState::new("id".into());
            let mut executor = FakeExecutor { outcomes: answers(answered), ..FakeExecutor::default() };
            (run(&experiment, RunPolicy::default(), &mut state, &mut executor), state.runs.len())
        };
        assert_eq!(ended(&[false, false, false, true]), (RunnerOutcome::Finished, 8));
        let failure = Failure::world("no answer").of_silence(true);
        assert_eq!(ended(&[false; 8]), (RunnerOutcome::Silent { runs: 4, failure }, 4));
        // Only one condition is left.
        let mut state = ExperimentState::new("id".into());
        let absent = vec![ExcludedCondition {
            factors: Factors::from([("load".to_owned(), "a".to_owned())]),
            reason: "no governor".into(),
        }];
        let mut executor = FakeExecutor { outcomes: answers(&[false; 4]), ..FakeExecutor::default() };
        let end = run(&experiment, RunPolicy { absent, ..RunPolicy::default() }, &mut state, &mut executor);
        assert!(matches!(end, RunnerOutcome::Silent { runs: 3, .. }), "{end:?}");
    }
}
