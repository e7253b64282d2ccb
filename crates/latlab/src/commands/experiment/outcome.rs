//! How a run of an experiment ended.

use crate::analysis::summarise;
use crate::analysis::{SummaryOptions, run_outcome};
use crate::diagnostics::Failure;
use crate::experiment::{RunOutcome, outcome_of};
use crate::measure::PlanOutcome;
use crate::recording::Recording;
use crate::recording::manifest::RunEnding;

/// How a run ended that left a recording, and why if not by its own rule.
pub(super) fn outcome(conducted: PlanOutcome, signalled: bool) -> (RunOutcome, Option<String>, Option<Failure>) {
    let mut recordings = conducted.recordings.into_iter();
    let Some(finished) = recordings.next() else { return (RunOutcome::Refused, None, None) };
    let name = finished.path.file_name().map(|name| name.to_string_lossy().into_owned());
    let broken = conducted.failure.map(Failure::from).or(finished.failure.map(Failure::from));
    if signalled && finished.manifest.ending == RunEnding::Interrupted {
        return (RunOutcome::Interrupted, name, None);
    }
    if broken.is_some() || finished.manifest.ending != RunEnding::Completed {
        let died = finished.manifest.reason.unwrap_or_else(|| "the run broke off".into());
        return (RunOutcome::Failed, name, broken.or_else(|| Some(Failure::world(died))));
    }
    let summary = Recording::open(&finished.path).map_err(Failure::from).and_then(|recording| {
        let wishes = SummaryOptions { intervals: false, ..SummaryOptions::of(&recording.manifest().spec) };
        summarise(&recording, &wishes).map_err(Failure::from)
    });
    match summary.and_then(|summary| run_outcome(std::slice::from_ref(&summary)).map(|_| outcome_of(&summary))) {
        Err(silent) => (RunOutcome::Failed, name, Some(silent)),
        Ok(outcome) => (outcome, name, None),
    }
}

/// What failed and why, for the journal.
pub(super) fn in_one_line(failure: &Failure) -> String {
    let because = failure.cause.as_ref().map(|cause| format!(": {}", cause.replace('\n', "; ")));
    format!("{}{}", failure.message, because.unwrap_or_default())
}
