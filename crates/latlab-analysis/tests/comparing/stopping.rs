//! Intervals keep their coverage although the stop rule ends an experiment when they are narrow.

use latlab_stats::{BlockRuns, GroupBlocks, PrecisionGoal, ShiftTest, own_interval, reached};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::simulated::{Random, in_parallel, rows};

const EXPERIMENTS: u64 = 2_000;
const DRAWS: u32 = 799;
/// Runs of each condition in a block, and the most blocks: a limit that is seldom reached, so that the rule ends the experiment.
const RUNS: usize = 5;
const BLOCKS_MAX: usize = 40;

/// The runs up to the end of the experiment by the rule or by the limit.
struct Ended {
    groups: Vec<GroupBlocks>,
    /// The true mean of each group over these blocks.
    truth: f64,
    by_rule: bool,
}

/// The distribution of runs, with a standard deviation of 0.05.
#[derive(Clone, Copy, Debug)]
enum Scatter {
    Normal,
    /// Exponential: more skewed than logarithms of delays are.
    Skewed,
}

impl Scatter {
    fn draw(self, random: &mut Random) -> f64 {
        match self {
            Scatter::Normal => 0.05 * random.normal(),
            Scatter::Skewed => 0.05 * (-random.uniform().ln() - 1.0),
        }
    }
}

/// Blocks of runs until the goal is reached: block effects, drift, and a spread between runs.
fn measure(groups: usize, goal: PrecisionGoal, scatter: Scatter, seed: u64) -> Ended {
    let mut random = Random::new(seed);
    let mut exchanges = Pcg64Mcg::seed_from_u64(seed);
    let mut ended = Ended { groups: vec![Vec::new(); groups], truth: 0.0, by_rule: false };
    let mut levels = Vec::new();
    while levels.len() < BLOCKS_MAX {
        let level = 0.15 * random.normal() + 0.02 * levels.len() as f64;
        levels.push(level);
        for group in &mut ended.groups {
            group.push((0..RUNS).map(|_| level + scatter.draw(&mut random)).collect());
        }
        if reached(&ended.groups, goal, &mut exchanges) {
            ended.by_rule = true;
            break;
        }
    }
    ended.truth = levels.iter().sum::<f64>() / levels.len() as f64;
    ended
}

#[test]
fn stopping_by_width_keeps_the_coverage() {
    println!("| goal | stopped by the rule | mean blocks | coverage |");
    for half_width in rows([0.04, 0.03, 0.02], &[1]) {
        let goal = PrecisionGoal { half_width, confidence: 0.95, draws: DRAWS };
        let ended = in_parallel(EXPERIMENTS, |seed| {
            let ended = measure(2, goal, Scatter::Skewed, seed);
            let pair = |place: usize| BlockRuns {
                baseline: ended.groups[0][place].clone(),
                candidate: ended.groups[1][place].clone(),
            };
            let blocks: Vec<BlockRuns> = (0..ended.groups[0].len()).map(pair).collect();
            let found = ShiftTest::of(&blocks, DRAWS, &mut Pcg64Mcg::seed_from_u64(!seed)).expect("both groups");
            let interval = found.interval(0.95);
            let covered = interval.low.is_some_and(|low| low <= 0.0) && interval.high.is_some_and(|high| high >= 0.0);
            (ended.by_rule, blocks.len(), covered)
        });
        let of_all = |count: usize| count as f64 / EXPERIMENTS as f64;
        let coverage = of_all(ended.iter().filter(|each| each.2).count());
        let by_rule = of_all(ended.iter().filter(|each| each.0).count());
        let blocks = of_all(ended.iter().map(|each| each.1).sum());
        println!("| ±{half_width} | {:.0} % | {blocks:.1} | {:.1} % |", 100.0 * by_rule, 100.0 * coverage);
        assert!((0.93..=0.98).contains(&coverage), "±{half_width}: coverage {coverage}");
        assert!(by_rule > 0.9, "±{half_width}: the rule ended {by_rule} of the experiments");
    }
}

#[test]
fn the_mean_of_a_single_group_keeps_its_coverage_too() {
    println!("| own mean | goal | mean blocks | coverage |");
    let all = [Scatter::Normal, Scatter::Skewed].into_iter();
    let all = all.flat_map(|scatter| [0.04, 0.03, 0.02, 0.013].map(|goal| (scatter, goal)));
    for (scatter, half_width) in rows(all, &[1, 5]) {
        let goal = PrecisionGoal { half_width, confidence: 0.95, draws: DRAWS };
        let ended = in_parallel(EXPERIMENTS, |seed| {
            let ended = measure(1, goal, scatter, seed);
            let interval = own_interval(&ended.groups[0], 0.95).expect("runs enough");
            let covered = interval.low.is_some_and(|low| low <= ended.truth)
                && interval.high.is_some_and(|high| ended.truth <= high);
            (ended.groups[0].len(), ended.by_rule, covered)
        });
        let of_all = |count: usize| count as f64 / EXPERIMENTS as f64;
        let coverage = of_all(ended.iter().filter(|each| each.2).count());
        let by_rule = of_all(ended.iter().filter(|each| each.1).count());
        let blocks = of_all(ended.iter().map(|each| each.0).sum());
        println!("| {scatter:?} | ±{half_width} | {blocks:.1} | {:.1} % |", 100.0 * coverage);
        assert!((0.93..=0.98).contains(&coverage), "{scatter:?} ±{half_width}: coverage {coverage}");
        assert!(by_rule > 0.95, "{scatter:?} ±{half_width}: the rule ended {by_rule} of the experiments");
    }
}

#[test]
fn too_few_runs_never_stop_and_differences_do_not_matter() {
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let group = |level: f64, blocks: usize| -> GroupBlocks {
        (0..blocks).map(|block| (0..5).map(|run| level + 0.01 * ((run * 7 + block * 3) % 5) as f64).collect()).collect()
    };
    let goal = PrecisionGoal { half_width: 0.05, confidence: 0.95, draws: DRAWS };
    assert!(!reached(&[group(0.0, 1), group(0.0, 1)], goal, &mut random), "five runs each");
    assert!(!reached(&[], goal, &mut random));
    for level in [0.0, 1.0, -30.0] {
        assert!(reached(&[group(0.0, 2), group(level, 2)], goal, &mut random), "moved by {level}");
    }
    let narrow = PrecisionGoal { half_width: 0.001, ..goal };
    assert!(!reached(&[group(0.0, 2), group(9.0, 2)], narrow, &mut random));
}
