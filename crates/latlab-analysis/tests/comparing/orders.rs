//! Runs of two conditions on a host that changes meanwhile: which order, and which strata, keep the level and find the most?

use latlab_stats::{BlockRuns, ShiftTest, is_significant};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::simulated::{Random, in_parallel, is_long, rows};

/// For the documentation, and in every build.
const EXPERIMENTS: [u64; 2] = [2_000, 500];
const DRAWS: u32 = 999;
const ALPHA: f64 = 0.05;
/// Standard deviation of a run, and the difference that is to be found.
const DEVIATION: f64 = 0.03;
const DIFFERENCE: f64 = 0.045;

/// What the host does to runs, as time goes on.
#[derive(Clone, Copy, Debug)]
enum Process {
    Independent,
    /// Each is correlated with the one before by this.
    Slow(f64),
    /// By six deviations in all, as a host that heats up.
    Drift,
    /// By three deviations, at a time by chance.
    Step,
    /// Every second one is slower by a twentieth.
    Alternates,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Shuffled,
    /// In random order inside of each round; each is a stratum, or all are one.
    Rounds,
    RoundsAsOne,
    /// Baseline and candidate in turns.
    Listed,
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
                    last = correlation * last + (1.0 - correlation * correlation).sqrt() * random.normal();
                    2.0 * DEVIATION * last
                }
                Process::Drift => 6.0 * DEVIATION * at as f64 / count as f64,
                Process::Step => 3.0 * DEVIATION * f64::from(u8::from(at >= step)),
                Process::Alternates => 0.05 * (at % 2) as f64,
            };
            disturbance + DEVIATION * noise
        })
        .collect()
}

fn is_candidate(order: Order, count: usize, random: &mut Random) -> Vec<bool> {
    let mut candidates: Vec<bool> = (0..count).map(|at| at % 2 == 1).collect();
    match order {
        Order::Shuffled => random.shuffle(&mut candidates),
        Order::Rounds | Order::RoundsAsOne => candidates.chunks_mut(2).for_each(|round| random.shuffle(round)),
        Order::Listed => {}
    }
    candidates
}

fn is_claimed(process: Process, order: Order, each: usize, difference: f64, seed: u64) -> bool {
    let mut random = Random::new(seed);
    let values = values(process, 2 * each, &mut random);
    let is_by_round = order == Order::Rounds;
    let mut strata = vec![BlockRuns::default(); if is_by_round { each } else { 1 }];
    for (at, (value, candidate)) in values.into_iter().zip(is_candidate(order, 2 * each, &mut random)).enumerate() {
        let runs = &mut strata[if is_by_round { at / 2 } else { 0 }];
        if candidate { runs.candidate.push(value + difference) } else { runs.baseline.push(value) }
    }
    let test = ShiftTest::of(&strata, DRAWS, &mut Pcg64Mcg::seed_from_u64(seed)).expect("both groups");
    is_significant(test.p_value(0.0), ALPHA)
}

#[test]
fn rounds_keep_the_level_whatever_the_host_does() {
    let orders = rows([Order::Rounds, Order::Shuffled, Order::RoundsAsOne, Order::Listed], &[0]);
    println!("| host | runs | {orders:?}: false/found |");
    let processes = [
        Process::Independent,
        Process::Slow(0.9),
        Process::Slow(0.99),
        Process::Drift,
        Process::Step,
        Process::Alternates,
    ];
    let experiments = EXPERIMENTS[usize::from(!is_long())];
    for process in rows(processes, &[1, 3]) {
        for each in rows([8, 10, 30], &[1]) {
            let share = |order, difference| {
                let claims = in_parallel(experiments, |seed| is_claimed(process, order, each, difference, seed));
                100.0 * claims.iter().filter(|claimed| **claimed).count() as f64 / experiments as f64
            };
            let shares: Vec<[f64; 2]> =
                orders.iter().map(|order| [share(*order, 0.0), share(*order, DIFFERENCE)]).collect();
            let cells: Vec<String> = shares.iter().map(|[wrong, found]| format!("{wrong:.1}/{found:.0}")).collect();
            println!("| {process:?} | {each} | {} |", cells.join(" | "));
            // Four standard errors above 5 %.
            assert!(shares[0][0] <= if is_long() { 7.0 } else { 9.0 }, "{process:?}: {shares:?}");
            assert!(shares[0][1] >= 50.0 || is_long(), "{process:?}: {shares:?}");
        }
    }
}
