//! Two-sample tests that take observations as independent: Student's t with pooled variance, and that of Mann and Whitney.
//!
//! Probes of a run are not independent. The tests of probes ([`student_differs`], [`ranks_differ`]) serve to show what
//! that assumption costs (`latlab run aa`); no verdict rests on them.

use serde::Deserialize;

use super::interval::{self, normal};
use super::outline::Outline;

/// The difference of two means and its standard error, for independent normal observations of equal variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TwoSamples {
    /// Mean of the candidate minus that of the baseline.
    pub difference: f64,
    /// Standard deviation of one observation, pooled over both groups.
    pub pooled_stddev: f64,
    /// Standard error of the difference.
    pub standard_error: f64,
    pub freedom: u64,
}

impl TwoSamples {
    /// `None` if both groups together have fewer than three observations.
    pub(crate) fn of(baseline: &Outline, candidate: &Outline) -> Option<TwoSamples> {
        let freedom = (baseline.n + candidate.n).checked_sub(2).filter(|freedom| *freedom > 0)?;
        let part = |group: &Outline| group.stddev * ((group.n - 1) as f64 / freedom as f64).sqrt();
        // Unlike the square root of a sum this does not overflow.
        let pooled_stddev = part(baseline).hypot(part(candidate));
        let standard_error = pooled_stddev * (1.0 / baseline.n as f64 + 1.0 / candidate.n as f64).sqrt();
        Some(TwoSamples { difference: candidate.mean - baseline.mean, pooled_stddev, standard_error, freedom })
    }
}

/// The result of Student's t test of two means, in per cent of the baseline's.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum MeanDifference {
    /// The difference is not significant.
    NotProven,
    Proven {
        /// Mean of the candidate minus that of the baseline.
        percent: f64,
        /// Half width of its confidence interval.
        margin_percent: f64,
    },
}

/// The quantile of Student's t at `p` with `freedom` degrees of freedom.
fn student(p: f64, freedom: u64) -> f64 {
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

/// With more degrees of freedom ministat uses the normal distribution.
const FREEDOM_MAX: u64 = 100;
/// Confidence in per cent, and the quantile of t that ministat uses for it. The last does not match: 99.9 % on each
/// side is a confidence of 99.8 %.
const LEVELS: [(f64, f64); 6] = [(80.0, 0.9), (90.0, 0.95), (95.0, 0.975), (98.0, 0.99), (99.0, 0.995), (99.5, 0.999)];
/// Errors in ministat's table: degrees of freedom and its value at 99.5. The exact values are 4.785, 4.501, 4.297,
/// 4.144, 4.025 and 3.930.
const PRINTED: [(u64, f64); 6] = [(7, 4.782), (8, 4.499), (9, 4.296), (10, 4.143), (11, 4.024), (12, 3.929)];
/// Its value at each level beyond `FREEDOM_MAX`.
const NORMAL: [f64; 6] = [1.282, 1.645, 1.960, 2.326, 2.576, 3.090];

/// The test of a group against the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinistatTest {
    /// Whether the difference is larger than its margin.
    pub proven: bool,
    /// The group's mean less the first one's.
    pub difference: f64,
    /// Half-width of the confidence interval of the difference.
    pub margin: f64,
    /// Standard deviation of one observation, pooled over both groups.
    pub pooled_stddev: f64,
    /// The first group's mean, the base of percentages.
    baseline_mean: f64,
}

impl MinistatTest {
    /// Tests `candidate` against `baseline` at `percent` confidence, one of ministat's six levels; `None` if they have
    /// fewer than three observations in all.
    pub fn of(baseline: &Outline, candidate: &Outline, percent: f64) -> Option<MinistatTest> {
        let both = TwoSamples::of(baseline, candidate)?;
        let margin = quantile(percent, both.freedom) * both.standard_error;
        Some(MinistatTest {
            proven: both.difference.abs() > margin,
            difference: both.difference,
            margin,
            pooled_stddev: both.pooled_stddev,
            baseline_mean: baseline.mean,
        })
    }

    /// The difference in per cent of the first group's mean, if it is proven.
    pub fn answer(&self) -> MeanDifference {
        if !self.proven {
            return MeanDifference::NotProven;
        }
        MeanDifference::Proven { percent: self.percent(self.difference), margin_percent: self.percent(self.margin) }
    }

    /// `absolute` in per cent of the first group's mean: infinite or NaN if that is 0.
    pub fn percent(&self, absolute: f64) -> f64 {
        absolute * 100.0 / self.baseline_mean
    }
}

fn quantile(percent: f64, freedom: u64) -> f64 {
    let level = LEVELS.iter().position(|(level, _)| *level == percent).unwrap_or(2);
    let printed = PRINTED.iter().find(|(printed, _)| *printed == freedom && level == LEVELS.len() - 1);
    match printed {
        _ if freedom > FREEDOM_MAX => NORMAL[level],
        Some((_, value)) => *value,
        None => (student(LEVELS[level].1, freedom) * 1000.0).round() / 1000.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(values: &[f64]) -> Outline {
        Outline::of(&mut values.to_vec()).expect("observations")
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

    /// The example of ministat's own manual page.
    #[test]
    fn the_example_of_the_manual_page_is_reproduced() {
        let outline = |values: &[f64]| Outline::of(&mut values.to_vec()).expect("observations");
        let iguana = outline(&[50.0, 200.0, 150.0, 400.0, 750.0, 400.0, 150.0]);
        let chameleon = outline(&[150.0, 400.0, 720.0, 500.0, 930.0]);
        assert!(!MinistatTest::of(&iguana, &chameleon, 95.0).expect("twelve").proven);
        let test = MinistatTest::of(&iguana, &chameleon, 80.0).expect("twelve");
        assert!(test.proven && (test.margin - 212.215).abs() < 5e-4, "{test:?}");
        assert_eq!(test.percent(test.difference), 80.0);
        let MeanDifference::Proven { percent, margin_percent } = test.answer() else { panic!("it is proven") };
        assert!(percent == 80.0 && (margin_percent - 70.7384).abs() < 5e-4, "{margin_percent}");
        let open = MinistatTest::of(&iguana, &chameleon, 95.0).expect("twelve").answer();
        assert_eq!(open, MeanDifference::NotProven);
        assert!(MinistatTest::of(&outline(&[0.0; 3]), &iguana, 95.0).expect("ten").percent(1.0).is_infinite());
    }
}
