//! Two naive tests, which take every probe, or every run of any block, as an independent observation. They show the error
//! rates of that.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Two-sided p of Student's t test with a pooled variance.
pub(crate) fn student(one: &[f64], other: &[f64]) -> f64 {
    let (n, m) = (one.len() as f64, other.len() as f64);
    let (a, b) = (one.iter().sum::<f64>() / n, other.iter().sum::<f64>() / m);
    let squares = |values: &[f64], mean: f64| values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let variance = (squares(one, a) + squares(other, b)) / (n + m - 2.0);
    let t = (b - a) / (variance * (1.0 / n + 1.0 / m)).sqrt();
    2.0 * StudentsT::new(0.0, 1.0, n + m - 2.0).expect("degrees of freedom").cdf(-t.abs())
}

/// Two-sided p of the rank sum test of Mann and Whitney, by its normal approximation; no ties are expected.
pub(crate) fn mann_whitney(one: &[f64], other: &[f64]) -> f64 {
    let mut all: Vec<(f64, bool)> = one.iter().map(|value| (*value, true)).collect();
    all.extend(other.iter().map(|value| (*value, false)));
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (n, m) = (one.len() as f64, other.len() as f64);
    let ranks: f64 = all.iter().enumerate().filter(|(_, (_, own))| *own).map(|(rank, _)| (rank + 1) as f64).sum();
    let z = (ranks - n * (n + m + 1.0) / 2.0) / (n * m * (n + m + 1.0) / 12.0).sqrt();
    2.0 * Normal::standard().cdf(-z.abs())
}
