//! Permutation tests (Fisher 1935) of the shift between two groups of runs. Group labels are permuted within blocks only.
//! Reports call a permutation an exchange. Method and limits: docs/statistics.md, "Comparing runs"; reasons: decision 0011.

use rand::Rng;

use super::interval::Interval;

/// Up to this many permutations all of them are taken.
const EXACT_MAX: u64 = 20_000;

/// Permutations drawn if there are more: p is then known to ±0.004 around 0.05.
pub const DRAWS: u32 = 9_999;

/// At most this many runs are drawn, which takes about a second. In larger groups neighbours are permuted together in
/// bundles; permutations of bundles are a subgroup of those of runs, so that the level stays exact. A million numbers
/// against a million took 19 s of CPU one by one.
const PLACES_MAX: u64 = 200_000_000;
/// A block keeps at least this many bundles in its smaller group.
const BUNDLES_MIN: usize = 50;

/// A shift closer to 0 than this share of the largest value is 0: rounding must not break a tie.
const ROUNDING: f64 = 1e-12;

/// α is seldom a binary fraction: tolerance of a count that is compared with its share.
const COUNT_SLACK: f64 = 1e-9;

/// The runs of one block: a value for each, on the scale of the comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockRuns {
    pub baseline: Vec<f64>,
    pub candidate: Vec<f64>,
}

impl BlockRuns {
    /// The weight of the block, n·m/(n+m): the inverse of the variance of its difference; 0 if a group is missing.
    pub(super) fn weight(&self) -> f64 {
        let (n, m) = (self.baseline.len() as f64, self.candidate.len() as f64);
        if n + m > 0.0 { n * m / (n + m) } else { 0.0 }
    }

    /// Mean of the candidate minus that of the baseline; `None` if a group is missing.
    pub fn difference(&self) -> Option<f64> {
        (self.weight() > 0.0).then(|| mean(&self.candidate) - mean(&self.baseline))
    }

    /// The number of ways to permute the labels, at most `u64::MAX`.
    fn permutations(&self) -> u64 {
        let runs = (self.baseline.len() + self.candidate.len()) as u64;
        let few = self.baseline.len().min(self.candidate.len()) as u64;
        (1..=few).try_fold(1_u64, |ways, step| Some(ways.checked_mul(runs - few + step)? / step)).unwrap_or(u64::MAX)
    }
}

/// The mean; 0 of no values.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Weighted mean over `blocks` of the difference of candidate and baseline; `None` if no block has both groups.
pub fn weighted_difference(blocks: &[BlockRuns]) -> Option<f64> {
    let weight: f64 = blocks.iter().map(BlockRuns::weight).sum();
    let sum: f64 = blocks.iter().filter_map(|block| Some(block.weight() * block.difference()?)).sum();
    (weight > 0.0).then(|| sum / weight)
}

/// The mean of the baseline with the weights of [`weighted_difference`]; `None` if no block has both groups.
pub fn weighted_baseline(blocks: &[BlockRuns]) -> Option<f64> {
    let weight: f64 = blocks.iter().map(BlockRuns::weight).sum();
    let sum: f64 = blocks.iter().map(|block| block.weight() * mean(&block.baseline)).sum();
    (weight > 0.0).then(|| sum / weight)
}

/// The error of rounding in a sum of the values of `blocks`: what is smaller counts as 0.
pub(super) fn rounding<'a>(blocks: impl IntoIterator<Item = &'a BlockRuns>) -> f64 {
    let values = blocks.into_iter().flat_map(|block| block.baseline.iter().chain(&block.candidate));
    ROUNDING * values.fold(0.0_f64, |largest, value| largest.max(value.abs()))
}

/// The permutation distribution of a comparison, from which p values, intervals and one-sided tests are read.
#[derive(Clone, Debug, PartialEq)]
pub struct PermutationTest {
    difference: f64,
    /// For each permutation its critical shift, up to which it is more extreme than the observation; ascending.
    critical: Vec<f64>,
    /// Permutations that leave all labels in place: they equal the observation at every shift.
    unchanged: u64,
    exact: bool,
}

impl PermutationTest {
    /// Takes all permutations if they are few, else `draws` random ones and the observation. Blocks without both groups
    /// are left out; `None` if that leaves none.
    pub fn of(blocks: &[BlockRuns], draws: u32, random: &mut impl Rng) -> Option<PermutationTest> {
        PermutationTest::within(blocks, draws, PLACES_MAX, random)
    }

