//! Serial dependence of the singletons of a run, and the effective sample size that it leaves.
//!
//! The autocovariances of a series are summed under the flat-top window of Politis and Romano (1995), its width chosen
//! by the rule of Politis (2003); the same sums give the block length of the bootstrap (Politis and White 2004, corrected
//! by Patton, Politis and White 2009). Batch sums show dependence over long lags at the cost of one pass.

/// Up to this many singletons each batch holds one of them; beyond it there are between half as many and as many
/// batches, which give a variance to within 2 %.
const BATCHES_MAX: u64 = 10_000;

/// The sums of a centred series over batches of equal size; a shorter last batch is left out.
pub(super) struct Batches {
    /// One per batch, in order.
    pub(super) sums: Vec<f64>,
    /// Singletons in a batch.
    pub(super) size: usize,
    /// Singletons of the whole series.
    pub(super) n: u64,
    /// Variance of the singletons (divided by n), as if they were independent.
    pub(super) variance: f64,
}

impl Batches {
    /// The number of singletons in a batch of a series of `n`.
    pub(super) fn size_for(n: u64) -> usize {
        n.div_ceil(BATCHES_MAX).max(1) as usize
    }

    /// The centred series that is 1 where a singleton is a hit and 0 elsewhere.
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

/// The estimate from larger batches replaces that from smaller ones only if it is larger by this many standard errors.
const REPLACING_ERRORS: f64 = 3.0;
/// The largest batches are still this many.
const BATCHES_MIN: usize = 64;
/// Autocovariances of fewer values are not estimated.
const VALUES_MIN: usize = 10;

/// The effective sample size of a dependent series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dependence {
    /// The number of independent observations whose mean has the same variance; between 1 and n.
    pub(super) effective_n: f64,
    /// Degrees of freedom of that variance.
    pub(super) freedom: f64,
}

impl Dependence {
    /// Takes the series as independent unless the estimate at some batch size shows otherwise.
    pub(super) fn of(batches: &Batches) -> Dependence {
        let n = batches.n as f64;
        let (mut variance, mut freedom) = (batches.variance, (n - 1.0).max(1.0));
        if variance > 0.0 {
            let (mut sums, mut size) = (batches.sums.clone(), batches.size as f64);
            while sums.len() >= VALUES_MIN {
                let view = LongRun::of(&sums);
                if view.variance / size > variance * (1.0 + REPLACING_ERRORS * view.error) {
                    (variance, freedom) = (view.variance / size, view.freedom);
                }
                if sums.len() < 2 * BATCHES_MIN {
                    break;
                }
                sums = sums.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
                size *= 2.0;
            }
        }
        let effective_n = if variance > 0.0 { (n * batches.variance / variance).clamp(1.0, n.max(1.0)) } else { n };
        Dependence { effective_n, freedom }
    }
}

/// The long-run variance of a series: that of its mean, times its length.
struct LongRun {
    variance: f64,
    freedom: f64,
    /// Relative standard error of the variance of an independent series.
    error: f64,
}

impl LongRun {
    fn of(series: &[f64]) -> LongRun {
        let mut covariances = Autocovariances::of(series);
        let k = series.len() as f64;
        let width = covariances.window_width();
        let window: f64 = 1.0 + 2.0 * (1..=width).map(|lag| flat_top(lag, width)).sum::<f64>();
        // Centring on the series' own mean removes window/k of the variance.
        let variance = covariances.windowed_sum(width) / (1.0 - (window / k).min(0.5));
        let freedom = if width == 0 { k - 1.0 } else { (0.75 * k / width as f64).max(1.0) };
        let error = ((covariances.kurtosis - 1.0).max(2.0) / k).sqrt();
        LongRun { variance, freedom, error }
    }
}

/// The block length of a stationary bootstrap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BlockLength {
    /// Mean length in singletons, at least 1.
    pub(super) length: f64,
    /// The share of the variance that blocks of this length lose because dependence ends at their ends.
    pub(super) lost_variance: f64,
}

impl BlockLength {
    /// Blocks of one singleton.
    const SINGLE: BlockLength = BlockLength { length: 1.0, lost_variance: 0.0 };

    pub(super) fn of(series: &[f64]) -> BlockLength {
        if series.len() < VALUES_MIN {
            return BlockLength::SINGLE;
        }
        let mut covariances = Autocovariances::of(series);
        if covariances.at(0) <= 0.0 {
            return BlockLength::SINGLE;
        }
        // One lag further than for the variance, as in the published code of the method: blocks that are a little too
        // long cost less than blocks that are too short.
        let width = (covariances.window_width() + 2).min(covariances.longest);
        let mut weighted = |lag: usize| flat_top(lag, width) * lag as f64 * covariances.at(lag);
        let slope = 2.0 * (1..=width).map(&mut weighted).sum::<f64>();
        let long_run = covariances.windowed_sum(width);
        let n = series.len() as f64;
        let longest = (3.0 * n.sqrt()).ceil().min(n / 3.0);
        if long_run <= 0.0 {
            return BlockLength { length: longest, lost_variance: 0.0 };
        }
        let ratio = slope / long_run;
        let length = (ratio * ratio * n).cbrt().clamp(1.0, longest);
        BlockLength { length, lost_variance: (ratio / length).clamp(0.0, 0.5) }
    }

    pub(super) fn longer(self, other: BlockLength) -> BlockLength {
        if other.length > self.length { other } else { self }
    }
}

