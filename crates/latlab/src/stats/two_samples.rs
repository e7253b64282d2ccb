//! Student's t of two groups of observations with one variance in common.

use super::deviate;
use super::outline::Outline;

/// The difference of two means and the standard deviation that it is held against. The observations are taken to be
/// independent, normal and equally spread: true of runs at best, never of probes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoSamples {
    /// The candidate's mean less the baseline's.
    pub difference: f64,
    /// Standard deviation of one observation, pooled over both groups.
    pub pooled_stddev: f64,
    /// Standard error of the difference.
    pub standard_error: f64,
    /// Degrees of freedom.
    pub freedom: u64,
}

impl TwoSamples {
    /// Of a baseline and a candidate; none where they have fewer than three observations in all.
    pub fn of(baseline: &Outline, candidate: &Outline) -> Option<TwoSamples> {
        let freedom = (baseline.n + candidate.n).checked_sub(2).filter(|freedom| *freedom > 0)?;
        let part = |group: &Outline| group.stddev * ((group.n - 1) as f64 / freedom as f64).sqrt();
        // the root of a sum of squares that need not be numbers themselves
        let pooled_stddev = part(baseline).hypot(part(candidate));
        let standard_error = pooled_stddev * (1.0 / baseline.n as f64 + 1.0 / candidate.n as f64).sqrt();
        Some(TwoSamples { difference: candidate.mean - baseline.mean, pooled_stddev, standard_error, freedom })
    }
}

/// What Student's t says about two means, in per cent of the baseline's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeanDifference {
    /// The difference may be none.
    NotProven,
    /// It lies beyond its margin.
    Proven {
        /// The candidate's mean less the baseline's.
        percent: f64,
        /// How far that may be off.
        margin_percent: f64,
    },
}

/// The quantile of Student's t at `p` with `freedom` degrees of freedom.
pub fn student(p: f64, freedom: u64) -> f64 {
    deviate::student(p, freedom as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(values: &[f64]) -> Outline {
        Outline::of(&mut values.to_vec()).expect("observations")
    }

    /// The example of ministat's own manual page.
    #[test]
    fn iguanas_and_chameleons() {
        let iguana = outline(&[50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0]);
        let chameleon = outline(&[150.0, 400.0, 720.0, 500.0, 930.0]);
        let both = TwoSamples::of(&iguana, &chameleon).expect("twelve observations");
        assert_eq!((both.difference, both.freedom), (240.0, 10));
        assert!((both.pooled_stddev - 264.159).abs() < 5e-4, "{both:?}");
        assert!((both.standard_error * student(0.9, 10) - 212.215).abs() < 0.05, "{both:?}");
    }

    #[test]
    fn two_observations_have_no_spread_to_compare_with() {
        assert_eq!(TwoSamples::of(&outline(&[1.0]), &outline(&[2.0])), None);
        let constant = TwoSamples::of(&outline(&[1.0, 1.0]), &outline(&[2.0])).expect("three");
        assert_eq!((constant.standard_error, constant.difference), (0.0, 1.0));
    }
}
