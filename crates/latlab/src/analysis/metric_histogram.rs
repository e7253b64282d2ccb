//! A histogram of one metric of one run, for plots in characters.

use super::singletons::sample;
use super::source::ProbeSource;
use super::stream::StreamAccumulator;
use crate::metric::Metric;
use crate::sample::INFINITE;
use crate::stats::LogHistogram;

/// The singletons of the measuring phase of a run, without their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricHistogram {
    /// The finite ones, in the unit of the metric.
    pub finite: LogHistogram,
    /// The number of infinite ones: probes that got no answer in time.
    pub infinite: u64,
}

impl MetricHistogram {
    /// Reads the singletons of `metric`; of a stream, the rates of its intervals.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn of<S: ProbeSource>(source: &S, metric: Metric) -> Result<MetricHistogram, S::Error> {
        if metric.is_rate() {
            let rates = StreamAccumulator::of(source)?.rates(metric, source.manifest());
            return Ok(MetricHistogram { finite: LogHistogram::of(rates), infinite: 0 });
        }
        let sample = sample(source, metric)?;
        let finite = sample.singletons.iter().copied().filter(|value| *value != INFINITE);
        Ok(MetricHistogram { finite: LogHistogram::of(finite), infinite: sample.infinite })
    }

    /// Adds the singletons of another run.
    pub fn add(&mut self, other: &MetricHistogram) {
        self.finite.add(&other.finite);
        self.infinite += other.infinite;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_memory::{CLOSED, InMemory, closed};

    #[test]
    fn answered_probes_are_counted_by_their_delay() {
        let source = InMemory::of(CLOSED, vec![closed(0, 0, 50), closed(1, 100, 70)]);
        let mut distribution = MetricHistogram::of(&source, Metric::RoundTripDelay).expect("rows in memory");
        assert_eq!((distribution.finite.n(), distribution.infinite), (2, 0));
        distribution.add(&distribution.clone());
        assert_eq!(distribution.finite.n(), 4);
    }
}
