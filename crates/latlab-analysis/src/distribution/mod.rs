//! What the figures of a report need of one run: its tail, its histogram, its delays over time, and its host. All of it is
//! bounded by constants, so that a run of ten million probes leaves as much as one of ten thousand (decision 0025.5).

mod host_series;
mod marginal;
mod over_time;
mod rates;
#[cfg(test)]
mod tests;

use crate::metric::Metric;
use crate::plan::{Kind, RunSpec, Side, defaults};
use crate::sample::{INFINITE, Sample};
use crate::stats::{Bucket, CountedSample, DescribeOptions, Description, plain};
use crate::units::Nanos;

use super::metric_sample::MetricSample;
use super::singletons::Singletons;
use super::source::{ProbeSource, visit_rows};
use super::stream::StreamAccumulator;

pub use host_series::{HostQuantity, HostSeries, TimedValue};
pub use marginal::{TailPoint, on_common_bins, suits_logarithm};
pub use over_time::{DelayGrid, GridCell};
pub use rates::StreamRates;

use host_series::{CpuOfHost, HostReadingsOverTime};
use over_time::{GridAccumulator, MeasuredSpan, TimeSpan};

/// What figures need of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDistribution {
    /// The delay that `tail`, `histogram` and `over_time` are of: the wake-up latency of wake-ups, else the round trip
    /// delay; of a stream that of its concurrent probes.
    pub metric: Metric,
    /// Whether it is known what was lost.
    pub knows_losses: bool,
    /// Its singletons, finite or not; 0 of a stream without concurrent probes.
    pub n: u64,
    /// Infinite singletons: lost and late probes.
    pub lost: u64,
    /// Statistics of the main metric of the run's kind, which of a stream is the delivered rate.
    pub statistics: RunStatistics,
    /// The complementary distribution in ascending order of delay, at most 512 points, among which are all of the 100
    /// largest delays. Empty without a finite singleton.
    pub tail: Vec<TailPoint>,
    /// At most 160 adjoining bins from the smallest delay to the largest; empty without a finite singleton.
    pub histogram: Vec<Bucket>,
    /// Counts of delays over time; `None` without a measured probe.
    pub over_time: Option<DelayGrid>,
    /// Rates over time, at most 481 points each; empty unless the run is a stream.
    pub rates: StreamRates,
    /// The host over time, at most 480 points of each quantity of a CPU.
    pub host: Vec<HostSeries>,
    /// From the first measured probe to the last, or from the first interval of a stream to the last, if that is longer.
    pub duration_ns: Nanos,
}

/// Statistics of one run as one observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunStatistics {
    pub metric: Metric,
    /// Over the finite singletons, ns or bits a second; `None` without any.
    pub mean: Option<f64>,
    /// Over all singletons, of type 7; `None` if it is infinite, or without any.
    pub p50: Option<f64>,
    /// The same of the 99th percentile.
    pub p99: Option<f64>,
}

impl RunStatistics {
    fn of(metric: Metric, described: &Description) -> RunStatistics {
        let quantile = |q: f64| described.quantiles.iter().find(|estimate| estimate.q == q)?.value;
        RunStatistics { metric, mean: described.mean, p50: quantile(0.5), p99: quantile(0.99) }
    }
}

/// The quantiles of [`RunStatistics`].
const QUANTILES: [f64; 2] = [0.5, 0.99];

/// The distribution of `main`, a metric of the kind of a recording, or of the probes of a stream; from two passes over its rows: the first gives the limits of the second.
///
/// # Errors
/// If the rows cannot be read.
pub fn distribution<S: ProbeSource>(source: &S, main: Metric) -> Result<RunDistribution, S::Error> {
    let manifest = source.manifest();
    let metric = if manifest.kind == Kind::Stream { Metric::RoundTripDelay } else { main };
    let mut measured = MeasuredSpan::default();
    let delays = if manifest.kind == Kind::Values {
        MetricSample::of_values(source)?.counted()
    } else {
        let mut singletons = Singletons::of(metric, manifest);
        visit_rows(source, &mut [&mut singletons, &mut measured])?;
        counted(singletons.sample()).with_infinite(manifest.lost_without_row())
    };
    let mut over_time = None;
    if let Some(span) = measured.span() {
        let mut grid = GridAccumulator::of(metric, delays.extremes(), span);
        visit_rows(source, &mut [&mut grid])?;
        over_time = Some(grid.finish());
    }
    let series = rates::rates(source)?;
    let spans = [measured.span(), series.span];
    // Concurrent probes may end long before the intervals of their stream.
    let length = spans.iter().flatten().map(|span| span.length).max().unwrap_or(Nanos::ZERO);
    let mut host = Vec::new();
    if let Some(TimeSpan { start_ns, .. }) = spans.into_iter().flatten().next() {
        let mut readings = HostReadingsOverTime::of(TimeSpan { start_ns, length });
        source.visit_host_samples(&mut |side, sample| readings.take(side, sample))?;
        host = readings.finish(&pinned(&manifest.spec));
    }
    let described = if manifest.kind == Kind::Stream {
        let describe = |sample: &Sample| plain(sample, &QUANTILES, false);
        StreamAccumulator::of(source)?.described(Metric::DeliveredRate, manifest, &describe)
    } else {
        let quantiles = QUANTILES.to_vec();
        delays.describe(&DescribeOptions { quantiles, confidence: defaults::CONFIDENCE, intervals: false })
    };
    Ok(RunDistribution {
        metric,
        knows_losses: manifest.spec.knows_losses(),
        n: delays.n(),
        lost: delays.infinite(),
        tail: marginal::tail(&delays),
        histogram: marginal::histogram(&delays),
        over_time,
        rates: series.rates,
        host,
        duration_ns: length,
        statistics: RunStatistics::of(manifest.metric(), &described),
    })
}

/// The values of `sample` by their rank: equal ones are one entry, so that a long run takes little memory.
fn counted(mut sample: Sample) -> CountedSample {
    sample.singletons.retain(|value| *value != INFINITE);
    sample.singletons.sort_unstable();
    let equal = sample.singletons.chunk_by(|one, other| one == other);
    CountedSample::of(equal.map(|equal| (equal[0], equal.len() as u64)).collect(), sample.infinite)
}

/// The CPUs to which the threads of a run are pinned, each on the host of its end.
fn pinned(spec: &RunSpec) -> Vec<CpuOfHost> {
    let peer = if spec.target.is_this_host() { Side::Local } else { Side::Peer };
    let own = spec.here.cpu.map(|cpu| CpuOfHost { side: Side::Local, cpu });
    let far = spec.peer.as_ref().and_then(|end| end.cpu).map(|cpu| CpuOfHost { side: peer, cpu });
    own.into_iter().chain(far).collect()
}
