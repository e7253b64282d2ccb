//! The singletons of one metric of one run: single ones in their order, or values of unknown order with counts. Plots in
//! characters, exports and imported logs take them from here.

use super::counts::{Counts, Deadline};
use super::singletons::sample;
use super::source::{ProbeSource, value_at};
use super::stream::StreamAccumulator;
use crate::metric::Metric;
use crate::plan::Kind;
use crate::recording::manifest::Manifest;
use crate::recording::reader::ValueBatch;
use crate::sample::{INFINITE, Sample};
use crate::stats::{Bucket, CountedSample, DescribeOptions, Description, LogHistogram, describe, histogram};
use crate::units::Nanos;

/// The singletons of one metric of the measuring phase of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricSample {
    /// In the order of measuring.
    Ordered(Sample),
    /// Of unknown order, with counts.
    Counted(CountedSample),
}

impl MetricSample {
    /// Reads the singletons of `metric` of `source`; of a stream, the rates of its intervals.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn of<S: ProbeSource>(source: &S, metric: Metric) -> Result<MetricSample, S::Error> {
        match source.manifest().kind {
            Kind::Values => MetricSample::of_values(source),
            _ if metric.is_rate() => {
                let rates = StreamAccumulator::of(source)?.rates(metric, source.manifest());
                Ok(MetricSample::Ordered(Sample::new(metric, rates)))
            }
            _ => Ok(MetricSample::of_main(sample(source, metric)?, source.manifest())),
        }
    }

    /// Reads the values of an imported log.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn of_values<S: ProbeSource>(source: &S) -> Result<MetricSample, S::Error> {
        let spec = &source.manifest().spec;
        if spec.import().is_some_and(|import| import.ordered) {
            let mut singletons = Vec::new();
            source.visit_values(&mut |batch| singletons.extend(values_of(batch).map(|row| row.value)))?;
            return Ok(MetricSample::of_main(Sample::new(spec.metric(), singletons), source.manifest()));
        }
        let (mut counted, mut infinite) = (Vec::new(), 0_u64);
        source.visit_values(&mut |batch| {
            for row in values_of(batch) {
                match row.value {
                    INFINITE => infinite = infinite.saturating_add(row.count),
                    value => counted.push((value, row.count)),
                }
            }
        })?;
        let counted = CountedSample::of(counted, infinite);
        Ok(MetricSample::Counted(counted.with_infinite(source.manifest().lost_without_row())))
    }

    /// `sample` of the run of `manifest`, with what its log counts as lost in the totals alone, if it is of the main metric, or
    /// of delay variation, which is derived from that: the place of these losses among the others is unknown, and so is the
    /// order then.
    pub(super) fn of_main(sample: Sample, manifest: &Manifest) -> MetricSample {
        let lost = manifest.lost_without_row();
        if lost > 0 && (sample.metric == manifest.metric() || sample.metric == Metric::Pdv) {
            MetricSample::Counted(CountedSample::of_singletons(&sample.singletons).with_infinite(lost))
        } else {
            MetricSample::Ordered(sample)
        }
    }

    /// Its figures; intervals only if its order is known.
    pub fn describe(&self, options: &DescribeOptions) -> Description {
        match self {
            MetricSample::Ordered(sample) => describe(sample, options),
            MetricSample::Counted(counted) => counted.describe(options),
        }
    }

    /// Its finite values in a few buckets with round edges.
    pub fn histogram(&self) -> Vec<Bucket> {
        match self {
            MetricSample::Ordered(sample) => histogram(sample),
            MetricSample::Counted(counted) => counted.histogram(),
        }
    }

    /// The sample, if its order is known.
    pub const fn ordered(&self) -> Option<&Sample> {
        if let MetricSample::Ordered(sample) = self { Some(sample) } else { None }
    }

    /// Whether a lost probe is an infinite singleton of `metric`. Of other metrics it has a finite singleton or none, as a lost
    /// packet of a stream has, so that their samples do not show what was lost.
    pub const fn shows_losses(metric: Metric) -> bool {
        match metric {
            Metric::RoundTripDelay
            | Metric::RoundTripDelayLessDwell
            | Metric::ResponseTime
            | Metric::Pdv
            | Metric::ElapsedTime
            | Metric::UserTime
            | Metric::SystemTime
            | Metric::Delay
            | Metric::Printed(_) => true,
            Metric::ReflectorDwell
            | Metric::SendSlip
            | Metric::WakeupLatency
            | Metric::OfferedRate
            | Metric::DeliveredRate
            | Metric::Ipdv
            | Metric::ForwardDelay
            | Metric::BackwardDelay => false,
        }
    }

    /// The values without their order.
    pub fn counted(self) -> CountedSample {
        match self {
            MetricSample::Ordered(sample) => CountedSample::of_singletons(&sample.singletons),
            MetricSample::Counted(counted) => counted,
        }
    }

    /// Its singletons, [`INFINITE`] ones included, each with its count.
    pub fn values(&self) -> Box<dyn Iterator<Item = (i64, u64)> + '_> {
        match self {
            MetricSample::Ordered(sample) => Box::new(sample.singletons.iter().map(|value| (*value, 1))),
            MetricSample::Counted(counted) => {
                let infinite = (counted.infinite() > 0).then(|| (INFINITE, counted.infinite()));
                Box::new(counted.counts().chain(infinite))
            }
        }
    }

    pub const fn infinite(&self) -> u64 {
        match self {
            MetricSample::Ordered(sample) => sample.infinite,
            MetricSample::Counted(counted) => counted.infinite(),
        }
    }

    pub fn finite(&self) -> u64 {
        match self {
            MetricSample::Ordered(sample) => sample.n() - sample.infinite,
            MetricSample::Counted(counted) => counted.n() - counted.infinite(),
        }
    }

    /// Each value as a probe: answered if it is finite, else lost.
    pub(super) fn counts(&self) -> Counts {
        let (answered, lost) = (self.finite(), self.infinite());
        Counts { sent: answered + lost, answered, lost, ..Counts::default() }
    }

    pub(super) fn deadline(&self, deadline_ns: Option<Nanos>) -> Option<Deadline> {
        let deadline_ns = deadline_ns?;
        let (due, missed) = match self {
            MetricSample::Ordered(sample) => {
                (sample.n(), sample.singletons.iter().filter(|value| **value > deadline_ns.0).count() as u64)
            }
            MetricSample::Counted(counted) => {
                (counted.n(), counted.n() - counted.below(deadline_ns.0.saturating_add(1)))
            }
        };
        Some(Deadline { deadline_ns, missed, due })
    }
}

