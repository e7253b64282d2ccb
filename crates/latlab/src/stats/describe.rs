//! The whole story of a sample.

use super::bootstrap::{Original, Replicates};
use super::dependence::{BlockLength, Dependence};
use super::description::{Description, QuantileEstimate};
use super::deviate::student;
use super::interval::Interval;
use super::moments::{Extent, Spread};
use super::order::Order;
use super::point::PointEstimate;
use super::quantile::{QuantilePosition, RankBounds};
use super::wishes::DescribeOptions;
use crate::sample::Sample;

/// The longest sample whose intervals come from the bootstrap. Above it the dependence is learnt from thousands of
/// values, order statistics and batch means cover as well, and resampling would cost more than all else together.
const BOOTSTRAP_MAX: u64 = 5000;

/// Below so few finite singletons the interval of the mean comes from Student's t: the percentiles of a resampled
/// mean cannot lie outside the sample, and of 2 to 5 singletons they are its two ends, which hold the mean of the
/// population in 50 to 94 of 100 samples only.
const BOOTSTRAP_MEAN_MIN: u64 = 10;

/// Describes `sample` as wished.
///
/// Values in ns. Moments are over the finite singletons, quantiles over all. A sample whose order is unknown gets
/// point values only, and the support of its quantiles is counted as if its singletons were independent.
pub fn describe(sample: &Sample, wishes: &DescribeOptions) -> Description {
    let extent = Extent::of(&sample.singletons);
    let spread = extent.map(|extent| Spread::of(&sample.singletons, &extent));
    let centre = extent.zip(spread).map(|(extent, spread)| Centre::of(&extent, spread, sample.ordered));
    let order = Order::new(&sample.singletons);
    let points = PointEstimate::all(sample, &order, &wishes.quantiles);
    let replicates = centre.as_ref().and_then(|centre| resample(sample, centre, &points, wishes));
    Description {
        n: sample.n(),
        lost: sample.n() - extent.map_or(0, |extent| extent.count),
        min: extent.map(|extent| extent.min),
        max: extent.map(|extent| extent.max),
        mean: centre.as_ref().map(|centre| centre.mean),
        stddev: centre.as_ref().and_then(|centre| centre.spread.stddev),
        effective_n: centre.as_ref().and_then(|centre| centre.dependence).map(|dependence| dependence.effective_n),
        mean_interval: centre.and_then(|centre| centre.interval(replicates.as_ref(), wishes)),
        quantiles: estimates(&points, &order, replicates.as_ref(), extent, wishes),
    }
}

/// The mean of the finite singletons and what they are worth for it.
struct Centre {
    mean: f64,
    /// Finite singletons.
    count: u64,
    spread: Spread,
    /// None where the order is unknown.
    dependence: Option<Dependence>,
}

impl Centre {
    fn of(extent: &Extent, spread: Spread, ordered: bool) -> Centre {
        let dependence = ordered.then(|| Dependence::of(&spread.batches));
        Centre { mean: extent.mean(), count: extent.count, spread, dependence }
    }

    /// From the replicates where there are some that can vouch for it, else mean ± t × stddev / √effective n.
    fn interval(&self, replicates: Option<&Replicates>, wishes: &DescribeOptions) -> Option<Interval> {
        let stddev = self.spread.stddev.filter(|_| wishes.intervals)?;
        if let Some(replicates) = replicates.filter(|_| self.count >= BOOTSTRAP_MEAN_MIN) {
            return replicates.mean(wishes.confidence);
        }
        let Dependence { effective_n, freedom } = self.dependence?;
        let reach = student(0.5 + wishes.confidence / 2.0, freedom) * stddev / effective_n.sqrt();
        Some(Interval { low: Some(self.mean - reach), high: Some(self.mean + reach), confidence: wishes.confidence })
    }
}

/// One block length for all: the longest that the mean or a quantile with enough beyond it asks for.
fn resample(
    sample: &Sample,
    centre: &Centre,
    points: &[PointEstimate],
    wishes: &DescribeOptions,
) -> Option<Replicates> {
    if !wishes.intervals || !sample.ordered || !(2..=BOOTSTRAP_MAX).contains(&sample.n()) {
        return None;
    }
    let blocks = points.iter().filter_map(|point| point.block(&sample.singletons));
    let block = blocks.fold(BlockLength::of(&centre.spread.batches.sums), BlockLength::longer);
    let positions: Vec<QuantilePosition> = points.iter().map(|point| point.position).collect();
    Some(Original { singletons: &sample.singletons, mean: centre.mean, block }.resample(&positions, wishes.seed))
}

/// Which points are supported: those with enough beyond them, as have all that were asked for between them and the
/// median. A sample that drifts too slowly to know its own median has no tail that could be told from the drift.
fn supported(points: &[PointEstimate]) -> Vec<bool> {
    let is_between = |inner: f64, outer: f64| match outer >= 0.5 {
        true => (0.5..=outer).contains(&inner),
        false => (outer..=0.5).contains(&inner),
    };
    let own: Vec<(f64, bool)> = points.iter().map(|point| (point.q, point.is_supported())).collect();
    let of = |outer: f64| own.iter().all(|(inner, supported)| *supported || !is_between(*inner, outer));
    own.iter().map(|(outer, _)| of(*outer)).collect()
}

/// The points with what bounds them: resampled where the tail is thick enough, else order statistics.
fn estimates(
    points: &[PointEstimate],
    order: &Order<'_>,
    replicates: Option<&Replicates>,
    extent: Option<Extent>,
    wishes: &DescribeOptions,
) -> Vec<QuantileEstimate> {
    let support = supported(points);
    let bounds = points.iter().zip(&support).map(|(point, supported)| point.bounds(*supported, wishes));
    let bounds: Vec<Option<RankBounds>> = bounds.collect();
    let ranks: Vec<u64> = bounds.iter().flatten().flat_map(RankBounds::ranks).collect();
    let mut values = order.at(&ranks).into_iter();
    let mut next = |rank: Option<u64>| rank.and_then(|_| values.next());
    let estimate = |(place, (point, bounds)): (usize, (&PointEstimate, &Option<RankBounds>))| {
        let [low, high, below] = bounds.map_or([None; 3], |bounds| bounds.each().map(&mut next));
        let supported = support[place];
        let resampled = replicates.filter(|_| !point.is_thin());
        let interval = bounds.filter(|_| wishes.intervals).and_then(|bounds| match resampled {
            Some(replicates) => bounds.vouch(replicates.quantile(place, wishes.confidence)?),
            None => bounds.interval(low, high),
        });
        // where even the bound is among the lost, the largest finite singleton still is a bound
        let lower_bound = below.filter(|_| !supported).zip(extent).map(|(value, extent)| value.min(extent.max) as f64);
        QuantileEstimate {
            q: point.q,
            value: point.value.filter(|value| value.is_finite()),
            lost: point.value.is_some_and(f64::is_infinite),
            interval,
            supported,
            lower_bound,
        }
    };
    points.iter().zip(&bounds).enumerate().map(estimate).collect()
}
