//! `latlab summary REC…`: prints summaries of recordings, and judges conditions on them (`--fail-if`).

use std::path::PathBuf;

use super::observation_groups::runs_in;
use super::{Outcome, measure_and_report};
use crate::analysis::{ConditionResult, FailIf, Summary, SummaryOptions, summarise, summary_outcome};
use crate::cli::resolve::SummarySpec;
use crate::console::{Console, Verbosity};
use crate::diagnostics::Failure;
use crate::experiment::is_experiment;
use crate::recording::Recording;
use crate::report::view::Showing;

/// Shows the summaries of the recordings in `spec`, then judges its conditions.
pub(super) fn run(spec: &SummarySpec, console: &Console) -> Result<Outcome, Failure> {
    let conditions = spec.fail_if.iter().map(|text| FailIf::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let every_metric = spec.verbosity > Verbosity::Usual;
    let mut summaries = Vec::new();
    let (mut half, mut like) = (false, None);
    for path in recordings(&spec.recordings, console)? {
        let recording = Recording::open(&path)?;
        if let Some(note) = recording.note() {
            console.note(note);
        }
        let judging = spec.over(&recording.manifest().spec.judging);
        half |= judging.half;
        like = like.or(judging.like);
        let mut wishes = SummaryOptions {
            judging,
            intervals: spec.intervals,
            metrics: measure_and_report::metrics(spec.json || every_metric),
        };
        conditions.iter().for_each(|condition| wishes.include(condition.estimand()));
        summaries.push(summarise(&recording, &wishes)?);
    }
    // judged before anything is shown: a condition that cannot be judged is a wrong request
    let judgements = judge(&conditions, &summaries)?;
    measure_and_report::show(&summaries, Showing { half, every_metric, kept: true, like }, spec.json, console)?;
    let held = report_conditions(&judgements, summaries.len() > 1, console);
    Ok(if held { Outcome::AnswerIsNo } else { summary_outcome(&summaries) })
}

/// `paths`, in which the directory of an experiment stands for its runs.
fn recordings(paths: &[PathBuf], console: &Console) -> Result<Vec<PathBuf>, Failure> {
    let mut recordings = Vec::new();
    for path in paths {
        if !is_experiment(path) {
            recordings.push(path.clone());
            continue;
        }
        let runs = runs_in(path, console)?.runs;
        if runs.is_empty() {
            return Err(Failure::request(format!("the experiment `{}` has no run to be summarised", path.display()))
                .hint(format!("`latlab run {}` measures them", path.display())));
        }
        recordings.extend(runs.into_iter().map(|run| run.path));
    }
    Ok(recordings)
}

/// The result of each condition on each summary, with the recording.
fn judge<'a>(conditions: &[FailIf], summaries: &'a [Summary]) -> Result<Vec<(&'a str, ConditionResult)>, Failure> {
    let pairs = summaries.iter().flat_map(|summary| conditions.iter().map(move |condition| (summary, condition)));
    pairs.map(|(summary, condition)| Ok((summary.recording.as_str(), condition.judge(summary)?))).collect()
}

/// Reports each condition that holds, of several recordings with its name; returns whether one does.
fn report_conditions(judgements: &[(&str, ConditionResult)], several: bool, console: &Console) -> bool {
    for (recording, judgement) in judgements {
        if let Some(warning) = &judgement.warning {
            console.caveat(warning);
        }
        match (judgement.held, several) {
            (false, _) => {}
            (true, false) => console.note(&judgement.message),
            (true, true) => console.note(&format!("`{recording}`: {}", judgement.message)),
        }
    }
    judgements.iter().any(|(_, judgement)| judgement.held)
}
