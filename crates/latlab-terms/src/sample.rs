//! Samples: the singletons of one metric of one run (RFC 2330, section 11).

use crate::metric::Metric;

/// A singleton of +∞: the probe was lost, late or not sent.
pub const INFINITE: i64 = i64::MAX;
/// Digits of numbers that are kept: all that a double has.
const DIGITS: i32 = 15;

/// The singletons of the measuring phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub metric: Metric,
    /// In the unit of the metric times 10^`decimals`, or [`INFINITE`]; in the order of sending.
    pub singletons: Vec<i64>,
    /// 0 but for numbers that a command prints.
    pub decimals: i32,
    pub infinite: u64,
    /// Whether their order is known, without which dependence cannot be estimated.
    pub ordered: bool,
}

impl Sample {
    /// A sample in the order of sending.
    pub fn new(metric: Metric, singletons: Vec<i64>) -> Sample {
        let infinite = singletons.iter().filter(|value| **value == INFINITE).count() as u64;
        Sample { metric, singletons, decimals: 0, infinite, ordered: true }
    }

    /// A sample of any numbers in their order, with 15 digits of the largest.
    pub fn of_numbers(metric: Metric, numbers: &[f64]) -> Sample {
        let largest = numbers.iter().fold(0.0, |largest: f64, number| largest.max(number.abs()));
        let digits = if largest > 0.0 { largest.log10().floor() as i32 + 1 } else { 0 };
        let decimals = DIGITS - digits;
        // In two steps: a power of ten may be infinite that a product is not.
        let [one, other] = [decimals / 2, decimals - decimals / 2].map(|exponent| 10_f64.powi(exponent));
        let singleton = |number: &f64| (number * one * other).round() as i64;
        Sample { decimals, ..Sample::new(metric, numbers.iter().map(singleton).collect()) }
    }

    /// A sample of unknown order, as in many logs of other tools.
    pub fn unordered(metric: Metric, singletons: Vec<i64>) -> Sample {
        Sample { ordered: false, ..Sample::new(metric, singletons) }
    }

    /// Number of singletons, finite or not.
    pub fn n(&self) -> u64 {
        self.singletons.len() as u64
    }
}
