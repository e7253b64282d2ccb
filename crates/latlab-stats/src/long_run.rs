//! The variance of the mean of a dependent series, compared with that of independent values. It is estimated from batch
//! means of every batch size, the levels of a ladder; the level with the largest lower bound decides, unless a coarser one
//! contradicts it. Quantiles and shares are means of an indicator. Method, simulation and limits: docs/statistics.md,
//! "Dependence".

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
/// Standard errors by which the variance of few long batches exceeds that of many short ones: more, as nine of them are
/// compared in a sample, and short batches do not hold all of a fast dependence.
const STRIKING_SLOW: f64 = 3.4;
/// The lag-1 autocorrelation of a shorter series is mostly chance.
const LAG_VALUES_MIN: f64 = 10.0;
/// Changes are slow if the variance of at most this many batch means is larger than that of [`FAST_BATCHES`].
const SLOW_BATCHES_MAX: f64 = 32.0;
/// Batches with which those of slow changes are compared.
const FAST_BATCHES: f64 = 128.0;
/// Each of them has so many values at least.
const FAST_BATCH_MIN: f64 = 15.0;

/// A centred series in cells of equal length, which are the finest batches.
pub(super) struct TimeSeries {
    n: f64,
    /// Sums over the cells: as many as the largest power of two up to the length and to [`CELLS_MAX`].
    cells: Vec<f64>,
    squares: f64,
    /// Sum of the fourth powers.
    fourths: f64,
    /// Sum of the products of neighbours; `None` of a long series, whose batches show as much.
    lagged: Option<f64>,
    /// The values of an indicator on its rarer side; infinite for other series.
    rarer: f64,
}

impl TimeSeries {
    /// Of `n` deviations from their mean.
    pub(super) fn of_centred(n: usize, mut values: impl Iterator<Item = f64>) -> TimeSeries {
        let k = cell_count(n);
        let mut series = TimeSeries {
            n: n as f64,
            cells: Vec::with_capacity(k),
            squares: 0.0,
            fourths: 0.0,
            lagged: None,
            rarer: f64::INFINITY,
        };
        let (mut lagged, mut before) = (0.0, 0.0);
        for cell in 0..k {
            // Sums of each cell lose less to rounding.
            let (mut sum, mut squares, mut fourths) = (0.0, 0.0, 0.0);
            for value in values.by_ref().take((cell + 1) * n / k - cell * n / k) {
                let square = value * value;
                sum += value;
                squares += square;
                fourths += square * square;
                lagged += before * value;
                before = value;
            }
            series.cells.push(sum);
            series.squares += squares;
            series.fourths += fourths;
        }
        series.lagged = (n <= CELLS_MAX).then_some(lagged);
        series
    }

    /// The series that is 1 where a singleton is a hit and 0 elsewhere.
    pub(super) fn of_indicator(singletons: &[i64], is_hit: impl Fn(i64) -> bool) -> TimeSeries {
        let n = singletons.len();
        let hits_in = |values: &[i64]| values.iter().map(|value| u64::from(is_hit(*value))).sum::<u64>();
        let k = cell_count(n);
        let counts: Vec<u64> = (0..k).map(|cell| hits_in(&singletons[cell * n / k..(cell + 1) * n / k])).collect();
        let hits = counts.iter().sum::<u64>() as f64;
        let share = hits / n.max(1) as f64;
        let rarer = hits.min(n as f64 - hits);
        if n <= CELLS_MAX {
            let centred = singletons.iter().map(|value| if is_hit(*value) { 1.0 - share } else { -share });
            return TimeSeries { rarer, ..TimeSeries::of_centred(n, centred) };
        }
        let length = |cell: usize| ((cell + 1) * n / k - cell * n / k) as f64;
        let cells = counts.iter().enumerate().map(|(cell, count)| *count as f64 - share * length(cell)).collect();
        let power = |power: i32| hits * (1.0 - share).powi(power) + (n as f64 - hits) * share.powi(power);
        TimeSeries { n: n as f64, cells, squares: power(2), fourths: power(4), lagged: None, rarer }
    }

    /// The values of an indicator on its rarer side; infinite for other series.
    pub(super) fn rarer(&self) -> f64 {
        self.rarer
    }

    /// The sum of the squares about the mean, of which rounding has left a small one.
    pub(super) fn squares_about_mean(&self) -> f64 {
        let residue: f64 = self.cells.iter().sum();
        (self.squares - residue * residue / self.n).max(0.0)
    }
}

