//! A sample: the singletons of one metric of one run, in the order of sending.

use crate::metric::Metric;

/// A singleton that is +infinity: the probe was lost, late or never sent.
pub const INFINITE: i64 = i64::MAX;

/// One value per probe of the measuring phase, in the order of sending; lost ones are [`INFINITE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What the values are.
    pub metric: Metric,
    /// Nanoseconds, or [`INFINITE`].
    pub singletons: Vec<i64>,
    /// How many of them are [`INFINITE`].
    pub infinite: u64,
    /// Whether their order is known; without it no dependence-aware interval exists.
    pub ordered: bool,
}

impl Sample {
    /// A sample of `metric` in the order of sending.
    pub fn new(metric: Metric, singletons: Vec<i64>) -> Sample {
        let infinite = singletons.iter().filter(|value| **value == INFINITE).count() as u64;
        Sample { metric, singletons, infinite, ordered: true }
    }

    /// A sample of `metric` whose order nobody kept, as in many foreign logs.
    pub fn unordered(metric: Metric, singletons: Vec<i64>) -> Sample {
        Sample { ordered: false, ..Sample::new(metric, singletons) }
    }

    /// Every singleton, finite or not.
    pub fn n(&self) -> u64 {
        self.singletons.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinite_singletons_are_counted_and_count() {
        let sample = Sample::new(Metric::RoundTripDelay, vec![3, INFINITE, -1, INFINITE]);
        assert_eq!((sample.n(), sample.infinite, sample.ordered), (4, 2, true));
        assert!(!Sample::unordered(Metric::RoundTripDelay, vec![3]).ordered);
    }
}