    /// As [`PermutationTest::of`], with at most `places_max` runs drawn.
    fn within(blocks: &[BlockRuns], draws: u32, places_max: u64, random: &mut impl Rng) -> Option<PermutationTest> {
        let difference = weighted_difference(blocks)?;
        let blocks: Vec<&BlockRuns> = blocks.iter().filter(|block| block.weight() > 0.0).collect();
        let exact = blocks.iter().fold(1_u64, |ways, block| ways.saturating_mul(block.permutations())) <= EXACT_MAX;
        let places: u64 = blocks.iter().map(|block| block.baseline.len().min(block.candidate.len()) as u64).sum();
        let size = if exact { 1 } else { places.saturating_mul(draws.into()).div_ceil(places_max).max(1) as usize };
        let bundled: Vec<BundledBlock> = blocks.iter().map(|block| BundledBlock::of(block, size)).collect();
        let permutations = if exact { all(&bundled) } else { drawn(bundled, draws, random) };
        let tie = rounding(blocks.iter().copied());
        let shift = |one: &Permutation| one.gain / f64::from(one.pairs);
        let snapped = |shift: f64| if shift.abs() <= tie { 0.0 } else { shift };
        let mut critical: Vec<f64> =
            permutations.iter().filter(|one| one.pairs > 0).map(|one| snapped(shift(one))).collect();
        critical.sort_unstable_by(f64::total_cmp);
        let unchanged = (permutations.len() - critical.len()) as u64;
        Some(PermutationTest { difference: snapped(difference), critical, unchanged, exact })
    }

    pub const fn difference(&self) -> f64 {
        self.difference
    }

    /// Whether all permutations were taken, instead of random ones.
    pub const fn is_exact(&self) -> bool {
        self.exact
    }

    /// The number of permutations, including the observation.
    pub fn total(&self) -> u64 {
        self.critical.len() as u64 + self.unchanged
    }

    /// Upper one-sided p value of the hypothesis that the candidate is the baseline moved by `shift`: small if the true
    /// shift is larger.
    pub(crate) fn p_upper(&self, shift: f64) -> f64 {
        self.share(self.critical.partition_point(|critical| *critical <= shift))
    }

    /// Lower one-sided p value of the same hypothesis: small if the true shift is smaller.
    pub(crate) fn p_lower(&self, shift: f64) -> f64 {
        self.share(self.critical.len() - self.critical.partition_point(|critical| *critical < shift))
    }

    /// Two-sided p value of `shift`: twice the smaller tail, at most 1.
    pub fn p_value(&self, shift: f64) -> f64 {
        (2.0 * self.p_upper(shift).min(self.p_lower(shift))).min(1.0)
    }

    /// All shifts whose p value is above 1 − `confidence`; an end is `None` if no shift is rejected on that side.
    pub fn interval(&self, confidence: f64) -> Interval {
        let rejected = ((1.0 - confidence) / 2.0 * self.total() as f64 + COUNT_SLACK).floor() as u64;
        // A shift with this many critical values beyond it is still rejected, one with more is not.
        let place = rejected.checked_sub(self.unchanged).map(|place| place as usize);
        let low = place.and_then(|place| self.critical.get(place)).copied();
        let high = place.and_then(|place| self.critical.get(self.critical.len().checked_sub(place + 1)?)).copied();
        Interval { low, high, confidence }
    }

    /// p value of equivalence from two one-sided tests: small if the shift lies between `low` and `high`.
    pub fn p_equivalent(&self, low: f64, high: f64) -> f64 {
        self.p_upper(low).max(self.p_lower(high))
    }

    fn share(&self, extreme: usize) -> f64 {
        (extreme as u64 + self.unchanged) as f64 / self.total() as f64
    }
}

/// Whether a p value that is a share of counts is significant at `alpha`.
pub fn is_significant(p: f64, alpha: f64) -> bool {
    p <= alpha + COUNT_SLACK / 1e3
}

/// One permutation. With weights n·m/(n+m) its critical shift c = (D − D_π)/(1 − f_π) simplifies to the mean of the runs
/// that leave the candidate minus the mean of those that replace them.
#[derive(Clone, Copy, Debug, Default)]
struct Permutation {
    /// Sum of the values that leave the candidate minus those that replace them.
    gain: f64,
    /// Pairs of runs that change labels.
    pairs: u32,
}

