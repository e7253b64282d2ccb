//! An experiment: its conditions, its design, and the order of its runs as a function of the seed.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;
use rand_pcg::Pcg32;

use super::defaults;
use super::hooks::Hooks;
use super::kind::Kind;
use super::run::Plan;
use crate::metric::Metric;
use crate::units::{Nanos, human};

/// An experiment: every condition is measured in many interleaved runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    pub name: String,
    pub kind: Kind,
    /// The combinations of its factors, in the order of its file; the last factor varies fastest.
    pub conditions: Vec<ExperimentCondition>,
    /// Number and order of the runs.
    pub design: Design,
    pub contrasts: Vec<Contrast>,
}

impl Experiment {
    /// Pause before each run, so that none begins on a host that is busier than before the others.
    pub fn settle(&self) -> Nanos {
        if self.conditions.len() > 1 { self.design.settle } else { Nanos::ZERO }
    }
}

/// One combination of the factors.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentCondition {
    /// Factor → value, as typed.
    pub factors: Factors,
    pub plan: Plan,
    /// The commands around each of its runs.
    pub hooks: Hooks,
}

/// Factor → value, as typed.
pub type Factors = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    pub metric: Metric,
    /// The statistic of each run, as typed: `mean`, `p99` …
    pub statistic: String,
    /// The values of the baseline conditions; empty: the first condition is the baseline.
    pub baseline: Factors,
    /// The equivalence margin, as a share.
    pub equivalence: Option<f64>,
}

/// The number and order of the runs of conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// The number of runs of each condition.
    pub runs: RunsRule,
    /// Warm-up runs per condition and block: they come before all other runs, are recorded, and are not compared.
    pub warmup_runs: u32,
    /// Number of blocks; if the number of runs depends on precision, the least unless the most runs are reached before.
    pub blocks: u32,
    /// The separation of successive blocks.
    pub between: BetweenBlocks,
    pub order: RunOrder,
    /// `None` until the experiment begins, whose id it then is.
    pub seed: Option<u64>,
    /// As the file has it; see [`Experiment::settle`].
    pub settle: Nanos,
    /// How often its verdicts may be looked at while runs are added; `None` if that is open.
    pub looks: Option<u32>,
}

/// The number of runs of each condition.
#[derive(Clone, Debug, PartialEq)]
pub enum RunsRule {
    PerBlock(u32),
    /// As many as are needed until intervals are narrow enough.
    Until {
        statistic: String,
        /// The half-width at which an interval is narrow enough, as a share of the value.
        half_width: f64,
        /// The most runs of a condition.
        most: u32,
    },
}

/// The separation of successive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BetweenBlocks {
    Nothing,
    Pause(Nanos),
    /// A reboot, which the user does.
    Reboot,
}

/// The order of the runs of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOrder {
    /// In rounds, which have one run of each condition in random order; shuffled if there are few.
    Randomized,
    /// All runs of a block in random order.
    Shuffled,
    Listed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledRun {
    /// Position in the block, from 1.
    pub position: u32,
    pub condition: usize,
    /// Number among the runs of the condition in this block, from 1; warm-up runs are counted separately.
    pub repetition: u32,
    /// Whether it is a warm-up run.
    pub warmup: bool,
}

impl Design {
    /// Runs of each condition in `block` (from 1), without warm-up runs; `None` if the block does not exist.
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

    pub fn blocks_at_most(&self) -> u32 {
        match self.runs {
            RunsRule::PerBlock(_) => self.blocks,
            RunsRule::Until { most, .. } => most.div_ceil(self.until_runs()),
        }
    }

    /// Runs of each condition in a block if their number depends on precision: the least number of runs, divided by the
    /// least number of blocks; at least two, since one run has no variance.
    fn until_runs(&self) -> u32 {
        defaults::UNTIL_RUNS_MIN.div_ceil(self.blocks).max(defaults::UNTIL_BLOCK_RUNS_MIN)
    }

