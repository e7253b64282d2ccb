//! `--gate '[METRIC] STATISTIC <= CHANGE'`: a limit of a change, beyond which the command exits with 1.
//!
//! A gate is broken if the whole interval of the change lies beyond the limit, if a group answered nothing, if the
//! candidate is higher and infinite in most of its runs, if there is nothing to judge, and if finished runs are gone or
//! damaged. If the interval contains the limit, the gate is undecided.

use super::{GateError, GateParts, GateReason, GateState, GatedRuns, absent, expect_named_metric, outcome_of};
use crate::available::AvailableFigures;
use crate::comparison::{
    Comparison, ComparisonMethod, Comparisons, Effect, Evidence, ExclusionReason, FigureScale, Quantity, RunGroups,
    UndecidedReason, Verdict,
};
use crate::diagnostics::Outcome;
use crate::estimand::{Estimand, parse_estimand};
use crate::plan::RunSpec;
use crate::units::human::{self, ParseError};

#[derive(Clone, Debug, PartialEq)]
pub struct ChangeGate {
    text: String,
    quantity: Quantity,
    /// Whether the change must be above the limit; otherwise below.
    above: bool,
    /// Whether the limit itself breaks it: `<` and `>`.
    is_strict: bool,
    /// A share of the baseline, or a difference of ratios.
    change: f64,
}

/// A gate applied to one row.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeGateResult {
    pub gate: String,
    pub quantity: Quantity,
    /// The index of the row; `None` if there is none to judge.
    pub row: Option<usize>,
    pub state: GateState,
    /// Why it is undecided, or broken without an interval.
    pub reason: Option<GateReason>,
}

/// A gate that the runs do not decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecidedGate {
    pub gate: String,
    /// That more runs would decide it, or the reason why they would not.
    pub hint: &'static str,
}

/// Each undecided gate once, unless it is undecided in several rows for different reasons.
pub fn undecided_gates(rows: &[ChangeGateResult]) -> Vec<UndecidedGate> {
    let undecided = rows.iter().filter(|row| row.state == GateState::Undecided).map(|row| UndecidedGate {
        gate: row.gate.clone(),
        hint: match row.reason {
            Some(GateReason::NotPositive) => "values are not all above 0: no change is a share; `--gate-strict` fails",
            Some(GateReason::Untested) => "no test was possible: the table has the reason; `--gate-strict` fails",
            Some(GateReason::Losses) => {
                "too many values are infinite: a gate on `loss_ratio` decides; `--gate-strict` fails"
            }
            Some(GateReason::FailedRuns) => "runs failed: find out why, and measure again; `--gate-strict` fails",
            _ => "more runs narrow the interval; `--gate-strict` fails",
        },
    });
    let mut undecided: Vec<_> = undecided.collect();
    undecided.dedup();
    undecided
}

/// The outcome of a command with gates: negative if a gate is broken, or undecided where `strict`.
pub fn change_gates_outcome(rows: &[ChangeGateResult], strict: bool) -> Outcome {
    outcome_of(rows.iter().map(|row| row.state), strict)
}

const FORM: &str = "`[METRIC] STATISTIC <= CHANGE`, such as `p99 <= +5%` or `loss_ratio <= +0.1%`";

/// What a gate on files of numbers is about.
const VALUE: &str = "value";

impl ChangeGate {
    /// Refuses the gate `text` if it is about a statistic of runs, known or not: files of numbers have values only.
    ///
    /// # Errors
    /// If it does not name `value`.
    pub fn expect_value(text: &str) -> Result<(), GateError> {
        match GateParts::of(text, FORM)?.estimand.trim() {
            VALUE => Ok(()),
            other => {
                let cause = format!("in files of numbers each line is one observation: there is no `{other}`");
                Err(GateError::of(text, cause, "gate on the value: `--gate 'value <= +5%'`"))
            }
        }
    }

