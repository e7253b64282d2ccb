//! The description of a sample: moments, quantiles with their support and intervals, and shares of counts.

use super::bootstrap::{Original, Replicates};
use super::dependence::{Batches, BlockLength, Dependence};
use super::interval::{Interval, student};
use super::moments::{Extent, Spread};
use super::order::{Order, select};
use super::quantile::{QuantilePosition, RankBounds, SUPPORT_MIN, is_supported};
use crate::sample::{INFINITE, Sample};

/// An estimated quantile.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantileEstimate {
    /// In (0, 1).
    pub q: f64,
    /// Linear interpolation between order statistics (type 7); `None` if it is infinite.
    pub value: Option<f64>,
    /// Whether the value is `None` because it lies among the lost singletons.
    pub lost: bool,
    /// Its confidence interval, if one was asked for and exists.
    pub interval: Option<Interval>,
    /// Whether at least 10 effective observations lie beyond it.
    pub supported: bool,
    /// One-sided 95 % lower bound of a quantile without support.
    pub lower_bound: Option<f64>,
    /// Whether that bound lies among the lost singletons: `lower_bound` is the largest finite one then.
    pub bound_is_lost: bool,
}

/// The figures of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Singletons, finite or not.
    pub n: u64,
    /// Infinite singletons.
    pub lost: u64,
    /// Smallest finite singleton. This and the next three are of finite singletons only; `None` without any.
    pub min: Option<i64>,
    /// Largest finite.
    pub max: Option<i64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Sample standard deviation (n − 1); `None` below two, and if it was not asked for.
    pub stddev: Option<f64>,
    /// Effective sample size of the finite singletons for their mean, if it was asked for.
    pub effective_n: Option<f64>,
    /// Confidence interval of the mean, if one was asked for and exists.
    pub mean_interval: Option<Interval>,
    /// In the order in which they were asked for.
    pub quantiles: Vec<QuantileEstimate>,
}

/// The figures to compute.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeOptions {
    /// Quantiles in (0, 1).
    pub quantiles: Vec<f64>,
    /// Confidence of the intervals, such as 0.95.
    pub confidence: f64,
    /// Whether to compute intervals, which cost more than all other figures.
    pub intervals: bool,
    /// Seed of the bootstrap.
    pub seed: u64,
}

/// A quantile with at least this many times `SUPPORT_MIN` singletons beyond it is supported without an estimate of
/// their dependence.
const AMPLE: f64 = 100.0;

/// Up to this many singletons selecting in a copy of them is faster than counting them in buckets.
const SELECTED_MAX: u64 = 1 << 18;

/// The longest sample whose intervals come from the bootstrap. Above it the dependence is estimated from thousands of
/// values, intervals from order statistics and batch means have the same coverage, and resampling would cost most.
const BOOTSTRAP_MAX: u64 = 5000;

/// With fewer finite singletons the interval of the mean comes from Student's t: the percentiles of a resampled mean
/// cannot lie outside the sample, and of 2 to 5 singletons they are its extremes, which cover the mean of the population
/// in only 50 to 94 of 100 samples.
const BOOTSTRAP_MEAN_MIN: u64 = 10;

/// Computes the figures that `options` asks for, in ns.
///
/// Moments are of the finite singletons, quantiles of all. A sample of unknown order gets point values only, and its
/// quantiles have the support that they would have if its singletons were independent.
pub fn describe(sample: &Sample, options: &DescribeOptions) -> Description {
    let extent = Extent::of(&sample.singletons);
    let spread = extent.map(|extent| Spread::of(&sample.singletons, &extent));
    let centre = extent.zip(spread).map(|(extent, spread)| Centre::of(&extent, spread, sample.ordered));
    let order = Order::new(&sample.singletons);
    let points = PointEstimate::all(sample, &order, &options.quantiles);
    let replicates = centre.as_ref().and_then(|centre| resample(sample, centre, &points, options));
    Description {
        n: sample.n(),
        lost: sample.n() - extent.map_or(0, |extent| extent.count),
        min: extent.map(|extent| extent.min),
        max: extent.map(|extent| extent.max),
        mean: centre.as_ref().map(|centre| centre.mean),
        stddev: centre.as_ref().and_then(|centre| centre.spread.stddev),
        effective_n: centre.as_ref().and_then(|centre| centre.dependence).map(|dependence| dependence.effective_n),
        mean_interval: centre.and_then(|centre| centre.interval(replicates.as_ref(), options)),
        quantiles: estimates(&points, &order, replicates.as_ref(), extent, options),
    }
}

/// The mean of the finite singletons, with what its interval is computed from.
struct Centre {
    mean: f64,
    /// Finite singletons.
    count: u64,
    spread: Spread,
    /// `None` if the order is unknown.
    dependence: Option<Dependence>,
}

