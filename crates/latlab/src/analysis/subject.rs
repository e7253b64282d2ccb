//! What a condition or a comparison is about: names to metrics, statistics and ratios.

use std::fmt;

use crate::metric::Metric;
use crate::plan::Kind;
use crate::units::human::{self, NetworkRate, ParseError};

/// The form of a condition, for hints.
pub(super) const FORM_HINT: &str = "`[METRIC] STATISTIC OP VALUE`, such as `p99 > 200us` or `loss_ratio > 0.1%`";

/// A statistic of a metric, or a ratio of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimand {
    /// A share of the run's probes.
    Ratio(Ratio),
    /// A figure of a metric's sample.
    Statistic(Metric, Statistic),
}

/// A statistic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Smallest answered.
    Min,
    /// Over the answered.
    Mean,
    /// Largest answered.
    Max,
    /// Over the answered.
    Stddev,
    /// Over all, in (0, 1).
    Quantile(f64),
}

/// A ratio.
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

fn ratio_name(ratio: Ratio) -> &'static str {
    RATIOS.iter().find(|(_, other)| *other == ratio).map_or("ratio", |(name, _)| name)
}

/// The name of a statistic that is no quantile.
fn plain_name(statistic: Statistic) -> &'static str {
    STATISTICS.iter().find(|(_, other)| *other == statistic).map_or("", |(name, _)| name)
}

impl fmt::Display for Estimand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Estimand::Ratio(ratio) => f.write_str(ratio_name(*ratio)),
            Estimand::Statistic(metric, Statistic::Quantile(q)) => {
                write!(f, "{} of {}", human::quantile(*q), metric.title())
            }
            Estimand::Statistic(metric, statistic) => write!(f, "{} of {}", plain_name(*statistic), metric.title()),
        }
    }
}

impl Estimand {
    /// The metric's name in JSON; of a ratio its own.
    pub fn metric_name(&self) -> &'static str {
        match self {
            Estimand::Ratio(ratio) => ratio_name(*ratio),
            Estimand::Statistic(metric, _) => metric.name(),
        }
    }

    /// The statistic's name in JSON and tables: `p99`, `mean`, `ratio`.
    pub fn statistic_name(&self) -> String {
        match self {
            Estimand::Ratio(_) => "ratio".into(),
            Estimand::Statistic(_, Statistic::Quantile(q)) => human::quantile(*q),
            Estimand::Statistic(_, statistic) => plain_name(*statistic).into(),
        }
    }

    /// The same in runs of `kind`: what names no metric is about the one that they are about; read before any recording
    /// is, it says round trip. A stream has no times: what is asked of one in a unit of time stays what it is, and is not
    /// there.
    pub(super) fn in_runs_of(self, kind: Kind) -> Estimand {
        match self {
            Estimand::Statistic(Metric::RoundTripDelay, statistic) if !kind.metric().is_rate() => {
                Estimand::Statistic(kind.metric(), statistic)
            }
            subject => subject,
        }
    }

    /// The same where a rate is what it is compared with and no metric is named: then it is about the delivered rate, as
    /// a time is about the round trip.
    pub(super) fn compared_with(self, named: bool, value: &str) -> Estimand {
        match self {
            Estimand::Statistic(_, statistic) if !named && human::parse_network_rate(value).is_ok() => {
                Estimand::Statistic(Metric::DeliveredRate, statistic)
            }
            subject => subject,
        }
    }

    /// What is compared with it: a share, a rate in bits a second, or a time in ns, which may be negative where the metric
    /// may.
    pub(super) fn value(&self, text: &str) -> Result<f64, ParseError> {
        let magnitude = |text: &str| human::parse_duration(text).map(|nanos| nanos.0 as f64);
        match self {
            Estimand::Ratio(_) => human::parse_percent(text),
            Estimand::Statistic(metric, _) if metric.is_rate() => match human::parse_network_rate(text)? {
                NetworkRate::Bits(bps) => Ok(bps as f64),
                NetworkRate::Packets(_) => Err(human::bits_wanted(text)),
            },
            Estimand::Statistic(metric, _) => match text.strip_prefix(['-', '−']).filter(|_| metric.is_signed()) {
                Some(text) => magnitude(text).map(|ns| -ns),
                None => magnitude(text),
            },
        }
    }
}

