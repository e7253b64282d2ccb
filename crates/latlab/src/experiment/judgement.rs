//! What became of a run, told by its recording alone: whoever finds it later says the same as the process that made it.

use super::error::ExperimentError;
use super::event::RunOutcome;
use crate::analysis::{AnalysisError, Summary, SummaryOptions, summarise};
use crate::recording::Recording;
use crate::recording::manifest::RunEnding;

/// How a run ended that measured to its end and says this. Without an answer it failed, though its loss is a result.
pub fn outcome_of(summary: &Summary) -> RunOutcome {
    match (summary.counts.answered, summary.is_trustworthy()) {
        (0, _) => RunOutcome::Failed,
        (_, true) => RunOutcome::Completed,
        (_, false) => RunOutcome::Untrusted,
    }
}

/// How the run of `recording` ended, which nobody has noted; why, where it did not end by its own rule.
pub(super) fn outcome_found(recording: &Recording) -> Result<(RunOutcome, Option<String>), ExperimentError> {
    let manifest = recording.manifest();
    let told = || manifest.reason.clone();
    Ok(match manifest.ending {
        RunEnding::Completed => of_completed(recording)?,
        RunEnding::Failed => (RunOutcome::Failed, told().or_else(|| Some("the run broke off".into()))),
        RunEnding::Interrupted => (RunOutcome::Interrupted, told()),
        RunEnding::Recovered | RunEnding::Measuring => (RunOutcome::Died, Some("its process died".into())),
    })
}

fn of_completed(recording: &Recording) -> Result<(RunOutcome, Option<String>), ExperimentError> {
    let wishes = SummaryOptions { intervals: false, ..SummaryOptions::of(&recording.manifest().spec) };
    match summarise(recording, &wishes) {
        Ok(summary) => {
            let outcome = outcome_of(&summary);
            let silent = || format!("no probe was answered by `{}`", summary.condition.target);
            Ok((outcome, (outcome == RunOutcome::Failed).then(silent)))
        }
        Err(AnalysisError::Source(error)) => Err(error.into()),
        Err(refusal) => Ok((RunOutcome::Failed, Some(refusal.to_string()))),
    }
}
