//! The variance of a series' mean. Dependence makes it larger than that of independent values: by how much is estimated
//! from batch means of every batch size, of which the largest lower bound decides, and in short series from the lag-1
//! autocorrelation. Method, simulation and limits: docs/statistics.md, "Dependence".

/// The variance of the mean of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanVariance {
    /// In the square of the values' unit.
    pub variance: f64,
    /// Degrees of freedom of that variance; at least 1.
    pub freedom: f64,
    /// The number of independent values whose mean has the same variance; between 1 and the length of the series.
    pub effective_n: f64,
    /// Whether dependence is beyond what independent values show by chance.
    pub is_striking: bool,
}

/// Most batches of a ladder.
const CELLS_MAX: usize = 8192;
/// Fewest batches of a ladder.
const BATCHES_MIN: usize = 8;
/// From so many batches on the estimates of neighbouring batch sizes are averaged; with fewer the trend goes on.
const BATCHES_MANY: usize = 32;
/// Standard errors below a variance of a likely lower bound: 95 % by the normal distribution.
const LIKELY: f64 = 1.65;
/// Standard errors of what is hardly chance: one in 2,000 by the normal distribution.
const STRIKING: f64 = 3.3;
/// Standard errors of a lag-1 autocorrelation that is hardly chance: fewer, as it is one estimate and not that of each
/// batch size, and short series show no more.
const STRIKING_LAG: f64 = 2.5;
/// A standard deviation of so small a share of the largest value is one of rounding.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

impl MeanVariance {
    /// Of a series of at least ten values, in their order.
    pub fn of(series: &[f64]) -> MeanVariance {
        let n = series.len() as f64;
        // As shares of the largest value, whose fourth power does not overflow.
        let scale = series.iter().fold(f64::MIN_POSITIVE, |most, value| value.abs().max(most));
        let centred = centred(&series.iter().map(|value| value / scale).collect::<Vec<_>>());
        let second = moment(&centred, 2);
        let independent = Level::independent(n, second, moment(&centred, 4));
        if second.sqrt() <= ROUNDING {
            return MeanVariance { variance: 0.0, freedom: n - 1.0, effective_n: n, is_striking: false };
        }
        let (ladder, correlation) = (Ladder::of(&centred), autocorrelation(&centred));
        let found = ladder.variance(independent).larger(autoregressive(correlation, independent));
        let is_larger = |level: &Level| level.lower_bound(STRIKING) > independent.variance;
        MeanVariance {
            variance: found.variance / n * scale * scale,
            freedom: found.freedom,
            effective_n: (n * independent.variance / found.variance).clamp(1.0, n),
            is_striking: correlation > STRIKING_LAG / n.sqrt() || ladder.levels.iter().any(is_larger),
        }
    }
}

/// An estimate of the long-run variance: that of the mean times the length of the series.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimate {
    variance: f64,
    freedom: f64,
}

impl Estimate {
    fn larger(self, other: Estimate) -> Estimate {
        if other.variance > self.variance { other } else { self }
    }
}

/// The estimate at one batch size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level {
    /// The number of batches; that of the values if each is a batch.
    batches: f64,
    variance: f64,
    /// Degrees of freedom of normal batch means.
    freedom: f64,
    /// Of the batch means; 3 if they are normal.
    kurtosis: f64,
}

impl Level {
    /// The values themselves.
    fn independent(n: f64, second: f64, fourth: f64) -> Level {
        let kurtosis = if second > 0.0 { fourth / (second * second) } else { 3.0 };
        Level { batches: n, variance: second * n / (n - 1.0), freedom: n - 1.0, kurtosis }
    }

    /// The finest batches, which do not overlap, of a series of `n`.
    fn finest(sums: &[f64], n: f64) -> Level {
        let k = sums.len() as f64;
        Level {
            batches: k,
            variance: moment(sums, 2) * k * k / ((k - 1.0) * n),
            freedom: k - 1.0,
            kurtosis: kurtosis(sums),
        }
    }