fn cell_count(n: usize) -> usize {
    1 << n.clamp(1, CELLS_MAX).ilog2()
}

/// What the dependence of a series on itself leaves of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dependence {
    /// The number of independent values whose mean has the same variance; between 1 and the length of the series.
    pub(super) effective_n: f64,
    /// Degrees of freedom of that variance; at least 1.
    pub(super) freedom: f64,
    /// Whether any dependence was found; if not, the values are taken as independent.
    pub(super) is_found: bool,
    /// Whether it is beyond what independent values show by chance.
    pub(super) is_striking: bool,
    /// Whether batches of a large part of the series vary more than those of a small part do.
    pub(super) is_slow: bool,
    /// The skewness of the mean; 0 for that of independent values, whose distribution is taken as normal.
    pub(super) skewness: f64,
    /// About the number of bursts that the variance comes from; infinite for independent values.
    pub(super) bursts: f64,
    /// The long-run variance: that of the mean times the length.
    variance: f64,
    /// The length of the series.
    pub(super) n: f64,
}

impl Dependence {
    pub(super) fn of(series: &TimeSeries) -> Dependence {
        let independent = Level::independent(series);
        let own = Estimate {
            variance: independent.variance,
            freedom: independent.freedom(),
            skewness: 0.0,
            bursts: f64::INFINITY,
        };
        if series.squares <= 0.0 {
            return Dependence::found(&Estimate { freedom: (series.n - 1.0).max(1.0), ..own }, series.n, independent);
        }
        let ladder = Ladder::of(series);
        let correlation = series.lagged.filter(|_| series.n >= LAG_VALUES_MIN).map(|lagged| lagged / series.squares);
        let mut estimate = ladder.chosen(independent.variance).unwrap_or(own);
        let by_lag = correlation.map(|correlation| Autoregressive::of(correlation, independent));
        if let Some(by_lag) = by_lag.filter(|by_lag| by_lag.variance > estimate.variance && !ladder.contradicts(by_lag))
        {
            estimate = by_lag.estimate();
        }
        // Few hits meet in a batch by chance more often than the normal distribution has it.
        let rarity = (STRIKING * STRIKING - 1.0) / 6.0 / series.rarer;
        let chance_lag = STRIKING_LAG / series.n.sqrt() + rarity;
        let is_larger = |level: &Level| level.variance > independent.variance * (level.chance(STRIKING) + 2.0 * rarity);
        Dependence {
            is_striking: correlation.is_some_and(|it| it > chance_lag) || ladder.levels.iter().any(is_larger),
            is_slow: ladder.is_slow(series.n),
            ..Dependence::found(&estimate, series.n, independent)
        }
    }

    fn found(estimate: &Estimate, n: f64, independent: Level) -> Dependence {
        let ratio = if estimate.variance > 0.0 { independent.variance / estimate.variance } else { 1.0 };
        Dependence {
            effective_n: (n * ratio).clamp(1.0, n.max(1.0)),
            freedom: estimate.freedom,
            is_found: estimate.variance > independent.variance,
            is_striking: false,
            is_slow: false,
            skewness: estimate.skewness,
            bursts: estimate.bursts,
            variance: estimate.variance,
            n,
        }
    }

    /// The dependence of an indicator for a quantile that has `times` its variance: many equal values leave the quantile as
    /// certain as the variance of their share does.
    pub(super) fn at_variance(self, times: f64) -> Dependence {
        Dependence { effective_n: (self.effective_n * times.max(1.0)).min(self.n.max(1.0)), ..self }
    }
}

/// How many independent values have a mean that varies as much as that of the series `values`; `None` if their dependence
/// is not beyond what independent values show by chance, or if there are fewer than ten.
pub fn effective_size(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if n < 10.0 {
        return None;
    }
    // As shares of the largest value, whose fourth power does not overflow.
    let scale = values.iter().fold(f64::MIN_POSITIVE, |most, value| value.abs().max(most));
    let mean = values.iter().map(|value| value / scale).sum::<f64>() / n;
    let series = TimeSeries::of_centred(values.len(), values.iter().map(|value| value / scale - mean));
    if (series.squares / n).sqrt() <= ROUNDING {
        return None;
    }
    let dependence = Dependence::of(&series);
    dependence.is_striking.then_some(dependence.effective_n)
}

/// An estimate of the long-run variance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimate {
    variance: f64,
    freedom: f64,
    skewness: f64,
    bursts: f64,
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
    skewness: f64,
}

