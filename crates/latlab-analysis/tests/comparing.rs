//! Comparisons of simulated experiments whose true difference is known: a few rows of the tables of docs/statistics.md;
//! `just simulate` prints the tables.
#![allow(clippy::print_stdout, reason = "the tests print tables of the documentation")]

#[path = "comparing/clock.rs"]
mod clock;
#[path = "comparing/limits.rs"]
mod limits;
#[path = "comparing/looks.rs"]
mod looks;
#[path = "comparing/naive.rs"]
mod naive;
#[path = "comparing/numbers.rs"]
mod numbers;
#[path = "comparing/orders.rs"]
mod orders;
#[path = "comparing/planning.rs"]
mod planning;
#[path = "comparing/simulated.rs"]
mod simulated;
#[path = "comparing/spread.rs"]
mod spread;
#[path = "comparing/stopping.rs"]
mod stopping;

use latlab_stats::{BlockRuns, ShiftTest, is_significant};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use simulated::{DESIGNS, Design, STATISTICS, experiment, in_parallel, is_long, rows};

/// Simulated experiments for each design: for the documentation, and in every build.
const EXPERIMENTS: [u64; 2] = [2_000, 500];
/// Simulated experiments for each design with naive tests: the t test and the Mann-Whitney test over single probes, and
/// the t test over pooled runs.
const NAIVE_EXPERIMENTS: u64 = 300;
/// Permutations of a test, fewer than by default to save time: for the documentation, and in every build. Its level holds
/// for any number.
const DRAWS: [u32; 2] = [1_999, 499];
const ALPHA: f64 = 0.05;

/// The result of one test of one experiment.
#[derive(Clone, Copy)]
struct Outcome {
    /// It found a difference although there is none.
    false_positive: bool,
    /// The true difference lies in the interval.
    covered: bool,
    /// A true shift of 5 % was found, with the right sign.
    five: bool,
    /// A true shift of 20 % was found, with the right sign.
    twenty: bool,
}

fn shift_test(blocks: &[BlockRuns], seed: u64) -> ShiftTest {
    ShiftTest::of(blocks, DRAWS[usize::from(!is_long())], &mut Pcg64Mcg::seed_from_u64(seed))
        .expect("both groups in every block")
}

/// Tests the experiment as it is, and with the candidate's values multiplied to give a true shift.
fn outcome(blocks: &[BlockRuns], seed: u64) -> Outcome {
    let is_higher = |factor: f64| {
        let moved = |block: &BlockRuns| BlockRuns {
            candidate: block.candidate.iter().map(|value| value + factor.ln()).collect(),
            ..block.clone()
        };
        let test = shift_test(&blocks.iter().map(moved).collect::<Vec<_>>(), seed);
        is_significant(test.p_value(0.0), ALPHA) && test.difference() > 0.0
    };
    let none = shift_test(blocks, seed);
    let interval = none.interval(1.0 - ALPHA);
    Outcome {
        false_positive: is_significant(none.p_value(0.0), ALPHA),
        covered: interval.low.is_none_or(|low| low <= 0.0) && interval.high.is_none_or(|high| high >= 0.0),
        five: is_higher(1.05),
        twenty: is_higher(1.2),
    }
}

fn share(outcomes: &[[Outcome; 3]], statistic: usize, of: fn(&Outcome) -> bool) -> f64 {
    outcomes.iter().filter(|each| of(&each[statistic])).count() as f64 / outcomes.len() as f64
}

fn judge(design: Design) -> Vec<[Outcome; 3]> {
    in_parallel(EXPERIMENTS[usize::from(!is_long())], |seed| {
        let made = experiment(design, seed, false);
        [0, 1, 2].map(|statistic| outcome(&made.statistics[statistic], seed))
    })
}

#[test]
fn verdicts_and_intervals_have_their_stated_error_rates() {
    println!("| runs × blocks | statistic | false positives | coverage | 5 % decided | 20 % decided |");
    for design in rows(DESIGNS, &[0]) {
        let outcomes = judge(design);
        for (place, statistic) in STATISTICS.into_iter().enumerate() {
            let false_positives = share(&outcomes, place, |outcome| outcome.false_positive);
            let coverage = share(&outcomes, place, |outcome| outcome.covered);
            let five = share(&outcomes, place, |outcome| outcome.five);
            let twenty = share(&outcomes, place, |outcome| outcome.twenty);
            let percent = |share: f64| format!("{:.1} %", 100.0 * share);
            println!(
                "| {} × {} | {statistic} | {} | {} | {} | {} |",
                design.runs,
                design.blocks,
                percent(false_positives),
                percent(coverage),
                percent(five),
                percent(twenty)
            );
            assert!(false_positives <= 0.06, "{design:?} {statistic}: {false_positives} false positives");
            assert!((0.93..=0.98).contains(&coverage), "{design:?} {statistic}: coverage {coverage}");
            assert!(twenty >= 0.95 || statistic == "p99", "{design:?} {statistic}: {twenty} of 20 % shifts");
            assert!(five >= 0.80 || statistic == "p99", "{design:?} {statistic}: {five} of 5 % shifts");
        }
    }
}

/// The values of one statistic for all runs, without their blocks.
fn pooled(blocks: &[BlockRuns]) -> [Vec<f64>; 2] {
    let of = |group: fn(&BlockRuns) -> &Vec<f64>| blocks.iter().flat_map(group).copied().collect();
    [of(|block| &block.baseline), of(|block| &block.candidate)]
}

#[test]
#[ignore = "a table of the documentation: `just simulate`"]
fn naive_tests_exceed_their_stated_error_rate() {
    println!("| runs × blocks | t over probes | Mann–Whitney over probes | t over pooled runs: false, 5 % decided |");
    for design in DESIGNS {
        let found = in_parallel(NAIVE_EXPERIMENTS, |seed| {
            let made = experiment(design, seed, true);
            let [baseline, candidate] = &made.probes;
            let [one, other] = pooled(&made.statistics[0]);
            let moved: Vec<f64> = other.iter().map(|value| value + 1.05_f64.ln()).collect();
            [
                naive::student(baseline, candidate),
                naive::mann_whitney(baseline, candidate),
                naive::student(&one, &other),
                naive::student(&one, &moved),
            ]
            .map(|p| p <= ALPHA)
        });
        let share = |test: usize| found.iter().filter(|found| found[test]).count() as f64 / found.len() as f64;
        let [t, ranks, runs, decided] = [0, 1, 2, 3].map(|test| 100.0 * share(test));
        println!("| {} × {} | {t:.0} % | {ranks:.0} % | {runs:.1} %, {decided:.0} % |", design.runs, design.blocks);
        // Tests over single probes find a difference between equal conditions in more than 30 % of the experiments.
        assert!(t > 30.0 && ranks > 30.0, "{design:?}: t {t} %, Mann-Whitney {ranks} %");
        assert!(decided < 60.0, "{design:?}: the t test over pooled runs decided {decided} %");
    }
}
