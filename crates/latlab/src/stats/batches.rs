//! A series summed in batches, so that dependence over long and short lags can be seen at the price of one pass.

/// Up to so many singletons every batch holds exactly one, and nothing is lost by summing; beyond it there are
/// between half as many and as many batches, enough to know a variance to 2 %.
pub(super) const BATCHES_MAX: u64 = 10_000;

/// A centred series, summed in batches of equal size; a last, shorter one is left out.
pub(super) struct Batches {
    /// One per batch, in order.
    pub(super) sums: Vec<f64>,
    /// Singletons in a batch.
    pub(super) size: usize,
    /// Singletons in all.
    pub(super) n: u64,
    /// Their variance (n), as if they were independent.
    pub(super) variance: f64,
}

impl Batches {
    /// How many singletons a batch holds where there are `n`.
    pub(super) fn size_for(n: u64) -> usize {
        n.div_ceil(BATCHES_MAX).max(1) as usize
    }

    /// The series "1 where a singleton is a hit, else 0", centred.
    pub(super) fn of_indicator(singletons: &[i64], is_hit: impl Fn(i64) -> bool) -> Batches {
        let n = singletons.len() as u64;
        let size = Batches::size_for(n);
        let hits_in = |chunk: &[i64]| chunk.iter().map(|value| u64::from(is_hit(*value))).sum::<u64>();
        let chunks = singletons.chunks_exact(size);
        let rest = hits_in(chunks.remainder());
        let counts: Vec<u64> = chunks.map(hits_in).collect();
        let chance = (counts.iter().sum::<u64>() + rest) as f64 / n.max(1) as f64;
        let expected = chance * size as f64;
        let sums = counts.into_iter().map(|count| count as f64 - expected).collect();
        Batches { sums, size, n, variance: chance * (1.0 - chance) }
    }
}