impl Level {
    fn independent(series: &TimeSeries) -> Level {
        let n = series.n;
        let second = series.squares / n;
        let kurtosis = if second > 0.0 { series.fourths / n / (second * second) } else { 3.0 };
        Level {
            batches: n,
            variance: series.squares / (n - 1.0).max(1.0),
            freedom: (n - 1.0).max(1.0),
            kurtosis,
            skewness: 0.0,
        }
    }

    /// The finest batches, which do not overlap, of a series of `n`.
    fn finest(sums: &[f64], n: f64) -> Level {
        let k = sums.len() as f64;
        let shape = Shape::of(sums.iter().copied());
        Level::at(k, shape.second_about_zero * k * k / ((k - 1.0) * n), k - 1.0, shape)
    }

    /// Batches of two of the next finer level, each of which begins one of them later (Meketon and Schmeiser 1984).
    fn overlapping(finer: &[f64], n: f64) -> Level {
        let k = finer.len() as f64 / 2.0;
        let shape = Shape::of(finer.windows(2).map(|pair| pair[0] + pair[1]));
        Level::at(k, shape.second_about_zero * (k / n) / (1.0 - 1.0 / k), 4.0 * (k - 1.0) / 3.0, shape)
    }

    fn at(batches: f64, variance: f64, freedom: f64, shape: Shape) -> Level {
        Level { batches, variance, freedom, kurtosis: shape.kurtosis, skewness: shape.skewness }
    }

    /// So many standard errors above 1: the ratio of a variance of normal batch means to the true one.
    fn chance(&self, errors: f64) -> f64 {
        1.0 + errors * (2.0 / self.freedom).sqrt()
    }

    fn lower_bound(&self) -> f64 {
        self.variance / self.chance(LIKELY)
    }

    /// The variance of which normal batch means show as little as this one hardly by chance (Wilson and Hilferty 1931).
    fn upper_bound(&self) -> f64 {
        let spread = 2.0 / (9.0 * self.freedom);
        let root = 1.0 - spread - STRIKING * spread.sqrt();
        if root > 0.0 { self.variance / root.powi(3) } else { f64::INFINITY }
    }

    /// The degrees of freedom left by means that are not normal: few bursts give about two for each.
    fn freedom(&self) -> f64 {
        self.freedom.min(2.0 * self.bursts()).max(1.0)
    }

    fn bursts(&self) -> f64 {
        if self.kurtosis > 1.0 { self.freedom / (self.kurtosis - 1.0) } else { f64::INFINITY }
    }
}

/// The estimates at batch sizes that double, from the finest on.
struct Ladder {
    levels: Vec<Level>,
}

impl Ladder {
    /// Without a level if the series has fewer values than the fewest batches.
    fn of(series: &TimeSeries) -> Ladder {
        let mut levels = Vec::new();
        if series.cells.len() < BATCHES_MIN {
            return Ladder { levels };
        }
        let mut sums = series.cells.clone();
        levels.push(Level::finest(&sums, series.n));
        while sums.len() >= 2 * BATCHES_MIN {
            levels.push(Level::overlapping(&sums, series.n));
            sums = sums.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
        }
        Ladder { levels }
    }

    /// The estimate of the level with the largest lower bound, if that is above the variance of `independent` values. A
    /// level whose lower bound a coarser one contradicts shows a pattern that longer batches average out, such as half a
    /// period: only coarser ones count then.
    fn chosen(&self, independent: f64) -> Option<Estimate> {
        let mut levels = self.levels.as_slice();
        loop {
            let bounds = levels.iter().map(Level::lower_bound).enumerate();
            let (index, bound) = bounds.max_by(|one, other| one.1.total_cmp(&other.1))?;
            if bound <= independent {
                return None;
            }
            let coarser = &levels[index + 1..];
            if coarser.iter().all(|level| level.upper_bound() >= bound) {
                return Some(estimate_at(&levels[..=index], bound));
            }
            levels = coarser;
        }
    }

    /// Whether the batches of some size vary too little for such a series.
    fn contradicts(&self, series: &Autoregressive) -> bool {
        let is_contradiction = |level: &Level| {
            let lost = series.lost_at(level.batches);
            lost <= LOST_MAX && level.upper_bound() < series.variance * (1.0 - lost)
        };
        self.levels.iter().any(is_contradiction)
    }

    /// Whether few long batches vary more than many short ones of a series of `n` values, beyond chance.
    fn is_slow(&self, n: f64) -> bool {
        let is_fast = |level: &&Level| level.batches <= FAST_BATCHES && n / level.batches >= FAST_BATCH_MIN;
        let Some(fast) = self.levels.iter().find(is_fast) else { return false };
        let slow = self.levels.iter().filter(|level| level.batches <= SLOW_BATCHES_MAX && level.batches < fast.batches);
        slow.into_iter().any(|level| level.variance > fast.variance * level.chance(STRIKING_SLOW))
    }
}

