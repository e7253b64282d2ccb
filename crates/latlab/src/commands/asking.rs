//! What `latlab compare` asks of recordings, and of numbers.

use super::experiment;
use crate::analysis::Estimand;
use crate::analysis::comparison::{ComparisonRequest, Gate, default_subjects, subject_named};
use crate::cli::resolve::{Grouping, RequestError, VerdictJob};
use crate::diagnostics::Failure;
use crate::metric::Metric;
use crate::plan::Contrast;

/// What is asked of recordings: what was typed or, of an experiment, what its file asks; what gates need, and the
/// differences along the distribution.
pub(super) fn of_recordings(
    job: &VerdictJob,
    asked: Option<&str>,
    gates: &[Gate],
) -> Result<ComparisonRequest, Failure> {
    let metric = match asked {
        None => Metric::RoundTripDelay,
        Some(name) => match subject_named(Some(name), "mean")? {
            Estimand::Statistic(metric, _) => metric,
            Estimand::Ratio(_) => Metric::RoundTripDelay,
        },
    };
    let mut agenda = ComparisonRequest::default();
    let named = job.statistics.iter().map(|statistic| subject_named(asked, statistic));
    let mut subjects = named.collect::<Result<Vec<_>, _>>()?;
    match of_its_file(job)? {
        Some(contrasts) => experiment::ask_as_its_file(&mut agenda, &contrasts, job.equivalence)?,
        None if subjects.is_empty() => subjects = default_subjects(metric),
        None => {}
    }
    subjects.into_iter().for_each(|subject| agenda.ask(subject, None, job.equivalence));
    for gate in gates {
        agenda.include(gate.subject().ok_or_else(of_lines)?);
    }
    if job.shift {
        agenda.shift(metric);
    }
    Ok(agenda)
}

/// A gate on `value`, beside recordings.
fn of_lines() -> RequestError {
    RequestError::OutOfPlace {
        option: "--gate value",
        with: "recordings".into(),
        cause: "`value` is a line of a file of numbers; a run has statistics",
        hint: "name one of these, such as `--gate 'p99 <= +5%'`",
    }
}

/// What the file of an experiment compares, where its directory is all that was typed.
fn of_its_file(job: &VerdictJob) -> Result<Option<Vec<Contrast>>, Failure> {
    match (job.sources.paths.as_slice(), &job.sources.grouping) {
        ([path], Grouping::Paths) if job.statistics.is_empty() && job.metric.is_none() => experiment::contrasts(path),
        _ => Ok(None),
    }
}

/// What can be asked of numbers: only the numbers.
pub(super) fn of_numbers(job: &VerdictJob, gates: &[Gate]) -> Result<ComparisonRequest, Failure> {
    let asked = [
        ("--statistic", !job.statistics.is_empty()),
        ("--metric", job.metric.is_some()),
        ("--shift", job.shift),
        ("--by", matches!(job.sources.grouping, Grouping::By(_))),
        ("--gate", gates.iter().any(|gate| gate.subject().is_some())),
    ];
    match asked.into_iter().find(|(_, asked)| *asked) {
        None => Ok(ComparisonRequest::of_values(job.equivalence)),
        Some((option, _)) => Err(RequestError::OutOfPlace {
            option,
            with: "files of numbers".into(),
            cause: "a line is an observation: it has no statistic, and nothing is known of it but its value",
            hint: "leave it out; a gate is then like `--gate 'value <= +5%'`",
        }
        .into()),
    }
}
