//! The test of a shift between two groups of runs: the permutation test and Welch's t test within blocks, of which the
//! larger p value counts. The permutation test is exact if the groups differ by a shift only; Welch's test needs no equal
//! spread. Method, simulation and limits: docs/statistics.md, "Comparing runs"; reasons: decision 0019.

use rand::Rng;

use super::interval::{Interval, student, student_above};
use super::permutation::{BlockRuns, PermutationTest, is_significant, mean, rounding, weighted_difference};

/// The tests of a shift in one or more readings of the same runs. A claim is made only if each reading makes it: a p value
/// is the largest one, and the interval spans those of all tests.
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftTest {
    first: Reading,
    others: Vec<Reading>,
    /// By how much the observed difference may miss the true one, however many runs there are.
    reach: f64,
}

/// Both tests of one reading.
#[derive(Clone, Debug, PartialEq)]
struct Reading {
    permutation: PermutationTest,
    /// `None` if the variance cannot be estimated: then nothing is claimed.
    welch: Option<Welch>,
}

impl ShiftTest {
    /// Tests within `blocks`, with `draws` random permutations if there are many. Blocks without both groups are left out;
    /// `None` if that leaves none.
    pub fn of(blocks: &[BlockRuns], draws: u32, random: &mut impl Rng) -> Option<ShiftTest> {
        let permutation = PermutationTest::of(blocks, draws, random)?;
        let welch = Welch::within(blocks, permutation.difference());
        let welch = welch.or_else(|| Welch::between(blocks, permutation.difference()));
        Some(ShiftTest { first: Reading { permutation, welch }, others: Vec::new(), reach: 0.0 })
    }

    /// Tests over boots, each with one difference: the exchange of signs, which is the permutation of one pair in each
    /// block, and the paired t test.
    pub fn of_differences(differences: &[f64], draws: u32, random: &mut impl Rng) -> Option<ShiftTest> {
        let pair = |difference: &f64| BlockRuns { baseline: vec![0.0], candidate: vec![*difference] };
        ShiftTest::of(&differences.iter().map(pair).collect::<Vec<_>>(), draws, random)
    }

    /// Tests placements, which exist for infinite values too: whether a run of the candidate is more often above one of
    /// the baseline in its block than below (Brunner and Munzel 2000). The difference is the probability of the former
    /// less that of the latter, and its interval has no use.
    pub fn of_placements(blocks: &[BlockRuns], draws: u32, random: &mut impl Rng) -> Option<ShiftTest> {
        let ranks: Vec<BlockRuns> = blocks.iter().map(scaled_midranks).collect();
        let placements: Vec<BlockRuns> = blocks.iter().map(placements).collect();
        let permutation = PermutationTest::of(&ranks, draws, random)?;
        let difference = permutation.difference();
        // Within blocks the placements of both groups vary together, so that their difference counts half.
        let within = Welch::within(&placements, difference)
            .map(|welch| Welch { standard_error: 2.0 * welch.standard_error, ..welch });
        let welch = within.or_else(|| Welch::between(&placements, difference));
        Some(ShiftTest { first: Reading { permutation, welch }, others: Vec::new(), reach: 0.0 })
    }

    /// The same with another reading of the runs, which must make each claim too.
    pub fn and(mut self, other: ShiftTest) -> ShiftTest {
        self.others.push(other.first);
        self.others.extend(other.others);
        self
    }

    /// The same if the observed difference may miss the true one by `reach`, as figures of a coarse clock do.
    #[must_use]
    pub fn within(self, reach: f64) -> ShiftTest {
        ShiftTest { reach, ..self }
    }

    /// The first reading alone; `None` if it is the only one.
    pub fn first_reading(&self) -> Option<ShiftTest> {
        (!self.others.is_empty()).then(|| ShiftTest {
            first: self.first.clone(),
            others: Vec::new(),
            reach: self.reach,
        })
    }

