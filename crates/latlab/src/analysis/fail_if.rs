//! `--fail-if '[METRIC] STATISTIC OP VALUE'`: a gate for scripts.
//!
//! A quantile that fell among the lost counts as infinite; an unsupported one is judged by its point value,
//! with a warning. Where there is nothing to judge (no probe measured, or none answered for a statistic
//! over answered probes) the condition *holds*: a gate that is fed nothing must not open.

use std::fmt;

use thiserror::Error;

use super::operator::{OPERATORS, Operator};
use super::subject::{Estimand, FORM_HINT, Ratio, Statistic, subject};
use super::summary::Summary;
use crate::diagnostics::{Caveat, Explain, Failure, Severity};
use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::human::{self, ParseError, TimeUnit};

/// A condition under which `summary` ends with exit code 1.
#[derive(Clone, Debug, PartialEq)]
pub struct FailIf {
    text: String,
    subject: Estimand,
    operator: Operator,
    /// Nanoseconds, or a share.
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
        /// What is wrong.
        cause: String,
        /// What would be right.
        hint: String,
    },
    /// Its value cannot be read.
    #[error("cannot read the condition `{text}`")]
    Value {
        /// As typed.
        text: String,
        /// Why not.
        source: ParseError,
    },
    /// The recording has no such metric.
    #[error("cannot judge `{text}` on `{recording}`")]
    Absent {
        /// As typed.
        text: String,
        /// Which recording.
        recording: String,
        /// What is missing.
        cause: String,
        /// What to do.
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

/// What a recording had to say about a condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Observed {
    /// Nanoseconds, or a share.
    Finite(f64),
    /// The quantile fell among the lost.
    Infinite,
    /// There was nothing to compute it from.
    Nothing,
}

/// The outcome of one condition on one recording.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionResult {
    /// Whether the condition held: exit code 1.
    pub held: bool,
    /// What was observed.
    pub observed: Observed,
    /// The outcome in words: `p99 of round trip delay is 250 µs: `p99 > 200us` holds`.
    pub message: String,
    /// Why to be careful with it.
    pub warning: Option<Caveat>,
}

impl FailIf {
    /// Reads `p99 > 200us`, `response_time p99.9 >= 1ms`, `loss_ratio > 0.1%`.
    pub fn parse(text: &str) -> Result<FailIf, FailIfError> {
        let malformed = |cause: String, hint: String| FailIfError::Form { text: text.into(), cause, hint };
        let place = text
            .find(['<', '>'])
            .ok_or_else(|| malformed("it has none of `>`, `>=`, `<`, `<=`".into(), FORM_HINT.into()))?;
        let (left, rest) = text.split_at(place);
        let (operator, value) = OPERATORS
            .iter()
            .find_map(|(sign, operator)| rest.strip_prefix(sign).map(|value| (*operator, value)))
            .ok_or_else(|| malformed("it has no comparison".into(), FORM_HINT.into()))?;
        let words: Vec<&str> = left.split_whitespace().collect();
        let subject = subject(&words).map_err(|(cause, hint)| malformed(cause, hint))?;
        let subject = subject.compared_with(words.len() > 1, value.trim());
        let value = subject.value(value.trim()).map_err(|source| FailIfError::Value { text: text.into(), source })?;
        Ok(FailIf { text: text.trim().into(), subject, operator, value })
    }

    /// Asks for `[METRIC] STATISTIC` and compares it with nothing: what is observed is the answer.
    pub fn asking(text: &str) -> Result<FailIf, FailIfError> {
        let (text, words) = (text.trim().to_owned(), text.split_whitespace().collect::<Vec<_>>());
        match subject(&words) {
            Ok(subject) => Ok(FailIf { text, subject, operator: Operator::AtLeast, value: 0.0 }),
            Err((cause, hint)) => Err(FailIfError::Form { text, cause, hint }),
        }
    }

