//! Point values of a sample and nothing else: what a comparison of many runs needs of each.

use super::batches::Batches;
use super::dependence::Dependence;
use super::description::{Description, QuantileEstimate};
use super::moments::{Extent, Spread};
use super::order::{Order, select};
use super::quantile::{QuantilePosition, SUPPORT_MIN, is_supported};
use crate::sample::{INFINITE, Sample};

/// A quantile with so many times the singletons beyond it that support takes is supported without a look at their
/// dependence: a hundred consecutive ones would have to be worth one.
const AMPLE: f64 = 100.0;

/// Up to so many singletons a copy of them and a selection are quicker than counting them in buckets.
const SELECTED_MAX: u64 = 1 << 18;

/// The point values of `sample`, with the standard deviation if it is asked for: that costs as much as all else but
/// quantiles. Neither intervals nor bounds, and not what the sample is worth.
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
        }
    };
    quantiles.iter().zip(&positions).zip(values.chunks_exact(2)).map(point).collect()
}

/// Whether enough lies beyond quantile `q`, whose lower order statistic is `value`; without order as if all were
/// independent.
fn has_support(sample: &Sample, q: f64, value: i64) -> bool {
    let n = sample.n() as f64;
    if !sample.ordered || !is_supported(q, n) || n * q.min(1.0 - q) >= AMPLE * SUPPORT_MIN {
        return is_supported(q, n);
    }
    let bound = value.min(INFINITE - 1);
    is_supported(q, Dependence::of(&Batches::of_indicator(&sample.singletons, |value| value <= bound)).effective_n)
}