    /// Parses `p99 <= +5%`, `response_time mean < 10%`, `p50 >= -3%`; without a metric it is about `metric`.
    ///
    /// # Errors
    /// If it has another form.
    pub fn parse(text: &str, metric: Option<&str>) -> Result<ChangeGate, GateError> {
        let refuse = |cause: String, hint: String| GateError::of(text, cause, hint);
        let GateParts { estimand, operator, limit: change } = GateParts::of(text, FORM)?;
        let quantity = match estimand.trim() {
            VALUE => Quantity::Value,
            text => Quantity::Of(parse_estimand(metric, text).map_err(|error| refuse(error.cause, error.hint))?),
        };
        let unreadable = |error: ParseError| refuse(format!("{error}: {}", error.cause), FORM.into());
        let (negative, size) = match change.strip_prefix(['-', '−']) {
            Some(size) => (true, size),
            None => (false, change.strip_prefix('+').unwrap_or(change)),
        };
        if !size.ends_with('%') && size != "0" {
            return Err(refuse(format!("the change `{change}` is not in per cent"), FORM.into()));
        }
        let size = human::parse_percent(size.trim()).map_err(unreadable)?;
        let (above, change) = (!operator.limits_above(), if negative { -size } else { size });
        let is_strict = !operator.compares(0.0, 0.0);
        Ok(ChangeGate { text: text.trim().into(), quantity, above, is_strict, change })
    }

    /// The estimand that runs must have a figure for; `None` if the gate is about numbers from a file.
    pub const fn estimand(&self) -> Option<Estimand> {
        match self.quantity {
            Quantity::Of(estimand) => Some(estimand),
            Quantity::Value => None,
        }
    }

    /// Expects that the planned `run` can have what the gate is about.
    ///
    /// # Errors
    /// If it can never have it.
    pub fn expect_planned(&self, run: &RunSpec) -> Result<(), GateError> {
        let Some(estimand) = self.estimand() else {
            return Err(GateError::of(&self.text, "a run has statistics, not one value", "name one, such as `p50`"));
        };
        expect_named_metric(&self.text, run)?;
        let available = AvailableFigures::of(run, run.judging.deadline_ns);
        let name = || format!("latlab {}", run.kind().word());
        available.absence(estimand).map_or(Ok(()), |absence| {
            Err(absent(&self.text, name(), estimand, absence, &available, GatedRuns::Planned))
        })
    }

    /// Expects that the runs of `groups` can have what the gate is about.
    ///
    /// # Errors
    /// If one can never have it.
    pub fn expect_judgeable(&self, groups: &RunGroups) -> Result<(), GateError> {
        let Some(estimand) = self.estimand() else { return Ok(()) };
        let runs = groups.groups.iter().flat_map(|group| &group.runs);
        let found = runs.filter_map(|run| run.available.as_ref().map(|available| (run, available)));
        let mut lacking = found.filter_map(|(run, available)| Some((run, available, available.absence(estimand)?)));
        match lacking.next() {
            None => Ok(()),
            Some((run, available, absence)) => {
                Err(absent(&self.text, run.name.clone(), estimand, absence, available, GatedRuns::Compared))
            }
        }
    }

    /// The result of a gate that no comparison can judge.
    pub fn unjudged(&self) -> ChangeGateResult {
        let (state, reason) = (GateState::Broken, Some(GateReason::NothingToJudge));
        ChangeGateResult { gate: self.text.clone(), quantity: self.quantity, row: None, state, reason }
    }

    /// Applies the gate to every row of its quantity. A gate without a row is broken: nothing shows that it is kept.
    /// If runs failed, it is undecided at best.
    pub fn judge(&self, comparisons: &Comparisons) -> Vec<ChangeGateResult> {
        let rows = comparisons.rows.iter().enumerate();
        let own = rows.filter(|(_, row)| row.quantity == self.quantity);
        let gate_row = |row, (state, reason)| ChangeGateResult { row, state, reason, ..self.unjudged() };
        let has_failed = comparisons.groups.excluded.contains_key(&ExclusionReason::Failed);
        let state = |row: &Comparison| match self.state(row) {
            broken @ (GateState::Broken, _) => broken,
            _ if !comparisons.groups.missing.is_empty() => (GateState::Broken, Some(GateReason::MissingRuns)),
            _ if has_failed => (GateState::Undecided, Some(GateReason::FailedRuns)),
            state => state,
        };
        let judged: Vec<ChangeGateResult> = own.map(|(index, row)| gate_row(Some(index), state(row))).collect();
        if judged.is_empty() { vec![self.unjudged()] } else { judged }
    }

