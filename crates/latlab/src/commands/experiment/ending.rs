//! How an experiment ended, in words and as an exit code.

use std::path::PathBuf;

use super::Asked;
use super::reporting::{report, show};
use crate::cli::resolve::RunJob;
use crate::commands::Outcome;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::{ExperimentError, ExperimentState, RunnerOutcome};

/// An experiment that this process has let go of.
pub(in crate::commands) struct Ended {
    pub(in crate::commands) path: PathBuf,
    pub(in crate::commands) standing: ExperimentState,
    /// The first failure of a run.
    pub(in crate::commands) failure: Option<Failure>,
    /// Who interrupted it.
    pub(in crate::commands) signalled: Option<Outcome>,
}

/// Says how it ended, and shows what was measured.
pub(in crate::commands) fn end(
    end: RunnerOutcome,
    ended: &Ended,
    asked: &Asked,
    (job, console): (&RunJob, &Console),
) -> Result<Outcome, Failure> {
    let Ended { path, standing, failure, signalled } = ended;
    let directory = path.display();
    let done = standing.runs_done();
    // A document says how far it came; text waits for the end.
    let show_document = || if job.json { show(path, standing, asked, (true, console)) } else { Ok(()) };
    let runs = if done == 1 { "run" } else { "runs" };
    match end {
        RunnerOutcome::Finished => report(path, asked, job.json, console),
        RunnerOutcome::Reboot { block, progressed: false } => {
            show_document()?;
            Err(ExperimentError::SameBoot { path: path.clone(), block }.into())
        }
        RunnerOutcome::Reboot { block, .. } => {
            console.note(&format!(
                "block {} is done: reboot, then run me again: `latlab run {directory}`\n\
                 or let systemd do that at boot: `latlab run {directory} --print-unit`",
                block - 1
            ));
            show_document()?;
            Ok(Outcome::Done)
        }
        RunnerOutcome::Interrupted => {
            console.note(&format!("interrupted after {done} {runs}: `latlab run {directory}` goes on"));
            // What was measured is shown as far as it can be; the interrupt is what the exit code tells.
            let _ = show(path, standing, asked, (job.json, console));
            Ok(signalled.unwrap_or(Outcome::Interrupted))
        }
        RunnerOutcome::Failed => {
            console.note(&format!(
                "stopped after {done} {runs}: `latlab run {directory}` goes on, `--keep-going` past failures"
            ));
            // Why it stopped is the better reason, where a recording cannot be read either.
            let _ = show_document();
            Err(failure.clone().unwrap_or_else(|| Failure::world("a run failed")))
        }
    }
}
