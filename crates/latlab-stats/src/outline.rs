//! Outlines of groups of observations: extremes, mean, standard deviation, median; and the figures of their box plots:
//! quartiles, whiskers, and the observations beyond them.

/// Count, extremes, median, mean and standard deviation of one group of observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outline {
    pub n: u64,
    pub min: f64,
    pub max: f64,
    /// The middle observation, or the mean of the two middle ones.
    pub median: f64,
    pub mean: f64,
    /// Sample standard deviation (n − 1); 0 of one observation.
    pub stddev: f64,
}

impl Outline {
    /// The outline of finite `observations`, which it reorders; `None` if there are none.
    ///
    /// Deviations are taken from the mean instead of computing with squares of the observations, which would cancel all
    /// digits of a spread 10⁸ times smaller than the mean; they are scaled if their squares would over- or underflow.
    pub fn of(observations: &mut [f64]) -> Option<Outline> {
        let n = observations.len();
        let (mut min, mut max) = (*observations.first()?, *observations.first()?);
        for &value in observations.iter() {
            min = min.min(value);
            max = max.max(value);
        }
        let mean = mean(observations).clamp(min, max);
        let stddev = stddev(observations, mean, (max - mean).max(mean - min));
        Some(Outline { n: n as u64, min, max, median: median(observations), mean, stddev })
    }
}

fn mean(observations: &[f64]) -> f64 {
    let n = observations.len() as f64;
    let sum: f64 = observations.iter().sum();
    let first = if sum.is_finite() { sum / n } else { observations.iter().map(|value| value / n).sum() };
    // The deviations restore what rounding lost in a long sum.
    let rest: f64 = observations.iter().map(|value| value - first).sum();
    if rest.is_finite() { first + rest / n } else { first }
}

/// `farthest` is the largest distance from `mean`.
fn stddev(observations: &[f64], mean: f64, farthest: f64) -> f64 {
    if observations.len() < 2 || farthest == 0.0 {
        return 0.0;
    }
    // Between these the squares of all deviations and their sum are normal numbers.
    let scale = if (1e-140..1e140).contains(&farthest) { 1.0 } else { farthest };
    let squares: f64 = observations.iter().map(|value| ((value - mean) / scale).powi(2)).sum();
    (squares / (observations.len() - 1) as f64).sqrt() * scale
}

fn median(observations: &mut [f64]) -> f64 {
    let middle = observations.len() / 2;
    let odd = observations.len() % 2 == 1;
    let (below, upper, _) = observations.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().reduce(f64::max) {
        Some(lower) if !odd => lower.midpoint(*upper),
        _ => *upper,
    }
}

/// Length of the whiskers in interquartile ranges (Tukey 1977, Exploratory Data Analysis, section 2C).
const REACH: f64 = 1.5;

/// The five-number summary (Tukey 1977) of observations, in their unit. Infinite ones are the largest: a figure is infinite
/// where they reach it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FiveNumberSummary {
    pub min: f64,
    pub q1: f64,
    /// Second quartile.
    pub median: f64,
    pub q3: f64,
    pub max: f64,
}

impl FiveNumberSummary {
    /// The summary of `observations`, finite or +∞, which it sorts; `None` if there are none. Quartiles are of type 7, as
    /// all quantiles.
    pub fn of(observations: &mut [f64]) -> Option<FiveNumberSummary> {
        observations.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*observations.first()?, *observations.last()?);
        let [q1, median, q3] = [0.25, 0.5, 0.75].map(|q| quantile(observations, q));
        Some(FiveNumberSummary { min, q1, median, q3, max })
    }
}

/// The figures of a box plot, in the unit of the observations. Infinite observations are the largest.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxPlot {
    pub n: usize,
    /// Infinite ones among them.
    pub infinite: usize,
    pub q1: f64,
    /// Second quartile.
    pub median: f64,
    pub q3: f64,
    /// The smallest observation at most 1.5 interquartile ranges below the box, and the largest at most that far above it.
    /// With an infinite third quartile, they are the smallest observation and +∞.
    pub whiskers: (f64, f64),
    /// Finite observations beyond the whiskers, ascending.
    pub outside: Vec<f64>,
}

impl BoxPlot {
    /// The box plot of `observations`, finite or +∞, which it sorts; `None` if there are none.
    pub fn of(observations: &mut [f64]) -> Option<BoxPlot> {
        let FiveNumberSummary { min, q1, median, q3, max } = FiveNumberSummary::of(observations)?;
        let reach = if q3.is_finite() { REACH * (q3 - q1) } else { f64::INFINITY };
        let low = if reach.is_finite() { q1 - reach } else { f64::NEG_INFINITY };
        let (inside, outside): (Vec<f64>, Vec<f64>) =
            observations.iter().partition(|value| (low..=q3 + reach).contains(*value));
        let whiskers = (inside.first().copied().unwrap_or(min), inside.last().copied().unwrap_or(max));
        let infinite = observations.iter().filter(|value| value.is_infinite()).count();
        let outside = outside.into_iter().filter(|value| value.is_finite()).collect();
        Some(BoxPlot { n: observations.len(), infinite, q1, median, q3, whiskers, outside })
    }