    /// Batches of two of the next finer level, each of which begins one of them later (Meketon and Schmeiser 1984).
    fn overlapping(finer: &[f64], n: f64) -> Level {
        let sums: Vec<f64> = finer.windows(2).map(|pair| pair[0] + pair[1]).collect();
        let k = finer.len() as f64 / 2.0;
        Level {
            batches: k,
            variance: moment(&sums, 2) * (k / n) / (1.0 - 1.0 / k),
            freedom: 4.0 * (k - 1.0) / 3.0,
            kurtosis: kurtosis(&sums),
        }
    }

    /// So many standard errors of the variance of normal batch means below it.
    fn lower_bound(&self, errors: f64) -> f64 {
        self.variance / (1.0 + errors * (2.0 / self.freedom).sqrt())
    }

    /// The degrees of freedom left by means that are not normal: few bursts give about two for each.
    fn freedom(&self) -> f64 {
        let share = if self.kurtosis > 1.0 { (2.0 / (self.kurtosis - 1.0)).min(1.0) } else { 1.0 };
        (self.freedom * share).max(1.0)
    }
}

/// The estimates at batch sizes that double, from the finest on.
struct Ladder {
    levels: Vec<Level>,
}

impl Ladder {
    /// Of a centred series; without a level if it has fewer values than the fewest batches.
    fn of(centred: &[f64]) -> Ladder {
        let n = centred.len();
        let most = n.min(CELLS_MAX);
        let mut levels = Vec::new();
        if most < BATCHES_MIN {
            return Ladder { levels };
        }
        let k = 1_usize << most.ilog2();
        let mut sums: Vec<f64> =
            (0..k).map(|cell| centred[cell * n / k..(cell + 1) * n / k].iter().sum::<f64>()).collect();
        levels.push(Level::finest(&sums, n as f64));
        while sums.len() >= 2 * BATCHES_MIN {
            levels.push(Level::overlapping(&sums, n as f64));
            sums = sums.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
        }
        Ladder { levels }
    }

    /// The estimate of the level with the largest lower bound, or of the values as they are if it is theirs.
    fn variance(&self, independent: Level) -> Estimate {
        let bounds = || self.levels.iter().map(|level| level.lower_bound(LIKELY)).enumerate();
        let chosen = bounds().max_by(|one, other| one.1.total_cmp(&other.1));
        match chosen.filter(|(_, bound)| *bound > independent.variance) {
            None => Estimate { variance: independent.variance, freedom: independent.freedom() },
            Some((index, bound)) => {
                Estimate { variance: self.smoothed(index, bound), freedom: self.levels[index].freedom() }
            }
        }
    }

    /// The variance at a level, with those of the finer ones that reach its lower bound; with few batches the increase from
    /// the next finer one is taken to go on.
    fn smoothed(&self, index: usize, bound: f64) -> f64 {
        let level = &self.levels[index];
        if level.batches < BATCHES_MANY as f64 {
            let finer = index.checked_sub(1).map_or(level.variance, |finer| self.levels[finer].variance);
            return level.variance + (level.variance - finer).max(0.0);
        }
        let near: Vec<f64> =
            self.levels[..=index].iter().map(|level| level.variance).skip_while(|variance| *variance < bound).collect();
        near.iter().sum::<f64>() / near.len() as f64
    }
}

/// Most that the lag-1 autocorrelation of a short series is taken for.
const AUTOCORRELATION_MAX: f64 = 0.97;

/// The lag-1 autocorrelation.
fn autocorrelation(centred: &[f64]) -> f64 {
    let lagged: f64 = centred.windows(2).map(|pair| pair[0] * pair[1]).sum();
    lagged / (moment(centred, 2) * centred.len() as f64)
}