impl Centre {
    fn of(extent: &Extent, spread: Spread, ordered: bool) -> Centre {
        let dependence = ordered.then(|| Dependence::of(&spread.batches));
        Centre { mean: extent.mean(), count: extent.count, spread, dependence }
    }

    /// From the replicates if the sample is large enough, else mean ± t × stddev / √effective n.
    fn interval(&self, replicates: Option<&Replicates>, options: &DescribeOptions) -> Option<Interval> {
        let stddev = self.spread.stddev.filter(|_| options.intervals)?;
        if let Some(replicates) = replicates.filter(|_| self.count >= BOOTSTRAP_MEAN_MIN) {
            return replicates.mean(options.confidence);
        }
        let Dependence { effective_n, freedom } = self.dependence?;
        let reach = student(0.5 + options.confidence / 2.0, freedom) * stddev / effective_n.sqrt();
        Some(Interval { low: Some(self.mean - reach), high: Some(self.mean + reach), confidence: options.confidence })
    }
}

/// Resamples with one block length for all figures: the longest that the mean or a quantile outside of a thin tail needs.
fn resample(
    sample: &Sample,
    centre: &Centre,
    points: &[PointEstimate],
    options: &DescribeOptions,
) -> Option<Replicates> {
    if !options.intervals || !sample.ordered || !(2..=BOOTSTRAP_MAX).contains(&sample.n()) {
        return None;
    }
    let blocks = points.iter().filter_map(|point| point.block(&sample.singletons));
    let block = blocks.fold(BlockLength::of(&centre.spread.batches.sums), BlockLength::longer);
    let positions: Vec<QuantilePosition> = points.iter().map(|point| point.position).collect();
    Some(Original { singletons: &sample.singletons, mean: centre.mean, block }.resample(&positions, options.seed))
}

/// Whether each point is supported: enough singletons lie beyond it and beyond all points between it and the median. If
/// drift leaves even the median without support, it cannot be distinguished from a tail.
fn supported(points: &[PointEstimate]) -> Vec<bool> {
    let is_between = |inner: f64, outer: f64| match outer >= 0.5 {
        true => (0.5..=outer).contains(&inner),
        false => (outer..=0.5).contains(&inner),
    };
    let own: Vec<(f64, bool)> = points.iter().map(|point| (point.q, point.is_supported())).collect();
    let of = |outer: f64| own.iter().all(|(inner, supported)| *supported || !is_between(*inner, outer));
    own.iter().map(|(outer, _)| of(*outer)).collect()
}

/// The points with their bounds: from resampling outside of thin tails, else from order statistics.
fn estimates(
    points: &[PointEstimate],
    order: &Order<'_>,
    replicates: Option<&Replicates>,
    extent: Option<Extent>,
    options: &DescribeOptions,
) -> Vec<QuantileEstimate> {
    let support = supported(points);
    let bounds = points.iter().zip(&support).map(|(point, supported)| point.bounds(*supported, options));
    let bounds: Vec<Option<RankBounds>> = bounds.collect();
    let ranks: Vec<u64> = bounds.iter().flatten().flat_map(RankBounds::ranks).collect();
    let mut values = order.at(&ranks).into_iter();
    let mut next = |rank: Option<u64>| rank.and_then(|_| values.next());
    let estimate = |(place, (point, bounds)): (usize, (&PointEstimate, &Option<RankBounds>))| {
        let [low, high, below] = bounds.map_or([None; 3], |bounds| bounds.each().map(&mut next));
        let supported = support[place];
        let resampled = replicates.filter(|_| !point.is_thin());
        let interval = bounds.filter(|_| options.intervals).and_then(|bounds| match resampled {
            Some(replicates) => bounds.limit(replicates.quantile(place, options.confidence)?),
            None => bounds.interval(low, high),
        });
        // If even the bound lies among the lost singletons, the largest finite one is a bound.
        let lower_bound = below.filter(|_| !supported).zip(extent).map(|(value, extent)| value.min(extent.max) as f64);
        QuantileEstimate {
            q: point.q,
            value: point.value.filter(|value| value.is_finite()),
            lost: point.value.is_some_and(f64::is_infinite),
            interval,
            supported,
            lower_bound,
            bound_is_lost: !supported && below == Some(INFINITE),
        }
    };
    points.iter().zip(&bounds).enumerate().map(estimate).collect()
}

/// The point values of `sample`, without intervals, bounds and effective sample size: what a comparison of many runs
/// needs of each. The standard deviation is optional, since it costs as much as all else but quantiles.
pub fn plain(sample: &Sample, quantiles: &[f64], with_stddev: bool) -> Description {
    let extent = Extent::of(&sample.singletons);
    let spread = extent.filter(|_| with_stddev).map(|extent| Spread::of(&sample.singletons, &extent));
    Description {
        n: sample.n(),
        lost: sample.n() - extent.map_or(0, |extent| extent.count),
        min: extent.map(|extent| extent.min),
        max: extent.map(|extent| extent.max),
        mean: extent.map(|extent| extent.mean()),
        stddev: spread.and_then(|spread| spread.stddev),
        effective_n: None,
        mean_interval: None,
        quantiles: if quantiles.is_empty() { Vec::new() } else { points(sample, quantiles) },
    }
}

