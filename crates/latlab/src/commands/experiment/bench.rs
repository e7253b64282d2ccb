//! Each run of an experiment as its command would make it, under one progress line for all.

use std::time::Instant;

use super::left::RemainingTime;
use super::news::ExperimentObserver;
use super::outcome::{in_one_line, outcome};
use super::waiting;
use super::widths::{PrecisionResult, PrecisionRule};
use crate::cli::resolve::ExperimentJob;
use crate::commands::measure_and_report::ProgressLine;
use crate::commands::{keys, measure_and_report};
use crate::console::{Console, Progress};
use crate::diagnostics::Failure;
use crate::experiment::{DueRun, ExperimentEvent, ExperimentState, OpenExperiment, RunExecutor, RunOutcome, RunResult};
use crate::measure::{PlanOutcome, RecordingTarget};
use crate::plan::condition_words;
use crate::platform::SignalWatch;
use crate::recording::Store;
use crate::units::Nanos;

/// What measures the runs of an experiment.
pub(in crate::commands) struct Bench<'a> {
    job: &'a ExperimentJob,
    interrupt: &'a SignalWatch,
    console: &'a Console,
    widths: PrecisionRule,
    left: RemainingTime,
    failure: Option<Failure>,
    listener: ExperimentObserver,
}

impl<'a> Bench<'a> {
    pub(in crate::commands) fn new(job: &'a ExperimentJob, interrupt: &'a SignalWatch, console: &'a Console) -> Self {
        let (widths, left, listener) =
            (PrecisionRule::default(), RemainingTime::of(&job.experiment), ExperimentObserver::default());
        Bench { job, interrupt, console, widths, left, failure: None, listener }
    }

    /// The first failure of a run.
    pub(in crate::commands) fn into_failure(self) -> Option<Failure> {
        self.failure
    }

    /// Measures, and says what came of it; none where it was interrupted before anything was measured.
    fn conduct(
        &self,
        due: &DueRun,
        open: &OpenExperiment,
        boot_id: Option<String>,
    ) -> Result<Option<PlanOutcome>, Failure> {
        let plan = &self.job.experiment.conditions[due.condition].plan;
        let key = keys::find(&self.job.keys[due.condition])?;
        keys::require_key_for_other_hosts(plan)?;
        let store = Store::open(&open.runs())?;
        let facts = due.key.facts(due.place, &open.standing().id, boot_id);
        let place = RecordingTarget { store: &store, directory: None, experiment: Some(&facts), live: None };
        let (start, done) = (Instant::now(), open.standing().runs_done());
        let progress = self.console.progress(&self.job.experiment.name, Some(self.left.steps()));
        let words = condition_words(&due.key.factors);
        let mut tick = |progress: &Progress| {
            let beside = format!("{} · {words}", self.left.words(due.key.block, done, start.elapsed()));
            progress.show(self.left.step(due.condition, done, start.elapsed()), &beside);
        };
        measure_and_report::measure(
            plan,
            key.as_ref(),
            place,
            self.interrupt,
            self.console,
            ProgressLine { progress, draw: &mut tick },
        )
    }
}

impl RunExecutor for Bench<'_> {
    fn measure(&mut self, due: &DueRun, open: &OpenExperiment, boot_id: Option<&str>) -> RunResult {
        let start = Instant::now();
        let conducted = self.conduct(due, open, boot_id.map(str::to_owned));
        let (outcome, recording, failure) = match conducted {
            Ok(Some(conducted)) => outcome(conducted, self.interrupt.outcome().is_some()),
            Ok(None) => (RunOutcome::Interrupted, None, None),
            Err(_) if self.interrupt.outcome().is_some() => (RunOutcome::Interrupted, None, None),
            Err(failure) => (RunOutcome::Refused, None, Some(failure)),
        };
        self.interrupt.rearm();
        self.left.learn(due.condition, start.elapsed());
        let reason = failure.as_ref().map(in_one_line);
        self.failure = self.failure.take().or(failure);
        RunResult { outcome, recording, reason }
    }

    fn wait(&mut self, span: Nanos) -> bool {
        waiting::wait(span, &self.job.experiment.name, self.interrupt, self.console)
    }

    fn is_narrow(&mut self, open: &OpenExperiment) -> Option<bool> {
        let looked = self.widths.look(&self.job.experiment, open, self.console);
        let width = looked.map_err(|failure| self.failure = Some(failure)).ok()?;
        if width == PrecisionResult::Lost {
            self.listener.hear_of_lost(self.console);
        }
        Some(width == PrecisionResult::Narrow)
    }

    fn hear(&mut self, news: ExperimentEvent<'_>, _standing: &ExperimentState) {
        self.listener.hear(&news, self.console);
    }
}