/// The long-run variance of a first-order autoregressive series with this lag-1 `autocorrelation`, from which its bias of
/// (1 + 4ρ)/n is taken (Marriott and Pope 1954; Kendall 1954). Batches of a short series are too few to show dependence.
fn autoregressive(autocorrelation: f64, independent: Level) -> Estimate {
    let n = independent.batches;
    let correlation = ((autocorrelation + 1.0 / n) / (1.0 - 4.0 / n)).clamp(0.0, AUTOCORRELATION_MAX);
    let factor = (1.0 + correlation) / (1.0 - correlation);
    // The variance of dependent values about their own mean is too small.
    let seen = (1.0 - (factor - 1.0) / (n - 1.0)).max(0.2);
    let square = correlation * correlation;
    let freedom = (independent.freedom * (1.0 - square) / (1.0 + square)).max(1.0);
    Estimate { variance: independent.variance * factor / seen, freedom }
}

fn centred(series: &[f64]) -> Vec<f64> {
    let mean = series.iter().sum::<f64>() / series.len() as f64;
    series.iter().map(|value| value - mean).collect()
}

/// The mean of so high a power of values around 0.
fn moment(centred: &[f64], power: i32) -> f64 {
    centred.iter().map(|value| value.powi(power)).sum::<f64>() / centred.len() as f64
}

fn kurtosis(sums: &[f64]) -> f64 {
    let own = centred(sums);
    let second = moment(&own, 2);
    if second > 0.0 { moment(&own, 4) / (second * second) } else { 3.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::dependence::tests::series;

    /// The variance of the mean of an autoregressive series is (1 + c) / (1 − c) times that of an independent one.
    #[test]
    fn effective_n_follows_the_theory() {
        for (n, coefficient) in [(10_000, 0.3), (10_000, 0.5), (10_000, 0.8), (10_000, 0.9), (400, 0.5)] {
            let got = MeanVariance::of(&series(n, coefficient)).effective_n / n as f64;
            let expected = (1.0 - coefficient) / (1.0 + coefficient);
            assert!((got / expected - 1.0).abs() < 0.3, "{n} at {coefficient}: {got:.4}, theory {expected:.4}");
        }
        assert!(MeanVariance::of(&series(10_000, 0.0)).effective_n > 9_000.0);
        assert_eq!(MeanVariance::of(&series(10_000, -0.4)).effective_n, 10_000.0, "never more than there are");
    }

    #[test]
    fn independent_values_have_the_variance_of_their_mean() {
        let values = series(64, -0.4);
        let mean = values.iter().sum::<f64>() / 64.0;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 63.0 / 64.0;
        let found = MeanVariance::of(&values);
        assert!((found.variance / variance - 1.0).abs() < 1e-12 && found.freedom == 63.0, "{found:?}");
    }

    #[test]
    fn equal_values_have_no_variance() {
        for value in [7.0, 7.3, -0.1, 1e300, 0.0] {
            let found = MeanVariance::of(&[value; 12]);
            let expected = MeanVariance { variance: 0.0, freedom: 11.0, effective_n: 12.0, is_striking: false };
            assert_eq!(found, expected, "{value}");
        }
    }

    /// A slow square wave under strong noise: no single autocorrelation is significant, but batch means show it.
    #[test]
    fn slow_dependence_below_the_noise_is_found() {
        let wave = |place: usize| if (place / 512).is_multiple_of(2) { 5e4 } else { -5e4 };
        let both: Vec<f64> = series(8_192, 0.0).iter().enumerate().map(|(place, value)| value + wave(place)).collect();
        let found = MeanVariance::of(&both);
        assert!(found.effective_n < 4_096.0, "{found:?}");
    }

    /// One burst in 8,000: its variance has hardly a degree of freedom.
    #[test]
    fn few_bursts_leave_few_degrees_of_freedom() {
        let values: Vec<f64> = (0..8_000).map(|place| f64::from(u8::from((3_000..3_100).contains(&place)))).collect();
        let found = MeanVariance::of(&values);
        assert!(found.freedom < 4.0 && found.effective_n < 200.0, "{found:?}");
    }
}
