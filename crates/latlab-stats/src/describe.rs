//! The description of a sample: moments, quantiles with their support and intervals, and shares of counts.

use super::clock_step::clock_step;
use super::interval::{Interval, student, trials};
use super::long_run::{Dependence, TimeSeries};
use super::moments::{Extent, Spread};
use super::order::{Order, select};
use super::quantile::{QuantilePosition, RankBounds, SUPPORT_MIN, WITNESSES_MIN, is_supported};
use crate::sample::{INFINITE, Sample};

#[derive(Clone, Debug, PartialEq)]
pub struct QuantileEstimate {
    /// Its probability, inside of (0, 1).
    pub q: f64,
    /// Linear interpolation between order statistics (type 7); `None` if it is infinite.
    pub value: Option<f64>,
    /// Whether the value is `None` because it lies among the lost singletons.
    pub lost: bool,
    /// Its confidence interval, if one was asked for and exists.
    pub interval: Option<Interval>,
    /// Whether at least 10 effective observations lie beyond it, or 100 if the level changes slowly; of an infinite one,
    /// whether at least 10 singletons are lost: losses at a stretch are no milder than others.
    pub supported: bool,
    /// One-sided 95 % lower bound of a quantile without support.
    pub lower_bound: Option<f64>,
    /// Whether that bound lies among the lost singletons: `lower_bound` is the largest finite one then.
    pub bound_is_lost: bool,
}

/// The figures of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    pub n: u64,
    /// Singletons that are infinite: no answer came.
    pub lost: u64,
    /// Smallest finite singleton. This and the next three are of finite singletons only; `None` without any.
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<f64>,
    /// Sample standard deviation (n − 1); `None` below two, and if it was not asked for.
    pub stddev: Option<f64>,
    /// Effective sample size of the finite singletons for their mean, if it was asked for.
    pub effective_n: Option<f64>,
    /// Confidence interval of the mean, if one was asked for and exists.
    pub mean_interval: Option<Interval>,
    /// In the order in which they were asked for.
    pub quantiles: Vec<QuantileEstimate>,
    /// Set if the level changes over large parts of the sample, so that its figures do not predict those of the next one:
    /// the figure that shows it most, and the effective sample size for it.
    pub slow_changes: Option<(DescribedFigure, f64)>,
    /// The mean or p99 if it comes from too few bursts to show how frequent they are, and about how many they are.
    pub rare_bursts: Option<(DescribedFigure, f64)>,
    /// The step of the clock that took them, if it is seen; else 0. Every interval and lower bound reaches a step farther
    /// than it would otherwise.
    pub step: f64,
}

impl Description {
    /// The same with each figure of location replaced by `to` of it.
    #[must_use]
    pub fn relocated(mut self, to: impl Fn(f64) -> f64) -> Description {
        let Description { min, max, mean, mean_interval, quantiles, .. } = &mut self;
        let intervals = quantiles.iter_mut().filter_map(|quantile| quantile.interval.as_mut());
        let ends = intervals.chain(mean_interval).flat_map(|interval| [&mut interval.low, &mut interval.high]);
        ends.chain([min, max, mean]).for_each(|figure| *figure = figure.map(&to));
        for quantile in quantiles {
            (quantile.value, quantile.lower_bound) = (quantile.value.map(&to), quantile.lower_bound.map(&to));
        }
        self
    }

    /// The same in the unit of the metric, if it is of singletons times 10^`decimals`.
    fn without_decimals(self, decimals: i32) -> Description {
        if decimals == 0 {
            return self;
        }
        // Parsing rounds once.
        let shifted = |figure: f64| format!("{figure}e{}", -decimals).parse().unwrap_or(figure);
        Description { stddev: self.stddev.map(shifted), ..self.relocated(shifted) }
    }

    /// The same with intervals and bounds that reach as much farther as the clock may be wrong.
    fn widened(mut self) -> Description {
        let step = self.step;
        if step == 0.0 {
            return self;
        }
        // The smallest delay of a coarse clock is not below 0 either.
        let least = if self.min.is_some_and(|min| min >= 0.0) { 0.0 } else { f64::NEG_INFINITY };
        let intervals = self.quantiles.iter_mut().filter_map(|quantile| quantile.interval.as_mut());
        for interval in intervals.chain(&mut self.mean_interval) {
            *interval = interval.widened(step);
        }
        for quantile in &mut self.quantiles {
            quantile.lower_bound = quantile.lower_bound.map(|bound| (bound - step).max(least));
        }
        self
    }

