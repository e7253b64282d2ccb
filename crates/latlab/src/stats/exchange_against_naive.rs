//! The exchange test against its definition: every exchange made, the statistic computed anew for each shift.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::exchange::{BlockRuns, DRAWS, PermutationTest, is_refused, mean};

fn block(baseline: &[f64], candidate: &[f64]) -> BlockRuns {
    BlockRuns { baseline: baseline.to_vec(), candidate: candidate.to_vec() }
}

fn exchanges(blocks: &[BlockRuns], draws: u32) -> PermutationTest {
    PermutationTest::of(blocks, draws, &mut Pcg64Mcg::seed_from_u64(1)).expect("both groups")
}

/// Every way to name the runs of a block: bit i set makes run i (baseline first) a candidate.
fn namings(block: &BlockRuns) -> Vec<Vec<bool>> {
    let runs = block.baseline.len() + block.candidate.len();
    let masks = (0_u32..1 << runs).filter(|mask| mask.count_ones() as usize == block.candidate.len());
    masks.map(|mask| (0..runs).map(|run| mask >> run & 1 == 1).collect()).collect()
}

/// Σ w·(candidate's mean − baseline's mean) / Σ w of runs with these names.
fn statistic(blocks: &[Vec<f64>], names: &[&Vec<bool>]) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (values, names) in blocks.iter().zip(names) {
        let of = |wanted: bool| -> Vec<f64> {
            values.iter().zip(*names).filter(|(_, name)| **name == wanted).map(|(value, _)| *value).collect()
        };
        let (baseline, candidate) = (of(false), of(true));
        let (n, m) = (baseline.len() as f64, candidate.len() as f64);
        let weight = n * m / (n + m);
        sum += weight * (mean(&candidate) - mean(&baseline));
        weights += weight;
    }
    sum / weights
}

/// Shares of exchanges with a statistic at least as high, and at least as low, once the candidate is moved back.
fn naive_tails(blocks: &[BlockRuns], shift: f64) -> (f64, f64) {
    let moved: Vec<Vec<f64>> = blocks
        .iter()
        .map(|block| block.baseline.iter().copied().chain(block.candidate.iter().map(|value| value - shift)).collect())
        .collect();
    let each: Vec<Vec<Vec<bool>>> = blocks.iter().map(namings).collect();
    let mut all: Vec<Vec<&Vec<bool>>> = vec![Vec::new()];
    for namings in &each {
        all = all
            .into_iter()
            .flat_map(|names| namings.iter().map(move |next| names.iter().copied().chain([next]).collect()))
            .collect();
    }
    let real: Vec<Vec<bool>> = blocks
        .iter()
        .map(|block| [vec![false; block.baseline.len()], vec![true; block.candidate.len()]].concat())
        .collect();
    let seen = statistic(&moved, &real.iter().collect::<Vec<_>>());
    let found: Vec<f64> = all.iter().map(|names| statistic(&moved, names)).collect();
    let share = |count: usize| count as f64 / found.len() as f64;
    let higher = found.iter().filter(|value| **value >= seen - 1e-9).count();
    let lower = found.iter().filter(|value| **value <= seen + 1e-9).count();
    (share(higher), share(lower))
}

fn designs() -> Vec<Vec<BlockRuns>> {
    vec![
        vec![block(&[1.0, 2.0, 4.0, 3.5], &[2.5, 6.0, 5.0, 7.25])],
        vec![block(&[1.0, 2.0], &[2.5, 6.0, 5.0]), block(&[11.0, 12.5, 13.0], &[10.5, 16.0])],
        vec![block(&[1.0], &[2.0]), block(&[3.0, 3.0], &[3.0]), block(&[7.0, 1.0, 2.0], &[4.0, 4.5])],
        vec![block(&[0.0], &[0.7]), block(&[5.0], &[5.2]), block(&[9.0], &[8.9]), block(&[2.0], &[2.3])],
        vec![block(&[5.0, 5.0, 5.0], &[5.0, 5.0, 5.0])],
    ]
}

#[test]
fn tails_of_every_shift_are_those_of_the_definition() {
    for (number, blocks) in designs().into_iter().enumerate() {
        let exchanges = exchanges(&blocks, DRAWS);
        assert!(exchanges.is_exact());
        // between critical values, where no two statistics tie but those that tie for every shift, and at 0
        for step in -130_i32..=130 {
            let shift = f64::from(step) * 0.0837 + 1e-5 * f64::from(step.signum());
            let (higher, lower) = naive_tails(&blocks, shift);
            let got = (exchanges.chance_of_higher(shift), exchanges.chance_of_lower(shift));
            assert!((got.0 - higher).abs() < 1e-12, "design {number}, shift {shift}: {got:?}, naive {higher} {lower}");
            assert!((got.1 - lower).abs() < 1e-12, "design {number}, shift {shift}: {got:?}, naive {higher} {lower}");
        }
    }
}

