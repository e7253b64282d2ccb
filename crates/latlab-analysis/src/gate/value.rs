//! `--gate '[METRIC] STATISTIC OP VALUE'`: what must hold of the figure of a run, or of the runs of a condition.
//!
//! An infinite figure breaks a gate with an upper limit. If nothing was answered, or the figure is missing, every gate is
//! broken. An unsupported quantile is judged by its bounds, and several runs of a condition by the 95 % interval of their
//! mean: a gate is kept or broken if the whole interval is on one side of the limit. `every:` judges each run alone.

use std::collections::BTreeMap;
use std::path::Path;

use super::{
    GateError, GateParts, GateReason, GateState, GatedRuns, Operator, ValueGateResult, absent, expect_few_gates,
    expect_named_metric, of_each, outcome_of,
};
use crate::available::AvailableFigures;
use crate::diagnostics::{Caveat, Explain, Outcome, Severity};
use crate::estimand::{Estimand, FORM_HINT, RunFigure, Statistic, parse_estimand};
use crate::experiment::MeanOfRuns;
use crate::metric::Metric;
use crate::plan::defaults::CONFIDENCE;
use crate::plan::{Kind, RunSpec, condition_words};
use crate::stats::{QuantileEstimate, is_supported};
use crate::summary::{Summary, SummaryOptions};
use crate::units::human::ParseError;

/// The gates of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueGates {
    gates: Vec<ValueGate>,
    /// Whether an undecided gate makes the outcome negative.
    is_strict: bool,
}

/// A limit of the figure of a run.
#[derive(Clone, Debug, PartialEq)]
struct ValueGate {
    text: String,
    estimand: Estimand,
    /// Whether its metric was typed; otherwise it is about the main metric of each kind of run.
    is_metric_typed: bool,
    /// Whether each run of a condition must hold it: `every: p99 <= 200us`.
    is_every: bool,
    operator: Operator,
    /// Nanoseconds, bits a second, or a ratio.
    limit: f64,
}

impl ValueGates {
    /// Parses each of `texts`: `p99 <= 200us`, `response_time p99.9 < 1ms`, `loss_ratio <= 0.1%`.
    ///
    /// # Errors
    /// If one has another form.
    pub fn parse(texts: &[String], is_strict: bool) -> Result<ValueGates, GateError> {
        expect_few_gates(texts)?;
        let gates = texts.iter().map(|text| ValueGate::parse(text)).collect::<Result<_, _>>()?;
        Ok(ValueGates { gates, is_strict })
    }

    pub fn is_empty(&self) -> bool {
        self.gates.is_empty()
    }

    pub(super) const fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// Adds what the gates are about to the options of a summary.
    pub fn include(&self, options: &mut SummaryOptions) {
        self.gates.iter().for_each(|gate| options.include(gate.estimand));
    }

    /// Expects that one of the planned `runs` at least can have what each gate is about.
    ///
    /// # Errors
    /// If none can ever have a metric or a deadline.
    pub fn expect_judgeable<'a>(&self, runs: impl Iterator<Item = &'a RunSpec> + Clone) -> Result<(), GateError> {
        self.gates.iter().try_for_each(|gate| {
            runs.clone().try_for_each(|run| expect_named_metric(&gate.text, run))?;
            let named = runs.clone().map(|run| {
                (format!("latlab {}", run.kind().word()), AvailableFigures::of(run, run.judging.deadline_ns))
            });
            gate.expect_in_one(named, GatedRuns::Planned)
        })
    }

    /// The same of the recordings with these names and figures.
    ///
    /// # Errors
    /// If none can ever have a metric, or no deadline was given.
    pub fn expect_recorded(&self, recordings: &[(String, AvailableFigures)]) -> Result<(), GateError> {
        self.gates.iter().try_for_each(|gate| gate.expect_in_one(recordings.iter().cloned(), GatedRuns::Recorded))
    }

    /// Judges `summary`, whose options [included](ValueGates::include) the gates, and adds the results of the gates
    /// that are about figures which its run can have.
    pub fn judge(&self, summary: &mut Summary, available: &AvailableFigures) {
        let own = self.gates.iter().filter(|gate| available.absence(gate.estimand_of(available.main())).is_none());
        summary.gates = own.map(|gate| gate.judge(summary).of_what_left(&[summary])).collect();
    }

    /// The outcome of the gates where no run could begin, since the target is silent: negative if there is a gate.
    pub fn outcome_without_runs(&self) -> Outcome {
        if self.is_empty() { Outcome::Done } else { Outcome::AnswerIsNo }
    }

    /// The outcome of the gates of `summaries`: negative if one is broken, or undecided where the gates are strict.
    pub fn outcome(&self, summaries: &[Summary]) -> Outcome {
        outcome_of(summaries.iter().flat_map(|summary| &summary.gates).map(|result| result.state), self.is_strict)
    }

    /// The results of the gates over the `summaries` of all judged runs of an experiment of `kind`, of which `missing`
    /// conditions have no judged run: each condition must have one, and hold each gate that it has the figure of.
    pub fn over_runs(&self, kind: Kind, summaries: &[Summary], missing: usize) -> Vec<ExperimentGateResult> {
        let of = |gate: &ValueGate| {
            let judged = gate.judged_over(summaries);
            let count = |state| judged.iter().filter(|one| one.result.state == state).count();
            ExperimentGateResult {
                gate: gate.text.clone(),
                estimand: gate.estimand_of(kind.metric()),
                runs: judged.iter().map(|one| one.runs).sum(),
                judged: judged.len(),
                missing,
                gone: 0,
                broken: count(GateState::Broken),
                undecided: count(GateState::Undecided),
                worst: gate.worst(judged),
            }
        };
        self.gates.iter().map(of).collect()
    }
}

