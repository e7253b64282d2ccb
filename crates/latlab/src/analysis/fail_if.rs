//! `--fail-if '[METRIC] STATISTIC OP VALUE'`: a condition under which the command exits with 1.
//!
//! A quantile that falls among the lost probes is infinite. An unsupported quantile is judged by its point value, with
//! a warning. If there is nothing to judge (no probe was measured, or none was answered for a statistic over answered
//! probes), the condition *holds*, so that a script does not continue without a measurement.

use std::fmt;

use thiserror::Error;

use super::estimand::{Estimand, FORM_HINT, Ratio, RunFigure, Statistic, parse_estimand};
use super::summary::Summary;
use crate::diagnostics::{Caveat, Explain, Failure, Severity};
use crate::plan::Kind;
use crate::stats::Description;
use crate::units::human::{self, ParseError, TimeUnit};

/// Longer ones first: `>=` begins with `>`.
const OPERATORS: [(&str, Operator); 4] =
    [(">=", Operator::AtLeast), ("<=", Operator::AtMost), (">", Operator::Above), ("<", Operator::Below)];

/// How a figure is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    AtLeast,
    AtMost,
    Above,
    Below,
}

impl Operator {
    fn compares(self, left: f64, right: f64) -> bool {
        match self {
            Operator::AtLeast => left >= right,
            Operator::AtMost => left <= right,
            Operator::Above => left > right,
            Operator::Below => left < right,
        }
    }
}

/// A condition under which `summary` ends with exit code 1.
#[derive(Clone, Debug, PartialEq)]
pub struct FailIf {
    text: String,
    estimand: Estimand,
    operator: Operator,
    /// Nanoseconds, bits a second, or a ratio.
    value: f64,
}

/// Why a condition cannot be judged.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FailIfError {
    /// It is not of the form `[METRIC] STATISTIC OP VALUE`.
    #[error("cannot read the condition `{text}`")]
    Form {
        /// As typed.
        text: String,
        /// The error in the text.
        cause: String,
        /// The expected form, or the nearest known word.
        hint: String,
    },
    /// Its value cannot be parsed.
    #[error("cannot read the condition `{text}`")]
    Value {
        /// As typed.
        text: String,
        /// Why not.
        source: ParseError,
    },
    /// The recording lacks what it is about.
    #[error("cannot judge `{text}` on `{recording}`")]
    Absent {
        /// As typed.
        text: String,
        /// Which recording.
        recording: String,
        /// The missing metric or deadline.
        cause: String,
        /// The option to add, or the metrics that the recording has.
        hint: String,
    },
}

impl Explain for FailIfError {
    fn explain(&self) -> Failure {
        let failure = Failure::request(self);
        match self {
            FailIfError::Form { cause, hint, .. } | FailIfError::Absent { cause, hint, .. } => {
                failure.because(cause).hint(hint)
            }
            FailIfError::Value { source, .. } => {
                let value = source.explain();
                let cause = value.cause.map(|cause| format!("{source}: {cause}"));
                Failure { cause, hint: value.hint, ..failure }
            }
        }
    }
}

/// The outcome of one condition on one recording.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionResult {
    /// Whether the condition held: exit code 1.
    pub held: bool,
    /// The outcome in words: `p99 of round trip delay is 250 µs: `p99 > 200us` holds`.
    pub message: String,
    /// Why the outcome may change with a longer run.
    pub warning: Option<Caveat>,
}

impl FailIf {
    /// Parses `p99 > 200us`, `response_time p99.9 >= 1ms`, `loss_ratio > 0.1%`.
    pub fn parse(text: &str) -> Result<FailIf, FailIfError> {
        let malformed = |cause: String, hint: String| FailIfError::Form { text: text.into(), cause, hint };
        let place = text
            .find(['<', '>'])
            .ok_or_else(|| malformed("it has none of `>`, `>=`, `<`, `<=`".into(), FORM_HINT.into()))?;
        let (left, rest) = text.split_at(place);
        let (operator, value) = OPERATORS
            .iter()
            .find_map(|(sign, operator)| rest.strip_prefix(sign).map(|value| (*operator, value.trim())))
            .ok_or_else(|| malformed("it has no comparison".into(), FORM_HINT.into()))?;
        let estimand = parse_estimand(None, left).map_err(|error| malformed(error.cause, error.hint))?;
        let estimand = estimand.compared_with(left.split_whitespace().count() > 1, value);
        let value = estimand.parse_value(value).map_err(|source| FailIfError::Value { text: text.into(), source })?;
        Ok(FailIf { text: text.trim().into(), estimand, operator, value })
    }

    /// The estimand of the condition, which the options of a summary must include.
    pub fn estimand(&self) -> Estimand {
        self.estimand
    }

