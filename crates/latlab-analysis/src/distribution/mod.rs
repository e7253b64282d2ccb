//! What the figures of a report need of one run: its tail, its histogram, its delays over time, and its host. All of it is
//! bounded by constants, so that a run of ten million probes leaves as much as one of ten thousand (decision 0025.5).

mod host_series;
mod marginal;
mod over_time;
mod rates;
#[cfg(test)]
mod tests;

use crate::metric::Metric;
use crate::plan::{Condition, Kind, RunSpec, Side, defaults};
use crate::recording::manifest::Manifest;
use crate::sample::Sample;
use crate::stats::{Bucket, DescribeOptions, Description, plain};
use crate::units::Nanos;

use super::metric_sample::MetricSample;
use super::singletons::Singletons;
use super::source::{ProbeSource, visit_rows};
use super::stream::StreamAccumulator;

pub use host_series::{HostQuantity, HostSeries, TimedValue};
pub use marginal::{TailPoint, suits_logarithm};
pub use over_time::{ColumnLosses, DelayGrid, GridCell};
pub use rates::StreamRatePoint;

use host_series::{CpuOfHost, HostReadingsOverTime};
use over_time::{GridAccumulator, MeasuredSpan};

/// What figures need of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDistribution {
    pub run: String,
    /// The level of each factor.
    pub condition: Condition,
    /// The kind of the run.
    pub kind: Kind,
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
    /// Rates over time, at most 480 points; empty unless the run is a stream.
    pub rates: Vec<StreamRatePoint>,
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
    pub max: Option<f64>,
}

impl RunStatistics {
    fn of(metric: Metric, described: &Description) -> RunStatistics {
        let quantile = |q: f64| described.quantiles.iter().find(|estimate| estimate.q == q)?.value;
        let max = described.max.map(|max| max as f64);
        RunStatistics { metric, mean: described.mean, p50: quantile(0.5), p99: quantile(0.99), max }
    }
}

/// The quantiles of [`RunStatistics`].
const QUANTILES: [f64; 2] = [0.5, 0.99];

/// The distribution of a recording, from two passes over its rows: the first gives the limits of the second.
///
/// # Errors
/// If the rows cannot be read.
pub fn distribution<S: ProbeSource>(source: &S) -> Result<RunDistribution, S::Error> {
    let manifest = source.manifest();
    if manifest.kind == Kind::Values {
        return of_values(source);
    }
    let metric = if manifest.kind == Kind::Stream { Metric::RoundTripDelay } else { manifest.metric() };
    let (mut singletons, mut measured) = (Singletons::of(metric, manifest), MeasuredSpan::default());
    visit_rows(source, &mut [&mut singletons, &mut measured])?;
    let mut sample = singletons.sample();
    // The only sort: every figure below reads ranks.
    sample.singletons.sort_unstable();
    let finite = &sample.singletons[..(sample.n() - sample.infinite) as usize];
    let unseen = manifest.lost_without_row();
    let (n, lost) = (sample.n() + unseen, sample.infinite + unseen);
    let over_time = over_time(source, metric, finite, measured)?;
    let series = rates::rates(source)?;
    let spans = [measured.span(), series.span];
    let start_ns = spans.iter().flatten().map(|span| span.start_ns).next();
    // Concurrent probes may end long before the intervals of their stream.
    let length = spans.iter().flatten().map(|span| span.length).max().unwrap_or(Nanos::ZERO);
    Ok(RunDistribution {
        run: manifest.run_id.clone(),
        condition: manifest.condition.clone(),
        kind: manifest.kind,
        metric,
        knows_losses: manifest.spec.knows_losses(),
        n,
        lost,
        tail: marginal::tail(finite, n),
        histogram: marginal::histogram(finite),
        over_time,
        rates: series.points,
        host: host(source, start_ns, length)?,
        duration_ns: length,
        statistics: statistics(source, manifest, &sample)?,
    })
}

/// The quantiles of [`RunStatistics`] without intervals.
fn quantiles_only() -> DescribeOptions {
    DescribeOptions { quantiles: QUANTILES.to_vec(), confidence: defaults::CONFIDENCE, intervals: false }
}

/// That of values of an imported log, which have no times.
fn of_values<S: ProbeSource>(source: &S) -> Result<RunDistribution, S::Error> {
    let (manifest, counted) = (source.manifest(), MetricSample::of_values(source)?.counted());
    let metric = manifest.metric();
    let described = counted.describe(&quantiles_only());
    Ok(RunDistribution {
        run: manifest.run_id.clone(),
        condition: manifest.condition.clone(),
        kind: manifest.kind,
        metric,
        knows_losses: manifest.spec.knows_losses(),
        n: counted.n(),
        lost: counted.infinite(),
        statistics: RunStatistics::of(metric, &described),
        tail: marginal::tail(&counted, counted.n()),
        histogram: marginal::histogram(&counted),
        over_time: None,
        rates: Vec::new(),
        host: Vec::new(),
        duration_ns: Nanos::ZERO,
    })
}

/// The statistics of the main metric, given the sample of the delays.
fn statistics<S: ProbeSource>(source: &S, manifest: &Manifest, delays: &Sample) -> Result<RunStatistics, S::Error> {
    let described = match manifest.kind {
        Kind::Stream => {
            let describe = |sample: &Sample| plain(sample, &QUANTILES, false);
            StreamAccumulator::of(source)?.described(Metric::DeliveredRate, manifest, &describe)
        }
        _ if manifest.lost_without_row() > 0 => {
            MetricSample::of_main(delays.clone(), manifest).describe(&quantiles_only())
        }
        Kind::Ping | Kind::Wakeup | Kind::Values => plain(delays, &QUANTILES, false),
    };
    Ok(RunStatistics::of(manifest.metric(), &described))
}

fn over_time<S: ProbeSource>(
    source: &S,
    metric: Metric,
    finite: &[i64],
    measured: MeasuredSpan,
) -> Result<Option<DelayGrid>, S::Error> {
    let Some(span) = measured.span() else { return Ok(None) };
    let mut grid = GridAccumulator::of(metric, finite, span);
    visit_rows(source, &mut [&mut grid])?;
    Ok(Some(grid.finish()))
}

/// The host from `start_ns`, at which times are 0, for `length`.
fn host<S: ProbeSource>(source: &S, start_ns: Option<i64>, length: Nanos) -> Result<Vec<HostSeries>, S::Error> {
    let Some(start_ns) = start_ns else { return Ok(Vec::new()) };
    let mut readings = HostReadingsOverTime::default();
    source.visit_host_samples(&mut |side, sample| readings.take(side, sample))?;
    Ok(readings.finish(&pinned(&source.manifest().spec), start_ns, length))
}

/// The CPUs to which the threads of a run are pinned, each on the host of its end.
fn pinned(spec: &RunSpec) -> Vec<CpuOfHost> {
    let peer = if spec.target.is_this_host() { Side::Local } else { Side::Peer };
    let own = spec.here.cpu.map(|cpu| CpuOfHost { side: Side::Local, cpu });
    let far = spec.peer.as_ref().and_then(|end| end.cpu).map(|cpu| CpuOfHost { side: peer, cpu });
    own.into_iter().chain(far).collect()
}
