//! Executions of two equal commands, each a run of its own, that depend on those before: which order keeps the level?

use latlab_stats::{BlockRuns, ShiftTest, is_significant};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::simulated::{Random, in_parallel, is_long, rows};

/// For the documentation, and in every build.
const EXPERIMENTS: [u64; 2] = [2_000, 500];
const DRAWS: u32 = 999;
const ALPHA: f64 = 0.05;
const DEVIATION: f64 = 0.03;

/// What the host does to executions, as time goes on.
#[derive(Clone, Copy, Debug)]
enum Process {
    Independent,
    /// Each is correlated with the one before by this.
    Slow(f64),
    /// By a tenth in all, as a host that heats up.
    Drift,
    /// By a tenth, at a time by chance.
    Step,
    /// Every second one is slower by a twentieth.
    Alternates,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Randomized,
    Listed,
    OneAfterTheOther,
}

fn values(process: Process, count: usize, random: &mut Random) -> Vec<f64> {
    let step = (random.uniform() * count as f64) as usize;
    let mut last = random.normal();
    (0..count)
        .map(|at| {
            let noise = random.normal();
            let disturbance = match process {
                Process::Independent => 0.0,
                Process::Slow(correlation) => {
                    last = correlation * last + (1.0 - correlation * correlation).sqrt() * noise;
                    return DEVIATION * last;
                }
                Process::Drift => 0.1 * at as f64 / count as f64,
                Process::Step => 0.1 * f64::from(u8::from(at >= step)),
                Process::Alternates => 0.05 * (at % 2) as f64,
            };
            disturbance + DEVIATION * noise
        })
        .collect()
}

fn is_candidate(order: Order, count: usize, random: &mut Random) -> Vec<bool> {
    let mut candidates: Vec<bool> =
        (0..count).map(|at| if order == Order::OneAfterTheOther { at >= count / 2 } else { at % 2 == 1 }).collect();
    if order == Order::Randomized {
        for at in (1..count).rev() {
            candidates.swap(at, (random.uniform() * (at + 1) as f64) as usize);
        }
    }
    candidates
}

fn is_claimed(process: Process, order: Order, each: usize, seed: u64) -> bool {
    let mut random = Random::new(seed);
    let values = values(process, 2 * each, &mut random);
    let mut runs = BlockRuns::default();
    for (value, candidate) in values.into_iter().zip(is_candidate(order, 2 * each, &mut random)) {
        if candidate { &mut runs.candidate } else { &mut runs.baseline }.push(value);
    }
    let test = ShiftTest::of(&[runs], DRAWS, &mut Pcg64Mcg::seed_from_u64(seed)).expect("both groups");
    is_significant(test.p_value(0.0), ALPHA)
}

#[test]
fn an_execution_is_an_observation_if_the_order_is_random() {
    println!("| process | executions | random | in turns | one after the other |");
    let processes = [
        Process::Independent,
        Process::Slow(0.9),
        Process::Slow(0.99),
        Process::Drift,
        Process::Step,
        Process::Alternates,
    ];
    for process in rows(processes, &[1, 5]) {
        for each in rows([10, 30], &[0]) {
            let experiments = EXPERIMENTS[usize::from(!is_long())];
            let share = |order| {
                let claims = in_parallel(experiments, |seed| is_claimed(process, order, each, seed));
                100.0 * claims.iter().filter(|claimed| **claimed).count() as f64 / experiments as f64
            };
            let orders = rows([Order::Randomized, Order::Listed, Order::OneAfterTheOther], &[0]);
            let shares: Vec<f64> = orders.into_iter().map(share).collect();
            println!("| {process:?} | {each}:{each} | {shares:.1?} |");
            // Four standard errors above 5 %.
            assert!(shares[0] <= if is_long() { 7.0 } else { 9.0 }, "{process:?}: {shares:?}");
        }
    }
}
