//! Confidence intervals, and the quantiles of the normal and of Student's t distribution that they are built from. Shares of
//! singletons, such as the lost or late ones, with their intervals.

use serde::Serialize;

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::long_run::{Dependence, TimeSeries};
use crate::sample::Sample;

/// A confidence interval of a parameter; an end that the data do not bound is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
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

    /// The same with both ends farther out by `reach`.
    #[must_use]
    pub fn widened(self, reach: f64) -> Interval {
        Interval { low: self.low.map(|low| low - reach), high: self.high.map(|high| high + reach), ..self }
    }
}

/// With more degrees of freedom t differs from the normal by less than 0.1 %, and the library's inverse is inaccurate.
const FREEDOM_MAX: f64 = 1e4;
/// Further out the library's inverse incomplete beta function is inaccurate.
const TAIL_MIN: f64 = 1e-6;

/// The standard normal quantile at `p`, which is clamped to the range where it is accurate.
pub(super) fn normal(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p.clamp(TAIL_MIN, 1.0 - TAIL_MIN))
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

/// The probability that Student's t with these degrees of freedom, as for [`student`], lies above `t`.
pub(super) fn student_above(t: f64, freedom: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom.max(1.0)) {
        Ok(distribution) if freedom <= FREEDOM_MAX => distribution.sf(t),
        _ => Normal::standard().sf(t),
    }
}

/// The number of independent values that have an interval as wide as a series with this `dependence`, at `confidence`.
pub(super) fn trials(dependence: &Dependence, confidence: f64) -> f64 {
    let p = 0.5 + confidence / 2.0;
    if dependence.is_found {
        dependence.effective_n * (normal(p) / student(p, dependence.freedom)).powi(2)
    } else {
        dependence.n
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    pub hits: u64,
    pub n: u64,
    /// hits / n; `None` if n is 0.
    pub value: Option<f64>,
    /// Effective sample size; `None` if the order is unknown.
    pub effective_n: Option<f64>,
    /// Wilson's score interval at the effective n, less the uncertainty of that, within [0, 1]; `None` if the order is unknown.
    pub interval: Option<Interval>,
}

/// The share of `hits` among `n` independent observations.
pub fn ratio(hits: u64, n: u64, confidence: f64) -> Share {
    of_trials(hits, n, n as f64, confidence)
}

/// The share of singletons for which `is_hit` holds; infinite ones are [`INFINITE`](crate::sample::INFINITE). Hits in
/// bursts widen the interval.
pub fn share(sample: &Sample, confidence: f64, is_hit: impl Fn(i64) -> bool) -> Share {
    let hits = sample.singletons.iter().filter(|value| is_hit(**value)).count() as u64;
    if !sample.ordered {
        return Share { effective_n: None, interval: None, ..ratio(hits, sample.n(), confidence) };
    }
    let dependence = Dependence::of(&TimeSeries::of_indicator(&sample.singletons, is_hit));
    let found = of_trials(hits, sample.n(), trials(&dependence, confidence), confidence);
    Share { effective_n: found.effective_n.map(|_| dependence.effective_n), ..found }
}

fn of_trials(hits: u64, n: u64, trials: f64, confidence: f64) -> Share {
    if n == 0 {
        return Share { hits, n, value: None, effective_n: None, interval: None };
    }
    let value = hits as f64 / n as f64;
    Share { hits, n, value: Some(value), effective_n: Some(trials), interval: Some(wilson(value, trials, confidence)) }
}

/// Wilson's score interval (1927): all probabilities that a score test does not reject.
fn wilson(value: f64, n: f64, confidence: f64) -> Interval {
    let z = normal(0.5 + confidence / 2.0);
    let weight = z * z / n;
    let centre = (value + weight / 2.0) / (1.0 + weight);
    let reach = z / (1.0 + weight) * (value * (1.0 - value) / n + weight / (4.0 * n)).sqrt();
    // At 0 and 1 the end is the value itself: rounding must not move it inside.
    let low = if value == 0.0 { 0.0 } else { (centre - reach).max(0.0) };
    let high = if value == 1.0 { 1.0 } else { (centre + reach).min(1.0) };
    Interval { low: Some(low), high: Some(high), confidence }
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
        for (p, freedom, t) in cases {
            assert!((student_above(t, freedom) / (1.0 - p) - 1.0).abs() < 1e-6, "above {t} with {freedom}");
        }
        assert!((student_above(1.959963984540054, 1e9) - 0.025).abs() < 1e-9);
    }
}
