//! Sample size: the number of further runs that would decide a comparison, from normal and t approximations of the
//! test of a shift; docs/statistics.md says how close they come to simulation.

use statrs::function::gamma::ln_gamma;

use super::interval::{normal_below, student};
use super::permutation::{BlockRuns, mean, weighted_difference};
use super::shift_test::{CellVariance, satterthwaite, sizes};

/// The power that further runs are to reach.
pub const POWER: f64 = 0.8;
/// The largest number of further runs that is answered.
pub const RUNS_MAX: u32 = 10_000;

/// The alternative hypothesis, on the scale of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SampleSizeGoal {
    Difference,
    /// The difference lies between these limits.
    Equivalence {
        /// Below 0.
        low: f64,
        /// Above 0.
        high: f64,
    },
}

/// The fewest further runs of each group, spread over the blocks as the present ones, with which the test of a shift at
/// `alpha` accepts `goal` with [`POWER`], if the true difference is the observed one. `None` above [`RUNS_MAX`].
pub fn runs_needed(blocks: &[BlockRuns], goal: SampleSizeGoal, alpha: f64) -> Option<u32> {
    let prediction = Prediction::of(blocks)?;
    let reaches = |further: u32| prediction.power(further, goal, alpha) >= POWER;
    if !reaches(RUNS_MAX) {
        return None;
    }
    let (mut short, mut enough) = (0, RUNS_MAX);
    while enough - short > 1 {
        let middle = short + (enough - short) / 2;
        *(if reaches(middle) { &mut enough } else { &mut short }) = middle;
    }
    Some(enough)
}

/// The variance of both groups together within blocks, after the candidate is moved back by the difference.
fn pooled(blocks: &[BlockRuns], difference: f64) -> Option<CellVariance> {
    let (mut squares, mut freedom) = (0.0, -1.0);
    for block in blocks.iter().filter(|block| block.weight() > 0.0) {
        let moved = block.candidate.iter().map(|value| value - difference);
        let values: Vec<f64> = block.baseline.iter().copied().chain(moved).collect();
        let centre = mean(&values);
        squares += values.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
        freedom += values.len() as f64 - 1.0;
    }
    (freedom > 0.0).then(|| CellVariance { variance: squares / freedom, freedom })
}

/// Difference, variances and sizes of the present runs, from which the power of further runs is predicted.
struct Prediction {
    difference: f64,
    variances: [CellVariance; 2],
    /// Runs of baseline and candidate in each block.
    sizes: Vec<(f64, f64)>,
}

impl Prediction {
    /// With the variance of each group, as Welch's test has it; of too few runs with that of both groups together, whose
    /// degrees of freedom each group has half of.
    fn of(blocks: &[BlockRuns]) -> Option<Prediction> {
        let difference = weighted_difference(blocks)?;
        let halved = |both: CellVariance| CellVariance { freedom: both.freedom / 2.0, ..both };
        let variances = match CellVariance::of_groups(blocks) {
            Some(variances) => variances,
            None => [halved(pooled(blocks, difference)?); 2],
        };
        Some(Prediction { difference, variances, sizes: sizes(blocks) })
    }

    /// The power with `further` runs of each group.
    fn power(&self, further: u32, goal: SampleSizeGoal, alpha: f64) -> f64 {
        let further = f64::from(further);
        let share = further / self.sizes.len() as f64;
        let sizes: Vec<(f64, f64)> = self.sizes.iter().map(|(n, m)| (n + share, m + share)).collect();
        let more = |group: CellVariance| CellVariance { freedom: group.freedom + further, ..group };
        let (variance, freedom) = satterthwaite(&sizes, self.variances.map(more));
        let tail = match goal {
            SampleSizeGoal::Difference => alpha / 2.0,
            SampleSizeGoal::Equivalence { .. } => alpha,
        };
        if sizes.iter().map(|(n, m)| log_choose(n + m, n.min(*m))).sum::<f64>() < -tail.ln() {
            return 0.0;
        }
        let beyond = |distance: f64| detects(distance, variance.sqrt(), freedom, tail);
        match goal {
            SampleSizeGoal::Difference => beyond(self.difference.abs()),
            SampleSizeGoal::Equivalence { low, high } => {
                beyond(self.difference - low) + beyond(high - self.difference) - 1.0
            }
        }
    }
}

/// The power of a one-sided t test at level `tail` for a true `distance` with this standard `error`: the noncentral t
/// distribution in its normal approximation (Abramowitz and Stegun 1964, 26.7.10).
fn detects(distance: f64, error: f64, freedom: f64, tail: f64) -> f64 {
    if error <= 0.0 {
        return if distance > 0.0 { 1.0 } else { 0.0 };
    }
    let critical = student(1.0 - tail, freedom);
    let reach = distance / error - critical * (1.0 - 1.0 / (4.0 * freedom));
    normal_below(reach / (1.0 + critical * critical / (2.0 * freedom)).sqrt())
}

/// Logarithm of the binomial coefficient of `all` over `few`, both of which may be fractions.
fn log_choose(all: f64, few: f64) -> f64 {
    ln_gamma(all + 1.0) - ln_gamma(few + 1.0) - ln_gamma(all - few + 1.0)
}
