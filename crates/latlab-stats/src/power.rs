//! How often a design finds a difference, by simulation with the test that judges the runs.

use rand::Rng;

use super::interval::{normal, student_above};
use super::permutation::{BlockRuns, DRAWS, is_significant};
use super::shift_test::ShiftTest;

/// Two groups of runs in strata, and the difference that is to be found. What the runs of a stratum have in common cancels in
/// the test, and has no place here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedTest {
    pub strata: u32,
    /// Runs of each group in a stratum.
    pub runs: u32,
    /// Standard deviation of the runs of a stratum; they are taken as normal.
    pub deviation: f64,
    /// The true difference, above 0.
    pub shift: f64,
    /// The level of the verdict.
    pub level: f64,
}

impl PlannedTest {
    /// The share of so many simulated `experiments` with the verdict `higher`.
    pub fn power(&self, experiments: u32, random: &mut impl Rng) -> f64 {
        let found = (0..experiments).filter(|_| self.finds(random)).count();
        found as f64 / f64::from(experiments)
    }

    /// The power of the test that knows the deviation, which no other exceeds.
    pub fn power_at_most(&self) -> f64 {
        let error = self.deviation * (2.0 / f64::from(self.strata * self.runs)).sqrt();
        student_above(normal(1.0 - self.level / 2.0) - self.shift / error, f64::INFINITY)
    }

    fn finds(&self, random: &mut impl Rng) -> bool {
        let group = |shift: f64, random: &mut _| -> Vec<f64> {
            (0..self.runs).map(|_| shift + self.deviation * standard_normal(random)).collect()
        };
        let mut stratum = || BlockRuns { baseline: group(0.0, random), candidate: group(self.shift, random) };
        let strata: Vec<BlockRuns> = (0..self.strata).map(|_| stratum()).collect();
        // Enough for the level.
        let draws = ((25.0 / self.level) as u32).min(DRAWS);
        let test = ShiftTest::of(&strata, draws, random);
        test.is_some_and(|test| test.difference() > 0.0 && is_significant(test.p_value(0.0), self.level))
    }
}

/// A standard normal number.
pub(crate) fn standard_normal(random: &mut impl Rng) -> f64 {
    normal(((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    /// `power.t.test(n, delta, sd, type = "paired" and "two.sample")` of R.
    #[test]
    fn the_power_is_about_that_of_the_t_test() {
        for (strata, runs, shift, power) in [(1, 10, 1.325, 0.80), (12, 1, 1.26, 0.80), (1, 10, 0.0, 0.025)] {
            let test = PlannedTest { strata, runs, deviation: 1.0, shift, level: 0.05 };
            let found = test.power(400, &mut Pcg64Mcg::seed_from_u64(1));
            // Four standard errors, and the price of the exchange test.
            assert!((found - power).abs() < 0.09, "{strata} × {runs}: {found}");
        }
    }
}
