//! `--gate '[METRIC] STATISTIC <= CHANGE'`: a limit of a change, beyond which the command exits with 1.
//!
//! A gate is broken if the whole interval of the change lies beyond the limit, if the candidate answered nothing or is
//! infinite, and if there is nothing to judge. If the interval contains the limit, the gate is undecided.

use thiserror::Error;

use super::compare::Comparisons;
use super::request::Quantity;
use super::verdict::{Comparison, ComparisonMethod, Effect, Evidence, UndecidedReason, Verdict};
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
    /// The whole interval is beyond the limit, or a reason says why the gate cannot be kept.
    Broken,
    /// The interval contains the limit, or is missing.
    Undecided,
}

/// Why a gate is undecided in a row, or broken without an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateReason {
    /// The interval contains the limit, or is unbounded.
    BothSides,
    /// The baseline is 0, of which a change cannot be a share.
    ZeroBaseline,
    /// The row was not tested; it has the reason.
    Untested,
    /// Unanswered probes make the change uncertain: some figures are infinite, or the row holds without the losses only.
    Losses,
    /// The candidate is infinite, and the baseline is not.
    Infinite,
    /// No run of the candidate got an answer.
    Unanswered,
    /// A group has no run with the figure.
    NothingToJudge,
}

impl GateReason {
    /// The code in JSON.
    pub const fn code(self) -> &'static str {
        match self {
            GateReason::BothSides => "both-sides",
            GateReason::ZeroBaseline => "zero-baseline",
            GateReason::Untested => "untested",
            GateReason::Losses => "losses",
            GateReason::Infinite => "infinite",
            GateReason::Unanswered => "unanswered",
            GateReason::NothingToJudge => "nothing-to-judge",
        }
    }
}

/// A gate applied to one row.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRow {
    /// As typed.
    pub gate: String,
    /// The index of the row; `None` if there is none to judge.
    pub row: Option<usize>,
    /// Its state.
    pub state: GateState,
    /// Why it is undecided, or broken without an interval.
    pub reason: Option<GateReason>,
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
            Some(GateReason::ZeroBaseline) => {
                "the baseline is 0, and no change is a share of that; `--gate-strict` fails"
            }
            Some(GateReason::Untested) => "nothing was tested: the table says why; `--gate-strict` fails",
            Some(GateReason::Losses) => "probes were lost: a gate on `loss_ratio` decides; `--gate-strict` fails",
            _ => "a fresh experiment with more runs would decide; `--gate-strict` fails",
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

    /// Applies the gate to every row of its quantity. A gate without a row is broken: nothing shows that it is kept.
    pub fn judge(&self, comparisons: &Comparisons) -> Vec<GateRow> {
        let rows = comparisons.rows.iter().enumerate();
        let own = rows.filter(|(_, row)| row.quantity == self.quantity);
        let gate_row = |row, (state, reason)| GateRow { gate: self.text.clone(), row, state, reason };
        let judged: Vec<GateRow> = own.map(|(index, row)| gate_row(Some(index), self.state(row))).collect();
        match judged.is_empty() {
            true => vec![gate_row(None, (GateState::Broken, Some(GateReason::NothingToJudge)))],
            false => judged,
        }
    }

    fn state(&self, row: &Comparison) -> (GateState, Option<GateReason>) {
        if let Some(reason) = broken_without_interval(row) {
            return (GateState::Broken, Some(reason));
        }
        let undecided = |reason| (GateState::Undecided, Some(reason));
        match row.method {
            ComparisonMethod::Placements => return undecided(GateReason::Losses),
            // The baseline is infinite or unanswered: a limit that allows a rise is kept.
            ComparisonMethod::Separated if !self.above && self.change >= 0.0 => return (GateState::Kept, None),
            ComparisonMethod::Separated => return undecided(GateReason::Losses),
            ComparisonMethod::None => return undecided(GateReason::Untested),
            ComparisonMethod::Shift => {}
        }
        let Some(Effect { interval, .. }) = row.judged_change() else {
            let is_zero = row.centres.is_some_and(|(baseline, _)| baseline == 0.0);
            return undecided(if is_zero { GateReason::ZeroBaseline } else { GateReason::Untested });
        };
        // Distances beyond the limit of the interval's ends.
        let (nearer, farther) = match self.above {
            false => (interval.low.map(|low| low - self.change), interval.high.map(|high| high - self.change)),
            true => (interval.high.map(|high| self.change - high), interval.low.map(|low| self.change - low)),
        };
        match (nearer, farther) {
            (Some(nearer), _) if nearer > 0.0 => (GateState::Broken, None),
            (_, Some(farther)) if farther <= 0.0 => (GateState::Kept, None),
            _ if row.undecided == Some(UndecidedReason::Losses) => undecided(GateReason::Losses),
            _ => undecided(GateReason::BothSides),
        }
    }
}

/// Why no gate on `row` can be kept, whatever its limit: the candidate answered nothing, it is infinite in most of its
/// runs, or there is nothing to judge.
fn broken_without_interval(row: &Comparison) -> Option<GateReason> {
    let Evidence { runs: (baseline, candidate), infinite, unanswered, without_figure, .. } = row.evidence;
    let is_most = |count: usize, all: usize| 2 * count > all;
    if candidate > 0 && unanswered.1 == candidate {
        return Some(GateReason::Unanswered);
    }
    let is_infinite = is_most(infinite.1, candidate) && !is_most(infinite.0, baseline);
    if is_infinite && row.verdict == Verdict::Higher {
        return Some(GateReason::Infinite);
    }
    (without_figure.0 == baseline || without_figure.1 == candidate).then_some(GateReason::NothingToJudge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(gate: &str, state: GateState, reason: Option<GateReason>) -> GateRow {
        GateRow { gate: gate.into(), row: Some(0), state, reason }
    }

    #[test]
    fn an_undecided_gate_is_a_no_only_where_strict() {
        let both = Some(GateReason::BothSides);
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
        let (zero, untested) = (Some(GateReason::ZeroBaseline), Some(GateReason::Untested));
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
