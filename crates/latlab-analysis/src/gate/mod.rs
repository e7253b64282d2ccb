//! `--gate`: what must hold, so that the command ends with exit code 0. [`ValueGates`] limit the figures of runs,
//! [`ChangeGate`]s the change between groups of runs. This file has what both share: states, reasons, operators, errors.

mod change;
mod experiment;
mod value;

pub use change::{ChangeGate, ChangeGateResult, UndecidedGate, change_gates_outcome, undecided_gates};
pub use experiment::ExperimentGates;
pub use value::{ExperimentGateResult, JudgedRuns, ValueGates};

use thiserror::Error;

use super::available::{AvailableFigures, FigureAbsence};
use super::estimand::{Estimand, parse_estimand};
use crate::diagnostics::{Explain, Failure, Outcome};
use crate::metric::Metric;
use crate::plan::RunSpec;
use crate::plan::defaults::GATES_MAX;

crate::worded! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum GateState: word {
        /// The figure, or the whole interval of the change, is within the limit.
        Kept = "kept",
        /// The interval contains the limit or is missing, or the data do not support the quantile.
        Undecided = "undecided",
        /// The figure, or the whole interval, is beyond the limit, or a reason says why the gate cannot be kept.
        Broken = "broken",
    }
}

impl GateState {
    pub const fn in_text(self) -> &'static str {
        match self {
            GateState::Kept => "met",
            GateState::Undecided => "undecided",
            GateState::Broken => "failed",
        }
    }
}

crate::worded! {
    /// Why a gate is undecided, or what its state rests on instead of a finite, supported figure.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum GateReason: code {
        /// The interval contains the limit, or is unbounded.
        BothSides = "both-sides",
        /// Values are not all above 0, so that a change is not a share.
        NotPositive = "not-positive",
        /// The bound of the offset of the clocks contains the limit.
        ClockBound = "clock-bound",
        /// The row was not tested; it has the reason.
        Untested = "untested",
        /// Unanswered probes make the change uncertain: figures are infinite, or the row holds without the losses only.
        Losses = "losses",
        /// Too few effective observations lie beyond the quantile: a bound of it was judged.
        Unsupported = "unsupported",
        /// Too many due probes never left: what they would have shown is not known.
        NotSent = "not-sent",
        /// The figure is infinite; of a change, the candidate's is, and the baseline's is not.
        Infinite = "infinite",
        /// Nothing was answered; of a change, in no run of the candidate.
        Unanswered = "unanswered",
        /// The figure is missing: too few data, no run, no row, or of a change no answer in any run of the baseline.
        NothingToJudge = "nothing-to-judge",
        /// Finished runs of the compared experiment or store are gone or damaged.
        MissingRuns = "missing-runs",
        /// Runs failed: what they would have shown is not known.
        FailedRuns = "failed-runs",
    }
}

/// The result of a gate on the figure of one run, or on the mean of several.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueGateResult {
    pub gate: String,
    pub estimand: Estimand,
    /// The figure in nanoseconds, bits a second, or as a ratio; `None` if it is infinite or missing.
    pub value: Option<f64>,
    /// Of an unsupported quantile the bound that was judged, of several runs both ends of the interval of the mean.
    pub bounds: (Option<f64>, Option<f64>),
    pub limit: f64,
    pub state: GateState,
    /// Why it is undecided, or what the state rests on instead of a finite, supported figure.
    pub reason: Option<GateReason>,
}

impl ValueGateResult {
    /// Breaks it, because runs of the same experiment are gone or damaged, which may have been worse.
    pub fn break_over_missing_runs(&mut self) {
        if self.state != GateState::Broken {
            (self.state, self.reason) = (GateState::Broken, Some(GateReason::MissingRuns));
        }
    }
}

/// Expects that the gate `text` names its metric if `run` has numbers that a command prints beside its main metric.
fn expect_named_metric(text: &str, run: &RunSpec) -> Result<(), GateError> {
    let Some(printed) = run.command().and_then(|command| command.printed.first()) else { return Ok(()) };
    let GateParts { estimand, .. } = GateParts::of(of_each(text).1, "")?;
    if estimand.split_whitespace().count() > 1 || matches!(parse_estimand(None, estimand), Ok(Estimand::Ratio(_))) {
        return Ok(());
    }
    Err(GateError::of(text, "it names no metric", format!("such as `{} {text}`", printed.name)))
}

/// Whether each run must hold the gate `text`, which then begins with `every:`; and the rest of it.
fn of_each(text: &str) -> (bool, &str) {
    text.trim().strip_prefix("every:").map_or((false, text), |rest| (true, rest))
}

/// The outcome of a command with gates: negative if a gate is broken, or undecided where `is_strict`.
fn outcome_of(states: impl IntoIterator<Item = GateState>, is_strict: bool) -> Outcome {
    match states.into_iter().max() {
        Some(GateState::Broken) => Outcome::AnswerIsNo,
        Some(GateState::Undecided) if is_strict => Outcome::AnswerIsNo,
        _ => Outcome::Done,
    }
}

/// How a figure is compared with the limit of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    AtMost,
    AtLeast,
    Below,
    Above,
}

/// Operators of other languages and scripts, each with the one to write here.
const STRANGE_OPERATORS: [(&str, &str); 4] = [("=<", "<="), ("=>", ">="), ("≤", "<="), ("≥", ">=")];

