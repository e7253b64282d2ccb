//! How much of the spread of runs is of single runs, of slow changes within blocks, of blocks and of boots: a nested design
//! with random effects, by the method of moments.

use std::collections::BTreeMap;

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::interval::{Interval, normal};
use super::permutation::mean;

/// The runs of a block in the order of time, each with the index of its condition.
pub type PilotBlock = Vec<(usize, f64)>;

/// Variances of the figures of runs; those that the runs do not show are `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpreadComponents {
    /// Of a run against its neighbours: half of the mean squared difference of successive runs (von Neumann 1941). This is
    /// what rounds do not remove.
    pub run: f64,
    /// Degrees of freedom of `run`.
    pub freedom: f64,
    /// Of slower changes within a block, which rounds remove.
    pub drift: f64,
    /// Between the blocks of a boot.
    pub block: Option<f64>,
    /// Between boots; of boots with one block each, blocks included.
    pub boot: Option<f64>,
}

/// Fewer degrees of freedom within blocks say nothing about a variance: four runs of one condition have three.
const FREEDOM_MIN: f64 = 3.0;

impl SpreadComponents {
    /// Those of the runs of `boots`, each a list of its blocks. A negative estimate is 0; `None` if no variance within blocks
    /// can be estimated.
    pub fn of(boots: &[Vec<PilotBlock>]) -> Option<SpreadComponents> {
        let mut within = WithinBlocks::default();
        boots.iter().flatten().for_each(|block| within.add(block));
        if within.freedom < FREEDOM_MIN {
            return None;
        }
        let (run, all) = (within.steps / within.steps_expected, within.squares / within.freedom);
        let centres = centres(boots.iter().flatten().flatten().copied());
        let of_block = |block: &PilotBlock| {
            let off: Vec<f64> = block.iter().map(|(condition, value)| value - centres[condition].0).collect();
            BetweenMean { mean: mean(&off), error: all / off.len().max(1) as f64 }
        };
        let blocks: Vec<Vec<BetweenMean>> = boots.iter().map(|blocks| blocks.iter().map(of_block).collect()).collect();
        let block = between(&blocks);
        let of_boot = |blocks: &Vec<BetweenMean>| {
            let count = blocks.len() as f64;
            let means: Vec<f64> = blocks.iter().map(|block| block.mean).collect();
            let error = blocks.iter().map(|own| own.error + block.unwrap_or(0.0)).sum::<f64>() / (count * count);
            BetweenMean { mean: mean(&means), error }
        };
        let boot = between(&[blocks.iter().map(of_boot).collect()]);
        // Successive differences have two thirds of the freedom of their number.
        let freedom = (within.pairs * 2.0 / 3.0).min(within.freedom);
        Some(SpreadComponents { run, freedom, drift: (all - run).max(0.0), block, boot })
    }

    /// The ends of the interval of `run` at `confidence`, from the chi-square distribution.
    pub fn run_interval(&self, confidence: f64) -> (f64, f64) {
        let end = |p: f64| {
            let quantile = ChiSquared::new(self.freedom).map_or(self.freedom, |chi| chi.inverse_cdf(p));
            self.run * self.freedom / quantile
        };
        (end(0.5 + confidence / 2.0), end(0.5 - confidence / 2.0))
    }
}

/// The standard error of the logarithm of a figure with this `interval`; `None` if an end is missing or not above 0.
pub fn log_error(interval: Interval) -> Option<f64> {
    let (low, high) = (interval.low.filter(|low| *low > 0.0)?, interval.high?);
    Some((high / low).ln() / (2.0 * normal(0.5 + interval.confidence / 2.0)))
}

/// Sums over blocks, of conditions with at least two runs in the block.
#[derive(Default)]
struct WithinBlocks {
    /// Squared distances from the mean of the condition in the block.
    squares: f64,
    freedom: f64,
    /// Squared differences of successive distances.
    steps: f64,
    /// Their expectation if each run has the variance 1 and no two depend on each other.
    steps_expected: f64,
    pairs: f64,
}

impl WithinBlocks {
    fn add(&mut self, block: &PilotBlock) {
        let cells = centres(block.iter().copied());
        let runs: Vec<(usize, f64, f64)> = block
            .iter()
            .map(|(condition, value)| (*condition, value - cells[condition].0, cells[condition].1))
            .filter(|(.., runs)| *runs > 1.0)
            .collect();
        self.squares += runs.iter().map(|(_, off, _)| off * off).sum::<f64>();
        self.freedom += cells.values().map(|(_, runs)| runs - 1.0).sum::<f64>();
        for pair in runs.windows(2) {
            let [(one, off, runs), (other, next, others)] = pair else { continue };
            self.steps += (next - off).powi(2);
            self.steps_expected += if one == other { 2.0 } else { 2.0 - 1.0 / runs - 1.0 / others };
            self.pairs += 1.0;
        }
    }
}

