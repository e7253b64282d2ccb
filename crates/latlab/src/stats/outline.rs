/// Count, extremes, median, mean and standard deviation of one group of observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outline {
    /// How many observations.
    pub n: u64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// The one in the middle, or the mean of the two there.
    pub median: f64,
    /// Their mean.
    pub mean: f64,
    /// Sample standard deviation (n − 1); 0 of one observation.
    pub stddev: f64,
}

impl Outline {
    /// Of finite `observations`, whose order is lost; none where there are none.
    ///
    /// The deviations are taken from the mean and not from squares of the observations, which would leave no digit of
    /// a spread that is 10⁸ times smaller than its mean; they are scaled where their squares would not be numbers.
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
    // what was lost to rounding in a long sum comes back from the deviations
    let rest: f64 = observations.iter().map(|value| value - first).sum();
    if rest.is_finite() { first + rest / n } else { first }
}

/// `farthest` is the largest distance from `mean`.
fn stddev(observations: &[f64], mean: f64, farthest: f64) -> f64 {
    if observations.len() < 2 || farthest == 0.0 {
        return 0.0;
    }
    // between these the squares of all deviations and their sum are normal numbers
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

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(values: &[f64]) -> Outline {
        Outline::of(&mut values.to_vec()).expect("observations")
    }

    #[test]
    fn figures_of_small_groups() {
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
    fn squares_need_not_be_numbers() {
        for scale in [1e-310, 1e-200, 1e-3, 1e200, 5e307] {
            let scaled = outline(&[scale, 2.0 * scale, 3.0 * scale]);
            assert!((scaled.mean / scale - 2.0).abs() < 1e-9, "{scale:e}: {scaled:?}");
            assert!((scaled.stddev / scale - 1.0).abs() < 1e-9, "{scale:e}: {scaled:?}");
        }
    }
}