    /// Candidate minus baseline, in the first reading.
    pub const fn difference(&self) -> f64 {
        self.first.permutation.difference()
    }

    /// Whether all permutations were taken, instead of random ones.
    pub const fn is_exact(&self) -> bool {
        self.first.permutation.is_exact()
    }

    /// The number of permutations, including the observation.
    pub fn permutations(&self) -> u64 {
        self.first.permutation.total()
    }

    /// Whether any values of these runs could be significant at `alpha` in a test of so many `tails`.
    pub fn can_reach(&self, tails: f64, alpha: f64) -> bool {
        let permutation = |reading: &Reading| {
            !reading.permutation.is_exact() || is_significant(tails / reading.permutation.total() as f64, alpha)
        };
        self.readings().all(|reading| reading.welch.is_some() && permutation(reading))
    }

    /// Upper one-sided p value of the hypothesis that the candidate is the baseline moved by `shift`: small if the true
    /// shift is larger.
    pub(crate) fn p_upper(&self, shift: f64) -> f64 {
        let farthest = shift + self.reach;
        self.largest(|reading| reading.permutation.p_upper(farthest), |welch| welch.p_upper(farthest))
    }

    /// Lower one-sided p value of the same hypothesis: small if the true shift is smaller.
    pub(crate) fn p_lower(&self, shift: f64) -> f64 {
        let farthest = shift - self.reach;
        self.largest(|reading| reading.permutation.p_lower(farthest), |welch| welch.p_lower(farthest))
    }

    /// Two-sided p value of `shift`: twice the smaller tail, at most 1.
    pub fn p_value(&self, shift: f64) -> f64 {
        (2.0 * self.p_upper(shift).min(self.p_lower(shift))).min(1.0)
    }

    /// p value of equivalence from two one-sided tests: small if the shift lies between `low` and `high`.
    pub fn p_equivalent(&self, low: f64, high: f64) -> f64 {
        self.p_upper(low).max(self.p_lower(high))
    }

    /// All shifts whose p value is above 1 − `confidence`: both tails are monotonic in the shift, so that this is one
    /// interval. An end is `None` if no shift is rejected on that side.
    pub fn interval(&self, confidence: f64) -> Interval {
        let unbounded = Interval { low: None, high: None, confidence };
        let of_welch = |welch: Option<Welch>| welch.map_or(unbounded, |welch| welch.interval(confidence));
        let both = |reading: &Reading| [reading.permutation.interval(confidence), of_welch(reading.welch)];
        let hull = |one: Interval, other: Interval| Interval {
            low: one.low.zip(other.low).map(|(one, other)| one.min(other)),
            high: one.high.zip(other.high).map(|(one, other)| one.max(other)),
            confidence,
        };
        self.readings().flat_map(both).reduce(hull).unwrap_or(unbounded).widened(self.reach)
    }

    fn readings(&self) -> impl Iterator<Item = &Reading> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The largest p value of a tail.
    fn largest(&self, permutation: impl Fn(&Reading) -> f64, welch: impl Fn(Welch) -> f64) -> f64 {
        let both = |reading: &Reading| permutation(reading).max(reading.welch.map_or(1.0, &welch));
        self.readings().map(both).fold(0.0, f64::max)
    }
}

/// Welch's t test (1947) of a weighted difference.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Welch {
    difference: f64,
    /// 0 if nothing varies but by rounding.
    standard_error: f64,
    freedom: f64,
}

impl Welch {
    /// With the variance within blocks of each group; `None` if a group has fewer degrees of freedom than there are between
    /// the blocks, or none.
    fn within(blocks: &[BlockRuns], difference: f64) -> Option<Welch> {
        CellVariance::of_groups(blocks).map(|groups| Welch::of_groups(blocks, difference, groups))
    }

    fn of_groups(blocks: &[BlockRuns], difference: f64, groups: [CellVariance; 2]) -> Welch {
        let (variance, freedom) = satterthwaite(&sizes(blocks), groups);
        Welch::new(blocks, difference, variance, freedom)
    }