/// The result of a gate on the judged runs of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentGateResult {
    pub gate: String,
    pub estimand: Estimand,
    /// Runs that can have the figure.
    pub runs: usize,
    /// What was judged one by one: conditions, or with `every:` runs.
    pub judged: usize,
    /// Conditions without a judged run.
    pub missing: usize,
    /// Judged runs whose recordings are gone or damaged: they may have been worse.
    pub gone: usize,
    /// Of those judged, as is the next.
    pub broken: usize,
    pub undecided: usize,
    /// What is farthest beyond the limit, or nearest to it; `None` without a judged run.
    pub worst: Option<JudgedRuns>,
}

/// One run of an experiment, or the runs of a condition, by one gate.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedRuns {
    /// The name of the recording, or the condition in words.
    pub name: String,
    pub runs: usize,
    pub kind: Kind,
    pub result: ValueGateResult,
}

impl ExperimentGateResult {
    /// Broken if one run breaks the gate, a run is gone or a condition has none, undecided if one run does not decide it.
    pub fn state(&self) -> GateState {
        match &self.worst {
            Some(worst) if self.missing == 0 && self.gone == 0 => worst.result.state,
            _ => GateState::Broken,
        }
    }

    /// That a run is gone or a condition has none, if no run breaks the gate; else the reason of the worst run.
    pub fn reason(&self) -> Option<GateReason> {
        match &self.worst {
            Some(worst) if self.broken > 0 || (self.missing == 0 && self.gone == 0) => worst.result.reason,
            _ if self.gone > 0 => Some(GateReason::MissingRuns),
            _ => Some(GateReason::NothingToJudge),
        }
    }

    /// The warning that it is undecided, if it is.
    pub fn undecided_warning(&self) -> Option<Caveat> {
        let worst = self.worst.as_ref().filter(|_| self.state() == GateState::Undecided)?;
        worst.result.undecided_warning()
    }
}

impl ValueGateResult {
    /// Is not kept if too many due probes of one of `runs` never left.
    fn of_what_left(self, runs: &[&Summary]) -> ValueGateResult {
        let lacks = |run: &&Summary| run.kind == Kind::Ping && run.counts.lacks_due();
        match self.state {
            GateState::Kept if runs.iter().any(lacks) => {
                ValueGateResult { state: GateState::Undecided, reason: Some(GateReason::NotSent), ..self }
            }
            _ => self,
        }
    }

    /// The warning that it is undecided, if it is.
    pub fn undecided_warning(&self) -> Option<Caveat> {
        if self.state != GateState::Undecided {
            return None;
        }
        let message = format!("the gate `{}` is undecided", self.gate);
        let other = match self.reason {
            Some(GateReason::Unsupported) => None,
            Some(GateReason::ClockBound) => Some((
                "the offset of the clocks is not known well enough",
                "a path with a shorter round trip, or `--stamps kernel`, narrows the bound",
            )),
            Some(GateReason::NotSent) => {
                Some(("1 % or more of the due probes never left", "the fatal caveat has the remedy"))
            }
            _ => Some(("the interval of the runs of a condition contains the limit", "more runs narrow it")),
        };
        if let Some((effect, hint)) = other {
            let hint = format!("{hint}; `--gate-strict` fails");
            return Some(Caveat::new(Severity::Warning, "few-observations", message, effect, &hint));
        }
        Some(Caveat::new(
            Severity::Warning,
            "few-observations",
            message,
            "too few effective observations lie beyond its quantile (10 are needed, or 100 if the metric drifts): another run \
             may give another result",
            "measure for longer, or several runs if the metric drifts; or gate on a quantile nearer to p50; \
             `--gate-strict` fails",
        ))
    }
}

