//! What a comparison is asked.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

use crate::analysis::subject::{Estimand, Statistic, subject};
use crate::diagnostics::{Explain, Failure};
use crate::metric::Metric;
use crate::stats::DRAWS;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A figure of recordings.
    Of(Estimand),
    /// Numbers that somebody else measured, each an observation.
    Value,
}

impl Quantity {
    /// The metric's name in JSON.
    pub fn metric_name(&self) -> &'static str {
        match self {
            Quantity::Of(subject) => subject.metric_name(),
            Quantity::Value => "value",
        }
    }

    /// The statistic's name in JSON and tables.
    pub fn statistic_name(&self) -> String {
        match self {
            Quantity::Of(subject) => subject.statistic_name(),
            Quantity::Value => "value".into(),
        }
    }

    /// The metric's name for people.
    pub const fn metric_title(&self) -> &'static str {
        match self {
            Quantity::Of(Estimand::Statistic(metric, _)) => metric.title(),
            Quantity::Of(Estimand::Ratio(_)) => "shares",
            Quantity::Value => "values",
        }
    }

    /// The label of its row: `p99`, `loss_ratio`.
    pub fn label(&self) -> String {
        match self {
            Quantity::Of(Estimand::Ratio(_)) => self.metric_name().into(),
            _ => self.statistic_name(),
        }
    }

    /// The unit of its figures in documents; none for numbers that somebody else measured.
    pub const fn unit(&self) -> Option<&'static str> {
        match self {
            Quantity::Of(Estimand::Statistic(metric, _)) => Some(metric.unit()),
            Quantity::Of(Estimand::Ratio(_)) => Some("ratio"),
            Quantity::Value => None,
        }
    }

    /// Whether it is a share of probes.
    pub const fn is_share(&self) -> bool {
        matches!(self, Quantity::Of(Estimand::Ratio(_)))
    }

    /// Whether it is a time in ns.
    pub const fn is_time(&self) -> bool {
        matches!(self, Quantity::Of(Estimand::Statistic(metric, _)) if !metric.is_rate())
    }

    /// Whether it is a rate in bits a second.
    pub const fn is_rate(&self) -> bool {
        matches!(self, Quantity::Of(Estimand::Statistic(metric, _)) if metric.is_rate())
    }

    /// Where in a sample it lies, if it is a quantile.
    pub const fn quantile(&self) -> Option<f64> {
        match self {
            Quantity::Of(Estimand::Statistic(_, Statistic::Quantile(q))) => Some(*q),
            _ => None,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Of(subject) => subject.fmt(f),
            Quantity::Value => f.write_str("value"),
        }
    }
}

/// One question, asked of every candidate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Question {
    /// The place of its subject among those that the runs were asked for.
    pub(super) subject: usize,
    /// Which groups are baselines; none: the first.
    pub(super) baseline: Option<BTreeMap<String, String>>,
    /// Differences within ± this count as none: a share of the baseline, or a difference of shares.
    pub(super) equivalence: Option<f64>,
}

/// What an answer holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionScope {
    /// The blocks that were measured.
    Blocks,
    /// Boots like those that were measured.
    Boots,
}

/// How to answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonOptions {
    /// Of intervals and verdicts.
    pub confidence: f64,
    /// What the answers hold for.
    pub over: QuestionScope,
    /// Exchanges to draw where there are too many to take all.
    pub draws: u32,
    /// Of the exchanges: the same runs give the same answer.
    pub seed: u64,
}

impl ComparisonOptions {
    /// The usual ones at this confidence.
    pub const fn at(confidence: f64) -> ComparisonOptions {
        ComparisonOptions { confidence, over: QuestionScope::Blocks, draws: DRAWS, seed: 0 }
    }
}

/// Mean, median and p99 of `metric`.
pub fn default_subjects(metric: Metric) -> Vec<Estimand> {
    let statistics = [Statistic::Mean, Statistic::Quantile(0.5), Statistic::Quantile(0.99)];
    statistics.map(|statistic| Estimand::Statistic(metric, statistic)).to_vec()
}

/// Why a subject cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot compare `{text}`")]
pub struct EstimandError {
    /// As typed.
    pub text: String,
    /// What is wrong.
    pub cause: String,
    /// What would be right.
    pub hint: String,
}

impl Explain for EstimandError {
    fn explain(&self) -> Failure {
        Failure::request(self).because(&self.cause).hint(&self.hint)
    }
}

/// The subject of `statistic`, of `metric` where one is named, else of the main one. Ratios are of the whole run and
/// need no metric.
///
/// # Errors
/// Where one of them is not known; the hint names what may have been meant.
pub fn subject_named(metric: Option<&str>, statistic: &str) -> Result<Estimand, EstimandError> {
    let refuse = |(cause, hint): (String, String)| EstimandError { text: statistic.trim().into(), cause, hint };
    let words: Vec<&str> = statistic.split_whitespace().collect();
    if let (Some(metric), [word]) = (metric, words.as_slice()) {
        // a ratio beside `--metric` is still one of the run
        return match subject(&[*word]) {
            Ok(Estimand::Ratio(ratio)) => Ok(Estimand::Ratio(ratio)),
            _ => subject(&[metric, *word]).map_err(refuse),
        };
    }
    subject(&words).map_err(refuse)
}
