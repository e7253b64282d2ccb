//! What an experiment says: published figures beside measured ones, the comparison, what is not judged.

use std::path::Path;

use super::{Asked, documents, text, unchanged};
use crate::commands::Outcome;
use crate::console::Console;
use crate::diagnostics::Failure;
use crate::experiment::{ExperimentState, RunOutcome, RunState, look_at};
use crate::plan::Kind;

/// Shows what the experiment in `directory` says, and how it ends that it does.
pub(in crate::commands) fn report(
    directory: &Path,
    asked: &Asked,
    json: bool,
    console: &Console,
) -> Result<Outcome, Failure> {
    let standing = look_at(directory)?;
    show(directory, &standing, asked, (json, console))?;
    tell_what_is_not_judged(&standing, console);
    unchanged::warn(directory, &standing, "offload", console)?;
    let judged = || standing.runs.iter().filter(|run| run.is_judged());
    if judged().next().is_none() {
        let mut reasons: Vec<&str> = standing.dropped.iter().map(|(_, reason)| reason.as_str()).collect();
        reasons.dedup();
        let hint = match asked.job.experiment.kind {
            Kind::Ping | Kind::Stream if !reasons.is_empty() => {
                "another target may do: `local`, `lab` (as root), `ssh:HOST`"
            }
            _ => "`latlab list` shows how each ended",
        };
        let failure = Failure::world("no run of the experiment can be judged").hint(hint);
        return Err(if reasons.is_empty() { failure } else { failure.because(reasons.join("\n")) });
    }
    if judged().all(RunState::is_unanswered) {
        let reason = judged().find_map(|run| run.reason.clone()).unwrap_or_default();
        return Err(Failure::world("no run of the experiment was answered").because(reason));
    }
    let trusted = standing.runs_that(RunOutcome::Untrusted).next().is_none();
    let failed = standing.runs_that(RunOutcome::Failed).next().is_some();
    Ok(if trusted && !failed { Outcome::Done } else { Outcome::NotTrusted })
}

/// Shows what was measured, however the experiment ended: with `--json` one document in any case.
pub(super) fn show(
    directory: &Path,
    standing: &ExperimentState,
    asked: &Asked,
    (json, console): (bool, &Console),
) -> Result<(), Failure> {
    match json {
        true => documents::show(directory, standing, asked, console),
        false if standing.runs.iter().any(RunState::is_judged) => text::show(directory, standing, asked, console),
        false => Ok(()),
    }
}

fn tell_what_is_not_judged(standing: &ExperimentState, console: &Console) {
    let (silent, broken): (Vec<_>, Vec<_>) =
        standing.runs_that(RunOutcome::Failed).partition(|run| run.is_unanswered());
    for (runs, words) in [
        (broken, "failed and not judged"),
        (silent, "without an answer, judged as lost"),
        (standing.runs_that(RunOutcome::Untrusted).collect(), "with a fatal caveat that `latlab summary` names"),
    ] {
        if let Some(first) = runs.first() {
            let name = first.recording.as_deref().or(first.reason.as_deref()).unwrap_or("nothing recorded");
            let runs = if runs.len() == 1 { "1 run".into() } else { format!("{} runs", runs.len()) };
            console.warning(&format!("{runs} {words}; the first: {name}"), None);
        }
    }
    if standing.changes > 0 {
        console.warning("the file was changed on the way: this is no longer one experiment", None);
    }
}