/// Longer ones first: `<=` begins with `<`.
const OPERATORS: [(&str, Operator); 4] =
    [("<=", Operator::AtMost), (">=", Operator::AtLeast), ("<", Operator::Below), (">", Operator::Above)];

impl Operator {
    fn compares(self, left: f64, right: f64) -> bool {
        match self {
            Operator::AtMost => left <= right,
            Operator::AtLeast => left >= right,
            Operator::Below => left < right,
            Operator::Above => left > right,
        }
    }

    /// Whether figures must not be above the limit; otherwise not below.
    const fn limits_above(self) -> bool {
        matches!(self, Operator::AtMost | Operator::Below)
    }
}

/// The parts of a gate: `p99 <= 200us`.
struct GateParts<'a> {
    estimand: &'a str,
    operator: Operator,
    limit: &'a str,
}

impl<'a> GateParts<'a> {
    /// `text`, parted at its first operator; `hint` shows the expected form.
    fn of(text: &'a str, hint: &str) -> Result<GateParts<'a>, GateError> {
        if let Some((strange, operator)) = STRANGE_OPERATORS.iter().find(|(strange, _)| text.contains(strange)) {
            let cause = format!("`{strange}` is not an operator");
            return Err(GateError::of(text, cause, format!("did you mean `{operator}`?")));
        }
        let none = || GateError::of(text, "it has none of `<=`, `<`, `>=`, `>`", hint);
        let place = text.find(['<', '>']).ok_or_else(none)?;
        let (estimand, rest) = text.split_at(place);
        let found = OPERATORS.iter().find_map(|(sign, operator)| Some((*operator, rest.strip_prefix(sign)?)));
        let (operator, limit) = found.ok_or_else(none)?;
        Ok(GateParts { estimand, operator, limit: limit.trim() })
    }
}

/// Why a gate cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GateError {
    #[error("cannot read the gate `{text}`")]
    Form {
        text: String,
        cause: String,
        /// The expected form, or the nearest known word.
        hint: String,
    },
    /// The run can never have what the gate is about.
    #[error("cannot judge the gate `{text}` on `{run}`")]
    Absent {
        text: String,
        /// The recording, or the kind of the planned run.
        run: String,
        /// The missing metric or deadline.
        cause: String,
        /// The option to add, or the metrics that the run has.
        hint: String,
    },
    /// There are more gates than the limit.
    #[error("{count} gates are too many for one command")]
    TooMany { count: usize },
}

/// Refuses more gates than the limit.
///
/// # Errors
/// [`GateError::TooMany`].
pub fn expect_few_gates(gates: &[String]) -> Result<(), GateError> {
    if gates.len() > GATES_MAX { Err(GateError::TooMany { count: gates.len() }) } else { Ok(()) }
}

impl GateError {
    fn of(text: &str, cause: impl Into<String>, hint: impl Into<String>) -> GateError {
        GateError::Form { text: text.trim().into(), cause: cause.into(), hint: hint.into() }
    }
}

/// The runs of which a gate limits a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GatedRuns {
    /// Their command has the options of measuring.
    Planned,
    /// Their command has the options of a summary.
    Recorded,
    Compared,
}

/// The error that `run`, one of `runs`, can never have `estimand`, which the gate `text` is about.
fn absent(
    text: &str,
    run: String,
    estimand: Estimand,
    absence: FigureAbsence,
    available: &AvailableFigures,
    runs: GatedRuns,
) -> GateError {
    let name = estimand.metric_name();
    let cause = match absence {
        FigureAbsence::Deadline => "no deadline was given".into(),
        FigureAbsence::DeadlineOfStream => "a stream has no deadline".into(),
        FigureAbsence::Packets => format!("{} are no packets: they have no `{name}`", available.kind().rows()),
        FigureAbsence::Metric => format!("such a run has no `{name}`"),
        FigureAbsence::Schedule => format!("a closed loop has no `{name}`"),
        FigureAbsence::Log => format!("the imported log does not have what `{name}` is computed from"),
        FigureAbsence::Stamps => format!("a plain echo sends no stamps, from which `{name}` is computed"),
    };
    let metrics = || available.metrics().map(Metric::name).collect::<Vec<_>>().join(", ");
    let hint = match (absence, runs) {
        (FigureAbsence::Deadline, GatedRuns::Compared) => {
            "measure with `--deadline T`, such as `--deadline 1ms`".into()
        }
        (FigureAbsence::Deadline, _) => "add `--deadline T`, such as `--deadline 1ms`".into(),
        (FigureAbsence::DeadlineOfStream, _) => "gate on `loss_ratio` or `delivered_rate`".into(),
        (FigureAbsence::Packets, _) => {
            format!("gate on `{}` or `deadline_miss_ratio`", available.main().name())
        }
        (FigureAbsence::Schedule, GatedRuns::Planned) => "add `--interval T`, such as `-i 1ms`".into(),
        (FigureAbsence::Metric | FigureAbsence::Schedule | FigureAbsence::Stamps | FigureAbsence::Log, _) => {
            format!("gate on one of {}", metrics())
        }
    };
    GateError::Absent { text: text.into(), run, cause, hint }
}

impl Explain for GateError {
    fn explain(&self) -> Failure {
        match self {
            GateError::Form { cause, hint, .. } | GateError::Absent { cause, hint, .. } => {
                Failure::request(self).because(cause).hint(hint)
            }
            GateError::TooMany { .. } => {
                Failure::request(self).because(format!("the limit is {GATES_MAX}")).hint("give those that matter")
            }
        }
    }
}
