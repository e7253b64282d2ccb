//! The whole story of a sample.

use super::batches::Batches;
use super::bootstrap::{Original, Replicates};
use super::dependence::{Block, Dependence};
use super::description::{Description, QuantileEstimate};
use super::deviate::student;
use super::interval::Interval;
use super::moments::{Extent, Spread};
use super::order::Order;
use super::quantile::{Bounds, Position, is_supported};
use super::wishes::Wishes;
use crate::sample::{INFINITE, Sample};

/// The longest sample whose intervals come from the bootstrap. Above it the dependence is learnt from thousands of
/// values, order statistics and batch means cover as well, and resampling would cost more than all else together.
const BOOTSTRAP_MAX: u64 = 5000;

/// Describes `sample` as wished.
///
/// Values in ns. Moments are over the finite singletons, quantiles over all. A sample whose order is unknown gets
/// point values only, and the support of its quantiles is counted as if its singletons were independent.
pub fn describe(sample: &Sample, wishes: &Wishes) -> Description {
    let singletons = sample.singletons.as_slice();
    let extent = Extent::of(singletons);
    let spread = extent.map(|extent| Spread::of(singletons, &extent));
    let dependence = spread.as_ref().filter(|_| sample.ordered).map(|spread| Dependence::of(&spread.batches));
    let stddev = spread.as_ref().and_then(|spread| spread.stddev);
    let mean = extent.map(|extent| extent.mean());

    let order = Order::new(singletons, extent.map_or(0, |extent| extent.min));
    let points = Point::all(singletons, &order, wishes, sample.ordered);
    let replicates = spread.filter(|_| sample.ordered && wishes.intervals).and_then(|spread| {
        (2..=BOOTSTRAP_MAX).contains(&sample.n()).then(|| resample(singletons, &points, &spread, mean, wishes))
    });
    let mean_interval = match &replicates {
        Some(replicates) if stddev.is_some() => replicates.mean(wishes.confidence),
        Some(_) => None,
        None => dependence
            .filter(|_| wishes.intervals)
            .and_then(|dependence| Some(student_interval(mean?, stddev?, dependence, wishes.confidence))),
    };
    Description {
        n: sample.n(),
        lost: sample.n() - extent.map_or(0, |extent| extent.count),
        min: extent.map(|extent| extent.min),
        max: extent.map(|extent| extent.max),
        mean,
        stddev,
        effective_n: dependence.map(|dependence| dependence.effective_n),
        mean_interval,
        quantiles: estimates(&points, &order, replicates.as_ref(), extent, wishes),
    }
}

/// A quantile's point value and what the sample is worth around it.
struct Point {
    q: f64,
    position: Position,
    /// Infinite where it fell among the lost; none in an empty sample.
    value: Option<f64>,
    /// The sample split there; none where the order is unknown.
    split: Option<Split>,
    n: u64,
}

/// Dependence of the series "at most the quantile, or not".
struct Split {
    bound: i64,
    effective_n: f64,
}

impl Point {
    fn all(singletons: &[i64], order: &Order<'_>, wishes: &Wishes, ordered: bool) -> Vec<Point> {
        let n = singletons.len() as u64;
        let positions: Vec<Position> = wishes.quantiles.iter().map(|q| Position::of(*q, n)).collect();
        let ranks: Vec<u64> = positions.iter().flat_map(|at| [at.rank, at.rank + 1, at.witness_rank(n)]).collect();
        let values = order.at(&ranks);
        let point = |((&q, position), values): ((&f64, Position), &[i64])| {
            let split = (ordered && n > 0).then(|| Split::of(singletons, values[0], values[2]));
            Point { q, position, value: (n > 0).then(|| position.between(values[0], values[1])), split, n }
        };
        wishes.quantiles.iter().zip(positions).zip(values.chunks_exact(3)).map(point).collect()
    }

    fn is_supported(&self) -> bool {
        is_supported(self.q, self.split.as_ref().map_or(self.n as f64, |split| split.effective_n))
    }

    /// Order statistics around the quantile, where an interval or a bound is to be built on them.
    fn bounds(&self, wishes: &Wishes) -> Option<Bounds> {
        let split = self.split.as_ref()?;
        let needed = wishes.intervals || !self.is_supported();
        needed.then(|| Bounds::of(self.q, self.n, split.effective_n, wishes.confidence))
    }
}

impl Split {
    /// At `value`, and for a thin tail also at its `witness`: the smaller effective n counts.
    fn of(singletons: &[i64], value: i64, witness: i64) -> Split {
        // what is infinite lies above every bound
        let (bound, witness) = (value.min(INFINITE - 1), witness.min(INFINITE - 1));
        let effective_n =
            |bound: i64| Dependence::of(&Batches::of_indicator(singletons, |value| value <= bound)).effective_n;
        let own = effective_n(bound);
        Split { bound, effective_n: if witness == bound { own } else { own.min(effective_n(witness)) } }
    }
}

/// One block length for all: the longest that the mean or a quantile with enough beyond it asks for.
fn resample(singletons: &[i64], points: &[Point], spread: &Spread, mean: Option<f64>, wishes: &Wishes) -> Replicates {
    let split =
        |point: &Point| point.split.as_ref().filter(|_| !point.position.is_thin(point.n)).map(|split| split.bound);
    let block = points
        .iter()
        .filter_map(split)
        .map(|bound| Block::of(&Batches::of_indicator(singletons, |value| value <= bound).sums))
        .fold(Block::of(&spread.batches.sums), Block::longer);
    let positions: Vec<Position> = points.iter().map(|point| point.position).collect();
    Original { singletons, mean: mean.unwrap_or(0.0), block }.resample(&positions, wishes.seed)
}

/// Mean ± t × stddev / √effective n.
fn student_interval(mean: f64, stddev: f64, dependence: Dependence, confidence: f64) -> Interval {
    let reach = student(0.5 + confidence / 2.0, dependence.freedom) * stddev / dependence.effective_n.sqrt();
    Interval { low: Some(mean - reach), high: Some(mean + reach), confidence }
}

fn estimates(
    points: &[Point],
    order: &Order<'_>,
    replicates: Option<&Replicates>,
    extent: Option<Extent>,
    wishes: &Wishes,
) -> Vec<QuantileEstimate> {
    let bounds: Vec<Option<Bounds>> = points.iter().map(|point| point.bounds(wishes)).collect();
    let ranks: Vec<u64> = bounds.iter().flatten().flat_map(Bounds::ranks).collect();
    let mut values = order.at(&ranks).into_iter();
    let mut next = |rank: Option<u64>| rank.and_then(|_| values.next());
    let estimate = |(place, (point, bounds)): (usize, (&Point, &Option<Bounds>))| {
        let [low, high, below] = bounds.map_or([None; 3], |bounds| bounds.each().map(&mut next));
        let supported = point.is_supported();
        let resampled = replicates.filter(|_| !point.position.is_thin(point.n));
        let interval = bounds.filter(|_| wishes.intervals).and_then(|bounds| match resampled {
            Some(replicates) => guarded(replicates.quantile(place, wishes.confidence), &bounds),
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

/// Resampling never leaves the range of the sample: an end that no order statistic can vouch for is dropped.
fn guarded(interval: Option<Interval>, bounds: &Bounds) -> Option<Interval> {
    let interval = interval?;
    let low = bounds.low.and(interval.low).unwrap_or(f64::NEG_INFINITY);
    let high = bounds.high.and(interval.high).unwrap_or(f64::INFINITY);
    Interval::between(low, high, interval.confidence)
}
