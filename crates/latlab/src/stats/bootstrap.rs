//! Stationary bootstrap (Politis and Romano 1994): resampling in blocks of geometric length, wrapped around the end of
//! the series, preserves the dependence between neighbours.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::dependence::BlockLength;
use super::interval::{Interval, normal_below, student};
use super::quantile::QuantilePosition;
use crate::sample::INFINITE;

/// With this many the ends of a 95 % interval vary by about 3 % of its width between seeds.
const REPLICATES: usize = 1000;

/// The sample that is resampled, in the order of sending.
pub(super) struct Original<'a> {
    /// Including infinite ones.
    pub(super) singletons: &'a [i64],
    /// Of the finite ones; replicates are computed as offsets from it, to avoid cancellation.
    pub(super) mean: f64,
    pub(super) block: BlockLength,
}

/// Replicates of the mean and of each quantile, ascending.
pub(super) struct Replicates {
    means: Vec<f64>,
    quantiles: Vec<Vec<f64>>,
    n: f64,
    block: BlockLength,
}

impl Original<'_> {
    /// Replicates of the mean and of the quantiles at `positions`.
    pub(super) fn resample(&self, positions: &[QuantilePosition], seed: u64) -> Replicates {
        let n = self.singletons.len();
        let ranking = Ranking::of(self.singletons);
        let sums = PartialSums::of(self.singletons, self.mean);
        let mut blocks = Blocks::new(n, self.block.length, seed);
        let mut means = Vec::with_capacity(REPLICATES);
        let mut quantiles = vec![Vec::with_capacity(REPLICATES); positions.len()];
        let mut wanted: Vec<u64> = positions.iter().flat_map(QuantilePosition::ranks).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let (mut counts, mut drawn) = (vec![0_u16; n], Vec::with_capacity(wanted.len()));
        for _ in 0..REPLICATES {
            counts.fill(0);
            let (mut sum, mut finite, mut left) = (0.0, 0, n);
            while left > 0 {
                let (start, length) = blocks.next(left);
                left -= length;
                sum += sums.deviation[start + length] - sums.deviation[start];
                finite += sums.finite[start + length] - sums.finite[start];
                for rank in &ranking.of_place[start..start + length] {
                    counts[*rank as usize] += 1;
                }
            }
            if finite > 0 {
                means.push(self.mean + sum / f64::from(finite));
            }
            ranking.drawn(&counts, &wanted, &mut drawn);
            for (position, replicates) in positions.iter().zip(&mut quantiles) {
                let place = wanted.partition_point(|rank| *rank < position.rank);
                let next = if position.weight > 0.0 { place + 1 } else { place };
                replicates.push(position.between(drawn[place], drawn[next]));
            }
        }
        for replicates in quantiles.iter_mut().chain([&mut means]) {
            replicates.sort_unstable_by(f64::total_cmp);
        }
        Replicates { means, quantiles, n: n as f64, block: self.block }
    }
}

impl Replicates {
    pub(super) fn mean(&self, confidence: f64) -> Option<Interval> {
        self.expanded(&self.means, confidence)
    }

    /// The interval of the quantile at index `place` of the positions.
    pub(super) fn quantile(&self, place: usize, confidence: f64) -> Option<Interval> {
        self.expanded(&self.quantiles[place], confidence)
    }

    /// The expanded percentile interval (Hesterberg 2015). It is wider than that of plain percentiles for three reasons,
    /// all of which are due to a small number of blocks: a variance estimated from few blocks is itself uncertain, so t
    /// replaces the normal; blocks lose the dependence across their ends; and a replicate is centred on the mean of the
    /// sample instead of the true one.
    fn expanded(&self, replicates: &[f64], confidence: f64) -> Option<Interval> {
        let freedom = (self.n / self.block.length - 1.0).max(1.0);
        let centred = 1.0 - ((2.0 * self.block.length - 1.0) / self.n).min(0.5);
        let kept_variance = (1.0 - self.block.lost_variance) * centred;
        let reach = student(0.5 + confidence / 2.0, freedom) / kept_variance.sqrt();
        let skipped = (normal_below(-reach) * replicates.len() as f64) as usize;
        let (low, high) = (replicates.get(skipped)?, replicates.get(replicates.len().checked_sub(skipped + 1)?)?);
        Interval::between(*low, *high, confidence)
    }
}

/// The values in ascending order, and the rank of each element of the series, which is repeated twice for wrapping.
struct Ranking {
    sorted: Vec<i64>,
    of_place: Vec<u32>,
}

