//! Which designs of an experiment find a change, and how long each takes: simulated from the spread of a pilot (decision
//! 0031).

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::contrasts::least_p;
use super::{PilotSpread, comparisons_asked, experiment_cost};
use crate::comparison::Look;
use crate::plan::{Experiment, RunsRule, StopWhen, defaults};
use crate::stats::PlannedTest;
use crate::units::Nanos;

/// A number of runs of some length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdvisedDesign {
    /// The length of a run, as a multiple of that in the pilot.
    pub scale: f64,
    /// Runs of each condition in all blocks.
    pub runs: u32,
    /// The same at the ends of the interval of the variance between runs, at [`PILOT_CONFIDENCE`].
    pub range: (u32, u32),
    /// How often the change was found.
    pub found: f64,
    /// Time of all runs of all conditions.
    pub duration: Nanos,
}

/// The designs for an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct DesignAdvice {
    pub conditions: usize,
    pub blocks: u32,
    /// Comparisons among which a verdict must hold.
    pub comparisons: usize,
    /// The quickest first. Each other one has fewer runs than those before it, or has the pilot's length of a run. Lengths of
    /// which [`RUNS_MAX`] runs are too few have none.
    pub designs: Vec<AdvisedDesign>,
}

/// Multiples of the pilot's length of a run.
const SCALES: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// Fewer effective observations in a run, or beyond its quantile, make another figure of it.
const OBSERVATIONS_MIN: f64 = 10.0;
/// The share of experiments in which the change is to be found.
pub const FOUND: f64 = 0.8;
/// The confidence of the range of runs.
pub const PILOT_CONFIDENCE: f64 = 0.8;
/// Simulated experiments for each number of runs.
const EXPERIMENTS: u32 = 1_000;
/// Runs that a paired t test needs beyond those of a test that knows the variance, to which these are proportional (Guenther
/// 1981): half of the squared normal quantile of the level.
const RUNS_OF_T: f64 = 2.0;
/// More runs of a condition are not advised.
pub const RUNS_MAX: u32 = 256;
/// Each number of runs is at most this much larger than the one before, rounded up.
const STEP: f64 = 1.1;
const SEED: u64 = 1;

/// The designs of `experiment` that find the difference `shift` of logarithms. Its own number of runs does not matter; with a
/// single condition a second one is assumed.
pub fn advise(experiment: &Experiment, spread: &PilotSpread, shift: f64) -> DesignAdvice {
    let mut experiment = experiment.clone();
    if let [only] = &experiment.conditions[..] {
        experiment.conditions.push(only.clone());
    }
    let comparisons = comparisons_asked(&experiment).max(1);
    let look = Look { declared: experiment.design.looks, ..Look::FIRST };
    let level = look.level(1.0 - defaults::CONFIDENCE) / comparisons as f64;
    let search = DesignSearch { experiment: &experiment, spread, shift, level };
    let mut designs: Vec<AdvisedDesign> = SCALES.into_iter().filter_map(|scale| search.design(scale)).collect();
    designs.sort_by_key(|design| design.duration);
    let mut fewest = u32::MAX;
    designs.retain(|design| {
        let is_fewer = design.runs < fewest;
        fewest = design.runs.min(fewest);
        is_fewer || design.scale == 1.0
    });
    DesignAdvice { conditions: experiment.conditions.len(), blocks: experiment.design.blocks, comparisons, designs }
}

struct DesignSearch<'a> {
    experiment: &'a Experiment,
    spread: &'a PilotSpread,
    shift: f64,
    /// The level of a verdict, by Bonferroni's bound of Holm's procedure.
    level: f64,
}

