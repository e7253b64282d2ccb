//! `--gate '[METRIC] STATISTIC <= CHANGE'`: a limit of a change, beyond which the command exits with 1.
//!
//! A gate is broken only if the whole interval of the change lies beyond the limit. If the interval contains the limit,
//! the gate is undecided.

use thiserror::Error;

use super::compare::Comparisons;
use super::request::Quantity;
use super::verdict::{Comparison, Effect};
use crate::analysis::estimand::{Estimand, parse_estimand};
use crate::diagnostics::{Explain, Failure, Outcome};
use crate::units::human::{self, ParseError};

/// A limit of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    text: String,
    quantity: Quantity,
    /// Whether the change must be above the limit; otherwise below.
    above: bool,
    /// A share of the baseline, or a difference of ratios.
    change: f64,
}

/// Why a gate cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot read the gate `{text}`")]
pub struct GateError {
    /// As typed.
    pub text: String,
    /// The error in the text.
    pub cause: String,
    /// The expected form, or the nearest known word.
    pub hint: String,
}

impl Explain for GateError {
    fn explain(&self) -> Failure {
        Failure::request(self).because(&self.cause).hint(&self.hint)
    }
}

/// State of a gate in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateState {
    /// The whole interval is within the limit.
    Kept,
    /// The whole interval is beyond the limit.
    Broken,
    /// The interval contains the limit, or is missing.
    Undecided,
}

/// Why a gate is undecided in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateUndecidedReason {
    /// The interval contains the limit, or is unbounded.
    BothSides,
    /// The baseline is 0, of which a change cannot be a share.
    ZeroBaseline,
    /// The row was not tested; it has the reason.
    Untested,
}

/// A gate applied to one row.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRow {
    /// As typed.
    pub gate: String,
    /// The index of the row.
    pub row: usize,
    /// Its state.
    pub state: GateState,
    /// Why it is undecided, if it is.
    pub reason: Option<GateUndecidedReason>,
}

/// A gate that the runs do not decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecidedGate {
    /// As typed.
    pub gate: String,
    /// That more runs would decide it, or the reason why they would not.
    pub hint: &'static str,
}

/// Each undecided gate once, unless it is undecided in several rows for different reasons.
pub fn undecided_gates(rows: &[GateRow]) -> Vec<UndecidedGate> {
    let undecided = rows.iter().filter(|row| row.state == GateState::Undecided).map(|row| UndecidedGate {
        gate: row.gate.clone(),
        hint: match row.reason {
            Some(GateUndecidedReason::ZeroBaseline) => {
                "the baseline is 0, and no change is a share of that; `--gate-strict` fails"
            }
            Some(GateUndecidedReason::Untested) => "nothing was tested: the table says why; `--gate-strict` fails",
            Some(GateUndecidedReason::BothSides) | None => "more runs would decide; `--gate-strict` fails",
        },
    });
    let mut undecided: Vec<_> = undecided.collect();
    undecided.dedup();
    undecided
}

/// The outcome of a command with gates: negative if a gate is broken, or undecided where `strict`.
pub fn gates_outcome(rows: &[GateRow], strict: bool) -> Outcome {
    let is_no = |row: &GateRow| row.state == GateState::Broken || (strict && row.state == GateState::Undecided);
    if rows.iter().any(is_no) { Outcome::AnswerIsNo } else { Outcome::Done }
}

const FORM: &str = "`[METRIC] STATISTIC <= CHANGE`, such as `p99 <= +5%` or `loss_ratio <= +0.1%`";

/// Longer ones first.
const OPERATORS: [(&str, bool); 4] = [("<=", false), (">=", true), ("<", false), (">", true)];

