//! Linear models of runs: a regression line over time, and the share of the variance that lies between blocks.

use super::interval::{Interval, student};

/// The slope of a regression line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// Change of y per unit of x.
    pub value: f64,
    /// Its confidence interval, for independent residuals.
    pub interval: Interval,
}

/// Least squares through points `(x, y)`; `None` below three points, or if all have the same x.
pub fn slope(points: &[(f64, f64)], confidence: f64) -> Option<Slope> {
    let n = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let x_mean = points.iter().map(|(x, _)| x).sum::<f64>() / n;
    let y_mean = points.iter().map(|(_, y)| y).sum::<f64>() / n;
    let spread = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum::<f64>();
    if spread <= 0.0 || !(spread.is_finite() && y_mean.is_finite()) {
        return None;
    }
    let value = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum::<f64>() / spread;
    let residuals = points.iter().map(|(x, y)| (y - y_mean - value * (x - x_mean)).powi(2)).sum::<f64>();
    let freedom = n - 2.0;
    let reach = student(0.5 + confidence / 2.0, freedom) * (residuals / freedom / spread).sqrt();
    Some(Slope { value, interval: Interval { low: Some(value - reach), high: Some(value + reach), confidence } })
}

/// The intraclass correlation of runs in blocks, from 0 (the block explains nothing) to 1 (the runs of a block are equal):
/// the estimator of the analysis of variance with one random factor (Donner 1986), not below 0. `None` with fewer than
/// two blocks, without a block of two runs, or if all observations are equal.
pub fn between_blocks(blocks: &[Vec<f64>]) -> Option<f64> {
    let blocks: Vec<&[f64]> = blocks.iter().map(Vec::as_slice).filter(|block| !block.is_empty()).collect();
    let count = blocks.len();
    let n: usize = blocks.iter().map(|block| block.len()).sum();
    if count < 2 || n == count {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let grand = mean(&blocks.concat());
    let between: f64 = blocks.iter().map(|block| block.len() as f64 * (mean(block) - grand).powi(2)).sum();
    let within: f64 =
        blocks.iter().map(|block| block.iter().map(|value| (value - mean(block)).powi(2)).sum::<f64>()).sum();
    let (between, within) = (between / (count - 1) as f64, within / (n - count) as f64);
    // The size of equal blocks; of unequal ones its equivalent (n₀).
    let squares: f64 = blocks.iter().map(|block| (block.len() as f64).powi(2)).sum();
    let size = (n as f64 - squares / n as f64) / (count - 1) as f64;
    let all = between + (size - 1.0) * within;
    (all > 0.0).then(|| ((between - within) / all).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_and_its_interval_are_those_of_least_squares() {
        // By hand: Σ off² = 3.6, t(0.975, 3) = 3.18245, reach = t·√(3.6/3/10) = 1.10243.
        let slope = slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 2.0), (3.0, 5.0), (4.0, 4.0)], 0.95).expect("a line");
        assert!((slope.value - 0.8).abs() < 1e-12, "{slope:?}");
        let (low, high) = (slope.interval.low.expect("low"), slope.interval.high.expect("high"));
        assert!((low + 0.302_432).abs() < 1e-5 && (high - 1.902_432).abs() < 1e-5, "{slope:?}");
    }

    #[test]
    fn points_without_spread_have_no_slope() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 2.0)], 0.95), None);
        assert_eq!(slope(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)], 0.95), None);
        let exact = slope(&[(0.0, 0.0), (1.0, 2.0), (2.0, 4.0)], 0.95).expect("a line");
        assert_eq!((exact.value, exact.interval.low, exact.interval.high), (2.0, Some(2.0), Some(2.0)));
    }

    #[test]
    fn the_intraclass_correlation_is_that_of_the_analysis_of_variance() {
        for (blocks, share) in [
            (vec![vec![1.0, 1.0], vec![2.0, 2.0]], Some(1.0)),
            (vec![vec![1.0, 2.0], vec![1.0, 2.0]], Some(0.0)),
            // mean squares 6.25 and 0.25, blocks of two: (6.25 − 0.25) / (6.25 + 0.25)
            (vec![vec![1.0, 1.0 + 0.5_f64.sqrt()], vec![3.5, 3.5 + 0.5_f64.sqrt()]], Some(6.0 / 6.5)),
            // blocks of one and three: mean squares 12 and 1, n₀ = 4 − 10/4 = 1.5
            (vec![vec![6.0], vec![1.0, 2.0, 3.0]], Some(11.0 / 12.5)),
            (vec![vec![1.0, 2.0]], None),
            (vec![vec![1.0], vec![2.0]], None),
            (vec![vec![3.0, 3.0], vec![3.0]], None),
            (vec![], None),
        ] {
            let found = between_blocks(&blocks);
            let is_close = match (found, share) {
                (Some(found), Some(share)) => (found - share).abs() < 1e-9,
                (found, share) => found == share,
            };
            assert!(is_close, "{blocks:?}: {found:?}, not {share:?}");
        }
    }
}