impl Permutation {
    fn and(self, other: Permutation) -> Permutation {
        Permutation { gain: self.gain + other.gain, pairs: self.pairs + other.pairs }
    }
}

/// The runs of a block in bundles of equal size, those of its smaller group first; remaining runs keep their labels.
/// Values and labels are separate columns, over which drawing iterates thousands of times.
struct BundledBlock {
    /// The sum of the values of each bundle, each minus the mean of the block.
    values: Vec<f64>,
    /// 1 for a bundle of the smaller group, else 0.
    own: Vec<u32>,
    /// Bundles of the smaller group.
    few: usize,
    size: usize,
    /// Sum of the values of the smaller group.
    own_sum: f64,
    /// 1 if the smaller group is the candidate, −1 if it is the baseline.
    sign: f64,
    /// For each place of the smaller group the one that it is swapped with.
    picks: Vec<usize>,
}

impl BundledBlock {
    fn of(block: &BlockRuns, size: usize) -> BundledBlock {
        let (few, many, sign) = if block.candidate.len() <= block.baseline.len() {
            (&block.candidate, &block.baseline, 1.0)
        } else {
            (&block.baseline, &block.candidate, -1.0)
        };
        let centre = (few.iter().sum::<f64>() + many.iter().sum::<f64>()) / (few.len() + many.len()) as f64;
        let size = size.min(few.len() / BUNDLES_MIN).max(1);
        let bundle = |values: &[f64]| values.iter().map(|value| value - centre).sum::<f64>();
        let values: Vec<f64> = few.chunks_exact(size).chain(many.chunks_exact(size)).map(bundle).collect();
        let few = few.len() / size;
        let own = (0..values.len()).map(|place| u32::from(place < few)).collect();
        let own_sum = values[..few].iter().sum();
        BundledBlock { values, own, few, size, own_sum, sign, picks: vec![0; few] }
    }

    /// The permutation after which the smaller group holds bundles of this sum, `kept` of them its own.
    fn permutation(&self, sum: f64, kept: u32) -> Permutation {
        Permutation { gain: self.sign * (self.own_sum - sum), pairs: (self.few as u32 - kept) * self.size as u32 }
    }

    /// Every way to fill the smaller group.
    fn all(&self) -> Vec<Permutation> {
        let mut all = Vec::new();
        self.choose(0, self.few, Chosen { sum: 0.0, kept: 0 }, &mut all);
        all
    }

    /// Adds every way to choose `left` more bundles from the place `from` on.
    fn choose(&self, from: usize, left: usize, chosen: Chosen, all: &mut Vec<Permutation>) {
        if left == 0 {
            all.push(self.permutation(chosen.sum, chosen.kept));
            return;
        }
        for next in from..=self.values.len() - left {
            let with_next = Chosen { sum: chosen.sum + self.values[next], kept: chosen.kept + self.own[next] };
            self.choose(next + 1, left - 1, with_next, all);
        }
    }

    /// A random way: the first places of a shuffle that stops there. Drawing, swapping and summing are separate loops, so
    /// that none waits for the stores of another.
    fn draw(&mut self, random: &mut impl Rng) -> Permutation {
        for (place, pick) in self.picks.iter_mut().enumerate() {
            let rest = (self.values.len() - place) as u64;
            // The bias is negligible, since the runs of a block are far fewer than 2^32.
            *pick = place + ((u64::from(random.next_u32()) * rest) >> 32) as usize;
        }
        for (place, pick) in self.picks.iter().enumerate() {
            self.values.swap(place, *pick);
            self.own.swap(place, *pick);
        }
        let sum = self.values[..self.few].iter().fold(0.0, |sum, value| sum + value);
        self.permutation(sum, self.own[..self.few].iter().sum())
    }
}

/// The bundles chosen so far for the smaller group.
#[derive(Clone, Copy)]
struct Chosen {
    sum: f64,
    /// Those that were its own before.
    kept: u32,
}

/// Every combination of the permutations of all blocks.
fn all(blocks: &[BundledBlock]) -> Vec<Permutation> {
    blocks.iter().fold(vec![Permutation::default()], |all, block| {
        let own = block.all();
        all.iter().flat_map(|one| own.iter().map(|other| one.and(*other))).collect()
    })
}

/// The observation, and `draws` random permutations.
fn drawn(mut blocks: Vec<BundledBlock>, draws: u32, random: &mut impl Rng) -> Vec<Permutation> {
    let mut draw = || blocks.iter_mut().fold(Permutation::default(), |sum, block| sum.and(block.draw(random)));
    std::iter::once(Permutation::default()).chain((0..draws).map(|_| draw())).collect()
}