impl ValueGate {
    fn parse(text: &str) -> Result<ValueGate, GateError> {
        let (is_every, typed) = of_each(text);
        let GateParts { estimand: left, operator, limit } = GateParts::of(typed, FORM_HINT)?;
        let estimand = parse_estimand(None, left).map_err(|error| GateError::of(text, error.cause, error.hint))?;
        let is_metric_typed = left.split_whitespace().count() > 1;
        let estimand = estimand.compared_with(is_metric_typed, limit);
        let unreadable = |error: ParseError| {
            let hint = match (estimand, limit.strip_suffix('%')) {
                (Estimand::Statistic(..), Some(_)) => "a change is judged by `latlab compare` and `latlab run`".into(),
                _ => error.explain().hint.unwrap_or_default(),
            };
            GateError::of(text, format!("{error}: {}", error.cause), hint)
        };
        let limit = estimand.parse_value(limit).map_err(unreadable)?;
        Ok(ValueGate { text: text.trim().into(), estimand, is_metric_typed, is_every, operator, limit })
    }

    /// What it is about in runs whose main metric is `main`.
    fn estimand_of(&self, main: Metric) -> Estimand {
        if self.is_metric_typed { self.estimand } else { self.estimand.in_runs_of(main) }
    }

    fn expect_in_one(
        &self,
        runs: impl Iterator<Item = (String, AvailableFigures)>,
        of: GatedRuns,
    ) -> Result<(), GateError> {
        let mut lacking = None;
        for (name, available) in runs {
            let estimand = self.estimand_of(available.main());
            let Some(absence) = available.absence(estimand) else { return Ok(()) };
            lacking.get_or_insert_with(|| absent(&self.text, name, estimand, absence, &available, of));
        }
        lacking.map_or(Ok(()), Err)
    }

    fn judge(&self, summary: &Summary) -> ValueGateResult {
        let estimand = self.estimand_of(summary.metric);
        let (figure, estimate) = figure_of(estimand, summary);
        let unbounded = ValueGateResult {
            gate: self.text.clone(),
            estimand,
            value: figure.value().filter(|_| summary.counts.answered > 0),
            bounds: (None, None),
            limit: self.limit,
            state: GateState::Broken,
            reason: Some(GateReason::Unanswered),
        };
        if summary.counts.answered == 0 {
            return unbounded;
        }
        if let Some((low, high)) = ends_of_one_way(estimand, summary) {
            let state = self.state_between(low, high);
            let is_unsupported = estimate.is_some_and(|estimate| !estimate.supported);
            let why = if is_unsupported { GateReason::Unsupported } else { GateReason::ClockBound };
            let reason = (state == GateState::Undecided).then_some(why);
            return ValueGateResult { bounds: (low, high), state, reason, ..unbounded };
        }
        let is_uncertain = |estimate: &&QuantileEstimate| !estimate.supported && !estimate.is_surely_lost();
        match estimate.filter(is_uncertain).filter(|_| figure != RunFigure::Nothing) {
            Some(QuantileEstimate { lower_bound, interval, .. }) => {
                let upper_bound = interval.as_ref().and_then(|interval| interval.high);
                let state = self.state_between(*lower_bound, upper_bound);
                let is_by_upper = self.operator.limits_above() == (state == GateState::Kept);
                let bounds = match state {
                    GateState::Kept | GateState::Broken if is_by_upper => (None, upper_bound),
                    _ => (*lower_bound, None),
                };
                ValueGateResult { bounds, state, reason: Some(GateReason::Unsupported), ..unbounded }
            }
            // The quantile lies among the lost probes for certain, supported or not.
            None => {
                let (state, reason) = self.state(figure);
                ValueGateResult { state, reason, ..unbounded }
            }
        }
    }