    /// The most runs of all `conditions` conditions, including warm-up runs.
    pub fn runs_at_most(&self, conditions: usize) -> u64 {
        let compared: u64 = match self.runs {
            RunsRule::PerBlock(runs) => u64::from(runs) * u64::from(self.blocks),
            RunsRule::Until { most, .. } => most.into(),
        };
        let warmup = u64::from(self.warmup_runs) * u64::from(self.blocks_at_most());
        (compared + warmup).saturating_mul(conditions as u64)
    }

    /// How often gates on changes are judged, after equal shares of the runs, each of at least five runs of each condition.
    /// Once if the file declares its looks, or its end depends on precision.
    pub fn gate_looks(&self) -> u32 {
        let RunsRule::PerBlock(runs) = self.runs else { return 1 };
        let runs = runs * self.blocks;
        let is_possible = |looks: &u32| runs.is_multiple_of(*looks) && runs / looks >= defaults::GATE_LOOK_RUNS;
        let most = if self.looks.is_none() { defaults::GATE_LOOKS_MAX } else { 1 };
        (2..=most).rev().find(is_possible).unwrap_or(1)
    }

    /// Takes the order of the experiment with this `id`, whose format has or has no rounds.
    pub fn begun_as(&mut self, id: &str, has_rounds: bool) {
        let seed = u64::from_str_radix(id, 16).ok().filter(|_| has_rounds);
        self.seed = self.seed.or(seed).or(Some(defaults::EXPERIMENT_SEED));
        if self.order == RunOrder::Randomized && !has_rounds {
            self.order = RunOrder::Shuffled;
        }
    }

    /// Whether the order has rounds, which are strata of comparisons: fewer than eight can hardly be significant.
    pub fn has_rounds(&self) -> bool {
        let has_many = match self.runs {
            RunsRule::PerBlock(runs) => runs * self.blocks >= defaults::ROUNDS_MIN,
            RunsRule::Until { .. } => true,
        };
        self.order == RunOrder::Randomized && has_many
    }

    /// The runs of `block` in the order that docs/experiments.md defines; empty if the block does not exist.
    pub fn schedule(&self, conditions: usize, block: u32) -> Vec<ScheduledRun> {
        let Some(runs) = self.runs_in(block) else { return Vec::new() };
        let listed = |runs: u32, warmup: bool| {
            (1..=runs).flat_map(move |repetition| {
                (0..conditions).map(move |condition| ScheduledRun { position: 0, condition, repetition, warmup })
            })
        };
        let mut schedule: Vec<ScheduledRun> = listed(self.warmup_runs, true).collect();
        let mut compared: Vec<ScheduledRun> = listed(runs, false).collect();
        let shuffled = match self.order {
            RunOrder::Randomized if self.has_rounds() => conditions,
            RunOrder::Randomized | RunOrder::Shuffled => compared.len(),
            RunOrder::Listed => 1,
        };
        let mut random = Pcg32::new(self.seed.unwrap_or(defaults::EXPERIMENT_SEED), block.into());
        compared.chunks_mut(shuffled.max(1)).for_each(|runs| shuffle(runs, &mut random));
        schedule.append(&mut compared);
        schedule.iter_mut().zip(1..).for_each(|(run, position)| run.position = position);
        schedule
    }
}

/// The shuffle of Fisher and Yates; its bias is negligible, since the length is far below 2³².
fn shuffle(runs: &mut [ScheduledRun], random: &mut impl Rng) {
    for last in (1..runs.len()).rev() {
        let other = (u64::from(random.next_u32()) * (last as u64 + 1)) >> 32;
        runs.swap(last, other as usize);
    }
}

/// A condition in one line: `load=cpu=80% size=64`; `all runs` without factors.
pub fn condition_words(factors: &Factors) -> String {
    let words: Vec<_> = factors.iter().map(|(factor, value)| format!("{factor}={value}")).collect();
    if words.is_empty() { "all runs".into() } else { words.join(" ") }
}

/// A level, with its factor where the level alone says too little: `10ms`, `tcp`, but `size=64`, `load=none`.
pub fn level_words(factor: &str, level: &str) -> String {
    const VAGUE: [&str; 7] = ["none", "true", "false", "yes", "no", "on", "off"];
    if !level.contains(char::is_alphabetic) || VAGUE.contains(&level) {
        format!("{factor}={level}")
    } else {
        level.to_owned()
    }
}