struct ValueRow {
    /// ns, or [`INFINITE`].
    value: i64,
    count: u64,
}

fn values_of(batch: &ValueBatch) -> impl Iterator<Item = ValueRow> + '_ {
    (0..batch.rows).map(|row| ValueRow {
        value: value_at(&batch.value_ns, row).unwrap_or(INFINITE),
        count: value_at(&batch.count, row).map_or(0, |count| count as u64),
    })
}

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
        let sample = MetricSample::of(source, metric)?;
        let mut finite = LogHistogram::default();
        sample
            .values()
            .filter(|(value, _)| *value != INFINITE)
            .for_each(|(value, count)| finite.record_n(value, count));
        Ok(MetricHistogram { finite, infinite: sample.infinite() })
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
    use crate::facts::{ImportFacts, LoggedValue};
    use crate::in_memory::{CLOSED, EVERY_MS, InMemory, but, closed, logged, scheduled};
    use crate::probe::Fate;
    use crate::{SummaryOptions, summarise};

    fn values(rows: &[(Option<i64>, u64)], ordered: bool) -> InMemory {
        let row = |(at, (value_ns, count)): (usize, &(Option<i64>, u64))| LoggedValue {
            seq: ordered.then_some(at as u64),
            value_ns: *value_ns,
            count: *count,
        };
        logged(rows.iter().enumerate().map(row).collect(), ordered)
    }

    #[test]
    fn values_are_counted_with_their_counts_or_in_their_order() {
        let rows = [(Some(5), 1), (None, 1), (Some(-3), 1)];
        let ordered = MetricSample::of_values(&values(&rows, true)).expect("values");
        assert_eq!(ordered.ordered().map(|sample| sample.singletons.clone()), Some(vec![5, INFINITE, -3]));
        let source = values(&[(Some(5), 1 << 40), (None, 2), (Some(9), 1), (Some(5), 1)], false);
        let counted = MetricSample::of_values(&source).expect("values");
        let Counts { sent, answered, lost, .. } = counted.counts();
        assert_eq!((sent, answered, lost), ((1 << 40) + 4, (1 << 40) + 2, 2));
        assert_eq!(counted.deadline(Some(Nanos(5))).map(|deadline| deadline.missed), Some(3));
        assert_eq!(counted.counted().extremes(), Some((5, 9)));
    }

    #[test]
    fn losses_without_a_row_are_infinite_in_the_delay_and_its_variation() {
        let mut source = InMemory::of(CLOSED, vec![closed(0, 0, 50), closed(1, 100, 70)]);
        source.manifest.run.import = Some(ImportFacts { lost_without_row: 3, ..ImportFacts::default() });
        let sample = |metric| MetricSample::of(&source, metric).expect("rows in memory");
        let counts = |metric| (sample(metric).finite(), sample(metric).infinite());
        assert_eq!((counts(Metric::RoundTripDelay), counts(Metric::Pdv)), ((2, 3), (2, 3)));
        assert_eq!((counts(Metric::ReflectorDwell), counts(Metric::Ipdv)), ((2, 0), (0, 0)));
        let summary = summarise(&source, &SummaryOptions::of(&source.manifest.spec)).expect("no windows asked for");
        let options = DescribeOptions { quantiles: vec![0.25, 0.5], confidence: 0.95, intervals: false };
        let (pdv, summarised) = (sample(Metric::Pdv).describe(&options), &summary.metrics[&Metric::Pdv]);
        assert_eq!(
            (pdv.n, pdv.lost, pdv.min, pdv.max),
            (summarised.n, summarised.lost, summarised.min, summarised.max)
        );
        assert_eq!(pdv.quantiles.iter().map(|quantile| quantile.value).collect::<Vec<_>>(), [Some(20_000.0), None]);
    }

    #[test]
    fn a_metric_shows_losses_if_a_lost_probe_is_infinite_in_it() {
        let rows: Vec<_> = (0..4).map(|seq| scheduled(seq, seq as i64 * 1_000, 2, 50)).collect();
        let rows = rows.into_iter().map(|row| if row.seq.0 == 2 { but(row, Fate::Lost) } else { row }).collect();
        let source = InMemory::of(EVERY_MS, rows);
        for metric in Metric::PING {
            let sample = MetricSample::of(&source, metric).expect("rows in memory");
            assert_eq!(sample.infinite() == 1, MetricSample::shows_losses(metric), "{metric:?}");
        }
    }

    #[test]
    fn answered_probes_are_counted_by_their_delay() {
        let source = InMemory::of(CLOSED, vec![closed(0, 0, 50), closed(1, 100, 70)]);
        let mut distribution = MetricHistogram::of(&source, Metric::RoundTripDelay).expect("rows in memory");
        assert_eq!((distribution.finite.n(), distribution.infinite), (2, 0));
        distribution.add(&distribution.clone());
        assert_eq!(distribution.finite.n(), 4);
    }
}
