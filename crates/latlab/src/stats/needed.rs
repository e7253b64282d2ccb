//! How many runs more would decide? Normal and t approximations of the exchange test; docs/statistics.md says how
//! close they come to simulating it.

use super::deviate::{normal_below, student};
use super::exchange::{BlockRuns, weighted_difference};

/// With this chance the further runs decide.
pub const POWER: f64 = 0.8;
/// More runs than this nobody makes to decide one comparison.
pub const RUNS_MAX: u32 = 10_000;

/// What is to be shown, on the scale of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SampleSizeGoal {
    /// That there is a difference.
    Difference,
    /// That the difference lies between these two.
    Equivalence {
        /// Below 0.
        low: f64,
        /// Above 0.
        high: f64,
    },
}

/// The fewest further runs for each group, spread over the blocks as those so far, after which the exchange test reaches
/// `aim` at `alpha` with a chance of [`POWER`], if the difference is what was seen. None where no number up to
/// [`RUNS_MAX`] does.
pub fn runs_needed(blocks: &[BlockRuns], aim: SampleSizeGoal, alpha: f64) -> Option<u32> {
    let outlook = Outlook::of(blocks)?;
    let reaches = |further: u32| outlook.power(further, aim, alpha) >= POWER;
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

/// Variance of `values` within blocks with the degrees of freedom it was learnt with, the candidate moved back by the
/// difference: exchanging moves runs within this spread, whatever made it.
fn spread(blocks: &[&BlockRuns], difference: f64) -> Option<(f64, f64)> {
    let (mut squares, mut runs) = (0.0, 0.0);
    for block in blocks {
        let moved = block.candidate.iter().map(|value| value - difference);
        let values: Vec<f64> = block.baseline.iter().copied().chain(moved).collect();
        let centre = super::exchange::mean(&values);
        squares += values.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
        runs += values.len() as f64;
    }
    let freedom = runs - blocks.len() as f64 - 1.0;
    (freedom > 0.0).then(|| (squares / freedom, freedom))
}

/// What further runs would be like.
struct Outlook {
    difference: f64,
    variance: f64,
    freedom: f64,
    /// Runs of both groups in each block.
    sizes: Vec<(f64, f64)>,
}

impl Outlook {
    fn of(blocks: &[BlockRuns]) -> Option<Outlook> {
        let difference = weighted_difference(blocks)?;
        let blocks: Vec<&BlockRuns> = blocks.iter().filter(|block| block.weight() > 0.0).collect();
        let (variance, freedom) = spread(&blocks, difference)?;
        let sizes = blocks.iter().map(|block| (block.baseline.len() as f64, block.candidate.len() as f64)).collect();
        Some(Outlook { difference, variance, freedom, sizes })
    }

    /// The chance to reach `aim` with so many `further` runs for each group.
    fn power(&self, further: u32, aim: SampleSizeGoal, alpha: f64) -> f64 {
        let share = f64::from(further) / self.sizes.len() as f64;
        let sizes = self.sizes.iter().map(|(n, m)| (n + share, m + share));
        let weight: f64 = sizes.clone().map(|(n, m)| n * m / (n + m)).sum();
        let error = (self.variance / weight).sqrt();
        let freedom = self.freedom + 2.0 * f64::from(further);
        let tail = match aim {
            SampleSizeGoal::Difference => alpha / 2.0,
            SampleSizeGoal::Equivalence { .. } => alpha,
        };
        if sizes.map(|(n, m)| log_choose(n + m, n.min(m))).sum::<f64>() < -tail.ln() {
            return 0.0;
        }
        let beyond = |distance: f64| detects(distance, error, freedom, tail);
        match aim {
            SampleSizeGoal::Difference => beyond(self.difference.abs()),
            SampleSizeGoal::Equivalence { low, high } => {
                beyond(self.difference - low) + beyond(high - self.difference) - 1.0
            }
        }
    }
}

/// The chance that a one-sided t test at `tail` finds a true `distance` that is measured with this standard `error`:
/// the noncentral t distribution in its usual approximation (Abramowitz and Stegun 1964, 26.7.10).
fn detects(distance: f64, error: f64, freedom: f64, tail: f64) -> f64 {
    if error <= 0.0 {
        return if distance > 0.0 { 1.0 } else { 0.0 };
    }
    let critical = student(1.0 - tail, freedom);
    let reach = distance / error - critical * (1.0 - 1.0 / (4.0 * freedom));
    normal_below(reach / (1.0 + critical * critical / (2.0 * freedom)).sqrt())
}

/// ln of the number of ways to choose `few` of `all`, both of which may be fractions.
fn log_choose(all: f64, few: f64) -> f64 {
    use statrs::function::gamma::ln_gamma;
    ln_gamma(all + 1.0) - ln_gamma(few + 1.0) - ln_gamma(all - few + 1.0)
}
