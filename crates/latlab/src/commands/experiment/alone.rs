//! What an experiment of one condition says: there is nothing to compare, but the width that was asked for.

use std::path::Path;

use super::contrasts::ask_as_its_file;
use super::{Asked, runs};
use crate::analysis::comparison::{ComparisonRequest, ObservedRun, Quantity, parse_estimand};
use crate::analysis::experiment::{ConditionRow, single_condition};
use crate::diagnostics::Failure;
use crate::experiment::ExperimentState;
use crate::plan::{Experiment, RunsRule, defaults};
use crate::recording::Recording;

/// The statistics of the runs of the one condition that has any; none where several have.
pub(super) fn rows(
    directory: &Path,
    standing: &ExperimentState,
    asked: &Asked,
) -> Result<Option<Vec<ConditionRow>>, Failure> {
    let Experiment { contrasts, design, kind, .. } = &asked.job.experiment;
    let Some((first, _)) = runs::judged(standing).next() else { return Ok(None) };
    if runs::judged(standing).any(|(run, _)| run.key.factors != first.key.factors) {
        return Ok(None);
    }
    let mut agenda = ComparisonRequest::default();
    if let RunsRule::Until { statistic, .. } = &design.runs {
        let metric = contrasts.first().map_or(kind.metric(), |contrast| contrast.metric);
        agenda.ask(parse_estimand(Some(metric.name()), statistic)?, None, None);
    }
    ask_as_its_file(&mut agenda, contrasts, None)?;
    let subjects = agenda.estimands();
    let observe = |name: &str| -> Result<ObservedRun, Failure> {
        Ok(ObservedRun::of(&Recording::open(&directory.join("runs").join(name))?, &subjects)?)
    };
    let observed = runs::judged(standing).map(|(_, name)| observe(name)).collect::<Result<Vec<_>, _>>()?;
    let quantities: Vec<Quantity> = subjects.iter().copied().map(Quantity::Of).collect();
    Ok(Some(single_condition(&observed, &quantities, defaults::CONFIDENCE)))
}
