//! Student's t test of FreeBSD's ministat: with quantiles from a printed table of three decimals, at six levels.

use crate::stats::{MeanDifference, Outline, TwoSamples, student};

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
        match self.proven {
            true => MeanDifference::Proven {
                percent: self.percent(self.difference),
                margin_percent: self.percent(self.margin),
            },
            false => MeanDifference::NotProven,
        }
    }

    /// `absolute` in per cent of the first group's mean: infinite or NaN if that is 0.
    pub fn percent(&self, absolute: f64) -> f64 {
        absolute * 100.0 / self.baseline_mean
    }
}

/// ministat's quantile of t.
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

    #[test]
    fn quantiles_are_those_of_the_printed_table() {
        for (freedom, row) in [
            (4, [1.533, 2.132, 2.776, 3.747, 4.604, 7.173]),
            (10, [1.372, 1.812, 2.228, 2.764, 3.169, 4.143]),
            (30, [1.310, 1.697, 2.042, 2.457, 2.750, 3.385]),
            (100, [1.290, 1.660, 1.984, 2.364, 2.626, 3.174]),
            (101, NORMAL),
            (1_000_000, NORMAL),
        ] {
            assert_eq!(LEVELS.map(|(percent, _)| quantile(percent, freedom)), row, "{freedom} degrees of freedom");
        }
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