    /// With the variance of the differences between blocks, which is the paired t test; `None` below two blocks.
    fn between(blocks: &[BlockRuns], difference: f64) -> Option<Welch> {
        let differences = || blocks.iter().filter_map(|block| Some((block.weight(), block.difference()?)));
        let count = differences().count();
        let (weight, squares) =
            differences().fold((0.0, 0.0), |(sum, squares), (weight, _)| (sum + weight, squares + weight * weight));
        let scatter: f64 = differences().map(|(weight, own)| (weight * (own - difference)).powi(2)).sum();
        (count > 1).then(|| Welch::new(blocks, difference, scatter / (weight * weight - squares), count as f64 - 1.0))
    }

    fn new(blocks: &[BlockRuns], difference: f64, variance: f64, freedom: f64) -> Welch {
        let error = variance.max(0.0).sqrt();
        let standard_error = if error <= rounding(blocks) { 0.0 } else { error };
        Welch { difference, standard_error, freedom }
    }

    fn p_upper(self, shift: f64) -> f64 {
        self.above(self.difference - shift)
    }

    fn p_lower(self, shift: f64) -> f64 {
        self.above(shift - self.difference)
    }

    /// The probability of a distance at least this large, if there is none in truth.
    fn above(self, distance: f64) -> f64 {
        if self.standard_error > 0.0 {
            student_above(distance / self.standard_error, self.freedom)
        } else {
            f64::from(u8::from(distance <= 0.0))
        }
    }

    fn interval(self, confidence: f64) -> Interval {
        let reach = if self.standard_error > 0.0 {
            student(0.5 + confidence / 2.0, self.freedom) * self.standard_error
        } else {
            0.0
        };
        Interval { low: Some(self.difference - reach), high: Some(self.difference + reach), confidence }
    }
}

/// The variance of a group's runs within blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CellVariance {
    variance: f64,
    freedom: f64,
}

impl CellVariance {
    /// Those of the baseline and of the candidate over blocks with both groups; `None` if one has fewer degrees of freedom
    /// than there are between these blocks, or none.
    fn of_groups(blocks: &[BlockRuns]) -> Option<[CellVariance; 2]> {
        let common = || blocks.iter().filter(|block| block.weight() > 0.0);
        let between = common().count() as f64 - 1.0;
        let groups = [
            CellVariance::of(common().map(|block| &block.baseline)),
            CellVariance::of(common().map(|block| &block.candidate)),
        ];
        groups.iter().all(|group| group.freedom >= between.max(1.0)).then_some(groups)
    }

    fn of<'a>(cells: impl Iterator<Item = &'a Vec<f64>>) -> CellVariance {
        let (mut squares, mut freedom) = (0.0, 0.0);
        for cell in cells {
            let centre = mean(cell);
            squares += cell.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
            freedom += cell.len() as f64 - 1.0;
        }
        CellVariance { variance: if freedom > 0.0 { squares / freedom } else { 0.0 }, freedom }
    }
}

/// The ratio of the larger to the smaller standard deviation within blocks, infinite if one group is constant; `None` if
/// both are, or if a variance cannot be estimated.
pub fn spread_ratio(blocks: &[BlockRuns]) -> Option<f64> {
    let constant = rounding(blocks);
    let deviation = |group: CellVariance| Some(group.variance.sqrt()).filter(|it| *it > constant).unwrap_or(0.0);
    let [one, other] = CellVariance::of_groups(blocks)?.map(deviation);
    (one > 0.0 || other > 0.0).then(|| one.max(other) / one.min(other))
}

/// The runs of baseline and candidate in each block with both.
fn sizes(blocks: &[BlockRuns]) -> Vec<(f64, f64)> {
    let common = blocks.iter().filter(|block| block.weight() > 0.0);
    common.map(|block| (block.baseline.len() as f64, block.candidate.len() as f64)).collect()
}

