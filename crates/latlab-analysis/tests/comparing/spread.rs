//! Groups of unequal spread, size and shape: false claims, intervals, gates and equivalence, and what they cost in power.

use latlab_stats::{BlockRuns, PermutationTest, ShiftTest, is_significant};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::simulated::{Random, in_parallel, rows};

const EXPERIMENTS: u64 = 2_000;
const DRAWS: u32 = 1_999;
const ALPHA: f64 = 0.05;
/// Standard errors of a simulated share that it may differ from its stated value.
const ERRORS: f64 = 4.0;

/// The distribution of the runs of a group around its level.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Normal(f64),
    /// A mean of 0 and this standard deviation.
    Exponential(f64),
    /// Normal, but every tenth run is ten times as far from its level.
    WithOutliers(f64),
    /// Equal runs, but one in four is higher by this.
    TwoLevels(f64),
}

impl Shape {
    fn draw(self, random: &mut Random) -> f64 {
        match self {
            Shape::Normal(deviation) => deviation * random.normal(),
            Shape::Exponential(deviation) => deviation * (-random.uniform().ln() - 1.0),
            Shape::WithOutliers(deviation) => {
                deviation * random.normal() * if random.uniform() < 0.1 { 10.0 } else { 1.0 }
            }
            Shape::TwoLevels(height) => height * (f64::from(u8::from(random.uniform() < 0.25)) - 0.25),
        }
    }
}

struct Design {
    name: &'static str,
    /// Runs of baseline and candidate in each block.
    blocks: Vec<(usize, usize)>,
    shapes: [Shape; 2],
}

impl Design {
    fn of(name: &'static str, blocks: &[(usize, usize)], shapes: [Shape; 2]) -> Design {
        Design { name, blocks: blocks.to_vec(), shapes }
    }

    /// An experiment whose candidate is higher by `shift`. Blocks differ by more than runs do.
    fn experiment(&self, shift: f64, seed: u64) -> Vec<BlockRuns> {
        let mut random = Random::new(seed);
        let block = |(baseline, candidate): &(usize, usize)| {
            let level = 0.3 * random.normal();
            let mut runs = |count: usize, shape: Shape, level: f64| {
                (0..count).map(|_| level + shape.draw(&mut random)).collect::<Vec<f64>>()
            };
            BlockRuns {
                baseline: runs(*baseline, self.shapes[0], level),
                candidate: runs(*candidate, self.shapes[1], level + shift),
            }
        };
        self.blocks.iter().map(block).collect()
    }

    /// The share of experiments with `shift` in which `is_claimed`.
    fn share(&self, shift: f64, is_claimed: impl Fn(&[BlockRuns], u64) -> bool + Sync) -> f64 {
        let claims = in_parallel(EXPERIMENTS, |seed| is_claimed(&self.experiment(shift, seed), seed));
        claims.iter().filter(|claimed| **claimed).count() as f64 / EXPERIMENTS as f64
    }
}

fn shift_test(blocks: &[BlockRuns], seed: u64) -> ShiftTest {
    ShiftTest::of(blocks, DRAWS, &mut Pcg64Mcg::seed_from_u64(seed)).expect("both groups")
}

fn is_different(blocks: &[BlockRuns], seed: u64) -> bool {
    is_significant(shift_test(blocks, seed).p_value(0.0), ALPHA)
}

fn is_different_by_exchange(blocks: &[BlockRuns], seed: u64) -> bool {
    let exchange = PermutationTest::of(blocks, DRAWS, &mut Pcg64Mcg::seed_from_u64(seed)).expect("both groups");
    is_significant(exchange.p_value(0.0), ALPHA)
}