impl Ranking {
    fn of(singletons: &[i64]) -> Ranking {
        let mut places: Vec<u32> = (0..singletons.len() as u32).collect();
        places.sort_unstable_by_key(|place| (singletons[*place as usize], *place));
        let mut of_place = vec![0; 2 * singletons.len()];
        for (rank, place) in places.iter().enumerate() {
            of_place[*place as usize] = rank as u32;
            of_place[*place as usize + singletons.len()] = rank as u32;
        }
        Ranking { sorted: places.iter().map(|place| singletons[*place as usize]).collect(), of_place }
    }

    /// The values at the ascending ranks `wanted` of a replicate that contains each sorted value `counts` times.
    fn drawn(&self, counts: &[u16], wanted: &[u64], found: &mut Vec<i64>) {
        found.clear();
        let (mut rank, mut drawn) = (0, u64::from(counts[0]));
        for &wanted in wanted {
            while drawn <= wanted {
                rank += 1;
                drawn += u64::from(counts[rank]);
            }
            found.push(self.sorted[rank]);
        }
    }
}

/// Prefix sums of the series repeated twice: the sum of a block takes two look-ups, wrapped or not.
struct PartialSums {
    deviation: Vec<f64>,
    finite: Vec<u32>,
}

impl PartialSums {
    fn of(singletons: &[i64], mean: f64) -> PartialSums {
        let mut sums = PartialSums { deviation: vec![0.0], finite: vec![0] };
        let (mut deviation, mut finite) = (0.0, 0);
        for &value in singletons.iter().chain(singletons) {
            if value != INFINITE {
                deviation += value as f64 - mean;
                finite += 1;
            }
            sums.deviation.push(deviation);
            sums.finite.push(finite);
        }
        sums
    }
}

/// Draws blocks.
struct Blocks {
    rng: Pcg64Mcg,
    n: usize,
    /// Logarithm of the probability that a block continues by one element; 0 means never.
    log_continue: f64,
    /// The same probability as a share of 2^32.
    continue_of_32_bits: u64,
}

impl Blocks {
    /// Below this probability drawing step by step is cheaper than a logarithm.
    const STEPWISE_MAX: u64 = 3 << 30;

    fn new(n: usize, mean_length: f64, seed: u64) -> Blocks {
        let chance = 1.0 - 1.0 / mean_length.max(1.0);
        let log_continue = if chance > 0.0 { chance.ln() } else { 0.0 };
        Blocks {
            rng: Pcg64Mcg::seed_from_u64(seed),
            n,
            log_continue,
            continue_of_32_bits: (chance * 4_294_967_296.0) as u64,
        }
    }

    /// Start and length of the next block: uniform, and geometric but at most `left`.
    #[inline]
    fn next(&mut self, left: usize) -> (usize, usize) {
        let random = self.rng.next_u64();
        // The upper half gives the start without a division; its bias is negligible since n is far below 2^32.
        let start = (((random >> 32) * self.n as u64) >> 32) as usize;
        let mut chance = random & 0xffff_ffff;
        let mut length = 1;
        if self.continue_of_32_bits < Self::STEPWISE_MAX {
            while length < left && chance < self.continue_of_32_bits {
                length += 1;
                chance = self.rng.next_u64() >> 32;
            }
        } else {
            let uniform = (chance as f64 + 0.5) / 4_294_967_296.0;
            length += (uniform.ln() / self.log_continue) as usize;
        }
        (start, length.min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_the_mean_length_and_uniform_starts() {
        for mean_length in [1.0, 1.7, 7.5] {
            let mut blocks = Blocks::new(10, mean_length, 3);
            let (mut starts, mut total) = ([0; 10], 0);
            for _ in 0..20_000 {
                let (start, length) = blocks.next(usize::MAX);
                starts[start] += 1;
                total += length as u32;
            }
            let seen = f64::from(total) / 20_000.0;
            assert!((seen / mean_length - 1.0).abs() < 0.03, "mean length {seen}, wanted {mean_length}");
            assert!(starts.iter().all(|count| (1800..2200).contains(count)), "{starts:?}");
        }
    }

    #[test]
    fn a_block_as_long_as_the_series_reproduces_its_figures() {
        let singletons: Vec<i64> = (0..50).map(|value| if value == 7 { INFINITE } else { value }).collect();
        let mean = (49 * 50 / 2 - 7) as f64 / 49.0;
        let positions =
            [QuantilePosition::of(0.5, 50), QuantilePosition::of(0.25, 50), QuantilePosition::of(0.999, 50)];
        let replicates =
            Original { singletons: &singletons, mean, block: BlockLength { length: 1e12, lost_variance: 0.0 } }
                .resample(&positions, 1);
        assert!(replicates.means.iter().all(|value| (value - mean).abs() < 1e-9));
        assert!(replicates.quantiles[0].iter().all(|value| *value == 25.5));
        assert!(replicates.quantiles[1].iter().all(|value| *value == 13.25));
        assert!(replicates.quantiles[2].iter().all(|value| value.is_infinite()));
    }
}
