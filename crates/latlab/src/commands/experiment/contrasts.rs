//! What the file of an experiment compares, whoever shows it: `latlab run` at its end, `latlab compare` later.

use std::path::Path;

use crate::analysis::comparison::{ComparisonRequest, parse_estimand};
use crate::cli::resolve::Environment;
use crate::cli::resolve::{self, ConditionSelection};
use crate::diagnostics::Failure;
use crate::experiment;
use crate::plan::Contrast;

/// What the file of the experiment in `directory` compares; none where no experiment is there.
pub(in crate::commands) fn contrasts(directory: &Path) -> Result<Option<Vec<Contrast>>, Failure> {
    if !experiment::is_experiment(directory) {
        return Ok(None);
    }
    let (file, text) = (directory.join("experiment.toml"), experiment::file_text(directory)?);
    // What was measured elsewhere need not be possible here.
    let job = resolve::experiment(
        &file.display().to_string(),
        &text,
        ConditionSelection::Possible,
        &Environment::of_this_process()?,
    )?;
    Ok(Some(job.experiment.contrasts))
}

/// Adds what an experiment's file compares to `agenda`. A margin that somebody typed stands in for one that the file
/// does not state.
pub(in crate::commands) fn ask_as_its_file(
    agenda: &mut ComparisonRequest,
    contrasts: &[Contrast],
    margin: Option<f64>,
) -> Result<(), Failure> {
    for Contrast { metric, statistic, baseline, equivalence } in contrasts {
        // A ratio is of the whole run.
        let metric = (!statistic.ends_with("_ratio")).then(|| metric.name());
        let baseline = Some(baseline.clone()).filter(|baseline| !baseline.is_empty());
        agenda.ask(parse_estimand(metric, statistic)?, baseline, equivalence.or(margin));
    }
    Ok(())
}