    /// Judges `summary`, whose options included [`FailIf::estimand`].
    ///
    /// # Errors
    /// If the recording lacks the metric, or no deadline was given.
    pub fn judge(&self, summary: &Summary) -> Result<ConditionResult, FailIfError> {
        let estimand = self.estimand.in_runs_of(summary.kind);
        let (figure, warning) = match estimand {
            Estimand::Ratio(Ratio::DeadlineMiss) if summary.deadline.is_none() => {
                let hint = "add `--deadline T`, such as `--deadline 1ms`";
                return Err(self.absent(summary, "no deadline was given".into(), hint));
            }
            Estimand::Ratio(ratio) => (RunFigure::of(summary.ratios.get(ratio)), None),
            Estimand::Statistic(metric, statistic) => {
                let Some(described) = summary.metrics.get(&metric) else {
                    let cause = format!("the recording has no `{}`", metric.name());
                    let metrics: Vec<_> = summary.metrics.keys().map(|metric| metric.name()).collect();
                    return Err(self.absent(summary, cause, &format!("it has {}", metrics.join(", "))));
                };
                (statistic.figure(described), self.unsupported(statistic, described, summary.kind))
            }
        };
        let held = match figure {
            RunFigure::Finite { value, .. } => self.operator.compares(value, self.value),
            RunFigure::Infinite => self.operator.compares(f64::INFINITY, self.value),
            RunFigure::Nothing => true,
        };
        let verb = if held { "holds" } else { "does not hold" };
        let message = match figure {
            RunFigure::Finite { value, .. } => format!("{estimand} is {}: `{}` {verb}", self.shown(value), self.text),
            RunFigure::Infinite => {
                format!("{estimand} is infinite (it fell among the lost): `{}` {verb}", self.text)
            }
            RunFigure::Nothing => format!("there is nothing to judge `{}` by, so that it holds", self.text),
        };
        Ok(ConditionResult { held, message, warning })
    }

    fn shown(&self, value: f64) -> String {
        match self.estimand {
            Estimand::Ratio(_) => human::percent(value),
            Estimand::Statistic(metric, _) if metric.is_rate() => human::bit_rate(value),
            Estimand::Statistic(..) => {
                let unit = TimeUnit::suiting(value);
                format!("{} {}", unit.figure(value), unit.symbol())
            }
        }
    }

    /// The warning that the quantile in `described` has too few observations beyond it.
    fn unsupported(&self, statistic: Statistic, described: &Description, kind: Kind) -> Option<Caveat> {
        let q = statistic.quantile()?;
        described.quantiles.iter().find(|estimate| estimate.q == q && !estimate.supported)?;
        let rows = kind.rows();
        Some(Caveat::new(
            Severity::Warning,
            "unsupported-gate",
            format!("`{}` was judged by a quantile with fewer than 10 effective observations beyond it", self.text),
            format!("one {} more or less may turn the outcome", rows.trim_end_matches('s')),
            format!("measure more {rows}, or gate on a lower quantile"),
        ))
    }

    fn absent(&self, summary: &Summary, cause: String, hint: &str) -> FailIfError {
        FailIfError::Absent { text: self.text.clone(), recording: summary.recording.clone(), cause, hint: hint.into() }
    }
}