/// The levels of `factors`: `10ms, load=none`.
pub fn levels_words(factors: &Factors) -> String {
    factors.iter().map(|(factor, level)| level_words(factor, level)).collect::<Vec<_>>().join(", ")
}

/// The levels that all of `conditions` have in common.
pub fn common_levels(conditions: &[&Factors]) -> Factors {
    let mut common = conditions.first().copied().cloned().unwrap_or_default();
    common.retain(|factor, level| conditions.iter().all(|factors| factors.get(factor) == Some(&*level)));
    common
}

/// Names `chosen` of the conditions `all`: by a level, if all conditions with this level are chosen, else one by one without
/// the levels that all conditions have in common.
pub fn conditions_in_words(chosen: &[&Factors], all: &[&Factors]) -> Vec<String> {
    let (mut rest, mut words) = (chosen.to_vec(), Vec::new());
    loop {
        let levels: BTreeSet<(&String, &String)> = rest.iter().copied().flat_map(Factors::iter).collect();
        let has = |factors: &Factors, factor: &String, level: &String| factors.get(factor) == Some(level);
        let is_chosen = |(factor, level): &(&String, &String)| {
            all.iter().filter(|one| has(one, factor, level)).all(|one| chosen.contains(one))
        };
        let count = |(factor, level): &(&String, &String)| rest.iter().filter(|one| has(one, factor, level)).count();
        let most = levels.into_iter().rev().filter(is_chosen).max_by_key(count);
        let Some((factor, level)) = most else { break };
        words.push(level_words(factor, level));
        rest.retain(|one| !has(one, factor, level));
    }
    let common = common_levels(all);
    let own = |factors: &Factors| -> Factors {
        factors.clone().into_iter().filter(|(factor, _)| !common.contains_key(factor)).collect()
    };
    words.extend(rest.into_iter().map(|factors| levels_words(&own(factors))));
    words
}

/// The order of levels: `none` first, then numbers and times by size, then others in natural order.
pub fn level_order(one: &str, other: &str) -> Ordering {
    let by_size = match (size(one), size(other)) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    };
    let is_none = |level: &str| level == "none";
    is_none(other).cmp(&is_none(one)).then(by_size).then_with(|| natural_order(one, other))
}

/// The number of a level that is a number or a time.
fn size(level: &str) -> Option<f64> {
    let number = level.parse::<f64>().ok().filter(|number| number.is_finite());
    number.or_else(|| human::parse_duration(&level.replace(' ', "")).ok().map(|time| time.0 as f64))
}

/// Alphabetical, but with numbers by size: `net=9M` before `net=10M`.
fn natural_order(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one, other);
    loop {
        let (word, number, rest) = split(one);
        let (other_word, other_number, other_rest) = split(other);
        // Without leading zeros, longer numbers are larger.
        let key = |number: &str| {
            let digits = number.trim_start_matches('0');
            (digits.len(), digits.to_owned(), number.len())
        };
        let ordering = word.cmp(other_word).then_with(|| key(number).cmp(&key(other_number)));
        if ordering != Ordering::Equal || (one.is_empty() && other.is_empty()) {
            return ordering;
        }
        (one, other) = (rest, other_rest);
    }
}