    /// The metric that must be described to judge this.
    pub fn metric(&self) -> Option<Metric> {
        match self.subject {
            Estimand::Ratio(_) => None,
            Estimand::Statistic(metric, _) => Some(metric),
        }
    }

    /// The quantile that must be among those described.
    pub fn quantile(&self) -> Option<f64> {
        match self.subject {
            Estimand::Statistic(_, Statistic::Quantile(q)) => Some(q),
            _ => None,
        }
    }

    /// Judges `summary`, which was made with this condition included in its wishes.
    pub fn judge(&self, summary: &Summary) -> Result<ConditionResult, FailIfError> {
        let subject = self.subject.in_runs_of(summary.kind);
        let (observed, warning) = match subject {
            Estimand::Ratio(ratio) => (self.ratio(ratio, summary)?, None),
            Estimand::Statistic(metric, statistic) => self.statistic(metric, statistic, summary)?,
        };
        let held = match observed {
            Observed::Finite(value) => self.operator.compares(value, self.value),
            Observed::Infinite => self.operator.compares(f64::INFINITY, self.value),
            Observed::Nothing => true,
        };
        let verb = if held { "holds" } else { "does not hold" };
        let message = match observed {
            Observed::Nothing => format!("there is nothing to judge `{}` by, so that it holds", self.text),
            observed => format!("{subject} is {}: `{}` {verb}", self.shown(observed), self.text),
        };
        Ok(ConditionResult { held, observed, message, warning })
    }

    fn shown(&self, observed: Observed) -> String {
        match (observed, self.subject) {
            (Observed::Finite(value), Estimand::Ratio(_)) => human::percent(value),
            (Observed::Finite(value), Estimand::Statistic(metric, _)) if metric.is_rate() => human::bit_rate(value),
            (Observed::Finite(value), Estimand::Statistic(..)) => {
                let unit = TimeUnit::suiting(value);
                format!("{} {}", unit.figure(value), unit.symbol())
            }
            _ => "infinite (it fell among the lost)".into(),
        }
    }

    fn ratio(&self, ratio: Ratio, summary: &Summary) -> Result<Observed, FailIfError> {
        let ratios = &summary.ratios;
        let value = match ratio {
            Ratio::Loss => ratios.loss,
            Ratio::Late => ratios.late,
            Ratio::Reordered => ratios.reordered,
            Ratio::Duplicate => ratios.duplicate,
            Ratio::DeadlineMiss if summary.deadline.is_none() => {
                let cause = "no deadline was given".into();
                return Err(self.absent(summary, cause, "add `--deadline T`, such as `--deadline 1ms`"));
            }
            Ratio::DeadlineMiss => ratios.deadline_miss,
        };
        Ok(value.map_or(Observed::Nothing, Observed::Finite))
    }

    fn statistic(
        &self,
        metric: Metric,
        statistic: Statistic,
        summary: &Summary,
    ) -> Result<(Observed, Option<Caveat>), FailIfError> {
        let Some(described) = summary.metrics.get(&metric) else {
            let cause = format!("the recording has no `{}`", metric.name());
            let there: Vec<_> = summary.metrics.keys().map(|metric| metric.name()).collect();
            return Err(self.absent(summary, cause, &format!("it has {}", there.join(", "))));
        };
        let value = match statistic {
            Statistic::Min => described.min.map(|min| min as f64),
            Statistic::Max => described.max.map(|max| max as f64),
            Statistic::Mean => described.mean,
            Statistic::Stddev => described.stddev,
            Statistic::Quantile(q) => {
                let estimate = described.quantiles.iter().find(|estimate| estimate.q == q);
                let warning =
                    estimate.filter(|estimate| !estimate.supported).and_then(|_| self.unsupported(summary.kind));
                if estimate.is_some_and(|estimate| estimate.lost) {
                    return Ok((Observed::Infinite, warning));
                }
                let value = estimate.and_then(|estimate| estimate.value);
                return Ok((value.map_or(Observed::Nothing, Observed::Finite), warning));
            }
        };
        Ok((value.map_or(Observed::Nothing, Observed::Finite), None))
    }

