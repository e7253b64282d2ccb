//! What runs are asked for, and the questions about it.

use std::collections::BTreeMap;

use super::wishes::{Quantity, Question};
use crate::analysis::subject::{Estimand, Statistic};
use crate::metric::Metric;

/// Where differences along a distribution are looked at: the deciles and two tails.
const SHIFTS: [f64; 11] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 0.999];

/// Each quantity once, and what is asked about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparisonRequest {
    quantities: Vec<Quantity>,
    questions: Vec<Question>,
    shifts: Vec<usize>,
}

impl ComparisonRequest {
    /// One question about numbers that somebody else measured. They have no other figure, so that nothing can be added.
    pub fn of_values(equivalence: Option<f64>) -> ComparisonRequest {
        let question = Question { equivalence, ..Question::default() };
        ComparisonRequest { quantities: vec![Quantity::Value], questions: vec![question], shifts: Vec::new() }
    }

    /// Adds a question, unless it is asked already.
    pub fn ask(&mut self, subject: Estimand, baseline: Option<BTreeMap<String, String>>, equivalence: Option<f64>) {
        let question = Question { subject: self.place_of(subject), baseline, equivalence };
        if !self.questions.contains(&question) {
            self.questions.push(question);
        }
    }

    /// Makes sure that `subject` is asked about, whatever the baseline and the margin.
    pub fn include(&mut self, subject: Estimand) {
        let place = self.place_of(subject);
        if !self.questions.iter().any(|question| question.subject == place) {
            self.questions.push(Question { subject: place, ..Question::default() });
        }
    }

    /// Adds the differences of `metric` along its distribution.
    pub fn shift(&mut self, metric: Metric) {
        let quantile = |q: f64| Estimand::Statistic(metric, Statistic::Quantile(q));
        self.shifts = SHIFTS.into_iter().map(|q| self.place_of(quantile(q))).collect();
    }

    /// What is compared, each once.
    pub fn quantities(&self) -> &[Quantity] {
        &self.quantities
    }

    /// What runs must be asked for, in the order of their figures: of recordings, the quantities.
    pub fn subjects(&self) -> Vec<Estimand> {
        let subject = |quantity: &Quantity| match quantity {
            Quantity::Of(subject) => Some(*subject),
            Quantity::Value => None,
        };
        self.quantities.iter().filter_map(subject).collect()
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    pub(super) fn questions(&self) -> &[Question] {
        &self.questions
    }

    pub(super) fn shifts(&self) -> &[usize] {
        &self.shifts
    }

    fn place_of(&mut self, subject: Estimand) -> usize {
        let quantity = Quantity::Of(subject);
        self.quantities.iter().position(|other| *other == quantity).unwrap_or_else(|| {
            self.quantities.push(quantity);
            self.quantities.len() - 1
        })
    }
}
