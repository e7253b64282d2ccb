//! Estimands (ICH E9(R1)) of comparisons and gates: a statistic of a metric, or a ratio of the run. Parses
//! estimands and their values, and finds their figures in the description of a run.

use std::fmt;

use thiserror::Error;

use crate::diagnostics::{Explain, Failure};
use crate::metric::Metric;
use crate::stats::Description;
use crate::units::Nanos;
use crate::units::human::{self, NetworkRate, ParseError};

pub(super) const FORM_HINT: &str = "`[METRIC] STATISTIC OP VALUE`, such as `p99 <= 200us` or `loss_ratio <= 0.1%`";

/// A statistic of a metric, or a ratio of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimand {
    /// A ratio of the run's probes.
    Ratio(Ratio),
    /// A statistic of a metric's sample.
    Statistic(Metric, Statistic),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    Min,
    Mean,
    Max,
    Stddev,
    /// Over all, in (0, 1).
    Quantile(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ratio {
    /// Not answered in time, of those sent.
    Loss,
    /// Answered too late, of those sent.
    Late,
    /// Overtaken, of those answered at all.
    Reordered,
    /// Further answers, for each answered at all.
    Duplicate,
    /// Not answered within the deadline, of all due.
    DeadlineMiss,
}

const RATIOS: [(&str, Ratio); 5] = [
    ("loss_ratio", Ratio::Loss),
    ("late_ratio", Ratio::Late),
    ("reordered_ratio", Ratio::Reordered),
    ("duplicate_ratio", Ratio::Duplicate),
    ("deadline_miss_ratio", Ratio::DeadlineMiss),
];

const STATISTICS: [(&str, Statistic); 8] = [
    ("min", Statistic::Min),
    ("mean", Statistic::Mean),
    ("max", Statistic::Max),
    ("stddev", Statistic::Stddev),
    ("p50", Statistic::Quantile(0.5)),
    ("p90", Statistic::Quantile(0.9)),
    ("p99", Statistic::Quantile(0.99)),
    ("p99.9", Statistic::Quantile(0.999)),
];

/// The value of an estimand in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunFigure {
    /// Nanoseconds, bits a second, or a ratio.
    Finite {
        value: f64,
        /// Whether at least 10 effective observations lie beyond a quantile.
        supported: bool,
    },
    /// The quantile lies among the unanswered probes, or no probe was answered.
    Infinite,
    /// The run has nothing to compute it from.
    Nothing,
}

impl RunFigure {
    /// The figure of `value`, which is supported if it exists.
    pub(super) fn of(value: Option<f64>) -> RunFigure {
        value.map_or(RunFigure::Nothing, |value| RunFigure::Finite { value, supported: true })
    }

    /// The figure, if it is finite.
    pub const fn value(self) -> Option<f64> {
        match self {
            RunFigure::Finite { value, .. } => Some(value),
            RunFigure::Infinite | RunFigure::Nothing => None,
        }
    }

    /// The figure, finite or not.
    pub(super) const fn limit(self) -> Option<f64> {
        match self {
            RunFigure::Finite { value, .. } => Some(value),
            RunFigure::Infinite => Some(f64::INFINITY),
            RunFigure::Nothing => None,
        }
    }
}

impl Statistic {
    pub(super) fn figure(self, described: &Description) -> RunFigure {
        let is_unanswered = described.n > 0 && described.n == described.lost;
        let of_answered = |value: Option<f64>| if is_unanswered { RunFigure::Infinite } else { RunFigure::of(value) };
        match self {
            Statistic::Min => of_answered(described.min),
            Statistic::Max => of_answered(described.max),
            Statistic::Mean => of_answered(described.mean),
            Statistic::Stddev => of_answered(described.stddev),
            Statistic::Quantile(q) => match described.quantiles.iter().find(|quantile| quantile.q == q) {
                Some(quantile) if quantile.lost => RunFigure::Infinite,
                Some(quantile) => match quantile.value {
                    Some(value) => RunFigure::Finite { value, supported: quantile.supported },
                    None => RunFigure::Nothing,
                },
                None => RunFigure::Nothing,
            },
        }
    }

    /// Its figure of executions of a command: how long a failed one would have taken is not known.
    pub(super) fn figure_of_executions(self, described: &Description) -> RunFigure {
        match self {
            Statistic::Mean | Statistic::Stddev | Statistic::Max if described.lost > 0 => RunFigure::Infinite,
            _ => self.figure(described),
        }
    }

