//! The gates of an experiment.

use super::{
    ChangeGate, ChangeGateResult, ExperimentGateResult, GateError, GateParts, GateState, ValueGates, expect_few_gates,
    of_each, outcome_of,
};
use crate::diagnostics::Outcome;
use crate::estimand::{Estimand, parse_estimand};
use crate::metric::Metric;
use crate::plan::RunSpec;

/// The gates of an experiment: limits of figures of each run, and limits of changes between its conditions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentGates {
    pub values: ValueGates,
    pub changes: Vec<ChangeGate>,
}

impl ExperimentGates {
    /// Parses `p99 <= 200us` as a limit of a figure, and `p99 <= +5%` as that of a change; `metric` is the one meant.
    ///
    /// # Errors
    /// If one has another form.
    pub fn parse(texts: &[String], is_strict: bool, metric: Metric) -> Result<ExperimentGates, GateError> {
        expect_few_gates(texts)?;
        let (changes, values): (Vec<String>, Vec<String>) = texts.iter().cloned().partition(|text| limits_change(text));
        let changes =
            changes.iter().map(|text| ChangeGate::parse(text, Some(metric.name()))).collect::<Result<_, _>>()?;
        Ok(ExperimentGates { values: ValueGates::parse(&values, is_strict)?, changes })
    }

    /// Expects that the planned `runs` can have what the gates are about.
    ///
    /// # Errors
    /// If one can never have it.
    pub fn expect_judgeable<'a>(&self, runs: impl Iterator<Item = &'a RunSpec> + Clone) -> Result<(), GateError> {
        self.values.expect_judgeable(runs.clone())?;
        for run in runs {
            self.changes.iter().try_for_each(|gate| gate.expect_planned(run))?;
        }
        Ok(())
    }

    /// The outcome of an experiment with these results.
    pub fn outcome(&self, values: &[ExperimentGateResult], changes: &[ChangeGateResult]) -> Outcome {
        outcome_of(states(values, changes), self.values.is_strict())
    }

    /// Whether none of these results is undecided.
    pub fn are_decided(values: &[ExperimentGateResult], changes: &[ChangeGateResult]) -> bool {
        states(values, changes).all(|state| state != GateState::Undecided)
    }
}

fn states(values: &[ExperimentGateResult], changes: &[ChangeGateResult]) -> impl Iterator<Item = GateState> {
    changes.iter().map(|result| result.state).chain(values.iter().map(ExperimentGateResult::state))
}

/// Whether the limit of the gate `text` is a change in per cent; that of a ratio is one if it has a sign.
fn limits_change(text: &str) -> bool {
    let (is_every, text) = of_each(text);
    let Ok(GateParts { estimand, limit, .. }) = GateParts::of(text, "") else { return false };
    let is_ratio = matches!(parse_estimand(None, estimand), Ok(Estimand::Ratio(_)));
    !is_every && limit.ends_with('%') && (limit.starts_with(['+', '-', '−']) || !is_ratio)
}
