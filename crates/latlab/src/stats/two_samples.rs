//! Two-sample tests that take observations as independent: Student's t with pooled variance, and that of Mann and Whitney.
//!
//! Probes of a run are not independent. The tests of probes ([`student_differs`], [`ranks_differ`]) serve to show what
//! that assumption costs (`latlab run aa`); no verdict rests on them.

use super::interval::{self, normal};
use super::outline::Outline;

/// The difference of two means and its standard error, for independent normal observations of equal variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoSamples {
    /// Mean of the candidate minus that of the baseline.
    pub difference: f64,
    /// Standard deviation of one observation, pooled over both groups.
    pub pooled_stddev: f64,
    /// Standard error of the difference.
    pub standard_error: f64,
    /// Degrees of freedom.
    pub freedom: u64,
}

impl TwoSamples {
    /// `None` if both groups together have fewer than three observations.
    pub fn of(baseline: &Outline, candidate: &Outline) -> Option<TwoSamples> {
        let freedom = (baseline.n + candidate.n).checked_sub(2).filter(|freedom| *freedom > 0)?;
        let part = |group: &Outline| group.stddev * ((group.n - 1) as f64 / freedom as f64).sqrt();
        // Unlike the square root of a sum this does not overflow.
        let pooled_stddev = part(baseline).hypot(part(candidate));
        let standard_error = pooled_stddev * (1.0 / baseline.n as f64 + 1.0 / candidate.n as f64).sqrt();
        Some(TwoSamples { difference: candidate.mean - baseline.mean, pooled_stddev, standard_error, freedom })
    }
}

/// The result of Student's t test of two means, in per cent of the baseline's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MeanDifference {
    /// The difference is not significant.
    NotProven,
    /// The difference is significant.
    Proven {
        /// Mean of the candidate minus that of the baseline.
        percent: f64,
        /// Half width of its confidence interval.
        margin_percent: f64,
    },
}

/// The quantile of Student's t at `p` with `freedom` degrees of freedom.
pub fn student(p: f64, freedom: u64) -> f64 {
    interval::student(p, freedom as f64)
}

/// Whether Student's t test (1908) finds the means of the probes of two runs different.
pub fn student_differs(one: &[i64], other: &[i64], confidence: f64) -> bool {
    let (n, m) = (one.len() as f64, other.len() as f64);
    if n < 2.0 || m < 2.0 {
        return false;
    }
    let mean = |values: &[i64]| values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64;
    let squares = |values: &[i64], mean: f64| values.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>();
    let (here, there) = (mean(one), mean(other));
    let freedom = n + m - 2.0;
    let variance = (squares(one, here) + squares(other, there)) / freedom;
    let error = (variance * (1.0 / n + 1.0 / m)).sqrt();
    (here - there).abs() > interval::student(0.5 + confidence / 2.0, freedom) * error
}

/// Whether the test of Mann and Whitney (1947), in its normal approximation with ties, finds the ranks of the probes of
/// two runs different.
pub fn ranks_differ(one: &[i64], other: &[i64], confidence: f64) -> bool {
    let (n, m) = (one.len() as f64, other.len() as f64);
    if n < 1.0 || m < 1.0 {
        return false;
    }
    let mut all: Vec<(i64, bool)> =
        one.iter().map(|value| (*value, true)).chain(other.iter().map(|value| (*value, false))).collect();
    all.sort_unstable();
    let (mut before, mut rank_sum, mut ties) = (0.0, 0.0, 0.0);
    for equal in all.chunk_by(|one, other| one.0 == other.0) {
        let size = equal.len() as f64;
        let own = equal.iter().filter(|(_, own)| *own).count() as f64;
        rank_sum += own * (before + (size + 1.0) / 2.0);
        ties += size * (size * size - 1.0);
        before += size;
    }
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    let distance = (rank_sum - n * (total + 1.0) / 2.0).abs();
    distance > normal(0.5 + confidence / 2.0) * variance.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(values: &[f64]) -> Outline {
        Outline::of(&mut values.to_vec()).expect("observations")
    }

    /// The example of the manual page of ministat.
    #[test]
    fn the_example_of_the_manual_of_ministat_is_reproduced() {
        let iguana = outline(&[50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0]);
        let chameleon = outline(&[150.0, 400.0, 720.0, 500.0, 930.0]);
        let both = TwoSamples::of(&iguana, &chameleon).expect("twelve observations");
        assert_eq!((both.difference, both.freedom), (240.0, 10));
        assert!((both.pooled_stddev - 264.159).abs() < 5e-4, "{both:?}");
        assert!((both.standard_error * student(0.9, 10) - 212.215).abs() < 0.05, "{both:?}");
    }

    #[test]
    fn two_observations_are_too_few() {
        assert_eq!(TwoSamples::of(&outline(&[1.0]), &outline(&[2.0])), None);
        let constant = TwoSamples::of(&outline(&[1.0, 1.0]), &outline(&[2.0])).expect("three");
        assert_eq!((constant.standard_error, constant.difference), (0.0, 1.0));
    }

    #[test]
    fn differences_are_significant_as_the_p_values_say() {
        // Simpson's rule over the density of t with 14 degrees of freedom; erfc of z/√2 with midranks counted by hand.
        let base = [12, 15, 11, 18, 14, 15, 13, 17];
        for (other, t_p, u_p) in [
            ([12, 15, 11, 18, 14, 15, 13, 17], 1.0, 1.0),
            ([14, 17, 13, 20, 16, 17, 15, 19], 0.1159, 0.1385),
            ([15, 18, 14, 21, 17, 18, 16, 20], 0.0248, 0.0343),
            ([13, 13, 13, 14, 14, 14, 15, 60], 0.3959, 0.9148),
        ] {
            for confidence in [0.8, 0.9, 0.95, 0.98] {
                let found = (student_differs(&base, &other, confidence), ranks_differ(&base, &other, confidence));
                assert_eq!(found, (t_p < 1.0 - confidence, u_p < 1.0 - confidence), "{other:?} {confidence}");
            }
        }
    }

    #[test]
    fn too_few_or_equal_probes_do_not_differ() {
        assert!(!student_differs(&[1], &[2, 3], 0.95) && !ranks_differ(&[], &[2, 3], 0.95));
        assert!(!student_differs(&[5; 9], &[5; 9], 0.95) && !ranks_differ(&[5; 9], &[5; 9], 0.95));
    }
}
