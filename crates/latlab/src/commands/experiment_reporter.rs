//! How an experiment ended, and its report.

use std::path::Path;

use super::Outcome;
use super::compare::warn_of_undecided_changes;
use crate::analysis::{ExperimentGateResult, ExperimentGates, with_gates};
use crate::cli::args::{ReportFormat, RunArgs};
use crate::cli::resolve::ExperimentJob;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::{ExperimentError, ExperimentState, PartialReport, ReportReader, RunnerOutcome, in_one_line};
use crate::facts::RunOutcome;
use crate::platform::ownership::quoted;
use crate::report::experiment::{json, markdown, text};
use crate::units::human::shell_word;

/// Shows the report of an experiment.
pub(super) struct Reporter<'a> {
    pub(super) job: &'a ExperimentJob,
    /// Judged when the experiment is finished.
    pub(super) gates: ExperimentGates,
    pub(super) typed: &'a RunArgs,
    pub(super) console: &'a Console,
}

/// What begins the experiment of `state`, behind `latlab run`.
fn origin(state: &ExperimentState) -> String {
    match &state.recipe {
        _ if state.source.contains("--ab ") => state.source.clone(),
        Some(recipe) => recipe.name.clone(),
        None => quoted(Path::new(&state.source)),
    }
}

/// Why the first `runs` of an experiment have ended it.
fn silence(runs: usize, state: &ExperimentState) -> String {
    let unanswered = state.runs_that(RunOutcome::Failed).filter(|run| run.complete).count();
    match runs.saturating_sub(unanswered) {
        0 => format!("none of the first {runs} runs has an answer; those that were measured count as lost"),
        failed if failed == runs => format!("each of the first {runs} runs failed, and none of them is judged"),
        failed => format!("{failed} of the first {runs} runs failed, and the others have no answer and count as lost"),
    }
}

impl Reporter<'_> {
    /// Shows how the runner ended, and the report. `signalled` is the outcome of a signal.
    pub(super) fn end(
        &self,
        end: RunnerOutcome,
        directory: &Path,
        state: &ExperimentState,
        signalled: Option<Outcome>,
    ) -> Result<Outcome, Failure> {
        let (shown, done) = (quoted(directory), state.runs_done());
        let runs = if done == 1 { "run" } else { "runs" };
        // Text waits for the end of the experiment.
        let show_document = || if self.typed.json.json { self.show(directory, state) } else { Ok(()) };
        let stopped = |note: &str, failure| {
            self.console.note(note);
            // The failure that stopped it matters more than a recording that cannot be read.
            let _ = show_document();
            Err(failure)
        };
        match end {
            RunnerOutcome::Finished => self.finish(directory, state),
            RunnerOutcome::Reboot { block, progressed: false } => {
                show_document()?;
                Err(ExperimentError::SameBoot { path: directory.to_owned(), block }.into())
            }
            RunnerOutcome::Reboot { block, .. } => {
                self.console.note(&format!(
                    "block {} is done. Reboot, then continue with `latlab run {shown}`\n\
                     To continue at boot with systemd, see `latlab run {shown} --print-unit`",
                    block - 1
                ));
                show_document()?;
                Ok(Outcome::Done)
            }
            RunnerOutcome::Interrupted => {
                self.console.note(&format!("interrupted after {done} {runs}: `latlab run {shown}` continues"));
                // The exit code is that of the interrupt, whether or not the report can be read.
                let _ = self.show(directory, state);
                Ok(signalled.unwrap_or(Outcome::Interrupted))
            }
            RunnerOutcome::Failed(failure) | RunnerOutcome::Silent { failure, .. } if signalled.is_some() => {
                self.console.warning(&in_one_line(&failure), failure.hint.as_deref());
                self.end(RunnerOutcome::Interrupted, directory, state, signalled)
            }
            RunnerOutcome::Failed(failure) => stopped(
                &format!(
                    "stopped after {done} {runs}: `latlab run {shown}` continues, with `--keep-going` past failures"
                ),
                failure,
            ),
            RunnerOutcome::Silent { runs, failure } => {
                let (why, again) = (silence(runs, state), origin(state));
                let note = format!(
                    "stopped: {why}. `latlab run {shown}` continues, with `--keep-going` whether or not anything \
                     answers; `latlab run --new {again}` begins afresh"
                );
                stopped(&note, failure)
            }
        }
    }

    /// Shows the report of a finished experiment with its warnings.
    pub(super) fn finish(&self, directory: &Path, state: &ExperimentState) -> Result<Outcome, Failure> {
        let note = |text: &str| self.console.note(text);
        let reader = ReportReader { gates: Some(&self.gates), ..self.reader(directory, state, &note) };
        let partial = reader.read();
        self.print(&partial)?;
        let report = partial.report;
        report.warnings().iter().for_each(|warning| self.console.warning(warning, None));
        let undecided = report.gates.iter().filter_map(ExperimentGateResult::undecided_warning);
        undecided.for_each(|warning| self.console.caveat(&warning));
        warn_of_undecided_changes(&report.change_gates, self.console);
        if state.recipe.is_some() {
            for place in reader.unchanged_settings("offload")? {
                self.console.warning(
                    &format!("{place} before the run: rows with and without this setting are the same here"),
                    Some("enable it with `ethtool -K`, and measure again"),
                );
            }
        }
        with_gates(report.outcome(), self.gates.outcome(&report.gates, &report.change_gates))
    }

    fn show(&self, directory: &Path, state: &ExperimentState) -> Result<(), Failure> {
        self.print(&self.reader(directory, state, &|text| self.console.note(text)).read())
    }

    fn reader<'b>(
        &'b self,
        directory: &'b Path,
        state: &'b ExperimentState,
        note: &'b dyn Fn(&str),
    ) -> ReportReader<'b> {
        let ExperimentJob { experiment, impossible, .. } = self.job;
        ReportReader { directory, state, experiment, impossible, shift: false, gates: None, note }
    }

    /// Prints the report. A document has what could be read even if something could not.
    fn print(&self, PartialReport { report, failure }: &PartialReport) -> Result<(), Failure> {
        if self.typed.json.json {
            self.console.document(&json(report))?;
        }
        if let Some(failure) = failure {
            return Err(failure.clone());
        }
        if !self.typed.json.json && !report.is_all_missing() && (report.is_judged() || report.gate_state().is_some()) {
            if report.single_condition.is_some() {
                let directory = shell_word(&report.directory);
                self.console.note(&format!("one condition: `latlab summary {directory}` shows each run"));
            }
            let plot_width = self.console.plot_width();
            self.console.data(&match self.typed.format.unwrap_or_default() {
                ReportFormat::Text => text(report, plot_width, self.console.data_style()),
                ReportFormat::Markdown => markdown(report, plot_width),
            })?;
        }
        Ok(())
    }
}
