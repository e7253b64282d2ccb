//! From step to step until nothing is left, or somebody stops it. What a step does to the world is the caller's: this
//! only sees to it that the journal knows before anything happens, and again after.

use super::course::{DueRun, NextStep, RunScheduler};
use super::directory::OpenExperiment;
use super::error::ExperimentError;
use super::event::{JournalEntry, RunOutcome};
use super::standing::ExperimentState;
use crate::plan::{Experiment, Factors};
use crate::units::Nanos;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    /// How it ended.
    pub outcome: RunOutcome,
    /// The name of its recording.
    pub recording: Option<String>,
    /// Why it did not end by its own rule.
    pub reason: Option<String>,
}

/// Something to tell whoever watches.
#[derive(Clone, Debug, PartialEq)]
pub enum ExperimentEvent<'a> {
    /// A block begins.
    Block(u32),
    /// A condition is given up, for this reason.
    Dropped(&'a Factors, &'a str),
    /// A run failed, and the experiment goes on.
    Failed(&'a DueRun, &'a str),
    /// The widths were looked at after this block: whether they are narrow enough.
    Widths(u32, bool),
}

/// What conducting needs done.
pub trait RunExecutor {
    /// Measures what is due in this boot, into the store `runs` of `experiment`.
    fn measure(&mut self, due: &DueRun, experiment: &OpenExperiment, boot_id: Option<&str>) -> RunResult;
    /// Waits; false: somebody stopped it.
    fn wait(&mut self, span: Nanos) -> bool;
    /// Whether the intervals are as narrow as the rule demands; none where a recording cannot be read.
    fn is_narrow(&mut self, experiment: &OpenExperiment) -> Option<bool>;
    /// Hears what happens.
    fn hear(&mut self, news: ExperimentEvent<'_>, standing: &ExperimentState);
}

/// How the world is, and how failures are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPolicy {
    /// Which boot this is; none where that cannot be read.
    pub boot_id: Option<String>,
    /// A run that fails does not end it.
    pub keep_going: bool,
    /// A condition that never could begin is given up instead.
    pub drop_impossible: bool,
}

/// How conducting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunnerOutcome {
    /// Nothing is left to do.
    Finished,
    /// This block needs a reboot first; so many runs were made since this began.
    Reboot {
        /// From 1.
        block: u32,
        /// Whether anything was done before that.
        progressed: bool,
    },
    /// Somebody stopped it.
    Interrupted,
    /// A run failed.
    Failed,
}

/// Conducts `experiment` from where it stands.
///
/// # Errors
/// The journal cannot be written.
pub fn conduct(
    experiment: &Experiment,
    open: &mut OpenExperiment,
    manners: &RunPolicy,
    hands: &mut dyn RunExecutor,
) -> Result<RunnerOutcome, ExperimentError> {
    let boot_id = manners.boot_id.clone();
    open.note(JournalEntry::Opened { pid: std::process::id(), boot_id: boot_id.clone() })?;
    let mut course = RunScheduler::of(experiment);
    let (mut progressed, mut last) = (false, None);
    loop {
        let mut step = course.next(open.standing(), boot_id.as_deref());
        if let NextStep::LookAtWidths { block } = step {
            let Some(narrow) = hands.is_narrow(open) else { return Ok(RunnerOutcome::Failed) };
            hands.hear(ExperimentEvent::Widths(block, narrow), open.standing());
            if narrow {
                open.note(JournalEntry::NarrowEnough { block })?;
                continue;
            }
            step = course.enter(block + 1, open.standing(), boot_id.as_deref());
        }
        match step {
            NextStep::BeginBlock { block, pause } => {
                if pause.is_some_and(|pause| !hands.wait(pause)) {
                    return Ok(RunnerOutcome::Interrupted);
                }
                hands.hear(ExperimentEvent::Block(block), open.standing());
                open.note(JournalEntry::BlockBegan { block, boot_id: boot_id.clone() })?;
            }
            NextStep::EndBlock { block } => open.note(JournalEntry::BlockEnded { block, boot_id: boot_id.clone() })?,
            NextStep::Reboot { block } => return Ok(RunnerOutcome::Reboot { block, progressed }),
            NextStep::Run(due) => {
                let switched = last.replace(due.condition).is_some_and(|last| last != due.condition);
                if switched && !hands.wait(experiment.design.settle) {
                    return Ok(RunnerOutcome::Interrupted);
                }
                if let Some(end) = take(&due, open, manners, hands)? {
                    return Ok(end);
                }
            }
            NextStep::Finish | NextStep::LookAtWidths { .. } => {
                if !open.standing().finished {
                    open.note(JournalEntry::Finished)?;
                }
                return Ok(RunnerOutcome::Finished);
            }
        }
        progressed = true;
    }
}

/// Takes one run; how conducting ends, if it ends with it.
fn take(
    due: &DueRun,
    open: &mut OpenExperiment,
    manners: &RunPolicy,
    hands: &mut dyn RunExecutor,
) -> Result<Option<RunnerOutcome>, ExperimentError> {
    open.note(JournalEntry::RunBegan { key: due.key.clone(), place: due.place })?;
    let RunResult { outcome, recording, reason } = hands.measure(due, open, manners.boot_id.as_deref());
    let factors = &due.key.factors;
    let impossible =
        manners.drop_impossible && outcome == RunOutcome::Refused && !open.standing().has_measured(factors);
    // Whoever keeps going has seen it fail: it is not tried for ever.
    let noted = match outcome {
        RunOutcome::Refused if manners.keep_going && !impossible => RunOutcome::Failed,
        outcome => outcome,
    };
    let why = reason.clone().unwrap_or_default();
    let (block, position) = (due.key.block, due.place.position);
    open.note(JournalEntry::RunEnded { block, position, outcome: noted, recording, reason })?;
    match outcome {
        RunOutcome::Completed | RunOutcome::Untrusted => Ok(None),
        RunOutcome::Interrupted | RunOutcome::Died => Ok(Some(RunnerOutcome::Interrupted)),
        RunOutcome::Refused if impossible => {
            hands.hear(ExperimentEvent::Dropped(factors, &why), open.standing());
            open.note(JournalEntry::ConditionDropped { factors: factors.clone(), reason: why })?;
            Ok(None)
        }
        RunOutcome::Failed | RunOutcome::Refused if manners.keep_going => {
            hands.hear(ExperimentEvent::Failed(due, &why), open.standing());
            Ok(None)
        }
        RunOutcome::Failed | RunOutcome::Refused => Ok(Some(RunnerOutcome::Failed)),
    }
}