fn points(sample: &Sample, quantiles: &[f64]) -> Vec<QuantileEstimate> {
    let n = sample.n();
    let positions: Vec<QuantilePosition> = quantiles.iter().map(|q| QuantilePosition::of(*q, n)).collect();
    let ranks: Vec<u64> = positions.iter().flat_map(|at| [at.rank, at.rank + 1]).collect();
    let values = match n {
        ..=SELECTED_MAX => select(&mut sample.singletons.clone(), &ranks),
        _ => Order::new(&sample.singletons).at(&ranks),
    };
    let point = |((q, position), values): ((&f64, &QuantilePosition), &[i64])| {
        let value = (n > 0).then(|| position.between(values[0], values[1]));
        QuantileEstimate {
            q: *q,
            value: value.filter(|value| value.is_finite()),
            lost: value.is_some_and(f64::is_infinite),
            interval: None,
            supported: n > 0 && has_support(sample, *q, values[0]),
            lower_bound: None,
            bound_is_lost: false,
        }
    };
    quantiles.iter().zip(&positions).zip(values.chunks_exact(2)).map(point).collect()
}

/// Whether quantile `q`, whose lower order statistic is `value`, is supported; a sample of unknown order is taken as
/// independent.
fn has_support(sample: &Sample, q: f64, value: i64) -> bool {
    let n = sample.n() as f64;
    if !sample.ordered || !is_supported(q, n) || n * q.min(1.0 - q) >= AMPLE * SUPPORT_MIN {
        return is_supported(q, n);
    }
    let bound = value.min(INFINITE - 1);
    is_supported(q, Dependence::of(&Batches::of_indicator(&sample.singletons, |value| value <= bound)).effective_n)
}

/// The point value of a quantile, and the dependence of the sample there.
struct PointEstimate {
    q: f64,
    position: QuantilePosition,
    /// In ns, infinite if it lies among the lost singletons; `None` of an empty sample.
    value: Option<f64>,
    /// `None` if the order is unknown.
    split: Option<Split>,
    n: u64,
}

/// The sample divided into singletons up to the quantile and beyond it.
struct Split {
    bound: i64,
    effective_n: f64,
}

impl PointEstimate {
    fn all(sample: &Sample, order: &Order<'_>, quantiles: &[f64]) -> Vec<PointEstimate> {
        let n = sample.n();
        let positions: Vec<QuantilePosition> = quantiles.iter().map(|q| QuantilePosition::of(*q, n)).collect();
        let ranks: Vec<u64> = positions.iter().flat_map(|at| [at.rank, at.rank + 1, at.witness_rank(n)]).collect();
        let values = order.at(&ranks);
        let point = |((&q, position), values): ((&f64, QuantilePosition), &[i64])| {
            let split = (sample.ordered && n > 0).then(|| Split::of(&sample.singletons, values[0], values[2]));
            PointEstimate { q, position, value: (n > 0).then(|| position.between(values[0], values[1])), split, n }
        };
        quantiles.iter().zip(positions).zip(values.chunks_exact(3)).map(point).collect()
    }

    /// Whether enough effective observations lie beyond it; a sample of unknown order is taken as independent.
    fn is_supported(&self) -> bool {
        is_supported(self.q, self.split.as_ref().map_or(self.n as f64, |split| split.effective_n))
    }

    fn is_thin(&self) -> bool {
        self.position.is_thin(self.n)
    }

    /// Order statistics around the quantile, if an interval or a bound needs them.
    fn bounds(&self, supported: bool, options: &DescribeOptions) -> Option<RankBounds> {
        let split = self.split.as_ref()?;
        let needed = options.intervals || !supported;
        needed.then(|| RankBounds::of(self.q, self.n, split.effective_n, options.confidence))
    }

    /// The block length that this quantile needs; `None` in a thin tail.
    fn block(&self, singletons: &[i64]) -> Option<BlockLength> {
        let bound = self.split.as_ref().filter(|_| !self.is_thin())?.bound;
        Some(BlockLength::of(&Batches::of_indicator(singletons, |value| value <= bound).sums))
    }
}

impl Split {
    /// At `value`, and in a thin tail also at its `witness`, of which the smaller effective n counts.
    fn of(singletons: &[i64], value: i64, witness: i64) -> Split {
        // Infinite singletons lie above every bound.
        let (bound, witness) = (value.min(INFINITE - 1), witness.min(INFINITE - 1));
        let effective_n =
            |bound: i64| Dependence::of(&Batches::of_indicator(singletons, |value| value <= bound)).effective_n;
        let own = effective_n(bound);
        Split { bound, effective_n: if witness == bound { own } else { own.min(effective_n(witness)) } }
    }
}