    /// About how many singletons that depend on each other as these do would support all quantiles; `None` if these do.
    pub fn n_for_support(&self) -> Option<f64> {
        let tails = || self.quantiles.iter().filter(|one| !one.supported).map(|one| one.q.min(1.0 - one.q));
        let rarest = tails().reduce(f64::min)?;
        // n / effective n times as many are needed. The effective n of the mean is known; that of a tail must be smaller if
        // the tail is unsupported although it has ten singletons.
        let n = self.n as f64;
        let of_mean = self.effective_n.map_or(1.0, |effective_n| effective_n / n);
        let effective_share = tails().map(|tail| SUPPORT_MIN / (n * tail)).fold(of_mean, f64::min).clamp(1e-6, 1.0);
        // 1 − 0.9999 is a little less than 0.0001, and must not cost one more.
        Some((SUPPORT_MIN / rarest / effective_share * (1.0 - 1e-9)).ceil())
    }
}

impl QuantileEstimate {
    /// Whether it lies among the lost singletons for certain.
    pub fn is_surely_lost(&self) -> bool {
        self.lost && (self.supported || self.bound_is_lost)
    }
}

/// A figure of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DescribedFigure {
    Mean,
    Quantile(f64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct DescribeOptions {
    /// Quantiles in (0, 1).
    pub quantiles: Vec<f64>,
    /// Confidence of the intervals, such as 0.95.
    pub confidence: f64,
    /// Whether to compute intervals, which cost more than all other figures.
    pub intervals: bool,
}

/// A quantile with at least this many times `SUPPORT_MIN` singletons beyond it is supported without an estimate of
/// their dependence.
const AMPLE: f64 = 100.0;

/// Up to this many singletons selecting in a copy of them is faster than counting them in buckets.
const SELECTED_MAX: u64 = 1 << 18;

/// Under slow changes so many times as many effective observations support a quantile: from few long parts the effective n
/// is estimated too large, under long memory by a factor of 4 to 17.
const SLOW_FACTOR: f64 = 10.0;

/// The part of a tail by which an end of an interval may reach into it before the sample is split there too.
const NEAR: f64 = 0.2;

/// Quantiles that show whether the level of a sample changes slowly.
const BODY: [f64; 2] = [0.5, 0.9];
/// The quantile that shows rare bursts, if it has so many singletons beyond it.
const TAIL: f64 = 0.99;
const TAIL_SINGLETONS_MIN: f64 = 20.0;
/// Fewer bursts do not show how frequent they are: as estimated from the mean, and from the tail.
const BURSTS_MIN: f64 = 3.5;
const TAIL_BURSTS_MIN: f64 = 2.5;

/// Computes the figures that `options` asks for, in ns.
///
/// Moments are of the finite singletons, quantiles of all. A sample of unknown order gets point values only, and its
/// quantiles have the support that they would have if its singletons were independent.
pub fn describe(sample: &Sample, options: &DescribeOptions) -> Description {
    let extent = Extent::of(&sample.singletons);
    let spread = extent.map(|extent| Spread::of(&sample.singletons, &extent));
    let dependence = spread.as_ref().filter(|_| sample.ordered).map(|spread| Dependence::of(&spread.series));
    let mean = extent.map(|extent| extent.mean());
    let stddev = spread.and_then(|spread| spread.stddev);
    let order = Order::new(&sample.singletons);
    let watched = BODY.into_iter().chain([TAIL]).filter(|q| sample.ordered && !options.quantiles.contains(q));
    let quantiles: Vec<f64> = options.quantiles.iter().copied().chain(watched).collect();
    let points = PointEstimate::all(sample, &order, &quantiles);
    let slow_changes = slow_changes(dependence.as_ref(), &points);
    let wanted = &points[..options.quantiles.len()];
    let interval = || mean_interval(mean?, stddev?, dependence.as_ref()?, options.confidence);
    Description {
        n: sample.n(),
        lost: sample.n() - extent.map_or(0, |extent| extent.count),
        min: extent.map(|extent| extent.min as f64),
        max: extent.map(|extent| extent.max as f64),
        mean,
        stddev,
        effective_n: dependence.map(|dependence| dependence.effective_n),
        mean_interval: if options.intervals { interval() } else { None },
        quantiles: estimates(sample, wanted, &order, slow_changes.is_some(), extent, options),
        slow_changes,
        rare_bursts: rare_bursts(dependence.as_ref(), &points),
        step: step_of(sample),
    }
    .widened()
    .without_decimals(sample.decimals)
}

/// The step of the clock that took `sample`; 0 if it does not hold times, or holds printed numbers.
fn step_of(sample: &Sample) -> f64 {
    if sample.metric.is_time() && sample.decimals == 0 { clock_step(sample.singletons.iter().copied()) } else { 0.0 }
}

/// The mean ± t standard errors. The end on the side to which the mean is skewed is farther out (Johnson 1978).
fn mean_interval(mean: f64, stddev: f64, dependence: &Dependence, confidence: f64) -> Option<Interval> {
    let t = student(0.5 + confidence / 2.0, dependence.freedom);
    let error = stddev / dependence.effective_n.sqrt();
    let tail = error * dependence.skewness * (1.0 + 2.0 * t * t) / 6.0;
    Interval::between(mean - t * error + tail.min(0.0), mean + t * error + tail.max(0.0), confidence)
}

fn slow_changes(mean: Option<&Dependence>, points: &[PointEstimate]) -> Option<(DescribedFigure, f64)> {
    let of_body = points.iter().filter(|point| BODY.contains(&point.q));
    let of_body = of_body.filter_map(|point| Some((DescribedFigure::Quantile(point.q), point.dependence.as_ref()?)));
    let slow = mean.map(|mean| (DescribedFigure::Mean, mean)).into_iter().chain(of_body).filter(|it| it.1.is_slow);
    let effective = slow.map(|(figure, dependence)| (figure, dependence.effective_n));
    effective.min_by(|one, other| one.1.total_cmp(&other.1))
}

fn rare_bursts(mean: Option<&Dependence>, points: &[PointEstimate]) -> Option<(DescribedFigure, f64)> {
    let is_tail = |point: &&PointEstimate| point.q == TAIL && point.n as f64 * (1.0 - TAIL) >= TAIL_SINGLETONS_MIN;
    let of_tail = points.iter().find(is_tail).and_then(|point| point.dependence.as_ref());
    let of_tail = of_tail.map(|dependence| (1.0 - TAIL) * dependence.effective_n).filter(|it| *it < TAIL_BURSTS_MIN);
    let of_mean = mean.map(|dependence| dependence.bursts).filter(|bursts| *bursts < BURSTS_MIN);
    let of_mean = of_mean.map(|bursts| (DescribedFigure::Mean, bursts));
    let of_tail = of_tail.map(|bursts| (DescribedFigure::Quantile(TAIL), bursts));
    of_mean.into_iter().chain(of_tail).min_by(|one, other| one.1.total_cmp(&other.1))
}

/// Whether each point is supported: enough singletons lie beyond it and beyond all points between it and the median. If
/// drift leaves even the median without support, it cannot be distinguished from a tail.
fn supported(points: &[PointEstimate], lost: u64, slow_changes: bool) -> Vec<bool> {
    let is_between = |inner: f64, outer: f64| {
        if outer >= 0.5 { (0.5..=outer).contains(&inner) } else { (outer..=0.5).contains(&inner) }
    };
    let share = if slow_changes { 1.0 / SLOW_FACTOR } else { 1.0 };
    let own: Vec<(f64, bool)> = points.iter().map(|point| (point.q, point.is_supported(share))).collect();
    let is_supported = |point: &PointEstimate| {
        if point.is_lost() {
            lost as f64 >= SUPPORT_MIN
        } else {
            own.iter().all(|(inner, supported)| *supported || !is_between(*inner, point.q))
        }
    };
    points.iter().map(is_supported).collect()
}

/// The points with their intervals and bounds, which are order statistics.
fn estimates(
    sample: &Sample,
    points: &[PointEstimate],
    order: &Order<'_>,
    slow_changes: bool,
    extent: Option<Extent>,
    options: &DescribeOptions,
) -> Vec<QuantileEstimate> {
    let lost = sample.n() - extent.map_or(0, |extent| extent.count);
    let support = supported(points, lost, slow_changes);
    let is_needed = |(point, supported): (&PointEstimate, &bool)| options.intervals || (!supported && point.n > 0);
    // The probes of an outage count one by one here too: it is not milder than as many scattered losses.
    let is_among_few_losses = |(point, supported): (&PointEstimate, &bool)| point.is_lost() && !supported;
    let trials = points.iter().zip(&support).map(|pair| {
        let dependence = pair.0.dependence.as_ref().filter(|_| is_needed(pair))?;
        Some(if is_among_few_losses(pair) { pair.0.n as f64 } else { trials(dependence, options.confidence) })
    });
    let trials: Vec<Option<f64>> = trials.collect();
    let first = Bounds::of(points, &trials, order, options.confidence);
    let again = first.iter().zip(points.iter().zip(&support)).zip(&trials).map(|((bounds, pair), trials)| {
        let (bounds, trials) = bounds.as_ref().zip(*trials)?;
        let few = is_among_few_losses(pair);
        Some(if few { trials } else { bounds.trials(sample, pair.0, trials, options.confidence) })
    });
    let again: Vec<Option<f64>> = again.collect();
    let bounds = if again == trials { first } else { Bounds::of(points, &again, order, options.confidence) };
    let estimate = |((point, bounds), supported): ((&PointEstimate, Option<Bounds>), bool)| {
        let below = bounds.as_ref().and_then(|bounds| bounds.below).filter(|_| !supported);
        QuantileEstimate {
            q: point.q,
            value: point.value.filter(|value| value.is_finite()),
            lost: point.is_lost(),
            interval: bounds
                .filter(|_| options.intervals)
                .and_then(|bounds| bounds.ranks.interval(bounds.low, bounds.high)),
            supported,
            // If even the bound lies among the lost singletons, the largest finite one is a bound.
            lower_bound: below.zip(extent).map(|(value, extent)| value.min(extent.max) as f64),
            bound_is_lost: below == Some(INFINITE),
        }
    };
    points.iter().zip(bounds).zip(support).map(estimate).collect()
}

/// The order statistics around a quantile.
struct Bounds {
    ranks: RankBounds,
    low: Option<i64>,
    high: Option<i64>,
    below: Option<i64>,
}

impl Bounds {
    /// Those of each point with its number of `trials`, if it has one.
    fn of(points: &[PointEstimate], trials: &[Option<f64>], order: &Order<'_>, confidence: f64) -> Vec<Option<Bounds>> {
        let ranks = |(point, trials): (&PointEstimate, &Option<f64>)| {
            trials.map(|trials| RankBounds::of(point.q, point.n, trials, confidence))
        };
        let ranks: Vec<Option<RankBounds>> = points.iter().zip(trials).map(ranks).collect();
        let each: Vec<u64> = ranks.iter().flatten().flat_map(RankBounds::ranks).collect();
        let mut values = order.at(&each).into_iter();
        let mut next = |rank: Option<u64>| rank.and_then(|_| values.next());
        let mut bounds = |ranks: RankBounds| {
            let [low, high, below] = ranks.each().map(&mut next);
            Bounds { ranks, low, high, below }
        };
        ranks.into_iter().map(|ranks| ranks.map(&mut bounds)).collect()
    }

    /// The smallest of so `many` trials and those of the sample split at both ends, if enough singletons lie on both sides. An
    /// end near the quantile splits the sample as that does.
    fn trials(&self, sample: &Sample, point: &PointEstimate, many: f64, confidence: f64) -> f64 {
        let (singletons, n, q) = (&sample.singletons, sample.n() as f64, point.q);
        let is_far = |rank: Option<u64>, end: i64| {
            rank.is_some_and(|rank| (rank as f64 / n - q).abs() > NEAR * q.min(1.0 - q))
                && point.value != Some(end as f64)
        };
        let low = self.low.filter(|low| is_far(self.ranks.low, *low));
        let high = self.high.filter(|high| is_far(self.ranks.high, *high));
        let at_low = low.map(|low| TimeSeries::of_indicator(singletons, |value| value <= low));
        let at_high = high.map(|high| TimeSeries::of_indicator(singletons, |value| value < high));
        let ends = at_low.into_iter().chain(at_high).filter(|series| series.rarer() >= WITNESSES_MIN as f64);
        ends.map(|series| trials(&Dependence::of(&series), confidence)).fold(many, f64::min)
    }
}

/// The point values of `sample`, without intervals, bounds and effective sample size: what a comparison of many runs
/// needs of each. The standard deviation is optional, since it costs as much as all else but quantiles.
pub fn plain(sample: &Sample, quantiles: &[f64], with_stddev: bool) -> Description {
    let extent = Extent::of(&sample.singletons);
    let spread = extent.filter(|_| with_stddev).map(|extent| Spread::of(&sample.singletons, &extent));
    Description {
        n: sample.n(),
        lost: sample.n() - extent.map_or(0, |extent| extent.count),
        min: extent.map(|extent| extent.min as f64),
        max: extent.map(|extent| extent.max as f64),
        mean: extent.map(|extent| extent.mean()),
        stddev: spread.and_then(|spread| spread.stddev),
        effective_n: None,
        mean_interval: None,
        quantiles: if quantiles.is_empty() { Vec::new() } else { points(sample, quantiles) },
        slow_changes: None,
        rare_bursts: None,
        step: step_of(sample),
    }
    .without_decimals(sample.decimals)
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
            supported: n > 0 && has_support(sample, *q, values),
            lower_bound: None,
            bound_is_lost: false,
        }
    };
    quantiles.iter().zip(&positions).zip(values.chunks_exact(2)).map(point).collect()
}