/// The text before the first digit, the digits, and the rest.
fn split(text: &str) -> (&str, &str, &str) {
    let begin = text.find(|letter: char| letter.is_ascii_digit()).unwrap_or(text.len());
    let (word, rest) = text.split_at(begin);
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let (number, rest) = rest.split_at(end);
    (word, number, rest)
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
            seed: Some(7),
            settle: Nanos::ZERO,
            looks: None,
        }
    }

    fn until(most: u32) -> RunsRule {
        RunsRule::Until { statistic: "p99".into(), half_width: 0.03, most }
    }

    #[test]
    fn every_run_has_one_position_in_each_block() {
        let design = design(RunsRule::PerBlock(10), 3);
        for block in 1..=3 {
            let runs = design.schedule(4, block);
            assert_eq!(runs.len(), 44);
            assert!(runs.iter().zip(1..).all(|(run, position)| run.position == position));
            assert!(runs.iter().take(4).all(|run| run.warmup) && runs.iter().skip(4).all(|run| !run.warmup));
            let mut known: Vec<_> = runs.iter().map(|run| (run.warmup, run.condition, run.repetition)).collect();
            known.sort_unstable();
            known.dedup();
            assert_eq!(known.len(), 44);
        }
        assert_eq!(design.schedule(4, 4), Vec::new());
        assert_eq!(design.schedule(4, 0), Vec::new());
    }

    #[test]
    fn conditions_are_named_by_the_levels_that_only_they_have() {
        let condition = |levels: &[&str]| -> Factors {
            let factors = ["interval", "load", "set"].into_iter().zip(levels);
            factors.map(|(factor, level)| (factor.to_owned(), (*level).to_owned())).collect()
        };
        let all: Vec<Factors> = [
            ["10ms", "none", "governor=as-found"],
            ["10ms", "heaters=30", "governor=as-found"],
            ["1s", "none", "governor=as-found"],
            ["10ms", "none", "governor=ondemand"],
            ["10ms", "none", "governor=performance"],
            ["1s", "none", "governor=performance"],
        ]
        .map(|levels| condition(&levels))
        .into();
        let all: Vec<&Factors> = all.iter().collect();
        let words =
            |chosen: &[usize]| conditions_in_words(&chosen.iter().map(|index| all[*index]).collect::<Vec<_>>(), &all);
        assert_eq!(words(&[3, 4, 5]), ["governor=performance", "governor=ondemand"]);
        assert_eq!(words(&[1, 2]), ["heaters=30", "1s, load=none, governor=as-found"]);
        assert_eq!(
            conditions_in_words(&all[..1], &all[..3]),
            ["10ms, load=none"],
            "what all have in common is left out"
        );
        assert_eq!(words(&[]), [""; 0]);
    }

    #[test]
    fn the_order_is_a_function_of_seed_and_block() {
        let order = |design: &Design, block| -> Vec<usize> {
            design.schedule(3, block).iter().filter(|run| !run.warmup).map(|run| run.condition).collect()
        };
        let seven = design(RunsRule::PerBlock(4), 2);
        // Fixed values: an order that changed with the version would break experiments that are resumed.
        assert_eq!(order(&seven, 1), [2, 0, 1, 0, 2, 1, 2, 0, 1, 0, 2, 1]);
        // An experiment from before format 1.6, and one of few runs.
        let mut old = seven.clone();
        old.begun_as("e", false);
        for shuffled in [old, Design { blocks: 1, ..seven.clone() }] {
            assert_eq!(order(&shuffled, 1), [1, 1, 2, 0, 1, 2, 2, 0, 2, 1, 0, 0]);
            assert!(!shuffled.has_rounds());
        }
        let mut begun = Design { seed: None, ..seven.clone() };
        begun.begun_as("0000000000000007", true);
        assert_eq!(begun, seven);
        assert_ne!(order(&seven, 1), order(&seven, 2));
        let eight = Design { seed: Some(8), ..seven.clone() };
        assert_ne!(order(&seven, 1), order(&eight, 1));
        let listed = Design { order: RunOrder::Listed, ..seven };
        assert_eq!(order(&listed, 2), [0, 1, 2].repeat(4));
    }

    #[test]
    fn the_blocks_of_a_precision_rule_add_up_to_the_most_runs() {
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

    #[test]
    fn levels_are_in_natural_order() {
        for expected in [
            vec!["64", "128", "1024"],
            vec!["none", "250 µs", "1 ms", "10 ms", "2 s"],
            vec!["none", "cpu=9%", "cpu=80%", "net=10Mbit/s", "net=90Mbit/s"],
            vec!["v1.2", "v1.10", "v1.10-rc", "v2"],
            vec!["-1", "0.5", "12", "a", "b"],
            vec!["7", "07"],
            vec!["new", "old"],
        ] {
            let mut sorted = expected.clone();
            sorted.reverse();
            sorted.sort_by(|one, other| level_order(one, other));
            assert_eq!(sorted, expected);
        }
    }
}
