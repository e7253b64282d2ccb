//! Samples: the singletons of one metric of one run (RFC 2330, section 11).

use crate::metric::Metric;

/// A singleton of +∞: the probe was lost, late or not sent.
pub const INFINITE: i64 = i64::MAX;

/// The singletons of the measuring phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub metric: Metric,
    /// In the unit of the metric, or [`INFINITE`]; in the order of sending.
    pub singletons: Vec<i64>,
    pub infinite: u64,
    /// Whether their order is known, without which dependence cannot be estimated.
    pub ordered: bool,
}

impl Sample {
    /// A sample in the order of sending.
    pub fn new(metric: Metric, singletons: Vec<i64>) -> Sample {
        let infinite = singletons.iter().filter(|value| **value == INFINITE).count() as u64;
        Sample { metric, singletons, infinite, ordered: true }
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