    /// The state by a figure that the data support.
    fn state(&self, figure: RunFigure) -> (GateState, Option<GateReason>) {
        let by =
            |value: f64| if self.operator.compares(value, self.limit) { GateState::Kept } else { GateState::Broken };
        match figure {
            RunFigure::Finite { value, .. } => (by(value), None),
            RunFigure::Infinite => (by(f64::INFINITY), Some(GateReason::Infinite)),
            RunFigure::Nothing => (GateState::Broken, Some(GateReason::NothingToJudge)),
        }
    }

    /// The state by a figure that lies between these bounds.
    fn state_between(&self, lower_bound: Option<f64>, upper_bound: Option<f64>) -> GateState {
        let ends = (lower_bound, upper_bound);
        let (nearer, farther) = if self.operator.limits_above() { ends } else { (ends.1, ends.0) };
        let holds = |bound: f64| self.operator.compares(bound, self.limit);
        match (nearer.map(holds), farther.map(holds)) {
            (_, Some(true)) => GateState::Kept,
            (Some(false), _) => GateState::Broken,
            _ => GateState::Undecided,
        }
    }

    /// The runs that have a result of this gate: those of each condition together, or with `every:` each alone.
    fn judged_over(&self, summaries: &[Summary]) -> Vec<JudgedRuns> {
        let mut conditions: BTreeMap<(u32, usize), Vec<(&Summary, &ValueGateResult)>> = BTreeMap::new();
        for (place, summary) in summaries.iter().enumerate() {
            let Some(own) = summary.gates.iter().find(|result| result.gate == self.text) else { continue };
            let condition =
                summary.experiment.as_ref().map(|experiment| experiment.condition).filter(|_| !self.is_every);
            let key = condition.map_or((0, place), |condition| (condition, 0));
            conditions.entry(key).or_default().push((summary, own));
        }
        conditions.into_values().map(|runs| self.judge_together(&runs)).collect()
    }

    /// Judges the mean of the figures of `runs`, geometric if all are above 0 and none is a ratio, by its 95 % interval. A run
    /// without a figure decides alone, and so does the first if most are infinite.
    fn judge_together(&self, runs: &[(&Summary, &ValueGateResult)]) -> JudgedRuns {
        let alone = |(summary, result): &(&Summary, &ValueGateResult)| {
            let name = Path::new(&summary.recording).file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_else(|| summary.recording.clone());
            JudgedRuns { name, runs: 1, kind: summary.kind, result: (*result).clone() }
        };
        let is_bare = |reason| matches!(reason, Some(GateReason::Unanswered | GateReason::NothingToJudge));
        let bare = runs.iter().find(|(_, result)| is_bare(result.reason));
        // More runs do not narrow the bound of a clock: the worst one decides.
        let worst = runs.iter().max_by_key(|(_, result)| result.state).filter(|(_, worst)| worst.estimand.is_one_way());
        if let Some(run) = bare.or(worst).or(Some(&runs[0]).filter(|_| runs.len() == 1)) {
            return JudgedRuns { runs: runs.len(), ..alone(run) };
        }
        let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (summary, result) in runs {
            let block = summary.experiment.as_ref().map_or(1, |experiment| experiment.block);
            blocks.entry(block).or_default().extend(result.value);
        }
        let mut blocks: Vec<Vec<f64>> = blocks.into_values().collect();
        if blocks.iter().all(|block| block.len() < 2) {
            blocks = vec![blocks.concat()];
        }
        let finite = blocks.iter().map(Vec::len).sum::<usize>();
        let (summary, first) = runs[0];
        let factors = summary.experiment.as_ref().map(|experiment| condition_words(&experiment.factors));
        let summaries: Vec<&Summary> = runs.iter().map(|(summary, _)| *summary).collect();
        let judged = |result: ValueGateResult| JudgedRuns {
            name: factors.clone().unwrap_or_default(),
            runs: runs.len(),
            kind: summary.kind,
            result: result.of_what_left(&summaries),
        };
        if finite < runs.len() {
            let (state, reason) = match self.state(RunFigure::Infinite) {
                most if 2 * finite < runs.len() => most,
                _ => (GateState::Undecided, Some(GateReason::Losses)),
            };
            return judged(ValueGateResult { value: None, bounds: (None, None), state, reason, ..first.clone() });
        }
        let is_share = matches!(first.estimand, Estimand::Ratio(_));
        let step = |(summary, own): &(&Summary, &ValueGateResult)| match own.estimand {
            Estimand::Statistic(metric, _) => summary.metrics.get(&metric).map_or(0.0, |own| own.step),
            Estimand::Ratio(_) => 0.0,
        };
        let step = runs.iter().map(step).reduce(f64::min).unwrap_or(0.0);
        let MeanOfRuns { mean, interval, .. } = MeanOfRuns::of(blocks, is_share, step, CONFIDENCE);
        let bounds = interval.map(|ends| (ends.low, ends.high)).unwrap_or_default();
        let state = self.state_between(bounds.0, bounds.1);
        let is_short = || summaries.iter().any(|summary| is_short(first.estimand, summary));
        let (state, reason, bounds) = match state {
            GateState::Undecided => (state, Some(GateReason::BothSides), bounds),
            // The quantiles of short runs are too near to the median.
            _ if self.is_inward(state) && is_short() => {
                (GateState::Undecided, Some(GateReason::Unsupported), (None, None))
            }
            _ => (state, None, bounds),
        };
        judged(ValueGateResult { value: Some(mean), bounds, state, reason, ..first.clone() })
    }