/// The estimate at the last of `levels`, with those of the finer ones that reach its lower `bound`; with few batches the
/// increase from the next finer one is taken to go on.
fn estimate_at(levels: &[Level], bound: f64) -> Estimate {
    let level = levels[levels.len() - 1];
    let variance = if level.batches < BATCHES_MANY as f64 {
        let finer = levels.len().checked_sub(2).map_or(level.variance, |finer| levels[finer].variance);
        level.variance + (level.variance - finer).max(0.0)
    } else {
        let near: Vec<f64> =
            levels.iter().map(|level| level.variance).skip_while(|variance| *variance < bound).collect();
        near.iter().sum::<f64>() / near.len() as f64
    };
    let skewness = level.skewness / level.batches.sqrt();
    Estimate { variance, freedom: level.freedom(), skewness, bursts: level.bursts() }
}

/// Batches that lose more of the variance of an autoregressive series depend on each other too much to contradict it.
const LOST_MAX: f64 = 1.0 / 3.0;
/// Most that the lag-1 autocorrelation of a short series is taken for.
const AUTOCORRELATION_MAX: f64 = 0.97;

/// A first-order autoregressive series. Batches of a short series are too few to show such dependence.
#[derive(Clone, Copy, Debug)]
struct Autoregressive {
    n: f64,
    /// Lag-1 autocorrelation.
    correlation: f64,
    variance: f64,
    freedom: f64,
}

impl Autoregressive {
    /// With the lag-1 `autocorrelation` of the values, from which its bias of (1 + 4ρ)/n is taken (Marriott and Pope 1954;
    /// Kendall 1954).
    fn of(autocorrelation: f64, independent: Level) -> Autoregressive {
        let n = independent.batches;
        let correlation = ((autocorrelation + 1.0 / n) / (1.0 - 4.0 / n)).clamp(0.0, AUTOCORRELATION_MAX);
        let factor = (1.0 + correlation) / (1.0 - correlation);
        // The variance of dependent values about their own mean is too small.
        let seen = (1.0 - (factor - 1.0) / (n - 1.0)).max(0.2);
        let square = correlation * correlation;
        let freedom = (independent.freedom * (1.0 - square) / (1.0 + square)).max(1.0);
        Autoregressive { n, correlation, variance: independent.variance * factor / seen, freedom }
    }

    /// The share of the variance that so many batches of it do not show, since dependence ends at their ends.
    fn lost_at(&self, batches: f64) -> f64 {
        let (length, correlation) = (self.n / batches, self.correlation);
        2.0 * correlation * (1.0 - correlation.powf(length)) / (length * (1.0 - correlation * correlation))
    }

    fn estimate(&self) -> Estimate {
        Estimate { variance: self.variance, freedom: self.freedom, skewness: 0.0, bursts: f64::INFINITY }
    }
}

struct Shape {
    second_about_zero: f64,
    skewness: f64,
    /// 3 if all are equal.
    kurtosis: f64,
}

impl Shape {
    fn of(sums: impl Iterator<Item = f64> + Clone) -> Shape {
        let (count, sum, squares) =
            sums.clone().fold((0.0, 0.0, 0.0), |(count, sum, squares), it| (count + 1.0, sum + it, squares + it * it));
        let mean = sum / count;
        let (mut second, mut third, mut fourth) = (0.0, 0.0, 0.0);
        for value in sums {
            let deviation = value - mean;
            let square = deviation * deviation;
            second += square;
            third += square * deviation;
            fourth += square * square;
        }
        let variance: f64 = second / count;
        let (skewness, kurtosis) = if variance > 0.0 {
            (third / count / variance.powf(1.5), fourth / count / (variance * variance))
        } else {
            (0.0, 3.0)
        };
        Shape { second_about_zero: squares / count, skewness, kurtosis }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Dependence {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Dependence::of(&TimeSeries::of_centred(values.len(), values.iter().map(|value| value - mean)))
    }

    /// An autoregressive series over the high bits of a linear congruential generator; whole numbers, so that every
    /// language produces the same.
    fn series(n: usize, coefficient: f64) -> Vec<f64> {
        let (mut state, mut value) = (12_345_u64, 0.0);
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            value = coefficient * value + (state >> 33) as f64 / 2_147_483_648.0 - 0.5;
            f64::round_ties_even(value * 1e6)
        };
        (0..n).map(|_| next()).collect()
    }

