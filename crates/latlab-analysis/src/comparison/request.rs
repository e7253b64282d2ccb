//! The request for a comparison: quantities, questions about them, and options.

use std::collections::BTreeMap;
use std::fmt;

use crate::estimand::{Estimand, Statistic};
use crate::metric::Metric;
use crate::stats::{DRAWS, Look};

/// Quantiles at which a distribution is compared: the deciles and two tails.
const SHIFTS: [f64; 11] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 0.999];

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    Of(Estimand),
    /// Numbers from a file, each an observation.
    Value,
}

impl Quantity {
    /// The metric's name in JSON.
    pub fn metric_name(&self) -> &'static str {
        match self {
            Quantity::Of(estimand) => estimand.metric_name(),
            Quantity::Value => "value",
        }
    }

    /// The statistic's name in JSON and tables.
    pub fn statistic_name(&self) -> String {
        match self {
            Quantity::Of(estimand) => estimand.statistic_name(),
            Quantity::Value => "value".into(),
        }
    }

    /// The metric's name in text.
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

    /// The unit of its figures in JSON; `None` for numbers from a file.
    pub const fn unit(&self) -> Option<&'static str> {
        match self {
            Quantity::Of(Estimand::Statistic(metric, _)) => Some(metric.unit()),
            Quantity::Of(Estimand::Ratio(_)) => Some("ratio"),
            Quantity::Value => None,
        }
    }

    /// Whether it is a ratio of counts.
    pub const fn is_share(&self) -> bool {
        matches!(self, Quantity::Of(Estimand::Ratio(_)))
    }

    /// The metric of which it is a statistic.
    pub const fn metric(&self) -> Option<Metric> {
        if let Quantity::Of(Estimand::Statistic(metric, _)) = self { Some(*metric) } else { None }
    }

    /// Whether it is a time in ns.
    pub const fn is_time(&self) -> bool {
        matches!(self.metric(), Some(metric) if metric.is_time())
    }

    /// Whether it is a rate in bits a second.
    pub const fn is_rate(&self) -> bool {
        matches!(self.metric(), Some(metric) if metric.is_rate())
    }

    /// The quantile in (0, 1), if it is one.
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
            Quantity::Of(estimand) => estimand.fmt(f),
            Quantity::Value => f.write_str("value"),
        }
    }
}

/// One question about every candidate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Question {
    /// Index of the quantity, and of its figure in each run.
    pub(super) quantity: usize,
    /// Levels of the baseline groups; `None`: the first group is the baseline.
    pub(super) baseline: Option<BTreeMap<String, String>>,
    /// The equivalence margin: a share of the baseline, or a difference of ratios.
    pub(super) equivalence: Option<f64>,
}

/// The population to which a verdict generalises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionScope {
    /// The blocks that were measured.
    Blocks,
    /// Boots like those that were measured.
    Boots,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonOptions {
    /// Of intervals and verdicts, after the looks are paid for.
    pub confidence: f64,
    /// The look at the experiment whose runs are compared.
    pub look: Look,
    /// The population to which the verdicts generalise.
    pub scope: QuestionScope,
    /// Permutations to draw if there are more.
    pub draws: u32,
    /// Seed of the draws, so that the same runs give the same result.
    pub seed: u64,
}

impl ComparisonOptions {
    /// The default options at this confidence.
    pub const fn at(confidence: f64) -> ComparisonOptions {
        let (look, scope) = (Look::FIRST, QuestionScope::Blocks);
        ComparisonOptions { confidence, look, scope, draws: DRAWS, seed: 0 }
    }

    /// The same for a look at an experiment, which lowers its level.
    pub fn paying_for(self, look: Look) -> ComparisonOptions {
        ComparisonOptions { confidence: 1.0 - look.level(1.0 - self.confidence), look, ..self }
    }
}

/// Quantities, each once, and the questions about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparisonRequest {
    quantities: Vec<Quantity>,
    questions: Vec<Question>,
    shifts: Vec<usize>,
}

impl ComparisonRequest {
    /// One question about numbers from a file, which have no other quantity.
    pub fn of_values(equivalence: Option<f64>) -> ComparisonRequest {
        let question = Question { equivalence, ..Question::default() };
        ComparisonRequest { quantities: vec![Quantity::Value], questions: vec![question], shifts: Vec::new() }
    }

    /// Adds a question, unless it was added before.
    pub fn ask(&mut self, estimand: Estimand, baseline: Option<BTreeMap<String, String>>, equivalence: Option<f64>) {
        let question = Question { quantity: self.index_of(estimand), baseline, equivalence };
        if !self.questions.contains(&question) {
            self.questions.push(question);
        }
    }

    /// Adds a question about `estimand`, unless there is one with any baseline and margin.
    pub fn include(&mut self, estimand: Estimand) {
        let quantity = self.index_of(estimand);
        if !self.questions.iter().any(|question| question.quantity == quantity) {
            self.questions.push(Question { quantity, ..Question::default() });
        }
    }

    /// Adds the differences of `metric` at quantiles along its distribution.
    pub fn shift(&mut self, metric: Metric) {
        let quantile = |q: f64| Estimand::Statistic(metric, Statistic::Quantile(q));
        self.shifts = SHIFTS.into_iter().map(|q| self.index_of(quantile(q))).collect();
    }

    pub fn quantities(&self) -> &[Quantity] {
        &self.quantities
    }

    /// The estimands of the quantities, in the order in which runs hold their figures.
    pub fn estimands(&self) -> Vec<Estimand> {
        let estimand = |quantity: &Quantity| match quantity {
            Quantity::Of(estimand) => Some(*estimand),
            Quantity::Value => None,
        };
        self.quantities.iter().filter_map(estimand).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    pub(super) fn questions(&self) -> &[Question] {
        &self.questions
    }

    pub(super) fn shifts(&self) -> &[usize] {
        &self.shifts
    }

    fn index_of(&mut self, estimand: Estimand) -> usize {
        let quantity = Quantity::Of(estimand);
        self.quantities.iter().position(|other| *other == quantity).unwrap_or_else(|| {
            self.quantities.push(quantity);
            self.quantities.len() - 1
        })
    }
}