/// The variance of the weighted difference of two groups that have so many runs in each block, and its degrees of freedom
/// (Satterthwaite 1946).
fn satterthwaite(sizes: &[(f64, f64)], groups: [CellVariance; 2]) -> (f64, f64) {
    let weight = |(n, m): &(f64, f64)| n * m / (n + m);
    let total: f64 = sizes.iter().map(weight).sum();
    let share = |runs: fn(&(f64, f64)) -> f64| {
        sizes.iter().map(|size| weight(size).powi(2) / runs(size)).sum::<f64>() / (total * total)
    };
    let [baseline, candidate] = groups;
    let parts = [baseline.variance * share(|(n, _)| *n), candidate.variance * share(|(_, m)| *m)];
    let variance = parts[0] + parts[1];
    let freedom = if variance > 0.0 {
        (parts[0] / variance).powi(2) / baseline.freedom + (parts[1] / variance).powi(2) / candidate.freedom
    } else {
        1.0 / (baseline.freedom + candidate.freedom)
    };
    (variance, 1.0 / freedom)
}

/// The weighted difference of [`ShiftTest::of_placements`]; `None` if no block has both groups.
pub fn placement_difference(blocks: &[BlockRuns]) -> Option<f64> {
    weighted_difference(&blocks.iter().map(placements).collect::<Vec<_>>())
}

/// The ranks of a block's runs times 2 / runs: then the difference of the means is that of the placements.
fn scaled_midranks(block: &BlockRuns) -> BlockRuns {
    let all = [block.baseline.as_slice(), &block.candidate].concat();
    let scale = 2.0 / all.len().max(1) as f64;
    let mut ranks: Vec<f64> = midranks(&all).into_iter().map(|rank| rank * scale).collect();
    let candidate = ranks.split_off(block.baseline.len());
    BlockRuns { baseline: ranks, candidate }
}

/// For each run the share of the other group's runs of its block that lie below it; of equal ones half.
fn placements(block: &BlockRuns) -> BlockRuns {
    let all = midranks(&[block.baseline.as_slice(), &block.candidate].concat());
    let (baseline, candidate) = all.split_at(block.baseline.len());
    let shares = |of_all: &[f64], own: &[f64], others: usize| {
        of_all.iter().zip(midranks(own)).map(|(rank, own)| (rank - own) / others as f64).collect()
    };
    BlockRuns {
        baseline: shares(baseline, &block.baseline, block.candidate.len()),
        candidate: shares(candidate, &block.candidate, block.baseline.len()),
    }
}