impl Gate {
    /// Parses `p99 <= +5%`, `response_time mean < 10%`, `p50 >= -3%`; without a metric it is about `metric`.
    ///
    /// # Errors
    /// If it has another form.
    pub fn parse(text: &str, metric: Option<&str>) -> Result<Gate, GateError> {
        let refuse = |cause: String, hint: String| GateError { text: text.trim().into(), cause, hint };
        let (estimand, above, change) = OPERATORS
            .iter()
            .find_map(|(sign, above)| text.split_once(sign).map(|(estimand, change)| (estimand, *above, change)))
            .ok_or_else(|| refuse("it has none of `<=`, `<`, `>=`, `>`".into(), FORM.into()))?;
        let quantity = match estimand.trim() {
            "value" => Quantity::Value,
            text => Quantity::Of(parse_estimand(metric, text).map_err(|error| refuse(error.cause, error.hint))?),
        };
        let unreadable = |error: ParseError| refuse(format!("{error}: {}", error.cause), FORM.into());
        let change = change.trim();
        let (negative, size) = match change.strip_prefix(['-', '−']) {
            Some(size) => (true, size),
            None => (false, change.strip_prefix('+').unwrap_or(change)),
        };
        if !size.ends_with('%') && size != "0" {
            return Err(refuse(format!("the change `{change}` is not in per cent"), FORM.into()));
        }
        let size = human::parse_percent(size.trim()).map_err(unreadable)?;
        Ok(Gate { text: text.trim().into(), quantity, above, change: if negative { -size } else { size } })
    }

    /// The estimand that runs must have a figure for; `None` if the gate is about numbers from a file.
    pub const fn estimand(&self) -> Option<Estimand> {
        match self.quantity {
            Quantity::Of(estimand) => Some(estimand),
            Quantity::Value => None,
        }
    }

    /// Applies the gate to every row of its quantity.
    pub fn judge(&self, comparisons: &Comparisons) -> Vec<GateRow> {
        let rows = comparisons.rows.iter().enumerate();
        let own = rows.filter(|(_, row)| row.quantity == self.quantity);
        let judged = |(index, row)| {
            let (state, reason) = match self.state(row) {
                Ok(state) => (state, None),
                Err(reason) => (GateState::Undecided, Some(reason)),
            };
            GateRow { gate: self.text.clone(), row: index, state, reason }
        };
        own.map(judged).collect()
    }

    fn state(&self, row: &Comparison) -> Result<GateState, GateUndecidedReason> {
        if row.p_value.is_none() {
            return Err(GateUndecidedReason::Untested);
        }
        let reason = if row.centres.is_some_and(|(baseline, _)| baseline == 0.0) {
            GateUndecidedReason::ZeroBaseline
        } else {
            GateUndecidedReason::Untested
        };
        let Effect { interval, .. } = row.judged_change().ok_or(reason)?;
        // Distances beyond the limit of the interval's ends.
        let (nearer, farther) = match self.above {
            false => (interval.low.map(|low| low - self.change), interval.high.map(|high| high - self.change)),
            true => (interval.high.map(|high| self.change - high), interval.low.map(|low| self.change - low)),
        };
        match (nearer, farther) {
            (Some(nearer), _) if nearer > 0.0 => Ok(GateState::Broken),
            (_, Some(farther)) if farther <= 0.0 => Ok(GateState::Kept),
            _ => Err(GateUndecidedReason::BothSides),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(gate: &str, state: GateState, reason: Option<GateUndecidedReason>) -> GateRow {
        GateRow { gate: gate.into(), row: 0, state, reason }
    }

    #[test]
    fn an_undecided_gate_is_a_no_only_where_strict() {
        let both = Some(GateUndecidedReason::BothSides);
        for (states, usual, strict) in [
            (&[][..], Outcome::Done, Outcome::Done),
            (&[(GateState::Kept, None)], Outcome::Done, Outcome::Done),
            (&[(GateState::Kept, None), (GateState::Undecided, both)], Outcome::Done, Outcome::AnswerIsNo),
            (&[(GateState::Broken, None), (GateState::Kept, None)], Outcome::AnswerIsNo, Outcome::AnswerIsNo),
        ] {
            let rows: Vec<_> = states.iter().map(|(state, reason)| row("p99 <= +5%", *state, *reason)).collect();
            assert_eq!((gates_outcome(&rows, false), gates_outcome(&rows, true)), (usual, strict), "{states:?}");
        }
    }

    #[test]
    fn a_gate_that_is_undecided_twice_for_one_reason_is_reported_once() {
        let (zero, untested) = (Some(GateUndecidedReason::ZeroBaseline), Some(GateUndecidedReason::Untested));
        let rows = [
            row("p50 < 1%", GateState::Undecided, zero),
            row("p50 < 1%", GateState::Undecided, zero),
            row("p50 < 1%", GateState::Undecided, untested),
            row("p99 < 1%", GateState::Kept, None),
        ];
        let found: Vec<_> = undecided_gates(&rows).into_iter().map(|gate| gate.hint.split(' ').next()).collect();
        assert_eq!(found, [Some("the"), Some("nothing")]);
    }
}
