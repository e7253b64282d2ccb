//! An experiment, settled: its conditions, its design, and the order of its runs, a function of the seed.

use std::collections::BTreeMap;

use rand::Rng;
use rand_pcg::Pcg32;

use super::{Kind, Plan, defaults};
use crate::metric::Metric;
use crate::units::Nanos;

/// An experiment: every condition is measured many times, and they take turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// What it is called.
    pub name: String,
    /// What its runs measure.
    pub kind: Kind,
    /// The combinations of its factors, in the order of its file; the last factor varies fastest.
    pub conditions: Vec<ExperimentCondition>,
    /// How often, in what order.
    pub design: Design,
    /// The rows of its comparison.
    pub contrasts: Vec<Contrast>,
}

/// One combination of the factors.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentCondition {
    /// Factor → value, as typed.
    pub factors: Factors,
    /// Its one run.
    pub plan: Plan,
}

/// What tells a condition from the others: factor → value, as typed.
pub type Factors = BTreeMap<String, String>;

/// A row of the comparison, as the file asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    /// Of what.
    pub metric: Metric,
    /// Which statistic of each run, as typed: `mean`, `p99` …
    pub statistic: String,
    /// The conditions with these values are what the others are compared with; empty: the first condition.
    pub baseline: Factors,
    /// A difference within this share is none.
    pub equivalence: Option<f64>,
}

/// How often and in what order conditions are measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// How many runs each condition gets.
    pub runs: RunsRule,
    /// Runs per condition and block before all others: kept and not judged.
    pub warmup_runs: u32,
    /// How often the whole is repeated; of a rule that looks at widths the fewest repetitions.
    pub blocks: u32,
    /// What lies between two blocks.
    pub between: BetweenBlocks,
    /// The order of the runs of a block.
    pub order: RunOrder,
    /// Of that order.
    pub seed: u64,
    /// Waited before each run whose condition is not that of the run before.
    pub settle: Nanos,
}

/// How many runs each condition gets.
#[derive(Clone, Debug, PartialEq)]
pub enum RunsRule {
    /// So many in each block.
    PerBlock(u32),
    /// As many as make intervals narrow.
    Until {
        /// Of which statistic, as typed.
        statistic: String,
        /// Half of the width to be reached, as a share of the value.
        half_width: f64,
        /// No condition gets more runs than this.
        most: u32,
    },
}

/// What lies between two blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BetweenBlocks {
    /// Nothing.
    Nothing,
    /// So much time.
    Pause(Nanos),
    /// A reboot, by whoever does it.
    Reboot,
}

/// The order of the runs of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOrder {
    /// All of them shuffled.
    Randomized,
    /// The conditions in turn.
    Listed,
}

/// One run's place in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledRun {
    /// From 1.
    pub position: u32,
    /// Index of its condition.
    pub condition: usize,
    /// Which of the condition's runs in this block, from 1; runs that warm up are counted apart.
    pub repetition: u32,
    /// It warms up.
    pub warmup: bool,
}

impl Design {
    /// Runs of each condition in `block` (from 1), those that warm up aside; none where there is no such block.
    pub fn runs_in(&self, block: u32) -> Option<u32> {
        match self.runs {
            RunsRule::PerBlock(runs) => (1..=self.blocks).contains(&block).then_some(runs),
            RunsRule::Until { most, .. } => {
                let usual = self.until_runs();
                let before = usual.saturating_mul(block.checked_sub(1)?);
                most.checked_sub(before).filter(|rest| *rest > 0).map(|rest| rest.min(usual))
            }
        }
    }

    /// How many blocks there are at most.
    pub fn blocks_at_most(&self) -> u32 {
        match self.runs {
            RunsRule::PerBlock(_) => self.blocks,
            RunsRule::Until { most, .. } => most.div_ceil(self.until_runs()),
        }
    }

    /// Runs of each condition in a block of a rule that looks at widths: as many as make enough over the fewest blocks. One
    /// alone would not tell how much runs of a block differ.
    fn until_runs(&self) -> u32 {
        defaults::UNTIL_RUNS_MIN.div_ceil(self.blocks).max(defaults::UNTIL_BLOCK_RUNS_MIN)
    }

    /// All runs of `conditions` conditions at most, those that warm up included.
    pub fn runs_at_most(&self, conditions: usize) -> u64 {
        let judged: u64 = match self.runs {
            RunsRule::PerBlock(runs) => u64::from(runs) * u64::from(self.blocks),
            RunsRule::Until { most, .. } => most.into(),
        };
        let warmup = u64::from(self.warmup_runs) * u64::from(self.blocks_at_most());
        (judged + warmup).saturating_mul(conditions as u64)
    }