    fn unsupported(&self, kind: Kind) -> Option<Caveat> {
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
    use crate::analysis::in_memory::{InMemory, but, closed, scheduled};
    use crate::analysis::{SummaryOptions, summarise};
    use crate::plan::Schedule;
    use crate::probe::{Fate, ProbeRecord};
    use crate::units::Nanos;

    fn judge(schedule: Schedule, rows: Vec<ProbeRecord>, text: &str) -> Result<ConditionResult, FailIfError> {
        let condition = FailIf::parse(text)?;
        let source = InMemory::of(schedule, rows);
        let mut wishes = SummaryOptions::of(&source.manifest.spec);
        wishes.include(&condition);
        condition.judge(&summarise(&source, &wishes).expect("no windows asked for"))
    }

    /// 2,000 round trips of 1 to 2,000 µs in no order, of which the slowest `lost` never came back.
    fn closed_loop(lost: i64) -> Vec<ProbeRecord> {
        // fifth powers modulo this prime meet every remainder once
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
            let judgement = judge(Schedule::Closed, closed_loop(0), text).expect(text);
            assert_eq!(judgement.held, held, "{text}: {}", judgement.message);
            assert_eq!(judgement.warning, None, "{text}");
        }
    }

    #[test]
    fn a_quantile_among_the_lost_is_infinite() {
        let judgement = judge(Schedule::Closed, closed_loop(100), "p99 > 1h").expect("a condition");
        assert_eq!((judgement.held, judgement.observed), (true, Observed::Infinite));
        assert_eq!(judgement.message, "p99 of round trip delay is infinite (it fell among the lost): `p99 > 1h` holds");
        let below = judge(Schedule::Closed, closed_loop(100), "p99 < 1h").expect("a condition");
        assert!(!below.held);
        let ratio = judge(Schedule::Closed, closed_loop(100), "loss_ratio > 1%").expect("a condition");
        assert_eq!(ratio.message, "loss_ratio is 5 %: `loss_ratio > 1%` holds");
    }

    #[test]
    fn an_unsupported_quantile_is_judged_with_a_warning() {
        let judgement = judge(Schedule::Closed, closed_loop(0), "p99.99 > 1.9ms").expect("a condition");
        assert!(judgement.held && matches!(judgement.observed, Observed::Finite(ns) if ns > 1.9e6));
        assert_eq!(judgement.warning.map(|warning| warning.code).as_deref(), Some("unsupported-gate"));
    }

    #[test]
    fn nothing_to_judge_holds() {
        for (rows, text) in [
            (Vec::new(), "p99 > 1s"),
            (Vec::new(), "loss_ratio > 1%"),
            (closed_loop(2_000), "mean > 1s"),
            (vec![closed(0, 0, 1)], "stddev > 1s"),
        ] {
            let judgement = judge(Schedule::Closed, rows, text).expect(text);
            assert_eq!((judgement.held, judgement.observed), (true, Observed::Nothing), "{text}");
            assert!(judgement.message.contains("nothing to judge"), "{}", judgement.message);
        }
    }

    #[test]
    fn what_the_recording_lacks_is_refused() {
        for (text, hint) in [("response_time p99 > 1ms", "round_trip_delay"), ("deadline_miss_ratio > 0", "--deadline")]
        {
            let failure = judge(Schedule::Closed, closed_loop(0), text).expect_err(text).explain();
            assert!(failure.hint.as_ref().is_some_and(|found| found.contains(hint)), "{failure:?}");
            assert!(failure.message.contains(text) && failure.exit_code == 2);
        }
        let every_ms = Schedule::Periodic { interval_ns: Nanos::from_millis(1) };
        let rows = vec![scheduled(0, 0, 5, 10), scheduled(1, 1_000, 5, 10)];
        assert!(judge(every_ms, rows, "response-time p50 > 14us").expect("a condition").held);
    }

    #[test]
    fn malformed_conditions_are_refused_with_the_text_and_a_way_out() {
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
