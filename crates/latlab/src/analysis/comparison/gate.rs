//! `--gate '[METRIC] STATISTIC <= CHANGE'`: a comparison that a pipeline can be stopped by.
//!
//! Broken is a gate only where the whole interval of the change lies beyond what it allows; where the interval lies on
//! both sides it is undecided, and says so.

use thiserror::Error;

use super::answer::{Comparison, Effect};
use super::compare::Comparisons;
use super::wishes::{Quantity, subject_named};
use crate::analysis::subject::Estimand;
use crate::units::human::{self, ParseError};

/// What a change must keep to.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    text: String,
    quantity: Quantity,
    /// Whether the change must stay above, not below.
    above: bool,
    /// A share of the baseline, or a difference of shares.
    change: f64,
}

/// Why a gate cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot read the gate `{text}`")]
pub struct GateError {
    /// As typed.
    pub text: String,
    /// What is wrong.
    pub cause: String,
    /// What would be right.
    pub hint: String,
}

impl GateError {
    /// What is wrong.
    pub fn cause(&self) -> Option<String> {
        Some(self.cause.clone())
    }

    /// What would be right.
    pub fn hint(&self) -> Option<String> {
        Some(self.hint.clone())
    }

    /// A wrong request.
    pub const fn exit_code(&self) -> u8 {
        2
    }
}

/// What became of a gate in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateState {
    /// The whole interval keeps to it.
    Kept,
    /// The whole interval lies beyond it.
    Broken,
    /// The interval lies on both sides, or there is none.
    Undecided,
}

/// Why a gate is undecided in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateUndecidedReason {
    /// The interval lies on both sides, or is open.
    BothSides,
    /// The baseline is 0, and no change is a share of that.
    ZeroBaseline,
    /// The row was not tested, and says why.
    Untested,
}

/// A gate held against one row.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRow {
    /// As typed.
    pub gate: String,
    /// The place of the row.
    pub row: usize,
    /// What became of it.
    pub state: GateState,
    /// Why it is undecided, where it is.
    pub doubt: Option<GateUndecidedReason>,
}

const FORM: &str = "`[METRIC] STATISTIC <= CHANGE`, such as `p99 <= +5%` or `loss_ratio <= +0.1%`";

/// Longer ones first.
const OPERATORS: [(&str, bool); 4] = [("<=", false), (">=", true), ("<", false), (">", true)];

impl Gate {
    /// Reads `p99 <= +5%`, `response_time mean < 10%`, `p50 >= -3%`; where no metric is named, it is `metric`.
    ///
    /// # Errors
    /// Where it is none of these.
    pub fn parse(text: &str, metric: Option<&str>) -> Result<Gate, GateError> {
        let refuse = |cause: String, hint: String| GateError { text: text.trim().into(), cause, hint };
        let (subject, above, change) = OPERATORS
            .iter()
            .find_map(|(sign, above)| text.split_once(sign).map(|(subject, change)| (subject, *above, change)))
            .ok_or_else(|| refuse("it has none of `<=`, `<`, `>=`, `>`".into(), FORM.into()))?;
        let quantity = match subject.trim() {
            "value" => Quantity::Value,
            named => Quantity::Of(subject_named(metric, named).map_err(|error| refuse(error.cause, error.hint))?),
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

    /// What runs must be asked for; none where it is about numbers that somebody else measured.
    pub const fn subject(&self) -> Option<Estimand> {
        match self.quantity {
            Quantity::Of(subject) => Some(subject),
            Quantity::Value => None,
        }
    }

    /// Held against every row that is about it.
    pub fn judge(&self, comparisons: &Comparisons) -> Vec<GateRow> {
        let rows = comparisons.rows.iter().enumerate();
        let about_it = rows.filter(|(_, row)| row.quantity == self.quantity);
        let judged = |(place, row)| {
            let (state, doubt) = match self.state(row) {
                Ok(state) => (state, None),
                Err(doubt) => (GateState::Undecided, Some(doubt)),
            };
            GateRow { gate: self.text.clone(), row: place, state, doubt }
        };
        about_it.map(judged).collect()
    }

    fn state(&self, row: &Comparison) -> Result<GateState, GateUndecidedReason> {
        if row.p_value.is_none() {
            return Err(GateUndecidedReason::Untested);
        }
        let doubt = if row.centres.is_some_and(|(baseline, _)| baseline == 0.0) {
            GateUndecidedReason::ZeroBaseline
        } else {
            GateUndecidedReason::Untested
        };
        let Effect { interval, .. } = row.judged_change().ok_or(doubt)?;
        // seen from the side on which nothing is allowed
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