    /// Its figure in `described` if each unanswered probe counts as answered after `timeout`, or after the largest delay
    /// if that is longer. The same as [`Statistic::figure`] of quantiles and the minimum, which losses do not improve, and
    /// if nothing was lost or everything.
    pub(super) fn figure_with_losses(self, described: &Description, timeout: Nanos) -> RunFigure {
        let answered = described.n - described.lost;
        let (Some(max), Some(mean), 1..) = (described.max, described.mean, described.lost) else {
            return self.figure(described);
        };
        let counted = (timeout.0 as f64).max(max);
        let [lost, answered, all] = [described.lost, answered, described.n].map(|count| count as f64);
        let mean_of_all = (mean * answered + counted * lost) / all;
        let stddev = || {
            let own = described.stddev.unwrap_or(0.0).powi(2) * (answered - 1.0);
            let squares = own + answered * (mean - mean_of_all).powi(2) + lost * (counted - mean_of_all).powi(2);
            (squares / (all - 1.0)).sqrt()
        };
        match self {
            Statistic::Mean => RunFigure::of(Some(mean_of_all)),
            Statistic::Max => RunFigure::of(Some(counted)),
            Statistic::Stddev => RunFigure::of(Some(stddev())),
            Statistic::Min | Statistic::Quantile(_) => self.figure(described),
        }
    }

    /// The quantile in (0, 1), if it is one.
    pub(super) const fn quantile(self) -> Option<f64> {
        if let Statistic::Quantile(q) = self { Some(q) } else { None }
    }

    /// The name: `p99`, `mean`.
    fn name(self) -> String {
        match self {
            Statistic::Quantile(q) => human::quantile(q),
            _ => STATISTICS.iter().find(|(_, other)| *other == self).map_or("", |(name, _)| name).into(),
        }
    }
}

impl Ratio {
    fn name(self) -> &'static str {
        RATIOS.iter().find(|(_, other)| *other == self).map_or("ratio", |(name, _)| name)
    }
}

impl fmt::Display for Estimand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Estimand::Ratio(ratio) => f.write_str(ratio.name()),
            Estimand::Statistic(metric, statistic) => write!(f, "{} of {}", statistic.name(), metric.title()),
        }
    }
}

impl Estimand {
    /// The metric's name in JSON; of a ratio its own.
    pub fn metric_name(&self) -> &'static str {
        match self {
            Estimand::Ratio(ratio) => ratio.name(),
            Estimand::Statistic(metric, _) => metric.name(),
        }
    }

    /// The statistic's name in JSON and tables: `p99`, `mean`, `ratio`.
    pub fn statistic_name(&self) -> String {
        match self {
            Estimand::Ratio(_) => "ratio".into(),
            Estimand::Statistic(_, statistic) => statistic.name(),
        }
    }

    /// Whether it is of one way of probes, and so has the bound of the offset of two clocks.
    pub(super) fn is_one_way(&self) -> bool {
        matches!(self, Estimand::Statistic(metric, _) if Metric::ONE_WAY.contains(metric))
    }

    /// The same for runs whose main metric is `main`. Without a metric an estimand is about the round trip, as it is parsed
    /// before any recording is read; here it becomes that metric. A stream has no delays: an estimand with a unit
    /// of time stays, and is absent from its summary.
    pub(super) fn in_runs_of(self, main: Metric) -> Estimand {
        match self {
            Estimand::Statistic(Metric::RoundTripDelay, statistic) if !main.is_rate() => {
                Estimand::Statistic(main, statistic)
            }
            estimand => estimand,
        }
    }

    /// The same if no metric is named and `value` is a rate: then it is about the delivered rate.
    pub(super) fn compared_with(self, is_metric_named: bool, value: &str) -> Estimand {
        match self {
            Estimand::Statistic(_, statistic) if !is_metric_named && human::parse_network_rate(value).is_ok() => {
                Estimand::Statistic(Metric::DeliveredRate, statistic)
            }
            estimand => estimand,
        }
    }

    /// Parses a value of it: a ratio, a rate in bits a second, a number with or without its unit, or a time in ns, which may be
    /// negative if the metric is signed.
    pub(super) fn parse_value(&self, text: &str) -> Result<f64, ParseError> {
        let magnitude = |text: &str| human::parse_duration(text).map(|nanos| nanos.0 as f64);
        match self {
            Estimand::Ratio(_) => human::parse_percent(text),
            Estimand::Statistic(metric, _) if metric.is_rate() => match human::parse_network_rate(text)? {
                NetworkRate::Bits(bps) => Ok(bps as f64),
                NetworkRate::Packets(_) => Err(human::bits_wanted(text)),
            },
            Estimand::Statistic(metric, _) if !metric.is_time() => human::parse_number(text, metric.unit()),
            Estimand::Statistic(metric, _) => match text.strip_prefix(['-', '−']).filter(|_| metric.is_signed()) {
                Some(text) => magnitude(text).map(|ns| -ns),
                None => magnitude(text),
            },
        }
    }
}

