//! `latlab summary REC…`: what recordings say, and whether a condition on them holds.

use super::{Outcome, verdict};
use crate::analysis::{FailIf, Summary, SummaryWishes};
use crate::cli::resolve::SummarySpec;
use crate::console::{Console, Talk};
use crate::error::Failure;
use crate::recording::Recording;
use crate::report::view::Showing;

/// Shows the summaries of the recordings in `spec`, then judges its conditions.
pub(super) fn run(spec: &SummarySpec, console: &Console) -> Result<Outcome, Failure> {
    let conditions = spec.fail_if.iter().map(|text| FailIf::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let every_metric = spec.talk > Talk::Usual;
    let mut summaries = Vec::new();
    let mut half = false;
    for path in &spec.recordings {
        let recording = Recording::open(path)?;
        if let Some(note) = recording.note() {
            console.note(note);
        }
        let judging = spec.over(&recording.manifest().spec.judging);
        half |= judging.half;
        let mut wishes =
            SummaryWishes { judging, intervals: spec.intervals, metrics: verdict::metrics(spec.json || every_metric) };
        conditions.iter().for_each(|condition| wishes.include(condition));
        summaries.push(verdict::summary_of(&recording, &wishes)?);
    }
    verdict::show(&summaries, Showing { half, every_metric, kept: true }, spec.json, console)?;
    let held = judge(&conditions, &summaries, console)?;
    Ok(if held { Outcome::AnswerIsNo } else { verdict::outcome(&summaries) })
}

/// Whether any condition holds for any summary; each that does is said.
fn judge(conditions: &[FailIf], summaries: &[Summary], console: &Console) -> Result<bool, Failure> {
    let mut held = false;
    for summary in summaries {
        for condition in conditions {
            let judgement = condition.judge(summary)?;
            if let Some(warning) = &judgement.warning {
                console.caveat(warning);
            }
            if judgement.held {
                console.note(&judgement.message);
                held = true;
            }
        }
    }
    Ok(held)
}
