//! An experiment that is continued after its verdict was shown, five times at most.

use latlab_stats::{BlockRuns, Look, ShiftTest, is_significant};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::simulated::{Random, in_parallel, is_long, rows};

/// Simulated experiments for each row; 10,000 take eight minutes on two cores.
const EXPERIMENTS: u64 = 1_000;
/// Permutations of a test: for the documentation, and for the rows that every build computes.
const DRAWS: [u32; 2] = [3_999, 999];
const ALPHA: f64 = 0.05;
const LOOKS: u32 = 5;
/// Runs of each group that a look adds, and rounds.
const RUNS: usize = 5;
const ROUNDS: usize = 8;

/// How the looks are paid for.
#[derive(Clone, Copy, Debug)]
enum Rule {
    Single,
    /// Each has the whole level.
    Naive,
    Open,
    Declared,
    /// The same of runs in rounds, which are strata.
    Rounds,
}

impl Rule {
    fn level(self, number: u32) -> f64 {
        let declared = match self {
            Rule::Single => return if number == 1 { ALPHA } else { 0.0 },
            Rule::Naive => return ALPHA,
            Rule::Open => None,
            Rule::Declared | Rule::Rounds => Some(LOOKS),
        };
        Look { number, declared, balanced: true }.level(ALPHA)
    }
}

/// Whether any look claims a difference; looking ends with the first that does.
fn is_claimed(deviations: [f64; 2], shift: f64, rule: Rule, seed: u64) -> bool {
    let mut random = Random::new(seed);
    let is_by_round = matches!(rule, Rule::Rounds);
    let mut strata = vec![BlockRuns::default(); usize::from(!is_by_round)];
    let draws = DRAWS[usize::from(!is_long())];
    (1..=LOOKS).any(|number| {
        for _ in 0..if is_by_round { ROUNDS } else { RUNS } {
            if is_by_round {
                strata.push(BlockRuns::default());
            }
            let runs = strata.last_mut().expect("a stratum");
            runs.baseline.push(deviations[0] * random.normal());
            runs.candidate.push(shift + deviations[1] * random.normal());
        }
        let test = ShiftTest::of(&strata, draws, &mut Pcg64Mcg::seed_from_u64(seed)).expect("both groups");
        is_significant(test.p_value(0.0), rule.level(number))
    })
}

fn share(deviations: [f64; 2], shift: f64, rule: Rule) -> f64 {
    let found = in_parallel(EXPERIMENTS, |seed| is_claimed(deviations, shift, rule, seed));
    found.iter().filter(|claimed| **claimed).count() as f64 / EXPERIMENTS as f64
}

#[test]
fn looks_that_are_paid_for_keep_the_level() {
    println!("| looks | equal sd | sd 0.005 / 0.2 | found, 3 % at sd 3 % |");
    let mut single = [0.0; 2];
    for rule in rows([Rule::Single, Rule::Naive, Rule::Open, Rule::Declared, Rule::Rounds], &[0, 3]) {
        let equal = share([0.03; 2], 0.0, rule);
        let unequal = share([0.005, 0.2], 0.0, rule);
        let power = if is_long() { share([0.03; 2], 0.03, rule) } else { f64::NAN };
        println!("| {rule:?} | {:.1} % | {:.1} % | {:.1} % |", 100.0 * equal, 100.0 * unequal, 100.0 * power);
        match rule {
            Rule::Single => single = [equal, unequal],
            Rule::Naive => assert!(equal > 0.1 && unequal > 0.1, "{equal} {unequal}"),
            // The same experiments, so that what further looks add is known better than the share itself.
            Rule::Rounds => assert!(equal <= 0.055 && unequal <= 0.07, "{equal} {unequal}"),
            Rule::Open | Rule::Declared => {
                assert!(equal <= 0.055 && equal - single[0] <= 0.01, "{rule:?}: {equal} after {single:?}");
                assert!(unequal <= 0.07 && unequal - single[1] <= 0.01, "{rule:?}: {unequal} after {single:?}");
            }
        }
    }
}