/// The subject in the words before the comparison, or what is wrong with them and what would be right.
pub(super) fn subject(words: &[&str]) -> Result<Estimand, (String, String)> {
    let (metric, statistic) = match words {
        [statistic] => (None, *statistic),
        [metric, statistic] => (Some(*metric), *statistic),
        [] => return Err(("the statistic is missing".into(), FORM_HINT.into())),
        _ => return Err((format!("{} words stand before the comparison", words.len()), FORM_HINT.into())),
    };
    let ratio = RATIOS.iter().find(|(name, _)| *name == statistic.replace('-', "_")).map(|(_, ratio)| *ratio);
    if let (Some(ratio), None) = (ratio, metric) {
        return Ok(Estimand::Ratio(ratio));
    }
    if ratio.is_some() {
        return Err((format!("`{statistic}` is of the whole run, not of a metric"), FORM_HINT.into()));
    }
    let metric = match metric {
        None => Metric::RoundTripDelay,
        Some(name) => Metric::from_name(name).ok_or_else(|| {
            let known: Vec<_> = Metric::PING.into_iter().chain(Metric::STREAM).map(Metric::name).collect();
            (format!("there is no metric `{name}`"), suggestion(meant_by(name), &known))
        })?,
    };
    match statistic_of(statistic) {
        Some(statistic) => Ok(Estimand::Statistic(metric, statistic)),
        None if is_like_a_quantile(statistic) => {
            let form = "a quantile lies between `p0` and `p100`, both excluded, or is written like `q0.999`";
            let meant = pointless(statistic).map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
            Err((format!("there is no quantile `{statistic}`"), format!("{meant}{form}")))
        }
        None if Metric::from_name(statistic).is_some() => {
            let hint = format!("name one of it, such as `{statistic} p99 > 1ms`");
            Err((format!("`{statistic}` is a metric, not a statistic"), hint))
        }
        None => {
            let known: Vec<_> = STATISTICS.iter().map(|(name, _)| *name).chain(RATIOS.map(|(name, _)| name)).collect();
            Err((format!("there is no statistic `{statistic}`"), suggestion(meant_by(statistic), &known)))
        }
    }
}

/// `min`, `p99.9` or `q0.999`; a quantile lies between 0 and 1.
fn statistic_of(word: &str) -> Option<Statistic> {
    let known = STATISTICS.iter().find(|(name, _)| *name == word);
    let read = |digits: &str, whole: f64| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let q = digits.parse::<f64>().ok().filter(|_| plain)? / whole;
        // 99.9 / 100 is not 0.999 in binary; ten digits are, and they are what people type
        Some((q * 1e10).round() / 1e10).filter(|q| *q > 0.0 && *q < 1.0).map(Statistic::Quantile)
    };
    known
        .map(|(_, statistic)| *statistic)
        .or_else(|| word.strip_prefix('p').and_then(|digits| read(digits, 100.0)))
        .or_else(|| word.strip_prefix('q').and_then(|digits| read(digits, 1.0)))
}

fn is_like_a_quantile(word: &str) -> bool {
    word.strip_prefix(['p', 'q']).is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// `p99.9` where `p999` was typed, as other tools write it.
fn pointless(word: &str) -> Option<String> {
    let nines = word.strip_prefix('p').filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))?;
    (nines.len() > 2 && nines.starts_with('9')).then(|| format!("p{}.{}", &nines[..2], &nines[2..]))
}

/// Our word for one that other tools use.
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
