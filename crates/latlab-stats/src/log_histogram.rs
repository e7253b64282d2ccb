//! Histograms of times in buckets whose width grows with the value, as HdrHistogram's (Tene 2012) with two significant
//! digits: bounded in memory, and each value costs one increment.

use super::Bucket;

/// Buckets of each power of two: an edge differs from the next by less than 0.8 %.
const OCTAVE: u64 = 1 << OCTAVE_BITS;
const OCTAVE_BITS: u32 = 7;

/// Counts of values in ns. Negative values count as 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogHistogram {
    /// By index of the bucket, up to that of the largest value: at most 4,300 for values below 10 min.
    counts: Vec<u64>,
    n: u64,
    min: i64,
    max: i64,
}

impl LogHistogram {
    /// The histogram of the finite `singletons`.
    pub fn of(singletons: impl IntoIterator<Item = i64>) -> LogHistogram {
        let mut histogram = LogHistogram::default();
        singletons.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    pub fn record(&mut self, value: i64) {
        self.record_n(value, 1);
    }

    /// Counts `value` so many times, at least once.
    #[inline]
    pub fn record_n(&mut self, value: i64, times: u64) {
        let value = value.max(0);
        let index = index_of(value);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += times;
        self.min = if self.n == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.n += times;
    }

    /// Counts the values of `other` too.
    pub fn add(&mut self, other: &LogHistogram) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.min = if self.n == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.n += other.n;
    }

    pub const fn n(&self) -> u64 {
        self.n
    }

    /// The largest value; 0 without values.
    pub const fn max(&self) -> i64 {
        self.max
    }

    /// The value of rank ⌈q n⌉, at most 0.4 % off; `None` without values.
    pub fn quantile(&self, q: f64) -> Option<i64> {
        let rank = ((q * self.n as f64).ceil() as u64).clamp(1, self.n.max(1));
        let mut below = 0;
        let bucket = self.buckets().find(|bucket| {
            below += bucket.count;
            below >= rank
        })?;
        Some((bucket.low_ns + (bucket.high_ns - 1 - bucket.low_ns) / 2).clamp(self.min, self.max))
    }

    /// The buckets that are not empty, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(index, count)| Bucket { low_ns: low_of(index), high_ns: low_of(index + 1), count: *count })
    }

    /// Removes all values, and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.clear();
        (self.n, self.min, self.max) = (0, 0, 0);
    }
}

fn index_of(value: i64) -> usize {
    let value = value as u64;
    let shift = (u64::BITS - (value | (OCTAVE - 1)).leading_zeros()).saturating_sub(OCTAVE_BITS + 1);
    (u64::from(shift) * OCTAVE + (value >> shift)) as usize
}

/// The lower edge of the bucket at `index`.
fn low_of(index: usize) -> i64 {
    let index = index as u64;
    let shift = (index / OCTAVE).saturating_sub(1);
    let edge = u128::from(index - shift * OCTAVE) << shift;
    i64::try_from(edge).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_values_and_is_narrow() {
        let values = (0..62).flat_map(|bits| [-1, 0, 1, 77].map(|more| (1_i64 << bits) + more)).chain([i64::MAX]);
        for value in values {
            let (low, high) = (low_of(index_of(value)), low_of(index_of(value) + 1));
            assert!(low <= value && (value < high || high == i64::MAX), "{value}: {low}..{high}");
            assert!((high - low) as f64 <= 1.0 + low as f64 / OCTAVE as f64, "{value}: {low}..{high}");
        }
        assert!(index_of(600_000_000_000) < 4_300);
    }

    #[test]
    fn quantiles_are_within_their_bucket() {
        let histogram = LogHistogram::of((1..=10_000).map(|n| n * 1_000));
        assert_eq!((histogram.n(), histogram.max()), (10_000, 10_000_000));
        for (q, exact) in [(0.0, 1_000), (0.5, 5_000_000), (0.99, 9_900_000), (1.0, 10_000_000)] {
            let found = histogram.quantile(q).expect("values");
            assert!((found - exact).abs() as f64 <= 0.004 * exact as f64, "{q}: {found}");
        }
        assert_eq!(LogHistogram::of([7, 7, 7]).quantile(0.5), Some(7));
        let mut cleared = histogram;
        cleared.clear();
        assert_eq!((cleared.n(), cleared.max(), cleared.quantile(0.5)), (0, 0, None));
        cleared.record(-5);
        assert_eq!(cleared.quantile(0.5), Some(0));
    }
}