/// The mean of the values of each condition, and their number.
fn centres(values: impl Iterator<Item = (usize, f64)>) -> BTreeMap<usize, (f64, f64)> {
    let mut sums = BTreeMap::<usize, (f64, f64)>::new();
    for (condition, value) in values {
        let (sum, count) = sums.entry(condition).or_default();
        (*sum, *count) = (*sum + value, *count + 1.0);
    }
    sums.into_iter().map(|(condition, (sum, count))| (condition, (sum / count, count))).collect()
}

/// The mean of a block or boot, and the variance that it has from what is in it.
struct BetweenMean {
    mean: f64,
    error: f64,
}

/// The variance between the means of each parent beyond their own; `None` if no parent has two.
fn between(parents: &[Vec<BetweenMean>]) -> Option<f64> {
    let (mut squares, mut expected, mut freedom) = (0.0, 0.0, 0.0);
    for means in parents.iter().filter(|means| means.len() > 1) {
        let count = means.len() as f64;
        let centre = means.iter().map(|own| own.mean).sum::<f64>() / count;
        squares += means.iter().map(|own| (own.mean - centre).powi(2)).sum::<f64>();
        expected += means.iter().map(|own| own.error).sum::<f64>() * (1.0 - 1.0 / count);
        freedom += count - 1.0;
    }
    (freedom > 0.0).then(|| ((squares - expected) / freedom).max(0.0))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::power::standard_normal;

    #[test]
    fn one_condition_has_the_half_mean_squared_difference() {
        let block = [1.0, 2.0, 4.0, 3.0, 5.0].map(|value| (0, value)).to_vec();
        let found = SpreadComponents::of(&[vec![block.clone()]]).expect("four degrees of freedom");
        // differences 1, 2, −1, 2; variance 10/4
        assert!((found.run - 10.0 / 8.0).abs() < 1e-12 && (found.drift - (2.5 - 1.25)).abs() < 1e-12, "{found:?}");
        assert_eq!((found.block, found.boot), (None, None));
        assert_eq!(SpreadComponents::of(&[vec![block[..3].to_vec()]]), None);
        // one condition of three runs, one of one run
        let few = vec![(0, 1.0), (1, 5.0), (0, 2.0), (0, 4.0)];
        assert_eq!(SpreadComponents::of(&[vec![few]]), None);
    }

    #[test]
    fn the_interval_of_a_variance_is_that_of_chi_square() {
        let components = SpreadComponents { run: 2.0, freedom: 10.0, drift: 0.0, block: None, boot: None };
        let (low, high) = components.run_interval(0.8);
        // quantiles 15.987 and 4.865 of 10 degrees of freedom
        assert!((low - 20.0 / 15.987).abs() < 1e-3 && (high - 20.0 / 4.865).abs() < 1e-3, "{low} {high}");
    }

    #[test]
    fn an_interval_has_the_error_of_its_confidence() {
        let interval = |low, high| Interval { low, high, confidence: 0.95 };
        let error = log_error(interval(Some(1.0), Some(1.2))).expect("both ends");
        assert!((error - 1.2_f64.ln() / 3.919_93).abs() < 1e-5, "{error}");
        assert_eq!(log_error(interval(None, Some(1.2))), None);
        assert_eq!(log_error(interval(Some(0.0), Some(1.2))), None);
    }

    /// 400 pilots of three boots of three blocks of two conditions, of unequal size, with a trend in each block: the mean of
    /// each estimate is what was put in.
    #[test]
    fn the_estimates_are_right_on_average() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let mut normal = |deviation: f64| deviation * standard_normal(&mut random);
        let mut pilot = || -> Vec<Vec<PilotBlock>> {
            (0..3)
                .map(|_| {
                    let boot = normal(3.0);
                    let mut block = |runs: usize| {
                        let of_block = boot + normal(2.0);
                        (0..runs).map(|run| (run % 2, of_block + 10.0 * (run % 2) as f64 + normal(1.0))).collect()
                    };
                    vec![block(6), block(8), block(10)]
                })
                .collect()
        };
        const PILOTS: usize = 400;
        let found: Vec<SpreadComponents> =
            (0..PILOTS).map(|_| SpreadComponents::of(&pilot()).expect("enough runs")).collect();
        let mean = |of: fn(&SpreadComponents) -> f64| found.iter().map(of).sum::<f64>() / PILOTS as f64;
        let (run, block) = (mean(|one| one.run), mean(|one| one.block.expect("blocks")));
        let boot = mean(|one| one.boot.expect("boots"));
        // Four standard errors; that of the boots is cut off at 0 in one of ten.
        assert!(
            (run - 1.0).abs() < 0.02 && (block - 4.0).abs() < 0.5 && (boot - 9.0).abs() < 2.2,
            "{run} {block} {boot}"
        );
    }
}