/// The rank of each value from 1; equal ones have the mean of theirs.
fn midranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|one, other| values[*one] == values[*other]) {
        for place in equal {
            ranks[*place] = before as f64 + (equal.len() as f64 + 1.0) / 2.0;
        }
        before += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::DRAWS;

    /// Student's data of two soporifics, which R ships as `sleep`.
    const SLEEP: [[f64; 10]; 2] =
        [[0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]];

    fn block(baseline: &[f64], candidate: &[f64]) -> BlockRuns {
        BlockRuns { baseline: baseline.to_vec(), candidate: candidate.to_vec() }
    }

    fn test_of(blocks: &[BlockRuns]) -> ShiftTest {
        ShiftTest::of(blocks, DRAWS, &mut Pcg64Mcg::seed_from_u64(1)).expect("both groups")
    }

    fn welch_of(test: &ShiftTest) -> Welch {
        test.first.welch.expect("a variance")
    }

    fn sleep_pairs() -> Vec<BlockRuns> {
        SLEEP[0].iter().zip(SLEEP[1]).map(|(one, other)| block(&[*one], &[other])).collect()
    }

    /// `t.test(extra ~ group, sleep)` and `t.test(sleep[11:20, 1], sleep[1:10, 1], paired = TRUE)` in R.
    #[test]
    fn the_t_tests_agree_with_r() {
        for (blocks, freedom, p, low, high) in [
            (vec![block(&SLEEP[0], &SLEEP[1])], 17.776, 0.079_39, -0.205_483_2, 3.365_483_2),
            (sleep_pairs(), 9.0, 0.002_833, 0.700_114_2, 2.459_885_8),
        ] {
            let welch = welch_of(&test_of(&blocks));
            let interval = welch.interval(0.95);
            assert!((welch.freedom - freedom).abs() < 5e-4, "{welch:?}");
            assert!((2.0 * welch.p_upper(0.0) - p).abs() < 5e-6, "{welch:?}");
            assert!(interval.low.is_some_and(|end| (end - low).abs() < 1e-6), "{interval:?}");
            assert!(interval.high.is_some_and(|end| (end - high).abs() < 1e-6), "{interval:?}");
        }
    }

    /// The example of Brunner and Munzel (2000), pain scores of two treatments.
    #[test]
    fn the_test_of_placements_agrees_with_brunner_and_munzel() {
        let one = [1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 1.0, 1.0];
        let other = [3.0, 3.0, 4.0, 3.0, 1.0, 2.0, 3.0, 1.0, 1.0, 5.0, 4.0];
        let test = ShiftTest::of_placements(&[block(&one, &other)], DRAWS, &mut Pcg64Mcg::seed_from_u64(1));
        let test = test.expect("both groups");
        let welch = welch_of(&test);
        assert!((test.difference() - (2.0 * 0.788_961 - 1.0)).abs() < 1e-6, "{test:?}");
        assert!((welch.difference / welch.standard_error - 3.1375).abs() < 5e-5, "{welch:?}");
        assert!((welch.freedom - 17.683).abs() < 5e-4, "{welch:?}");
        assert!((2.0 * welch.p_upper(0.0) - 0.005_786).abs() < 5e-7, "{welch:?}");
        assert!(test.p_value(0.0) >= 0.005_786);
    }

    #[test]
    fn placements_of_infinite_runs_are_compared_like_any() {
        let infinite = f64::INFINITY;
        let apart = block(&[1.0, 2.0, 3.0, 4.0, 5.0], &[infinite; 5]);
        let test = ShiftTest::of_placements(&[apart], DRAWS, &mut Pcg64Mcg::seed_from_u64(1)).expect("both groups");
        assert_eq!((test.difference(), test.p_value(0.0)), (1.0, 2.0 / 252.0), "the exchange decides alone");
        let half = block(&[infinite, infinite, 1.0, 1.0], &[1.0, infinite, 1.0, infinite]);
        let test = ShiftTest::of_placements(&[half], DRAWS, &mut Pcg64Mcg::seed_from_u64(1)).expect("both groups");
        assert_eq!((test.difference(), test.p_value(0.0)), (0.0, 1.0));
    }

    /// One run of each group in each of eight blocks: the variance comes from the differences of the blocks.
    #[test]
    fn placements_of_pairs_are_tested_over_blocks() {
        let blocks: Vec<BlockRuns> =
            (0..8).map(|place| block(&[f64::from(place)], &[if place == 0 { -1.0 } else { f64::INFINITY }])).collect();
        let test = ShiftTest::of_placements(&blocks, DRAWS, &mut Pcg64Mcg::seed_from_u64(1)).expect("both groups");
        let welch = welch_of(&test);
        // Seven differences of 1 and one of −1: mean 0.75, standard deviation 1/√2, divided by √8.
        assert!((test.difference() - 0.75).abs() < 1e-12 && welch.freedom == 7.0, "{welch:?}");
        assert!((welch.standard_error - 0.25).abs() < 1e-12, "{welch:?}");
    }

    #[test]
    fn the_larger_p_value_counts_and_the_interval_spans_both_tests() {
        let test = test_of(&[block(&[1.0, 2.0, 4.0, 3.5, 2.2], &[2.5, 6.0, 5.0, 7.25, 3.1])]);
        let (permutation, welch) = (&test.first.permutation, welch_of(&test));
        for step in -40..=80 {
            let shift = f64::from(step) * 0.0973;
            assert_eq!(test.p_upper(shift), permutation.p_upper(shift).max(welch.p_upper(shift)));
            assert_eq!(test.p_lower(shift), permutation.p_lower(shift).max(welch.p_lower(shift)));
        }
        for confidence in [0.5, 0.8, 0.9, 0.95, 0.98] {
            let interval = test.interval(confidence);
            for step in -400..=400 {
                let shift = f64::from(step) * 0.0273 + 1e-6;
                let inside =
                    interval.low.is_none_or(|low| low <= shift) && interval.high.is_none_or(|high| shift <= high);
                assert_eq!(inside, !is_significant(test.p_value(shift), 1.0 - confidence), "{interval:?} at {shift}");
            }
        }
    }

    #[test]
    fn several_readings_claim_only_what_each_claims() {
        let higher = test_of(&[block(&[1.0, 1.1, 1.2, 1.3, 1.4], &[2.0, 2.1, 2.2, 2.3, 2.4])]);
        let lower = test_of(&[block(&[1.0, 1.1, 1.2, 1.3, 1.4], &[0.0, 0.1, 0.2, 0.3, 0.4])]);
        assert!(higher.p_value(0.0) < 0.01 && lower.p_value(0.0) < 0.01);
        let both = higher.clone().and(lower.clone());
        assert!(both.p_value(0.0) > 0.99 && both.difference() == higher.difference(), "{both:?}");
        let (interval, below) = (both.interval(0.95), lower.interval(0.95));
        assert_eq!((interval.low, interval.high), (below.low, higher.interval(0.95).high));
        assert_eq!((both.first_reading(), higher.first_reading()), (Some(higher), None));
    }

    #[test]
    fn six_boots_are_the_fewest_that_can_be_significant() {
        let differences = [0.1, 0.12, 0.09, 0.11, 0.13, 0.1];
        let over = |boots: usize| {
            ShiftTest::of_differences(&differences[..boots], DRAWS, &mut Pcg64Mcg::seed_from_u64(1)).expect("some")
        };
        assert!((over(5).p_value(0.0) - 2.0 / 32.0).abs() < 1e-12);
        assert!((over(6).p_value(0.0) - 2.0 / 64.0).abs() < 1e-12);
        // One flip away: the smallest and the largest of the differences bound the mean, wider than the paired t test.
        let interval = over(6).interval(0.95);
        assert_eq!((interval.low, interval.high), (Some(0.09), Some(0.13)));
    }

    #[test]
    fn a_single_run_against_many_claims_nothing() {
        let test = test_of(&[block(&[9.0], &(0..60).map(f64::from).collect::<Vec<_>>())]);
        assert_eq!((test.p_value(0.0), test.can_reach(2.0, 0.05)), (1.0, false));
        assert_eq!((test.interval(0.95).low, test.interval(0.95).high), (None, None));
    }

    #[test]
    fn constant_groups_are_left_to_the_exchange() {
        let apart = test_of(&[block(&[3.1; 5], &[3.4; 5])]);
        assert_eq!(apart.p_value(0.0), 2.0 / 252.0);
        let same = test_of(&[block(&[3.1; 4], &[3.1; 4]), block(&[0.1; 4], &[0.1; 4])]);
        assert_eq!((same.p_value(0.0), same.interval(0.95).low, same.interval(0.95).high), (1.0, Some(0.0), Some(0.0)));
        assert_eq!(spread_ratio(&[block(&[3.1; 5], &[3.4; 5])]), None);
        assert_eq!(spread_ratio(&[block(&[3.1; 3], &[3.0, 3.4, 3.2])]), Some(f64::INFINITY));
        let ratio = spread_ratio(&[block(&[1.0, 2.0, 3.0], &[10.0, 14.0, 12.0])]).expect("two variances");
        assert!((ratio - 2.0).abs() < 1e-12, "{ratio}");
    }
}