    fn state(&self, row: &Comparison) -> (GateState, Option<GateReason>) {
        if let Some(reason) = broken_without_interval(row) {
            return (GateState::Broken, Some(reason));
        }
        let undecided = |reason| (GateState::Undecided, Some(reason));
        match row.method {
            ComparisonMethod::Placements => return undecided(GateReason::Losses),
            // The baseline is infinite in every run, and the candidate lower: a limit that allows a rise is kept.
            ComparisonMethod::Separated if row.verdict == Verdict::Lower && !self.above && self.change >= 0.0 => {
                return (GateState::Kept, None);
            }
            ComparisonMethod::Separated => return undecided(GateReason::Losses),
            ComparisonMethod::None => return undecided(GateReason::Untested),
            ComparisonMethod::Shift => {}
        }
        let Some(Effect { interval, .. }) = row.judged_change() else {
            return undecided(if row.scale == FigureScale::Linear {
                GateReason::NotPositive
            } else {
                GateReason::Untested
            });
        };
        // Distances beyond the limit of the interval's ends.
        let (nearer, farther) = if self.above {
            (interval.high.map(|high| self.change - high), interval.low.map(|low| self.change - low))
        } else {
            (interval.low.map(|low| low - self.change), interval.high.map(|high| high - self.change))
        };
        let [nearer, farther] = [nearer, farther].map(|distance| distance.map(without_rounding));
        match (nearer, farther) {
            (Some(nearer), _) if nearer > 0.0 || (self.is_strict && nearer == 0.0) => (GateState::Broken, None),
            (_, Some(farther)) if farther < 0.0 || (!self.is_strict && farther == 0.0) => (GateState::Kept, None),
            _ if row.undecided == Some(UndecidedReason::Losses) || row.evidence.losses_widen => {
                undecided(GateReason::Losses)
            }
            _ => undecided(GateReason::BothSides),
        }
    }
}

/// A distance from a limit, 0 if logarithms and their inverse may have made it.
fn without_rounding(distance: f64) -> f64 {
    if distance.abs() < 1e-12 { 0.0 } else { distance }
}

/// Why no gate on `row` can be kept, whatever its limit: the candidate answered nothing, it is higher and infinite in most
/// of its runs but not in most of the baseline's, the baseline answered nothing, or some run has nothing to judge.
///
/// A candidate is higher by the test of placements, or at any number of runs if it is infinite in every run and the
/// baseline in none. The latter has a probability of at most p^candidate (1 − p)^baseline between equal groups, whose runs
/// are infinite with probability p: 25 % with one run each, 6.3 % with two, 1.6 % with three (decision 0019.5).
fn broken_without_interval(row: &Comparison) -> Option<GateReason> {
    let Evidence { runs: (baseline, candidate), infinite, unanswered, without_figure, .. } = row.evidence;
    let is_dead = baseline > 0 && unanswered.0 == baseline;
    let is_missing = is_dead || baseline == 0 || candidate == 0 || without_figure != (0, 0);
    let is_most = |count: usize, all: usize| 2 * count > all;
    if candidate > 0 && unanswered.1 == candidate {
        return Some(GateReason::Unanswered);
    }
    let is_infinite = is_most(infinite.1, candidate) && !is_most(infinite.0, baseline);
    if is_infinite && row.verdict == Verdict::Higher {
        return Some(GateReason::Infinite);
    }
    is_missing.then_some(GateReason::NothingToJudge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(gate: &str, state: GateState, reason: Option<GateReason>) -> ChangeGateResult {
        ChangeGateResult { gate: gate.into(), quantity: Quantity::Value, row: Some(0), state, reason }
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
            assert_eq!(
                (change_gates_outcome(&rows, false), change_gates_outcome(&rows, true)),
                (usual, strict),
                "{states:?}"
            );
        }
    }

    #[test]
    fn files_of_numbers_have_a_value_and_no_statistics() {
        for (gate, is_of_values) in [
            ("value <= +5%", true),
            (" value<5%", true),
            ("median <= +5%", false),
            ("value p50 <= +5%", false),
            ("p50", false),
        ] {
            assert_eq!(ChangeGate::expect_value(gate).is_ok(), is_of_values, "{gate}");
        }
    }

    #[test]
    fn a_gate_that_is_undecided_twice_for_one_reason_is_reported_once() {
        let (zero, untested) = (Some(GateReason::NotPositive), Some(GateReason::Untested));
        let rows = [
            row("p50 < 1%", GateState::Undecided, zero),
            row("p50 < 1%", GateState::Undecided, zero),
            row("p50 < 1%", GateState::Undecided, untested),
            row("p99 < 1%", GateState::Kept, None),
        ];
        let found: Vec<_> = undecided_gates(&rows).into_iter().map(|gate| gate.hint.split(' ').next()).collect();
        assert_eq!(found, [Some("values"), Some("no")]);
    }
}