/// Standard error of a share near `p`.
fn standard_error(p: f64) -> f64 {
    (p * (1.0 - p) / EXPERIMENTS as f64).sqrt()
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

use Shape::{Exponential, Normal, TwoLevels, WithOutliers};

/// Symmetric designs, and the false claims of the test in % that the statistics notes of the project simulated.
fn symmetric() -> Vec<(Design, Option<f64>)> {
    let narrow_and_wide = [Normal(0.005), Normal(0.2)];
    let equal = [Normal(0.03), Normal(0.03)];
    let of = |name, blocks: &[(usize, usize)], shapes, noted| (Design::of(name, blocks, shapes), noted);
    vec![
        of("equal sd, 4 against 4", &[(4, 4)], equal, Some(2.6)),
        of("equal sd, 5 against 5", &[(5, 5)], equal, Some(3.7)),
        of("equal sd, 10 against 10", &[(10, 10)], equal, Some(4.5)),
        of("equal sd, 5 against 20", &[(5, 20)], equal, Some(3.2)),
        of("equal sd, 4 against 40", &[(4, 40)], equal, Some(2.4)),
        of("sd 0.005 / 0.2, 5 against 5", &[(5, 5)], narrow_and_wide, Some(5.0)),
        of("sd 0.005 / 0.2, 8 against 8", &[(8, 8)], narrow_and_wide, Some(4.9)),
        of("sd 0.03 / 0.15, 10 against 6", &[(10, 6)], [Normal(0.03), Normal(0.15)], Some(4.8)),
        of("sd 0.03 / 0.15, 20 against 5", &[(20, 5)], [Normal(0.03), Normal(0.15)], Some(5.6)),
        of("sd 0.02 / 0.2, 40 against 4", &[(40, 4)], [Normal(0.02), Normal(0.2)], Some(5.2)),
        of("sd 0.005 / 0.2, 3 blocks of 3 and 3", &[(3, 3); 3], narrow_and_wide, Some(4.7)),
        of("sd 0.005 / 0.2, 4 blocks of 2 and 2", &[(2, 2); 4], narrow_and_wide, Some(4.6)),
        of("sd 0.005 / 0.2, 10 blocks of 1 and 1", &[(1, 1); 10], narrow_and_wide, Some(4.5)),
        of("sd 0.005 / 0.2, blocks of 4 and 4, 4 and 2, 2 and 4", &[(4, 4), (4, 2), (2, 4)], narrow_and_wide, None),
        of("sd 0.15 / 0.03, blocks of 6 and 2, 2 and 6", &[(6, 2), (2, 6)], [Normal(0.15), Normal(0.03)], None),
        of("outliers in both, 10 against 10", &[(10, 10)], [WithOutliers(0.03); 2], None),
    ]
}

/// Designs that no test of means cures.
fn skewed() -> Vec<Design> {
    vec![
        Design::of("normal / exponential 0.005 / 0.2, 5 against 5", &[(5, 5)], [Normal(0.005), Exponential(0.2)]),
        Design::of("normal / exponential 0.005 / 0.2, 10 against 10", &[(10, 10)], [Normal(0.005), Exponential(0.2)]),
        Design::of("normal / one of four higher, 10 against 10", &[(10, 10)], [Normal(0.005), TwoLevels(0.1)]),
        Design::of("outliers in one only, 10 against 10", &[(10, 10)], [Normal(0.03), WithOutliers(0.03)]),
    ]
}

#[test]
fn groups_of_unequal_spread_keep_the_level() {
    println!("| design | exchange alone | both tests |");
    for (design, noted) in rows(symmetric(), &[1, 5, 10]) {
        let [exchange, both] = [design.share(0.0, is_different_by_exchange), design.share(0.0, is_different)];
        println!("| {} | {} | {} |", design.name, percent(exchange), percent(both));
        assert!(both <= 0.065, "{}: {both}", design.name);
        assert!(both <= exchange, "{}: {both}, {exchange} by the exchange alone", design.name);
        if let Some(noted) = noted.map(|percent| percent / 100.0) {
            assert!((both - noted).abs() <= ERRORS * standard_error(noted), "{}: {both}, noted {noted}", design.name);
        }
    }
}

#[test]
#[ignore = "a table of the documentation: `just simulate`"]
fn skew_of_the_wider_group_is_not_cured() {
    println!("| design | exchange alone | both tests |");
    for design in skewed() {
        let [exchange, both] = [design.share(0.0, is_different_by_exchange), design.share(0.0, is_different)];
        println!("| {} | {} | {} |", design.name, percent(exchange), percent(both));
        assert!(both <= exchange, "{}", design.name);
    }
}

/// A true rise of 5 % against the gate `<= +5%` and the margin of 5 %.
#[test]
fn gates_and_equivalence_at_their_limit_keep_the_level() {
    let limit = 1.05_f64.ln();
    let is_broken = |blocks: &[BlockRuns], seed: u64| {
        shift_test(blocks, seed).interval(1.0 - ALPHA).low.is_some_and(|low| low > limit)
    };
    let is_equivalent = |blocks: &[BlockRuns], seed: u64| {
        is_significant(shift_test(blocks, seed).p_equivalent(0.95_f64.ln(), limit), ALPHA)
    };
    println!("| design | gate broken | equivalent |");
    for (design, _) in rows(symmetric(), &[1, 7]) {
        let [broken, equivalent] = [design.share(limit, is_broken), design.share(limit, is_equivalent)];
        println!("| {} | {} | {} |", design.name, percent(broken), percent(equivalent));
        for (claimed, level) in [(broken, ALPHA / 2.0), (equivalent, ALPHA)] {
            // Welch's approximation of 20 against 5 exceeds the level by up to an eighth.
            assert!(claimed <= level * 1.125 + ERRORS * standard_error(level), "{}: {claimed}", design.name);
        }
    }
}

/// A true rise of 5 % at a standard deviation of 3 %, with the power in % of the notes.
#[test]
fn the_second_test_costs_little_power() {
    let shapes = [Normal(0.03), Normal(0.03)];
    println!("| design | exchange alone | both tests |");
    let all = [
        ("5 against 5", vec![(5, 5)], [0.587, 0.556]),
        ("10 against 10", vec![(10, 10)], [0.933, 0.928]),
        ("3 blocks of 3 and 3", vec![(3, 3); 3], [0.893, 0.869]),
        ("5 against 20", vec![(5, 20)], [0.868, 0.752]),
    ];
    for (name, blocks, noted) in rows(all, &[0]) {
        let design = Design::of(name, &blocks, shapes);
        let shift = 1.05_f64.ln();
        let powers = [design.share(shift, is_different_by_exchange), design.share(shift, is_different)];
        println!("| {} | {} | {} |", design.name, percent(powers[0]), percent(powers[1]));
        for (power, noted) in powers.into_iter().zip(noted) {
            assert!((power - noted).abs() <= ERRORS * standard_error(noted), "{name}: {power}, noted {noted}");
        }
    }
}