    /// The variance of the mean of an autoregressive series is (1 + c) / (1 − c) times that of an independent one.
    #[test]
    fn effective_n_follows_the_theory() {
        for (n, coefficient) in [(10_000, 0.3), (10_000, 0.5), (10_000, 0.8), (10_000, 0.9), (400, 0.5)] {
            let got = of(&series(n, coefficient)).effective_n / n as f64;
            let expected = (1.0 - coefficient) / (1.0 + coefficient);
            assert!((got / expected - 1.0).abs() < 0.3, "{n} at {coefficient}: {got:.4}, theory {expected:.4}");
        }
        assert!(of(&series(10_000, 0.0)).effective_n > 9_000.0);
        assert_eq!(of(&series(10_000, -0.4)).effective_n, 10_000.0, "never more than there are");
    }

    #[test]
    fn equal_values_do_not_depend_on_each_other() {
        for value in [7.0, 7.3, -0.1, 1e300, 0.0] {
            assert_eq!(effective_size(&[value; 12]), None, "{value}");
        }
        let rising: Vec<f64> = (0..12).map(f64::from).collect();
        assert!(effective_size(&rising).is_some_and(|n| n < 4.0) && effective_size(&rising[..9]).is_none());
    }

    /// A slow square wave under strong noise: no single autocorrelation is significant, but batch means show it.
    #[test]
    fn slow_dependence_below_the_noise_is_found() {
        let wave = |place: usize| if (place / 512).is_multiple_of(2) { 5e4 } else { -5e4 };
        let both: Vec<f64> = series(8_192, 0.0).iter().enumerate().map(|(place, value)| value + wave(place)).collect();
        let found = of(&both);
        assert!(found.effective_n < 4_096.0, "{found:?}");
    }

    /// One burst in 8,000: its variance has hardly a degree of freedom.
    #[test]
    fn few_bursts_leave_few_degrees_of_freedom() {
        let values: Vec<f64> = (0..8_000).map(|place| f64::from(u8::from((3_000..3_100).contains(&place)))).collect();
        let found = of(&values);
        assert!(found.freedom < 4.0 && found.effective_n < 200.0, "{found:?}");
    }

    /// Batches of half a period vary much, those of whole periods not at all.
    #[test]
    fn periods_that_longer_batches_average_out_are_no_dependence() {
        for n in [400, 10_000] {
            let saw_tooth: Vec<f64> = (0..n).map(|place| (place % 50) as f64).collect();
            let found = of(&saw_tooth);
            assert_eq!(found.effective_n, n as f64, "{found:?}");
        }
        let two_periods: Vec<f64> = (0..400).map(|place| (place % 200) as f64).collect();
        assert!(of(&two_periods).effective_n < 20.0, "two periods may as well be chance");
    }

    /// Ten hits in a thousand: two neighbours occur in one of ten independent series.
    #[test]
    fn rare_hits_need_more_than_two_neighbours_to_be_striking() {
        let of = |places: [usize; 10]| {
            let hits: Vec<i64> = (0..1_000).map(|place| i64::from(places.contains(&place))).collect();
            Dependence::of(&TimeSeries::of_indicator(&hits, |hit| hit == 1))
        };
        let scattered = of([30, 110, 111, 290, 370, 480, 590, 610, 770, 890]);
        assert!(!scattered.is_striking, "{scattered:?}");
        let burst = of([480, 481, 482, 484, 485, 487, 488, 491, 492, 493]);
        assert!(burst.is_striking && burst.effective_n < 200.0, "{burst:?}");
    }

    #[test]
    fn the_indicator_of_a_long_series_is_that_of_its_values() {
        let values: Vec<i64> = series(20_000, 0.9).into_iter().map(|value| value as i64).collect();
        let found = TimeSeries::of_indicator(&values, |value| value > 500_000);
        let hits: Vec<f64> = values.iter().map(|value| f64::from(u8::from(*value > 500_000))).collect();
        let share = hits.iter().sum::<f64>() / 20_000.0;
        let expected = TimeSeries::of_centred(20_000, hits.iter().map(|hit| hit - share));
        let is_close = |one: f64, other: f64| (one - other).abs() < 1e-6;
        assert!(is_close(found.squares, expected.squares) && is_close(found.fourths, expected.fourths));
        assert!(found.cells.iter().zip(&expected.cells).all(|(one, other)| is_close(*one, *other)));
    }
}