impl DesignSearch<'_> {
    /// That of runs of this length; `None` if the pilot cannot foretell their figures, or no number of them suffices.
    fn design(&self, scale: f64) -> Option<AdvisedDesign> {
        let is_known = self.spread.probe.is_some() && self.spread.observations * scale >= OBSERVATIONS_MIN;
        if scale != 1.0 && !is_known {
            return None;
        }
        let variance = |run: f64| self.spread.variance(run, scale);
        let own = variance(self.spread.components.run);
        let (runs, found) = self.least_runs(own)?;
        let at = |runs: f64, run: f64| {
            let needed = (runs - RUNS_OF_T) * variance(run) / own + RUNS_OF_T;
            self.decidable(needed.ceil() as u32)
        };
        let (low, high) = self.spread.components.run_interval(PILOT_CONFIDENCE);
        // Runs that are found to suffice may be up to one step too many.
        let range = (at(f64::from(runs) / STEP, low), at(runs.into(), high));
        Some(AdvisedDesign { scale, runs, range, found, duration: self.duration(runs, scale) })
    }

    /// `runs`, or more, if no values of so few could decide.
    fn decidable(&self, runs: u32) -> u32 {
        let blocks = self.experiment.design.blocks;
        let mut in_block = runs.div_ceil(blocks).max(1);
        while in_block < RUNS_MAX && 2.0 * least_p(in_block, blocks) > self.level {
            in_block += 1;
        }
        in_block * blocks
    }

    /// The fewest runs of each condition with which enough simulated experiments find the change, and how many do.
    fn least_runs(&self, variance: f64) -> Option<(u32, f64)> {
        let blocks = self.experiment.design.blocks;
        let next = |runs: &u32| Some(((f64::from(*runs) * STEP) as u32 + 1).next_multiple_of(blocks));
        let sizes = std::iter::successors(Some(blocks), next).take_while(|runs| *runs <= RUNS_MAX);
        let power = |runs: u32| {
            let test = self.test(runs, variance);
            // No test with an estimated variance finds more than the one that knows it.
            let found = || (runs, test.power(EXPERIMENTS, &mut Pcg64Mcg::seed_from_u64(SEED)));
            (test.power_at_most() >= FOUND).then(found)
        };
        sizes.filter_map(power).find(|(_, found)| *found >= FOUND)
    }

    /// The test of so many `runs` of each condition. In rounds the slow changes of a block cancel.
    fn test(&self, runs: u32, variance: f64) -> PlannedTest {
        let blocks = self.experiment.design.blocks;
        let mut design = self.experiment.design.clone();
        design.runs = RunsRule::PerBlock(runs / blocks);
        let (strata, drift) = if design.has_rounds() { (runs, 0.0) } else { (blocks, self.spread.components.drift) };
        let deviation = (variance + drift).sqrt();
        PlannedTest { strata, runs: runs / strata, deviation, shift: self.shift, level: self.level }
    }

    fn duration(&self, runs: u32, scale: f64) -> Nanos {
        let mut planned = self.experiment.clone();
        planned.design.runs = RunsRule::PerBlock(runs / planned.design.blocks);
        let length = Nanos((self.spread.duration.0 as f64 * scale) as i64);
        for run in planned.conditions.iter_mut().flat_map(|condition| &mut condition.plan.runs) {
            run.stop = StopWhen { count: None, duration_ns: Some(length) };
        }
        experiment_cost(&planned, 0).duration
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::contrasts::tests::experiment;
    use crate::plan::RunOrder;
    use crate::stats::SpreadComponents;

    fn spread(probe: Option<f64>, run: f64) -> PilotSpread {
        PilotSpread {
            runs: 8,
            blocks: 1,
            boots: 1,
            probe,
            components: SpreadComponents { run, freedom: 5.0, drift: 4e-4, block: None, boot: None },
            observations: 25.0,
            stop: StopWhen { count: None, duration_ns: Some(Nanos::from_secs(10)) },
            duration: Nanos::from_secs(10),
        }
    }

    #[test]
    fn only_lengths_that_the_pilot_can_foretell_are_advised() {
        let of =
            |levels: &[&str], spread: PilotSpread| advise(&experiment(levels, RunsRule::PerBlock(1)), &spread, 0.05);
        let scales = |advice: &DesignAdvice| advice.designs.iter().map(|design| design.scale).collect::<Vec<_>>();
        let own = of(&["a"], spread(None, 9e-4));
        assert_eq!((scales(&own), own.conditions, own.comparisons), (vec![1.0], 2, 1));
        // A quarter of 25 observations in the tail is too few.
        let both = of(&["a", "b"], spread(Some(8.9e-4), 9e-4));
        assert!(!scales(&both).contains(&0.25) && scales(&both).len() > 2, "{both:?}");
        let runs: Vec<u32> = both.designs.iter().map(|design| design.runs).collect();
        assert!(runs.is_sorted_by(|one, other| one > other), "{runs:?}");
        assert!(both.designs.is_sorted_by_key(|design| design.duration), "{both:?}");
        let AdvisedDesign { runs, range, .. } = own.designs[0];
        assert!(range.0 < runs && runs < range.1, "{range:?}");
        // More conditions, more comparisons: a stricter level.
        let three = of(&["a", "b", "c"], spread(None, 9e-4));
        assert!(three.comparisons == 2 && three.designs[0].runs > own.designs[0].runs, "{three:?}");
        assert_eq!(of(&["a"], spread(None, 1.0)).designs, []);
    }

    #[test]
    fn slow_changes_count_without_rounds_and_runs_are_whole_blocks() {
        let mut experiment = experiment(&["a", "b"], RunsRule::PerBlock(1));
        experiment.design.blocks = 3;
        let runs = |experiment: &Experiment| advise(experiment, &spread(None, 4e-4), 0.03).designs[0].runs;
        let in_rounds = runs(&experiment);
        experiment.design.order = RunOrder::Shuffled;
        assert!(in_rounds % 3 == 0 && runs(&experiment) > in_rounds, "{in_rounds} {}", runs(&experiment));
    }
}
