//! Exact order statistics of many singletons without sorting them.

use crate::sample::INFINITE;

/// Up to so many singletons sorting is cheaper than buckets.
const SORTED_MAX: usize = 1 << 15;
/// Bits of a value's offset that a bucket tells apart: neighbouring buckets differ by at most 1/2048.
const PRECISION_BITS: u32 = 11;
/// Buckets that cover every offset of 64 bits.
const BUCKETS: usize = ((64 - PRECISION_BITS as usize) << PRECISION_BITS) + (1 << PRECISION_BITS);

/// The order of a sample's singletons, infinite ones last.
pub(super) struct Order<'a> {
    singletons: &'a [i64],
    finite: u64,
    form: Form,
}

enum Form {
    /// All finite ones, sorted.
    Sorted(Vec<i64>),
    /// How many finite ones lie in each bucket of the offset from the smallest one.
    Counted { min: i64, counts: Vec<u64> },
}

impl<'a> Order<'a> {
    /// Of `singletons`, whose smallest is `min` (any value where no one is finite).
    pub(super) fn new(singletons: &'a [i64], min: i64) -> Order<'a> {
        if singletons.len() <= SORTED_MAX {
            let mut sorted: Vec<i64> = singletons.iter().copied().filter(|value| *value != INFINITE).collect();
            sorted.sort_unstable();
            return Order { singletons, finite: sorted.len() as u64, form: Form::Sorted(sorted) };
        }
        let mut counts = vec![0_u64; BUCKETS];
        let mut finite = 0;
        for &value in singletons {
            if value != INFINITE {
                counts[bucket_of(value, min)] += 1;
                finite += 1;
            }
        }
        Order { singletons, finite, form: Form::Counted { min, counts } }
    }

    /// The values at `ranks` (from 0), in that order; [`INFINITE`] beyond the finite ones.
    pub(super) fn at(&self, ranks: &[u64]) -> Vec<i64> {
        match &self.form {
            Form::Sorted(sorted) => {
                ranks.iter().map(|rank| sorted.get(*rank as usize).copied().unwrap_or(INFINITE)).collect()
            }
            Form::Counted { min, counts } => self.pick(ranks, *min, counts),
        }
    }

    /// Gathers the few buckets that hold the wanted ranks, and selects inside them.
    fn pick(&self, ranks: &[u64], min: i64, counts: &[u64]) -> Vec<i64> {
        let mut places: Vec<usize> = (0..ranks.len()).filter(|place| ranks[*place] < self.finite).collect();
        places.sort_unstable_by_key(|place| ranks[*place]);
        let mut found = vec![INFINITE; ranks.len()];
        let mut drawers: Vec<Drawer> = Vec::new();
        let (mut bucket, mut before) = (0, 0);
        for place in places {
            while before + counts[bucket] <= ranks[place] {
                before += counts[bucket];
                bucket += 1;
            }
            if let Some(value) = sole_value(bucket, min) {
                found[place] = value;
                continue;
            }
            if drawers.last().is_none_or(|drawer| drawer.bucket != bucket) {
                drawers.push(Drawer {
                    bucket,
                    values: Vec::with_capacity(counts[bucket] as usize),
                    wanted: Vec::new(),
                });
            }
            if let Some(drawer) = drawers.last_mut() {
                drawer.wanted.push((place, (ranks[place] - before) as usize));
            }
        }
        self.fill(&mut drawers, min);
        for drawer in &mut drawers {
            drawer.select(&mut found);
        }
        found
    }

    fn fill(&self, drawers: &mut [Drawer], min: i64) {
        if drawers.is_empty() {
            return;
        }
        let mut drawer_of = vec![0_u32; BUCKETS];
        for (index, drawer) in drawers.iter().enumerate() {
            drawer_of[drawer.bucket] = index as u32 + 1;
        }
        for &value in self.singletons {
            if value != INFINITE {
                let drawer = drawer_of[bucket_of(value, min)];
                if drawer != 0 {
                    drawers[drawer as usize - 1].values.push(value);
                }
            }
        }
    }
}

/// The values of one bucket, and which ranks among them are wanted for which place, ascending.
struct Drawer {
    bucket: usize,
    values: Vec<i64>,
    wanted: Vec<(usize, usize)>,
}

impl Drawer {
    fn select(&mut self, found: &mut [i64]) {
        let (mut rest, mut skipped) = (self.values.as_mut_slice(), 0);
        let mut last = None;
        for &(place, rank) in &self.wanted {
            if let Some((_, value)) = last.filter(|(last_rank, _)| *last_rank == rank) {
                found[place] = value;
                continue;
            }
            let (_, value, above) = std::mem::take(&mut rest).select_nth_unstable(rank - skipped);
            found[place] = *value;
            last = Some((rank, *value));
            skipped = rank + 1;
            rest = above;
        }
    }
}

/// Exact for small offsets, then 2048 buckets per power of two.
#[inline]
fn bucket_of(value: i64, min: i64) -> usize {
    let offset = value.wrapping_sub(min) as u64;
    let shift = 63 - (offset | (1 << PRECISION_BITS)).leading_zeros() - PRECISION_BITS;
    ((shift as usize) << PRECISION_BITS) + (offset >> shift) as usize
}

/// The value of every singleton in `bucket`, where the bucket is one nanosecond wide.
fn sole_value(bucket: usize, min: i64) -> Option<i64> {
    (bucket < 2 << PRECISION_BITS).then(|| min + bucket as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_rise_with_the_offset_and_cover_every_one() {
        let offsets = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]).chain([u64::MAX]);
        let mut offsets: Vec<u64> = offsets.collect();
        offsets.sort_unstable();
        let buckets: Vec<usize> = offsets.iter().map(|offset| bucket_of(*offset as i64, 0)).collect();
        assert!(buckets.is_sorted(), "{buckets:?}");
        assert_eq!(buckets.last(), Some(&(BUCKETS - 1)));
        assert_eq!(bucket_of(i64::MAX - 1, i64::MIN), BUCKETS - 1);
    }

    #[test]
    fn counted_order_is_the_sorted_one() {
        let spread = |scale: u64| move |index: u64| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1) % scale;
        for (scale, base) in [(3, -1), (5_000, 44_000), (90_000_000, -45_000_000), (1 << 62, 0)] {
            let values: Vec<i64> = (0..40_000)
                .map(|index| if index % 9 == 0 { INFINITE } else { base + spread(scale)(index) as i64 })
                .collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let order = Order::new(&values, sorted[0]);
            assert!(matches!(order.form, Form::Counted { .. }));
            let ranks = [39_999, 0, 7, 7, 20_000, 20_001, 35_000, 35_551, 35_554, 35_555, 35_556];
            let expected: Vec<i64> = ranks.iter().map(|rank| sorted[*rank as usize]).collect();
            assert_eq!(order.at(&ranks), expected, "scale {scale}");
        }
    }
}
