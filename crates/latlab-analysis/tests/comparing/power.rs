//! The number of further runs that a decision needs, against an oracle that simulates the test.

use latlab_stats::{BlockRuns, POWER, SampleSizeGoal, ShiftTest, is_significant, runs_needed};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::simulated::{Random, in_parallel, is_long, rows};

const ALPHA: f64 = 0.05;
/// Experiments for each step of the oracle, and for the power that is claimed: for the documentation, and in every build.
const EXPERIMENTS: [(u64, u64); 2] = [(1_000, 4_000), (250, 1_000)];
const DRAWS: u32 = 799;

/// Runs that show exactly this difference, and this standard deviation within each block and group.
fn seen(runs: usize, blocks: usize, difference: f64, deviation: f64) -> Vec<BlockRuns> {
    let mut random = Random::new(runs as u64 * 100 + blocks as u64);
    let mut made = vec![BlockRuns::default(); blocks];
    let mut squares = 0.0;
    let mut centred = || {
        let raw: Vec<f64> = (0..runs).map(|_| random.normal()).collect();
        let mean = raw.iter().sum::<f64>() / runs as f64;
        squares += raw.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        raw.into_iter().map(move |value| value - mean).collect::<Vec<f64>>()
    };
    for block in &mut made {
        *block = BlockRuns { baseline: centred(), candidate: centred() };
    }
    let freedom = (2 * runs * blocks - 2 * blocks) as f64;
    let scale = deviation / (squares / freedom).sqrt();
    for (place, block) in made.iter_mut().enumerate() {
        block.baseline.iter_mut().for_each(|value| *value = *value * scale + place as f64);
        block.candidate.iter_mut().for_each(|value| *value = *value * scale + place as f64 + difference);
    }
    made
}

/// How often the test itself reaches `aim` with so many runs of each group, spread over the blocks.
fn simulated_power(
    (runs, blocks): (usize, usize),
    (difference, deviation): (f64, f64),
    aim: SampleSizeGoal,
    experiments: u64,
) -> f64 {
    let reached = in_parallel(experiments, |seed| {
        let mut random = Random::new(seed);
        let mut made = vec![BlockRuns::default(); blocks];
        for run in 0..runs {
            let block = &mut made[run % blocks];
            block.baseline.push(deviation * random.normal());
            block.candidate.push(deviation * random.normal() + difference);
        }
        let test = ShiftTest::of(&made, DRAWS, &mut Pcg64Mcg::seed_from_u64(seed)).expect("both groups");
        let p = match aim {
            SampleSizeGoal::Difference => test.p_value(0.0),
            SampleSizeGoal::Equivalence { low, high } => test.p_equivalent(low, high),
        };
        is_significant(p, ALPHA)
    });
    reached.iter().filter(|reached| **reached).count() as f64 / experiments as f64
}

/// The fewest further runs that reach the power when simulated.
fn oracle(runs: usize, blocks: usize, truth: (f64, f64), aim: SampleSizeGoal) -> u32 {
    let (experiments, _) = EXPERIMENTS[usize::from(!is_long())];
    let reaches =
        |further: u32| simulated_power((runs * blocks + further as usize, blocks), truth, aim, experiments) >= POWER;
    let mut enough = 1;
    while !reaches(enough) {
        enough *= 2;
    }
    let mut short = enough / 2;
    while enough - short > 1 {
        let middle = short + (enough - short) / 2;
        *(if reaches(middle) { &mut enough } else { &mut short }) = middle;
    }
    enough
}

#[test]
fn runs_needed_are_those_of_an_oracle_and_reach_their_power() {
    let equivalence = SampleSizeGoal::Equivalence { low: -0.03, high: 0.03 };
    println!("| runs × blocks | difference, sd | aim | runs needed | oracle | power reached |");
    let all = [
        (5, 1, 0.05, SampleSizeGoal::Difference),
        (3, 3, 0.03, SampleSizeGoal::Difference),
        (4, 5, 0.02, SampleSizeGoal::Difference),
        (5, 2, 0.0, equivalence),
        (3, 3, 0.01, equivalence),
    ];
    let (_, experiments) = EXPERIMENTS[usize::from(!is_long())];
    for (runs, blocks, difference, aim) in rows(all, &[1, 3]) {
        let truth = (difference, 0.05);
        let ours = runs_needed(&seen(runs, blocks, difference, truth.1), aim, ALPHA).expect("not too many");
        let theirs = oracle(runs, blocks, truth, aim);
        let power = simulated_power((runs * blocks + ours as usize, blocks), truth, aim, experiments);
        println!("| {runs} × {blocks} | {difference}, 0.05 | {aim:?} | {ours} | {theirs} | {:.1} % |", 100.0 * power);
        let ratio = f64::from(ours) / f64::from(theirs);
        assert!((1.0 / 1.25..=1.25).contains(&ratio), "{runs} × {blocks}: {ours} against the oracle's {theirs}");
        let three_errors = 3.0 * (POWER * (1.0 - POWER) / experiments as f64).sqrt();
        assert!(power >= POWER - three_errors, "{runs} × {blocks}: {power}");
    }
}

#[test]
fn what_no_number_of_runs_decides_has_none() {
    let none = seen(5, 2, 0.0, 0.05);
    assert_eq!(runs_needed(&none, SampleSizeGoal::Difference, ALPHA), None);
    // A difference at the margin is never inside of it.
    let margin = SampleSizeGoal::Equivalence { low: -0.03, high: 0.03 };
    assert_eq!(runs_needed(&seen(5, 2, 0.03, 0.05), margin, ALPHA), None);
    // two runs against two leave 6 exchanges: whatever they show, more are needed
    let clear = [BlockRuns { baseline: vec![1.0, 1.1], candidate: vec![9.0, 9.1] }];
    assert!(runs_needed(&clear, SampleSizeGoal::Difference, ALPHA).is_some_and(|runs| (2..=3).contains(&runs)));
    assert_eq!(runs_needed(&[], SampleSizeGoal::Difference, ALPHA), None);
}