#[test]
fn the_interval_is_every_shift_that_is_not_refused() {
    for blocks in designs() {
        let exchanges = exchanges(&blocks, DRAWS);
        for confidence in [0.5, 0.8, 0.9, 0.95] {
            let interval = exchanges.interval(confidence);
            for step in -400..=400 {
                let shift = f64::from(step) * 0.0273 + 1e-6;
                let inside =
                    interval.low.is_none_or(|low| low <= shift) && interval.high.is_none_or(|high| shift <= high);
                let refused = is_refused(exchanges.p_value(shift), 1.0 - confidence);
                assert_eq!(inside, !refused, "{interval:?} at {shift}: p {}", exchanges.p_value(shift));
            }
            let excludes_zero =
                interval.low.is_some_and(|low| low > 0.0) || interval.high.is_some_and(|high| high < 0.0);
            assert_eq!(excludes_zero, is_refused(exchanges.p_value(0.0), 1.0 - confidence));
        }
    }
}

#[test]
fn drawn_exchanges_say_what_all_of_them_say() {
    let blocks = [
        block(&[1.0, 2.0, 4.0, 3.5, 2.2], &[2.5, 6.0, 5.0, 4.25]),
        block(&[11.0, 12.5, 13.0], &[10.5, 16.0, 14.0, 13.1, 12.2]),
    ];
    let exact = exchanges(&blocks, DRAWS);
    // the same with a third block that says nothing new: too many to take all
    let mut hats = blocks.to_vec();
    hats.push(BlockRuns { baseline: vec![0.0; 12], candidate: vec![0.0; 12] });
    assert!(exact.is_exact() && exact.total() == 126 * 56);
    let (one, other) = (exchanges(&hats, 40_000), exchanges(&hats, 40_000));
    assert!(!one.is_exact() && one.total() == 40_001);
    assert_eq!(one, other, "the same seed gives the same exchanges");
    let (higher, lower) = (one.chance_of_higher(0.0), one.chance_of_lower(0.0));
    assert!(higher > 0.0 && lower > 0.5 && one.p_value(one.difference()) > 0.9);
}

#[test]
fn all_equal_values_are_certain_of_no_difference() {
    let exchanges = exchanges(&[block(&[3.1; 4], &[3.1; 4]), block(&[0.1; 4], &[0.1; 4])], DRAWS);
    let interval = exchanges.interval(0.95);
    assert_eq!((exchanges.difference(), exchanges.p_value(0.0)), (0.0, 1.0));
    assert_eq!((interval.low, interval.high), (Some(0.0), Some(0.0)));
    assert!(exchanges.p_equivalent(-0.01, 0.01) < 0.01);
}

#[test]
fn too_few_runs_bound_nothing() {
    let exchanges = exchanges(&[block(&[1.0, 1.1], &[9.0, 9.1])], DRAWS);
    let interval = exchanges.interval(0.95);
    assert_eq!((exchanges.total(), exchanges.p_value(0.0)), (6, 1.0 / 3.0));
    assert_eq!((interval.low, interval.high), (None, None));
    assert!(PermutationTest::of(&[block(&[1.0], &[])], DRAWS, &mut Pcg64Mcg::seed_from_u64(1)).is_none());
    assert!(PermutationTest::of(&[], DRAWS, &mut Pcg64Mcg::seed_from_u64(1)).is_none());
}

#[test]
fn six_boots_are_the_first_that_can_tell() {
    let differences = [0.1, 0.12, 0.09, 0.11, 0.13, 0.1];
    let over = |boots: usize| {
        PermutationTest::of_differences(&differences[..boots], DRAWS, &mut Pcg64Mcg::seed_from_u64(1)).expect("some")
    };
    assert!((over(5).p_value(0.0) - 2.0 / 32.0).abs() < 1e-12);
    assert!((over(6).p_value(0.0) - 2.0 / 64.0).abs() < 1e-12);
    // one flip away: the smallest and the largest of the differences bound the mean
    let interval = over(6).interval(0.95);
    assert_eq!((interval.low, interval.high), (Some(0.09), Some(0.13)));
}

#[test]
fn bundles_keep_the_level_and_the_width_of_the_interval() {
    let mut random = Pcg64Mcg::seed_from_u64(5);
    let mut uniform = || f64::from(random.next_u32()) / 4_294_967_296.0 - 0.5;
    let mut draws = Pcg64Mcg::seed_from_u64(6);
    let (replicates, mut refused, mut widths) = (1_000, 0, [0.0, 0.0]);
    for _ in 0..replicates {
        let values =
            |uniform: &mut dyn FnMut() -> f64, count: usize| (0..count).map(|_| uniform()).collect::<Vec<f64>>();
        let block = block(&values(&mut uniform, 203), &values(&mut uniform, 310));
        // 203 places drawn 199 times are four times as many as these, so that four neighbours change places at once
        let bundled =
            PermutationTest::within(std::slice::from_ref(&block), 199, 203 * 50, &mut draws).expect("both groups");
        assert_eq!(bundled.total(), 200);
        let single = PermutationTest::of(&[block], 199, &mut draws).expect("both groups");
        refused += u32::from(is_refused(bundled.p_value(0.0), 0.1));
        for (width, exchanges) in widths.iter_mut().zip([&bundled, &single]) {
            let interval = exchanges.interval(0.9);
            *width += interval.high.expect("bounded") - interval.low.expect("bounded");
        }
    }
    // three standard errors of 10 % in 1,000 are 2.8 points
    assert!((72..=128).contains(&refused), "{refused} of {replicates}");
    assert!((widths[0] / widths[1] - 1.0).abs() < 0.05, "{widths:?}");
}
