//! Confidence intervals, and the quantiles of the normal and of Student's t distribution that they are built from.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// A confidence interval of a parameter; an end that the data do not bound is `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The confidence that it has, which may differ from the one asked for.
    pub confidence: f64,
}

impl Interval {
    /// The interval between two ends, of which infinite ones become `None`; `None` if neither end is finite.
    pub(super) fn between(low: f64, high: f64, confidence: f64) -> Option<Interval> {
        let finite = |end: f64| end.is_finite().then_some(end);
        let interval = Interval { low: finite(low), high: finite(high), confidence };
        (interval.low.is_some() || interval.high.is_some()).then_some(interval)
    }
}

/// Beyond this many degrees of freedom t agrees with the normal to five digits, and the library's inverse is inaccurate.
const FREEDOM_MAX: f64 = 1e4;
/// Further out the library's inverse incomplete beta function is inaccurate.
const TAIL_MIN: f64 = 1e-6;

/// The standard normal quantile at `p`, which is clamped to the range where it is accurate.
pub(super) fn normal(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p.clamp(TAIL_MIN, 1.0 - TAIL_MIN))
}

/// The probability that a standard normal variable lies below `z`.
pub(super) fn normal_below(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// The quantile of Student's t at `p`, with at least one and possibly fractional degrees of freedom.
pub(super) fn student(p: f64, freedom: f64) -> f64 {
    if freedom > FREEDOM_MAX {
        return normal(p);
    }
    match StudentsT::new(0.0, 1.0, freedom.max(1.0)) {
        Ok(distribution) => distribution.inverse_cdf(p.clamp(TAIL_MIN, 1.0 - TAIL_MIN)),
        Err(_) => normal(p),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.t.ppf(p, v)` and `scipy.stats.norm.ppf(p)`, SciPy 1.17.
    #[test]
    fn quantiles_agree_with_scipy() {
        let cases = [
            (0.975, 1.0, 12.706204736174694),
            (0.975, 2.5, 3.5746548420036817),
            (0.95, 30.0, 1.697260886593957),
            (0.999999, 9.0, 10.720160409872824),
            (0.025, 9999.0, -1.9602012636213575),
        ];
        for (p, freedom, expected) in cases {
            let got = student(p, freedom);
            assert!((got / expected - 1.0).abs() < 1e-6, "t({p}, {freedom}) = {got}, expected {expected}");
        }
        assert!((normal(0.975) - 1.959963984540054).abs() < 1e-9);
        assert!((student(0.975, 1e9) - 1.959963984540054).abs() < 1e-9);
        assert!((normal_below(-1.959963984540054) - 0.025).abs() < 1e-9);
    }
}