    /// The interquartile range; infinite if the third quartile is.
    pub fn iqr(&self) -> f64 {
        if self.q3.is_finite() { self.q3 - self.q1 } else { f64::INFINITY }
    }
}

/// Type 7 of Hyndman and Fan, of ascending values.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * q;
    let (below, weight) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(sorted.len() - 1);
    // Weighing the difference of infinite values, or an infinite difference with 0, would give NaN.
    if weight == 0.0 || sorted[below] == sorted[above] {
        return sorted[below];
    }
    sorted[below] + weight * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(values: &[f64]) -> Outline {
        Outline::of(&mut values.to_vec()).expect("observations")
    }

    #[test]
    fn outlines_of_small_groups_are_exact() {
        let iguana = outline(&[50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0]);
        assert_eq!((iguana.n, iguana.min, iguana.max), (7, 50.0, 750.0));
        assert_eq!((iguana.median, iguana.mean), (200.0, 300.0));
        assert!((iguana.stddev - (340_000.0_f64 / 6.0).sqrt()).abs() < 1e-12, "{}", iguana.stddev);
        assert_eq!(outline(&[4.0, 1.0, 3.0, 2.0]).median, 2.5);
        assert_eq!(outline(&[7.0, 7.0, 7.0]).stddev, 0.0);
        assert_eq!(outline(&[7.0]).stddev, 0.0);
        assert_eq!(Outline::of(&mut []), None);
    }

    #[test]
    fn a_small_spread_far_from_zero_keeps_its_digits() {
        let far = outline(&[1_000_000_001.0, 1_000_000_002.0, 1_000_000_004.0]);
        assert!((far.stddev - (7.0_f64 / 3.0).sqrt()).abs() < 1e-6, "{}", far.stddev);
        let tenths = outline(&[0.1; 1000]);
        assert_eq!((tenths.mean, tenths.stddev), (0.1, 0.0));
    }

    #[test]
    fn squares_may_overflow_and_underflow() {
        for scale in [1e-310, 1e-200, 1e-3, 1e200, 5e307] {
            let scaled = outline(&[scale, 2.0 * scale, 3.0 * scale]);
            assert!((scaled.mean / scale - 2.0).abs() < 1e-9, "{scale:e}: {scaled:?}");
            assert!((scaled.stddev / scale - 1.0).abs() < 1e-9, "{scale:e}: {scaled:?}");
        }
    }

    #[test]
    fn quartiles_agree_with_numpy_and_whiskers_with_matplotlib() {
        let of = |values: &[f64]| BoxPlot::of(&mut values.to_vec()).expect("observations");
        // numpy.percentile(…, [25, 50, 75]) and matplotlib.cbook.boxplot_stats
        for (values, quartiles, whiskers, outside) in [
            (&[7.0][..], [7.0, 7.0, 7.0], (7.0, 7.0), &[][..]),
            (&[2.0, 1.0], [1.25, 1.5, 1.75], (1.0, 2.0), &[]),
            (&[4.0, 1.0, 3.0, 2.0], [1.75, 2.5, 3.25], (1.0, 4.0), &[]),
            (&[1.0, 2.0, 3.0, 4.0, 100.0], [2.0, 3.0, 4.0], (1.0, 4.0), &[100.0]),
            (&[-9.0, 5.0, 5.0, 5.0, 5.0, 9.0], [5.0, 5.0, 5.0], (5.0, 5.0), &[-9.0, 9.0]),
        ] {
            let found = of(values);
            assert_eq!([found.q1, found.median, found.q3], quartiles, "{values:?}");
            assert_eq!((found.whiskers, &found.outside[..]), (whiskers, outside), "{values:?}");
            assert_eq!((found.n, found.iqr()), (values.len(), quartiles[2] - quartiles[0]));
        }
        assert_eq!(BoxPlot::of(&mut []), None);
    }

    #[test]
    fn infinite_observations_are_the_largest() {
        let lost = f64::INFINITY;
        let of = |values: &[f64]| BoxPlot::of(&mut values.to_vec()).expect("observations");
        for (values, quartiles, whiskers, infinite) in [
            (&[lost, 1.0, 2.0, 3.0, 4.0][..], [2.0, 3.0, 4.0], (1.0, 4.0), 1),
            (&[1.0, lost, 2.0, 3.0], [1.75, 2.5, lost], (1.0, lost), 1),
            (&[1.0, lost, lost], [lost, lost, lost], (1.0, lost), 2),
            (&[lost, lost], [lost, lost, lost], (lost, lost), 2),
        ] {
            let found = of(values);
            assert_eq!([found.q1, found.median, found.q3], quartiles, "{values:?}");
            assert_eq!((found.whiskers, found.infinite, found.outside.len()), (whiskers, infinite, 0), "{values:?}");
        }
        let found = FiveNumberSummary::of(&mut [lost, 2.0, 1.0]).expect("observations");
        assert_eq!((found.min, found.median, found.max), (1.0, 2.0, lost));
        assert_eq!(of(&[1.0, lost, lost]).iqr(), lost);
    }
}
