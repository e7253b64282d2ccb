//! A straight line through points: how much something drifts.

use super::deviate::student;
use super::interval::Interval;

/// A slope with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// Change of y for each x.
    pub value: f64,
    /// Of the value, if what lies off the line is independent from point to point.
    pub interval: Interval,
}

/// Least squares through points `(x, y)`; none below three points, or where all have the same x.
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
    let off = points.iter().map(|(x, y)| (y - y_mean - value * (x - x_mean)).powi(2)).sum::<f64>();
    let freedom = n - 2.0;
    let reach = student(0.5 + confidence / 2.0, freedom) * (off / freedom / spread).sqrt();
    Some(Slope { value, interval: Interval { low: Some(value - reach), high: Some(value + reach), confidence } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_with_its_error() {
        // By hand: Σ off² = 3.6, t(0.975, 3) = 3.18245, reach = t·√(3.6/3/10) = 1.10243.
        let slope = slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 2.0), (3.0, 5.0), (4.0, 4.0)], 0.95).expect("a line");
        assert!((slope.value - 0.8).abs() < 1e-12, "{slope:?}");
        let (low, high) = (slope.interval.low.expect("low"), slope.interval.high.expect("high"));
        assert!((low + 0.302_432).abs() < 1e-5 && (high - 1.902_432).abs() < 1e-5, "{slope:?}");
    }

    #[test]
    fn without_a_spread_there_is_no_line() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 2.0)], 0.95), None);
        assert_eq!(slope(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)], 0.95), None);
        let exact = slope(&[(0.0, 0.0), (1.0, 2.0), (2.0, 4.0)], 0.95).expect("a line");
        assert_eq!((exact.value, exact.interval.low, exact.interval.high), (2.0, Some(2.0), Some(2.0)));
    }
}
