//! A quantile of the sample, and what the sample is worth around it.

use super::batches::Batches;
use super::dependence::{BlockLength, Dependence};
use super::order::Order;
use super::quantile::{QuantilePosition, RankBounds, is_supported};
use super::wishes::DescribeOptions;
use crate::sample::{INFINITE, Sample};

/// A quantile's point value and its evidence.
pub(super) struct PointEstimate {
    /// Which, in (0, 1).
    pub(super) q: f64,
    /// Between which order statistics.
    pub(super) position: QuantilePosition,
    /// In ns, infinite where it fell among the lost; none in an empty sample.
    pub(super) value: Option<f64>,
    /// None where the order is unknown.
    split: Option<Split>,
    n: u64,
}

/// The sample split in "at most the quantile" and "beyond it".
struct Split {
    bound: i64,
    effective_n: f64,
}

impl PointEstimate {
    /// The wished quantiles of `sample`, whose `order` is known.
    pub(super) fn all(sample: &Sample, order: &Order<'_>, quantiles: &[f64]) -> Vec<PointEstimate> {
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

    /// Whether enough effective observations lie beyond it; without order as if all were independent.
    pub(super) fn is_supported(&self) -> bool {
        is_supported(self.q, self.split.as_ref().map_or(self.n as f64, |split| split.effective_n))
    }

    /// Whether so few singletons lie beyond it that resampling them means nothing.
    pub(super) fn is_thin(&self) -> bool {
        self.position.is_thin(self.n)
    }

    /// Order statistics around the quantile, where an interval or a bound is to be built on them.
    pub(super) fn bounds(&self, supported: bool, wishes: &DescribeOptions) -> Option<RankBounds> {
        let split = self.split.as_ref()?;
        let needed = wishes.intervals || !supported;
        needed.then(|| RankBounds::of(self.q, self.n, split.effective_n, wishes.confidence))
    }

    /// The blocks in which to resample for this quantile; none for a thin tail.
    pub(super) fn block(&self, singletons: &[i64]) -> Option<BlockLength> {
        let bound = self.split.as_ref().filter(|_| !self.is_thin())?.bound;
        Some(BlockLength::of(&Batches::of_indicator(singletons, |value| value <= bound).sums))
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