/// Autocovariances of a series from lag 0 up to the longest that the rule for the window may use. Each is computed on
/// first use: most series have no large autocorrelation and need six of a hundred.
struct Autocovariances {
    centred: Vec<f64>,
    /// From lag 0, as far as they were used.
    known: Vec<f64>,
    longest: usize,
    length: f64,
    patience: usize,
    kurtosis: f64,
}

impl Autocovariances {
    fn of(series: &[f64]) -> Autocovariances {
        let length = series.len() as f64;
        let mean = series.iter().sum::<f64>() / length;
        let centred: Vec<f64> = series.iter().map(|value| value - mean).collect();
        let patience = length.log10().sqrt().ceil().max(5.0) as usize;
        let longest = (length.sqrt().ceil() as usize + patience).min(series.len() - 1);
        let fourth = centred.iter().map(|value| value.powi(4)).sum::<f64>() / length;
        let mut of = Autocovariances { centred, known: Vec::new(), longest, length, patience, kurtosis: 3.0 };
        let own = of.at(0);
        if own > 0.0 {
            of.kurtosis = fourth / (own * own);
        }
        of
    }

    fn at(&mut self, lag: usize) -> f64 {
        while self.known.len() <= lag {
            self.known.push(inner_product(&self.centred, &self.centred[self.known.len()..]) / self.length);
        }
        self.known[lag]
    }

    /// Twice the lag after which several consecutive autocorrelations are within the noise (Politis 2003).
    fn window_width(&mut self) -> usize {
        let noise = 2.0 * (self.length.log10() / self.length).sqrt() * self.at(0);
        let mut insignificant = 0;
        let mut last_significant = 0;
        for lag in 1..=self.longest {
            if self.at(lag).abs() > noise {
                (insignificant, last_significant) = (0, lag);
            } else {
                insignificant += 1;
                if insignificant == self.patience {
                    break;
                }
            }
        }
        (2 * last_significant).min(self.longest)
    }

    fn windowed_sum(&mut self, width: usize) -> f64 {
        self.at(0) + 2.0 * (1..=width).map(|lag| flat_top(lag, width) * self.at(lag)).sum::<f64>()
    }
}

/// 1 up to half the width, then falling to 0 at the width.
fn flat_top(lag: usize, width: usize) -> f64 {
    (2.0 * (1.0 - lag as f64 / width as f64)).min(1.0)
}

/// Four independent sums, which a processor can overlap; the shorter series sets the length.
fn inner_product(left: &[f64], right: &[f64]) -> f64 {
    let length = left.len().min(right.len());
    let (left, right) = (&left[..length], &right[..length]);
    let mut sums = [0.0; 4];
    let (left_quads, right_quads) = (left.chunks_exact(4), right.chunks_exact(4));
    let rest: f64 = left_quads.remainder().iter().zip(right_quads.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in left_quads.zip(right_quads) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An autoregressive series over the high bits of a linear congruential generator; whole numbers, so that every
    /// language produces the same.
    pub(in crate::stats) fn series(n: usize, coefficient: f64) -> Vec<f64> {
        let (mut state, mut value) = (12_345_u64, 0.0);
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            value = coefficient * value + (state >> 33) as f64 / 2_147_483_648.0 - 0.5;
            f64::round_ties_even(value * 1e6)
        };
        (0..n).map(|_| next()).collect()
    }

    fn effective_n(series: &[f64]) -> f64 {
        let n = series.len() as f64;
        let mean = series.iter().sum::<f64>() / n;
        let sums: Vec<f64> = series.iter().map(|value| value - mean).collect();
        let variance = sums.iter().map(|value| value * value).sum::<f64>() / n;
        Dependence::of(&Batches { sums, size: 1, n: series.len() as u64, variance }).effective_n
    }

    /// `arch.bootstrap.optimal_block_length(series)["stationary"]`, arch 8.0, on the series above.
    #[test]
    fn block_lengths_agree_with_the_arch_package() {
        let cases = [(500, 0.0, 0.598), (500, 0.5, 7.058), (1000, 0.8, 40.878), (2000, -0.4, 11.335)];
        for (n, coefficient, expected) in cases {
            let got = BlockLength::of(&series(n, coefficient)).length;
            let expected: f64 = f64::max(expected, 1.0);
            assert!((got / expected - 1.0).abs() < 0.01, "n {n}, coefficient {coefficient}: {got}, not {expected}");
        }
    }

    /// The variance of the mean of an autoregressive series is (1 + c) / (1 − c) times that of an independent one.
    #[test]
    fn effective_n_follows_the_theory() {
        for coefficient in [0.3, 0.5, 0.8, 0.9] {
            let got = effective_n(&series(10_000, coefficient)) / 10_000.0;
            let expected = (1.0 - coefficient) / (1.0 + coefficient);
            assert!((got / expected - 1.0).abs() < 0.3, "coefficient {coefficient}: {got:.4}, theory {expected:.4}");
        }
        assert_eq!(effective_n(&series(10_000, 0.0)), 10_000.0, "independent values are worth what they are");
        assert_eq!(effective_n(&series(10_000, -0.4)), 10_000.0, "never more than that");
        assert_eq!(effective_n(&[7.0; 100]), 100.0);
    }

    /// A slow square wave under strong noise: no single autocorrelation is significant, but batch sums show it.
    #[test]
    fn slow_dependence_below_the_noise_of_every_lag_is_found_by_larger_batches() {
        let noise = series(8_192, 0.0);
        let wave = |place: usize| if (place / 512).is_multiple_of(2) { 4e4 } else { -4e4 };
        let both: Vec<f64> = noise.iter().enumerate().map(|(place, value)| value + wave(place)).collect();
        assert!(effective_n(&both) < 4_096.0, "effective n {}", effective_n(&both));
    }
}