/// Mean, median and p99 of `metric`.
pub fn default_estimands(metric: Metric) -> Vec<Estimand> {
    let statistics = [Statistic::Mean, Statistic::Quantile(0.5), Statistic::Quantile(0.99)];
    statistics.map(|statistic| Estimand::Statistic(metric, statistic)).to_vec()
}

/// Why an estimand cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot compute `{text}`")]
pub struct EstimandError {
    pub text: String,
    pub cause: String,
    /// The expected form, or the nearest known word.
    pub hint: String,
}

impl Explain for EstimandError {
    fn explain(&self) -> Failure {
        Failure::request(self).because(&self.cause).hint(&self.hint)
    }
}

/// Parses `[METRIC] STATISTIC`. Without a metric it is about `metric`, or the round trip; a ratio is of the whole run
/// and has no metric.
///
/// # Errors
/// If a word is unknown; the hint names what may have been meant.
pub fn parse_estimand(metric: Option<&str>, text: &str) -> Result<Estimand, EstimandError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (metric, statistic) = match (words.as_slice(), metric) {
        // A ratio is of the run even if `--metric` was given.
        ([word], Some(metric)) if ratio_named(word).is_none() => (Some(metric), *word),
        ([word], _) => (None, *word),
        ([metric, word], _) => (Some(*metric), *word),
        ([], _) => return Err(malformed(text, "the statistic is missing", FORM_HINT)),
        _ => return Err(malformed(text, format!("there are {} words before the comparison", words.len()), FORM_HINT)),
    };
    match (ratio_named(statistic), metric) {
        (Some(ratio), None) => Ok(Estimand::Ratio(ratio)),
        (Some(_), Some(_)) => {
            Err(malformed(text, format!("`{statistic}` belongs to the whole run, not to a metric"), FORM_HINT))
        }
        (None, metric) => {
            // A metric that was typed apart from the statistic is named alone.
            let typed = |name| if words.len() == 1 { name } else { text };
            let metric = metric.map_or(Ok(Metric::RoundTripDelay), |name| metric_named(typed(name), name))?;
            Ok(Estimand::Statistic(metric, statistic_named(text, statistic)?))
        }
    }
}

fn malformed(text: &str, cause: impl Into<String>, hint: impl Into<String>) -> EstimandError {
    EstimandError { text: text.trim().into(), cause: cause.into(), hint: hint.into() }
}

fn ratio_named(word: &str) -> Option<Ratio> {
    RATIOS.iter().find(|(name, _)| *name == word.replace('-', "_")).map(|(_, ratio)| *ratio)
}

fn metric_named(text: &str, name: &str) -> Result<Metric, EstimandError> {
    Metric::from_name(name).ok_or_else(|| {
        let known: Vec<_> = Metric::every().map(Metric::name).collect();
        malformed(text, format!("there is no metric `{name}`"), suggestion(meant_by(name), &known))
    })
}

fn statistic_named(text: &str, word: &str) -> Result<Statistic, EstimandError> {
    if let Some(statistic) = parse_statistic(word) {
        return Ok(statistic);
    }
    let (cause, hint) = if is_like_a_quantile(word) {
        let form = "a quantile lies between `p0` and `p100`, both excluded, and is written as `p99.9` or `0.999`";
        let meant = with_decimal_point(word).map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
        (format!("there is no quantile `{word}`"), format!("{meant}{form}"))
    } else if Metric::from_name(word).is_some() {
        let hint = format!("add a statistic, such as `{word} p99 <= 1ms`");
        (format!("`{word}` is a metric, not a statistic"), hint)
    } else {
        let known: Vec<_> = STATISTICS.iter().map(|(name, _)| *name).chain(RATIOS.map(|(name, _)| name)).collect();
        (format!("there is no statistic `{word}`"), suggestion(meant_by(word), &known))
    };
    Err(malformed(text, cause, hint))
}

/// `min`, or a quantile as `p99.9` or `0.999`.
fn parse_statistic(word: &str) -> Option<Statistic> {
    let known = STATISTICS.iter().find(|(name, _)| *name == word).map(|(_, statistic)| *statistic);
    known.or_else(|| human::parse_quantile(word).map(Statistic::Quantile))
}

