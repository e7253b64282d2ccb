//! Two halves of one log, whose numbers depend on each other.

use latlab::stats::{BatchMeans, BlockRuns, ShiftTest, is_significant};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::simulated::{Random, in_parallel};

const EXPERIMENTS: u64 = 2_000;
const DRAWS: u32 = 799;
const ALPHA: f64 = 0.05;

/// A stationary autoregressive log with this lag-1 autocorrelation.
fn log(lines: usize, correlation: f64, random: &mut Random) -> Vec<f64> {
    let innovation = (1.0 - correlation * correlation).sqrt();
    let mut state = random.normal();
    let mut next = || {
        state = correlation * state + innovation * random.normal();
        state
    };
    (0..lines).map(|_| next()).collect()
}

/// Whether a difference is claimed, and the number of means of the first half.
fn compare_halves(lines: usize, correlation: f64, shift: f64, seed: u64) -> (bool, usize) {
    let all = log(2 * lines, correlation, &mut Random::new(seed));
    let second: Vec<f64> = all[lines..].iter().map(|value| value + shift).collect();
    let block = BlockRuns { baseline: BatchMeans::of(&all[..lines]).means, candidate: BatchMeans::of(&second).means };
    let means = block.baseline.len();
    let test = ShiftTest::of(&[block], DRAWS, &mut Pcg64Mcg::seed_from_u64(seed)).expect("both halves");
    (is_significant(test.p_value(0.0), ALPHA), means)
}

#[test]
fn halves_of_one_log_do_not_differ() {
    println!("| lines of a half | autocorrelation | means of a half | called different |");
    for (lines, correlation) in [
        (100, 0.0),
        (1_000, 0.0),
        (30, 0.8),
        (100, 0.8),
        (300, 0.8),
        (1_000, 0.8),
        (5_000, 0.8),
        (1_000, 0.5),
        (2_000, 0.95),
        (5_000, 0.95),
    ] {
        let found = in_parallel(EXPERIMENTS, |seed| compare_halves(lines, correlation, 0.0, seed));
        let share = found.iter().filter(|(claimed, _)| *claimed).count() as f64 / EXPERIMENTS as f64;
        let means = found.iter().map(|(_, means)| *means).sum::<usize>() as f64 / EXPERIMENTS as f64;
        println!("| {lines} | {correlation} | {means:.0} | {:.1} % |", 100.0 * share);
        assert!(share <= 0.07, "{lines} lines at {correlation}: {share}");
    }
}
