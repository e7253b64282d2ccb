//! What an experiment says: published figures beside measured ones, the comparison, what is not judged.

use std::path::Path;

use super::{Asked, beside, same, verdicts, via_growth};
use crate::commands::Outcome;
use crate::console::Console;
use crate::error::Failure;
use crate::experiment::{RunOutcome, Standing, look_at};
use crate::report::Style;

/// Shows what the experiment in `directory` says.
pub(in crate::commands) fn report(
    directory: &Path,
    asked: &Asked,
    json: bool,
    console: &Console,
) -> Result<Outcome, Failure> {
    let standing = look_at(directory)?;
    if !standing.runs.iter().any(|run| run.is_judged()) {
        let reasons: Vec<&str> = standing.dropped.iter().map(|(_, reason)| reason.as_str()).collect();
        let failure =
            Failure::world("no run of the experiment can be judged").hint("`latlab list` shows how each ended");
        return Err(if reasons.is_empty() { failure } else { failure.because(reasons.join("\n")) });
    }
    let experiment = &asked.job.experiment;
    let comparisons = verdicts::of(directory, &standing, experiment, console)?;
    let growth = via_growth::view(directory, &standing)?;
    if json {
        let document = verdicts::document(comparisons.as_ref(), directory, &standing, experiment, growth.as_ref());
        console.data(&document)?;
    } else {
        let style = Style { colour: console.data_screen().colour, ..Style::PLAIN };
        if let Some(view) = beside::measured(directory, &standing, asked)? {
            console.data(&(crate::report::beside::render(&view, style) + "\n"))?;
        }
        if let Some(view) = same::view(directory, &standing)? {
            console.data(&(crate::report::same::render(&view, style) + "\n"))?;
        }
        if let Some(view) = &growth {
            console.data(&(crate::report::via_growth::render(view, style) + "\n"))?;
        }
        match &comparisons {
            Some(comparisons) => console.data(&verdicts::text(comparisons, style))?,
            None => console.note(&format!(
                "runs of one condition only: nothing is compared; `latlab summary {}/runs/*` shows them",
                directory.display()
            )),
        }
    }
    tell_what_is_not_judged(&standing, console);
    let trusted = standing.runs_that(RunOutcome::Untrusted).next().is_none();
    let failed = standing.runs_that(RunOutcome::Failed).next().is_some();
    Ok(if trusted && !failed { Outcome::Done } else { Outcome::NotTrusted })
}

fn tell_what_is_not_judged(standing: &Standing, console: &Console) {
    for (outcome, words) in [
        (RunOutcome::Failed, "failed and are not judged"),
        (RunOutcome::Untrusted, "have a fatal caveat: `latlab summary` names it"),
    ] {
        let runs: Vec<_> = standing.runs_that(outcome).collect();
        if let Some(first) = runs.first() {
            let name = first.recording.as_deref().or(first.reason.as_deref()).unwrap_or("nothing recorded");
            console.warning(&format!("{} runs {words}, the first: {name}", runs.len()), None);
        }
    }
    if standing.changes > 0 {
        console.warning("the file was changed on the way: this is no longer one experiment", None);
    }
}
