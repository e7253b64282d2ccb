//! Exact order statistics of many singletons without sorting them.

use crate::sample::INFINITE;

/// Up to this many singletons sorting is cheaper than counting in buckets.
const SORTED_MAX: usize = 1 << 15;
/// Bits of precision of a bucket: neighbouring buckets differ by at most 1/2048 of their distance to the anchor.
const PRECISION_BITS: u32 = 11;
/// Singletons sampled to find the lower end of the distribution.
const EXCERPT: usize = 1000;
/// Buckets that cover every 64-bit offset on one side of the anchor.
const SIDE: usize = ((64 - PRECISION_BITS as usize) << PRECISION_BITS) + (1 << PRECISION_BITS);

/// The order of a sample's singletons, infinite ones last.
pub(super) struct Order<'a> {
    singletons: &'a [i64],
    finite: u64,
    form: Form,
}

enum Form {
    Sorted(Vec<i64>),
    /// Number of finite singletons in each bucket; buckets below the anchor come first.
    Counted {
        anchor: i64,
        counts: Vec<u64>,
    },
}

impl<'a> Order<'a> {
    pub(super) fn new(singletons: &'a [i64]) -> Order<'a> {
        if singletons.len() <= SORTED_MAX {
            let mut sorted: Vec<i64> = singletons.iter().copied().filter(|value| *value != INFINITE).collect();
            sorted.sort_unstable();
            return Order { singletons, finite: sorted.len() as u64, form: Form::Sorted(sorted) };
        }
        let anchor = anchor_of(singletons);
        let mut counts = vec![0_u64; 2 * SIDE];
        let mut finite = 0;
        for &value in singletons {
            if value != INFINITE {
                counts[bucket_of(value, anchor)] += 1;
                finite += 1;
            }
        }
        Order { singletons, finite, form: Form::Counted { anchor, counts } }
    }

    /// The values at `ranks` (from 0), in that order; [`INFINITE`] beyond the finite ones.
    pub(super) fn at(&self, ranks: &[u64]) -> Vec<i64> {
        match &self.form {
            Form::Sorted(sorted) => {
                ranks.iter().map(|rank| sorted.get(*rank as usize).copied().unwrap_or(INFINITE)).collect()
            }
            Form::Counted { anchor, counts } => self.pick(ranks, *anchor, counts),
        }
    }

    /// Collects the values of the few buckets that hold the wanted ranks, and selects among them.
    fn pick(&self, ranks: &[u64], anchor: i64, counts: &[u64]) -> Vec<i64> {
        let mut places: Vec<usize> = (0..ranks.len()).filter(|place| ranks[*place] < self.finite).collect();
        places.sort_unstable_by_key(|place| ranks[*place]);
        let mut found = vec![INFINITE; ranks.len()];
        let mut buckets: Vec<RankedBucket> = Vec::new();
        let (mut bucket, mut before) = (0, 0);
        for place in places {
            while before + counts[bucket] <= ranks[place] {
                before += counts[bucket];
                bucket += 1;
            }
            if let Some(value) = sole_value(bucket, anchor) {
                found[place] = value;
                continue;
            }
            if buckets.last().is_none_or(|last| last.index != bucket) {
                buckets.push(RankedBucket {
                    index: bucket,
                    values: Vec::with_capacity(counts[bucket] as usize),
                    wanted: Vec::new(),
                });
            }
            if let Some(last) = buckets.last_mut() {
                last.wanted.push((place, (ranks[place] - before) as usize));
            }
        }
        self.fill(&mut buckets, anchor);
        for bucket in &mut buckets {
            bucket.select(&mut found);
        }
        found
    }

    fn fill(&self, buckets: &mut [RankedBucket], anchor: i64) {
        if buckets.is_empty() {
            return;
        }
        // Index in `buckets` + 1; 0 if the values of that bucket are not wanted.
        let mut place_of = vec![0_u32; 2 * SIDE];
        for (place, bucket) in buckets.iter().enumerate() {
            place_of[bucket.index] = place as u32 + 1;
        }
        for &value in self.singletons {
            if value != INFINITE {
                let place = place_of[bucket_of(value, anchor)];
                if place != 0 {
                    buckets[place as usize - 1].values.push(value);
                }
            }
        }
    }
}

/// The values of one bucket that holds wanted ranks.
struct RankedBucket {
    index: usize,
    values: Vec<i64>,
    /// Pairs of the place in the result and the rank among these values, by ascending rank.
    wanted: Vec<(usize, usize)>,
}

impl RankedBucket {
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

/// The values at `ranks` (from 0), in that order, found by selection, which reorders `values`; [`INFINITE`] beyond them.
/// For few ranks and up to a hundred thousand values this takes less than half the time of an [`Order`].
pub(super) fn select(values: &mut [i64], ranks: &[u64]) -> Vec<i64> {
    let mut places: Vec<usize> = (0..ranks.len()).filter(|place| ranks[*place] < values.len() as u64).collect();
    places.sort_unstable_by_key(|place| ranks[*place]);
    let wanted: Vec<(usize, usize)> = places.into_iter().map(|place| (place, ranks[place] as usize)).collect();
    let mut found = vec![INFINITE; ranks.len()];
    select_recursively(values, 0, &wanted, &mut found);
    found
}

/// Selects the middle one of the `wanted` places and ranks, then recursively those on either side. The first of `values`
/// has rank `first` in the whole sample.
fn select_recursively(values: &mut [i64], first: usize, wanted: &[(usize, usize)], found: &mut [i64]) {
    let Some(&(place, rank)) = wanted.get(wanted.len() / 2) else { return };
    let (below, value, above) = values.select_nth_unstable(rank - first);
    found[place] = *value;
    let (left, right) = (&wanted[..wanted.len() / 2], &wanted[wanted.len() / 2 + 1..]);
    let has_same_rank = |(_, other): &&(usize, usize)| *other == rank;
    left.iter().chain(right).filter(has_same_rank).for_each(|(place, _)| found[*place] = *value);
    let lower = left.partition_point(|(_, other)| *other < rank);
    let higher = right.partition_point(|(_, other)| *other <= rank);
    select_recursively(below, first, &left[..lower], found);
    select_recursively(above, rank + 1, &right[higher..], found);
}

/// The 1st percentile of an excerpt: buckets are narrowest around it, outliers do not move it, and nearly all singletons
/// lie above it, so that the branch in [`bucket_of`] is predictable.
fn anchor_of(singletons: &[i64]) -> i64 {
    let stride = singletons.len().div_ceil(EXCERPT).max(1);
    let finite = |value: &i64| *value != INFINITE;
    let mut excerpt: Vec<i64> = singletons.iter().copied().step_by(stride).filter(finite).collect();
    excerpt.sort_unstable();
    excerpt.get(excerpt.len() / 100).copied().unwrap_or(0)
}

/// The bucket of `value`. Buckets are 1 ns wide near the anchor; farther away there are 2048 per power of two of the
/// distance to it.
#[inline]
fn bucket_of(value: i64, anchor: i64) -> usize {
    let place = |offset: u64| {
        let shift = 63 - (offset | (1 << PRECISION_BITS)).leading_zeros() - PRECISION_BITS;
        ((shift as usize) << PRECISION_BITS) + (offset >> shift) as usize
    };
    if value >= anchor {
        SIDE + place(value.wrapping_sub(anchor) as u64)
    } else {
        SIDE - 1 - place((anchor - 1).wrapping_sub(value) as u64)
    }
}

/// The only value in `bucket`, if the bucket is one nanosecond wide.
fn sole_value(bucket: usize, anchor: i64) -> Option<i64> {
    const EXACT: usize = 2 << PRECISION_BITS;
    if bucket >= SIDE {
        return (bucket - SIDE < EXACT).then(|| anchor + (bucket - SIDE) as i64);
    }
    let below = SIDE - 1 - bucket;
    (below < EXACT).then(|| anchor - 1 - below as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_ascend_with_the_value_and_cover_the_whole_range() {
        let distances = (0..62).flat_map(|bit| [(1_i64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let mut values: Vec<i64> = distances.flat_map(|distance| [7 + distance, 7 - distance]).collect();
        values.extend([i64::MIN, i64::MAX - 1]);
        values.sort_unstable();
        let buckets: Vec<usize> = values.iter().map(|value| bucket_of(*value, 7)).collect();
        assert!(buckets.is_sorted(), "{buckets:?}");
        for (value, bucket) in values.iter().zip(buckets) {
            assert!(sole_value(bucket, 7).is_none_or(|sole| sole == *value), "{value} in bucket {bucket}");
        }
        assert_eq!(bucket_of(i64::MAX - 1, i64::MIN), 2 * SIDE - 1);
        assert_eq!(bucket_of(i64::MIN, i64::MAX - 1), 0);
    }

    #[test]
    fn counting_and_selecting_agree_with_sorting() {
        let spread = |scale: u64| move |index: u64| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1) % scale;
        for (scale, base) in [(3, -1), (5_000, 44_000), (90_000_000, -45_000_000), (1 << 62, 0)] {
            let values: Vec<i64> = (0..40_000)
                .map(|index| if index % 9 == 0 { INFINITE } else { base + spread(scale)(index) as i64 })
                .collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let order = Order::new(&values);
            assert!(matches!(order.form, Form::Counted { .. }));
            let ranks = [39_999, 0, 7, 7, 20_000, 20_001, 35_000, 35_551, 35_554, 35_555, 35_556];
            let expected: Vec<i64> = ranks.iter().map(|rank| sorted[*rank as usize]).collect();
            assert_eq!(order.at(&ranks), expected, "scale {scale}");
            assert_eq!(select(&mut values.clone(), &ranks), expected, "scale {scale}");
            assert_eq!(select(&mut values.clone(), &[40_000, 39_999, u64::MAX]), [INFINITE; 3], "scale {scale}");
        }
    }
}