    /// The runs of `block` in their order, as docs/experiments.md defines it; empty where there is no such block.
    pub fn turns(&self, conditions: usize, block: u32) -> Vec<ScheduledRun> {
        let Some(runs) = self.runs_in(block) else { return Vec::new() };
        let in_turn = |runs: u32, warmup: bool| {
            (1..=runs).flat_map(move |repetition| {
                (0..conditions).map(move |condition| ScheduledRun { position: 0, condition, repetition, warmup })
            })
        };
        let mut turns: Vec<ScheduledRun> = in_turn(self.warmup_runs, true).collect();
        let mut judged: Vec<ScheduledRun> = in_turn(runs, false).collect();
        if self.order == RunOrder::Randomized {
            shuffle(&mut judged, &mut Pcg32::new(self.seed, block.into()));
        }
        turns.append(&mut judged);
        turns.iter_mut().zip(1..).for_each(|(turn, position)| turn.position = position);
        turns
    }
}

/// Fisher and Yates. 2³² is so far above the length that no place is favoured.
fn shuffle(turns: &mut [ScheduledRun], random: &mut impl Rng) {
    for last in (1..turns.len()).rev() {
        let other = (u64::from(random.next_u32()) * (last as u64 + 1)) >> 32;
        turns.swap(last, other as usize);
    }
}

/// `load=cpu=80% size=64`: a condition in one line; `all runs` where there are no factors.
pub fn condition_words(factors: &Factors) -> String {
    let words: Vec<_> = factors.iter().map(|(factor, value)| format!("{factor}={value}")).collect();
    if words.is_empty() { "all runs".into() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design(runs: RunsRule, blocks: u32) -> Design {
        Design {
            runs,
            warmup_runs: 1,
            blocks,
            between: BetweenBlocks::Nothing,
            order: RunOrder::Randomized,
            seed: 7,
            settle: Nanos::ZERO,
        }
    }

    fn until(most: u32) -> RunsRule {
        RunsRule::Until { statistic: "p99".into(), half_width: 0.03, most }
    }

    #[test]
    fn every_run_has_one_place_in_each_block() {
        let design = design(RunsRule::PerBlock(10), 3);
        for block in 1..=3 {
            let turns = design.turns(4, block);
            assert_eq!(turns.len(), 44);
            assert!(turns.iter().zip(1..).all(|(turn, position)| turn.position == position));
            assert!(turns.iter().take(4).all(|turn| turn.warmup) && turns.iter().skip(4).all(|turn| !turn.warmup));
            let mut known: Vec<_> = turns.iter().map(|turn| (turn.warmup, turn.condition, turn.repetition)).collect();
            known.sort_unstable();
            known.dedup();
            assert_eq!(known.len(), 44);
        }
        assert_eq!(design.turns(4, 4), Vec::new());
        assert_eq!(design.turns(4, 0), Vec::new());
    }

    #[test]
    fn the_order_is_a_function_of_seed_and_block() {
        let order = |design: &Design, block| -> Vec<usize> {
            design.turns(3, block).iter().filter(|turn| !turn.warmup).map(|turn| turn.condition).collect()
        };
        let seven = design(RunsRule::PerBlock(4), 2);
        // Written down once: an order that changes with the version would break experiments that go on.
        assert_eq!(order(&seven, 1), [1, 1, 2, 0, 1, 2, 2, 0, 2, 1, 0, 0]);
        assert_ne!(order(&seven, 1), order(&seven, 2));
        let eight = Design { seed: 8, ..seven.clone() };
        assert_ne!(order(&seven, 1), order(&eight, 1));
        let listed = Design { order: RunOrder::Listed, ..seven };
        assert_eq!(order(&listed, 2), [0, 1, 2].repeat(4));
    }

    #[test]
    fn widths_are_looked_at_from_ten_runs_on_and_up_to_a_cap() {
        for (blocks, most, sizes) in [
            (1, 25, vec![10, 10, 5]),
            (3, 10, vec![4, 4, 2]),
            (4, 13, vec![3, 3, 3, 3, 1]),
            (20, 13, vec![2, 2, 2, 2, 2, 2, 1]),
        ] {
            let design = design(until(most), blocks);
            let runs: Vec<u32> = (1..).map_while(|block| design.runs_in(block)).collect();
            assert_eq!(runs, sizes, "{blocks} {most}");
            assert_eq!(design.blocks_at_most() as usize, sizes.len());
            assert_eq!(design.runs_at_most(2), 2 * (u64::from(most) + sizes.len() as u64));
            assert_eq!(design.runs_in(0), None);
        }
    }
}