impl fmt::Display for FailIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, scheduled};
    use crate::analysis::{SummaryOptions, summarise};
    use crate::plan::Schedule;
    use crate::probe::{Fate, ProbeRecord};

    fn judge(schedule: Schedule, rows: Vec<ProbeRecord>, text: &str) -> Result<ConditionResult, FailIfError> {
        let condition = FailIf::parse(text)?;
        let source = InMemory::of(schedule, rows);
        let mut options = SummaryOptions::of(&source.manifest.spec);
        options.include(condition.estimand());
        condition.judge(&summarise(&source, &options).expect("no windows asked for"))
    }

    /// 2,000 round trips of 1 to 2,000 µs in shuffled order, of which the slowest `lost` are lost.
    fn closed_loop(lost: i64) -> Vec<ProbeRecord> {
        // Fifth powers modulo this prime have every remainder once.
        let fifth_power = |seq: i64| (seq * seq % 1_999).pow(2) % 1_999 * seq % 1_999;
        let shuffled = |seq: i64| if seq == 1_999 { 2_000 } else { fifth_power(seq) + 1 };
        let row = |seq: i64| closed(seq as u64, seq * 10_000, shuffled(seq));
        let rows = (0..2_000).map(row).map(|row| (row.received.zip(row.sent).map(|(to, from)| (to - from).0), row));
        rows.map(|(ns, row)| if ns > Some((2_000 - lost) * 1_000) { but(row, Fate::Lost) } else { row }).collect()
    }

    #[test]
    fn conditions_hold_or_not() {
        for (text, held) in [
            ("p99 > 200us", true),
            ("p99>3ms", false),
            ("  p50  <=  1.0005ms ", true),
            ("p50 < 1000.5us", false),
            ("p50 >= 1000500ns", true),
            ("round_trip_delay min < 2us", true),
            ("round-trip-delay max > 2ms", false),
            ("mean > 1ms", true),
            ("stddev < 1ms", true),
            ("q0.25 > 0.4ms", true),
            ("pdv p99 > 2ms", false),
            ("ipdv min < -1us", true),
            ("ipdv max < -1.5 ms", false),
            ("loss_ratio > 0.1%", false),
            ("loss-ratio <= 0", true),
            ("duplicate_ratio > 0", false),
        ] {
            let result = judge(CLOSED, closed_loop(0), text).expect(text);
            assert_eq!(result.held, held, "{text}: {}", result.message);
            assert_eq!(result.warning, None, "{text}");
        }
    }

    #[test]
    fn a_quantile_among_the_lost_is_infinite() {
        let result = judge(CLOSED, closed_loop(100), "p99 > 1h").expect("a condition");
        assert!(result.held);
        assert_eq!(result.message, "p99 of round trip delay is infinite (it fell among the lost): `p99 > 1h` holds");
        let below = judge(CLOSED, closed_loop(100), "p99 < 1h").expect("a condition");
        assert!(!below.held);
        let ratio = judge(CLOSED, closed_loop(100), "loss_ratio > 1%").expect("a condition");
        assert_eq!(ratio.message, "loss_ratio is 5 %: `loss_ratio > 1%` holds");
    }

    #[test]
    fn an_unsupported_quantile_is_judged_with_a_warning() {
        let result = judge(CLOSED, closed_loop(0), "p99.99 > 1.9ms").expect("a condition");
        assert!(result.held && result.message.starts_with("p99.99 of round trip delay is "), "{}", result.message);
        assert_eq!(result.warning.map(|warning| warning.code).as_deref(), Some("unsupported-gate"));
    }

    #[test]
    fn a_condition_without_anything_to_judge_holds() {
        for (rows, text) in
            [(Vec::new(), "p99 > 1s"), (Vec::new(), "loss_ratio > 1%"), (vec![closed(0, 0, 1)], "stddev > 1s")]
        {
            let result = judge(CLOSED, rows, text).expect(text);
            assert!(result.held && result.message.contains("nothing to judge"), "{}", result.message);
        }
    }

    #[test]
    fn a_metric_or_deadline_that_the_recording_lacks_is_refused() {
        for (text, hint) in [("response_time p99 > 1ms", "round_trip_delay"), ("deadline_miss_ratio > 0", "--deadline")]
        {
            let failure = judge(CLOSED, closed_loop(0), text).expect_err(text).explain();
            assert!(failure.hint.as_ref().is_some_and(|found| found.contains(hint)), "{failure:?}");
            assert!(failure.message.contains(text) && failure.exit_code == 2);
        }
        let rows = vec![scheduled(0, 0, 5, 10), scheduled(1, 1_000, 5, 10)];
        assert!(judge(EVERY_MS, rows, "response-time p50 > 14us").expect("a condition").held);
    }

    #[test]
    fn malformed_conditions_are_refused_with_text_cause_and_hint() {
        for (text, cause, hint) in [
            ("", "none of", "such as"),
            ("p99", "none of", "such as"),
            ("p99 = 1ms", "none of", "such as"),
            ("> 1ms", "statistic is missing", "such as"),
            ("round trip p99 > 1ms", "3 words", "such as"),
            ("p99 > 200", "unit is missing", "250us"),
            ("p99 >", "empty", "250us"),
            ("p99 >> 1ms", "number", "250us"),
            ("p99 > -1us", "negative", "250us"),
            ("p99 > 5%", "`%`", "250us"),
            ("loss_ratio > 1ms", "`ms`", "0.5%"),
            ("loss_ratio > 5", "`%`", "0.5%"),
            ("p100 > 1ms", "`p100`", "between `p0` and `p100`"),
            ("q1.5 > 1ms", "`q1.5`", "between `p0` and `p100`"),
            ("pinf > 1ms", "`pinf`", "known are"),
            ("maximum > 1ms", "`maximum`", "did you mean `max`?"),
            ("median > 1ms", "`median`", "did you mean `p50`?"),
            ("rtt p99 > 1ms", "`rtt`", "did you mean `round_trip_delay`?"),
            ("p999 > 1ms", "`p999`", "did you mean `p99.9`? a quantile lies"),
            ("tail > 1ms", "`tail`", "known are"),
            ("response_time > 1ms", "is a metric", "`response_time p99 > 1ms`"),
            ("man > 1ms", "`man`", "did you mean `max`?"),
            ("loss_ration > 1%", "`loss_ration`", "did you mean `loss_ratio`?"),
            ("responsetime p99 > 1ms", "`responsetime`", "did you mean `response_time`?"),
            ("latency p99 > 1ms", "`latency`", "known are round_trip_delay"),
            ("round_trip_delay loss_ratio > 1%", "whole run", "such as"),
        ] {
            let failure = FailIf::parse(text).expect_err(text).explain();
            assert!(failure.cause.as_ref().is_some_and(|found| found.contains(cause)), "{text}: {failure:?}");
            assert!(failure.hint.as_ref().is_some_and(|found| found.contains(hint)), "{text}: {failure:?}");
            assert!(failure.message.contains(&format!("`{text}`")) && failure.exit_code == 2);
        }
    }
}