/// Whether quantile `q`, which lies between the order statistics `values`, is supported; a sample of unknown order is taken as
/// independent.
fn has_support(sample: &Sample, q: f64, values: &[i64]) -> bool {
    let n = sample.n() as f64;
    if QuantilePosition::of(q, sample.n()).between(values[0], values[1]).is_infinite() {
        return sample.singletons.iter().filter(|value| **value == INFINITE).count() as f64 >= SUPPORT_MIN;
    }
    if !sample.ordered || !is_supported(q, n) || n * q.min(1.0 - q) >= AMPLE * SUPPORT_MIN {
        return is_supported(q, n);
    }
    is_supported(q, independent_n(&split(sample, q, values[0]), sample.n()))
}

/// The dependence at quantile `q` of the singletons up to `value`; infinite ones lie above every bound.
fn split(sample: &Sample, q: f64, value: i64) -> Dependence {
    let bound = value.min(INFINITE - 1);
    let series = TimeSeries::of_indicator(&sample.singletons, |value| value <= bound);
    let rarer = series.rarer() / sample.n() as f64;
    Dependence::of(&series).at_variance(q * (1.0 - q) / (rarer * (1.0 - rarer)))
}

/// The effective n, or all `n` if their dependence may be chance: otherwise one of five samples of exactly the size that
/// supports a quantile would not support it.
fn independent_n(dependence: &Dependence, n: u64) -> f64 {
    if dependence.is_striking { dependence.effective_n } else { n as f64 }
}

