//! The precision at which a comparison stops measuring. The rule looks at the widths of intervals only: moving a whole
//! group changes no width, so that stopping does not depend on the difference (decision 0012).

use rand::Rng;

use super::interval::{Interval, student};
use super::permutation::{BlockRuns, mean};
use super::shift_test::ShiftTest;

/// The width that intervals are to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrecisionGoal {
    /// Half of the width, on the scale of the values.
    pub half_width: f64,
    pub confidence: f64,
    /// Permutations to draw, such as [`DRAWS`](super::DRAWS).
    pub draws: u32,
}

/// The width of an interval of fewer runs is too uncertain.
pub(crate) const RUNS_MIN: usize = 10;

/// The same for a single group, whose skewness does not cancel as in the difference of two groups.
pub(crate) const OWN_RUNS_MIN: usize = 20;

/// The values of one group, block by block.
pub type GroupBlocks = Vec<Vec<f64>>;

/// Whether the interval of every difference from the first of `groups` reaches the goal; for a single group, the interval
/// of its mean. Groups have the same blocks; with fewer than `RUNS_MIN` runs none reaches the goal.
///
/// Runs with a long upper tail scatter least when their mean is low, and a rule that waits for a narrow interval selects
/// such moments. This cancels in a difference; a single group must reach the goal with `OWN_RUNS_MIN` runs and again
/// one block later.
pub fn reached(groups: &[GroupBlocks], goal: PrecisionGoal, random: &mut impl Rng) -> bool {
    let count = |blocks: &[Vec<f64>]| blocks.iter().map(Vec::len).sum::<usize>();
    if groups.is_empty() || groups.iter().any(|group| count(group) < RUNS_MIN) {
        return false;
    }
    let is_narrow = |interval: Option<Interval>| {
        let width = interval.and_then(|interval| Some(interval.high? - interval.low?));
        width.is_some_and(|width| width <= 2.0 * goal.half_width)
    };
    match groups {
        [own] => {
            let [earlier @ .., _] = own.as_slice() else { return false };
            let reaches =
                |blocks: &[Vec<f64>]| count(blocks) >= OWN_RUNS_MIN && is_narrow(own_interval(blocks, goal.confidence));
            reaches(own) && reaches(earlier)
        }
        [baseline, others @ ..] => others.iter().all(|other| is_narrow(of_difference(baseline, other, goal, random))),
        [] => false,
    }
}

fn of_difference(
    baseline: &GroupBlocks,
    candidate: &GroupBlocks,
    goal: PrecisionGoal,
    random: &mut impl Rng,
) -> Option<Interval> {
    let both = |(baseline, candidate): (&Vec<f64>, &Vec<f64>)| BlockRuns {
        baseline: baseline.clone(),
        candidate: candidate.clone(),
    };
    let blocks: Vec<BlockRuns> = baseline.iter().zip(candidate).map(both).collect();
    Some(ShiftTest::of(&blocks, goal.draws, random)?.interval(goal.confidence))
}

/// The interval of the mean of a group in these blocks: standard deviation within blocks / √runs, times quantiles of
/// Student's t corrected for the skewness of the runs (Hall 1992). `None` if no block has two runs.
pub fn own_interval(group: &[Vec<f64>], confidence: f64) -> Option<Interval> {
    let blocks: Vec<&Vec<f64>> = group.iter().filter(|block| !block.is_empty()).collect();
    let runs = blocks.iter().map(|block| block.len()).sum::<usize>() as f64;
    let freedom = runs - blocks.len() as f64;
    if freedom <= 0.0 {
        return None;
    }
    let powers = |power: i32| -> f64 {
        let of = |block: &[f64], centre: f64| block.iter().map(|value| (value - centre).powi(power)).sum::<f64>();
        blocks.iter().map(|block| of(block, mean(block))).sum()
    };
    let stddev = (powers(2) / freedom).sqrt();
    let centre = blocks.iter().map(|block| block.iter().sum::<f64>()).sum::<f64>() / runs;
    // Centring n values on their mean leaves (n − 1)(n − 2)/n of the third moment.
    let thirds: f64 = blocks.iter().map(|block| block.len() as f64).map(|n| (n - 1.0) * (n - 2.0) / n).sum();
    let skewness = if thirds > 0.0 && stddev > 0.0 { powers(3) / thirds / stddev.powi(3) } else { 0.0 };
    let (error, s) = (stddev / runs.sqrt(), skewness / runs.sqrt());
    let quantile = student(0.5 + confidence / 2.0, freedom);
    let end = |t: f64| Some(centre - error * unskewed(t, s));
    Some(Interval { low: end(quantile), high: end(-quantile), confidence })
}

/// The quantile of a skewed sample that corresponds to `t` of a symmetric one: the inverse of Hall's transformation
/// t + s·t²/3 + s²·t³/27 + s/6, with `s` the skewness / √n.
fn unskewed(t: f64, s: f64) -> f64 {
    if s.abs() < 1e-6 {
        return t;
    }
    ((1.0 + s * (t - s / 6.0)).cbrt() - 1.0) * 3.0 / s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_skewness_the_interval_is_that_of_student() {
        let group = vec![vec![1.0, 2.0, 3.0], vec![11.0, 12.0, 13.0]];
        let interval = own_interval(&group, 0.95).expect("four degrees of freedom");
        let reach = 2.776_445 / 6.0_f64.sqrt();
        assert!((interval.low.expect("an end") - (7.0 - reach)).abs() < 1e-5, "{interval:?}");
        assert!((interval.high.expect("an end") - (7.0 + reach)).abs() < 1e-5, "{interval:?}");
        assert_eq!(own_interval(&[vec![1.0], vec![2.0]], 0.95), None);
        let same = own_interval(&[vec![4.0; 3]], 0.95).expect("three runs");
        assert_eq!((same.low, same.high), (Some(4.0), Some(4.0)));
    }

    #[test]
    fn the_interval_of_skewed_runs_is_wider_on_the_long_side() {
        let group = vec![vec![0.0, 0.1, 0.2, 0.1, 0.0, 3.0, 0.2, 0.1]];
        let interval = own_interval(&group, 0.95).expect("eight runs");
        let centre = 3.7 / 8.0;
        let (below, above) = (centre - interval.low.expect("an end"), interval.high.expect("an end") - centre);
        assert!(above > 2.0 * below, "{interval:?}");
    }

    #[test]
    fn the_inverse_transformation_restores_t() {
        for s in [-0.6, -0.1, 0.02, 0.4] {
            for t in [-3.0, -2.0, 0.0, 1.0, 2.5_f64] {
                let forth = t + s * t * t / 3.0 + s * s * t.powi(3) / 27.0 + s / 6.0;
                assert!((unskewed(forth, s) - t).abs() < 1e-9, "{s} {t}");
            }
        }
    }
}