/// The p values of the claims of one comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claims {
    /// Of the claim of a difference.
    pub different: f64,
    /// Of the claim that the difference lies within a margin, if one was stated. At most one of the two null hypotheses is
    /// true: without a difference there is none beyond the margin.
    pub equivalent: Option<f64>,
}

/// The step-down adjustment of Holm (1979) over all claims of all `rows`: with claims at adjusted p ≤ α the probability of
/// any false claim, of a difference or of an equivalence, is at most α under arbitrary dependence. A p value is multiplied
/// by the number of null hypotheses that can still be true together (Shaffer 1986): one for each row that is not yet
/// rejected entirely. Without margins this is Holm's procedure.
pub fn holm(rows: &[Claims]) -> Vec<Claims> {
    let mut open: Vec<(f64, usize, bool)> = Vec::new();
    for (row, claims) in rows.iter().enumerate() {
        open.push((claims.different, row, false));
        open.extend(claims.equivalent.map(|p| (p, row, true)));
    }
    open.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut left: Vec<u8> = rows.iter().map(|claims| 1 + u8::from(claims.equivalent.is_some())).collect();
    let mut adjusted = rows.to_vec();
    let mut largest = 0.0_f64;
    let mut possible = rows.len();
    for (p, row, is_equivalence) in open {
        largest = largest.max((p * possible as f64).min(1.0));
        if is_equivalence {
            adjusted[row].equivalent = Some(largest)
        } else {
            adjusted[row].different = largest
        }
        left[row] -= 1;
        possible -= usize::from(left[row] == 0);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    //! The test against its definition: every permutation enumerated, and the statistic computed for each shift.

    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    fn block(baseline: &[f64], candidate: &[f64]) -> BlockRuns {
        BlockRuns { baseline: baseline.to_vec(), candidate: candidate.to_vec() }
    }

    fn test_of(blocks: &[BlockRuns], draws: u32) -> PermutationTest {
        PermutationTest::of(blocks, draws, &mut Pcg64Mcg::seed_from_u64(1)).expect("both groups")
    }

    /// Every labelling of the runs of a block: a set bit i makes run i (baseline first) a candidate.
    fn labellings(block: &BlockRuns) -> Vec<Vec<bool>> {
        let runs = block.baseline.len() + block.candidate.len();
        let masks = (0_u32..1 << runs).filter(|mask| mask.count_ones() as usize == block.candidate.len());
        masks.map(|mask| (0..runs).map(|run| mask >> run & 1 == 1).collect()).collect()
    }

    /// Σ w·(mean of the candidate − mean of the baseline) / Σ w of runs with these labels.
    fn statistic(blocks: &[Vec<f64>], labels: &[&Vec<bool>]) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (values, labels) in blocks.iter().zip(labels) {
            let of = |wanted: bool| -> Vec<f64> {
                values.iter().zip(*labels).filter(|(_, label)| **label == wanted).map(|(value, _)| *value).collect()
            };
            let (baseline, candidate) = (of(false), of(true));
            let (n, m) = (baseline.len() as f64, candidate.len() as f64);
            let weight = n * m / (n + m);
            sum += weight * (mean(&candidate) - mean(&baseline));
            weights += weight;
        }
        sum / weights
    }

    /// Shares of permutations with a statistic at least as high, and at least as low, once the candidate is moved back.
    fn naive_tails(blocks: &[BlockRuns], shift: f64) -> (f64, f64) {
        let moved: Vec<Vec<f64>> = blocks
            .iter()
            .map(|block| {
                block.baseline.iter().copied().chain(block.candidate.iter().map(|value| value - shift)).collect()
            })
            .collect();
        let each: Vec<Vec<Vec<bool>>> = blocks.iter().map(labellings).collect();
        let mut all: Vec<Vec<&Vec<bool>>> = vec![Vec::new()];
        for labellings in &each {
            all = all
                .into_iter()
                .flat_map(|labels| labellings.iter().map(move |next| labels.iter().copied().chain([next]).collect()))
                .collect();
        }
        let real: Vec<Vec<bool>> = blocks
            .iter()
            .map(|block| [vec![false; block.baseline.len()], vec![true; block.candidate.len()]].concat())
            .collect();
        let seen = statistic(&moved, &real.iter().collect::<Vec<_>>());
        let found: Vec<f64> = all.iter().map(|labels| statistic(&moved, labels)).collect();
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
    fn one_sided_p_values_agree_with_the_definition() {
        for (number, blocks) in designs().into_iter().enumerate() {
            let test = test_of(&blocks, DRAWS);
            assert!(test.is_exact());
            // Between critical values, where only those statistics tie that tie at every shift, and at 0.
            for step in -130_i32..=130 {
                let shift = f64::from(step) * 0.0837 + 1e-5 * f64::from(step.signum());
                let (higher, lower) = naive_tails(&blocks, shift);
                let got = (test.p_upper(shift), test.p_lower(shift));
                assert!(
                    (got.0 - higher).abs() < 1e-12,
                    "design {number}, shift {shift}: {got:?}, naive {higher} {lower}"
                );
                assert!(
                    (got.1 - lower).abs() < 1e-12,
                    "design {number}, shift {shift}: {got:?}, naive {higher} {lower}"
                );
            }
        }
    }

    #[test]
    fn the_interval_holds_every_shift_that_is_not_rejected() {
        for blocks in designs() {
            let test = test_of(&blocks, DRAWS);
            for confidence in [0.5, 0.8, 0.9, 0.95] {
                let interval = test.interval(confidence);
                for step in -400..=400 {
                    let shift = f64::from(step) * 0.0273 + 1e-6;
                    let inside =
                        interval.low.is_none_or(|low| low <= shift) && interval.high.is_none_or(|high| shift <= high);
                    let rejected = is_significant(test.p_value(shift), 1.0 - confidence);
                    assert_eq!(inside, !rejected, "{interval:?} at {shift}: p {}", test.p_value(shift));
                }
                let excludes_zero =
                    interval.low.is_some_and(|low| low > 0.0) || interval.high.is_some_and(|high| high < 0.0);
                assert_eq!(excludes_zero, is_significant(test.p_value(0.0), 1.0 - confidence));
            }
        }
    }

    #[test]
    fn random_permutations_are_reproducible_by_seed() {
        let blocks = [
            block(&[1.0, 2.0, 4.0, 3.5, 2.2], &[2.5, 6.0, 5.0, 4.25]),
            block(&[11.0, 12.5, 13.0], &[10.5, 16.0, 14.0, 13.1, 12.2]),
        ];
        let exact = test_of(&blocks, DRAWS);
        // A third block of equal values makes the permutations too many to take all.
        let mut three = blocks.to_vec();
        three.push(BlockRuns { baseline: vec![0.0; 12], candidate: vec![0.0; 12] });
        assert!(exact.is_exact() && exact.total() == 126 * 56);
        let (one, other) = (test_of(&three, 40_000), test_of(&three, 40_000));
        assert!(!one.is_exact() && one.total() == 40_001);
        assert_eq!(one, other, "the same seed gives the same permutations");
        let (higher, lower) = (one.p_upper(0.0), one.p_lower(0.0));
        assert!(higher > 0.0 && lower > 0.5 && one.p_value(one.difference()) > 0.9);
    }

    #[test]
    fn equal_values_have_an_interval_of_width_0() {
        let test = test_of(&[block(&[3.1; 4], &[3.1; 4]), block(&[0.1; 4], &[0.1; 4])], DRAWS);
        let interval = test.interval(0.95);
        assert_eq!((test.difference(), test.p_value(0.0)), (0.0, 1.0));
        assert_eq!((interval.low, interval.high), (Some(0.0), Some(0.0)));
        assert!(test.p_equivalent(-0.01, 0.01) < 0.01);
    }

    #[test]
    fn too_few_runs_leave_the_interval_unbounded() {
        let test = test_of(&[block(&[1.0, 1.1], &[9.0, 9.1])], DRAWS);
        let interval = test.interval(0.95);
        assert_eq!((test.total(), test.p_value(0.0)), (6, 1.0 / 3.0));
        assert_eq!((interval.low, interval.high), (None, None));
        assert!(PermutationTest::of(&[block(&[1.0], &[])], DRAWS, &mut Pcg64Mcg::seed_from_u64(1)).is_none());
        assert!(PermutationTest::of(&[], DRAWS, &mut Pcg64Mcg::seed_from_u64(1)).is_none());
    }

    #[test]
    fn bundles_keep_the_level_and_the_width_of_the_interval() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let mut uniform = || f64::from(random.next_u32()) / 4_294_967_296.0 - 0.5;
        let mut draws = Pcg64Mcg::seed_from_u64(6);
        let (replicates, mut rejected, mut widths) = (1_000, 0, [0.0, 0.0]);
        for _ in 0..replicates {
            let values =
                |uniform: &mut dyn FnMut() -> f64, count: usize| (0..count).map(|_| uniform()).collect::<Vec<f64>>();
            let block = block(&values(&mut uniform, 203), &values(&mut uniform, 310));
            // 203 runs drawn 199 times are four times as many as these, so that bundles hold four runs.
            let bundled =
                PermutationTest::within(std::slice::from_ref(&block), 199, 203 * 50, &mut draws).expect("both groups");
            assert_eq!(bundled.total(), 200);
            let single = PermutationTest::of(&[block], 199, &mut draws).expect("both groups");
            rejected += u32::from(is_significant(bundled.p_value(0.0), 0.1));
            for (width, test) in widths.iter_mut().zip([&bundled, &single]) {
                let interval = test.interval(0.9);
                *width += interval.high.expect("bounded") - interval.low.expect("bounded");
            }
        }
        // Three standard errors of 10 % in 1,000 are 2.8 points.
        assert!((72..=128).contains(&rejected), "{rejected} of {replicates}");
        assert!((widths[0] / widths[1] - 1.0).abs() < 0.05, "{widths:?}");
    }

    fn close(got: &[f64], expected: &[f64]) -> bool {
        got.len() == expected.len() && got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-12)
    }

    #[test]
    fn adjusted_p_values_agree_with_r() {
        // R 4.5: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") and p.adjust(c(0.6, 0.04, 0.5, 0.02, 0.02), "holm")
        for (p, expected) in [
            (vec![0.01, 0.04, 0.03, 0.005], vec![0.03, 0.06, 0.06, 0.02]),
            (vec![0.6, 0.04, 0.5, 0.02, 0.02], vec![1.0, 0.12, 1.0, 0.1, 0.1]),
            (vec![0.05], vec![0.05]),
            (vec![], vec![]),
        ] {
            let rows: Vec<Claims> = p.iter().map(|p| Claims { different: *p, equivalent: None }).collect();
            let got: Vec<f64> = holm(&rows).iter().map(|claims| claims.different).collect();
            assert!(close(&got, &expected), "{p:?}: {got:?}, expected {expected:?}");
        }
    }

    #[test]
    fn a_row_counts_once_until_both_of_its_claims_are_made() {
        let rows = [(0.3, 0.004), (0.01, 0.012), (0.9, 0.04)];
        let rows = rows.map(|(different, equivalent)| Claims { different, equivalent: Some(equivalent) });
        let got = holm(&rows);
        // 0.004, 0.01 and 0.012 times three, since no row is rejected entirely before them; 0.04 and 0.3 times two; 0.9 once.
        let expected = [(0.6, 0.012), (0.03, 0.036), (0.9, 0.08)];
        for (got, (different, equivalent)) in got.iter().zip(expected) {
            let equivalent_got = got.equivalent.expect("asked for");
            assert!(close(&[got.different, equivalent_got], &[different, equivalent]), "{got:?}");
        }
    }

    /// Twenty rows whose true differences are 0 or lie exactly on their margins: the worst case, with one true null
    /// hypothesis in each.
    #[test]
    fn the_family_wise_error_rate_is_at_most_alpha() {
        let mut random = Pcg64Mcg::seed_from_u64(11);
        let mut uniform = || (f64::from(random.next_u32()) + 0.5) / 4_294_967_296.0;
        let tables = 20_000;
        let mut false_ones = 0;
        for _ in 0..tables {
            let row = |place: usize, truth: f64| match place % 2 {
                0 => Claims { different: truth, equivalent: Some(1e-9) },
                _ => Claims { different: 1e-9, equivalent: Some(truth) },
            };
            let rows: Vec<Claims> = (0..20).map(|place| row(place, uniform())).collect();
            let is_false = |(place, claims): (usize, &Claims)| {
                (if place % 2 == 0 { claims.different } else { claims.equivalent.unwrap_or(1.0) }) <= 0.05
            };
            false_ones += u32::from(holm(&rows).iter().enumerate().any(is_false));
        }
        // 1 − (1 − 0.05/20)^20 = 4.9 %; three standard errors are 0.46 points.
        let share = f64::from(false_ones) / f64::from(tables);
        assert!((0.044..=0.0536).contains(&share), "{share}");
    }
}