/// The point value of a quantile, and the dependence of the sample there.
struct PointEstimate {
    q: f64,
    /// In ns, infinite if it lies among the lost singletons; `None` of an empty sample.
    value: Option<f64>,
    /// `None` if the order is unknown.
    dependence: Option<Dependence>,
    n: u64,
}

impl PointEstimate {
    fn all(sample: &Sample, order: &Order<'_>, quantiles: &[f64]) -> Vec<PointEstimate> {
        let n = sample.n();
        let positions: Vec<QuantilePosition> = quantiles.iter().map(|q| QuantilePosition::of(*q, n)).collect();
        let ranks = quantiles.iter().zip(&positions);
        let ranks: Vec<u64> = ranks.flat_map(|(q, at)| [at.rank, at.rank + 1, at.split_rank(*q, n)]).collect();
        let values = order.at(&ranks);
        let point = |((&q, position), values): ((&f64, QuantilePosition), &[i64])| {
            let dependence = (sample.ordered && n > 0).then(|| split(sample, q, values[2]));
            PointEstimate { q, value: (n > 0).then(|| position.between(values[0], values[1])), dependence, n }
        };
        quantiles.iter().zip(positions).zip(values.chunks_exact(3)).map(point).collect()
    }

    fn is_lost(&self) -> bool {
        self.value.is_some_and(f64::is_infinite)
    }

    /// Whether enough effective observations lie beyond it if a `share` of them counts; a sample of unknown order is taken
    /// as independent.
    fn is_supported(&self, share: f64) -> bool {
        is_supported(self.q, share * self.dependence.as_ref().map_or(self.n as f64, |it| independent_n(it, self.n)))
    }
}