    /// Whether `state` says that a quantile is nearer to the median than the limit.
    fn is_inward(&self, state: GateState) -> bool {
        let is_below = self.operator.limits_above() == (state == GateState::Kept);
        match self.estimand {
            Estimand::Statistic(_, statistic) => statistic.quantile().is_some_and(|q| (q > 0.5) == is_below),
            Estimand::Ratio(_) => false,
        }
    }

    /// The worst of those `judged`; of equal ones the first.
    fn worst(&self, judged: Vec<JudgedRuns>) -> Option<JudgedRuns> {
        let badness = |result: &ValueGateResult| match (self.operator.limits_above(), result.value, result.reason) {
            (true, Some(value), _) => value,
            (false, Some(value), _) => -value,
            (false, None, Some(GateReason::Infinite | GateReason::Unsupported)) => f64::NEG_INFINITY,
            (_, None, _) => f64::INFINITY,
        };
        let order = |one: &ValueGateResult, other: &ValueGateResult| {
            one.state.cmp(&other.state).then(badness(one).total_cmp(&badness(other)))
        };
        judged.into_iter().rev().max_by(|one, other| order(&one.result, &other.result))
    }
}

/// Whether fewer than ten singletons of the run lie beyond the quantile that `estimand` is.
fn is_short(estimand: Estimand, summary: &Summary) -> bool {
    let Estimand::Statistic(metric, statistic) = estimand else { return false };
    let n = summary.metrics.get(&metric).map_or(0, |described| described.n) as f64;
    statistic.quantile().is_some_and(|q| !is_supported(q, n))
}

/// Between what lies a figure of one way by the bound of the clocks, and if the quantile is not supported by its interval too. A
/// missing end is not known. `None` of other figures, and without any.
fn ends_of_one_way(estimand: Estimand, summary: &Summary) -> Option<(Option<f64>, Option<f64>)> {
    let Estimand::Statistic(metric, statistic) = estimand else { return None };
    let delay = summary.one_way.as_ref()?.of(metric)?;
    let value = statistic.figure(&delay.estimate).value()?;
    let own = delay.estimate.quantiles.iter().find(|own| Some(own.q) == statistic.quantile() && !own.supported);
    let ends = own.map_or((Some(value), Some(value)), |own| (own.lower_bound, own.interval.and_then(|it| it.high)));
    // The bound of a standard deviation is not known: errors of the offset may add to it or hide it.
    let bound = delay.bound(|described| statistic.figure(described).value());
    let bound = bound.filter(|_| statistic != Statistic::Stddev);
    Some((ends.0.zip(bound).map(|(low, bound)| low - bound), ends.1.zip(bound).map(|(high, bound)| high + bound)))
}

/// The figure of `estimand` in `summary`, and its estimate if it is a quantile.
fn figure_of(estimand: Estimand, summary: &Summary) -> (RunFigure, Option<&QuantileEstimate>) {
    let of = if summary.kind == Kind::Command { Statistic::figure_of_executions } else { Statistic::figure };
    match estimand {
        Estimand::Ratio(ratio) => (RunFigure::of(summary.ratios.get(ratio)), None),
        Estimand::Statistic(metric, statistic) => match summary.described(metric) {
            None => (RunFigure::Nothing, None),
            Some(described) => {
                let own = |estimate: &&QuantileEstimate| Some(estimate.q) == statistic.quantile();
                (of(statistic, described), described.quantiles.iter().find(own))
            }
        },
    }
}

#[cfg(test)]
mod tests;