fn is_like_a_quantile(word: &str) -> bool {
    word.strip_prefix(['p', 'q']).unwrap_or(word).starts_with(|first: char| first.is_ascii_digit())
}

/// `p99.9` for `p999`, which other tools print, and `p99` for `99`.
fn with_decimal_point(word: &str) -> Option<String> {
    let percentile = format!("p{word}");
    if human::parse_quantile(&percentile).is_some() {
        return Some(percentile);
    }
    let nines = word.strip_prefix('p').filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))?;
    (nines.len() > 2 && nines.starts_with('9')).then(|| format!("p{}.{}", &nines[..2], &nines[2..]))
}

/// Our word for one of other tools.
fn meant_by(word: &str) -> &str {
    const WORDS: [(&str, &str); 14] = [
        ("median", "p50"),
        ("avg", "mean"),
        ("average", "mean"),
        ("minimum", "min"),
        ("maximum", "max"),
        ("std", "stddev"),
        ("sd", "stddev"),
        ("mdev", "stddev"),
        ("loss", "loss_ratio"),
        ("lost", "loss_ratio"),
        ("rtt", "round_trip_delay"),
        ("round_trip", "round_trip_delay"),
        ("response", "response_time"),
        ("jitter", "ipdv"),
    ];
    let typed = word.to_lowercase().replace('-', "_");
    WORDS.iter().find(|(theirs, _)| *theirs == typed).map_or(word, |(_, ours)| ours)
}

/// The known word most like `word`, or all of them.
fn suggestion(word: &str, known: &[&str]) -> String {
    human::suggestion(&word.replace('-', "_"), known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{INFINITE, Sample};
    use crate::stats::plain;

    #[test]
    fn unanswered_probes_count_as_their_time_out() {
        let described =
            |singletons: &[i64]| plain(&Sample::new(Metric::RoundTripDelay, singletons.to_vec()), &[0.5], true);
        let lossy = described(&[10, 20, INFINITE, 30]);
        let whole = described(&[10, 20, 100, 30]);
        for statistic in STATISTICS.map(|(_, statistic)| statistic).into_iter().take(5) {
            let counted = statistic.figure_with_losses(&lossy, Nanos(100)).value().expect("finite");
            let expected = statistic.figure(&whole).value().expect("finite");
            assert!((counted / expected - 1.0).abs() < 1e-12, "{statistic:?}: {counted}, not {expected}");
            assert_eq!(statistic.figure_with_losses(&whole, Nanos(900)), statistic.figure(&whole));
        }
        assert_eq!(Statistic::Max.figure_with_losses(&lossy, Nanos(5)).value(), Some(30.0), "not below the answered");
    }

    #[test]
    fn figures_without_an_answer_are_infinite() {
        let sample = Sample::new(Metric::RoundTripDelay, vec![INFINITE; 3]);
        let described = plain(&sample, &[0.5], true);
        for statistic in STATISTICS.map(|(_, statistic)| statistic).into_iter().take(5) {
            assert_eq!(statistic.figure(&described), RunFigure::Infinite, "{statistic:?}");
            assert_eq!(statistic.figure_with_losses(&described, Nanos(100)), RunFigure::Infinite, "{statistic:?}");
        }
        let empty = plain(&Sample::new(Metric::RoundTripDelay, Vec::new()), &[0.5], true);
        assert_eq!(Statistic::Mean.figure(&empty), RunFigure::Nothing);
    }

    #[test]
    fn a_metric_applies_to_statistics_and_not_to_ratios() {
        assert_eq!(parse_estimand(Some("response-time"), "p99").expect("known").metric_name(), "response_time");
        assert!(matches!(parse_estimand(Some("pdv"), "loss_ratio"), Ok(Estimand::Ratio(Ratio::Loss))));
        assert_eq!(parse_estimand(Some("pdv"), "ipdv min").expect("known").metric_name(), "ipdv");
        let error = parse_estimand(None, "p95x").expect_err("no statistic");
        assert!(error.hint.contains("known") || error.hint.contains("quantile"), "{error:?}");
        let error = parse_estimand(None, "99").expect_err("no share");
        assert!(error.hint.starts_with("did you mean `p99`? "), "{error:?}");
        for typed in ["0.999", "p99.9", "q0.999"] {
            assert_eq!(parse_estimand(None, typed).expect(typed).statistic_name(), "p99.9");
        }
        assert!(parse_estimand(Some("rtt"), "p50").is_err_and(|error| error.hint.contains("round_trip_delay")));
    }
}
