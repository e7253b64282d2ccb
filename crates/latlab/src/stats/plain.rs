//! Point values of a sample and nothing else: what a comparison of many runs needs of each.

use super::batches::Batches;
use super::dependence::Dependence;
use super::moments::{Extent, Spread};
use super::order::Order;
use super::quantile::{Position, SUPPORT_MIN, is_supported};
use crate::sample::{INFINITE, Sample};

/// A quantile with so many times the singletons beyond it that support takes is supported without a look at their
/// dependence: a hundred consecutive ones would have to be worth one.
const AMPLE: f64 = 100.0;

/// Point values.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainFigures {
    /// Singletons, finite or not.
    pub n: u64,
    /// Of them infinite.
    pub lost: u64,
    /// Over the finite ones, as are the next three; none where there is none.
    pub min: Option<i64>,
    /// Largest finite.
    pub max: Option<i64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Sample standard deviation, where it was asked for; none below two.
    pub stddev: Option<f64>,
    /// As asked for, in that order.
    pub quantiles: Vec<PlainQuantile>,
}

/// One quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlainQuantile {
    /// Which, in (0, 1).
    pub q: f64,
    /// None in an empty sample; infinite among the lost.
    pub value: Option<f64>,
    /// At least 10 effective observations lie beyond it.
    pub supported: bool,
}

/// The figures of `sample`, with the standard deviation if it is asked for: that costs as much as all else but quantiles.
pub fn plain(sample: &Sample, quantiles: &[f64], with_stddev: bool) -> PlainFigures {
    let extent = Extent::of(&sample.singletons);
    let spread = extent.filter(|_| with_stddev).map(|extent| Spread::of(&sample.singletons, &extent));
    PlainFigures {
        n: sample.n(),
        lost: sample.n() - extent.map_or(0, |extent| extent.count),
        min: extent.map(|extent| extent.min),
        max: extent.map(|extent| extent.max),
        mean: extent.map(|extent| extent.mean()),
        stddev: spread.and_then(|spread| spread.stddev),
        quantiles: if quantiles.is_empty() { Vec::new() } else { points(sample, quantiles) },
    }
}

fn points(sample: &Sample, quantiles: &[f64]) -> Vec<PlainQuantile> {
    let n = sample.n();
    let positions: Vec<Position> = quantiles.iter().map(|q| Position::of(*q, n)).collect();
    let ranks: Vec<u64> = positions.iter().flat_map(|at| [at.rank, at.rank + 1]).collect();
    let values = Order::new(&sample.singletons).at(&ranks);
    let point = |((q, position), values): ((&f64, &Position), &[i64])| PlainQuantile {
        q: *q,
        value: (n > 0).then(|| position.between(values[0], values[1])),
        supported: n > 0 && has_support(sample, *q, values[0]),
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
